"""POST /api/v1/casino/wallet, from outside: the rules, the mistakes, and many clients against a model."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

import engines
from croupier import NOT_ALLOWED, Service, eventually
from wallet_model import (LIMIT, PATH, Model, Provider, ProviderModel, add_games, add_player, balance, credit, debit,
                          launch, post, rollback, send, told)

pytestmark = pytest.mark.depends_on("platform")

FIELDS = ["operation", "player_id", "transaction_id", "reference_transaction_id", "status", "amount_minor", "currency",
          "currency_exponent", "balance_minor", "sequence", "created_at", "replayed"]


@pytest.fixture(scope="module")
def casino(tmp_path_factory):
    server = Service(tmp_path_factory.mktemp("wallet"), {"provider.listen": "127.0.0.1:0"})
    try:
        server.customer = server.add_customer("Casino", options=["--casino"])
        add_games(server, "blackjack", "roulette", "lucky-7")
        server.run("game", "disable", "lucky-7")
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def player(casino):
    casino.count = getattr(casino, "count", 0) + 1
    return add_player(casino, casino.customer, f"player-{casino.count}")


def ask(server, document):
    return send(server, server.customer.key, document)


def ids():
    return f"t-{random.getrandbits(80):x}"


def test_a_debit_a_win_and_the_balance_have_their_documents(casino, player):
    first, bet, win = ids(), ids(), ids()
    assert ask(casino, credit(player, first, 1000)).status == 200
    response = ask(casino, debit(player, bet, 300, game_id="blackjack", round_id="r 7"))
    document = response.json()
    assert list(document) == FIELDS
    created = document.pop("created_at")
    assert created.endswith("Z") and "T" in created
    assert document == {
        "operation": "DEBIT", "player_id": player, "transaction_id": bet, "reference_transaction_id": None,
        "status": "applied", "amount_minor": 300, "currency": "EUR", "currency_exponent": 2, "balance_minor": 700,
        "sequence": 2, "replayed": False}
    assert response.header("Idempotent-Replayed") is None
    assert response.header("Cache-Control") == "no-store"
    document = ask(casino, credit(player, win, 50, bet)).json()
    assert document["reference_transaction_id"] == bet and document["balance_minor"] == 750
    response = ask(casino, balance(player))
    assert list(response.json().items()) == [
        ("operation", "BALANCE"), ("player_id", player), ("currency", "EUR"), ("currency_exponent", 2),
        ("balance_minor", 750), ("sequence", 3)]


def test_a_retry_gets_the_first_answer_whatever_has_changed_since(casino, player):
    identity, late = ids(), ids()
    first = ask(casino, credit(player, identity, 500)).json()
    declined = ask(casino, debit(player, late, 501))
    assert declined.error == (422, "insufficient_funds") and declined.header("Idempotent-Replayed") is None
    assert ask(casino, credit(player, ids(), 100)).status == 200
    again = ask(casino, credit(player, identity, 500))
    assert again.header("Idempotent-Replayed") == "true"
    assert again.json() == {**first, "replayed": True}
    again = ask(casino, debit(player, late, 501))
    assert again.error == (422, "insufficient_funds") and again.header("Idempotent-Replayed") == "true"
    assert ask(casino, credit(player, identity, 501)).error == (409, "transaction_conflict")
    shuffled = json.dumps(dict(reversed(credit(player, identity, 500).items())), indent=3).replace("EUR", "\\u0045UR")
    assert ask(casino, shuffled.encode()).json()["replayed"] is True
    assert ask(casino, balance(player)).json()["balance_minor"] == 600


def test_a_debit_names_a_game_that_the_customer_sees_or_none(casino, player):
    early, late, lost = ids(), ids(), ids()
    ask(casino, credit(player, ids(), 100))
    bet = debit(player, early, 10, game_id="roulette")
    assert ask(casino, bet).status == 200
    for unknown in ("lucky-7", "nothing", "Blackjack", "r\u00e9 #1"):
        assert ask(casino, debit(player, late, 10, game_id=unknown)).error == (404, "game_not_found")
    assert ask(casino, debit(player, late, 1000, game_id="nothing")).error == (404, "game_not_found")
    assert ask(casino, debit(player, late, 10, "USD", game_id="nothing")).error == (422, "currency_mismatch")
    assert ask(casino, debit("ply_nobody", late, 10, game_id="nothing")).error == (404, "player_not_found")
    ask(casino, rollback(player, ids(), lost))
    assert ask(casino, debit(player, lost, 10, game_id="nothing")).error == (409, "transaction_rolled_back")
    assert ask(casino, debit(player, late, 10, game_id="blackjack")).json()["replayed"] is False  # it was not kept
    try:
        casino.run("game", "disable", "roulette")
        eventually(lambda: ask(casino, debit(player, ids(), 1000, game_id="roulette")).status == 404)
        assert ask(casino, bet).json()["replayed"] is True
        assert ask(casino, debit(player, early, 11, game_id="roulette")).error == (409, "transaction_conflict")
        assert ask(casino, credit(player, ids(), 5, early, game_id="roulette")).status == 200
        assert ask(casino, credit(player, ids(), 5, game_id="nothing")).status == 200
        casino.run("game", "enable", "roulette")
        casino.run("game", "allow", casino.customer.id, "blackjack")
        eventually(lambda: ask(casino, debit(player, ids(), 1, game_id="blackjack")).status == 200)
        eventually(lambda: ask(casino, debit(player, ids(), 1000, game_id="roulette")).status == 404)
        assert ask(casino, rollback(player, ids(), late)).json()["status"] == "applied"
    finally:
        casino.run("game", "enable", "roulette")
        casino.run("game", "allow", casino.customer.id, "all")
        eventually(lambda: ask(casino, debit(player, ids(), 1, game_id="roulette")).status != 404)


@pytest.mark.long(13)
def test_while_no_table_of_games_is_confirmed_no_game_is_found_or_missed(make_service):
    server = make_service()
    customer = server.add_customer("Casino", options=["--casino"])
    player = add_player(server, customer)
    server.configure({"casino.secrets_key_file": f"{server.directory}/nowhere"})
    server.start()
    assert send(server, customer.key, credit(player, "c", 10, game_id="book")).status == 200
    bet = debit(player, "d", 10, game_id="book")
    assert send(server, customer.key, bet).error == (503, "security_config_unavailable")
    del bet["game_id"]
    assert send(server, customer.key, bet).status == 200


def test_a_rollback_gives_all_of_it_back_and_once(casino, player):
    bet = ids()
    ask(casino, credit(player, ids(), 100))
    ask(casino, debit(player, bet, 40))
    document = ask(casino, rollback(player, ids(), bet)).json()
    assert (document["status"], document["amount_minor"], document["balance_minor"]) == ("applied", 40, 100)
    assert ask(casino, rollback(player, ids(), bet)).error == (409, "already_rolled_back")
    assert ask(casino, balance(player)).json()["balance_minor"] == 100


def test_what_was_rolled_back_is_still_answered_as_it_was(casino, player):
    bet = ids()
    ask(casino, credit(player, ids(), 100))
    first = ask(casino, debit(player, bet, 40)).json()
    ask(casino, rollback(player, ids(), bet))
    assert ask(casino, debit(player, bet, 40)).json() == {**first, "replayed": True}


def test_an_id_that_is_rolled_back_before_it_comes_is_never_applied(casino, player):
    early = ids()
    ask(casino, credit(player, ids(), 100))
    document = ask(casino, rollback(player, ids(), early)).json()
    assert (document["status"], document["amount_minor"], document["balance_minor"]) == ("voided", 0, 100)
    assert ask(casino, debit(player, early, 1)).error == (409, "transaction_rolled_back")
    assert ask(casino, balance(player)).json()["balance_minor"] == 100


@pytest.mark.only("postgresql")
def test_ids_that_are_assumed_to_be_new_change_no_answer(casino, player):
    """A server's keys refuse a used id, so large batches look for ids only after one whose ids were not all new
    (wallet/ledger.c). On the other engine they always look, so there a crowd is as one alone."""
    others = [add_player(casino, casino.customer, ids()) for _ in range(4)]
    bet, undone, early, large = ids(), ids(), ids(), ids()
    key, connections = casino.customer.key, [casino.connect() for _ in range(64)]

    def in_a_crowd(document):
        """After new ids for long enough, so that they are assumed again."""
        for last in [*[credit(player, ids(), 1) for _ in range(40)], document]:
            for number, connection in enumerate(connections[1:]):
                post(connection, key, credit(others[number % 4], ids(), 1))
            post(connections[0], key, last)
            answers = [connection.receive() for connection in connections]
            assert {answer.status for answer in answers[1:]} == {200}
        return answers[0]

    try:
        first = in_a_crowd(debit(player, bet, 20, round_id="r")).json()
        assert in_a_crowd(debit(player, bet, 20, round_id="r")).json() == {**first, "replayed": True}
        assert in_a_crowd(debit(player, bet, 21, round_id="r")).error == (409, "transaction_conflict")
        for replayed in (None, "true"):
            answer = in_a_crowd(debit(player, large, 10**12))
            assert answer.error == (422, "insufficient_funds") and answer.header("Idempotent-Replayed") == replayed
        assert in_a_crowd(rollback(player, ids(), early)).json()["status"] == "voided"
        for replayed in (None, "true"):
            answer = in_a_crowd(debit(player, early, 1))
            assert answer.error == (409, "transaction_rolled_back") and answer.header("Idempotent-Replayed") == replayed
        assert in_a_crowd(debit(player, undone, 5)).status == 200
        undo = rollback(player, ids(), undone)
        first_undo = in_a_crowd(undo).json()
        assert in_a_crowd(undo).json() == {**first_undo, "replayed": True}
        # What is refused is not kept, so no key refuses it; it must not hide the first answer.
        casino.ask("player", "block", player)
        assert in_a_crowd(debit(player, bet, 20, round_id="r")).json() == {**first, "replayed": True}
        assert in_a_crowd(debit(player, ids(), 20, round_id="r")).error == (403, "player_blocked")
        assert in_a_crowd(debit(others[0], bet, 20, round_id="r")).error == (409, "transaction_conflict")

        def was_assumed():
            assert in_a_crowd(debit(others[0], bet, 20)).error == (409, "transaction_conflict")
            return engines.PLATFORM == "sqlite" or f"({bet}, " in casino.platform.server.log_text()

        eventually(was_assumed)
    finally:
        for connection in connections:
            connection.close()
    assert casino.ask("wallet", "verify")["sound"]


def test_what_a_request_may_say_of_money(casino):
    rich = add_player(casino, casino.customer, "large", "JPY")
    document = ask(casino, credit(rich, ids(), 10**12, currency="JPY")).json()
    assert document["balance_minor"] == 10**12 and document["currency_exponent"] == 0
    assert ask(casino, credit(rich, ids(), 10**12 + 1, currency="JPY")).error == (400, "invalid_request")
    assert ask(casino, credit(rich, ids(), 1)).error == (422, "currency_mismatch")


def credit_many(casino, player, count):
    """The largest CREDIT, so many times: by several clients, each with many requests under way."""
    def client(numbers):
        head = (f"POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {casino.customer.key}\r\n"
                "Content-Type: application/json\r\nContent-Length: ")
        bodies = [json.dumps(credit(player, f"{player}-{number}", 10**12)) for number in numbers]
        with casino.connect() as connection:
            for first in range(0, len(bodies), 50):
                part = bodies[first:first + 50]
                connection.send("".join(f"{head}{len(body)}\r\n\r\n{body}" for body in part))
                statuses.extend(connection.receive("POST").status for _ in part)

    statuses = []
    clients = [threading.Thread(target=client, args=(range(first, count, 24),)) for first in range(24)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert statuses == [200] * count


def test_the_highest_balance(casino, player):
    """Reached to the unit, and not passed: neither by a CREDIT nor by a ROLLBACK."""
    credit_many(casino, player, LIMIT // 10**12)
    rest, over, bet = LIMIT % 10**12, ids(), ids()
    assert ask(casino, balance(player)).json()["balance_minor"] == LIMIT - rest
    assert ask(casino, credit(player, over, rest + 1)).error == (422, "balance_limit_exceeded")
    assert ask(casino, credit(player, ids(), rest)).json()["balance_minor"] == LIMIT
    assert ask(casino, credit(player, ids(), 1)).error == (422, "balance_limit_exceeded")
    assert ask(casino, credit(player, ids(), 0)).json()["balance_minor"] == LIMIT
    assert ask(casino, debit(player, bet, 5)).json()["balance_minor"] == LIMIT - 5
    assert ask(casino, credit(player, ids(), 1)).json()["balance_minor"] == LIMIT - 4
    assert ask(casino, rollback(player, ids(), bet)).error == (422, "balance_limit_exceeded")
    assert ask(casino, debit(player, ids(), 1)).json()["balance_minor"] == LIMIT - 5
    again = ask(casino, credit(player, over, rest + 1))  # for ever, whatever there is room for now
    assert again.error == (422, "balance_limit_exceeded") and again.header("Idempotent-Replayed") == "true"
    assert ask(casino, rollback(player, ids(), bet)).json()["balance_minor"] == LIMIT


def test_players_of_others_and_of_no_one(casino, player):
    other = casino.add_customer("Other", options=["--casino"])
    casino.await_admission(other.key)
    for document in (balance(player), debit(player, "x", 1), rollback(player, "x", "y")):
        assert send(casino, other.key, document).error == (404, "player_not_found")
    assert ask(casino, balance("ply_0000000000000000")).error == (404, "player_not_found")
    theirs = add_player(casino, other)
    shared = ids()
    assert send(casino, other.key, credit(theirs, shared, 5)).json()["sequence"] == 1
    assert ask(casino, credit(player, shared, 7)).json()["balance_minor"] == 7


def test_who_may_ask(casino, player):
    plain = casino.add_customer("Sports only")
    casino.await_admission(plain.key)
    assert send(casino, plain.key, balance(player)).error == (403, "casino_access_disabled")
    assert send(casino, None, balance(player)).status == 403
    casino.run("ip", "add", "127.0.0.77")
    casino.await_admission(source="127.0.0.77")
    for path in (PATH, "/api/v1/casino/games", "/api/v1/casino/nothing"):
        response = casino.request("POST", path, headers={"Content-Type": "application/json"}, body=b"{}",
                                  source="127.0.0.77")
        assert (response.status, response.json()) == NOT_ALLOWED
    response = casino.get(PATH, key=casino.customer.key)
    assert response.error == (405, "method_not_allowed") and response.header("Allow") == "POST"


@pytest.mark.parametrize("body, code", [
    (b"", "invalid_request"), (b"[]", "invalid_request"), (b"{}", "invalid_request"), (b"{", "invalid_request"),
    (b"\xff", "invalid_request"), (b"[" * 8000, "invalid_request"),
    (b'{"operation":"BALANCE","player_id":"PLAYER","player_id":"PLAYER"}', "invalid_request"),
    (b'{"operation":"BALANCE","player_id":"PLAYER","player\\u005fid":"PLAYER"}', "invalid_request"),
    (b'{"operation":"BALANCE","player_id":"PLAYER","customer_id":"cus_1"}', "unknown_field"),
    (b'{"operation":"BALANCE","player_id":"PLAYER","amount_minor":1}', "invalid_request"),
    (b'{"operation":"balance","player_id":"PLAYER"}', "invalid_request"),
    *((b'{"operation":"DEBIT","player_id":"PLAYER","transaction_id":"t","currency":"EUR","amount_minor":%s}' % amount,
       "invalid_request") for amount in (b"0", b"-1", b"1.0", b"1e2", b'"1"', b"null", b"18446744073709551616",
                                         b"1000000000001")),
])
def test_what_cannot_be_read_moves_nothing(casino, player, body, code):
    before = ask(casino, balance(player)).json()
    assert ask(casino, body.replace(b"PLAYER", player.encode())).error == (400, code)
    assert ask(casino, balance(player)).json() == before


def test_a_refusal_names_the_field_and_the_log_the_error_and_the_transaction(casino, player):
    response = ask(casino, dict(debit(player, "t-named", 1), amount_minor="SECRET"))
    assert response.json() == {"error": "invalid_request", "message": "The field amount_minor must be an integer."}
    response = ask(casino, dict(debit(player, "t-named", 1), SECRET=1))
    assert response.json() == {"error": "unknown_field", "message":
                               "The request has an unknown field. It may have operation, player_id, transaction_id,"
                               " amount_minor, currency, game_id, round_id."}
    response = ask(casino, debit(player, "t-named", 10**12))
    assert response.error == (422, "insufficient_funds")
    line = casino.log_line(response)
    assert (line["error"], line["transaction"]) == ("insufficient_funds", "t-named")
    assert "error" not in casino.log_line(ask(casino, balance(player)))


def test_a_reference_of_another_players_is_called_that(casino, player):
    other, identity = add_player(casino, casino.customer, f"other-{player}"), ids()
    assert ask(casino, credit(other, identity, 5)).status == 200
    response = ask(casino, rollback(player, ids(), identity))
    assert response.status == 409
    assert response.json() == {"error": "transaction_conflict",
                               "message": "The referenced transaction belongs to another player."}


def test_a_reference_that_is_null_is_absent(casino, player):
    assert ask(casino, dict(credit(player, ids(), 5), reference_transaction_id=None)).status == 200
    response = ask(casino, dict(rollback(player, ids(), "x"), reference_transaction_id=None))
    assert response.json()["message"] == "The field reference_transaction_id is missing."


def test_other_content_types_and_sizes_are_refused(casino, player):
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1"):
        assert send(casino, casino.customer.key, balance(player), content_type).error == (400, "invalid_request")
    response = casino.request("POST", PATH, key=casino.customer.key, body=b"{}")
    assert response.error == (400, "invalid_request")
    large = json.dumps(balance(player)).encode().ljust(16385)
    assert ask(casino, large).error == (413, "payload_too_large")
    assert ask(casino, large[:16384]).status == 200


def test_an_encoded_body_is_415_and_moves_nothing(casino, player):
    before = ask(casino, balance(player)).json()
    identity = ids()
    body = json.dumps(credit(player, identity, 5)).encode()
    for encoded in (gzip.compress(body), body):
        response = casino.request("POST", PATH, key=casino.customer.key, body=encoded, headers={
            "Content-Type": "application/json", "Content-Encoding": "gzip"})
        assert response.error == (415, "unsupported_media_type") and response.header("Accept-Encoding") == "identity"
    assert ask(casino, balance(player)).json() == before


def test_the_same_request_from_many_at_once_is_applied_once(casino, player):
    identity = ids()
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask(casino, credit(player, identity, 5)).json()))
               for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer["replayed"] for answer in answers) == [False] + [True] * 11
    assert {answer["balance_minor"] for answer in answers} == {5}


# ---- many clients against the model ---------------------------------------------------------------

class Client(threading.Thread):
    """Random operations on players and ids of its own: what it is told must be what its model says. It is a customer and
    its players' provider, in turns, on the same players and with the same ids, which are two for all that."""

    def __init__(self, server, customer, launches, name, seed, steps):
        super().__init__()
        self.server, self.key, self.players = server, customer.key, [player for player, _, _ in launches]
        self.random, self.steps, self.ids = random.Random(seed), steps, [f"{name}-{i}" for i in range(30)]
        self.model, self.sent, self.failure = Model(self.players, ["blackjack", "roulette"]), [], None
        self.provider, self.subjects = Provider(server), {subject: player for player, subject, _ in launches}
        self.launches = {launch: subject for _, subject, launch in launches}
        self.theirs = ProviderModel(self.model, self.subjects, self.launches, ["blackjack", "roulette"])
        self.sent_by_provider = []

    def as_provider(self, request):
        """The same, as the players' provider says it."""
        pick = self.random.choice
        request = {**request, "player_id": next(subject for subject, player in self.subjects.items()
                                                if player == request["player_id"])}
        if request["operation"] in ("DEBIT", "CREDIT"):
            request["round_id"] = pick(["r-1", "r-2"])
        if request["operation"] == "DEBIT":
            request.setdefault("game_id", "roulette")
            request["launch_id"] = pick([*self.launches, *self.launches, "lau_0000000000000000"])
        return request

    def step_of_provider(self):
        if self.sent_by_provider and self.random.random() < 0.2:
            request = self.random.choice(self.sent_by_provider)
        else:
            request = self.as_provider(self.draw(()))
        assert told(self.provider.send(request), request) == self.theirs.answer(request), request
        self.sent_by_provider.append(request)

    def draw(self, sent):
        chance, pick = self.random.random(), self.random.choice
        player = pick(self.players)
        if sent and chance < 0.2:
            return pick(sent)  # again, perhaps long after
        if chance < 0.3:
            return balance(player)
        identity, other = self.random.sample(self.ids, 2)
        if chance < 0.5:
            return credit(player, identity, self.random.randrange(0, 50), pick([None, other]))
        if chance < 0.75:
            game = pick([{}, {}, {"game_id": "roulette"}, {"game_id": "blackjack"}, {"game_id": "lucky-7"}])
            return debit(player, identity, self.random.randrange(1, 40), **game)
        return rollback(player, identity, other)

    def lose_interest(self, request):
        """Sends it and goes away without the answer, as after a time-out. It is done all the same."""
        body = json.dumps(request).encode()
        connection = self.server.connect()
        connection.socket.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\n"
                                  b"Content-Length: %d\r\n\r\n%s" % (PATH.encode(), self.key.encode(), len(body), body))
        time.sleep(self.random.random() * 0.01)
        connection.socket.close()

    def step(self, request):
        lost = request["operation"] != "BALANCE" and self.random.random() < 0.1
        if lost:
            self.lose_interest(request)
        answer = told(send(self.server, self.key, request), request)
        expected = self.model.answer(request)
        if lost:  # one of the two was first; a refusal that is not kept is never a replay
            answer, expected = answer[:2], expected[:2]
        assert answer == expected, request
        self.sent.append(request)

    def run(self):
        try:
            for _ in range(self.steps):
                if self.random.random() < 0.4:
                    self.step_of_provider()
                else:
                    self.step(self.draw(self.sent))
        except BaseException as failure:
            self.failure = failure


