"""The procedures of docs/postgresql.md for a database in PostgreSQL: back to a dump, and back to a moment, from a base backup
and archived WAL."""

import os
import re
import shlex
import subprocess

import pytest

from croupier import BINARY, PATIENCE, ROOT, Service, eventually
from servers import Postgres
from wallet_model import add_player, balance, credit, debit, send

pytestmark = [pytest.mark.only("postgresql"), pytest.mark.depends_on("platform")]


class Of:
    """A database that is there already, as a service's platform store."""

    def __init__(self, uri):
        self.uri = uri

    def make(self):
        pass

    def remove(self):
        pass


def block_with(text):
    """The one fenced block of the page that has this."""
    page = (ROOT / "docs" / "postgresql.md").read_text()
    [block] = [block for block in re.findall(r"^```(?:sh|sql)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL) if text in block]
    return block


class Shell:
    """Runs commands of the page: as whoever we are, on `server`, with `service`'s configuration."""

    def __init__(self, directory, server, service):
        (directory / "programs").mkdir()
        self.directory = directory
        for name, text in {"sudo": 'shift 2\nexec "$@"', "systemctl": f"echo $1 >>{shlex.quote(str(directory / 'asked'))}",
                           "croupier": f'exec {shlex.quote(str(BINARY))} "$@" -c {shlex.quote(str(service.configuration))}'}.items():
            program = directory / "programs" / name
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
        self.environment = {**service.environment, "PGHOST": str(server.directory), "PGPORT": str(server.port),
                            "PGUSER": "postgres",
                            "PATH": f"{directory / 'programs'}:{server.programs}:{os.environ['PATH']}"}

    def run(self, script):
        done = subprocess.run(["/bin/bash", "-euo", "pipefail", "-c", script.replace("/backup/", f"{self.directory}/")],
                              cwd=self.directory, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=self.environment, timeout=120 * PATIENCE)
        return done.returncode, done.stdout + done.stderr


def rights(server):
    """Of every role in every table and function of the store, and who owns them."""
    return server.sql("SELECT c.relname, c.relkind, r.rolname, c.relacl FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner"
                      " WHERE c.relnamespace = 'public'::regnamespace ORDER BY 1", "croupier") + server.sql(
        "SELECT p.oid::regprocedure::text, r.rolname, p.proacl FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner"
        " WHERE p.pronamespace = 'public'::regnamespace ORDER BY 1", "croupier")


def test_a_database_goes_back_to_a_dump(tmp_path):
    with Postgres() as server:
        server.sql('CREATE ROLE "croupier-owner" LOGIN')
        server.sql("CREATE ROLE croupier LOGIN")
        server.sql("""CREATE DATABASE croupier OWNER "croupier-owner" ENCODING 'UTF8' TEMPLATE template0""")
        service = Service(tmp_path / "service", platform=Of(server.uri_of("croupier", user="croupier-owner")))
        server.sql(block_with("-- the rights of the service"), "croupier")
        service.configure({"platform.store": server.uri_of("croupier", user="croupier")})
        shell = Shell(tmp_path, server, service)
        assert shell.run(block_with("CREATE EXTENSION amcheck"))[0] == 0
        customer = service.add_customer(options=["--casino"])
        player = add_player(service, customer)
        service.start()
        service.await_admission(customer.key)
        assert send(service, customer.key, credit(player, "before", 500)).status == 200
        assert shell.run(block_with("pg_dump -Fc croupier >/backup/croupier.dump")) == (0, "")
        had = rights(server)
        assert send(service, customer.key, debit(player, "after", 200)).status == 200
        # Somebody has forgotten to stop a croupier: nothing has happened.
        code, text = shell.run(block_with("pg_restore"))
        assert code != 0 and "is being accessed by other users" in text, text
        assert send(service, customer.key, balance(player)).json()["balance_minor"] == 300
        service.stop()
        code, text = shell.run(block_with("pg_restore"))
        assert code == 0 and "The ledger is sound" in text, text
        assert (tmp_path / "asked").read_text().split() == ["stop", "stop", "start"]
        assert rights(server) == had
        service.start()
        service.await_admission(customer.key)
        assert send(service, customer.key, balance(player)).json()["balance_minor"] == 500
        assert send(service, customer.key, credit(player, "before", 500)).json()["balance_minor"] == 500  # it is known
        assert send(service, customer.key, debit(player, "after", 150)).json()["balance_minor"] == 350  # it never was
        service.stop()
        assert service.ask("wallet", "verify")["sound"]
        with pytest.raises(Exception, match="permission denied"):
            server.sql("SET ROLE croupier; DELETE FROM ledger_transaction", "croupier")


def test_a_database_goes_back_to_a_moment(tmp_path):
    with Postgres(durable=True, start=False) as server:
        archive = server.directory / "archive"
        archive.mkdir()
        archive.chmod(0o777)  # the server is another user
        server.configure({"archive_mode": "on", "archive_command": f"test ! -f {archive}/%f && cp %p {archive}/%f"})
        server.start()
        name = server.create_database()
        service = Service(tmp_path / "before", platform=Of(server.uri_of(name)))
        service.run("customer", "add", "Before")
        with Postgres(durable=True, standby_of=server, start=False) as other:
            service.run("customer", "add", "Between")
            moment = server.sql("SELECT clock_timestamp()", name).strip()
            service.run("customer", "add", "After")
            last = server.sql("SELECT pg_walfile_name(pg_switch_wal())", name).strip()
            eventually(lambda: (archive / last).exists(), 30)
            server.stop()
            (other.data / "standby.signal").unlink()
            (other.data / "postgresql.auto.conf").write_text("")
            (other.data / "recovery.signal").touch()
            (other.data / "recovery.signal").chmod(0o666)
            other.configure({"restore_command": f"cp {archive}/%f %p", "recovery_target_time": moment,
                             "recovery_target_action": "promote"})
            other.start()
            eventually(lambda: other.sql("SELECT pg_is_in_recovery()").strip() == "f", 30)
            restored = Service(tmp_path / "after", platform=Of(other.uri_of(name)), stores=False)
            assert [customer["name"] for customer in restored.ask("customer", "list")] == ["Before", "Between"]
            assert restored.ask("wallet", "verify")["sound"]
