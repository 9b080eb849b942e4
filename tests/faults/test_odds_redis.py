"""The Redis engine of the odds store: what is known to go wrong with client-side caching, and outages.

REDIS_TOOL names the program that acts (tests/faults/redis_tool.c). A fake server makes orderings that a real one
makes once in a million; the rest is asked of real servers.
"""

import contextlib
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fake_redis import FakeRedis, array, bulk, integer, invalidation, mapping

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import servers  # noqa: E402
from servers import Stopwatch  # noqa: E402

TOOL = os.environ["REDIS_TOOL"]
PATIENCE = float(os.environ.get("CROUPIER_PATIENCE", "1"))


def eventually(condition, seconds=10.0):
    deadline = time.monotonic() + 4 * seconds * PATIENCE  # the machine may be busy with something else
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.002)


class Store:
    """A store that serves, in a process of its own."""

    def __init__(self, uri, timeout_ms=1000, prefix="", names=None):
        self.process = subprocess.Popen([TOOL, uri, str(timeout_ms), prefix], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=names.environment() if names else None)
        self.answers, self.reads, self.watches, self.log = queue.Queue(), {}, {}, []
        self.tags = 0
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._keep_log, daemon=True).start()
        self.first = self.answers.get(timeout=30 * PATIENCE)

    def _listen(self):
        for line in self.process.stdout:
            words = line.rstrip("\n").split(" ")
            if words[0] == "read":
                self.reads[words[1]].put(words[2:])
            else:
                self.answers.put(line.rstrip("\n"))

    def _keep_log(self):
        for line in self.process.stderr:
            self.log.append(line)

    def log_text(self):
        return "".join(self.log)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answers.get(timeout=60 * PATIENCE)

    def start_read(self, what="cricket 1"):
        self.tags += 1
        tag = str(self.tags)
        self.reads[tag] = queue.Queue()
        self.watches[tag] = Stopwatch()
        self.process.stdin.write(f"read {tag} {what}\n")
        self.process.stdin.flush()
        return tag

    def result(self, tag):
        """(status, version, milliseconds that it may have taken at most, the first bytes)"""
        status, version, milliseconds, _size, *text = self.reads[tag].get(timeout=60 * PATIENCE)
        late = self.watches[tag].elapsed() - self.watches[tag].seconds()
        return status, int(version), int(milliseconds) - 1000 * late, " ".join(text)

    def read(self, what="cricket 1"):
        return self.result(self.start_read(what))

    def value(self, what="cricket 1"):
        status, _, _, text = self.read(what)
        assert status == "ok", (status, self.log_text())
        return text

    def stamp(self):
        _, status, number = self.ask("stamp").split()
        return status, int(number)

    def status(self):
        return self.stamp()[0]

    def versions(self, what="cricket 1"):
        """(catalog, odds); None: not known."""
        _, status, _, catalog, odds = self.ask(f"versions {what}").split()
        assert status in ("ok", "pending"), status
        return tuple(None if version == "-" else int(version) for version in (catalog, odds))

    def odds_version(self, what="cricket 1"):
        return self.versions(what)[1]

    def facts(self):
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", self.ask("facts"))}

    def ping(self, need=""):
        return self.ask(f"ping {need}").split(" ", 2)[1:]

    def await_status(self, status, seconds=10.0):
        eventually(lambda: self.status() == status, seconds)

    def close(self):
        if self.process.stdin and not self.process.stdin.closed:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        assert self.process.wait(60 * PATIENCE) == 0, self.log_text()


@pytest.fixture
def open_store():
    made = []

    def make(*arguments, **options):
        made.append(Store(*arguments, **options))
        assert made[-1].first == "open", made[-1].first
        return made[-1]
    yield make
    for one in made:
        one.close()


class Names:
    """How names resolve (slow_names.c), and how often they were looked up."""

    def __init__(self, path):
        self.path = path

    def set(self, **names):
        """NAME=(seconds, address…); in the name, a _ stands for a hyphen"""
        lines = [f"{name.replace('_', '-')} {seconds} {' '.join(addresses)}\n"
                 for name, (seconds, *addresses) in names.items()]
        fresh = self.path.with_suffix(".new")
        fresh.write_text("".join(lines))
        fresh.rename(self.path)

    def environment(self):
        asan = os.environ.get("ASAN_OPTIONS", "exitcode=99") + ":verify_asan_link_order=0"
        return {**os.environ, "LD_PRELOAD": os.environ["SLOW_NAMES"], "CROUPIER_TEST_SLOW_NAMES": str(self.path),
                "ASAN_OPTIONS": asan}

    def lookups(self):
        """How many were begun. Never were two of one name under way at once."""
        log, under_way, begun = Path(f"{self.path}.log"), set(), 0
        for line in log.read_text().splitlines() if log.exists() else []:
            if line[0] == "+":
                assert line[1:] not in under_way, "it was being looked up already"
                under_way.add(line[1:])
                begun += 1
            else:
                under_way.remove(line[1:])
        return begun


@pytest.fixture
def names(tmp_path):
    return Names(tmp_path / "names")


@pytest.fixture
def fake():
    with FakeRedis() as server:
        server.values["catalog:cricket"] = b"[]"
        server.values["odds:cricket:1"] = b"[1]"
        yield server


@pytest.fixture(scope="module")
def shared_redis():
    with servers.Redis() as server:
        yield server


@pytest.fixture
def redis(shared_redis):
    """One that a test leaves running."""
    shared_redis.call("FLUSHALL")
    shared_redis.call("SET", "catalog:cricket", "[]")
    shared_redis.call("SET", "odds:cricket:1", "[1]")
    return shared_redis


@pytest.fixture
def own_redis():
    """One that a test stops, freezes and spoils."""
    with servers.Redis() as server:
        server.call("SET", "odds:cricket:1", "[1]")
        yield server


# ---- what is remembered --------------------------------------------------------------------------------

def test_what_was_read_is_known_until_it_changes(redis, open_store):
    store = open_store(redis.uri)
    assert store.versions() == (None, None)
    _, version, _, text = store.read()
    assert text == "[1]" and store.odds_version() == version != 0
    before = store.stamp()
    redis.call("SET", "odds:cricket:2", "[2]")
    eventually(lambda: store.stamp() != before)
    assert store.odds_version() == version, "another event has changed"
    redis.call("SET", "odds:cricket:1", "[3]")
    eventually(lambda: store.odds_version() is None)
    status, later, _, text = store.read()
    assert text == "[3]" and later != version and store.odds_version() == later


def test_the_same_bytes_again_keep_their_version(redis, open_store):
    store = open_store(redis.uri)
    _, version, _, _ = store.read()
    redis.call("SET", "odds:cricket:1", "[1]")
    eventually(lambda: store.odds_version() is None)
    assert store.read()[1] == version == store.odds_version()