def test_many_clients_are_told_what_the_model_says(casino):
    seed = int(os.environ.get("WALLET_SEED") or random.SystemRandom().randrange(2**32))
    print(f"WALLET_SEED={seed}")  # replays this run
    customers = [casino.customer, casino.add_customer("Second", options=["--casino"])]
    casino.await_admission(customers[1].key)
    clients = []
    for i in range(6):
        customer = customers[i % 2]
        launches = [launch(casino, customer, "roulette", f"m{seed}-{i}-{j}") for j in range(2)]
        clients.append(Client(casino, customer, launches, f"m{seed}-{i}", seed + i, 180))
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    for client in clients:
        if client.failure:
            raise AssertionError(f"WALLET_SEED={seed}") from client.failure
        for player in client.players:
            document = send(casino, client.key, balance(player)).json()
            assert document["balance_minor"] == client.model.balance[player]
            assert document["sequence"] == client.model.sequence[player]
    assert casino.ask("wallet", "verify")["sound"] is True


def test_the_operator_sees_operations_batches_and_commits(casino, player):
    ask(casino, credit(player, ids(), 1))
    metrics = casino.metrics()
    assert metrics['croupier_wallet_operations_total{operation="CREDIT",outcome="applied"}'] >= 1
    assert metrics["croupier_ledger_batch_operations_count"] >= 1
    assert metrics['croupier_ledger_commit_seconds_bucket{le="+Inf"}'] == metrics["croupier_ledger_commit_seconds_count"]
    assert metrics["croupier_ledger_queue_depth"] == 0


