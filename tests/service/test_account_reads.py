"""What a customer reads of its money: transactions, players, statements, rounds, days, entries and usage (docs/account.md)."""

import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import urllib.parse

import pytest

from croupier import PATIENCE, ROOT, Service, eventually
from wallet_model import Provider, add_games, credit, debit, launch, post, rollback, send

pytestmark = pytest.mark.depends_on("platform")

ACCOUNT = "/api/v1/account"
NO_PLAYER, NO_TRANSACTION = (404, "player_not_found"), (404, "transaction_not_found")
FIGURES = ("currency", "currency_exponent", "entries", "stakes", "stakes_minor", "wins", "wins_minor", "rolled_back_stakes_minor", "rolled_back_wins_minor",
           "promos", "promos_minor", "transfers_in_minor", "transfers_out_minor", "rolled_back_transfers_in_minor", "result_minor")


class House:
    """Two customers with a player each that plays the same game of one provider, and ids that both have used."""

    def __init__(self, directory):
        self.server = server = Service(directory, {"account.rate": "1000000/60", "provider.listen": "127.0.0.1:0"})
        self.customers = [server.add_customer(name, options=["--casino"]) for name in ("One", "Two")]
        add_games(server, "roulette")
        self.acme = Provider(server)
        for customer in self.customers:
            customer.reads = server.prepare("key", "issue", customer.id, "--only", "account").text.strip()

    def begin(self):
        self.server.start()
        for number, customer in enumerate(self.customers):
            self.server.await_admission(customer.key)
            self.server.await_admission(customer.reads)
            customer.player, customer.subject, customer.launch = launch(self.server, customer, "roulette", "alice")
            self.play(customer, number)

    def play(self, customer, number):
        own = [credit(customer.player, "in", 10000 + number), debit(customer.player, "bet", 250, game_id="roulette", round_id="own 1"),
               credit(customer.player, "win", 500, "bet"), debit(customer.player, "too much", 99), debit(customer.player, "broke", 99999999),
               debit(customer.player, "out", 100), rollback(customer.player, "undo", "out"), rollback(customer.player, "void", "never")]
        for document in own:
            send(self.server, customer.key, document)
        of = {"player_id": customer.subject, "currency": "EUR", "round_id": f"r-{number}"}
        for document in ({"operation": "DEBIT", "transaction_id": f"a-{number}", "amount_minor": 30, "game_id": "roulette", "launch_id": customer.launch},
                         {"operation": "CREDIT", "transaction_id": f"b-{number}", "amount_minor": 70, "reference_transaction_id": f"a-{number}",
                          "kind": "promo", "round_ended": True},
                         {"operation": "DEBIT", "transaction_id": f"c-{number}", "amount_minor": 5, "game_id": "roulette", "launch_id": customer.launch,
                          "round_id": f"s-{number}"}):
            assert self.acme.send({**of, **document}).status == 200

    def ask(self, path, customer=None, **query):
        query = urllib.parse.urlencode(query)
        return self.server.get(f"{ACCOUNT}/{path}{query and '?' + query}", key=(customer or self.customers[0]).reads)

    def pages(self, path, member, customer=None, **query):
        """All rows of a list, page by page, and the number of pages."""
        rows, cursor, count = [], {}, 0
        while cursor is not None:
            page = self.ask(path, customer, **query, **cursor)
            assert page.status == 200, page
            rows += page.json()[member]
            assert len(page.json()[member]) <= query.get("limit", 50)
            more = page.json()["more"] if member == "entries" else page.json()["next_cursor"] is not None
            cursor = {"cursor": page.json()["next_cursor"]} if more else None
            count += 1
        return rows, count


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("reads"))
    try:
        house.begin()
        yield house
    finally:
        house.server.remove()


