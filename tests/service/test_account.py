"""What a customer sees of its own, and changes: /api/v1/account (docs/account.md)."""

import json
import random
import threading
from datetime import datetime, timedelta, timezone

import pytest

from croupier import Service, eventually
from wallet_model import add_games, add_player, debit, send

pytestmark = pytest.mark.depends_on("platform")

ACCOUNT = "/api/v1/account"
READS = [ACCOUNT, *(f"{ACCOUNT}/{word}" for word in ("transactions", "players", "statement", "rounds", "days", "entries", "usage"))]
CHANGES = [ACCOUNT + "/block", ACCOUNT + "/keys"]
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")


class House:
    """A server with two customers, each with a key for each set of areas."""

    def __init__(self, directory, settings=None):
        self.server = Service(directory, settings)
        self.owner = self.server.add_customer("Acme", options=["--casino"])
        self.other = self.server.add_customer("Other", options=["--casino"])
        for customer in (self.owner, self.other):
            customer.manages_alone = self.key(customer, "--only", "manage")
            customer.reads = self.key(customer, "--only", "account")
            customer.manages = self.key(customer, "--only", "account,manage", "--may-issue", "sports,casino")
        add_games(self.server, "roulette")
        self.server.start()

    def key(self, customer, *options):
        return self.server.prepare("key", "issue", customer.id, *options).text.strip()

    def put(self, key=None, **body):
        return self.change("PUT", "/block", body, key)

    def make(self, key=None, **body):
        return self.change("POST", "/keys", body, key)

    def change(self, method, path, body, key=None, **fields):
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.server.request(method, ACCOUNT + path, key=key or self.owner.manages, body=sent,
                                   headers={"Content-Type": "application/json", **fields})

    def get(self, path="", key=None, method="GET", **options):
        return self.server.request(method, ACCOUNT + path, key=key or self.owner.reads, **options)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("account"))
    try:
        yield house
    finally:
        house.server.remove()


# ---- areas ------------------------------------------------------------------------------------------------


def answered(response):
    return response.status, response.body, response.header("Allow"), response.header("X-RateLimit-Limit")


@pytest.mark.parametrize("areas", [None, "sports", "casino", "sports,casino"])
def test_a_key_without_the_areas_sees_what_it_always_saw_on_every_path_by_every_method(house, areas):
    key = house.key(house.owner, *(["--only", areas] if areas else []))
    house.server.await_admission(key)
    unknown = {method: answered(house.server.request(method, "/api/v1/nothing", key=key)) for method in METHODS}
    assert unknown["GET"][0] == 404 and unknown["PUT"][0] == 404
    for path in (*READS, *CHANGES, ACCOUNT + "/", ACCOUNT + "/usage", ACCOUNT + "/x", ACCOUNT + "/keys?prefix=x"):
        for method in METHODS:
            assert answered(house.server.request(method, path, key=key)) == unknown[method], (method, path)
    assert house.server.get(ACCOUNT + "/events", key=key).error == (400, "invalid_sport")
    assert house.server.get(ACCOUNT).error == (403, "ip_not_allowed")


def test_a_key_has_the_routes_of_its_areas_alone(house):
    assert house.get().status == 200
    assert house.get(method="HEAD").status == 200
    assert house.get(key=house.owner.manages_alone).error == (403, "area_not_allowed")
    assert house.put(house.owner.reads, reference="x", blocked=True).error == (403, "area_not_allowed")
    assert house.make(house.owner.reads, only=["sports"]).error == (403, "area_not_allowed")
    refused = house.get("/keys", house.owner.manages)
    assert refused.error == (405, "method_not_allowed") and refused.header("Allow") == "POST, DELETE"
    refused = house.get("/block", house.owner.manages)
    assert refused.error == (405, "method_not_allowed") and refused.header("Allow") == "PUT"
    assert house.server.get("/api/v1/sports", key=house.owner.reads).json() == {"sports": []}
    assert house.server.get("/api/v1/casino/games", key=house.owner.reads).error == (403, "casino_access_disabled")
    refused = house.get(method="POST", body=b"")
    assert refused.error == (405, "method_not_allowed") and refused.header("Allow") == "GET, HEAD"
    assert house.get("/nothing").error == (404, "not_found")
    assert house.get("/events").error == (400, "invalid_sport")


