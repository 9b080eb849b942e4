"""Words for why (docs/reasons.md): each fault is named in the log, in the metrics and in the console's overview, by a word of its own."""

import contextlib
import itertools
import json
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from croupier import ROOT, as_document, eventually, match_odds, row
from fake_provider import Authority, FakeProvider, reply
from wallet_model import Provider, add_games, add_player, credit, debit, send

pytestmark = pytest.mark.depends_on("platform", "odds")

NUMBERS = itertools.count()
PAGE = (ROOT / "docs" / "reasons.md").read_text()


def reasons_of(service):
    return {name.split('"')[1]: int(value) for name, value in service.metrics().items() if name.startswith("croupier_refusals_total")}


def logged(service, reason):
    return [line for line in service.log_lines() if line.get("message") == "request" and line.get("reason") == reason]


@contextlib.contextmanager
def named(service, reason):
    """What happens inside is named by this word: in the log, by the metric, in the console, and on the page."""
    before = reasons_of(service).get(reason, 0)
    lines = len(logged(service, reason))
    yield
    eventually(lambda: reasons_of(service).get(reason, 0) > before)
    eventually(lambda: len(logged(service, reason)) > lines)
    assert re.search(rf"^\| `{reason}` \|", PAGE, re.M)


@pytest.mark.parametrize("request_bytes, reason", [
    (b"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", "malformed_length"),
    (b"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", "malformed_length"),
    (b"POST /api/v1/sports HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", "length_and_coding"),
    (b"POST /api/v1/sports HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "length_and_coding"),
    (b"POST /api/v1/sports HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, x\r\n\r\n", "malformed_coding"),
    (b"POST /api/v1/sports HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "unknown_coding"),
    (b"POST /api/v1/sports HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "malformed_chunk"),
    (b"GET /api/v1/%zz HTTP/1.1\r\nHost: a\r\n\r\n", "malformed_target"),
    (b'GET /api/v1/"sports" HTTP/1.1\r\nHost: a\r\n\r\n', "malformed_target"),
    (b"GET /api/v1/sports HTTP/1.1\r\n\r\n", "no_host"),
    (b"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "many_hosts"),
    (b"GET /api/v1/sports HTTP/1.1\r\nHost: a b\r\n\r\n", "malformed_host"),
    (b"GET /api/v1/sports HTTP/1.1\r\nHost : a\r\n\r\n", "malformed_field"),
    (b"GET  /api/v1/sports HTTP/1.1\r\nHost: a\r\n\r\n", "malformed_line"),
    (b"FETCH /api/v1/sports HTTP/1.1\r\nHost: a\r\n\r\n", "unknown_method"),
    (b"GET /api/v1/sports HTTP/2.0\r\nHost: a\r\n\r\n", "version_not_supported"),
])
def test_each_way_in_which_a_request_is_malformed_has_its_word(shared, request_bytes, reason):
    with named(shared, reason), shared.connect() as connection:
        connection.send(request_bytes)
        connection.receive()


def test_a_request_that_was_cut_off_has_its_word(shared):
    with named(shared, "cut_off"), shared.connect() as connection:
        connection.send(b"GET /api/v1/sports HTTP/1.1\r\nHost")
        connection.socket.shutdown(socket.SHUT_WR)
        connection.receive()


# ---- faults as they happen --------------------------------------------------------------------------------


def prepare(service):
    service.customer = service.add_customer("Casino", options=["--casino"])
    add_games(service, "roulette")
    service.publish("cricket", [row(1)], {1: match_odds(1)})
    service.start()
    service.player = add_player(service, service.customer)
    service.token = service.run("operator", "token", "add", "looks", "--role", "reader").text.strip()
    eventually(lambda: admin(service, "overview").status == 200)
    return service


@pytest.fixture
def casino(make_service):
    return prepare(make_service(own_stores=True))


def admin(service, path):
    return service.attempt("GET", f"/admin/v1/{path}", key=service.token, address=service.operator_address)


def overview(service):
    return {each["reason"] for each in admin(service, "overview").json()["refusals"]}


def stake(service, identity):
    return send(service, service.customer.key, debit(service.player, identity, 1, game_id="roulette", round_id="r"))


def test_a_revoked_key_and_an_address_outside(casino):
    shown = lambda: [denial["reason"] for denial in admin(casino, f"customers/{casino.customer.id}/denials").json()["items"]]
    key = casino.issue_key(casino.customer.id)
    with named(casino, "revoked_key"):
        casino.run("key", "revoke", key)
        eventually(lambda: casino.get("/api/v1/sports", key=key).status == 403 and logged(casino, "revoked_key"))
    assert "revoked_key" in shown()
    with named(casino, "address_not_listed"):
        casino.run("customer", "set", casino.customer.id, "--cidr", "192.0.2.0/24")
        eventually(lambda: casino.get("/api/v1/sports", key=casino.customer.key).status == 403)
    assert "address_not_listed" in shown()
    eventually(lambda: {"revoked_key", "address_not_listed"} <= overview(casino))


def test_a_clock_that_is_off_at_a_provider(make_service):
    service = make_service({"provider.listen": "127.0.0.1:0"})
    add_games(service, "roulette")
    service.start()
    with named(service, "timestamp"):
        eventually(lambda: Provider(service).send({"operation": "BALANCE"}, at=time.time() - 90).status == 403 and logged(service, "timestamp"))
    assert logged(service, "timestamp")[0]["provider"], "the operator learns whose clock it is"


@pytest.mark.only("sqlite")
@pytest.mark.parametrize("first", [False, True])
def test_a_full_disk(casino, first):
    """Every write of the server fails as on a full disk, as long as strace is there: those to the log, too, when the ledger
    is opened again, and those of the first operation, which makes the mark of the newest transaction."""
    if not first:
        assert send(casino, casino.customer.key, credit(casino.player, "in", 100)).status == 200
    full = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", "inject=pwrite64:error=ENOSPC",
                             "-p", str(casino.process.pid)])
    try:
        eventually(lambda: all("TracerPid:\t0" not in thread.read_text()
                               for thread in Path(f"/proc/{casino.process.pid}/task").glob("*/status")))
        with named(casino, "ledger_disk_full"):
            eventually(lambda: stake(casino, f"bet-{next(NUMBERS)}").status == 503 and logged(casino, "ledger_disk_full"), 30)
        eventually(lambda: "ledger_disk_full" in overview(casino))
        assert not logged(casino, "ledger_unreachable")
        if not first:  # the commit failed, and callers are told that its outcome is unknown
            assert "the disk is full" in casino.log_text() and "nothing was changed" not in casino.log_text()
    finally:
        full.send_signal(signal.SIGINT)
        full.wait()
    eventually(lambda: send(casino, casino.customer.key, credit(casino.player, "later", 100)).status == 200, 30)
    assert stake(casino, "last").status == 200


@pytest.mark.only("postgresql")
def test_a_database_that_became_read_only(casino):
    assert send(casino, casino.customer.key, credit(casino.player, "in", 100)).status == 200
    database = casino.platform.execute("SELECT current_database()")[0][0]
    end_others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    casino.platform.execute(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    casino.platform.execute(end_others)
    with named(casino, "ledger_read_only"):
        eventually(lambda: stake(casino, f"bet-{next(NUMBERS)}").status == 503 and logged(casino, "ledger_read_only"), 30)
    eventually(lambda: "ledger_read_only" in overview(casino))
    assert casino.get("/api/v1/sports", key=casino.customer.key).status == 200
    casino.platform.execute(f'BEGIN READ WRITE; ALTER DATABASE "{database}" RESET default_transaction_read_only; COMMIT')
    casino.platform.execute(end_others)
    eventually(lambda: stake(casino, "later").status == 200, 30)


@pytest.mark.long(14)
@pytest.mark.only("redis")
def test_a_redis_that_answers_late(casino):
    assert casino.get("/api/v1/cricket/events/1", key=casino.customer.key).status == 200
    casino.odds.server.freeze()
    try:
        with named(casino, "cache_timeout"):
            eventually(lambda: casino.get("/api/v1/cricket/events/1", key=casino.customer.key).status == 504, 30)
        with named(casino, "health_degraded"):
            assert casino.get("/api/v1/health").status == 503
    finally:
        casino.odds.server.thaw()
    eventually(lambda: "cache_timeout" in overview(casino))


def test_a_certificate_that_has_ended(make_service, tmp_path):
    authority = Authority(tmp_path)
    provider = FakeProvider(reply({"launch_url": "https://play.example/"}), authority.certificate("old", "IP:127.0.0.1", days=-1))
    try:
        service = make_service({"casino.launch_ca_file": authority.file, "casino.launch_timeout_ms": 60000})
        service.customer = service.add_customer("Casino", options=["--casino"])
        service.run("provider", "add", "oasis", "--name", "Oasis", "--launch-endpoint", provider.url, "--secret", "-", input="s" * 32)
        service.run("game", "import", "-", input=json.dumps([{"id": "dunes", "name": "Dunes", "provider": "oasis", "category": "slots", "demo": True}]))
        service.start()
        service.await_admission(service.customer.key)
        with named(service, "provider_untrusted"):
            answer = service.request("POST", "/api/v1/casino/games/dunes/launch", key=service.customer.key,
                                     headers={"Content-Type": "application/json"}, body=b'{"mode":"demo"}')
            assert answer.error == (503, "provider_unavailable")
        assert "expired" in service.log_text()
    finally:
        provider.close()


def test_a_limit_that_is_reached(casino):
    with named(casino, "rate_limited"):
        casino.run("customer", "set", casino.customer.id, "--rate", "1/60")
        eventually(lambda: casino.get("/api/v1/sports", key=casino.customer.key).status == 429)
    eventually(lambda: "rate_limited" in overview(casino))


def test_a_feed_that_stopped(casino):
    """What it published expires, and then is not there."""
    casino.run("feed", "odds", "cricket", "1", "-", "--expires", "1", input=as_document(match_odds(1)))
    with named(casino, "odds_not_found"):
        eventually(lambda: casino.get("/api/v1/cricket/events/1", key=casino.customer.key).status == 404, 30)
    eventually(lambda: any("expired" in line["message"] for line in casino.log_lines()), 30)
    eventually(lambda: "odds_not_found" in overview(casino))
    assert [each["expired"] for each in admin(casino, "feed").json()["items"] if each["sport"] == "cricket"] == [1]


def test_a_blocked_player(casino):
    casino.run("player", "block", casino.player, "--reason", "asked for it")
    with named(casino, "player_blocked"):
        assert stake(casino, "bet").error == (403, "player_blocked")
    assert logged(casino, "player_blocked")[0]["player"] == casino.player, "no transaction is kept that would tell"
    eventually(lambda: "player_blocked" in overview(casino))


def wait_for(service, event=1):
    """A poll of an event that asks to wait, with the newest tag: the connection."""
    path = f"/api/v1/cricket/events/{event}"
    tag = service.get(path, key=service.customer.key).header("ETag")
    connection = service.connect()
    connection.send(f"GET {path} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {service.customer.key}\r\nIf-None-Match: {tag}\r\nPrefer: wait=50\r\n\r\n".encode())
    return connection


def test_too_many_waits_and_a_server_that_is_drained(make_service):
    service = prepare(make_service({"server.waiting_max": 2, "server.waiting_per_customer": 1}))
    waiting = lambda: service.metrics()["croupier_waiting_polls"]
    with contextlib.ExitStack() as held:
        held.enter_context(wait_for(service))
        eventually(lambda: waiting() == 1)
        with named(service, "waits_of_customer"), wait_for(service) as refused:
            assert refused.receive().status == 304
        service.configure({"server.waiting_max": 1, "server.waiting_per_customer": 0})
        service.run("reload", service.process.pid, configuration=False)
        with named(service, "too_many_waits"), wait_for(service) as refused:
            assert refused.receive().status == 304
        service.process.send_signal(signal.SIGTERM)
        eventually(lambda: logged(service, "draining"))
    assert service.process.wait(60) == 0
