"""Customers and providers that try things out (docs/sandbox.md)."""

import pytest

from croupier import Service
from wallet_model import Provider, add_games, credit, debit, launch, send

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
