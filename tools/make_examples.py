#!/usr/bin/env python3
"""The examples of docs/openapi.yaml, docs/provider.yaml and docs/admin.yaml: asks servers that it starts, and writes what they answer.

    CROUPIER_BIN=build/croupier /usr/bin/python3 tools/make_examples.py

It writes the part of each document from `  examples:` to the end. An example stays as it is while what changes from run to run (ids,
times, secrets, figures) is all that differs. tests/service/test_document_examples.py compares the documents in the same way.
"""

import http.server
import json
import os
import re
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
os.environ.setdefault("TEST_ENGINES", "embedded,sqlite")
sys.path[:0] = [str(ROOT / "tests" / "service"), str(ROOT / "tests")]

import yaml  # noqa: E402
from croupier import Service, certificate, eventually  # noqa: E402
from wallet_model import PATH, Provider, balance, claims_of, credit, debit, rollback  # noqa: E402

DOCUMENTS = ("openapi", "provider", "admin")
HEAD = "  # tools/make_examples.py writes what follows, from the answers of a server.\n  examples:\n"
SECRET = "an example's secret, 32 bytes at least"
GAMES = [
    {"id": "anubis-falls", "name": "Anubis Falls", "provider": "dune-studio", "category": "slots", "features": ["free-spins"],
     "rtp_bps": 9650, "volatility": "high", "demo": True, "currencies": ["EUR", "USD"], "languages": ["en", "de"],
     "devices": ["desktop", "mobile"], "blocked_countries": ["AU"]},
    {"id": "roulette", "name": "Roulette", "provider": "dune-studio", "category": "table", "currencies": ["EUR"]},
    {"id": "sand-dice", "name": "Sand Dice", "provider": "called-studio", "category": "table", "currencies": ["EUR"]},
]
EVENT = {"gmid": 34000001, "ename": "India v Australia", "etid": 4, "cid": 6651951, "cname": "Island Short League",
         "stime": "11/23/2026 1:52:02 AM", "status": "OPEN", "iplay": True}
MARKETS = [{"marketId": "1.34000001", "marketName": "Match Odds", "gtype": "match", "status": "OPEN", "min": 100, "max": 50000,
            "runners": [{"selectionId": 101, "runnerName": "India", "status": "ACTIVE", "sortPriority": 1, "ex": {
                "availableToBack": [{"price": 1.85, "size": 450.06, "otype": "back", "oname": "back1", "tno": 0}],
                "availableToLay": [{"price": 1.87, "size": 310.5, "otype": "lay", "oname": "lay1", "tno": 0}]}}]}]

# Members whose values differ from run to run, wherever they are.
CHANGING = re.compile(r"(_at|_ms|_bytes|_microseconds|_url|_expires)$|^(id|key|prefix|player_id|launch_id|customer|object|kid|link|token|address|"
                      r"etag|before|after|session|secret|milliseconds|iat|exp|sub|jti|bytes|operations_in_all|batches|commits|"
                      r"operations_in_batches|waiting|who|next|next_cursor|next_hash|at|command|secrets|pid|commit|version|provider_player_id|hash)$")
# Answers of figures, which depend on how fast the machine is: the types of their members are compared, and a list may be empty.
FIGURES = {"getOverview", "getLedger", "getSettings", "listFeed", "listFeedEvents", "verifyLedger", "getUsage", "listDenials"}
VARYING = re.compile(r"\b(ply|cus|lau|key|lnk|cro|ses)_[0-9A-Za-z]+|\b(crk|key)_\w+|/tmp/[\w./-]+|/dev/shm/[\w./-]+|127[.]0[.]0[.]1:\d+|"
                     r"\d{4}-\d\d-\d\d(T[\d:.]+Z)?")