def test_areas_are_words_and_only_an_operator_gives_them(house):
    server = house.server
    for options, wrong in ((("--only", "money"), "only: must be"), (("--only", ""), "only: must be"), (("--only", "sports,,casino"), "only: must be"),
                           (("--may-issue", "sports"), "may_issue: must be"),
                           (("--only", "manage", "--may-issue", "account"), "may_issue: must be")):
        assert wrong in server.run("key", "issue", house.owner.id, *options, status=2).errors, options
    issued = server.ask("key", "issue", house.owner.id, "--only", "manage,sports", "--may-issue", "casino")
    assert (issued["only"], issued["may_issue"], issued["made_by"]) == (["sports", "manage"], ["casino"], None)
    assert server.ask("key", "issue", house.owner.id, "--only", "casino,sports")["only"] is None
    assert "sports,manage" in server.run("key", "list", house.owner.id).text


# ---- the account ------------------------------------------------------------------------------------------


def test_a_customer_sees_itself_and_its_keys(house):
    seen = house.get().json()
    assert {name: seen[name] for name in ("name", "sports", "rate", "casino", "cidrs")} == {
        "name": "Acme", "sports": "all", "rate": None, "casino": True, "cidrs": ["127.0.0.0/8", "::1/128"]}
    assert seen["connections_max"] == 10000 and seen["waiting_max"] == 50000
    key = next(key for key in seen["keys"] if key["prefix"] == house.owner.reads[:8])
    assert key["areas"] == ["account"] and key["label"] == "" and key["expires_at"] is None and key["created_at"].endswith("Z")
    others = house.get(key=house.other.reads).json()
    assert others["name"] == "Other" and not {key["prefix"] for key in others["keys"]} & {key["prefix"] for key in seen["keys"]}
    assert "cus_" not in json.dumps(seen) and house.owner.reads not in json.dumps(seen)


# ---- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path, message", [
    ("?x=1", "The request takes no parameters."), ("?limit=5", "The request takes no parameters."),
])
def test_each_mistake_is_named(house, path, message):
    refused = house.get(path)
    assert refused.error == (400, "invalid_request") and refused.json()["message"] == message


@pytest.mark.parametrize("query, message", [
    ("", "The parameter prefix is missing."), ("?prefix=", "The parameter prefix must be the first 8 characters of a key (crk_…)."),
    *((f"?prefix={wrong}", "The parameter prefix must be the first 8 characters of a key (crk_…).")
      for wrong in ("crk_abcde", "crk_abc", "crk_")),
    ("?prefix=crk_abcd&prefix=crk_abcd", "The parameter prefix is given twice."),
    ("?prefix=crk_abcd&x=1", "The request has an unknown parameter. It may have prefix."),
])
def test_a_wrong_prefix_is_named(house, query, message):
    refused = house.change("DELETE", "/keys" + query, b"")
    assert refused.error == (400, "invalid_request") and refused.json()["message"] == message


OUTSIDE = "The field reference must be 1 to 64 letters, digits, '.', '_', ':' or '-'."
AHEAD = "must be a time in the future, as 2027-01-31T18:00:00Z."


