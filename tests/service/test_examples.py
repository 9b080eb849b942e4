"""The programs of examples/, as their READMEs run them, against a demo; what they do when they or the server are killed."""

import fcntl
import gzip
import hashlib
import http.server
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from pathlib import Path

import pytest
import zstandard

from croupier import PATIENCE, ROOT, eventually, sanitizer_environment
from servers import free_port
from test_contract_differences import MAGIC, name_of
from test_demo import Demo, shell, BINARY

pytestmark = pytest.mark.only("embedded", "sqlite")  # which are what a demo has

EXAMPLES = ROOT / "examples"
CUSTOMERS = {"python": [sys.executable, EXAMPLES / "customer-python" / "customer.py"],
             "node": ["node", EXAMPLES / "customer-node" / "customer.mjs"]}
GO = [EXAMPLES / "customer-go" / name for name in ("customer.go", "main.go")]
JAVA = [EXAMPLES / "customer-java" / "Customer.java"]
# By compilers that tools/setup does not install: a quarter of a gigabyte each. With a further file, and the library that it needs,
# which on Debian 13 are golang-github-klauspost-compress-dev and libzstd-jni-java, a customer gets differences.
COMPILED = ("go", "java")
ZSTD_GO, ZSTD_JAVA = Path("/usr/share/gocode"), Path("/usr/share/java/zstd-jni.jar")


def compile_once(compiler, sources, command, **environment):
    """In a directory beside the program, which is returned, once for all processes; command(directory) is what compiles."""
    kept = BINARY.parent / "examples"
    directory = kept / hashlib.sha256(repr([compiler, *(source.read_text() for source in sources)]).encode()).hexdigest()[:16]
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "compiling", "w") as compiling:
        fcntl.flock(compiling, fcntl.LOCK_EX)
        if not (directory / "compiled").exists():
            subprocess.run(command(directory), check=True, env=dict(os.environ, GOCACHE=str(kept / "cache"), **environment),
                           timeout=300 * PATIENCE)
            (directory / "compiled").touch()
    return directory


def compiled(name):
    """The command of a customer that is compiled first; skips where there is no compiler, or no library."""
    language, _, differences = name.partition("-")
    compiler = next(filter(shutil.which, {"go": ("go",) if differences else ("go", "gccgo"), "java": ("javac",)}[language]), None)
    if compiler is None:
        pytest.skip(f"no compiler for {language} here; on Debian: apt install gccgo default-jdk-headless")
    library = {"go": ZSTD_GO / "src/github.com/klauspost/compress/zstd/decoder_options.go", "java": ZSTD_JAVA}[language]
    if differences and not (library.exists() and (language == "java" or b"WithDecoderDictRaw" in library.read_bytes())):
        pytest.skip(f"no library of zstd for {language} here, or one that is too old")
    go, java = ([*GO, GO[0].with_name("differences.go")], [*JAVA, JAVA[0].with_name("Differences.java")]) if differences else (GO, JAVA)

    def path(directory):
        return f"{directory}:{ZSTD_JAVA}" if differences else directory

    def command(directory):
        return {"go": ["go", "build", "-o", directory / "customer", *go], "gccgo": ["gccgo", "-o", directory / "customer", *go],
                "javac": ["javac", "-Xlint:all", "-Werror", "-cp", path(directory), "-d", directory, *java]}[compiler]

    made = compile_once(compiler, go if language == "go" else java, command,
                        **({"GO111MODULE": "off", "GOPATH": str(ZSTD_GO)} if differences else {}))
    return ["java", "-XX:TieredStopAtLevel=1", "-cp", path(made), java[-1].stem] if language == "java" else [made / "customer"]


class Market:
    """A demo that can be killed and started again where it was."""

    def __init__(self, directory, **settings):
        self.directory, self.port, self.providers, self.settings = directory, free_port(), free_port(), settings
        self.start()

    def start(self):
        self.demo = Demo(self.directory / "demo-data", "--json", listen=f"127.0.0.1:{self.port}",
                         environment={"CROUPIER_PROVIDER_LISTEN": f"127.0.0.1:{self.providers}", **self.settings})
        self.told = self.demo.told()

    def kill(self):
        self.demo.end(signal.SIGKILL)

    def croupier(self, *words):
        """What a command of the operator's prints."""
        return subprocess.run([BINARY, *words, "-c", self.told["config"]], capture_output=True, text=True, check=True,
                              env=self.demo.environment, timeout=60 * PATIENCE).stdout.strip()


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    one = Market(tmp_path_factory.mktemp("examples"))
    yield one
    one.demo.end()