def kind(value):
    return "number" if value is None or isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def alike(one, other, figures):
    """Whether two values say the same but for what changes from run to run."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            kind(one[name]) == kind(other[name]) if CHANGING.search(name) and not isinstance(one[name], (dict, list))
            else alike(one[name], other[name], figures) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        if figures:
            return not one or not other or alike(one[0], other[0], figures)
        return len(one) == len(other) and all(alike(*pair, figures) for pair in zip(one, other))
    if figures:
        return kind(one) == kind(other)
    if isinstance(one, str) and isinstance(other, str):
        return VARYING.sub("*", one) == VARYING.sub("*", other)
    return one == other and kind(one) == kind(other)


def same(name, one, other):
    return alike(one, other, name.partition(".")[0] in FIGURES)


class Taken:
    """Examples as they are taken, {document: {name: value}}."""

    def __init__(self):
        self.documents = {name: {} for name in DOCUMENTS}

    def keep(self, document, name, value):
        assert name not in self.documents[document], name
        self.documents[document][name] = value
        return value


class Customer:
    """Asks as a customer's server does; keeps requests and answers."""

    def __init__(self, taken, service, key):
        self.taken, self.service, self.key = taken, service, key

    def take(self, name, path, method="GET", body=None, status=200, ask=None, **fields):
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        sent = body
        if isinstance(body, dict):
            sent, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        answer = self.service.request(method, "/api/v1/" + path, key=self.key, headers=headers, body=sent)
        assert answer.status == status, (name, answer)
        if status >= 400 and "error" in answer.json():
            assert answer.json()["error"] == name, (name, answer)
        elif ask:
            self.taken.keep("openapi", name + ".request", body)
        if name not in self.taken.documents["openapi"]:
            self.taken.keep("openapi", name, answer.json())
        return answer.json()

    def wallet(self, name, document, status=200):
        return self.take(name, "casino/wallet", "POST", document, status, ask=status == 200)


def odds(taken, service, customer):
    customer.take("getHealth", "health")
    customer.take("listSports", "sports")
    customer.take("listEvents", "cricket/events")
    customer.take("getEvent", "cricket/events/34000001")
    customer.take("invalid_sport", "curling/events", status=400)
    customer.take("invalid_event_id", "cricket/events/x", status=400)
    customer.take("event_not_found", "cricket/events/34000009", status=404)
    customer.take("odds_not_found", "cricket/events/34000002", status=404)
    customer.take("not_found", "nothing", status=404)
    customer.take("method_not_allowed", "sports", "POST", b"", status=405)
    customer.take("precondition_failed", "sports", status=412, If_Match='"another"')
    customer.take("malformed_upstream_data", "football/events", status=502)
    customer.take("catalog_unavailable", "horse-racing/events", status=503)
    some = service.add_customer("Weekend Picks", sports="cricket", rate="1/3600")
    service.await_admission(some.key)
    few = Customer(taken, service, some.key)
    few.take("sport_not_allowed", "tennis/events", status=403)
    service.get("/api/v1/sports", key=some.key)
    few.take("rate_limited", "sports", status=429)
    few.take("casino_access_disabled", "casino/games", status=403)
    Customer(taken, service, "wrong").take("ip_not_allowed", "sports", status=403)


def raw(taken, service):
    """Refusals of what is no request that croupier takes."""
    for name, request in {
            "bad_request": b"GET / HTTP/1.1\r\n\r\n", "version_not_supported": b"GET / HTTP/3.0\r\nHost: a\r\n\r\n",
            "not_implemented": b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n",
            "payload_too_large": b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n",
            "uri_too_long": b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
            "headers_too_large": b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 17000 + b"\r\n\r\n",
            "expectation_failed": b"GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n"}.items():
        for document, address in (("openapi", service.address), ("provider", service.provider_address)):
            answer, connection = exchanged(service, request, address)
            connection.close()
            assert answer["error"] == name, answer
            taken.keep(document, name, answer)


