"""`croupier demo`, as somebody tries it who has just built it."""

import base64
import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import threading

import pytest

from croupier import BINARY, NOT_ALLOWED, PATIENCE, REPORT, SPORTS, Service, eventually, sanitizer_environment

pytestmark = pytest.mark.only("embedded", "sqlite")  # which are what a demo has, whatever is installed


class Demo:
    def __init__(self, directory, *options, listen="127.0.0.1:0", players=0, environment=None):
        self.directory = directory
        self.environment = sanitizer_environment()
        self.environment["CROUPIER_OPERATOR_LISTEN"] = "127.0.0.1:0"
        self.environment.update(environment or {})
        self.environment = {name: value for name, value in self.environment.items() if value is not None}
        self.process = subprocess.Popen(
            [str(BINARY), "demo", "--dir", str(directory), "--listen", listen, "--players", str(players), *options], cwd=directory.parent,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment)

    def told(self):
        """With --json: what it says when it is ready."""
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        return json.loads(line)

    def screen(self):
        """The screen up to its last line."""
        text = ""
        while not text.startswith("  key ", text.rfind("\n", 0, -1) + 1):
            line = self.process.stdout.readline().decode()
            assert line, self.process.stderr.read().decode()
            text += line
        return text

    def tour(self):
        """What the screen leads to."""
        self.screen()
        return (self.directory / "tour.txt").read_text()

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
    commands = [line.strip() for line in one.tour().splitlines() if line.startswith("  ")]
    answers = [shell(command, tmp_path) for command in commands]
    assert len(answers) == 24, commands
    (sports, events, event, moving, first, again, gzip, games, launched, session, credit, bet, balance, wrong_sport, wrong_key,
     other_sport, limited, keyless, health, metrics, customers, interest, blocked, link) = answers
    assert [(row["key"], row["name"]) for row in json.loads(sports)["sports"]] == SPORTS
    assert len(json.loads(events)) == 24
    assert json.loads(event)["event_id"] in [row["gmid"] for row in json.loads(events)]
    assert json.loads(event)["event_id"] == 34000002
    assert json.loads(event)["event"]["iplay"] is False  # it lives longer than the demo
    assert len(json.loads(event)["odds"]) == 12
    # The first prices of the event may all stand still for some seconds: then once more.
    again_moving = next(command for command in commands if " 1 2 3 4 5; do" in command)
    assert len(set(moving.splitlines())) > 1 or eventually(lambda: len(set(shell(again_moving, tmp_path).splitlines())) > 1)
    assert (first.strip(), again.strip()) == ("200", "304")
    assert int(gzip.split()[0]) < len(event) / 2
    assert [game["id"] for game in json.loads(games)["games"]] == ["anubis-falls", "arctic-reels", "bamboo-garden"]
    assert json.loads(launched)["game_id"] == "anubis-falls"
    assert json.loads(session)["claims"]["game"] == "anubis-falls" and json.loads(launched)["launch_id"] in session
    assert json.loads(launched)["player_id"] not in session
    assert json.loads(credit)["status"] == "applied"
    assert json.loads(balance)["balance_minor"] == 2500 - 100 + json.loads(bet)["won_minor"]
    assert json.loads(balance)["balance_minor"] == json.loads(bet)["wallet"]["balance_minor"]
    assert json.loads(wrong_sport)["error"] == "invalid_sport"
    assert json.loads(wrong_key) == NOT_ALLOWED[1]
    assert json.loads(other_sport)["error"] == "sport_not_allowed"
    # Some are let through and the rest are not, unless the window ends meanwhile: then once more.
    for _ in range(10):
        codes = limited.split()
        assert {"200", "429"} >= set(codes) and len(codes) == 11 and "200" in codes
        if "429" in codes:
            break
        limited = shell(next(command for command in commands if " 11; do" in command), tmp_path)
    assert "429" in codes
    assert json.loads(keyless) == {"sports": [{"key": "tennis", "name": "Tennis"}]}
    assert json.loads(health) == {"status": "ok", "cache": "ok"}
    assert "croupier_requests_total" in metrics
    assert all(name in customers for name in ("Demo Sportsbook", "Weekend Picks", "Closed Account"))
    assert str(json.loads(event)["event_id"]) in interest
    assert "blocked-player" in blocked and "blocked    no" not in blocked
    assert "/#/sign-in/lnk_" in link or "lnk_" in link
    status, rest, errors = one.end()
    assert status == 0
    assert rest == f"\nstopped; the stores are in {tmp_path}/demo-data\n"
    busy = re.compile(r"^\S+ error .* cannot be \w+ reason=\"(its thread waits for a processor|the store answers too slowly|the process stood still[^\"]*)\".*\n", re.M)
    assert busy.sub("", errors) == ""


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
    assert told["events"] == {sport: str(34000001 + number) for number, (sport, _) in enumerate(SPORTS)}
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
    assert again["key"] == told["key"] and again["limited_key"] == told["limited_key"]
    for key in (told["key"], told["limited_key"], mine, other):
        assert service.get("/api/v1/sports", key).status == 200
    # The key is nowhere on disk but in two files for the demo's user.
    assert os.stat(again["secret"]).st_mode & 0o777 == 0o600
    for name in ("demo.keys", "tour.txt"):
        path = os.path.join(again["directory"], name)
        assert os.stat(path).st_mode & 0o777 == 0o600 and again["key"] in open(path).read()
    for folder, _, files in os.walk(again["directory"]):
        for name in set(files) - {"demo.keys", "tour.txt"}:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            assert again["key"].encode() not in content and mine.encode() not in content


