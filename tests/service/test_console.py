"""The operator's console from outside: docs/admin.yaml against the running server, who may do what, and every
protection attacked."""

import json
import random
import re
import select
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta, timezone

import jsonschema
import pytest

from croupier import Clock, Service, api_document, certificate, eventually, trusting
from wallet_model import Provider, add_games, add_player, claims_of, credit, debit, launch, rollback, send

pytestmark = pytest.mark.depends_on("platform")

DOCUMENT = api_document("admin")
VERBS = ("get", "post", "put", "patch", "delete")
ROUTES = [(path, verb, item[verb]) for path, item in DOCUMENT["paths"].items() for verb in VERBS if verb in item]
ROLES = ["reader", "operator", "owner"]
SAME = {"Sec-Fetch-Site": "same-origin"}


class Console:
    """What a browser has of the console: an address and a cookie. Or what a machine has: a token."""

    def __init__(self, service, cookie=None, tls=None, token=None, source=None):
        self.service, self.cookie, self.tls, self.token, self.source = service, cookie, tls, token, source

    def ask(self, method, path, document=None, headers=None, **fields):
        sent = dict(SAME if method != "GET" and headers is None and not self.token else headers or {})
        sent.update({name.replace("_", "-"): value for name, value in fields.items()})
        if self.cookie:
            sent["Cookie"] = f"croupier_session={self.cookie}"
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        body = None if document is None else json.dumps(document).encode()
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        return self.service.request(method, path, headers=sent, body=body, address=self.service.operator_address, tls=self.tls,
                                    **({"source": self.source} if self.source else {}))

    def get(self, path):
        answer = self.ask("GET", f"/admin/v1/{path}")
        assert answer.status == 200, answer
        return answer.json()

    def change(self, method, path, document=None, status=200, **fields):
        answer = self.ask(method, f"/admin/v1/{path}", document, **fields)
        assert answer.status == status, answer
        return answer.json() if answer.body else None


def link_of(service, name):
    return json.loads(service.prepare("operator", "link", name, "--json").text)["link"].partition("#/sign-in/")[2]


def sign_in(service, name):
    answer = Console(service).ask("POST", "/admin/v1/session", {"link": link_of(service, name)})
    assert answer.status == 200, answer
    cookie = answer.header("Set-Cookie")
    assert re.fullmatch(r"croupier_session=ses_\w{59}; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200", cookie)
    return Console(service, cookie.partition("=")[2].partition(";")[0])


def machine(service, name, role, *options):
    token = service.prepare("operator", "token", "add", name, "--role", role, *options).text.strip()
    assert re.fullmatch(r"cro_\w{59}", token)
    return Console(service, token=token)


def code(answer):
    return answer.status, answer.json()["error"]["code"]


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("console"))
    try:
        service.customer = service.add_customer("<script>alert(1)</script>", options=["--casino"])
        add_games(service, "roulette")
        service.publish("cricket", [{"gmid": 7, "ename": "Seven"}], {7: [{"mid": 1}]})
        service.start()
        closed = [Console(service).ask("GET", path).status for path in ("/", "/admin/v1/session", "/console/main.js")]
        assert closed == [404, 404, 404]  # until there is an operator
        for role in ROLES:
            service.prepare("operator", "add", role, "--role", role)
        service.player = add_player(service, service.customer)
        assert send(service, service.customer.key, credit(service.player, "in", 500)).status == 200
        service.run("player", "block", service.customer.id, "blocked-by-name")
        service.signed_in = {role: sign_in(service, role) for role in ROLES}
        service.machines = {role: machine(service, f"machine.{role}", role) for role in ROLES}
        yield service
    finally:
        service.stop()


@pytest.fixture
def owner(house):
    return house.signed_in["owner"]


# ---- the document --------------------------------------------------------------------------------------


def resolved(node):
    if isinstance(node, list):
        return [resolved(item) for item in node]
    if isinstance(node, dict) and "$ref" in node:
        target = DOCUMENT
        for part in node["$ref"][2:].split("/"):
            target = target[part]
        return resolved(target)
    return {key: resolved(value) for key, value in node.items()} if isinstance(node, dict) else node


def filled(path, *values):
    """With the values in place of its {words}, the last for all that are left."""
    values = list(values)
    return re.sub(r"\{\w+\}", lambda _: values.pop(0) if len(values) > 1 else values[0], path)


def test_every_path_has_the_methods_of_the_document(house):
    for path, item in DOCUMENT["paths"].items():
        answer = Console(house).ask("OPTIONS", filled(path, "x"))
        expected = ", ".join("GET, HEAD" if verb == "get" else verb.upper() for verb in item if verb in VERBS)
        assert (answer.status, sorted(answer.header("Allow").split(", "))) == (405, sorted(expected.split(", "))), path


@pytest.mark.parametrize("by", ["cookie", "token"])
def test_who_may_what(house, by):
    refusal = resolved(DOCUMENT["components"]["schemas"]["Error"])
    for path, verb, route in ROUTES:
        takes_tokens = {"token": []} in route.get("security", DOCUMENT["security"])
        for role in (None, *ROLES):
            console = (house.signed_in if by == "cookie" else house.machines)[role] if role else Console(house)
            if (path, verb, by) == ("/admin/v1/session", "delete", "cookie") and role:
                console = sign_in(house, role)
            answer = console.ask(verb.upper(), filled(path, "x"), None if verb in ("get", "delete") else {})
            where = (path, verb, role, answer)
            if by == "token" and role and not takes_tokens:
                assert code(answer) == (403, "no_session"), where
            elif route["x-role"] == "none":
                assert code(answer) == (422, "invalid"), where
            elif role is None:
                assert code(answer) == (401, "not_signed_in"), where
            elif ROLES.index(role) < ROLES.index(route["x-role"]):
                assert code(answer) == (403, "role_too_low"), where
            else:
                assert answer.status in (200, 202, 204, 404, 409, 422), where
            if answer.status >= 400:
                jsonschema.validate(answer.json(), refusal)


def test_a_field_that_only_some_may_set(house):
    """`x-role` of a property of a body: the role that it takes, above the route's."""
    for path, verb, route in ROUTES:
        body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        for name, schema in resolved(body).get("properties", {}).items():
            for role in ROLES if "x-role" in schema else ():
                answer = house.signed_in[role].ask(verb.upper(), filled(path, "acme"), {name: "https://elsewhere.example/", "name": ""})
                if ROLES.index(role) < ROLES.index(route["x-role"]):
                    assert code(answer) == (403, "role_too_low")
                elif ROLES.index(role) < ROLES.index(schema["x-role"]):
                    assert code(answer) == (403, "role_too_low") and answer.json()["error"]["field"] == name
                    assert "only owners" in answer.json()["error"]["message"]
                else:
                    assert code(answer) == (422, "invalid") and answer.json()["error"]["field"] == "name"


def test_owners_alone_see_the_audit_of_operators(house, owner):
    house.run("operator", "add", "secretive", "--role", "reader")
    sign_in(house, "secretive")
    rows = owner.get("audit?limit=1000")["items"]
    assert {"operator", "credential", "token"} <= {row["kind"] for row in rows}

    def public():  # read again each time: a verification that ends has a row too
        return [row for row in owner.get("audit?limit=1000")["items"] if row["kind"] not in ("operator", "credential", "token")]

    def pages(console):
        paged, before = [], ""
        while before is not None:
            page = console.get(f"audit?limit=2{before}")
            paged += page["items"]
            before = page["next"] and f"&before={page['next']}"
        return paged

    assert public()
    for role in ("reader", "operator"):
        console = house.signed_in[role]
        eventually(lambda: console.get("audit?limit=1000") == {"items": public(), "next": None})
        for query in ("object=secretive", "who=secretive", f"object={[row['object'] for row in rows if row['kind'] == 'credential'][0]}"):
            assert console.get(f"audit?{query}") == {"items": [], "next": None}, query
        eventually(lambda: pages(console) == public())
    assert owner.get("audit?object=secretive")["items"]


def test_the_audit_is_narrowed_by_kind_and_day(house, owner):
    rows = owner.get("audit?limit=1000")["items"]
    kinds, days = ({of(row) for row in rows} for of in (lambda row: row["kind"], lambda row: row["at"][:10]))
    assert {"customer", "operator"} <= kinds

    def found(query):
        """Of those rows: a verification may end meanwhile."""
        return owner.get(f"audit?limit=1000&before={rows[0]['number'] + 1}&{query}")["items"]

    for kind in kinds:
        assert found(f"kind={kind.replace(' ', '%20')}") == [row for row in rows if row["kind"] == kind]
    for day in days:
        assert found(f"day={day}") == found(f"day={day}&since=2020-01-01") == [row for row in rows if row["at"].startswith(day)]
    assert found("day=2020-01-01") == found("day=1970-01-01") == found(f"day={max(days)}&since=2100-01-01") == []
    assert house.signed_in["reader"].get("audit?kind=operator")["items"] == []
    for query in ("kind=nonsense", "day=2026-13-01", "day=yesterday"):
        refused = owner.ask("GET", f"/admin/v1/audit?{query}")
        assert (code(refused), refused.json()["error"]["field"]) == ((422, "invalid"), query.partition("=")[0])


def test_what_is_answered_is_what_the_document_says(house, owner):
    customer = house.customer.id
    asked = {"/admin/v1/keys": f"?customer={customer}", "/admin/v1/customers/{id}": customer, "/admin/v1/players/{id}": house.player,
             "/admin/v1/customers/{id}/games": customer, "/admin/v1/players/{id}/statement": house.player,
             "/admin/v1/tokens/{id}": owner.get("tokens")["items"][0]["id"],
             "/admin/v1/games/{id}": "roulette", "/admin/v1/feed/{sport}": "cricket", "/admin/v1/feed/{sport}/{event}": "cricket/7", "/admin/v1/providers/{id}": "acme", "/admin/v1/blocks/{id}": house.player, "/admin/v1/operators/{id}": "owner"}
    owner.change("POST", "addresses", {"address": "2001:db8::9"}, 201)
    asked["/admin/v1/addresses/{id}"] = "2001%3Adb8%3A%3A9"
    asked["/admin/v1/customers/{id}/denials"] = customer
    asked["/admin/v1/customers/{id}/conduct"] = house.add_customer("Trial", key=False, options=["--sandbox", "on"]).id
    add_games(house, "trial-game", provider="trial", options=["--sandbox", "on"])
    asked["/admin/v1/providers/{id}/conduct"] = "trial"
    asked["/admin/v1/customers/{id}/account/{what}"] = f"{customer}/account"
    denied(house, owner)
    assert send(house, house.customer.key, credit(house.player, "a-round", 0, round_id="r-1")).status == 200
    tried = 0
    for path, verb, route in ROUTES:
        if verb == "get":
            what = asked.get(path, "")
            answer = owner.ask("GET", filled(path, *what.split("/")) if "{" in path else path + what)
            assert answer.status == 200, (path, answer)
            schema = resolved(route["responses"]["200"])["content"]["application/json"]["schema"]
            jsonschema.validate(answer.json(), schema)
            assert "items" not in answer.json() or answer.json()["items"], path
            assert answer.header("Cache-Control") == "no-store"
            tried += 1
    assert tried == sum(verb == "get" for _, verb, _ in ROUTES)


