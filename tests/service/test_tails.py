"""croupier wallet tail | audit tail: every line once, in order, whatever writes, ends or is killed meanwhile.

TAIL_SEED=N replays the choices of a run (the moments are the machine's).
"""

import contextlib
import hashlib
import json
import os
import random
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest

import engines
from croupier import BINARY, PATIENCE, ROOT, Service, eventually
from servers import SAMPLE
from wallet_model import add_games, add_player, credit, debit, rollback, send

pytestmark = pytest.mark.depends_on("platform")

ENTRIES = 100_000 // SAMPLE
CONNECTIONS = 24  # of a client
PIPELINE = 8  # requests that it sends on each before it reads the answers


RUNNING = []  # tails that a test started, also those that it has ended


@pytest.fixture(autouse=True)
def no_tail_is_left():
    yield
    while RUNNING:
        process = RUNNING.pop()
        if process.poll() is None:
            process.kill()
            process.communicate()


class Tail:
    """A tail that writes to a file, and goes on after its last whole line when it is started again."""

    def __init__(self, service, path, *options):
        self.service, self.path, self.options, self.process = service, path, options, None
        self.path.touch()

    def lines(self):
        return [json.loads(line) for line in self.path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]

    def cut(self):
        """Removes a last line that is not whole; the place of the one before it."""
        content = self.path.read_bytes()
        whole = content[:content.rfind(b"\n") + 1]
        if whole != content:
            self.path.write_bytes(whole)
        last = json.loads(whole.splitlines()[-1]) if whole else {"number": 0}
        return f"{last['number']}:{last['hash']}" if "hash" in last else last["number"]

    def command(self, *options):
        return [str(BINARY), "wallet", "tail", "--after", str(self.cut()), *options, *self.options, "-c",
                str(self.service.configuration)]

    def start(self):
        command = self.command("--follow")
        with open(self.path, "ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, env=self.service.environment)
        RUNNING.append(self.process)
        return self

    def kill(self):
        self.process.kill()
        errors = self.process.communicate()[1].decode()
        self.process = None
        return errors

    def finish(self):
        """Until it is where the ledger is."""
        command = self.command()
        with open(self.path, "ab") as out:
            subprocess.run(command, stdout=out, check=True, env=self.service.environment, timeout=60 * PATIENCE)


def exported(service, *options):
    """The entries, as lines without their order."""
    lines = service.run("wallet", "export", *options).text.splitlines()
    return lines[:-1]


def as_exported(tail):
    """The lines of a tail without their numbers, which only rise."""
    lines = tail.path.read_text().splitlines()
    numbers = [json.loads(line)["number"] for line in lines]
    assert all(one < next for one, next in zip(numbers, numbers[1:])), "numbers rise"
    return ["{" + line.split(",", 1)[1] for line in lines]


def by_player(lines):
    """In the order of an export: a player's first entries are in order wherever they stand."""
    return sorted(lines, key=lambda line: ((entry := json.loads(line))["player_id"], entry["sequence"]))


def assert_equal_to_export(service, tail):
    lines = as_exported(tail)
    assert len(set(lines)) == len(lines), "a line came twice"
    assert by_player(lines) == by_player(exported(service))


# ---- order ------------------------------------------------------------------------------------------------


@pytest.fixture
def casino(make_service):
    service = make_service()
    service.customer = service.add_customer("Casino", options=["--casino"])
    service.start()
    service.players = [add_player(service, service.customer, f"player-{n}") for n in range(8)]
    return service


def another_instance(make_service, first):
    names = [("platform", "store"), ("odds", "store"), ("casino", "secrets_key_file")]
    return make_service({".".join(name): first.settings[name] for name in names}, stores=False)


def test_a_tail_has_the_lines_of_an_export_with_their_numbers(casino, tmp_path):
    alice, bob = casino.players[:2]
    for document in (credit(alice, "in", 1000), credit(bob, "b", 5), debit(alice, "bet", 10), debit(bob, "no", 10_000)):
        send(casino, casino.customer.key, document)
    tail = Tail(casino, tmp_path / "tail")
    tail.finish()
    assert_equal_to_export(casino, tail)
    assert [line["transaction_id"] for line in tail.lines()] == ["in", "b", "bet"], "in the order of commits, without declines"
    assert [line["sequence"] for line in tail.lines()] == [1, 1, 2]
    tail.finish()
    assert len(tail.lines()) == 3, "nothing is written twice"
    send(casino, casino.customer.key, credit(bob, "late", 5))
    tail.finish()
    assert_equal_to_export(casino, tail)
    assert casino.run("wallet", "tail", "--after", tail.lines()[-1]["number"]).text == ""


def test_the_entries_of_one_customer(casino, tmp_path):
    other = casino.add_customer("Other", options=["--casino"])
    player = add_player(casino, other, "alice")
    for n in range(3):
        send(casino, casino.customer.key, credit(casino.players[0], f"a{n}", 5))
        send(casino, other.key, credit(player, f"b{n}", 5))
    tail = Tail(casino, tmp_path / "tail", "--customer", other.id)
    tail.finish()
    assert as_exported(tail) == exported(casino, "--customer", other.id)
    tail.finish()
    assert len(tail.lines()) == 3
    assert "customer" in casino.run("wallet", "tail", "--customer", "cus_nobody", status=1).errors


def test_a_place_that_is_not_in_the_ledger_is_refused(casino):
    assert "entry 1 is not the one" in casino.run("wallet", "tail", "--after", 1, status=1).errors
    send(casino, casino.customer.key, credit(casino.players[0], "a", 5))
    number = json.loads(casino.run("wallet", "tail").text)["number"]
    assert "entry" in casino.run("wallet", "tail", "--after", number + 1, status=1).errors
    assert "entry" in casino.run("wallet", "tail", "--follow", "--after", number + 10**9, status=1).errors
    assert "trail" in casino.run("audit", "tail", "--follow", "--after", 10**6, status=1).errors
    casino.run("wallet", "tail", "--after", "x", status=2)


def test_an_entry_that_was_given_the_number_of_a_lost_one_is_noticed_by_its_hash(casino):
    for n in range(2):
        send(casino, casino.customer.key, credit(casino.players[n], f"a{n}", 5))
    first, second = [json.loads(line) for line in casino.run("wallet", "tail").text.splitlines()]
    [rest] = casino.run("wallet", "tail", "--after", f"{first['number']}:{first['hash']}").text.splitlines()
    assert json.loads(rest) == second
    assert "not the one that was read before" in casino.run("wallet", "tail", "--after", f"{first['number']}:{second['hash']}", status=1).errors
    for wrong in (f"{first['number']}:", f"{first['number']}:{first['hash']}0", f":{first['hash']}", f"x:{first['hash']}"):
        assert "NUMBER:HASH" in casino.run("wallet", "tail", "--after", wrong, status=2).errors


def test_a_reader_that_goes_ends_a_tail_quietly(casino):
    send(casino, casino.customer.key, credit(casino.players[0], "a", 5))
    tail = subprocess.Popen([str(BINARY), "wallet", "tail", "--follow", "-c", str(casino.configuration)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=casino.environment)
    assert json.loads(tail.stdout.readline())["transaction_id"] == "a"
    tail.stdout.close()  # while nothing happens
    assert tail.wait(60 * PATIENCE) == 0
    assert tail.stderr.read() == b""


def test_a_tail_follows(casino, tmp_path):
    tail = Tail(casino, tmp_path / "tail").start()
    try:
        for n in range(3):
            send(casino, casino.customer.key, credit(casino.players[n], f"a{n}", 5))
            eventually(lambda: [line["transaction_id"] for line in tail.lines()] == [f"a{i}" for i in range(n + 1)])
    finally:
        assert tail.kill() == ""


def test_a_store_that_is_away_is_waited_for(fragile, tmp_path):
    fragile.customer = fragile.add_customer("Casino", options=["--casino"])
    player = add_player(fragile, fragile.customer)
    fragile.start()
    send(fragile, fragile.customer.key, credit(player, "one", 5))
    tail = Tail(fragile, tmp_path / "tail").start()
    eventually(tail.lines)
    fragile.stop()
    fragile.platform.take_away()
    assert b"waiting for the store" in tail.process.stderr.readline()
    fragile.platform.bring_back()
    fragile.start()
    assert eventually(lambda: send(fragile, fragile.customer.key, credit(player, "two", 5)).status == 200)
    eventually(lambda: [line["transaction_id"] for line in tail.lines()] == ["one", "two"])
    assert "the store is there again" in tail.kill()


def without_hash(rows):
    return [{name: value for name, value in row.items() if name != "hash"} for row in rows]


def chain(rows):
    """The hashes of the audit trail's rows, as docs/decisions/tails.md has them."""
    before = bytes(32)
    for row in rows:
        at = datetime.strptime(row["at"], "%Y-%m-%dT%H:%M:%S.%f%z")
        values = [row["number"], (at - datetime.fromtimestamp(0, timezone.utc)) // timedelta(milliseconds=1), row["who"], row["command"], row["kind"], row["object"],
                  *("" if row[name] is None else json.dumps(row[name], separators=(",", ":"), ensure_ascii=False) for name in ("before", "after"))]
        before = hashlib.sha256(before + "".join(f"{value}\n" for value in values).encode()).digest()
        yield before.hex()


def test_the_hash_of_an_audit_row_is_of_all_rows_before_it(casino):
    whole = [json.loads(line) for line in casino.run("audit", "tail").text.splitlines()]
    assert len(whole) > 3 and [row["hash"] for row in whole] == list(chain(whole))
    place, other = whole[-3], whole[-2]
    rest = casino.run("audit", "tail", "--after", f"{place['number']}:{place['hash']}").text.splitlines()
    assert [json.loads(line) for line in rest] == whole[-2:]
    filtered = casino.run("audit", "tail", "--object", casino.customer.id).text.splitlines()
    assert filtered and [json.loads(line) for line in filtered] == [row for row in whole if row["object"] == casino.customer.id]
    for wrong in (f"{place['number']}:{other['hash']}", f"{whole[-1]['number']}:{other['hash']}", f"{whole[-1]['number'] + 1}:{other['hash']}"):
        assert "not the one that was read before" in casino.run("audit", "tail", "--after", wrong, status=1).errors
    for wrong in (f"{place['number']}:", f"0:{place['hash']}", f":{place['hash']}"):
        assert "NUMBER:HASH" in casino.run("audit", "tail", "--after", wrong, status=2).errors


def test_a_trail_of_more_than_a_page_is_one_chain(casino):
    """Each game is a row."""
    add_games(casino, *[f"game-{n}" for n in range(1100)], provider="large")
    whole = [json.loads(line) for line in casino.run("audit", "tail").text.splitlines()]
    assert len(whole) > 1100 and [row["hash"] for row in whole] == list(chain(whole))
    for place in whole[998:1003]:
        rest = casino.run("audit", "tail", "--after", f"{place['number']}:{place['hash']}").text.splitlines()
        assert [json.loads(line) for line in rest] == whole[place["number"]:]


def test_the_audit_trail_is_tailed_from_a_row_on(casino, tmp_path):
    whole = [json.loads(line) for line in casino.run("audit", "tail").text.splitlines()]
    assert without_hash(whole) == list(reversed(casino.ask("audit", "list", "--limit", "1000")))
    assert [row["number"] for row in whole] == list(range(1, len(whole) + 1))
    place = whole[-3]["number"]
    assert [json.loads(line) for line in casino.run("audit", "tail", "--after", place).text.splitlines()] == whole[-2:]
    tail = subprocess.Popen([str(BINARY), "audit", "tail", "--follow", "--after", str(len(whole)), "--object",
                             casino.customer.id, "-c", str(casino.configuration)], stdout=subprocess.PIPE, env=casino.environment)
    try:
        casino.run("customer", "add", "Other", "--cidr", "127.0.0.0/8")
        casino.run("customer", "disable", casino.customer.id)
        row = json.loads(tail.stdout.readline())
        assert (row["object"], row["number"]) == (casino.customer.id, len(whole) + 2)
    finally:
        tail.kill()
        tail.wait()
        tail.stdout.close()


@pytest.mark.only("postgresql")
def test_an_entry_is_held_back_until_those_with_lower_numbers_are_committed(casino, make_service, tmp_path):
    """A session holds the clearing account of one customer, so a batch of that one has its numbers and cannot commit."""
    other = casino.add_customer("Other", options=["--casino"])
    quick = add_player(casino, other, "quick")
    second = another_instance(make_service, casino).start()
    slow = casino.players[0]
    send(casino, casino.customer.key, credit(slow, "first", 1))
    session = casino.platform.session()
    tail = Tail(casino, tmp_path / "tail").start()
    try:
        session.stdin.write("BEGIN; SELECT 'held' FROM ledger_clearing LIMIT 1 FOR UPDATE;\n")
        session.stdin.flush()
        assert session.stdout.readline() == "held\n"
        held = threading.Thread(target=send, args=(casino, casino.customer.key, credit(slow, "slow", 1)))
        held.start()
        eventually(lambda: casino.platform.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()") == [("1",)])
        for n in range(3):
            assert send(second, other.key, credit(quick, f"quick-{n}", 1)).status == 200
        assert len(exported(casino)) == 4
        other_tail = Tail(casino, tmp_path / "other").start()  # which knows nothing of before
        now = casino.platform.execute("SELECT clock_timestamp()")[0][0]
        eventually(lambda: casino.platform.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%virtualtransaction%' AND pid <> pg_backend_pid()"
            f" AND datname = current_database() AND query_start > '{now}'") == [("2",)])  # both have looked
        assert [line["transaction_id"] for line in tail.lines()] in ([], ["first"])
        assert other_tail.lines() == []
        session.stdin.write("COMMIT;\n")
        session.stdin.flush()
        held.join()
        for each in (tail, other_tail):
            eventually(lambda: len(each.lines()) == 5)
            assert [line["transaction_id"] for line in each.lines()] == ["first", "slow", "quick-0", "quick-1", "quick-2"]
        other_tail.kill()
    finally:
        session.kill()
        session.communicate()
        tail.kill()


# ---- over the admin API -----------------------------------------------------------------------------------


@pytest.fixture
def reader(casino):
    """(path, headers) to the answer, by a token that only reads."""
    token = casino.run("operator", "token", "add", "copy", "--role", "reader").text.strip()

    def ask(path, headers=()):
        return casino.attempt("GET", f"/admin/v1/{path}", key=token, headers=headers, address=casino.operator_address)

    eventually(lambda: ask("ledger/tail").status == 200)
    return ask


def test_the_admin_api_has_the_lines_too(casino, reader):
    for n in range(3):
        send(casino, casino.customer.key, credit(casino.players[n], f"a{n}", 5))
    lines = [json.loads(line) for line in casino.run("wallet", "tail").text.splitlines()]
    document = reader("ledger/tail").json()
    assert document == {"items": lines, "next": lines[-1]["number"], "next_hash": lines[-1]["hash"], "more": False}
    assert reader(f"ledger/tail?after={lines[0]['number']}&hash={lines[0]['hash']}").json()["items"] == lines[1:]
    for number, digest in [(lines[0]["number"], lines[1]["hash"]), (lines[-1]["number"] + 1, lines[-1]["hash"])]:
        lost = reader(f"ledger/tail?after={number}&hash={digest}")
        assert (lost.status, lost.json()["error"]["field"]) == (409, None)
    for wrong in (f"after=0&hash={lines[0]['hash']}", f"hash={lines[0]['hash']}", "after=1&hash=x"):
        assert reader(f"ledger/tail?{wrong}").json()["error"]["field"] == "hash"
    assert reader(f"ledger/tail?after={lines[0]['number']}").json()["items"] == lines[1:]
    assert reader(f"ledger/tail?after=0&customer={casino.customer.id}").json()["items"] == lines
    assert reader("ledger/tail?customer=cus_nobody").status == 404
    assert reader(f"ledger/tail?after={lines[-1]['number'] + 1}").status == 409
    assert reader("ledger/tail?after=x").json()["error"]["field"] == "after"
    rows = reader("audit/tail").json()
    expected = [json.loads(line) for line in casino.run("audit", "tail").text.splitlines()]
    assert rows["next"] == len(expected) and len(rows["items"]) == len(expected) - 1, "a token's row is for owners"
    assert rows["items"] == [row for row in expected if row in rows["items"]]
    assert rows["next_hash"] == expected[-1]["hash"]
    assert reader(f"audit/tail?after={rows['next']}&hash={rows['next_hash']}").json()["items"] == []
    lost = reader(f"audit/tail?after={rows['next']}&hash={expected[0]['hash']}")
    assert (lost.status, lost.json()["error"]["field"]) == (409, None)


def test_a_request_waits_for_the_next_entry(casino, reader):
    place, digest = (reader("ledger/tail").json()[name] for name in ("next", "next_hash"))
    waited = reader(f"ledger/tail?after={place}", [("Prefer", "wait=1")])
    assert (waited.status, waited.json(), waited.header("Preference-Applied")) == (
        200, {"items": [], "next": place, "next_hash": digest, "more": False}, "wait=1")
    with ThreadPoolExecutor() as pool:
        entry = pool.submit(reader, f"ledger/tail?after={place}", [("Prefer", "wait=55")])
        row = pool.submit(reader, f"audit/tail?after={reader('audit/tail').json()['next']}", [("Prefer", "wait=55")])
        send(casino, casino.customer.key, credit(casino.players[0], "next", 5))
        casino.run("customer", "disable", casino.customer.id)
        assert [item["transaction_id"] for item in entry.result().json()["items"]] == ["next"]
        assert [item["object"] for item in row.result().json()["items"]] == [casino.customer.id]


# ---- a copy is proved -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """Lines of a ledger with every member that lines may have, and a service to check them by."""
    service = Service(tmp_path_factory.mktemp("copied"))
    try:
        service.customer = service.add_customer("Casino", options=["--casino"])
        add_games(service, "roulette")
        service.start()
        players = [add_player(service, service.customer, f"player-{n}") for n in range(3)]
        for n in range(5):
            for player in players:
                send(service, service.customer.key, credit(player, f"{player}-{n}", 100, game_id="Grüße", round_id='"r"'))
                send(service, service.customer.key, debit(player, f"{player}-bet-{n}", 7, game_id="roulette", round_id="r 1"))
                send(service, service.customer.key, rollback(player, f"{player}-undo-{n}", f"{player}-bet-{n}"))
        service.lines = service.run("wallet", "tail").text.splitlines(keepends=True)
        service.stop()
        yield service
    finally:
        service.remove()


def check(service, lines, options=(), **expected):
    return service.run("wallet", "verify", "--file", "-", *options, input="".join(lines), configuration=False, **expected)


def test_a_copy_is_proved_without_the_ledger(copied, tmp_path):
    lines = copied.lines
    found = json.loads(copied.run("wallet", "verify", "--file", "-", "--json", input="".join(lines), configuration=False).text)
    assert (found["sound"], found["entries"], found["players"], found["players_begun_before"]) == (True, 45, 3, 0)
    assert (found["first_number"], found["last_number"]) == tuple(json.loads(lines[at])["number"] for at in (0, -1))
    hashes = b"".join(bytes.fromhex(json.loads(line)["hash"]) for line in lines)
    assert found["head"] == hashlib.sha256(hashes).hexdigest()
    (tmp_path / "copy").write_text("".join(lines))
    assert "45 entries of 3 players" in copied.run("wallet", "verify", "--file", tmp_path / "copy", configuration=False).text
    assert "first entries of 3" in check(copied, lines[9:]).text
    assert "cut off" in check(copied, [*lines[:-1], lines[-1][:-1]]).text
    assert "no entries" in check(copied, [], status=1).errors
    assert "45 entries" in check(copied, lines, options=["--head", found["head"]]).text
    assert "head" in check(copied, lines[:-1], options=["--head", found["head"]], status=1).errors
    for head in ("x", found["head"][1:], found["head"] + "00"):
        check(copied, lines, options=["--head", head], status=2)
    copied.run("wallet", "verify", "--head", found["head"], status=2)
    copied.run("wallet", "verify", "--file", tmp_path / "none", status=1)
    copied.run("wallet", "verify", "--file", "-", "--since", "1", status=2)


def test_a_copy_that_was_altered_is_refused(copied):
    lines = copied.lines
    document = json.loads(lines[20])
    for name, value in document.items():
        other = {str: f"{value}x", int: 0 if value else 1, bool: not value, type(None): "x"}[type(value)]
        if name == "kind":
            other = "promo"
        altered = json.dumps({**document, name: other}) + "\n"
        errors = check(copied, [*lines[:20], altered, *lines[21:]], status=1).errors
        # An entry that seems to be of another player is missed where its own player's next one comes.
        assert ("does not follow" if name == "player_id" else "line 21") in errors, (name, errors)
    altered = json.dumps({**document, "currency_exponent": "x"}) + "\n"
    assert "currency_exponent is not sound" in check(copied, [*lines[:20], altered, *lines[21:]], status=1).errors
    for broken in (lines[:7] + lines[8:], lines[:7] + lines[6:], [*lines[:7], lines[8], lines[7], *lines[9:]],
                   [*lines[:7], "{}\n", *lines[7:]], [*lines[:7], "x\n", *lines[7:]],
                   [*lines[:7], lines[7].replace("{", '{"more": 1, ', 1), *lines[8:]]):
        assert "line" in check(copied, broken, status=1).errors


def test_an_export_is_proved_without_the_ledger(copied):
    day = json.loads(copied.lines[0])["created_at"][:10]
    for narrowed in ((), ("--customer", copied.customer.id), ("--day", day), ("--day", "2020-01-01")):
        lines = copied.run("wallet", "export", *narrowed).text.splitlines(keepends=True)
        count = json.loads(lines[-1])["entries"]
        assert f"Sound: {count} entries" in (sound := check(copied, lines)).text and "numbers" not in sound.text
        assert json.loads(lines[-1])["head"] in sound.text
        assert "comes after the totals" in check(copied, [*lines, copied.lines[0]], status=1).errors
        if count > 0:
            assert "broke off" in check(copied, lines[:-1], status=1).errors
            assert "the head is not" in check(copied, [*lines[:-2], lines[-1]], status=1).errors
            assert "number" in check(copied, [*lines[:3], *copied.lines[3:], lines[-1]], status=1).errors
            assert "number" in check(copied, [*copied.lines[:3], *lines[3:]], status=1).errors
            altered = lines[5].replace('"outcome":"applied"', '"outcome":"voided"')
            assert "line 6" in check(copied, [*lines[:5], altered, *lines[6:]], status=1).errors


def test_the_script_of_the_documents_keeps_a_copy(casino, tmp_path):
    """Over an ssh that runs the command here. It is killed while it runs, and its last line is cut."""
    text = (ROOT / "docs" / "day-two.md").read_text()
    script = text.partition("```text\ncopy=")[2].partition("```")[0]
    (tmp_path / "ssh").write_text(f'#!/bin/sh\nshift 4\nexec {BINARY} "$@" -c {casino.configuration}\n')
    (tmp_path / "ssh").chmod(0o755)
    copy = tmp_path / "ledger.ndjson"
    for n in range(3):
        keeper = subprocess.Popen(["sh", "-c", f"copy={script}"], cwd=tmp_path,
                                  env={**casino.environment, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
        try:
            send(casino, casino.customer.key, credit(casino.players[n], f"a{n}", 5))
            eventually(lambda: copy.exists() and copy.read_text().count("\n") == n + 1)
        finally:
            keeper.kill()
            keeper.wait()
        copy.write_text(copy.read_text()[:-10])
    lines = casino.run("wallet", "tail").text
    assert lines.startswith(copy.read_text()) and lines.count("\n") == 3


# ---- the campaign -----------------------------------------------------------------------------------------


class Client(threading.Thread):
    """Sends credits to one server as fast as they are taken, and does not mind if it dies."""

    def __init__(self, servers, key, players, name, over):
        super().__init__()
        self.servers, self.key, self.players, self.name, self.over = servers, key, players, name, over
        self.random, self.sent, self.answered, self.failure = random.Random(name), 0, 0, None

    def request(self, address):
        self.sent += 1
        body = json.dumps(credit(self.random.choice(self.players), f"{self.name}-{self.sent}", 1))
        return (f"POST /api/v1/casino/wallet HTTP/1.1\r\nHost: {address[0]}\r\nAuthorization: Bearer {self.key}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode()

    def hear(self, connection):
        """False: the connection is not to be used any more."""
        heard, rest = 0, b""
        while heard < PIPELINE:
            more = connection.recv(1 << 16)
            text = rest + more
            assert b"HTTP/1.1 4" not in text, text
            if not more or b"HTTP/1.1 5" in text:  # it was killed; or the ledger opens again, the outcome does not matter
                return False
            heard += text.count(b"HTTP/1.1 200")
            rest = text[-len("HTTP/1.1 20"):]
        self.answered += heard
        return True

    def talk(self, address):
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(socket.create_connection(address, timeout=60 * PATIENCE))
                           for _ in range(CONNECTIONS)]
            while not self.over.is_set():
                for connection in connections:
                    connection.sendall(b"".join(self.request(address) for _ in range(PIPELINE)))
                if not all([self.hear(connection) for connection in connections]):
                    return

    def run(self):
        while not self.over.is_set():
            address = self.random.choice(self.servers).address
            try:
                if address is not None:
                    self.talk(address)
            except OSError:
                pass  # it was killed
            except AssertionError as failure:
                self.failure = failure
                return
            self.over.wait(0.01)


@contextlib.contextmanager
def delaying(platform):
    """Sessions of PostgreSQL keep clearing accounts now and then, so that batches of one customer wait with their numbers
    while those of the other commit."""
    statement = ("BEGIN; SELECT FROM ledger_clearing ORDER BY customer_number LIMIT 1 FOR UPDATE;"
                 "SELECT pg_sleep(random() * 0.03); COMMIT; SELECT pg_sleep(random() * 0.1);\n")
    if engines.PLATFORM != "postgresql":
        yield
        return
    session = platform.session(stdout=subprocess.DEVNULL)
    over = threading.Event()

    def delay():
        with contextlib.suppress(OSError):
            while not over.is_set():
                session.stdin.write(statement)
                session.stdin.flush()
                over.wait(0.07)

    thread = threading.Thread(target=delay)
    thread.start()
    try:
        yield
    finally:
        over.set()
        session.kill()
        session.wait()
        thread.join()
        with contextlib.suppress(OSError):
            session.stdin.close()


def restart(server):
    server.kill()
    server.address = None
    server.start(healthy=False)


@pytest.mark.long(10)
@pytest.mark.sampled
@pytest.mark.threadless
def test_no_line_is_missing_or_comes_twice_while_both_sides_are_killed(make_service, tmp_path):
    seed = int(os.environ.get("TAIL_SEED") or random.randrange(1 << 32))
    print(f"TAIL_SEED={seed}")
    chance, over = random.Random(seed), threading.Event()
    first = make_service()
    customers = [first.add_customer(name, options=["--casino"]) for name in ("One", "Two")]
    first.start()
    players = [[add_player(first, customer, f"player-{n}") for n in range(16)] for customer in customers]
    servers = [first]
    if engines.PLATFORM == "postgresql":
        servers.append(another_instance(make_service, first).start())
    tail = Tail(first, tmp_path / "tail").start()
    # Each customer has a server of its own, where there are two: their batches have nothing in common.
    clients = [Client([servers[at % len(servers)]], customer.key, theirs, f"{name}-{seed}", over)
               for at, (customer, theirs, names) in enumerate(zip(customers, players, ("ab", "cd"))) for name in names]
    for client in clients:
        client.start()
    kills = 0
    try:
        with delaying(first.platform):
            while sum(client.answered for client in clients) < ENTRIES or kills == 0:
                assert not any(client.failure for client in clients), [client.failure for client in clients]
                over.wait(chance.uniform(0.05, 1.5))
                if chance.random() < 0.7:
                    tail.kill()
                    tail.start()
                else:
                    restart(chance.choice(servers))
                kills += 1
    finally:
        over.set()
        for client in clients:
            client.join()
        tail.kill()
    tail.finish()
    assert len(tail.lines()) >= ENTRIES
    assert_equal_to_export(first, tail)
    first.run("wallet", "verify")
    assert f"Sound: {len(tail.lines())} entries" in first.run("wallet", "verify", "--file", tail.path).text
