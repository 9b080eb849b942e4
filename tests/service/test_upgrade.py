"""A new version beside an old schema: nothing is upgraded by starting it, nor without a way back; and the unit, which
starts the service whatever its stores do."""

import hashlib
import os
import pty
import shutil
import sqlite3
import stat
import subprocess

import pytest

import engines
from croupier import BINARY, PATIENCE, ROOT, Service, eventually
from servers import Postgres

pytestmark = pytest.mark.depends_on("platform")

CUSTOMER = "INSERT INTO customer VALUES (1, 'cus_One', 'One', {true}, {true}, 'all', NULL, NULL, '127.0.0.0/8', 1, 1)"


OLDER = {"sqlite": 5, "postgresql": 4}  # schemas that the programs of these databases can make by themselves


def steps(engine):
    return sorted((ROOT / "sql" / engine).glob("*.sql"))


NEWEST = {engine: len(steps(engine)) for engine in OLDER}


def migrations(engine):
    """What makes the older schema, as (number, name, SQL, checksum)."""
    return [(number, path.stem[5:], path.read_text(), hashlib.sha256(path.read_bytes()).hexdigest())
            for number, path in enumerate(steps(engine)[:OLDER[engine]], 1)]


class OlderFile:
    """A SQLite store of an older schema."""

    def __init__(self, directory):
        self.service = Service(directory, stores=False)
        self.path = self.service.platform.path
        with sqlite3.connect(self.path) as database:
            database.execute("PRAGMA application_id = 1668445552")
            database.execute("CREATE TABLE schema_migration (number INTEGER PRIMARY KEY CHECK (number > 0),"
                             " name TEXT NOT NULL, checksum TEXT NOT NULL, applied_ms INTEGER NOT NULL) STRICT")
            for number, name, sql, checksum in migrations("sqlite"):
                database.executescript(sql)
                database.execute("INSERT INTO schema_migration VALUES (?, ?, ?, 1)", (number, name, checksum))
            database.execute(CUSTOMER.format(true=1))
        database.close()
        self.schema = number

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
    assert database.execute("SELECT id FROM customer").fetchall() == [("cus_One",)]
    database.close()
    shutil.copy(backup, older.path)
    assert older.service.ask("migrate")["before"] == older.schema
    # Where there is nothing to do there is nothing to copy.
    count = len(older.backups())
    assert older.service.ask("migrate")["backup"] is None and len(older.backups()) == count


def test_the_copy_can_be_declined(older):
    assert older.service.ask("migrate", "--no-backup")["backup"] is None
    assert older.version() == NEWEST["sqlite"] and older.backups() == []


@pytest.mark.skipif(os.getuid() == 0 and not shutil.which("setpriv"), reason="root may write everywhere")
def test_without_its_copy_nothing_is_upgraded(older):
    """A limit on the size of files stands for a disk that is full."""
    size = older.path.stat().st_size
    done = subprocess.run(["sh", "-c", f"ulimit -f {size // 512 // 2}; trap '' XFSZ; exec \"$@\"", "sh", str(BINARY), "migrate", "-c",
                           str(older.service.configuration)], capture_output=True, text=True, timeout=60 * PATIENCE)
    assert done.returncode == 1, done
    assert "nothing was changed" in done.stderr and "--backed-up" in done.stderr
    assert older.version() == older.schema and older.backups() == []


# ---- PostgreSQL -------------------------------------------------------------------------------------


class OlderDatabase(engines.PostgresPlatform):
    def __init__(self, directory):
        self.own = True
        self.server = Postgres(durable=True)
        self.database = self.server.next_database()
        self.uri = self.server.uri_of(self.database)
        self.where = str(self.server.directory)
        self.made = False
        self.make()
        self.server.sql("CREATE TABLE schema_migration (number integer PRIMARY KEY CHECK (number > 0), name text NOT NULL,"
                        " checksum text NOT NULL, applied_ms bigint NOT NULL)", self.database)
        for number, name, sql, checksum in migrations("postgresql"):
            self.server.sql(sql, self.database)
            self.server.sql(f"INSERT INTO schema_migration VALUES ({number}, '{name}', '{checksum}', 1)", self.database)
        self.schema = number

    def version(self):
        return int(self.server.sql("SELECT max(number) FROM schema_migration", self.database))


@pytest.fixture
def older_database(make_service, tmp_path):
    if engines.CHOSEN != {"embedded", "postgresql"}:
        pytest.skip("with PostgreSQL, once")
    return make_service(platform=OlderDatabase(tmp_path), stores=False)


def migrate_at_a_terminal(service, answer):
    here, there = pty.openpty()
    process = subprocess.Popen([str(BINARY), "migrate", "-c", str(service.configuration)], stdin=there, stdout=there,
                               stderr=there, env=service.environment)
    os.close(there)
    os.write(here, answer)
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


def test_a_database_is_upgraded_when_its_operator_has_a_backup(older_database):
    service, platform = older_database, older_database.platform
    refused = service.run("migrate", status=1).errors
    assert "only a backup leads back" in refused and "croupier migrate --backed-up" in refused
    assert platform.version() == platform.schema
    code, said = migrate_at_a_terminal(service, b"no\n")
    assert code == 1 and "Is there one (pg_dump)?" in said and platform.version() == platform.schema
    code, said = migrate_at_a_terminal(service, b"yes\n")
    assert code == 0, said
    assert platform.version() == NEWEST["postgresql"]
    assert service.ask("migrate") == {"before": NEWEST["postgresql"], "after": NEWEST["postgresql"], "backup": None,
                                      "secrets_key_made": False}


def test_the_flag_says_that_there_is_a_backup(older_database):
    told = older_database.ask("migrate", "--backed-up")
    assert (told["before"], told["after"]) == (older_database.platform.schema, NEWEST["postgresql"])


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