def casino(taken, service, customer):
    customer.take("listGames", "casino/games?limit=1")
    customer.take("invalid_request", "casino/games?limit=0", status=400)
    place = "casino/games/anubis-falls/launch"
    real = {"mode": "real", "player_reference": "alice", "currency": "EUR", "language": "en", "device": "mobile", "country": "DE",
            "player_ip": "203.0.113.7"}
    customer.take("launchGame.demo", place, "POST", {"mode": "demo", "country": "DE"}, ask=True)
    player = customer.take("launchGame.real", place, "POST", real, ask=True)["player_id"]
    customer.take("game_not_found", "casino/games/nothing/launch", "POST", real, status=404)
    customer.take("currency_not_supported", place, "POST", {**real, "currency": "JPY"}, status=422)
    customer.take("language_not_supported", place, "POST", {**real, "language": "fr"}, status=422)
    customer.take("device_not_supported", place, "POST", {**real, "device": "tv"}, status=422)
    customer.take("country_not_supported", place, "POST", {**real, "country": "AU"}, status=422)
    customer.take("mode_not_supported", "casino/games/roulette/launch", "POST", {"mode": "demo"}, status=422)
    customer.take("provider_unavailable", "casino/games/sand-dice/launch", "POST", {"mode": "real", "player_reference": "alice",
                                                                                     "currency": "EUR"}, status=503)
    customer.take("unsupported_media_type", place, "POST", json.dumps(real).encode(), status=415, Content_Encoding="gzip",
                  Content_Type="application/json")
    play = {"game_id": "anubis-falls", "round_id": "round-1"}
    customer.wallet("wallet.balance", balance(player))
    customer.wallet("wallet.credit", credit(player, "in-1", 2500))
    customer.wallet("wallet.debit", debit(player, "bet-1", 100, **play))
    customer.wallet("wallet.win", credit(player, "win-1", 250, "bet-1", **play))
    customer.wallet("already_settled", rollback(player, "undo-1", "bet-1"), 409)
    assert customer.take("wallet.debit", "casino/wallet", "POST", debit(player, "bet-2", 100, game_id="anubis-falls", round_id="round-2"))
    customer.wallet("wallet.rollback", rollback(player, "undo-2", "bet-2"))
    customer.wallet("already_rolled_back", rollback(player, "undo-3", "bet-2"), 409)
    customer.wallet("not_rollbackable", rollback(player, "undo-4", "undo-2"), 409)
    customer.wallet("reference_not_found", credit(player, "win-9", 10, "bet-9", **play), 404)
    customer.wallet("transaction_conflict", debit(player, "bet-1", 200, **play), 409)
    customer.take("wallet.rollback", "casino/wallet", "POST", rollback(player, "undo-5", "bet-5"))
    customer.wallet("transaction_rolled_back", debit(player, "bet-5", 10, **play), 409)
    customer.wallet("insufficient_funds", debit(player, "bet-6", 10000000, **play), 422)
    customer.wallet("currency_mismatch", debit(player, "bet-7", 100, "USD", **play), 422)
    customer.wallet("player_not_found", balance("ply_000000000000"), 404)
    customer.wallet("unknown_field", {**balance(player), "note": "x"}, 400)
    service.run("player", "block", player, "--reason", "asked for a break")
    customer.wallet("player_blocked", debit(player, "bet-8", 100, **play), 403)
    service.run("player", "unblock", player, "--early", "--reason", "the break is over")
    return player


def account(taken, service, shop, player):
    """What a customer sees of its own, and changes."""
    reads, manages = (service.issue_key(shop.id, "--only", only, *more) for only, more in (
        ("account", ()), ("manage", ("--may-issue", "sports,casino"))))
    for key in (reads, manages):
        service.await_admission(key)
    reader, manager = (Customer(taken, service, key) for key in (reads, manages))
    manager.take("area_not_allowed", "account", status=403)
    reader.take("getAccount", "account")
    manager.take("putBlock", "account/block", "PUT", {"reference": "alice", "blocked": True, "until": "2099-01-31T18:00:00Z",
                                                     "reason": "asked for a break"}, ask=True)
    manager.take("block_conflict", "account/block", "PUT", {"reference": "alice", "blocked": False}, status=409)
    manager.take("putBlock", "account/block", "PUT", {"reference": "alice", "blocked": False, "early": True, "reason": "the break is over"})
    service.run("player", "block", shop.id, "bob")
    manager.take("blocked_by_operator", "account/block", "PUT", {"reference": "bob", "blocked": False}, status=409)
    service.run("player", "unblock", shop.id, "bob", "--early", "--reason", "the break is over")
    made = manager.take("makeKey", "account/keys", "POST", {"only": ["sports"], "label": "poller 2"}, 201, ask=True)
    manager.take("revokeKey", f"account/keys?prefix={made['prefix']}", "DELETE")
    manager.take("key_not_found", f"account/keys?prefix={made['prefix']}", "DELETE", status=404)
    for _ in range(10):
        service.request("POST", "/api/v1/account/keys", key=manages, headers={"Content-Type": "application/json"}, body=b'{"only": ["sports"]}')
    manager.take("too_many_keys", "account/keys", "POST", {"only": ["sports"]}, 409)
    service.run("key", "revoke", manages)
    reader.take("getTransaction", "account/transactions?id=bet-1")
    reader.take("transaction_not_found", "account/transactions?id=nothing", status=404)
    reader.take("findPlayers", "account/players?reference=alice")
    day = reader.take("getStatement", f"account/statement?player_id={player}&limit=3")["statement"][0]["created_at"][:10]
    reader.take("listRounds", "account/rounds?limit=2")
    reader.take("getDay", f"account/days?day={day}")
    reader.take("listEntries", "account/entries?limit=2")
    reader.take("getUsage", "account/usage")


