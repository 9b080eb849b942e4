"""croupier platform copy, croupier odds copy: moving house, and back, with nothing missing."""

import json
import re
import shutil
import sqlite3

import pytest

import engines
from croupier import ROOT, Service, match_odds, row
from servers import Postgres
from wallet_model import Provider, add_games, add_player, balance, credit, debit, launch, rollback, send

pytestmark = pytest.mark.threadless


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A stopped service with something of everything, and what its server answered."""
    service = Service(tmp_path_factory.mktemp("house"), {"provider.listen": "127.0.0.1:0"})
    try:
        service.customer = service.add_customer("Casino", options=["--casino"], rate="100/60")
        service.other = service.add_customer("Other", cidrs=["192.0.2.0/24", "2001:db8::/32"], sports="none")
        service.run("customer", "disable", service.other.id)
        service.revoked = service.issue_key(service.customer.id, "--label", "old", "--expires", "2099-01-01T00:00:00Z")
        service.run("key", "revoke", service.ask("key", "list", service.customer.id)[1]["id"])
        service.run("ip", "add", "198.51.100.7", "--sports", "tennis", "--rate", "5/10")
        service.run("ip", "add", "198.51.100.8")
        service.run("ip", "remove", "198.51.100.8")
        add_games(service, "roulette", "dice")
        service.run("game", "disable", "dice")
        service.run("game", "allow", service.customer.id, "roulette")
        service.run("operator", "add", "anna", "--role", "owner")
        service.run("operator", "token", "add", "ci", "--role", "operator", "--cidr", "192.0.2.0/24", "--expires", "2099-01-01")
        service.run("operator", "token", "add", "old", "--role", "reader")
        service.run("operator", "token", "revoke", "old")
        service.start()
        alice, bob = service.players = [add_player(service, service.customer, name, currency)
                                        for name, currency in (("alice", "EUR"), ("bob", "KWD"))]
        service.documents = [
            credit(alice, "in", 100000), debit(alice, "bet", 250, game_id="roulette", round_id="r 1"),
            credit(alice, "win", 500, "bet"), debit(alice, "too-much", 200000), rollback(alice, "undo", "win"),
            rollback(alice, "void", "never"), debit(alice, "never", 1), credit(alice, "lost", 1, "nobody"),
            *(credit(bob, f"b{i}", i, currency="KWD") for i in range(600))]
        service.answers = [send(service, service.customer.key, document) for document in service.documents]
        service.answers = [(answer.status, answer.json()) for answer in service.answers]
        play_at_a_provider(service)
        service.stop()
        service.run("player", "block", bob, "--reason", "asked for a break", "--until", "9d")
        service.run("player", "block", service.customer.id, "dora", "--reason", "self-exclusion")
        service.run("player", "block", service.customer.id, "erik")
        service.run("player", "unblock", service.customer.id, "erik", "--early", "--reason", "not erik")
        service.run("provider", "secret", "add", "acme", input=NEWER_SECRET)
        service.run("provider", "set", "acme", "--cidr", "127.0.0.0/8", "--cidr", "192.0.2.0/24")
        service.narrowed = service.issue_key(service.customer.id, "--only", "casino", "--cidr", "127.0.0.0/8")
        yield service
    finally:
        service.stop()


NEWER_SECRET = "a newer secret, of the same provider"


def play_at_a_provider(service):
    """Of a third player, who is launched with it: operations that are applied, voided and declined."""
    carol, subject, launched = launch(service, service.customer, "roulette", "carol")
    session = {"launch_id": launched, "game_id": "roulette", "round_id": "r-1"}
    service.stake = debit(subject, "later", 10, **session)
    service.played = [credit(subject, "in", 1000, round_id="r-0"), debit(subject, "bet", 250, **session),
                      credit(subject, "win", 500, "bet", round_id="r-1"), debit(subject, "much", 5000, round_ended=True, **session),
                      rollback(subject, "undo", "win"), debit(subject, "free", 0, **session),
                      credit(subject, "gift", 0, round_id="r-2", kind="promo", round_ended=True), rollback(subject, "void", "never")]
    service.players.append(carol)
    provider = Provider(service)
    service.played_answers = [provider.send(document) for document in service.played]
    assert [answer.status for answer in service.played_answers] == [200, 200, 200, 422, 200, 200, 200, 200]


def play_on(service, house):
    """On a copy: every call of the provider is answered as it was, the launch still entitles, and either secret signs."""
    for document, before in zip(house.played, house.played_answers):
        again = Provider(service).send(document)
        assert again.header("Idempotent-Replayed") == "true"
        assert again.json() == (before.json() if before.status != 200 else {**before.json(), "replayed": True})
    assert Provider(service, secret=NEWER_SECRET).send(house.stake).json()["balance_minor"] == 740
    assert service.get("/api/v1/sports", key=house.narrowed).json() == {"sports": []}
    assert service.get("/api/v1/casino/games", key=house.narrowed).status == 200


def everything(service):
    """What the commands tell of a store, less what a copy counts again; the books and the trail byte for byte."""
    def without(document):
        if isinstance(document, list):
            return [without(item) for item in document]
        return {name: value for name, value in document.items() if name != "revision"}
    asked = [("customer", "list"), ("ip", "list"), ("provider", "list"), ("game", "list"),
             ("operator", "list"), ("operator", "token", "list")]
    asked += [("key", "list", customer["id"]) for customer in service.ask("customer", "list")]
    asked += [(*command, player) for player in service.players for command in (("wallet", "statement"), ("player", "show"))]
    asked += [("provider", "secret", "list", "acme"), ("usage",)]
    books = [("wallet", "export", "--ndjson"), ("wallet", "export", "--rounds"), ("audit", "list", "--json")]
    return [without(service.ask(*command)) for command in asked] + [service.run(*command).stdout for command in books]


def copy_of(house, make_service, uri):
    """A service on the copy, with the same key of secrets."""
    service = make_service({"platform.store": uri, "provider.listen": "127.0.0.1:0"}, stores=False)
    service.players = house.players
    shutil.copy(house.settings[("casino", "secrets_key_file")], service.settings[("casino", "secrets_key_file")])
    service.publish_nothing()
    return service


COUNTS = {"customers": 2, "keys": 4, "addresses": 1, "providers": 1, "games": 2, "game_lists": 1, "players": 3, "blocks": 2,
          "launches": 3, "audit_rows": 27, "operators": 1, "tokens": 2, "transactions": 616, "entries": 612}


def test_a_platform_store_is_moved_with_all_that_it_holds(house, make_service, tmp_path):
    source = house.settings[("platform", "store")]
    target = f"sqlite:{tmp_path}/copy.db"
    counts = house.ask("platform", "copy", source, target)
    assert counts == COUNTS
    service = copy_of(house, make_service, target)
    assert everything(service) == everything(house)
    assert json.loads(service.run("wallet", "verify", "--json").stdout)["entries"] == COUNTS["entries"]
    service.start()
    service.await_admission(house.customer.key)
    for document, (status, before) in zip(house.documents[:20], house.answers):
        again = send(service, house.customer.key, document)
        if status == 200:
            assert again.json() == {**before, "replayed": True}
        else:
            assert (again.status, again.json()) == (status, before)
        assert again.header("Idempotent-Replayed") == "true"
    went_on = send(service, house.customer.key, credit(house.players[0], "new", 5)).json()
    assert went_on["sequence"] == 6 and went_on["balance_minor"] == 99755
    assert send(service, house.customer.key, balance(house.players[1])).json()["balance_minor"] == 600 * 599 // 2
    assert service.get("/api/v1/sports", key=house.revoked).status == 403
    assert service.get("/api/v1/sports", key=house.other.key).status == 403
    play_on(service, house)
    service.stop()
    service.run("wallet", "verify")


@pytest.mark.only("sqlite")
@pytest.mark.takes("postgresql")
def test_a_platform_store_moves_to_postgresql_and_back(house, make_service, tmp_path):
    source = house.settings[("platform", "store")]
    postgres = engines.shared_server(engines.Postgres)
    grown = postgres.uri
    assert house.ask("platform", "copy", source, grown) == COUNTS
    service = copy_of(house, make_service, grown)
    assert everything(service) == everything(house)
    service.start()
    service.await_admission(house.customer.key)
    bet, win = house.documents[1:3]
    assert send(service, house.customer.key, bet).json() == {**house.answers[1][1], "replayed": True}
    assert send(service, house.customer.key, {**win, "amount_minor": 501}).error == (409, "transaction_conflict")
    assert send(service, house.customer.key, credit(house.players[0], "new", 5)).json()["sequence"] == 6
    play_on(service, house)
    service.stop()
    service.run("wallet", "verify")  # a row of the audit trail
    back = f"sqlite:{tmp_path}/back.db"
    assert house.ask("platform", "copy", grown, back) == {
        **COUNTS, **{name: COUNTS[name] + 2 for name in ("transactions", "entries")}, "audit_rows": COUNTS["audit_rows"] + 1}
    returned = copy_of(house, make_service, back)
    assert everything(returned) == everything(service)
    returned.run("wallet", "verify")


@pytest.mark.only("sqlite")
@pytest.mark.takes("postgresql")
def test_a_copy_as_the_service_s_role_goes_into_tables_that_the_owner_made(house, make_service, tmp_path):
    rights = re.search(r"```sql\n(-- the rights.*?)```", (ROOT / "docs" / "postgresql.md").read_text(), re.S).group(1)
    with Postgres(tcp=True) as server:
        database = server.create_database()
        server.sql("CREATE ROLE croupier LOGIN")
        as_service = server.uri_of(database, tcp=True, user="croupier")
        moving = ("platform", "copy", house.settings[("platform", "store")], as_service)
        assert "this user may not do that; see docs/postgresql.md" in house.run(*moving, status=1).errors
        owner = make_service({"platform.store": server.uri_of(database, tcp=True)}, stores=False)
        # The owner's machine may have no directory for the key, which the service has.
        owner.configure({"casino.secrets_key_file": f"{tmp_path}/nowhere/secrets.key"})
        said = owner.run("migrate", status=1).errors
        assert "the store is ready, but not the secrets key: " in said and "nowhere/secrets.key" in said
        server.sql(rights + "GRANT INSERT, UPDATE ON console_operator, operator_credential, conduct_fact TO croupier", database)
        assert house.ask(*moving) == COUNTS


def test_a_copy_goes_only_into_an_empty_store(house, tmp_path):
    source = house.settings[("platform", "store")]
    target = f"sqlite:{tmp_path}/copy.db"
    house.run("platform", "copy", source, target)
    assert "not empty" in house.run("platform", "copy", source, target, status=1).errors
    assert "same store" in house.run("platform", "copy", source, source, status=2).errors
    absent = house.run("platform", "copy", f"sqlite:{tmp_path}/no.db", f"sqlite:{tmp_path}/new.db", status=1).errors
    assert "no.db: there is no such file\n" in absent, "and migrating would not bring it"
    house.run("platform", "copy", source, status=2)


@pytest.mark.parametrize("group, forms", [("platform", "sqlite:FILE"), ("odds", "embedded:DIR")])
def test_what_is_no_store_is_a_mistake_of_whoever_wrote_it(house, group, forms):
    good = house.settings[(group, "store")]
    for wrong in ("x", "mysql://user:secret@host/db", ""):
        for places, which in (([wrong, good], "FROM"), ([good, wrong], "TO")):
            told = house.run(group, "copy", *places, status=2).errors
            assert f"{which} is no known kind of store; write {forms}" in told and "secret" not in told
    for places in (["configured", "configured"], ["configured", good], [good, "configured"]):
        assert "same store" in house.run(group, "copy", *places, status=2).errors


def test_the_configured_store_needs_no_password_on_the_line(house, make_service, tmp_path):
    target = f"sqlite:{tmp_path}/copy.db"
    assert house.ask("platform", "copy", "configured", target) == COUNTS
    service = make_service({"platform.store": target, "odds.store": f"embedded:{tmp_path}/odds"}, stores=False)
    assert [one["name"] for one in service.ask("customer", "list")] == ["Casino", "Other"]
    assert service.ask("odds", "copy", house.settings[("odds", "store")], "configured")["events"] == 0
    assert "not empty" in service.run("platform", "copy", house.settings[("platform", "store")], "configured",
                                      status=1).errors


@pytest.mark.parametrize("tampering, told", [
    ("UPDATE ledger_transaction SET hash = zeroblob(32) WHERE sequence = 300", "sequence 300: the chain is broken"),
    ("UPDATE ledger_transaction SET sequence = 3000 WHERE sequence = 300", "sequence 3000: it is not the next entry"),
    ("UPDATE ledger_transaction SET movement_minor = 8, balance_minor = balance_minor + 1 WHERE sequence = 300",
     "sequence 300: the balance is not the one before plus the movement"),
    ("UPDATE customer SET sports = 'curling' WHERE name = 'Other'", "cannot be read"),
    ("DELETE FROM audit_trail WHERE number = 3", "audit trail is broken: row 3 is not there"),
])
def test_a_source_that_is_not_sound_is_not_copied(house, tmp_path, tampering, told):
    spoiled = engines.platform_store(tmp_path)
    spoiled.copy_from(house.platform)
    before = spoiled.contents()
    spoiled.execute(tampering.replace("zeroblob(32)", spoiled.blob(32)), tampering=True)
    assert spoiled.contents() != before
    done = house.run("platform", "copy", spoiled.uri, f"sqlite:{tmp_path}/copy.db", status=1)
    assert told in done.errors
    copied = sqlite3.connect(tmp_path / "copy.db")
    assert copied.execute("SELECT count(*) FROM api_key").fetchone() == (0,)  # it admits no one
    copied.close()


def test_odds_are_copied_byte_for_byte(make_service, tmp_path):
    service = make_service()
    service.publish("cricket", [row(1), row(2)], {1: match_odds("1.80"), 2: match_odds("2.00")})
    service.publish("tennis", [row(7)], {7: match_odds("3.50")})
    service.put("football", None, b"[not json")  # passed on as it is: copying judges nothing
    source = service.settings[("odds", "store")]
    target = f"embedded:{tmp_path}/copied"
    counts = service.ask("odds", "copy", source, target)
    assert counts["catalogs"] == 3 and counts["events"] == 3
    service.configure({"odds.store": target})
    customer = service.add_customer()
    service.start()
    service.await_admission(customer.key)
    assert b"3.50" in service.get("/api/v1/tennis/events/7", key=customer.key).body
    assert service.get("/api/v1/football/events", key=customer.key).status == 502
    assert service.get("/api/v1/cricket/events", key=customer.key).status == 200
    assert "already has cricket" in service.run("odds", "copy", source, target, status=1).errors
    service.configure({"odds.store": source})
    service.publish("tennis", [row(7)], {7: match_odds("4.50")})
    service.run("feed", "withdraw", "cricket")
    assert service.ask("odds", "copy", source, target, "--replace")["events"] == 1
    assert b"4.50" in service.get("/api/v1/tennis/events/7", key=customer.key).body
    assert service.get("/api/v1/cricket/events", key=customer.key).error == (503, "catalog_unavailable")


@pytest.mark.only("embedded")
@pytest.mark.takes("redis")
def test_odds_move_to_redis_and_back(make_service, tmp_path):
    service = make_service()
    documents = {event: match_odds(f"{event}.50") for event in range(1, 201)}
    documents[99999999999999999999] = b"[" + b" " * 3_000_000 + b"]"
    service.publish("cricket", [row(event) for event in documents])
    for event, document in documents.items():
        service.put("cricket", event, document)
    service.put("football", None, b"\x00[not json")
    source = service.settings[("odds", "store")]
    redis = engines.shared_server(engines.Redis)
    grown = redis.tcp_uri(redis.next_database())
    back = f"embedded:{tmp_path}/back"
    counts = service.ask("odds", "copy", source, grown)
    assert counts["catalogs"] == 2 and counts["events"] == 201
    assert service.ask("odds", "copy", grown, back) == counts
    service.configure({"odds.store": back})
    customer = service.add_customer()
    service.start()
    service.await_admission(customer.key)
    assert b"200.50" in service.get("/api/v1/cricket/events/200", key=customer.key).body
    assert service.get("/api/v1/cricket/events/99999999999999999999", key=customer.key).status == 200
