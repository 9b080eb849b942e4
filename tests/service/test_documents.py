"""Every command of every document, run as it is printed, by somebody who has only just arrived (newcomer.py)."""

import base64
import hashlib
import hmac
import json
import re
import shlex
import shutil
import subprocess
import sys
import time

import pytest

from croupier import BINARY, PATIENCE, ROOT, api_document, eventually, match_odds, row
from newcomer import Machine
from servers import Postgres, Redis, free_port

pytestmark = pytest.mark.only("embedded", "sqlite")  # it has engines of its own: once is enough

# But for the package's, whose commands tests/package/try_deb runs on a system that it boots, the containers', whose
# tests/package/try_compose runs on a Docker daemon of its own, and those that take a cluster, whose manifests it runs there.
DOCUMENTS = sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
                   if path.name not in ("package.md", "compose.md", "kubernetes.md"))
# What a fenced block may be. Commands are sh, redis (its own) and sql; nothing may hide under another name, or none.
LANGUAGES = {"sh", "redis", "sql", "c", "python", "javascript", "http", "json", "ini", "yaml", "text"}

# Lines that are not run, and why.
NOT_RUN = {
    ("README.md", "make run     # builds it and serves sample customers with moving odds of five sports"):
        "builds on the machine; the demo that it starts is what the next block talks to",
    ("README.md", "make test    # runs every test: some seven minutes on two processors, once it is built"): "this is one of them",
    ("docs/tutorial.md", "make build       # installs what is missing, and leaves build/croupier"):
        "builds, which has been done",
    ("docs/install.md", "sudo systemd-sysusers                        # makes the user croupier"):
        "changes the machine's users",
}
IN_VAIN = "builds, or runs tests beside these, which have done so"
TOOLS = "takes a tool that the tests do not install"
NOT_RUN.update({("CONTRIBUTING.md", line): reason for line, reason in {
    "make build          # build/croupier": IN_VAIN,
    "make test-quick     # units, and the service on embedded stores: two minutes, once built": IN_VAIN,
    "make test           # everything: units, stores, faults, corpora, and the service on every engine": IN_VAIN,
    "make check          # format, two compilers, lint, include order, all tests under sanitizers": IN_VAIN,
    "make model                      # for an hour, with seeds that it prints; MINUTES=5, MODEL_PAIRS=embedded,sqlite": IN_VAIN,
    "make model MINUTES=0 MODEL_SEED=20261127   # one seed again": IN_VAIN,
    "make model-faults               # plants each fault of tests/service/model/faults, and shows that the model finds it": IN_VAIN,
    "meson test -C build --list                              # C tests; `make test` has set build/ up": IN_VAIN,
    "meson test -C build test_decision --print-errorlogs     # one of them": IN_VAIN,
    "CROUPIER_BIN=$PWD/build/croupier TEST_ENGINES=redis,postgresql \\": IN_VAIN,
    "    /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/service/test_wallet.py -k rollback": IN_VAIN,
    "gdb --args build/croupier serve -c try.conf             # built with -O2 -g; meson configure build -Dbuildtype=debug for stepping":
        TOOLS,
    "gdb -p $(pgrep -n croupier) -batch -ex 'thread apply all bt'   # what is every thread doing? Threads have names": TOOLS,
    "rr record build/tests/unit/test_ledger && rr replay     # where the machine's processor allows it": TOOLS,
    "perf record -g -p $(pgrep -n croupier) -- sleep 10 && perf report": TOOLS,
    "strace -f -e trace=fdatasync,fsync,pwrite64 build/croupier wallet verify -c try.conf": "not everybody may trace here",
}.items()})
# Lines for which something else is run, because they never end or say what to do by hand.
INSTEAD = {
    ("docs/feed.md", "croupier feed simulate --events 10                  # invented events that move, until Ctrl-C"):
        "croupier feed simulate --events 10 >said & until grep -q Ctrl-C said; do sleep 0.05; done; kill -INT $!; wait $!",
    ("docs/operations.md", "# name the new stores in /etc/croupier/croupier.conf, and give every instance the same secrets_key_file"):
        "name-new-stores",
    ("docs/operations.md", "# the new stores are in /etc/croupier/croupier.conf by now"): "name-new-stores",
}


