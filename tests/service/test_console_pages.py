"""The operator's console as an operator uses it, in a real Chromium: tests/console/walk.mjs over a demo. The picture of a step that
failed stays in console/ beside the program, and with TEST_PICTURES=1 one of each step."""

import json
import os
import shutil
import subprocess

import pytest

import node_packages
from croupier import BINARY, PATIENCE, ROOT, eventually
from test_demo import Demo, client

pytestmark = pytest.mark.only("embedded", "sqlite")  # which are what a demo has, and what no sanitized run has

WALK = ROOT / "tests" / "console"
PICTURES = BINARY.parent / "console"


@pytest.fixture
def demo(tmp_path):
    one = Demo(tmp_path / "demo-data", "--json")
    yield one
    if one.process.poll() is None:
        one.process.kill()
    one.process.communicate()


def player_with_money(told):
    """Somebody who was launched and has moved money, by the customers' API."""
    service = client(told)
    headers = {"Content-Type": "application/json"}

    def post(path, document):
        answer = service.request("POST", path, told["key"], headers, json.dumps(document).encode())
        assert answer.status == 200, answer
        return answer.json()

    launch = post("/api/v1/casino/games/anubis-falls/launch", {"mode": "real", "player_reference": "walker", "currency": "EUR"})
    for number in range(1, 9):
        post("/api/v1/casino/wallet", {
            "operation": "CREDIT" if number % 3 else "DEBIT", "player_id": launch["player_id"], "transaction_id": f"t{number}",
            "amount_minor": 1000 * number if number % 3 else 550, "currency": "EUR"})
    # The win names no game, as a provider's may: the bet that it refers to does.
    for operation, name, more in (("DEBIT", "bet-1", {"game_id": "anubis-falls", "round_id": "r1"}),
                                  ("CREDIT", "win-1", {"reference_transaction_id": "bet-1"})):
        post("/api/v1/casino/wallet", {
            "operation": operation, "player_id": launch["player_id"], "transaction_id": name, "amount_minor": 200 if operation == "DEBIT" else 350,
            "currency": "EUR", **more})
    return launch["player_id"]


def test_a_player_plays_the_sample_game_with_the_mouse(demo):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium here; on Debian, tools/setup test installs it")
    told = demo.told()
    player_with_money(told)

    def launch():
        url = client(told).request("POST", "/api/v1/casino/games/anubis-falls/launch", told["key"], {"Content-Type": "application/json"},
                                   b'{"mode": "real", "player_reference": "walker", "currency": "EUR"}').json()["launch_url"]
        return url if url.startswith(told["operator"]) else None  # the table of providers is a second behind at the start

    given = {"modules": str(node_packages.install(WALK, PICTURES)), "chromium": chromium, "url": eventually(launch)}
    done = subprocess.run(["node", WALK / "game.mjs", json.dumps(given)], capture_output=True, timeout=300 * PATIENCE)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert demo.end()[0] == 0


@pytest.mark.long(60)
def test_an_operator_walks_through_every_page_and_every_change(demo, tmp_path):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium here; on Debian, tools/setup test installs it")
    told = demo.told()
    player = player_with_money(told)
    customers = json.loads(subprocess.run([BINARY, "customer", "list", "-c", told["config"], "--json"], capture_output=True,
                                          check=True, env=demo.environment).stdout)
    customer = next(row["id"] for row in customers if row["name"] == "Demo Sportsbook")
    (tmp_path / "downloads").mkdir()
    given = {"modules": str(node_packages.install(WALK, PICTURES)), "chromium": chromium, "pictures": str(PICTURES), "photographs": "TEST_PICTURES" in os.environ, "link": told["console"], "api": told["api"],
             "key": told["key"], "pid": demo.process.pid, "program": str(BINARY), "config": told["config"], "backup": str(tmp_path / "backup"), "downloads": str(tmp_path / "downloads"), "player": {"id": player, "reference": "walker", "customer": customer}}
    done = subprocess.run(["node", WALK / "walk.mjs", json.dumps(given)], capture_output=True, timeout=900 * PATIENCE)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert demo.end()[0] == 0
