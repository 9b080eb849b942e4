"""The wallet, independently: what the interface says, on dictionaries. And what the tests share."""

import base64
import hashlib
import hmac
import json
import time
import urllib.parse

import jsonschema

from croupier import api_document, eventually

PATH = "/api/v1/casino/wallet"
PROVIDER_PATH = "/provider/v1/wallet"
SECRET = "0123456789abcdef0123456789abcdef"
LIMIT = 2**53 - 1
CURRENCIES = ["EUR", "JPY", "KWD"]


def add_games(server, *identities, provider="acme", secret=SECRET, options=()):
    """Enabled games of a new provider that everybody may see."""
    server.prepare("provider", "add", provider, "--name", provider.capitalize(), "--launch-url",
                   f"https://{provider}.example/", "--secret", "-", *options, input=secret)
    server.prepare("game", "import", "-", input=json.dumps([
        {"id": identity, "name": identity, "provider": provider, "category": "slots", "currencies": CURRENCIES,
         "demo": True} for identity in identities]))
    if not hasattr(server, "lobby"):
        server.lobby = identities[0]


def launch(server, customer, game, reference="alice", currency="EUR"):
    """A launch for money: (player, the provider's own id of the player, launch id)."""
    response = server.request("POST", f"/api/v1/casino/games/{game}/launch", key=customer.key,
                              headers={"Content-Type": "application/json"},
                              body=json.dumps({"mode": "real", "player_reference": reference,
                                               "currency": currency}).encode())
    assert response.status == 200, response
    document = response.json()
    claims = claims_of(document["launch_url"])
    assert claims["jti"] == document["launch_id"]
    return document["player_id"], claims["sub"], claims["jti"]


def claims_of(launch_url):
    token = urllib.parse.parse_qs(urllib.parse.urlsplit(launch_url).query)["token"][0]
    return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))


def as_providers_read(name, document):
    """Checks a document against its schema in docs/provider.yaml."""
    components = api_document("provider")["components"]
    jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": components}).validate(document)


