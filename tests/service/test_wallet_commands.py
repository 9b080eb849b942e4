"""croupier wallet …: what operators and scripts learn about the ledger, and what breaks a proof."""

import fcntl
import hashlib
import json
import os
import re
import select
import shutil
import sqlite3
import subprocess
import sys
import termios
from datetime import date
from pathlib import Path

import pytest

import engines
from croupier import BINARY, PATIENCE, Clock, Service, eventually
from wallet_model import add_games, add_player, credit, debit, rollback, send

pytestmark = [pytest.mark.depends_on("platform"), pytest.mark.threadless]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("ledger"))
    try:
        service.customer = service.add_customer("Casino", options=["--casino"])
        add_games(service, "roulette")
        service.start()
        service.players = [add_player(service, service.customer, name, currency)
                           for name, currency in (("alice", "EUR"), ("bob", "KWD"), ("carol", "JPY"))]
        alice, bob, carol = service.players
        for document in (credit(alice, "in", 100005), debit(alice, "bet", 250, game_id="roulette", round_id="r 1"),
                         credit(alice, "win", 500, "bet"), debit(alice, "too much", 1), debit(alice, "too-much", 200000),
                         rollback(alice, "undo", "win"), rollback(alice, "void", "never"),
                         credit(bob, "b1", 7, currency="KWD"), credit(carol, "c1", 7, currency="JPY")):
            send(service, service.customer.key, document)
        yield service
    finally:
        service.stop()


def test_text_of_a_customer_turns_no_line_round(make_service):
    service = make_service()
    customer = service.add_customer("Casino", options=["--casino"])
    service.start()
    player = add_player(service, customer, "eve", "EUR")
    send(service, customer.key, credit(player, "in", 12345, game_id="\u202egame", round_id="\u200bround"))
    for command in (["report"], ["rounds"], ["statement", player], ["transaction", customer.id, "in"]):
        said = service.run("wallet", *command).text
        assert "123.45" in said and not set("\u202e\u200b") & set(said), said
    assert "?game" in said and "?round" in said


def test_a_statement_goes_from_the_opening_to_the_closing_balance(ledger):
    alice, bob, carol = ledger.players
    document = ledger.ask("wallet", "statement", alice)
    assert [entry["sequence"] for entry in document["entries"]] == [1, 2, 3, 4, 5]
    assert document["opening_balance_minor"] == 0 and document["closing_balance_minor"] == 99755
    assert document["player_reference"] == "alice" and document["currency_exponent"] == 2
    part = ledger.ask("wallet", "statement", alice, "--from", 2, "--to", 3)
    assert part["opening_balance_minor"] == 100005 and part["closing_balance_minor"] == 100255
    assert [entry["transaction_id"] for entry in part["entries"]] == ["bet", "win"]
    day = document["entries"][0]["created_at"][:10]
    rollbacks = ledger.ask("wallet", "statement", alice, "--kind", "ROLLBACK", "--from", day)
    assert [entry["transaction_id"] for entry in rollbacks["entries"]] == ["undo", "void"]
    assert rollbacks["opening_balance_minor"] == 0 and rollbacks["closing_balance_minor"] == 99755
    before = ledger.ask("wallet", "statement", alice, "--to", "2020-01-31")
    assert before["entries"] == [] and before["closing_balance_minor"] == 0
    after = ledger.ask("wallet", "statement", alice, "--from", "2120-01-31")
    assert after["entries"] == [] and after["opening_balance_minor"] == after["closing_balance_minor"] == 99755
    for wrong in (["--from", "2026-02-30"], ["--kind", "bet"], ["--to", "x"]):
        ledger.run("wallet", "statement", alice, *wrong, status=2)
    text = ledger.run("wallet", "statement", alice).text
    assert "1000.05" in text and "-2.50" in text and "997.55" in text.splitlines()[-1]
    assert "0.007" in ledger.run("wallet", "statement", bob).text
    assert ledger.run("wallet", "statement", carol).text.splitlines()[-1].split() == ["closing", "7"]


def test_a_player_without_entries_has_an_empty_statement(ledger):
    document = ledger.ask("wallet", "statement", add_player(ledger, ledger.customer, "dave"))
    assert document["entries"] == [] and document["closing_balance_minor"] == 0
    assert "no such player" in ledger.run("wallet", "statement", "ply_nobody", status=1).errors
    ledger.run("wallet", "statement", "ply_nobody", "--from", "0", status=2)


