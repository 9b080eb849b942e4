"""`croupier feed …`: what a feed publishes, what it is refused, and what it can learn."""

import datetime
import json
import re
import signal
import subprocess
import threading
import time

import pytest

from croupier import BINARY, PATIENCE, SPORT_KEYS, eventually

pytestmark = pytest.mark.depends_on("odds")

ROW = {"gmid": 34000001, "ename": "Aldermoor City v Redwater Town"}


def refusal(done, command):
    """The one line that a refused command prints."""
    assert done.text == ""
    lines = done.errors.splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"croupier feed {command}: "), done.errors
    return lines[0].removeprefix(f"croupier feed {command}: ")


# ---- publishing --------------------------------------------------------------------------------------


def test_a_running_server_shows_what_is_published(shared):
    key = shared.customer.key
    shared.run("feed", "catalog", "cricket", "-", input='[ {"gmid":34000001, "x": 1.80 } ]\n')
    assert shared.get("/api/v1/cricket/events", key).body == b'[{"gmid":34000001,"x":1.80}]'
    assert shared.get("/api/v1/cricket/events/34000001", key).error == (404, "odds_not_found")
    shared.run("feed", "odds", "cricket", "34000001", "-", input="[]")
    assert shared.get("/api/v1/cricket/events/34000001", key).json()["odds"] == []
    shared.run("feed", "withdraw", "cricket", "34000001")
    assert shared.get("/api/v1/cricket/events/34000001", key).error == (404, "odds_not_found")
    shared.run("feed", "withdraw", "cricket")
    assert shared.get("/api/v1/cricket/events", key).error == (503, "catalog_unavailable")


def test_a_refused_document_changes_nothing(shared):
    key = shared.customer.key
    shared.publish("tennis", [ROW])
    before = shared.get("/api/v1/tennis/events", key).body
    done = shared.run("feed", "catalog", "tennis", "-", input='[{"gmid": 1},\n {"gmid": 2,}]', status=1)
    assert refusal(done, "catalog").startswith("standard input:2:13: ")
    assert shared.get("/api/v1/tennis/events", key).body == before


@pytest.mark.threadless
def test_a_document_has_at_most_32_mib(service, tmp_path):
    file = tmp_path / "large.json"
    file.write_bytes(b"[]" + b" " * (32 * 1024 * 1024 - 2))
    assert service.ask("feed", "catalog", "football", str(file))["bytes"] == 32 * 1024 * 1024
    with open(file, "ab") as more:
        more.write(b" ")
    assert "32 MiB" in refusal(service.run("feed", "catalog", "football", str(file), status=1), "catalog")


def test_files_that_cannot_be_read_are_named(stored, tmp_path):
    for path in (tmp_path / "nothing.json", tmp_path):
        assert refusal(stored.run("feed", "catalog", "football", str(path), status=1), "catalog").startswith(
            f"{path}: ")


def test_json_tells_what_was_published(service):
    rows = json.dumps([ROW, {"gmid": "x"}, {"gmid": "034000001"}])
    done = service.run("feed", "catalog", "football", "-", "--json", input=rows)
    assert json.loads(done.text) == {"sport": "football", "event": None, "bytes": len(rows), "rows": 3,
                                     "rows_without_id": 1, "rows_repeated": 1}
    assert done.errors == ""
    assert service.ask("feed", "odds", "football", "34000001", "-", input="[{}]") == {
        "sport": "football", "event": "34000001", "bytes": 4, "rows": 1, "in_catalog": True}
    assert service.ask("feed", "withdraw", "football", "34000001") == {"sport": "football", "event": "34000001"}
    assert "event 77 is not in the football catalog" in service.run("feed", "withdraw", "football", "77").errors
    assert service.ask("feed", "withdraw", "football") == {"sport": "football", "event": None}