@pytest.mark.parametrize("body, message", [
    ({}, "The field reference is missing."), ({"reference": "x"}, "The field blocked is missing."),
    ({"reference": "a/b", "blocked": True}, OUTSIDE), ({"reference": "", "blocked": True}, OUTSIDE), ({"reference": 7, "blocked": True}, OUTSIDE),
    ({"reference": "x", "blocked": "yes"}, "The field blocked must be true or false."),
    ({"reference": "x", "blocked": True, "until": "2001-01-01"}, "The field until " + AHEAD),
    ({"reference": "x", "blocked": True, "until": "90d"}, "The field until " + AHEAD),
    ({"reference": "x", "blocked": True, "until": "2099-01-31"}, "The field until " + AHEAD),  # at which time, and whose?
    ({"reference": "x", "blocked": True, "until": "9999-12-31T23:59:59-05:00"}, "The field until " + AHEAD),  # the year 10000
    ({"reference": "x", "blocked": True, "reason": "x" * 201}, "The field reason must be 1 to 200 bytes of text."),
    ({"reference": "x", "blocked": True, "reason": " "}, "The field reason must not be empty."),
    ({"reference": "x", "blocked": True, "early": True}, "The field early is only for taking a block away."),
    ({"reference": "x", "blocked": False, "until": "2099-01-01T00:00:00Z"}, "The field until is only for blocking."),
    (b'{"reference": "x", "reference": "x", "blocked": true}', "The body must be a JSON object that has no field twice."),
    (b"[]", "The body must be a JSON object that has no field twice."),
])
def test_a_wrong_block_is_named(house, body, message):
    refused = house.change("PUT", "/block", body)
    assert refused.error == (400, "invalid_request") and refused.json()["message"] == message


@pytest.mark.parametrize("body, message", [
    ({}, "The field only is missing."), ({"only": []}, "The field only must be a list of areas that the operator lets this key issue."),
    *(({"only": only}, "The field only must be a list of areas that the operator lets this key issue.")
      for only in ("sports", ["sports,casino"], [" sports"], ["account"], ["manage"], ["money"], [1], ["sports", "sports"], None)),
    ({"only": ["sports"], "label": "x" * 65}, "The field label must be 1 to 64 bytes of text."),
    ({"only": ["sports"], "expires_at": "2001-01-01T00:00:00Z"}, "The field expires_at " + AHEAD),
    ({"only": ["sports"], "expires_at": "9999-12-31T23:59:59-05:00"}, "The field expires_at " + AHEAD),
])
def test_a_wrong_key_is_named(house, body, message):
    refused = house.make(**body)
    assert refused.error == (400, "invalid_request") and refused.json()["message"] == message


def test_a_member_that_is_unknown_names_those_that_there_are(house):
    refused = house.put(reference="x", blocked=True, note="x")
    assert refused.error == (400, "unknown_field")
    assert refused.json()["message"] == "The request has an unknown field. It may have reference, blocked, until, reason, early."
    assert house.change("PUT", "/block", {}, **{"Content-Type": "text/plain"}).error == (400, "invalid_request")
    assert house.change("PUT", "/block", {}, **{"Content-Encoding": "gzip"}).error == (415, "unsupported_media_type")


# ---- blocks -----------------------------------------------------------------------------------------------


def may_play(house, player):
    answer = send(house.server, house.owner.key, debit(player, f"t-{random.getrandbits(80):x}", 1, "EUR", round_id="r"))
    assert answer.error in ((403, "player_blocked"), (422, "insufficient_funds")), answer
    return answer.status == 422


def test_a_player_is_blocked_while_either_side_blocks_it(house):
    server, owner = house.server, house.owner
    player = add_player(server, owner, "carol")
    assert may_play(house, player)
    blocked = house.put(reference="carol", blocked=True, reason="asked for it", until="2099-01-31T18:00:00Z")
    assert blocked.status == 200 and blocked.json() == {
        "reference": "carol", "blocked": True, "blocked_at": blocked.json()["blocked_at"], "until": "2099-01-31T18:00:00.000Z",
        "reason": "asked for it", "blocked_by_operator": False}
    assert not may_play(house, player)
    server.ask("player", "block", owner.id, "carol", "--reason", "ours")
    shown = server.ask("player", "show", player)
    assert {(block["by"], block["reason"]) for block in shown["blocks"]} == {("operator", "ours"), ("customer", "asked for it")}
    # Neither side lifts the other's.
    lifted = house.put(reference="carol", blocked=False, early=True, reason="over")
    assert lifted.status == 200 and lifted.json()["blocked"] is False and lifted.json()["blocked_by_operator"] is True
    assert not may_play(house, player)
    assert house.put(reference="carol", blocked=False, early=True, reason="over").error == (409, "blocked_by_operator")
    assert house.put(reference="carol", blocked=True).status == 200
    said = server.run("player", "unblock", owner.id, "carol", "--early", "--reason", "over").text
    assert said == f"The block of {owner.id} carol is lifted. That of {owner.id}/carol is in force still: the customer alone lifts its own.\n"
    assert not may_play(house, player)
    for named in ((owner.id, "carol"), (player,)):
        assert "alone unblocks it" in server.run("player", "unblock", *named, "--early", "--reason", "x", status=1).errors
    assert {(block["id"], block["by"]) for block in server.ask("player", "blocks", owner.id)} == {(f"{owner.id}/carol", "customer")}
    lifted = house.put(reference="carol", blocked=False, early=True, reason="over")
    assert lifted.status == 200 and not lifted.json()["blocked_by_operator"]
    assert may_play(house, player)


