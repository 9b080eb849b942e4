"""A croupier of a test's own: its directory, its stores, its commands, its server, its clients.

    service = Service(tmp_path)            # writes a configuration, makes both stores
    customer = service.add_customer()      # through `croupier customer add` and `key issue`
    service.publish("cricket", [row], {row_id: markets})
    service.start()                        # on ports of the kernel's choice; returns when it answers
    service.get("/api/v1/sports", key=customer.key)
    service.stop()                         # SIGTERM; the exit status must be 0

Nothing here knows how croupier is made: commands, files, sockets and signals only. The program under
test is CROUPIER_BIN (build/croupier when unset); `put_odds`, which writes into the odds store without
the checks of `croupier feed`, is expected beside it. TEST_ENGINES says what its stores are: see engines.py.
TEST_PREPARED_BY is another build of the same program, which does the commands that only prepare a test (see Service.prepare):
a sanitized one takes several times longer to start.
"""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import pty
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import time
import zlib
from pathlib import Path

import yaml

import engines

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("CROUPIER_BIN") or ROOT / "build" / "croupier").resolve()
PREPARING = Path(os.environ.get("TEST_PREPARED_BY") or BINARY).resolve()
PUT_ODDS = PREPARING.parent / "tests" / "service" / "put_odds"
TEST_CLOCK = BINARY.parent / "tests" / "test_clock.so"
# Sanitized builds are several times slower; every limit below is for a program that hangs, not a slow one.
PATIENCE = float(os.environ.get("CROUPIER_PATIENCE", "1"))
FEW, MANY = 7, 255  # reports of changes that may be under way to a server: by a publication of one value, and by any command
STORE_TIMEOUT_MS = str(int(10000 * PATIENCE))  # a large document under a sanitizer on a busy machine takes seconds
REPORT = re.compile(
    r"ERROR: AddressSanitizer|ERROR: LeakSanitizer|WARNING: ThreadSanitizer|FATAL: ThreadSanitizer"
    r"|runtime error:|SUMMARY: UndefinedBehaviorSanitizer|check failed", re.IGNORECASE)

SPORTS = [("cricket", "Cricket"), ("football", "Football"), ("tennis", "Tennis"),
          ("horse-racing", "Horse Racing"), ("greyhound-racing", "Greyhound Racing")]
SPORT_KEYS = [key for key, _ in SPORTS]

NOT_ALLOWED = (403, {"error": "ip_not_allowed", "message": "Client address is not allowed."})


RUNTIME = tempfile.TemporaryDirectory(prefix="croupier-run-")  # where commands find a server, instead of in /run
KEPT = tempfile.TemporaryDirectory(prefix="croupier-kept-")  # platform stores of earlier services, to be copied


def api_document(name):
    """docs/NAME.yaml, read by the parser in C: by the one in Python it takes most of the time in which the tests are collected."""
    return yaml.load((ROOT / "docs" / f"{name}.yaml").read_text(), Loader=yaml.CSafeLoader)


def sanitizer_environment():
    environment = {**os.environ, "RUNTIME_DIRECTORY": RUNTIME.name}
    environment.setdefault("ASAN_OPTIONS", "exitcode=99:detect_leaks=1:abort_on_error=0")
    environment.setdefault("LSAN_OPTIONS", f"print_suppressions=0:suppressions={ROOT}/tests/lsan.supp")
    environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1:exitcode=99")
    # Otherwise a program sleeps for a second when it ends, and the tests run hundreds of commands.
    environment.setdefault("TSAN_OPTIONS", "exitcode=99:atexit_sleep_ms=0:halt_on_error=0:second_deadlock_stack=1:"
                           f"suppressions={ROOT}/tests/tsan.supp")
    for name in [name for name in environment if name.startswith("CROUPIER_")]:
        del environment[name]
    return environment


def eventually(condition, seconds=10.0, interval=0.02):
    """The first true value of condition(), asked again and again; fails when there is none in time: in many times
    `seconds`, because the machine may be busy with something else."""
    limit = max(60, 4 * seconds) * PATIENCE
    deadline = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {limit} s: {condition}"
        time.sleep(interval)