def test_a_transaction_is_told_with_what_became_of_it(ledger):
    ask = lambda identity: ledger.ask("wallet", "transaction", ledger.customer.id, identity)
    assert ask("bet")["outcome"] == "applied" and ask("bet")["round_id"] == "r 1"
    assert (ask("win")["rolled_back"], ask("win")["rolled_back_by"], ask("bet")["rolled_back_by"]) == (True, "undo", None)
    assert (ask("bet")["standing_credits"], ask("bet")["settled_by"]) == (0, None)  # what had settled it was rolled back
    assert ask("too-much")["outcome"] == "insufficient_funds" and "sequence" not in ask("too-much")
    assert ask("never") == {"customer": ledger.customer.id, "transaction_id": "never", "rolled_back": True,
                            "rolled_back_by": "void", "standing_credits": 0, "settled_by": None}
    assert "applied" in ledger.run("wallet", "transaction", ledger.customer.id, "bet").text
    ledger.run("wallet", "transaction", ledger.customer.id, "nothing", status=1)
    ledger.run("wallet", "transaction", "cus_nobody", "bet", status=1)
    ledger.run("wallet", "transaction", ledger.customer.id, "x" * 100, status=1)


def head_of(entries):
    return hashlib.sha256(b"".join(bytes.fromhex(entry["hash"]) for entry in entries)).hexdigest()


def exported(service, *options):
    """The entries of an export in lines, and its last line."""
    lines = [json.loads(line) for line in service.run("wallet", "export", *options).text.splitlines()]
    return lines[:-1], lines[-1]


def test_an_export_adds_up(ledger):
    entries, last = exported(ledger)
    assert last["entries"] == len(entries) == 7 and last["head"] == head_of(entries)
    totals = {total["currency"]: total["movement_minor"] for total in last["totals"]}
    assert totals == {"EUR": 99755, "KWD": 7, "JPY": 7}
    euros = next(total for total in last["totals"] if total["currency"] == "EUR")
    assert euros["entries"] == 5 and euros["currency_exponent"] == 2 and euros["operations"] == [
        {"operation": "DEBIT", "entries": 1, "movement_minor": -250},
        {"operation": "CREDIT", "entries": 2, "movement_minor": 100505},
        {"operation": "ROLLBACK", "entries": 2, "movement_minor": -500}]
    day = entries[0]["created_at"][:10]
    assert ledger.run("wallet", "export", "--day", "2001-01-01").text.count("\n") == 1
    some, last = exported(ledger, "--day", day)
    assert all(entry["created_at"].startswith(day) for entry in some)
    assert [entry["created_at"] for entry in some] == sorted(entry["created_at"] for entry in some)
    assert last["head"] == head_of(some)
    ledger.run("wallet", "export", "--day", "yesterday", status=2)


def test_an_export_is_one_document_or_a_line_an_entry(ledger):
    lines = ledger.run("wallet", "export", "--ndjson").text
    assert lines == ledger.run("wallet", "export").text
    entries, last = exported(ledger)
    document = ledger.ask("wallet", "export")  # --json
    assert document["entries"] == entries and document["entry_count"] == last.pop("entries")
    assert {name: document[name] for name in last} == last
    assert "not both" in ledger.run("wallet", "export", "--json", "--ndjson", status=2).errors
    nothing = ledger.ask("wallet", "export", "--day", "2001-01-01", "--rounds")
    assert nothing["entries"] == nothing["rounds"] == nothing["totals"] == [] and nothing["entry_count"] == 0


def test_an_export_of_a_customer_a_provider_and_its_rounds(ledger):
    entries, last = exported(ledger)
    alone, one = exported(ledger, "--customer", ledger.customer.id)
    assert alone == entries and one["customer"] == ledger.customer.id and one["totals"] == last["totals"]
    played = ledger.ask("wallet", "export", "--provider", "acme", "--rounds")
    # The credit names no game: it is its bet's, and the rollback of it too.
    assert [entry["transaction_id"] for entry in played["entries"]] == ["bet", "win", "undo"]
    assert played["rounds"] == [{
        "customer": ledger.customer.id, "provider": "acme", "game_id": "roulette", "round_id": "r 1", "currency": "EUR",
        "currency_exponent": 2, "entries": 3, "stakes": 1, "stakes_minor": 250, "wins": 1, "wins_minor": 500,
        "rolled_back_stakes_minor": 0, "rolled_back_wins_minor": 500, "transfers_in_minor": 0, "transfers_out_minor": 0,
        **{name: 0 for kind in ("promos", "jackpots", "adjustments") for name in (kind, f"{kind}_minor", f"rolled_back_{kind}_minor")},
        "rolled_back_transfers_in_minor": 0, "rolled_back_transfers_out_minor": 0, "result_minor": 250}]
    assert [(total["currency"], total["movement_minor"]) for total in played["totals"]] == [("EUR", -250)]
    lines, _ = exported(ledger, "--rounds")
    assert lines == [*entries, {"round": played["rounds"][0]}]
    other = ledger.add_customer("Other")
    assert exported(ledger, "--customer", other.id)[0] == []
    assert "no such customer" in ledger.run("wallet", "export", "--customer", "cus_nobody", status=1).errors
    assert "no such provider" in ledger.run("wallet", "export", "--provider", "nobody", status=1).errors


def test_the_export_of_a_customers_day_is_what_its_statements_say(ledger):
    statements = [ledger.ask("wallet", "statement", player) for player in ledger.players]
    day = statements[0]["entries"][0]["created_at"][:10]
    stated = {}
    for statement in statements:
        stated[statement["currency"]] = stated.get(statement["currency"], 0) + sum(
            entry["movement_minor"] for entry in statement["entries"] if entry["created_at"].startswith(day))
    _, last = exported(ledger, "--customer", ledger.customer.id, "--day", day)
    assert {total["currency"]: total["movement_minor"] for total in last["totals"]} == stated


