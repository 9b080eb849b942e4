"""POST /provider/v1/wallet, from outside: what a provider of games may do with a player's money, and every refusal."""

import json
import random
import re
import time

import jsonschema
import pytest

from croupier import ROOT, Clock, Service, api_document, certificate, eventually, trusting
from wallet_model import (PATH, PROVIDER_PATH, Provider, add_games, balance, claims_of, credit, debit, launch, rollback,
                          send)

pytestmark = pytest.mark.depends_on("platform")

DOCUMENT = api_document("provider")
OPERATION = DOCUMENT["paths"][PROVIDER_PATH]["post"]
NOT_ADMITTED = (403, {"error": "not_admitted", "message": "Not admitted."})
OTHER_SECRET = "another secret, of the other provider"
DAY = 86400


@pytest.fixture(scope="module")
def casino(tmp_path_factory):
    clock = Clock(tmp_path_factory.mktemp("clock") / "clock")
    server = Service(tmp_path_factory.mktemp("provider"), {"provider.listen": "127.0.0.1:0"}, clock.environment)
    try:
        server.clock = clock
        server.customer = server.add_customer("Casino", options=["--casino"])
        add_games(server, "roulette", "dice", "lucky-7")
        add_games(server, "bingo", provider="other", secret=OTHER_SECRET)
        server.start()
        yield server
    finally:
        server.stop()


def validator(schema):
    return jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def check_document(body, response):
    """docs/provider.yaml against what was asked and answered."""
    answers = OPERATION["responses"]
    described = answers.get(str(response.status), answers.get("default"))
    if "$ref" in described:
        described = DOCUMENT["components"]["responses"][described["$ref"].rpartition("/")[2]]
    validator(described["content"]["application/json"]["schema"]).validate(response.json())
    asked = validator(OPERATION["requestBody"]["content"]["application/json"]["schema"])
    if response.status == 200:
        asked.validate(json.loads(body))
    elif response.error in ((400, "invalid_request"), (400, "unknown_field")) and body.startswith(b"{\""):
        assert not asked.is_valid(json.loads(body))


@pytest.fixture(scope="module")
def acme(casino):
    provider = Provider(casino)
    post = provider.post

    def checked(body, fields, path=PROVIDER_PATH, **more):
        response = post(body, fields, path, **more)
        check_document(body or b"", response)
        return response

    provider.post = checked
    send_now = provider.send
    # At the time that the server has.
    provider.send = lambda document, at=None: send_now(document, casino_time(casino) if at is None else at)
    return provider


def casino_time(casino):
    return time.time() + casino.clock.ahead[1] / 1e9


def ids():
    return f"t-{random.getrandbits(80):x}"


@pytest.fixture
def seat(casino):
    """A player that was launched, with 1000: (player, the provider's id of the player, launch)."""
    casino.count = getattr(casino, "count", 0) + 1
    seat = launch(casino, casino.customer, "roulette", f"player-{casino.count}")
    assert send(casino, casino.customer.key, credit(seat[0], ids(), 1000)).status == 200
    return seat


def stake(seat, identity, amount, **more):
    _, subject, launched = seat
    return debit(subject, identity, amount, **{"launch_id": launched, "game_id": "roulette", "round_id": "r-1", **more})


def win(seat, identity, amount, reference=None, **more):
    return credit(seat[1], identity, amount, reference, **{"round_id": "r-1", **more})


def held(casino, seat):
    return send(casino, casino.customer.key, balance(seat[0])).json()["balance_minor"]


