"""A platform store in PostgreSQL, as an operator meets it: passwords, rights, and servers that are frozen,
stopped, cut off or replaced. On servers of the tests' own, whatever TEST_ENGINES says; that everything else works
on PostgreSQL as well, the rest of the suite shows with TEST_ENGINES=embedded,postgresql."""

import json
import re
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

import engines
from servers import Stopwatch
from croupier import BINARY, PATIENCE, ROOT, Clock, eventually
from servers import PgBouncer, Postgres
from test_console import sign_in
from wallet_model import add_games, add_player, balance, credit, send

pytestmark = pytest.mark.depends_on()

PASSWORD = "p@ss/w:rd?50%"
ESCAPED = "p%40ss%2Fw%3Ard%3F50%25"
CONNECTIONS_MAX = 8  # docs/postgresql.md: one a thread that uses the store


class Guarded(engines.PostgresPlatform):
    """A server of its own that asks for a password, on TCP."""

    def __init__(self, directory, **options):
        self.own = True
        self.server = Postgres(tcp=True, password=PASSWORD, **options)
        self.database = self.server.next_database()
        self.where = f"127.0.0.1:{self.server.port}"
        self.uri = f"postgresql://postgres:{ESCAPED}@{self.where}/{self.database}"
        self.made = False


@pytest.fixture
def guarded(make_service, tmp_path):
    return make_service(platform=Guarded(tmp_path))


def admitted(service, key):
    """The status of a request that admission must judge."""
    return service.attempt("GET", "/api/v1/sports", key).status


def post(service, path, key, **document):
    return service.request("POST", path, key, [("Content-Type", "application/json")], json.dumps(document).encode())


# One that ignores options finds most of them where the role has them, and is still no session.
POOLERS = {
    "transactions": {"pool_mode": "transaction"},
    "sessions": {"pool_mode": "session"},
    "without options": {"pool_mode": "transaction", "ignore_startup_parameters": "options"},
    "sessions without options": {"pool_mode": "session", "ignore_startup_parameters": "options"},
}


@pytest.mark.parametrize("pooler", POOLERS)
def test_a_pooler_is_refused(make_service, tmp_path, pooler):
    platform = engines.PostgresPlatform(tmp_path, own=True)
    service = make_service(platform=platform)
    service.start()
    service.stop()
    platform.server.sql("ALTER ROLE postgres SET statement_timeout = '1s'")
    with PgBouncer(platform.server, **POOLERS[pooler]) as bouncer:
        service.configure({"platform.store": f"postgresql://postgres@127.0.0.1:{bouncer.port}/{platform.database}"})
        for command in (["serve"], ["check"], ["migrate"], ["customer", "list"], ["wallet", "verify"], ["serve"]):
            done = service.run(*command, status=1)
            assert "a pooler such as PgBouncer answers there" in done.text + done.errors, command
    service.configure({"platform.store": platform.uri})
    service.start()


def sessions(service):
    return int(service.platform.server.sql(
        f"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'croupier' AND datname = '{service.platform.database}'"))


def test_a_password_is_shown_nowhere(guarded):
    told = []

    def run(*arguments, status):
        done = guarded.run(*arguments, status=status)
        told.append(done.text + done.errors)
        return told[-1]

    assert f"postgresql://postgres:***@{guarded.platform.where}/" in run("check", status=0)
    run("customer", "list", status=0)
    guarded.start()
    guarded.stop()
    told.append(guarded.log_text())
    guarded.configure({"platform.store": guarded.platform.uri.replace("%2F", "%2E")})
    assert "password authentication failed" in run("check", status=1)
    guarded.configure({"platform.store": guarded.platform.uri.replace("%2F", "/")})
    assert "%2F" in run("check", status=1)  # says how to write it
    secret = guarded.directory / "password"
    secret.write_text(PASSWORD + "\n")
    secret.chmod(0o400)
    without = guarded.platform.uri.replace(":" + ESCAPED, "")
    guarded.configure({"platform.store": without})
    assert "password" in run("check", status=1)
    guarded.configure({"platform.store": without, "platform.password_file": secret})
    assert f"postgresql://postgres:***@{guarded.platform.where}/" in run("check", status=0)
    run("customer", "list", status=0)
    guarded.configure({"platform.password_file": None, "platform.store": guarded.platform.uri})
    guarded.platform.take_away()
    assert "refused" in run("check", status=1)
    assert "cannot be reached" in run("customer", "list", status=1)
    for text in told:
        assert PASSWORD not in text and ESCAPED not in text and "w%3Ard" not in text and "w:rd" not in text