def denied(house, owner):
    """A key of the customer that was revoked and is used all the same."""
    key = owner.change("POST", "keys", {"customer": house.customer.id}, 201)
    house.await_admission(key["key"])  # else nobody knows it
    owner.change("DELETE", f"keys/{key['id']}")
    house.await_admission(key["key"], admitted=False)
    return key


def test_an_operator_sees_what_a_customer_sees_and_takes_nothing_of_its_budget(house, owner):
    customer = house.customer.id
    key = owner.change("POST", "keys", {"customer": customer, "only": "account"}, 201)["key"]
    house.await_admission(key)
    player = add_player(house, house.customer, "seen")
    assert send(house, house.customer.key, credit(player, "seen", 7)).status == 200
    day = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    reader = sign_in(house, "reader")
    left = int(house.get("/api/v1/account", key=key).header("X-RateLimit-Remaining"))
    queries = {"transactions": "?id=seen", "players": f"?player_id={player}", "statement": f"?player_id={player}&limit=3", "rounds": "?state=all",
               "days": f"?day={day}", "entries": "?limit=2", "usage": ""}
    for what, query in {"account": "", **queries}.items():
        seen = reader.ask("GET", f"/admin/v1/customers/{customer}/account/{what}{query}")
        asked = house.get(f"/api/v1/account{'' if what == 'account' else '/' + what}{query}", key=key)
        assert seen.status == asked.status == 200, (what, seen, asked)
        one, other = ({name: value for name, value in answer.json().items() if name not in ("next_cursor", "keys", "requests")}
                      for answer in (seen, asked))  # a cursor is sealed anew, and this test uses the key
        assert one == other and seen.json().keys() == asked.json().keys(), what
    assert int(house.get("/api/v1/account", key=key).header("X-RateLimit-Remaining")) in (left - len(queries) - 2, 298)  # or a window has begun
    path = f"/admin/v1/customers/{customer}/account"
    for refused, wanted in ((f"{path}/keys", (404, "unknown_record")), (f"{path}/block", (404, "unknown_record")), (f"{path}/transactions?id=nothing", (404, "unknown_record")),
                            (f"{path}/players?player_id=ply_nobody", (404, "unknown_record")), (f"{path}/transactions", (422, "invalid")),
                            (f"{path}/entries?cursor=x", (422, "invalid")), (f"{path}/usage?x=1", (422, "invalid")),
                            ("/admin/v1/customers/cus_0000000000000000/account/usage", (404, "unknown_record"))):
        assert code(reader.ask("GET", refused)) == wanted, refused
    for what, said in (("players?reference=a&reference=a", "400 invalid_request: The parameter reference is given twice."),
                       ("transactions?id=nothing", "404 transaction_not_found: ")):
        answer = reader.ask("GET", f"{path}/{what}").json()["error"]
        asked = house.get(f"/api/v1/account/{what}", key=key)
        assert answer["message"].startswith(said) and answer["field"] is None and said.startswith(f"{asked.status} {asked.json()['error']}: "), (answer, asked)


def test_a_customer_s_refusals(house, owner):
    path = f"customers/{house.customer.id}/denials"
    key = denied(house, owner)
    owner.change("PATCH", f"customers/{house.customer.id}", {"enabled": False})
    house.await_admission(house.customer.key, source="127.0.0.5", admitted=False)
    rows = owner.get(path)["items"]
    owner.change("PATCH", f"customers/{house.customer.id}", {"enabled": True})
    house.await_admission(house.customer.key)
    assert rows[0]["reason"] == "customer_disabled" and rows[0]["address"] == "127.0.0.5" and rows[0]["count"] >= 1
    assert rows[1]["reason"] == "revoked_key" and key["key"].startswith(rows[1]["key"]) and len(rows[1]["key"]) >= 8
    assert all(row["customer"] == house.customer.id for row in rows)
    limited = house.add_customer("Limited", options=["--rate", "1/60"])
    house.await_admission(limited.key)
    eventually(lambda: house.get("/api/v1/sports", key=limited.key).status == 429)
    newest = owner.get("denials")["items"][0]
    assert (newest["customer"], newest["reason"]) == (limited.id, "rate_limited") and newest["count"] >= 1
    assert code(owner.ask("GET", "/admin/v1/customers/cus_0000000000000000/denials")) == (404, "unknown_record")


# ---- what moves ----------------------------------------------------------------------------------------


def test_the_overview_follows_what_happens(house, owner):
    before = owner.get("overview")
    assert before["history"]["step_seconds"] == 2 and owner.get("overview?span=hours")["history"]["step_seconds"] == 120
    assert code(owner.ask("GET", "/admin/v1/overview?span=days")) == (422, "invalid")
    assert [row["sport"] for row in before["feed"]] == ["cricket", "football", "tennis", "horse-racing", "greyhound-racing"]
    assert before["feed"][4] == {"sport": "greyhound-racing", "age_seconds": None, "stale_events": 0, "stale": False}

    def denied(overview):
        return next((row["last_hour"] for row in overview["refusals"] if row["reason"] == "unusable_key"), 0)

    assert house.get("/api/v1/sports", key="x").status == 403
    answer = owner.ask("GET", "/admin/v1/overview")
    while denied(answer.json()) == denied(before):
        answer = owner.ask("GET", "/admin/v1/overview", headers={"If-None-Match": answer.header("ETag"), "Prefer": "wait=55"})
        assert answer.status == 200, answer  # of the next sample
    after = answer.json()
    series = after["history"]["series"]
    assert denied(after) == denied(before) + 1
    assert set(series) == set(after["live"]) and all(len(values) == len(after["history"]["at"]) for values in series.values())
    assert (after["history"]["window_seconds"], owner.get("overview?span=hours")["history"]["window_seconds"]) == (10, 120)
    assert {name: values[-1] for name, values in series.items()} == after["live"]  # one metric, one number
    assert any(value for value in series["denials_per_second"]) and any(value for value in series["requests_4xx_per_second"])


def test_a_get_waits_for_another_answer(house, owner):
    path = f"/admin/v1/customers/{house.customer.id}"
    tag = owner.ask("GET", path).header("ETag")
    at_once = owner.ask("GET", path, headers={"If-None-Match": tag})
    assert (at_once.status, at_once.body, at_once.header("ETag"), at_once.header("Preference-Applied")) == (304, b"", tag, None)
    waited = owner.ask("GET", path, headers={"If-None-Match": tag, "Prefer": "wait=1"})
    assert (waited.status, waited.header("Preference-Applied")) == (304, "wait=1")
    assert owner.ask("GET", path, headers={"If-None-Match": '"other"', "Prefer": "wait=55"}).status == 200
    with ThreadPoolExecutor() as pool:
        waits = [pool.submit(console.ask, "GET", path, headers={"If-None-Match": tag, "Prefer": "wait=55"})
                 for console in (owner, owner, sign_in(house, "reader"))]
        session = next(row["id"] for row in owner.get("sessions?limit=200")["items"][::-1] if row["operator"] == "reader")
        owner.change("DELETE", f"sessions/{session}", status=204)
        assert code(waits[2].result()) == (401, "not_signed_in")
        owner.change("PATCH", f"customers/{house.customer.id}", {"rate": "77/60"})
        for wait in waits[:2]:
            assert wait.result().json()["rate"]["requests"] == 77
    owner.change("PATCH", f"customers/{house.customer.id}", {"rate": None})


def begin_wait(house, console):
    """A connection with a GET that waits, unless there are too many."""
    path = f"/admin/v1/customers/{house.customer.id}"
    tag = console.ask("GET", path).header("ETag")
    host, port = house.operator_address
    # Longer than a look at what waits, shorter than the wait.
    connection = house.connect(address=house.operator_address, timeout=40)
    connection.send(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nCookie: croupier_session={console.cookie}\r\n"
                    f"If-None-Match: {tag}\r\nPrefer: wait=55\r\n\r\n".encode())
    return connection


@pytest.mark.parametrize("ends", ["shut", "too much behind it"])
def test_who_has_gone_is_not_waited_for(house, owner, ends):
    with begin_wait(house, owner) as gone:
        if ends == "shut":
            gone.socket.shutdown(socket.SHUT_WR)
        else:
            gone.send(b"x" * 300_000)
        assert gone.receive().status == 304
        assert ends != "shut" or gone.at_end()


def test_a_session_has_few_waits_and_gives_them_back(house, owner):
    reader = sign_in(house, "reader")

    def waited(rate):
        held = [begin_wait(house, reader) for _ in range(5)]
        assert select.select([connection.socket for connection in held], [], [], 40)[0], "one too many is answered at once"
        owner.change("PATCH", f"customers/{house.customer.id}", {"rate": rate})
        answers = [connection.receive() for connection in held]
        for connection in held:
            connection.close()
        return sorted((answer.status, answer.header("Preference-Applied") or "") for answer in answers)

    expected = [(200, "wait=55")] * 4 + [(304, "")]
    assert waited("78/60") == expected
    gone = [begin_wait(house, reader) for _ in range(4)]
    for connection in gone:
        connection.close()
    eventually(lambda: waited(f"{random.randint(100, 999)}/60") == expected)
    owner.change("PATCH", f"customers/{house.customer.id}", {"rate": None})


