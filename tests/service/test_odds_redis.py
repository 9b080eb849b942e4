"""Odds from Redis, through the whole service: what is asked of the server, how soon a change is seen, and what
customers are told while it is away. The engine's own tests are tests/faults/test_redis_*.py."""

import itertools
import json
import re
import signal
import socket
import struct
import threading
import time

import pytest

from croupier import STORE_TIMEOUT_MS, certificate, eventually, row
from servers import Sentinel

pytestmark = [pytest.mark.only("redis"), pytest.mark.depends_on("odds")]

EVENTS = "/api/v1/cricket/events"


def event_path(number):
    return f"{EVENTS}/{number}"


def request(path, key, fields=""):
    return f"GET {path} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\n{fields}\r\n"


class Counted:
    """How often the server was asked for values, in all its databases."""

    def __init__(self, redis):
        self.redis = redis
        self.before = 0
        self.before = self.gets()

    def gets(self):
        line = self.redis.info("commandstats").get("cmdstat_get", "calls=0")
        return int(re.match(r"calls=(\d+)", line)[1]) - self.before


def costs(counted, most, act, times=1):
    """Does it until it took no more GETs than `most` so many times, which at least half of the times must. Heartbeats confirm what
    a server knows for half a second; a machine that stalls for longer has it ask again, and rightly so."""
    taken = []
    while sum(one <= most for one in taken) < times:
        assert len(taken) < 2 * times, taken
        before = counted.gets()
        act()
        taken.append(counted.gets() - before)


@pytest.fixture
def dealing(make_service):
    """A service on a Redis of its own, with two events, asked for once; patient, for busy machines."""

    def make(timeout_ms=STORE_TIMEOUT_MS, **options):
        service = make_service({"odds.timeout_ms": timeout_ms}, own_stores=True, **options)
        service.publish("cricket", [row(1), row(2)], {1: [{"n": 0}], 2: [{"n": 0}]})
        service.start()
        service.customer = service.add_customer()
        service.await_admission(service.customer.key)
        for path in (EVENTS, event_path(1), event_path(2)):
            eventually(lambda: service.get(path, key=service.customer.key).status == 200)
        return service

    return make


def store(service, key, value):
    """As any feed would; returns when the service must know."""
    before = service.metrics()["croupier_odds_invalidations_total"]
    service.odds.server.call("SET", key, value)
    eventually(lambda: service.metrics()["croupier_odds_invalidations_total"] > before)


def put(service, event, number):
    store(service, f"odds:cricket:{event}", f'[{{"n":{number}}}]')


def get_number(service, event=1):
    response = service.get(event_path(event), key=service.customer.key)
    return response.status, response.json()["odds"][0]["n"] if response.status == 200 else response.json()["error"]


def test_what_has_not_changed_is_not_asked_for_again(dealing):
    service = dealing()
    counted = Counted(service.odds.server)

    def ask():
        for _ in range(10):
            connection.send(request(event_path(1), service.customer.key) * 20)
            assert {connection.receive().status for _ in range(20)} == {200}

    with service.connect() as connection:
        costs(counted, 0, ask)
        put(service, 2, 1)
        costs(counted, 0, ask)  # another event has changed


def test_a_thousand_askers_of_a_changed_event_make_one_get(dealing):
    service = dealing()
    counted = Counted(service.odds.server)
    connections = [service.connect() for _ in range(50)]
    turns = itertools.count(1)

    def ask():
        turn = next(turns)
        put(service, 1, turn)
        for connection in connections:
            connection.send(request(event_path(1), service.customer.key) * 20)
        for connection in connections:
            for _ in range(20):
                response = connection.receive()
                assert (response.status, response.json().get("odds")) == (200, [{"n": turn}])

    costs(counted, 1, ask, times=5)
    for connection in connections:
        connection.close()