def test_a_block_is_in_every_currency_and_of_a_player_that_is_yet_to_come(house):
    assert house.put(reference="later", blocked=True).status == 200
    body = {"mode": "real", "player_reference": "later", "currency": "EUR"}
    launched = house.server.request("POST", "/api/v1/casino/games/roulette/launch", key=house.owner.key,
                                    headers={"Content-Type": "application/json"}, body=json.dumps(body).encode())
    assert launched.error == (403, "player_blocked")


def test_a_block_is_lifted_as_the_operator_s_is(house):
    assert house.put(reference="dave", blocked=True, until="2099-06-01T00:00:00Z", reason="a year").status == 200
    assert house.put(reference="dave", blocked=True, until="2099-01-01T00:00:00Z").error == (409, "block_conflict")
    assert house.put(reference="dave", blocked=False).error == (409, "block_conflict")
    refused = house.put(reference="dave", blocked=False, early=True)
    assert refused.json()["message"] == "The field reason is required to unblock."
    later = house.put(reference="dave", blocked=True, until="2099-07-01T00:00:00Z")
    assert later.json()["until"] == "2099-07-01T00:00:00.000Z" and later.json()["reason"] == "a year"
    assert house.put(reference="dave", blocked=False, early=True, reason="over").status == 200
    assert house.put(reference="dave", blocked=False).json()["blocked"] is False  # nothing to lift


def test_a_block_without_an_end_gets_none(house):
    """The strictest block is not the easiest to lift."""
    assert house.put(reference="trial-17", blocked=True, reason="self-excluded for good").json()["until"] is None
    for given in ({"blocked": False}, {"blocked": True, "until": "2099-01-01T00:00:00Z"}):
        assert house.put(reference="trial-17", **given).error == (409, "block_conflict")
    refused = house.put(reference="trial-17", blocked=True, until="2099-01-01T00:00:00Z", early=True, reason="over")
    assert refused.json()["message"] == "The field early is only for taking a block away."
    again = house.put(reference="trial-17", blocked=True).json()
    assert (again["until"], again["reason"]) == (None, "self-excluded for good")
    # A block that was lifted holds no later one.
    assert house.put(reference="trial-17", blocked=False, early=True, reason="a mistake").status == 200
    assert house.put(reference="trial-17", blocked=True, until="2099-01-01T00:00:00Z").json()["until"] == "2099-01-01T00:00:00.000Z"


@pytest.mark.parametrize("given", [{"until": None}, {}])
def test_a_break_becomes_an_exclusion_for_good(house, given):
    reference = f"for-good-{len(given)}"
    assert house.put(reference=reference, blocked=True, until="2098-12-10T00:00:00Z", reason="a break").status == 200
    assert house.put(reference=reference, blocked=False, until=None).error == (409, "block_conflict")
    for_good = house.put(reference=reference, blocked=True, **given).json()
    assert (for_good["blocked"], for_good["until"], for_good["reason"]) == (True, None, "a break")
    assert house.put(reference=reference, blocked=True, until="2098-12-10T00:00:00Z").error == (409, "block_conflict")


