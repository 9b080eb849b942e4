"""croupier wallet verify against whoever edits the tables: every column of every row of the ledger and of its
players, altered; every row removed; every row there twice. What is not found is listed here, with the reason.

The columns are read from the schema, so that a new one is tried without a word here."""

import io
import json
import os
import random
import re
import sqlite3
import subprocess

import pytest

import engines
from croupier import ROOT, Service
from servers import SAMPLE, sampled
from wallet_model import Provider, add_games, add_player, credit, debit, launch, rollback, send

pytestmark = [pytest.mark.depends_on("platform"), pytest.mark.threadless]

EVERY_ROW = engines.PLATFORM == "sqlite" or "TEST_TAMPER_EVERY_ROW" in os.environ
ROWS = 10**9 if EVERY_ROW else -(-6 // SAMPLE)  # of a table that are tried, with each column

# Table: what names a row. The ledger's, and of the tables around it what it refers to.
TABLES = {
    "customer": ("number",), "currency": ("code",), "player": ("number",), "player_opened": ("player_number",),
    "ledger_transaction": ("number",),
    "ledger_decline": ("player_number", "position"), "ledger_declined": ("player_number",),
    "ledger_account": ("player_number",), "ledger_clearing": ("customer_number", "currency"),
}
if engines.PLATFORM == "sqlite":
    TABLES |= {"ledger_last": ("one",), "ledger_day": ("first_number",)}
else:
    TABLES |= {"ledger_rollback": ("owner_number", "target_id")}

POLICY = "is the policy's: it admits, and no answer of the ledger is made of it"
NOT_FOUND = {  # (table, column): why no answer depends on it
    **{("customer", column): POLICY for column in (
        "name", "enabled", "casino", "sports", "rate_requests", "rate_window_seconds", "cidrs", "created_ms", "revision")},
    ("currency", "created_ms"): "when it was first used; no one asks",
    ("ledger_last", "ledger"): "which files beside the database are its own: with another, they are made again",
}
REFUSED = {("ledger_last", "one")}  # by the table's own rules, whatever is put there
if engines.PLATFORM == "postgresql":
    NOT_FOUND["ledger_transaction", "number"] = "of an entry: in what order it is copied, and a copy refuses another"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("tampering"), {"provider.listen": "127.0.0.1:0"})
    customers = [service.add_customer(name, options=["--casino"]) for name in ("One", "Two")]
    add_games(service, "roulette")
    service.start()
    one, two = customers
    alice, bob = (add_player(service, one, *player) for player in (("alice",), ("bob", "KWD")))
    carol = add_player(service, two, "carol")
    add_player(service, two, "nobody")  # opened, and nothing else
    for customer, document in [
            (one, credit(alice, "in", 100000)), (one, debit(alice, "bet", 250, game_id="roulette", round_id="r-1")),
            (one, credit(alice, "win", 500, "bet", game_id="roulette", round_id="r-1")), (one, rollback(alice, "undo", "win")),
            (one, debit(alice, "bet-2", 10)), (one, credit(alice, "win-2", 20, "bet-2")), (one, rollback(alice, "void", "never")),
            # declines: of the balance, of a settled bet, of what is no debit, of what is rolled back, and late
            (one, debit(alice, "much", 200000, game_id="roulette", round_id="r-2")), (one, rollback(alice, "no-1", "bet-2")),
            (one, credit(alice, "no-2", 5, "nothing")), (one, rollback(alice, "no-3", "win")),
            (one, rollback(alice, "no-4", "void")), (one, debit(alice, "never", 5)), (one, rollback(alice, "undo-much", "much")),
            (one, debit(alice, "bet-3", 1)), (one, rollback(alice, "undo-3", "bet-3")), (one, credit(alice, "no-5", 2, "bet-3")),
            (one, credit(bob, "in-b", 7000, currency="KWD")), (one, debit(bob, "much-b", 7001, currency="KWD")),
            (two, credit(carol, "in", 30)), (two, debit(carol, "bet", 30)), (two, credit(carol, "in-2", 3))]:
        send(service, customer.key, document)
    play_at_a_provider(service, two)
    service.stop()
    assert service.ask("wallet", "verify")["sound"]
    return service