def test_a_changed_catalog_is_read_once_and_its_events_not_at_all(dealing):
    service = dealing()
    counted = Counted(service.odds.server)
    names = itertools.count(1)

    def ask():
        name = f"new {next(names)}"
        store(service, "catalog:cricket", json.dumps([{"gmid": 1, "ename": name}, {"gmid": 2}]))
        for _ in range(5):
            for path in (EVENTS, event_path(1), event_path(2)):
                assert service.get(path, key=service.customer.key).status == 200
        assert service.get(event_path(1), key=service.customer.key).json()["event"] == {"gmid": 1, "ename": name}

    costs(counted, 3, ask)  # the catalog, and at most each event for its new row


def test_the_same_bytes_again_make_nothing_anew(dealing):
    service = dealing()
    put(service, 1, 7)
    assert get_number(service) == (200, 7)
    tag = service.get(event_path(1), key=service.customer.key).header("ETag")
    made = service.metrics()["croupier_ready_rebuilds_total"]
    for _ in range(5):
        put(service, 1, 7)
        response = service.get(event_path(1), key=service.customer.key, headers={"If-None-Match": tag})
        assert response.status == 304
    assert service.metrics()["croupier_ready_rebuilds_total"] == made


def test_a_server_that_is_gone_is_told_of_at_once_and_its_return_found_soon(dealing):
    service = dealing(timeout_ms=250)
    service.odds.take_away()
    eventually(lambda: get_number(service) == (503, "cache_unavailable"))
    health = service.get("/api/v1/health")
    assert health.status == 503 and health.json() == {"status": "degraded", "cache": "unreachable"}
    assert service.metrics()["croupier_odds_connected"] == 0
    service.odds.bring_back()
    eventually(lambda: service.get("/api/v1/health").status == 200)
    assert eventually(lambda: get_number(service)[0] == 200)
    metrics = service.metrics()
    assert metrics["croupier_odds_connected"] == 1 and metrics["croupier_odds_reopened_total"] >= 1
    assert 0 < metrics["croupier_odds_round_trip_seconds"] < 1


def test_a_server_that_is_silent_is_waited_for_no_longer_than_its_deadline(dealing):
    service = dealing(timeout_ms=400)
    tag = service.get(event_path(1), key=service.customer.key).header("ETag")
    with service.connect() as waiting:
        waiting.send(request(event_path(1), service.customer.key, f"If-None-Match: {tag}\r\nPrefer: wait=55\r\n"))
        eventually(lambda: service.metrics()["croupier_waiting_polls"] == 1)
        service.odds.server.freeze()
        answer = waiting.receive()
        assert answer.error == (504, "cache_timeout") and answer.header("Retry-After") == "1"
    for _ in range(3):
        eventually(lambda: get_number(service) == (504, "cache_timeout"))
    assert service.get("/api/v1/health").status == 503
    service.odds.server.thaw()
    eventually(lambda: get_number(service) == (200, 0))


def ask_a_silent_server(service):
    """Asks for what the server was never asked for, when it does not answer; the connection, the answer still out."""
    service.odds.server.freeze()
    read = service.metrics()["croupier_odds_reads_total"]
    connection = service.connect()
    connection.send(request("/api/v1/tennis/events", service.customer.key))
    eventually(lambda: service.metrics()["croupier_odds_reads_total"] > read)
    return connection


def test_a_long_deadline_is_waited_for(dealing):
    service = dealing(timeout_ms=20000)
    service.odds.server.call("SET", "catalog:tennis", "[]")
    connection = ask_a_silent_server(service)
    time.sleep(2.5)
    service.odds.server.thaw()
    with connection:
        assert connection.receive().status == 200


def reset(connection):
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.long(13)
@pytest.mark.parametrize("gone", ["the client", "a second signal"])
def test_a_server_stops_while_values_that_no_one_waits_for_are_read(dealing, gone):
    service = dealing()
    connection = ask_a_silent_server(service)
    try:
        if gone == "the client":
            reset(connection)
        service.signal(signal.SIGTERM)
        if gone == "a second signal":
            eventually(lambda: any(line["message"] == "draining" for line in service.log_lines()))
            service.signal(signal.SIGTERM)
            assert connection.at_end()
            connection.close()
        assert service.wait() == 0, service.log_text()
    finally:
        service.odds.server.thaw()


