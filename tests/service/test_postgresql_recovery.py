"""The procedure of docs/operations.md for a database in PostgreSQL: back to a moment, from a base backup and archived WAL."""

import pytest

from croupier import Service, eventually
from servers import Postgres

pytestmark = [pytest.mark.only("postgresql"), pytest.mark.depends_on("platform")]


class Of:
    """A database that is there already, as a service's platform store."""

    def __init__(self, uri):
        self.uri = uri

    def make(self):
        pass

    def remove(self):
        pass


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