class Customer:
    def __init__(self, program, market, directory):
        self.program, self.market, self.journal = program, market, directory / "wallet.journal"
        self.directory = directory

    def start(self, *words, base=None, key=None):
        environment = dict(os.environ, BASE=base or f"http://127.0.0.1:{self.market.port}",
                           KEY=self.market.told["key"] if key is None else key,
                           JOURNAL=str(self.journal))
        return subprocess.Popen([*map(str, self.program), *map(str, words)], env=environment, cwd=self.directory,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words, exits=0, **more):
        """What it printed: of one that fails, the errors."""
        process = self.start(*words, **more)
        output, errors = process.communicate(timeout=120 * PATIENCE)
        assert process.returncode == exits, errors
        return output if output or not exits else errors

    def launch(self):
        return json.loads(self.run("launch", "anubis-falls", f"{self.directory.name}", "EUR"))

    def balance(self, player):
        body = json.dumps({"operation": "BALANCE", "player_id": player}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.market.port}/api/v1/casino/wallet", data=body, headers={
            "Authorization": f"Bearer {self.market.told['key']}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60 * PATIENCE) as answer:
            return json.load(answer)["balance_minor"]


@pytest.fixture(scope="module", params=[*CUSTOMERS, *COMPILED])
def program(request):
    return CUSTOMERS.get(request.param) or compiled(request.param)


@pytest.fixture
def customer(program, market, tmp_path):
    return Customer(program, market, tmp_path)


def test_a_customer_sees_prices_change(customer):
    event = customer.market.told["events"]["cricket"]
    request = urllib.request.Request(f"http://127.0.0.1:{customer.market.port}/api/v1/cricket/events/{event}", headers={
        "Authorization": f"Bearer {customer.market.told['key']}"})
    with urllib.request.urlopen(request, timeout=60 * PATIENCE) as answer:
        markets = [market["marketName"] for market in json.load(answer)["odds"]]

    def priced():
        text = customer.run("poll", "cricket", event, 2)
        assert text.count("\n") >= 2
        return [name for name in markets if name in text]

    assert eventually(priced), "a market that is suspended has no prices for a while"