class Block:
    def __init__(self, document, language, text, after):
        self.document, self.language, self.text = document, language, text
        self.after = after  # the block that it follows with nothing in between

    def script(self):
        """What is run of it."""
        lines = []
        for line in self.text.splitlines():
            if (self.document, line) not in NOT_RUN:
                lines.append(INSTEAD.get((self.document, line), line))
        return "\n".join(lines)


def blocks_of(document):
    text = (ROOT / document).read_text()
    found = []
    end = 0
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        follows = found and not text[end:match.start()].strip()
        found.append(Block(document, match[1], match[2], found[-1] if follows else None))
        end = match.end()
    return found


def commands_of(document):
    return [block for block in blocks_of(document) if block.language in ("sh", "redis", "sql")]


def one(document, language, beginning=""):
    [block] = [block for block in blocks_of(document) if block.language == language and block.text.startswith(beginning)]
    return block


def fits(expected, actual, exact=True):
    """Whether the documents have one shape: the same members and values of the same kinds (or, when not exact, at least
    these members). null stands for any value, and an empty list or object for any other."""
    if expected is None or actual is None:
        return True
    if isinstance(expected, dict):
        return isinstance(actual, dict) and (not expected or not exact or set(expected) == set(actual)) and all(
            name in actual and fits(value, actual[name], exact) for name, value in expected.items())
    if isinstance(expected, list):
        return isinstance(actual, list) and (not expected or all(fits(expected[0], value, exact) for value in actual))
    return not exact or type(expected) is type(actual)


def shortened(text):
    """JSON of a document whose "…" stands for what is left out."""
    return json.loads(re.sub(r",? ?…|…[^}\]]*", "", text.replace("{…as in the catalog…}", "{}").replace("[…]", "[]")))


@pytest.fixture
def machine():
    machine = Machine()
    yield machine
    machine.remove()


@pytest.fixture
def demo(machine):
    """Of somebody who has read README.md, and has the demo and its key."""
    told = machine.begin_demo()
    machine.placeholders.update({"crk_…": told["key"], "34000001": str(told["events"]["cricket"]),
                                 "demo-data/croupier.conf": told["config"]})
    return machine


@pytest.fixture
def installed(machine):
    """Of somebody who has followed docs/install.md up to a service that runs."""
    for block in commands_of("docs/install.md")[:2]:
        machine.run(block.script(), machine.checkout)
    return machine


def run_all(machine, document):
    """Runs the commands of a document, and holds what they write against what it shows right after them."""
    output = {}
    for block in blocks_of(document):
        if block.language == "sh":
            output[block.text] = machine.run(block.script())
        elif block.language == "json" and block.after is not None and block.after.language == "sh":
            written = output[block.after.text]
            assert fits(json.loads(block.text), json.loads(written)), (block.text, written)


def add_customer(machine, *options):
    """A customer who may call from this machine, with its key in $KEY: its id, and the key's."""
    customer = machine.ask("croupier", "customer", "add", "Acme", "--cidr", "127.0.0.0/8", *options)
    key = json.loads(machine.ask("croupier", "key", "issue", customer, "--json"))
    machine.environment["KEY"] = key["key"]
    eventually(lambda: machine.ask_api("/api/v1/sports", check=False).startswith('{"sports"'))
    return customer, key["id"]


# ---- the documents -------------------------------------------------------------------------------------

TRIED = set()


def tries(*documents):
    """Marks the test that runs the commands of these."""
    TRIED.update(documents)
    return lambda test: test


def test_every_block_has_a_language_and_every_command_a_test():
    for document in DOCUMENTS:
        blocks = blocks_of(document)
        assert {block.language for block in blocks} <= LANGUAGES, document
        assert (ROOT / document).read_text().count("```") == 2 * len(blocks), document
    assert {document for document in DOCUMENTS if commands_of(document)} == TRIED


def wallet_requests():
    """(file, request) of each wallet request that a page, an example, a help text or the demo's screen shows."""
    shown = subprocess.run(["git", "ls-files", "*.md", "*.txt", "docs", "examples", "help", "man", "dist"], cwd=ROOT, capture_output=True,
                           text=True, check=True).stdout.splitlines()
    for name in sorted(set(shown) - {"CHANGELOG.md"}):
        if name.endswith((".webp", ".zst")):
            continue
        text = (ROOT / name).read_text().replace("\\", "")
        for request in re.findall(r"""\{[^{}]*"?\boperation"?: *"?(?:DEBIT|CREDIT)\b[^{}]*\}""", text):
            members = dict(re.findall(r"""(\w+)"?: *"?([^",}]*)""", request))
            if not {"status", "outcome"} & members.keys():  # of an answer, of an entry
                yield name, members