# ---- signing in ----------------------------------------------------------------------------------------


def test_a_link_signs_in_once_and_a_get_does_not_use_it_up(house):
    link = link_of(house, "reader")
    console = Console(house)
    console.ask("GET", f"/admin/v1/session?link={link}")
    console.ask("GET", "/")
    assert console.ask("POST", "/admin/v1/session", {"link": link}).status == 200
    assert code(console.ask("POST", "/admin/v1/session", {"link": link})) == (401, "link_not_good")


def test_of_those_who_race_for_a_link_one_signs_in(house):
    for turn in range(3):
        body = json.dumps({"link": link_of(house, "reader")}).encode()
        fields = {**SAME, "Content-Type": "application/json"}

        def sign_in_at_once(_, source=f"127.0.0.{20 + turn}", together=threading.Barrier(4)):
            together.wait()
            return house.request("POST", "/admin/v1/session", headers=fields, body=body, source=source, address=house.operator_address)

        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(sign_in_at_once, range(4)))
        assert sorted(answer.status for answer in answers) == [200, 401, 401, 401], answers


def test_a_session_is_over_when_it_is_signed_out_or_ended(house, owner):
    for end in ("out", "ended", "command"):
        console = sign_in(house, "reader")
        session = console.get("session")
        assert session["role"] == "reader"
        if end == "out":
            assert "Max-Age=0" in console.ask("DELETE", "/admin/v1/session").header("Set-Cookie")
        elif end == "ended":
            owner.change("DELETE", f"sessions/{session['id']}", status=204)
        else:
            house.run("operator", "end", session["id"])
        assert code(console.ask("GET", "/admin/v1/customers")) == (401, "not_signed_in"), end


def test_a_role_and_a_disabled_operator_hold_at_once(house, owner):
    added = owner.change("POST", "operators", {"name": "bert", "role": "owner"}, 201)
    console = Console(house)
    answer = console.ask("POST", "/admin/v1/session", {"link": added["link"].partition("sign-in/")[2]})
    console.cookie = answer.header("Set-Cookie").partition("=")[2].partition(";")[0]
    assert console.get("operators")["items"]
    owner.change("PATCH", "operators/bert", {"role": "reader"})
    assert code(console.ask("GET", "/admin/v1/operators")) == (403, "role_too_low")
    owner.change("PATCH", "operators/bert", {"enabled": False})
    assert code(console.ask("GET", "/admin/v1/session")) == (401, "not_signed_in")
    owner.change("DELETE", "operators/bert", status=204)
    assert owner.ask("GET", "/admin/v1/operators/bert").status == 404


# ---- machines ------------------------------------------------------------------------------------------


def test_a_token_changes_what_it_may_and_the_audit_names_it(house):
    console = house.machines["operator"]
    assert console.get("session")["name"] == "machine.operator" and console.get("session")["expires_at"] is None
    added = console.change("POST", "customers", {"name": "by a machine"}, 201)
    row = house.machines["owner"].get(f"audit?object={added['id']}")["items"][0]
    assert (row["who"], row["command"]) == ("token machine.operator", "POST customers")
    rows = house.ask("audit", "list", "--who", "token machine.operator")  # and what it was tried with, if it was
    assert [row["object"] for row in rows if row["kind"] == "customer"] == [added["id"]]
    assert code(console.ask("PATCH", f"/admin/v1/customers/{added['id']}", {"enabled": False}, Content_Type="text/plain")) == (415, "not_json")
    eventually(lambda: house.machines["owner"].get("tokens?q=machine.operator")["items"][0]["last_used_at"])


def test_a_token_is_shown_once(house, owner):
    made = owner.change("POST", "tokens", {"name": "once", "role": "reader", "expires_at": "90d", "cidrs": ["127.0.0.0/8"]}, 201)
    console = Console(house, token=made.pop("token"))
    assert console.get("customers")["items"] and console.token.startswith(made["id"])
    shown = owner.get(f"tokens/{made['id']}")
    assert made["last_used_at"] is None and made == {**shown, "last_used_at": None} and made["cidrs"] == ["127.0.0.0/8"]
    secret = console.token[len(made["id"]):]
    house.run("audit", "list")
    told = [house.run("operator", "token", "list").text, house.run("operator", "token", "list", "--json").text,
            house.run("audit", "list", "--json").text, house.log_text(), json.dumps(owner.get("audit?limit=1000"))]
    assert made["id"] in told[0] and not any(secret in text for text in told)
    assert owner.change("DELETE", f"tokens/{made['id']}")["revoked_at"]
    assert code(console.ask("GET", "/admin/v1/customers")) == (401, "token_not_good")


def test_a_token_that_is_not_good_is_refused(house):
    console = machine(house, "judged", "reader")
    console.source = "127.0.0.41"
    other = console.token[:-1] + ("a" if console.token[-1] != "a" else "b")
    for token in (other, console.token[:-1], console.token + "a", "cro_" + "a" * 59, "x" * 5000):
        answer = Console(house, token=token, source="127.0.0.40").ask("GET", "/admin/v1/customers")
        assert code(answer) == (401, "token_not_good") and answer.header("WWW-Authenticate") == 'Bearer error="invalid_token"', token
    path = f"/admin/v1/customers/{house.customer.id}"
    tag = console.ask("GET", path).header("ETag")
    with ThreadPoolExecutor() as pool:
        waits = [pool.submit(console.ask, "GET", path, headers={"If-None-Match": tag, "Prefer": "wait=55"}) for _ in range(3)]
        told = house.run("operator", "token", "revoke", "judged").text
        assert told == "judged is revoked.\n"
        assert [code(wait.result()) for wait in waits] == [(401, "token_not_good")] * 3
    assert code(console.ask("GET", path)) == (401, "token_not_good")
    ended = machine(house, "ended", "reader", "--expires", "1s")
    ended.source = "127.0.0.42"
    eventually(lambda: ended.ask("GET", path).status == 401)
    assert code(ended.ask("GET", path)) == (401, "token_not_good")
    assert "expired" in house.run("operator", "token", "list").text


def test_a_cookie_and_a_token_exclude_each_other(house, owner):
    token = house.machines["owner"].token
    both = Console(house, cookie=owner.cookie, token=token)
    assert code(both.ask("GET", "/admin/v1/session")) == (400, "two_credentials")
    assert code(both.ask("POST", "/admin/v1/customers", {"name": "x"})) == (400, "two_credentials")
    # As a proxy that asks for a password sends it on.
    assert owner.ask("GET", "/admin/v1/session", Authorization="Basic YTpi").json()["name"] == "owner"
    host, port = house.operator_address
    for fields in (f"Authorization: Bearer {token}\r\nAuthorization: Bearer {token}\r\n", "Authorization: Bearer\r\n"):
        with house.connect(address=house.operator_address) as connection:
            connection.send(f"GET /admin/v1/session HTTP/1.1\r\nHost: {host}:{port}\r\n{fields}\r\n".encode())
            assert code(connection.receive()) == (401, "token_not_good")
    with house.connect(address=house.operator_address) as connection:
        connection.send(f"GET /admin/v1/session HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        assert code(connection.receive()) == (421, "unknown_host")


def test_what_a_token_must_be(house, owner):
    for words, reason in ((["add", "x"], "--role"), (["add", "a b", "--role", "reader"], "name: is 1 to 32"),
                          (["add", "x", "--role", "root"], "reader, operator"), (["list", "x"], "list takes no name"),
                          (["add", "x", "--role", "reader", "--cidr", "10.0.0.1/8"], "10.0.0.0/8"), (["revoke"], "needs a name"),
                          (["add", "x", "--role", "reader", "--expires", "2020-01-01"], "not in the future"),
                          (["revoke", "x", "--role", "reader"], "only add takes --role"), (["show", "x"], "add, list or revoke")):
        assert reason in house.run("operator", "token", *words, status=2).errors, words
    assert "there is no token 'x'" in house.run("operator", "token", "revoke", "x", status=1).errors
    unknown = "cro_" + "a" * 59
    assert house.run("operator", "token", "revoke", unknown, status=1).errors.endswith("there is no such token\n")
    token = house.ask("operator", "token", "add", "twice", "--role", "reader")
    assert "there is a token 'twice' already" in house.run("operator", "token", "add", "twice", "--role", "owner", status=1).errors
    refused = owner.ask("POST", "/admin/v1/tokens", {"name": "twice", "role": "reader"})
    assert code(refused) == (409, "conflict") and refused.json()["error"]["field"] == "name"
    refused = owner.ask("POST", "/admin/v1/tokens", {"name": "<b>", "role": "root", "cidrs": ["x"], "expires_at": "y", "id": "cro_mine"})
    assert code(refused) == (422, "invalid")
    house.run("operator", "token", "revoke", token["token"])
    assert "was revoked before" in house.run("operator", "token", "revoke", token["id"]).text
    again = house.ask("operator", "token", "add", "twice", "--role", "reader")
    assert again["id"] != token["id"] and owner.change("DELETE", "tokens/twice")["id"] == again["id"]


def test_a_token_is_used_from_its_addresses_alone(make_service):
    service = make_service({"server.trusted_proxies": "127.0.0.1"})
    service.publish_nothing()
    service.start()
    console = Console(service)
    assert console.ask("GET", "/admin/v1/session").status == 404
    console = machine(service, "far", "reader", "--cidr", "192.0.2.0/28", "--cidr", "2001:db8::/64")
    for source, forwarded, expected in (
            ("127.0.0.1", "192.0.2.7", 200), ("127.0.0.1", "198.51.100.1, 192.0.2.7", 200), ("127.0.0.1", "2001:db8::9", 200),
            ("127.0.0.1", None, 403), ("127.0.0.1", "192.0.2.7, 198.51.100.1", 403), ("127.0.0.1", "192.0.2.16", 403),
            ("127.0.0.1", "nonsense", 403), ("127.0.0.5", "192.0.2.7", 403)):
        console.source = source
        answer = console.ask("GET", "/admin/v1/session", headers={"X-Forwarded-For": forwarded} if forwarded else {})
        assert answer.status == expected, (source, forwarded, answer)
        assert expected == 200 or code(answer) == (403, "token_not_from_here")
    told = [(line["client"], line["reason"], line["operator"]) for line in service.log_lines() if line["message"] == "a link or a token was refused"]
    assert ("198.51.100.1", "token_not_from_here", "far") in told and len(told) >= 3
    path = f"/x/{console.token}"
    line = service.log_line(service.request("GET", path))
    assert line["path"] == path[:len("/x/cro_") + 4]
    for name, block in (("all", "::/0"), ("mapped", "::/8")):  # blocks of IPv6 contain no IPv4 client and none whose address cannot be read
        console = machine(service, name, "reader", "--cidr", block)
        for headers in ({}, {"X-Forwarded-For": "192.0.2.7"}, {"X-Forwarded-For": "nonsense"}):
            assert code(console.ask("GET", "/admin/v1/session", headers=headers)) == (403, "token_not_from_here"), (block, headers)
        answer = console.ask("GET", "/admin/v1/session", headers={"X-Forwarded-For": "2001:db8::9"})
        assert answer.status == (200 if block == "::/0" else 403)


def test_a_request_that_waits_while_the_store_goes_may_be_sent_again_after_a_pause(make_service):
    service = make_service(own_stores=True)
    service.start()
    reader = machine(service, "waits", "reader")
    path = f"/admin/v1/customers/{service.add_customer('One').id}"
    tag = reader.ask("GET", path).header("ETag")
    with ThreadPoolExecutor() as pool:
        wait = pool.submit(reader.ask, "GET", path, headers={"If-None-Match": tag, "Prefer": "wait=55"})
        service.platform.take_away()
        answer = wait.result()
    assert code(answer) == (503, "store_unavailable") and answer.header("Retry-After") == "1"
    service.platform.bring_back()


def test_guessing_tokens_is_locked_out_by_address(make_service):
    service = make_service({"server.trusted_proxies": "127.0.0.9"})
    service.publish_nothing()
    service.prepare("operator", "add", "anna")
    service.start()
    anna, good = sign_in(service, "anna"), machine(service, "good", "reader")
    wrong = Console(service, token="cro_" + "a" * 59)
    answers = [wrong.ask("GET", "/admin/v1/session") for _ in range(6)]
    assert [answer.status for answer in answers] == [401] * 5 + [429]
    assert 1 <= int(answers[-1].header("Retry-After")) <= 60
    # A good token from there passes, before the minute is over and after more guesses.
    assert good.get("session")["name"] == "good"
    assert code(wrong.ask("GET", "/admin/v1/session")) == (429, "too_many_attempts")
    assert good.get("session")["name"] == "good"
    # Neither sessions and links from there, nor tokens from elsewhere.
    assert anna.get("session")["name"] == "anna" and sign_in(service, "anna").get("session")
    metrics = service.request("GET", "/metrics", address=service.operator_address).body.decode()
    refused = dict(re.findall(r'^croupier_console_refused_total{reason="(\w+)"} (\d+)$', metrics, re.M))
    assert refused == {"link": "0", "token": "5", "address": "0", "locked_out": "2"}
    good.source = "127.0.0.8"
    assert good.get("session")["name"] == "good"
    # Each client of a proxy is an address of its own.
    wrong.source = good.source = "127.0.0.9"
    for _ in range(6):
        answer = wrong.ask("GET", "/admin/v1/session", headers={"X-Forwarded-For": "198.51.100.1"})
    assert answer.status == 429
    assert good.ask("GET", "/admin/v1/session", headers={"X-Forwarded-For": "198.51.100.2"}).status == 200


# ---- attacks -------------------------------------------------------------------------------------------


def test_a_change_from_another_site_is_refused(house, owner):
    host, port = house.operator_address
    path = f"/admin/v1/customers/{house.customer.id}"
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"},
                    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"https://{host}:{port}"},
                    {"Sec-Fetch-Site": "cross-site", "Origin": f"http://{host}:{port}"}):
        assert code(owner.ask("PATCH", path, {"enabled": False}, headers=headers)) == (403, "not_same_origin"), headers
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert code(owner.ask("PATCH", path, {"enabled": False}, Content_Type=kind, **{"Sec_Fetch_Site": "same-origin"})) == \
            (415, "not_json")
    assert owner.get(f"customers/{house.customer.id}")["enabled"]
    assert owner.ask("PATCH", path, {"enabled": True}, headers={"Origin": f"http://{host}:{port}"}).status == 200