def test_a_transaction_says_what_became_of_it(house):
    one, two = house.customers

    def fate(identity, *members, **query):
        document = house.ask("transactions", id=identity, **query).json()
        return tuple(document[member] for member in members)

    assert fate("bet", "operation", "outcome", "amount_minor", "game_id", "round_id", "player_id") == ("DEBIT", "applied", 250, "roulette", "own 1", one.player)
    assert fate("bet", "standing_credits", "settled_by", "rolled_back", "rolled_back_by") == (1, "win", False, None)
    assert fate("win", "standing_credits", "settled_by") == (0, None)
    assert fate("out", "rolled_back", "rolled_back_by", "outcome") == (True, "undo", "applied")
    assert fate("broke", "outcome", "rolled_back") == ("insufficient_funds", False)
    assert fate("void", "outcome", "reference_transaction_id") == ("voided", "never")
    assert fate("never", "rolled_back", "rolled_back_by") == (True, "void")
    assert "operation" not in house.ask("transactions", id="never").json()
    assert fate("b-0", "kind", "round_ended", "provider", provider="acme") == ("promo", True, "acme")
    assert house.ask("transactions", id="in").json()["amount_minor"] == 10000
    assert house.ask("transactions", two, id="in").json()["amount_minor"] == 10001
    for unseen in ({"id": "nothing"}, {"id": "a-1", "provider": "acme"}, {"id": "a-0"}, {"id": "bet", "provider": "acme"}, {"id": "bet", "provider": "nobody"}):
        assert house.ask("transactions", **unseen).error == NO_TRANSACTION, unseen
    assert house.ask("transactions", id="nothing").body == house.ask("transactions", id="a-1", provider="acme").body


def test_a_player_is_found_by_reference_or_id(house):
    one, two = house.customers
    by_reference, by_id = house.ask("players", reference="alice").json(), house.ask("players", player_id=one.player).json()
    assert by_reference == by_id and by_id["next_cursor"] is None
    [player] = by_id["players"]
    assert (player["player_id"], player["player_reference"], player["balance_minor"], player["currency"]) == (one.player, "alice", 10285, "EUR")
    assert player["blocked_at"] is player["blocked_until"] is None
    assert player["created_at"] <= player["first_active_at"] <= player["last_active_at"]
    launch(house.server, one, "roulette", "alice", "JPY")
    assert {player["currency"] for player in house.ask("players", reference="alice").json()["players"]} == {"EUR", "JPY"}
    assert house.ask("players", two, reference="alice").json()["players"][0]["player_id"] == two.player
    for unseen in ({"reference": "bob"}, {"player_id": two.player}, {"player_id": "ply_nobody"}):
        assert house.ask("players", **unseen).error == NO_PLAYER, unseen
    assert house.ask("players", player_id=two.player).body == house.ask("players", player_id="ply_nobody").body
    house.server.run("player", "block", one.player, "--until", "2120-01-31", "--reason", "secret")
    blocked = house.ask("players", player_id=one.player)
    [player] = blocked.json()["players"]
    assert player["blocked_until"].startswith("2120") and b"secret" not in blocked.body
    assert (player["blocked_by_operator"], player["blocked_by_customer"]) == (True, False)
    house.server.run("player", "unblock", one.player, "--early", "--reason", "over")


def test_a_reference_has_a_player_in_each_currency(house):
    one, _ = house.customers
    names = "AUD BRL CAD CHF CZK DKK GBP HUF ISK KRW KWD MXN NOK NZD PLN RON SEK USD".split()
    house.server.run("game", "import", "-", input=json.dumps([
        {"id": "many-coins", "name": "Many", "provider": "acme", "category": "slots", "currencies": names}]))
    eventually(lambda: b"many-coins" in house.server.get("/api/v1/casino/games", key=one.key).body)
    for name in names:
        launch(house.server, one, "many-coins", "collector", name)
    assert sorted(player["currency"] for player in house.ask("players", reference="collector").json()["players"]) == names
    assert house.server.run("player", "show", one.id, "collector", status=1).errors.endswith(" and 4 others\n")


