"""The whole service on one slot of a Redis Cluster by TLS: the slot moves, and its masters die, while a feed publishes and
customers poll. The engine's own tests are tests/faults/test_redis_cluster.py."""

import collections
import json
import subprocess
import threading
import time

import pytest

from croupier import BINARY, PATIENCE, certificate, eventually, row
from servers import Cluster

pytestmark = [pytest.mark.only("redis"), pytest.mark.depends_on("odds")]

PREFIX = "{croupier}:"
# How long before a request a publication that must be in its answer was acknowledged: a moment in which the word of it
# may still travel, and half of timeout_ms where a master was replaced.
TIMEOUT_MS, ALLOWED = 1000, 0.6
# Where no master is replaced, a test keeps the two keys of a line apart for as long as the machine takes.
PATIENT_MS = 60_000


def event_path(number):
    return f"/api/v1/cricket/events/{number}"


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory):
    with Cluster(password="s3cret", tls=certificate(tmp_path_factory.mktemp("tls"))) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster):
    shared_cluster.await_whole()
    return shared_cluster


@pytest.fixture
def dealing(make_service, cluster, request):
    """With "asking", without CLIENT TRACKING and HELLO, as with services that have no server of one's own; with
    "replaced", with the short timeout_ms of a test that replaces masters."""
    mode = getattr(request, "param", "tracking")
    for node in cluster.nodes:
        node.call("ACL", "SETUSER", "default", *(("-client|tracking", "-hello") if mode == "asking" else ("+@all",)))
    service = make_service({"odds.store": cluster.uri(cluster.nodes[4]), "odds.prefix": PREFIX,
                            "odds.timeout_ms": int(TIMEOUT_MS * PATIENCE) if mode == "replaced" else PATIENT_MS})
    service.publish("cricket", [row(1), row(2)], {1: [{"n": 0}], 2: [{"n": 0}]})
    service.start()
    service.customer = service.add_customer()
    service.await_admission(service.customer.key)
    assert service.metrics()["croupier_odds_asking"] == (mode == "asking")
    return service


def odds(event, number):
    return {"odds": "cricket", "event": str(event), "document": [{"n": number}]}