def test_a_rebound_name_is_refused(house, owner):
    for name in ("evil.example", f"evil.example:{house.operator_address[1]}", "127.0.0.1", "localhost"):
        for path in ("/", "/admin/v1/session"):
            with house.connect(address=house.operator_address) as connection:
                connection.send(f"GET {path} HTTP/1.1\r\nHost: {name}\r\nCookie: croupier_session={owner.cookie}\r\n\r\n".encode())
                assert code(connection.receive()) == (421, "unknown_host")
    assert "croupier_" in house.request("GET", "/metrics", headers=[], address=house.operator_address).body.decode()


def test_a_page_cannot_be_framed_and_runs_no_foreign_script(house):
    answer = Console(house).ask("GET", "/")
    policy = answer.header("Content-Security-Policy")
    assert answer.status == 200
    for rule in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'",
                 "form-action 'self'", "frame-ancestors 'none'"):
        assert rule in policy.split("; ")
    assert "unsafe" not in policy
    assert (answer.header("X-Frame-Options"), answer.header("X-Content-Type-Options"), answer.header("Referrer-Policy")) == \
        ("DENY", "nosniff", "no-referrer")
    assert answer.header("Cross-Origin-Opener-Policy") == answer.header("Cross-Origin-Resource-Policy") == "same-origin"


def test_a_script_in_a_name_is_json_text(house, owner):
    answer = owner.ask("GET", f"/admin/v1/customers/{house.customer.id}")
    assert answer.header("Content-Type") == "application/json" and answer.header("X-Content-Type-Options") == "nosniff"
    assert answer.json()["name"] == "<script>alert(1)</script>"


def test_cookies_that_are_none(house):
    for cookie in ("x", "ses_" + "a" * 59, "ses_" + "a" * 5000):
        assert code(Console(house, cookie).ask("GET", "/admin/v1/session")) == (401, "not_signed_in")


# ---- changes -------------------------------------------------------------------------------------------


def test_two_who_change_one_record_do_not_overwrite_each_other(house, owner):
    added = owner.ask("POST", "/admin/v1/customers", {"name": "Two", "cidrs": ["192.0.2.0/24"], "rate": "5/10"})
    assert added.status == 201
    path, tag = f"customers/{added.json()['id']}", added.header("ETag")
    shown = owner.ask("GET", f"/admin/v1/{path}")
    assert shown.header("ETag") == tag
    changed = owner.ask("PATCH", f"/admin/v1/{path}", {"sports": ["tennis"]}, If_Match=tag, Sec_Fetch_Site="same-origin")
    assert (changed.status, changed.json()["sports"]) == (200, ["tennis"])
    late = owner.ask("PATCH", f"/admin/v1/{path}", {"name": "Late"}, If_Match=tag, Sec_Fetch_Site="same-origin")
    assert code(late) == (412, "changed_meanwhile")
    twice = house.request("PATCH", f"/admin/v1/{path}", address=house.operator_address, body=b'{"name": "Twice"}',
                          headers=[("Cookie", f"croupier_session={owner.cookie}"), ("Content-Type", "application/json"),
                                   ("Sec-Fetch-Site", "same-origin"), ("If-Match", tag), ("If-Match", '"other"')])
    assert code(twice) == (412, "changed_meanwhile")
    last = owner.get(f"audit?object={added.json()['id']}&limit=1")["items"][0]
    assert (late.json()["error"]["changed_by"], late.json()["error"]["changed_at"]) == (last["who"], last["at"])
    sent_back = {name: value for name, value in owner.get(path).items() if name in ("name", "cidrs", "sports", "rate", "casino")}
    assert owner.change("PATCH", path, sent_back) == owner.get(path)
    bare = owner.change("PATCH", path, {"cidrs": [], "rate": None, "sports": [], "enabled": False})
    assert (bare["cidrs"], bare["rate"], bare["sports"], bare["enabled"]) == ([], None, [], False)


def test_whatever_has_a_tag_is_changed_under_it_alone(house, owner):
    """Every path of the document that shows one thing and changes it."""
    token = owner.change("POST", "tokens", {"name": "tagged", "role": "reader"}, status=201)
    ids = {"customers": house.customer.id, "addresses": "192.0.2.77", "providers": "acme", "games": "roulette", "players": house.player,
           "blocks": house.player, "operators": "reader", "tokens": token["id"]}
    owner.change("POST", "addresses", {"address": "192.0.2.77"}, status=201)
    body = {"patch": {}, "put": {"every_game": True}, "delete": None}
    changed = [(path, verb) for path, item in DOCUMENT["paths"].items() for verb in body
               if verb in item and "get" in item and path.count("{") == 1]
    assert len(changed) > 8
    tagged = set()
    for path, verb in changed:
        kind = path.removeprefix("/admin/v1/").split("/")[0]
        where = re.sub(r"\{\w+\}", ids[kind], path)
        tag = owner.ask("GET", where).header("ETag")
        if tag is None:
            continue
        assert code(owner.ask(verb.upper(), where, body[verb], If_Match='"other"', Sec_Fetch_Site="same-origin")) == (412, "changed_meanwhile"), (verb, where)
        tagged.add(kind)
        if verb == "patch":
            assert owner.ask("PATCH", where, {}, If_Match=tag, Sec_Fetch_Site="same-origin").status == 200, where
    assert tagged == ids.keys()
    assert owner.ask("DELETE", f"/admin/v1/tokens/{token['id']}", If_Match=owner.ask("GET", f"/admin/v1/tokens/{token['id']}").header("ETag"),
                     Sec_Fetch_Site="same-origin").status in (200, 204)


def test_a_refusal_names_the_field(house, owner):
    path = f"/admin/v1/customers/{house.customer.id}"
    for document, field in (({"rate": "fast"}, "rate"), ({"cidrs": ["300.0.0.0/8"]}, "cidrs"), ({"sports": ["chess"]}, "sports"),
                            ({"name": ""}, "name"), ({"name": "a\x00b"}, "name"), ({"name": "a\ud800"}, "name"), ({"cidrs": ["\udc00"]}, "cidrs"), ({"casino": "perhaps"}, "casino")):
        answer = owner.ask("PATCH", path, document)
        assert (*code(answer), answer.json()["error"]["field"]) == (422, "invalid", field), document
    for document in ({"id": "cus_x"}, {"keys": 7}, {"unknown": 1}, [], "x"):
        assert code(owner.ask("PATCH", path, document)) == (422, "invalid"), document
    answer = owner.ask("POST", "/admin/v1/customers", {"sports": "all"})
    assert (answer.status, answer.json()["error"]["field"]) == (422, "name")


