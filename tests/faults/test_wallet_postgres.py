"""The ledger on PostgreSQL when the way to the server breaks, most of all while a commit is under way.

As test_wallet_faults.py: what was acknowledged is there, nothing is applied twice, and the proof holds.
Commits are made slow where that matters, by a deferred trigger, so that a fault hits one for certain.
"""

import contextlib
import os
import random
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from servers import Postgres, Proxy, make_certificate  # noqa: E402
from test_wallet_faults import TOOL, answers, tool  # noqa: E402

SLOW = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(%s); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON ledger_transaction DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION slow();
"""
QUICK = "DROP TRIGGER slow ON ledger_transaction; DROP FUNCTION slow"  # the proof wants croupier's triggers alone
COMMIT_SECONDS = 2.0  # long enough to be met by a slow test, and less than the ledger asks what became of a commit


class House:
    def __init__(self, server):
        self.server = server
        self.database = server.create_database()
        self.proxy = Proxy(("127.0.0.1", server.port))
        self.direct = server.uri_of(self.database)
        self.uri = server.uri_of(self.database, tcp=True, port=self.proxy.port)
        self.players = tool("setup", self.direct).split()

    def sql(self, statement):
        return self.server.sql(statement, self.database)

    def start(self, count, burst, output=subprocess.PIPE, errors=None, timeout_ms=5000, first=0):
        """errors: the path of a file for what the tool logs. timeout_ms: of the store, also for what became of a commit.
        first: the number of the first operation."""
        with open(errors, "w") if errors else contextlib.nullcontext(subprocess.PIPE) as log:
            return subprocess.Popen([TOOL, "run", self.uri, str(count), str(burst), *self.players], stdout=output,
                                    stderr=log, text=True,
                                    env={**os.environ, "WALLET_TIMEOUT_MS": str(timeout_ms), "WALLET_FIRST": str(first)})

    def await_commit(self):
        """Until the server works on a commit of the tool's. It looks itself, often enough not to miss one."""
        self.sql("SET statement_timeout = '240s'; DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE"
                 " application_name = 'croupier' AND state = 'active' AND query = 'COMMIT') LOOP"
                 " PERFORM pg_sleep(0.01), pg_stat_clear_snapshot(); END LOOP; END $$")

    def run(self, count, burst, first=0):
        return self.finish(self.start(count, burst, first=first))[:2]

    def finish(self, process):
        output, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
        print(errors, end="")
        return (*answers(output), errors)


@pytest.fixture(scope="module")
def server():
    with Postgres(tcp=True, durable=True) as server:
        yield server


@pytest.fixture
def house(server):
    house = House(server)
    yield house
    house.proxy.close()


# The number of an operation, a credit: the customer's, or the provider's. It brings 1 more than its number.
CLIENTS = pytest.mark.parametrize("number", [0, 3], ids=["customer", "provider"])


@CLIENTS
def test_a_commit_whose_answer_is_lost_is_found_out_to_have_happened(house, number):
    house.sql(SLOW % COMMIT_SECONDS)
    process = house.start(1, 1, first=number, timeout_ms=60000)
    house.await_commit()
    house.proxy.cut()
    acknowledged, others, errors = house.finish(process)
    assert acknowledged == {number: ("applied", 1, number + 1, False)} and not others
    assert "interrupted" in errors and "outcome=committed" in errors
    house.sql(QUICK)
    assert tool("verify", house.direct) == "1\n"
    assert house.run(1, 1, number) == ({number: ("applied", 1, number + 1, True)}, {})


@CLIENTS
def test_a_commit_that_the_server_gave_up_is_done_again(house, number):
    house.sql(SLOW % COMMIT_SECONDS)
    process = house.start(1, 1, first=number, timeout_ms=60000)
    house.await_commit()
    house.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'COMMIT'")
    acknowledged, others, errors = house.finish(process)
    assert 'outcome="not committed"' in errors
    # Two seconds after a batch began the ledger does it no more, but says that it is surely not applied.
    done = {number: ("applied", 1, number + 1, False)}
    assert (acknowledged, others) in ((done, {}), ({}, {number: "unavailable"}))
    assert house.run(1, 1, number) == ({number: ("applied", 1, number + 1, bool(acknowledged))}, {})
    house.sql(QUICK)
    assert tool("verify", house.direct) == "1\n"