def test_the_operator_sees_the_index_of_ids(casino, player):
    before = casino.metrics()["croupier_ledger_index_ids"]
    ask(casino, credit(player, ids(), 1))
    if engines.PLATFORM == "sqlite":  # it is looked at after the answers of a batch
        eventually(lambda: casino.metrics()["croupier_ledger_index_ids"] > before)
    metrics = casino.metrics()
    assert (metrics["croupier_ledger_index_memory_bytes"] > 0) == (engines.PLATFORM == "sqlite")
    assert metrics["croupier_ledger_index_made_again_total"] == metrics["croupier_ledger_index_write_failures_total"] == 0


def test_a_ledger_that_cannot_be_opened_says_so_and_balances_come_back(fragile):
    server = fragile
    customer = server.add_customer("Casino", options=["--casino"])
    player = add_player(server, customer)
    server.start()
    assert send(server, customer.key, credit(player, "a", 5)).status == 200
    server.platform.take_away()
    assert send(server, customer.key, debit(player, "b", 1)).status == 503
    server.platform.bring_back()
    eventually(lambda: send(server, customer.key, debit(player, "b", 1)).status == 200)
    # Balances have a connection of their own, which may come back a moment later.
    answer = eventually(lambda: (found := send(server, customer.key, balance(player))).status == 200 and found)
    assert answer.json()["balance_minor"] == 4