def test_a_block_of_one_player_by_the_operator_is_seen_beside_the_customer_s(house):
    """The operator's block is of one currency, by the player's id."""
    server, owner = house.server, house.owner
    add_player(server, owner, "frank", "JPY")
    player = add_player(server, owner, "frank")
    server.ask("player", "block", player, "--reason", "ours")
    assert house.put(reference="frank", blocked=False).error == (409, "blocked_by_operator")
    blocked = house.put(reference="frank", blocked=True)
    assert blocked.status == 200 and blocked.json()["blocked_by_operator"] is True
    lifted = house.put(reference="frank", blocked=False, early=True, reason="over")
    assert lifted.status == 200 and lifted.json()["blocked_by_operator"] is True
    assert not may_play(house, player)
    assert house.put(reference="frank", blocked=False, early=True, reason="over").error == (409, "blocked_by_operator")
    server.ask("player", "unblock", player, "--early", "--reason", "over")
    assert house.put(reference="frank", blocked=False).json()["blocked_by_operator"] is False
    assert may_play(house, player)


def test_a_block_of_the_operator_s_is_seen_after_the_customer_s_has_ended(clocked):
    server = clocked
    customer = server.add_customer("Acme", options=["--casino"])
    manages = server.run("key", "issue", customer.id, "--only", "manage").text.strip()
    server.await_admission(manages)

    def put(**body):
        return server.request("PUT", ACCOUNT + "/block", key=manages, headers={"Content-Type": "application/json"},
                              body=json.dumps({"reference": "grace", **body}).encode())

    until = datetime.now(timezone.utc) + timedelta(seconds=server.clock.ahead[1] // 1_000_000_000, hours=1)
    assert put(blocked=True, until=until.strftime("%Y-%m-%dT%H:%M:%SZ")).status == 200
    server.ask("player", "block", customer.id, "grace", "--reason", "ours")
    server.clock.advance(wall=3700)
    assert put(blocked=False).error == (409, "blocked_by_operator")


def test_a_block_of_one_customer_is_no_other_s_and_both_are_in_the_audit(house):
    assert house.put(house.other.manages, reference="erin", blocked=True, reason="theirs").status == 200
    assert may_play(house, add_player(house.server, house.owner, "erin"))
    row, = house.server.ask("audit", "list", "--object", f"{house.other.id}/erin")
    assert (row["who"], row["command"], row["kind"]) == (f"key {house.other.manages[:8]}", "account block", "block")
    assert row["after"]["reason"] == "theirs"


# ---- keys -------------------------------------------------------------------------------------------------


def test_a_key_is_rotated(house):
    server = house.server
    manages = house.key(house.owner, "--only", "account,manage", "--may-issue", "sports", "--cidr", "127.0.0.0/8", "--expires", "30d")
    server.await_admission(manages)
    made = house.make(manages, only=["sports"], label="poller 2")
    assert made.status == 201
    key = made.json()["key"]
    assert made.json()["prefix"] == key[:8] and made.json()["areas"] == ["sports"] and made.json()["cidrs"] == ["127.0.0.0/8"]
    listed = {row["prefix"]: row for row in house.get(key=manages).json()["keys"]}
    assert listed[key[:8]]["label"] == "poller 2" and listed[key[:8]]["expires_at"] == listed[manages[:8]]["expires_at"] is not None
    assert "key" not in listed[key[:8]]
    server.await_admission(key)
    assert server.get("/api/v1/sports", key=key).status == 200
    assert server.get(ACCOUNT, key=key).error == (404, "not_found")
    assert server.get("/api/v1/casino/games", key=key).error == (403, "casino_access_disabled")
    # It has no more than the operator allowed, and lives no longer.
    assert house.make(manages, only=["casino"]).error == (400, "invalid_request")
    assert house.make(manages, only=["sports"], expires_at="2099-01-01T00:00:00Z").json()["message"].startswith("The field expires_at must not be")
    row, = server.ask("audit", "list", "--object", server.ask("key", "find", key[:8])[0]["id"])
    assert row["who"] == f"key {manages[:8]}" and row["command"] == "account keys" and key not in json.dumps(row)
    revoked = house.change("DELETE", f"/keys?prefix={key[:8]}", b"", manages)
    assert revoked.status == 200 and revoked.json()["prefix"] == key[:8]
    server.await_admission(key, admitted=False)
    assert house.change("DELETE", f"/keys?prefix={key[:8]}", b"", manages).error == (404, "key_not_found")


def test_what_a_key_made_dies_with_it_and_there_are_ten_at_most(house):
    server = house.server
    manages = house.key(house.owner, "--only", "manage", "--may-issue", "sports,casino")
    server.await_admission(manages)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(house.make(manages, only=["sports", "casino"]))) for _ in range(14)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [answer.json()["key"] for answer in answers if answer.status == 201]
    while len(made) < 10:  # those that found eight others under way
        answers.append(house.make(manages, only=["sports", "casino"]))
        made += [answers[-1].json()["key"]] if answers[-1].status == 201 else []
    assert len(made) == 10 and house.make(manages, only=["sports"]).error == (409, "too_many_keys")
    assert {answer.error for answer in answers if answer.status != 201} <= {(409, "too_many_keys"), (429, "rate_limited")}
    server.await_admission(made[0])
    assert house.change("DELETE", f"/keys?prefix={made[0][:8]}", b"", manages).status == 200
    assert house.make(manages, only=["sports"]).status == 201
    server.run("key", "revoke", manages)
    for key in made[1:]:
        server.await_admission(key, admitted=False)
    states = {row["state"] if "state" in row else bool(row["revoked_at"]) for row in server.ask("key", "list", house.owner.id)
              if row["made_by"] == server.ask("key", "find", manages[:8])[0]["id"]}
    assert states == {True}
    assert house.make(manages, only=["sports"]).error == (403, "ip_not_allowed")


