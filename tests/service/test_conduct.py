"""What croupier says of a sandbox caller's conduct: clients that do one thing wrong, each on a customer or provider of its own, and
one of each kind that does everything right."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import time
import uuid

import pytest

from croupier import Clock, Service, eventually
from test_console import machine
from test_examples import COMPILED, CUSTOMERS, EXAMPLES, compiled
from wallet_model import PATH, PROVIDER_PATH, SECRET, Provider, add_games, add_player, balance, credit, debit, launch, rollback

pytestmark = pytest.mark.depends_on("platform")

FAULT = "X-Croupier-Fault"
POLLED = "/api/v1/cricket/events/1"
OF_CUSTOMERS = ["unknown-outcome", "one-content", "unanswered-debit", "win-after-bet", "retry-after", "conditional-polls",
                "waiting-polls", "connections", "player-blocked"]
OF_PROVIDERS = [*(check for check in OF_CUSTOMERS if "polls" not in check), "session-expired", "signatures", "rounds"]
ODDS = {1: [{"marketName": "Match Odds", "gtype": "match", "status": "OPEN", "runners": []}]}


class Client:
    """A client that keeps one connection, for as long as the server does."""

    def __init__(self, server, key=None, provider=None):
        self.server, self.key, self.provider, self.connection = server, key, provider, None
        self.ids = []  # of the answers
        self.trace = None  # of the last request: one that has no answer is found by it in the log

    def send(self, method, path, fields=(), body=b""):
        if self.connection is None:
            self.connection = self.server.connect(address=self.server.provider_address if self.provider else None)
        self.trace = uuid.uuid4().hex
        fields = {**dict(fields), "traceparent": f"00-{self.trace}-{self.trace[:16]}-01"}
        if self.key:
            fields["Authorization"] = f"Bearer {self.key}"
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.connection.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body)

    def receive(self):
        """None: the connection ended without a whole answer."""
        try:
            answer = self.connection.receive()
        except EOFError:
            answer = None
        if answer is None or answer.header("connection") == "close":
            self.close()
        if answer is not None:
            self.ids.append(answer.header("x-request-id"))
        return answer

    def close(self):
        self.connection.close()
        self.connection = None

    def move(self, document, fault=None):
        body = json.dumps(document).encode()
        fields = self.provider.fields(body, time.time() + self.server.clock.ahead[1] / 1e9) if self.provider else {"Content-Type": "application/json"}
        self.send("POST", PROVIDER_PATH if self.provider else PATH, {**fields, **({FAULT: fault} if fault else {})}, body)
        return self.receive()

    def get(self, path=POLLED, **fields):
        self.send("GET", path, {name.replace("_", "-"): value for name, value in fields.items()})
        return self.receive()


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    directory = tmp_path_factory.mktemp("conduct")
    clock = Clock(directory / "clock")
    server = Service(directory, {"provider.listen": "127.0.0.1:0"}, environment=clock.environment)
    server.clock = clock
    try:
        server.publish("cricket", [{"gmid": 1, "ename": "A v B"}], ODDS)
        add_games(server, "roulette", provider="house", options=["--sandbox", "on"])
        server.start()
        server.customers, server.providers = {}, {}
        yield server
    finally:
        server.remove()


def customer(server, name, *options):
    """A sandbox customer, and a player of it that has 10.00."""
    one = server.add_customer(name, options=["--casino", "--sandbox", "on", *options])
    client = Client(server, one.key)
    client.id, client.player = one.id, add_player(server, one)
    assert client.move(credit(client.player, "in", 1000)).status == 200
    return client


def provider(server, name):
    """A sandbox provider, and a launch of its game."""
    add_games(server, f"{name}-game", provider=name, options=["--sandbox", "on"])
    one = server.add_customer(name, options=["--casino", "--sandbox", "on"])
    eventually(lambda: server.get("/api/v1/sports", one.key).status == 200)
    eventually(lambda: f"{name}-game" in server.get("/api/v1/casino/games", one.key).body.decode())
    _, subject, launched = launch(server, one, f"{name}-game")
    client = Client(server, provider=Provider(server, name))
    client.id, client.player, client.launch, client.customer = name, subject, launched, one
    client.more = {"launch_id": launched, "game_id": f"{name}-game"}
    assert client.move(credit(subject, "in", 1000, round_id="in")).status == 200
    return client


def conduct(server, client, *options):
    kind = "provider" if client.provider else "customer"
    return {row["check"]: row for row in server.ask(kind, "conduct", client.id, *options)}


def judged(server, client, fails=(), passes=(), last=False):
    """The verdicts, once they are these, and the last request is among those of connections; nothing else fails."""
    def are_so():
        rows = conduct(server, client)
        assert list(rows) == (OF_PROVIDERS if client.provider else OF_CUSTOMERS)
        failed = {check for check, row in rows.items() if row["result"] == "fail"}
        assert failed <= set(fails), rows
        return failed == set(fails) and all(rows[check]["result"] == "pass" for check in passes) \
            and (not last or client.ids[-1] in rows["connections"]["requests"]) and rows
    return eventually(are_so)


def pause(server, client, seconds):
    """Lets time pass once the server has noted when its last request ended."""
    eventually(lambda: any(line.get("trace") == client.trace for line in server.log_lines()))
    server.clock.advance(wall=seconds)


# ---- customers -----------------------------------------------------------------------------------


def test_a_good_customer_fails_nothing(sandbox):
    client = customer(sandbox, "Good", "--rate", "30/60")
    tag = client.get().header("etag")
    for _ in range(12):
        assert client.get(If_None_Match=tag).status == 304
    assert client.move(debit(client.player, "bet", 100, game_id="roulette", round_id="r"), "close-after") is None
    assert client.move(debit(client.player, "bet", 100, game_id="roulette", round_id="r")).json()["replayed"]
    assert client.move(debit(client.player, "lost", 100, game_id="roulette", round_id="r"), "close-before") is None
    assert client.move(rollback(client.player, "undo", "lost")).json()["status"] == "voided"
    assert client.move(credit(client.player, "win", 300, "bet", round_id="r"), "500;applied=yes").status == 500
    assert client.move(credit(client.player, "win", 300, "bet", round_id="r")).json()["replayed"]
    assert client.move(balance(client.player), "503").status == 503
    pause(sandbox, client, 1.1)
    assert client.move(balance(client.player)).status == 200
    rows = judged(sandbox, client, passes=["unknown-outcome", "one-content", "unanswered-debit", "win-after-bet", "retry-after",
                                           "conditional-polls", "connections"], last=True)
    assert len(rows["connections"]["requests"]) == 4
    assert rows["player-blocked"] == {"check": "player-blocked", "result": "not seen", "requests": [],
                                      "meaning": "no bet of a player follows player_blocked"}
    text = sandbox.run("customer", "conduct", client.id).text
    assert "CHECK" in text and "waiting-polls" in text and "not seen" in text


@pytest.mark.only("embedded", "sqlite")  # of programs in other languages
@pytest.mark.parametrize("name", [*CUSTOMERS, *COMPILED])
def test_the_example_customers_fail_nothing(sandbox, tmp_path, name):
    program = CUSTOMERS.get(name) or compiled(name)
    client = customer(sandbox, f"Example {name}")
    host, port = sandbox.address
    environment = {**os.environ, "BASE": f"http://{host}:{port}", "KEY": client.key, "JOURNAL": str(tmp_path / "journal")}

    def run(*words):
        return subprocess.run([*program, *words], env=environment, capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    run("poll", "cricket", "1", "1")
    run("deposit", client.player, "500", "EUR")
    bet = run("bet", client.player, "100", "EUR", "roulette", "r-1")
    run("win", client.player, "200", "EUR", "roulette", "r-1", json.loads(bet[bet.index("{"):])["transaction_id"])
    run("settle")
    sandbox.clock.advance(wall=61)
    judged(sandbox, client, passes=["one-content", "win-after-bet"])


def test_the_example_provider_fails_nothing(sandbox):
    client = provider(sandbox, "example")
    launched = sandbox.request("POST", "/api/v1/casino/games/example-game/launch", key=client.customer.key, headers={"Content-Type": "application/json"},
                               body=b'{"mode":"real","player_reference":"alice","currency":"EUR"}').json()
    host, port = sandbox.provider_address
    environment = {**os.environ, **sandbox.clock.environment, "PROVIDER": "example", "SECRET": SECRET,
                   "WALLET": f"http://{host}:{port}{PROVIDER_PATH}"}
    for stake, win in (("100", "180"), ("100", "50")):
        subprocess.run([sys.executable, EXAMPLES / "provider-python" / "provider.py", launched["launch_url"].partition("token=")[2], stake, win], env=environment, check=True)
    sandbox.clock.advance(wall=61)
    judged(sandbox, client, passes=["one-content", "win-after-bet", "signatures", "rounds"])


def retries_with_another_amount(server, client):
    assert client.move(credit(client.player, "win", 100), "close-after") is None
    assert client.move(credit(client.player, "win", 200)).error == (409, "transaction_conflict")


def gives_a_win_up(server, client):
    assert client.move(credit(client.player, "win", 100), "close-before") is None
    pause(server, client, 61)


def uses_an_id_twice(server, client):
    assert client.move(credit(client.player, "win", 100)).status == 200
    assert client.move(credit(client.player, "win", 200)).error == (409, "transaction_conflict")


def forgets_a_bet(server, client):
    assert client.move(debit(client.player, "bet", 100, round_id="r", **client.more), "close-after") is None
    pause(server, client, 61)


def pays_a_bet_that_was_declined(server, client):
    assert client.move(debit(client.player, "bet", 5000, round_id="r", **client.more)).status == 422
    assert client.move(credit(client.player, "win", 100, "bet", round_id="r")).error == (404, "reference_not_found")


def does_not_wait(server, client):
    while client.get().status != 429:
        pass
    pause(server, client, 0.5)
    assert client.get().status == 429


def repeats_a_bet_at_once(server, client):
    for _ in range(5):
        assert client.move(debit(client.player, "bet", 100, round_id="r", **client.more), "503").status == 503


def polls_without_the_tag(server, client):
    for _ in range(12):
        assert client.get().status == 200


def gives_waits_up(server, client):
    fields = {"If-None-Match": client.get().header("etag"), "Prefer": "wait=55"}
    for number in range(5):
        client.send("GET", POLLED, fields)
        eventually(lambda: server.metrics().get("croupier_waiting", 1) > 0)
        client.close()


def opens_connections(server, client):
    for _ in range(12):
        assert client.move(balance(client.player)).status == 200
        client.close()
    pause(server, client, 61)


def bets_for_a_blocked_player(server, client):
    server.run("player", "block", client.player, "--reason", "a test")
    refused = debit(client.player, "bet", 100, round_id="r", **client.more)
    eventually(lambda: client.move(refused).error == (403, "player_blocked"))
    pause(server, client, 0.5)
    assert client.move({**refused, "transaction_id": "bet-2"}).error == (403, "player_blocked")


BAD_CUSTOMERS = [(retries_with_another_amount, "unknown-outcome", []), (gives_a_win_up, "unknown-outcome", []),
             (uses_an_id_twice, "one-content", []), (forgets_a_bet, "unanswered-debit", []),
             (pays_a_bet_that_was_declined, "win-after-bet", []), (does_not_wait, "retry-after", ["--rate", "3/86400"]), (repeats_a_bet_at_once, "retry-after", []),
             (polls_without_the_tag, "conditional-polls", []), (gives_waits_up, "waiting-polls", []),
             (opens_connections, "connections", []), (bets_for_a_blocked_player, "player-blocked", [])]


@pytest.mark.parametrize("acts, check, options", BAD_CUSTOMERS, ids=[case[0].__name__ for case in BAD_CUSTOMERS])
def test_a_bad_customer_fails_just_its_line(sandbox, acts, check, options):
    client = customer(sandbox, acts.__name__, *options)
    client.more = {"game_id": "roulette"}
    acts(sandbox, client)
    rows = judged(sandbox, client, [check])
    assert rows[check]["requests"]


# ---- providers -----------------------------------------------------------------------------------


def test_a_good_provider_fails_nothing(sandbox):
    client = provider(sandbox, "good")
    assert client.move(debit(client.player, "bet", 100, round_id="r", **client.more), "close-after") is None
    assert client.move(debit(client.player, "bet", 100, round_id="r", **client.more)).json()["replayed"]
    assert client.move(credit(client.player, "win", 100, "bet", round_id="r", round_ended=True)).status == 200
    assert client.move(debit(client.player, "lost", 100, round_id="lost", **client.more)).status == 200  # no win: not judged
    pause(sandbox, client, 61)
    judged(sandbox, client, passes=["unknown-outcome", "one-content", "unanswered-debit", "win-after-bet", "signatures", "rounds"])


def bets_for_an_old_launch(server, client):
    pause(server, client, 25 * 3600)
    refused = debit(client.player, "bet", 100, round_id="r", **client.more)
    assert client.move(refused).error == (422, "session_expired")
    pause(server, client, 0.5)
    assert client.move({**refused, "transaction_id": "bet-2"}).error == (422, "session_expired")


def signs_wrongly(server, client):
    client.provider.secret = "another secret"
    assert client.move(balance(client.player)).error == (403, "not_admitted")


def leaves_a_round_open(server, client):
    assert client.move(debit(client.player, "bet", 100, round_id="r", **client.more)).status == 200
    assert client.move(credit(client.player, "win", 100, round_id="r")).status == 200
    pause(server, client, 61)


def leaves_a_bet_after_a_win_open(server, client):
    assert client.move(debit(client.player, "bet", 100, round_id="r", **client.more)).status == 200
    assert client.move(credit(client.player, "win", 100, "bet", round_id="r")).status == 200
    assert client.move(debit(client.player, "lost", 100, round_id="r", **client.more)).status == 200
    pause(server, client, 61)


PROVIDERS = [(bets_for_an_old_launch, "session-expired"), (signs_wrongly, "signatures"), (leaves_a_round_open, "rounds"),
             (leaves_a_bet_after_a_win_open, "rounds"),
             (forgets_a_bet, "unanswered-debit"), (pays_a_bet_that_was_declined, "win-after-bet"),
             (repeats_a_bet_at_once, "retry-after")]


@pytest.mark.parametrize("acts, check", PROVIDERS, ids=[case[0].__name__ for case in PROVIDERS])
def test_a_bad_provider_fails_just_its_line(sandbox, acts, check):
    client = provider(sandbox, acts.__name__.replace("_", "-"))
    acts(sandbox, client)
    assert judged(sandbox, client, [check])[check]["requests"]


# ---- answers under way ---------------------------------------------------------------------------


@pytest.mark.parametrize("act, took_ms, after_ms, result", [
    (0, 5, 0, "fail"), (0, 5, 249, "fail"), (0, 5, 700, "fail"), (0, 5, 751, "pass"),
    (0, 1000, 0, "pass"), (0, 1000, 249, "pass"), (0, 1000, 251, "fail"),  # the client may have given up just before
    (4, 5, 0, "pass"), (4, 5, 249, "pass"), (4, 5, 251, "fail")])  # several threads may poll one path
def test_a_repeat_within_retry_after_may_have_met_the_answer(sandbox, act, took_ms, after_ms, result):
    """Requests as the store keeps them: 503, and the same again so long after that answer."""
    caller = sandbox.add_customer("Repeats", options=["--sandbox", "on"]).id
    now_ms = int(time.time() * 1000)
    for name, from_ms, until_ms, status, pause_s in (("first", now_ms - took_ms, now_ms, 503, 1),
                                                     ("again", now_ms + after_ms, now_ms + after_ms + 5, 200, 0)):
        zeros = ("wanted_s", "waited_ms", "connection", "names_tag", "ends_round", "reference", "player", "round", "lost")
        sandbox.platform.execute(
            f"INSERT INTO conduct_fact (caller, request_id, reason, from_ms, until_ms, act, status, pause_s, client, subject, content, {', '.join(zeros)})"
            f" VALUES ('{caller}', '{name}', '', {from_ms}, {until_ms}, {act}, {status}, {pause_s}, 1, 2, 3{', 0' * len(zeros)})")
    row = next(row for row in sandbox.ask("customer", "conduct", caller) if row["check"] == "retry-after")
    assert (row["result"], row["requests"]) == (result, ["again"] if result == "fail" else ["first"])


# ---- who sees it, and how it begins again --------------------------------------------------------


def test_it_is_read_and_reset_by_the_admin_api_and_reset_is_audited(sandbox):
    client = customer(sandbox, "Reset")
    client.more = {}
    uses_an_id_twice(sandbox, client)
    rows = judged(sandbox, client, ["one-content"])
    operator, reader = machine(sandbox, "conducts", "operator"), machine(sandbox, "looks", "reader")
    path = f"/admin/v1/customers/{client.id}/conduct"
    document = eventually(lambda: (answer := reader.ask("GET", path)).status == 200 and answer.json())
    assert document["items"] == list(rows.values())
    assert reader.ask("DELETE", path, {}).status == 403
    assert operator.ask("DELETE", path, {}).status == 204
    assert {row["result"] for row in conduct(sandbox, client).values()} == {"not seen"}
    assert client.move(credit(client.player, "win", 300)).status == 409
    judged(sandbox, client, passes=["one-content"])  # what was before is forgotten
    assert {row["result"] for row in conduct(sandbox, client, "--reset").values()} == {"not seen"}
    trail = [row for row in sandbox.ask("audit", "list", "--object", client.id) if row["kind"] == "conduct"]
    assert [row["after"] for row in trail] == [{"reset": True}] * 2


def test_only_sandbox_callers_have_it(sandbox):
    real = sandbox.add_customer("Real")
    for kind, identity in (("customer", real.id), ("customer", "cus_nobody"), ("provider", "nobody")):
        for options in ((), ("--reset",)):
            assert f"there is no sandbox {identity}" in sandbox.run(kind, "conduct", identity, *options, status=1).errors


def test_two_instances_give_one_table(sandbox, tmp_path):
    if sandbox.platform.uri.startswith("sqlite"):
        pytest.skip("one file serves one server")
    other = Service(tmp_path, {"provider.listen": "127.0.0.1:0"}, environment=sandbox.clock.environment, stores=False,
                    odds=sandbox.odds, platform=sandbox.platform)
    other.clock = sandbox.clock
    other.start()
    try:
        client = customer(sandbox, "Two")
        assert client.move(debit(client.player, "bet", 100, round_id="r"), "close-after") is None
        client.server = other
        eventually(lambda: other.get("/api/v1/sports", client.key).status == 200)
        assert client.move(debit(client.player, "bet", 100, round_id="r")).json()["replayed"]
        rows = judged(sandbox, client, passes=["unknown-outcome", "unanswered-debit"])
        assert rows["unanswered-debit"]["requests"] == [client.ids[-1]]
    finally:
        other.stop()


@pytest.mark.only("sqlite")
def test_facts_that_wait_or_find_no_room_are_counted(sandbox):
    """While something else writes the store, 4,096 facts wait; of the requests after these only the number is kept."""
    client = customer(sandbox, "Many", "--rate", "off")
    judged(sandbox, client)
    eventually(lambda: sandbox.metrics()["croupier_conduct_waiting_facts"] == 0)
    assert sandbox.metrics()["croupier_conduct_dropped_total"] == 0
    with contextlib.closing(sqlite3.connect(sandbox.platform.uri.removeprefix("sqlite:"), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(44):
            for _ in range(100):
                client.send("GET", POLLED)
            for _ in range(100):
                assert client.receive().status == 200
        dropped = 44 * 100 - 4096
        eventually(lambda: sandbox.metrics()["croupier_conduct_dropped_total"] == dropped)  # the last after its answer
        assert sandbox.metrics()["croupier_conduct_waiting_facts"] == 4096
        other.execute("ROLLBACK")
    eventually(lambda: sandbox.metrics()["croupier_conduct_waiting_facts"] == 0)
    assert client.get().status == 200  # the next one that is kept says how many were not
    rows = eventually(lambda: (found := conduct(sandbox, client)).get("not-looked-at") and found)
    assert rows["not-looked-at"]["result"] == str(dropped)
    assert sandbox.metrics()["croupier_conduct_dropped_total"] == dropped