def test_a_round_from_stake_to_win_has_its_documents(casino, acme, seat):
    player, subject, launched = seat
    bet, won = ids(), ids()
    first = acme.send(stake(seat, bet, 300))
    document = first.json()
    created = document.pop("created_at")
    assert created.endswith("Z") and first.header("Idempotent-Replayed") is None
    assert document == {
        "operation": "DEBIT", "player_id": subject, "transaction_id": bet, "reference_transaction_id": None,
        "status": "applied", "amount_minor": 300, "currency": "EUR", "currency_exponent": 2, "balance_minor": 700,
        "sequence": 2, "replayed": False}
    again = acme.send(stake(seat, bet, 300))
    assert again.json() == {**first.json(), "replayed": True} and again.header("Idempotent-Replayed") == "true"
    assert acme.send(stake(seat, bet, 300, launch_id="lau_0000000000000000")).error == (409, "transaction_conflict")
    document = acme.send(win(seat, won, 50, bet, game_id="roulette", launch_id=launched)).json()
    assert document["player_id"] == subject and document["balance_minor"] == 750
    assert acme.send(rollback(subject, ids(), bet)).error == (409, "already_settled")
    assert acme.send(rollback(subject, ids(), won)).json()["balance_minor"] == 700
    assert acme.send(rollback(subject, ids(), bet)).json()["balance_minor"] == 1000
    for more in ({}, {"reference_transaction_id": None}):
        assert acme.send({**balance(subject), **more}).json() == {
            "operation": "BALANCE", "player_id": subject, "currency": "EUR", "currency_exponent": 2,
            "balance_minor": 1000, "sequence": 5}


def signed_for_another(acme, body, at):
    return {**acme.fields(body, at), "X-Croupier-Provider": "other"}


def without(name):
    def fields(acme, body, at):
        return {field: value for field, value in acme.fields(body, at).items() if field != name}
    return fields


def altered(name, change):
    def fields(acme, body, at):
        fields = acme.fields(body, at)
        return {**fields, name: change(fields[name])}
    return fields


UNSIGNED = {
    "no provider": without("X-Croupier-Provider"), "no timestamp": without("X-Croupier-Timestamp"),
    "no signature": without("X-Croupier-Signature"),
    "another provider": signed_for_another,
    "an unknown provider": altered("X-Croupier-Provider", lambda _: "nobody"),
    "a provider of a long name": altered("X-Croupier-Provider", lambda _: "a" * 65),
    "one bit of the signature": altered("X-Croupier-Signature", lambda tag: tag[:-1] + chr(ord(tag[-1]) ^ 1)),
    "a signature of another kind": altered("X-Croupier-Signature", lambda tag: "v2" + tag[2:]),
    "capitals": altered("X-Croupier-Signature", lambda tag: "v1=" + tag[3:].upper() + "A"),
    "another timestamp": altered("X-Croupier-Timestamp", lambda at: str(int(at) + 1)),
    "no number": altered("X-Croupier-Timestamp", lambda at: at + ".0"),
    "a large number": altered("X-Croupier-Timestamp", lambda _: "9" * 30),
    "two signatures": lambda acme, body, at: [*acme.fields(body, at).items(),
                                              ("X-Croupier-Signature", acme.fields(body, at)["X-Croupier-Signature"])],
    "a minute ago": lambda acme, body, at: acme.fields(body, at - 61),
    "in a minute": lambda acme, body, at: acme.fields(body, at + 62),
    "a day ago": lambda acme, body, at: acme.fields(body, at - DAY),
}


@pytest.mark.parametrize("fields", UNSIGNED.values(), ids=UNSIGNED.keys())
def test_what_is_not_signed_is_not_admitted_and_moves_nothing(casino, acme, seat, fields):
    body = json.dumps(stake(seat, ids(), 10)).encode()
    response = acme.post(body, fields(acme, body, casino_time(casino)))
    assert (response.status, response.json()) == NOT_ADMITTED
    assert held(casino, seat) == 1000


def test_every_signed_call_again_later_and_with_one_bit_changed(casino, acme, seat):
    """Each kind of operation. tests/unit/api/test_provider_admission.c tries every bit."""
    bet, undone = ids(), ids()
    documents = [stake(seat, bet, 10), win(seat, ids(), 30, bet), stake(seat, undone, 5), rollback(seat[1], ids(), undone),
                 balance(seat[1])]
    calls = [(body, acme.fields(body, casino_time(casino))) for body in (json.dumps(one).encode() for one in documents)]
    for again in (False, True):
        for body, fields in calls:
            response = acme.post(body, fields)
            assert response.status == 200 and response.json().get("replayed", again) == again
    stands = acme.send(balance(seat[1])).json()
    assert (stands["balance_minor"], stands["sequence"]) == (1020, 5)
    for body, fields in calls:
        for at in random.Random(7).sample(range(len(body)), 5):
            changed = body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]
            assert acme.post(changed, fields).error == (403, "not_admitted")
    for seconds in (61, DAY):
        casino.clock.advance(wall=seconds)
        for body, fields in calls:
            assert acme.post(body, fields).error == (403, "not_admitted")
    assert acme.send(balance(seat[1])).json() == stands
    for document in documents[:-1]:  # signed again, they are retries, also when the session is over
        assert acme.send(document).json()["replayed"] is True