def test_one_bad_value_is_one_bad_answer(dealing):
    service = dealing()
    redis = service.odds.server
    redis.call("DEL", "odds:cricket:2"), redis.call("LPUSH", "odds:cricket:2", "x")
    eventually(lambda: service.get(event_path(2), key=service.customer.key).status == 502)
    assert get_number(service) == (200, 0)
    redis.call("SET", "odds:cricket:2", "[1")
    assert service.get(event_path(2), key=service.customer.key).status == 502
    redis.call("SETRANGE", "odds:cricket:2", str(33 * 1024 * 1024), "x")
    assert eventually(lambda: service.get(event_path(2), key=service.customer.key).status == 502)
    assert get_number(service) == (200, 0)
    put(service, 2, 5)
    assert get_number(service, 2) == (200, 5)


def test_a_value_over_the_servers_output_buffer_limit_holds_up_no_other(dealing):
    service = dealing()
    redis = service.odds.server
    redis.call("CONFIG", "SET", "client-output-buffer-limit", "normal 1048576 0 0")
    redis.call("SET", "odds:cricket:1", json.dumps([{"n": "x" * 3_000_000}]))
    statuses, others, ending = [], [], []
    began = time.monotonic()
    eventually(lambda: get_number(service)[0] == 503)  # before, what was there may be answered until the change is reported

    def poll():
        while not ending:
            statuses.append(get_number(service)[0])

    polling = threading.Thread(target=poll)
    polling.start()
    try:
        eventually(lambda: len(statuses) >= 20)
        for number in range(100):
            redis.call("SET", "odds:cricket:2", f'[{{"n":{number}}}]')
            others.append(get_number(service, 2)[0])
    finally:
        ending.append(True)
        polling.join()
    assert set(statuses) == {503} and set(others) == {200}
    # Two losses find it, and one follows each pause of ten seconds.
    assert service.metrics()["croupier_odds_reopened_total"] <= 2 + (time.monotonic() - began) / 10
    assert any(line["message"] == "connection to the odds store was lost over a value, which has a pause now"
               and line["key"] == "odds:cricket:1" for line in service.log_lines())
    redis.call("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")
    eventually(lambda: get_number(service)[0] == 200, 60)


def test_a_password_is_never_told(make_service):
    service = make_service(own_stores=True)
    redis = service.odds.server
    service.configure({"odds.store": f"redis://:hunter2@127.0.0.1:{redis.port}/0"})
    out = service.run("check", status=1)
    assert "without any password configured" in out.stdout.decode() + out.stderr.decode()
    redis.call("CONFIG", "SET", "requirepass", "hunter3")
    for arguments in (["check"], ["feed", "interest", "cricket"], ["feed", "withdraw", "cricket"]):
        out = service.run(*arguments, status=1)
        text = out.stdout.decode() + out.stderr.decode()
        assert "WRONGPASS" in text and "hunter" not in text
    secret = service.directory / "password"
    secret.write_text("hunter3\n")
    secret.chmod(0o400)
    service.configure({"odds.store": f"redis://127.0.0.1:{redis.port}/0", "odds.password_file": secret})
    assert f"redis://:***@127.0.0.1:{redis.port}" in service.run("check").text
    secret.chmod(0o444)
    refused = service.run("feed", "interest", "cricket", status=2).errors
    assert "[odds] password_file" in refused and "chmod 600" in refused and "hunter" not in refused
    service.configure({"odds.password_file": None})
    service.configure({"odds.store": f"rediss://:hunter2@127.0.0.1:{redis.port}/0"})
    text = service.run("check", status=1).stdout.decode()
    assert "hunter" not in text
    redis.call("CONFIG", "SET", "requirepass", "")