def test_a_report_of_a_day_is_equal_to_the_ledger(ledger):
    entries, last = exported(ledger)
    day = entries[0]["created_at"][:10]
    report = ledger.ask("wallet", "report", "--day", day)
    lines = {(line["currency"], line["game_id"]): line for line in report["lines"]}
    assert report["day"] == day and set(lines) == {("EUR", None), ("EUR", "roulette"), ("JPY", None), ("KWD", None)}
    game = lines["EUR", "roulette"]
    assert (game["provider"], game["stakes_minor"], game["wins_minor"], game["rolled_back_wins_minor"],
            game["result_minor"]) == ("acme", 250, 500, 500, 250)
    moved = {total["currency"]: total["movement_minor"] for total in last["totals"]}
    assert {total["currency"]: total["transfers_in_minor"] - total["rolled_back_transfers_in_minor"] - total["transfers_out_minor"]
            + total["rolled_back_transfers_out_minor"] - total["result_minor"] for total in report["totals"]} == moved
    assert (lines["EUR", None]["wins"], lines["EUR", None]["result_minor"]) == (0, 0)
    assert lines["EUR", None]["transfers_in_minor"] == 100005 and lines["EUR", None]["rolled_back_transfers_in_minor"] == 0
    for total in report["totals"]:
        assert total["result_minor"] == sum(line["result_minor"] for line in report["lines"]
                                            if line["currency"] == total["currency"])
    text = ledger.run("wallet", "report", "--day", day).text
    assert "roulette" in text and "  1000.05  " in text.splitlines()[-3] and "  0.007  " in text.splitlines()[-1]
    assert ledger.ask("wallet", "report", "--provider", "acme", "--day", day)["lines"] == [game]
    assert ledger.ask("wallet", "report", "--day", "2001-01-01") == {
        "day": "2001-01-01", "lines": [], "totals": [], "without_play": []}
    ledger.run("wallet", "report", "--day", "2001-1-1", status=2)


def slowly(service, delay_us, *arguments):
    """Runs a command that waits before every read, at a terminal: what it wrote there on stderr, and what it wrote on
    stdout, which is none."""
    leader, follower = os.openpty()
    process = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pread64", "-e",
                                f"inject=pread64:delay_enter={delay_us}", str(BINARY), *arguments, "-c",
                                str(service.configuration)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=follower, env={**service.environment, "ASAN_OPTIONS": "detect_leaks=0"})
    os.close(follower)
    output, shown = process.stdout.read().decode(), b""
    while select.select([leader], [], [], 0.2)[0]:
        try:
            shown += os.read(leader, 65536)
        except OSError:  # the end of a terminal
            break
    os.close(leader)
    if b"ptrace" in shown:
        pytest.skip("strace may not trace here")
    assert process.wait() == 0, shown
    return shown.decode(), output


@pytest.fixture(scope="module")
def long_ledger(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("long"))
    tool = [BINARY.parent / "tests" / "faults" / "wallet_tool"]
    players = subprocess.run([*tool, "setup", service.platform.uri], check=True, capture_output=True, text=True).stdout
    subprocess.run([*tool, "run", service.platform.uri, "26000", "64", *players.split()], check=True,
                   stdout=subprocess.DEVNULL)
    yield service
    service.remove()


@pytest.mark.long(15)
@pytest.mark.only("sqlite")  # the tool that fills it knows no other
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not there")
@pytest.mark.parametrize("command", ["verify", "export"])
def test_who_waits_at_a_terminal_sees_how_far_it_is(long_ledger, command):
    quiet = long_ledger.run("wallet", command)  # at none
    assert quiet.errors == ""
    for delay_us in (1000, 4000, 16000):
        shown, output = slowly(long_ledger, delay_us, "wallet", command)
        assert output == quiet.text
        if shown:  # it took more than a second
            break
    entries = long_ledger.ask("wallet", "verify")["entries"]
    counted = r"(\r\d+0000 of %d entries\x1b\[K)" % entries
    line = {"verify": rf"(\rchecking the store itself\x1b\[K)*{counted}*(\rlooking for rows without their counterpart\x1b\[K)?",
            "export": f"{counted}+"}[command]
    assert shown and re.fullmatch(rf"{line}\r\n", shown), shown


def test_a_sound_ledger_is_proved_beside_the_running_server(ledger):
    assert ledger.ask("wallet", "verify") == {"sound": True, "entries": 7, "players": 3}
    assert "sound: 7 entries of 3 players" in ledger.run("wallet", "verify").text


# A decline under an id that an entry has.
USED_AGAIN = ("INSERT INTO ledger_transaction (number, customer_number, player_number, previous, amount_minor, created_ms,"
              " transaction_id, operation, outcome) SELECT 1000, customer_number, player_number, 0, 1, 1, transaction_id,"
              " 'DEBIT', 'insufficient_funds' FROM ledger_transaction WHERE number = 1")


