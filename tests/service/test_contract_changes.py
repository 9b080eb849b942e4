"""Changes: of policies, seen within a second; of the feed, seen at once; of stores that go, break and come back."""

import contextlib
import datetime
import os
import re
import signal
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from croupier import PATIENCE, eventually, match_odds, row
from servers import Stopwatch

# The interface allows one second. Reading the clock and asking take time too, more under a sanitizer.
SEEN_WITHIN = 1.0 + 0.2 * PATIENCE


def seen(service, change, condition):
    """Makes a change and asks until it is seen; the contract's second begins when the command is done."""
    assert not condition()
    change()
    watch = Stopwatch()
    while not condition():
        assert watch.seconds() < SEEN_WITHIN, "the change was not seen within a second"
        time.sleep(0.02)


def status(service, path="/api/v1/sports", **options):
    return service.get(path, **options).status


# ---- policies -----------------------------------------------------------------------------------------

def test_a_customers_changes_are_seen_within_a_second(shared):
    customer = shared.add_customer("Changing", cidrs=["127.0.0.1/32"], sports="cricket")
    shared.await_admission(customer.key)
    key = customer.key

    def sports():
        response = shared.get("/api/v1/sports", key=key)
        return [sport["key"] for sport in response.json()["sports"]] if response.status == 200 else None

    def change(*arguments):
        return lambda: shared.run("customer", *arguments)

    seen(shared, change("set", customer.id, "--sports", "tennis,football"), lambda: sports() == ["football", "tennis"])
    seen(shared, change("disable", customer.id), lambda: sports() is None)
    seen(shared, change("enable", customer.id), lambda: sports() == ["football", "tennis"])
    seen(shared, change("set", customer.id, "--cidr", "127.0.6.0/24"), lambda: sports() is None)
    assert status(shared, key=key, source="127.0.6.1") == 200
    seen(shared, change("set", customer.id, "--cidr", "127.0.0.0/8"), lambda: sports() is not None)
    seen(shared, change("set", customer.id, "--rate", "1/3600"), lambda: status(shared, key=key) == 429)


def test_keys_come_and_go_within_a_second(shared):
    customer = shared.add_customer("Rotating")
    shared.await_admission(customer.key)
    issued = []
    seen(shared, lambda: issued.append(shared.issue_key(customer.id, "--label", "new")),
         lambda: bool(issued) and status(shared, key=issued[0]) == 200)
    old = next(key["id"] for key in shared.ask("key", "list", customer.id) if key["label"] != "new")
    seen(shared, lambda: shared.run("key", "revoke", old), lambda: status(shared, key=customer.key) == 403)
    assert status(shared, key=issued[0]) == 200


def test_a_key_ends_when_it_expires(clocked):
    key = clocked.issue_key(clocked.customer.id, "--expires", "90d")
    with clocked.connect() as connection:  # a connection that remembers the key must forget it in time
        def ask():
            connection.send(f"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\n\r\n")
            return connection.receive().status
        eventually(lambda: ask() == 200)
        clocked.clock.advance(wall=90 * 86400 - 600)
        assert ask() == 200
        clocked.clock.advance(wall=601)
        assert ask() == 403
    assert status(clocked, "/api/v1/sports", key=clocked.customer.key) == 200


def test_legacy_addresses_come_and_go_within_a_second(shared):
    source = "127.0.66.1"
    ask = lambda: status(shared, source=source)
    seen(shared, lambda: shared.run("ip", "add", source), lambda: ask() == 200)
    seen(shared, lambda: shared.run("ip", "disable", source), lambda: ask() == 403)
    seen(shared, lambda: shared.run("ip", "enable", source), lambda: ask() == 200)
    seen(shared, lambda: shared.run("ip", "remove", source), lambda: ask() == 403)
    seen(shared, lambda: shared.run("ip", "add", source, "--sports", "none"), lambda: ask() == 200)


