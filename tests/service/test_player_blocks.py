"""Players who must not play: blocked by id or by reference, with a reason and an end, in every server."""

import json
import random
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

from croupier import Clock, Service, eventually
from wallet_model import Provider, add_games, add_player, credit, debit, launch, rollback, send

pytestmark = pytest.mark.depends_on("platform")


@pytest.fixture(scope="module")
def casino(tmp_path_factory):
    directory = tmp_path_factory.mktemp("blocks")
    clock = Clock(directory / "clock")
    server = Service(directory, {"provider.listen": "127.0.0.1:0"}, environment=clock.environment)
    server.clock = clock
    try:
        server.customer = server.add_customer("Casino", options=["--casino"])
        server.other = server.add_customer("Other", options=["--casino"])
        add_games(server, "roulette")
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def reference(casino):
    casino.count = getattr(casino, "count", 0) + 1
    return f"player-{casino.count}"


def ids():
    return f"t-{random.getrandbits(80):x}"


def stake(server, player, currency="EUR"):
    return send(server, server.customer.key, debit(player, ids(), 1, currency, round_id="r"))


def may_play(server, player, currency="EUR"):
    """A stake is judged before its money is looked for."""
    answer = stake(server, player, currency)
    assert answer.error in ((403, "player_blocked"), (422, "insufficient_funds")), answer
    return answer.status == 422


def try_launch(server, reference, currency="EUR", customer=None):
    body = {"mode": "real", "player_reference": reference, "currency": currency}
    return server.request("POST", "/api/v1/casino/games/roulette/launch", key=(customer or server.customer).key,
                          headers={"Content-Type": "application/json"}, body=json.dumps(body).encode())


