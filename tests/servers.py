#!/usr/bin/env python3
"""Real servers for tests: Redis or Valkey, Sentinel, PostgreSQL, and a proxy to spoil the way to them.

    with Redis() as redis, Postgres() as postgres:
        redis.uri, redis.tcp_uri(), redis.call("SET", "odds:cricket:1", "[]")
        postgres.create_database()          # the URI of a fresh, empty database

or, around a program that reads TEST_REDIS_URI and the like (see `environment_of`):

    python3 tests/servers.py redis postgres -- build/tests/stores/platform_contract postgresql

Every process that uses this module gets one directory in /tmp; all servers that it starts live below
that, each with a directory, a socket and a port of its own, so that any number of tests may run at once.
A guardian (a shell that waits for the end of a pipe) ends the servers and removes the directory when the
test process is gone, however it went: nothing survives. Standard library only, and nothing but loopback.

A server's life: made and started by its constructor; `stop`, `kill`, `freeze`, `thaw` and `start` as often
as a test likes (its data, port and socket stay); `remove` at the end, which `with` does.

TEST_REDIS_SERVER chooses between redis (the default) and valkey, or is the path of another redis-server.
TEST_POSTGRES_BIN is another directory of PostgreSQL's programs than the one that is found.
"""

import atexit
import contextlib
import ctypes
import glob
import hashlib
import itertools
import os
import pwd
import random
import re
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PATIENCE = 60.0  # seconds; a limit for servers that hang, not for slow ones
# Of long campaigns, each point of which says the same of another row, page or call, one in so many is tried. Runs under
# sanitizers set it: what they look for shows in a part of the points, and the plain runs have them all.
SAMPLE = int(os.environ.get("TEST_SAMPLE") or "1")


def sampled(points):
    """Those of a campaign's points that this run tries, spread over all of them; one at least when there are any."""
    return list(points)[::SAMPLE]


class ServerError(Exception):
    pass


def machine_lateness():
    """Seconds since the machine was started in which some thread waited for a processor or the disk (pressure stall
    information), or the host kept the processors from this machine (steal)."""
    stolen = int(Path("/proc/stat").read_text().split(None, 9)[8]) / os.sysconf("SC_CLK_TCK") / os.cpu_count()
    with contextlib.suppress(OSError):
        return stolen + sum(int(re.search(r"^some .*total=(\d+)", Path(f"/proc/pressure/{of}").read_text())[1])
                            for of in ("cpu", "io")) / 1e6
    return stolen + time.monotonic() / 2  # this kernel does not say: as if other processes took half of it


class Stopwatch:
    """For limits that hold beside busy processes, and are strict where there are none."""

    def __init__(self):
        self._began, self._late = time.monotonic(), machine_lateness()

    def elapsed(self):
        """Seconds since it was made: what must have passed at least."""
        return time.monotonic() - self._began

    def seconds(self):
        """Less those that the machine was late with: what may have passed at most."""
        return max(0.0, self.elapsed() - (machine_lateness() - self._late))


# ---- the directory and its guardian --------------------------------------------------------------------

# Ends whatever runs in the directory (each server's working directory is in it), then removes it. SIGQUIT
# first: PostgreSQL then removes its shared memory; SIGCONT lets what is frozen hear it.
GUARDIAN = r"""
read -r _
running() {
    for process in /proc/[0-9]*; do
        case "$(readlink "$process/cwd" 2>/dev/null)" in "$1"|"$1"/*) echo "${process#/proc/}" ;; esac
    done
}
signal=QUIT
for _ in 1 2 3 4 5 6 7 8 9 10; do
    found=$(running "$1")
    [ -n "$found" ] || break
    kill -s "$signal" $found 2>/dev/null
    kill -s CONT $found 2>/dev/null
    sleep 0.3
    signal=KILL
done
grep -F " $1/" /proc/mounts | while read -r _ mounted _; do umount -l "$mounted"; done
rm -rf "$1"
"""


class _Nest:
    """The directory of this process's servers."""

    def __init__(self):
        parent = tempfile.gettempdir()  # a socket's path has room for 107 bytes
        self.directory = Path(tempfile.mkdtemp(prefix="croupier-servers-", dir=parent if len(parent) < 40 else "/tmp"))
        self.directory.chmod(0o755)  # PostgreSQL, as another user, passes through it
        self.numbers = itertools.count(1)
        self.servers = []
        self.guardian = subprocess.Popen(["/bin/sh", "-c", GUARDIAN, "guardian", str(self.directory)],
                                         stdin=subprocess.PIPE, cwd="/", start_new_session=True)

    def make_directory(self, name):
        directory = self.directory / f"{name}-{next(self.numbers)}"
        directory.mkdir()
        return directory

    def close(self):
        for server in list(self.servers):
            with contextlib.suppress(Exception):
                server.remove()
        self.guardian.stdin.close()
        self.guardian.wait()


class Nests:
    """The one nest of a process, made when it is first needed (and again in a fork)."""

    lock = threading.Lock()
    nest = None
    owner = None

    @classmethod
    def get(cls):
        with cls.lock:
            if cls.owner != os.getpid():
                cls.nest, cls.owner = _Nest(), os.getpid()
                atexit.register(cls.close)
            return cls.nest

    @classmethod
    def close(cls):
        if cls.owner == os.getpid():
            cls.nest.close()
            cls.nest = cls.owner = None


def work_directory(name):
    """A directory for a test. Whatever still runs in it when this process is gone is ended as servers are."""
    return Nests.get().make_directory(name)


def make_certificate(directory, name, subject_names):
    """A self-signed certificate and its key, made with openssl; their paths."""
    paths = directory / f"{name}.crt", directory / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", f"/CN={name}", "-addext", f"subjectAltName={subject_names}", "-days", "2",
                    "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    return paths


_reserved = []