def test_a_change_reaches_connections_that_are_open(shared):
    customer = shared.add_customer("Connected")
    shared.await_admission(customer.key)
    connections = [shared.connect() for _ in range(8)]
    try:
        def ask(connection):
            connection.send(f"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\nX-Api-Key: {customer.key}\r\n\r\n")
            return connection.receive().status
        assert [ask(connection) for connection in connections] == [200] * 8
        shared.run("customer", "disable", customer.id)
        eventually(lambda: ask(connections[0]) == 403)
        assert [ask(connection) for connection in connections] == [403] * 8, "a thread of the server does not know yet"
    finally:
        for connection in connections:
            connection.close()


# ---- the feed -----------------------------------------------------------------------------------------

def test_what_is_published_is_seen_at_once_on_every_connection(shared):
    key = f"X-Api-Key: {shared.customer.key}"
    shared.publish("cricket", [row(1, n=-1)], {1: []})
    connections = [shared.connect() for _ in range(6)]
    try:
        def ask(connection, path):
            connection.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n{key}\r\n\r\n")
            return connection.receive()
        for n in range(15):
            shared.publish("cricket", [row(1, n=n)])
            for connection in connections:
                assert ask(connection, "/api/v1/cricket/events").json()[0]["n"] == n
                assert ask(connection, "/api/v1/cricket/events/1").json()["event"]["n"] == n
            shared.publish_odds("cricket", 1, match_odds(f"{n}.50"))
            for connection in connections:
                assert f'"price":{n}.50,'.encode() in ask(connection, "/api/v1/cricket/events/1").body
    finally:
        for connection in connections:
            connection.close()


def test_a_condition_is_never_answered_from_what_was_replaced(shared):
    path = "/api/v1/cricket/events/1"
    shared.publish("cricket", [row(1)], {1: match_odds("1.10")})
    for n in range(20):
        tag = shared.get(path, key=shared.customer.key).header("etag")
        assert status(shared, path, key=shared.customer.key, headers={"If-None-Match": tag}) == 304
        shared.publish_odds("cricket", 1, match_odds(f"2.{n}"))
        assert status(shared, path, key=shared.customer.key, headers={"If-None-Match": tag}) == 200


def test_odds_and_sports_can_be_withdrawn(shared):
    shared.publish("football", [row(1), row(2)], {1: [], 2: []})
    get = lambda rest="": shared.get("/api/v1/football/events" + rest, key=shared.customer.key)
    shared.run("feed", "withdraw", "football", "1")
    assert get("/1").error == (404, "odds_not_found") and get("/2").status == 200
    shared.run("feed", "withdraw", "football")
    assert get().error == (503, "catalog_unavailable") and get("/2").error == (503, "catalog_unavailable")
    shared.publish("football", [row(2)])
    assert get().status == 200 and get("/2").error == (404, "odds_not_found")


def test_an_event_that_leaves_the_catalog_is_gone_and_may_return(shared):
    get = lambda: shared.get("/api/v1/tennis/events/1", key=shared.customer.key)
    shared.publish("tennis", [row(1)], {1: match_odds()})
    assert get().status == 200
    shared.publish("tennis", [row(2)])
    assert get().error == (404, "event_not_found")
    shared.publish("tennis", [row(1)])
    assert get().status == 200


