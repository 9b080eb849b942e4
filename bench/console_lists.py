"""How long the console's lists take: 10,000 customers, games and players, made through what operators and customers use, then
listed and searched through the admin API, one request after the other. With the stores of TEST_ENGINES:

    CROUPIER_BIN=build/croupier /usr/bin/python3 bench/console_lists.py
    CROUPIER_BIN=build/croupier TEST_ENGINES=redis,postgresql \\
        /usr/bin/python3 tests/servers.py redis -- /usr/bin/python3 tests/servers.py postgres -- /usr/bin/python3 bench/console_lists.py
"""

import json
import pathlib
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "tests" / "service"), str(pathlib.Path(__file__).parents[1] / "tests")]

from croupier import Service  # noqa: E402
from test_console import sign_in  # noqa: E402
from wallet_model import add_games, launch  # noqa: E402

MANY = 10000
AT_ONCE = 1000  # games of one import
ROUNDS = 21
GAME = {"provider": "acme", "category": "slots", "features": [], "rtp_bps": 9600, "volatility": None, "thumbnail_url": None,
        "demo": True, "currencies": ["EUR"], "languages": ["en"], "devices": ["desktop"]}
LISTS = ["customers?limit=50", "customers?limit=200", "customers?limit=50&cursor=9900", "customers?q=number%209999",
         "customers?q=nothing", "games?limit=50", "games?limit=50&cursor=9900", "games?q=game-9998", "games?q=nothing",
         "players?limit=50", "players?limit=50&cursor=9900", "players?q=player-9999", "players?q=nothing"]


def fill(service):
    customer = service.add_customer("House", options=["--casino"])
    add_games(service, "roulette")
    games = [{"id": f"game-{number}", "name": f"Game {number}", **GAME} for number in range(MANY - 1)]
    for at in range(0, len(games), AT_ONCE):
        service.run("game", "import", "-", input=json.dumps(games[at:at + AT_ONCE]).encode())
    service.publish_nothing()
    service.run("operator", "add", "owner", "--role", "owner")
    service.start()
    owner = sign_in(service, "owner")
    service.await_admission(customer.key)
    for number in range(MANY):
        owner.change("POST", "customers", {"name": f"Customer number {number}"}, 201)
        launch(service, customer, "roulette", f"player-{number}")
    return owner, customer


def measure(owner, path):
    times = []
    for _ in range(ROUNDS):
        begun = time.monotonic()
        page = owner.get(path)
        times.append((time.monotonic() - begun) * 1000)
    times.sort()
    print(f"| {path} | {len(page['items'])} | {times[ROUNDS // 2]:.0f} | {times[-1]:.0f} |", flush=True)


def main():
    with tempfile.TemporaryDirectory() as directory:
        service = Service(pathlib.Path(directory))
        try:
            owner, customer = fill(service)
            print("| list | rows | median, ms | worst, ms |\n|---|---|---|---|")
            for path in [*LISTS, f"players?customer={customer.id}&reference=player-5000"]:
                measure(owner, path)
        finally:
            service.stop()


main()