def free_port():
    """A TCP port that no one listens on, outside the range from which the kernel takes those of clients.

    No other caller gets it while this process lives, also while no one listens: what is sent to a server
    that was killed must not reach another test's. The mark is the UDP port of the same number."""
    chance = random.SystemRandom()
    for _ in range(1000):
        port = chance.randrange(10000, 32000)
        mark = socket.socket(type=socket.SOCK_DGRAM)
        with socket.socket() as probe:
            try:
                mark.bind(("127.0.0.1", port))
                probe.bind(("127.0.0.1", port))
                _reserved.append(mark)
                return port
            except OSError:
                mark.close()
    raise ServerError("no free port")


def _await(condition, what, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise ServerError(f"not within {seconds} s: {what}")
        time.sleep(0.01)


class Server:
    """What all have in common. A subclass gives `_command`, `_is_ready` and `_user` (None: ours)."""

    name = "server"
    _user = None

    def __init__(self):
        nest = Nests.get()
        self.directory = nest.make_directory(self.name)
        self.log = self.directory / "log"
        self.process = None
        nest.servers.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def _credentials(self):
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}

    def spawn(self):
        """Starts the server and does not wait until it can be used."""
        assert self.process is None, "it runs already"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.directory, start_new_session=True,
                                            env={**os.environ, "LC_ALL": "C"}, **self._credentials())

    def start(self):
        """Starts the server, again if it was stopped, and waits until it can be used."""
        self.spawn()
        _await(self._ready_or_dead, f"{self.name} answers:\n{self.log_text()[-2000:]}")
        return self

    def _ready_or_dead(self):
        if self.process.poll() is not None:
            status, self.process = self.process.returncode, None
            raise ServerError(f"{self.name} ended with {status}:\n{self.log_text()[-4000:]}")
        return self._is_ready()

    def log_text(self):
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def _end(self, number, seconds=PATIENCE):
        if self.process is None:
            return
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(number)
            self.thaw()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ServerError(f"{self.name} did not end:\n{self.log_text()[-2000:]}") from None

    def stop(self):
        """Stops the server in order."""
        self._end(signal.SIGTERM)

    def kill(self):
        """Kills the server at once."""
        self._end(signal.SIGKILL)

    def restart(self):
        self.stop()
        return self.start()

    def processes(self):
        """Its processes: all whose working directory is in its own."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError):
                    place = Path(os.readlink(f"/proc/{entry}/cwd").removesuffix(" (deleted)"))
                    if place == self.directory or self.directory in place.parents:
                        found.append(int(entry))
        return found

    def signal_all(self, number):
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def freeze(self):
        """Stops all its processes where they are (SIGSTOP); connections stay open and nothing answers."""
        self.signal_all(signal.SIGSTOP)

    def thaw(self):
        self.signal_all(signal.SIGCONT)

    def remove(self):
        """Ends it, whatever it does, and removes its directory."""
        nest = Nests.get()
        if self in nest.servers:
            nest.servers.remove(self)
        try:
            self._last_stop()
        except ServerError:
            pass
        _await(lambda: not self.processes() or self.signal_all(signal.SIGKILL), f"the processes of {self.name} end")
        if os.path.ismount(self.directory / "disk"):
            subprocess.run(["umount", "-l", str(self.directory / "disk")], check=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _last_stop(self):
        self.kill()

    def _start_somewhere(self):
        for _ in range(5):
            try:
                self.start()
                return
            except ServerError as failure:
                if "ddress already in use" not in str(failure):
                    raise
                self.port = free_port()
        raise ServerError("no free port")

    def _make_disk(self, megabytes):
        """A file system of its own in memory, of this size, at `disk`; PermissionError when we may not."""
        disk = self.directory / "disk"
        disk.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "croupier-test", str(disk)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise PermissionError(f"mounting a small tmpfs is not permitted here: {done.stderr.strip()}")
        return disk


# ---- Redis, Valkey -------------------------------------------------------------------------------------

REDIS_PRODUCTS = ("redis", "valkey")


def redis_server():
    """The path of a redis-server or valkey-server. Debian's tools packages carry the server's whole binary
    under the name of redis-check-rdb (valkey-check-rdb), and what it is called decides what it does."""
    named = os.environ.get("TEST_REDIS_SERVER")
    if named and named not in REDIS_PRODUCTS:
        return named
    products = (named,) if named else REDIS_PRODUCTS
    path = os.environ.get("PATH", "") + ":/usr/bin:/usr/local/bin"
    for product in products:
        found = shutil.which(f"{product}-server", path=path)
        if found:
            return found
    for product in products:
        found = shutil.which(f"{product}-check-rdb", path=path)
        if found:
            link = Nests.get().directory / f"{product}-server"
            if not link.exists():
                link.symlink_to(os.path.realpath(found) if os.path.islink(found) else found)
            return str(link)
    raise ServerError(f"no {'-server and no '.join(products)}-server here: run tools/setup test")


# Settings, as services in clouds have them.
WITHOUT_TRACKING = {"rename-command CLIENT": '""'}
WITHOUT_HELLO = {"rename-command HELLO": '""'}


class RedisReply(Exception):
    """An error that Redis answered."""


class RedisConnection:
    """A connection that speaks RESP2: call("GET", key) gives bytes, int, list or None, or raises RedisReply."""

    def __init__(self, address, timeout=PATIENCE):
        """address: the path of a socket, or (host, port)."""
        if isinstance(address, (str, Path)):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(str(address))
        else:
            self.socket = socket.create_connection(address, timeout=timeout)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.reader.close()
        self.socket.close()

    def send(self, *words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
        self.socket.sendall(b"".join(parts))

    def receive(self):
        reply = self._receive()
        if isinstance(reply, RedisReply):
            raise reply
        return reply

    def _receive(self):
        line = self.reader.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("Redis closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            return RedisReply(rest.decode("utf-8", "replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if int(rest) < 0:
                return None
            data = self.reader.read(int(rest) + 2)
            if len(data) != int(rest) + 2:
                raise ConnectionError("Redis closed the connection")
            return data[:-2]
        if kind == b"*":
            return None if int(rest) < 0 else [self._receive() for _ in range(int(rest))]
        raise ConnectionError(f"not RESP2: {line!r}")

    def call(self, *words):
        self.send(*words)
        return self.receive()


class Redis(Server):
    """A Redis (or Valkey) on a socket and on a TCP port. Nothing is written to disk unless `persistent`.

    password: of the default user. users: {name: ACL rules}, as {"feed": ">secret ~* +@all"}.
    replica_of: another Redis. settings: more lines of redis.conf, {"maxmemory": "10mb"}.
    tls: a certificate and its key; then the TCP port speaks TLS only, and so do masters and replicas.
    """

    name = "redis"
    DATABASES = 4096

    def __init__(self, password=None, users=None, persistent=False, replica_of=None, settings=None, start=True, tls=None):
        super().__init__()
        self._tls = tls
        self.socket = self.directory / "redis.sock"
        self.password = password
        self.port = free_port()
        self._replica_of = replica_of
        self._options = {"appendonly": "yes" if persistent else "no", "save": '""', **(settings or {})}
        self._users = users or {}
        self._databases = itertools.count(1)
        self._connection = None
        self._lock = threading.Lock()
        self._executable = redis_server()
        if start:
            self._start_somewhere()

    def _configuration(self):
        lines = ["bind 127.0.0.1", f"port {self.port}", f"unixsocket {self.socket}", "unixsocketperm 777",
                 f"dir {self.directory}", "daemonize no", f"databases {self.DATABASES}", "enable-debug-command local",
                 "repl-diskless-sync-delay 0"]
        if self._tls is not None:
            lines += ["port 0", *self._tls_lines(self.port)]
        lines += [f"{name} {value}" for name, value in self._options.items()]
        if self._replica_of is not None:
            lines += [f"replicaof 127.0.0.1 {self._replica_of.port}"]
        if self.password is not None:
            lines += [f"requirepass {self.password}", f"masterauth {self.password}"]
        lines += [f"user {name} on {rules}" for name, rules in self._users.items()]
        return lines

    def _tls_lines(self, port):
        certificate, key = self._tls
        return [f"tls-port {port}", f"tls-cert-file {certificate}", f"tls-key-file {key}", f"tls-ca-cert-file {certificate}",
                "tls-auth-clients no", "tls-replication yes"]

    def _command(self):
        path = self.directory / "redis.conf"
        if not path.exists() or not self._keeps_configuration:
            path.write_text("\n".join(self._configuration()) + "\n")
        return [self._executable, str(path)]

    # A node under Sentinel has its configuration rewritten, and starts again as what it last was.
    _keeps_configuration = False

    def _is_ready(self):
        self._close()
        try:
            self.call("PING")
            return True
        except (OSError, RedisReply):
            return False

    def _end(self, number, seconds=PATIENCE):
        self._close()
        super()._end(number, seconds)

    def _close(self):
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def connect(self, timeout=PATIENCE):
        """A connection of the caller's own, authenticated."""
        connection = RedisConnection(self.socket if self.socket else ("127.0.0.1", self.port), timeout)
        if self.password is not None:
            connection.call("AUTH", self.password)
        return connection

    def call(self, *words):
        """One command on a connection that is kept; for any thread."""
        with self._lock:
            if self._connection is None:
                self._connection = self.connect()
            try:
                return self._connection.call(*words)
            except (OSError, ConnectionError):
                self._connection.close()
                self._connection = None
                raise

    def cli(self, *words):
        """As `call`, with text for bytes."""
        def text(value):
            if isinstance(value, list):
                return [text(one) for one in value]
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return text(self.call(*words))

    def info(self, section="all"):
        """The fields of INFO."""
        return dict(line.split(":", 1) for line in self.cli("INFO", section).splitlines() if ":" in line)

    @property
    def uri(self):
        return f"unix:{self.socket}"

    def tcp_uri(self, database=0, user=None, password=None, port=None):
        """redis:// with the password of the default user, unless told another; port: a proxy's."""
        password = password if password is not None else self.password
        who = f"{user or ''}:{password}@" if password is not None else ""
        return f"redis://{who}127.0.0.1:{port or self.port}/{database}"

    def next_database(self):
        """The number of a database that no one was given before."""
        number = next(self._databases)
        assert number < self.DATABASES
        return number