@pytest.mark.parametrize("tampering, told", [
    ("UPDATE ledger_transaction SET movement_minor = movement_minor + 1, balance_minor = balance_minor + 1"
     " WHERE sequence = 1",
     "sequence 1: the movement"),
    ("UPDATE ledger_transaction SET round_id = 'x' WHERE transaction_id = 'bet'", "sequence 2: the chain is broken"),
    ("UPDATE ledger_transaction SET created_ms = created_ms + 1 WHERE transaction_id = 'win'", "sequence 3: the chain"),
    ("UPDATE ledger_transaction SET hash = zeroblob(32) WHERE sequence = 5", "sequence 5: the chain is broken"),
    ("DELETE FROM ledger_transaction WHERE sequence = 3", "sequence 3: this entry is not there"),
    ("DELETE FROM ledger_transaction WHERE sequence = 5", "sequence 4: the account has another last sequence"),
    ("DELETE FROM ledger_transaction WHERE player_number = 3", "sequence 0: the account has another last sequence"),
    ("UPDATE ledger_account SET balance_minor = balance_minor + 1 WHERE player_number = 2", "another balance"),
    ("UPDATE ledger_account SET head = zeroblob(32) WHERE player_number = 2", "another head"),
    ("UPDATE ledger_clearing SET balance_minor = balance_minor - 1 WHERE currency = 'JPY'", "the clearing account has -8"),
    pytest.param("DELETE FROM ledger_rollback WHERE target_id = 'win'", "without their counterpart",
                 marks=pytest.mark.only("postgresql")),  # a table that the other ledger does not have
    ("UPDATE ledger_transaction SET transaction_id = 'other' WHERE transaction_id = 'too-much'", "decline 1: the chain is broken"),
    ("DELETE FROM ledger_transaction WHERE transaction_id = 'too-much'", "without their counterpart"),
    ("DELETE FROM ledger_decline WHERE position = 1", "decline 0: the account has another last decline"),
    ("UPDATE ledger_declined SET declines = declines + 1", "decline 1: the account has another last decline"),
    ("UPDATE player SET reference = 'x' WHERE number = 2", "it is not what was opened"),
    ("DELETE FROM ledger_clearing WHERE currency = 'KWD'", "the players hold 7 but the clearing account has 0"),
    pytest.param("UPDATE ledger_transaction SET settles = settles + 1 WHERE settles IS NOT NULL", "without their counterpart",
                 marks=pytest.mark.only("sqlite")),  # a column that the other ledger does not have
    *(pytest.param(statement, "without their counterpart", marks=pytest.mark.only("sqlite")) for statement in [
        USED_AGAIN,
        "UPDATE ledger_last SET number = number + 1",
        "UPDATE ledger_last SET number = number - 1",
        "DELETE FROM ledger_day",
        "UPDATE ledger_day SET day = day + 1",
        "INSERT INTO ledger_day SELECT 3, day FROM ledger_day",
        "INSERT INTO ledger_day VALUES (9999, 1)"]),
    pytest.param("DELETE FROM ledger_last", "nothing says how far its ledger goes", marks=pytest.mark.only("sqlite")),
    *(pytest.param(statement, "is damaged, says SQLite itself: CHECK", marks=pytest.mark.only("sqlite")) for statement in [
        "PRAGMA ignore_check_constraints = ON; UPDATE ledger_transaction SET previous = 0 WHERE sequence = 3",
        "PRAGMA ignore_check_constraints = ON; UPDATE ledger_transaction SET previous = 999 WHERE sequence = 1 AND player_number = 2"]),
    pytest.param("UPDATE ledger_account SET last_number = 1 WHERE player_number = 2",
                 "the account has another last sequence", marks=pytest.mark.only("sqlite")),
    pytest.param("UPDATE ledger_transaction SET previous = previous + 100 WHERE sequence = 4",
                 "sequence 3: this entry is not there", marks=pytest.mark.only("sqlite")),
    ("UPDATE ledger_transaction SET balance_minor = balance_minor - 1 WHERE sequence = 4", "sequence 4: the balance is not"),
])
def test_the_first_break_is_named(ledger, tmp_path, tampering, told):
    copy = Service(tmp_path, stores=False)
    copy.platform.copy_from(ledger.platform)
    copy.platform.execute(*tampering.replace("zeroblob(32)", copy.platform.blob(32)).split("; "), tampering=True)
    done = copy.run("wallet", "verify", status=1)
    assert told in done.errors and done.text == ""
    assert len(done.errors.splitlines()) == 1
    if tampering.startswith("UPDATE ledger_transaction SET") and "sequence" in told or "decline 1" in told:
        document = json.loads(copy.run("wallet", "verify", "--json", status=1).text)
        assert document["sound"] is False and told in document["reason"] and document["reason"] in done.errors
        where = "sequence" if "sequence" in told else "decline"
        assert document["player_id"] in ledger.players and f"{where} {document[where]}: " in document["reason"]
    copy.remove()


