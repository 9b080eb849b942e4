"""The Redis engine of the odds store on servers that refuse CLIENT TRACKING or HELLO 3: values are asked for."""

import random
import sys
import time
from pathlib import Path

import pytest

from redis_store import eventually

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import servers  # noqa: E402

ASKING = "the odds store does not report changes; values are asked for at each request"


def is_asking(store):
    return store.facts()["asks"] == 1 and store.facts()["connected"] == 1


def is_tracking(store):
    return store.facts()["asks"] == 0 and store.status() == "ok"


def let_track(redis, allowed):
    """As a service does when it is upgraded, or fails over to another release: it closes the connections."""
    redis.call("ACL", "SETUSER", "default", f"{'+' if allowed else '-'}client|tracking")
    redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


# ---- what is asked, and when ---------------------------------------------------------------------------

@pytest.mark.parametrize("settings", [servers.WITHOUT_TRACKING, servers.WITHOUT_HELLO], ids=["no tracking", "no HELLO"])
def test_every_read_has_what_was_published_before(settings, open_store):
    """By any writer, to any server: 0 stale of thousands."""
    with servers.Redis("secret", settings=settings) as redis:
        redis.call("SET", "catalog:cricket", "[]")
        stores = [open_store(redis.tcp_uri()) for _ in range(3)]
        eventually(lambda: all(is_asking(store) for store in stores))
        eventually(lambda: all(ASKING in store.log_text() and "mode=asking" in store.log_text() for store in stores))
        writer = redis.connect()
        for number in range(400):
            event = random.choice(["1", "2", "3"])
            if number % 4 == 0:
                assert stores[0].ask(f"publish cricket {event} [{number}]") == "publish ok "
            else:
                writer.call("SET", f"odds:cricket:{event}", f"[{number}]")
            tags = [(store, store.start_read(f"cricket {event}")) for store in stores for _ in range(2)]
            for store, tag in tags:
                assert store.result(tag)[3] == f"[{number}]"
        assert all(store.status() == "pending" and store.odds_version() is None for store in stores)
        writer.call("DEL", "odds:cricket:1")
        assert [store.read()[:2] for store in stores] == [("ok", 0)] * 3
        writer.close()


def test_the_same_bytes_keep_their_version(open_store):
    with servers.Redis(settings=servers.WITHOUT_TRACKING) as redis:
        redis.call("SET", "odds:cricket:1", "[1]")
        store = open_store(redis.uri)
        _, version, _, _ = store.read()
        redis.call("SET", "odds:cricket:1", "[1]")
        assert store.read()[1] == version != 0
        redis.call("SWAPDB", "0", "1")
        assert store.read()[1] == 0
        redis.call("SWAPDB", "0", "1")
        redis.call("SET", "odds:cricket:1", "[2]")
        assert store.read()[1] not in (0, version)
        assert store.facts()["reopened"] == 0


def test_a_value_that_expires_is_gone_and_a_sign_of_life_prolongs_it(open_store):
    with servers.Redis(settings=servers.WITHOUT_TRACKING) as redis:
        store = open_store(redis.uri)
        redis.call("SET", "odds:cricket:1", "[1]", "PX", "1500")
        redis.call("SET", "odds:cricket:2", "[2]", "PX", "1500")
        assert store.value() == "[1]"
        redis.call("PEXPIRE", "odds:cricket:1", "100000")
        time.sleep(1.5)
        assert store.read("cricket 2")[:2] == ("ok", 0) and store.value() == "[1]"


def test_a_right_that_is_missing_is_told(open_store):
    with servers.Redis(settings=servers.WITHOUT_TRACKING) as redis:
        store = open_store(redis.uri)
        assert store.ping("serve") == ["ok", ""]
        redis.call("ACL", "SETUSER", "default", "-zadd")
        assert store.ping("serve")[0] != "ok" and store.ping() == ["ok", ""]


def test_interest_is_written(open_store):
    with servers.Redis(settings=servers.WITHOUT_HELLO) as redis:
        store = open_store(redis.uri)
        assert store.ask("note cricket 1") == "note"
        eventually(lambda: redis.call("ZCARD", "interest:cricket") == 1)
        assert store.facts()["dropped"] == 0


# ---- from one mode to the other ------------------------------------------------------------------------

def test_a_connection_takes_tracking_when_its_server_allows_it(own_redis, open_store):
    store = open_store(own_redis.uri)
    eventually(lambda: is_tracking(store))
    for turn in range(1, 3):
        store.read()
        let_track(own_redis, False)
        own_redis.call("SET", "odds:cricket:1", f"[{turn}1]")
        eventually(lambda: is_asking(store))
        assert store.value() == f"[{turn}1]" and store.odds_version() is None
        let_track(own_redis, True)
        own_redis.call("SET", "odds:cricket:1", f"[{turn}2]")
        eventually(lambda: is_tracking(store))
        assert store.value() == f"[{turn}2]"
        eventually(lambda: store.read()[1] == store.odds_version())
        eventually(lambda: store.log_text().count(ASKING) == turn)


@pytest.mark.parametrize("allowed_first", [True, False])
def test_a_failover_between_a_server_that_tracks_and_one_that_does_not(own_redis, open_store, allowed_first):
    """The address leads to another server, which has the values of the one before."""
    with servers.Redis(replica_of=own_redis) as other, servers.Proxy(("127.0.0.1", own_redis.port)) as way:
        eventually(lambda: other.call("GET", "odds:cricket:1") == b"[1]")
        let_track(own_redis if not allowed_first else other, False)
        store = open_store(own_redis.tcp_uri(port=way.port))
        first, then = (is_tracking, is_asking) if allowed_first else (is_asking, is_tracking)
        eventually(lambda: first(store))
        assert store.value() == "[1]"
        other.call("REPLICAOF", "NO", "ONE")
        other.call("SET", "odds:cricket:1", "[2]")
        way.target = ("127.0.0.1", other.port)
        own_redis.call("REPLICAOF", "127.0.0.1", str(other.port))
        eventually(lambda: then(store))
        assert store.value() == "[2]"
        eventually(lambda: "the server is a replica now" in store.log_text())


# ---- outages -------------------------------------------------------------------------------------------

def test_a_server_that_falls_silent_is_noticed_without_a_request(own_redis, open_store):
    let_track(own_redis, False)
    store = open_store(own_redis.uri, timeout_ms=300)
    eventually(lambda: is_asking(store))
    own_redis.freeze()
    eventually(lambda: store.status() in ("timeout", "unavailable"))
    own_redis.thaw()
    eventually(lambda: store.status() == "pending" and is_asking(store))
    assert store.value() == "[1]" and store.log_text().count(ASKING) == 1


@pytest.mark.parametrize("command, text", [
    ("CLIENT TRACKING", "NOPERM this user has no permissions to run the 'client|tracking' command"),
    ("CLIENT TRACKING", "ERR unknown subcommand 'TRACKING'. Try CLIENT HELP."),
    ("CLIENT TRACKING", "ERR command is not allowed"),
    ("HELLO", "NOPROTO unsupported protocol version"),
    ("HELLO", "ERR unknown command `HELLO`, with args beginning with: `3`, "),
])
def test_what_counts_as_a_refusal(fake, open_store, command, text):
    fake.errors[command] = text
    store = open_store(fake.uri)
    eventually(lambda: is_asking(store))
    assert store.value() == "[1]"
    eventually(lambda: f'reason="{command}: ' in store.log_text())
    assert fake.count("INFO") == (1 if command == "HELLO" else 0), "heartbeats ask for the role alone"