class _Sentinel(Redis):
    name = "sentinel"
    _keeps_configuration = True  # it writes what it learns into it

    def __init__(self, service, master, quorum, down_after_ms, password, tls):
        self._monitor = (service, master, quorum, down_after_ms, password)
        self.tls_port = free_port()  # beside `port`, which tests use
        super().__init__(tls=tls)

    def _configuration(self):
        service, master, quorum, down_after_ms, password = self._monitor
        self.socket = None
        lines = ["bind 127.0.0.1", f"port {self.port}", f"dir {self.directory}",
                 f"sentinel monitor {service} 127.0.0.1 {master.port} {quorum}",
                 f"sentinel down-after-milliseconds {service} {down_after_ms}",
                 f"sentinel failover-timeout {service} 3000", f"sentinel parallel-syncs {service} 1"]
        if self._tls is not None:
            lines += self._tls_lines(self.tls_port)
        return lines + ([f"sentinel auth-pass {service} {password}"] if password is not None else [])

    def _command(self):
        return [*super()._command(), "--sentinel"]


class _Several:
    """Servers that belong together, which end in the order of servers()."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        for server in self.servers():
            server.remove()


class Sentinel(_Several):
    """A master, its replicas, and sentinels that watch them. A failover takes about `down_after_ms` + 1 s."""

    def __init__(self, replicas=1, sentinels=3, service="croupier", down_after_ms=500, password=None, settings=None, tls=None):
        self.service = service
        self.tls = tls
        self.nodes = []
        self.sentinels = []
        try:
            for number in range(1 + replicas):
                node = Redis(password=password, replica_of=self.nodes[0] if number else None, settings=settings,
                             tls=tls)
                node._keeps_configuration = True
                self.nodes.append(node)
            quorum = sentinels // 2 + 1
            for _ in range(sentinels):
                self.sentinels.append(_Sentinel(service, self.nodes[0], quorum, down_after_ms, password, tls))
            self.await_whole()
        except BaseException:
            self.remove()
            raise

    def servers(self):
        return self.sentinels + self.nodes

    def await_whole(self):
        """Waits until every replica is in step and every sentinel knows every other server."""
        def whole():
            with contextlib.suppress(OSError, RedisReply):
                for sentinel in self.sentinels:
                    listed = sentinel.cli("SENTINEL", "master", self.service)
                    fields = dict(zip(listed[::2], listed[1::2]))
                    if (int(fields["num-other-sentinels"]) != len(self.sentinels) - 1
                            or int(fields["num-slaves"]) < len(self.nodes) - 1 or fields["flags"] != "master"):
                        return False
                links = [node.info("replication") for node in self.nodes]
                return sum(link.get("master_link_status") == "up" for link in links) == len(self.nodes) - 1
            return False
        _await(whole, "the sentinels know each other and the replicas are in step")

    @property
    def uri(self):
        return self.uri_of_database(0)

    def uri_of_database(self, database):
        hosts = ",".join(f"127.0.0.1:{sentinel.port if self.tls is None else sentinel.tls_port}" for sentinel in self.sentinels)
        password = self.nodes[0].password
        scheme, trust = ("redis", "") if self.tls is None else ("rediss", f"?tls_ca={self.tls[0]}")
        who = f":{password}@" if password is not None else ""
        return f"{scheme}+sentinel://{who}{hosts}/{self.service}/{database}{trust}"

    @property
    def master(self):
        """The node that the sentinels name now."""
        for sentinel in self.sentinels:
            with contextlib.suppress(OSError, RedisReply):
                _, port = sentinel.cli("SENTINEL", "get-master-addr-by-name", self.service)
                return next(node for node in self.nodes if node.port == int(port))
        raise ServerError("no sentinel answers")

    def await_failover(self, former):
        """Waits until another node than `former` is the master and says so itself; returns it."""
        def other():
            master = self.master
            with contextlib.suppress(OSError, RedisReply):
                return master if master is not former and master.cli("ROLE")[0] == "master" else None
        return _await(other, "a failover")

    def fail_over(self):
        """A failover while all is well; returns the new master."""
        former = self.master

        def accepted():
            try:
                return self.sentinels[0].call("SENTINEL", "FAILOVER", self.service)
            except RedisReply as refusal:
                if "NOGOODSLAVE" not in str(refusal):
                    raise
                return None  # it has not heard of the replica for a while, as on a busy machine

        _await(accepted, "a sentinel begins a failover")
        return self.await_failover(former)


# ---- PostgreSQL ----------------------------------------------------------------------------------------

def postgres_programs():
    """The directory of PostgreSQL's programs: the newest of Debian's, or that of PATH."""
    named = os.environ.get("TEST_POSTGRES_BIN")
    if named:
        return Path(named)
    found = [Path(path).parent for path in glob.glob("/usr/lib/postgresql/*/bin/postgres")]
    if found:
        return max(found, key=lambda path: [int(number) for number in re.findall(r"\d+", str(path))])
    path = shutil.which("postgres")
    if path:
        return Path(path).resolve().parent
    raise ServerError("no PostgreSQL here: run tools/setup test")


class _Node(Redis):
    name = "node"
    _keeps_configuration = True

    def __init__(self, node_timeout_ms, password, settings, tls):
        self.bus_port = free_port()
        settings = {**(settings or {}), **({"tls-cluster": "yes"} if tls else {})}
        super().__init__(password=password, tls=tls, settings={"cluster-enabled": "yes", "cluster-port": self.bus_port, "databases": 1,
                                   "cluster-node-timeout": node_timeout_ms, "cluster-replica-validity-factor": 0,
                                   "cluster-allow-replica-migration": "no", **settings})

    def epoch(self):
        fields = dict(line.split(":", 1) for line in self.cli("CLUSTER", "INFO").splitlines())
        return int(fields["cluster_my_epoch"])


class Cluster(_Several):
    """A cluster of masters, which share all slots, with a replica each. nodes[i + masters] is the replica of nodes[i].

    A failover takes about `node_timeout_ms` + 1 s. The bus has ports of its own (Redis 7).
    """

    SLOTS = 16384

    def __init__(self, masters=3, node_timeout_ms=1000, password=None, settings=None, tls=None):
        self.nodes = []
        self.elected = set()
        self.password, self.tls = password, tls
        try:
            for _ in range(2 * masters):
                self.nodes.append(_Node(node_timeout_ms, password, settings, tls))
            for number, node in enumerate(self.nodes):
                node.call("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
                for earlier in self.nodes[:number]:
                    node.call("CLUSTER", "MEET", "127.0.0.1", earlier.port, earlier.bus_port)
            _await(lambda: all(self._knows_all(node) for node in self.nodes), "the nodes know each other")
            for number, master in enumerate(self.nodes[:masters]):
                master.call("CLUSTER", "ADDSLOTSRANGE", self.SLOTS * number // masters, self.SLOTS * (number + 1) // masters - 1)
                self.nodes[masters + number].call("CLUSTER", "REPLICATE", master.cli("CLUSTER", "MYID"))
            self.await_whole()
        except BaseException:
            self.remove()
            raise

    def servers(self):
        return self.nodes

    def _knows_all(self, node):
        return node.cli("CLUSTER", "NODES").count(" connected") == len(self.nodes)

    def await_whole(self):
        """Waits until all slots are served, each replica is in step, and all nodes agree."""
        def view(node):
            fields = [line.split(" ") for line in node.cli("CLUSTER", "NODES").splitlines()]
            return sorted((one[0], "master" in one[2], one[6], *one[8:]) for one in fields)

        def whole():
            with contextlib.suppress(OSError, RedisReply):
                masters = [node for node in self.nodes if node.cli("ROLE")[0] == "master"]
                replicas = [node for node in self.nodes if node not in masters]
                return (len(masters) == len(replicas)
                        and all(view(node) == view(self.nodes[0]) for node in self.nodes)
                        and all("cluster_state:ok" in node.cli("CLUSTER", "INFO") and self._knows_all(node) for node in self.nodes)
                        and all(node.info("replication")["master_link_status"] == "up" for node in replicas))
            return False
        _await(whole, "the cluster is whole")

    def uri(self, *nodes):
        """redis:// with these nodes, or all."""
        who = f":{self.password}@" if self.password is not None else ""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in nodes or self.nodes)
        return f"redis://{who}{hosts}" if self.tls is None else f"rediss://{who}{hosts}/0?tls_ca={self.tls[0]}"

    def slot(self, prefix):
        return self.nodes[0].cli("CLUSTER", "KEYSLOT", prefix)

    def master_of(self, slot, besides=None):
        """The node that is the master of this slot by its own word, and has the highest epoch of those that say so."""
        found = []
        for node in self.nodes:
            with contextlib.suppress(OSError, RedisReply):
                if node.running and node is not besides and self._owns(node, slot):
                    found.append(node)
        return max(found, key=_Node.epoch) if found else None

    @staticmethod
    def _owns(node, slot):
        myself = next(line for line in node.cli("CLUSTER", "NODES").splitlines() if "myself" in line).split(" ")
        ranges = [word.split("-") for word in myself[8:] if not word.startswith("[")]
        return "master" in myself[2] and any(int(one[0]) <= slot <= int(one[-1]) for one in ranges)

    def replica_of(self, master):
        identity = master.cli("CLUSTER", "MYID")
        return next(node for node in self.nodes if node is not master and node.running
                    and f"myself,slave {identity}" in node.cli("CLUSTER", "NODES"))

    def begin_move(self, slot, target):
        """The slot migrates to this master; returns the one that it leaves."""
        source = self.master_of(slot)
        target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", source.cli("CLUSTER", "MYID"))
        source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", target.cli("CLUSTER", "MYID"))
        return source

    def move_keys(self, slot, source, target, count=100, keys=None):
        """Moves up to so many keys of the slot, or these; returns how many there were."""
        keys = keys or source.cli("CLUSTER", "GETKEYSINSLOT", slot, count)
        if keys:
            secret = ["AUTH", self.password] if self.password is not None else []
            source.call("MIGRATE", "127.0.0.1", target.port, "", 0, 10000, *secret, "KEYS", *keys)
        return len(keys)

    def end_move(self, slot, target):
        """The target first, so that the slot is never without a master."""
        for node in [target, *(node for node in self.nodes if node is not target and node.running)]:
            if node.cli("ROLE")[0] == "master":
                node.call("CLUSTER", "SETSLOT", slot, "NODE", target.cli("CLUSTER", "MYID"))

    def move(self, slot, target):
        source = self.begin_move(slot, target)
        while self.move_keys(slot, source, target):
            pass
        self.end_move(slot, target)

    def prepare_failover(self, slot):
        """Moves the slot to a master whose replica was never elected, and returns that master. A node that is elected
        twice within seconds counts the former votes, with the former epoch (Redis 7.0), and no other node follows it."""
        for master in [node for node in self.nodes if node.running and node.cli("ROLE")[0] == "master"]:
            replica = self.replica_of(master)
            if replica not in self.elected:
                self.elected.add(replica)
                if master is not self.master_of(slot):
                    self.move(slot, master)
                    self.await_whole()
                return master
        raise ServerError("all replicas were elected")

    def fail_over(self, slot):
        """A failover while all is well, once prepared; returns the new master. One that times out is begun again."""
        former = self.master_of(slot)
        replica = self.replica_of(former)
        begun = [0.0]

        def done():
            if time.monotonic() - begun[0] > 6:
                begun[0] = time.monotonic()
                replica.call("CLUSTER", "FAILOVER")
            return self.master_of(slot, besides=former)
        return _await(done, "a failover")

    def await_failover(self, former, slot):
        """Waits until another node than `former`, which is not asked, is the slot's master; returns it."""
        return _await(lambda: self.master_of(slot, besides=former), "a failover")