def play_at_a_provider(service, customer):
    """Each kind, and the end of a round on each operation, of an entry and of a decline."""
    _, subject, launched = launch(service, customer, "roulette", "carol")
    session = {"launch_id": launched, "game_id": "roulette", "round_id": "r-9"}
    provider = Provider(service)
    for document, status in [
            (debit(subject, "free", 0, **session), 200), (debit(subject, "stake", 1, round_ended=True, **session), 200),
            *((credit(subject, kind, 5, round_id="r-9", kind=kind), 200) for kind in ("win", "promo", "jackpot", "adjustment")),
            (rollback(subject, "undo", "promo"), 200), ({**rollback(subject, "undo-free", "free"), "round_ended": True}, 200),
            (debit(subject, "much", 10**9, round_ended=True, **session), 422),
            (credit(subject, "lost", 5, "nobody", round_id="r-9", kind="jackpot"), 404)]:
        assert provider.send(document).status == status


class SqliteTables:
    """A copy of the store's file; each change is made to a fresh one: in memory, in a transaction that is taken back when the file
    is written. The copy in memory has no triggers, as whoever tampers would have none; each file has them."""

    def __init__(self, service, directory):
        self.copy = Service(directory, stores=False)
        self.copy.platform.copy_from(service.platform)
        self.sound = self.copy.platform.path.read_bytes()
        self.memory = sqlite3.connect(":memory:", isolation_level=None)
        source = sqlite3.connect(self.copy.platform.path)
        source.backup(self.memory)
        source.close()
        self.memory.execute("CREATE TEMP TABLE removed AS SELECT * FROM main.sqlite_schema WHERE type = 'trigger'")
        for name, in self.rows("SELECT name FROM removed"):
            self.memory.execute(f"DROP TRIGGER {name}")
        self.memory.execute("PRAGMA foreign_keys = OFF")
        self.memory.execute("PRAGMA writable_schema = ON")

    def columns(self, table):
        return [(name, kind.lower()) for name, kind in self.rows(f"SELECT name, type FROM pragma_table_info('{table}')")]

    def rows(self, query):
        return self.memory.execute(query).fetchall()

    def change(self, statement, table):
        self.memory.execute("SAVEPOINT sound")
        try:
            self.memory.execute(statement)
            self.memory.execute("INSERT INTO main.sqlite_schema SELECT * FROM removed")
            made = self.memory.serialize()
        except sqlite3.DatabaseError as failure:
            raise ValueError(str(failure)) from failure
        finally:
            self.memory.execute("ROLLBACK TO sound")
            self.memory.execute("RELEASE sound")
        self.write(made[:18] + self.sound[18:20] + made[20:])  # in memory there is no write-ahead log

    def undo(self):
        self.write(self.sound)

    def remove(self):
        self.copy.platform.remove()

    def write(self, content):
        for path in self.copy.platform.path.parent.glob("platform.db-*"):
            path.unlink()
        self.copy.platform.path.write_bytes(content)


class PostgresTables:
    """A copy of the database, whose tables are filled again after each change: without triggers, in one session, as each takes the
    server as long as a verification."""

    def __init__(self, service, directory):
        self.copy = Service(directory, stores=False)
        self.copy.platform.copy_from(service.platform)
        self.changed = None
        self.session = self.copy.platform.session(stderr=subprocess.STDOUT)
        self.rows("SET session_replication_role = replica", "SET client_min_messages = error",
                  *(f"ALTER TABLE {table} ALTER number SET GENERATED BY DEFAULT" for table in ("customer", "player")),
                  *(f"CREATE TABLE sound_{table} AS SELECT * FROM {table}" for table in TABLES))

    def columns(self, table):
        return self.rows("SELECT column_name, data_type FROM information_schema.columns"
                         f" WHERE table_schema = 'public' AND table_name = '{table}'")

    def rows(self, *statements):
        """Of the last statement; ValueError: one was refused."""
        print(*(f"{statement};" for statement in statements), r"\echo over", sep="\n", file=self.session.stdin, flush=True)
        lines = []
        while (line := self.session.stdout.readline()) != "over\n":
            assert line, lines
            lines.append(line.rstrip("\n"))
        if any("ERROR: " in line for line in lines):
            raise ValueError(lines)
        return self.copy.platform.rows_of(lines)

    def change(self, statement, table):
        self.changed = table
        self.rows("BEGIN", statement, "COMMIT")

    def undo(self):
        if self.changed is not None:
            self.rows("BEGIN", f"DELETE FROM {self.changed}",
                      f"INSERT INTO {self.changed} OVERRIDING SYSTEM VALUE SELECT * FROM sound_{self.changed}", "COMMIT")
        self.changed = None

    def remove(self):
        self.session.communicate()
        self.copy.platform.remove()


