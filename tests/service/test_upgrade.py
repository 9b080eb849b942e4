"""A new version beside an old schema: nothing is upgraded by starting it, nor without a way back; and the unit, which
starts the service whatever its stores do."""

import os
import random
import re
import shutil
import sqlite3
import stat
import subprocess
from pathlib import Path

import pytest

import engines
from croupier import BINARY, PATIENCE, ROOT, Service, at_a_terminal, eventually
from servers import Postgres
from wallet_model import send

pytestmark = pytest.mark.depends_on("platform")

# What 0.1.0 has left: four players of two customers with 11 entries and 4 declines, as SQL.
RELEASED = {engine: Path(__file__).with_name(f"release-0.1.0.{engine}.sql").read_text() for engine in ("sqlite", "postgresql")}
OLDER = {"sqlite": 7, "postgresql": 5}
NEWEST = {engine: max(int(path.name[:4]) for path in (ROOT / "sql" / engine).glob("*.sql")) for engine in OLDER}
CUSTOMER = "cus_K8ojPcWqeMTLhcDu"  # of the SQLite file


class OlderFile:
    """A SQLite store of 0.1.0."""

    schema = OLDER["sqlite"]

    def __init__(self, directory):
        self.service = Service(directory, stores=False)
        self.path = self.service.platform.path
        with sqlite3.connect(self.path) as database:
            database.executescript(RELEASED["sqlite"])
        database.close()

    def version(self):
        return version_of(self.path)

    def backups(self):
        return sorted(path for path in self.path.parent.iterdir() if path.name.endswith(".backup"))


def version_of(path):
    database = sqlite3.connect(path)
    number, = database.execute("SELECT max(number) FROM schema_migration").fetchone()
    database.close()
    return number


@pytest.fixture
def older(tmp_path, request):
    if engines.CHOSEN != {"embedded", "sqlite"}:
        pytest.skip("makes its stores itself, whatever the engines: once is enough")
    made = OlderFile(tmp_path)
    yield made
    made.service.stop()


def test_starting_a_new_version_upgrades_nothing_and_names_the_command(older):
    service = older.service
    said = f"its schema {older.schema} is older than this program's {NEWEST['sqlite']}; run: croupier migrate"
    assert said in service.run("serve", status=1).errors
    assert said in service.run("check", status=1).text
    assert said in service.run("platform", "copy", f"sqlite:{older.path}", f"sqlite:{service.directory}/new.db", status=1).errors
    assert older.version() == older.schema and older.backups() == []
    service.run("migrate")
    service.start(healthy=False)
    eventually(lambda: service.get("/api/v1/sports").error == (403, "ip_not_allowed"))


def test_a_copy_upgrades_no_store_that_is_there(older, tmp_path):
    (tmp_path / "other").mkdir()
    other = Service(tmp_path / "other")
    assert "run: croupier migrate" in other.run("platform", "copy", f"sqlite:{other.platform.path}", f"sqlite:{older.path}", status=1).errors
    assert older.version() == older.schema


def test_a_file_is_copied_beside_itself_before_it_is_upgraded(older):
    told = older.service.ask("migrate")
    backup, = older.backups()
    assert told["before"] == older.schema and told["after"] == NEWEST["sqlite"]
    assert told["backup"] == str(backup)
    assert backup.name.startswith(f"{older.path.name}.schema-{older.schema}.")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert version_of(backup) == older.schema and older.version() == NEWEST["sqlite"]
    # It leads back.
    database = sqlite3.connect(backup)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert database.execute("SELECT id FROM customer ORDER BY number").fetchall() == [(CUSTOMER,), ("cus_NeljcW46RhJeQVOY",)]
    database.close()
    shutil.copy(backup, older.path)
    assert older.service.ask("migrate")["before"] == older.schema
    # Where there is nothing to do there is nothing to copy.
    count = len(older.backups())
    assert older.service.ask("migrate")["backup"] is None and len(older.backups()) == count


