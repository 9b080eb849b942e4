"""Polls that wait (docs/interface.md, "Waiting"): `Prefer: wait=N` with the current tag is answered when the body differs, when
the time is over, or when the right to an answer ends; no one else is disturbed."""

import contextlib
import re
import selectors
import signal
import socket
import struct
import time
from pathlib import Path

import pytest

from croupier import PATIENCE, certificate, eventually, row, trusting
from servers import Stopwatch

pytestmark = pytest.mark.depends_on("odds")

EVENTS = "/api/v1/cricket/events"
LONG = 55


def path_of(event):
    return EVENTS if event is None else f"{EVENTS}/{event}"


class Dealing:
    """A running service with two events, and what is asked of it here."""

    def __init__(self, service, **customer):
        self.service = service
        service.publish("cricket", [row(1), row(2)], {1: [{"n": 0}], 2: [{"n": 0}]})
        service.customer = service.add_customer("Waiting", **customer)
        service.start()
        service.await_admission(service.customer.key)
        for event in (None, 1, 2):
            eventually(lambda event=event: self.get(event).status == 200)

    def get(self, event, **headers):
        return self.service.get(path_of(event), key=self.service.customer.key,
                                headers={name.replace("_", "-"): value for name, value in headers.items()})

    def tag(self, event):
        return self.get(event).header("etag")

    def text(self, event, tag, wait=LONG, key=None, fields=()):
        lines = [f"GET {path_of(event)} HTTP/1.1", "Host: a", f"X-Api-Key: {key or self.service.customer.key}",
                 f"If-None-Match: {tag}", f"Prefer: wait={wait}", *fields]
        return "\r\n".join(lines) + "\r\n\r\n"

    def wait(self, event, wait=LONG, tag=None, key=None, fields=()):
        """A connection whose poll waits."""
        before = self.waiting()
        connection = self.service.connect()
        connection.send(self.text(event, tag or self.tag(event), wait, key, fields))
        eventually(lambda: self.waiting() > before)
        return connection

    def metric(self, name):
        return self.service.metrics()[f"croupier_waiting_{name}"]

    def waiting(self):
        return self.metric("polls")

    def publish(self, event, number):
        self.service.publish_odds("cricket", event, [{"n": number}])

    def settle(self):
        """Waits until no one has been looked at for a while by reason of having begun."""
        def quiet():
            before = self.metric("looks_total")
            time.sleep(0.3)
            return self.metric("looks_total") == before
        eventually(quiet)


@pytest.fixture
def dealing(make_service):
    return Dealing(make_service())