def test_a_player_whom_an_operator_lets_in_stays_in(demo):
    def ask(command):
        return shell(f"'{BINARY}' {command} -c '{told['config']}'", "/tmp")

    one = demo("--json")
    told = one.told()
    customer = next(row["id"] for row in json.loads(ask("customer list --json")) if row["name"] == "Demo Sportsbook")
    ask(f"player unblock {json.loads(ask(f'player show {customer} blocked-player --json'))['player_id']} --early --reason over")
    assert one.end()[0] == 0
    demo("--json").told()
    assert json.loads(ask(f"player show {customer} blocked-player --json"))["blocked_at"] is None


def test_it_starts_again_after_it_was_killed(demo, tmp_path):
    one = demo("--json")
    told = one.told()
    assert one.end(signal.SIGKILL)[0] == -signal.SIGKILL
    again = demo("--json")
    assert again.told()["key"] == told["key"]
    assert again.end()[0] == 0
    # Without its keys it has others, and the old ones are good for nothing.
    (tmp_path / "demo-data" / "demo.keys").write_text("crk_\n")
    fresh = demo("--json").told()
    assert client(fresh).get("/api/v1/football/events", fresh["key"]).status == 200
    assert client(fresh).get("/api/v1/football/events", told["key"]).status == 403


def test_the_screen_fits_a_terminal_and_ends_with_the_key(demo, tmp_path):
    one = demo()
    screen = one.screen().splitlines()
    assert sum(max(1, -(-len(line) // 80)) for line in screen) <= 24, screen
    assert not [line for line in screen if len(line) > 80 and "/sign-in/" not in line and str(tmp_path) not in line]
    key = screen[-1].split()[1]
    assert client({"api": screen[3].split()[1], "operator": screen[4].split()[1].removesuffix("/metrics")}).get(
        "/api/v1/sports", key).status == 200
    start = screen.index("Try in another terminal:")
    answer = shell("\n".join(screen[start + 1:start + 4]), tmp_path)
    assert [row["key"] for row in json.loads(answer)["sports"]] == [key for key, _ in SPORTS]
    assert one.end()[0] == 0


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
        assert f"(port {port} is taken; this one was free)" in one.screen()
        tour = (tmp_path / "demo-data" / "tour.txt").read_text()
        metrics = next(line.strip() for line in tour.splitlines() if "/metrics" in line)
        assert "croupier_requests_total" in shell(metrics, tmp_path)
        assert one.end()[0] == 0


def test_its_configuration_has_the_addresses_that_it_listens_on(demo, tmp_path):
    one = demo("--json")
    told = one.told()
    ran = f"'{BINARY}' %s -c '{told['config']}'"
    assert f"{told['operator']}/#/sign-in/lnk_" in shell(ran % "operator link demo", tmp_path)
    assert shell(ran % "health", tmp_path)
    written = (tmp_path / "demo-data" / "croupier.conf").read_text()
    listening = re.findall(r"(?m)^listen = 127\.0\.0\.1:([1-9][0-9]*)$", written)
    assert len(listening) == 3 and f"127.0.0.1:{listening[0]}/" in told["api"]
    assert told["providers"] in [f"http://127.0.0.1:{port}/provider/v1/wallet" for port in listening]
    assert one.end()[0] == 0
    # The next one listens where it is asked to, not there. A setting of the user's stays.
    with open(tmp_path / "demo-data" / "croupier.conf", "a") as file:
        file.write("format = json\n")
    again = demo("--json")
    told = again.told()
    rewritten = (tmp_path / "demo-data" / "croupier.conf").read_text()
    assert len(re.findall("(?m)^listen = ", rewritten)) == 3 and f"listen = {told['operator'].removeprefix('http://')}\n" in rewritten
    assert rewritten.endswith("format = json\n")
    assert again.end()[0] == 0


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


def test_it_ends_when_its_terminal_closes(demo, tmp_path):
    one = demo("--json")
    one.told()
    assert one.end(signal.SIGHUP) == (0, "", "")


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
    command = next(line.strip() for line in one.tour().splitlines() if " customer list " in line)
    assert "Weekend Picks" in shell(command, tmp_path)
    assert one.end()[0] == 0


PAYS = [0, 2, 0, 1, 0, 3, 0, 1, 0, 2]  # of the wheel's sectors


class Lobby:
    """The demo's customer, who launches its game and plays."""

    def __init__(self, told):
        self.told, self.service = told, client(told)
        self.provider = object.__new__(Service)
        self.provider.tls, self.provider.address = None, self.service.operator_address
        eventually(lambda: self.launch("none", "EUR").get("launch_url", "").startswith(told["operator"]))

    def post(self, path, **body):
        return self.service.request("POST", "/api/v1/casino/" + path, key=self.told["key"],
                                    body=json.dumps(body).encode(),
                                    headers={"Content-Type": "application/json"}).json()

    def launch(self, reference, currency, game="anubis-falls"):
        return self.post(f"games/{game}/launch", mode="real", player_reference=reference, currency=currency)

    def money_in(self, launched, minor):
        assert self.post("wallet", operation="CREDIT", player_id=launched["player_id"], transaction_id=launched["launch_id"],
                         amount_minor=minor, currency=launched["currency"])["status"] == "applied"

    def balance(self, launched):
        return self.post("wallet", operation="BALANCE", player_id=launched["player_id"])

    def request(self, method, path, body=b""):
        return self.provider.request(method, path.removeprefix(self.told["operator"]), body=body)

    def session(self, launched):
        answer = self.request("POST", launched["launch_url"])
        assert answer.status == 200
        return answer.json()

    def play(self, launched, **body):
        return self.request("POST", launched["launch_url"], json.dumps(body).encode())


def test_the_game_of_a_launch_moves_the_players_money(demo):
    one = demo("--json")
    lobby = Lobby(one.told())
    player, other = lobby.launch("p-1", "EUR"), lobby.launch("p-1", "JPY")
    assert lobby.session(player)["wallet"]["balance_minor"] == 0
    lobby.money_in(player, 10000)
    lobby.money_in(other, 1205)
    assert lobby.session(other)["wallet"]["balance_minor"] == 1205
    held = 10000
    for _ in range(12):
        answer = lobby.play(player, stake_minor=100)
        assert answer.status == 200, answer
        played = answer.json()
        assert played["won_minor"] == 100 * PAYS[played["sector"]]
        held += played["won_minor"] - 100
        assert played["wallet"]["balance_minor"] == held
    assert lobby.session(player)["wallet"]["balance_minor"] == held
    # A stake and its win are two entries, after the one of the customer's own.
    assert {name: lobby.balance(player)[name] for name in ("balance_minor", "sequence")} == {
        "balance_minor": held, "sequence": 25}
    verified = shell(f"'{BINARY}' wallet verify -c '{lobby.told['config']}'", "/tmp")
    assert verified.startswith("The ledger is sound: 26 entries of 2 players.")
    statement = shell(f"'{BINARY}' wallet statement {player['player_id']} --json -c '{lobby.told['config']}'", "/tmp")
    assert statement.count('"dune-studio"') == 24
    assert one.end()[0] == 0


def test_what_the_game_of_a_launch_refuses_moves_nothing(demo):
    one = demo("--json")
    lobby = Lobby(one.told())
    player = lobby.launch("p-1", "EUR")
    lobby.money_in(player, 150)
    assert lobby.play(player, stake_minor=200).error == (422, "insufficient_funds")
    for body in ({}, {"stake_minor": 0}, {"stake_minor": -1}, {"stake_minor": 100001}, {"stake_minor": 1.5}, {"stake_minor": "1"},
                 ["stake_minor"]):
        assert lobby.request("POST", player["launch_url"], json.dumps(body).encode()).error == (400, "bad_stake")
    assert lobby.request("POST", player["launch_url"], b"{").error == (400, "bad_stake")
    unsigned = player["launch_url"][:-1] + ("A" if player["launch_url"][-1] != "A" else "Q")
    assert lobby.request("POST", unsigned, b'{"stake_minor":1}').error == (403, "not_launched")
    assert lobby.request("PUT", player["launch_url"], b'{"stake_minor":1}').status == 405
    assert lobby.request("POST", "/metrics").status == 405 and lobby.request("POST", "/other").status == 404
    shell(f"'{BINARY}' game disable anubis-falls -c '{lobby.told['config']}'", "/tmp")
    eventually(lambda: lobby.play(player, stake_minor=100000).error == (404, "game_not_found"))
    assert {name: lobby.balance(player)[name] for name in ("balance_minor", "sequence")} == {
        "balance_minor": 150, "sequence": 1}
    assert one.end()[0] == 0


def test_a_wallet_that_is_silent_holds_up_who_plays_and_nobody_else(demo, tmp_path):
    one = demo("--json")
    lobby = Lobby(one.told())
    player = lobby.launch("p-1", "EUR")
    lobby.money_in(player, 1000)
    answers = []
    with contextlib.closing(sqlite3.connect(tmp_path / "demo-data" / "platform.db", isolation_level=None)) as held:
        held.execute("BEGIN IMMEDIATE")  # the ledger cannot write
        round_of_play = threading.Thread(target=lambda: answers.append(("play", lobby.play(player, stake_minor=100))))
        round_of_play.start()
        for _ in range(5):  # the first may come before the round does
            answers.append(("metrics", lobby.request("GET", "/metrics")))
        held.execute("ROLLBACK")
    round_of_play.join()
    assert [(what, answer.status) for what, answer in answers] == [("metrics", 200)] * 5 + [("play", 200)]
    won = answers[-1][1].json()["won_minor"]
    assert lobby.balance(player)["balance_minor"] == 1000 - 100 + won
    assert one.end()[0] == 0


def token_header(launched):
    return base64.urlsafe_b64decode(launched["launch_url"].partition("token=")[2].partition(".")[0] + "==")


def test_a_newer_secret_of_the_demos_provider_signs_and_the_older_one_is_believed(demo, tmp_path):
    one = demo("--json")
    lobby = Lobby(one.told())
    player = lobby.launch("p-1", "EUR")
    lobby.money_in(player, 1000)

    def provider(*arguments):
        return shell(f"echo newer-secret-of-the-demo | '{BINARY}' provider {' '.join(arguments)} -c '{lobby.told['config']}'", "/tmp")

    provider("secret", "add", "dune-studio")
    # As soon as the server knows of it; the token is of the older secret.
    eventually(lambda: lobby.play(player, stake_minor=1).status == 200)
    eventually(lambda: b'"kid"' in token_header(lobby.launch("p-1", "EUR")))
    newer = lobby.launch("p-1", "EUR")
    assert lobby.session(newer)["wallet"]
    provider("secret", "retire", "dune-studio", "first")
    eventually(lambda: lobby.play(newer, stake_minor=1).status == 200)
    assert lobby.request("POST", player["launch_url"]).status == 403
    assert one.end()[0] == 0


def test_the_page_of_a_launch_runs_nothing_but_its_own_files(demo):
    one = demo("--json")
    lobby = Lobby(one.told())
    launched = lobby.post("games/anubis-falls/launch", mode="demo")
    answer = lobby.request("GET", launched["launch_url"])
    policy = answer.header("Content-Security-Policy")
    assert "default-src 'none'" in policy and "unsafe" not in policy
    page = answer.body.decode()
    assert "style=" not in page and re.findall("<script[^>]*>(.*?)</script>", page) == [""]
    for kind, path in zip(("text/css", "text/javascript"), re.findall(r'(?:href|src)="([^"]+)"', page)):
        answer = lobby.request("GET", path)
        assert answer.status == 200 and answer.header("Content-Type").startswith(kind) and answer.body
    session = lobby.session(launched)
    assert session["claims"]["mode"] == "demo" and session["wallet"] is None
    played = lobby.play(launched, stake_minor=100).json()
    assert played["wallet"] is None
    assert played["won_minor"] == 100 * PAYS[played["sector"]]
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
    assert json.loads(shell(f"curl -s -X POST '{url}'", "/tmp"))["claims"]["game"] == "anubis-falls"
    header, claims, signature = url.partition("token=")[2].split(".")
    other = launch().partition("token=")[2].split(".")
    for token in ("", "x", "a.b.c", f"{header}.{claims}.", f"{header}.{claims}.{signature}A", f"{header}.{other[1]}.{signature}",
                  f"{claims}.{claims}.{signature}", f"{header}.{claims}.{signature}.x"):
        answer = shell(f"curl -s -X POST -w '%{{http_code}}' '{page}?token={token}'", "/tmp")
        assert answer.endswith("403") and "signature is not good" in answer, token
    assert one.end()[0] == 0


@pytest.mark.long(24)
def test_players_bet_meanwhile_and_look_at_events(demo):
    one = demo("--json", players=2)
    told = one.told()

    def ask(command):
        return shell(f"'{BINARY}' {command} -c '{told['config']}'", "/tmp")

    eventually(lambda: ask("wallet export").count('"dune-studio"') >= 4)
    # What an operator gets asked about: a refused customer, a declined stake, a blocked player whose own money moves all the same.
    declined = 'croupier_wallet_operations_total{operation="DEBIT",outcome="%s"}'
    expected = {'croupier_denials_total{reason="customer_disabled"}', declined % "insufficient_funds", declined % "refused"}
    eventually(lambda: expected <= {name for name, value in client(told).metrics().items() if value > 0}, 90)
    [customer] = [row["id"] for row in json.loads(ask("customer list --json")) if row["name"] == "Demo Sportsbook"]
    blocked = json.loads(ask(f"player show {customer} blocked-player --json"))
    assert blocked["blocked_at"] is not None
    eventually(lambda: "DEBIT" in ask(f"wallet statement {blocked['player_id']}"), 90)  # a payout: the stake was refused
    assert [row["event_id"] for row in json.loads(ask("feed interest football --json"))]
    assert ask("wallet verify").startswith("The ledger is sound")
    assert one.end()[0] == 0


def test_the_players_outlive_a_refused_launch(demo):
    one = demo("--json", players=1)
    told = one.told()
    shell(f"'{BINARY}' game disable anubis-falls -c '{told['config']}'", "/tmp")

    def refused():
        assert one.process.poll() is None
        return sum(value for name, value in client(told).metrics().items() if name.startswith("croupier_requests_total") and "launch" in name
                   and 'status="4' in name) >= 3

    eventually(refused)
    assert one.end()[0] == 0


def test_a_number_of_players_is_one(demo):
    for players in ("x", 51):
        one = demo(players=players)
        assert one.process.wait(30) == 2 and f"--players: '{players}' is not a number from 0 to 50" in one.process.stderr.read().decode()