def with_options(arguments, *options):
    """`options` at the end of a command's arguments, but before a "--", behind which there are none."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return (*arguments[:end], *options, *arguments[end:])


class Response:
    """An answer: status, header fields in their order, body as it came (and `content`, decompressed)."""

    def __init__(self, status, fields, body, version="HTTP/1.1", reason=""):
        self.status = status
        self.fields = fields
        self.body = body
        self.version = version
        self.reason = reason

    def all(self, name):
        return [value for field, value in self.fields if field.lower() == name.lower()]

    def header(self, name):
        values = self.all(name)
        assert len(values) <= 1, f"{name} given {len(values)} times"
        return values[0] if values else None

    @property
    def content(self):
        if self.header("content-encoding") == "gzip":
            return zlib.decompress(self.body, wbits=31)
        assert self.header("content-encoding") is None
        return self.body

    def json(self):
        return json.loads(self.content)

    @property
    def error(self):
        """(status, code) of an error document."""
        document = self.json()
        assert set(document) == {"error", "message"}, document
        assert document["message"], "an error document needs a message"
        return self.status, document["error"]

    def __repr__(self):
        return f"<{self.status} {self.body[:200]!r}>"


class Connection:
    """A raw connection: what is sent is what was written, what is read is what came."""

    def __init__(self, address, source=None, tls=None, timeout=60.0):
        self.timeout = timeout * PATIENCE
        self.socket = socket.create_connection(address, timeout=self.timeout,
                                               source_address=(source, 0) if source else None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data.encode("latin-1") if isinstance(data, str) else data)

    def more(self):
        """Receives once; False: it is closed."""
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            data = b""
        self.buffer += data
        return bool(data)

    def until(self, mark):
        """What comes up to and including a mark."""
        while mark not in self.buffer:
            if not self.more():
                raise EOFError(f"closed after {self.buffer!r}")
        at = self.buffer.index(mark) + len(mark)
        taken, self.buffer = self.buffer[:at], self.buffer[at:]
        return taken

    def _exactly(self, size):
        while len(self.buffer) < size:
            if not self.more():
                raise EOFError(f"closed after {len(self.buffer)} of {size} bytes of a body")
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def receive(self, method="GET"):
        """The next answer (interim ones are left out)."""
        while True:
            head = self.until(b"\r\n\r\n").decode("latin-1")
            lines = head[:-4].split("\r\n")
            version, status, reason = (lines[0].split(" ", 2) + [""])[:3]
            fields = []
            for line in lines[1:]:
                name, colon, value = line.partition(":")
                assert colon and name == name.strip() and name, f"malformed field line {line!r}"
                fields.append((name, value.strip()))
            response = Response(int(status), fields, b"", version, reason)
            if response.status >= 200:
                break
        if method == "HEAD" or response.status in (204, 304):
            return response
        assert response.header("transfer-encoding") is None
        length = response.header("content-length")
        if length is not None:
            response.body = self._exactly(int(length))
        else:
            response.body = self.rest()
        return response

    def rest(self):
        """All that comes until the other side closes."""
        while self.more():
            pass
        taken, self.buffer = self.buffer, b""
        return taken

    def at_end(self):
        """Whether the other side has closed, with nothing more to read."""
        return self.rest() == b""


class Clock:
    """The time of a server and of commands that have `environment`: the machine's, and what a test adds (tests/test_clock.c)."""

    def __init__(self, path):
        self.path = Path(path)
        self.ahead = [0, 0]  # nanoseconds, of the monotonic and of the wall clock
        self.path.write_bytes(struct.pack("=qq", *self.ahead))
        asan = os.environ.get("ASAN_OPTIONS", "exitcode=99:detect_leaks=1:abort_on_error=0")
        self.environment = {"LD_PRELOAD": str(TEST_CLOCK), "CROUPIER_TEST_CLOCK": str(path),
                            "ASAN_OPTIONS": f"{asan}:verify_asan_link_order=0"}

    def advance(self, monotonic=0.0, wall=0.0):
        """By so many seconds, at once."""
        for number, seconds in enumerate((monotonic, wall)):
            self.ahead[number] += int(seconds * 1_000_000_000)
        with open(self.path, "r+b", buffering=0) as file:
            file.write(struct.pack("=qq", *self.ahead))


class Customer:
    def __init__(self, identity, key):
        self.id = identity
        self.key = key


def at_a_terminal(answer, *arguments, **options):
    """Runs a command at a terminal, where a person answers its question; exit status, and what the terminal shows."""
    here, there = pty.openpty()
    process = subprocess.Popen([str(BINARY), *map(str, arguments)], stdin=there, stdout=there, stderr=there, **options)
    os.close(there)
    os.write(here, answer.encode() + b"\n")
    said = b""
    while True:
        try:
            some = os.read(here, 4096)
        except OSError:  # the other end is closed
            break
        if not some:
            break
        said += some
    os.close(here)
    return process.wait(60 * PATIENCE), said.decode()