def test_check_gives_a_remedy_of_the_cause(guarded):
    guarded.platform.make()

    def checked():
        told = json.loads(guarded.run("check", "--json", status=1).text)
        store = next(check for check in told if check["check"] == "platform store")
        return store["message"], store["remedy"].removesuffix("; platform.store names it")

    symptoms = "do as the message or \"Symptoms\" in docs/postgresql.md says"
    server, database = guarded.platform.server, guarded.platform.database
    server.sql(f"CREATE ROLE croupier LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 0; GRANT ALL ON SCHEMA public TO croupier;"
               " GRANT ALL ON ALL TABLES IN SCHEMA public TO croupier", database)
    guarded.configure({"platform.store": guarded.platform.uri.replace("//postgres:", "//croupier:")})
    message, remedy = checked()
    assert "too many connections for role" in message and remedy == symptoms
    guarded.configure({"platform.store": guarded.platform.uri.replace("%2F", "%2E")})
    message, remedy = checked()
    assert "password authentication failed" in message and remedy == symptoms
    guarded.configure({"platform.store": guarded.platform.uri})
    guarded.platform.execute("DELETE FROM schema_migration WHERE number = 7", tampering=True)
    message, remedy = checked()
    assert "run: croupier migrate" in message and remedy == symptoms  # which is for the owner of the tables
    guarded.platform.take_away()
    message, remedy = checked()
    assert "Connection refused" in message and remedy == "see that it runs and listens there"


def test_a_frozen_server_stops_no_one_for_long(guarded):
    customer = guarded.add_customer()
    guarded.configure({"platform.timeout_ms": 500})
    guarded.start()
    guarded.await_admission(customer.key)
    guarded.platform.server.freeze()
    try:
        assert "did not answer within 500 ms" in guarded.run("customer", "list", status=1).errors
        eventually(lambda: admitted(guarded, customer.key) == 503, 4)
        eventually(lambda: guarded.get("/api/v1/health").status == 503)
    finally:
        guarded.platform.server.thaw()
    eventually(lambda: admitted(guarded, customer.key) == 200, 5)
    eventually(lambda: guarded.get("/api/v1/health").status == 200, 5)


