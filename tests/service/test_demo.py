"""`croupier demo`, as somebody tries it who has just built it."""

import json
import os
import re
import signal
import socket
import subprocess

import pytest

from croupier import BINARY, NOT_ALLOWED, PATIENCE, REPORT, SPORTS, Service, eventually, sanitizer_environment

pytestmark = pytest.mark.only("embedded", "sqlite")  # which are what a demo has, whatever is installed


class Demo:
    def __init__(self, directory, *options, listen="127.0.0.1:0", environment=None):
        self.directory = directory
        self.environment = sanitizer_environment()
        self.environment["CROUPIER_OPERATOR_LISTEN"] = "127.0.0.1:0"
        self.environment.update(environment or {})
        self.environment = {name: value for name, value in self.environment.items() if value is not None}
        self.process = subprocess.Popen(
            [str(BINARY), "demo", "--dir", str(directory), "--listen", listen, *options], cwd=directory.parent,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment)

    def told(self):
        """With --json: what it says when it is ready."""
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        return json.loads(line)

    def screen(self):
        """The screen up to its last line."""
        text = ""
        while not text.rstrip().endswith("start over."):
            line = self.process.stdout.readline().decode()
            assert line, self.process.stderr.read().decode()
            text += line
        return text

    def end(self, number=signal.SIGINT):
        """Exit status, and what it said after the screen and on standard error."""
        if number is not None:
            self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=30 * PATIENCE)
        assert not REPORT.search(errors.decode()), errors.decode()
        return self.process.returncode, output.decode(), errors.decode()


@pytest.fixture
def demo(tmp_path):
    made = []

    def make(*options, directory=tmp_path / "demo-data", **more):
        made.append(Demo(directory, *options, **more))
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def client(told):
    """Something to ask the demo with."""
    service = object.__new__(Service)
    service.tls = None
    host, _, port = told["api"].removeprefix("http://").removesuffix("/api/v1").rpartition(":")
    service.address = (host, int(port))
    host, _, port = told["operator"].removeprefix("http://").rpartition(":")
    service.operator_address = (host, int(port))
    return service


def shell(command, directory):
    done = subprocess.run(["bash", "-c", command], capture_output=True, cwd=directory, timeout=60 * PATIENCE,
                          env=sanitizer_environment())
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout.decode()


def test_every_command_on_the_screen_works_as_printed(demo, tmp_path):
    one = demo()
    screen = one.screen()
    commands = [line.strip() for line in screen.splitlines() if line.startswith("  ") and not re.match(
        r"  (API|key|metrics) ", line)]
    answers = [shell(command, tmp_path) for command in commands]
    assert len(answers) == 21, commands
    (sports, events, event, moving, first, again, gzip, games, launched, page, credit, balance, wrong_sport, wrong_key, other_sport, limited, keyless,
     health, metrics, customers, interest) = answers
    assert [(row["key"], row["name"]) for row in json.loads(sports)["sports"]] == SPORTS
    assert len(json.loads(events)) == 24
    assert json.loads(event)["event_id"] in [row["gmid"] for row in json.loads(events)]
    assert len(json.loads(event)["odds"]) == 12
    assert len(set(moving.splitlines())) > 1
    assert (first.strip(), again.strip()) == ("200", "304")
    assert int(gzip.split()[0]) < len(event) / 2
    assert [game["id"] for game in json.loads(games)["games"]] == ["anubis-falls", "arctic-reels", "bamboo-garden"]
    assert json.loads(launched)["game_id"] == "anubis-falls"
    assert "<h1>Anubis Falls</h1>" in page and json.loads(launched)["launch_id"] in page
    assert json.loads(launched)["player_id"] not in page
    assert json.loads(credit)["status"] == "applied"
    assert json.loads(balance)["balance_minor"] == 2500
    assert json.loads(wrong_sport)["error"] == "invalid_sport"
    assert json.loads(wrong_key) == NOT_ALLOWED[1]
    assert json.loads(other_sport)["error"] == "sport_not_allowed"
    # Unless the window ends meanwhile, some are let through and the rest are not.
    assert {"200", "429"} == set(limited.split()) and len(limited.split()) == 11
    assert json.loads(keyless) == {"sports": [{"key": "tennis", "name": "Tennis"}]}
    assert json.loads(health) == {"status": "ok", "cache": "ok"}
    assert "croupier_requests_total" in metrics
    assert all(name in customers for name in ("Demo Sportsbook", "Weekend Picks", "Closed Account"))
    assert str(json.loads(event)["event_id"]) in interest
    status, rest, errors = one.end()
    assert status == 0
    assert rest == f"\nstopped; the stores are in {tmp_path}/demo-data\n"
    assert errors == ""