def test_polling_while_the_feed_writes_always_gives_a_whole_answer(shared):
    """Each generation of the catalog is consistent in itself; no answer may mix two."""
    path, key = "/api/v1/greyhound-racing/events", shared.customer.key
    catalog = lambda n: [row(event, generation=n, note="x" * 200) for event in range(1, 1001)]
    shared.publish("greyhound-racing", catalog(0))
    stop, wrong = threading.Event(), []

    def poll():
        last = 0
        with shared.connect() as connection:
            while not stop.is_set():
                connection.send(f"GET {path} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\nAccept-Encoding: gzip\r\n\r\n")
                response = connection.receive()
                generations = {event["generation"] for event in response.json()} if response.status == 200 else None
                if not generations or len(generations) != 1 or min(generations) < last:
                    wrong.append((response, generations, last))
                    return
                last = min(generations)

    threads = [threading.Thread(target=poll) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(1, 25):
        shared.publish("greyhound-racing", catalog(n))
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- interest -----------------------------------------------------------------------------------------

def interest(service, sport="cricket", *options):
    return [entry["event_id"] for entry in service.ask("feed", "interest", sport, *options)]


def test_asking_for_an_event_records_interest_also_when_its_odds_are_missing(shared):
    shared.publish("horse-racing", [row(11), row(12), row("99999999999999999999")], {11: []})
    for event, expected in [("11", 200), ("12", 404), ("99999999999999999999", 404), ("13", 404), ("abc", 400)]:
        assert status(shared, f"/api/v1/horse-racing/events/{event}", key=shared.customer.key) == expected
    assert status(shared, "/api/v1/horse-racing/events/14") == 403
    eventually(lambda: set(interest(shared, "horse-racing")) == {"11", "12", "99999999999999999999"})


def test_interest_is_refreshed_by_repeated_calls_latest_first(clocked):
    clocked.publish("tennis", [row(21), row(22)], {21: [], 22: []})

    def ask(event, **headers):
        """An event's interest is noted once a second; and for a moment after a leap of time nothing is known of keys."""
        return eventually(lambda: (answer := clocked.get(f"/api/v1/tennis/events/{event}", key=clocked.customer.key,
                                                         headers=headers)).status in (200, 304) and answer)

    ask(21)
    eventually(lambda: "21" in interest(clocked, "tennis"))
    clocked.clock.advance(1.1, 1.1)
    ask(22)
    eventually(lambda: interest(clocked, "tennis")[:2] == ["22", "21"])
    clocked.clock.advance(1.1, 1.1)
    tag = ask(21).header("etag")
    eventually(lambda: interest(clocked, "tennis")[:2] == ["21", "22"])
    clocked.clock.advance(1.1, 1.1)
    ask(22)
    eventually(lambda: interest(clocked, "tennis")[:2] == ["22", "21"])
    clocked.clock.advance(1.1, 1.1)
    assert ask(21, **{"If-None-Match": tag}).status == 304
    eventually(lambda: interest(clocked, "tennis")[:2] == ["21", "22"])
    entry = clocked.ask("feed", "interest", "tennis")[0]
    assert set(entry) == {"event_id", "requested_at"}
    at = datetime.datetime.fromisoformat(entry["requested_at"].replace("Z", "+00:00"))
    assert abs((datetime.datetime.now(datetime.timezone.utc) - at).total_seconds()) < 20 * PATIENCE


def test_interest_within_leaves_older_requests_out(shared):
    shared.publish("football", [row(31)], {31: []})
    assert status(shared, "/api/v1/football/events/31", key=shared.customer.key) == 200
    eventually(lambda: "31" in interest(shared, "football", "--within", "60"))
    eventually(lambda: "31" not in interest(shared, "football", "--within", "1"))
    assert "31" in interest(shared, "football", "--within", "3600")


# ---- a server that dies, stores that go ---------------------------------------------------------------

def test_a_killed_server_starts_again_where_it_was(service):
    customer = service.add_customer()
    service.publish("cricket", [row(1)], {1: match_odds()})
    service.start()
    service.await_admission(customer.key)
    for _ in range(5):
        before = service.get("/api/v1/cricket/events/1", key=customer.key)
        assert before.status == 200
        service.kill()
        service.start()
        eventually(lambda: service.get("/api/v1/cricket/events/1", key=customer.key).status == 200)
        after = service.get("/api/v1/cricket/events/1", key=customer.key)
        assert (after.body, after.header("etag")) == (before.body, before.header("etag"))
    service.publish("cricket", [row(1, status="CLOSED")])
    assert service.get("/api/v1/cricket/events/1", key=customer.key).json()["event"]["status"] == "CLOSED"


def test_a_server_killed_while_it_is_polled_does_not_stop_the_feed(service):
    customer = service.add_customer()
    service.publish("cricket", [row(n) for n in range(1, 50)], {n: [] for n in range(1, 10)})
    for round_ in range(3):
        service.start()
        service.await_admission(customer.key)
        for n in range(1, 40):
            service.get(f"/api/v1/cricket/events/{n % 49 + 1}", key=customer.key)
        service.kill()
        for n in range(5):  # a dead reader must not hold the store's readers or its writer
            service.publish("cricket", [row(1, round=round_, n=n)])


def test_health_and_answers_follow_the_odds_store(fragile):
    service = fragile
    customer = service.add_customer()
    service.publish("cricket", [row(1)], {1: match_odds()})
    service.start()
    service.await_admission(customer.key)
    get = lambda path="/api/v1/cricket/events/1": service.get(path, key=customer.key)
    assert get().status == 200
    service.odds.take_away()
    eventually(lambda: b"cache_unavailable" in get().body)
    assert get().error == (503, "cache_unavailable")
    eventually(lambda: service.get("/api/v1/health").json() == {"status": "degraded", "cache": "unreachable"})
    assert service.get("/api/v1/health").status == 503
    assert get("/api/v1/sports").status == 200, "sports needs no odds"
    service.odds.bring_back()
    eventually(lambda: get().status == 200)
    eventually(lambda: service.get("/api/v1/health").status == 200)


@pytest.mark.only("embedded")
def test_an_odds_store_that_is_replaced_under_its_path_is_noticed(service, make_service):
    customer = service.add_customer()
    service.publish("cricket", [row(1, which="first")])
    service.start()
    service.await_admission(customer.key)
    get = lambda: service.get("/api/v1/cricket/events", key=customer.key)
    assert get().json()[0]["which"] == "first"
    other = make_service()
    other.publish("cricket", [row(1, which="second")])
    shutil.move(service.odds.path, service.directory / "old")
    shutil.copytree(other.odds.path, service.odds.path)
    eventually(lambda: (lambda answer: answer.status == 200 and answer.json()[0]["which"] == "second")(get()))


def test_a_server_starts_before_anything_was_published(make_service):
    service = make_service(stores=False)
    service.run("migrate")
    customer = service.add_customer()
    service.start()
    service.await_admission(customer.key)
    assert service.get("/api/v1/cricket/events", key=customer.key).error == (503, "catalog_unavailable")
    assert service.get("/api/v1/sports", key=customer.key).status == 200
    service.publish("cricket", [row(1)])
    assert service.get("/api/v1/cricket/events", key=customer.key).status == 200


@pytest.mark.only("redis")  # an embedded store is made when it is not there
def test_a_server_starts_while_its_odds_store_is_away_and_finds_it_later(fragile):
    service = fragile
    customer = service.add_customer()
    service.publish("cricket", [row(1)])
    service.odds.take_away()
    service.start(healthy=False)
    service.await_admission(customer.key)
    assert service.get("/api/v1/health").status == 503
    assert service.get("/api/v1/cricket/events", key=customer.key).error == (503, "cache_unavailable")
    assert service.get("/api/v1/sports", key=customer.key).status == 200
    service.odds.bring_back()
    eventually(lambda: service.get("/api/v1/cricket/events", key=customer.key).status == 200)
    eventually(lambda: service.get("/api/v1/health").status == 200)


@pytest.mark.only("embedded")
def test_a_server_starts_without_a_directory_for_its_odds_and_finds_it_later(make_service):
    service = make_service(stores=False)
    (service.directory / "volume").write_text("in the way: not mounted yet")
    service.configure({"odds.store": f"embedded:{service.directory}/volume/odds"})
    service.run("migrate")
    customer = service.add_customer()
    service.start(healthy=False)
    service.await_admission(customer.key)
    assert service.get("/api/v1/health").status == 503
    assert service.get("/api/v1/cricket/events", key=customer.key).error == (503, "cache_unavailable")
    assert service.get("/api/v1/sports", key=customer.key).status == 200
    (service.directory / "volume").unlink()
    service.publish("cricket", [row(1)])
    eventually(lambda: service.get("/api/v1/cricket/events", key=customer.key).status == 200)
    eventually(lambda: service.get("/api/v1/health").status == 200)


@pytest.mark.only("embedded")
@pytest.mark.parametrize("garbage", [b"", b"this is not a database " * 5000, b"\x00" * 100_000, b"\xff" * 100_000],
                         ids=["empty", "text", "zeros", "ones"])
def test_a_corrupt_odds_store_is_begun_anew_and_nothing_else_is_touched(make_service, garbage):
    service = make_service()
    customer = service.add_customer()
    service.publish("cricket", [row(1)])
    for file in service.odds.path.rglob("data.mdb"):
        file.write_bytes(garbage)
    service.start(healthy=False)
    service.await_admission(customer.key)
    assert service.get("/api/v1/cricket/events", key=customer.key).error == (503, "catalog_unavailable")
    assert service.get("/api/v1/sports", key=customer.key).status == 200
    assert service.get("/api/v1/nothing").status == 403
    service.publish("cricket", [row(1)])
    assert service.get("/api/v1/cricket/events", key=customer.key).status == 200


def test_without_the_platform_store_nobody_is_admitted_and_no_one_is_refused(make_service):
    service = make_service(stores=False)
    service.publish_nothing()
    service.start(healthy=False)
    for path in ("/api/v1/sports", "/api/v1/cricket/events", "/nothing", "/api/v1/cricket/events/abc"):
        for key in (None, "crk_x"):
            assert service.attempt("GET", path, key).error == (503, "security_config_unavailable")
    assert service.get("/api/v1/health").status == 503
    service.run("migrate")
    customer = service.add_customer()
    eventually(lambda: service.get("/api/v1/sports", key=customer.key).status == 200)
    eventually(lambda: service.get("/api/v1/health").status == 200)


@pytest.mark.only("sqlite")
@pytest.mark.parametrize("garbage", [b"this is not a database, and long enough to be looked at " * 100, b"\x00" * 8192], ids=["text", "zeros"])
def test_a_corrupt_platform_store_is_security_config_unavailable(make_service, garbage):
    service = make_service()
    for name in os.listdir(service.directory):
        if name.startswith("platform.db"):
            (service.directory / name).unlink()
    service.platform.path.write_bytes(garbage)
    service.start(healthy=False)
    answer = service.get("/api/v1/sports")
    assert answer.error == (503, "security_config_unavailable") and answer.header("retry-after") == "1"
    assert service.get("/api/v1/health").json() == {"status": "degraded", "cache": "unreachable"}
    failed = service.run("customer", "list", status=1)
    assert len(failed.errors.strip().splitlines()) == 1


@pytest.mark.only("sqlite")
@pytest.mark.parametrize("spoil", [
    lambda good: b"", lambda good: good[:100], lambda good: good[:len(good) // 2], lambda good: b"\x00" * len(good),
    lambda good: b"no database " * (len(good) // 12)], ids=["emptied", "head", "half", "zeros", "text"])
def test_a_platform_store_overwritten_while_serving_is_noticed_and_recovered_from(service, spoil):
    customer = service.add_customer()
    service.start()
    service.await_admission(customer.key)
    good = service.platform.path.read_bytes()  # all of it: the last command wrote its WAL back

    def overwrite(content):
        with open(service.platform.path, "r+b") as file:
            file.truncate(0)
            file.write(content)

    overwrite(spoil(good))
    eventually(lambda: service.attempt("GET", "/api/v1/sports", customer.key).status == 503)
    assert service.attempt("GET", "/api/v1/sports", customer.key).error == (503, "security_config_unavailable")
    eventually(lambda: service.get("/api/v1/health").status == 503)
    failed = service.run("customer", "list", status=1)
    assert "No such file" not in failed.errors and "platform.db" in failed.errors
    overwrite(good)
    eventually(lambda: service.get("/api/v1/sports", key=customer.key).status == 200)
    eventually(lambda: service.get("/api/v1/health").status == 200)
    said = [line for line in service.log_lines() if line["message"] == "policies cannot be refreshed"]
    assert 1 <= len(said) <= 3, "once for each reason, not at every look"


@pytest.mark.only("sqlite")
def test_each_reason_is_told_once(service):
    """Who mends the first trouble and sees no difference must find the second in the log."""
    customer = service.add_customer()
    service.start()
    service.await_admission(customer.key)

    def reasons():
        assert service.get("/api/v1/health").status == 503
        return [line["reason"].removeprefix("platform store: ") for line in service.log_lines()
                if line["message"] in ("policies cannot be refreshed", "health is degraded")]

    service.platform.take_away()
    eventually(lambda: service.get("/api/v1/health").status == 503)
    eventually(lambda: sum("no such file" in reason for reason in reasons()) == 2)
    service.platform.path.write_bytes(b"")
    eventually(lambda: sum("is another file" in reason for reason in reasons()) == 2)
    time.sleep(2.5)  # several looks
    assert sum("is another file" in reason for reason in reasons()) == 2
    service.platform.path.unlink()
    service.platform.bring_back()
    eventually(lambda: service.get("/api/v1/health").status == 200)


def test_a_table_that_could_not_be_confirmed_is_not_used_and_is_used_again(fragile):
    service = fragile
    customer = service.add_customer()
    service.publish("cricket", [row(1)])
    service.start()
    service.await_admission(customer.key)
    service.platform.take_away()
    eventually(lambda: service.attempt("GET", "/api/v1/sports", customer.key).status == 503)
    assert service.attempt("GET", "/api/v1/sports", customer.key).error == (503, "security_config_unavailable")
    eventually(lambda: service.get("/api/v1/health").status == 503)
    service.platform.bring_back()
    eventually(lambda: service.get("/api/v1/sports", key=customer.key).status == 200)


def test_a_request_that_began_long_ago_is_judged_by_the_time_it_is_whole(fragile):
    """Or whoever begins one and holds its end back could still come in while no one can be judged."""
    service = fragile
    customer = service.add_customer()
    service.start()
    service.await_admission(customer.key)
    with service.connect() as connection:
        connection.send(b"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\n")
        service.platform.take_away()
        eventually(lambda: service.attempt("GET", "/api/v1/sports", customer.key).status == 503)
        connection.send(f"X-Api-Key: {customer.key}\r\n\r\n".encode())
        assert connection.receive().error == (503, "security_config_unavailable")


def test_a_table_that_was_confirmed_too_late_is_in_the_log_with_the_reason(make_service):
    """No look fails: the process gets no turn for longer than a table decides."""
    service = make_service()
    service.start()
    os.kill(service.process.pid, signal.SIGSTOP)
    time.sleep(1.5)  # the delay itself
    os.kill(service.process.pid, signal.SIGCONT)
    eventually(lambda: re.search(r"policies cannot be refreshed.*(the process stood still|answers too slowly).*age_ms", service.log_text()))


def test_the_threads_that_keep_tables_fresh_go_first_where_they_may(make_service):
    service = make_service()
    service.start()
    stats = [(path / "comm").read_text().strip() for path in Path(f"/proc/{service.process.pid}/task").iterdir()
             if (path / "stat").read_text().rsplit(")", 1)[1].split()[16] == "-10"]
    may = subprocess.run([sys.executable, "-c", "import os; os.setpriority(os.PRIO_PROCESS, 0, -10)"], stderr=subprocess.DEVNULL).returncode == 0
    assert sorted(stats) == (["games", "policies", "verifications"] if may else [])


@pytest.mark.long(13)
@pytest.mark.only("postgresql")
def test_a_store_that_does_not_answer_is_in_the_log_with_the_reason_and_its_end(fragile):
    customer = fragile.add_customer()
    fragile.start()
    fragile.await_admission(customer.key)
    fragile.platform.server.freeze()
    try:
        eventually(lambda: fragile.attempt("GET", "/api/v1/sports", customer.key).status == 503)
        eventually(lambda: re.search(r"policies cannot be refreshed.*reason.*did not answer", fragile.log_text()), 30)
    finally:
        fragile.platform.server.thaw()
    eventually(lambda: fragile.get("/api/v1/sports", key=customer.key).status == 200, 30)
    eventually(lambda: "policies refreshed again" in fragile.log_text())


@pytest.mark.only("sqlite")
def test_a_writer_that_keeps_its_lock_delays_no_table(fragile):
    customer = fragile.add_customer()
    fragile.start()
    fragile.await_admission(customer.key)
    errors = fragile.metrics()['croupier_store_failures_total{store="platform"}']
    with contextlib.closing(sqlite3.connect(fragile.platform.path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        time.sleep(1.5)  # longer than a table decides
        eventually(lambda: fragile.get("/api/v1/sports", key=customer.key).status == 200)
    assert fragile.metrics()['croupier_store_failures_total{store="platform"}'] == errors