class Provider:
    """A provider of games, which moves its players' money and signs what it sends."""

    def __init__(self, server, identity="acme", secret=SECRET):
        self.server, self.id, self.secret = server, identity, secret

    def fields(self, body, at=None):
        """What goes with a body, signed at a time (now)."""
        timestamp = str(int(time.time() if at is None else at))
        tag = hmac.new(self.secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        return {"Content-Type": "application/json", "X-Croupier-Provider": self.id,
                "X-Croupier-Timestamp": timestamp, "X-Croupier-Signature": f"v1={tag}"}

    def post(self, body, fields, path=PROVIDER_PATH, method="POST", source=None):
        return self.server.request(method, path, headers=fields, body=body, address=self.server.provider_address,
                                   source=source)

    def send(self, document, at=None):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self.post(body, self.fields(body, at))


def add_player(server, customer, reference="alice", currency="EUR"):
    """A player, made as customers make them: by a launch, of the first of the games (of one that is added, where there
    are none). A server that is not running is started for that."""
    if not hasattr(server, "lobby"):
        add_games(server, "lobby")
    if server.process is None:
        server.start()
        try:
            return add_player(server, customer, reference, currency)
        finally:
            server.stop()
    body = json.dumps({"mode": "real", "player_reference": reference, "currency": currency}).encode()
    answers = []

    def launched():  # as soon as the server knows of the customer and of the game
        answers[:] = [server.request("POST", f"/api/v1/casino/games/{server.lobby}/launch", key=customer.key,
                                     headers={"Content-Type": "application/json"}, body=body)]
        return answers[0].status not in (403, 404, 503)

    eventually(launched)
    assert answers[0].status == 200, answers[0]
    return answers[0].json()["player_id"]


def send(server, key, document, content_type="application/json"):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return server.request("POST", PATH, key=key, headers={"Content-Type": content_type}, body=body)


def post(connection, key, document):
    """Asks for an operation on a connection, which has the answer later."""
    body = json.dumps(document)
    connection.send(f"POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")


def debit(player, identity, amount, currency="EUR", **more):
    return {"operation": "DEBIT", "player_id": player, "transaction_id": identity, "amount_minor": amount,
            "currency": currency, **more}


def credit(player, identity, amount, reference=None, currency="EUR", **more):
    document = {"operation": "CREDIT", "player_id": player, "transaction_id": identity, "amount_minor": amount,
                "currency": currency, **more}
    if reference is not None:
        document["reference_transaction_id"] = reference
    return document


def rollback(player, identity, reference):
    return {"operation": "ROLLBACK", "player_id": player, "transaction_id": identity,
            "reference_transaction_id": reference}


def balance(player):
    return {"operation": "BALANCE", "player_id": player}


class Renamed:
    """A dictionary under other names for its keys."""

    def __init__(self, under, names):
        self.under, self.names = under, names

    def __contains__(self, name):
        return name in self.names

    def __getitem__(self, name):
        return self.under[self.names[name]]

    def __setitem__(self, name, value):
        self.under[self.names[name]] = value


class Model:
    """One customer's wallet. answer() is (status, what matters of the document, replayed)."""

    def __init__(self, players, games=()):
        self.games = games  # that the customer sees
        self.balance = {player: 0 for player in players}
        self.sequence = {player: 0 for player in players}
        self.start()

    def start(self):
        self.first = {}   # id: (request, answer), everything that was kept
        self.undone = {}  # id: player whose ROLLBACK it was

    def answer(self, request):
        if request["operation"] == "BALANCE":
            player = request["player_id"]
            return 200, (self.balance[player], self.sequence[player]), False
        identity = request["transaction_id"]
        if identity in self.first:
            before, answer = self.first[identity]
            return (*answer, True) if before == request else (409, "transaction_conflict", False)
        status, what, kept = self.decide(request)
        if kept:
            self.first[identity] = (request, (status, what))
        return status, what, False

    def entitles(self, request):
        """Whether a launch lets a stake be taken: a customer needs none."""
        return True

    def applied(self, identity, operation):
        request, (status, what) = self.first.get(identity, ({}, (0, ())))
        return request.get("operation") == operation and status == 200 and what[0] == "applied"

    def settled(self, identity):
        return any(request.get("reference_transaction_id") == identity and self.applied(credit, "CREDIT")
                   and credit not in self.undone for credit, (request, _) in self.first.items())

    def enter(self, player, movement, amount, status="applied"):
        self.balance[player] += movement
        self.sequence[player] += 1
        return 200, (status, amount, self.balance[player], self.sequence[player]), True

    def move(self, player, movement):
        after = self.balance[player] + movement
        if after < 0:
            return 422, "insufficient_funds", True
        if after > LIMIT:
            return 422, "balance_limit_exceeded", True
        return self.enter(player, movement, abs(movement))

    def decide(self, request):
        player, operation = request["player_id"], request["operation"]
        reference = request.get("reference_transaction_id")
        if player not in self.balance:
            return 404, "player_not_found", False
        if request["transaction_id"] in self.undone:
            return 409, "transaction_rolled_back", True
        if reference is not None:
            owner = self.first[reference][0]["player_id"] if reference in self.first else self.undone.get(reference)
            if owner not in (None, player):
                return 409, "transaction_conflict", False
        if operation == "DEBIT":
            if not self.entitles(request):
                return 422, "session_expired", False
            if request.get("game_id", self.games) not in (self.games, *self.games):
                return 404, "game_not_found", False
            return self.move(player, -request["amount_minor"])
        if operation == "CREDIT":
            if reference in self.undone:
                return 409, "transaction_rolled_back", True
            if reference is not None and not self.applied(reference, "DEBIT"):
                return 404, "reference_not_found", True
            return self.move(player, request["amount_minor"])
        if reference in self.undone:
            return 409, "already_rolled_back", True
        if reference in self.first and self.first[reference][0]["operation"] == "ROLLBACK":
            return 409, "not_rollbackable", True
        if self.applied(reference, "DEBIT"):
            if self.settled(reference):
                return 409, "already_settled", True
            outcome = self.move(player, self.first[reference][0]["amount_minor"])
        elif self.applied(reference, "CREDIT"):
            outcome = self.move(player, -self.first[reference][0]["amount_minor"])
        else:
            outcome = self.enter(player, 0, 0, "voided")
        if outcome[0] == 200:
            self.undone[reference] = player
        return outcome


class ProviderModel(Model):
    """The same players' money, moved by a provider: under its own names of them, and with ids of its own."""

    def __init__(self, customers, subjects, launches, games):
        self.games, self.launches = games, launches  # launches: {id: the subject it is of}
        self.balance = Renamed(customers.balance, subjects)
        self.sequence = Renamed(customers.sequence, subjects)
        self.start()

    def entitles(self, request):
        return self.launches.get(request["launch_id"]) == request["player_id"]


def told(response, request):
    """A real answer in the model's terms."""
    document = response.json()
    replayed = response.header("Idempotent-Replayed") == "true"
    if response.status != 200:
        return response.status, document["error"], replayed
    if request["operation"] == "BALANCE":
        return 200, (document["balance_minor"], document["sequence"]), False
    assert document["replayed"] is replayed
    return 200, (document["status"], document["amount_minor"], document["balance_minor"], document["sequence"]), replayed
