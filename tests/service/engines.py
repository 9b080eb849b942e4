"""The stores that the services of this run use: a pair of engines, chosen by TEST_ENGINES.

    TEST_ENGINES=embedded,sqlite        the default: files in the service's own directory
    TEST_ENGINES=redis,sqlite           TEST_ENGINES=embedded,postgresql        TEST_ENGINES=redis,postgresql

Every service has stores of its own: in Redis a database number, in PostgreSQL a database, of servers
that all services of a test process share. With `own` they are servers of the service's own, which a test
can take away and bring back (files can be at any time). All have the same face: `uri`, `where` (how
croupier's errors name it), `take_away`, `bring_back`, `remove`; besides, the odds store `settle`, the
platform store `make` (a place for `croupier migrate`: an empty database), `keep` (what it made, for `copy_kept` of
further services of the process), `execute`, `copy_from`, `contents` and `blob`. SQL in tests keeps to what both dialects understand.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from servers import Postgres, Redis, ServerError  # noqa: E402

ODDS, PLATFORM = (os.environ.get("TEST_ENGINES") or "embedded,sqlite").split(",")
assert ODDS in ("embedded", "redis") and PLATFORM in ("sqlite", "postgresql"), "TEST_ENGINES=embedded|redis,sqlite|postgresql"
CHOSEN = {ODDS, PLATFORM}
# All that this suite is run with one after the other; a test may be the same with several (conftest.py, depends_on).
PAIRS = [tuple(pair.split(",")) for pair in (os.environ.get("TEST_PAIRS") or f"{ODDS},{PLATFORM}").split()]
assert (ODDS, PLATFORM) in PAIRS, "TEST_PAIRS"
# With which sanitized builds have been through it before, as in .ci/run.
CHECKED = [tuple(pair.split(",")) for pair in os.environ.get("TEST_CHECKED", "").split()]

_shared = {}


def shared_server(kind):
    """The server of this test process; it ends with it."""
    if kind not in _shared:
        _shared[kind] = kind(shared=True) if kind is Postgres else kind()
    return _shared[kind]


class Files:
    def take_away(self):
        self.path.rename(self.path.with_suffix(".away"))

    def bring_back(self):
        self.path.with_suffix(".away").rename(self.path)

    def remove(self):
        pass


class OfServer:
    def take_away(self):
        assert self.own, "others use this server too: make the service with own_stores=True"
        self.server.stop()

    def bring_back(self):
        self.server.start()


class EmbeddedOdds(Files):
    def __init__(self, directory, own):
        self.path = directory / "odds"
        self.uri = f"embedded:{self.path}"
        self.where = str(self.path)

    def settle(self, metrics, prefix, most):
        """What is published is seen at once."""


class RedisOdds(OfServer):
    SEEN = "croupier_odds_invalidations_total"

    def __init__(self, directory, own):
        self.own = own
        self.server = Redis(persistent=True) if own else shared_server(Redis)
        self.database = 0 if own else self.server.next_database()
        self.uri = self.server.tcp_uri(self.database)
        self.where = f"127.0.0.1:{self.server.port}"

    def call(self, *words):
        with self.server.connect() as connection:
            connection.call("SELECT", self.database)
            return connection.call(*words)

    def settle(self, metrics, prefix, most):
        """Waits until a server has heard of every change so far, at most so many; metrics() are its own. Word of a change may
        travel for some milliseconds. It arrives in the order of the changes, so that when the server has
        counted more than were under way before these, some of these have come, and all before them."""
        before = metrics()[self.SEEN]
        self.call("MSET", *(word for n in range(most + 1) for word in (f"{prefix}odds:marker:{n}", "")))
        deadline = time.monotonic() + 20
        while metrics()[self.SEEN] <= before + most:
            assert time.monotonic() < deadline, "the server never heard of what was published"
            time.sleep(0.005)

    def remove(self):
        if self.own:
            self.server.remove()
        else:
            self.call("FLUSHDB")


class SqlitePlatform(Files):
    own = False  # no server that others have not

    def __init__(self, directory, own):
        self.path = directory / "platform.db"
        self.uri = f"sqlite:{self.path}"
        self.where = str(self.path)

    def make(self):
        pass

    def keep(self, kept):
        shutil.copy(self.path, kept)

    def copy_kept(self, kept):
        shutil.copy(kept / self.path.name, self.path)

    def execute(self, *statements, tampering=False):
        """Runs statements in one transaction and returns the rows of the last; values are text (None: null).
        tampering: without triggers and foreign keys, as whoever tampers would. ValueError: refused."""
        database = sqlite3.connect(self.path, timeout=10, isolation_level=None)
        try:
            if tampering:
                database.execute("PRAGMA foreign_keys = OFF")
            database.execute("BEGIN IMMEDIATE")
            triggers = database.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall() if tampering else []
            for name, _ in triggers:
                database.execute(f"DROP TRIGGER {name}")
            for statement in statements:
                rows = database.execute(statement).fetchall()
            for _, sql in triggers:  # as whoever tampers would, so that only the rows tell of it
                database.execute(sql)
            database.execute("COMMIT")
            return [tuple(None if value is None else str(value) for value in row) for row in rows]
        except sqlite3.DatabaseError as failure:
            raise ValueError(str(failure)) from failure
        finally:
            if database.in_transaction:
                database.execute("ROLLBACK")
            database.close()

    def copy_from(self, other):
        source, target = sqlite3.connect(other.path), sqlite3.connect(self.path)
        source.backup(target)
        source.close()
        target.close()

    def contents(self):
        """All that is kept, as bytes."""
        return b"".join(path.read_bytes() for path in self.path.parent.glob(f"{self.path.name}*"))

    @staticmethod
    def blob(size):
        return f"zeroblob({size})"


class PostgresPlatform(OfServer):
    def __init__(self, directory, own):
        self.own = own
        self.server = Postgres() if own else shared_server(Postgres)
        self.database = self.server.next_database()
        self.uri = self.server.uri_of(self.database)
        self.where = str(self.server.directory)
        self.made = False

    def make(self):
        if not self.made:
            self.server.create_database(self.database)
            self.made = True

    def keep(self, kept):
        self.server.create_database(f"kept {kept.name}", self.database)

    def copy_kept(self, kept):
        self.server.create_database(self.database, f"kept {kept.name}")
        self.made = True

    def remove(self):
        if self.own:
            self.server.remove()
        else:
            self.server.drop_database(self.database)

    def execute(self, *statements, tampering=False):
        prelude = ["SET session_replication_role = replica"] if tampering else []
        text = ";\n".join([*prelude, *statements])
        try:
            output = self.server.sql(text, self.database)
        except ServerError as failure:
            raise ValueError(str(failure)) from failure
        return self.rows_of(output.splitlines())

    @staticmethod
    def rows_of(lines):
        """Of what psql prints with -XAtq."""
        return [tuple(value or None for value in line.split("|")) for line in lines]

    def session(self, **options):
        return self.server.session(self.uri, **options)

    def contents(self):
        return subprocess.run([self.server.programs / "pg_dump", self.uri], capture_output=True, check=True).stdout

    def copy_from(self, other):
        """As a backup and its restoration."""
        self.make()
        subprocess.run([self.server.programs / "psql", "-Xq", "-v", "ON_ERROR_STOP=1", self.uri], input=other.contents(),
                       stdout=subprocess.DEVNULL, check=True)

    @staticmethod
    def blob(size):
        return f"decode(repeat('00', {size}), 'hex')"


def odds_store(directory, own=False):
    return {"embedded": EmbeddedOdds, "redis": RedisOdds}[ODDS](Path(directory), own)


def platform_store(directory, own=False):
    return {"sqlite": SqlitePlatform, "postgresql": PostgresPlatform}[PLATFORM](Path(directory), own)