def test_what_is_not_stored_is_known_too(redis, open_store):
    store = open_store(redis.uri)
    assert store.read("cricket 9")[:2] == ("ok", 0)
    assert store.odds_version("cricket 9") == 0
    redis.call("SET", "odds:cricket:9", "")
    eventually(lambda: store.odds_version("cricket 9") is None)
    status, version, _, text = store.read("cricket 9")
    assert (status, text) == ("ok", "") and version != 0, "an empty document is stored and not missing"


@pytest.mark.parametrize("change", [
    ["DEL", "odds:cricket:1"], ["UNLINK", "odds:cricket:1"], ["FLUSHALL"], ["FLUSHDB", "ASYNC"],
    ["APPEND", "odds:cricket:1", " "], ["RENAME", "odds:cricket:1", "elsewhere"], ["MOVE", "odds:cricket:1", "7"],
    ["COPY", "catalog:cricket", "odds:cricket:1", "REPLACE"], ["PEXPIRE", "odds:cricket:1", "1"],
    ["MSET", "a", "1", "odds:cricket:1", "[2]"], ["EVAL", "redis.call('SET', KEYS[1], '[3]')", "1", "odds:cricket:1"],
], ids=lambda words: " ".join(words[:2]))
def test_whatever_changes_a_value_is_heard_of(redis, open_store, change):
    redis.call("SELECT", "7"), redis.call("DEL", "odds:cricket:1"), redis.call("SELECT", "0")
    store = open_store(redis.uri)
    store.read()
    assert store.odds_version() is not None
    redis.call(*change)
    eventually(lambda: store.odds_version() is None)


@pytest.mark.parametrize("transaction", [[["SWAPDB", "0", "9"]],
                                         [["CONFIG", "RESETSTAT"], ["SWAPDB", "9", "0"]],
                                         [["CONFIG", "RESETSTAT"], ["SWAPDB", "0", "9"], ["ROLE"], ["ROLE"]]],
                         ids=["swapped", "after a reset", "after a reset, and others ask too"])
def test_databases_that_are_swapped_are_noticed_in_time(redis, open_store, transaction):
    """No server reports that to those who track its keys."""
    redis.call("SELECT", "9"), redis.call("FLUSHDB")
    redis.call("SET", "odds:cricket:1", "[9]"), redis.call("SELECT", "0")
    store = open_store(redis.uri, timeout_ms=1000)
    for text in ("[9]", "[1]", "[9]"):
        store.read(), store.read("cricket 2"), store.read("cricket")
        before = store.stamp()
        watch = Stopwatch()
        for words in [["MULTI"], *transaction, ["EXEC"]]:
            redis.call(*words)
        eventually(lambda: store.stamp() != before)
        assert watch.seconds() < 1 * PATIENCE
        assert store.versions() == (None, None) and store.value() == text
    assert store.facts()["reopened"] == 0


def test_a_server_that_does_not_count_its_commands_cannot_be_used(fake, open_store):
    fake.raw["INFO"] = bulk("# Commandstats\r\n")
    store = open_store(fake.uri)
    assert store.status() == "unavailable" and "commandstats" in " ".join(store.ping())


def test_a_key_of_another_database_costs_a_read_and_no_more(redis, open_store):
    store = open_store(redis.uri)
    other = open_store(redis.tcp_uri(database=3))
    _, version, _, _ = store.read()
    assert other.read()[:2] == ("ok", 0)
    before = store.stamp()
    assert other.ask("publish cricket 1 [7]") == "publish ok "
    eventually(lambda: store.stamp() != before)
    status, again, _, text = store.read()
    assert (again, text) == (version, "[1]") and other.value() == "[7]"


def test_prefixes_are_kept_apart(redis, open_store):
    store, other = open_store(redis.uri), open_store(redis.uri, prefix="a[b]*:")
    assert other.ask("publish cricket 1 [7]") == "publish ok "
    assert store.value() == "[1]" and other.value() == "[7]"
    assert redis.cli("GET", "a[b]*:odds:cricket:1") == "[7]"
    _, version, _, _ = other.read()
    redis.call("SET", "odds:cricket:1", "[8]")
    eventually(lambda: store.odds_version() is None)
    assert other.odds_version() == version


def test_a_value_that_expires_is_gone_when_it_does_and_not_when_the_server_finds_time(redis, open_store):
    store = open_store(redis.uri)
    redis.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    try:
        for _ in range(5):
            redis.call("SET", "odds:cricket:1", "[1]", "PX", "300")
            expires = time.monotonic() + 0.3  # at the latest
            eventually(lambda: store.odds_version() is None)
            _, version, _, _ = store.read()
            before = store.stamp()
            assert store.odds_version() == version
            time.sleep(max(0.0, expires + 0.005 - time.monotonic()))
            assert store.odds_version() is None, "it has expired, though no one said so"
            assert store.stamp() != before
            assert store.read()[:2] == ("ok", 0)
    finally:
        redis.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")


def test_a_value_of_another_type_is_malformed_alone(redis, open_store):
    store = open_store(redis.uri)
    redis.call("LPUSH", "odds:cricket:2", "x")
    assert store.read("cricket 2")[0] == "malformed"
    assert store.odds_version("cricket 2") not in (None, 0), "it need not be asked for again"
    assert store.read("cricket 2")[0] == "malformed"
    assert store.value() == "[1]"
    redis.call("DEL", "odds:cricket:2"), redis.call("SET", "odds:cricket:2", "[2]")
    eventually(lambda: store.odds_version("cricket 2") is None)
    assert store.value("cricket 2") == "[2]"
    assert store.facts()["reopened"] == 0


@pytest.mark.parametrize("size", [32 * 1024 * 1024 + 1, 100 * 1024 * 1024])
def test_a_value_that_is_too_large_is_malformed_alone(redis, open_store, size):
    store = open_store(redis.uri, timeout_ms=10000)
    redis.call("SETRANGE", "odds:cricket:2", str(size - 1), "x")
    tags = [store.start_read(what) for what in ("cricket 2", "cricket 1", "cricket 2", "cricket")]
    statuses = [store.result(tag)[0] for tag in tags]
    assert statuses == ["malformed", "ok", "malformed", "ok"]
    assert store.value() == "[1]" and store.facts()["reopened"] == 0


def misfits(store):
    """(key, what it holds, what is needed) as they were logged."""
    return re.findall(r'a key of the odds store cannot be used key=(\S+) holds=("[^"]*"|\S+) needed=("[^"]*"|\S+)',
                      store.log_text())


def test_a_key_of_another_type_is_called_what_it_is_once(redis, open_store):
    store = open_store(redis.uri, timeout_ms=4000)
    redis.call("DEL", "odds:cricket:1", "catalog:cricket")
    redis.call("RPUSH", "odds:cricket:1", "x")
    redis.call("HSET", "catalog:cricket", "a", "b")
    wanted = [("odds:cricket:1", "list", "string"), ("catalog:cricket", "hash", "string")]
    for turn in range(3):
        redis.call("RPUSH", "odds:cricket:1", "x")
        for what in ("cricket 1", "cricket"):
            eventually(lambda: store.read(what)[0] == "malformed")
    eventually(lambda: misfits(store) == wanted)
    redis.call("SET", "odds:cricket:1", "[1]")
    eventually(lambda: store.read()[0] == "ok")
    redis.call("DEL", "odds:cricket:1"), redis.call("SADD", "odds:cricket:1", "x")
    eventually(lambda: store.read()[0] == "malformed")
    eventually(lambda: misfits(store) == [*wanted, ("odds:cricket:1", "set", "string")])
    redis.call("SETRANGE", "odds:cricket:2", str(32 * 1024 * 1024), "x")
    assert store.read("cricket 2")[0] == "malformed"
    eventually(lambda: misfits(store)[3:] == [("odds:cricket:2", '"more than 32 MiB"', "string")])