def test_a_made_key_ends_with_its_maker_s_time_and_its_customer(clocked):
    server = clocked
    customer = server.add_customer("Acme")
    manages = server.run("key", "issue", customer.id, "--only", "manage", "--may-issue", "sports", "--expires", "1h").text.strip()
    server.await_admission(manages)
    made = server.request("POST", ACCOUNT + "/keys", key=manages, headers={"Content-Type": "application/json"},
                          body=json.dumps({"only": ["sports"]}).encode()).json()
    server.await_admission(made["key"])
    server.run("customer", "disable", customer.id)
    server.await_admission(made["key"], admitted=False)
    server.run("customer", "enable", customer.id)
    server.await_admission(made["key"])
    server.clock.advance(wall=3700)
    assert server.get("/api/v1/sports", key=made["key"]).error == (403, "ip_not_allowed")


def test_other_customers_keys_are_not_there(house):
    theirs = house.change("DELETE", f"/keys?prefix={house.other.key[:8]}", b"")
    nobodys = house.change("DELETE", "/keys?prefix=crk_0000", b"")
    assert theirs.error == (404, "key_not_found") and theirs.body == nobodys.body
    assert house.server.get("/api/v1/sports", key=house.other.key).status == 200


# ---- rates ------------------------------------------------------------------------------------------------


def begin_with_reader(make_service, settings=None):
    """A server, its customer, and a key of the customer's that reads."""
    server = make_service(settings)
    customer = server.add_customer("Acme")
    reads = server.run("key", "issue", customer.id, "--only", "account").text.strip()
    server.start()
    server.await_admission(reads)
    return server, customer, reads


def test_a_reader_of_rounds_that_meets_another_is_told_when_to_come_back(make_service):
    """Its budget is not used up, and five requests are not eight: a server reads one page of all rounds at a time."""
    server, _, reads = begin_with_reader(make_service, {"account.rate": "off"})
    answers = []

    def ask():
        while len(answers) < 3000 and all(answer.status == 200 for answer in answers):
            answers.append(server.get(ACCOUNT + "/rounds?state=open&limit=200", key=reads))

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused = [answer for answer in answers if answer.status != 200]
    assert refused, f"none of {len(answers)} met another"
    for answer in refused:
        assert answer.error == (429, "rate_limited") and answer.header("Retry-After") == "1"
        assert answer.json()["message"] == "Too many such requests are under way. Try again later."


