"""What a customer sees of its own, and changes: /api/v1/account (docs/account.md)."""

import json

import pytest

from croupier import Service

pytestmark = pytest.mark.depends_on("platform")

ACCOUNT = "/api/v1/account"
READS = [ACCOUNT]
CHANGES = []
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")


class House:
    """A server with two customers, each with a key for each set of areas."""

    def __init__(self, directory, settings=None):
        self.server = Service(directory, settings)
        self.owner = self.server.add_customer("Acme", options=["--casino"])
        self.other = self.server.add_customer("Other", options=["--casino"])
        for customer in (self.owner, self.other):
            customer.reads = self.key(customer, "--only", "account")
            customer.manages = self.key(customer, "--only", "account,manage", "--may-issue", "sports,casino")
        self.server.start()

    def key(self, customer, *options):
        return self.server.run("key", "issue", customer.id, *options).text.strip()

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
    manages = house.key(house.owner, "--only", "manage")
    house.server.await_admission(manages)
    assert house.get(key=manages).error == (403, "area_not_allowed")
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


# ---- rates ------------------------------------------------------------------------------------------------


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