def test_interest_in_a_string_is_called_what_it_is_and_others_are_recorded(redis, open_store):
    redis.call("SET", "interest:tennis", "x")
    store = open_store(redis.uri, timeout_ms=4000)
    for event in range(3):
        for sport in ("tennis", "cricket"):
            store.ask(f"note {sport} {event + 1}")
        eventually(lambda: redis.call("ZSCORE", "interest:cricket", str(event + 1)) is not None)
    eventually(lambda: misfits(store) == [("interest:tennis", "string", '"sorted set"')])
    eventually(lambda: store.facts()["dropped"] == 3)
    assert store.facts()["written"] == 3
    redis.call("DEL", "interest:tennis")
    store.ask("note tennis 9")
    eventually(lambda: redis.call("ZSCORE", "interest:tennis", "9") is not None)
    redis.call("DEL", "interest:tennis"), redis.call("RPUSH", "interest:tennis", "x")
    store.ask("note tennis 10")
    eventually(lambda: misfits(store)[1:] == [("interest:tennis", "list", '"sorted set"')])


@pytest.mark.parametrize("answer, holds", [
    ("NOPERM this user has no permissions to run the 'type' command", '"another type"'), (None, "list")])
def test_a_type_that_may_not_be_asked_for_is_left_unsaid(fake, open_store, answer, holds):
    store = open_store(fake.uri)
    fake.types["odds:cricket:1"] = "list"
    if answer:
        fake.errors["TYPE"] = answer
    for _ in range(3):
        assert store.read()[0] == "malformed"
        fake.invalidate("odds:cricket:1")
    eventually(lambda: misfits(store) == [("odds:cricket:1", holds, "string")])
    assert fake.count("TYPE") == 1 and store.value("cricket") == "[]"


def test_interest_of_several_instances_is_the_latest(redis, open_store):
    one, other = open_store(redis.uri), open_store(redis.uri)
    redis.call("ZADD", "interest:cricket", "1", "77")
    future = int(time.time() * 1000) + 3600000
    redis.call("ZADD", "interest:cricket", str(future), "78")
    for store in (one, other):
        for event in ("77", "78", "99999999999999999999"):
            store.ask(f"note cricket {event}")
    eventually(lambda: int(redis.cli("ZCARD", "interest:cricket")) == 3)
    eventually(lambda: int(redis.cli("ZSCORE", "interest:cricket", "77")) > 1)
    assert int(redis.cli("ZSCORE", "interest:cricket", "78")) == future


def test_interest_that_is_a_day_old_is_removed(redis, open_store):
    redis.call("ZADD", "interest:cricket", str(int(time.time() * 1000) - 25 * 3600 * 1000), "5")
    redis.call("ZADD", "interest:tennis", str(int(time.time() * 1000) - 23 * 3600 * 1000), "6")
    store = open_store(redis.uri)
    store.ask("note football 1")
    eventually(lambda: redis.call("ZSCORE", "interest:cricket", "5") is None)
    assert redis.call("ZSCORE", "interest:tennis", "6") is not None


# ---- the order in which things come --------------------------------------------------------------------

def answer_with(fake, *, before=b"", between=b"", after=b""):
    """Has a read answered with what the server says has changed before its value, or behind it."""
    value = fake.values["odds:cricket:1"]
    fake.raw["GET"] = before + bulk(value) + between
    fake.raw["EXEC"] = array() + after


@pytest.mark.parametrize("keys", [("odds:cricket:1",), (None,)])
def test_what_was_read_after_a_change_is_remembered(fake, open_store, keys):
    """The word of it comes first, in the order of things."""
    store = open_store(fake.uri, timeout_ms=4000)
    answer_with(fake, before=invalidation(*keys))
    status, version, _, text = store.read()
    assert (status, text) == ("ok", "[1]") and store.odds_version() == version


@pytest.mark.parametrize("keys", [("odds:cricket:1",), (None,)])
@pytest.mark.parametrize("where", ["between", "after"])
def test_what_was_read_before_a_change_is_right_for_those_who_asked_before_it_alone(fake, open_store, keys, where):
    store = open_store(fake.uri, timeout_ms=4000)
    answer_with(fake, **{where: invalidation(*keys)})
    status, _, _, text = store.read()
    assert (status, text) == ("ok", "[1]")
    eventually(lambda: store.odds_version() is None)
    fake.raw.clear()
    fake.values["odds:cricket:1"] = b"[2]"
    assert store.value() == "[2]" and store.odds_version() is not None


def test_a_change_of_another_key_changes_nothing(fake, open_store):
    store = open_store(fake.uri, timeout_ms=4000)
    answer_with(fake, before=invalidation("odds:cricket:11", "odds:tennis:1"), after=invalidation("catalog:cricket"))
    status, version, _, _ = store.read()
    eventually(lambda: store.facts()["invalidations"] == 3)
    assert status == "ok" and store.odds_version() == version


def test_a_transaction_that_was_overtaken_tells_no_part_and_is_not_remembered(fake, open_store):
    store = open_store(fake.uri, timeout_ms=4000)
    fake.raw["EXEC"] = b"_\r\n"
    status, _, _, text = store.read()
    assert (status, text) == ("ok", "[1]") and store.odds_version() is None


def test_a_value_that_changed_though_nothing_was_heard_yet(fake, open_store):
    store = open_store(fake.uri)
    _, version, _, _ = store.read()
    before = store.stamp()
    fake.values["odds:cricket:1"] = b"[2]"
    _, later, _, text = store.read()
    assert text == "[2]" and later != version and store.stamp() != before


def test_keys_that_no_event_can_have_are_passed_over(fake, open_store):
    store = open_store(fake.uri)
    _, version, _, _ = store.read()
    before = store.stamp()
    for key in ("odds:cricket:01", "odds:cricket:", "odds:cricket", "odds:darts:1", "odds:cricket:1:1", "odds:",
                "catalog:", "catalog:cricket:1", "odds:cricket:1x", "odds:cricket:" + "9" * 21, "", "\0"):
        fake.invalidate(key)
    fake.invalidate("odds:tennis:1")
    eventually(lambda: store.stamp() != before)
    assert store.stamp()[1] == before[1] + 1 and store.odds_version() == version


# ---- when it cannot be known ---------------------------------------------------------------------------