@CLIENTS
def test_a_commit_that_no_one_can_ask_about_is_left_open(house, number):
    house.sql(SLOW % COMMIT_SECONDS)
    process = house.start(1, 1, first=number)
    house.await_commit()
    house.proxy.refuse()
    acknowledged, others, errors = house.finish(process)
    assert (acknowledged, others) == ({}, {number: "unknown"})
    assert "outcome=unknown" in errors
    house.proxy.heal()
    assert house.run(1, 1, number) == ({number: ("applied", 1, number + 1, True)}, {})
    house.sql(QUICK)
    assert tool("verify", house.direct) == "1\n"


def test_a_commit_that_the_server_is_silent_about_is_found_out(house):
    """A black hole: nothing is closed, so time alone tells. The tool waits five seconds for an answer."""
    house.sql(SLOW % COMMIT_SECONDS)
    process = house.start(1, 1)
    house.await_commit()
    house.proxy.swallow()
    time.sleep(4)
    threading.Timer(2, house.proxy.heal).start()
    acknowledged, others, errors = house.finish(process)
    assert acknowledged == {0: ("applied", 1, 1, False)} and not others
    assert "outcome=committed" in errors


def test_an_instance_that_is_gone_holds_its_players_for_a_bounded_time(house):
    """Frozen between its two round trips: the server ends its transaction, and the other instance goes on."""
    house.run(1, 1)
    frozen = house.start(100000, 1, subprocess.DEVNULL)
    until = time.monotonic() + 240
    while True:
        time.sleep(random.random() * 0.02)
        frozen.send_signal(signal.SIGSTOP)
        time.sleep(0.05)  # the server finishes what it was asked for
        if house.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'croupier'"
                     " AND state = 'idle in transaction'").strip() == "1":
            break
        frozen.send_signal(signal.SIGCONT)
        assert time.monotonic() < until and frozen.poll() is None
    started = time.monotonic()
    while True:
        _, others = answers(tool("run", house.direct, 4, 2, *house.players))
        if not others:
            break
        assert set(others.values()) <= {"unavailable"}
        assert time.monotonic() < started + 120
    frozen.kill()
    frozen.communicate()
    tool("verify", house.direct)


class Spoiler:
    """Breaks the way again and again while the tool works. Faults come by how far the tool has got, which it
    tells by its lines, so that a slow machine has as many of them as a fast one and the first answer always
    gets through; only where in a batch they hit is left to chance."""

    def __init__(self, house, fault, seed):
        server = house.server
        self.fault = {"cut": house.proxy.cut, "terminate": lambda: server.terminate_backends(house.database),
                      "immediate": lambda: (server.stop("immediate"), server.start())}[fault]
        self.least, self.most = (150, 500) if fault == "immediate" else (20, 200)  # answers between two faults
        self.chance = random.Random(seed)
        self.faults = 0

    def follow(self, process):
        """All that the tool writes."""
        lines, due = [], 1 + self.chance.randrange(self.least)
        for line in process.stdout:
            lines.append(line)
            if len(lines) < due:
                continue
            due = len(lines) + self.chance.randrange(self.least, self.most)
            for _ in range(1 + self.chance.randrange(2)):  # the second one meets who connects again
                time.sleep(self.chance.random() * 0.03)
                self.fault()
                self.faults += 1
        return "".join(lines)