class Taking(http.server.BaseHTTPRequestHandler):
    """Hands a poll on, and its answer back, without the field that it takes away."""

    def do_GET(self):
        server = self.server
        server.asked += 1
        request = urllib.request.Request(server.to + self.path, headers={
            name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection", server.takes)})
        try:
            answer = urllib.request.urlopen(request, timeout=60 * PATIENCE)
        except urllib.error.HTTPError as error:  # 304 is one, too
            answer = error
        with answer:
            body = answer.read()
        if answer.status == 200:
            server.contents.append(answer.headers["ETag"][:25])  # which all forms of a content share
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in ("connection", server.takes):
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def market_without_waits(tmp_path_factory):
    one = Market(tmp_path_factory.mktemp("examples-without-waits"), CROUPIER_SERVER_WAITING_MAX="0")
    yield one
    one.demo.end()


@pytest.mark.parametrize("takes", ["nothing", "if-none-match", "etag"])
def test_a_customer_pauses_when_its_polls_do_not_wait(program, market_without_waits, takes, tmp_path):
    """An answer without a change is no change, whatever its status is, and one that did not wait is not asked for again at once."""
    customer = Customer(program, market_without_waits, tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
        server.to, server.takes, server.asked, server.contents = f"http://127.0.0.1:{customer.market.port}", takes, 0, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        began = time.monotonic()
        customer.run("poll", "cricket", customer.market.told["events"]["cricket"], 3, base=f"http://127.0.0.1:{server.server_port}")
        took_s = time.monotonic() - began
        server.shutdown()
    assert len(list(itertools.groupby(server.contents))) == 3
    assert server.asked <= 3 + took_s + 1  # the changes, and a second's pause after each of the others


def differences(market):
    with urllib.request.urlopen(f"{market.told['operator']}/metrics", timeout=60 * PATIENCE) as answer:
        return int(re.search(r"^croupier_differences_total (\d+)$", answer.read().decode(), re.MULTILINE)[1])


WITHOUT_ZSTD = """import runpy, sys
sys.modules["zstandard"] = sys.modules["compression.zstd"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")"""


def test_a_customer_in_python_gets_differences_and_does_without_them(market, tmp_path):
    (python, program), event, before = CUSTOMERS["python"], market.told["events"]["football"], differences(market)
    Customer([python, "-c", WITHOUT_ZSTD, program], market, tmp_path).run("poll", "football", event, 3)
    assert differences(market) == before
    Customer([python, program], market, tmp_path).run("poll", "football", event, 4)
    assert differences(market) >= before + 3


def with_price(number):
    runner = {"runnerName": "Ann", "ex": {"availableToBack": [{"price": 2.25 + number / 4}]}}
    return json.dumps({"odds": [{"marketName": "Winner", "runners": [runner]}]}).encode()


class Changing(http.server.BaseHTTPRequestHandler):
    """A price that changes with each answer, which is a difference where a client names the body before; `damage` spoils those."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server, named = self.server, self.headers["Available-Dictionary"]
        server.named.append(named is not None)
        before, body = with_price(server.number - 1), with_price(server.number)
        self.send_response(200)
        self.send_header("ETag", f'"{server.number}"')
        if named == name_of(before):
            raw = zstandard.ZstdCompressionDict(before, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            frame = zstandard.ZstdCompressor(dict_data=raw, write_checksum=True).compress(body)
            body = server.damage(MAGIC + hashlib.sha256(before).digest() + frame)
            self.send_header("Content-Encoding", "dcz")
        elif "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        server.number += not server.named[-1] or server.whole
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def flipped(body, at):
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]


DAMAGES = {"none": lambda body: body, "magic": lambda body: flipped(body, 0), "digest": lambda body: flipped(body, 20),
           "checksum": lambda body: flipped(body, -1), "end": lambda body: body[:-5], "head": lambda body: body[:7]}


@pytest.mark.parametrize("program", [*CUSTOMERS, *(f"{language}-differences" for language in COMPILED)], indirect=True)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_difference_that_is_damaged_is_asked_for_whole(customer, damage):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Changing) as server:
        server.number, server.named, server.whole, server.damage = 0, [], damage == "none", DAMAGES[damage]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        output = customer.run("poll", "cricket", 1, 3, base=f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert re.findall(r"\d\.\d+", output) == ["2.25", "2.5", "2.75"]
    if any(server.named) or customer.program != CUSTOMERS["node"]:  # a Node that is too old has no zstd
        assert server.named == ([False, True, True] if damage == "none" else [False, True, False, True, False])


class Swallowing(http.server.BaseHTTPRequestHandler):
    """Hands a request on to croupier, and never the answer back."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = urllib.request.Request(self.server.to + self.path, data=body, headers={
            name: self.headers[name] for name in ("Authorization", "Content-Type")})
        with urllib.request.urlopen(request) as answer:
            self.server.swallowed.append(json.load(answer))
        self.server.release.wait()

    def log_message(self, *_):
        pass


def test_a_customer_that_is_killed_without_an_answer_sends_the_same_again(customer):
    player = customer.launch()["player_id"]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Swallowing)
    server.to, server.swallowed, server.release = f"http://127.0.0.1:{customer.market.port}", [], threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    process = customer.start("deposit", player, 2500, "EUR", base=f"http://127.0.0.1:{server.server_port}")
    eventually(lambda: server.swallowed)
    process.kill()
    process.communicate()
    server.release.set()
    server.shutdown()
    server.server_close()
    with open(customer.journal, "a") as journal:
        journal.write('{"id": "cut')  # and as if it had been killed while it wrote
    other = customer.market.croupier("customer", "add", "Other", "--cidr", "127.0.0.0/8", "--casino")
    key = customer.market.croupier("key", "issue", other)
    eventually(lambda: "(404" in customer.run("settle", exits=1, key=key))  # that of another customer proves nothing
    status, _, answer = customer.run("settle").partition(" ")
    assert status == "200" and json.loads(answer) == {**server.swallowed[0], "replayed": True}
    assert customer.run("settle") == ""
    assert json.loads(customer.run("withdraw", player, 100, "EUR").partition(" ")[2])["balance_minor"] == 2400
    assert customer.balance(player) == 2400


def test_a_customer_goes_on_when_the_server_was_killed(customer):
    player = customer.launch()["player_id"]
    customer.run("deposit", player, 1000, "EUR")
    customer.market.kill()
    process = customer.start("withdraw", player, 300, "EUR")
    assert "the same again" in process.stderr.readline()
    customer.market.start()
    output, errors = process.communicate(timeout=120 * PATIENCE)
    assert process.returncode == 0, errors
    assert json.loads(output.partition(" ")[2])["balance_minor"] == 700
    assert customer.balance(player) == 700