def test_since_proves_what_is_newer_and_says_what_it_does_not(ledger, tmp_path):
    copy = Service(tmp_path, stores=False)
    copy.platform.copy_from(ledger.platform)
    whole = copy.ask("wallet", "verify")
    today = copy.ask("wallet", "verify", "--since", "1")
    assert today.pop("since").endswith("T00:00:00.000Z")
    assert today == {**whole, "entries_since": whole["entries"]}
    told = copy.run("wallet", "verify", "--since", "2001-01-01").text
    assert f"{whole['entries']} entries since 2001-01-01" in told and "Not checked: " in told

    # Everything before a player's third entry becomes old.
    [(player, first)] = copy.platform.execute("SELECT player_number, number FROM ledger_transaction WHERE sequence = 3 LIMIT 1")
    [(older,)] = copy.platform.execute(f"SELECT count(*) FROM ledger_transaction WHERE number < {first} AND sequence IS NOT NULL")
    older = int(older)
    assert older >= 2
    if engines.PLATFORM == "sqlite":
        copy.platform.execute(f"INSERT INTO ledger_day SELECT {first}, day FROM ledger_day",
                              "UPDATE ledger_day SET day = 11574 WHERE first_number = 1", tampering=True)
    else:
        copy.platform.execute(f"UPDATE ledger_transaction SET created_ms = 1000000000000 WHERE number < {first}", tampering=True)
    assert copy.ask("wallet", "verify", "--since", "1")["entries"] == whole["entries"] - older

    def changed(statement, undo):
        copy.platform.execute(statement, tampering=True)
        done = copy.run("wallet", "verify", "--since", "1", status=None)
        copy.platform.execute(undo, tampering=True)
        return done.errors

    row = f"WHERE player_number = {player} AND sequence ="
    for column in ("amount_minor", "created_ms"):
        more, less = (f"UPDATE ledger_transaction SET {column} = {column} {sign} 1 {row}" for sign in "+-")
        assert changed(f"{more} 1", f"{less} 1") == "" == changed(f"{more} 2", f"{less} 2")  # older ones are not looked at
        assert "sequence 3: the" in changed(f"{more} 3", f"{less} 3")
    # What the first new one follows is needed for it.
    more, less = (f"UPDATE ledger_transaction SET balance_minor = balance_minor {sign} 1 {row} 2" for sign in "+-")
    assert "sequence 3: the balance is not" in changed(more, less)
    more, less = (f"UPDATE ledger_account SET balance_minor = balance_minor {sign} 1 WHERE player_number = {player}" for sign in "+-")
    assert "another balance" in changed(more, less)
    copy.platform.execute(f"DELETE FROM ledger_transaction {row} 2", tampering=True)
    assert "is not there, but a later one is" in copy.run("wallet", "verify", "--since", "1", status=1).errors
    copy.remove()


def test_since_holds_where_the_clock_went_back_over_midnight(tmp_path):
    """As two servers have it whose clocks are not quite the same, and whose player goes from one to the other."""
    clock = Clock(tmp_path / "clock")
    service = Service(tmp_path / "house", environment=clock.environment)
    try:
        customer = service.add_customer("Casino", options=["--casino"])
        alice = add_player(service, customer)
        service.start()
        clock.advance(wall=86400)
        for identity, leap in (("tomorrow", -86400), ("today", 0), ("today-again", 86400), ("tomorrow-again", -86400), ("last", 86400)):
            assert send(service, customer.key, credit(alice, identity, 100)).status == 200
            clock.advance(wall=leap)
        whole = service.ask("wallet", "verify")
        assert whole["entries"] == 5
        recent = service.ask("wallet", "verify", "--since", "0")
        assert recent["sound"] and recent["entries"] == 5  # every one since the first of that day
    finally:
        service.stop()


@pytest.mark.parametrize("since", ["yesterday", "2026-13-01", "2026-11-2", "9999-01-01", "-1", "36501", "1.5", "", "2026-11-21T00:00:00Z"])
def test_since_what_is_no_day_that_has_begun_is_refused(ledger, since):
    done = ledger.run("wallet", "verify", "--since", since, status=2)
    assert "--since is a date that has begun" in done.errors and (since == "" or since not in done.errors.split("--since is")[0])


def forged(sequence, movement, balance):
    """One more entry after the last one of a player, or in its place."""
    late = (", late", ", false") if engines.PLATFORM == "postgresql" else (
        ", previous", f", CASE WHEN {sequence} > 1 THEN number ELSE 0 END")
    owner = "owner_number" if engines.PLATFORM == "postgresql" else "customer_number"
    return (f"INSERT INTO ledger_transaction (number, {owner}, player_number, sequence, amount_minor,"
            f" movement_minor, balance_minor, created_ms, transaction_id, operation, outcome, reference, hash{late[0]})"
            f" SELECT number + 1000000, {owner}, player_number, {sequence}, amount_minor, {movement}, {balance},"
            f" created_ms, 'forged', 'ROLLBACK', 'voided', 'any', hash{late[1]} FROM ledger_transaction"
            " WHERE player_number = 2 AND sequence IS NOT NULL ORDER BY sequence DESC LIMIT 1")