class Postgres(Server):
    """A PostgreSQL on a socket in its directory and, with tcp=True, on a TCP port.

    durable: with fsync, as in life; else fast and unsafe. password: wanted over TCP. settings: more lines of
    postgresql.conf. disk_megabytes: the data is on a small file system of its own, which can be filled (needs
    root: PermissionError else). standby_of: another Postgres, to follow. shared: databases are made and dropped in a
    session that stays, as each psql and its session take longer than that.
    """

    name = "postgres"
    _templates = {}  # by process: a cluster that was only just made
    _lock = threading.Lock()
    _INITDB = ("-N", "--no-instructions", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C")

    def __init__(self, tcp=False, durable=False, password=None, settings=None, disk_megabytes=None, standby_of=None,
                 start=True, shared=False):
        self.programs = postgres_programs()
        if os.getuid() == 0:  # it refuses to be root
            self._user = self.account()
        super().__init__()
        self.tcp = tcp
        self.port = free_port()  # also in the name of the socket
        self.password = password
        self._databases = itertools.count(1)
        self.shared, self._administrator = shared, None
        place = self.directory if disk_megabytes is None else self._make_disk(disk_megabytes)
        self.data = place / "data"
        self._own(self.directory, place)
        if standby_of is None:
            self._copy_template()
        else:
            self._run("pg_basebackup", "-D", self.data, "-R", "-X", "stream", "-c", "fast", "-h", standby_of.directory,
                      "-p", standby_of.port, "-U", "postgres")
        self._settings = {
            "listen_addresses": "127.0.0.1" if tcp else "",
            "unix_socket_directories": str(self.directory),
            "dynamic_shared_memory_type": "mmap",  # in its directory: nothing stays behind in /dev/shm
            "fsync": "on" if durable else "off",
            "full_page_writes": "on" if durable else "off",
            "max_connections": "300",
            "shared_buffers": "32MB",
            "log_line_prefix": "%m [%p] %d ",
            **(settings or {}),
        }
        if start:
            self._start_somewhere()
            if password is not None and standby_of is None:
                self.sql(f"ALTER USER postgres PASSWORD '{password}'")

    @staticmethod
    def account():
        for name in ("postgres", "nobody"):
            with contextlib.suppress(KeyError):
                return pwd.getpwnam(name)
        raise ServerError("PostgreSQL does not run as root, and there is no one else")

    def _own(self, *paths):
        if self._user is not None:
            for path in paths:
                os.chown(path, self._user.pw_uid, self._user.pw_gid)

    def _run(self, program, *arguments, **options):
        done = subprocess.run([str(self.programs / program), *map(str, arguments)], capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C"}, timeout=4 * PATIENCE, cwd=self.directory,
                              **{**self._credentials(), **options})
        if done.returncode != 0:
            raise ServerError(f"{program} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _copy_template(self):
        """`initdb` takes a second of a processor, so what it makes is kept in build/, where there is one, for all tests."""
        with self._lock:
            template = self._templates.get(os.getpid())
            if template is None:
                template = self._templates[os.getpid()] = self._make_template()
        self._run_copy(template, self.data)

    def _make_template(self):
        program = self.programs / "initdb"
        made_by = f"{program} {program.stat().st_mtime_ns} {self._INITDB} {os.getuid()}"
        kept = Path(__file__).resolve().parents[1] / "build" / f"postgres-{hashlib.sha256(made_by.encode()).hexdigest()[:16]}"
        if kept.exists():
            return kept
        place = Nests.get().make_directory("template")
        self._own(place)
        self._run("initdb", "-D", place / "data", *self._INITDB)
        if kept.parent.exists():
            unfinished = kept.with_name(f"{kept.name}.{os.getpid()}")
            self._run_copy(place / "data", unfinished)
            try:
                unfinished.rename(kept)  # at once, or not at all
            except OSError:
                shutil.rmtree(unfinished)  # another process has made it meanwhile
        return place / "data"

    @staticmethod
    def _run_copy(template, target):
        done = subprocess.run(["cp", "-a", str(template), str(target)], capture_output=True, text=True)
        if done.returncode != 0:
            raise ServerError(done.stderr)

    def configure(self, settings):
        """Settings that hold from the next start, or `reload`."""
        self._settings.update(settings)
        self._write_configuration()

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def _write_configuration(self):
        lines = [f"{name} = '{value}'" for name, value in self._settings.items()]
        (self.data / "postgresql.conf").write_text("\n".join([*lines, f"port = {self.port}"]) + "\n")
        method = "trust" if self.password is None else "scram-sha-256"
        (self.data / "pg_hba.conf").write_text("local all all trust\nlocal replication all trust\n"
                                               f"host all all 127.0.0.1/32 {method}\n"
                                               "host replication all 127.0.0.1/32 trust\n")

    def _command(self):
        self._write_configuration()
        return [str(self.programs / "postgres"), "-D", str(self.data)]

    def _is_ready(self):
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0].strip() == str(self.process.pid) and lines[7].strip() in ("ready", "standby")

    def stop(self, mode="fast"):
        """As `pg_ctl stop -m`: smart, fast, or immediate (no checkpoint; recovery at the next start)."""
        self._end({"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}[mode])

    def kill(self):
        """Kills every process of it at once; what the kernel was given stays."""
        if self.process is not None:
            self.freeze()
            self.signal_all(signal.SIGKILL)
            super().kill()
            _await(lambda: not self.processes(), "the processes of PostgreSQL end")
            self.remove_shared_memory()

    def remove_shared_memory(self):
        """What marks a cluster as in use stays when its master is killed, 56 bytes of it."""
        with contextlib.suppress(OSError, IndexError):
            number = (self.data / "postmaster.pid").read_text().splitlines()[6].split()[1]
            subprocess.run(["ipcrm", "-m", number], capture_output=True)

    def _last_stop(self):
        if self._administrator is not None:
            self._administrator.communicate()
        self.stop("immediate")

    def uri_of(self, database, tcp=False, port=None, user="postgres"):
        """tcp: over TCP; port: a proxy's."""
        if not tcp and port is None:
            return f"postgresql:///{database}?host={self.directory}&port={self.port}&user={user}"
        who = user if self.password is None else f"{user}:{self.password}"
        return f"postgresql://{who}@127.0.0.1:{port or self.port}/{database}"

    def create_database(self, name=None, template=None):
        """A fresh, empty database (or a copy of another); returns its name."""
        name = name or self.next_database()
        # Copying files is the cheaper way, but for the two checkpoints, which cost nothing without fsync.
        how = "" if self._settings["fsync"] == "on" else " STRATEGY FILE_COPY"
        self._administer(f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else "") + how)
        return name

    def next_database(self):
        """The name of a database that no one was given before. It is not there yet."""
        return f"test_{next(self._databases)}"

    def drop_database(self, name):
        self._administer(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _administer(self, statement):
        if not self.shared:
            self.sql(statement)
            return
        said = []
        with self._lock:
            if self._administrator is None:
                self._administrator = self.session(self.uri_of("postgres"), stderr=subprocess.STDOUT, env={**os.environ, "LC_ALL": "C"})
            self._administrator.stdin.write(f"{statement};\n\\echo :ERROR\n")
            self._administrator.stdin.flush()
            while not said or said[-1] not in ("true\n", "false\n", ""):
                said.append(self._administrator.stdout.readline())
        if said[-1] != "false\n":
            raise ServerError("".join(said[:-1]))

    @property
    def uri(self):
        """The URI of a database that is empty until it is used: a new one every time."""
        return self.uri_of(self.create_database())

    def sql(self, statement, database="postgres"):
        """What psql prints: one line a row, fields apart by |."""
        return self._run("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", self.directory, "-p", self.port, "-U", "postgres",
                         "-d", database, "-c", statement, user=None, group=None, extra_groups=None).rstrip("\n")

    def session(self, uri, **options):
        """A psql that goes on: SQL into `stdin`, and rows out of `stdout`."""
        return subprocess.Popen([self.programs / "psql", "-XAtq", uri], text=True,
                                **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **options})

    def terminate_backends(self, database=None):
        """Ends every session (of one database); returns how many."""
        of = f" AND datname = '{database}'" if database else ""
        return int(self.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                            f" WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'{of}"))

    @property
    def disk(self):
        """Where the small file system is (with disk_megabytes)."""
        return self.directory / "disk"


class PgBouncer(Server):
    """PgBouncer on a TCP port, before a Postgres that asks for no password. settings: more lines of pgbouncer.ini."""

    name = "pgbouncer"

    def __init__(self, postgres, **settings):
        if os.getuid() == 0:  # it refuses to be root
            self._user = Postgres.account()
        super().__init__()
        self.port = free_port()
        self._postgres, self._settings = postgres, settings
        (self.directory / "users").write_text('"postgres" ""\n')
        self._start_somewhere()

    def _command(self):
        program = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None:
            raise ServerError("no PgBouncer here: run tools/setup test")
        settings = {"listen_addr": "127.0.0.1", "listen_port": self.port, "unix_socket_dir": "", "auth_type": "trust",
                    "auth_file": self.directory / "users", **self._settings}
        path = self.directory / "pgbouncer.ini"
        path.write_text(f"[databases]\n* = host={self._postgres.directory} port={self._postgres.port}\n[pgbouncer]\n"
                        + "".join(f"{name} = {value}\n" for name, value in settings.items()))
        return [program, str(path)]

    def _is_ready(self):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        return False


# ---- the proxy -----------------------------------------------------------------------------------------

UP, DOWN = "up", "down"  # towards the server, towards the client


class _Way:
    """One direction of a connection through the proxy."""

    def __init__(self, source, target):
        self.source, self.target = source, target
        self.waiting = []  # (due, bytes)
        self.ended = False


class _Link:
    """A connection through the proxy. `swallow`, `delay` and `cut` act on it alone."""

    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.ways = {UP: _Way(client, server), DOWN: _Way(server, client)}
        self.swallowed = set(proxy._swallowed)
        self.delays = dict(proxy._delays)
        self.is_open = True

    def swallow(self, direction=None):
        self.swallowed |= {direction} if direction else {UP, DOWN}

    def delay(self, seconds, direction=None):
        for way in (direction,) if direction else (UP, DOWN):
            self.delays[way] = seconds

    def heal(self):
        self.swallowed, self.delays = set(), {}

    def cut(self):
        """Resets both ends."""
        self.proxy._do(lambda: self._close(reset=True))

    def _close(self, reset=False):
        if not self.is_open:
            return
        self.is_open = False
        for end in (self.client, self.server):
            with contextlib.suppress(KeyError, ValueError):
                self.proxy._selector.unregister(end)
            if reset:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.close()
        self.proxy.links.remove(self)


class Proxy:
    """A TCP way to a server that a test can spoil, at will and while it is used:

        proxy = Proxy(("127.0.0.1", redis.port))    # or the path of a socket; clients use proxy.port
        proxy.delay(0.05), proxy.swallow(UP)        # now, and for connections to come; both ways unless told
        proxy.cut()                                 # resets what is connected; new connections are welcome
        proxy.refuse()                              # new connections are refused (and what is there is reset)
        proxy.heal()                                # all is as at first

    What is swallowed is lost for good, so a connection that was swallowed from is best cut before `heal`
    (heal(cut=True), the default). Links of single connections are in proxy.links, oldest first.
    """

    def __init__(self, target):
        self.target = target
        self.links = []
        self.accepted = 0  # connections that ever were
        self._swallowed = set()
        self._delays = {}
        self._selector = selectors.DefaultSelector()
        self._tasks = []
        self._lock = threading.Lock()
        self._wake_reader, self.wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, None)
        self._listener = None
        self.port = 0
        self._listen()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- what a test says ----

    def swallow(self, direction=None):
        """A black hole: what is sent is taken and goes nowhere; nothing is closed."""
        def act():
            self._swallowed |= {direction} if direction else {UP, DOWN}
            for link in self.links:
                link.swallow(direction)
        self._do(act)

    def delay(self, seconds, direction=None):
        def act():
            for way in (direction,) if direction else (UP, DOWN):
                self._delays[way] = seconds
            for link in self.links:
                link.delay(seconds, direction)
        self._do(act)

    def cut(self):
        def act():
            for link in list(self.links):
                link._close(reset=True)
        self._do(act)

    def refuse(self):
        def act():
            if self._listener is not None:
                self._selector.unregister(self._listener)
                self._listener.close()
                self._listener = None
            for link in list(self.links):
                link._close(reset=True)
        self._do(act)

    def heal(self, cut=True):
        def act():
            for link in list(self.links):
                if cut and link.swallowed:
                    link._close(reset=True)
                else:
                    link.heal()
            self._swallowed, self._delays = set(), {}
            if self._listener is None:
                self._listen()
        self._do(act)

    def close(self):
        def act():
            self._ended = True
        self._do(act)
        self._thread.join()

    # ---- the thread ----

    def _listen(self):
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self.port))
        self._listener.listen(128)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def _do(self, act):
        """Runs act() on the thread and waits until it is done."""
        done = threading.Event()
        with self._lock:  # the thread, which may be up already, begins when all of this is done
            self._tasks.append((act, done))
            self.wake_writer.send(b"!")
        if not done.wait(PATIENCE):
            raise ServerError("the proxy hangs")

    def _run(self):
        try:
            while not self._ended:
                self._turn()
        finally:
            for link in list(self.links):
                link._close()
            if self._listener is not None:
                self._listener.close()
            self._selector.close()
            self._wake_reader.close()
            self.wake_writer.close()
            for _, done in self._tasks:
                done.set()

    def _turn(self):
        due = min((way.waiting[0][0] for link in self.links for way in link.ways.values() if way.waiting), default=None)
        timeout = None if due is None else max(0.0, due - time.monotonic())
        for key, events in self._selector.select(timeout):
            if key.fileobj is self._wake_reader:
                with contextlib.suppress(BlockingIOError):
                    self._wake_reader.recv(4096)
            elif key.fileobj is self._listener:
                self._accept()
            elif isinstance(key.data, tuple) and key.data[0].is_open:
                self._read(*key.data)
        with self._lock:
            tasks, self._tasks = self._tasks, []
        for act, done in tasks:
            act()
            done.set()
        for link in list(self.links):
            for direction in (UP, DOWN):
                if link.is_open:
                    self._pass_on(link, direction)

    def _accept(self):
        with contextlib.suppress(BlockingIOError):
            client, _ = self._listener.accept()
            server = socket.socket(socket.AF_INET if isinstance(self.target, tuple) else socket.AF_UNIX)
            try:
                server.connect(self.target if isinstance(self.target, tuple) else str(self.target))
            except OSError:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
                server.close()
                return
            for end in (client, server):
                end.setblocking(False)
                if end.family == socket.AF_INET:
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = _Link(self, client, server)
            self.links.append(link)
            self.accepted += 1
            self._selector.register(client, selectors.EVENT_READ, (link, UP))
            self._selector.register(server, selectors.EVENT_READ, (link, DOWN))

    def _read(self, link, direction):
        way = link.ways[direction]
        try:
            data = way.source.recv(262144)
        except BlockingIOError:
            return
        except OSError:
            link._close(reset=True)
            return
        if direction in link.swallowed:
            if not data:
                self._selector.unregister(way.source)
            return
        if not data:
            self._selector.unregister(way.source)
        way.waiting.append((time.monotonic() + link.delays.get(direction, 0.0), data))

    def _pass_on(self, link, direction):
        way = link.ways[direction]
        now = time.monotonic()
        while way.waiting and way.waiting[0][0] <= now:
            due, data = way.waiting[0]
            if direction in link.swallowed:
                way.waiting.clear()
                return
            try:
                if data:
                    sent = way.target.send(data)
                    if sent < len(data):
                        way.waiting[0] = (now + 0.001, data[sent:])
                        return
                else:
                    way.ended = True
                    way.target.shutdown(socket.SHUT_WR)
            except BlockingIOError:
                way.waiting[0] = (now + 0.001, data)
                return
            except OSError:
                link._close(reset=True)
                return
            way.waiting.pop(0)
        if all(one.ended for one in link.ways.values()):
            link._close()