class Cutting(http.server.BaseHTTPRequestHandler):
    """Hands a request on to the wallet, and the first time no more than half of the answer back."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name: value for name, value in self.headers.items()
                   if name.startswith("X-") or name in ("Authorization", "Content-Type")}
        with urllib.request.urlopen(urllib.request.Request(self.server.to + self.path, data=body, headers=headers)) as answer:
            whole = answer.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(whole)))
        self.end_headers()
        self.wfile.write(whole if body in self.server.cut else whole[:len(whole) // 2])
        self.server.cut.append(body)

    def log_message(self, *_):
        pass


def test_a_customer_asks_again_when_an_answer_is_cut_off(customer):
    player = customer.launch()["player_id"]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cutting) as server:
        server.to, server.cut = f"http://127.0.0.1:{customer.market.port}", []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        status, _, answer = customer.run("deposit", player, 700, "EUR", base=f"http://127.0.0.1:{server.server_port}").partition(" ")
        server.shutdown()
    assert (status, json.loads(answer)["balance_minor"], json.loads(answer)["replayed"]) == ("200", 700, True)
    assert len(server.cut) == 2 and server.cut[0] == server.cut[1]
    assert customer.balance(player) == 700


def test_a_decline_is_an_answer(customer):
    player = customer.launch()["player_id"]
    assert customer.run("withdraw", "ply_nobody", 1, "EUR", exits=1).startswith("404 ")
    assert customer.run("withdraw", player, 1, "EUR", exits=1).startswith("422 ")
    assert customer.run("settle") == ""


def test_a_bet_and_its_win_stand_in_the_report_and_a_blocked_player_bets_no_more(customer):
    """What a page calls a bet has to be one: the operator's report counts it, and a block refuses it."""
    def moved():
        entries = json.loads(customer.market.croupier("wallet", "statement", player, "--json"))["entries"]
        return [(entry["operation"], entry["game_id"], entry["round_id"], entry["reference_transaction_id"]) for entry in entries]

    def report():
        totals = json.loads(customer.market.croupier("wallet", "report", "--json"))["totals"]
        return Counter({name: sum(total[name] for total in totals) for name in (
            "stakes_minor", "wins_minor", "transfers_in_minor", "transfers_out_minor", "result_minor")})

    player = customer.launch()["player_id"]
    customer.run("deposit", player, 1000, "EUR")
    before = report()
    bet = json.loads(customer.run("bet", player, 300, "EUR", "anubis-falls", "round-1").partition(" ")[2])
    won = json.loads(customer.run("win", player, 180, "EUR", "anubis-falls", "round-1", bet["transaction_id"]).partition(" ")[2])
    assert (bet["balance_minor"], won["balance_minor"]) == (700, 880)
    assert moved()[1:] == [("DEBIT", "anubis-falls", "round-1", None), ("CREDIT", "anubis-falls", "round-1", bet["transaction_id"])]
    assert report() - before == {"stakes_minor": 300, "wins_minor": 180, "result_minor": 120}

    customer.market.croupier("player", "block", player, "--reason", "asked for it")
    assert customer.run("bet", player, 100, "EUR", "anubis-falls", "round-2", exits=1).startswith("403 ")
    assert customer.run("settle") == ""
    assert json.loads(customer.run("withdraw", player, 880, "EUR").partition(" ")[2])["balance_minor"] == 0


@pytest.mark.parametrize("words", [
    ("help",), ("settle", "ply_1"), ("launch", "anubis-falls", "player-1"), ("poll", "cricket", 1, "x"),
    ("bet", "ply_1", 100, "EUR", "anubis-falls"), ("withdraw", "ply_1", 100, "EUR", "anubis-falls", "r"),
    ("bet", "ply_1", "x", "EUR", "anubis-falls", "r"), ("deposit", "ply_1", "1.5", "EUR"), ("deposit", "ply_1", "9007199254740993", "EUR")])
def test_wrong_arguments_are_told_and_send_nothing(program, words, tmp_path):
    customer = Customer(program, None, tmp_path)
    process = customer.start(*words, base="http://127.0.0.1:1", key="crk_none")
    output, errors = process.communicate(timeout=60 * PATIENCE)
    assert (process.returncode, output, errors.count("\n")) == (2, "", 1) and "GAME ROUND" in errors, (words, output, errors)
    assert not customer.journal.exists()


def test_a_refusal_ends_a_customer_with_a_sentence(customer):
    event = customer.market.told["events"]["cricket"]
    assert "set KEY" in customer.run("poll", "cricket", event, 1, key="", exits=1)
    assert "Client address is not allowed. (403" in customer.run("poll", "cricket", event, 1, key="crk_wrong", exits=1)
    assert "Event not found (404" in customer.run("poll", "cricket", 1, 1, exits=1)
    assert "Game not found (404" in customer.run("launch", "no-such-game", "player-1", "EUR", exits=1)
    player = customer.launch()["player_id"]
    assert "(403" in customer.run("deposit", player, 100, "EUR", key="crk_wrong", exits=1)  # and is not taken for an answer
    assert json.loads(customer.run("settle").partition(" ")[2])["balance_minor"] == 100


@pytest.mark.parametrize("base", [None, "127.0.0.1:1"])
def test_a_server_that_is_not_there_is_told(program, base, tmp_path):
    """A wrong address is seen at once: a poll says each time that it had no answer, and a launch ends with a sentence."""
    customer, base = Customer(program, None, tmp_path), base or f"http://127.0.0.1:{free_port()}"
    refused = customer.run("launch", "anubis-falls", "player-1", "EUR", base=base, key="crk_none", exits=1)
    assert refused.count("\n") == 1 and refused.lower().startswith("customer") and "127.0.0.1" in refused, refused
    process = customer.start("poll", "cricket", 1, 1, base=base, key="crk_none")
    said = process.stderr.readline()
    assert "127.0.0.1" in said, said
    if "the same again" in said or said.startswith("0 "):
        assert "127.0.0.1" in process.stderr.readline()
        process.kill()
    output, errors = process.communicate(timeout=60 * PATIENCE)
    assert output == "" and "\tat " not in errors and "Traceback" not in errors