def test_every_bet_that_is_shown_names_its_game_and_round_and_so_does_its_win():
    """A DEBIT that names neither is money out: no report counts it as a stake, and a block lets it pass."""
    requests = list(wallet_requests())
    assert {"docs/wallet.md", "docs/integrate.md", "docs/package.md", "docs/providers.md", "src/demo/tour.txt"} <= {name for name, _ in requests}
    for name, members in requests:
        transfer = re.match("out" if members["operation"] == "DEBIT" else "in", members["transaction_id"])
        assert transfer or {"game_id", "round_id"} <= members.keys(), (name, members)
        assert not transfer or not {"game_id", "round_id"} & members.keys(), (name, members)


def test_what_is_not_run_is_there():
    lines = {(document, line) for document in DOCUMENTS for block in commands_of(document)
             for line in block.text.splitlines()}
    assert lines >= NOT_RUN.keys() | INSTEAD.keys()


@tries("README.md")
def test_readme(demo):
    _, with_demo, from_nothing = commands_of("README.md")
    answers = demo.run(with_demo.script())
    assert answers.endswith('{"status":"ok","cache":"ok"}')
    demo.end_demo()
    demo.placeholders.clear()
    answer = demo.run(from_nothing.script(), demo.checkout).splitlines()[-1]
    assert json.loads(answer)["event"]["ename"] == "A v B"


@tries("docs/tutorial.md")
def test_tutorial(machine):
    written = machine.run("\n".join(block.script() for block in commands_of("docs/tutorial.md")), machine.checkout)
    assert "Match Odds: A 1.80" in written and '"balance_minor":2250' in written and '"balance_minor":2650' in written
    assert "The ledger is sound" in written
    # The stake is a stake, and its win a win: the lines of the report as a reader sees them.
    [report] = re.findall(r"^.*\bblackjack-atrium\b.*$", written, re.MULTILINE)[-1:]
    assert re.search(r"\b2\.50\b.*\b4\.00\b.*-1\.50\b", report), written
    assert not (machine.checkout / "lesson").exists()


@tries("docs/install.md")
def test_install(machine):
    *setting_up, removing = commands_of("docs/install.md")
    for block in setting_up:
        machine.run(block.script(), machine.checkout)
    machine.run("croupier backup /var/backups/croupier/first")  # where the timer leaves them
    machine.run(removing.script())
    left = {path.relative_to(machine.directory).parts[:4] for folder in ("etc", "usr", "var") for path in (machine.directory / folder).rglob("*")
            if path.is_file()}
    assert left == {("var", "backups", "croupier", "first")}


@tries("docs/configuration.md")
def test_configuration(installed):
    shutil.copy(installed.settings, installed.work / "my.conf")
    run_all(installed, "docs/configuration.md")


@tries("docs/interface.md", "docs/wallet.md")
def test_the_api(demo):
    run_all(demo, "docs/interface.md")
    for block in blocks_of("docs/interface.md"):
        if block.language == "http":
            request, _, shown = block.text.partition("\n")
            answer = demo.ask_api(request.removeprefix("GET "))
            assert fits(shortened(shown), json.loads(answer), exact=False), (block.text, answer[:500])
    polled, waited = [block.script() for block in commands_of("docs/interface.md") if "--etag-compare" in block.text]
    assert eventually(lambda: "Preference-Applied" in demo.run(f"{polled}; {waited.replace('curl', 'curl -D -', 1)}")), "the odds move in between"
    follow(demo, one("docs/interface.md", "python").text)
    [launch] = [block for block in commands_of("docs/interface.md") if "/launch" in block.text]
    player = json.loads(demo.run(launch.script()))["player_id"]
    demo.ask_api("/api/v1/casino/wallet", operation="CREDIT", player_id=player, transaction_id="in", amount_minor=10000,
                 currency="EUR")
    demo.placeholders["ply_9tHpZcX2kQvL0aBd"] = player
    run_all(demo, "docs/wallet.md")