HOLDS = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.only("sqlite")
def test_a_stopped_process_that_holds_the_write_lock_is_named(make_service):
    casino = make_service({"platform.timeout_ms": "500"})
    casino.customer = casino.add_customer("Casino", options=["--casino"])
    casino.start()
    player = add_player(casino, casino.customer)
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, str(casino.platform.path)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        holder.send_signal(signal.SIGSTOP)
        for _ in range(3):
            assert ask(casino, credit(player, ids(), 1)).error == (503, "ledger_unavailable")
        assert ask(casino, balance(player)).status == 200
        said = eventually(lambda: [line for line in casino.log_lines() if line["message"] == "ledger is unavailable"])
        assert f"process {holder.pid} kept it locked" in said[-1]["reason"]
    finally:
        holder.kill()
        holder.communicate()
    eventually(lambda: ask(casino, credit(player, ids(), 1)).status == 200)


def test_a_blocked_player_bets_no_more_until_it_is_unblocked(casino, player):
    assert ask(casino, credit(player, ids(), 100)).status == 200
    bet, undone, refused = ids(), ids(), ids()
    first = ask(casino, debit(player, bet, 10, round_id="r")).json()
    assert ask(casino, debit(player, undone, 10)).status == 200
    assert casino.ask("player", "block", player)["blocked_at"] is not None
    # At once, and for stakes alone.
    assert ask(casino, debit(player, refused, 1, game_id=casino.lobby)).error == (403, "player_blocked")
    assert ask(casino, debit(player, refused, 1000, round_id="r")).error == (403, "player_blocked")
    assert ask(casino, debit(player, bet, 10, round_id="r")).json() == dict(first, replayed=True)
    assert ask(casino, credit(player, ids(), 5, bet)).json()["balance_minor"] == 85
    assert ask(casino, rollback(player, ids(), undone)).json()["balance_minor"] == 95
    assert ask(casino, balance(player)).json()["balance_minor"] == 95
    assert ask(casino, debit(player, ids(), 5)).json()["balance_minor"] == 90  # paid out
    launch = {"mode": "real", "player_reference": casino.ask("player", "show", player)["player_reference"], "currency": "EUR"}
    at = f"/api/v1/casino/games/{casino.lobby}/launch", casino.customer.key
    assert casino.request("POST", at[0], key=at[1], headers={"Content-Type": "application/json"},
                          body=json.dumps(launch).encode()).error == (403, "player_blocked")
    assert casino.run("player", "unblock", player, "--early", "--reason", "over").text == f"{player} is not blocked.\n"
    assert ask(casino, debit(player, refused, 1, round_id="r")).json()["balance_minor"] == 89
    assert casino.ask("wallet", "verify")["sound"]