def test_a_forged_entry_is_refused_for_no_other_reason_than_that_it_does_not_follow(ledger, tmp_path):
    copy = Service(tmp_path, stores=False)
    copy.platform.copy_from(ledger.platform)
    copy.platform.execute(forged("sequence + 1", 0, "balance_minor"))
    copy.remove()


FORGED = [
    forged("sequence + 1", 1, "balance_minor"),
    forged("sequence + 2", 0, "balance_minor"),
    forged("sequence", 0, "balance_minor"),
    forged("sequence", 1, "balance_minor + 1"),
    forged("1", 5, "5"),
    pytest.param(forged("sequence + 1", 0, "balance_minor").replace("THEN number", "THEN 2"), marks=pytest.mark.only("sqlite")),
]


@pytest.mark.parametrize("statement", [
    "UPDATE ledger_transaction SET movement_minor = 1", "UPDATE ledger_transaction SET amount_minor = 1",
    "DELETE FROM ledger_transaction", "DELETE FROM ledger_account", "UPDATE ledger_account SET balance_minor = 5",
    "DELETE FROM ledger_clearing",
    *(pytest.param(statement, marks=pytest.mark.only("postgresql")) for statement in [
        "DELETE FROM ledger_rollback", "UPDATE ledger_rollback SET target_id = 'x'"]),
    *(pytest.param(statement, marks=pytest.mark.only("sqlite")) for statement in [
        "DELETE FROM ledger_last", "UPDATE ledger_last SET number = number - 1", "UPDATE ledger_last SET ledger = zeroblob(16)",
        "DELETE FROM ledger_day", "UPDATE ledger_day SET day = day + 1"]),
    "UPDATE player SET reference = 'x'", "DELETE FROM player", "UPDATE currency SET exponent = 3"])
def test_the_store_refuses_to_be_changed_by_hand(ledger, statement):
    with pytest.raises(ValueError):
        ledger.platform.execute(statement)


@pytest.mark.only("postgresql")
@pytest.mark.parametrize("statement", FORGED[2:])  # of the first two, verify finds them: test_wallet_tampering.py
def test_the_store_refuses_an_entry_that_does_not_follow(ledger, statement):
    with pytest.raises(ValueError):
        ledger.platform.execute(statement)


@pytest.mark.only("sqlite")  # does not look at what is before each row that it is given
@pytest.mark.parametrize("statement", FORGED)
def test_an_entry_that_does_not_follow_is_refused_or_found(ledger, tmp_path, statement):
    copy = Service(tmp_path, stores=False)
    copy.platform.copy_from(ledger.platform)
    try:
        copy.platform.execute(statement)
    except ValueError as error:
        assert "UNIQUE constraint failed: ledger_transaction.player_number, ledger_transaction.sequence" in str(error)
        return
    done = copy.run("wallet", "verify", status=1)
    assert "the ledger is broken: " in done.errors and done.text == ""
    copy.remove()


# ---- a reader whose output is not taken ------------------------------------------------------------------


@pytest.fixture
def written(make_service):
    """Its entries are more than the buffers of a pipe and a command hold."""
    service = make_service()
    customer = service.add_customer("Casino", options=["--casino"])
    service.start()
    service.player = add_player(service, customer, "alice")
    for number in range(600):
        assert send(service, customer.key, credit(service.player, f"t{number}", 1)).status == 200
    return service


def start_unread(service, *arguments, environment=()):
    """A command that is blocked in a write."""
    process = subprocess.Popen([BINARY, "-c", service.configuration, *arguments], env=dict(service.environment, **dict(environment)),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, pipesize=4096)

    def blocked():
        unread = bytearray(4)
        fcntl.ioctl(process.stdout, termios.FIONREAD, unread)
        return int.from_bytes(unread, sys.byteorder) == 4096
    eventually(blocked)
    return process


@pytest.mark.only("sqlite")
def test_a_database_may_be_named_by_a_symbolic_link(make_service):
    service = make_service()
    customer = service.add_customer("Casino", options=["--casino"])
    elsewhere = service.directory / "elsewhere"
    elsewhere.mkdir()
    for file in service.platform.path.parent.glob(f"{service.platform.path.name}*"):
        file.rename(elsewhere / file.name)
    service.platform.path.symlink_to(elsewhere / service.platform.path.name)
    service.start()
    player = add_player(service, customer, "alice")
    assert send(service, customer.key, credit(player, "t1", 100)).status == 200
    assert service.run("wallet", "verify").text.startswith("The ledger is sound")
    service.stop()
    assert [file.name for file in service.platform.path.parent.glob(f"{service.platform.path.name}*")] == ["platform.db"]


