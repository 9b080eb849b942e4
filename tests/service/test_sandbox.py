"""Customers and providers that try things out (docs/sandbox.md)."""

import json

import pytest

from croupier import Service, eventually
from test_console import machine
from wallet_model import Provider, add_games, balance, credit, debit, launch, send

pytestmark = pytest.mark.depends_on("platform")

JSON = {"Content-Type": "application/json"}
GAMES = "/api/v1/casino/games"
TOO_LATE = b"sandbox: it can be switched only before the first launch"


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A sandbox customer and provider beside real ones; each customer has a player with 100.00 and has bet 2.50 at its game."""
    server = Service(tmp_path_factory.mktemp("sandbox"), {"provider.listen": "127.0.0.1:0"})
    server.real = server.add_customer("Real", options=["--casino"])
    server.tries = server.add_customer("Tries", options=["--casino", "--sandbox", "on"])
    add_games(server, "roulette")
    add_games(server, "baccarat", provider="trial", options=["--sandbox", "on"])
    server.start()
    for customer, game in ((server.real, "roulette"), (server.tries, "baccarat")):
        customer.game = game
        server.await_admission(customer.key)
        customer.player, customer.subject, customer.launch = launch(server, customer, game)
        for document in (credit(customer.player, "in", 10000), debit(customer.player, "bet", 250, game_id=game, round_id="r-1")):
            assert send(server, customer.key, document).status == 200
    yield server
    server.stop()


def test_each_customer_sees_and_launches_the_games_of_its_own_kind(house):
    for customer, other in ((house.real, house.tries), (house.tries, house.real)):
        assert [game["id"] for game in house.get(GAMES, key=customer.key).json()["games"]] == [customer.game]
        refused = house.request("POST", f"{GAMES}/{other.game}/launch", key=customer.key, headers=JSON,
                                body=b'{"mode":"real","player_reference":"alice","currency":"EUR"}')
        assert refused.error == (404, "game_not_found"), refused
        assert send(house, customer.key, debit(customer.player, "elsewhere", 1, game_id=other.game)).error == (404, "game_not_found")


def test_it_stays_what_it_was_at_the_first_launch(house):
    for arguments in (("customer", "set", house.real.id, "--sandbox", "on"), ("customer", "set", house.tries.id, "--sandbox", "off"),
                      ("provider", "set", "acme", "--sandbox", "on"), ("provider", "set", "trial", "--sandbox", "off")):
        assert TOO_LATE in house.run(*arguments, status=2).stderr, arguments
    new = house.add_customer("New", options=["--casino"])
    for word, said in (("on", True), ("off", False)):
        house.run("customer", "set", new.id, "--sandbox", word)
        assert house.ask("customer", "show", new.id)["sandbox"] is said
    assert b"sandbox: must be yes or no" in house.run("customer", "set", new.id, "--sandbox", "maybe", status=2).stderr


def test_its_money_is_apart(house):
    report = house.ask("wallet", "report")
    assert {(line["customer"], line.get("sandbox", False)) for line in report["lines"]} == {(house.real.id, False), (house.tries.id, True)}
    assert sorted((total.get("sandbox", False), total["stakes_minor"]) for total in report["totals"]) == [(False, 250), (True, 250)]
    shown = house.run("wallet", "report").text
    assert sorted(line.split()[0] for line in shown.splitlines() if line.startswith(("total", "sandbox"))) == ["sandbox", "total"]
    usage = house.ask("usage")
    assert {row["customer"]: row.get("sandbox", False) for row in usage["wallet"]} == {house.real.id: False, house.tries.id: True}


def test_its_entries_and_rounds_say_so_wherever_they_are_listed(house):
    of = {house.real.id: False, house.tries.id: True}
    tail = house.run("wallet", "tail").text
    export = house.ask("wallet", "export", "--rounds")
    rounds = house.ask("wallet", "rounds")
    lists = [[json.loads(line) for line in tail.splitlines()], export["entries"], export["rounds"], export["totals"], rounds if isinstance(rounds, list) else rounds["rounds"]]
    for rows in lists:
        assert {row["customer"] for row in rows} == set(of) and all(row.get("sandbox", False) is of[row["customer"]] for row in rows)
    (house.directory / "tail").write_text(tail)
    house.run("wallet", "verify", "--file", house.directory / "tail")
    spoilt = tail.replace('"sandbox":true', '"sandbox":7', 1)
    (house.directory / "tail").write_text(spoilt)
    for said, becomes in (('"sandbox":true', '"sandbox":false'), ('"created_at"', '"sandbox":true,"created_at"')):
        (house.directory / "altered").write_text(tail.replace(said, becomes, 1))
        assert b"is of a sandbox, or not" in house.run("wallet", "verify", "--file", house.directory / "altered", status=1).stderr
    assert b"the value of sandbox is not sound" in house.run("wallet", "verify", "--file", house.directory / "tail", status=1).stderr
    for customer in (house.real, house.tries):
        reads = house.ask("key", "issue", customer.id, "--only", "account")["key"]
        house.await_admission(reads)
        for rows in (house.ask("wallet", "statement", customer.player)["entries"], house.get(f"/api/v1/account/statement?player_id={customer.player}", key=reads).json()["statement"]):
            assert len(rows) >= 2 and all(row.get("sandbox", False) is of[customer.id] for row in rows)
    assert [house.ask("wallet", "transaction", customer, "bet").get("sandbox", False) for customer in of] == [False, True]
    day = house.ask("wallet", "report")["day"]
    for options in ((), ("--day", day)):
        assert {row["customer"] for row in house.ask("wallet", "export", "--provider", "trial", *options)["entries"]} == {house.tries.id}


def test_the_console_leaves_its_entries_out_until_it_is_asked_for_them(house):
    reader = machine(house, "reads", "reader")
    for query in ("", "figure=stake&"):
        assert {entry["customer"] for entry in reader.get(f"entries?{query}limit=200")["items"]} == {house.real.id}
    for customer, sandbox in ((house.real, False), (house.tries, True)):
        for path in ("entries", "rounds"):
            rows = reader.get(f"{path}?customer={customer.id}&limit=200{'&state=all' if path == 'rounds' else ''}")["items"]
            assert rows and all(row.get("sandbox", False) is sandbox for row in rows)
    assert {entry["customer"]: entry.get("sandbox", False) for entry in reader.get("ledger/tail")["items"]} == {house.real.id: False, house.tries.id: True}


def test_money_that_a_real_customer_credits_for_a_sandbox_game_is_real(house):
    """The ledger takes a CREDIT for a game that is not there any more, too. Whose money it is, the customer says."""
    assert send(house, house.real.key, credit(house.real.player, "odd", 70, game_id="baccarat", round_id="odd-1")).status == 200
    entry = house.ask("wallet", "statement", house.real.player)["entries"][-1]
    assert entry["game_id"] == "baccarat" and "sandbox" not in entry
    won = {(total.get("sandbox", False), total["wins_minor"]) for total in house.ask("wallet", "report")["totals"]}
    assert won == {(False, 70), (True, 0)}


# ---- faults --------------------------------------------------------------------------------------------

FAULTS = ("delay=0", "close-before", "close-after", "503", "500;applied=yes", "500;applied=no")
LAUNCH = b'{"mode":"real","player_reference":"alice","currency":"EUR"}'


def ask(house, customer, document, *faults):
    """The answer to a wallet request with these faults; None: the connection ended without one."""
    body = json.dumps(document).encode()
    head = "".join(f"X-Croupier-Fault: {fault}\r\n" for fault in faults)
    with house.connect() as connection:
        connection.send((f"POST /api/v1/casino/wallet HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {customer.key}\r\nContent-Type: application/json\r\n"
                         f"{head}Content-Length: {len(body)}\r\n\r\n").encode() + body)
        try:
            return connection.receive("POST")
        except EOFError as ended:
            assert "closed after b''" in str(ended)
            return None


def money(house, customer):
    return send(house, customer.key, balance(customer.player)).json()["balance_minor"]


@pytest.mark.parametrize("fault, applied, answer", [
    ("delay=20", True, 200), ("close-before", False, None), ("close-after", True, None), ("503", False, (503, "ledger_unavailable")),
    ("500;applied=yes", True, (500, "internal_error")), ("500;applied=no", False, (500, "internal_error"))])
def test_a_fault_leaves_what_it_says_and_the_same_again_is_safe(house, fault, applied, answer):
    bet = debit(house.tries.player, f"fault {fault}".replace(" ", "-").replace(";", "-").replace("=", "-"), 100, game_id="baccarat", round_id="r-2")
    before = money(house, house.tries)
    got = ask(house, house.tries, bet, fault)
    assert (got if got is None else got.status if answer == 200 else got.error) == answer
    assert money(house, house.tries) == before - 100 * applied
    assert send(house, house.tries.key, bet).json()["balance_minor"] == before - 100
    assert money(house, house.tries) == before - 100


def delayed(server, customer, connection, milliseconds):
    body = json.dumps(debit(customer.player, "delayed", 100, game_id="baccarat", round_id="r-2")).encode()
    connection.send((f"POST /api/v1/casino/wallet HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {customer.key}\r\n"
                     f"X-Croupier-Fault: delay={milliseconds}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body)


def test_a_client_may_close_while_its_delay_lasts(house):
    before = money(house, house.tries)
    for _ in range(3):
        with house.connect() as connection:
            delayed(house, house.tries, connection, 100)
    eventually(lambda: house.metrics()["croupier_connections"] == 0)
    assert money(house, house.tries) in (before, before - 100)


def test_the_server_may_stop_while_a_delay_lasts(make_service):
    server = make_service({"server.drain_seconds": "1"})
    customer = server.add_customer("Tries", options=["--casino", "--sandbox", "on"])
    add_games(server, "baccarat", provider="trial", options=["--sandbox", "on"])
    server.start()
    server.await_admission(customer.key)
    customer.player, _, _ = launch(server, customer, "baccarat")
    with server.connect() as connection:
        delayed(server, customer, connection, 60000)
        eventually(lambda: server.metrics()["croupier_connections"] == 1)
        server.stop()  # which looks at how it ended


def test_launches_and_providers_have_faults_too(house):
    path = f"{GAMES}/baccarat/launch"
    for fault, status in (("503", 503), ("500;applied=yes", 500), ("delay=0", 200)):
        assert house.request("POST", path, key=house.tries.key, headers={**JSON, "X-Croupier-Fault": fault}, body=LAUNCH).status == status
    trial = Provider(house, "trial")
    bet = {"operation": "DEBIT", "player_id": house.tries.subject, "transaction_id": "of the provider".replace(" ", "-"), "amount_minor": 50, "currency": "EUR",
           "game_id": "baccarat", "launch_id": house.tries.launch, "round_id": "p-1"}
    before, body = money(house, house.tries), json.dumps(bet).encode()
    assert trial.post(body, {**trial.fields(body), "X-Croupier-Fault": "500;applied=yes"}).error == (500, "internal_error")
    assert money(house, house.tries) == before - 50
    assert trial.send(bet).json()["balance_minor"] == before - 50


def test_a_fault_that_is_none_is_refused(house):
    for faults in (("delay=60001",), ("delay=",), ("429",), ("close",), ("503", "503"), ("",)):
        assert ask(house, house.tries, balance(house.tries.player), *faults).error == (400, "invalid_request"), faults
    sports = "/api/v1/sports"
    limited = house.get(sports, key=house.tries.key, headers={"X-Croupier-Fault": "429"})
    assert limited.error == (429, "rate_limited") and limited.header("Retry-After") == "1"
    assert house.get(sports, key=house.tries.key, headers={"X-Croupier-Fault": "503"}).status == 400
    assert house.get(GAMES, key=house.tries.key, headers={"X-Croupier-Fault": "503"}).status == 200


def test_nobody_real_is_touched(house):
    acme, real = Provider(house, "acme"), house.real
    for number, fault in enumerate((*FAULTS, "429", "nonsense")):
        fields, before = {**JSON, "X-Croupier-Fault": fault}, money(house, real)
        assert ask(house, real, debit(real.player, f"real-{number}", 1, game_id="roulette", round_id="r-3"), fault).json()["balance_minor"] == before - 1
        assert house.request("POST", f"{GAMES}/roulette/launch", key=real.key, headers=fields, body=LAUNCH).status == 200
        assert house.get("/api/v1/sports", key=real.key, headers=fields).status == 200
        body = json.dumps({"operation": "BALANCE", "player_id": real.subject}).encode()
        assert acme.post(body, {**acme.fields(body), "X-Croupier-Fault": fault}).status == 200
        assert house.request("POST", f"{GAMES}/roulette/launch", headers=fields, body=LAUNCH).error == (403, "ip_not_allowed")