@pytest.mark.parametrize("fault", ["cut", "terminate", "immediate"])
def test_a_way_that_breaks_again_and_again_loses_nothing_and_applies_nothing_twice(fault):
    seed = int(os.environ.get("WALLET_SEED") or random.SystemRandom().randrange(2**32))
    print(f"WALLET_SEED={seed}")
    count, burst = 1600, 8
    with Postgres(tcp=True, durable=True) as server:
        house = House(server)
        spoiler = Spoiler(house, fault, seed)
        process = house.start(count, burst, errors=server.directory / "tool.log")
        acknowledged, others = answers(spoiler.follow(process))
        assert process.wait(600) == 0, (server.directory / "tool.log").read_text()
        assert len(acknowledged) + len(others) == count
        assert set(others.values()) <= {"unknown", "unavailable"}
        assert len(acknowledged) > 0 and spoiler.faults > 2
        print(f"{spoiler.faults} faults, {len(acknowledged)} acknowledged,"
              f" others: {sorted(set(others.values()))} {len(others)}")
        again, left = house.run(count, burst)
        assert not left
        for number, answer in acknowledged.items():
            assert again[number] == (*answer[:3], True), number
        for number, answer in again.items():
            assert answer[3] or others.get(number), number
            assert not answer[3] or others.get(number) != "unavailable", number  # that was surely not applied
        assert int(tool("verify", house.direct)) == len([number for number, answer in again.items() if answer[1] > 0])
        moved = house.sql("SELECT DISTINCT owner_number < 0 FROM ledger_transaction ORDER BY 1")
        assert moved.split() == ["f", "t"]  # the customer and the provider
        house.proxy.close()


# ---- a standby that commits wait for -----------------------------------------------------------------

class Pair:
    """A primary whose commits wait for a standby, and the standby."""

    def __init__(self):
        self.primary = Postgres(tcp=True, durable=True)
        self.house = House(self.primary)
        self.standby = Postgres(tcp=True, durable=True, standby_of=self.primary)
        self.primary.configure({"synchronous_standby_names": "*"})
        self.primary.reload()
        self.await_true("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1")

    def await_true(self, question, answer):
        until = time.monotonic() + 240
        while self.house.sql(question).strip() != answer:
            assert time.monotonic() < until, question
            time.sleep(0.02)

    def await_waiting(self):
        """Until a commit of the tool's waits for the standby; the number of its session."""
        self.await_true(WAITING, "1")
        return int(self.house.sql(f"SELECT pid FROM pg_stat_activity WHERE {WAITS}"))

    def restart(self, mode):
        self.primary.stop(mode)
        self.primary.start()

    def fail_over(self):
        """The primary is gone, and the standby what it left behind."""
        self.primary.kill()
        if not self.standby.running:
            self.standby.start()
        self.standby.sql("SELECT pg_promote()")
        return self.standby.uri_of(self.house.database)

    def remove(self):
        self.house.proxy.close()
        self.standby.remove()
        self.primary.remove()


WAITS = "application_name = 'croupier' AND wait_event_type = 'IPC' AND wait_event = 'SyncRep'"
WAITING = f"SELECT count(*) FROM pg_stat_activity WHERE {WAITS}"


@pytest.fixture
def pair():
    pair = Pair()
    yield pair
    pair.remove()


@pytest.mark.parametrize("how", ["immediate", "fast", "terminate"])
def test_a_commit_that_the_standby_does_not_have_is_not_told_as_one(pair, how):
    """Its wait was cut short, so that it can be seen; what can be seen, a failover may yet lose."""
    pair.standby.kill()
    process = pair.house.start(1, 1)
    session = pair.await_waiting()
    if how == "terminate":
        pair.house.sql(f"SELECT pg_terminate_backend({session})")
    else:
        pair.restart(how)
    acknowledged, others, errors = pair.house.finish(process)
    assert (acknowledged, others) == ({}, {0: "unknown"})
    assert "outcome=unknown" in errors
    assert pair.house.sql("SELECT count(*) FROM ledger_transaction").strip() == "1"
    where = pair.fail_over()
    assert answers(tool("run", where, 1, 1, *pair.house.players)) == ({0: ("applied", 1, 1, False)}, {})
    assert tool("verify", where) == "1\n"