@pytest.fixture
def launching(guarded):
    """A casino whose store may take two seconds for a call, and which is asked to launch for 30 players at once when
    it is frozen; the connections."""
    guarded.configure({"platform.timeout_ms": 2000})
    customer = guarded.add_customer(options=["--casino"])
    guarded.run("provider", "add", "acme", "--name", "Acme", "--launch-url", "https://acme.example/", "--secret", "-",
                input="s" * 32)
    guarded.run("game", "import", "-", input=json.dumps([{"id": "book", "name": "Book", "provider": "acme",
                                                         "category": "slots", "currencies": ["EUR"]}]))
    guarded.start()

    def document(player):
        return {"mode": "real", "player_reference": f"player-{player}", "currency": "EUR"}

    path = "/api/v1/casino/games/book/launch"
    eventually(lambda: post(guarded, path, customer.key, **document("first")).status == 200)
    connections = [guarded.connect() for _ in range(30)]
    guarded.platform.server.freeze()
    for player, connection in enumerate(connections):
        body = json.dumps(document(player))
        connection.send(f"POST {path} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {customer.key}\r\n"
                        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
    eventually(lambda: guarded.metrics()["croupier_launch_queue_depth"] >= 29)
    yield connections
    guarded.platform.server.thaw()
    for connection in connections:
        connection.close()


def test_launches_do_not_wait_for_a_frozen_server_one_after_the_other(guarded, launching):
    watch = Stopwatch()
    assert {connection.receive().error for connection in launching} == {(503, "ledger_unavailable")}
    assert watch.seconds() < 15 * PATIENCE  # two seconds, and what was under way then; not sixty


@pytest.mark.long(10)
def test_a_server_ends_without_looking_for_players_that_no_one_waits_for(guarded, launching):
    for connection in launching:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    eventually(lambda: guarded.metrics()["croupier_connections"] == 0)
    guarded.signal(signal.SIGTERM)
    assert guarded.wait() == 0
    guarded.platform.server.thaw()
    [(players,)] = guarded.platform.execute("SELECT count(*) FROM player")
    assert int(players) <= 2, "the first, and the one that was under way"


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_server_that_comes_back_is_found(guarded, how):
    customer = guarded.add_customer()
    guarded.start()
    guarded.await_admission(customer.key)
    getattr(guarded.platform.server, how)()
    eventually(lambda: admitted(guarded, customer.key) == 503, 4)
    eventually(lambda: guarded.get("/api/v1/health").status == 503)
    guarded.platform.bring_back()
    eventually(lambda: admitted(guarded, customer.key) == 200, 5)
    eventually(lambda: guarded.get("/api/v1/health").status == 200, 5)
    assert guarded.ask("customer", "list")[0]["id"] == customer.id


def test_sessions_that_are_ended_over_and_over_are_made_again(guarded):
    customer = guarded.add_customer()
    guarded.start()
    guarded.await_admission(customer.key)
    stop = threading.Event()

    def end_sessions():
        while not stop.is_set():
            guarded.platform.server.terminate_backends(guarded.platform.database)

    thread = threading.Thread(target=end_sessions)
    thread.start()
    try:
        began = time.monotonic()
        while time.monotonic() < began + 2 or guarded.metrics()["croupier_platform_connects_total"] <= 3:
            assert admitted(guarded, customer.key) in (200, 503)
            assert time.monotonic() < began + 60 * PATIENCE
    finally:
        stop.set()
        thread.join()
    eventually(lambda: admitted(guarded, customer.key) == 200, 5)


def test_an_instance_holds_few_connections_and_shows_them(guarded):
    customer = guarded.add_customer(options=["--casino"])
    guarded.start()
    guarded.await_admission(customer.key)
    for _ in range(3):
        guarded.get("/api/v1/health")
        post(guarded, "/api/v1/casino/wallet", customer.key, operation="BALANCE", player_id="ply_none")
        post(guarded, "/api/v1/casino/wallet", customer.key, operation="DEBIT", player_id="ply_none",
             transaction_id="t", amount_minor=1, currency="EUR")
    metrics = guarded.metrics()
    assert 2 <= metrics["croupier_platform_connections"] <= CONNECTIONS_MAX
    assert sessions(guarded) <= CONNECTIONS_MAX
    assert metrics["croupier_platform_round_trips_total"] > 10
    assert metrics["croupier_platform_wait_seconds_total"] > 0
    guarded.stop()
    eventually(lambda: sessions(guarded) == 0, 5)


def give_the_rights_of_the_manual(guarded):
    """To a role that the store is used by from now on; the statements."""
    text = (ROOT / "docs" / "postgresql.md").read_text()
    grants = re.search(r"```sql\n(-- the rights.*?)```", text, re.S).group(1)
    server, database = guarded.platform.server, guarded.platform.database
    server.sql(f"CREATE ROLE croupier LOGIN PASSWORD '{PASSWORD}'")
    server.sql(grants, database)
    guarded.configure({"platform.store": guarded.platform.uri.replace("//postgres:", "//croupier:")})
    return grants


def test_check_names_a_right_that_is_missing(guarded):
    guarded.platform.make()
    grants = give_the_rights_of_the_manual(guarded)
    server, database = guarded.platform.server, guarded.platform.database
    guarded.run("check")
    given = [(verb, table) for verbs, tables in re.findall(r"GRANT ([A-Z, ]+) ON ([a-z_, ]+) TO", grants)
             for verb in verbs.split(", ") for table in tables.split(", ")]
    assert len(given) > 40

    def lacking():
        report = {check["check"]: check for check in json.loads(guarded.run("check", "--json", status=1).text)}
        assert report["platform store"]["ok"] and not report["platform writes"]["ok"]
        return re.search(r"lacks the right ([^;]+); see docs/postgresql.md", report["platform writes"]["message"]).group(1)

    for right, on in [("INSERT", "ledger_transaction"), ("UPDATE", "store_revision"), ("DELETE", "conduct_fact"),
                      ("SELECT", "usage_requests"), ("UPDATE (created_ms)", "player"), ("USAGE", "SEQUENCE ledger_number")]:
        server.sql(f"REVOKE {right} ON {on} FROM croupier", database)
        assert lacking() == f"{right} on {on.split()[-1]}"
        server.sql(grants, database)
    server.sql("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM croupier; REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM croupier;"
               " GRANT SELECT ON ALL TABLES IN SCHEMA public TO croupier", database)
    assert lacking() == f"DELETE on conduct_fact, and {len(given) + 1} more"  # and the two of the list above


def test_the_rights_that_the_manual_gives_are_enough_and_no_more(guarded):
    guarded.platform.make()
    give_the_rights_of_the_manual(guarded)
    server, database = guarded.platform.server, guarded.platform.database
    guarded.run("migrate")  # nothing to do, so nothing that needs more rights
    customer = guarded.add_customer(options=["--casino"])
    guarded.run("customer", "set", customer.id, "--rate", "100/1")
    guarded.run("ip", "add", "192.0.2.1")
    guarded.run("provider", "add", "acme", "--name", "Acme", "--launch-url", "https://acme.example/", "--secret", "-",
                input="0123456789abcdef0123456789abcdef")
    guarded.run("game", "import", "-", input='[{"id": "aa", "provider": "acme", "name": "A", "category": "slots",'
                ' "currencies": ["EUR"], "languages": ["en"], "devices": ["mobile"], "demo": true}]')
    guarded.run("game", "allow", customer.id, "aa")
    guarded.start()
    guarded.await_admission(customer.key)
    launched = eventually(lambda: (answer := post(
        guarded, "/api/v1/casino/games/aa/launch", customer.key, mode="real", player_reference="alice",
        currency="EUR")).status == 200 and answer, 5)
    for operation, identity in [("CREDIT", "t1"), ("DEBIT", "t2"), ("ROLLBACK", "t3")]:
        request = {"operation": operation, "player_id": launched.json()["player_id"], "transaction_id": identity}
        request |= {"reference_transaction_id": "t2"} if operation == "ROLLBACK" else {"amount_minor": 5, "currency": "EUR"}
        answer = post(guarded, "/api/v1/casino/wallet", customer.key, **request)
        assert answer.status == 200, answer
    # What became of a commit, and whether one still waits, is only asked when something is wrong.
    server.sql("SET ROLE croupier; SELECT pg_logical_emit_message(true, 'croupier', '')", database)
    assert int(server.sql("SET ROLE croupier; SELECT count(*) FROM pg_stat_activity"
                          " WHERE usename = 'croupier' AND wait_event = 'ClientRead'", database)) > 0
    guarded.run("operator", "add", "olga", "--role", "owner")
    console = sign_in(guarded, "olga")
    console.change("DELETE", "session", status=204)
    guarded.run("operator", "disable", "olga")
    trial = guarded.add_customer("Trial", options=["--sandbox", "on"])

    def waiting_facts():
        return guarded.metrics()["croupier_conduct_waiting_facts"]

    eventually(lambda: admitted(guarded, trial.key) == 200)
    eventually(lambda: waiting_facts() == 0)
    guarded.run("customer", "conduct", trial.id, "--reset")
    # A right that is missing is logged, also where nothing but that table needs it.
    server.sql("REVOKE INSERT ON conduct_fact FROM croupier", database)
    assert admitted(guarded, trial.key) == 200
    line = eventually(lambda: [line for line in guarded.log_lines() if "conduct" in line["message"]])
    assert [line["message"] for line in line] == ["conduct in sandboxes cannot be written; it is kept"]
    assert "permission denied for table conduct_fact" in line[0]["reason"] and waiting_facts() > 0
    server.sql("GRANT INSERT ON conduct_fact TO croupier", database)
    eventually(lambda: waiting_facts() == 0 and "conduct in sandboxes is written again" in guarded.log_text())
    guarded.stop()  # writes the last use of keys
    guarded.run("wallet", "verify")
    for forbidden in ["UPDATE ledger_transaction SET outcome = 'voided'", "DELETE FROM ledger_transaction",
                      "DELETE FROM ledger_account", "TRUNCATE ledger_rollback", "DELETE FROM customer",
                      "UPDATE player SET reference = 'x'", "DROP TABLE game", "CREATE TABLE public.other (n int)",
                      "ALTER TABLE ledger_transaction DISABLE TRIGGER ALL"]:
        with pytest.raises(Exception, match="permission denied|must be owner"):
            server.sql(f"SET ROLE croupier; {forbidden}", database)


def test_a_server_that_becomes_read_only_is_reported(guarded):
    server = guarded.platform.server
    customer = guarded.add_customer(options=["--casino"])
    player = add_player(guarded, customer)
    token = guarded.run("operator", "token", "add", "tests", "--role", "reader").text.strip()
    guarded.start()
    guarded.await_admission(customer.key)

    def stake(number):
        return post(guarded, "/api/v1/casino/wallet", customer.key, **credit(player, f"t{number}", 1))

    def health():
        return guarded.request("GET", "/admin/v1/health", address=guarded.operator_address,
                               headers={"Authorization": f"Bearer {token}"}).json()

    def read_only():
        return guarded.metrics()["croupier_platform_read_only"]

    assert stake(1).status == 200 and read_only() == 0
    server.sql("ALTER SYSTEM SET default_transaction_read_only = on")
    server.sql("SELECT pg_reload_conf()")
    eventually(lambda: stake(2).status == 503 and read_only() == 1)
    assert guarded.get("/api/v1/health", key=customer.key).status == 200
    assert "takes no changes" in guarded.run("check", status=1).text
    eventually(lambda: health()["platform_store"]["status"] == "read_only")
    assert health()["status"] == "degraded"
    again = '"ledger is available again"'
    reopened = guarded.metrics()["croupier_ledger_reopened_total"]
    eventually(lambda: stake(2).status == 503 and guarded.metrics()["croupier_ledger_reopened_total"] > reopened)
    assert again not in guarded.log_text()  # it opens, and takes no bet
    server.sql("ALTER SYSTEM RESET default_transaction_read_only")
    server.sql("SELECT pg_reload_conf()")
    eventually(lambda: stake(2).status == 200)
    assert read_only() == 0 and again in guarded.log_text()
    eventually(lambda: health()["platform_store"]["status"] == "ok")
    guarded.run("check")


def test_a_standby_is_refused_and_taken_when_it_was_promoted(make_service, tmp_path):
    platform = Guarded(tmp_path)
    platform.make()
    standby = Postgres(tcp=True, password=PASSWORD, standby_of=platform.server)
    try:
        at = [f"127.0.0.1:{server.port}" for server in (standby, platform.server)]
        uri = f"postgresql://postgres:{ESCAPED}@{{}}/{platform.database}"
        service = make_service(platform=platform)
        customer = service.add_customer()
        service.configure({"platform.store": uri.format(at[0])})
        eventually(lambda: "is a standby" in service.run("check", status=1).text, 10)
        service.configure({"platform.store": uri.format(",".join(at))})
        assert f": {at[1]} answers" in service.run("check").text  # of the two, which one
        service.start()
        service.await_admission(customer.key)
        eventually(lambda: standby.sql("SELECT count(*) FROM api_key", platform.database) == "1", 10)
        platform.server.kill()
        # The reason of each is said: a standby is no news where the primary is named too.
        for text in (service.run("check", status=1).text, service.run("customer", "list", status=1).errors):
            assert f"{at[0]}: is a standby" in text and f"{at[1]}: cannot be reached (" in text, text
            assert "Connection refused" in text and "name the primary" not in text, text
        standby.sql("SELECT pg_promote()")
        eventually(lambda: admitted(service, customer.key) == 200, 5)
        late = service.add_customer("Late")
        eventually(lambda: admitted(service, late.key) == 200, 5)
        service.stop()
    finally:
        standby.remove()


def test_a_migrate_that_was_killed_or_cancelled_holds_nothing_up(guarded):
    server, database = guarded.platform.server, guarded.platform.server.create_database()
    guarded.configure({"platform.store": f"postgresql://postgres:{ESCAPED}@{guarded.platform.where}/{database}"})
    waits = ("SELECT pid FROM pg_stat_activity WHERE application_name = 'croupier' AND wait_event_type = 'Lock'"
             f" AND datname = '{database}'")
    command = [str(BINARY), "migrate", "--backed-up", "-c", str(guarded.configuration)]
    with server.session(server.uri_of(database)) as other:
        other.stdin.write("BEGIN; SELECT 1 FROM pg_advisory_xact_lock(1668445552, hashtext('public'));\n")
        other.stdin.flush()
        assert other.stdout.readline() == "1\n"
        for end in ("killed", "cancelled"):
            migrate = subprocess.Popen(command, env=guarded.environment, cwd=guarded.directory, stderr=subprocess.PIPE, text=True)
            process = eventually(lambda: server.sql(waits))
            watch = Stopwatch()
            if end == "killed":
                migrate.kill()
            else:
                server.sql(f"SELECT pg_cancel_backend({process})")
            assert "or was cancelled" in migrate.communicate()[1] or end == "killed"
            eventually(lambda: server.sql(waits) == "")
            assert watch.elapsed() < 45 * PATIENCE  # not the minute that migrate waits for a lock, beside busy processes either
        other.stdin.close()


@pytest.mark.long(9)
def test_a_synchronous_standby_that_is_away_does_not_use_up_the_servers_sessions(make_service, tmp_path):
    platform = Guarded(tmp_path)
    platform.make()
    standby = Postgres(tcp=True, password=PASSWORD, standby_of=platform.server)
    try:
        service = make_service(platform=platform)
        customer = service.add_customer(options=["--casino"])
        add_games(service, "dice")
        service.configure({"platform.timeout_ms": 2000})
        service.start()
        service.await_admission(customer.key)
        players = [add_player(service, customer, name) for name in "abc"]
        eventually(lambda: send(service, customer.key, credit(players[0], "first", 5)).status == 200)

        def launch(name):
            return post(service, "/api/v1/casino/games/dice/launch", customer.key, mode="real", player_reference=name,
                        currency="EUR").status

        def waiting():
            return int(platform.server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))

        eventually(lambda: launch("before") == 200, 5)
        other = make_service(settings={"platform.timeout_ms": 2000}, platform=platform)
        other.start()
        eventually(lambda: send(other, customer.key, credit(players[0], "elsewhere", 1)).status == 200, 5)
        platform.server.configure({"synchronous_standby_names": "*"})
        platform.server.reload()
        eventually(lambda: platform.server.sql("SELECT sync_state FROM pg_stat_replication") == "sync", 5)
        standby.kill()
        assert send(service, customer.key, credit(players[0], "second", 1)).status == 500
        # The player's row is locked by that commit. Nobody else need look for the one who holds it.
        assert send(other, customer.key, credit(players[0], "locked", 1)).status == 503
        [line] = eventually(lambda: [line for line in other.log_lines() if line["message"] == "ledger is unavailable"])
        assert "a commit waits for a synchronous standby" in line["reason"], line
        for number in range(10):  # only the first waits for as long as a call may take
            assert launch(f"new{number}") in (500, 503)
        check = service.run("check", status=1).text
        assert "a commit waits for a synchronous standby that does not answer: make sure that no other server was" in check, check
        assert waiting() <= 3  # of the ledger, launches, and the last use of keys
        assert send(service, customer.key, credit(players[1], "third", 1)).status == 503
        assert launch("before") in (500, 503)  # its player is known, but each launch is kept
        answer = eventually(lambda: (answer := send(service, customer.key, balance(players[0]))).status == 200 and answer)
        assert answer.json()["balance_minor"] == 6 and waiting() > 0  # who reads does not wait for the standby
        standby.start()
        eventually(lambda: send(service, customer.key, credit(players[2], "after", 7)).status == 200, 5)
        eventually(lambda: launch("late") == 200, 5)
        eventually(lambda: waiting() == 0, 5)
        service.stop()
        service.configure({"platform.timeout_ms": 10000})  # a busy machine may take longer to connect than that
        service.run("wallet", "verify")
    finally:
        standby.remove()