def test_all_five_sports_are_there_at_once_and_move(demo):
    told = demo("--json").told()
    service, key = client(told), told["key"]
    for sport, _ in SPORTS:
        rows = service.get(f"/api/v1/{sport}/events", key).json()
        assert len(rows) == 24
        for row in rows:
            answer = service.get(f"/api/v1/{sport}/events/{row['gmid']}", key)
            assert answer.status == 200 and answer.json()["event"] == row
    seen = set()
    path = f"/api/v1/cricket/events/{told['events']['cricket']}"
    eventually(lambda: seen.add(service.get(path, key).header("etag")) or len(seen) >= 4, 20)


def test_a_second_start_goes_on_with_what_is_there(demo):
    one = demo("--json")
    told = one.told()
    configuration = ["-c", told["config"]]

    def run(*arguments):
        done = subprocess.run([str(BINARY), *arguments, *configuration, "--json"], capture_output=True, check=True,
                              env=sanitizer_environment())
        return json.loads(done.stdout)

    customer = run("customer", "add", "Mine", "--cidr", "127.0.0.1", "--sports", "tennis")["id"]
    mine = run("key", "issue", customer)["key"]
    demo_customer = next(row["id"] for row in run("customer", "list") if row["name"] == "Demo Sportsbook")
    other = run("key", "issue", demo_customer, "--label", "laptop")["key"]
    assert one.end()[0] == 0

    again = demo("--json").told()
    service = client(again)
    assert len(run("customer", "list")) == 4
    assert again["key"] != told["key"] and again["limited_key"] != told["limited_key"]
    for key, admitted in ((again["key"], True), (mine, True), (other, True), (told["key"], False),
                          (told["limited_key"], False)):
        assert service.get("/api/v1/sports", key).status == (200 if admitted else 403)
    # The key is nowhere on disk.
    for folder, _, files in os.walk(again["directory"]):
        for name in files:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            assert again["key"].encode() not in content and mine.encode() not in content


def test_it_starts_again_after_it_was_killed(demo):
    one = demo("--json")
    told = one.told()
    assert one.end(signal.SIGKILL)[0] == -signal.SIGKILL
    again = demo("--json").told()
    assert client(again).get("/api/v1/football/events", again["key"]).status == 200
    assert client(again).get("/api/v1/football/events", told["key"]).status == 403