def test_ids_are_made_and_not_chosen(house, owner):
    customer, token = house.customer.id, owner.get("tokens")["items"][0]["id"]
    for path, document in (("customers", {"id": "cus_chosen", "name": "x"}), ("keys", {"id": "key_chosen", "customer": customer}),
                           ("tokens", {"id": "cro_chosen", "name": "chosen", "role": "reader"})):
        answer = owner.ask("POST", f"/admin/v1/{path}", document)
        assert (*code(answer), answer.json()["error"]["message"]) == (
            422, "invalid", "a member of the document is no field to be set"), (path, answer)
    assert owner.ask("GET", "/admin/v1/customers/cus_chosen").status == 404
    assert "key_chosen" not in house.run("key", "list", customer).text and owner.get("tokens")["items"][0]["id"] == token


def block_players(house, owner):
    player = f"players/{house.player}"
    blocked = owner.change("PATCH", player, {"blocked": True, "reason": "asked for it", "until": "2d"})
    block, = blocked["blocks"]
    assert blocked["blocked_until"] == block["until"] is not None and block["reason"] == "asked for it"
    assert block in owner.get(f"blocks?customer={house.customer.id}")["items"] and block == owner.get(f"blocks/{house.player}")
    answer = owner.ask("PATCH", f"/admin/v1/{player}", {"blocked": False})
    assert code(answer) == (409, "conflict") and block["until"] in answer.json()["error"]["message"]
    answer = owner.ask("PATCH", f"/admin/v1/{player}", {"blocked": False, "early": True})
    assert (code(answer), answer.json()["error"]["field"]) == ((422, "invalid"), "reason")
    for field, value in (("until", "soon"), ("reason", "x" * 201), ("reason", ""), ("reason", " "), ("blocked", 1), ("early", "x")):
        answer = owner.ask("PATCH", f"/admin/v1/blocks/{house.player}", {"blocked": True, field: value})
        assert (code(answer), answer.json()["error"]["field"]) == ((422, "invalid"), field), field
    by_name = f"{house.customer.id}:{owner.get(player)['player_reference']}"
    owner.change("PATCH", f"blocks/{by_name}", {"blocked": True, "until": "2d"})
    assert owner.change("PATCH", f"blocks/{by_name}", {"blocked": True})["until"] is not None
    assert owner.change("PATCH", f"blocks/{by_name}", {"blocked": True, "until": None})["until"] is None
    assert code(owner.ask("PATCH", f"/admin/v1/blocks/{by_name}", {"blocked": True, "until": "30d"})) == (409, "conflict")
    freed = owner.change("PATCH", player, {"blocked": False, "early": True, "reason": "a mistake"})
    assert [block["id"] for block in freed["blocks"]] == [by_name]  # it stands
    assert owner.get(f"blocks/{house.player}") | {"blocked": False, "standing": by_name} == owner.get(f"blocks/{house.player}")
    # One without an end asks for as much.
    for given, answer in (({}, (409, "conflict")), ({"early": True}, (422, "invalid")), ({"early": True, "reason": " "}, (422, "invalid"))):
        assert code(owner.ask("PATCH", f"/admin/v1/blocks/{by_name}", {"blocked": False, **given})) == answer, given
    assert owner.change("PATCH", f"blocks/{by_name}", {"blocked": False, "early": True, "reason": "over"})["blocked"] is False
    assert owner.get(player)["blocks"] == []
    name = f"{house.customer.id}:later"
    assert owner.get(f"blocks/{name}")["blocked"] is False
    assert owner.change("PATCH", f"blocks/{name}", {"blocked": True, "reason": "by name"})["player_id"] is None
    assert owner.get(f"blocks?customer={house.customer.id}&q=LATER")["items"][0]["id"] == name
    last = owner.get(f"audit?object={name}")["items"][0]
    assert (last["kind"], last["command"], last["after"]["reason"]) == ("block", "PATCH blocks", "by name")
    assert owner.change("PATCH", f"blocks/{name}", {"blocked": False, "early": True, "reason": "over"})["blocked_at"] is None
    for unknown in ("cus_none:a", f"{house.customer.id}:a b", "nobody", "ply_none"):
        assert owner.ask("GET", f"/admin/v1/blocks/{unknown.replace(' ', '%20')}").status == 404


def test_keys_players_and_games(house, owner):
    player = add_player(house, house.customer, "with-a-statement")  # of which no other test writes entries
    issued = owner.change("POST", "keys", {"customer": house.customer.id, "label": "web", "only": "sports"}, 201)
    house.await_admission(issued["key"])
    assert house.get("/api/v1/casino/games", issued["key"]).status == 403
    assert issued["key"] not in json.dumps(owner.get(f"keys?customer={house.customer.id}"))
    assert owner.change("DELETE", f"keys/{issued['id']}")["revoked_at"]
    found = owner.get(f"players?customer={house.customer.id}&q=ALICE")
    assert [player["player_id"] for player in found["items"]] == [house.player] and found["found"] == 1
    assert found["items"][0]["balance_minor"] == 500 and found["items"][0]["last_active_at"] > found["items"][0]["created_at"]
    assert owner.change("PATCH", f"players/{house.player}", {"blocked": True})["blocked_at"]
    assert owner.change("PATCH", f"players/{house.player}", {"blocked": False, "early": True, "reason": "over"})["blocked_at"] is None
    block_players(house, owner)
    assert owner.change("PATCH", "games/roulette", {"enabled": False})["enabled"] is False
    assert owner.change("PATCH", "games/roulette", {"enabled": True})["enabled"] is True
    for path in ("games/roulette", "providers/acme"):
        assert owner.change("PATCH", path, {"blocked_countries": ["US", "GB"]})["blocked_countries"] == ["US", "GB"]
        answer = owner.ask("PATCH", f"/admin/v1/{path}", {"blocked_countries": ["UK"]})
        assert (code(answer), answer.json()["error"]["field"]) == ((422, "invalid"), "blocked_countries")
        assert owner.change("PATCH", path, {"blocked_countries": []})["blocked_countries"] == []
    launch = {"mode": "real", "player_reference": "with-a-statement", "currency": "EUR"}  # without a country
    eventually(lambda: house.request("POST", f"/api/v1/casino/games/{house.lobby}/launch", key=house.customer.key,
                                     headers={"Content-Type": "application/json"}, body=json.dumps(launch).encode()).status == 200)
    allowed = owner.change("PUT", f"customers/{house.customer.id}/games", {"games": ["roulette"]})
    assert (allowed["every_game"], allowed["games"]) == (False, ["roulette"])
    assert owner.change("PUT", f"customers/{house.customer.id}/games", {"every_game": True})["every_game"]
    answer = owner.ask("POST", "/admin/v1/games/import", [{"id": "x"}])
    assert code(answer) == (422, "invalid") and "document:1:2:" in answer.json()["error"]["message"]
    assert send(house, house.customer.key, credit(player, "stated", 500)).status == 200
    entries = owner.get(f"players/{player}/statement")
    assert [entry["transaction_id"] for entry in entries["items"]] == ["stated"] and entries["next"] is None
    day = entries["items"][0]["created_at"][:10]
    for query, count in {"kind=CREDIT": 1, "kind=DEBIT": 0, f"from={day}&to={day}": 1, f"kind=win&from={day}": 0, "to=2020-01-31": 0, "from=2120-01-31&to=2120-01-31": 0}.items():
        assert len(owner.get(f"players/{player}/statement?{query}")["items"]) == count, query
    for query, field in {"kind=bet": "kind", "from=today": "from", "to=2026-02-30": "to", f"from=2120-01-31&to={day}": "from", "kind=DEBIT&kind=DEBIT": "kind"}.items():
        answer = owner.ask("GET", f"/admin/v1/players/{player}/statement?{query}")
        assert (code(answer), answer.json()["error"]["field"]) == ((422, "invalid"), field), query


def test_lists_are_paged_and_searched(house, owner):
    names = [f"paged {number}" for number in range(5)]
    for name in names:
        owner.change("POST", "customers", {"name": name}, 201)
    seen, cursor = [], ""
    while cursor is not None:
        page = owner.get(f"customers?q=PAGED&limit=2{cursor and '&cursor=' + cursor}")
        assert page["found"] == len(names)
        seen += [customer["name"] for customer in page["items"]]
        cursor = page["next"]
    assert seen == names
    for query in ("limit=0", "limit=201", "limit=x", "cursor=-1", "q=%ff", "q=a&q=b"):
        assert code(owner.ask("GET", f"/admin/v1/customers?{query}")) == (422, "invalid"), query


def test_players_are_found_by_what_somebody_has_of_them_the_last_active_first(house, owner):
    customer = house.add_customer("Play", options=["--casino"])
    house.await_admission(customer.key)
    players = [add_player(house, customer, f"p_{number}") for number in range(3)]
    for player in (players[1], players[0]):
        assert send(house, customer.key, credit(player, f"in-{player}", 500)).status == 200
    launch = owner.get(f"players/{players[2]}")["launches"][0]

    def found(query):
        page = owner.get(f"players?{query}")
        assert page["found"] == len(page["items"])
        return [player["player_id"] for player in page["items"]]

    order = [players[0], players[1], players[2]]
    assert found(f"customer={customer.id}") == order
    assert owner.get(f"players/{players[1]}")["last_active_at"] and owner.get(f"players/{players[2]}")["last_active_at"] is None

    def pages(query):
        """The pages of one player each, by the cursor of the one before."""
        ids, cursor = [], ""
        while cursor is not None:
            page = owner.get(f"players?{query}&limit=1{cursor and f'&cursor={cursor}'}")
            assert page["found"] == 3
            ids += [one["player_id"] for one in page["items"]]
            cursor = page["next"]
        return ids

    add_player(house, house.customer, "never-active")
    assert pages(f"customer={customer.id}") == pages("q=p_") == order
    everybody = owner.get("players")
    assert [one["player_id"] for one in everybody["items"]][:2] == order[:2] and everybody["found"] == len(everybody["items"])
    assert found("q=P_") == order and found("q=p_1") == found(f"q={players[1]}") == [players[1]]
    assert found(f"q={launch['launch_id']}") == found(f"q={launch['provider_player_id']}") == [players[2]]
    assert found("q=%25") == found("q=_1") == found(f"q=p_1&customer={house.customer.id}") == []


