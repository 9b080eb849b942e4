"""Customers, providers, the operator and a feed act on one server, and a model says what must come of it.

Hypothesis chooses the steps. Each example has customers, players and games of its own, so that one server serves all examples.
What a failure prints is the shortest sequence of steps that still fails, each with what was sent and what came."""

import functools
import http.client
import json
import os
import tempfile
import time
from datetime import datetime, timezone

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from croupier import PATIENCE, Response, Service, eventually
from model_ledger import Casino, Ledger, Player
from wallet_model import PATH, PROVIDER_PATH, SECRET, Provider, claims_of

PROVIDERS = ("acme", "oasis")
GAMES = {"slots": "acme", "wheel": "acme", "cards": "oasis"}
PLAYERS = ((0, "alice", "EUR"), (0, "bob", "EUR"), (0, "alice", "JPY"), (1, "alice", "EUR"))
TOGETHER = 16  # examples that are prepared at once, as the server takes up new customers and games after a moment
SPORT = "cricket"
ENGINES = os.environ.get("TEST_ENGINES") or "embedded,sqlite"
JSON = {"Content-Type": "application/json"}


# What examples leave out while the program does not do it: "late requests", "moved games".
PENDING = set((os.environ.get("MODEL_PENDING") or "").split(","))


class World:
    """One server with a token for its operator's interface, and what examples take from it."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="croupier-model-")
        self.service = Service(self.directory.name, {"provider.listen": "127.0.0.1:0"})
        self.token = self.service.ask("operator", "token", "add", "model", "--role", "owner")["token"]
        self.connections, self.prepared, self.number = {}, [], 0
        self.counted = {}  # by key: answers by class, as usage counts them
        self.events = 0
        self.service.start()
        for provider in PROVIDERS:
            self.operate("POST", "/providers", {"id": provider, "name": provider, "secret": SECRET,
                                                "launch_url": f"https://{provider}.example/"}, 201)

    def request(self, method, address, path, headers, body=None):
        """By a connection that is kept; a server that was too busy to judge anything is asked again."""
        until = time.monotonic() + 10 * PATIENCE
        while True:
            connection, used = self.connections.pop(address, (None, 0))
            if connection is None or time.monotonic() - used > 5:
                connection = http.client.HTTPConnection(*address, timeout=60 * PATIENCE)
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            response = Response(answer.status, answer.getheaders(), answer.read())
            if response.header("connection") != "close":
                self.connections[address] = (connection, time.monotonic())
            key, status = headers["Authorization"][7:] if "Authorization" in headers else None, f"{response.status // 100}xx"
            if b"ip_not_allowed" not in response.body:  # a key that is not known yet is no customer's
                self.counted[key, status] = self.counted.get((key, status), 0) + 1
            if b"security_config_unavailable" not in response.body or time.monotonic() > until:
                return response
            time.sleep(0.05)

    def operate(self, method, path, document=None, status=200):
        body = None if document is None else json.dumps(document).encode()
        response = self.request(method, self.service.operator_address, f"/admin/v1{path}",
                                {"Authorization": f"Bearer {self.token}", **JSON}, body)
        assert response.status == status, f"{method} {path} {document}: {response}"
        return response.json()

    def prepare(self):
        """Customers, keys and games of some examples."""
        for _ in range(TOGETHER if self.number else 1):  # the first may fail, and then the server ends
            self.number += 1
            tag = f"x{self.number}"
            customers = []
            for name in ("first", "second"):
                identity = self.operate("POST", "/customers", {"name": f"{tag} {name}", "casino": True, "sports": [SPORT]}, 201)["id"]
                self.operate("PATCH", f"/customers/{identity}", {"cidrs": ["127.0.0.0/8"]})
                customers.append((identity, self.operate("POST", "/keys", {"customer": identity, "label": "model"}, 201)["key"]))
            self.import_games(tag, GAMES)
            self.prepared.insert(0, (tag, customers))

    def import_games(self, tag, games):
        self.operate("POST", "/games/import", [
            {"id": f"{tag}-{game}", "name": f"{tag}-{game}", "provider": provider, "category": "slots",
             "currencies": ["EUR", "JPY"]} for game, provider in games.items()])

    def take(self):
        if not self.prepared:
            self.prepare()
        return self.prepared.pop()

    def restart(self, kill):
        for connection, _ in self.connections.values():
            connection.close()
        self.connections.clear()
        self.service.kill() if kill else self.service.stop()
        self.service.start()

    def tail(self, after):
        rows = []
        while True:
            page = self.operate("GET", f"/ledger/tail?after={after}")
            rows += page["items"]
            after = page["next"]
            if not page["more"]:
                return rows, after


    def remove(self):
        self.connections.clear()
        if self.service.process is not None:
            self.service.kill()
        self.service.remove()
        self.directory.cleanup()


world = None  # of this process: Hypothesis makes the machines itself


def end_world():
    global world
    if world is not None:
        before, world = world, None
        before.remove()


def step(**strategies):
    """A rule after whose failure the next example has a server and a ledger of its own: a broken one would fail each."""
    def wrap(function):
        return rule(**strategies)(guarded(function))
    return wrap


def guarded(function):
    @functools.wraps(function)
    def call(self, *arguments, **options):
        try:
            return function(self, *arguments, **options)
        except Exception:
            self.failed = True
            raise
    return call


ids = st.sampled_from([f"t{number}" for number in range(1, 7)])
# What is there more than once is chosen more often, so that steps meet.
players = st.sampled_from([0, 0, 0, 0, 1, 2, 3])
providers = st.sampled_from(["acme", "acme", "oasis"])
games = st.sampled_from(["slots", "slots", "slots", "wheel", "cards"])
maybe_games = st.sampled_from([None, *sorted(GAMES), "none"])
rounds = st.sampled_from(["r1", "r2"])
amounts = st.sampled_from([1, 5, 10, 50, 100, 101, 10**12])
references = st.none() | ids


class Machine(RuleBasedStateMachine):
    def __init__(self):
        global world
        super().__init__()
        world = world or World()
        self.failed = self.killed = False
        self.tag, self.customers = world.take()
        self.casino = Casino(PROVIDERS, {self.game(name): provider for name, provider in GAMES.items()})
        self.ledger = Ledger(self.casino)
        self.sent, self.feed, self.rows = [], {}, {}
        self.players, self.subjects, self.launched = {}, {}, {}
        self.day = today()
        _, self.tailed = world.tail(world.events)

    # ---- names ----------------------------------------------------------------------------------------

    def game(self, name):
        return f"{self.tag}-{name}" if name else None

    def name(self, identity):
        return f"{self.tag}-{identity}"

    def customer_of(self, player):
        return self.customers[PLAYERS[player][0]]

    # ---- steps ----------------------------------------------------------------------------------------

    @initialize()
    @guarded
    def begin(self):
        """Each player has launched a game and paid in 100."""
        self.await_policies()
        for number in range(len(PLAYERS)):
            self.launch(number, "slots")
            self.act(self.customer_of(number), None, {
                "operation": "CREDIT", "player_id": self.players[number], "transaction_id": self.name(f"in{number}"),
                "amount_minor": 100, "currency": PLAYERS[number][2]})

    @step(player=players, game=games)
    def launch(self, player, game):
        (customer, key), (_, reference, currency) = self.customer_of(player), PLAYERS[player]
        identity, known = self.game(game), self.ledger.players.get(self.players.get(player))
        blocked = (customer, reference) in self.casino.blocked or (known and self.casino.is_blocked(known))
        response = world.request("POST", world.service.address, f"/api/v1/casino/games/{identity}/launch",
                                 {"Authorization": f"Bearer {key}", **JSON},
                                 json.dumps({"mode": "real", "player_reference": reference, "currency": currency}).encode())
        self.say(f"launch {reference} {currency} {game}", response)
        expected = 404 if not self.casino.sees(identity) else 403 if blocked else 200
        assert response.status == expected, f"a launch must be {expected}"
        if expected != 200:
            return
        document, provider = response.json(), self.casino.provider_of(identity)
        claims = claims_of(document["launch_url"])
        model = self.ledger.players.setdefault(document["player_id"], known or self.new_player(document["player_id"], player))
        assert self.players.setdefault(player, model.id) == model.id == document["player_id"], "a player has one id"
        assert self.subjects.setdefault((provider, player), claims["sub"]) == claims["sub"], "a provider's id of a player stays"
        self.ledger.subjects[provider, claims["sub"]] = model
        self.ledger.launches[claims["jti"]] = provider, model
        self.launched[provider, player] = claims["jti"]

    def new_player(self, identity, player):
        return Player(identity, self.customer_of(player)[0], *PLAYERS[player][1:])

    @step(player=players, transaction=ids, amount=amounts, game=maybe_games, round=st.none() | rounds)
    def debit(self, player, transaction, amount, game, round):
        self.customer_moves("DEBIT", player, transaction, amount, game=game, round=round)

    @step(player=players, transaction=ids, amount=amounts | st.just(0), reference=references, game=maybe_games,
          round=st.none() | rounds)
    def credit(self, player, transaction, amount, reference, game, round):
        self.customer_moves("CREDIT", player, transaction, amount, reference, game, round)

    @step(player=players, transaction=ids, reference=ids)
    def rollback(self, player, transaction, reference):
        self.customer_moves("ROLLBACK", player, transaction, reference=reference)

    @step(player=players, transaction=ids, amount=st.sampled_from([1, 5]))
    def debit_of_another_customer(self, player, transaction, amount):
        other = self.customers[1 - PLAYERS[player][0]]
        self.act(other, None, {"operation": "DEBIT", "player_id": self.players[player], "amount_minor": amount,
                               "transaction_id": self.name(transaction), "currency": PLAYERS[player][2]})

    @step(provider=providers, player=players, transaction=ids, amount=amounts | st.just(0), game=games, round=rounds,
          ended=st.booleans())
    def stake(self, provider, player, transaction, amount, game, round, ended):
        self.provider_moves("DEBIT", provider, player, transaction, amount, None, game, round, ended=ended)

    @step(provider=providers, player=players, transaction=ids, amount=amounts | st.just(0), reference=references,
          game=st.none() | games, round=rounds, kind=st.sampled_from([None, "win", "promo", "jackpot", "adjustment"]),
          ended=st.booleans())
    def win(self, provider, player, transaction, amount, reference, game, round, kind, ended):
        self.provider_moves("CREDIT", provider, player, transaction, amount, reference, game, round, kind, ended)

    @step(provider=providers, player=players, transaction=ids, reference=ids, ended=st.booleans())
    def undo(self, provider, player, transaction, reference, ended):
        self.provider_moves("ROLLBACK", provider, player, transaction, reference=reference, ended=ended)

    def one_sent(self, which, *operations):
        """One of the requests so far, the latest first; None when there is none."""
        fitting = [one for one in self.sent if one[2]["operation"] in operations]
        return fitting[-1 - which % len(fitting)] if fitting else None

    @step(which=st.integers(0, 5), amount=st.sampled_from([0, 1, 50]), ended=st.booleans())
    def settle(self, which, amount, ended):
        """A win, under a new id, of a bet that was sent."""
        bet = self.one_sent(which, "DEBIT")
        if bet is not None:
            customer, provider, request = bet
            win = {name: request[name] for name in ("player_id", "currency", "round_id") if name in request}
            win |= {"operation": "CREDIT", "amount_minor": amount, "transaction_id": self.name(f"n{len(self.sent)}"),
                    "reference_transaction_id": request["transaction_id"]}
            self.act(customer, provider, win | ({"round_ended": True} if provider and ended else {}))

    @step(player=players, provider=st.sampled_from([None, "acme", "oasis"]), round=rounds, ended=st.booleans(),
          then=st.lists(st.sampled_from(["settle", "take back the bet", "take back the last", "retry"]), max_size=4))
    def play(self, player, provider, round, ended, then):
        """A bet of 1 under a new id, and what comes of it."""
        bet, place = f"n{len(self.sent)}", len(self.sent)
        if provider:
            self.provider_moves("DEBIT", provider, player, bet, 1, None, "slots" if provider == "acme" else "cards", round)
        else:
            self.customer_moves("DEBIT", player, bet, 1, game="slots", round=round)
        for what in then:
            if what == "settle":
                self.act_on(self.sent[place], "CREDIT", {"amount_minor": 2, "currency": PLAYERS[player][2], "round_id": round},
                            provider and ended)
            elif what == "retry":
                self.act(*self.sent[-1])
            else:
                self.act_on(self.sent[place if what == "take back the bet" else -1], "ROLLBACK", {}, provider and ended)

    def act_on(self, sent, operation, members, ended):
        customer, provider, request = sent
        self.act(customer, provider, {
            "operation": operation, "player_id": request["player_id"], "transaction_id": self.name(f"n{len(self.sent)}"),
            "reference_transaction_id": request["transaction_id"], **members, **({"round_ended": True} if ended else {})})

    @step(which=st.integers(0, 5))
    def take_back(self, which):
        """A ROLLBACK, under a new id, of a bet or a win that was sent."""
        sent = self.one_sent(which, "DEBIT", "CREDIT")
        if sent is not None:
            customer, provider, request = sent
            self.act(customer, provider, {
                "operation": "ROLLBACK", "player_id": request["player_id"], "transaction_id": self.name(f"n{len(self.sent)}"),
                "reference_transaction_id": request["transaction_id"]})

    @precondition(lambda self: self.sent)
    @step(which=st.integers(0, 30))
    def retry(self, which):
        self.act(*self.sent[which % len(self.sent)])

    @precondition(lambda self: self.sent)
    @step(which=st.integers(0, 30), field=st.sampled_from([
        "amount_minor", "currency", "reference_transaction_id", "game_id", "round_id", "kind", "round_ended", "player_id"]))
    def retry_with_another(self, which, field):
        customer, provider, request = self.sent[which % len(self.sent)]
        changed = dict(request)
        if field == "amount_minor" and field in request:
            changed[field] += 1 if request[field] < 10**12 else -1
        elif field == "currency" and field in request:
            changed[field] = "JPY" if request[field] == "EUR" else "EUR"
        elif field == "player_id":
            known = self.ledger.players if provider is None else [one for of, one in self.ledger.subjects if of == provider]
            changed[field] = next(one for one in [*known, request[field]] if one != request[field] or len(known) < 2)
        elif field == "reference_transaction_id" and field in request:
            changed[field] = next(self.name(one) for one in ("t1", "t2", "t3")
                                  if self.name(one) not in (request[field], request["transaction_id"]))
        elif field == "game_id" and field in request:
            changed[field] = self.game("cards" if request[field] != self.game("cards") else "slots")
        elif field == "round_id" and field in request:
            changed[field] = "r2" if request[field] == "r1" else "r1"
        elif field == "kind" and provider and request["operation"] == "CREDIT":
            changed[field] = "promo" if request.get(field) != "promo" else "jackpot"
        elif field == "round_ended" and provider:
            changed[field] = not request.get(field, False)
        if changed != request:
            self.act(customer, provider, changed)

    def kill_before_the_answer(self, which):
        """A request whose answer is never read; after the start it is sent again."""
        customer, provider, request = self.sent[which % len(self.sent)]
        request = dict(request, transaction_id=self.name("t9"))
        if request.get("reference_transaction_id") == request["transaction_id"]:
            return
        address, path, headers, body = self.written(customer, provider, request)
        connection = http.client.HTTPConnection(*address, timeout=60)
        connection.request("POST", path, body, headers)
        world.restart(kill=True)
        self.killed = True
        connection.close()
        self.await_policies()
        self.act(customer, provider, request, either=True)

    @step(how=st.sampled_from(["stop", "kill", "kill before an answer"]), which=st.integers(0, 30))
    def restart(self, how, which):
        if how == "kill before an answer" and self.sent:
            self.kill_before_the_answer(which)
            return
        kill = how != "stop"
        self.say("kill -9, start" if kill else "stop, start")
        world.restart(kill)
        self.killed |= kill
        if not self.killed:  # a crash loses the counts of a minute
            self.check_counts()
        self.await_policies()

    def check_counts(self):
        """What a server that has ended has written of the requests of each customer."""
        for customer, key in self.customers:
            rows = world.operate("GET", f"/usage?customer={customer}&wallet=false")["requests"]
            found = {status: sum(row[status] for row in rows) for status in ("2xx", "3xx", "4xx", "5xx")}
            same("the count of requests", found, {status: world.counted.get((key, status), 0) for status in found})

    # ---- the operator's steps -------------------------------------------------------------------------

    @step(player=players, blocked=st.sampled_from([True, True, False]), reference=st.booleans())
    def block(self, player, blocked, reference):
        whose, path = self.players[player], f"/players/{self.players[player]}"
        if reference:
            whose = self.customer_of(player)[0], PLAYERS[player][1]
            path = "/blocks/" + ":".join(whose)
        self.say(f"{'block' if blocked else 'unblock'} {whose}")
        if blocked:
            world.operate("PATCH", path, {"blocked": True, "reason": "asked for it"})
            self.casino.blocked.add(whose)
        elif whose in self.casino.blocked:
            world.operate("PATCH", path, {"blocked": False, "early": True, "reason": "a mistake"})
            self.casino.blocked.discard(whose)

    @step(what=st.sampled_from(["game", "provider", "move"]), game=games, provider=providers, enabled=st.booleans())
    def change(self, what, game, provider, enabled):
        if what == "game":
            self.enable_game(game, enabled)
        elif what == "provider":
            self.enable_provider(provider, enabled)
        else:
            self.move_game(game, provider)

    def enable_game(self, game, enabled):
        self.say(f"{'enable' if enabled else 'disable'} {game}")
        world.operate("PATCH", f"/games/{self.game(game)}", {"enabled": enabled})
        self.casino.games[self.game(game)][1] = enabled
        self.await_policies()

    def enable_provider(self, provider, enabled):
        self.say(f"{'enable' if enabled else 'disable'} {provider}")
        world.operate("PATCH", f"/providers/{provider}", {"enabled": enabled})
        self.casino.providers[provider] = enabled
        self.await_policies()

    def move_game(self, game, provider):
        if "moved games" in PENDING:
            return
        self.say(f"import {game} as one of {provider}")
        world.import_games(self.tag, {game: provider})
        self.casino.games[self.game(game)][0] = provider
        self.await_policies()

    @step(what=st.sampled_from(["report", "usage", "export", "verify"]), customer=st.sampled_from([0, 0, 1]))
    def read(self, what, customer):
        if what == "verify":
            self.verify()
        else:
            {"report": self.read_report, "usage": self.read_usage, "export": self.read_export}[what](customer)

    def read_report(self, customer):
        identity = self.customers[customer][0]
        self.say(f"report {customer}")
        document = world.service.ask("wallet", "report", "--customer", identity)
        if self.day == today():
            same("the report", by(document["lines"], "provider", "game_id", "currency"), self.ledger.report(identity))
            same("the report's totals", by(document["totals"], "currency"), self.ledger.totals(identity))

    def read_usage(self, customer):
        identity = self.customers[customer][0]
        self.say(f"usage {customer}")
        document = world.operate("GET", f"/usage?customer={identity}")
        if self.day == today():
            same("the usage", by(document["wallet"], "currency"), self.ledger.usage(identity))

    def read_export(self, customer):
        identity = self.customers[customer][0]
        self.say(f"export {customer}")
        document = world.service.ask("wallet", "export", "--rounds", "--customer", identity)
        expected = {(kept.player.id, kept.entry["sequence"]): kept.entry for kept in self.ledger.of_customer(identity)}
        found = {(row["player_id"], row["sequence"]): without_time(row) for row in document["entries"]}
        same("the export", found, expected)
        assert document["entry_count"] == len(document["entries"]) == len(expected)
        same("the export's rounds", by([row for row in document["rounds"] if row["round_id"]], "provider", "game_id", "round_id",
                                       "currency"), self.ledger.report(identity, by_round=True))
        same("the export's totals", by(document["totals"], "currency"), self.ledger.totals(identity))

    def verify(self):
        self.say("verify")
        document = world.service.ask("wallet", "verify", status=None)
        assert document["sound"], f"the ledger must be sound: {document}"

    # ---- the feed's and its readers' steps ------------------------------------------------------------

    @step(what=st.sampled_from(["publish", "withdraw", "poll"]), event=st.integers(1, 3), price=st.integers(1, 3))
    def feeds(self, what, event, price):
        if what == "publish" or not self.feed:
            self.publish(event, price)
        if what == "withdraw":
            self.withdraw(event)
        self.poll(event)

    def publish(self, event, price):
        self.feed[event] = [{"marketId": f"{self.tag}", "price": price}]
        rows = [{"gmid": one, "ename": self.tag} for one in sorted(self.feed)]
        self.say(f"publish {event} {price}")
        world.service.publish(SPORT, rows, {event: json.dumps(self.feed[event]).encode()})

    def withdraw(self, event):
        self.say(f"withdraw {event}")
        world.service.run("feed", "withdraw", SPORT, str(event))
        if event in self.feed:
            self.feed[event] = None

    def poll(self, event):
        headers = {"Authorization": f"Bearer {self.customers[0][1]}"}
        response = world.request("GET", world.service.address, f"/api/v1/{SPORT}/events/{event}", headers)
        self.say(f"poll {event}", response)
        if self.feed.get(event) is None:
            wanted = "odds_not_found" if event in self.feed else "event_not_found"
            assert response.error == (404, wanted), f"a poll must be {wanted}"
            return
        assert response.status == 200 and response.json()["odds"] == self.feed[event], f"a poll must give {self.feed[event]}"
        again = world.request("GET", world.service.address, f"/api/v1/{SPORT}/events/{event}",
                              {**headers, "If-None-Match": response.header("etag")})
        assert again.status == 304, "what has not changed is 304"

    # ---- sending --------------------------------------------------------------------------------------

    def customer_moves(self, operation, player, transaction, amount=None, reference=None, game=None, round=None):
        request = self.moves(operation, self.players[player], player, transaction, amount, reference, game, round)
        self.act(self.customer_of(player), None, request)

    def provider_moves(self, operation, provider, player, transaction, amount=None, reference=None, game=None, round=None,
                       kind=None, ended=False):
        subject = self.subjects.get((provider, player), "AAAAAAAAAAAAAAAAAAAAAA")
        request = self.moves(operation, subject, player, transaction, amount, reference, game, round)
        if operation == "DEBIT":
            request["launch_id"] = self.launched.get((provider, player), self.launched["acme", 0])
        if kind:
            request["kind"] = kind
        if ended:
            request["round_ended"] = True
        self.act(None, provider, request)

    def moves(self, operation, identity, player, transaction, amount, reference, game, round):
        request = {"operation": operation, "player_id": identity, "transaction_id": self.name(transaction)}
        if amount is not None:
            request |= {"amount_minor": amount, "currency": PLAYERS[player][2]}
        if reference is not None:
            request["reference_transaction_id"] = self.name(reference)
        if game is not None:
            request["game_id"] = self.game(game)
        if round is not None:
            request["round_id"] = round
        return request

    def written(self, customer, provider, request):
        body = json.dumps(request).encode()
        if provider:
            return world.service.provider_address, PROVIDER_PATH, Provider(world.service, provider).fields(body), body
        return world.service.address, PATH, {"Authorization": f"Bearer {customer[1]}", **JSON}, body

    def act(self, customer, provider, request, either=False):
        """Sends a request, and holds its answer and all that can be read of its player to the model."""
        if request.get("reference_transaction_id") == request["transaction_id"]:
            return
        if "late requests" in PENDING:
            identity = provider or customer[0], request["transaction_id"]
            if identity in self.ledger.voided and identity not in self.ledger.kept:
                return
        address, path, headers, body = self.written(customer, provider, request)
        response = world.request("POST", address, path, headers, body)
        self.say(f"{provider or 'customer'} {shortened(request, self)}", response)
        self.sent.append((customer, provider, request))
        expected = self.ledger.answer(provider or customer[0], provider, request)
        found = told(response, request)
        if either:
            found, expected = found[:2], expected[:2]
        same("the answer", found, expected)
        self.check()
        player = self.ledger.subjects.get((provider, request["player_id"])) or self.ledger.players.get(request["player_id"])
        if player is not None:
            self.check_player(player)
            self.check_rounds(player.customer)

    def check(self):
        """What costs little to read is compared after each step."""
        rows, self.tailed = world.tail(self.tailed)
        known = len(self.ledger.entries) - len(self.rows)
        expected = self.ledger.entries[len(self.rows):]
        assert len(rows) == known, f"the tail must have {known} new rows and has {len(rows)}: {rows}"
        for row, kept in zip(rows, expected):
            same("a row of the tail", {name: value for name, value in without_time(row).items() if name != "number"}, kept.entry)
            self.rows[row["player_id"], row["sequence"]] = {name: value for name, value in row.items() if name != "number"}
        world.events = self.tailed

    def check_rounds(self, customer):
        found = world.operate("GET", f"/rounds?customer={customer}&limit=200")
        same("the rounds", {(one["player_id"], one["provider"], one["round_id"]): one for one in found["items"]},
             self.ledger.rounds(customer))

    def check_player(self, player):
        key = dict(self.customers)[player.customer]
        asked = {"operation": "BALANCE", "player_id": player.id}
        response = world.request("POST", world.service.address, PATH, {"Authorization": f"Bearer {key}", **JSON},
                                 json.dumps(asked).encode())
        same("the balance", told(response, asked), (200, (player.balance, len(player.entries)), False))
        document = world.operate("GET", f"/players/{player.id}/statement?limit=1000")
        same("the statement", [without_time(row) for row in document["items"]], [kept.entry for kept in player.entries])
        same("the statement and the tail", document["items"],
             [self.rows[player.id, number + 1] for number in range(len(player.entries))])
        assert document["balance_minor"] == player.balance

    def await_policies(self):
        """Until the server knows what the operator has set, which is within a second."""
        games = {game: provider for game, (provider, _) in self.casino.games.items() if self.casino.sees(game)}
        headers = {"Authorization": f"Bearer {self.customers[0][1]}"}
        body = json.dumps({"operation": "BALANCE", "player_id": "AAAAAAAAAAAAAAAAAAAAAA"}).encode()

        def known():
            response = world.request("GET", world.service.address, f"/api/v1/casino/games?q={self.tag}-", headers)
            second = world.request("GET", world.service.address, f"/api/v1/casino/games?q={self.tag}-",
                                   {"Authorization": f"Bearer {self.customers[1][1]}"})
            if response.status != 200 or second.status != 200:
                return False
            listed = {game["id"]: game["provider"]["id"] for game in response.json()["games"]}
            return listed == games and all(
                (world.request("POST", world.service.provider_address, PROVIDER_PATH,
                               Provider(world.service, provider).fields(body), body).status != 403) == enabled
                for provider, enabled in self.casino.providers.items())

        eventually(known, interval=0.005)

    def say(self, what, response=None):
        hypothesis.note(f"    {what}" + ("" if response is None else f"  ->  {response.status} {response.body[:300].decode()}"))

    def teardown(self):
        try:
            if not self.failed and self.players:
                self.finish()
                for provider, enabled in self.casino.providers.items():
                    if not enabled:
                        world.operate("PATCH", f"/providers/{provider}", {"enabled": True})
        finally:
            if self.failed:
                end_world()

    @guarded
    def finish(self):
        """At the end of each example all that is slower to read."""
        for customer in range(len(self.customers)):
            self.read_report(customer)
            self.read_usage(customer)
            self.read_export(customer)
            self.check_rounds(self.customers[customer][0])
        self.verify()
        for player in self.ledger.players.values():
            self.check_player(player)
        document = world.service.ask("wallet", "statement", player.id)
        same("the command's statement", [without_time(row) for row in document["entries"]],
             [kept.entry for kept in player.entries])


def today():
    return datetime.now(timezone.utc).date()


def shortened(request, machine):
    return json.dumps(request).replace(f"{machine.tag}-", "")


def told(response, request):
    document = response.json()
    replayed = response.header("Idempotent-Replayed") == "true"
    if response.status != 200:
        return response.status, document["error"], replayed
    if request["operation"] == "BALANCE":
        return 200, (document["balance_minor"], document["sequence"]), False
    assert document["replayed"] is replayed
    return 200, (document["status"], document["amount_minor"], document["balance_minor"], document["sequence"]), replayed


def without_time(row):
    return {name: value for name, value in row.items() if name not in ("created_at", "hash", "currency_exponent", "number")}


def by(rows, *names):
    """Rows by what identifies them; each must be there once."""
    keys = [tuple(row[name] for name in names) for row in rows]
    assert len(set(keys)) == len(keys), f"a row is there twice: {keys}"
    return dict(zip(keys if len(names) > 1 else [key[0] for key in keys], rows))


def same(what, found, expected):
    """Of rows, only what the model knows is compared; rows must be the same ones."""
    if isinstance(expected, dict) and isinstance(found, dict) and all(isinstance(row, dict) for row in expected.values()):
        assert set(found) == set(expected), f"{what} has {sorted(found, key=repr)} and must have {sorted(expected, key=repr)}"
        for key, row in expected.items():
            other = {name: found[key].get(name) for name in row}
            different = {name: (other[name], row[name]) for name in row if other[name] != row[name]}
            assert not different, f"{what}, {key}: (is, must be) {different}"
        return
    assert found == expected, f"{what} is {found} and must be {expected}"
