"""A server that speaks as much of Redis as the odds store's engine asks for, and does on demand, in a chosen order,
what a real one does once in a million.

    with FakeRedis() as fake:
        fake.values["odds:cricket:1"] = b"[]"
        fake.hold("data")          # what is answered there from now on waits
        fake.invalidate("odds:cricket:1")
        fake.release("data")
"""

import socket
import threading
import time

from redis_store import eventually

LENGTH_MAX = 64 * 1024 * 1024


class _Connection:
    def __init__(self, fake, peer):
        self.fake, self.peer = fake, peer
        self.number = fake.accepted
        self.tracks = False
        self.lock = threading.Lock()
        self.waiting = []
        self.held = False
        self.buffer = b""

    def start(self):
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, answer):
        with self.lock:
            if self.held or self.waiting:
                self.waiting.append(answer)
                return
            try:
                self.peer.sendall(answer)
            except OSError:
                pass

    def hold(self, held):
        with self.lock:
            self.held = held
            if held:
                return
            waiting, self.waiting = self.waiting, []
            for answer in waiting:
                try:
                    self.peer.sendall(answer)
                except OSError:
                    pass

    def close(self):
        try:
            self.peer.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.peer.close()

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def _exactly(self, size):
        while len(self.buffer) < size:
            self._more()
        part, self.buffer = self.buffer[:size], self.buffer[size:]
        return part

    def _more(self):
        more = self.peer.recv(65536)
        if not more:
            raise OSError("closed")
        self.buffer += more

    def _command(self):
        count = int(self._line()[1:])
        words = []
        for _ in range(count):
            size = int(self._line()[1:])
            words.append(self._exactly(size + 2)[:-2])
        return words

    def _run(self):
        try:
            while True:
                words = self._command()
                answer = self.fake.answer(self, [word.decode("latin-1") for word in words])
                if answer is not None:
                    self.send(answer)
        except (OSError, ValueError):
            pass
        finally:
            self.fake.forget(self)
            self.close()


def simple(text):
    return f"+{text}\r\n".encode()


def bulk(value):
    if value is None:
        return b"$-1\r\n"
    value = value.encode() if isinstance(value, str) else value
    return b"$%d\r\n%s\r\n" % (len(value), value)


def integer(number):
    return b":%d\r\n" % number


def array(*items, kind=b"*"):
    return b"%s%d\r\n%s" % (kind, len(items), b"".join(items))


def mapping(*pairs):
    return b"%%%d\r\n%s" % (len(pairs), b"".join(name + value for name, value in pairs))


def verbatim(text):
    return b"=%d\r\ntxt:%s\r\n" % (len(text) + 4, text.encode())


def invalidation(*keys):
    body = b"_\r\n" if keys == (None,) else array(*map(bulk, keys))
    return array(bulk("invalidate"), body, kind=b">")


class FakeRedis:
    def __init__(self):
        self.values, self.expiries = {}, {}
        self.version, self.mode = "7.0.15", "standalone"
        self.flags = ["on", "bcast"]
        self.redirect = -1  # to no one
        self.role = "master"
        self.calls = {}  # command: how often it was carried out, as INFO tells
        self.errors = {}  # command: error text
        self.raw = {}  # command: bytes that are sent instead of an answer
        self.greeting = b""  # sent to whoever connects
        self.late = b""  # sent to the one that tracks before the next PING is answered
        self.commands = []
        self.accepted = 0
        self.connections = []
        self.accept_times = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.uri = f"redis://127.0.0.1:{self.port}/0"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()
        self.close_all()

    def _accept(self):
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self.accepted += 1
                self.accept_times.append(time.monotonic())
                if self.greeting:
                    try:
                        peer.sendall(self.greeting)
                    except OSError:
                        pass
                connection = _Connection(self, peer)
                self.connections.append(connection)
                connection.start()  # last: whoever it answers may look for it at once

    def forget(self, connection):
        with self._lock:
            if connection in self.connections:
                self.connections.remove(connection)

    def close_all(self):
        for connection in list(self.connections):
            connection.close()

    def find(self):
        """The one that tracks, once there is one."""
        return eventually(lambda: next((one for one in list(self.connections) if one.tracks), None))

    def hold(self):
        self.find().hold(True)

    def release(self):
        self.find().hold(False)

    def invalidate(self, *keys):
        """None: all keys."""
        self.find().send(invalidation(*keys))

    def count(self, *words):
        """How often a command that begins so was heard."""
        return sum(1 for command in list(self.commands) if command[:len(words)] == list(words))

    def answer(self, connection, words):
        name = words[0].upper()
        full = f"{name} {words[1].upper()}" if name in ("CLIENT", "SENTINEL") else name
        self.commands.append([full, *words[2 if full != name else 1:]])
        if full in self.raw:
            return self.raw[full]
        if full in self.errors:
            return f"-{self.errors[full]}\r\n".encode()
        return getattr(self, "_" + full.lower().replace(" ", "_"), self._unknown)(connection, words)

    def _unknown(self, _connection, words):
        return f"-ERR unknown command '{words[0]}'\r\n".encode()

    def _ping(self, *_):
        late, self.late = self.late, b""
        if late:
            self.find().send(late)
        return simple("PONG")

    def _auth(self, *_):
        return simple("OK")

    _select = _auth
    _client_setname = _auth

    def _hello(self, *_):
        return mapping((bulk("server"), bulk("redis")), (bulk("version"), bulk(self.version)),
                       (bulk("proto"), integer(3)), (bulk("mode"), bulk(self.mode)))

    def _info(self, _connection, words):
        if words[1].lower() == "server":
            return bulk(f"# Server\r\nredis_version:{self.version}\r\nredis_mode:{self.mode}\r\n")
        calls = {"role": self.count("ROLE"), **self.calls}
        return verbatim("# Commandstats\r\n" + "".join(
            f"cmdstat_{name}:calls={count},usec=1,usec_per_call=1.00\r\n" for name, count in calls.items()))

    def _role(self, *_):
        return array(bulk(self.role), integer(0), array())

    def _client_tracking(self, connection, _words):
        connection.tracks = True
        return simple("OK")

    def _client_trackinginfo(self, *_):
        return mapping((bulk("flags"), array(*map(bulk, self.flags), kind=b"~")),
                       (bulk("redirect"), integer(self.redirect)), (bulk("prefixes"), array()))

    def _get(self, _connection, words):
        return bulk(self.values.get(words[1]))

    def _pttl(self, _connection, words):
        if words[1] not in self.values:
            return integer(-2)
        return integer(self.expiries.get(words[1], -1))

    def _getrange(self, _connection, words):
        return bulk(self.values.get(words[1], b"")[int(words[2]):int(words[3]) + 1])

    def _watch(self, *_):
        return simple("OK")

    _multi = _watch

    def _exec(self, *_):
        return array()

    def _zadd(self, *_):
        return integer(1)

    _zremrangebyscore = _zadd

    def _set(self, _connection, words):
        self.values[words[1]] = words[2].encode("latin-1")
        return simple("OK")