@pytest.mark.only("sqlite")
def test_no_empty_ledger_takes_the_place_of_one_that_is_missing(make_service):
    service = make_service()
    customer = service.add_customer("Casino", options=["--casino"])
    service.start()
    assert send(service, customer.key, credit(add_player(service, customer, "alice"), "t1", 100)).status == 200
    service.stop()
    database = service.platform.path
    database.rename(database.with_suffix(".away"))
    assert "platform.db-last says that there was one" in service.run("migrate", status=1).errors
    assert not database.exists()
    database.touch()  # or emptied: what its log holds stays, too
    log = database.with_name("platform.db-wal")
    log.write_bytes(b"what a killed server left")
    for command in (("migrate",), ("wallet", "verify")):
        assert "platform.db-last says that there was one" in service.run(*command, status=1).errors
        assert database.stat().st_size == 0 and log.exists()
    log.unlink()
    database.with_suffix(".away").rename(database)
    assert service.run("wallet", "verify").text.startswith("The ledger is sound")
    database.unlink()
    database.with_name("platform.db-last").unlink()
    service.run("migrate")


@pytest.mark.only("sqlite")
@pytest.mark.parametrize("command", ["export", "statement"])
def test_a_reader_ends_when_the_log_that_it_holds_grows_too_far(written, command):
    written.stop()
    process = start_unread(written, "wallet", command, *([written.player] if command == "statement" else []))
    log = Path(f"{written.platform.path}-wal")
    os.truncate(log, log.stat().st_size + (1 << 30) + 1)  # SQLite takes the zeros for the log's end
    assert process.wait(60 * PATIENCE) == 1
    assert b"the database's log has grown by 1 GiB" in process.stderr.read()
    process.communicate()


@pytest.mark.only("postgresql")
def test_a_reader_ends_when_its_output_is_not_taken(written, tmp_path):
    clock = Clock(tmp_path / "clock")
    process = start_unread(written, "wallet", "export", environment=clock.environment)
    clock.advance(monotonic=86400)
    assert process.wait(60 * PATIENCE) == 1
    assert b"its output was not taken" in process.stderr.read()
    process.communicate()


def on_read_only_mount(service, *arguments):
    """A command while the directory of the service's stores is mounted so that nothing can be written."""
    directory = service.platform.path.parent
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    return subprocess.run(["unshare", "--mount", "sh", "-c", script, directory, BINARY, *arguments, "-c", service.configuration],
                          capture_output=True, text=True, env=service.environment, timeout=60 * PATIENCE)


@pytest.mark.only("embedded", "sqlite")
def test_a_ledger_on_a_read_only_mount_is_verified_backed_up_and_copied(make_service, tmp_path):
    service = make_service()
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        pytest.skip("this user may not make a mount of its own")
    service.add_customer("Casino")
    verified = on_read_only_mount(service, "wallet", "verify")
    assert verified.returncode == 0 and verified.stdout.startswith("The ledger is sound"), verified
    assert "cannot be written" in verified.stderr  # so the outcome is not kept
    changed = on_read_only_mount(service, "customer", "add", "Another")
    assert changed.returncode == 1 and "cannot be written" in changed.stderr
    saved = on_read_only_mount(service, "backup", tmp_path / "backup", "--no-odds")
    assert saved.returncode == 0 and (tmp_path / "backup" / "manifest.json").exists(), saved
    assert "croupier_backup_age_seconds does not count this backup" in saved.stderr
    copied = on_read_only_mount(service, "platform", "copy", "configured", f"sqlite:{tmp_path}/copy.db")
    assert copied.returncode == 0 and "1  customers" in copied.stdout, copied
    log = service.platform.path.with_name(service.platform.path.name + "-wal")
    log.write_bytes(b"what a killed server left")
    refused = on_read_only_mount(service, "wallet", "verify")
    assert refused.returncode == 1 and "-wal is there: it is open elsewhere, or was not closed" in refused.stderr
    log.unlink()
    service.start()  # a mount is read-only for those in it alone
    for arguments in (("wallet", "verify"), ("backup", tmp_path / "torn", "--no-odds")):
        refused = on_read_only_mount(service, *arguments)
        assert refused.returncode == 1 and "it is open elsewhere, or was not closed" in refused.stderr, refused
    assert not list((tmp_path / "torn").glob("manifest*"))


