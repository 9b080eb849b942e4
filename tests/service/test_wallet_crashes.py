"""The wallet, from outside, while the server dies and its disk fails.

Clients send random operations of players of their own, each again and again with its id until there is an answer that
says what became of it. Meanwhile the server is killed, at any moment and at chosen writes and syncs, or its disk
fails; and it is started again. Whatever was acknowledged must be there, word for word; what was refused with 503 must
not; every answer must be what a model says (wallet_model.py), to the cent; and the proof must hold.

WALLET_SEED=N replays the choices of a run (the moments are the machine's). WALLET_FAULTS=all takes many more.
"""

import http.client
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import threading
import time

import pytest

from servers import SAMPLE
from croupier import BINARY, PATIENCE, REPORT, Service, eventually
from wallet_model import Model, add_player, balance, credit, debit, rollback, send, told

pytestmark = [pytest.mark.depends_on("platform"), pytest.mark.only("sqlite"), pytest.mark.threadless,
              pytest.mark.skipif(not shutil.which("strace"), reason="strace is not there")]

ALL = os.environ.get("WALLET_FAULTS") == "all"
CLIENTS = 5


class Straced(Service):
    """A server whose system calls can be made to fail: `inject` is strace's, and counts calls of each thread."""

    inject = None

    def spawn(self):
        if self.inject is None:
            return super().spawn()
        self._starts += 1
        self._log_path = self.directory / f"server-{self._starts}.log"
        calls = self.inject.split(":")[0]
        with open(self._log_path, "wb") as log:
            # -D: the tracer is a grandchild, so this process is the server's own.
            self.process = subprocess.Popen(
                ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={self.inject}",
                 str(BINARY), "serve", "-c", str(self.configuration)], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, cwd=self.directory,
                env={**self.environment, "ASAN_OPTIONS": "detect_leaks=0"})  # which cannot be found under strace

    def start_with(self, inject):
        """False: it did not live until it listened, which is as good a moment as any."""
        self.inject, self.address = inject, None
        try:
            self.start(healthy=False)
        except AssertionError:
            if "ptrace" in self.log_text():
                pytest.skip("strace may not trace here")
            if not self.gone():
                raise
            return False
        return True

    def gone(self):
        return self.process.poll() is not None

    def die(self):
        """Kills it, if it is not dead already."""
        self.process.kill()
        self.process.wait()
        self.process, self.address = None, None
        assert not REPORT.search(self.log_text()), self.log_text()