def test_a_statement_goes_back_from_the_newest_entry(house):
    one, two = house.customers
    told = house.server.ask("wallet", "statement", one.player)["entries"]
    for limit, count in ((200, 1), (1, len(told)), (3, -(-len(told) // 3))):
        assert house.pages("statement", "statement", player_id=one.player, limit=limit) == (told[::-1], count)
    assert house.ask("statement", player_id=two.player).error == house.ask("statement", player_id="ply_nobody").error == NO_PLAYER


def test_rounds_are_those_of_the_operator(house):
    one, two = house.customers
    told = [round for round in house.server.ask("wallet", "rounds") if round["customer"] == one.id]
    rounds, _ = house.pages("rounds", "rounds")
    assert rounds == sorted(told, key=lambda round: round["began_at"], reverse=True)
    assert {(round["round_id"], round["state"]) for round in rounds} == {("own 1", "settled"), ("r-0", "ended"), ("s-0", "open")}
    assert house.pages("rounds", "rounds", limit=1) == (rounds, 3)
    assert house.pages("rounds", "rounds", player_id=one.player) == (rounds, 1)
    for query, ids in (({"state": "open"}, {"s-0"}), ({"state": "ended"}, {"r-0"}), ({"state": "settled"}, {"own 1"}), ({"state": "all"}, {"own 1", "r-0", "s-0"}),
                       ({"provider": "acme", "player_id": one.player}, {"own 1", "r-0", "s-0"}), ({"provider": "nobody"}, set()), ({"from": "2020-01-01", "to": "2020-01-31"}, set())):
        assert {round["round_id"] for round in house.pages("rounds", "rounds", **query)[0]} == ids, query
    assert house.ask("rounds", player_id=two.player).error == house.ask("rounds", player_id="ply_nobody").error == NO_PLAYER


def test_a_day_is_that_of_the_report_to_the_cent(house):
    for customer in house.customers:
        day = house.server.ask("wallet", "statement", customer.player)["entries"][0]["created_at"][:10]
        [told] = house.server.ask("wallet", "report", "--day", day, "--customer", customer.id)["totals"]
        [sum_of] = house.ask("days", customer, day=day).json()["days"]
        assert {name: sum_of[name] for name in FIGURES if name in told} == {name: told[name] for name in FIGURES if name in told}
        assert sum_of["stakes_minor"] == 285 and sum_of["promos_minor"] == 70 and "provider" not in sum_of
    assert house.ask("days", day="2020-01-31").json() == {"day": "2020-01-31", "days": [], "next_cursor": None}


def test_entries_are_a_copy_of_the_customer_s_ledger_in_the_order_of_commits(house):
    one, two = house.customers
    for customer in house.customers:
        told = house.server.ask("wallet", "statement", customer.player)["entries"]
        for limit in (200, 2):
            assert house.pages("entries", "entries", customer, limit=limit)[0] == told
    end = house.ask("entries", limit=200).json()
    while end["more"]:
        end = house.ask("entries", limit=200, cursor=end["next_cursor"]).json()
    assert send(house.server, two.key, credit(two.player, "not-yours", 1)).status == 200
    send(house.server, one.key, credit(one.player, "later", 1))
    page = house.ask("entries", limit=200, cursor=end["next_cursor"]).json()
    assert [entry["transaction_id"] for entry in page["entries"]] == ["later"] and not page["more"]
    assert "number" not in page["entries"][0]


def test_a_copy_comes_to_its_end_however_much_others_play(house):
    one, two = house.customers
    cursor = house.ask("entries", limit=200).json()["next_cursor"]
    for number in range(3):
        assert send(house.server, two.key, credit(two.player, f"on-and-on-{number}", 1)).status == 200
        page = house.ask("entries", limit=200, cursor=cursor).json()
        assert page["entries"] == [] and page["more"] is False and page["next_cursor"] != cursor
        cursor = page["next_cursor"]
    send(house.server, one.key, credit(one.player, "one", 1))
    send(house.server, one.key, credit(one.player, "two", 1))
    page = house.ask("entries", limit=1, cursor=cursor).json()
    assert [entry["transaction_id"] for entry in page["entries"]] == ["one"] and page["more"] is True


def test_a_copy_goes_on_behind_any_number_of_declines(house):
    one, _ = house.customers
    cursor = house.ask("entries", limit=200).json()["next_cursor"]
    connections = [house.server.connect() for _ in range(60)]
    for turn in range(85):
        for at, connection in enumerate(connections):
            post(connection, one.key, debit(one.player, f"too-poor-{turn}-{at}", 9999999999))
        assert {connection.receive().status for connection in connections} == {422}
    for connection in connections:
        connection.close()
    assert send(house.server, one.key, credit(one.player, "at-last", 1)).status == 200
    page = house.ask("entries", limit=200, cursor=cursor).json()
    assert [entry["transaction_id"] for entry in page["entries"]] == ["at-last"] and page["more"] is False


def test_the_example_s_copy_proves_each_day_with_a_provider_s_moves_and_what_was_rolled_back(house, tmp_path):
    for customer in house.customers:
        days = [entry["created_at"][:10] for entry in house.pages("entries", "entries", customer, limit=200)[0]]
        ran = subprocess.run([sys.executable, ROOT / "examples/customer-python/reconcile.py", days[0], days[-1]], capture_output=True, text=True, env=dict(
            os.environ, BASE=f"http://127.0.0.1:{house.server.address[1]}", ACCOUNT_KEY=customer.reads, COPY=str(tmp_path / customer.id)), timeout=60 * PATIENCE)
        assert ran.returncode == 0 and ran.stderr == "", ran
        assert sum(int(line.split()[2]) for line in ran.stdout.splitlines()) == len(days) and " EUR " in ran.stdout


def test_usage_is_that_of_the_operator(house):
    one, two = house.customers
    usage = house.ask("usage").json()
    assert {row["customer"] for row in usage["wallet"]} == {one.id}
    [told] = [row for row in house.server.ask("usage", one.id)["wallet"] if row["currency"] == "EUR"]
    assert usage["wallet"] == [told]
    assert house.ask("usage", **{"from": "2020-01-01", "to": "2020-01-31"}).json() == {"requests": [], "wallet": []}


@pytest.mark.parametrize("path, query, message", [
    ("transactions", "", "The parameter id is missing."),
    ("transactions", "id=a&id=b", "The parameter id is given twice."),
    ("transactions", "id=a%20b", "The parameter id must be 1 to 64 letters, digits, '.', '_', ':' or '-'."),
    ("transactions", "id=a&limit=1", "The request has an unknown parameter. It may have id, provider."),
    ("players", "", "The parameter reference must be given, or player_id, and not both."),
    ("players", "reference=a&player_id=ply_a", "The parameter reference must be given, or player_id, and not both."),
    ("statement", "player_id=cus_a", "The parameter player_id must be the id of a player (ply_…)."),
    ("statement", "player_id=ply_a&limit=201", "The parameter limit must be an integer from 1 to 200."),
    ("statement", "player_id=ply_a&cursor=x", "The parameter cursor must be a next_cursor of the same query."),
    ("rounds", "state=lost", "The parameter state must be open, ended, settled or all."),
    ("rounds", "from=2026-02-30", "The parameter from must be a date, as 2026-11-21."),
    ("rounds", "from=2026-01-01&to=2026-02-01", "The parameter from must be at most 30 days before to."),
    ("usage", "from=2026-01-01&to=2026-02-01", "The parameter from must be at most 30 days before to."),
    ("usage", "from=2026-02-01&to=2026-01-01", "The parameter from must not be after to."),
    ("days", "", "The parameter day is missing."),
    ("days", "day=today", "The parameter day must be a date, as 2026-11-21."),
    ("entries", "limit=0", "The parameter limit must be an integer from 1 to 200."),
    ("entries", "x=0", "The request has an unknown parameter. It may have limit, cursor."),
])
def test_each_mistake_is_named(house, path, query, message):
    refused = house.server.get(f"{ACCOUNT}/{path}?{query}", key=house.customers[0].reads)
    assert refused.error == (400, "invalid_request") and refused.json()["message"] == message


def test_a_cursor_is_of_one_customer_and_one_query(house):
    one, two = house.customers
    statement = house.ask("statement", player_id=one.player, limit=1).json()["next_cursor"]
    entries = house.ask("entries", limit=1).json()["next_cursor"]
    rounds = house.ask("rounds", limit=1).json()["next_cursor"]
    assert house.ask("statement", player_id=one.player, limit=7, cursor=statement).status == 200  # the limit may change
    for path, customer, query in (("entries", two, {"cursor": entries}), ("entries", one, {"cursor": statement}), ("rounds", one, {"cursor": entries}),
                                  ("rounds", one, {"cursor": rounds, "state": "open"}), ("statement", two, {"player_id": two.player, "cursor": statement}),
                                  ("entries", one, {"cursor": entries[:-1] + ("A" if entries[-1] != "A" else "B")})):
        assert house.ask(path, customer, **query).error == (400, "invalid_request"), (path, query)


def test_open_rounds_that_are_settled_page_by_page_are_all_seen(house):
    """Many began in one millisecond, and a page takes those that it shows out of the list."""
    one, _ = house.customers
    player, _, _ = launch(house.server, one, "roulette", "settler")
    send(house.server, one.key, credit(player, "settler-in", 1000))
    connections = [house.server.connect() for _ in range(40)]
    for number, connection in enumerate(connections):
        post(connection, one.key, debit(player, f"open-{number}", 1, game_id="roulette", round_id=f"of {number}"))
    assert {connection.receive().status for connection in connections} == {200}
    seen, cursor = [], {}
    while cursor is not None:
        page = house.ask("rounds", player_id=player, state="open", limit=7, **cursor).json()
        for each in page["rounds"]:
            seen.append(each["round_id"])
            number = each["round_id"].removeprefix("of ")
            assert send(house.server, one.key, credit(player, f"settle-{number}", 0, f"open-{number}")).status == 200
        cursor = page["next_cursor"] and {"cursor": page["next_cursor"]}
    assert sorted(seen) == sorted(f"of {number}" for number in range(40))
    for connection in connections:
        connection.close()


# ---- waiting ----------------------------------------------------------------------------------------------


class Waiting:
    """A customer whose copy is at its end, and another one."""

    def __init__(self, server):
        self.server = server
        self.one, self.two = (server.add_customer(name, options=["--casino"]) for name in ("One", "Two"))
        add_games(server, "roulette")
        for customer in (self.one, self.two):
            customer.reads = server.prepare("key", "issue", customer.id, "--only", "account").text.strip()
        server.start()
        for customer in (self.one, self.two):
            server.await_admission(customer.key)
            server.await_admission(customer.reads)
            customer.player, _, _ = launch(server, customer, "roulette", "alice")
            send(server, customer.key, credit(customer.player, "first", 1))
            for _ in range(16):  # each of the reading threads opens its store at its first look, which takes longer than all that follow
                customer.end = server.get(f"{ACCOUNT}/entries", key=customer.reads).json()["next_cursor"]

    def send(self, customer, wait=55, query=None, method="GET"):
        connection = self.server.connect()
        query = f"cursor={customer.end}" if query is None else query
        connection.send(f"{method} {ACCOUNT}/entries?{query} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {customer.reads}\r\nPrefer: wait={wait}\r\n\r\n")
        return connection

    def begin(self, customer, key=None):
        """A connection whose request waits: what came after it was answered, and nothing has come on it."""
        connection = self.send(customer)
        for _ in range(16):
            assert self.server.get(f"{ACCOUNT}/entries?limit=1", key=key or customer.reads).status == 200
        with selectors.DefaultSelector() as selector:
            selector.register(connection.socket, selectors.EVENT_READ)
            assert not selector.select(0), connection.receive()
        return connection


@pytest.fixture
def waiting(make_service):
    return Waiting(make_service(settings={"account.rate": "1000000/60"}))


def waited(answer):
    """The ids of the entries, and what it says of its wait."""
    return [entry["transaction_id"] for entry in answer.json()["entries"]], answer.header("preference-applied")


def test_entries_that_come_end_a_wait_at_the_end_and_so_does_the_time(waiting):
    server, one, two = waiting.server, waiting.one, waiting.two
    with waiting.begin(one) as its, waiting.begin(two) as stays:
        send(server, one.key, credit(one.player, "second", 1))
        answer = its.receive()
        assert (answer.status, *waited(answer)) == (200, ["second"], "wait=55")
        one.end = answer.json()["next_cursor"]
        stays.close()
    with waiting.send(one, wait=1) as its:
        answer = its.receive()
        assert (answer.status, *waited(answer), answer.json()["more"]) == (200, [], "wait=1", False)
    for connection, found in ((waiting.send(one, query="limit=1"), ["first"]), (waiting.send(one, wait=0), []), (waiting.send(one, wait="x"), [])):
        with connection:
            assert waited(connection.receive()) == (found, None)
    with waiting.begin(one) as its:
        its.socket.shutdown(socket.SHUT_WR)
        assert waited(its.receive()) == ([], "wait=55")
    with waiting.send(one, method="HEAD") as its:
        assert its.receive("HEAD").header("preference-applied") is None
    with waiting.send(one, query=f"cursor={two.end}") as its:
        assert its.receive().error == (400, "invalid_request")


@pytest.mark.only("sqlite")  # a backup of the other takes its own commands
def test_a_cursor_of_what_a_restored_backup_does_not_have_is_refused_at_once(waiting, tmp_path):
    server, one = waiting.server, waiting.one
    server.stop()
    files = [file for file in server.directory.iterdir() if file.name.startswith("platform.db")]
    for file in files:
        shutil.copy(file, tmp_path)
    server.start()
    server.await_admission(one.key)
    send(server, one.key, credit(one.player, "second", 1))
    lost = server.get(f"{ACCOUNT}/entries", key=one.reads).json()["next_cursor"]
    server.stop()
    for file in server.directory.glob("platform.db*"):
        file.unlink()
    for file in files:
        shutil.copy(tmp_path / file.name, file)
    server.start()
    server.await_admission(one.reads)
    with waiting.send(one, query=f"cursor={lost}") as its:
        answer = its.receive()
    assert answer.error == (400, "invalid_request") and "moved to another engine" in answer.json()["message"]
    assert answer.header("preference-applied") is None


def test_a_customer_has_two_waits_and_one_that_goes_frees_its_place(waiting):
    one, two = waiting.one, waiting.two
    with waiting.begin(one) as first, waiting.begin(one), waiting.begin(two):
        with waiting.send(one) as third:
            assert waited(third.receive()) == ([], None)
        first.close()

        def waits():
            with waiting.send(one, wait=1) as third:
                return waited(third.receive())[1] == "wait=1"
        eventually(waits)


def test_whoever_may_not_read_any_more_is_told_and_a_drain_answers_all(waiting):
    server, one, two = waiting.server, waiting.one, waiting.two
    other = server.run("key", "issue", one.id, "--only", "account").text.strip()
    server.await_admission(other)
    with waiting.begin(one, other) as gone, waiting.begin(two) as stays:
        identity = next(key["id"] for key in server.ask("key", "list", one.id) if key["prefix"] == one.reads[:8])
        server.run("key", "revoke", identity)
        answer = gone.receive()
        assert answer.error == (403, "ip_not_allowed") and answer.header("preference-applied") == "wait=55"
        server.signal(signal.SIGTERM)
        answer = stays.receive()
        assert (answer.status, *waited(answer), answer.header("connection")) == (200, [], "wait=55", "close")
        assert stays.at_end()
    assert server.wait() == 0
    server.stop()