@pytest.mark.parametrize("stopped", ["cleanly", "by a crash"])
def test_the_way_back_is_as_the_manual_says(older, stopped):
    older.service.run("migrate")
    older.service.run("customer", "list")
    older.service.run("feed", "catalog", "cricket", "-", input="[]")
    odds, newer = older.service.odds.path, older.path.parent / "newer"
    backup, = older.backups()
    [script] = re.findall(r"^```text\n(systemctl stop croupier\ncd .*?)^```$", (ROOT / "docs" / "operations.md").read_text(), re.M | re.S)
    for pattern, here in (("^systemctl.*", ""), ("/var/lib/croupier", str(older.path.parent)), ("-o croupier -g croupier ", ""),
                          (r"(?<=newer/)\S+\.backup", backup.name)):
        script = re.sub(pattern, here, script, flags=re.M)
    for left in ("-wal", "-last", "-ids") if stopped == "by a crash" else ():
        older.path.with_name(older.path.name + left).write_bytes(b"of the newer one")
    subprocess.run(["sh", "-euc", script], check=True)
    assert older.version() == older.schema and version_of(newer / older.path.name) == NEWEST["sqlite"]
    assert [path.name for path in older.path.parent.glob(f"{older.path.name}?*")] == []
    assert not odds.exists() and (newer / odds.name / "values").is_dir()
    assert older.service.ask("migrate")["before"] == older.schema


def test_the_copy_can_be_declined(older):
    assert older.service.ask("migrate", "--no-backup")["backup"] is None
    assert older.version() == NEWEST["sqlite"] and older.backups() == []


@pytest.mark.skipif(os.getuid() == 0 and not shutil.which("setpriv"), reason="root may write everywhere")
def test_without_its_copy_nothing_is_upgraded(older):
    """A limit on the size of files stands for a disk that is full."""
    size = older.path.stat().st_size
    done = subprocess.run(["sh", "-c", f"ulimit -f {size // 512 // 2}; exec \"$@\"", "sh", str(BINARY), "migrate", "-c",
                           str(older.service.configuration)], capture_output=True, text=True, timeout=60 * PATIENCE)
    assert done.returncode == 1, done
    assert "nothing was changed" in done.stderr and "--backed-up" in done.stderr
    assert older.version() == older.schema and older.backups() == []


# ---- PostgreSQL -------------------------------------------------------------------------------------


class OlderDatabase(engines.PostgresPlatform):
    schema = OLDER["postgresql"]

    def __init__(self, directory):
        self.own = True
        self.server = Postgres(durable=True)
        self.database = self.server.next_database()
        self.uri = self.server.uri_of(self.database)
        self.where = str(self.server.directory)
        self.made = False
        self.make()
        self.server.sql(RELEASED["postgresql"], self.database)

    def version(self):
        return int(self.server.sql("SELECT max(number) FROM schema_migration", self.database))


@pytest.fixture
def older_database(make_service, tmp_path):
    if engines.CHOSEN != {"embedded", "postgresql"}:
        pytest.skip("with PostgreSQL, once")
    return make_service(platform=OlderDatabase(tmp_path), stores=False)


def test_a_database_is_upgraded_when_its_operator_has_a_backup(older_database):
    service, platform = older_database, older_database.platform
    refused = service.run("migrate", status=1).errors
    assert "only a backup leads back" in refused and "croupier migrate --backed-up" in refused
    assert platform.version() == platform.schema
    code, said = at_a_terminal("no", "migrate", "-c", service.configuration, env=service.environment)
    assert code == 1 and "Is there one (pg_dump)?" in said and platform.version() == platform.schema
    code, said = at_a_terminal("yes", "migrate", "-c", service.configuration, env=service.environment)
    assert code == 0, said
    assert platform.version() == NEWEST["postgresql"]
    assert service.ask("migrate") == {"before": NEWEST["postgresql"], "after": NEWEST["postgresql"], "backup": None,
                                      "secrets_key_made": False}


def test_the_flag_says_that_there_is_a_backup(older_database):
    told = older_database.ask("migrate", "--backed-up")
    assert (told["before"], told["after"]) == (older_database.platform.schema, NEWEST["postgresql"])


# ---- the ledger of 0.1.0 ------------------------------------------------------------------------------------