@tries("docs/sandbox.md")
def test_the_sandbox(installed):
    switched, lost = commands_of("docs/sandbox.md")
    (installed.work / "roulette.json").write_text(json.dumps(
        [{"id": "roulette", "name": "Roulette", "provider": "acme-trial", "category": "table", "currencies": ["EUR"]}]))
    installed.run("croupier provider add acme-trial --name Acme --launch-url https://play.acme.example/ --secret - <<<0123456789abcdef0123456789abcdef;"
                  f"croupier game import roulette.json; {switched.script()}")
    add_customer(installed, "--casino", "--sandbox", "on")
    eventually(lambda: "roulette" in installed.ask_api("/api/v1/casino/games"))
    player = json.loads(installed.ask_api("/api/v1/casino/games/roulette/launch", mode="real", player_reference="player-17", currency="EUR"))["player_id"]
    installed.placeholders["ply_7Qm2Zt0aXw9Lk3Rb"] = player
    installed.ask_api("/api/v1/casino/wallet", operation="CREDIT", player_id=player, transaction_id="in", amount_minor=1000, currency="EUR")
    installed.run(f"{lost.script()} || test $? = 52")  # curl's word for an end without an answer
    answer = json.loads(installed.run(lost.script().replace("-H 'X-Croupier-Fault: close-after'", "")))
    assert answer["status"] == "applied" and answer["balance_minor"] == 750
    installed.run("systemctl stop croupier")


@tries("docs/certification.md")
def test_a_customer_and_a_provider_are_taken_in(installed):
    """From nothing to a table of conduct, with the kit; no case fails."""
    new_customer, kit_of_customers, conduct, new_provider, kit_of_providers, conduct_of_provider = commands_of("docs/certification.md")
    secret, port = "0123456789abcdef0123456789abcdef", free_port()
    (installed.work / "oasis.secret").write_text(secret)
    (installed.work / "games.json").write_text(json.dumps([
        {"id": "reef", "name": "Reef", "provider": "oasis", "category": "slots", "currencies": ["EUR"], "demo": True}]))
    (installed.work / "events.json").write_text(json.dumps([row(34000001)]))
    (installed.work / "odds.json").write_bytes(match_odds())
    with open(installed.directory / "etc/croupier/croupier.conf", "a") as settings:
        settings.write(f"\n[provider]\nlisten = 127.0.0.1:{port}\n")
    installed.run("systemctl restart croupier; croupier feed catalog cricket events.json; croupier feed odds cricket 34000001 odds.json")
    installed.placeholders.update({"203.0.113.0/28": "127.0.0.0/8", "198.51.100.7/32": "127.0.0.0/8", "./certify": f"{sys.executable} {ROOT}/kit/certify",
                                   "https://odds.example": installed.environment["BASE"], "https://wallet.example": f"http://127.0.0.1:{port}"})
    installed.run(new_provider.script())
    customer, key = installed.run(new_customer.script() + '\necho "$CUSTOMER"').split()[::-1]
    installed.environment.update(CUSTOMER=customer, KEY=key)
    eventually(lambda: '"reef"' in installed.ask_api("/api/v1/casino/games", check=False))
    installed.placeholders["crk_…"] = key
    assert "fail " not in installed.run(kit_of_customers.script())
    assert "unknown-outcome" in installed.run(conduct.script())
    launched = json.loads(installed.ask_api("/api/v1/casino/games/reef/launch", mode="real", player_reference="kit", currency="EUR"))
    installed.placeholders.update({"SECRET=…": f"SECRET={secret}", "eyJ…": launched["launch_url"].partition("token=")[2]})
    assert "fail " not in installed.run(kit_of_providers.script())
    assert "signatures" in installed.run(conduct_of_provider.script())
    assert {path.name for path in installed.work.glob("*.xml")} == {"customer.xml", "provider.xml"}
    installed.run("systemctl stop croupier")


@tries("docs/account.md")
def test_the_account(demo):
    settings = f"-c {demo.directory}/demo/croupier.conf"
    customer = json.loads(demo.run(f"{BINARY} customer list {settings} --json"))[0]["id"]
    for name, areas in (("ACCOUNT_KEY", "--only account"), ("MANAGE_KEY", "--only manage --may-issue sports,casino")):
        demo.environment[name] = demo.environment["KEY"] = demo.run(f"{BINARY} key issue {customer} {areas} {settings}").strip()
        eventually(lambda: demo.ask_api("/api/v1/sports", check=False).startswith('{"sports"'))
    run_all(demo, "docs/account.md")