# ---- two primaries ----------------------------------------------------------------------------------


@pytest.fixture
def promoted(make_service, tmp_path):
    """A service whose URI names a primary and its standby; `promote` makes the standby a primary beside it."""
    platform = Guarded(tmp_path)
    platform.make()
    with Postgres(tcp=True, password=PASSWORD, standby_of=platform.server) as standby:
        platform.where = f"127.0.0.1:{platform.server.port},127.0.0.1:{standby.port}"
        platform.uri = f"postgresql://postgres:{ESCAPED}@{platform.where}/{platform.database}"
        service = make_service(platform=platform, settings={"platform.timeout_ms": 2000})
        service.old, service.new = platform.server, standby
        service.promote = lambda: standby.sql("SELECT pg_promote()")
        yield service


@pytest.mark.long(9)
def test_an_old_primary_that_is_back_is_passed_over(promoted):
    service, old, new = promoted, promoted.old, promoted.new
    customer = service.add_customer(options=["--casino"])
    service.start()
    service.await_admission(customer.key)
    player = add_player(service, customer, "a")
    pay = lambda name: send(service, customer.key, credit(player, name, 1)).status
    eventually(lambda: pay("first") == 200)
    eventually(lambda: new.sql("SELECT count(*) FROM ledger_transaction", service.platform.database) == "1")
    old.kill()
    promoted.promote()
    eventually(lambda: pay("second") == 200)
    old.start()  # it takes writes, and comes first in the URI
    new.stop()
    said = eventually(lambda: [line["reason"] for line in service.log_lines()
                               if f"127.0.0.1:{old.port}: is an older primary (timeline 1; 2 was seen" in line.get("reason", "")])
    assert f"127.0.0.1:{new.port}: cannot be reached" in said[-1]
    assert pay("third") in (500, 503) and send(service, customer.key, balance(player)).status == 503
    new.start()
    eventually(lambda: pay("third") == 200)
    eventually(lambda: send(service, customer.key, balance(player)).json().get("balance_minor") == 3)  # by a connection of its own
    assert old.sql("SELECT count(*) FROM ledger_transaction", service.platform.database) == "1"