def quiet(connection):
    """Nothing has come."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.socket, selectors.EVENT_READ)
        return not selector.select(0)


def applied(answer, seconds=LONG):
    return answer.header("preference-applied") == f"wait={seconds}"


# ---- what ends a wait well -----------------------------------------------------------------------------

def test_a_change_of_the_odds_answers_who_waits_for_that_event(dealing):
    with dealing.wait(1) as one, dealing.wait(2) as two, dealing.wait(None) as catalog:
        for number in (1, 2):
            dealing.publish(1, number)
            answer = one.receive()
            assert answer.status == 200 and answer.json()["odds"] == [{"n": number}] and applied(answer)
            one.send(dealing.text(1, answer.header("etag")))
            eventually(lambda: dealing.waiting() == 3)
        assert quiet(two) and quiet(catalog)


def test_no_one_else_is_looked_at(dealing):
    with dealing.wait(1) as one, dealing.wait(2), dealing.wait(2), dealing.wait(None):
        dealing.settle()
        before = dealing.metric("looks_total")
        dealing.publish(1, 1)
        assert one.receive().status == 200
        assert dealing.metric("looks_total") == before + 1
        assert dealing.waiting() == 3


def test_a_change_of_the_row_answers_the_catalog_and_that_event(dealing):
    with dealing.wait(None) as catalog, dealing.wait(1) as one, dealing.wait(2) as two:
        dealing.service.publish("cricket", [row(1, ename="other"), row(2)])
        assert catalog.receive().json()[0]["ename"] == "other"
        assert one.receive().json()["event"]["ename"] == "other"
        dealing.settle()
        assert quiet(two) and dealing.waiting() == 1


def test_the_same_bytes_again_answer_no_one(dealing):
    with dealing.wait(1) as one:
        dealing.publish(1, 0)
        dealing.settle()
        assert quiet(one) and dealing.waiting() == 1
        dealing.publish(1, 7)
        assert one.receive().json()["odds"] == [{"n": 7}]


def test_the_time_ends_a_wait(dealing):
    started = time.monotonic()
    with dealing.wait(1, wait=1) as one:
        answer = one.receive()
        assert answer.status == 304 and applied(answer, 1) and answer.header("etag") == dealing.tag(1)
        assert time.monotonic() - started >= 1
        assert dealing.waiting() == 0
        one.send(dealing.text(1, '"other"'))  # the connection goes on
        assert one.receive().status == 200


def test_more_than_55_seconds_count_as_55(dealing):
    with dealing.wait(1, wait=99999999999) as one:
        dealing.publish(1, 1)
        assert applied(one.receive(), 55)


def test_compressed_answers_wait_alike(dealing):
    tag = dealing.get(1, Accept_Encoding="gzip").header("etag")
    with dealing.wait(1, tag=tag, fields=("Accept-Encoding: gzip",)) as one:
        dealing.service.publish_odds("cricket", 1, [{"n": n} for n in range(200)])
        answer = one.receive()
        assert answer.status == 200 and answer.header("content-encoding") == "gzip"
        assert len(answer.json()["odds"]) == 200


def test_everything_else_is_answered_at_once(dealing):
    tag, key = dealing.tag(1), dealing.service.customer.key
    for headers, status in [({"If-None-Match": tag}, 304), ({"If-None-Match": "*", "Prefer": "wait=55"}, 304),
                            ({"If-None-Match": '"x"', "Prefer": "wait=55"}, 200), ({"Prefer": "wait=55"}, 200),
                            ({"If-None-Match": tag, "Prefer": "wait=0"}, 304), ({"If-None-Match": tag, "Prefer": "wait=-1"}, 304),
                            ({"If-None-Match": tag, "Prefer": "wait"}, 304), ({"If-None-Match": tag, "Prefer": "waiting=5"}, 304)]:
        answer = dealing.service.get(path_of(1), key=key, headers=headers)
        assert answer.status == status and answer.header("preference-applied") is None
    wishes = {"If-None-Match": tag, "Prefer": "wait=55"}
    assert dealing.service.request("HEAD", path_of(1), key=key, headers=wishes).status == 304
    assert dealing.service.request("GET", path_of(1), key=key, headers=wishes, body=b"{}").status == 304
    assert dealing.service.get("/api/v1/cricket/events/99", key=key, headers=wishes).status == 404
    assert dealing.service.get("/api/v1/sports", key=key, headers=wishes).status == 200
    assert dealing.metric("begun_total") == 0


def test_a_long_request_and_a_last_one_wait_too(dealing):
    with dealing.wait(1, fields=("X-Padding: " + "x" * 3000, "Connection: close")) as one:
        dealing.publish(1, 1)
        answer = one.receive()
        assert answer.json()["odds"] == [{"n": 1}] and answer.header("connection") == "close"
        assert one.at_end()


def test_polls_wait_through_tls(make_service, tmp_path):
    chain, key = certificate(tmp_path)
    service = make_service({"server.tls_certificate": chain, "server.tls_key": key})
    service.tls = trusting(chain)
    dealing = Dealing(service)
    with dealing.wait(1) as one:
        dealing.publish(1, 1)
        assert one.receive().json()["odds"] == [{"n": 1}]


# ---- what it costs -------------------------------------------------------------------------------------

def test_a_wait_is_one_unit_of_the_rate_limit_and_keeps_the_event_interesting(make_service):
    dealing = Dealing(make_service(), rate="10000/3600")
    with dealing.wait(1) as one:
        def requested():
            events = dealing.service.ask("feed", "interest", "cricket")
            return next((event["requested_at"] for event in events if event["event_id"] == "1"), None)
        seen = {None}
        eventually(lambda: len(seen) >= 4 or seen.add(requested()))
        dealing.publish(1, 1)
        answer = one.receive()
        left = int(dealing.get(1).header("x-ratelimit-remaining"))
        assert len(answer.all("x-ratelimit-remaining")) == len(answer.all("preference-applied")) == 1
        assert int(answer.header("x-ratelimit-remaining")) == left + 1


def test_more_than_may_wait_are_answered_at_once(make_service):
    dealing = Dealing(make_service({"server.waiting_max": 2, "server.waiting_per_customer": 0}))
    tag = dealing.tag(1)
    with dealing.wait(1), dealing.wait(2):
        answer = dealing.get(1, If_None_Match=tag, Prefer="wait=55")
        assert answer.status == 304 and answer.header("preference-applied") is None
        assert dealing.metric("refused_total") == 1 and dealing.waiting() == 2


def test_one_customer_has_a_share_of_the_waits(make_service):
    dealing = Dealing(make_service({"server.waiting_max": 4}))
    other = dealing.service.add_customer("Other")
    dealing.service.await_admission(other.key)
    with dealing.wait(1) as one, dealing.wait(2), dealing.service.connect() as three:
        three.send(dealing.text(1, dealing.tag(1)))
        answer = three.receive()
        assert answer.status == 304 and answer.header("preference-applied") is None
        assert dealing.service.metrics()['croupier_client_limited_total{setting="waiting_per_customer"}'] == 1
        with dealing.wait(1, key=other.key):
            dealing.publish(1, 5)
            assert one.receive().status == 200
        three.send(dealing.text(1, dealing.tag(1)))  # an answered wait gives its place back
        eventually(lambda: dealing.waiting() == 2)


def test_a_thousand_who_wait_are_all_answered_with_the_newest(dealing):
    tag = dealing.tag(1)
    request = dealing.text(1, tag)
    waiting = [dealing.service.connect() for _ in range(1000)]
    try:
        for connection in waiting:
            connection.send(request)
        eventually(lambda: dealing.waiting() == 1000, seconds=30)
        for number in range(1, 6):  # a storm: no one is sent what has been replaced, and everybody something
            dealing.publish(1, number)
        numbers = [connection.receive().json()["odds"][0]["n"] for connection in waiting]
        assert all(1 <= number <= 5 for number in numbers)
        assert dealing.waiting() == 0 and dealing.get(1).json()["odds"] == [{"n": 5}]
    finally:
        for connection in waiting:
            connection.close()


def test_who_asks_on_reaches_the_last_of_many_changes(dealing):
    """Also when a value changes again between the look and the read, or its row of the catalog does with it."""
    last = 12
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(dealing.wait(1)) for _ in range(3)]
        for number in range(1, last + 1):
            dealing.service.publish("cricket", [row(1, ename=str(number)), row(2)], {1: [{"n": number}]})
        for connection in waiting:
            found = 0
            while found < last:
                answer = connection.receive()
                assert answer.json()["odds"][0]["n"] >= found
                found = answer.json()["odds"][0]["n"]
                connection.send(dealing.text(1, answer.header("etag")))
        eventually(lambda: dealing.waiting() == 3)


# ---- what ends the right to an answer ------------------------------------------------------------------

SEEN_WITHIN = 1.0 + 0.5 * PATIENCE


@pytest.mark.parametrize("change", ["disable", "revoke", "cidr", "sports"])
def test_whoever_may_not_be_answered_any_more_is_told_within_a_second(dealing, change):
    service = dealing.service
    other = service.add_customer("Other")
    service.await_admission(other.key)
    with dealing.wait(1, key=other.key) as gone, dealing.wait(1) as stays:
        identity = service.ask("key", "list", other.id)[0]["id"]
        service.run(*{"disable": ("customer", "disable", other.id), "revoke": ("key", "revoke", identity),
                      "cidr": ("customer", "set", other.id, "--cidr", "127.0.6.0/24"),
                      "sports": ("customer", "set", other.id, "--sports", "tennis")}[change])
        watch = Stopwatch()
        answer = gone.receive()
        assert watch.seconds() < SEEN_WITHIN
        assert answer.error == (403, "sport_not_allowed" if change == "sports" else "ip_not_allowed") and applied(answer)
        assert quiet(stays)
        dealing.publish(1, 1)
        assert stays.receive().status == 200


def test_a_key_that_expires_ends_its_wait(dealing):
    in_a_while = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3 + PATIENCE))
    key = dealing.service.issue_key(dealing.service.customer.id, "--expires", in_a_while)
    dealing.service.await_admission(key)
    with dealing.wait(1, key=key) as one:
        assert one.receive().error == (403, "ip_not_allowed")


def test_an_event_that_goes_ends_the_wait(dealing):
    with dealing.wait(1) as one, dealing.wait(2) as two, dealing.wait(None) as catalog:
        dealing.service.run("feed", "withdraw", "cricket", "1")
        assert one.receive().error == (404, "odds_not_found")
        dealing.service.publish("cricket", [row(1)])
        assert two.receive().error == (404, "event_not_found")
        tag = catalog.receive().header("etag")
        catalog.send(dealing.text(None, tag))
        eventually(lambda: dealing.waiting() == 1)
        dealing.service.run("feed", "withdraw", "cricket")
        assert catalog.receive().error == (503, "catalog_unavailable")


def test_a_store_that_is_away_ends_the_wait(make_service):
    dealing = Dealing(make_service(own_stores=True))
    with dealing.wait(1) as one, dealing.wait(2) as two:
        dealing.service.odds.take_away()
        for connection in (one, two):
            answer = connection.receive()
            assert answer.status in (503, 504) and answer.header("retry-after") == "1"
        dealing.service.odds.bring_back()
        eventually(lambda: dealing.get(1).status == 200)
        one.send(dealing.text(1, dealing.tag(1)))
        eventually(lambda: dealing.waiting() == 1)
        dealing.publish(1, 5)
        assert one.receive().json()["odds"] == [{"n": 5}]


@pytest.mark.only("embedded")
def test_a_store_that_is_replaced_on_disk_is_noticed(make_service):
    dealing = Dealing(make_service())
    with dealing.wait(1) as one:
        dealing.service.odds.take_away()
        dealing.service.publish("cricket", [row(1), row(2)], {1: [{"n": 9}], 2: [{"n": 9}]})
        answer = one.receive()
        assert answer.status in (404, 503) or answer.json()["odds"] == [{"n": 9}]
        eventually(lambda: dealing.get(1).status == 200)
        one.send(dealing.text(1, dealing.tag(1)))
        eventually(lambda: dealing.waiting() == 1)
        dealing.publish(1, 10)
        assert one.receive().json()["odds"] == [{"n": 10}]


# ---- clients and servers that go -----------------------------------------------------------------------

def test_a_client_that_goes_frees_its_place_at_once(dealing):
    one = dealing.wait(1)
    one.close()
    eventually(lambda: dealing.waiting() == 0)
    two = dealing.wait(1)
    two.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # with a reset
    two.close()
    eventually(lambda: dealing.waiting() == 0 and dealing.metric("left_total") >= 1)
    assert dealing.get(1).status == 200


@pytest.mark.only("embedded", "sqlite")  # which no sanitized run has: sanitizers keep what is freed
def test_what_a_storm_took_is_given_back(dealing):
    def resident():
        status = Path(f"/proc/{dealing.service.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    tag, before = dealing.tag(1), resident()
    with contextlib.ExitStack() as stack:
        for _ in range(400):
            connection = stack.enter_context(dealing.service.connect())
            connection.send(dealing.text(1, tag).encode() + b"x" * 60_000)
        eventually(lambda: dealing.waiting() == 400 and resident() > before + 400 * 50)
        peak = resident()
    eventually(lambda: resident() < (before + peak) / 2)


@pytest.mark.parametrize("read", [True, False])
def test_more_than_is_read_ahead_ends_the_wait(dealing, read):
    one, poll = dealing.wait(1), dealing.text(1, dealing.tag(1)).encode()
    behind = poll * (3 * 65536 // len(poll))
    one.send(behind)
    if read:  # each is answered in its turn; how the kernel cut them into pieces decides whether the last ones wait
        for _ in range(behind.count(b"GET ") // 2):
            assert one.receive().status == 304
    one.close()
    eventually(lambda: dealing.waiting() == 0)


def test_a_drain_answers_all_who_wait(dealing):
    waiting = [dealing.wait(1), dealing.wait(2), dealing.wait(None)]
    dealing.service.signal(signal.SIGTERM)
    for connection in waiting:
        answer = connection.receive()
        assert answer.status == 304 and answer.header("connection") == "close" and applied(answer)
        assert connection.at_end()
        connection.close()
    assert dealing.service.wait() == 0
    dealing.service.stop()