@tries("docs/integrate.md")
def test_the_page_for_integrators(demo):
    run_all(demo, "docs/integrate.md")
    request, _, shown = one("docs/integrate.md", "http").text.partition("\n")
    assert fits(shortened(shown.replace("{…}", "{}")), json.loads(demo.ask_api(request.removeprefix("GET "))), exact=False)
    player = json.loads(demo.ask_api("/api/v1/casino/games/anubis-falls/launch", mode="real", player_reference="player-17",
                                     currency="EUR"))["player_id"]
    calls = [json.loads(block.text.replace("ply_…", player)) for block in blocks_of("docs/integrate.md") if block.language == "json"]
    answers = [json.loads(demo.ask_api("/api/v1/casino/wallet", **call)) for call in calls]
    assert [(answer["operation"], answer.get("status")) for answer in answers] == [
        ("CREDIT", "applied"), ("DEBIT", "applied"), ("CREDIT", "applied"), ("ROLLBACK", "voided"), ("BALANCE", None)]
    assert answers[-1]["balance_minor"] == 2500 - 250 + 400
    # The operator sees a bet and its win, and no money that went out.
    statement = json.loads(demo.run(f"{BINARY} wallet statement {player} -c {demo.directory}/demo/croupier.conf --json"))
    entries = statement if isinstance(statement, list) else statement["entries"]
    moved = {entry["transaction_id"]: (entry["game_id"], entry["round_id"]) for entry in entries}
    assert moved["in-1"] == (None, None) and moved["bet-1"] == moved["win-1"] == ("anubis-falls", "r-1")
    report = json.loads(demo.run(f"{BINARY} wallet report -c {demo.directory}/demo/croupier.conf --json"))
    assert not any(total["transfers_out_minor"] for total in report["totals"])


def test_the_page_for_integrators_is_one_page_and_names_every_error():
    page = (ROOT / "docs/integrate.md").read_text()
    assert len(page.split()) <= 1500

    def rows_of(text):
        for line in re.findall(r"^\| ([\d, ]+) \| (`.*?`) \|", text, re.MULTILINE):
            yield set(line[0].split(", ")), set(re.findall(r"`(\w+)`", line[1]))
    whole = {code: statuses for statuses, codes in rows_of((ROOT / "docs/interface.md").read_text()) for code in codes}
    named = {code: statuses for statuses, codes in rows_of(page) for code in codes}
    assert len(named) > 30 and all(whole[code] <= statuses for code, statuses in named.items())
    # What is left out says that the bytes are no proper HTTP, or that the path, the method or a header is not the interface's.
    assert whole.keys() - named.keys() == {
        "https_required", "method_not_allowed", "request_timeout", "precondition_failed", "payload_too_large", "uri_too_long",
        "unsupported_media_type", "expectation_failed", "headers_too_large", "not_implemented", "version_not_supported"}


def test_the_tables_of_rows_and_markets_are_the_document_s():
    """What interface.md says of an event's and a market's fields, openapi.yaml has, and it hides nothing that the page shows."""
    page = (ROOT / "docs/interface.md").read_text()
    schemas = api_document("openapi")["components"]["schemas"]
    shown = {name: {key for key, schema in schemas[name]["properties"].items() if schema is not False} for name in
             ("Event", "Market", "Runner", "Section", "SectionOdds", "Price")}
    tables = re.findall(r"^\| field \| type \| \|\n\|[-|]+\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert len(tables) == 2
    for schema, table in zip(("Event", "Market"), tables, strict=True):
        rows = [line.split("|")[1:] for line in table.splitlines() if not line.startswith("| others")]
        named = {name for first, *_ in rows for name in re.findall(r"`(\w+)(?:\[\])?`", first)}
        assert len(named) > 6 and named <= shown[schema], (schema, named - shown[schema])
    [runners] = [line for line in tables[1].splitlines() if line.startswith("| `runners[]`")]
    [section] = [line for line in tables[1].splitlines() if line.startswith("| `section[]`")]
    inner = set(re.findall(r"`([a-z]\w*)`", runners)) - {"match1"}
    assert {"selectionId", "runnerName", "status"} <= inner <= shown["Runner"] | shown["Price"], inner
    inner = set(re.findall(r"`([a-z]\w*)(?:\[\])?`", section)) - {"section"}
    inner |= set(re.findall(r"\w+", section[section.index("{"):section.index("}")]))
    assert {"nat", "gstatus", "odds", "tno"} <= inner <= shown["Section"] | shown["SectionOdds"], inner


def test_the_pages_that_programs_read_first_exist():
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "llms.txt").read_text())
    assert len(links) > 15 and all((ROOT / link).is_file() for link in links)