def test_sentinel_by_tls(make_service, tmp_path):
    other, _ = certificate(tmp_path, "other")
    with Sentinel(password="s3cret", tls=certificate(tmp_path)) as cluster:
        service = make_service({"odds.store": cluster.uri})
        customer = service.add_customer()

        def publish(number):
            """As the feed does, until a failover is over."""
            eventually(lambda: service.run("feed", "odds", "cricket", "1", "-", input=f'[{{"n":{number}}}]',
                                           status=None).returncode == 0, 30)
            eventually(lambda: b'"n":%d' % number in service.get(event_path(1), key=customer.key).body, 30)

        service.publish("cricket", [row(1)])
        service.start()
        service.await_admission(customer.key)
        assert "rediss+sentinel://" in service.run("check").text and "s3cret" not in service.run("check").text
        publish(1)
        cluster.fail_over()
        publish(2)
        # A Sentinel that has another certificate, and one that speaks no TLS at the port.
        service.configure({"odds.store": cluster.uri.partition("?")[0] + f"?tls_ca={other}"})
        assert "certificate" in service.run("check", status=1).text
        wrong = cluster.uri
        for sentinel in cluster.sentinels:
            wrong = wrong.replace(str(sentinel.tls_port), str(sentinel.port))
        service.configure({"odds.store": wrong, "odds.timeout_ms": 500})
        service.run("check", status=1)
        service.configure({"odds.store": cluster.uri})


def test_a_right_that_is_missing_degrades_health_and_fails_the_check(dealing):
    service = dealing()
    redis = service.odds.server
    assert service.get("/api/v1/health").status == 200
    service.run("check", status=0)
    try:
        redis.call("ACL", "SETUSER", "default", "-getrange")
        health = service.get("/api/v1/health")
        assert health.status == 503 and health.json() == {"status": "degraded", "cache": "unreachable"}
        text = service.run("check", status=1).stdout.decode()
        assert "'getrange' command" in text and 'docs/operations.md, "Redis"' in text and "see that it runs" not in text
        redis.call("ACL", "SETUSER", "default", "+getrange", "-zadd")
        assert service.get("/api/v1/health").status == 200, "odds are served"
        assert "'zadd' command" in service.run("check", status=1).stdout.decode()
        redis.call("ACL", "SETUSER", "default", "+zadd", "-scan")  # which only copies need
        said = service.run("odds", "copy", "configured", f"embedded:{service.directory}/copy", status=1).errors
        assert "'scan' command" in said and "; rights: docs/operations.md" in said
    finally:
        redis.call("ACL", "SETUSER", "default", "+@all")


def test_a_catalog_of_another_type_fails_its_sport_alone(dealing):
    service = dealing()
    redis = service.odds.server
    redis.call("DEL", "catalog:cricket"), redis.call("LPUSH", "catalog:cricket", "x")
    eventually(lambda: service.get(event_path(1), key=service.customer.key).status == 502)
    assert service.get("/api/v1/health").status == 200, "no right is missing, and the other sports are served"
    service.run("check", status=0)
    said = service.run("odds", "copy", "configured", f"embedded:{service.directory}/copy", status=1).errors
    assert "cricket catalog cannot be read: its value is of another type" in said


def test_check_warns_of_a_server_that_evicts(dealing):
    service = dealing()
    checks = {check["check"]: check for check in json.loads(service.run("check", "--json").text)}
    assert "odds eviction" not in checks
    service.odds.server.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    [warning] = [check for check in json.loads(service.run("check", "--json").text) if check["check"] == "odds eviction"]
    assert warning["ok"] and warning["warning"] and warning["message"].endswith("maxmemory_policy:allkeys-lru")
    assert service.get("/api/v1/health").status == 200


def test_check_says_that_a_master_without_its_replica_takes_no_writes(dealing):
    service = dealing()
    service.stop()
    checks = lambda status: {check["check"]: check for check in json.loads(service.run("check", "--json", status=status).text)}
    assert "odds writes" not in checks(0)
    service.odds.server.call("CONFIG", "SET", "min-replicas-to-write", "1")
    try:
        found = checks(1)
        assert "it takes no writes while replicas are missing" in service.run("feed", "odds", "cricket", "1", "-", input="[]",
                                                                              status=None).errors
    finally:
        service.odds.server.call("CONFIG", "SET", "min-replicas-to-write", "0")
    assert "it takes no writes while replicas are missing: docs/deployment.md" in found["odds writes"]["message"]
    assert "do as the message" in found["odds writes"]["remedy"]
    assert "odds writes" not in checks(0)


