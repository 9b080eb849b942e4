"""What tests rely on when they start servers of their own: see servers.py."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from servers import DOWN, UP, Postgres, Proxy, Redis, RedisConnection, RedisReply, Sentinel, ServerError, Stopwatch, free_port

WRAPPER = Path(__file__).with_name("servers.py")


def await_true(condition, seconds=20):
    deadline = time.monotonic() + seconds
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


# ---- Redis ----

@pytest.fixture(scope="module")
def redis():
    with Redis() as server:
        yield server


def test_redis_answers_on_its_socket_and_on_its_port(redis):
    assert redis.cli("SET", "name", "value") == "OK"
    with RedisConnection(("127.0.0.1", redis.port)) as connection:
        assert connection.call("GET", "name") == b"value"
        assert connection.call("GET", "nothing") is None
        with pytest.raises(RedisReply, match="WRONGTYPE"):
            connection.call("ZSCORE", "name", "x")
    assert redis.uri == f"unix:{redis.directory}/redis.sock"
    assert redis.tcp_uri(3) == f"redis://127.0.0.1:{redis.port}/3"
    assert redis.next_database() != redis.next_database()


def test_redis_keeps_passwords_and_users():
    with Redis(password="hidden", users={"feed": ">secret ~odds:* +set +get"}) as server:
        with RedisConnection(server.socket) as stranger:
            with pytest.raises(RedisReply, match="NOAUTH"):
                stranger.call("GET", "x")
            stranger.call("AUTH", "feed", "secret")
            assert stranger.call("SET", "odds:a", "1") == b"OK"
            with pytest.raises(RedisReply, match="NOPERM"):
                stranger.call("SET", "other", "1")
        assert server.tcp_uri() == f"redis://:hidden@127.0.0.1:{server.port}/0"


def test_redis_stops_and_starts_where_it_was_and_forgets_unless_it_persists():
    for persistent in (False, True):
        with Redis(persistent=persistent) as server:
            port = server.port
            server.call("SET", "x", "1")
            server.restart()
            assert server.port == port and server.call("GET", "x") == (b"1" if persistent else None)
            server.kill()
            assert not server.running
            with pytest.raises(OSError):
                server.call("PING")
            server.start()
            assert server.cli("PING") == "PONG"


def test_a_frozen_redis_takes_connections_and_says_nothing(redis):
    redis.freeze()
    try:
        with RedisConnection(redis.socket, timeout=0.2) as connection:
            with pytest.raises(TimeoutError):
                connection.call("PING")
    finally:
        redis.thaw()
    assert redis.cli("PING") == "PONG"


def test_a_replica_follows(redis):
    with Redis(replica_of=redis) as replica:
        await_true(lambda: replica.info("replication")["master_link_status"] == "up")
        redis.call("SET", "followed", "yes")
        await_true(lambda: replica.call("GET", "followed") == b"yes")


def test_sentinels_name_another_master_when_the_first_is_gone():
    with Sentinel(replicas=1) as sentinel:
        first = sentinel.master
        first.call("SET", "x", "1")
        assert first.call("WAIT", 1, 5000) == 1
        first.kill()
        second = sentinel.await_failover(first)
        assert second is not first and second.call("GET", "x") == b"1"
        assert sentinel.uri.startswith("redis+sentinel://127.0.0.1:") and sentinel.uri.endswith("/croupier/0")


# ---- PostgreSQL ----

@pytest.fixture(scope="module")
def postgres():
    with Postgres(tcp=True, password="hidden") as server:
        yield server


def test_every_asker_gets_an_empty_database_of_its_own(postgres):
    one, other = postgres.create_database(), postgres.create_database()
    postgres.sql("CREATE TABLE t (n int)", one)
    with pytest.raises(ServerError, match='relation "t" does not exist'):
        postgres.sql("TABLE t", other)
    copy = postgres.create_database(template=one)
    assert postgres.sql("SELECT count(*) FROM t", copy) == "0"
    assert postgres.uri_of(one) == f"postgresql:///{one}?host={postgres.directory}&port={postgres.port}&user=postgres"
    assert postgres.uri != postgres.uri


def psql(uri, statement="SELECT 1"):
    return subprocess.run(["psql", "-XAtqw", uri, "-c", statement], capture_output=True, text=True)


def test_postgresql_answers_at_its_uris_and_wants_the_password_over_tcp(postgres):
    assert psql(postgres.uri).stdout == "1\n"
    uri = postgres.uri_of("postgres", tcp=True)
    assert psql(uri).stdout == "1\n"
    assert psql(uri.replace("hidden", "wrong")).returncode != 0


@pytest.mark.parametrize("end", [lambda server: server.stop("immediate"), Postgres.kill])
def test_what_was_committed_is_there_after_an_immediate_stop_and_after_a_kill(end):
    with Postgres(durable=True) as server:
        assert server.sql("SHOW fsync") == "on"
        server.sql("CREATE TABLE t (n int)")
        server.sql("INSERT INTO t VALUES (1)")
        end(server)
        assert psql(server.uri_of("postgres")).returncode != 0
        server.start()
        assert server.sql("TABLE t") == "1"


def test_a_frozen_postgresql_says_nothing_and_goes_on_when_thawed(postgres):
    asker = subprocess.Popen(["psql", "-XAtq", postgres.uri_of("postgres"), "-c", "SELECT pg_sleep(0.2), 7"],
                             stdout=subprocess.PIPE, text=True)
    await_true(lambda: "pg_sleep" in postgres.sql("SELECT query FROM pg_stat_activity WHERE pid <> pg_backend_pid()"))
    postgres.freeze()
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            asker.wait(0.6)
    finally:
        postgres.thaw()
    assert asker.communicate(timeout=20)[0] == "|7\n"


def test_backends_can_be_terminated(postgres):
    database = postgres.create_database()
    asker = subprocess.Popen(["psql", "-XAtq", postgres.uri_of(database), "-c", "SELECT pg_sleep(60)"],
                             stderr=subprocess.PIPE, text=True)
    await_true(lambda: postgres.terminate_backends(database) > 0)
    assert asker.communicate(timeout=20)[1] != "" and asker.returncode != 0


def test_a_standby_follows():
    with Postgres() as first, Postgres(standby_of=first) as standby:
        first.sql("CREATE TABLE t (n int)")
        await_true(lambda: standby.sql("SELECT to_regclass('t')") == "t")
        assert standby.sql("SELECT pg_is_in_recovery()") == "t"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to mount a small file system")
def test_a_small_disk_fills_up():
    try:
        server = Postgres(disk_megabytes=96, settings={"max_wal_size": "32MB", "min_wal_size": "32MB"})
    except PermissionError as refusal:
        pytest.skip(str(refusal))
    with server:
        disk = server.disk
        assert os.path.ismount(disk)
        # Unlogged: a log that cannot be extended would end the server, and be another error.
        with pytest.raises(ServerError, match="could not extend file|No space left on device"):
            server.sql("CREATE UNLOGGED TABLE t AS SELECT repeat('x', 1000) FROM generate_series(1, 200000)")
    assert not os.path.ismount(disk)


# ---- the proxy ----

@pytest.fixture
def proxied(redis):
    with Proxy(("127.0.0.1", redis.port)) as proxy:
        yield proxy


def connect(proxy, timeout=5.0):
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
    with connect(proxied, 0.2) as connection:
        connection.call("PING")
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
    with connect(proxied, 0.2) as one, connect(proxied) as other:
        one.call("PING")
        other.call("PING")
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
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(WRAPPER.parent)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    directory = holder.stdout.readline().strip()
    assert len(running_below(directory)) > 2
    if number:
        holder.send_signal(number)
    holder.communicate()
    await_true(lambda: not os.path.exists(directory))
    assert not running_below(directory)


def wrapped(servers, command):
    return subprocess.run([sys.executable, WRAPPER, *servers, "--", *command], capture_output=True, text=True, timeout=60)


def test_a_command_is_told_where_its_servers_are_and_its_status_is_handed_on():
    done = wrapped(["redis", "postgres"], ["sh", "-c", "echo $TEST_REDIS_URI $TEST_REDIS_TCP_URI; "
                                           "psql -XAtq $TEST_POSTGRES_URI -c 'SELECT 5'; "
                                           "psql -XAtq $TEST_POSTGRES_TCP_URI -c 'SELECT 6'; exit 7"])
    assert done.returncode == 7, done.stderr
    first, *others = done.stdout.splitlines()
    path = first.split()[0].removeprefix("unix:")
    assert path.endswith("/redis.sock") and "redis://127.0.0.1:" in first
    assert others == ["5", "6"]
    assert not os.path.exists(os.path.dirname(os.path.dirname(path)))


def test_the_wrapper_says_what_it_does_not_know():
    assert wrapped(["oracle"], ["true"]).returncode == 1
    assert wrapped([], []).returncode == 2
    assert wrapped(["redis"], ["sh", "-c", "kill -9 $$"]).returncode == 137