def follow(machine, program):
    """The quick start, until it has printed a change."""
    words = [sys.executable, "-c", program, machine.environment["BASE"], machine.environment["KEY"], machine.placeholders["34000001"]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        first, second = process.stdout.readline(), process.stdout.readline()
        process.kill()
    assert first.startswith("[{") and second.startswith("[{") and first != second
    refused = subprocess.run([*words[:4], "crk_wrong", "1"], capture_output=True, text=True, timeout=60 * PATIENCE)
    assert refused.returncode == 1 and refused.stderr == "403 Client address is not allowed.\n"


@tries("docs/day-two.md")
def test_the_restore_drill(installed):
    add_customer(installed)
    assert "The ledger is sound" in installed.run(commands_of("docs/day-two.md")[0].script())


@tries("CONTRIBUTING.md")
@pytest.mark.takes("postgresql")
def test_contributing(machine):
    for block in commands_of("CONTRIBUTING.md"):
        machine.run(block.script(), machine.checkout)


@tries("docs/providers.md")
def test_the_worked_signature(machine):
    head, _, body = one("docs/providers.md", "http", "POST /v1/launch").text.partition("\n\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines()[1:])
    (machine.work / "body.json").write_text(body)
    command = commands_of("docs/providers.md")[0]
    assert f"v1={machine.run(command.script()).split()[-1]}" == fields["X-Croupier-Signature"]
    # What a provider does with it, in Python. The document is an old one.
    names = {"hmac": hmac, "hashlib": hashlib, "time": time, "secret": command.text.split()[-1].encode(),
             "timestamp": fields["X-Croupier-Timestamp"], "body": body.replace("\n", "").encode(),
             "signature": fields["X-Croupier-Signature"]}
    exec(one("docs/providers.md", "python").text, names)
    assert names["expected"] == fields["X-Croupier-Signature"] and not names["good"]


@tries("docs/providers.md")
def test_a_provider_joins_the_demo(demo):
    demo.run(commands_of("docs/providers.md")[1].script(), demo.checkout)
    demo.environment["KEY"] = demo.placeholders["crk_…"]
    eventually(lambda: '"mine-1"' in demo.ask_api("/api/v1/casino/games?limit=200", check=False))


@tries("docs/console.md")
def test_the_console(installed):
    run_all(installed, "docs/console.md")


@tries("docs/feed.md")
@pytest.mark.takes("redis")
def test_feed(installed):
    catalog, markets, interest = (block.text for block in blocks_of("docs/feed.md") if block.language == "json")
    (installed.work / "events.json").write_text(catalog)
    (installed.work / "markets.json").write_text(markets)
    commands, stream, keys = commands_of("docs/feed.md")
    installed.run(commands.script())
    assert json.loads(installed.run(stream.script())) == {"line": 1, "published": True}
    with Redis() as server, server.connect() as connection:
        for line in keys.text.splitlines():
            assert connection.call(*shlex.split(line.replace(", …}", "}"))) in (b"OK", [])
    # What it shows of a mistake, and of what clients asked for.
    refusal = one("docs/feed.md", "text").text
    (installed.work / "events.json").write_text('[{"gmid":34000001,}]')
    assert installed.run("! croupier feed catalog cricket events.json 2>&1") == refusal
    (installed.work / "events.json").write_text(catalog)
    installed.run("croupier feed catalog cricket events.json && croupier feed odds cricket 34000001 markets.json")
    add_customer(installed)
    assert json.loads(installed.ask_api("/api/v1/cricket/events/34000001"))["odds"] == json.loads(markets)
    listed = eventually(lambda: json.loads(installed.ask("croupier", "feed", "interest", "cricket", "--json")))
    assert fits(json.loads(interest), listed)


@tries("docs/operations.md", "docs/postgresql.md")
@pytest.mark.takes("redis", "postgresql")
def test_operations(installed):
    prepare_operations(installed)
    with Redis() as redis, Postgres(tcp=True) as postgres:
        prepare_other_engines(installed, redis, postgres)
        for block in commands_of("docs/operations.md") + commands_of("docs/postgresql.md"):
            if block.language == "sql":
                postgres.sql(block.text, "croupier")
            else:
                written = installed.run(block.script(), installed.checkout if "make " in block.text else None)
                assert "journalctl" not in block.text or [line for line in written.splitlines() if line in HARMLESS + ALARMING] == ALARMING
                if "odds.broken" in block.text:  # the feed publishes again
                    installed.run("echo '[]' | croupier feed catalog cricket -")
        installed.run("systemctl stop croupier")


ALARMING = ["2026-11-21T06:26:32.000Z error ledger is unavailable reason=\"x\"",
            "2026-11-21T06:26:32.000Z warning log lines were dropped",
            '{"time":"2026-11-21T06:26:32.000Z","level":"error","message":"ledger is unavailable"}']
HARMLESS = ["2026-11-21T06:26:32.000Z info listening", '{"time":"2026-11-21T06:26:32.000Z","level":"info","message":"error "}']


def prepare_operations(machine):
    """What the page takes for granted: customers, files, money that was moved."""
    customer, key = add_customer(machine, "--casino")
    for name in ("acme.secret", "acme2.secret", "oasis.secret", "house.secret"):
        (machine.work / name).write_text("0123456789abcdef0123456789abcdef\n")
    games = {"games": ("acme", "book-of-sand", "dune-roulette"), "house": ("house", "solitaire")}
    for name, (provider, *ids) in games.items():
        (machine.work / f"{name}.json").write_text(json.dumps(
            [{"id": game, "name": game, "provider": provider, "category": "table", "currencies": ["EUR"]} for game in ids]))
    machine.run("croupier provider add house --name House --launch-url https://house.example/ --secret - <house.secret;"
                " croupier game import house.json")
    launch = {"mode": "real", "player_reference": "one", "currency": "EUR"}
    launched = json.loads(eventually(
        lambda: machine.ask_api("/api/v1/casino/games/solitaire/launch", check=False, **launch)))
    player = launched["player_id"]
    claims = launched["launch_url"].split("token=")[1].split(".")[1]
    subject = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"]
    machine.ask_api("/api/v1/casino/wallet", operation="CREDIT", player_id=player, transaction_id="bet-1001",
                    amount_minor=100, currency="EUR")
    machine.journal.write_text("\n".join([*HARMLESS, *ALARMING]) + "\n")
    machine.environment["RENEWED_LINEAGE"] = str(machine.work)
    for name in ("fullchain.pem", "privkey.pem"):
        (machine.work / name).touch()
    machine.placeholders.update({
        "cus_…": customer, "key_…": key, "crk_4fT9": key, "ply_…": player, "lau_…": launched["launch_id"], "alice-1": "one",
        "--provider acme m52qaErTonQlsfbZ8JQx2g": f"--provider house -- {subject}",
        "platform-2026-11-21.db": f"platform-{time.strftime('%F')}.db"})


def prepare_other_engines(machine, redis, postgres):
    """The servers that the page moves to, twice, and one of PostgreSQL as its owner finds it."""
    stores = [(redis.tcp_uri(number), postgres.uri_of(postgres.create_database(), tcp=True)) for number in (1, 2)]
    (machine.directory / "new-stores").write_text("".join(f"{odds} {platform}\n" for odds, platform in stores))
    machine.placeholders.update({
        "redis://cache:6379/0": stores[0][0], "postgresql://croupier@db/croupier": stores[0][1],
        "postgresql://croupier-owner@db/croupier": postgres.uri_of("croupier", tcp=True, user="croupier-owner")})
    machine.environment.update(PGHOST=str(postgres.directory), PGPORT=str(postgres.port), PGUSER="postgres",
                               PATH=f"{machine.environment['PATH']}:{postgres.programs}")