class Feed:
    """A stream that publishes 1, 2, 3 … as the odds of event 1, and at times, together with the catalog, of event 2."""

    AT_A_TIME = 8

    def __init__(self, service):
        self.process = subprocess.Popen([str(BINARY), "feed", "stream", "-c", str(service.configuration)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=service.environment)
        self.sent = collections.deque()
        self.published = {1: [(0.0, 0)], 2: [(0.0, 0)]}
        self.errors = []
        self.room = threading.Semaphore(self.AT_A_TIME)
        self.running = threading.Event()
        self.running.set()
        self.ending = False
        self.threads = [threading.Thread(target=act, daemon=True) for act in (self._send, self._receive)]
        for thread in self.threads:
            thread.start()

    def _send(self):
        number = 0
        while not self.ending:
            self.running.wait()
            self.room.acquire()
            number += 1
            event = 2 if number % 5 == 0 else 1
            line = odds(event, number)
            if event == 2:
                line = {"together": [{"catalog": "cricket", "document": [row(1), row(2)]}, line]}
            self.sent.append((event, number))
            self.process.stdin.write(json.dumps(line).encode() + b"\n")
            self.process.stdin.flush()
            time.sleep(0.002)
        self.process.stdin.close()

    def _receive(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            event, number = self.sent.popleft()
            if answer.get("published"):
                self.published[event].append((time.monotonic(), number))
            else:
                self.errors.append(answer["error"])
            self.room.release()

    def pause(self):
        self.running.clear()
        eventually(lambda: not self.sent)

    def published_at(self, event, when):
        return max(number for at, number in list(self.published[event]) if at <= when)

    def await_more(self, count=5):
        """Waits until so many more are published."""
        before = sum(map(len, self.published.values()))
        eventually(lambda: sum(map(len, self.published.values())) >= before + count, 30)

    def end(self):
        self.ending = True
        self.running.set()
        for thread in self.threads:
            thread.join()
        assert self.process.wait(60 * PATIENCE) == 0


class Poller(threading.Thread):
    """Polls an event, with waiting polls if so, and compares each answer with what was published when it was asked for."""

    def __init__(self, service, feed, event, waits):
        super().__init__(daemon=True)
        self.service, self.feed, self.event, self.waits = service, feed, event, waits
        self.statuses, self.wrong, self.ending = collections.Counter(), [], False
        self.start()

    def run(self):
        tag = ""
        with self.service.connect() as connection:
            while not self.ending:
                wait = f"Prefer: wait=1\r\nIf-None-Match: {tag}\r\n" if self.waits and tag else ""
                asked = time.monotonic()
                connection.send(f"GET {event_path(self.event)} HTTP/1.1\r\nHost: a\r\n"
                                f"X-Api-Key: {self.service.customer.key}\r\n{wait}\r\n")
                response = connection.receive()
                self.statuses[response.status] += 1
                if response.status == 200:
                    tag = response.header("ETag")
                    number = response.json()["odds"][0]["n"]
                    least = self.feed.published_at(self.event, asked - ALLOWED * PATIENCE)
                    if number < least:
                        self.wrong.append((number, least))
                time.sleep(0.002)

    def await_answers(self, count=5):
        before = self.statuses[200] + self.statuses[304]
        eventually(lambda: self.statuses[200] + self.statuses[304] >= before + count, 30)


@pytest.fixture
def polled(dealing):
    """(service, feed, pollers); when the test ends, nothing stale and no wrong status was seen, and the last
    publications are there."""
    feed = Feed(dealing)
    pollers = [Poller(dealing, feed, event, waits) for event in (1, 2) for waits in (False, True)]
    yield dealing, feed, pollers
    feed.end()

    def shown(event):
        response = dealing.get(event_path(event), key=dealing.customer.key)
        return response.json()["odds"][0]["n"] if response.status == 200 else None

    for event in (1, 2):
        eventually(lambda: shown(event) == feed.published[event][-1][1], 30)
    for poller in pollers:
        poller.ending = True
    for poller in pollers:
        poller.join()
        assert not poller.wrong, f"event {poller.event}: older than what was published: {poller.wrong}"
        assert set(poller.statuses) <= {200, 304, 503, 504} and poller.statuses[200] > 10, poller.statuses


@pytest.mark.parametrize("dealing", ["tracking", "asking"], indirect=True)
def test_a_slot_moves_under_a_feed_and_polls(cluster, polled):
    _, feed, pollers = polled
    slot = cluster.slot(PREFIX)
    for target in cluster.nodes[:3] * 2:
        if target is cluster.master_of(slot):
            continue
        feed.await_more()
        source = cluster.begin_move(slot, target)
        pollers[0].await_answers()
        while cluster.move_keys(slot, source, target, count=1):
            pollers[0].await_answers()  # also while the two keys of an answer are on two nodes
        cluster.end_move(slot, target)
        for poller in pollers[:1] + pollers[2:3]:
            poller.await_answers()
    feed.await_more()
    assert not feed.errors, feed.errors[:3]


def test_lines_of_one_event_keep_their_order_while_its_keys_are_apart(cluster, dealing):
    """The first line waits until both its keys are on one node; the second could be published before it at once."""
    slot = cluster.slot(PREFIX)
    target = next(node for node in cluster.nodes[:3] if node.running and node is not cluster.master_of(slot)
                  and node.cli("ROLE")[0] == "master")
    source = cluster.begin_move(slot, target)
    cluster.move_keys(slot, source, target, keys=[PREFIX + "catalog:cricket"])
    lines = [{"together": [{"catalog": "cricket", "document": [row(1), row(2)]}, odds(1, 1)]}, odds(1, 2), odds(2, 3)]
    with subprocess.Popen([str(BINARY), "feed", "stream", "-c", str(dealing.configuration)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, env=dealing.environment) as feed:
        feed.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        feed.stdin.close()
        eventually(lambda: source.cli("GET", PREFIX + "odds:cricket:2") == '[{"n": 3}]')
        while cluster.move_keys(slot, source, target):
            pass
        cluster.end_move(slot, target)
        answers = [json.loads(line) for line in feed.stdout]
    assert [answer.get("published") for answer in answers] == [True] * 3, answers
    assert target.cli("GET", PREFIX + "odds:cricket:1") == '[{"n": 2}]'
    eventually(lambda: dealing.get(event_path(1), key=dealing.customer.key).json()["odds"][0]["n"] == 2)


@pytest.mark.parametrize("dealing", ["replaced"], indirect=True)
def test_the_master_of_the_slot_is_replaced_under_a_feed_and_polls(cluster, polled):
    service, feed, pollers = polled
    slot = cluster.slot(PREFIX)
    feed.await_more()
    master = cluster.prepare_failover(slot)
    feed.pause()  # a failover may lose what the replica has not got yet
    assert master.call("WAIT", 1, 0) == 1
    master.kill()
    feed.running.set()
    cluster.await_failover(master, slot)
    feed.await_more()
    for poller in pollers:
        poller.await_answers()
    master.start()
    cluster.await_whole()
    cluster.fail_over(slot)
    feed.await_more()
    cluster.await_whole()
    assert all("odds store" in error or "cannot publish" in error for error in feed.errors), feed.errors[:3]


def test_a_prefix_without_a_hash_tag_is_refused(cluster, make_service):
    service = make_service({"odds.store": cluster.uri(cluster.nodes[0]), "odds.prefix": PREFIX})
    service.configure({"odds.prefix": "croupier:"})
    for command in (("check",), ("feed", "odds", "cricket", "1", "-")):
        done = service.run(*command, input="[]", status=1)
        assert "prefix = {croupier}:" in done.stdout.decode() + done.stderr.decode()