# ---- around a command ----------------------------------------------------------------------------------

def environment_of(names, stack):
    """Starts what is named, to be ended with `stack`; returns the variables that say where it is.

        redis       TEST_REDIS_URI (unix:PATH), TEST_REDIS_TCP_URI (redis://127.0.0.1:PORT/0)
        redis-asking, redis-resp2   TEST_REDIS_ASKING_URI, TEST_REDIS_RESP2_URI: it reports no changes
        sentinel    TEST_SENTINEL_URI (redis+sentinel://…)
        cluster     TEST_CLUSTER_URI (redis://NODE,NODE…)
        postgres    TEST_POSTGRES_URI, TEST_POSTGRES_TCP_URI: a fresh, empty database, whose user may create others
    """
    variables = {}
    for name in names:
        if name == "redis":
            redis = stack.enter_context(Redis())
            variables.update(TEST_REDIS_URI=redis.uri, TEST_REDIS_TCP_URI=redis.tcp_uri())
        elif name == "redis-asking":
            variables["TEST_REDIS_ASKING_URI"] = stack.enter_context(Redis(settings=WITHOUT_TRACKING)).tcp_uri()
        elif name == "redis-resp2":
            variables["TEST_REDIS_RESP2_URI"] = stack.enter_context(Redis("secret", settings=WITHOUT_HELLO)).tcp_uri()
        elif name == "sentinel":
            # Whoever wants a failover brings it about; a busy master is no dead one.
            variables["TEST_SENTINEL_URI"] = stack.enter_context(Sentinel(down_after_ms=60000)).uri
        elif name == "cluster":
            variables["TEST_CLUSTER_URI"] = stack.enter_context(Cluster(node_timeout_ms=15000)).uri()
        elif name == "postgres":
            postgres = stack.enter_context(Postgres(tcp=True))
            database = postgres.create_database()
            variables.update(TEST_POSTGRES_URI=postgres.uri_of(database),
                             TEST_POSTGRES_TCP_URI=postgres.uri_of(database, tcp=True))
        else:
            raise ServerError(f"no such server: {name} (redis, redis-asking, redis-resp2, sentinel, cluster, postgres)")
    return variables


def die_with_parent():
    """In a child, before it executes: it is killed when the thread that made it ends (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def main(arguments):
    if "--" not in arguments or arguments[-1:] == ["--"]:
        print("usage: servers.py [redis] [redis-asking] [redis-resp2] [sentinel] [cluster] [postgres] -- COMMAND [ARGUMENT…]", file=sys.stderr)
        return 2
    at = arguments.index("--")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with contextlib.ExitStack() as stack:
        try:
            variables = environment_of(arguments[:at], stack)
        except ServerError as failure:
            print(f"servers.py: {failure}", file=sys.stderr)
            return 1
        command = subprocess.Popen(arguments[at + 1:], env={**os.environ, **variables}, preexec_fn=die_with_parent)
        try:
            status = command.wait()
        finally:
            if command.poll() is None:
                command.kill()
                command.wait()
        return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