def test_a_launch_entitles_to_stakes_for_a_day_and_to_all_else_for_ever(casino, acme, seat):
    bet = ids()
    first = acme.send(stake(seat, bet, 10)).json()
    casino.clock.advance(wall=DAY + 1)
    assert acme.send(stake(seat, ids(), 10)).error == (422, "session_expired")
    assert acme.send(stake(seat, bet, 10)).json() == {**first, "replayed": True}
    assert acme.send(win(seat, ids(), 30, bet)).json()["balance_minor"] == 1020
    assert acme.send(win(seat, ids(), 5)).status == 200
    early = ids()
    assert acme.send(rollback(seat[1], ids(), early)).json()["status"] == "voided"
    again = launch(casino, casino.customer, "roulette", f"player-{casino.count}")
    assert again[:2] == seat[:2] and again[2] != seat[2]
    assert acme.send(stake(again, early, 10)).error == (409, "transaction_rolled_back")
    assert acme.send(stake(again, ids(), 10)).status == 200


def test_a_stake_needs_a_launch_for_money_of_this_player_by_this_provider(casino, acme, seat):
    other = launch(casino, casino.customer, "roulette", "somebody-else")
    theirs = launch(casino, casino.customer, "bingo", f"player-{casino.count}")
    demo = casino.request("POST", "/api/v1/casino/games/roulette/launch", key=casino.customer.key,
                          headers={"Content-Type": "application/json"}, body=b'{"mode": "demo"}').json()
    for launched in (other[2], theirs[2], demo["launch_id"], "lau_0000000000000000"):
        assert acme.send(stake(seat, ids(), 10, launch_id=launched)).error == (422, "session_expired")
    assert acme.send(balance(claims_of(demo["launch_url"])["sub"])).error == (404, "player_not_found")
    assert held(casino, seat) == 1000


def test_a_stake_may_be_in_any_game_of_the_provider_and_a_win_names_the_game_that_it_counts_for(casino, acme, seat):
    bet = ids()
    first = acme.send(stake(seat, bet, 10, game_id="dice"))
    assert first.status == 200  # launched with roulette
    assert acme.send(win(seat, ids(), 30, bet)).status == 200
    assert acme.send(win(seat, ids(), 7, bet, game_id="none-of-theirs", launch_id="lau_0000000000000000")).status == 200
    day = first.json()["created_at"][:10]
    wins = {line["game_id"]: line["wins_minor"] for line in casino.ask("wallet", "report", "--day", day)["lines"]}
    assert wins["dice"] == 30 and wins["none-of-theirs"] == 7


