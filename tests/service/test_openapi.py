"""docs/openapi.yaml against the running service: what it answers is what the document says."""

import json
import re

import jsonschema
import pytest

from croupier import api_document, eventually, match_odds, row
from wallet_model import PATH, add_games, add_player, balance, credit, debit, rollback

pytestmark = pytest.mark.depends_on()

DOCUMENT = api_document("openapi")


def resolved(node, seen=()):
    """The node with every reference replaced by what it refers to."""
    if isinstance(node, list):
        return [resolved(item, seen) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        reference = node["$ref"]
        assert reference.startswith("#/") and reference not in seen, reference
        target = DOCUMENT
        for part in reference[2:].split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        return resolved(target, (*seen, reference))
    return {key: resolved(value, seen) for key, value in node.items()}


PATHS = resolved(DOCUMENT["paths"])
SCHEMAS = resolved(DOCUMENT["components"]["schemas"])
ERRORS = DOCUMENT["x-errors"]
ANYWHERE = {"404": "NotFound", "500": "InternalError"}
# Those that no document has: of HTTP, and one that is on every answer.
UNWRITTEN = {"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Date", "X-Content-Type-Options"}


def operation_of(path):
    """The document's path for a request path; the most exact one."""
    for template in sorted(PATHS, key=lambda template: template.count("{")):
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            return PATHS[template]
    return None


def verb_of(item):
    """The method that a path has, or the first of them (HEAD is not written down)."""
    return [verb for verb in ("get", "post", "put", "delete") if verb in item][0]


def described(path, response, method):
    """The answer is written at the operation itself, not only among those that may answer anything."""
    assert str(response.status) in operation_of(path)[method.lower()]["responses"], f"{path}: {response.status} is not in the document"
    check(path, response, method)


def check(path, response, method="GET"):
    operation = operation_of(path)
    verb = method.lower()
    described = operation and operation[verb if verb in operation else verb_of(operation)]["responses"].get(str(response.status))
    if described is None:
        assert operation is None or response.status == 500, f"{path}: {response.status} is not in the document"
        described = resolved(DOCUMENT["components"]["responses"][ANYWHERE[str(response.status)]])
    check_headers(described, response)
    if response.status == 304 or method == "HEAD":
        assert response.body == b""
        return
    check_body(described, response)


def check_headers(described, response):
    for name, header in described.get("headers", {}).items():
        value = response.header(name)
        if value is None and (name.startswith("X-RateLimit") or name in ("Preference-Applied", "Use-As-Dictionary", "Idempotent-Replayed")):
            continue  # only for callers with a limit, of answers that have waited or are repeated, and for who takes differences
        assert value is not None, f"{name} is missing: {response}"
        schema = header["schema"]
        jsonschema.Draft202012Validator(schema).validate(int(value) if schema.get("type") == "integer" else value)
    undescribed = {name for name, _ in response.fields} - described.get("headers", {}).keys() - UNWRITTEN
    assert not undescribed, response


def check_body(described, response):
    jsonschema.Draft202012Validator(described["content"]["application/json"]["schema"]).validate(response.json())
    if "error" in response.json():
        row = ERRORS[response.json()["error"]]
        assert response.error == (row["status"], response.json()["error"])
        assert response.json()["message"] == row.get("message", response.json()["message"])


def test_the_document_is_openapi_3_1_and_its_schemas_are_schemas():
    assert DOCUMENT["openapi"].startswith("3.1.")
    resolved(DOCUMENT)
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for path, item in PATHS.items():
        for name in re.findall(r"\{(\w+)\}", path):
            assert [p for p in item["parameters"] if p["name"] == name and p["in"] == "path" and p["required"]]
        assert item[verb_of(item)]["operationId"] and item[verb_of(item)]["responses"]


def test_every_error_is_answered_somewhere_in_the_document():
    used = set()
    for response in resolved(DOCUMENT["components"]["responses"]).values():
        content = response.get("content", {}).get("application/json")
        if content:
            codes = content["schema"]["properties"]["error"]["enum"]
            assert list(content["examples"]) == codes
            used.update(codes)
    assert used == set(ERRORS)


def test_the_schemas_refuse_what_must_not_be_there():
    for name, value in [("Event", {"gmid": 1, "feed_source": "x"}), ("Event", {"providerEventId": 1}),
                        ("Market", {"tv": 1}), ("Market", {"odd_type": 1}), ("Market", {"tvChannel": None}),
                        ("HealthOk", {"status": "ok"}), ("HealthDegraded", {"status": "ok", "cache": "unreachable"}),
                        ("Sports", {"sports": [{"key": "cricket", "name": "Curling"}]}),
                        ("SingleEvent", {"sport": "cricket", "event_id": 0, "event": {}, "odds": []})]:
        assert not jsonschema.Draft202012Validator(SCHEMAS[name]).is_valid(value), (name, value)


def test_every_answer_of_the_service_is_as_the_document_says(shared):
    shared.publish("cricket", [row(1, feed_source="x"), row(2)], {1: match_odds()})
    shared.publish("tennis", [row("99999999999999999999", providerEventId=5)],
                   {"99999999999999999999": [{"gtype": "fancy", "tv": 1, "section": [{"nat": "x", "gstatus": ""}]}]})
    shared.put("football", None, b"[{")
    limited = shared.add_customer("Limited", sports="cricket", rate="1000/3600")
    shared.await_admission(limited.key)
    seen = set()
    for path in ["/api/v1/health", "/api/v1/sports", "/api/v1/cricket/events", "/api/v1/cricket/events/1",
                 "/api/v1/cricket/events/2", "/api/v1/cricket/events/3", "/api/v1/cricket/events/x", "/api/v1/x/events",
                 "/api/v1/x/events/1", "/api/v1/tennis/events", "/api/v1/tennis/events/99999999999999999999",
                 "/api/v1/football/events", "/api/v1/football/events/1", "/api/v1/horse-racing/events",
                 "/api/v1/horse-racing/events/1", "/nothing"]:
        for key in (shared.customer.key, limited.key, None):
            response = shared.get(path, key=key)
            if response.status == 403 and operation_of(path) is None:
                continue
            check(path, response)
            check(path, shared.request("HEAD", path, key=key), "HEAD")
            seen.add((path, response.status))
            if response.header("etag"):
                again = shared.get(path, key=key, headers={"If-None-Match": response.header("etag")})
                assert again.status == 304
                check(path, again)
        if operation_of(path):
            response = shared.request("POST", path, key=shared.customer.key, body=b"")
            assert response.status == 405
            check(path, response)
    assert {status for _, status in seen} == {200, 400, 403, 404, 502, 503}


def test_what_a_poll_that_waited_is_answered_is_as_the_document_says(shared):
    shared.publish("cricket", [row(1), row(2)], {1: match_odds()})
    path = "/api/v1/cricket/events/1"
    tag = eventually(lambda: shared.get(path, key=shared.customer.key).header("etag"))
    for end, status in ((lambda: shared.publish_odds("cricket", 1, [{"n": 1}]), 200),
                        (lambda: shared.publish("cricket", [row(2)], {}), 404)):
        waiting = shared.metrics()["croupier_waiting_polls"]
        with shared.connect() as connection:
            connection.send(f"GET {path} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {shared.customer.key}\r\n"
                            f"If-None-Match: {tag}\r\nPrefer: wait=55\r\n\r\n")
            eventually(lambda: shared.metrics()["croupier_waiting_polls"] > waiting)
            end()
            response = connection.receive()
        assert (response.status, response.header("Preference-Applied")) == (status, "wait=55")
        check(path, response)
        tag = response.header("etag")


def test_refusals_by_the_limit_are_as_the_document_says(shared):
    limited = shared.add_customer("Spent", rate="1/3600")
    shared.await_admission(limited.key)
    shared.get("/api/v1/sports", key=limited.key)
    for path in ("/api/v1/sports", "/api/v1/cricket/events", "/api/v1/cricket/events/1"):
        response = eventually(lambda: [r for r in [shared.get(path, key=limited.key)] if r.status == 429])[0]
        check(path, response)


def test_the_wallet_and_the_account_answer_as_the_document_says(shared):
    customer = shared.add_customer("House", options=["--casino"])
    add_games(shared, "roulette")
    shared.lobby = "roulette"
    reads, manages = (shared.issue_key(customer.id, "--only", *options) for options in (["account"], ["manage", "--may-issue", "casino"]))
    player = add_player(shared, customer)
    for key in (reads, manages):
        shared.await_admission(key)
    seen = {}

    def ask(path, key=customer.key, method="GET", body=None, **fields):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        response = shared.request(method, path, key=key, body=body, headers={"Content-Type": "application/json", **fields})
        check(path.partition("?")[0], response, method)
        seen.setdefault("account" if "account" in path else path.rpartition("/")[2], set()).add(response.status)
        return response

    for document in (credit(player, "in", 100), debit(player, "bet", 30, game_id="roulette", round_id="r"), debit(player, "broke", 999),
                     rollback(player, "undo", "bet"), rollback(player, "again", "bet"), credit(player, "won", 1, "nothing")):
        first, second = (ask(PATH, method="POST", body=document) for _ in range(2))
        assert (first.header("Idempotent-Replayed"), second.header("Idempotent-Replayed")) == (None, "true"), document
    for document in (balance(player), balance("ply_nobody"), {}, credit(player, "in", 101), b"[" * 20000):
        ask(PATH, method="POST", body=document)
    ask(PATH, method="POST", body=balance(player), **{"Content-Encoding": "gzip"})
    ask(PATH)
    ask(PATH, key=reads, method="POST", body=balance(player))
    for body in ({"mode": "demo"}, {"mode": "real", "player_reference": "alice", "currency": "CHF"}, {}):
        ask("/api/v1/casino/games/roulette/launch", method="POST", body=body)
    ask("/api/v1/casino/games/nothing/launch", method="POST", body={"mode": "demo"})
    assert seen == {"wallet": {200, 400, 403, 404, 405, 409, 413, 415, 422}, "launch": {200, 400, 404, 422}}

    for query in ("", "/transactions?id=in", "/transactions?id=nothing", f"/players?player_id={player}", "/players?player_id=ply_nobody",
                  f"/statement?player_id={player}", "/rounds", "/days?day=2026-11-01", "/days?day=x", "/entries", "/usage"):
        limited = ask(f"/api/v1/account{query}", key=reads)
        assert limited.header("X-RateLimit-Limit")
    ask("/api/v1/account", key=manages)
    ask("/api/v1/account")
    ask("/api/v1/account", method="POST", key=reads, body={})
    block, keys = "/api/v1/account/block", "/api/v1/account/keys"
    for blocked in (True, False):
        ask(block, manages, "PUT", {"reference": "alice", "blocked": blocked})
    ask(block, manages, "PUT", b"{}", **{"Content-Encoding": "gzip"})
    ask(block, manages, "PUT", b"[" * 20000)
    ask(block, manages, "GET")
    ask(keys, manages, "POST", {"areas": ["sports"]})
    ask(keys, manages, "DELETE")
    ask(f"{keys}?prefix=crk_0000", manages, "DELETE")
    made = ask(keys, manages, "POST", {"only": ["casino"]})
    ask(f"{keys}?prefix={made.json()['prefix']}", manages, "DELETE")
    assert seen["account"] == {200, 201, 400, 403, 404, 405, 409, 413, 415}


def test_what_a_fault_and_a_wrong_percent_encoding_are_answered_is_as_the_document_says(shared):
    customer = shared.add_customer("Trying", options=["--casino", "--sandbox", "on"])
    add_games(shared, "baccarat", provider="trying", options=["--sandbox", "on"])
    reads = shared.issue_key(customer.id, "--only", "account")
    for key in (customer.key, reads):
        shared.await_admission(key)
    launch = "/api/v1/casino/games/baccarat/launch"
    for path, fault, expected in [("/api/v1/sports", "x", (400, "invalid_request")), ("/api/v1/cricket/events", "x", (400, "invalid_request")),
                                  ("/api/v1/cricket/events/1", "x", (400, "invalid_request")), (launch, "x", (400, "invalid_request")),
                                  (launch, "503", (503, "ledger_unavailable")), (launch, "500;applied=no", (500, "internal_error")),
                                  (launch, "500;applied=yes", (500, "internal_error")), (PATH, "500;applied=no", (500, "internal_error"))]:
        method, body = ("POST", b'{"mode":"demo"}') if "casino" in path else ("GET", None)
        response = shared.attempt(method, path, key=customer.key, body=body,
                                  headers={"Content-Type": "application/json", "X-Croupier-Fault": fault})
        assert response.error == expected, (path, response)
        described(path, response, method)
    for path, item in PATHS.items():
        if "400" in item[verb_of(item)]["responses"]:
            path = path.replace("{sport}", "cricket").replace("{eventId}", "1").replace("{gameId}", "baccarat")
            response = shared.attempt(verb_of(item).upper(), f"{path}?reference=%zz", key=reads if "account" in path else customer.key)
            assert response.error == (400, "bad_request"), (path, response)
            described(path, response, verb_of(item))


def test_words_that_the_service_refuses_the_document_refuses_or_describes(shared):
    """A schema counts characters, and the service bytes; which countries there are no pattern says."""
    customer = shared.add_customer("Wordy", options=["--casino"])
    add_games(shared, "words", provider="wordy")
    shared.lobby = "words"  # another test's may be a sandbox's
    player = add_player(shared, customer)
    shared.await_admission(customer.key)
    real = {"mode": "real", "player_reference": "alice", "currency": "EUR"}
    asked = [("launch", {**mode, field: word}, field) for mode in (real, {"mode": "demo"}) for field in ("language", "device")
             for word in ("a\nb", "a\x7f", "a\x85", "\u20ac" * 22)]
    asked += [("launch", {**mode, "country": "UK"}, "country") for mode in (real, {"mode": "demo"})]
    for number, word in enumerate(("a\nb", "a\x7f", "a\x85", "\u20ac" * 22)):
        for request in (debit, credit):
            for field in ("game_id", "round_id"):
                asked.append(("wallet", {**request(player, f"word-{number}", 1, game_id="words", round_id="r"), field: word}, field))
    schemas = {"launch": SCHEMAS["LaunchRequest"], "wallet": SCHEMAS["WalletRequest"]}
    for kind, body, field in asked:
        path = PATH if kind == "wallet" else "/api/v1/casino/games/words/launch"
        response = shared.request("POST", path, key=customer.key, body=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
        assert response.error == (400, "invalid_request") and field in response.json()["message"], (body, response)
        if jsonschema.Draft202012Validator(schemas[kind]).is_valid(body):
            [described] = {one["properties"][field]["description"] for one in schemas[kind]["oneOf"]
                           if jsonschema.Draft202012Validator(one).is_valid(body)}
            assert ("64 bytes" if field != "country" else "not UK") in described, (body, described)


def test_what_is_answered_without_stores_is_as_the_document_says(make_service):
    service = make_service(stores=False)
    service.start(healthy=False)
    for path, item in PATHS.items():
        path = path.replace("{sport}", "cricket").replace("{eventId}", "1").replace("{gameId}", "g")
        response = service.attempt(verb_of(item).upper(), path)  # once: `request` asks again for seconds
        assert response.status == 503
        check(path, response)


@pytest.mark.parametrize("request_bytes, code", [
    (b"GET / HTTP/1.1\r\n\r\n", "bad_request"), (b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", "version_not_supported"),
    (b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "not_implemented"),
    (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n", "payload_too_large"),
    (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", "uri_too_long"),
    (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 17000 + b"\r\n\r\n", "headers_too_large"),
    (b"GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", "expectation_failed")])
def test_refusals_of_what_is_not_http_are_as_the_document_says(shared, request_bytes, code):
    with shared.connect() as connection:
        connection.send(request_bytes)
        response = connection.receive()
    described = resolved(DOCUMENT["components"]["responses"]["NotProperHttp"])
    check_headers(described, response)
    check_body(described, response)
    assert response.error == (ERRORS[code]["status"], code)
