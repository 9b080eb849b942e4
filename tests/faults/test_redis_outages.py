"""The Redis engine of the odds store: servers that cannot be used, that talk nonsense, or that fail."""

import concurrent.futures
import re
import sys
from pathlib import Path

import pytest

from fake_redis import bulk, integer, mapping
from redis_store import eventually

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import servers  # noqa: E402


# ---- servers that cannot be used -----------------------------------------------------------------------

def set_error(command, text):
    return lambda fake: fake.errors.update({command: text})


def refuse_hello(fake):
    fake.errors["HELLO"] = "ERR unknown command `HELLO`, with args beginning with: `3`, "


@pytest.mark.parametrize("prepare, reason", [
    (set_error("ROLE", "NOAUTH Authentication required."), "ROLE: NOAUTH Authentication required."),
    (set_error("AUTH", "WRONGPASS invalid username-password pair or user is disabled."), "AUTH: WRONGPASS invalid"),
    (set_error("AUTH", "ERR AUTH <password> called without any password configured for the default user."),
     "without any password configured"),
    (set_error("PING", "LOADING Redis is loading the dataset in memory"), "PING: LOADING Redis is loading"),
    (set_error("SELECT", "ERR DB index is out of range"), "SELECT: ERR DB index is out of range"),
    (set_error("CLIENT TRACKING", "LOADING Redis is loading the dataset in memory"), "CLIENT TRACKING: LOADING Redis"),
    (set_error("CLIENT TRACKINGINFO", "NOPERM this user has no permissions to run the 'client|trackinginfo' command"),
     "CLIENT TRACKINGINFO: NOPERM this user has no permissions"),
    (lambda fake: setattr(fake, "role", "slave"), "is a replica"),
    (lambda fake: setattr(fake, "mode", "cluster"), "Redis Cluster"),
    (lambda fake: setattr(fake, "version", "5.0.14"), "older than Redis 6.2"),
    (lambda fake: setattr(fake, "version", "6.0.16"), "older than Redis 6.2"),
    (lambda fake: (refuse_hello(fake), setattr(fake, "version", "5.0.14")), "older than Redis 6.2"),
    (lambda fake: (refuse_hello(fake), setattr(fake, "mode", "cluster")), "Redis Cluster"),
    (lambda fake: (refuse_hello(fake), fake.errors.update({"INFO": "NOPERM No permissions."})), "INFO server: NOPERM No perm"),
    (lambda fake: (refuse_hello(fake), fake.raw.update({"INFO": bulk("a proxy")})), "neither Redis nor Valkey"),
    (lambda fake: (refuse_hello(fake), setattr(fake, "role", "slave")), "is a replica"),
    (lambda fake: (refuse_hello(fake), setattr(fake, "role", "slave"), setattr(fake, "mode", "cluster")), "Redis Cluster"),
    (set_error("HELLO", "NOAUTH HELLO must be called with the client already authenticated"), "HELLO: NOAUTH"),
    (lambda fake: setattr(fake, "greeting", b"-ERR max number of clients reached\r\n"), "max number of clients"),
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


def test_a_server_that_has_its_maximum_of_clients_is_told_of_as_such(own_redis, open_store):
    """It says so before it has read anything: so the connection is reset right after, which must not drown it."""
    own_redis.call("CONFIG", "SET", "maxclients", "1")
    for _ in range(10):
        store = open_store(own_redis.tcp_uri())
        assert store.status() == "unavailable"
        assert "max number of clients reached" in " ".join(store.ping())
        eventually(lambda: store.log)
        assert {line.rpartition(": ")[2] for line in store.log} == {'ERR max number of clients reached"\n'}


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
    eventually(lambda: store.read()[0] == "ok")  # the connection was lost over it, so it has a pause
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
    eventually(lambda: len(fake.accept_times) >= 8)
    rests = [0.025 * 2 ** doublings / 2 for doublings in range(5)]  # each at least half of its most
    assert fake.accept_times[7] - fake.accept_times[0] >= sum(rests)


# ---- outages of real servers ---------------------------------------------------------------------------

@pytest.mark.parametrize("stop, start, status", [("kill", "start", "unavailable"), ("freeze", "thaw", "timeout")])
def test_a_server_that_goes_and_comes_back(own_redis, open_store, stop, start, status):
    store = open_store(own_redis.tcp_uri(), timeout_ms=1000)
    assert store.value() == "[1]"
    getattr(own_redis, stop)()
    store.await_status(status)
    assert store.read()[0] == status and store.ping()[0] == status
    getattr(own_redis, start)()
    own_redis.call("SET", "odds:cricket:1", "[2]")
    eventually(lambda: store.read()[::3] == ("ok", "[2]"))
    assert store.facts()["reopened"] >= 1


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
        store = open_store(f"redis://127.0.0.1:{proxy.port}/0", timeout_ms=1000)
        store.read()
        proxy.swallow(direction)
        redis.call("SET", "odds:cricket:1", "[2]")
        store.await_status("timeout")
        assert store.read()[0] == "timeout"
        proxy.heal()
        store.await_status("ok")
        assert store.value() == "[2]"


def test_a_black_hole_on_the_way_of_a_feed(redis, open_store):
    """A feed's connection has no heartbeats; a call that no one answers is what it knows by."""
    with servers.Proxy(("127.0.0.1", redis.port)) as proxy:
        store = open_store(f"redis://127.0.0.1:{proxy.port}/0", timeout_ms=1000)
        assert store.ask("publish cricket 1 [2]") == "publish ok "
        proxy.links[-1].swallow()
        assert re.match("publish timeout .*; Redis may take it all the same", store.ask("publish cricket 1 [3]"))
        eventually(lambda: store.ask("publish cricket 1 [4]") == "publish ok ")
        assert store.value() == "[4]"


@pytest.mark.parametrize("size", [150_000, 260_000, 3_000_000])
def test_what_a_slow_server_takes_in_pieces_is_written_to_the_end(own_redis, open_store, size):
    """The last of it too, which nothing else on a feed's connection would push on."""
    store = open_store(own_redis.uri, timeout_ms=30000)
    assert store.ask("publish cricket 1 [2]") == "publish ok ", "it is connected"
    own_redis.freeze()
    before = store.written()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        published = pool.submit(store.ask, f"publish cricket 1 [{'3' * size}]")
        eventually(lambda: store.written() > before + 100_000)  # as much as the kernel keeps for a frozen process
        own_redis.thaw()
        assert published.result() == "publish ok "
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
        store.await_status("unavailable")
        assert store.read()[0] == "unavailable"
        proxy.heal()
        store.await_status("ok")


def test_after_an_outage_no_one_is_run_over(own_redis, open_store):
    store = open_store(own_redis.uri, timeout_ms=30000)
    store.read()
    own_redis.freeze()
    before = store.written()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        herd = pool.submit(store.ask, "herd 20000 cricket 1")
        eventually(lambda: store.written() > before + 5_000)  # many of them have been sent
        own_redis.thaw()
        counts = dict(part.split("=") for part in herd.result().split()[1:])
    assert set(counts) <= {"ok", "full"} and int(counts["ok"]) + int(counts.get("full", 0)) == 20000
    assert int(counts["ok"]) >= 4096, counts
    assert store.value() == "[1]"
