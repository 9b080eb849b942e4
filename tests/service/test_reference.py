"""docs/deployment.md, tried: the files of dist/reference on loopback, and one machine after the other dies."""

import http.client
import itertools
import json
import threading
import time

import pytest

from croupier import eventually, match_odds, row
from reference import Deployment
from wallet_model import balance, credit

pytestmark = pytest.mark.only("embedded", "sqlite")  # it has engines of its own: once is enough

CLIENT = "127.0.0.9"  # the customer's machine; HAProxy is 127.0.0.1


class Clients:
    """A customer's servers: one polls an event, one moves money and repeats what it got no answer to."""

    def __init__(self, deployment, key, player):
        self.deployment = deployment
        self.key = key
        self.player = player
        self.over = threading.Event()
        self.polls = []         # (when it was asked, status, body)
        self.acknowledged = []  # ids, in order
        self.refused = []       # (when, status, error)
        self.threads = [threading.Thread(target=target) for target in (self.poll, self.pay)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def ask(self, method, path, **options):
        return self.deployment.croupiers[0].request(method, path, key=self.key, address=self.deployment.address,
                                                    source=CLIENT, **options)

    def poll(self):
        while not self.over.wait(0.02):
            asked = time.monotonic()
            try:
                response = self.ask("GET", "/api/v1/cricket/events/1")
                self.polls.append((asked, response.status, response.content))
            except (OSError, http.client.HTTPException):
                self.polls.append((asked, 0, b""))

    def pay(self):
        for number in itertools.count():
            document = credit(self.player, f"pay-{number}", 1)
            while not self.pay_once(document):
                if self.over.wait(0.05):
                    return
            if self.over.wait(0.01):
                return

    def pay_once(self, document):
        try:
            response = self.ask("POST", "/api/v1/casino/wallet", body=json.dumps(document).encode(),
                                headers={"Content-Type": "application/json"})
        except (OSError, http.client.HTTPException):
            return False
        if response.status == 200:
            self.acknowledged.append(document["transaction_id"])
            return True
        if response.header("content-type") == "application/json":
            self.refused.append((time.monotonic(), *response.error))
        else:
            self.refused.append((time.monotonic(), response.status, "the proxy's"))
        return False

    def polled_since(self, when):
        return [(status, body) for asked, status, body in self.polls if asked >= when]

    def is_polling_well(self, since=0.0):
        """The last ten polls were good, and none of them is from before."""
        last = [status for asked, status, _ in self.polls[-10:] if asked >= since]
        return len(last) == 10 and set(last) == {200}

    def is_paying(self):
        """Money moves: three more operations."""
        wanted = len(self.acknowledged) + 3
        eventually(lambda: len(self.acknowledged) >= wanted, 30)
        return True


def publish(deployment, price, through=0):
    """As the feed does, until it can: a failover takes its time."""
    service = deployment.croupiers[through]
    eventually(lambda: service.run("feed", "odds", "cricket", "1", "-", input=match_odds(price), status=None).returncode == 0,
               30)


@pytest.mark.long(30)
def test_any_one_machine_may_die(tmp_path):
    with Deployment(tmp_path) as deployment:
        deployment.start()
        first, second = deployment.croupiers
        customer = first.add_customer("Casino", cidrs=[f"{CLIENT}/32"], options=["--casino"])
        first.run("provider", "add", "acme", "--name", "Acme", "--launch-url", "https://acme.example/", "--secret", "-",
                  input="0123456789abcdef0123456789abcdef")
        first.run("game", "import", "-", input='[{"id":"dice","name":"Dice","provider":"acme","category":"table",'
                                               '"currencies":["EUR"]}]')
        second.publish("cricket", [row(1)], {1: match_odds("1.80")})
        # Who is not the customer's machine is not let in, through the proxy and whatever it claims.
        ask = lambda source, **options: first.request("GET", "/api/v1/sports", key=customer.key, address=deployment.address,
                                                      source=source, **options).status
        for service in deployment.croupiers:  # each reads of a new customer on its own
            service.await_admission(customer.key, source=CLIENT)
        assert ask(CLIENT) == 200
        assert ask("127.0.0.8") == 403
        assert ask("127.0.0.8", headers={"X-Forwarded-For": CLIENT}) == 403
        launch = lambda: first.request("POST", "/api/v1/casino/games/dice/launch", key=customer.key, source=CLIENT,
                                       address=deployment.address, headers={"Content-Type": "application/json"},
                                       body=b'{"mode":"real","player_reference":"alice","currency":"EUR"}')
        player = eventually(lambda: launch().json().get("player_id"))
        with Clients(deployment, customer.key, player) as clients:
            eventually(clients.is_polling_well)
            clients.is_paying()

            first.kill()  # a croupier
            killed = time.monotonic()
            eventually(lambda: clients.is_polling_well(since=killed), 10)
            clients.is_paying()
            first.start()
            started = time.monotonic()
            eventually(lambda: clients.is_polling_well(since=started), 10)

            sentinel = deployment.hosts.pop("sentinel-3")
            sentinel.kill()
            killed = time.monotonic()
            clients.is_paying()
            eventually(lambda: len(clients.polled_since(killed)) >= 10, 10)
            assert {status for status, _ in clients.polled_since(started)} == {200}  # no one noticed

            master = deployment.ask_sentinel("get-master-addr-by-name", "croupier")
            deployment.hosts["redis-1"].kill()
            clients.is_paying()  # the casino does without
            # It takes no writes before the dead one is back: with min-replicas-to-write a master needs a replica.
            # When the two Sentinels each vote for themselves, they try again after twice failover-timeout.
            eventually(lambda: deployment.ask_sentinel("get-master-addr-by-name", "croupier") != master, 90)
            failed_over = time.monotonic()
            eventually(lambda: clients.is_polling_well(since=failed_over), 20)
            stuck = second.run("check", status=1).text
            assert "odds writes" in stuck and "takes no writes while replicas are missing" in stuck
            require = lambda replicas: deployment.ask_redis("CONFIG", "SET", "min-replicas-to-write", replicas, wanted="OK",
                                                            name="redis-2", user="operator", password="CHANGE-ME-OPERATOR")
            assert require("0")
            publish(deployment, "2.40")
            assert require("1")
            host = deployment.hosts["redis-1"]
            host.run(*host.command)
            publish(deployment, "2.50")
            published = time.monotonic()
            seen = eventually(lambda: len(polls := clients.polled_since(published + 1.0)) >= 10 and polls, 30)
            assert all(status == 200 and b"2.50" in body for status, body in seen)

            deployment.hosts["postgresql-1"].kill()
            killed = time.monotonic()
            eventually(lambda: clients.refused and clients.refused[-1][0] >= killed, 20)
            deployment.promote_standby()
            clients.is_paying()
            promoted = time.monotonic()
            eventually(lambda: clients.is_polling_well(since=promoted), 20)
        acknowledged = len(clients.acknowledged)
        assert len(set(clients.acknowledged)) == acknowledged
        # Each instance finds out for itself that the database has moved.
        ask_balance = lambda: send_through(deployment, customer.key, balance(player)).get("balance_minor")
        assert eventually(ask_balance, 10) in (acknowledged, acknowledged + 1)  # one was perhaps under way at the end
        statement = second.ask("wallet", "statement", player)
        stored = {entry["transaction_id"] for entry in statement["entries"]}
        assert set(clients.acknowledged) <= stored
        second.run("wallet", "verify")
        denied = [line for service in deployment.croupiers for line in service.log_lines() if line.get("status") == 403]
        for _, status, error in clients.refused:
            assert (status, error) in {(503, "ledger_unavailable"), (500, "internal_error"), (503, "the proxy's"),
                                       (502, "the proxy's"), (503, "security_config_unavailable")}, denied
        for _, status, _ in clients.polls:
            assert status in (0, 200, 502, 503, 504), denied
        for service in deployment.croupiers:
            service.stop()


def send_through(deployment, key, document):
    return deployment.croupiers[0].request("POST", "/api/v1/casino/wallet", key=key, address=deployment.address,
                                           source=CLIENT, headers={"Content-Type": "application/json"},
                                           body=json.dumps(document).encode()).json()