def test_another_provider_sees_nothing_of_the_first(casino, acme, seat):
    other = Provider(casino, "other", OTHER_SECRET)
    send_now = other.send
    other.send = lambda document: send_now(document, casino_time(casino))
    bet, named = ids(), ids()
    assert acme.send(stake(seat, bet, 100, round_id=named)).status == 200
    for document in (balance(seat[1]), win(seat, ids(), 10), rollback(seat[1], ids(), bet), balance(seat[0]),
                     stake(seat, ids(), 10, game_id="bingo"), credit("ply_nobody", ids(), 1, round_id="r")):
        assert other.send(document).error == (404, "player_not_found")
    theirs = launch(casino, casino.customer, "bingo", f"player-{casino.count}")
    assert theirs[0] == seat[0] and theirs[1] != seat[1]  # one player, under two names
    assert other.send(stake(theirs, ids(), 10)).error == (404, "game_not_found")  # the first one's
    assert other.send(stake(theirs, ids(), 10, game_id="bingo", launch_id=seat[2])).error == (422, "session_expired")
    assert other.send(win(theirs, ids(), 10, bet)).error == (404, "reference_not_found")
    assert other.send(rollback(theirs[1], ids(), bet)).json()["status"] == "voided"  # its own of that name
    assert other.send(stake(theirs, bet, 10, game_id="bingo")).error == (409, "transaction_rolled_back")
    assert held(casino, seat) == 900
    assert other.send(stake(theirs, ids(), 30, game_id="bingo", round_id=named)).status == 200  # another round of that name
    rounds = casino.ask("wallet", "export", "--rounds", "--customer", casino.customer.id)["rounds"]
    assert {one["provider"]: one["stakes_minor"] for one in rounds if one["round_id"] == named} == {"acme": 100, "other": 30}
    assert acme.send(rollback(seat[1], ids(), bet)).json()["status"] == "applied"


def test_ids_of_a_provider_and_of_the_customer_are_two(casino, acme, seat):
    key, bet = casino.customer.key, ids()
    assert send(casino, key, debit(seat[0], bet, 100)).json()["balance_minor"] == 900
    assert acme.send(stake(seat, bet, 10)).json()["balance_minor"] == 890
    assert send(casino, key, rollback(seat[0], ids(), bet)).json()["amount_minor"] == 100
    assert acme.send(rollback(seat[1], ids(), bet)).json()["amount_minor"] == 10
    lone = ids()
    assert acme.send(stake(seat, lone, 10)).status == 200
    assert send(casino, key, rollback(seat[0], ids(), lone)).json()["status"] == "voided"
    assert send(casino, key, credit(seat[0], ids(), 1, lone)).error == (409, "transaction_rolled_back")
    assert held(casino, seat) == 990


def test_a_disabled_game_takes_no_stakes_and_pays_wins(casino, acme, seat):
    bet = ids()
    played = launch(casino, casino.customer, "lucky-7", f"player-{casino.count}")
    assert acme.send(stake(played, bet, 10, game_id="lucky-7")).status == 200
    casino.run("game", "disable", "lucky-7")
    eventually(lambda: acme.send(stake(played, ids(), 1, game_id="lucky-7")).status == 404)
    assert acme.send(stake(played, bet, 10, game_id="lucky-7")).json()["replayed"] is True
    assert acme.send(win(played, ids(), 20, bet, game_id="lucky-7")).status == 200


def test_a_disabled_provider_and_one_that_calls_from_elsewhere_are_not_admitted(casino, acme, seat):
    def refused():
        response = acme.send(balance(seat[1]))
        return (response.status, response.json()) == NOT_ADMITTED

    assert not refused()
    for off, on in ((("disable", "acme"), ("enable", "acme")),
                    (("set", "acme", "--cidr", "192.0.2.0/24"), ("set", "acme", "--no-cidrs")),
                    (("set", "acme", "--cidr", "192.0.2.0/24"), ("set", "acme", "--cidr", "127.0.0.0/8"))):
        casino.run("provider", *off)
        eventually(refused)
        casino.run("provider", *on)
        eventually(lambda: not refused())
    assert casino.ask("provider", "show", "acme")["cidrs"] == ["127.0.0.0/8"]
    casino.run("provider", "set", "acme", "--no-cidrs")
    lines = [line for line in casino.log_lines() if line.get("message") == "request" and "reason" in line]
    assert {(reason, "acme") for reason in ("provider_disabled", "provider_address_not_listed")} <= {
        (line["reason"], line.get("provider")) for line in lines}


def test_what_a_disabled_provider_was_refused_is_booked_when_it_is_sent_again(casino, acme, seat):
    bet = ids()
    assert acme.send(stake(seat, bet, 10)).status == 200
    casino.run("provider", "disable", "acme")
    try:
        eventually(lambda: acme.send(balance(seat[1])).status == 403)
        late = [win(seat, ids(), 30, bet), rollback(seat[1], ids(), ids()), stake(seat, ids(), 5)]
        assert all(acme.send(document).error == (403, "not_admitted") for document in late)
    finally:
        casino.run("provider", "enable", "acme")
    eventually(lambda: acme.send(balance(seat[1])).status == 200)
    assert [acme.send(document).json()["replayed"] for document in late] == [False] * 3
    assert held(casino, seat) == 1000 - 10 + 30 - 5