def test_check_asks_every_server_and_names_two_primaries(promoted):
    service, old, new = promoted, promoted.old, promoted.new
    service.configure({"platform.timeout_ms": 10000})  # a busy machine may take longer to connect than two seconds
    checks = lambda status: {check["check"]: check for check in json.loads(service.run("check", "--json", status=status).text)}
    alone = checks(0)
    assert "platform primaries" not in alone and alone["platform standby"]["warning"]
    assert f"127.0.0.1:{old.port} names no synchronous standby" in alone["platform standby"]["message"]
    old.configure({"synchronous_standby_names": "*"})
    old.reload()
    eventually(lambda: "platform standby" not in checks(0))
    promoted.promote()
    found = checks(1)["platform primaries"]
    assert found["message"] == (f"two primaries: 127.0.0.1:{old.port} (timeline 1) and 127.0.0.1:{new.port} (timeline 2) "
                                "take writes")
    assert "fence one" in found["remedy"]
    new.configure({"default_transaction_read_only": "on"})  # one way to fence it
    new.reload()
    eventually(lambda: "platform primaries" not in checks(None))
    new.stop()
    assert "platform primaries" not in checks(0)


def test_check_compares_the_clocks(make_service, tmp_path):
    clock = Clock(tmp_path / "clock")
    service = make_service(platform=Guarded(tmp_path), environment=clock.environment)
    check = lambda: {check["check"]: check for check in json.loads(service.run("check", "--json").text)}
    assert "clock" not in check()
    clock.advance(wall=-90)
    found = check()["clock"]
    assert found["warning"] and re.fullmatch(r"PostgreSQL's clock differs from this machine's by \+(89|9\d) s", found["message"])


# ---- durability -------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", [["fsync"], ["full_page_writes"], ["fsync", "full_page_writes"]], ids=["fsync", "pages", "both"])
def test_a_server_that_may_lose_money_is_told_of(make_service, tmp_path, off):
    service = make_service(platform=Guarded(tmp_path, durable=True, settings={setting: "off" for setting in off}))
    told = ", ".join(f"{setting} = off" for setting in off)
    warning = {check["check"]: check for check in json.loads(service.run("check", "--json").text)}["platform durability"]
    assert warning["ok"] and warning["warning"] and warning["message"].endswith(told)
    assert "WARNING" in service.run("check").text
    service.start()
    service.await_admission(service.add_customer().key)
    lines = [line for line in service.log_lines() if "may lose money" in line["message"]]
    assert [(line["level"], line["settings"]) for line in lines] == [("warning", told)]


def test_a_durable_server_is_not_warned_of(make_service, tmp_path):
    service = make_service(platform=Guarded(tmp_path, durable=True))
    checks = json.loads(service.run("check", "--json").text)
    assert not [check for check in checks if check["warning"]]
    service.start()
    service.await_admission(service.add_customer().key)
    assert "may lose money" not in service.log_text()