def test_what_is_summed_under_is_fixed_when_the_entry_is_written(tmp_path):
    """Whatever comes later: the bet of a rollback that was there before it, or another provider for the game."""
    service = Service(tmp_path)
    try:
        service.customer = service.add_customer("Casino", options=["--casino"])
        add_games(service, "roulette", "wheel")
        service.start()
        alice = add_player(service, service.customer, "alice")

        def report():
            lines = service.ask("wallet", "report")["lines"]
            return {(line["provider"], line["game_id"]): (line["entries"], line["stakes_minor"], line["wins_minor"]) for line in lines}

        for document in (credit(alice, "in", 10000), rollback(alice, "undo", "late"), rollback(alice, "undo-2", "declined-later"),
                         debit(alice, "bet", 250, game_id="wheel", round_id="r"), credit(alice, "win", 500, "bet"),
                         credit(alice, "promo", 7, game_id="not-there-yet", round_id="p")):
            assert send(service, service.customer.key, document).status == 200
        assert service.ask("wallet", "report")["without_play"] == []
        before = report()
        assert before == {(None, None): (3, 0, 0), ("acme", "wheel"): (2, 250, 500), (None, "not-there-yet"): (1, 0, 7)}
        late = debit(alice, "late", 100, game_id="roulette", round_id="r-5")
        assert send(service, service.customer.key, late).json()["error"] == "transaction_rolled_back"
        assert report() == before
        service.run("wallet", "verify")
        # The game goes to another provider, and one comes that an entry named already.
        service.run("provider", "add", "beta", "--name", "Beta", "--launch-url", "https://b.example/", "--secret", "-", input="x" * 32)
        games = service.ask("game", "list")
        wheel = next(game for game in games if game["id"] == "wheel")
        moved = {key: value for key, value in wheel.items() if key not in ("updated_at", "usable")}
        moved["provider"] = "beta"
        service.run("game", "import", "-", input=json.dumps([moved, {**moved, "id": "not-there-yet"}]))
        assert report() == before
        eventually(lambda: send(service, service.customer.key, debit(alice, "bet-2", 11, game_id="wheel", round_id="r2")).status == 200)
        after = {**before, ("beta", "wheel"): (1, 11, 0)}
        assert report() == after
        assert send(service, service.customer.key, rollback(alice, "undo-3", "bet")).json()["error"] == "already_settled"
        service.run("wallet", "verify")
        moved["provider"] = "acme"
        service.run("game", "import", "-", input=json.dumps([moved]))
        assert report() == after
        service.run("wallet", "verify")
        assert {line["provider"] for line in service.ask("wallet", "report", "--provider", "beta")["lines"]} == {"beta"}
    finally:
        service.stop()


def test_sums_beyond_what_a_number_holds_stop_there_and_others_go_on(tmp_path):
    """Five million of the largest operations pass 2^62; as many stand in the kept sums here."""
    service = Service(tmp_path)
    try:
        service.customer = service.add_customer("Rich", options=["--casino"])
        other = service.add_customer("Other", options=["--casino"])
        add_games(service, "roulette")
        service.start()
        rich, poor = add_player(service, service.customer, "rich"), add_player(service, other, "poor")
        day = service.ask("wallet", "report")["day"]
        days = (date.fromisoformat(day) - date(1970, 1, 1)).days
        service.platform.execute(*[
            f"INSERT INTO ledger_sum VALUES ({days}, '{service.customer.id}', 'EUR', 'acme', 'roulette', 'DEBIT', '{kind}', 0, {raised},"
            " 5000000, -4500000000000000000)" for kind, raised in (("", 0), ("", 1), ("promo", 0))])
        for customer, player in ((service.customer, rich), (other, poor)):
            for document in (credit(player, "in", 1000), debit(player, "bet", 250, game_id="roulette", round_id="r")):
                assert send(service, customer.key, document).status == 200
        most = 2**62
        report = service.ask("wallet", "report")
        lines = {(line["customer"], line["game_id"]): line for line in report["lines"]}
        of_rich, of_other = lines[service.customer.id, "roulette"], lines[other.id, "roulette"]
        assert (of_rich["stakes_minor"], of_rich["result_minor"], of_rich["stakes"]) == (most, None, 15000001)
        assert (of_other["stakes_minor"], of_other["result_minor"]) == (250, 250)
        assert (report["totals"][0]["stakes_minor"], report["totals"][0]["transfers_in_minor"]) == (most, 2000)
        text = service.run("wallet", "report").text
        assert "more than 46116860184273879.04" in text and "2.50" in text
        wallet = {row["customer"]: row for row in service.ask("usage")["wallet"]}
        assert (wallet[service.customer.id]["debits_minor"], wallet[service.customer.id]["movement_minor"]) == (most, None)
        assert (wallet[other.id]["debits_minor"], wallet[other.id]["movement_minor"]) == (250, 750)
        assert service.ask("wallet", "export", "--customer", other.id, "--day", day)
        assert service.ask("wallet", "export", "--day", day)
    finally:
        service.stop()


def test_a_customer_whose_bets_are_transfers_is_named(tmp_path):
    service = Service(tmp_path)
    try:
        service.customer, other = service.add_customer("Careless", options=["--casino"]), service.add_customer("Careful", options=["--casino"])
        add_games(service, "roulette")
        service.start()
        careless, careful = add_player(service, service.customer), add_player(service, other)
        for customer, player, named in ((service.customer, careless, {}), (other, careful, {"game_id": "roulette", "round_id": "r"})):
            for document in (credit(player, "in", 1000), debit(player, "bet", 250, **named)):
                assert send(service, customer.key, document).status == 200
        assert service.ask("wallet", "report")["without_play"] == [service.customer.id]
        text = service.run("wallet", "report").text
        assert f"{service.customer.id} moved money by transfers alone" in text and f"{other.id} moved" not in text
    finally:
        service.stop()