@pytest.fixture(scope="module")
def tables(ledger, tmp_path_factory):
    made = (SqliteTables if engines.PLATFORM == "sqlite" else PostgresTables)(ledger, tmp_path_factory.mktemp("copy"))
    yield made
    made.change("UPDATE customer SET name = name", "customer")
    assert made.copy.ask("wallet", "verify")["sound"]  # so it was the change that was found, each time
    made.undo()
    assert made.copy.ask("wallet", "verify")["sound"]
    made.remove()


def rows_of(tables, table):
    """Conditions, each of which is one row's."""
    keys = TABLES[table]
    rows = [" AND ".join(f"{key} = '{value}'" for key, value in zip(keys, row, strict=True))
            for row in tables.rows(f"SELECT {', '.join(keys)} FROM {table} ORDER BY {', '.join(keys)}")]
    return rows


def accepted(tables, statement, table):
    """Changes; False when the table's own rules refuse it."""
    try:
        tables.change(statement, table)
        return True
    except ValueError:
        tables.undo()
        return False


def is_found(tables):
    done = tables.copy.run("wallet", "verify", status=None)
    assert done.returncode in (0, 1), done.errors
    if done.returncode == 1:
        assert done.text == "" and len(done.errors.splitlines()) == 1
        assert re.search(r"the ledger is broken: (player|customer|rows)|is damaged", done.errors), done.errors
    tables.undo()
    return done.returncode == 1


OPERATIONS = ["'DEBIT'", "'CREDIT'", "'ROLLBACK'"]
OUTCOMES = ["'applied'", "'voided'", "'insufficient_funds'", "'already_settled'"]


def others(tables, column, kind):
    """Expressions for another value of a column."""
    if column in ("operation", "outcome"):
        return OPERATIONS if column == "operation" else OUTCOMES
    if column in ("kind", "round_ended"):
        return ["'promo'", "'jackpot'", "NULL"] if column == "kind" else ["1", "NULL"]
    if kind in ("blob", "bytea"):
        return [tables.copy.platform.blob(32)]
    if kind == "boolean":
        return [f"NOT {column}"]
    if kind == "text":
        return [f"substr({column}, 1, length({column}) - 1) || CASE WHEN {column} LIKE '%Z' THEN 'Y' ELSE 'Z' END", "'Zz'", "NULL", "'lau_Zz'"]
    if column == "settles" and engines.PLATFORM == "postgresql":  # NULL is as rows of before have it: found by the reference
        return [f"{column} + 1", f"{column} - 1", f"{column} + 1000", "7"]
    return [f"{column} + 1", f"{column} - 1", f"{column} + 1000", "7", "NULL"]


@pytest.mark.sampled
@pytest.mark.parametrize("table", [pytest.param(table, marks=pytest.mark.long(30)) if table == "ledger_transaction" else table
                                   for table in TABLES])
def test_every_column_that_is_altered_is_found(tables, table):
    rows = rows_of(tables, table)
    random.Random(1).shuffle(rows)
    for column, kind in tables.columns(table):
        altered, tried, missed = 0, 0, []
        for row in rows:
            if tried >= ROWS:
                break
            for value in others(tables, column, kind):
                [(before, after)] = tables.rows(f"SELECT {column}, {value} FROM {table} WHERE {row}")
                if before == after:
                    continue
                altered += 1
                if EVERY_ROW and tried and altered % SAMPLE:
                    continue
                if accepted(tables, f"UPDATE {table} SET {column} = {value} WHERE {row}", table):
                    tried += 1
                    if not is_found(tables):
                        missed.append((row, value))
                    if not EVERY_ROW:
                        break
        if (table, column) in NOT_FOUND:
            assert missed or not tried, f"{table}.{column} is found: take it off the list"
        else:
            assert not missed, f"{table}.{column}: {missed}"
            assert tried or (table, column) in REFUSED or not rows, f"{table}.{column} was never altered"