def assert_goes_on(service, fresh):
    """Its schema is a new store's, and its ledger says what it said."""
    assert service.ask("wallet", "verify") == {"sound": True, "entries": 11, "players": 4}
    casino, other = (customer["id"] for customer in service.ask("customer", "list"))
    told = {identity: service.ask("wallet", "transaction", casino, identity)
            for identity in ("in", "bet", "win", "much", "undo", "void", "late", "bet-2", "win-2", "no", "b1", "c1", "c2")}
    assert {identity: one["outcome"] for identity, one in told.items() if one["outcome"] != "applied"} == {
        "much": "insufficient_funds", "void": "voided", "late": "reference_not_found", "no": "already_settled",
        "c2": "insufficient_funds"}
    assert told["win"]["rolled_back"] and (told["bet"]["standing_credits"], told["bet-2"]["standing_credits"]) == (0, 1)
    assert service.ask("wallet", "transaction", casino, "never")["rolled_back"]
    statement = service.ask("wallet", "statement", told["in"]["player_id"])
    assert statement["closing_balance_minor"] == 99656 and len(statement["entries"]) == 7
    assert service.ask("wallet", "transaction", other, "bet")["amount_minor"] == 42
    assert len(service.platform.execute("SELECT hash FROM ledger_decline")) == 4
    key = service.ask("key", "issue", casino)["key"]
    service.start(healthy=False)
    again = {"operation": "DEBIT", "player_id": told["in"]["player_id"], "transaction_id": "much", "amount_minor": 200000,
             "currency": "EUR"}
    eventually(lambda: send(service, key, again).error == (422, "insufficient_funds"))
    assert send(service, key, {**again, "transaction_id": "new", "amount_minor": 99656}).json()["balance_minor"] == 0
    service.stop()
    assert service.ask("wallet", "verify")["entries"] == 12
    assert described(service.platform) == described(fresh.platform)


def described(platform):
    if engines.CHOSEN >= {"sqlite"}:
        return sorted(platform.execute("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'"))
    dump = subprocess.run([platform.server.programs / "pg_dump", "--schema-only", "--no-owner", platform.uri], capture_output=True, check=True)
    return [line for line in dump.stdout.splitlines() if not line.startswith(b"\\")]


def test_a_file_of_the_last_release_goes_on(older, tmp_path):
    (tmp_path / "fresh").mkdir()
    older.service.run("migrate")
    assert_goes_on(older.service, Service(tmp_path / "fresh"))


def test_a_database_of_the_last_release_goes_on(older_database, make_service):
    older_database.run("migrate", "--backed-up")
    assert_goes_on(older_database, make_service(own_stores=True))


def test_a_migration_that_is_killed_is_done_again(older):
    chance = random.Random(7)
    for _ in range(6):
        process = subprocess.Popen([BINARY, "-c", older.service.configuration, "migrate", "--no-backup"],
                                   env=older.service.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(chance.random() * 0.1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert older.schema <= older.version() <= NEWEST["sqlite"]  # or between two steps
    older.service.run("migrate")
    assert older.service.ask("wallet", "verify")["entries"] == 11


def test_what_does_not_fit_together_is_left_as_it_is(older):
    older.service.platform.execute("DELETE FROM player", tampering=True)
    for _ in range(2):
        told = older.service.run("migrate", status=1).errors
        assert "what is stored does not fit together, and nothing was changed" in told and "wallet verify" in told
        assert older.version() == older.schema


def test_a_store_of_a_version_between_releases_is_refused(older):
    older.service.run("migrate", "--no-backup")
    older.service.platform.execute(f"UPDATE schema_migration SET checksum = 'x' WHERE number = {NEWEST['sqlite']}",
                                   *(f"INSERT INTO schema_migration VALUES ({number}, 'more', 'x', 1)" for number in range(NEWEST["sqlite"] + 1, 21)))
    for command in ("serve", "migrate"):
        assert "its schema 20 is of no release" in older.service.run(command, status=1).errors


# ---- the unit ---------------------------------------------------------------------------------------


def unit_lines():
    return (ROOT / "dist" / "croupier.service").read_text().splitlines()


def test_the_unit_starts_the_service_and_nothing_before_it_and_never_gives_up():
    lines = unit_lines()
    assert not [line for line in lines if line.startswith(("ExecStartPre", "ExecCondition"))]
    assert "StartLimitIntervalSec=0" in lines[:lines.index("[Service]")]
    assert "Restart=on-failure" in lines
    assert [line for line in lines if line.startswith("RestartSec=")] == ["RestartSec=2"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    unit = tmp_path / "croupier.service"
    unit.write_text("\n".join(unit_lines()).replace("@bindir@/croupier", str(BINARY)) + "\n")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True,
                          timeout=60 * PATIENCE)
    about = [line for line in done.stderr.splitlines() if "croupier.service" in line]
    assert about == [], done.stderr