def test_silence_casts_doubt_first_and_ends_the_connection_then(fake, open_store):
    store = open_store(fake.uri, timeout_ms=1000)
    store.read()
    fake.hold()
    store.await_status("pending", 0.7)
    assert store.odds_version() is None, "nothing of what is in memory may be used"
    fake.values["odds:cricket:1"] = b"[2]"
    status, _, milliseconds, _ = store.read()
    assert status in ("timeout", "ok") and milliseconds < 1200 * PATIENCE
    store.await_status("ok")
    assert store.odds_version() is None and store.value() == "[2]"


def spoil(fake, what):
    if what == "off":
        fake.flags = ["off"]
    elif what == "another connection":
        fake.redirect = 4711
    elif what == "replica":
        fake.role = "slave"


@pytest.mark.parametrize("what", ["off", "another connection", "replica"])
def test_tracking_that_is_not_what_it_was(fake, open_store, what):
    store = open_store(fake.uri, timeout_ms=400)
    store.read()
    spoil(fake, what)
    store.await_status("unavailable")
    assert store.read()[0] in ("unavailable", "ok", "timeout")
    fake.flags, fake.redirect, fake.role = ["on", "bcast"], -1, "master"
    fake.values["odds:cricket:1"] = b"[2]"
    store.await_status("ok")
    assert store.odds_version() is None and store.value() == "[2]"


def test_a_connection_that_ends_takes_with_it_what_was_known(fake, open_store):
    store = open_store(fake.uri, timeout_ms=1000)
    store.read()
    before = store.stamp()
    fake.values["odds:cricket:1"] = b"[2]"
    fake.find().close()
    eventually(lambda: store.facts()["reopened"] == 1)
    store.await_status("ok")
    assert store.stamp() != before
    assert store.odds_version() is None and store.value() == "[2]"


def test_a_read_that_is_under_way_when_the_connection_is_lost_is_asked_again(fake, open_store):
    store = open_store(fake.uri, timeout_ms=2000)
    fake.hold()
    tags = [store.start_read() for _ in range(200)]
    eventually(lambda: fake.count("GET", "odds:cricket:1") >= 1)
    fake.values["odds:cricket:1"] = b"[2]"
    fake.find().close()
    assert {store.result(tag)[::3] for tag in tags} == {("ok", "[2]")}


@pytest.mark.parametrize("asleep", [0.5, 1])
def test_what_was_answered_while_the_process_slept_is_an_answer(fake, open_store, asleep):
    """Its deadline has passed by the time that it can look; but so has the server's answer come."""
    store = open_store(fake.uri, timeout_ms=400)
    for number in range(4):
        asked = fake.count("GET", "odds:cricket:1")
        fake.hold()
        tag = store.start_read()
        eventually(lambda: fake.count("GET", "odds:cricket:1") > asked)
        os.kill(store.process.pid, signal.SIGSTOP)
        fake.release()
        time.sleep(asleep)
        os.kill(store.process.pid, signal.SIGCONT)
        assert store.result(tag)[::3] == ("ok", "[1]"), number
        store.await_status("ok")
    assert store.facts()["reopened"] == 0


# ---- servers that cannot be used -----------------------------------------------------------------------

def set_error(command, text):
    return lambda fake: fake.errors.update({command: text})