@pytest.mark.sampled
@pytest.mark.parametrize("table", TABLES)
def test_every_row_that_is_removed_is_found(tables, table):
    missed = [row for row in sampled(rows_of(tables, table))
              if accepted(tables, f"DELETE FROM {table} WHERE {row}", table) and not is_found(tables)]
    assert not missed


@pytest.mark.sampled
@pytest.mark.parametrize("table", [table for table in TABLES if table not in ("customer", "currency", "ledger_last")])
def test_every_row_that_is_there_twice_is_found(tables, table):
    """Once more under another key: what a table refuses for its keys' sake is tried with each part of them altered."""
    columns = tables.columns(table)
    missed = []
    for row in sampled(rows_of(tables, table)[-ROWS:]):
        for changed, kind in columns:
            for value in others(tables, changed, kind)[:3 if EVERY_ROW else 1]:
                names = ", ".join(name for name, _ in columns)
                values = ", ".join(value if name == changed else name for name, _ in columns)
                extra = " OVERRIDING SYSTEM VALUE" if engines.PLATFORM == "postgresql" else ""
                if accepted(tables, f"INSERT INTO {table} ({names}){extra} SELECT {values} FROM {table} WHERE {row}", table) \
                        and not is_found(tables):
                    missed.append((row, changed, value))
    assert not missed


def test_an_auditor_s_program_proves_a_tail_and_an_export_without_croupier(ledger, monkeypatch, capsys):
    """That of docs/day-two.md, over entries of every kind."""
    [program] = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "day-two.md").read_text(), re.MULTILINE | re.DOTALL)

    def prove(lines):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(lines)))
        try:
            exec(program, {})
        except SystemExit as refused:
            return refused.code
        return capsys.readouterr().out

    others = {str: lambda value: f"{value}x", int: lambda value: value + 1, bool: lambda value: not value, type(None): lambda value: "x"}
    whole = {"hash": "11" * 32, "head": "11" * 32, "created_at": "2001-01-01T00:00:00.000Z", "kind": "promo"}
    for command in ("tail", "export"):
        lines = ledger.run("wallet", command).text.splitlines(keepends=True)
        said = ledger.run("wallet", "verify", "--file", "-", "--json", input="".join(lines))
        done = prove(lines)
        assert done == f"3 players, 0 of them begun before; head {json.loads(said.text)['head']}\n", done
        assert prove(lines[:5] + lines[6:]).startswith("line ")
        last = [len(lines) - 1] if command == "export" else []
        for at in [*range(0, len(lines) - 1, 5), *last]:
            entry = json.loads(lines[at])
            for name in entry.keys() - {"number", "player_id"} if "hash" in entry else ("head",):
                value = others[type(entry[name])](entry[name])
                value = whole[name] if whole.get(name, entry[name]) != entry[name] else value
                altered = json.dumps({**entry, name: value}) + "\n"
                assert prove([*lines[:at], altered, *lines[at + 1:]]) != done, (name, entry)


@pytest.mark.only("sqlite")
def test_what_sqlite_calls_malformed_is_named(ledger, tmp_path):
    """An index that has not what its table has: nothing of the tables themselves is altered."""
    copy = Service(tmp_path, stores=False)
    copy.platform.copy_from(ledger.platform)
    with sqlite3.connect(copy.platform.path) as database:
        definition, = database.execute("SELECT sql FROM sqlite_schema WHERE name = 'ledger_by_player'").fetchone()
        database.execute("PRAGMA writable_schema = ON")
        database.execute("DELETE FROM sqlite_schema WHERE name = 'ledger_by_player'")
        root, = database.execute("SELECT max(rootpage) FROM sqlite_schema").fetchone()
    database.close()
    with sqlite3.connect(copy.platform.path) as database:  # without the index, in which this row then is missing
        for name, in database.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
    database.close()
    assert definition and root
    done = copy.run("wallet", "verify", status=1)
    assert "says SQLite itself" in done.errors and done.text == ""