def test_all_that_is_wrong_is_said_at_once(house, owner):
    answer = owner.ask("POST", "/admin/v1/customers", {"cidrs": ["nonsense"], "rate": "x"}).json()["error"]
    assert (answer["code"], answer["field"], [one["field"] for one in answer["fields"]]) == ("invalid", "name", ["name", "cidrs", "rate"])
    answer = owner.ask("PATCH", f"/admin/v1/customers/{house.customer.id}", {"name": "", "sports": ["chess"]}).json()["error"]
    assert [one["field"] for one in answer["fields"]] == ["name", "sports"] and all(one["message"] for one in answer["fields"])
    answer = owner.ask("POST", "/admin/v1/providers", {"launch_url": "nonsense"}).json()["error"]
    assert [one["field"] for one in answer["fields"]] == ["name", "id", "launch_url"]
    assert "fields" not in owner.ask("POST", "/admin/v1/addresses", []).json()["error"]


def test_what_is_done_here_is_in_the_audit(house, owner):
    added = owner.change("POST", "customers", {"name": "Audited"}, 201)
    rows = owner.get(f"audit?object={added['id']}")["items"]
    assert [(row["who"], row["command"], row["kind"]) for row in rows] == [("console owner", "POST customers", "customer")]
    trail = house.run("audit", "list", "--json").text
    assert "ses_" in trail and owner.cookie not in trail


def test_use_is_told_with_what_was_moved_or_without(house, owner):
    day = f"from={date.fromtimestamp(time.time() - 86400)}"
    used = owner.get(f"usage?customer={house.customer.id}&{day}")
    assert [row["currency"] for row in used["wallet"]] and used == owner.get(f"usage?customer={house.customer.id}&{day}&wallet=true")
    without = owner.get(f"usage?customer={house.customer.id}&{day}&wallet=false")
    assert without["wallet"] is None and without["requests"] == used["requests"]
    refused = owner.ask("GET", "/admin/v1/usage?wallet=perhaps")
    assert (refused.status, refused.json()["error"]["message"]) == (422, "wallet: must be true or false")


def test_what_was_moved_is_added_up_for_one_request_at_a_time(house, owner):
    """So that one of the console's threads, of which there are two, is left for the others."""
    path = f"/admin/v1/usage?customer={house.customer.id}"
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: owner.ask("GET", path), range(64)))
    assert {answer.status for answer in answers} <= {200, 409} and 200 in {answer.status for answer in answers}
    assert {answer.json()["error"]["code"] for answer in answers if answer.status == 409} <= {"conflict"}
    assert owner.ask("GET", path).status == 200


def test_rounds_are_listed_and_narrowed_and_shown_by_page(house, owner):
    player, customer = add_player(house, house.customer, "plays-rounds"), house.customer
    played = [credit(player, "to-play", 900), debit(player, "played-1", 100, game_id="roulette", round_id="played-1"),
              debit(player, "played-2", 300, game_id="roulette", round_id="played-2"), credit(player, "won-2", 700, "played-2", round_id="played-2")]
    for document in played:
        assert send(house, customer.key, document).status == 200
        time.sleep(0.002)  # rounds that begin in one millisecond may be listed in either order

    def rounds(query=""):
        return [one["round_id"] for one in owner.get(f"rounds?q=played-{query}")["items"]]

    assert rounds() == rounds("&state=all") == ["played-2", "played-1"]
    assert rounds("&state=open") == ["played-1"] and rounds("&state=settled") == ["played-2"] and rounds("&state=ended") == []
    assert rounds(f"&player={player}") == rounds() and rounds(f"&player={player}&state=settled") == ["played-2"]
    assert rounds(f"&player={house.player}") == rounds("&player=ply_0") == []
    assert rounds(f"&customer={customer.id}&provider=acme") == rounds() and rounds("&provider=other") == rounds("&customer=cus_0") == []
    assert rounds("&older_than=24h") == rounds("&to=2020-01-01") == [] and rounds("&from=2020-01-01") == rounds("&older_than=0s") == rounds()
    first = owner.get("rounds?q=played-&limit=1")
    assert (first["found"], first["items"][0]["win_minor"], first["items"][0]["state"]) == (2, 700, "settled")
    [other] = owner.get(f"rounds?q=played-&limit=1&cursor={first['next']}")["items"]
    assert (other["stake_minor"], other["state"]) == (100, "open")
    for query, message in {"state=perhaps": "state: must be all, open, ended or settled", "from=2026": "from: must be a date, as 2026-11-21",
                           "from=2026-02-02&to=2026-02-01": "from: must not be after to",
                           "older_than=old": "older_than: must be how long ago, as 24h or 7d, or a time"}.items():
        refused = owner.ask("GET", f"/admin/v1/rounds?{query}")
        assert (refused.status, refused.json()["error"]["message"], refused.json()["error"]["field"]) == (422, message, message.partition(":")[0])
    told = house.run("wallet", "rounds", "--from", "2026", status=2)
    assert "from: must be a date" in told.errors
    [told] = [one for one in house.ask("wallet", "rounds", "--open", "--customer", customer.id) if one["player_id"] == player]
    assert told == other


# ---- money ---------------------------------------------------------------------------------------------

FIGURES = {"stake": ("stakes_minor", "rolled_back_stakes_minor", -1), "paid_out": ("transfers_out_minor", "rolled_back_transfers_out_minor", -1),
           "win": ("wins_minor", "rolled_back_wins_minor", 1), "paid_in": ("transfers_in_minor", "rolled_back_transfers_in_minor", 1),
           **{kind: (f"{kind}s_minor", f"rolled_back_{kind}s_minor", 1) for kind in ("promo", "jackpot", "adjustment")}}
NAMES = ("day", "customer", "provider", "game_id", "currency", "currency_exponent")


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    """Money of every kind: of three days, two customers, two providers and two currencies; service.days are more than these."""
    clock = Clock(tmp_path_factory.mktemp("clock") / "clock")
    service = Service(tmp_path_factory.mktemp("money"), {"provider.listen": "127.0.0.1:0"}, clock.environment)
    try:
        service.customers = [service.add_customer(name, options=["--casino"]) for name in ("Zürich Spiele", "Harbour")]
        add_games(service, "roulette", "dice")
        add_games(service, "bingo", provider="other", secret="another secret, of the other provider")
        service.start()
        first = date.fromisoformat(service.ask("wallet", "report")["day"])
        alice, carl = [add_player(service, customer, "x") for customer in service.customers]
        yuki = add_player(service, service.customers[0], "yuki", "JPY")
        moved = [
            [(0, credit(alice, "in", 100_000)), (0, credit(yuki, "in-y", 9000, currency="JPY")), (1, credit(carl, "in-c", 5005)),
             (0, debit(alice, "bet", 2500, game_id="roulette", round_id="r1")), (0, debit(alice, "bet-2", 100, game_id="dice", round_id="d1")),
             (0, debit(yuki, "bet-y", 70, currency="JPY", game_id="bingo", round_id="b1")), (0, debit(alice, "no-game", 33, round_id="of no game"))],
            [(0, credit(alice, "win", 7001, "bet")), (0, rollback(alice, "undo", "bet-2")), (1, debit(carl, "bet-c", 5, game_id="bingo", round_id="b2")),
             (0, debit(alice, "out", 1000)), (1, credit(carl, "in-c2", 1))],
            [(0, rollback(alice, "undo-win", "win")), (1, rollback(carl, "undo-in", "in-c2")), (0, rollback(alice, "undo-out", "out")),
             (0, rollback(alice, "undo-nothing", "never-came"))]]
        providers = [Provider(service), Provider(service, "other", "another secret, of the other provider")]
        for day, undone in zip(moved, ("gift", "pot", "mend")):
            for whose, document in day:
                assert send(service, service.customers[whose].key, document).status == 200, document
            for customer, provider, game in zip(service.customers, providers, ("roulette", "bingo")):
                _, subject, seat = launch(service, customer, game, "x")
                name = f"{provider.id}-{moved.index(day)}"
                for document in (debit(subject, f"{name}-bet", 11, game_id=game, round_id=name, launch_id=seat),
                                 credit(subject, f"{name}-gift", 3, game_id=game, round_id=name, kind="promo"),
                                 credit(subject, f"{name}-pot", 900, game_id=game, round_id=name, kind="jackpot"),
                                 credit(subject, f"{name}-mend", 17, game_id=game, round_id=name, kind="adjustment"),
                                 rollback(subject, f"{name}-undo", f"{provider.id}-0-{undone}")):
                    answer = provider.send(document, at=time.time() + clock.ahead[1] / 1e9)
                    assert answer.status == 200, (document, answer)
            clock.advance(wall=86400)
        service.days = [str(first + timedelta(number)) for number in range(5)]
        service.window = f"from={service.days[0]}&to={service.days[-1]}"
        service.prepare("operator", "add", "reader", "--role", "reader")
        service.reader = sign_in(service, "reader")
        yield service
    finally:
        service.stop()


def summed(rows, *by):
    """Rows with the same names, added up."""
    sums = {}
    for row in rows:
        of = sums.setdefault(tuple(row.get(name) for name in (*by, "currency")), {})
        for name in row.keys() - set(NAMES):
            of[name] = of.get(name, 0) + row[name]
    return sums