class Service:
    def __init__(self, directory, settings=None, environment=None, stores=True, own_stores=False, odds=None,
                 platform=None):
        """stores: makes them (nothing published, the platform store migrated). own_stores: see engines.py, where
        also odds and platform come from unless they are given."""
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.odds = odds or engines.odds_store(self.directory, own_stores)
        self._platform = platform or engines.platform_store(self.directory, own_stores)
        self._to_be_made = False
        self._configuration = self.directory / "croupier.conf"
        self.environment = sanitizer_environment()
        self.environment.update(environment or {})
        self._own_environment = bool(environment)
        self.settings = {
            ("server", "listen"): "127.0.0.1:0",
            ("server", "threads"): "2",
            ("server", "drain_seconds"): "5",
            ("operator", "listen"): "127.0.0.1:0",
            ("odds", "store"): self.odds.uri,
            ("odds", "timeout_ms"): STORE_TIMEOUT_MS,  # of commands as well
            ("platform", "store"): self._platform.uri,
            ("platform", "timeout_ms"): STORE_TIMEOUT_MS,
            ("casino", "secrets_key_file"): f"{self.directory}/secrets.key",
            ("log", "level"): "info",
            ("log", "format"): "json",
        }
        self.configure(settings or {})
        self.process = None
        self.address = None
        self.operator_address = None
        self.provider_address = None
        self.tls = None
        self._log_path = None
        self._starts = 0
        if stores:
            self.publish_nothing()
            of_its_own = platform or self.platform.own or {"platform.store", "casino.secrets_key_file"} & set(settings or {})
            self._to_be_made = not of_its_own
            if of_its_own:
                self._make()

    @property
    def platform(self):
        self._migrate()
        return self._platform

    @property
    def configuration(self):
        """Whoever reads the file finds the stores that it names."""
        self._migrate()
        return self._configuration

    def _migrate(self):
        if self._to_be_made:
            self._copy_or_make("migrated", self._make)

    def _make(self):
        self._to_be_made = False
        return self.prepare("migrate").text

    def _copy_or_make(self, name, make):
        """Hundreds of tests begin with the same platform store, so it is a copy of what make() made in an earlier service of this
        process. Returns what that returned, which is text."""
        kept, key = Path(KEPT.name) / name, self.directory / "secrets.key"
        if (kept / "returned").exists():
            self._to_be_made = False
            self._platform.copy_kept(kept)
            shutil.copy(kept / "secrets.key", key)
            return (kept / "returned").read_text()
        returned = make()
        kept.mkdir()
        self._platform.keep(kept)
        shutil.copy(key, kept)
        (kept / "returned").write_text(returned)  # comes last: with it, all is there
        return returned

    # ---- configuration, commands ------------------------------------------------------------------

    def configure(self, settings):
        """Settings are {"section.key": value}; None takes one out. Writes the file."""
        for name, value in settings.items():
            section, key = name.split(".")
            if value is None:
                self.settings.pop((section, key), None)
            else:
                self.settings[(section, key)] = str(value)
        lines = []
        for section in dict.fromkeys(section for section, _ in self.settings):
            lines.append(f"[{section}]")
            lines += [f"{key} = {value}" for (of, key), value in self.settings.items() if of == section]
        self._configuration.write_text("\n".join(lines) + "\n")
        self._configuration.chmod(0o640)  # there may be a password in it

    def prepare(self, *arguments, input=None):
        """Runs a command that makes what a test begins with, and is not what it tests: that is for `run` and `ask`."""
        return self.run(*arguments, input=input, program=PREPARING)

    def run(self, *arguments, input=None, status=0, configuration=True, program=BINARY):
        """Runs a command with -c; its exit status must be `status` (None: any)."""
        if arguments[0] == "migrate":
            self.platform.make()
        if configuration:
            arguments = with_options(arguments, "-c", self.configuration)
        command = [str(program), *map(str, arguments)]
        if isinstance(input, str):
            input = input.encode()
        done = subprocess.run(command, input=input if input is not None else b"", capture_output=True,
                              env=self.environment, cwd=self.directory, timeout=180 * PATIENCE)
        text = done.stderr.decode("utf-8", "replace")
        assert not REPORT.search(text), text
        if status is not None:
            assert done.returncode == status, f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{text}"
        done.text = done.stdout.decode("utf-8", "replace")
        done.errors = text
        if arguments[0] == "feed":
            self._settle(FEW if arguments[1] in ("odds", "catalog") else MANY)
        return done

    def _settle(self, most):
        """Waits until the server that runs, if one does, must know of what was published."""
        if self.process is not None and self.operator_address is not None and self._served == self.odds.uri:
            with contextlib.suppress(OSError):
                self.odds.settle(self.metrics, self.settings.get(("odds", "prefix"), ""), most)

    def ask(self, *arguments, **options):
        """Runs a command with --json and returns its document."""
        return json.loads(self.run(*with_options(arguments, "--json"), **options).stdout)

    def add_customer(self, name="Acme", cidrs=("127.0.0.0/8", "::1/128"), sports="all", rate=None,
                     key=True, options=()):
        arguments = ["customer", "add", name, "--sports", sports, *options]
        for cidr in cidrs:
            arguments += ["--cidr", cidr]
        if rate:
            arguments += ["--rate", rate]

        def add():
            identity = json.loads(self.prepare(*arguments, "--json").text)["id"]
            return json.dumps([identity, self.issue_key(identity) if key else None])

        # The first of a store whose time is not the test's own: it may have been added earlier, to another store.
        of_another = self._to_be_made and not self._own_environment
        name = hashlib.sha256(json.dumps([arguments, key]).encode()).hexdigest()[:16]
        return Customer(*json.loads(self._copy_or_make(name, add) if of_another else add()))

    def issue_key(self, customer, *options):
        return json.loads(self.prepare("key", "issue", customer, *options, "--json").text)["key"]

    # ---- the feed ---------------------------------------------------------------------------------

    def publish_nothing(self):
        """Makes the odds store, with nothing in it."""
        self.prepare("feed", "withdraw", "cricket")

    def publish(self, sport, catalog, odds=None):
        """A catalog (a list, or bytes) and the odds of its events, through `croupier feed`."""
        if odds:
            self.publish_odds_of(sport, odds, catalog)
        else:
            self.prepare("feed", "catalog", sport, "-", input=as_document(catalog))

    def publish_odds(self, sport, event, markets):
        self.prepare("feed", "odds", sport, str(event), "-", input=as_document(markets))

    def publish_odds_of(self, sport, odds, catalog=None):
        """The odds of several events, {event: markets}, by one process; before them the catalog, when one is given."""
        lines = [] if catalog is None else [b'{"catalog":"%s","document":%s}' % (sport.encode(), as_document(catalog))]
        lines += [b'{"odds":"%s","event":"%s","document":%s}' % (sport.encode(), str(event).encode(), as_document(markets))
                  for event, markets in odds.items()]
        answers = self.prepare("feed", "stream", input=b"\n".join(lines)).text.splitlines()
        assert [json.loads(answer).get("published") for answer in answers] == [True] * len(lines), answers

    def put(self, sport, event, document):
        """Puts bytes into the odds store that `croupier feed` would refuse. event None: the catalog."""
        subprocess.run([PUT_ODDS, self.settings[("odds", "store")], sport, "-" if event is None else str(event)],
                       input=document, env=self.environment, check=True, timeout=180 * PATIENCE)
        self._settle(FEW)

    # ---- the server -------------------------------------------------------------------------------

    def spawn(self, errors=None):
        """Starts the server and does not wait. errors: where its log goes (a descriptor), in place of a file."""
        assert self.process is None
        self._starts += 1
        self._served = self.settings[("odds", "store")]
        self._log_path = self.directory / f"server-{self._starts}.log"
        with open(self._log_path, "wb") as log:
            self.process = subprocess.Popen([str(BINARY), "serve", "-c", str(self.configuration)], stdout=log,
                                            stderr=log if errors is None else errors, stdin=subprocess.DEVNULL,
                                            env=self.environment, cwd=self.directory)

    def start(self, healthy=True):
        """Starts the server and waits until it listens (and, unless told otherwise, is healthy)."""
        self.spawn()
        eventually(self.listening, 30)
        if healthy:
            eventually(lambda: self.get("/api/v1/health").status == 200, 30)
        return self

    def listening(self):
        found = {}
        for line in self.log_lines():
            if line.get("message") == "listening":
                host, _, port = line["address"].rpartition(":")
                found[line["listener"]] = (host.strip("[]"), int(port))
        if {"public", "operator"} <= set(found):
            self.address, self.operator_address = found["public"], found["operator"]
            self.provider_address = found.get("provider")
            return True
        assert self.process.poll() is None, f"the server ended with {self.process.returncode}:\n{self.log_text()}"
        return False

    def log_text(self):
        return self._log_path.read_text("utf-8", "replace") if self._log_path else ""

    def log_lines(self):
        """Every line of the server's log so far. Each must be a JSON object."""
        text = self.log_text()
        lines = text.split("\n")[:-1] if text else []
        assert not REPORT.search(text), text
        return [json.loads(line) for line in lines]

    def log_line(self, response):
        """The line of the request that got this response."""
        identity = response.header("x-request-id")
        return eventually(lambda: [line for line in self.log_lines() if line.get("id") == identity])[0]

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=60):
        """Waits for the server to end by itself; returns its exit status."""
        process, self.process = self.process, None
        try:
            status = process.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the server did not end:\n{self.log_text()}") from None
        assert status != 99, f"a sanitizer complains:\n{self.log_text()}"
        return status

    def stop(self):
        """Asks the server to end; it must do so in order, and leave no complaint of a sanitizer."""
        if self.process is None:
            return
        self.signal(signal.SIGTERM)
        status = self.wait()
        text = self.log_text()
        assert not REPORT.search(text), text
        assert status == 0, f"exit status {status}:\n{text}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def remove(self):
        """Stops the server; its stores are no longer needed."""
        try:
            self.stop()
        finally:
            self.odds.remove()
            self._platform.remove()

    def word(self, path):
        """What the operator's listener tells an orchestrator: a status and a word."""
        answer = self.request("GET", path, address=self.operator_address)
        return answer.status, answer.body.decode()

    # ---- clients ----------------------------------------------------------------------------------

    def connect(self, source=None, timeout=60.0, address=None):
        return Connection(address or self.address, source, self.tls, timeout)

    def request(self, *arguments, **options):
        """One request as `attempt`. On a machine that is so busy that the policies could not be confirmed for a while, which is
        503, it is sent again for some seconds; nothing has been done then."""
        until = time.monotonic() + 3 * PATIENCE
        while True:
            response = self.attempt(*arguments, **options)
            if response.status != 503 or b"security_config_unavailable" not in response.body or time.monotonic() > until:
                return response
            time.sleep(0.05)

    def attempt(self, method, path, key=None, headers=(), body=None, source=None, address=None, tls=None):
        """One request on a connection of its own, by Python's own HTTP client. `tls`: of another address than the customers'."""
        host, port = address or self.address
        options = {"timeout": 60 * PATIENCE, "source_address": (source, 0) if source else None}
        tls = tls or (self.tls if address is None else None)
        if tls:
            client = http.client.HTTPSConnection(host, port, context=tls, **options)
        else:
            client = http.client.HTTPConnection(host, port, **options)
        fields = list(headers.items() if isinstance(headers, dict) else headers)
        if key is not None:
            fields.append(("Authorization", f"Bearer {key}"))
        try:
            client.putrequest(method, path, skip_accept_encoding=True)
            for name, value in fields:
                client.putheader(name, value)
            if body is not None:
                client.putheader("Content-Length", str(len(body)))
            client.endheaders(body)
            answer = client.getresponse()
            return Response(answer.status, answer.getheaders(), answer.read(), reason=answer.reason)
        finally:
            client.close()

    def get(self, path, key=None, headers=(), source=None):
        return self.request("GET", path, key, headers, source=source)

    def metrics(self):
        """The operator's metrics: {name{labels}: value}."""
        response = self.request("GET", "/metrics", address=self.operator_address)
        assert response.status == 200
        values = {}
        for line in response.body.decode().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                values[name] = float(value)
        return values

    def await_admission(self, key=None, source=None, admitted=True):
        """Waits until the server knows of a change of policy."""
        eventually(lambda: (self.get("/api/v1/nothing-here", key=key, source=source).status != 403) == admitted)


def as_document(value):
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def certificate(directory, name="server", key=("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
                days=2):
    """A self-signed certificate for localhost and its key, made with openssl; their paths."""
    directory = Path(directory)
    paths = directory / f"{name}.crt", directory / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", *key, "-nodes",
                    "-days", str(days), "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    return paths


def trusting(certificate_path):
    """A client's TLS context that trusts this one certificate."""
    return ssl.create_default_context(cafile=str(certificate_path))


def row(gmid, **fields):
    """A catalog row as a feed writes it."""
    return {"gmid": gmid, "ename": f"Event {gmid}", "etid": 4, "status": "OPEN", **fields}


def match_odds(price="1.80"):
    """A market whose numbers would not survive a float."""
    return ('[{"marketId":"1.234","marketName":"MATCH_ODDS","gtype":"match","status":"OPEN","runners":['
            '{"selectionId":7461,"runnerName":"India","status":"ACTIVE","ex":{"availableToBack":'
            '[{"price":%s,"size":283.3844663329566}],"availableToLay":[{"price":1.90,"size":1e2}]}}]}]' % price).encode()


def basic(user="user", password="secret"):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