class Story(threading.Thread):
    """One client: random operations on players and ids of its own, checked against a model of its own."""

    def __init__(self, server, key, players, name, seed):
        super().__init__()
        self.server, self.key, self.players = server, key, players
        self.random, self.ids = random.Random(seed), [f"{name}-{i}" for i in range(40 if not ALL else 200)]
        self.model, self.sent, self.failure = Model(players), [], None
        self.over = False
        self.acknowledged = {}  # id: (request, status, document without "replayed")
        self.tally = dict.fromkeys(("applied", "declined", "replayed", "refused", "unknown", "lost"), 0)
        self.heard = []  # (sent at, heard at, status, replayed) of every answer

    def draw(self):
        chance, pick = self.random.random(), self.random.choice
        player = pick(self.players)
        if self.sent and chance < 0.15:
            return pick(self.sent)
        if chance < 0.2:
            return balance(player)
        # Mostly an id that no one has used, so that there is always something to write.
        fresh = f"{self.name}-{len(self.sent)}-{self.random.getrandbits(24):x}"
        identity = fresh if chance < 0.8 else pick(self.ids)
        other = pick(self.sent)["transaction_id"] if self.sent and chance > 0.4 else pick(self.ids)
        if identity == other or chance < 0.55:
            return credit(player, identity, self.random.randrange(0, 50), pick([None, other]) if identity != other else None)
        if chance < 0.85:
            return debit(player, identity, self.random.randrange(1, 40))
        return rollback(player, identity, other)

    def ask(self, request):
        """One attempt: the answer or None, and whether the request may have arrived."""
        began = time.monotonic()
        try:
            response = send(self.server, self.key, request)
        except (ConnectionRefusedError, TypeError):  # no one listens; there is no address yet
            return None, False
        except (OSError, http.client.HTTPException):  # closed without an answer, or in the middle of one
            return None, True
        self.heard.append((began, time.monotonic(), response.status, response.header("Idempotent-Replayed")))
        return response, True

    def settle(self, request):
        """Asks until it is known what became of it; whether it may have been applied by an earlier attempt."""
        doubtful, deadline = False, time.monotonic() + 60 * PATIENCE
        while True:
            response, arrived = self.ask(request)
            if response is None:
                self.tally["lost"] += 1
                doubtful |= arrived
            elif response.status == 500:
                assert response.json()["error"] == "internal_error"
                self.tally["unknown"] += 1
                doubtful = True
            elif response.status == 503:
                self.tally["refused"] += 1
                assert response.json()["error"] in ("ledger_unavailable", "security_config_unavailable")
            else:
                return response, doubtful
            assert time.monotonic() < deadline, f"no answer to {request}"
            time.sleep(0.01)

    def step(self, request):
        response, doubtful = self.settle(request)
        answer, expected = told(response, request), self.model.answer(request)
        if doubtful:  # which of the attempts was applied is not known; that it was once is
            answer, expected = answer[:2], expected[:2]
        assert answer == expected, (request, answer, expected, doubtful)
        if request["operation"] == "BALANCE":
            return
        self.sent.append(request)
        document = response.json()
        replayed = response.header("Idempotent-Replayed") == "true"
        self.tally["replayed" if replayed else "applied" if response.status == 200 else "declined"] += 1
        document.pop("replayed", None)
        identity = request["transaction_id"]
        if self.model.first.get(identity, (None,))[0] == request:  # it is kept
            first = self.acknowledged.setdefault(identity, (request, response.status, document))
            assert first == (request, response.status, document), "another answer than the first"

    def run(self):
        try:
            while not self.over:
                self.step(self.draw())
        except BaseException as failure:
            self.failure = failure

    def prove(self):
        """Everything that was acknowledged is answered again, and the balances are the model's."""
        for request, status, document in self.acknowledged.values():
            response = send(self.server, self.key, request)
            again = response.json()
            assert response.header("Idempotent-Replayed") == "true", (request, response)
            assert again.pop("replayed", True) is True and (response.status, again) == (status, document)
        for player in self.players:
            document = send(self.server, self.key, balance(player)).json()
            assert (document["balance_minor"], document["sequence"]) == (self.model.balance[player],
                                                                         self.model.sequence[player])


class World:
    def __init__(self, directory, seed):
        self.server = Straced(directory)
        self.chance = random.Random(seed)
        customer = self.server.add_customer("Casino", options=["--casino"])
        self.stories = [
            Story(self.server, customer.key, [add_player(self.server, customer, f"{i}-{j}") for j in range(2)],
                  f"s{i}", seed + i) for i in range(CLIENTS)]

    def begin(self):
        assert self.server.start_with(None)
        for story in self.stories:
            story.start()

    def answers(self):
        return sum(len(story.acknowledged) for story in self.stories)

    def check(self):
        for story in self.stories:
            if story.failure is not None:
                raise AssertionError("what a client was told is wrong") from story.failure

    def more(self, count=10):
        """Waits until so many more operations are acknowledged."""
        enough = self.answers() + count
        eventually(lambda: self.check() or self.answers() >= enough, 20)

    def again(self, inject=None):
        """Starts the server again, and waits until operations are acknowledged; with `inject` it may die first: False."""
        alive = self.server.start_with(inject)
        if inject is None:
            self.more()
        return alive

    def end(self):
        """With a server that is well: everybody finishes, everything is proved."""
        for story in self.stories:
            story.over = True
        for story in self.stories:
            story.join()
        self.check()
        for story in self.stories:
            story.prove()
        assert self.server.ask("wallet", "verify")["sound"] is True
        self.server.stop()
        print({name: sum(story.tally[name] for story in self.stories) for name in self.stories[0].tally})


@pytest.fixture
def world(tmp_path):
    seed = int(os.environ.get("WALLET_SEED") or random.SystemRandom().randrange(2**32))
    print(f"WALLET_SEED={seed}")  # replays the choices of this run
    world = World(tmp_path, seed)
    yield world
    for story in world.stories:
        story.over = True
    if world.server.process is not None:
        world.server.die()