def provider(taken, service, customer):
    studio = Provider(service, "dune-studio", SECRET)
    real = {"mode": "real", "player_reference": "bob", "currency": "EUR", "country": "DE"}
    launch = customer.take("launchGame.real", "casino/games/anubis-falls/launch", "POST", real)
    player, launched = claims_of(launch["launch_url"])["sub"], launch["launch_id"]
    Studio.asked = []
    customer.take("launchGame.real", "casino/games/sand-dice/launch", "POST", {"mode": "real", "player_reference": "bob", "currency": "EUR"})
    taken.keep("provider", "launch.request", Studio.asked[0])
    taken.keep("provider", "launch", Studio.ANSWER)
    Studio.asked = None
    customer.take("wallet.credit", "casino/wallet", "POST", credit(launch["player_id"], "in-2", 2500))

    def take(name, document, status=200, **fields):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        answer = studio.post(body, {**studio.fields(body), **fields})
        assert answer.status == status and (status == 200 or answer.json()["error"] == name), (name, answer)
        if status == 200 and name not in taken.documents["provider"]:
            taken.keep("provider", name + ".request", document)
        if name not in taken.documents["provider"]:
            taken.keep("provider", name, answer.json())

    play = {"launch_id": launched, "game_id": "anubis-falls", "round_id": "round-7"}
    bet = lambda identity, amount, **more: debit(player, identity, amount, **{**play, **more})
    win = lambda identity, amount, reference=None, **more: credit(player, identity, amount, reference, game_id="anubis-falls", round_id="round-7", **more)
    take("balance", balance(player))
    take("debit", bet("bet-1", 100))
    take("credit", win("win-1", 250, "bet-1", round_ended=True))
    take("promo", win("promo-1", 500, kind="promo"))
    take("already_settled", rollback(player, "undo-1", "bet-1"), 409)
    take("debit", bet("bet-2", 100))
    take("rollback", rollback(player, "undo-2", "bet-2"))
    take("already_rolled_back", rollback(player, "undo-3", "bet-2"), 409)
    take("not_rollbackable", rollback(player, "undo-4", "undo-2"), 409)
    take("rollback", rollback(player, "undo-5", "bet-5"))
    take("transaction_rolled_back", bet("bet-5", 10), 409)
    take("transaction_conflict", bet("bet-1", 200), 409)
    take("reference_not_found", win("win-9", 10, "bet-9"), 404)
    take("insufficient_funds", bet("bet-6", 10000000), 422)
    take("currency_mismatch", debit(player, "bet-7", 100, "USD", **play), 422)
    take("game_not_found", bet("bet-8", 100, game_id="sand-dice"), 404)
    take("session_expired", bet("bet-9", 100, launch_id="lau_0000000000000000"), 422)
    take("player_not_found", balance("nobody"), 404)
    take("invalid_request", {"operation": "DEBIT", "player_id": player}, 400)
    take("unknown_field", {**balance(player), "note": "x"}, 400)
    take("unsupported_media_type", balance(player), 415, **{"Content-Encoding": "gzip"})
    take("not_admitted", balance(player), 403, **{"X-Croupier-Provider": "another"})
    service.run("player", "block", launch["player_id"], "--reason", "asked for a break")
    take("player_blocked", bet("bet-10", 100), 403)
    service.run("player", "unblock", launch["player_id"], "--early", "--reason", "the break is over")
    for name, method, path in (("method_not_allowed", "GET", "/provider/v1/wallet"), ("not_found", "POST", "/provider/v1/nothing")):
        answer = studio.post(b"", studio.fields(b""), path, method)
        assert answer.json()["error"] == name, answer
        taken.keep("provider", name, answer.json())


