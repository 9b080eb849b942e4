"""A provider's launch endpoint that behaves as a test tells it to, over plain sockets.

    provider = FakeProvider(behaviour)      # behaviour(connection, request): True to keep the connection
    provider.url                            # http://127.0.0.1:PORT/launch
    provider.requests                       # every whole request that came, in order
"""

import contextlib
import json
import socket
import ssl
import struct
import subprocess
import threading
from pathlib import Path


class Request:
    def __init__(self, head, body, connection_number):
        lines = head.decode("latin-1").split("\r\n")
        self.line = lines[0]
        self.fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:] if line]
        self.body = body
        self.connection_number = connection_number

    def field(self, name):
        [value] = [value for field, value in self.fields if field.lower() == name]
        return value

    def has(self, name):
        return any(field.lower() == name for field, _ in self.fields)

    def json(self):
        return json.loads(self.body)


def reply(body, status="200 OK", fields=()):
    """A behaviour: answers properly and keeps the connection. `body` may be a function of the request."""
    def behave(connection, request):
        made = body(request) if callable(body) else body
        made = made if isinstance(made, bytes) else json.dumps(made).encode()
        head = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(made)}", *fields]
        connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + made)
        return True
    return behave


def raw(data):
    """A behaviour: sends these bytes and closes."""
    def behave(connection, _):
        connection.sendall(data)
        return False
    return behave


def at_head(data):
    """A behaviour: sends these bytes when the head has come, and closes without having read the body. So the
    connection is reset, right after the answer."""
    def behave(connection, _):
        connection.recv(1, socket.MSG_PEEK)  # the body has come
        connection.sendall(data)
        return False
    behave.reads_body = False
    return behave


def reset(connection, _):
    """A behaviour: resets the connection without a word."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


class FakeProvider:
    def __init__(self, behaviour, certificate=None, host="127.0.0.1"):
        self.behaviour = behaviour
        self.requests = []
        self.connections = 0
        self.closing = threading.Event()
        self.released = threading.Event()  # for behaviours that hold an answer back
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
        self.listener = socket.create_server((host, 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.url = f"{'https' if certificate else 'http'}://{host}:{self.port}/launch"
        self.lock = threading.Lock()
        self.open = set()
        self.answering = set()  # connections with a request that is neither answered and kept, nor closed
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.closing.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                number = self.connections
                self.open.add(connection)
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, plain, number):
        connection = plain
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context:
                connection = self.context.wrap_socket(plain, server_side=True)
            while self._one(connection, plain, number):
                with self.lock:
                    self.answering.discard(plain)
        except OSError:
            pass
        finally:
            with self.lock:
                self.open.discard(plain)
            connection.close()
            with self.lock:
                self.answering.discard(plain)

    def _one(self, connection, plain, number):
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(1)  # and nothing of the body
            if not more:
                return False
            data += more
        request = Request(data[:-4], b"", number)
        while getattr(self.behaviour, "reads_body", True) and len(request.body) < int(request.field("content-length")):
            more = connection.recv(65536)
            if not more:
                return False
            request.body += more
        with self.lock:
            self.requests.append(request)
            self.answering.add(plain)
        return self.behaviour(connection, request)

    def hang(self, connection, _):
        """A behaviour: says nothing until released, then closes."""
        self.released.wait(60)
        return False

    def is_idle(self):
        """Whether it is through with every request that came: the connections that it ends are closed, so that a
        client that keeps them can tell."""
        with self.lock:
            return not self.answering

    def drop_connections(self):
        with self.lock:
            for connection in self.open:
                with contextlib.suppress(OSError):  # the other side may have closed it
                    connection.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.closing.set()
        self.released.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # else the accept under way would take one more
            self.drop_connections()
        except OSError:
            pass
        self.listener.close()


class Authority:
    """A certificate authority of the test's own: `file`, and certificates that it signs."""

    def __init__(self, directory, name="ca"):
        self.directory = Path(directory)
        self.name = name
        self.file = self.directory / f"{name}.crt"
        self._openssl("req", "-x509", *self._new_key(name), "-days", "2", "-subj", f"/CN={name}", "-out", self.file)

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    def _new_key(self, name):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                self.directory / f"{name}.key")

    def certificate(self, name, subject, days=2):
        """For `subject`, as in "IP:127.0.0.1"; paths of the certificate and its key. Fewer than 0 days: it has ended."""
        request, extensions = self.directory / f"{name}.csr", self.directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={subject}\n")
        self._openssl("req", *self._new_key(name), "-subj", f"/CN={name}", "-out", request)
        made = self.directory / f"{name}.crt"
        authority = ["-in", request, "-extfile", extensions, "-out", made, "-CA" if days >= 0 else "-cert", self.file,
                     "-CAkey" if days >= 0 else "-keyfile", self.directory / f"{self.name}.key"]
        if days >= 0:
            self._openssl("x509", "-req", "-CAcreateserial", "-days", days, *authority)
        else:  # OpenSSL 3.5 refuses a negative -days
            config = self.directory / "ca.conf"
            (self.directory / "ca.index").touch()
            config.write_text(f"[ca]\ndefault_ca = it\n[it]\ndatabase = {self.directory}/ca.index\nnew_certs_dir = {self.directory}\n"
                              "rand_serial = yes\ndefault_md = sha256\npolicy = any\n[any]\ncommonName = supplied\n")
            self._openssl("ca", "-batch", "-notext", "-config", config, "-startdate", "20200101000000Z", "-enddate", "20200102000000Z", *authority)
        return made, self.directory / f"{name}.key"