def test_the_document_names_every_field_that_signs_and_that_of_faults():
    assert DOCUMENT["openapi"].startswith("3.1.")
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    schemes = DOCUMENT["components"]["securitySchemes"]
    assert DOCUMENT["security"] == [{name: [] for name in schemes}]
    assert {parameter["name"] for parameter in [*OPERATION["parameters"], *schemes.values()]} == {
        "X-Croupier-Provider", "X-Croupier-Timestamp", "X-Croupier-Signature", "X-Croupier-Key-Id", "X-Croupier-Fault"}


def test_each_of_two_secrets_signs_until_it_is_retired(casino, acme, seat):
    former = [secret["kid"] for secret in casino.ask("provider", "show", "acme")["secrets"]]
    added = Provider(casino, "acme", "a newer secret, of the same provider")
    casino.run("provider", "secret", "add", "acme", input=added.secret)
    [newer] = {secret["kid"] for secret in casino.ask("provider", "show", "acme")["secrets"]} - set(former)
    body = json.dumps(balance(seat[1])).encode()

    def post(provider, kid=None):
        fields = provider.fields(body, casino_time(casino))
        return acme.post(body, fields if kid is None else {**fields, "X-Croupier-Key-Id": kid}).status

    try:
        eventually(lambda: post(added) == 200)
        assert (post(acme), post(added, newer), post(acme, newer), post(added, "00000000")) == (200, 200, 403, 403)
        assert (post(acme, "first"), post(added, "first")) == (200, 403)
        for kids in ((newer, "00000000"), ("00000000", newer), (newer, newer)):
            for provider in (acme, added):
                fields = [*provider.fields(body, casino_time(casino)).items(), *(("X-Croupier-Key-Id", kid) for kid in kids)]
                assert acme.post(body, fields).error == (403, "not_admitted")
    finally:
        casino.run("provider", "secret", "retire", "acme", newer)
    eventually(lambda: post(added) == 403)
    assert post(acme) == 200


def test_each_listener_has_its_own_paths(casino, acme, seat):
    body = json.dumps(balance(seat[1])).encode()
    fields = acme.fields(body, casino_time(casino))
    assert acme.post(body, fields, "/provider/v1/nothing").error == (404, "not_found")
    assert acme.post(body, fields, PATH).error == (404, "not_found")
    assert acme.post(body, {}, "/provider/v1/nothing").error == (403, "not_admitted")
    empty = acme.fields(b"", casino_time(casino))
    response = acme.post(None, empty, method="GET")
    assert response.error == (405, "method_not_allowed") and response.header("Allow") == "POST"
    assert casino.request("POST", PROVIDER_PATH, key=casino.customer.key, headers=fields,
                          body=body).error == (404, "not_found")
    assert acme.post(body, {**fields, "Content-Encoding": "gzip"}).error == (415, "unsupported_media_type")


