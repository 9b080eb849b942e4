"""What tests rely on without showing it: that servers end, and that the proxy spoils the way as it was told (servers.py)."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from servers import DOWN, UP, Postgres, Proxy, Redis, RedisConnection, ServerError, Stopwatch, free_port


def await_true(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, condition
        time.sleep(0.02)


def running_below(directory):
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            place = os.readlink(f"/proc/{entry}/cwd")
        except OSError:
            continue
        if place.startswith(directory):
            found.append(int(entry))
    return found


def test_a_port_given_out_stays_its_callers(monkeypatch):
    port = free_port()
    again = iter([port, port])  # what chance would offer next

    class Chance:
        def randrange(self, *_):
            return next(again)

    monkeypatch.setattr("random.SystemRandom", Chance)
    with pytest.raises(StopIteration):
        free_port()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))  # its caller's own server gets it


# ---- the proxy ----

@pytest.fixture(scope="module")
def redis():
    with Redis() as server:
        yield server


@pytest.fixture
def proxied(redis):
    with Proxy(("127.0.0.1", redis.port)) as proxy:
        yield proxy


def connect(proxy, timeout=60.0):
    return RedisConnection(("127.0.0.1", proxy.port), timeout)


def test_the_proxy_passes_on_what_comes_however_much(proxied):
    with connect(proxied) as connection:
        large = os.urandom(8 << 20)
        assert connection.call("SET", "large", large) == b"OK"
        assert connection.call("GET", "large") == large
        assert len(proxied.links) == 1
    await_true(lambda: not proxied.links)


def test_a_proxy_that_is_busy_does_not_end_before_it_was_told_in_full():
    proxy = Proxy(("127.0.0.1", free_port()))
    writer = proxy.wake_writer

    class Slow:
        def send(self, data):
            writer.send(data)  # as if a client had woken the thread
            time.sleep(0.1)
            writer.send(data)

        def close(self):
            writer.close()

    proxy.wake_writer = Slow()
    proxy.close()


def test_the_proxy_delays(proxied):
    with connect(proxied) as connection:
        proxied.delay(0.15, UP)
        proxied.delay(0.15, DOWN)
        before = time.monotonic()
        assert connection.call("PING") == b"PONG"
        assert 0.3 <= time.monotonic() - before
        proxied.heal()
        watch = Stopwatch()
        connection.call("PING")
        assert watch.seconds() < 0.15


@pytest.mark.parametrize("direction", [UP, DOWN, None])
def test_the_proxy_swallows(proxied, redis, direction):
    redis.call("SET", "swallowed", "before")
    with connect(proxied) as connection:
        connection.call("PING")
        connection.socket.settimeout(0.2)
        proxied.swallow(direction)
        with pytest.raises(TimeoutError):
            connection.call("SET", "swallowed", "after")
        with connect(proxied, 0.2) as another, pytest.raises(TimeoutError):
            another.call("PING")
        assert redis.call("GET", "swallowed") == (b"after" if direction == DOWN else b"before")
    proxied.heal()
    with connect(proxied) as connection:
        assert connection.call("PING") == b"PONG"


def test_the_proxy_swallows_from_one_connection_alone(proxied):
    with connect(proxied) as one, connect(proxied) as other:
        one.call("PING")
        other.call("PING")
        one.socket.settimeout(0.2)
        proxied.links[0].swallow()
        assert other.call("PING") == b"PONG"
        with pytest.raises(TimeoutError):
            one.call("PING")


def test_the_proxy_resets_and_takes_new_connections(proxied):
    with connect(proxied) as connection:
        connection.call("PING")
        proxied.cut()
        with pytest.raises(ConnectionResetError):
            connection.call("PING")
            connection.call("PING")
    with connect(proxied) as connection:
        assert connection.call("PING") == b"PONG"
    assert proxied.accepted == 2


def test_the_proxy_refuses_until_it_is_healed(proxied):
    port = proxied.port
    proxied.refuse()
    with pytest.raises(ConnectionRefusedError):
        connect(proxied)
    proxied.heal()
    assert proxied.port == port
    with connect(proxied) as connection:
        assert connection.call("PING") == b"PONG"


def test_the_proxy_resets_who_comes_while_the_server_is_away():
    with Redis() as server, Proxy(("127.0.0.1", server.port)) as proxy:
        server.kill()
        with pytest.raises(ConnectionResetError):
            with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as client:
                client.recv(1)


# ---- how it all ends ----

HOLDER = """
import sys
sys.path.insert(0, sys.argv[1])
from servers import Postgres, Redis
redis, postgres = Redis(), Postgres()
postgres.freeze()
print(redis.directory.parent, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, None])
def test_nothing_survives_the_test(number):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(Path(__file__).parent)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    directory = holder.stdout.readline().strip()
    assert len(running_below(directory)) > 2
    if number:
        holder.send_signal(number)
    holder.communicate()
    await_true(lambda: not os.path.exists(directory))
    assert not running_below(directory)


def test_databases_are_made_and_dropped_in_one_session_that_goes_on_after_a_refusal():
    with Postgres(shared=True) as server:
        name = server.create_database()
        for _ in range(2):
            with pytest.raises(ServerError, match="already exists"):
                server.create_database(name)
        server.sql("CREATE TABLE kept (number int)", name)
        copy = server.create_database(template=name)
        assert server.sql("SELECT count(*) FROM kept", copy) == "0"
        server.drop_database(name)
        assert server.sql("SELECT datname FROM pg_database WHERE datname LIKE 'test%'") == copy
        # The session that asked `copy` has been told that it is over, and may be on its way out.
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        until = time.monotonic() + 60
        while server.sql(sessions) != "2" and time.monotonic() < until:
            time.sleep(0.01)
        assert server.sql(sessions) == "2"
