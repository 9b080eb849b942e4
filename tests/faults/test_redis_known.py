"""The Redis engine of the odds store: what it knows of the values, in whatever order changes come.

A fake server makes orderings that a real one makes once in a million; the rest is asked of real servers.
"""

import os
import re
import signal
import time

import pytest

from fake_redis import array, bulk, invalidation
from redis_store import eventually


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
        for words in [["MULTI"], *transaction, ["EXEC"]]:
            redis.call(*words)
        # The swap before this one may be noticed twice, so the stamp may also move before this one is noticed.
        eventually(lambda: store.stamp() != before and store.versions() == (None, None))
        assert store.value() == text
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
        for _ in range(2):
            for lifetime in (0.8, 8):  # a busy machine may not look before the end of the first
                began = time.monotonic()
                redis.call("SET", "odds:cricket:1", "[1]", "PX", str(int(lifetime * 1000)))
                expires = time.monotonic() + lifetime  # at the latest
                eventually(lambda: store.odds_version() is None)
                _, version, _, _ = store.read()
                before, known = store.stamp(), store.odds_version()
                if time.monotonic() < began + lifetime:
                    break
            assert known == version
            time.sleep(max(0.0, expires + 0.005 - time.monotonic()))
            assert store.odds_version() is None, "it has expired, though no one said so"
            assert store.stamp() != before
            assert store.read()[:2] == ("ok", 0)
    finally:
        redis.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")


def unusable(store):
    """(key, the server's first word of why) as they were logged."""
    return re.findall(r'a key of the odds store cannot be used key=(\S+) reason="\w+: (\w+)', store.log_text())


def test_a_value_of_another_type_is_malformed_alone_and_logged_once(redis, open_store):
    store = open_store(redis.uri, timeout_ms=4000)
    for turn in range(2):
        redis.call("LPUSH", "odds:cricket:2", "x")
        eventually(lambda: store.read("cricket 2")[0] == "malformed")
        assert store.odds_version("cricket 2") not in (None, 0), "it need not be asked for again"
    assert store.value() == "[1]"
    redis.call("DEL", "odds:cricket:2"), redis.call("SET", "odds:cricket:2", "[2]")
    eventually(lambda: store.odds_version("cricket 2") is None)
    assert store.value("cricket 2") == "[2]"
    eventually(lambda: unusable(store))  # the log is written by a thread of its own
    assert unusable(store) == [("odds:cricket:2", "WRONGTYPE")]
    redis.call("DEL", "odds:cricket:2"), redis.call("SADD", "odds:cricket:2", "x")
    eventually(lambda: store.read("cricket 2")[0] == "malformed")
    eventually(lambda: unusable(store) == [("odds:cricket:2", "WRONGTYPE")] * 2)
    assert store.facts()["reopened"] == 0


@pytest.mark.parametrize("size", [32 * 1024 * 1024 + 1, 100 * 1024 * 1024])
def test_a_value_that_is_too_large_is_malformed_alone(redis, open_store, size):
    store = open_store(redis.uri, timeout_ms=10000)
    redis.call("SETRANGE", "odds:cricket:2", str(size - 1), "x")
    tags = [store.start_read(what) for what in ("cricket 2", "cricket 1", "cricket 2", "cricket")]
    statuses = [store.result(tag)[0] for tag in tags]
    assert statuses == ["malformed", "ok", "malformed", "ok"]
    assert store.value() == "[1]" and store.facts()["reopened"] == 0
    eventually(lambda: unusable(store) == [("odds:cricket:2", "TOOLARGE")])


def test_interest_in_a_sport_whose_key_is_a_string_is_logged_and_others_are_recorded(redis, open_store):
    redis.call("SET", "interest:tennis", "x")
    store = open_store(redis.uri, timeout_ms=4000)
    for event in range(3):
        for sport in ("tennis", "cricket"):
            store.ask(f"note {sport} {event + 1}")
        eventually(lambda: redis.call("ZSCORE", "interest:cricket", str(event + 1)) is not None)
    eventually(lambda: store.facts()["dropped"] == 3)
    assert store.facts()["written"] == 3
    logged = 'interest in events is not recorded sport=tennis reason="ZADD: WRONGTYPE '
    eventually(lambda: logged in store.log_text())
    assert store.log_text().count(logged) == 1
    redis.call("DEL", "interest:tennis")
    store.ask("note tennis 9")
    eventually(lambda: redis.call("ZSCORE", "interest:tennis", "9") is not None)


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


def test_a_value_whose_time_is_over_does_not_come_back_while_the_server_has_it(fake, open_store):
    """The server counts from later, or its clock was set back: whoever was told that the value is gone is not dealt it again."""
    fake.expiries["odds:cricket:1"] = 500
    store = open_store(fake.uri, timeout_ms=4000)
    assert store.value() == "[1]"
    fake.expiries["odds:cricket:1"] = 100000
    eventually(lambda: store.read()[:2] == ("ok", 0))
    assert [store.read()[:2] for _ in range(20)] == [("ok", 0)] * 20
    fake.invalidate("odds:cricket:1")
    eventually(lambda: store.read()[3] == "[1]")


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


def test_a_value_is_given_away_when_what_changed_with_it_is_known(fake, open_store):
    """Redis reports a transaction after the replies of the turn of its event loop in which it was carried out."""
    store = open_store(fake.uri, timeout_ms=4000)
    fake.values["odds:cricket:2"] = b"[1]"
    assert store.value("cricket 2") == "[1]" and store.odds_version("cricket 2") is not None
    fake.values["odds:cricket:1"] = b"[2]"
    fake.late = invalidation("odds:cricket:1", "odds:cricket:2")
    assert store.value() == "[2]" and store.odds_version("cricket 2") is None


def test_a_publication_is_over_when_the_servers_have_been_sent_the_word_of_it(fake, open_store):
    store, feed = open_store(fake.uri, timeout_ms=4000), open_store(fake.uri)
    assert store.value() == "[1]"
    fake.late = invalidation("odds:cricket:1")
    assert feed.ask("publish cricket 1 [2]") == "publish ok "
    assert fake.late == b""
    eventually(lambda: store.odds_version() is None)


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
    store = open_store(fake.uri, timeout_ms=4000)
    store.read()
    fake.hold()
    store.await_status("pending")
    assert store.odds_version() is None, "nothing of what is in memory may be used"
    fake.values["odds:cricket:1"] = b"[2]"
    assert store.read()[0] in ("timeout", "ok")
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


def test_what_was_answered_while_the_process_slept_is_an_answer(fake, open_store):
    """Its deadline has passed by the time that it can look; but so has the server's answer come."""
    store = open_store(fake.uri, timeout_ms=2000)
    for number in range(2):
        asked = fake.count("GET", "odds:cricket:1")
        fake.hold()
        tag = store.start_read()
        eventually(lambda: fake.count("GET", "odds:cricket:1") > asked)
        os.kill(store.process.pid, signal.SIGSTOP)
        fake.release()
        time.sleep(2.2)  # longer than its deadline
        os.kill(store.process.pid, signal.SIGCONT)
        assert store.result(tag)[::3] == ("ok", "[1]"), number
        store.await_status("ok")
    assert store.facts()["reopened"] == 0