@pytest.mark.parametrize("narrowed", [{}, {"customer": 0}, {"customer": 1}, {"provider": "acme"}, {"customer": 0, "provider": "other"}])
def test_money_by_day_customer_provider_and_game_is_that_of_wallet_report(books, narrowed):
    narrowed = {name: books.customers[value].id if name == "customer" else value for name, value in narrowed.items()}
    options = [word for name, value in narrowed.items() for word in (f"--{name}", value)]
    told = [{"day": day, **line} for day in books.days for line in books.ask("wallet", "report", "--day", day, *options)["lines"]]
    report = books.reader.get(f"report?{books.window}" + "".join(f"&{name}={value}" for name, value in narrowed.items()))
    assert (report["from"], report["to"]) == (books.days[0], books.days[-1]) and told
    days, lines = [row for row in report["items"] if "day" in row], [row for row in report["items"] if "day" not in row]
    assert summed(days, "day", "customer") == summed(told, "day", "customer")
    assert summed(lines, "customer", "provider", "game_id") == summed(told, "customer", "provider", "game_id")
    assert len(days) == len(summed(days, "day", "customer")) and len(lines) == len(summed(lines, "customer", "provider", "game_id"))
    assert narrowed or {name for line in lines for name in FIGURES if line[FIGURES[name][0]]} == set(FIGURES)


def entries(books, query):
    """All entries of a question, page by page."""
    items, cursor = [], ""
    while cursor is not None:
        page = books.reader.get(f"entries?limit=7&{books.window}&{query}{cursor}")
        items += page["items"]
        cursor = page["next"] and f"&cursor={page['next']}"
    return items


def test_every_figure_is_the_sum_of_its_entries(books):
    report = books.reader.get(f"report?{books.window}")["items"]
    assert len(entries(books, "")) == sum(row["entries"] for row in report if "day" in row)
    for row in report:
        if "day" in row:
            query = f"customer={row['customer']}&from={row['day']}&to={row['day']}"
            of_row = [entry for entry in books.reader.get(f"entries?limit=200&{query}")["items"] if entry["currency"] == row["currency"]]
            assert len(of_row) == row["entries"] and all(entry["created_at"].startswith(row["day"]) for entry in of_row)
            continue
        without = {(True, True): "&without=both", (True, False): "&without=provider", (False, True): "&without=game"}
        query = f"customer={row['customer']}&provider={row['provider'] or ''}&game={row['game_id'] or ''}" + without.get(
            (row["provider"] is None, row["game_id"] is None), "")
        counted = 0
        for figure, (name, back, sign) in FIGURES.items():
            of_figure = [entry for entry in entries(books, f"{query}&figure={figure}") if entry["currency"] == row["currency"]]
            counted += len(of_figure)
            assert sum(entry["movement_minor"] for entry in of_figure) == sign * (row[name] - row[back]), (figure, row)
        assert counted == row["entries"] == len([entry for entry in entries(books, query) if entry["currency"] == row["currency"]]), row


def test_what_is_wrong_with_a_question_about_money_is_said(books):
    for query, message in {"from=2026": "from: must be a date, as 2026-11-21", "from=2026-02-02&to=2026-02-01": "from: must not be after to",
                           "from=2020-01-01&to=2026-01-01": "from: must be at most 365 days before to"}.items():
        for path in ("report", "entries", "usage"):
            refused = books.reader.ask("GET", f"/admin/v1/{path}?{query}")
            assert (refused.status, refused.json()["error"]["message"], refused.json()["error"]["field"]) == (422, message, "from"), path
    for query in ("figure=bets", "without=round", "limit=0"):
        assert code(books.reader.ask("GET", f"/admin/v1/entries?{query}")) == (422, "invalid"), query
    assert books.reader.get("report?customer=cus_0")["items"] == books.reader.get("entries?game=nothing")["items"] == []


def test_reports_for_people_name_customers(books):
    for command in (("wallet", "report", "--day", books.days[0]), ("usage", "--from", books.days[0], "--to", books.days[-1])):
        rows = [line for line in books.run(*command).text.splitlines() if books.customers[0].id in line]
        assert rows and all("Zürich Spiele" in row for row in rows), command


def test_settings_hide_passwords(house, owner):
    shown = {(row["section"], row["name"]): row["value"] for row in owner.get("settings")["items"]}
    assert shown["operator", "listen"] == "127.0.0.1:0"
    assert not re.search(r"://[^/]*:(?!\*\*\*@)[^/@:]+@", json.dumps(list(shown.values())))


# ---- the feed ------------------------------------------------------------------------------------------

EVENTS = [{"gmid": 30 - number, "ename": f"Match {number}", "feed_source": "hidden", "status": "OPEN"} for number in range(5)]
MARKETS = [{"mname": "Match \\u00e9", "tv": 1, "odds": 1.80}]


@pytest.fixture
def football(house):
    """Published as a feed writes it: with spaces, and numbers that have a form of their own."""
    house.publish("football", b"[ " + b", ".join(json.dumps(event).encode() for event in EVENTS) + b" ]", {
        29: json.dumps(MARKETS).replace("1.8}", "1.80 }").encode(), 28: b"[]"})
    return house


def test_what_a_customer_gets_for_an_event_is_shown_byte_for_byte(football, owner):
    for event, status in ((29, 200), (28, 200), (27, 404), (99, 404)):
        answer = football.get(f"/api/v1/football/events/{event}", football.customer.key)
        shown = owner.get(f"feed/football/{event}?customer={football.customer.id}")
        assert (shown["status"], shown["body"].encode(), shown["etag"]) == (status, answer.body, answer.header("ETag")), event
        assert owner.get(f"feed/football/{event}")["body"] == shown["body"]
        if status == 200:
            assert shown["published_at"]
    assert "1.80" in owner.get("feed/football/29")["body"]
    football.publish_odds("football", 29, [])
    answer = football.get("/api/v1/football/events/29", football.customer.key)
    assert owner.get("feed/football/29")["body"].encode() == answer.body


def test_what_a_customer_is_refused_is_shown_as_well(football, owner):
    tennis, closed = football.add_customer("Tennis alone", sports="tennis"), football.add_customer("Closed")
    football.run("customer", "disable", closed.id)
    football.await_admission(tennis.key)
    football.await_admission(closed.key, admitted=False)
    for customer, reason in ((tennis, "sport_not_allowed"), (closed, "ip_not_allowed")):
        answer = football.get("/api/v1/football/events/29", customer.key)
        shown = owner.get(f"feed/football/29?customer={customer.id}")
        assert (shown["status"], shown["body"].encode(), shown["etag"]) == (answer.status, answer.body, None)
        assert json.loads(shown["body"])["error"] == reason
    answer = owner.ask("GET", "/admin/v1/feed/football/29?customer=cus_nobody")
    assert (*code(answer), answer.json()["error"]["field"]) == (422, "invalid", "customer")


def test_sports_and_events_are_listed_with_their_ages(football, owner):
    sports = {row["sport"]: row for row in owner.get("feed")["items"]}
    assert list(sports) == ["cricket", "football", "tennis", "horse-racing", "greyhound-racing"]
    assert sports["football"]["events"] == 5 and sports["football"]["published_at"] and not sports["football"]["problem"]
    assert sports["tennis"]["events"] == 0 and sports["tennis"]["problem"]
    listed = owner.get("feed/football")
    assert [row["event_id"] for row in listed["items"]] == ["30", "29", "28", "27", "26"]
    assert [row["name"] for row in owner.get("feed/football?q=TCH%203")["items"]] == ["Match 3"]
    assert [row["event_id"] for row in owner.get("feed/football?q=28")["items"]] == ["28"]
    first = owner.get("feed/football?limit=2")
    assert [row["event_id"] for row in owner.get(f"feed/football?limit=2&cursor={first['next']}")["items"]] == ["28", "27"]
    # Asked for again and again: of an event it is noted once a second at most, and a test before may have asked.
    eventually(lambda: football.get("/api/v1/football/events/28", football.customer.key).status == 200
               and owner.get("feed/football?order=interest")["items"][0]["event_id"] == "28")
    assert football.get("/api/v1/football/events/29", football.customer.key).status == 200
    football.publish_odds("football", 29, [])
    oldest = owner.get("feed/football?order=age")["items"]
    assert [row["event_id"] for row in oldest[:2]] == ["28", "29"] and oldest[2]["published_at"] is None
    assert owner.get("feed/tennis") == {"sport": "tennis", "published_at": None, "found": 0, "items": [], "next": None}
    assert code(owner.ask("GET", "/admin/v1/feed/chess")) == (404, "unknown_record")
    assert code(owner.ask("GET", "/admin/v1/feed/football/0")) == (404, "unknown_record")
    assert code(owner.ask("GET", "/admin/v1/feed/football?order=size")) == (422, "invalid")


# ---- providers -----------------------------------------------------------------------------------------


def secrets_of(owner, provider):
    return [(secret["kid"], secret["signs"]) for secret in owner.get(f"providers/{provider}")["secrets"]]


def test_a_provider_is_added_with_a_secret_that_is_shown_once(house, owner):
    made = owner.change("POST", "providers", {"audience": "them", "id": "oasis", "name": "Oasis", "launch_url": "https://oasis.example/?a=1"}, 201)
    assert len(made["secret"]) == 43 and made["audience"] == "them" and made["enabled"]
    given = owner.change("POST", "providers", {"id": "sand", "name": "Sand", "launch_endpoint": "http://127.0.0.1:1/launch",
                                               "secret": "chosen by them: \u00e9"}, 201)
    assert "secret" not in given and given["launch_endpoint"] and not given["launch_url"]
    added = owner.change("POST", "providers/oasis/secrets", {}, 201)
    names = secrets_of(owner, "oasis")
    assert len(names) == 2 and names[0][1] and names[1] == ("first", False) and added["secret"] != made["secret"]
    assert code(owner.ask("POST", "/admin/v1/providers/oasis/secrets", {})) == (409, "conflict")
    owner.change("DELETE", "providers/oasis/secrets/first")
    assert [kid for kid, _ in secrets_of(owner, "oasis")] == [names[0][0]]
    assert code(owner.ask("DELETE", "/admin/v1/providers/oasis/secrets/first", None, SAME)) == (404, "unknown_record")
    key = house.directory / "secrets.key"
    kept = key.read_bytes()
    try:
        key.write_bytes(bytes(32))
        for path, body in (("providers", {"id": "late", "name": "Late", "launch_url": "https://late.example/"}),
                           ("providers/oasis/secrets", {})):
            refused = owner.ask("POST", f"/admin/v1/{path}", body)
            assert code(refused) == (409, "conflict") and "is not the key that the secret of provider" in refused.body.decode()
    finally:
        key.write_bytes(kept)
    rows = house.run("audit", "list", "--json").text
    shown = json.dumps([owner.get("audit"), owner.get("providers")]) + rows + house.log_text()
    assert "POST providers" in rows
    assert not any(secret in shown for secret in (made["secret"], added["secret"], "chosen by them"))