class Operator:
    """Asks as a page of the console does, or a machine; keeps requests and answers."""

    def __init__(self, taken, service, cookie=None, token=None):
        self.taken, self.service, self.cookie, self.token = taken, service, cookie, token

    def ask(self, method, path, body=None, fields=None):
        sent = {"Sec-Fetch-Site": "same-origin", **({} if body is None else {"Content-Type": "application/json"})}
        if self.cookie:
            sent["Cookie"] = f"croupier_session={self.cookie}"
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        sent.update(fields or {})
        return self.service.request(method, "/admin/v1/" + path, headers=sent, body=body if isinstance(body, (bytes, type(None)))
                                    else json.dumps(body).encode(), address=self.service.operator_address)

    def take(self, name, path, method="GET", body=None, status=200, first=None):
        """first: so many of its items are enough for an example."""
        answer = self.ask(method, path, body)
        assert answer.status == status, (name, answer)
        if body is not None:
            self.taken.keep("admin", name + ".request", body)
        if not answer.body:
            return None
        value = answer.json()
        if first:
            value["items"] = value["items"][:first]
        return self.taken.keep("admin", name, value)

    def refuse(self, code, path, method="GET", body=None, status=400, **fields):
        answer = self.ask(method, path, body, {name.replace("_", "-"): value for name, value in fields.items()})
        assert answer.status == status and code in str(answer.json()["error"]), answer
        self.taken.keep("admin", code, answer.json())