@pytest.mark.parametrize("rest, error", [
    (b" HTTP/1.1\r\n\r\n", (400, "bad_request")), (b" HTTP/3.0\r\nHost: a\r\n\r\n", (505, "version_not_supported")),
    (b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", (414, "uri_too_long")),
    (b" HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 17000 + b"\r\n\r\n", (431, "headers_too_large")),
    (b" HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", (501, "not_implemented")),
    (b" HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", (417, "expectation_failed"))], ids=lambda value: value[1] if isinstance(value, tuple) else "")
def test_refusals_of_what_is_not_http_are_as_the_document_says(casino, rest, error):
    with casino.connect(address=casino.provider_address) as connection:
        connection.send(b"POST " + PROVIDER_PATH.encode() + rest)
        response = connection.receive()
    assert response.error == error
    check_document(b"", response)


BAD = {
    "no launch": lambda seat: {k: v for k, v in stake(seat, ids(), 1).items() if k != "launch_id"},
    "no game": lambda seat: {k: v for k, v in stake(seat, ids(), 1).items() if k != "game_id"},
    "no round": lambda seat: {k: v for k, v in stake(seat, ids(), 1).items() if k != "round_id"},
    "a win without a round": lambda seat: credit(seat[1], ids(), 1),
    "a launch that is none": lambda seat: stake(seat, ids(), 1, launch_id="bet-1"),
    "a launch that is too long": lambda seat: stake(seat, ids(), 1, launch_id="lau_" + "a" * 20),
    "a rollback with a launch": lambda seat: {**rollback(seat[1], ids(), ids()), "launch_id": seat[2]},
    "a stake with a kind": lambda seat: stake(seat, ids(), 1, kind="win"),
    "a kind that is none": lambda seat: win(seat, ids(), 1, kind="bonus"),
    "an end that is no yes or no": lambda seat: win(seat, ids(), 1, round_ended="true"),
    "a rollback with a kind": lambda seat: {**rollback(seat[1], ids(), ids()), "kind": "win"},
    "a balance that ends a round": lambda seat: {**balance(seat[1]), "round_ended": True},
    "no JSON": lambda seat: b"{",
    "an array": lambda seat: b"[]",
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD.keys())
def test_what_cannot_be_read_moves_nothing(casino, acme, seat, make):
    assert acme.send(make(seat)).error == (400, "invalid_request")
    assert held(casino, seat) == 1000


def test_other_refusals(casino, acme, seat):
    assert acme.send({**balance(seat[1]), "customer_id": "x"}).error == (400, "unknown_field")
    assert acme.send(stake(seat, ids(), 10, currency="USD")).error == (422, "currency_mismatch")
    assert acme.send(stake(seat, ids(), 1001)).error == (422, "insufficient_funds")
    assert acme.send(stake(seat, ids(), 10, game_id="nothing")).error == (404, "game_not_found")
    assert acme.send(b" " * 16385).error == (413, "payload_too_large")
    taken = ids()
    assert acme.send(stake(seat, taken, 10)).status == 200
    assert acme.send(stake(seat, taken, 11)).error == (409, "transaction_conflict")
    other = launch(casino, casino.customer, "roulette", "somebody-else")
    assert acme.send(win(other, ids(), 1, taken)).error == (409, "transaction_conflict")
    assert acme.send(rollback(other[1], ids(), taken)).error == (409, "transaction_conflict")


def test_the_operator_sees_who_moved_it(casino, acme, seat):
    bet = ids()
    assert acme.send(stake(seat, bet, 30)).status == 200
    entries = casino.ask("wallet", "statement", seat[0])["entries"]
    assert [(entry["provider"], entry["launch_id"], entry["game_id"], entry["round_id"]) for entry in entries] == [
        (None, None, None, None), ("acme", seat[2], "roulette", "r-1")]
    assert f"{bet} by acme" in casino.run("wallet", "statement", seat[0]).text
    assert casino.ask("wallet", "transaction", "acme", bet)["launch_id"] == seat[2]
    assert f"moved by provider acme, launch {seat[2]}" in casino.run("wallet", "transaction", "acme", bet).text
    assert casino.run("wallet", "transaction", casino.customer.id, bet, status=1).errors
    assert casino.ask("wallet", "verify")["sound"] is True
    metrics = casino.metrics()
    assert metrics["croupier_provider_not_admitted_total"] >= 0
    eventually(lambda: [line for line in casino.log_lines() if line.get("provider") == "acme"])


def test_a_kind_and_the_end_of_a_round_are_kept_and_belong_to_the_request(casino, acme, seat):
    bet, free, jackpot, undo = (ids() for _ in range(4))
    key, player, subject = casino.customer.key, seat[0], seat[1]
    calls = [stake(seat, bet, 30, round_ended=True), stake(seat, free, 0), win(seat, jackpot, 500, free, kind="jackpot"),
             {**rollback(subject, undo, bet), "round_ended": True}, win(seat, ids(), 7, kind="promo", round_id="r-2", round_ended=True)]
    answers = [acme.send(call) for call in calls]
    assert [answer.json()["balance_minor"] for answer in answers] == [970, 970, 1470, 1500, 1507]
    for call, answer in zip(calls, answers):
        assert acme.send(call).json() == {**answer.json(), "replayed": True}
        said = {"round_ended": False, **call}
        assert acme.send({**said, "round_ended": not said["round_ended"]}).error == (409, "transaction_conflict")
    assert acme.send({**calls[2], "kind": "win"}).error == (409, "transaction_conflict")
    assert acme.send({**calls[1], "round_ended": False}).json()["replayed"]  # what is not said is false, or a win
    lone = win(seat, ids(), 1)
    assert [acme.send({**lone, **more}).json()["replayed"] for more in ({}, {"kind": "win"})] == [False, True]
    entries = casino.ask("wallet", "statement", player)["entries"]
    assert [(entry["kind"], entry["round_ended"]) for entry in entries] == [
        (None, False), (None, True), (None, False), ("jackpot", False), (None, True), ("promo", True), ("win", False)]
    exported = [entry for entry in casino.ask("wallet", "export", "--customer", casino.customer.id)["entries"] if entry["player_id"] == player]
    assert exported == entries
    assert casino.ask("wallet", "transaction", "acme", jackpot)["kind"] == "jackpot"
    assert casino.ask("wallet", "verify")["sound"] is True
    for more in ({"kind": "win"}, {"round_ended": False}):  # the customer has neither
        assert send(casino, key, credit(player, ids(), 1, **more)).error == (400, "unknown_field")
    assert send(casino, key, debit(player, ids(), 0)).error == (400, "invalid_request")


@pytest.mark.only("sqlite")
def test_a_launch_that_a_restored_store_does_not_have_entitles_to_nothing(tmp_path):
    """A backup is put in the place of a server's store."""
    server = Service(tmp_path / "house", {"provider.listen": "127.0.0.1:0"}, own_stores=True)
    try:
        server.customer = server.add_customer("Casino", options=["--casino"])
        add_games(server, "roulette")
        add_games(server, "bingo", provider="other", secret=OTHER_SECRET)
        server.start()
        server.await_admission(server.customer.key)
        seat = launch(server, server.customer, "roulette")
        assert send(server, server.customer.key, credit(seat[0], "in", 1000)).status == 200
        server.run("backup", tmp_path / "backup", "--no-odds")
        other = Provider(server, "other", OTHER_SECRET)
        later = launch(server, server.customer, "bingo")
        assert other.send(stake(later, "bet-1", 100, game_id="bingo")).status == 200
        server.stop()
        for former in server.platform.path.parent.glob("platform.db*"):
            former.rename(tmp_path / former.name)
        (tmp_path / "backup" / "platform.db").rename(server.platform.path)
        server.start()
        other = Provider(server, "other", OTHER_SECRET)
        assert other.send(stake(later, "bet-2", 100, game_id="bingo")).error == (404, "player_not_found")
        acme = Provider(server)
        assert acme.send(stake(seat, "bet-2", 100)).json()["balance_minor"] == 900  # it has this one
    finally:
        server.stop()


def test_providers_may_be_spoken_to_by_tls_alone(tmp_path):
    paths = certificate(tmp_path)
    server = Service(tmp_path / "service", {"provider.listen": "127.0.0.1:0", "provider.tls_certificate": paths[0],
                                            "provider.tls_key": paths[1]})
    try:
        add_games(server, "roulette")
        server.start()
        provider = Provider(server)
        body = json.dumps(balance("m52qaErTonQlsfbZ8JQx2g")).encode()
        assert provider.post(body, provider.fields(body)).error == (400, "https_required")
        server.address, server.tls = server.provider_address, trusting(paths[0])
        response = server.request("POST", PROVIDER_PATH, headers=provider.fields(body), body=body)
        assert response.error == (404, "player_not_found")
    finally:
        server.tls = None
        server.stop()


# A row of the first table: operation, members, more words, HTTP status, answer, balance.
WORKED = re.compile(r"^\| ([A-Z]+) \| `(\{.*?\})`(.*?) \| (\d+) \| `(\w+)` \| (\d+) \|$", re.MULTILINE)


def test_the_worked_refusals_of_the_manual(casino, acme, seat):
    text = (ROOT / "docs/providers.md").read_text().partition("### Every refusal, worked")[2]
    calls = json.loads(text.partition("```json")[2].partition("```")[0])
    rows = WORKED.findall(text)
    assert len(rows) == len(re.findall("^[|] [A-Z]+ [|]", text, re.MULTILINE)) >= 20
    calls["DEBIT"].update(game_id="roulette", launch_id=seat[2])
    other = Provider(casino, secret=OTHER_SECRET)
    for operation, members, words, status, answer, after in rows:
        document = {"player_id": seat[1], **calls[operation], **json.loads(members)}
        sender = other if "another secret" in words else acme
        if "blocked" in words:
            casino.run("player", "block", seat[0])
        response = sender.send({name: value for name, value in document.items() if value is not None})
        said = response.json()
        assert (response.status, said.get("status", said.get("error"))) == (int(status), answer), (members, said)
        assert said.get("replayed", False) == ("again" in words), members
        assert held(casino, seat) == int(after), members
    shown = {answer for *_, answer, _ in rows}
    listed = re.findall(r"^4\d\d (\w+) ", (ROOT / "src/wallet/errors.txt").read_text(), re.MULTILINE)
    assert set(listed) - shown == {"balance_limit_exceeded"}  # nobody comes there in a few calls


# A row of the second table: test, operation, members, HTTP status, answer, balance, state of the round.
TRIED = re.compile(r"^\| ([a-z].*?) \| ([A-Z]+) \| `(\{.*?\})` \| (\d+) \| `(\w+)` \| (\d+) \| (\w+) \|$", re.MULTILINE)


def test_the_provider_s_test_list_of_the_manual(casino, acme, seat):
    text = (ROOT / "docs/providers.md").read_text()
    calls = json.loads(text.partition("### Every refusal, worked")[2].partition("```json")[2].partition("```")[0])
    text = text.partition("### A list for your tests")[2]
    rows = TRIED.findall(text)
    assert len(rows) == text.count("\n| ") - 1 >= 20  # less its head
    calls["DEBIT"].update(game_id="roulette", launch_id=seat[2])

    def round_of(identity):
        rounds = casino.ask("wallet", "rounds", "--provider", "acme")
        return next((one for one in rounds if (one["player_id"], one["round_id"]) == (seat[0], identity)), None)

    identity, blocked = None, False
    for name, operation, members, status, answer, after, state in rows:
        document = {"player_id": seat[1], **calls[operation], **json.loads(members)}
        document = {member: value for member, value in document.items() if value is not None}
        identity = document.get("round_id", identity)  # a rollback's is the one before
        if blocked != ("blocked" in name):
            blocked = not blocked
            casino.run("player", *(("block",) if blocked else ("unblock", "--early", "--reason", "over")), seat[0])
        first = acme.send(document)
        said = first.json()
        assert (first.status, said.get("status", said.get("error"))) == (int(status), answer), (name, said)
        again = acme.send(document)
        assert (again.status, again.json()) == (first.status, {**said, "replayed": True} if first.status == 200 else said), name
        assert held(casino, seat) == int(after), name
        if state != "none":
            assert round_of(identity)["state"] == state, name
    assert (round_of("r-8")["ends"], round_of("r-8")["bet_after_end"], round_of("r-8")["stake_minor"]) == (2, True, 1000)
    assert round_of("r-5") is None  # nothing was entered in it
    [shown] = [line for line in casino.run("wallet", "rounds", "--open").text.splitlines() if seat[0] in line]
    assert "r-8" in shown and "open" in shown
    assert casino.ask("wallet", "verify")["sound"] is True
    report = casino.ask("wallet", "report", "--customer", casino.customer.id, "--provider", "acme")
    [line] = [line for line in report["totals"] if line["currency"] == "EUR"]
    assert line["promos_minor"] >= 500 and line["jackpots_minor"] >= 5000 and line["adjustments"] >= 1