def sweep(chance, points, count):
    return points if ALL else sorted(chance.sample(points, -(-count // SAMPLE)))


@pytest.mark.long(10)
def test_killed_at_any_moment(world):
    world.begin()
    for _ in range(50 if ALL else 8):
        time.sleep(world.chance.random() * 0.4)
        world.server.die()
        world.again()
    world.end()


@pytest.mark.parametrize("call, points", [("pwrite64", range(1, 160)), ("fdatasync", range(1, 24))])
def test_killed_at_a_write_or_a_sync(world, call, points):
    world.begin()
    for point in sweep(world.chance, list(points), 6):
        world.server.stop()
        world.again(f"{call}:signal=SIGKILL:when={point}")
        eventually(world.server.gone, 20)
        world.server.die()
        world.again()
    world.end()


@pytest.mark.parametrize("call, points", [("pwrite64", range(1, 160)), ("fdatasync", range(1, 24))])
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_an_error_at_a_write_or_a_sync(world, call, points, error):
    """The server lives on, and comes to itself without help."""
    world.begin()
    for point in sweep(world.chance, list(points), 3):
        world.server.stop()
        if world.again(f"{call}:error={error}:when={point}"):
            world.more(60)
        else:
            world.server.die()
            world.again()
    world.end()


def test_while_no_sync_succeeds_nothing_is_acknowledged(world):
    world.begin()
    for point in sweep(world.chance, list(range(3, 12)), 2):
        world.server.stop()
        assert world.again(f"fdatasync:error=EIO:when={point}+")
        heard = [len(story.heard) for story in world.stories]

        def answers():
            return [answer for story, count in zip(world.stories, heard) for answer in story.heard[count:]]

        def after():
            """What was answered to requests that were sent after the first 500."""
            first = min((at for _, at, status, _ in answers() if status == 500), default=float("inf"))
            return [status for sent, _, status, _ in answers() if sent > first]

        eventually(lambda: len(after()) >= 8)
        world.check()
        world.server.die()
        assert 500 not in after()
        world.again()
    world.end()


def test_rows_that_a_damaged_log_took_away_are_missed_until_an_operator_accepts_it(slow):
    server, key = slow, slow.customer.key
    server.start()
    server.await_admission(key)
    for i in range(8):
        assert send(server, key, credit(server.player, f"in-{i}", 100)).status == 200
    server.die()
    with open(server.directory / "platform.db-wal", "r+b") as log:
        log.seek(-5000, os.SEEK_END)  # in one of the last transactions
        log.write(b"!!")
    server.start()
    server.await_admission(key)
    refused = send(server, key, credit(server.player, "in-7", 100))
    assert (refused.status, refused.json()["error"]) == (503, "ledger_unavailable")
    assert send(server, key, balance(server.player)).status == 503
    assert "has lost its newest rows" in server.log_text()
    proof = json.loads(server.run("wallet", "verify", "--json", status=1).text)
    assert not proof["sound"] and "has lost its newest rows" in proof["reason"]
    [told] = [check for check in json.loads(server.run("check", "--json", status=1).text) if check["check"] == "ledger"]
    assert not told["ok"] and "has lost its newest rows" in told["message"]
    assert "has lost its newest rows" in server.run("backup", server.directory / "kept", status=1).errors
    assert not list(server.directory.glob("kept*"))

    told = server.run("wallet", "accept-loss", status=1).errors
    last = re.search(r"--last (\d+)", told)[1]
    assert "transaction 8 was acknowledged" in told and int(last) < 8
    assert "has lost its newest rows" in server.run("wallet", "accept-loss", "--last", "8", status=1).errors
    server.run("wallet", "accept-loss", "--last", "x", status=2)
    assert server.ask("wallet", "accept-loss", "--last", last) == {"last": int(last), "acknowledged": 8}
    assert "lost nothing" in server.run("wallet", "accept-loss", "--last", last, status=1).errors
    row = next(row for row in server.ask("audit", "list") if row["kind"] == "ledger")
    assert (row["command"], row["before"], row["after"]) == ("wallet accept-loss", {"last": 8}, {"last": int(last)})
    eventually(lambda: send(server, key, credit(server.player, "in-7", 100)).status == 200)
    assert server.ask("wallet", "verify")["sound"] is True
    server.stop()


# ---- a disk, or another process, that keeps the ledger waiting ------------------------------------------

class Asking(threading.Thread):
    """One request on its way: the answer, and how long it took."""

    def __init__(self, server, key, document):
        super().__init__()
        self.ask, self.response = lambda: send(server, key, document), None
        self.start()

    def run(self):
        began = time.monotonic()
        response = self.ask()
        self.took, self.response = time.monotonic() - began, response

    def answer(self):
        self.join()
        return self.response


@pytest.fixture
def slow(tmp_path):
    server = Straced(tmp_path, {"platform.timeout_ms": "30000"})
    server.customer = server.add_customer("Casino", options=["--casino"])
    server.player = add_player(server, server.customer)
    yield server
    if server.process is not None:
        server.die()


def ask(server, document):
    return Asking(server, server.customer.key, document)


@pytest.mark.long(10)
def test_what_waits_for_a_batch_is_given_up_and_what_is_in_one_is_not(slow):
    """Another process holds the database: the first request is in a batch that waits, the second is queued behind it."""
    slow.start()
    assert ask(slow, credit(slow.player, "first", 100)).answer().status == 200
    holder = sqlite3.connect(slow.platform.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    in_batch = ask(slow, debit(slow.player, "in-batch", 10))
    time.sleep(1)  # nothing tells when its batch has begun; a busy machine may need a while
    queued = [ask(slow, debit(slow.player, f"queued-{i}", 10)) for i in range(3)]
    other = ask(slow, balance(slow.player))  # which waits for no one
    assert other.answer().json()["balance_minor"] == 100
    assert in_batch.response is None, "the balance was not answered before the batch"
    for asking in queued:
        assert asking.answer().error == (503, "ledger_unavailable")
        assert 1.9 < asking.took
    assert in_batch.answer().error == (500, "internal_error")
    assert 9.9 < in_batch.took
    holder.execute("ROLLBACK")
    holder.close()
    # What was said to be surely not applied was not; what no one knew has been done all the same.
    assert ask(slow, debit(slow.player, "in-batch", 10)).answer().json()["replayed"] is True
    for i in range(3):
        assert ask(slow, debit(slow.player, f"queued-{i}", 10)).answer().json()["replayed"] is False
    assert ask(slow, balance(slow.player)).answer().json()["balance_minor"] == 60
    slow.stop()


def test_a_lock_that_outlives_the_stores_deadline_is_surely_not_applied(slow):
    slow.configure({"platform.timeout_ms": "500"})
    slow.start()
    holder = sqlite3.connect(slow.platform.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    refused = ask(slow, credit(slow.player, "c", 5))
    assert refused.answer().error == (503, "ledger_unavailable") and 0.4 < refused.took
    holder.execute("ROLLBACK")
    holder.close()
    again = eventually(lambda: (lambda answer: answer.status == 200 and answer)(
        ask(slow, credit(slow.player, "c", 5)).answer()))
    assert again.json()["replayed"] is False
    slow.stop()


def test_a_sync_that_takes_long_keeps_its_own_batch_and_no_one_elses(slow):
    """A disk that hangs in the middle of a commit: that batch is answered when it is done, what queues up behind it is
    given up, and it is not applied."""
    assert slow.start_with("fdatasync:delay_enter=8000000:when=8")
    for i in range(20):
        asking = ask(slow, credit(slow.player, f"c-{i}", 5))
        asking.join(3.0)  # less than half of what the disk takes: it hangs, and is not only slow
        if asking.is_alive():
            break
        assert asking.response.status == 200
    behind = ask(slow, credit(slow.player, "behind", 5))
    other = ask(slow, balance(slow.player))
    assert other.answer().json()["balance_minor"] == 5 * i and asking.response is None
    assert behind.answer().error == (503, "ledger_unavailable") and 1.9 < behind.took
    assert asking.answer().json()["replayed"] is False and asking.took > 3.5
    assert ask(slow, credit(slow.player, f"c-{i}", 5)).answer().json()["replayed"] is True
    assert ask(slow, credit(slow.player, "behind", 5)).answer().json()["replayed"] is False
    assert slow.ask("wallet", "verify")["sound"] is True
    slow.die()