def test_a_port_that_is_taken_is_told_before_anything_is_touched(demo, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, output, errors = demo(listen=f"127.0.0.1:{port}").end(None)
    assert (status, output) == (1, "")
    assert re.fullmatch(rf"croupier demo: cannot listen on 127\.0\.0\.1:{port}: .*\n", errors), errors
    assert not (tmp_path / "demo-data" / "platform.db").exists()
    assert not (tmp_path / "demo-data" / "odds").exists()


def test_the_operators_port_gives_way_when_it_is_taken(demo, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        # Somebody asked for this very port: a clear refusal.
        status, _, errors = demo(environment={"CROUPIER_OPERATOR_LISTEN": f"127.0.0.1:{port}"}).end(None)
        assert status == 1 and f"127.0.0.1:{port}" in errors
        # It is only what the directory's own file says: the demo takes another, and says so.
        with open(tmp_path / "demo-data" / "croupier.conf", "a") as file:
            file.write(f"[operator]\nlisten = 127.0.0.1:{port}\n")
        one = demo(environment={"CROUPIER_OPERATOR_LISTEN": None})
        screen = one.screen()
        assert f"(port {port} is taken; this one was free)" in screen
        metrics = next(line.strip() for line in screen.splitlines() if "/metrics" in line and "curl" in line)
        assert "croupier_requests_total" in shell(metrics, tmp_path)
        assert one.end()[0] == 0


def test_a_directory_that_was_moved_does_not_lead_its_commands_to_other_stores(demo, tmp_path):
    first = demo("--json")
    first.told()
    assert first.end()[0] == 0
    moved = tmp_path / "moved"
    (tmp_path / "demo-data").rename(moved)
    status, output, errors = demo("--json", directory=moved).end(None)
    assert (status, output) == (1, "")
    assert f"{moved}/croupier.conf" in errors and len(errors.splitlines()) == 1
    (moved / "croupier.conf").unlink()
    again = demo("--json", directory=moved)
    told = again.told()
    customers = shell(f"'{BINARY}' customer list --json -c '{told['config']}'", tmp_path)
    assert len(json.loads(customers)) == 3
    assert again.end()[0] == 0


@pytest.mark.parametrize("variable, uri, told", [
    ("CROUPIER_ODDS_STORE", "redis://:hunter2@127.0.0.1:1/0", "redis://:***@127.0.0.1:1/0"),
    ("CROUPIER_PLATFORM_STORE", "postgresql://dealer:hunter2@127.0.0.1:1/casino",
     "postgresql://dealer:***@127.0.0.1:1/casino")])
def test_a_store_of_the_environment_is_named_without_its_password(demo, variable, uri, told):
    status, text, errors = demo(environment={variable: uri}).end(None)
    assert status != 0
    assert variable in errors and told in errors
    assert "hunter2" not in errors + text


def test_two_demos_do_not_share_a_directory(demo):
    demo("--json").told()
    status, output, errors = demo("--json").end(None)
    assert (status, output) == (1, "")
    assert "another croupier demo is using" in errors and "--dir" in errors


def test_a_directory_that_cannot_be_made_is_named(demo, tmp_path):
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "no" / "parent"):
        run = subprocess.run([str(BINARY), "demo", "--dir", str(directory), "--listen", "127.0.0.1:0"],
                             capture_output=True, env=sanitizer_environment(), timeout=30 * PATIENCE)
        assert run.returncode == 1 and run.stdout == b""
        text = run.stderr.decode()
        assert len(text.splitlines()) == 1 and str(directory) in text, text


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:65536"])
def test_an_address_that_is_none_is_a_mistake_of_the_line(demo, tmp_path, address):
    run = subprocess.run([str(BINARY), "demo", "--dir", str(tmp_path / "d"), "--listen", address],
                         capture_output=True, env=sanitizer_environment(), timeout=30 * PATIENCE)
    assert run.returncode == 2 and run.stdout == b""
    assert address in run.stderr.decode() and "demo --help" in run.stderr.decode()


def test_a_directory_with_spaces_and_quotes_works(demo, tmp_path):
    one = demo(directory=tmp_path / "it's a demo")
    screen = one.screen()
    command = next(line.strip() for line in screen.splitlines() if " customer list " in line)
    assert "Weekend Picks" in shell(command, tmp_path)
    assert one.end()[0] == 0


def test_the_page_of_a_launch_shows_the_balance_of_who_plays_for_money(demo):
    one = demo("--json")
    told = one.told()
    service = client(told)

    def post(path, **body):
        return service.request("POST", "/api/v1/casino/" + path, key=told["key"], body=json.dumps(body).encode(),
                               headers={"Content-Type": "application/json"}).json()

    def launched(reference, currency):
        return post("games/anubis-falls/launch", mode="real", player_reference=reference, currency=currency)

    def page(url):
        return shell(f"curl -s '{url}'", "/tmp")

    eventually(lambda: launched("p-1", "EUR").get("launch_url", "").startswith(told["operator"]))
    one_player, other = launched("p-1", "EUR"), launched("p-1", "JPY")
    assert "Balance: <strong>0.00 EUR</strong>" in page(one_player["launch_url"])
    for player, currency in ((one_player, "EUR"), (other, "JPY")):
        assert post("wallet", operation="CREDIT", player_id=player["player_id"], transaction_id=f"t-{currency}",
                    amount_minor=1205, currency=currency)["status"] == "applied"
    assert "Balance: <strong>12.05 EUR</strong>" in page(one_player["launch_url"])
    assert "Balance: <strong>1205 JPY</strong>" in page(other["launch_url"])
    assert "Balance" not in page(post("games/anubis-falls/launch", mode="demo")["launch_url"])
    assert one.end()[0] == 0


def test_the_page_of_a_launch_believes_only_a_token_that_is_signed_and_in_time(demo):
    one = demo("--json")
    told = one.told()
    page = told["operator"] + "/demo/play"
    service = client(told)

    def launch():
        return service.request("POST", "/api/v1/casino/games/anubis-falls/launch", key=told["key"], body=b'{"mode":"demo"}',
                               headers={"Content-Type": "application/json"}).json()["launch_url"]

    eventually(lambda: launch().startswith(page + "?token="))
    url = launch()
    assert "<h1>Anubis Falls</h1>" in shell(f"curl -s '{url}'", "/tmp")
    header, claims, signature = url.partition("token=")[2].split(".")
    other = launch().partition("token=")[2].split(".")
    for token in ("", "x", "a.b.c", f"{header}.{claims}.", f"{header}.{claims}.{signature}A", f"{header}.{other[1]}.{signature}",
                  f"{claims}.{claims}.{signature}", f"{header}.{claims}.{signature}.x"):
        answer = shell(f"curl -s -w '%{{http_code}}' '{page}?token={token}'", "/tmp")
        assert answer.endswith("403") and "signature is not good" in answer, token
    assert one.end()[0] == 0