def test_what_is_wrong_with_a_provider_is_said_by_field(owner):
    sound = {"id": "wadi", "name": "Wadi", "launch_url": "https://wadi.example/"}
    for change, field in (({"id": "No Id"}, "id"), ({"id": None}, "id"), ({"name": ""}, "name"), ({"launch_url": "nonsense"}, "launch_url"),
                          ({"launch_url": None}, "launch_url"), ({"secret": ""}, "secret"), ({"secret": 7}, "secret"),
                          ({"secret": "x" * 513}, "secret"), ({"secret": "\ud800"}, "secret"), ({"launch_url": "https://a/\udfff"}, "launch_url"), ({"cidrs": ["300.0.0.0/8"]}, "cidrs")):
        document = {name: value for name, value in {**sound, **change}.items() if value is not None}
        answer = owner.ask("POST", "/admin/v1/providers", document)
        assert (*code(answer), answer.json()["error"]["field"]) == (422, "invalid", field), change
    assert code(owner.ask("POST", "/admin/v1/providers/acme/secrets", {"name": "x"})) == (422, "invalid")
    assert code(owner.ask("POST", "/admin/v1/providers", {**sound, "id": "acme"})) == (409, "conflict")


def test_a_provider_is_tried(house, owner):
    tried = owner.change("POST", "providers/acme/try", {"game": "roulette"})
    assert (tried["outcome"], tried["status"], tried["game_id"]) == ("launched", None, "roulette") and tried["expires_at"]
    claims = claims_of(tried["launch_url"])
    assert claims["game"] == "roulette" and claims["mode"] == "demo"
    assert code(owner.ask("POST", "/admin/v1/providers/acme/try", {"game": "nothing"})) == (404, "unknown_record")
    assert code(owner.ask("POST", "/admin/v1/providers/acme/try", {"game": 7})) == (422, "invalid")
    owner.change("PATCH", "providers/acme", {"launch_endpoint": "http://127.0.0.1:1/launch"})
    refused = owner.change("POST", "providers/acme/try")
    assert (refused["outcome"], refused["status"], refused["launch_url"]) == ("unreachable", None, None) and refused["reason"]
    owner.change("PATCH", "providers/acme", {"launch_url": "https://acme.example/"})


# ---- the ledger ----------------------------------------------------------------------------------------


def test_the_ledger_is_verified_from_here(house, owner):
    started = owner.ask("POST", "/admin/v1/ledger/verification")
    assert started.status in (202, 409)  # who-may-what has begun one, perhaps
    eventually(lambda: owner.get("ledger")["run"]["state"] != "running")
    before = owner.get("ledger")
    assert before["operations"]["CREDIT"] >= 1 and before["commits"] >= 1 and before["batches"] >= 1
    run = owner.change("POST", "ledger/verification", status=202)
    assert (run["state"], run["by"]) == ("running", "console owner")
    eventually(lambda: owner.get("ledger")["run"]["state"] == "sound")
    ledger = owner.get("ledger")
    assert ledger["run"]["entries"] == ledger["verified"]["whole"]["entries"] >= 1 and ledger["verified"]["whole"]["sound"]
    row = owner.get("audit?object=whole")["items"][0]
    assert (row["who"], row["command"], row["kind"], row["before"]) == ("console owner", "POST ledger", "verification", None)
    players = ledger["run"]["players"]  # of which other tests of this house may have added some
    assert row["after"] == {"sound": True, "entries": ledger["run"]["entries"], "players": players, "reason": None} and players >= 1


@pytest.fixture
def broken(make_service):
    """A balance was altered by hand, and the server started again."""
    service = make_service()
    customer = service.add_customer("House", options=["--casino"])
    add_games(service, "roulette")
    service.publish_nothing()
    service.run("operator", "add", "anna", "--role", "operator")
    service.start()
    service.player = add_player(service, customer)
    assert send(service, customer.key, credit(service.player, "in", 500)).status == 200
    service.stop()
    service.platform.execute("UPDATE ledger_account SET balance_minor = balance_minor + 5 WHERE player_number = 1", tampering=True)
    service.start()
    return service


def test_a_broken_ledger_is_shown(broken):
    anna = sign_in(broken, "anna")
    schema = resolved(DOCUMENT["paths"]["/admin/v1/ledger"]["get"]["responses"]["200"])["content"]["application/json"]["schema"]
    assert anna.get("ledger")["run"]["state"] == "none" and anna.get("ledger")["verified"]["whole"] is None
    anna.change("POST", "ledger/verification", status=202)
    eventually(lambda: anna.get("ledger")["run"]["state"] != "running")
    ledger = anna.get("ledger")
    jsonschema.validate(ledger, schema)
    run, whole = ledger["run"], ledger["verified"]["whole"]
    assert (run["state"], run["by"], run["player_id"], run["how"]) == ("broken", "console anna", broken.player, None), run
    assert broken.player in run["message"] and run["ended_at"]
    assert (whole["sound"], whole["reason"]) == (False, run["message"])
    row = anna.get("audit?object=whole")["items"][0]
    assert (row["who"], row["after"]["sound"], row["after"]["reason"]) == ("console anna", False, run["message"])
    told = broken.run("wallet", "verify", status=1)
    assert run["message"] in told.errors
    eventually(lambda: re.search(r'^croupier_ledger_verification_sound{[^}]*"whole"[^}]*} 0$',
                                 broken.request("GET", "/metrics", address=broken.operator_address).body.decode(), re.M))


# ---- services of their own -----------------------------------------------------------------------------


def test_guessing_is_locked_out(make_service):
    service = make_service()
    service.publish_nothing()
    service.prepare("operator", "add", "anna")
    service.start()
    console = Console(service)
    answers = [console.ask("POST", "/admin/v1/session", {"link": "lnk_" + "a" * 59}) for _ in range(6)]
    assert [answer.status for answer in answers] == [401] * 5 + [429]
    assert 1 <= int(answers[-1].header("Retry-After")) <= 60
    # A good link from there passes, and a bad one after it does not.
    assert console.ask("POST", "/admin/v1/session", {"link": link_of(service, "anna")}).status == 200
    assert console.ask("POST", "/admin/v1/session", {"link": "lnk_" + "a" * 59}).status == 429

    def sign_in_from(source, link):
        return service.request("POST", "/admin/v1/session", headers={**SAME, "Content-Type": "application/json"}, source=source,
                               body=json.dumps({"link": link}).encode(), address=service.operator_address)

    # Somebody who guesses from many addresses keeps nobody else out.
    for number in range(60):
        assert sign_in_from(f"127.0.1.{number + 1}", "lnk_" + "b" * 59).status == 401
    assert sign_in_from("127.0.0.9", link_of(service, "anna")).status == 200


def test_who_holds_connections_keeps_nobody_else_out(make_service):
    service = make_service()
    service.publish_nothing()
    service.prepare("operator", "add", "anna")
    service.start()
    anna = sign_in(service, "anna")
    whole = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    for sent in (b"", whole, whole * 3000, b"GET /metrics HTTP/1.1\r\n", b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1"):
        held = [service.connect(address=service.operator_address) for _ in range(200)]
        try:
            for connection in held:
                try:
                    connection.send(sent)
                except OSError:
                    pass  # it has made room already
            assert service.request("GET", "/metrics", address=service.operator_address).status == 200, sent
            assert anna.get("session")["name"] == "anna"
        finally:
            for connection in held:
                connection.close()


def test_no_console_on_a_public_address_without_https(make_service):
    service = make_service({"operator.listen": "0.0.0.0:0"})
    service.publish_nothing()
    service.prepare("operator", "add", "anna")
    service.start()
    assert Console(service).ask("GET", "/").status == Console(service).ask("GET", "/admin/v1/session").status == 404
    assert service.request("GET", "/metrics", address=service.operator_address).status == 200
    assert "has no HTTPS" in service.log_text()


def test_https_of_the_operator_listener(make_service, tmp_path):
    paths = certificate(tmp_path, days=9)
    service = make_service({"operator.listen": "127.0.0.1:0", "operator.tls_certificate": paths[0], "operator.tls_key": paths[1]})
    service.publish_nothing()
    service.prepare("operator", "add", "anna")
    service.start()
    console = Console(service, tls=trusting(paths[0]))

    def days_left():
        metrics = console.ask("GET", "/metrics").body.decode()
        expiry = re.search(r'^croupier_tls_certificate_expiry_timestamp_seconds{listener="operator"} (\S+)$', metrics, re.M)
        return (float(expiry.group(1)) - time.time()) / 86400

    link = {"link": link_of(service, "anna")}
    assert code(console.ask("POST", "/admin/v1/session", link, {"Origin": f"http://127.0.0.1:{service.operator_address[1]}"})) \
        == (403, "not_same_origin")
    answer = console.ask("POST", "/admin/v1/session", link, {"Origin": f"https://127.0.0.1:{service.operator_address[1]}"})
    assert answer.status == 200 and answer.header("Set-Cookie").endswith("; Max-Age=43200; Secure"), answer
    console.cookie = answer.header("Set-Cookie").partition("=")[2].partition(";")[0]
    assert Console(service, console.cookie).ask("GET", "/admin/v1/session").status == 400  # without TLS
    assert 8 < days_left() < 10
    # A new certificate counts for connections from the reload on; who is signed in stays so.
    renewed = certificate(tmp_path, "renewed", days=40)
    for new, old in zip(renewed, paths):
        old.write_bytes(new.read_bytes())
    service.run("reload", service.process.pid, configuration=False)
    with pytest.raises(ssl.SSLError):
        console.ask("GET", "/admin/v1/session")
    console.tls = trusting(renewed[0])
    assert console.get("session")["name"] == "anna" and 39 < days_left() < 41
    # A pair that does not fit is refused, and changes nothing.
    paths[0].write_bytes(certificate(tmp_path, "stranger")[0].read_bytes())
    service.run("reload", service.process.pid, configuration=False, status=1)
    assert console.get("session")["name"] == "anna"