def test_rows_that_no_one_can_ask_for_are_noted(service):
    done = service.run("feed", "catalog", "football", "-", input='[{"gmid":1},\n{"ename":"x"},\n{"gmid":"01"}]')
    assert "3 rows" in done.text
    notes = done.errors.splitlines()
    assert len(notes) == 2 and all(note.startswith("note: 1 row ") for note in notes), notes
    assert "standard input:2" in notes[0] and "standard input:3: 1" in notes[1]


def test_odds_of_an_event_that_is_not_listed_are_noted(service):
    done = service.run("feed", "odds", "football", "7", "-", input="[]")
    assert done.errors.startswith("note: event 7 is not in the football catalog")
    service.run("feed", "catalog", "football", "-", input='[{"gmid":"7"}]')
    assert service.run("feed", "odds", "football", "07", "-", input="[]").errors == ""


@pytest.mark.parametrize("arguments", [
    ["catalog", "Cricket", "-"], ["catalog", "cricket"], ["odds", "cricket", "0", "-"],
    ["odds", "cricket", "-5", "-"], ["odds", "cricket", "1" * 21, "-"], ["withdraw"],
    ["withdraw", "cricket", "x"], ["interest", "cricket", "--within", "0"],
    ["interest", "cricket", "--within", "1.5"], ["simulate", "--events", "0"],
    ["simulate", "--events", "1001"], ["simulate", "--interval", "x"], ["simulate", "--sports", "curling"],
    ["simulate", "--sports", "none"], ["simulate", "now"],
])
def test_wrong_usage_is_exit_2(stored, arguments):
    done = stored.run("feed", *arguments, status=2)
    assert done.text == "" and done.errors.startswith("croupier feed")


@pytest.mark.only("embedded")
def test_a_store_that_cannot_be_made_is_named(make_service, tmp_path):
    (tmp_path / "file").write_text("")
    service = make_service({"odds.store": f"embedded:{tmp_path}/file/odds"}, stores=False)
    assert f"{tmp_path}/file" in refusal(service.run("feed", "catalog", "tennis", "-", input="[]", status=1),
                                         "catalog")


@pytest.mark.parametrize("command", ["catalog", "odds", "withdraw", "interest", "simulate"])
def test_help_shows_an_example(stored, command):
    assert f"croupier feed {command}" in stored.run("feed", command, "--help", configuration=False).text


# ---- interest ----------------------------------------------------------------------------------------


def test_interest_lists_the_latest_first(shared):
    key = shared.customer.key
    shared.publish("greyhound-racing", [{"gmid": 51}, {"gmid": "52"}, {"gmid": 99999999999999999999}])
    started = time.time()
    for event in (51, 52, 99999999999999999999):
        shared.get(f"/api/v1/greyhound-racing/events/{event}", key)
        time.sleep(0.05)
    shared.get("/api/v1/greyhound-racing/events/53", key)
    found = eventually(lambda: (lambda list: list if len(list) == 3 else None)(
        shared.ask("feed", "interest", "greyhound-racing")))
    assert [row["event_id"] for row in found] == ["99999999999999999999", "52", "51"]
    for row in found:
        assert set(row) == {"event_id", "requested_at"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row["requested_at"])
        at = datetime.datetime.fromisoformat(row["requested_at"].replace("Z", "+00:00")).timestamp()
        assert started - 1 < at < time.time() + 1
    assert shared.ask("feed", "interest", "horse-racing") == []
    table = shared.run("feed", "interest", "greyhound-racing", "--within", "600").text.splitlines()
    assert len(table) == 4 and "99999999999999999999" in table[1]


@pytest.mark.only("embedded")
def test_interest_makes_no_store(make_service):
    service = make_service(stores=False)
    failed = service.run("feed", "interest", "cricket", status=1)
    assert failed.errors.strip() == f"croupier feed interest: there is no odds store at {service.odds.path}"
    assert not service.odds.path.exists()