class Writer(threading.Thread):
    """Sets 1, 2, 3 … and knows which it has been told is stored, and when."""

    def __init__(self, redis):
        super().__init__(daemon=True)
        self.redis, self.stored, self.ending = redis, [(0.0, 0)], False

    def run(self):
        number = 0
        connection = None
        while not self.ending:
            number += 1
            try:
                connection = connection or self.redis.connect(timeout=20)
                connection.call("SET", "odds:cricket:1", f'[{{"n":{number}}}]')
                self.stored.append((time.monotonic(), number))
            except OSError:
                connection = None
                number -= 1
            time.sleep(0.001)

    def stored_at(self, when):
        return max((number for at, number in list(self.stored) if at <= when), default=0)


FAULTS = {
    "none": lambda redis: None,
    "killed connections": lambda redis: kill(redis, "normal"),
    "frozen": lambda redis: (redis.freeze(), time.sleep(0.6), redis.thaw()),
    "busy": lambda redis: suppressed(redis, "DEBUG", "SLEEP", "0.5"),
}


def kill(redis, kind):
    with redis.connect() as connection:
        connection.call("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")


def suppressed(redis, *words):
    with redis.connect(timeout=20) as connection:
        connection.call(*words)


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_stale_is_ever_dealt(dealing, fault):
    """What was stored a moment before a request must be in its answer: a moment in which the word of it may still
    have travelled, and, when its way was cut, half of timeout_ms at the most."""
    # Where nothing is wrong no answer may be 504, also when a busy machine does not run Redis for a while.
    timeout_ms, allowed = (20000, 1.0) if fault == "none" else (400, 0.25)
    service = dealing(timeout_ms=timeout_ms)
    redis = service.odds.server
    writer = Writer(redis)
    writer.start()
    answers, statuses = 0, {}
    until = time.monotonic() + 6
    spoiler = threading.Thread(target=lambda: [(time.sleep(0.7), FAULTS[fault](redis))
                                               for _ in iter(lambda: time.monotonic() < until - 1.5, False)])
    spoiler.start()
    with service.connect() as connection:
        while time.monotonic() < until or answers <= 50 and time.monotonic() < until + 60:
            asked = time.monotonic()
            connection.send(request(event_path(1), service.customer.key))
            response = connection.receive()
            # A busy machine that does not run PostgreSQL for a while says nothing of the odds.
            if response.status != 503 or response.error[1] != "security_config_unavailable":
                statuses[response.status] = statuses.get(response.status, 0) + 1
            if response.status != 200:
                time.sleep(0.01)
                continue
            number = response.json()["odds"][0]["n"]
            assert number >= writer.stored_at(asked - allowed), f"{fault}: stale by more than {allowed} s"
            answers += 1
    spoiler.join()
    writer.ending = True
    writer.join()
    assert answers > 50 and set(statuses) <= ({200} if fault == "none" else {200, 503, 504}), statuses
    eventually(lambda: get_number(service)[0] == 200)
    eventually(lambda: get_number(service) == (200, writer.stored[-1][1]))  # the word of it may be on its way


def test_a_change_is_seen_by_every_instance(dealing, make_service):
    first = dealing()
    names = [("odds", "store"), ("odds", "timeout_ms"), ("platform", "store"), ("casino", "secrets_key_file")]
    second = make_service({".".join(name): first.settings[name] for name in names}, stores=False)
    second.start()
    second.await_admission(first.customer.key)
    second.customer = first.customer
    for number in range(1, 51):
        first.odds.server.call("SET", "odds:cricket:1", f'[{{"n":{number}}}]')
        for service in (first, second):
            eventually(lambda: get_number(service) == (200, number))