@pytest.mark.parametrize("end", ["/", "/api/v1", "/api/v1/"])
def test_the_address_may_end_in_a_slash_or_in_the_path_of_the_api(customer, end):
    base = f"http://127.0.0.1:{customer.market.port}{end}"
    assert json.loads(customer.run("launch", "anubis-falls", "player-1", "EUR", base=base))["launch_id"]


class Busy(http.server.BaseHTTPRequestHandler):
    """Refuses the first attempt, with a time to wait."""

    def do_GET(self):
        self.server.asked.append(time.monotonic())
        first = len(self.server.asked) == 1
        body = b'{"error":"overloaded","message":"Try again later."}' if first else b'{"odds":[]}'
        self.send_response(self.server.refusal if first else 200)
        self.send_header("Retry-After", "2")
        self.send_header("ETag", '"a"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("refusal", [429, 503])
def test_a_customer_waits_as_long_as_it_is_asked_to(customer, refusal):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        server.asked, server.refusal = [], refusal
        threading.Thread(target=server.serve_forever, daemon=True).start()
        customer.run("poll", "cricket", 1, 1, base=f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert len(server.asked) == 2 and server.asked[1] - server.asked[0] > 1.9


class Killing(http.server.BaseHTTPRequestHandler):
    """Hands requests for small pages on, and at one of them kills who asks: before the answer, in the midst of it, or after it."""

    def do_GET(self):
        server = self.server
        server.count += 1
        if server.count > server.at or (server.count, server.part) == (server.at, 0):
            return server.process.kill()
        request = urllib.request.Request(server.to + self.path.replace("limit=200", f"limit={server.limit}"), headers=dict(self.headers))
        with urllib.request.urlopen(request, timeout=60 * PATIENCE) as answer:
            body = answer.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:len(body) // 2] if (server.count, server.part) == (server.at, 1) else body)
        if server.count == server.at:
            server.process.kill()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def account_key(market):
    house = next(one["id"] for one in json.loads(market.croupier("customer", "list", "--json")) if one["casino"])
    return market.croupier("key", "issue", house, "--only", "account")


RECONCILERS = {"python": [sys.executable, EXAMPLES / "customer-python" / "reconcile.py"],
               "node": ["node", EXAMPLES / "customer-node" / "reconcile.mjs"]}


@pytest.fixture(params=[*RECONCILERS, *COMPILED])
def reconciler(request):
    if request.param in RECONCILERS:
        return RECONCILERS[request.param]
    compiler = next(filter(shutil.which, {"go": ("go", "gccgo"), "java": ("javac",)}[request.param]), None)
    source = {"go": EXAMPLES / "customer-go" / "reconcile.go", "java": EXAMPLES / "customer-java" / "Reconcile.java"}[request.param]
    if compiler is None:
        pytest.skip(f"no compiler for {request.param} here; on Debian: apt install gccgo default-jdk-headless")
    made = compile_once(compiler, [source], lambda directory: {
        "go": ["go", "build", "-o", directory / "reconcile", source], "gccgo": ["gccgo", "-o", directory / "reconcile", source],
        "javac": ["javac", "-Xlint:all", "-Werror", "-d", directory, source]}[compiler])
    return ["java", "-XX:TieredStopAtLevel=1", "-cp", made, source.stem] if request.param == "java" else [made / "reconcile"]


def test_a_copy_of_the_entries_survives_a_kill_at_any_moment_and_proves_each_day(reconciler, market, account_key, tmp_path):
    player = Customer(CUSTOMERS["python"], market, tmp_path)
    launched = player.launch()["player_id"]
    for amount in range(3):
        player.run("deposit", launched, 100 + amount, "EUR")
    player.run("bet", launched, 250, "EUR", "anubis-falls", "round-1")
    base, copy = f"http://127.0.0.1:{market.port}", tmp_path / "copy"

    def get(query):
        request = urllib.request.Request(f"{base}/api/v1/account/{query}", headers={"Authorization": f"Bearer {account_key}"})
        with urllib.request.urlopen(request, timeout=60 * PATIENCE) as answer:
            return json.load(answer)

    def copied():
        """The entries of the whole lines."""
        return [entry for line in copy.read_bytes().split(b"\n")[:-1] for entry in json.loads(line)["entries"]] if copy.exists() else []

    def start(to=base):
        return subprocess.Popen([*map(str, reconciler), *days], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(
            os.environ, BASE=to, ACCOUNT_KEY=account_key, COPY=str(copy)))

    def proves(exits=0):
        process = start()
        output, errors = process.communicate(timeout=120 * PATIENCE)
        assert process.returncode == exits, (output, errors)
        return output.splitlines()

    assert eventually(lambda: admitted(base, account_key))
    truth = get("entries?limit=200")["entries"]
    days = [truth[0]["created_at"][:10], truth[-1]["created_at"][:10]]
    thorough = reconciler is RECONCILERS["python"]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Killing) as server:
        server.to, server.limit = base, -(-len(truth) // 3)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for at, server.part in itertools.product((1, 2, 3), (0, 1, 2)) if thorough else [(2, 2)]:
            copy.unlink(missing_ok=True)
            server.count, server.at = 0, at
            server.process = start(f"http://127.0.0.1:{server.server_port}")
            server.process.communicate(timeout=120 * PATIENCE)
            assert server.process.returncode == -signal.SIGKILL
            assert copied() == truth[:len(copied())]
            assert all(line.endswith("equal") for line in proves())
            assert copied() == truth
        server.shutdown()
    whole = copy.read_bytes()
    for cut in (1, 2, len(whole) // 2) if thorough else [2]:  # a kill in the midst of a write
        copy.write_bytes(whole[:-cut])
        assert all(line.endswith("equal") for line in proves()) and copied() == truth
    copy.write_bytes(copy.read_bytes().replace(b'"movement_minor":-250', b'"movement_minor":-251', 1))
    [differs] = [line for line in proves(exits=1) if not line.endswith("equal")]
    day, currency, ours, theirs = re.fullmatch(r"(\S+) (\S+) ([-\d ]+) here, but ([-\d ]+) there", differs).groups()
    assert (day, currency) == (truth[-1]["created_at"][:10], "EUR")
    assert [int(one) - int(other) for one, other in zip(ours.split(), theirs.split())] == [0, 1, 0, 0, 0]


class Account(http.server.BaseHTTPRequestHandler):
    """An account of one page of entries, and of one row of a day."""

    def do_GET(self):
        body = json.dumps(self.server.entries if "/entries" in self.path else self.server.day, separators=(",", ":")).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("theirs, status", [(2**53 + 3, 0), (2**53 + 4, 1), (2**53 + 2, 1)])
def test_a_day_whose_sums_are_above_2_53_is_compared_to_the_cent(reconciler, theirs, status, tmp_path):
    day, kinds = "2026-11-28", ("stakes", "wins", "promos", "jackpots", "adjustments", "transfers_in", "transfers_out")
    row = {name: 0 for kind in kinds for name in (f"{kind}_minor", f"rolled_back_{kind}_minor")}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Account) as server:
        server.entries = {"entries": [{"created_at": f"{day}T00:00:00.000Z", "currency": "EUR", "operation": "CREDIT", "movement_minor": moved}
                                      for moved in (2**53 - 1, 2, 2)], "more": False, "next_cursor": "c"}
        server.day = {"day": day, "days": [{**row, "currency": "EUR", "entries": 3, "transfers_in_minor": theirs}], "next_cursor": None}
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = subprocess.run([*map(str, reconciler), day, day], capture_output=True, text=True, timeout=60 * PATIENCE, env=dict(
            os.environ, BASE=f"http://127.0.0.1:{server.server_port}/api/v1/", ACCOUNT_KEY="crk_none", COPY=str(tmp_path / "copy")))
        server.shutdown()
    verdict = f"here, but 3 0 {theirs} 0 0 there" if status else "equal"
    assert (done.returncode, done.stdout) == (status, f"{day} EUR 3 0 {2**53 + 3} 0 0 {verdict}\n"), done


@pytest.mark.parametrize("days", [
    ("29.11.2026",), ("2026-02-30",), ("20261101",), ("2026-11-01", "foo"), ("2026-11-02", "2026-11-01"), ("2026-11-01", "9999-12-31"),
    ("2026-11-01", "2026-11-02", "2026-11-03")])
def test_days_that_are_none_are_told_and_nothing_is_read(reconciler, days, tmp_path):
    done = subprocess.run([*map(str, reconciler), *days], capture_output=True, text=True, timeout=60 * PATIENCE, env=dict(
        os.environ, BASE="http://127.0.0.1:1", ACCOUNT_KEY="crk_none", COPY=str(tmp_path / "copy")))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1) and "FIRST" in done.stderr, done
    assert not (tmp_path / "copy").exists()


def admitted(base, key):
    """Whether the servers know the key yet."""
    try:
        urllib.request.urlopen(urllib.request.Request(f"{base}/api/v1/account", headers={"Authorization": f"Bearer {key}"}), timeout=60 * PATIENCE)
        return True
    except urllib.error.HTTPError:
        return False


@pytest.fixture
def begin(market):
    """Begins the example of a provider, which plays a round: a bet of 1.00 and a win of 1.80."""
    def begun(token, port=market.providers, secret=Path(market.told["secret"]).read_text()):
        environment = dict(sanitizer_environment(), PROVIDER="dune-studio", SECRET=secret,
                           WALLET=f"http://127.0.0.1:{port}/provider/v1/wallet")
        return subprocess.Popen([sys.executable, EXAMPLES / "provider-python" / "provider.py", token, "100", "180"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    return begun


@pytest.fixture
def provider(begin):
    def played(*arguments, **options):
        with begin(*arguments, **options) as process:
            shown = process.communicate(timeout=120 * PATIENCE)
        return subprocess.CompletedProcess(process.args, process.returncode, *shown)
    return played


def test_a_provider_believes_a_token_and_bets(market, begin, provider, tmp_path):
    customer = Customer(CUSTOMERS["python"], market, tmp_path)
    launched = customer.launch()
    token = launched["launch_url"].partition("token=")[2]
    declined = provider(token)
    assert declined.returncode == 1 and "(insufficient_funds)" in declined.stderr and "Traceback" not in declined.stderr
    customer.run("deposit", launched["player_id"], 500, "EUR")
    done = provider(token)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["balance_minor"] for line in done.stdout.splitlines()] == [400, 580]
    assert customer.balance(launched["player_id"]) == 580
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cutting) as server:
        server.to, server.cut = f"http://127.0.0.1:{market.providers}", []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = provider(token, server.server_port)
        server.shutdown()
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(answer["balance_minor"], answer["replayed"]) for answer in answers] == [(480, True), (660, True)]
    assert re.fullmatch(r"(provider.py: no answer of \S+ yet \(.+\); the same again\n){2}", done.stderr)
    with begin(token, free_port()) as process:  # a wrong address: each attempt says so
        assert all("refused" in process.stderr.readline() for _ in range(2))
        process.kill()
    header, claims, signature = token.split(".")
    assert "set SECRET" in provider(token, secret="").stderr
    for bad in ("", "a.b.c", f"{header}.{claims}.", f"{claims}.{claims}.{signature}"):
        refused = provider(bad)
        assert refused.returncode == 1 and refused.stdout == "" and refused.stderr.startswith("provider.py: the token"), bad


