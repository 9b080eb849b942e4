"""croupier usage …: what servers have counted for each customer, and what the ledger says they moved."""

import time

import pytest

from croupier import Service, eventually
from wallet_model import add_games, add_player, credit, debit, rollback, send

pytestmark = pytest.mark.depends_on("platform")


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """Two customers; one has played, and its server was killed after that, before it could write a count."""
    service = Service(tmp_path_factory.mktemp("used"))
    try:
        service.player = service.add_customer("Casino", options=["--casino"])
        service.poller = service.add_customer("Sports")
        add_games(service, "roulette")
        service.start()
        alice = add_player(service, service.player)
        for document in (credit(alice, "in", 10000), debit(alice, "bet", 250, game_id="roulette"), rollback(alice, "undo", "bet"),
                         debit(alice, "much", 999999)):
            send(service, service.player.key, document)
        service.kill()
        service.start()
        service.await_admission(service.poller.key)
        ask_around(service)
        service.stop()
        yield service
    finally:
        service.stop()


def ask_around(service):
    for path in ("/api/v1/sports", "/api/v1/sports", "/api/v1/casino/games"):
        service.get(path, service.poller.key)


def counted(service, *options):
    return {row["route_group"]: row for row in service.ask("usage", service.poller.id, *options)["requests"]}


def test_requests_are_counted_by_group_and_class_once_a_server_has_ended(used):
    rows = counted(used)
    assert rows["sports"] == {"customer": used.poller.id, "day": rows["sports"]["day"], "route_group": "sports",
                              "2xx": 2, "3xx": 0, "4xx": 0, "5xx": 0}
    assert rows["games"]["4xx"] == 1  # casino_access_disabled: the key is known
    assert rows["other"]["4xx"] >= 1 and set(rows) == {"sports", "games", "other"}


def test_instances_add_up(used):
    before = counted(used)
    used.start()
    used.await_admission(used.poller.key)
    ask_around(used)
    used.stop()
    after = counted(used)
    assert after["games"]["4xx"] == before["games"]["4xx"] + 1
    assert after["sports"]["2xx"] == before["sports"]["2xx"] + 2


def test_a_crash_loses_counts_and_never_money(used):
    document = used.ask("usage")
    assert [row for row in document["requests"] if row["customer"] == used.player.id] == []
    assert document["wallet"] == [{
        "customer": used.player.id, "day": document["to"], "currency": "EUR", "currency_exponent": 2, "debits": 1,
        "debits_minor": 250, "credits": 1, "credits_minor": 10000, "rollbacks": 1, "rollbacks_minor": 250,
        "transfers_in_minor": 10000, "transfers_out_minor": 0, "movement_minor": 10000}]
    assert used.ask("usage", used.poller.id)["wallet"] == []


def test_days_narrow_it(used):
    today = used.ask("usage")["to"]
    assert used.ask("usage", "--from", "2026-01-01")["requests"] == used.ask("usage", "--to", today)["requests"]
    assert used.ask("usage", "--from", "2001-01-01", "--to", "2001-12-31") == {
        "from": "2001-01-01", "to": "2001-12-31", "requests": [], "wallet": []}
    text = used.run("usage").text
    assert used.poller.id in text and "100.00" in text and text.count("CUSTOMER") == 2
    for wrong in (["--from", "yesterday"], ["--to", "2026-2-1"], ["--from", "2026-02-02", "--to", "2026-02-01"]):
        assert " must " in used.run("usage", *wrong, status=2).errors
    assert "no such customer" in used.run("usage", "cus_nobody", status=1).errors


@pytest.mark.long(60)  # under ThreadSanitizer, whose conditions do not wait by the test's clock
def test_a_server_that_runs_writes_once_a_minute(clocked):
    def written_a_minute_later():
        # Again and again: an answer is counted after its last byte was sent, so the first minute may end without it.
        # But not at once, as the time of a write that is under way would be over. Looked up in the table, as the command takes
        # much longer to start.
        clocked.clock.advance(60)
        for _ in range(100):
            if clocked.platform.execute("SELECT 1 FROM usage_requests WHERE route_group = 'sports' AND answers_2xx = 1"):
                return True
            time.sleep(0.02)
        return False

    assert clocked.get("/api/v1/sports", clocked.customer.key).status == 200
    eventually(written_a_minute_later)
    assert any(row["route_group"] == "sports" and row["2xx"] == 1 for row in clocked.ask("usage")["requests"])
    metrics = clocked.metrics()
    assert metrics["croupier_usage_waiting_rows"] == metrics["croupier_usage_write_failures_total"] == 0