def test_interest_looks_back_as_far_as_it_is_told(clocked):
    clocked.publish("horse-racing", [{"gmid": 61}])
    clocked.get("/api/v1/horse-racing/events/61", clocked.customer.key)
    eventually(lambda: clocked.ask("feed", "interest", "horse-racing"))
    clocked.clock.advance(wall=1.2)
    assert clocked.ask("feed", "interest", "horse-racing", "--within", "1") == []
    assert len(clocked.ask("feed", "interest", "horse-racing", "--within", "600")) == 1


# ---- simulate ----------------------------------------------------------------------------------------


class Simulation:
    def __init__(self, service, *options):
        self.process = subprocess.Popen(
            [str(BINARY), "feed", "simulate", "-c", str(service.configuration), *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=service.environment)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=20 * PATIENCE)
        return self.process.returncode, output.decode(), errors.decode()


@pytest.fixture
def simulate():
    made = []

    def make(*arguments):
        made.append(Simulation(*arguments))
        return made[-1]

    yield make
    for simulation in made:
        if simulation.process.poll() is None:
            simulation.process.kill()
        simulation.process.communicate()


def test_a_simulated_feed_moves_what_is_polled(service, simulate):
    customer = service.add_customer()
    service.start()
    service.await_admission(customer.key)
    simulation = simulate(service, "--events", "3", "--interval", "100")
    for sport in SPORT_KEYS:
        rows = eventually(lambda: (lambda answer: answer.status == 200 and answer.json())(
            service.get(f"/api/v1/{sport}/events", customer.key)))
        assert len(rows) == 3
        assert not any({"providerEventId", "feed_source"} & set(row) for row in rows)
    event = service.get("/api/v1/football/events", customer.key).json()[0]["gmid"]
    answers = set()
    eventually(lambda: answers.add(service.get(f"/api/v1/football/events/{event}", customer.key).header("etag"))
               or len(answers) >= 5)
    status, output, errors = simulation.stop()
    assert status == 0 and errors == ""
    assert len(output.splitlines()) == 2 and output.splitlines()[1].startswith("stopped; published ")


def test_a_simulated_feed_takes_over_without_a_gap(service, simulate):
    customer = service.add_customer()
    service.publish("football", [ROW], {ROW["gmid"]: []})
    service.start()
    service.await_admission(customer.key)
    answers, over = [], threading.Event()

    def poll():
        while not over.is_set():
            answers.append(service.get("/api/v1/football/events", customer.key))

    polling = threading.Thread(target=poll)
    polling.start()
    try:
        simulation = simulate(service, "--events", "50")
        path = f"/api/v1/football/events/{ROW['gmid']}"
        eventually(lambda: service.get(path, customer.key).status == 404)
    finally:
        over.set()
        polling.join()
    assert {answer.status for answer in answers} == {200}
    assert len(answers[0].json()) == 1 and len(service.get("/api/v1/football/events", customer.key).json()) == 50
    simulation.stop()  # and a catalog that lists it again finds no odds of it
    service.run("feed", "catalog", "football", "-", input=json.dumps([ROW]))
    assert service.get(path, customer.key).error == (404, "odds_not_found")


def test_a_simulated_feed_of_one_sport_leaves_the_others_alone(shared, simulate):
    def events(sport):
        return shared.get(f"/api/v1/{sport}/events", shared.customer.key).body

    for sport in ("tennis", "cricket"):
        shared.publish(sport, [ROW])
    before = events("tennis")
    simulation = simulate(shared, "--events", "2", "--sports", "cricket", "--json")
    eventually(lambda: events("cricket") != before)
    status, output, errors = simulation.stop(signal.SIGINT)
    assert (status, errors) == (0, "")
    told = json.loads(output)
    assert told["catalogs"] >= 1 and told["odds"] >= 2 and told["bytes"] > 1000
    assert events("tennis") == before
    done = shared.run("feed", "odds", "tennis", str(ROW["gmid"]), "-", input="[]")
    assert done.errors == ""