@pytest.mark.parametrize("prepare, reason", [
    (set_error("ROLE", "NOAUTH Authentication required."), "wants a password"),
    (set_error("AUTH", "WRONGPASS invalid username-password pair or user is disabled."), "does not accept"),
    (set_error("AUTH", "ERR AUTH <password> called without any password configured for the default user."),
     "no password, but one is configured"),
    (set_error("PING", "LOADING Redis is loading the dataset in memory"), "still loading"),
    (set_error("SELECT", "ERR DB index is out of range"), "no database of that number"),
    (set_error("CLIENT TRACKING", "NOPERM this user has no permissions to run the 'client|tracking' command"),
     "CLIENT TRACKING: the user may not do that"),
    (lambda fake: setattr(fake, "role", "slave"), "is a replica"),
    (lambda fake: setattr(fake, "mode", "cluster"), "Redis Cluster"),
    (lambda fake: setattr(fake, "version", "5.0.14"), "older than Redis 6.2"),
    (lambda fake: setattr(fake, "version", "6.0.16"), "older than Redis 6.2"),
    (set_error("HELLO", "ERR unknown command `HELLO`, with args beginning with: `3`, "), "older than Redis 6.2"),
    (set_error("HELLO", "NOPROTO unsupported protocol version"), "older than Redis 6.2"),
    (lambda fake: setattr(fake, "greeting", b"-ERR max number of clients reached\r\n"), "maximum of clients"),
    (set_error("CLIENT SETNAME", "ERR max number of clients reached"), "maximum of clients"),
    (lambda fake: setattr(fake, "greeting", b"HTTP/1.1 400 Bad Request\r\n\r\n"), "does not speak Redis"),
    (lambda fake: fake.raw.update({"HELLO": b"$3\r\nabc\r\n"}), "neither Redis nor Valkey"),
    (lambda fake: fake.raw.update({"HELLO": mapping((bulk("version"), integer(7)))}), "neither Redis nor Valkey"),
    (lambda fake: fake.raw.update({"ROLE": b"*1000000000000\r\n"}), "odds store"),
    (lambda fake: fake.raw.update({"CLIENT TRACKINGINFO": b"*2\r\n$5\r\nflags\r\n:3\r\n"}), "ceased to report"),
    (lambda fake: fake.raw.update({"CLIENT TRACKINGINFO": b":7\r\n"}), "ceased to report"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_server_that_cannot_be_used_is_told_of_without_secrets(fake, open_store, prepare, reason):
    prepare(fake)
    store = open_store(f"redis://someone:hunter2%40%25@127.0.0.1:{fake.port}/3", timeout_ms=300)
    eventually(lambda: store.status() in ("unavailable", "timeout"))
    eventually(lambda: reason in store.log_text())
    assert reason in " ".join(store.ping())
    assert "hunter2" not in store.log_text() and "someone" not in store.log_text()
    assert fake.greeting or ["AUTH", "someone", "hunter2@%"] in fake.commands
    assert len(store.log) <= 6, "what is wrong is logged when it is news"


@pytest.mark.parametrize("text", [
    "ERR unknown command `CLIENT`, with args beginning with: `SETNAME`, `croupier`, ",
    "ERR Unknown subcommand or wrong number of arguments for 'SETNAME'. Try CLIENT HELP.",
    "NOPERM this user has no permissions to run the 'client|setname' command",
])
def test_a_server_that_takes_no_names_will_do(fake, open_store, text):
    fake.errors["CLIENT SETNAME"] = text
    store = open_store(fake.uri)
    assert store.status() == "ok" and store.value() == "[1]"


def test_a_server_that_has_its_maximum_of_clients_is_told_of_as_such(own_redis, open_store):
    """It says so before it has read anything: so the connection is reset right after, which must not drown it."""
    own_redis.call("CONFIG", "SET", "maxclients", "1")
    for _ in range(10):
        store = open_store(own_redis.tcp_uri())
        assert store.status() == "unavailable"
        assert "has its maximum of clients" in " ".join(store.ping())
        eventually(lambda: store.log)
        assert {line.rpartition(": ")[2] for line in store.log} == {'the server has its maximum of clients"\n'}


def test_an_answer_is_heard_though_a_reset_follows_it(fake, open_store):
    store = open_store(fake.uri)
    assert store.ask("publish cricket 1 [2]") == "publish ok "
    fake.last_words = {"SET"}
    for number in range(5):
        accepted = fake.accepted
        assert store.ask(f"publish cricket 1 [{number}]") == "publish ok "
        eventually(lambda: fake.accepted > accepted)  # it has noticed, and is back


@pytest.mark.parametrize("text, status", [
    ("LOADING Redis is loading the dataset in memory", "unavailable"), ("MOVED 3999 127.0.0.1:6381", "unavailable"),
    ("NOPERM this user has no permissions to run the 'get' command", "unavailable"),
    ("ERR something with a secret in it", "unavailable"), ("WRONGTYPE Operation against a key", "malformed")])
def test_an_error_in_place_of_a_value(fake, open_store, text, status):
    store = open_store(fake.uri)
    fake.errors["GET"] = text
    assert store.read()[0] == status
    assert "secret" not in store.log_text()
    del fake.errors["GET"]
    assert store.value() == "[1]" and store.facts()["reopened"] == 0


@pytest.mark.parametrize("raw", [b"!\r\n", b"$-7\r\n", b"$99999999999999999999999\r\n", b"*-5\r\n", b"\0" * 100,
                                 b"$5\r\nabcdefgh\r\n", b"+OK\r\n" * 50])
def test_nonsense_ends_a_connection_and_not_the_process(fake, open_store, raw):
    store = open_store(fake.uri, timeout_ms=300)
    fake.raw["GET"] = raw
    assert store.read()[0] in ("unavailable", "timeout", "ok")
    del fake.raw["GET"]
    store.await_status("ok")
    eventually(lambda: store.read()[0] == "ok")
    assert store.value() == "[1]"


def memory_of(process):
    """In MB; the most that it ever was."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) // 1024


def test_a_list_without_end_is_not_taken_in(fake, open_store):
    store = open_store(fake.uri, timeout_ms=4000)
    before = memory_of(store.process)
    fake.raw["GET"] = b"*10000000\r\n" + 10000000 * b":1\r\n"
    assert store.read()[0] in ("unavailable", "timeout")
    eventually(lambda: "larger than any that was asked for" in store.log_text())
    assert memory_of(store.process) - before < 600, "a tenth of that; sanitizers take more"
    del fake.raw["GET"]
    store.await_status("ok")
    assert store.value() == "[1]"


def test_a_long_list_of_keys_that_changed_is_heard_of(redis, open_store):
    store = open_store(redis.uri, timeout_ms=4000)
    keys = [f"odds:cricket:{number}" for number in range(1, 60001)]
    store.read()
    redis.call("MSET", *(word for key in keys for word in (key, "[]")))
    eventually(lambda: store.odds_version() is None)
    eventually(lambda: store.facts()["invalidations"] >= 60000)
    assert store.facts()["reopened"] == 0


def test_attempts_come_at_growing_intervals(fake, open_store):
    fake.errors["ROLE"] = "NOAUTH Authentication required."
    open_store(fake.uri)
    time.sleep(4)
    times = fake.accept_times
    gaps = [later - sooner for sooner, later in zip(times, times[1:])]
    assert 6 <= len(gaps) <= 16, gaps
    assert gaps[0] < 0.2 * PATIENCE and max(gaps) < 1.5 * PATIENCE, "the first soon, none late"


# ---- outages of real servers ---------------------------------------------------------------------------

def test_a_server_that_is_killed_and_comes_back(own_redis, open_store):
    store = open_store(own_redis.tcp_uri(), timeout_ms=250)
    assert store.value() == "[1]"
    own_redis.kill()
    store.await_status("unavailable", 1)
    status, _, milliseconds, _ = store.read()
    assert status == "unavailable" and milliseconds < 50 * PATIENCE, "at once"
    assert store.ping()[0] == "unavailable"
    time.sleep(3)
    own_redis.start()
    own_redis.call("SET", "odds:cricket:1", "[2]")
    watch = Stopwatch()
    store.await_status("ok")
    assert watch.seconds() < 5
    assert store.value() == "[2]" and store.facts()["reopened"] >= 1


def test_a_server_that_freezes_and_thaws(own_redis, open_store):
    store = open_store(own_redis.uri, timeout_ms=250)
    assert store.value() == "[1]"
    own_redis.freeze()
    status, _, milliseconds, _ = store.read()
    assert status == "timeout" and milliseconds <= 300 * PATIENCE
    store.await_status("timeout", 1)
    status, _, milliseconds, _ = store.read()
    assert status == "timeout" and milliseconds <= 50 * PATIENCE, "it is known by now"
    time.sleep(2)
    own_redis.thaw()
    watch = Stopwatch()
    store.await_status("ok")
    assert watch.seconds() < 5 and store.value() == "[1]"


def test_a_server_that_is_not_there_at_first(own_redis, open_store):
    own_redis.stop()
    store = open_store(own_redis.uri)
    assert store.status() == "unavailable"
    own_redis.start()
    store.await_status("ok")
    assert store.read()[:2] == ("ok", 0)


@pytest.mark.parametrize("direction", [servers.UP, servers.DOWN, None])
def test_a_black_hole(redis, open_store, direction):
    with servers.Proxy(("127.0.0.1", redis.port)) as proxy:
        store = open_store(f"redis://127.0.0.1:{proxy.port}/0", timeout_ms=250)
        store.read()
        proxy.swallow(direction)
        redis.call("SET", "odds:cricket:1", "[2]")
        watch = Stopwatch()
        store.await_status("pending", 1)
        assert watch.seconds() < 0.2 * PATIENCE, "half of timeout_ms"
        status, _, milliseconds, _ = store.read()
        assert status == "timeout" and milliseconds <= 300 * PATIENCE
        store.await_status("timeout", 1)
        proxy.heal()
        watch = Stopwatch()
        store.await_status("ok")
        assert watch.seconds() < 5 and store.value() == "[2]"


def test_a_black_hole_on_the_way_of_a_feed(redis, open_store):
    """A feed's connection has no heartbeats; a call that no one answers is what it knows by."""
    with servers.Proxy(("127.0.0.1", redis.port)) as proxy:
        store = open_store(f"redis://127.0.0.1:{proxy.port}/0", timeout_ms=400)
        assert store.ask("publish cricket 1 [2]") == "publish ok "
        proxy.links[-1].swallow()
        watch = Stopwatch()
        assert store.ask("publish cricket 1 [3]").startswith("publish timeout")
        assert watch.elapsed() > 9 and watch.seconds() < 11 * PATIENCE, "the deadline of a feed"
        eventually(lambda: store.ask("publish cricket 1 [4]") == "publish ok ", 3)
        assert store.value() == "[4]"


@pytest.mark.parametrize("size", [150_000, 240_000, 260_000, 500_000, 3_000_000])
def test_what_a_slow_server_takes_in_pieces_is_written_to_the_end(own_redis, open_store, size):
    """The last of it too, which nothing else on a feed's connection would push on."""
    store = open_store(own_redis.uri)
    assert store.ask("publish cricket 1 [2]") == "publish ok ", "it is connected"
    own_redis.freeze()
    thaw = threading.Timer(0.5, own_redis.thaw)
    thaw.start()
    watch = Stopwatch()
    assert store.ask(f"publish cricket 1 [{'3' * size}]") == "publish ok "
    thaw.join()
    assert watch.seconds() < 5, "not by its deadline"
    assert own_redis.call("STRLEN", "odds:cricket:1") == size + 2


def test_connections_that_are_reset_again_and_again(redis, open_store):
    with servers.Proxy(("127.0.0.1", redis.port)) as proxy:
        store = open_store(f"redis://127.0.0.1:{proxy.port}/0", timeout_ms=2000)
        for number in range(20):
            redis.call("SET", "odds:cricket:1", f"[{number}]")
            proxy.cut()
            assert store.read()[0] in ("ok", "unavailable")
            eventually(lambda: store.odds_version() is None or store.value() == f"[{number}]")
        store.await_status("ok")
        assert store.value() == "[19]"
        proxy.refuse()
        store.await_status("unavailable", 1)
        assert store.read()[0] == "unavailable"
        proxy.heal()
        store.await_status("ok", 5)


def kill_connections(redis):
    """All but the one that says so; the tests' own is made again when that is seen."""
    with redis.connect() as connection:
        connection.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    with contextlib.suppress(OSError):
        redis.call("PING")


def test_connections_that_the_server_kills(redis, open_store):
    store = open_store(redis.uri, timeout_ms=2000)
    for number in range(10):
        kill_connections(redis)
        redis.call("SET", "odds:cricket:1", f"[{number}]")
        eventually(lambda: store.read()[::3] == ("ok", f"[{number}]"))
    store.await_status("ok")


def test_after_an_outage_no_one_is_run_over(own_redis, open_store):
    store = open_store(own_redis.uri, timeout_ms=2000)
    store.read()
    own_redis.freeze()
    herd = threading.Thread(target=lambda: results.append(store.ask("herd 20000 cricket 1")))
    results = []
    herd.start()
    time.sleep(0.5)
    own_redis.thaw()
    herd.join()
    counts = dict(part.split("=") for part in results[0].split()[1:])
    assert set(counts) <= {"ok", "full"} and int(counts["ok"]) + int(counts.get("full", 0)) == 20000
    assert int(counts["ok"]) >= 4096, counts
    assert store.value() == "[1]"


# ---- names ----------------------------------------------------------------------------------------------

def test_a_name_that_is_found_late_is_found_all_the_same(redis, open_store, names):
    """No one waits for longer than usual; and it is not asked for again and again, which would never end."""
    names.set(slow_name=(4.5, "127.0.0.1"))
    store = open_store(f"redis://slow-name:{redis.port}/0", timeout_ms=250, names=names)
    assert store.status() == "timeout"
    eventually(lambda: "address of slow-name is not found in time" in store.log_text())
    status, _, milliseconds, _ = store.read()
    assert status == "timeout" and milliseconds < 50 * PATIENCE, "at once"
    store.await_status("ok", 3)
    assert store.value() == "[1]" and names.lookups() == 1


def test_a_name_that_is_found_late_when_the_connection_is_lost(own_redis, open_store, names):
    names.set(slow_name=(0, "127.0.0.1"))
    store = open_store(f"redis://slow-name:{own_redis.port}/0", timeout_ms=250, names=names)
    assert store.value() == "[1]"
    names.set(slow_name=(3, "127.0.0.1"))
    kill_connections(own_redis)
    store.await_status("timeout", 2)
    store.await_status("ok", 5)
    assert store.value() == "[1]" and names.lookups() == 2


def test_a_name_that_is_not_found_is_looked_up_again(redis, open_store, names):
    names.set(slow_name=(0,))
    store = open_store(f"redis://slow-name:{redis.port}/0", timeout_ms=250, names=names)
    assert store.status() == "unavailable"
    assert "address of slow-name cannot be found" in " ".join(store.ping())
    names.set(slow_name=(0, "127.0.0.1"))
    store.await_status("ok")
    assert store.value() == "[1]" and names.lookups() >= 2


def test_the_end_does_not_wait_for_a_name(open_store, names):
    names.set(slow_name=(60, "127.0.0.1"), slow_sentinel=(60, "127.0.0.1"))
    stores = [open_store(uri, timeout_ms=250, names=names)
              for uri in ("redis://slow-name:1/0", "redis+sentinel://slow-sentinel:1/croupier/0")]
    assert names.lookups() == 2
    for store in stores:
        watch = Stopwatch()
        store.close()
        assert watch.seconds() < 2 * PATIENCE


@pytest.mark.parametrize("others", [["127.0.0.3"], ["127.0.0.3", "127.0.0.4", "127.0.0.5"], ["0100::1"]])
def test_a_name_that_leads_elsewhere_first(redis, open_store, names, others):
    names.set(many=(0, *others, "127.0.0.1"))
    store = open_store(f"redis://many:{redis.port}/0", timeout_ms=250, names=names)
    assert store.status() == "ok", store.log_text()
    assert store.value() == "[1]" and names.lookups() == 1
    assert "cannot be used" not in store.log_text()


def test_a_name_that_leads_first_to_where_no_one_answers(redis, open_store, names):
    with contextlib.closing(socket.create_server(("127.0.0.2", redis.port))):
        names.set(many=(0, "127.0.0.2", "127.0.0.1"))
        store = open_store(f"redis://many:{redis.port}/0", timeout_ms=250, names=names)
        assert store.status() == "ok" and names.lookups() == 1


def test_what_a_server_says_tells_more_than_that_there_is_none_elsewhere(fake, open_store, names):
    fake.errors["PING"] = "NOAUTH Authentication required."
    names.set(many=(0, "127.0.0.3", "127.0.0.1", "127.0.0.4"))
    store = open_store(f"redis://many:{fake.port}/0", timeout_ms=250, names=names)
    assert store.status() == "unavailable" and "wants a password" in " ".join(store.ping())
    time.sleep(1)
    assert len(fake.accept_times) <= 20, "between two rounds there is a rest"


def test_sentinels_whose_names_are_found_late(sentinel, open_store, names):
    sentinel.master.call("SET", "odds:cricket:1", "[1]")
    hosts = [f"slow-{i}:{one.port}" for i, one in enumerate(sentinel.sentinels)]
    names.set(slow_0=(4, "127.0.0.3", "127.0.0.1"), slow_1=(4, "127.0.0.1"), slow_2=(4, "127.0.0.1"))
    store = open_store(f"redis+sentinel://{','.join(hosts)}/croupier/0", timeout_ms=250, names=names)
    store.await_status("timeout", 1)
    store.await_status("ok", 5)
    assert store.value() == "[1]" and names.lookups() == 3


def test_a_command_waits_for_a_name_that_is_found_late(redis, names):
    names.set(slow_name=(4, "127.0.0.1"))
    done = subprocess.run([os.environ["CROUPIER_BIN"], "feed", "interest", "cricket"], capture_output=True,
                          env={**names.environment(), "CROUPIER_ODDS_STORE": f"redis://slow-name:{redis.port}/0"})
    assert done.returncode == 0, done.stderr


# ---- users -----------------------------------------------------------------------------------------------

def documented_rules():
    """What docs/operations.md says that the server's user needs."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()
    return re.search(r"^user croupier on >PASSWORD (.*)$", text, re.MULTILINE)[1]


def test_a_user_with_no_more_rights_than_needed(open_store):
    with servers.Redis(password="other", users={"croupier": ">s3cret/@:%? " + documented_rules()}) as redis:
        redis.call("SET", "odds:cricket:1", "[1]")
        secret = "s3cret%2F%40%3A%25%3F"
        for uri in (f"redis://croupier:{secret}@127.0.0.1:{redis.port}/2",
                    f"unix://croupier:{secret}@{redis.socket}?db=2"):
            store = open_store(uri)
            assert store.status() == "ok", store.log_text()
            redis.call("SELECT", "2"), redis.call("SET", "odds:cricket:1", "[2]")
            assert store.value() == "[2]"
            store.ask("note cricket 1")
            eventually(lambda: redis.call("ZSCORE", "interest:cricket", "1") is not None)
            redis.call("DEL", "interest:cricket")
            assert redis.cli("ACL", "DRYRUN", "croupier", "UNLINK", "odds:cricket:1") != "OK"
            assert "s3cret" not in store.log_text()
        denied = open_store(f"redis://croupier:wrong@127.0.0.1:{redis.port}/0")
        assert denied.status() == "unavailable" and "wrong" not in denied.log_text()


@pytest.fixture(scope="module")
def with_user():
    """A server with a user, and the rules that the user is to have."""
    with servers.Redis(password="other", users={"croupier": ">secret"}) as redis:
        def permit(rules):
            redis.call("ACL", "SETUSER", "croupier", "reset", "on", ">secret", *rules)
            redis.call("CLIENT", "KILL", "USER", "croupier")
        yield f"redis://croupier:secret@127.0.0.1:{redis.port}/0", permit


READING = ["+watch", "+multi", "+exec", "+get", "+getrange", "+pttl", "~catalog:*", "~odds:*"]
WRITING = ["+zadd", "+zremrangebyscore", "+eval", "+time", "+set", "~interest:*", "~rate:*"]


@pytest.mark.parametrize("rule", READING + WRITING)
def test_a_right_that_is_missing_is_named(with_user, open_store, rule):
    uri, permit = with_user
    rules = documented_rules().split()
    permit([one for one in rules if one != rule])
    store = open_store(uri, timeout_ms=2000)
    eventually(lambda: "may not do all that serving needs" in store.log_text())
    assert f"the user lacks rights: {rule}\"" in store.log_text()
    assert store.ping("serve") == ["unavailable", f"the user lacks rights: {rule}"]
    assert store.ping()[0] == ("unavailable" if rule in READING else "ok")
    assert "secret" not in store.log_text()


def test_all_rights_that_are_missing_are_named_and_none_that_is_there(with_user, open_store):
    uri, permit = with_user
    rules = [one for one in documented_rules().split() if one not in ("~catalog:*", "~odds:*", "+pttl", "+time")]
    permit(rules + ["~catalog:cricket", "~odds:cricket:*", "~odds:tennis:*"])
    store = open_store(uri, timeout_ms=2000)
    status, text = store.ping("serve")
    sports = ["cricket", "football", "tennis", "horse-racing", "greyhound-racing"]
    missing = set(text.partition(": ")[2].split())
    assert {"+pttl", "+time", "~catalog:tennis", "~odds:football:*"} <= missing
    assert missing <= {"+pttl", "+time", *(f"~catalog:{one}" for one in sports if one != "cricket"),
                       *(f"~odds:{one}:*" for one in sports if one not in ("cricket", "tennis"))}, missing
    permit(documented_rules().split())
    eventually(lambda: store.ping("serve") == ["ok", ""])


def test_looking_at_rights_changes_nothing(redis, open_store):
    redis.call("ZADD", "interest:cricket", "1", "7")
    before = redis.call("DEBUG", "DIGEST")
    store = open_store(redis.uri)
    assert store.ping("serve") == ["ok", ""]
    assert redis.call("DEBUG", "DIGEST") == before


def test_a_server_without_memory_takes_no_more(own_redis, open_store):
    store = open_store(own_redis.uri)
    own_redis.call("CONFIG", "SET", "maxmemory", "1")
    assert store.ask("publish cricket 1 [3]").startswith("publish full cannot publish: the server has no memory")
    assert store.value() == "[1]"


# ---- Sentinel --------------------------------------------------------------------------------------------

@pytest.fixture
def sentinel():
    with servers.Sentinel(replicas=1, sentinels=3) as cluster:
        yield cluster


def test_a_failover_that_is_asked_for(sentinel, open_store):
    store = open_store(sentinel.uri, timeout_ms=500)
    sentinel.master.call("SET", "odds:cricket:1", "[1]")
    eventually(lambda: store.value() == "[1]")
    new = sentinel.fail_over()
    watch = Stopwatch()
    new.call("SET", "odds:cricket:1", "[2]")
    eventually(lambda: store.read()[::3] == ("ok", "[2]"))
    assert watch.seconds() < 5, "the demoted master is left"
    store.await_status("ok")
    new.call("SET", "odds:cricket:1", "[3]")
    eventually(lambda: store.value() == "[3]")


@pytest.mark.parametrize("how", ["kill", "freeze"])
def test_a_failover_because_the_master_is_gone(sentinel, open_store, how):
    store = open_store(sentinel.uri, timeout_ms=250)
    former = sentinel.master
    former.call("SET", "odds:cricket:1", "[1]")
    assert store.value() == "[1]"
    time.sleep(0.3)  # the replica has it
    getattr(former, how)()
    new = sentinel.await_failover(former)
    watch = Stopwatch()
    store.await_status("ok")
    assert watch.seconds() < 5
    assert store.value() == "[1]"
    new.call("SET", "odds:cricket:1", "[2]")
    eventually(lambda: store.value() == "[2]")
    if how == "freeze":
        former.thaw()
        time.sleep(1)
        assert store.value() == "[2]"


def test_a_master_that_does_not_know_yet_that_it_was_replaced_is_left(sentinel, open_store):
    """The sentinels and the feed are on one side of a split, the former master and this instance on the other:
    only the sentinels' message tells."""
    store = open_store(sentinel.uri, timeout_ms=500)
    former = sentinel.master
    former.call("SET", "odds:cricket:1", "[1]")
    assert store.value() == "[1]"
    time.sleep(0.3)
    # The former master answers this instance, and no one else.
    former.freeze()
    new = sentinel.await_failover(former)
    new.call("SET", "odds:cricket:1", "[2]")
    former.thaw()
    watch = Stopwatch()
    eventually(lambda: store.read()[::3] == ("ok", "[2]"))
    assert watch.seconds() < 5


def test_sentinels_that_are_gone_do_no_harm_while_the_master_works(sentinel, open_store):
    store = open_store(sentinel.uri, timeout_ms=250)
    sentinel.master.call("SET", "odds:cricket:1", "[1]")
    master = sentinel.master
    eventually(lambda: store.value() == "[1]")
    for one in sentinel.sentinels[:2]:
        one.kill()
    time.sleep(3)
    assert store.status() == "ok" and store.value() == "[1]"
    again = open_store(sentinel.uri, timeout_ms=250)
    again.await_status("ok")
    sentinel.sentinels[2].kill()
    time.sleep(2)
    assert store.status() == "ok" and store.value() == "[1]" and store.facts()["reopened"] == 0
    master.call("SET", "odds:cricket:1", "[2]")
    eventually(lambda: store.value() == "[2]")
    no_one = open_store(sentinel.uri, timeout_ms=250)
    assert no_one.status() == "unavailable" and "sentinel at 127.0.0.1" in " ".join(no_one.ping())


def test_a_service_that_no_sentinel_knows(sentinel, open_store):
    store = open_store(sentinel.uri.replace("/croupier/", "/no_one/"))
    assert store.status() == "unavailable"
    assert "knows no master" in " ".join(store.ping())


def test_a_sentinel_that_may_not_report_failovers_is_asked_again_and_again(own_redis, open_store):
    """By a rule that permits no channels. A failover that leaves the former master alive shows nowhere else."""
    with servers.Sentinel(replicas=0, sentinels=1) as cluster:
        [sentinel] = cluster.sentinels
        sentinel.call("ACL", "SETUSER", "default", "on", "nopass", "~*", "resetchannels", "+@all")
        cluster.master.call("SET", "odds:cricket:1", "[0]")
        store = open_store(cluster.uri)
        assert store.value() == "[0]"
        time.sleep(3)
        assert store.status() == "ok" and store.facts()["reopened"] == 0
        assert store.log_text().count("a sentinel refuses to report failovers") == 1
        assert "NOPERM" not in store.log_text() and "permissions" not in store.log_text()
        sentinel.call("SENTINEL", "REMOVE", "croupier")
        sentinel.call("SENTINEL", "MONITOR", "croupier", "127.0.0.1", own_redis.port, "1")
        eventually(lambda: store.read()[3] == "[1]", 5)
        sentinel.call("ACL", "SETUSER", "default", "&+switch-master")
        eventually(lambda: b" sub=1 " in sentinel.call("CLIENT", "LIST"), 5)


def test_a_sentinel_without_a_password_among_those_with_one(fake, open_store):
    """Once one had wanted it, all were given it; and one that has none refuses that."""
    question = "SENTINEL GET-MASTER-ADDR-BY-NAME"
    with FakeRedis() as closed, FakeRedis() as open_to_all:
        closed.errors.update({question: "NOAUTH Authentication required.", "AUTH": "WRONGPASS invalid password"})
        open_to_all.errors["AUTH"] = "ERR AUTH <password> called without any password configured"
        open_to_all.raw[question] = array(bulk("127.0.0.1"), bulk(str(fake.port)))
        hosts = ",".join(f"127.0.0.1:{one.port}" for one in (closed, open_to_all))
        store = open_store(f"redis+sentinel://:secret@{hosts}/croupier/0")
        assert store.status() == "ok", store.log_text()
        assert store.value() == "[1]"
        assert closed.count("AUTH", "secret") == 1 and open_to_all.count("AUTH") == 0


# ---- TLS -------------------------------------------------------------------------------------------------

@pytest.fixture
def with_tls(tmp_path):
    """A server, its port for TLS, and the certificate to trust."""
    certificate, key = servers.make_certificate(tmp_path, "server", "IP:127.0.0.1,DNS:localhost")
    port = servers.free_port()
    with servers.Redis(settings={"tls-port": port, "tls-cert-file": certificate, "tls-key-file": key,
                                 "tls-ca-cert-file": certificate, "tls-auth-clients": "no"}) as server:
        server.call("SET", "odds:cricket:1", "[1]")
        yield server, port, certificate


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_odds_by_tls(with_tls, open_store, host):
    server, port, certificate = with_tls
    store = open_store(f"rediss://{host}:{port}/0?tls_ca={certificate}", timeout_ms=2000)
    assert store.status() == "ok", store.log_text()
    assert store.value() == "[1]"
    large = "x" * (5 * 1024 * 1024)
    server.call("SET", "odds:cricket:2", large)
    status, _, _, text = store.read("cricket 2")
    assert status == "ok" and text == "x" * 60
    server.call("SET", "odds:cricket:1", "[2]")
    eventually(lambda: store.odds_version() is None)
    assert store.value() == "[2]"
    assert store.ask("publish cricket 1 " + "y" * 3000000) == "publish ok "
    assert server.cli("STRLEN", "odds:cricket:1") in (3000000, "3000000")
    results = store.ask("herd 300 cricket 2").split()
    assert results[0] == "herd" and store.status() in ("ok", "pending")
    server.kill()
    store.await_status("unavailable")
    server.start()
    store.await_status("ok")


def processor_seconds(process):
    """What it has taken of the processor so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_server_that_is_silent_in_the_handshake_costs_no_processor_time(with_tls, open_store):
    server, port, certificate = with_tls
    store = open_store(f"rediss://127.0.0.1:{port}/0?tls_ca={certificate}", timeout_ms=1000)
    assert store.value() == "[1]"
    server.freeze()
    store.await_status("timeout", 5)
    before = processor_seconds(store.process)
    time.sleep(2)
    assert processor_seconds(store.process) - before < 0.5
    server.thaw()
    store.await_status("ok", 5)
    assert store.value() == "[1]"


def test_a_server_that_is_not_who_it_should_be(with_tls, open_store, tmp_path):
    server, port, certificate = with_tls
    other, _ = servers.make_certificate(tmp_path, "other", "IP:127.0.0.1")
    stores = [open_store(f"rediss://127.0.0.1:{port}/0", timeout_ms=2000),  # not trusted by the system
              open_store(f"rediss://127.0.0.1:{port}/0?tls_ca={other}", timeout_ms=2000),
              open_store(f"rediss://127.0.0.2:{port}/0?tls_ca={certificate}", timeout_ms=2000),  # another name
              open_store(f"rediss://127.0.0.1:{server.port}/0?tls_ca={certificate}", timeout_ms=2000)]  # no TLS
    for store in stores:
        eventually(lambda: store.status() in ("unavailable", "timeout"))
        assert store.read()[0] in ("unavailable", "timeout")
    wrong = Store(f"rediss://127.0.0.1:{port}/0?tls_ca=/nowhere.pem")
    assert "certificates to trust cannot be read: /nowhere.pem" in wrong.first