def ahead(casino, **duration):
    """A time from the server's now."""
    at = datetime.now(timezone.utc) + timedelta(seconds=casino.clock.ahead[1] // 1_000_000_000, **duration)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def refused(casino, *arguments, status=1):
    done = casino.run("player", *arguments, status=status)
    assert done.text == "" and done.errors.count("\n") == 1, done.errors
    return done.errors


def lift(casino, *named):
    return casino.ask("player", "unblock", *named, "--early", "--reason", "over")


def changes(casino, identity):
    return casino.ask("audit", "list", "--object", identity)


def test_a_reference_is_blocked_in_every_currency_also_in_a_later_one(casino, reference):
    customer = casino.customer.id
    euro = add_player(casino, casino.customer, reference)
    namesake = add_player(casino, casino.other, reference)
    said = casino.run("player", "block", customer, reference, "--reason", "self-exclusion")
    assert said.text == f"{customer} {reference} is blocked in every currency.\n"
    assert not may_play(casino, euro)
    assert try_launch(casino, reference).error == (403, "player_blocked")
    assert try_launch(casino, reference, "JPY").error == (403, "player_blocked")  # its first launch in yen
    shown = casino.ask("player", "show", euro)
    assert [block["id"] for block in shown["blocks"]] == [f"{customer}:{reference}"]
    assert shown["blocks"][0]["reason"] == "self-exclusion" and shown["blocks"][0]["player_id"] is None
    assert shown["blocked_at"] == shown["blocks"][0]["blocked_at"] and shown["blocked_until"] is None
    assert casino.ask("player", "show", namesake)["blocks"] == []
    assert try_launch(casino, reference, customer=casino.other).status == 200
    said = refused(casino, "unblock", euro)
    assert "is blocked by its reference" in said and f"unblock {customer} '{reference}'" in said
    lift(casino, customer, reference)
    assert may_play(casino, euro)
    assert try_launch(casino, reference, "JPY").status == 200


def test_a_reference_is_blocked_before_there_is_a_player_of_it(casino, reference):
    block = casino.ask("player", "block", casino.customer.id, reference)
    assert block == {"id": f"{casino.customer.id}:{reference}", "customer": casino.customer.id, "player_reference": reference,
                     "player_id": None, "by": "operator", "blocked": True, "blocked_at": block["blocked_at"], "until": None, "reason": ""}
    assert block in casino.ask("player", "blocks", casino.customer.id)
    assert block not in casino.ask("player", "blocks", casino.other.id)
    assert try_launch(casino, reference).error == (403, "player_blocked")
    assert lift(casino, casino.customer.id, reference)["blocked"] is False
    assert reference not in casino.run("player", "blocks").text
    assert try_launch(casino, reference).status == 200


def test_a_block_ends_by_itself(casino, reference):
    player = add_player(casino, casino.customer, reference)
    until = ahead(casino, hours=1)
    assert casino.ask("player", "block", player, "--until", until)["blocked_until"] == until.replace("Z", ".000Z")
    assert casino.ask("player", "show", player)["blocks"][0]["until"] == until.replace("Z", ".000Z")
    assert not may_play(casino, player)
    casino.clock.advance(wall=3500)
    assert not may_play(casino, player)
    assert try_launch(casino, reference).error == (403, "player_blocked")
    casino.clock.advance(wall=100)
    assert may_play(casino, player)
    assert try_launch(casino, reference).status == 200
    shown = casino.ask("player", "show", player)
    assert (shown["blocked_at"], shown["blocked_until"], shown["blocks"]) == (None, None, [])
    assert player not in casino.run("player", "blocks").text
    # A later block is a new one.
    assert casino.ask("player", "block", player)["blocked_until"] is None
    assert "is not blocked" in casino.run("player", "unblock", player, "--early", "--reason", "over").text


def test_before_its_end_a_block_is_taken_away_only_with_a_reason(casino, reference):
    player = add_player(casino, casino.customer, reference)
    casino.run("player", "block", player, "--reason", "asked for it", "--until", "30d")
    end = casino.ask("player", "show", player)["blocked_until"]
    assert f"is blocked until {end}" in refused(casino, "unblock", player)
    assert f"is blocked until {end}" in refused(casino, "unblock", player, "--reason", "a mistake")
    for reason in ((), ("--reason", ""), ("--reason", "  ")):
        assert "reason: " in refused(casino, "unblock", player, "--early", *reason, status=2)
    # Nor by way of another end.
    assert "cannot become earlier" in refused(casino, "block", player, "--until", "1s")
    assert casino.ask("player", "block", player)["blocked_until"] == end
    assert casino.ask("player", "block", player, "--until", "31d")["blocked_until"] > end
    assert casino.ask("player", "show", player)["blocks"][0]["reason"] == "asked for it"
    assert not may_play(casino, player)
    assert casino.ask("player", "unblock", player, "--early", "--reason", "a mistake")["blocked_at"] is None
    assert may_play(casino, player)
    last, longer, first = changes(casino, player)
    assert (last["kind"], last["command"]) == ("block", "player unblock")
    assert last["after"] == {"blocked_ms": None, "until_ms": None, "reason": "a mistake"}
    assert last["before"]["reason"] == "asked for it" and last["before"]["until_ms"] == longer["after"]["until_ms"]
    assert (first["before"], first["after"]["reason"], first["after"]["player_id"]) == (None, "asked for it", player)


def test_a_block_without_an_end_is_taken_away_only_with_a_reason(casino, reference):
    """The strictest block is not the easiest to lift."""
    player = add_player(casino, casino.customer, reference)
    for named in ((player,), (casino.customer.id, reference)):
        identity = ":".join(named)
        casino.run("player", "block", *named, "--reason", "self-exclusion")
        for given in ((), ("--reason", "a mistake")):
            said = refused(casino, "unblock", *named, *given)
            assert f"'{identity}' is blocked without an end; to unblock it, give early and a reason" in said
        for given in (("--early",), ("--early", "--reason", ""), ("--early", "--reason", " ")):
            assert "reason: " in refused(casino, "unblock", *named, *given, status=2)
        assert "reason: must not be empty" in refused(casino, "block", *named, "--reason", "", status=2)
        # Nor by way of an end.
        said = refused(casino, "block", *named, "--until", "1h")
        assert f"'{identity}' is blocked without an end; an end cannot become earlier" in said
        assert not may_play(casino, player) and changes(casino, identity)[0]["command"] == "player block"
        casino.run("player", "unblock", *named, "--early", "--reason", "a mistake")
        assert may_play(casino, player)
        last, first = changes(casino, identity)
        assert (last["command"], last["after"]["reason"], first["after"]["reason"]) == ("player unblock", "a mistake", "self-exclusion")


def test_a_break_becomes_an_exclusion_for_good(casino, reference):
    player = add_player(casino, casino.customer, reference)
    for named in ((player,), (casino.customer.id, reference)):
        identity = ":".join(named)
        casino.run("player", "block", *named, "--until", "1h", "--reason", "a break")
        casino.run("player", "block", *named, "--no-until")
        assert "cannot become earlier" in refused(casino, "block", *named, "--until", "90d")
        assert "contradict" in casino.run("player", "block", *named, "--until", "1h", "--no-until", status=2).errors
        assert changes(casino, identity)[0]["after"] == {"until_ms": None}
        lift(casino, *named)
        casino.run("player", "block", *named, "--until", "1h")  # a block that was lifted holds no later one
        casino.clock.advance(wall=3700)
        assert may_play(casino, player)


def test_two_blocks_of_a_player_must_both_have_ended(casino, reference):
    player = add_player(casino, casino.customer, reference)
    casino.run("player", "block", player, "--until", "2d")
    casino.run("player", "block", casino.customer.id, reference, "--until", "1d", "--reason", "by name")
    shown = casino.ask("player", "show", player)
    assert [block["id"] for block in shown["blocks"]] == [player, f"{casino.customer.id}:{reference}"]
    assert shown["blocked_until"] == shown["blocks"][0]["until"] > shown["blocks"][1]["until"]
    text = casino.run("player", "show", player).text
    assert "by name" in text and f"{casino.customer.id}:{reference}" in text
    said = casino.run("player", "unblock", player, "--early", "--reason", "no")
    by_name = f"{casino.customer.id}:{reference}"
    by_name = f"{casino.customer.id}:{reference}"
    assert said.text == f"The block of {player} is lifted. That of {by_name} is in force still.\n"
    assert not may_play(casino, player)
    shown = casino.ask("player", "block", player)
    assert [block.get("standing") for block in shown["blocks"]] == [by_name, None]
    assert [block["id"] for block in lift(casino, player)["blocks"]] == [by_name]
    casino.run("player", "unblock", casino.customer.id, reference, "--early", "--reason", "no")
    assert may_play(casino, player)


def test_wins_and_rollbacks_of_a_blocked_player_still_come(casino, reference):
    acme = Provider(casino)

    def move(document):
        return acme.send(document, time.time() + casino.clock.ahead[1] / 1e9)

    add_player(casino, casino.customer, reference)
    launched, subject, session = launch(casino, casino.customer, "roulette", reference)
    more = {"launch_id": session, "game_id": "roulette", "round_id": "r"}
    bet, undone = ids(), ids()
    assert move(credit(subject, ids(), 100, round_id="r")).status == 200
    assert move(debit(subject, bet, 10, **more)).status == 200
    assert move(debit(subject, undone, 10, **more)).status == 200
    casino.run("player", "block", casino.customer.id, reference, "--until", "1d")
    late = ids()
    assert move(debit(subject, late, 10, **more)).error == (403, "player_blocked")
    assert move(credit(subject, ids(), 5, bet, round_id="r")).json()["balance_minor"] == 85
    assert move(rollback(subject, ids(), undone)).json()["balance_minor"] == 95
    assert send(casino, casino.customer.key, debit(launched, ids(), 95)).json()["balance_minor"] == 0  # paid out


def test_what_cannot_be_blocked_is_said(casino, reference):
    add_player(casino, casino.customer, reference)
    assert "player block CUSTOMER" in refused(casino, "block", reference, status=2)
    assert "there is no player 'ply_none'" in refused(casino, "block", "ply_none")
    assert "there is no customer 'cus_none'" in refused(casino, "block", "cus_none", reference)
    assert "there is no customer 'cus_none'" in refused(casino, "blocks", "cus_none")
    assert "customer: is not a customer id" in refused(casino, "block", "nobody", reference, status=2)
    for bad in ("", "a b", "x" * 65):
        refused(casino, "block", casino.customer.id, bad, status=2)
    assert "until: 'soon' is not a time" in refused(casino, "block", casino.customer.id, reference, "--until", "soon", status=2)
    assert "until: '2001-01-01' is not in the future" in refused(
        casino, "block", casino.customer.id, reference, "--until", "2001-01-01", status=2)
    assert "reason" in refused(casino, "block", casino.customer.id, reference, "--reason", "x" * 201, status=2)
    assert reference not in [block["player_reference"] for block in casino.ask("player", "blocks", casino.customer.id)]


@pytest.fixture
def second(casino, tmp_path):
    """Another server of the same stores."""
    settings = {f"{section}.{key}": value for (section, key), value in casino.settings.items()}
    server = Service(tmp_path / "second", settings, environment=casino.clock.environment, stores=False, odds=casino.odds,
                     platform=casino.platform)
    server.customer = casino.customer
    server.start()
    server.await_admission(server.customer.key)
    yield server
    server.stop()


def test_no_stake_that_comes_after_the_block_is_taken_in_any_server(casino, second, reference):
    """Both servers take stakes without a pause, and one is blocked meanwhile: at most the batches that are being decided
    at that moment are still taken."""
    player = add_player(casino, casino.customer, reference)
    assert send(casino, casino.customer.key, credit(player, ids(), 1_000_000)).status == 200
    blocked = threading.Event()
    wrong, taken = [], [0, 0]

    def play(at, server):
        refusals = 0
        while refusals < 20:
            late = blocked.is_set()
            answer = stake(server, player)
            if answer.status == 200:
                taken[at] += 1
                if late:
                    wrong.append(answer)
            else:
                assert answer.error == (403, "player_blocked"), answer
                refusals += 1

    players = [threading.Thread(target=play, args=(at, server)) for at, server in enumerate((casino, second)) for _ in range(2)]
    for thread in players:
        thread.start()
    eventually(lambda: min(taken) > 20)
    casino.run("player", "block", casino.customer.id, reference)
    blocked.set()
    for thread in players:
        thread.join()
    assert wrong == [] and casino.ask("wallet", "verify")["sound"]
    assert casino.ask("player", "show", player)["entries"] == sum(taken) + 1