def test_a_commit_that_the_standby_got_after_all_is_found_out(pair):
    pair.standby.kill()
    process = pair.house.start(1, 1, timeout_ms=60000)  # two servers start meanwhile
    pair.await_waiting()
    pair.restart("immediate")
    pair.standby.start()
    acknowledged, others, errors = pair.house.finish(process)
    assert acknowledged == {0: ("applied", 1, 1, False)} and not others
    assert "outcome=committed" in errors
    assert answers(tool("run", pair.fail_over(), 1, 1, *pair.house.players)) == ({0: ("applied", 1, 1, True)}, {})


def test_what_is_repeated_is_told_when_the_standby_has_it(pair):
    pair.standby.kill()
    process = pair.house.start(1, 1)
    pair.house.sql(f"SELECT pg_cancel_backend({pair.await_waiting()})")
    assert pair.house.finish(process)[:2] == ({}, {0: "unknown"})
    assert pair.house.run(1, 1) == ({}, {0: "unknown"})
    pair.standby.start()
    # The second run's session still waits, though its client has left; while it does, nothing is written.
    pair.await_true(WAITING, "0")
    assert pair.house.run(1, 1) == ({0: ("applied", 1, 1, True)}, {})
    assert tool("verify", pair.house.direct) == "1\n"


def test_a_standby_that_is_away_costs_an_instance_one_session(pair):
    """A session that waits for it does not notice that its client has left."""
    pair.standby.kill()
    process = pair.house.start(12, 1)
    assert pair.house.finish(process)[:2] == ({}, {0: "unknown", **{n: "unavailable" for n in range(1, 12)}})
    assert pair.house.sql(WAITING) == "1"
    acknowledged, others, errors = pair.house.finish(pair.house.start(2, 1))  # as if it was started again
    assert (acknowledged, others) == ({}, {0: "unavailable", 1: "unavailable"})
    assert "waits for a synchronous standby" in errors
    assert pair.house.sql(WAITING) == "1"
    pair.standby.start()
    pair.await_true(WAITING, "0")
    acknowledged, others = pair.house.run(12, 1)
    assert len(acknowledged) == 12 and acknowledged[0] == ("applied", 1, 1, True) and not acknowledged[1][3]
    tool("verify", pair.house.direct)


# ---- TLS ---------------------------------------------------------------------------------------------

RECORD = 16384  # bytes, the largest there is


class Tls:
    """A way to a server by TLS, as a pooler is one. It gathers an answer, and sends it as the largest records,
    the odd bytes first: libpq takes less than one of those at a time."""

    def __init__(self, server, directory):
        certificate, key = make_certificate(directory, "tls", "IP:127.0.0.1")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.target = ("127.0.0.1", server.port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.filled = 0  # records that were as large as can be
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with contextlib.suppress(OSError), socket.create_connection(self.target) as server:
            client.recv(8)  # SSLRequest
            client.sendall(b"S")
            with self.context.wrap_socket(client, server_side=True) as secured:
                self._relay(secured, server)

    def _relay(self, secured, server):
        answer = b""
        while True:
            patience = 0 if secured.pending() > 0 else 0.05 if answer else None
            ready = select.select([secured, server], [], [], patience)[0]
            if secured in ready or patience == 0:
                asked = secured.recv(65536)
                if not asked:
                    return
                server.sendall(asked)
            elif server in ready:
                more = server.recv(65536)
                if not more:
                    return
                answer += more
            else:
                self._send(secured, answer)
                answer = b""

    def _send(self, secured, answer):
        odd = len(answer) % RECORD
        secured.sendall(answer[:odd])
        for at in range(odd, len(answer), RECORD):
            secured.sendall(answer[at:at + RECORD])
            self.filled += 1


def test_an_answer_in_large_records_is_read_to_its_end(house, tmp_path):
    """What OpenSSL has decrypted is not to be waited for on the socket, where nothing more comes."""
    assert len(house.run(600, 64)[0]) == 600
    tls = Tls(house.server, tmp_path)
    uri = house.server.uri_of(house.database, tcp=True, port=tls.port) + "?sslmode=require"
    assert tool("verify", uri) == tool("verify", house.direct)
    assert tls.filled > 0
    tls.close()
