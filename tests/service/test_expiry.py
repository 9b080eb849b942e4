"""Odds that expire when their feed dies (docs/feed.md, "Odds that expire")."""

import json
import signal
import subprocess
import time

import pytest

from croupier import BINARY, PATIENCE, Clock, eventually, row

pytestmark = pytest.mark.depends_on("odds")

EVENTS = "/api/v1/cricket/events"
SOON = int(3 * PATIENCE)  # seconds that odds live which must still be there at the next step of a test


def get(service, event, **headers):
    path = EVENTS if event is None else f"{EVENTS}/{event}"
    return service.get(path, key=service.customer.key, headers={name.replace("_", "-"): value for name, value in headers.items()})


def status(service, event=1):
    return get(service, event).status


def expired(service):
    return service.metrics()['croupier_odds_expired_total{sport="cricket"}']


def odds(event, **more):
    return {"odds": "cricket", "event": str(event), "document": [{"n": event}], **more}


def begin(service):
    service.publish("cricket", [row(event) for event in range(1, 6)])
    service.customer = service.add_customer()
    service.start()
    service.await_admission(service.customer.key)
    eventually(lambda: status(service, None) == 200)
    return service


@pytest.fixture
def dealing(make_service):
    return begin(make_service())


@pytest.fixture
def dealing_by_clock(make_service, tmp_path):
    clock = Clock(tmp_path / "clock")
    service = make_service(environment=clock.environment)
    service.clock = clock
    return begin(service)


class Feed:
    """A feed that is not ended but killed."""

    def __init__(self, service, *options):
        self.process = subprocess.Popen([str(BINARY), "feed", "stream", "-c", str(service.configuration), *options],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=service.environment)

    def send(self, *lines):
        self.process.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        self.process.stdin.flush()
        return [json.loads(self.process.stdout.readline()) for _ in lines]

    def kill(self, half=b""):
        self.process.stdin.write(half)
        self.process.stdin.flush()
        self.process.kill()
        assert self.process.wait(60 * PATIENCE) == -signal.SIGKILL
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def feed():
    made = []

    def make(service, *options):
        made.append(Feed(service, *options))
        return made[-1]

    yield make
    for each in made:
        if each.process.poll() is None:
            each.kill()


def wait_for_change(service, event):
    """A connection whose poll waits for the event."""
    connection = service.connect()
    connection.send(f"GET {EVENTS}/{event} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {service.customer.key}\r\n"
                    f"If-None-Match: {get(service, event).header('etag')}\r\nPrefer: wait=55\r\n\r\n")
    eventually(lambda: service.metrics()["croupier_waiting_polls"] > 0)
    return connection


def test_odds_of_a_feed_that_is_killed_in_mid_line_expire(dealing, feed):
    writer = feed(dealing, "--expires", str(SOON))
    answers = writer.send(odds(1), odds(2, expires_s=0), odds(3, expires_s=86400))
    assert [answer.get("published") for answer in answers] == [True] * 3
    assert [status(dealing, event) for event in (1, 2, 3)] == [200] * 3
    connection = wait_for_change(dealing, 1)
    writer.kill(json.dumps(odds(2)).encode()[:-9])
    assert connection.receive().status == 404, "the waiting poll wakes"
    assert [status(dealing, event) for event in (1, 2, 3)] == [404, 200, 200]
    eventually(lambda: expired(dealing) == 1)
    eventually(lambda: "odds have expired without a new publication" in dealing.log_text())
    dealing.stop()
    dealing.start()
    dealing.await_admission(dealing.customer.key)
    eventually(lambda: status(dealing, 2) == 200)
    assert [status(dealing, event) for event in (1, 2, 3)] == [404, 200, 200]
    dealing.publish_odds("cricket", 1, [])
    eventually(lambda: status(dealing) == 200)


def test_commands_publish_with_an_expiry(dealing):
    dealing.run("feed", "odds", "cricket", "1", "-", "--expires", "1", input="[]")
    eventually(lambda: status(dealing) == 404)
    dealing.run("feed", "catalog", "cricket", "-", "--expires", "1", input="[]")
    eventually(lambda: status(dealing, None) == 503)
    dealing.run("feed", "odds", "cricket", "1", "-", "--expires", "0", input="[]", status=2)


def test_a_publication_without_expiry_stays(dealing, feed):
    writer = feed(dealing)
    writer.send(odds(1, expires_s=1), odds(2, expires_s=1), odds(1), {"alive": True})
    eventually(lambda: status(dealing, 2) == 404)
    assert status(dealing, 1) == 200