def admin(taken, service, shop, player):
    link = service.ask("operator", "link", "anna")["link"].partition("#/sign-in/")[2]
    stranger = Operator(taken, service)
    signed_in = stranger.ask("POST", "session", {"link": link})
    taken.keep("admin", "signIn.request", {"link": link})
    taken.keep("admin", "signIn", signed_in.json())
    anna = Operator(taken, service, signed_in.header("Set-Cookie").partition("=")[2].partition(";")[0])
    anna.take("getSession", "session")
    anna.take("getOverview", "overview")
    anna.take("getSettings", "settings", first=2)
    anna.take("getHealth", "health")
    added = anna.take("createCustomer", "customers", "POST", {
        "name": "Harbour Casino", "cidrs": ["203.0.113.0/24"], "sports": "all", "rate": {"requests": 600, "window_seconds": 60},
        "casino": True}, 201)["id"]
    anna.take("listCustomers", "customers?limit=1")
    anna.take("getCustomer", f"customers/{shop}")
    anna.take("updateCustomer", f"customers/{added}", "PATCH", {"enabled": False, "rate": "300/60"})
    lost = anna.ask("POST", "keys", {"customer": shop}).json()
    service.await_admission(lost["key"])
    anna.ask("DELETE", f"keys/{lost['id']}")
    service.await_admission(lost["key"], admitted=False)
    anna.take("listDenials", f"customers/{shop}/denials")
    anna.take("getSeen", f"customers/{shop}/account/account")
    anna.take("setCustomerGames", f"customers/{added}/games", "PUT", {"games": ["roulette"], "every_game": False})
    anna.take("getCustomerGames", f"customers/{added}/games")
    key = anna.take("issueKey", "keys", "POST", {"customer": added}, 201)
    anna.take("listKeys", f"keys?customer={added}")
    anna.take("revokeKey", f"keys/{key['id']}", "DELETE")
    anna.take("createAddress", "addresses", "POST", {"address": "2001:db8::9", "sports": ["tennis"], "rate": "60/60"}, 201)
    anna.take("listAddresses", "addresses?limit=1")
    anna.take("getAddress", "addresses/2001%3Adb8%3A%3A9")
    anna.take("updateAddress", "addresses/2001%3Adb8%3A%3A9", "PATCH", {"enabled": False})
    anna.refuse("conflict", "addresses", "POST", {"address": "2001:db8::9"}, 409)
    anna.take("deleteAddress", "addresses/2001%3Adb8%3A%3A9", "DELETE", status=204)
    anna.take("createProvider", "providers", "POST", {"id": "tide-games", "name": "Tide Games",
                                                      "launch_url": "https://tide.example/launch"}, 201)
    anna.take("listProviders", "providers?limit=1")
    anna.take("getProvider", "providers/tide-games")
    anna.take("updateProvider", "providers/tide-games", "PATCH", {"cidrs": ["198.51.100.0/24"]})
    secrets = anna.take("addProviderSecret", "providers/tide-games/secrets", "POST", {}, 201)
    secrets = anna.ask("GET", "providers/tide-games").json()["secrets"]
    anna.take("retireProviderSecret", f"providers/tide-games/secrets/{secrets[0]['kid']}", "DELETE")
    anna.take("tryProvider", "providers/dune-studio/try", "POST", {"game": "anubis-falls"})
    anna.take("importGames", "games/import", "POST", [{"id": "high-tide", "name": "High Tide", "provider": "tide-games",
                                                       "category": "slots", "currencies": ["EUR"]}])
    anna.take("listGames", "games?limit=1")
    anna.take("getGame", "games/anubis-falls")
    anna.take("updateGame", "games/high-tide", "PATCH", {"blocked_countries": ["AU"]})
    anna.take("listPlayers", f"players?customer={shop}&limit=1")
    anna.take("getPlayer", f"players/{player}")
    anna.take("updatePlayer", f"players/{player}", "PATCH", {"blocked": True, "reason": "asked for a break", "until": "2099-01-31"})
    anna.take("listBlocks", "blocks?limit=1")
    anna.take("getBlock", f"blocks/{player}")
    anna.take("updateBlock", f"blocks/{player}", "PATCH", {"blocked": False, "early": True, "reason": "the break is over"})
    anna.take("getStatement", f"players/{player}/statement?limit=2")
    anna.take("listRounds", "rounds?limit=1")
    anna.take("createOperator", "operators", "POST", {"name": "bela", "role": "reader"}, 201)
    anna.take("listOperators", "operators?limit=1")
    anna.take("getOperator", "operators/bela")
    anna.take("updateOperator", "operators/bela", "PATCH", {"role": "operator"})
    link = anna.take("createOperatorLink", "operators/bela/link", "POST", status=201)["link"].partition("#/sign-in/")[2]
    bela = stranger.ask("POST", "session", {"link": link}).header("Set-Cookie").partition("=")[2].partition(";")[0]
    bela = Operator(taken, service, bela)
    sessions = anna.take("listSessions", "sessions?limit=2")["items"]
    anna.take("createToken", "tokens", "POST", {"name": "billing", "role": "reader", "expires_at": "90d", "cidrs": ["198.51.100.0/24"]},
              201)
    anna.take("listTokens", "tokens?limit=1")
    token = anna.ask("POST", "tokens", {"name": "export", "role": "reader"}).json()
    anna.take("getToken", f"tokens/{token['id']}")
    far = Operator(taken, service, token=taken.documents["admin"]["createToken"]["token"])
    far.refuse("token_not_from_here", "session", status=403)
    machine = Operator(taken, service, token=token["token"])
    machine.refuse("no_session", "session", "DELETE", status=403)
    Operator(taken, service, anna.cookie, token["token"]).refuse("two_credentials", "session")
    anna.take("revokeToken", f"tokens/{token['id']}", "DELETE")
    machine.refuse("token_not_good", "session", status=401)
    for _ in range(5):
        refused = machine.ask("GET", "session")
    assert refused.status == 429, refused
    machine.refuse("too_many_attempts", "session", status=429)
    anna.take("listFeed", "feed", first=2)
    anna.take("listFeedEvents", "feed/cricket?limit=1")
    anna.take("getFeedEvent", f"feed/cricket/34000001?customer={shop}")
    anna.take("getLedger", "ledger")
    anna.take("tailLedger", "ledger/tail", first=2)
    anna.take("verifyLedger", "ledger/verification", "POST", status=202)
    anna.take("listAudit", "audit?limit=1&object=high-tide")
    anna.take("tailAudit", "audit/tail?object=high-tide")
    anna.take("getUsage", "usage?wallet=true")
    anna.take("getReport", "report", first=2)
    anna.take("listEntries", "entries?figure=stake&limit=2")
    stranger.refuse("not_signed_in", "session", status=401)
    stranger.refuse("link_not_good", "session", "POST", {"link": link}, 401)
    bela.refuse("role_too_low", "operators", status=403)
    anna.refuse("not_same_origin", "customers", "POST", {}, 403, Sec_Fetch_Site="cross-site")
    anna.refuse("not_found", "nothing", status=404)
    anna.refuse("unknown_record", "customers/cus_0000000000000000", status=404)
    anna.refuse("method_not_allowed", "overview", "POST", {}, 405)
    anna.refuse("changed_meanwhile", f"customers/{added}", "PATCH", {"enabled": True}, 412, If_Match='"before"')
    anna.refuse("payload_too_large", "games/import", "POST", b"[" + b" " * 20000 + b"]", 413)
    anna.refuse("not_json", "customers", "POST", {}, 415, Content_Type="text/plain")
    with service.connect(address=service.operator_address) as connection:
        connection.send(b"GET /admin/v1/session HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n")
        taken.keep("admin", "unknown_host", connection.receive().json())
    anna.refuse("invalid", "customers", "POST", {"name": "", "cidrs": ["x"]}, 422)
    anna.take("deleteOperator", "operators/bela", "DELETE", status=204)
    carla = anna.ask("POST", "operators", {"name": "carla", "role": "reader"})
    link = carla.json()["link"].partition("#/sign-in/")[2]
    stranger.ask("POST", "session", {"link": link})
    sessions = [row["id"] for row in anna.ask("GET", "sessions").json()["items"] if row["operator"] == "carla"]
    trial = service.ask("customer", "add", "Trial", "--sandbox", "on")["id"]
    service.run("provider", "add", "trial", "--name", "Trial", "--launch-url", "https://trial.example/", "--secret", "-", "--sandbox", "on", input="s" * 32)
    for name, path in (("CustomerConduct", f"customers/{trial}/conduct"), ("ProviderConduct", "providers/trial/conduct")):
        anna.take(f"get{name}", path, first=3)
        anna.take(f"reset{name}", path, "DELETE", status=204)
    anna.take("endSession", f"sessions/{sessions[0]}", "DELETE", status=204)
    anna.take("signOut", "session", "DELETE", status=204)