@pytest.mark.only("postgresql")
@pytest.mark.parametrize("amcheck", [True, False])
def test_an_index_that_has_not_what_its_table_has_is_named(ledger, tmp_path, amcheck):
    copy = Service(tmp_path, stores=False)
    copy.platform.copy_from(ledger.platform)
    if amcheck:
        copy.platform.execute("CREATE EXTENSION amcheck")
    assert ("amcheck." in copy.run("wallet", "verify").text) == amcheck
    # While an index is called not ready, no one writes into it.
    ready = "UPDATE pg_index SET indisready = {} WHERE indexrelid = 'ledger_decline_transaction_number_key'::regclass"
    copy.platform.execute(ready.format("false"))
    copy.platform.execute("CREATE TEMP TABLE written AS SELECT * FROM ledger_decline WHERE position = 1",
                          "DELETE FROM ledger_decline WHERE position = 1", "INSERT INTO ledger_decline SELECT * FROM written",
                          tampering=True)
    copy.platform.execute(ready.format("true"))
    done = copy.run("wallet", "verify", status=1)
    assert "ledger_decline_transaction_number_key" in done.errors and "damaged" in done.errors
    copy.platform.remove()


WITHOUT_CHECKS = {
    "sqlite": ["PRAGMA ignore_check_constraints = ON"],
    "postgresql": ["ALTER TABLE ledger_transaction DROP CONSTRAINT ledger_transaction_check"]}


@pytest.mark.parametrize("value", ["kind = 'win'", "kind = ''", "round_ended = 2", "round_ended = -1", "round_ended = 0"])
def test_a_word_that_the_table_refuses_is_found_without_its_checks(ledger, tmp_path, value):
    """The hash has the word as it is read, so two ways to write it would be two rows with one hash."""
    copy = Service(tmp_path, stores=False)
    copy.platform.copy_from(ledger.platform)
    column = value.partition(" ")[0]
    copy.platform.execute(*WITHOUT_CHECKS[engines.PLATFORM],
                          f"UPDATE ledger_transaction SET {value} WHERE transaction_id = "
                          + ("'win'" if value == "kind = 'win'" else "(SELECT max(transaction_id) FROM ledger_transaction"
                             f" WHERE {column} IS NOT NULL AND sequence IS NOT NULL)"), tampering=True)
    assert copy.run("wallet", "verify", status=1).errors
    copy.platform.remove()


@pytest.mark.only("postgresql")
@pytest.mark.parametrize("value", ["outcome = 'applied'", "outcome = 'lost'", "operation = 'BET'", "kind = 'win'", "late = true"])
def test_a_row_that_is_no_entry_is_checked_by_a_trigger(ledger, value):
    with pytest.raises(ValueError, match="a row of the ledger is malformed"):
        ledger.platform.execute(
            "CREATE TEMP TABLE one AS SELECT * FROM ledger_transaction WHERE sequence IS NULL AND operation = 'DEBIT'"
            " AND outcome <> 'transaction_rolled_back' LIMIT 1",
            f"UPDATE one SET number = number + 1000000, transaction_id = 'by-hand', {value}",
            "INSERT INTO ledger_transaction SELECT * FROM one")


# What no trigger refuses, and what verify says of it.
BY_HAND = {
    "an entry that does not follow": (
        "INSERT INTO ledger_transaction SELECT number + 1000000, owner_number, player_number, sequence + 100, amount_minor,"
        " movement_minor, balance_minor + 1, created_ms, late, 'by-hand', operation, outcome, reference, game_id, round_id, hash"
        " FROM ledger_transaction WHERE transaction_id = 'bet-3'", "sequence"),
    "another customer's player": (
        "INSERT INTO ledger_transaction SELECT number + 1000000, owner_number + 1, player_number, sequence + 1, amount_minor,"
        " movement_minor, balance_minor + movement_minor, created_ms, late, 'by-hand', operation, outcome, reference, game_id,"
        " round_id, hash FROM ledger_transaction WHERE transaction_id = 'in-b'", "sequence"),
    "an account that no entry says": (
        "UPDATE ledger_account SET sequence = sequence + 1, balance_minor = balance_minor + 5 WHERE player_number = 1",
        "the account has another last sequence"),
    "an account's head": (
        "UPDATE ledger_account SET sequence = sequence + 1, head = sha256(head) WHERE player_number = 1",
        "the account has another last sequence"),
    "an account without entries": (
        "INSERT INTO ledger_account SELECT max(number), 0, 1, decode(repeat('00', 32), 'hex') FROM player",
        "the account has another last sequence"),
}


@pytest.mark.only("postgresql")
@pytest.mark.parametrize("statement, told", BY_HAND.values(), ids=BY_HAND.keys())
def test_what_no_trigger_refuses_verify_finds(ledger, tmp_path, statement, told):
    copy = Service(tmp_path, stores=False)
    copy.platform.copy_from(ledger.platform)
    copy.platform.execute(statement)
    done = copy.run("wallet", "verify", status=1)
    assert "the ledger is broken" in done.errors and told in done.errors
    copy.platform.remove()