@pytest.mark.long(10)
def test_a_sign_of_life_renews_what_this_feed_has_published(dealing, feed):
    living, dead = feed(dealing), feed(dealing)
    living.send(odds(4, expires_s=3), {"withdraw": "cricket", "event": "4"})
    dealing.run("feed", "odds", "cricket", "4", "-", "--expires", str(2 * SOON), input="[]")
    dead.send(odds(2, expires_s=SOON))
    living.send(odds(1, expires_s=SOON))

    def dead_odds_are_gone():
        assert living.send({"alive": True}) == [{"line": lines(), "published": True}]
        assert status(dealing, 1) == 200
        return status(dealing, 2) == 404 and status(dealing, 4) == 404

    count = [3]

    def lines():
        count[0] += 1
        return count[0]

    eventually(dead_odds_are_gone)
    eventually(lambda: status(dealing, 1) == 404)
    time.sleep(SOON / 2)  # a server counts from its own clock, perhaps a moment before the store (docs/decisions/expiry.md)
    assert living.send({"alive": True})[0]["published"]
    assert status(dealing, 1) == 404, "a sign of life does not bring it back"


@pytest.mark.long(10)
def test_a_sign_of_life_renews_no_value_of_another_process(dealing, feed):
    living = feed(dealing)
    living.send(odds(1, expires_s=2), odds(3, expires_s=1000))
    dealing.publish_odds("cricket", 1, [{"n": 11}])  # to stay
    dealing.run("feed", "odds", "cricket", "3", "-", "--expires", str(2 * SOON), input="[]")
    living.send(odds(2, expires_s=SOON))

    def the_others_odds_are_gone():
        assert living.send({"alive": True})[0]["published"]
        return status(dealing, 3) == 404

    eventually(the_others_odds_are_gone)
    assert status(dealing, 2) == 200
    eventually(lambda: status(dealing, 2) == 404)
    assert status(dealing, 1) == 200


@pytest.mark.only("embedded")
def test_a_clock_that_leaps_does_not_make_odds_live_longer(dealing_by_clock):
    service, clock = dealing_by_clock, dealing_by_clock.clock
    service.run("feed", "odds", "cricket", "1", "-", "--expires", "100", input="[]")
    service.run("feed", "odds", "cricket", "2", "-", "--expires", "1000", input="[]")
    clock.advance(wall=-3600)
    clock.advance(monotonic=90, wall=90)
    eventually(lambda: status(service) == 200)
    clock.advance(monotonic=11, wall=11)
    eventually(lambda: status(service) == 404)
    service.stop()
    clock.advance(monotonic=800, wall=-800)
    service.start()
    service.await_admission(service.customer.key)
    eventually(lambda: status(service, 2) == 200)
    clock.advance(monotonic=100)
    eventually(lambda: status(service, 2) == 404)
    assert status(service) == 404


@pytest.mark.only("embedded")
def test_many_odds_expire_in_one_wave(dealing_by_clock, feed):
    service = dealing_by_clock
    count = 10000
    parts = [odds(event, expires_s=1000) for event in range(1, count + 1)]
    writer = feed(service)
    answers = writer.send(*({"together": parts[at:at + 2500]} for at in range(0, count, 2500)))
    assert all(answer["published"] for answer in answers)
    service.clock.advance(monotonic=900, wall=900)
    assert writer.send({"alive": True})[0]["published"]
    service.clock.advance(monotonic=900, wall=900)
    eventually(lambda: status(service) == 200)  # 503 until the customers have been looked for by that clock
    assert expired(service) == 0
    connection = wait_for_change(service, 5)
    before = service.metrics()["croupier_odds_reads_total"]
    service.clock.advance(monotonic=101, wall=101)
    assert connection.receive().status in (404, 503)  # as before; test_odds_of_a_feed_that_is_killed_in_mid_line_expire has the 404
    eventually(lambda: status(service, 5) == 404)
    eventually(lambda: expired(service) == count)
    assert service.metrics()["croupier_odds_reads_total"] - before < 100, "no event is looked at by itself"
    lines = [line for line in service.log_text().splitlines() if "odds have expired" in line]
    eventually(lambda: sum(json.loads(line)["values"] for line in service.log_text().splitlines()
                           if "odds have expired" in line) == count)
    assert len(lines) <= 3
    service.publish_odds("cricket", 1, [])
    eventually(lambda: status(service) == 200)
    assert status(service, 5) == 404