class Refusing(http.server.BaseHTTPRequestHandler):
    """Answers the first calls of an operation as `refusals` says, and takes those after them."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((asked["operation"], asked["transaction_id"]))
        refusals = self.server.refusals.get(asked["operation"])
        status, body = refusals.pop(0) if refusals else (200, json.dumps({"status": "applied", "transaction_id": asked["transaction_id"]}))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def refused(market, provider, tmp_path):
    """What the example does when its calls are refused so: how it ended, and its calls."""
    token = Customer(CUSTOMERS["python"], market, tmp_path).launch()["launch_url"].partition("token=")[2]

    def played(**refusals):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
            server.refusals, server.asked = refusals, []
            threading.Thread(target=server.serve_forever, daemon=True).start()
            done = provider(token, server.server_port)
            server.shutdown()
        return done, server.asked
    return played


def coded(status, code):
    return status, json.dumps({"error": code, "message": "No."})


def test_a_provider_repeats_what_may_be_taken_later(refused):
    done, asked = refused(CREDIT=[coded(408, "request_timeout"), coded(429, "slow_down"), coded(503, "overloaded"), (502, "<html>")])
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2, done.stderr
    assert len(asked) == 6 and len(set(asked)) == 2


@pytest.mark.parametrize("refusal", [coded(403, "not_admitted"), coded(404, "not_found"), coded(405, "method_not_allowed"), coded(413, "payload_too_large"),
                                     coded(400, "bad_request"), (403, "<html>")], ids=str)
@pytest.mark.parametrize("operation", ["DEBIT", "CREDIT"])
def test_a_provider_says_that_the_outcome_is_open(refused, operation, refusal):
    done, asked = refused(**{operation: [refusal]})
    assert done.returncode == 1 and asked[-1][0] == operation
    assert f"{refusal[0]}" in done.stderr and f"the outcome of the {operation} {asked[-1][1]} is open" in done.stderr
    assert len(done.stdout.splitlines()) == (operation == "CREDIT")  # the bet that was taken


@pytest.mark.parametrize("refusal", [coded(422, "balance_limit_exceeded"), coded(409, "transaction_rolled_back"), coded(404, "reference_not_found"),
                                     coded(400, "invalid_request")], ids=str)
def test_a_provider_does_not_take_a_declined_win_for_done(refused, refusal):
    done, asked = refused(CREDIT=[refusal])
    assert done.returncode == 1 and len(asked) == 2 and json.loads(refusal[1])["error"] in done.stderr
    assert "open" not in done.stderr


@pytest.mark.parametrize("program", [["/bin/sh", "back-office-curl/back_office.sh"], [sys.executable, "back-office-python/back_office.py"]])
def test_a_back_office_adds_a_customer_with_a_key_and_reads_usage(market, program, tmp_path):
    def back_office(*words, exits=0, token=None):
        environment = dict(sanitizer_environment(), CONSOLE=market.told["operator"], TOKEN=token or own)
        done = subprocess.run([program[0], EXAMPLES / program[1], *words], capture_output=True, text=True, env=environment,
                              timeout=60 * PATIENCE)
        assert done.returncode == exits and "Traceback" not in done.stderr, done
        return done.stdout if exits == 0 else done.stderr

    own = market.croupier("operator", "token", "add", tmp_path.name[:32], "--role", "owner")
    customer, key = back_office("add", f"{tmp_path.name} & Söhne", "127.0.0.0/8").split()
    shown = json.loads(market.croupier("customer", "show", customer, "--json"))
    assert (shown["name"], shown["cidrs"]) == (f"{tmp_path.name} & Söhne", ["127.0.0.0/8"])
    assert [one["prefix"] for one in json.loads(market.croupier("key", "list", customer, "--json"))] == [key[:8]]
    assert market.croupier("audit", "list", "--who", f"token {tmp_path.name[:32]}").count("POST") == 2
    assert json.loads(back_office("usage", customer))["requests"] == []
    player = Customer(CUSTOMERS["python"], market, tmp_path)
    player.run("deposit", player.launch()["player_id"], 500, "EUR")
    house = next(one["id"] for one in json.loads(market.croupier("customer", "list", "--json")) if one["casino"])
    assert any(row["currency"] == "EUR" for row in json.loads(back_office("usage", house))["wallet"])
    # What is refused is told, and ends it.
    assert "token_not_good" in back_office("usage", customer, exits=1, token=own[:-1])
    assert "CIDR" in back_office("add", "Nowhere", "nowhere", exits=1)
    reader = market.croupier("operator", "token", "add", f"r{tmp_path.name}"[:32], "--role", "reader")
    assert "role_too_low" in back_office("add", "Other", "127.0.0.0/8", exits=1, token=reader)
    assert "usage: " in back_office("add", exits=2)


class Requests:
    """Sends the requests of a .http file in their order, as the REST Client of VS Code does; keeps the answers of those that have a name."""

    def __init__(self, path, **variables):
        text = path.read_text()
        self.variables = {**dict(re.findall(r"^@(\w+) = (.*)$", text, re.MULTILINE)), **variables}
        self.requests = [request for request in re.split(r"^###.*\n", text, flags=re.MULTILINE)[1:]]
        self.answers = {}

    def value(self, match):
        word = match[1]
        if word == "$guid":
            return str(uuid.uuid4())
        name, _, rest = word.partition(".response.")
        if not rest:
            return self.variables[word]
        headers, body = self.answers[name]
        if rest.startswith("headers."):
            return headers[rest.removeprefix("headers.")]
        value = json.loads(body)
        for key, index in re.findall(r"[.](\w+)|\[(\d+)\]", rest.removeprefix("body.$")):
            value = value[key] if key else value[int(index)]
        return value

    def send(self):
        """The (name, status, answer) of each request."""
        for request in self.requests:
            name = re.search(r"^# @name (\w+)$", request, re.MULTILINE)
            written = re.sub(r"\{\{(.*?)\}\}", self.value, re.sub(r"^#.*\n", "", request, flags=re.MULTILINE))
            head, _, body = written.partition("\n\n")
            (method, address), *fields = (line.split(None, 1) for line in head.splitlines())
            sent = urllib.request.Request(address, method=method, data=body.strip().encode() or None,
                                          headers={field.rstrip(":"): value for field, value in fields})
            with urllib.request.urlopen(sent, timeout=60 * PATIENCE) as answer:
                taken = (answer.headers, answer.read())
                if name:
                    self.answers[name[1]] = taken
                yield name and name[1], answer.status, json.loads(taken[1])


def test_the_requests_of_the_http_file_go_the_whole_way(market):
    requests = Requests(EXAMPLES / "customer-http" / "customer.http", base=f"http://127.0.0.1:{market.port}/api/v1", key=market.told["key"])
    answers = {name: answer for name, status, answer in requests.send() if name and status == 200}
    assert list(answers) == ["event", "waited", "games", "launch", "deposit", "bet", "win", "second", "rollback", "balance"]
    assert answers["waited"] != answers["event"]  # a price has moved
    assert requests.answers["waited"][0]["Preference-Applied"] == "wait=55"
    assert [answers[name]["balance_minor"] for name in ("deposit", "bet", "win", "second", "rollback", "balance")] == [
        1000, 700, 880, 680, 880, 880]
    player = answers["launch"]["player_id"]
    entries = json.loads(market.croupier("wallet", "statement", player, "--json"))["entries"]
    assert [(entry["operation"], entry["round_id"]) for entry in entries] == [
        ("CREDIT", None), ("DEBIT", "round-1"), ("CREDIT", "round-1"), ("DEBIT", "round-2"), ("ROLLBACK", None)]


def test_every_example_has_a_readme_and_is_short():
    for directory in sorted(EXAMPLES.iterdir()):
        if directory.is_dir():
            assert (directory / "README.md").exists()
            for program in set(directory.iterdir()) - set(directory.glob("*.zst")):
                assert len(program.read_text().splitlines()) <= 220, program