@pytest.mark.only("postgresql")
def test_a_decline_without_its_chain_is_refused(ledger, tmp_path):
    copy = Service(tmp_path, stores=False)
    copy.platform.copy_from(ledger.platform)
    with pytest.raises(ValueError, match="a decline must be chained"):
        copy.platform.execute(
            "INSERT INTO ledger_transaction SELECT number + 1000000, owner_number, player_number, sequence, amount_minor,"
            " movement_minor, balance_minor, created_ms, late, 'by-hand', operation, outcome, reference, game_id, round_id, hash"
            " FROM ledger_transaction WHERE transaction_id = 'much'")
    copy.platform.remove()


@pytest.mark.skipif(engines.PLATFORM != "postgresql", reason="PostgreSQL's")
def test_an_index_of_times_that_misses_a_row_is_found(tables):
    """The index is switched off while a row comes, of another day than its page holds."""
    columns = [name for name, _ in tables.columns("ledger_transaction")]
    given = {"number": "number + 7", "transaction_id": "'another'", "sequence": "sequence + 1000", "created_ms": "created_ms - 864000000"}
    execute = tables.copy.platform.execute
    execute("SELECT brin_summarize_new_values('ledger_entered')", tampering=True)
    execute("UPDATE pg_index SET indisready = false WHERE indexrelid = 'ledger_entered'::regclass", tampering=True)
    execute(f"INSERT INTO ledger_transaction ({', '.join(columns)}) SELECT {', '.join(given.get(name, name) for name in columns)}"
            " FROM ledger_transaction WHERE transaction_id = 'in-b'", tampering=True)
    execute("UPDATE pg_index SET indisready = true WHERE indexrelid = 'ledger_entered'::regclass", tampering=True)
    assert "ledger_entered is damaged" in tables.copy.run("wallet", "verify", status=1).errors
    execute("DELETE FROM ledger_transaction WHERE transaction_id = 'another'", tampering=True)


BY_HAND_OF_THE_SCHEMA = {
    "sqlite": {
        "a trigger": ("DROP TRIGGER {trigger}", "is not there"),
        "an index": ("DROP INDEX game_by_provider", "the index game_by_provider is not there"),
        "a trigger more": ("CREATE TRIGGER mine AFTER INSERT ON customer BEGIN SELECT 1; END", "the trigger mine is not croupier's"),
        "sums ahead": ("UPDATE ledger_summed SET number = 100000000", "its kept sums are ahead"),
    },
    "postgresql": {
        "a trigger": ("DROP TRIGGER ledger_rare_row_fits ON ledger_transaction", "the trigger ledger_rare_row_fits of ledger_transaction is not as"),
        "a trigger that is off": ("ALTER TABLE ledger_transaction DISABLE TRIGGER ledger_rare_row_fits", "the trigger ledger_rare_row_fits of"),
        "a check": ("ALTER TABLE ledger_account DROP CONSTRAINT ledger_account_check", "the constraint ledger_account_check of ledger_account"),
        "an index": ("DROP INDEX ledger_credit", "the index ledger_credit is not as"),
        "sums ahead": ("UPDATE ledger_summed SET number = 100000000", "its kept sums are ahead"),
    }}


def test_what_somebody_changed_of_the_schema_is_found(ledger, tmp_path):
    for number, (what, (statement, told)) in enumerate(BY_HAND_OF_THE_SCHEMA[engines.PLATFORM].items()):
        copy = Service(tmp_path / str(number), stores=False)
        copy.platform.copy_from(ledger.platform)
        copy.run("wallet", "verify")
        if "{trigger}" in statement:
            with sqlite3.connect(copy.platform.path) as database:
                statement = statement.format(trigger=database.execute("SELECT min(name) FROM sqlite_schema WHERE type = 'trigger'").fetchone()[0])
        copy.platform.execute(statement)
        assert told in copy.run("wallet", "verify", status=1).errors, what
        if what != "sums ahead":
            assert told in copy.run("migrate", "--backed-up", status=1).errors, what
            assert any(told in row["message"] for row in json.loads(copy.run("check", "--json", status=1).text)), what
        copy.platform.remove()