class Studio(http.server.BaseHTTPRequestHandler):
    """The launch endpoint of a provider: out of order, until `asked` is a list."""

    asked = None
    ANSWER = {"launch_url": "https://called.example/play/7", "expires_at": "2099-01-01T00:00:00Z"}

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if Studio.asked is None:
            self.send_error(503)
            return
        Studio.asked.append(json.loads(body))
        answer = json.dumps(self.ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def exchanged(service, request, address=None):
    """The answer to the bytes of a request on a connection of its own, which stays open."""
    connection = service.connect(address=address)
    connection.send(request)
    return connection.receive().json(), connection


def without_stores(taken, directory):
    """What is answered while the stores cannot be reached; and by a server that is in a hurry, or full."""
    service = Service(directory, {"provider.listen": "127.0.0.1:0", "server.header_seconds": "1", "server.connections_per_address": "4"},
                      stores=False)
    head = b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\n"
    held = []
    try:
        service.start(healthy=False)
        customer = Customer(taken, service, "crk_any")
        customer.take("getHealth.degraded", "health", status=503)
        customer.take("security_config_unavailable", "sports", status=503)
        studio = Provider(service, "dune-studio", SECRET)
        body = json.dumps(balance("any")).encode()
        taken.keep("provider", "security_config_unavailable", studio.post(body, studio.fields(body)).json())
        answer, _ = exchanged(service, head)
        for document in ("openapi", "provider"):
            taken.keep(document, "request_timeout", answer)
        while answer.get("error") != "overloaded":
            answer, connection = exchanged(service, head + b"\r\n")
            held.append(connection)
            assert len(held) <= 5
        taken.keep("openapi", "overloaded", answer)
    finally:
        for connection in held:
            connection.close()
        service.stop()


def without_odds(taken, directory):
    """What is answered while only the odds store cannot be reached."""
    service = Service(directory)
    try:
        shop = service.add_customer("Demo Sportsbook")
        service.configure({"odds.store": "embedded:/dev/null/odds"})
        service.start(healthy=False)
        customer = Customer(taken, service, shop.key)
        eventually(lambda: service.get("/api/v1/sports", key=shop.key).status == 200)
        customer.take("cache_unavailable", "cricket/events", status=503)
    finally:
        service.stop()


def over_https(taken, directory):
    """What plain HTTP is answered on a port for HTTPS."""
    directory.mkdir()
    chain, key = certificate(directory)
    settings = {f"{section}.{name}": value for section in ("server", "provider")
                for name, value in (("tls_certificate", chain), ("tls_key", key), ("listen", "127.0.0.1:0"))}
    service = Service(directory / "service", settings, stores=False)
    request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    try:
        service.start(healthy=False)
        for document, address in (("openapi", service.address), ("provider", service.provider_address)):
            answer, connection = exchanged(service, request, address)
            connection.close()
            assert answer["error"] == "https_required"
            taken.keep(document, "https_required", answer)
    finally:
        service.stop()


def from_the_table(taken):
    """Errors of states that take a broken disk, a stalled store or nine thousand calls: each as src/*/errors.txt has it."""
    rows = "".join(path.read_text() for path in sorted(ROOT.glob("src/*/errors.txt")))
    for document, codes in {"openapi": ["internal_error", "cache_timeout", "ledger_unavailable", "balance_limit_exceeded",
                                        "account_unavailable", "key_ambiguous"],
                            "provider": ["internal_error", "overloaded", "ledger_unavailable", "balance_limit_exceeded"]}.items():
        for code in codes:
            message = re.search(rf"^\d+ {code} (.+)", rows, re.MULTILINE)[1]
            taken.keep(document, code, {"error": code, "message": message})
    for code in ("overloaded", "store_unavailable"):
        message = re.search(rf"^\d+ {code} (.+)", rows, re.MULTILINE)[1]
        taken.keep("admin", code, {"error": {"code": code, "message": message, "field": None}})


def take(directory):
    """All examples, from servers in `directory`."""
    taken = Taken()
    studio = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Studio)
    threading.Thread(target=studio.serve_forever, daemon=True).start()
    service = Service(Path(directory) / "examples", {"provider.listen": "127.0.0.1:0"})
    try:
        shop = service.add_customer("Demo Sportsbook", options=["--casino"])
        for identity, where in (("dune-studio", ["--launch-url", "https://dune.example/launch"]),
                                ("called-studio", ["--launch-endpoint", f"http://127.0.0.1:{studio.server_port}/launch"])):
            service.run("provider", "add", identity, "--name", identity.replace("-", " ").title(), "--secret", "-", *where, input=SECRET)
        service.run("game", "import", "-", input=json.dumps(GAMES))
        service.publish("cricket", [EVENT, {**EVENT, "gmid": 34000002, "ename": "Kent v Essex"}], {34000001: MARKETS})
        service.put("football", None, b"[{")
        service.run("operator", "add", "anna", "--role", "owner")
        service.start()
        service.await_admission(shop.key)
        customer = Customer(taken, service, shop.key)
        eventually(lambda: service.get("/api/v1/casino/games/", key=shop.key).status == 404)
        odds(taken, service, customer)
        raw(taken, service)
        player = casino(taken, service, customer)
        account(taken, service, shop, player)
        provider(taken, service, customer)
        admin(taken, service, shop.id, player)
    finally:
        service.stop()
        studio.shutdown()
    without_stores(taken, Path(directory) / "without")
    without_odds(taken, Path(directory) / "without-odds")
    over_https(taken, Path(directory) / "https")
    from_the_table(taken)
    return taken.documents


def examples_of(document):
    """{name: value} of a document as it is in the tree."""
    text = (ROOT / "docs" / f"{document}.yaml").read_text()
    found = yaml.safe_load(text).get("components", {}).get("examples", {})
    return {name: example["value"] for name, example in found.items()}


def write(document, examples):
    path = ROOT / "docs" / f"{document}.yaml"
    kept = examples_of(document)
    merged = {name: {"value": kept[name] if name in kept and same(name, kept[name], value) else value}
              for name, value in sorted(examples.items())}
    body = yaml.dump(merged, sort_keys=False, allow_unicode=True, width=160, default_flow_style=None)
    text = path.read_text().partition(HEAD)[0]
    path.write_text(text + HEAD + "".join(f"    {line}\n" for line in body.splitlines()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for name, examples in take(place).items():
            write(name, examples)