def test_the_account_has_a_budget_of_its_own(make_service):
    server = make_service({"account.rate": "3/3600"})
    customer = server.add_customer("Acme", rate="5/3600")
    key = server.run("key", "issue", customer.id, "--only", "sports,account").text.strip()
    server.start()
    server.await_admission(customer.key)
    answers = [server.get(ACCOUNT, key=key) for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert answers[-1].error == (429, "rate_limited") and int(answers[-1].header("Retry-After")) <= 3600
    assert [answer.header("X-RateLimit-Remaining") for answer in answers] == ["2", "1", "0", "0"]
    assert answers[0].header("X-RateLimit-Limit") == "3"
    assert server.get("/api/v1/sports", key=key).header("X-RateLimit-Limit") == "5"


def test_whoever_reads_holds_up_no_change(make_service):
    """A stolen account key could else keep its own revocation waiting, and a player's break."""
    server = make_service({"account.rate": "3/3600"})
    customer = server.add_customer("Acme")
    reads, manages = (server.run("key", "issue", customer.id, "--only", area).text.strip() for area in ("account", "manage"))
    server.start()
    server.await_admission(manages)
    assert [server.get(ACCOUNT, key=reads).status for _ in range(5)][-1] == 429
    blocked = server.request("PUT", ACCOUNT + "/block", key=manages, headers={"Content-Type": "application/json"},
                             body=b'{"reference": "alice", "blocked": true, "reason": "a break"}')
    assert (blocked.status, blocked.header("X-RateLimit-Remaining")) == (200, "2")
    assert server.request("DELETE", f"{ACCOUNT}/keys?prefix={reads[:8]}", key=manages).status == 200
    assert server.request("DELETE", f"{ACCOUNT}/keys?prefix=x", key=manages).header("X-RateLimit-Remaining") == "0"
    assert server.request("DELETE", f"{ACCOUNT}/keys?prefix=x", key=manages).error == (429, "rate_limited")


def test_a_thousand_requests_at_once_are_bounded_and_nobody_else_notices(make_service):
    """Of one customer: its budget is 300, and eight are under way at most. Another customer's requests pass."""
    server = make_service()
    greedy, other = server.add_customer("Greedy"), server.add_customer("Other")
    keys = [server.run("key", "issue", customer.id, "--only", "sports,account").text.strip() for customer in (greedy, other)]
    server.start()
    for key in keys:
        server.await_admission(key)
    statuses, others = [], []

    def ask():
        for _ in range(125):
            statuses.append(server.request("GET", ACCOUNT, key=keys[0]).status)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        others.append((server.get(ACCOUNT, key=keys[1]).status, server.get("/api/v1/sports", key=keys[1]).status))
    assert len(statuses) == 1000 and set(statuses) == {200, 429}
    assert statuses.count(200) <= 600  # the budgets of two windows
    assert set(others) <= {(200, 200), (429, 200)} and (200, 200) in others


def test_the_log_the_metrics_and_the_counts_know_the_routes(make_service):
    server, customer, reads = begin_with_reader(make_service)
    answer = server.get(ACCOUNT, key=reads)
    line = eventually(lambda: server.log_line(answer))
    assert line["route"] == ACCOUNT and line["customer"] == customer.id and line["key"] == reads[:8]
    refused = server.get(ACCOUNT, key=customer.key)
    assert eventually(lambda: server.log_line(refused))["route"] == "other"
    assert eventually(lambda: server.metrics().get(f'croupier_requests_total{{route="{ACCOUNT}",status="200"}}'))
    server.stop()
    rows = {row["route_group"]: row for row in server.ask("usage", customer.id)["requests"]}
    assert rows["account"]["2xx"] == 1 and rows["other"]["4xx"] >= 1


def test_the_budget_follows_a_reload(make_service):
    server, _, reads = begin_with_reader(make_service, {"account.rate": "off"})
    assert server.get(ACCOUNT, key=reads).header("X-RateLimit-Limit") is None
    server.configure({"account.rate": "7/3600"})
    server.run("reload", str(server.process.pid))
    assert server.get(ACCOUNT, key=reads).header("X-RateLimit-Limit") == "7"
