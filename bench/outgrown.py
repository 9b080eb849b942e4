"""Two croupiers on one Redis and one PostgreSQL, under load, while these die, freeze, fill up and are cut off.

A writer stamps a rising number into a catalog and into the odds of one event; customers read that event
at both instances, some with If-None-Match; players' money moves through both, every operation asked again
until its outcome is known. Each instance has its own way to each server, a proxy that a test can spoil.
After each fault:

    - meanwhile, nothing but the errors that the interface has for it, and within their deadlines;
    - no stale answer, ever: who asked after a write was acknowledged (and its invalidation had time to
      travel) got that number or a later one;
    - all is well again within 5 s;
    - the ledger is sound, and every operation was applied exactly once.

A campaign and no part of `make test`, because its limits are times:

    CROUPIER_BIN=$PWD/build/croupier /usr/bin/python3 -m pytest -q -p no:cacheprovider bench/outgrown.py

OUTGROWN_SECONDS: how long a fault lasts (1.5).
"""

import bisect
import contextlib
import http.client
import itertools
import json
import os
import random
import sys
import threading
import time
import types
from pathlib import Path

import pytest

os.environ["TEST_ENGINES"] = "redis,postgresql"
TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS / "service"), str(TESTS)]

from croupier import PATIENCE, Service, eventually  # noqa: E402
from servers import DOWN, UP, Postgres, Proxy, Redis, RedisReply, Sentinel  # noqa: E402
from wallet_model import PATH as WALLET, add_player, credit  # noqa: E402

SECONDS = float(os.environ.get("OUTGROWN_SECONDS", "1.5"))
TIMEOUT = 0.5           # odds.timeout_ms; twice the default, for machines that do other things too
TRAVEL = 0.1 * PATIENCE  # of an invalidation; a few milliseconds where nothing else runs
# Of each reader and each player: far shorter than TRAVEL, and long enough that the load is not what is tested.
READ_PAUSE, POST_PAUSE = 0.01, 0.02
PAUSES = [0.001, 0.003, 0.01, TRAVEL + 0.03, TRAVEL + 0.03, TIMEOUT + TRAVEL + 0.03]  # between writes
RECOVERY = 5.0 * PATIENCE
SLACK = 0.75 * PATIENCE  # of a deadline
EVENT = "/api/v1/cricket/events/7"

REDIS_GONE = {"cache_unavailable"}
REDIS_SILENT = {"cache_unavailable", "cache_timeout"}
CATALOG, ODDS = 0, 1

POSTGRES_GONE = {"security_config_unavailable"}
MONEY_GONE = {"security_config_unavailable", "ledger_unavailable", "internal_error"}


# ---- the load ------------------------------------------------------------------------------------------

class Client:
    """A keep-alive connection; (status, code or document, ETag) of one request after the other."""

    def __init__(self, service, key):
        self.service, self.key = service, key
        self.connection = None

    def ask(self, method, path, body=None, fields=()):
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection(*self.service.address, timeout=20 * PATIENCE)
            self.connection.request(method, path, body, {"Authorization": f"Bearer {self.key}", **dict(fields)})
            answer = self.connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        document = json.loads(data) if data else None
        return answer.status, document, answer.getheader("ETag")

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Read:
    """One answer to a reader: when, what."""

    def __init__(self, instance, began, ended, status, code, numbers):
        self.instance, self.began, self.ended = instance, began, ended
        self.status, self.code, self.numbers = status, code, numbers

    @property
    def well(self):
        return self.status == 200

    def __repr__(self):
        return f"<{self.instance}: {self.status} {self.code or self.numbers} in {self.ended - self.began:.3f}s>"


class Load:
    """The threads. `connect` gives the writer a connection to the Redis that takes writes now; `acknowledged`
    waits until what it wrote cannot be lost any more."""

    def __init__(self, house):
        self.house = house
        self.ended = threading.Event()
        self.paused = threading.Event()
        self.resting = threading.Event()
        self.anew = threading.Event()  # nothing may be there: both are to be written
        self.anew.set()
        self.reads = []       # Read, in the order in which they ended
        self.posts = []       # (instance, began, ended, status, code)
        self.written = [], []  # of the catalog, of the odds: (when it was acknowledged, number)
        self.applied = {}     # transaction: (player, sequence, balance)
        self.broken = []      # what no thread may meet
        self.threads = [self._thread(self._write)]
        for number, service in enumerate(house.services):
            self.threads.append(self._thread(self._read, number, service, False))
            self.threads.append(self._thread(self._read, number, service, True))
            self.threads.append(self._thread(self._post, number, service, house.players[number]))
            self.threads.append(self._thread(self._post, number, service, house.players[-1]))

    def _thread(self, run, *arguments):
        def guarded():
            try:
                run(*arguments)
            except Exception as failure:  # noqa: BLE001: told by `end`
                self.broken.append(f"{run.__name__}: {failure!r}")
        return threading.Thread(target=guarded, daemon=True)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join(60 * PATIENCE)

    # ---- the writer ----

    def _write(self):
        """In bursts, with pauses in which word of the last write has to arrive: the next write would heal what
        its loss leaves behind."""
        connection = None
        while not self.ended.wait(random.choice(PAUSES)):
            if self.paused.is_set():
                self.resting.set()
                continue
            self.resting.clear()
            number = next(self.house.numbers)
            try:
                if connection is None:
                    connection = self.house.connect_writer()
                # Either alone, or both: to a reader of both, word of one heals the loss of word of the other.
                both = [ODDS, CATALOG]
                for kind in both if self.anew.is_set() else random.choice([[CATALOG], [ODDS], both[::-1], both]):
                    if kind == CATALOG:
                        connection.call("SET", "catalog:cricket", json.dumps([{"gmid": 7, "n": number}]))
                    else:
                        connection.call("SET", "odds:cricket:7", json.dumps([{"marketId": "1.1", "n": number}]))
                    if self.house.is_kept(connection):
                        self.written[kind].append((time.monotonic(), number))
                self.anew.clear()
            except (OSError, RedisReply):
                if connection is not None:
                    connection.close()
                connection = None

    def pause(self):
        self.resting.clear()
        self.paused.set()
        assert self.resting.wait(20 * PATIENCE)

    def resume(self):
        self.anew.set()
        self.paused.clear()

    # ---- readers ----

    def _read(self, instance, service, conditional):
        client = Client(service, self.house.key)
        seen = {}  # ETag: numbers
        last = None
        while not self.ended.wait(READ_PAUSE):
            began = time.monotonic()
            fields = {"If-None-Match": last} if conditional and last else {}
            status, document, etag = client.ask("GET", EVENT, fields=fields)
            ended = time.monotonic()
            if status == 200:
                numbers = document["event"]["n"], document["odds"][0]["n"]
                last = etag
                seen = {etag: numbers}
                self.reads.append(Read(instance, began, ended, 200, None, numbers))
            elif status == 304:
                self.reads.append(Read(instance, began, ended, 200, None, seen[last]))
            else:
                self.reads.append(Read(instance, began, ended, status, document["error"], None))
        client.close()

    # ---- players ----

    def _post(self, instance, service, player):
        """One CREDIT of 1 after the other, each asked again until it is known to be applied."""
        client = Client(service, self.house.key)
        while not self.ended.is_set():
            identity = f"t{next(self.house.transactions)}"
            body = json.dumps(credit(player, identity, 1))
            while not self._applied(client, instance, player, identity, body):
                if self.ended.wait(0.02):
                    self.house.open.append((player, identity))
                    return
            self.ended.wait(POST_PAUSE)
        client.close()

    def _applied(self, client, instance, player, identity, body):
        began = time.monotonic()
        status, document, _ = client.ask("POST", WALLET, body, {"Content-Type": "application/json"})
        code = document.get("error")
        self.posts.append((instance, began, time.monotonic(), status, code))
        if status == 200:
            self.house.applied[identity] = player, document["sequence"], document["balance_minor"]
        return status == 200

    # ---- what a test says of it ----

    def calm(self, seconds=0.5):
        """Waits until all went well for so long."""
        def well():
            since = time.monotonic() - seconds
            reads = [read for read in list(self.reads) if read.ended > since]
            posts = [post for post in list(self.posts) if post[2] > since]
            instances = range(len(self.house.services))
            return (all(read.well for read in reads) and all(post[3] == 200 for post in posts)
                    and {read.instance for read in reads} == {post[0] for post in posts} == set(instances)
                    and all(written and written[-1][0] > since - 2.0 for written in self.written))
        time.sleep(seconds)
        eventually(lambda: self.broken or well(), 20)
        assert not self.broken, self.broken

    def errors(self, since=0.0, instances=(0, 1)):
        return {read.code for read in self.reads
                if not read.well and read.ended >= since and read.instance in instances}

    def money_errors(self, since=0.0, instances=(0, 1)):
        return {post[4] for post in self.posts if post[3] != 200 and post[2] >= since and post[0] in instances}

    def assert_never_stale(self, travel=TRAVEL):
        """Returns how long after a write was acknowledged what it replaced was still seen."""
        worst = 0.0
        reads = sorted((read for read in self.reads if read.well), key=lambda read: read.began)
        for kind, written in enumerate(self.written):
            numbers = [number for _, number in written]
            for read in reads:
                following = bisect.bisect_right(numbers, read.numbers[kind])
                if following < len(written):
                    age = read.began - written[following][0]
                    assert age <= travel, f"stale: {read}, {age:.3f} s after {numbers[following]} was acknowledged"
                    worst = max(worst, age)
        return worst

    def assert_recovered(self, healed):
        """All that was not well ended within 5 s after the fault did."""
        bad = [read.ended for read in self.reads if not read.well] + [post[2] for post in self.posts if post[3] != 200]
        took = max([0.0] + [when - healed for when in bad])
        assert took <= RECOVERY, f"still not well {took:.2f} s after"
        return took

    def assert_prompt(self, limit):
        slowest = max(self.reads, key=lambda read: read.ended - read.began)
        assert slowest.ended - slowest.began <= limit, slowest


# ---- the house -----------------------------------------------------------------------------------------

class House:
    """Two instances, each behind a proxy to each server."""

    def __init__(self, directory, redis, postgres, odds_uri=None):
        self.redis, self.postgres = redis, postgres
        self.database = postgres.create_database()
        self.redis_ways = [Proxy(("127.0.0.1", redis.port)) for _ in range(2)] if odds_uri is None else []
        self.postgres_ways = [Proxy(("127.0.0.1", postgres.port)) for _ in range(2)]
        self.services = []
        self.numbers = itertools.count(1)
        self.transactions = itertools.count(1)
        self.applied = {}
        self.open = []  # asked, and not known to be applied when the load ended
        for number in range(2):
            odds = odds_uri or redis.tcp_uri(port=self.redis_ways[number].port)
            platform = postgres.uri_of(self.database, port=self.postgres_ways[number].port)
            settings = {"odds.timeout_ms": int(TIMEOUT * 1000), "casino.secrets_key_file": f"{directory}/secrets.key"}
            self.services.append(Service(Path(directory) / f"instance-{number}", settings, stores=number == 0,
                                         odds=self._place(odds), platform=self._place(platform, self.database)))
        customer = self.services[0].add_customer("House", options=["--casino"])
        self.key = customer.key
        for service in self.services:
            service.start()
            service.await_admission(self.key)
        self.players = [add_player(self.services[0], customer, name) for name in ("one", "two", "both")]

    def _place(self, uri, database=None):
        execute = lambda *statements: self.postgres.sql(";".join(statements), database)
        return types.SimpleNamespace(uri=uri, execute=execute, make=lambda: None, remove=lambda: None)

    def connect_writer(self):
        return self.redis.connect(timeout=1.0)

    def is_kept(self, connection):
        return True

    def heal(self):
        for way in self.redis_ways + self.postgres_ways:
            way.heal()

    def assert_money_is_right(self):
        """Sound, and every operation was applied once: also those whose outcome no one had heard when the load ended."""
        client = Client(self.services[0], self.key)
        for player, identity in self.open:
            status, document, _ = client.ask("POST", WALLET, json.dumps(credit(player, identity, 1)),
                                             {"Content-Type": "application/json"})
            assert status == 200, document
            self.applied[identity] = player, document["sequence"], document["balance_minor"]
        self.open.clear()
        for identity in random.Random(7).sample(sorted(self.applied), min(50, len(self.applied))):
            player, sequence, balance = self.applied[identity]
            status, document, _ = client.ask("POST", WALLET, json.dumps(credit(player, identity, 1)),
                                             {"Content-Type": "application/json"})
            assert (status, document["sequence"], document["balance_minor"]) == (200, sequence, balance), document
            assert document["replayed"] is True
        for player in self.players:
            status, document, _ = client.ask("POST", WALLET, json.dumps({"operation": "BALANCE", "player_id": player}),
                                             {"Content-Type": "application/json"})
            mine = [(sequence, balance) for owner, sequence, balance in self.applied.values() if owner == player]
            assert sorted(mine) == [(n, n) for n in range(1, len(mine) + 1)], "each once, in one order"
            assert document["balance_minor"] == len(mine), "nothing besides"
        client.close()
        assert self.services[0].ask("wallet", "verify")["sound"] is True

    def close(self):
        try:
            for service in self.services:
                service.stop()
        finally:
            for way in self.redis_ways + self.postgres_ways:
                way.close()


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with Redis(persistent=True) as redis, Postgres(tcp=True, durable=True) as postgres:
        made = House(tmp_path_factory.mktemp("house"), redis, postgres)
        yield made
        made.close()


@contextlib.contextmanager
def trouble(house, reads=frozenset(), money=frozenset(), travel=TRAVEL, limit=TIMEOUT + SLACK, spared=(), held=0.0,
            noticed=True):
    """Load before, while and after the body spoils and mends something. `reads`, `money`: the only errors
    that may be met meanwhile; some of them must be (noticed). spared: instances that must notice nothing,
    unless it be locks that the other left behind, for `held` seconds."""
    with Load(house) as load:
        load.calm()
        began = time.monotonic()
        yield load
        healed = time.monotonic()
        load.calm(1.0)
        took = load.assert_recovered(healed)
    assert not load.broken, load.broken
    errors, money_errors = load.errors(began), load.money_errors(began)
    assert errors <= set(reads), errors
    assert money_errors <= set(money), money_errors
    assert not noticed or errors | money_errors, "nobody noticed"
    assert not load.errors(began, spared) | load.money_errors(began + held, spared), "the other instance was well"
    load.assert_prompt(limit)
    worst = load.assert_never_stale(travel)
    house.assert_money_is_right()
    print(f"well again after {took:.2f} s; {len(load.reads)} reads, {sum(map(len, load.written))} writes, {len(load.posts)} posts;"
          f" a change was seen at the latest {worst * 1000:.0f} ms after; errors {sorted(errors | money_errors)}")


# ---- Redis ---------------------------------------------------------------------------------------------

def test_all_is_well_while_all_is_well(house):
    with trouble(house, noticed=False):
        time.sleep(3 * SECONDS)


@pytest.mark.parametrize("end", [Redis.stop, Redis.kill], ids=["stopped", "killed"])
def test_redis_is_gone_for_a_while(house, end):
    with trouble(house, REDIS_SILENT) as load:
        end(house.redis)
        gone = time.monotonic()
        time.sleep(SECONDS)
        assert load.errors(gone) == REDIS_GONE, "told at once"
        house.redis.start()  # which takes connections a little before it answers


def test_redis_comes_back_with_nothing(house):
    """As one without persistence does. What is not published is not there, and what was is not shown."""
    with trouble(house, REDIS_SILENT | {"catalog_unavailable"}) as load:
        load.pause()
        house.redis.call("FLUSHALL")
        house.redis.restart()
        time.sleep(SECONDS)
        assert load.reads[-1].status == 503
        load.resume()


def test_a_frozen_redis_is_told_from_one_that_is_gone(house):
    with trouble(house, REDIS_SILENT) as load:
        house.redis.freeze()
        time.sleep(SECONDS)
        house.redis.thaw()
        assert "cache_timeout" in load.errors()


def test_connections_to_redis_are_reset_again_and_again(house):
    """Who asks meanwhile waits for the next connection, as long as a deadline lasts."""
    with trouble(house, REDIS_SILENT, noticed=False):
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            for way in house.redis_ways:
                way.cut()
            time.sleep(0.05)


def test_redis_ends_its_connections_again_and_again(house):
    with trouble(house, REDIS_SILENT, noticed=False):
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            house.redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            time.sleep(0.05)


@pytest.mark.parametrize("direction", [None, UP, DOWN], ids=["both", "up", "down"])
def test_the_way_to_redis_is_a_black_hole_for_one_instance(house, direction):
    """Its reads are lost, or the answers, or the invalidations: what it has in memory may not be used long."""
    with trouble(house, REDIS_SILENT, travel=TIMEOUT + TRAVEL, spared=[1]):
        house.redis_ways[0].swallow(direction)
        time.sleep(SECONDS)
        house.redis_ways[0].heal()


def test_any_one_connection_to_redis_falls_silent(house):
    for number in range(len(house.redis_ways[0].links)):
        with trouble(house, REDIS_SILENT, travel=TIMEOUT + TRAVEL, spared=[1], noticed=False):
            links = list(house.redis_ways[0].links)
            if number < len(links):
                links[number].swallow()
            time.sleep(SECONDS)
            house.redis_ways[0].heal()


def test_any_one_connection_to_redis_is_reset(house):
    for number in range(len(house.redis_ways[0].links)):
        with trouble(house, REDIS_GONE, spared=[1], noticed=False):
            for _ in range(5):
                links = list(house.redis_ways[0].links)
                if number < len(links):
                    links[number].cut()
                time.sleep(0.1)


def test_a_slow_way_to_redis_is_only_slow(house):
    with trouble(house, REDIS_SILENT, travel=0.05 + TRAVEL, noticed=False):
        for way in house.redis_ways:
            way.delay(0.025)
        time.sleep(SECONDS)
        house.heal()


def test_new_connections_to_redis_are_refused(house):
    with trouble(house, REDIS_GONE, spared=[1]):
        house.redis_ways[0].refuse()
        time.sleep(SECONDS)
        house.redis_ways[0].heal()


def test_flushall_leaves_nothing_to_be_shown(house):
    with trouble(house, {"catalog_unavailable"}) as load:
        for _ in range(5):
            load.pause()
            house.redis.call("FLUSHALL")
            flushed = time.monotonic()
            time.sleep(TRAVEL + 0.2)
            late = [read for read in load.reads if read.began > flushed + TRAVEL]
            assert late and {(read.status, read.code) for read in late} == {(503, "catalog_unavailable")}
            load.resume()
            time.sleep(0.2)


def test_a_redis_without_memory_is_still_read(house):
    """Interest cannot be written then; answers come all the same."""
    with trouble(house, noticed=False) as load:
        load.pause()
        house.redis.call("CONFIG", "SET", "maxmemory", "1")
        time.sleep(SECONDS)
        house.redis.call("CONFIG", "SET", "maxmemory", "0")
        load.resume()


# ---- Sentinel ------------------------------------------------------------------------------------------

class SentinelHouse(House):
    def __init__(self, directory, sentinel, postgres):
        self.sentinel = sentinel
        super().__init__(directory, sentinel.master, postgres, sentinel.uri)

    def connect_writer(self):
        return self.sentinel.master.connect(timeout=1.0)

    def is_kept(self, connection):
        """What only the former master has is lost at a failover."""
        return connection.call("WAIT", 1, 500) >= 1


@pytest.fixture
def guarded(tmp_path):
    with Sentinel(replicas=2) as sentinel, Postgres(tcp=True) as postgres:
        made = SentinelHouse(tmp_path, sentinel, postgres)
        yield made
        made.close()


@pytest.mark.parametrize("what", ["asked for", "killed", "frozen"])
def test_another_redis_takes_over(guarded, what):
    sentinel = guarded.sentinel
    with trouble(guarded, REDIS_SILENT, noticed=what != "asked for", travel=TIMEOUT + TRAVEL):
        former = sentinel.master
        if what == "asked for":
            sentinel.fail_over()
        else:
            former.kill() if what == "killed" else former.freeze()
            sentinel.await_failover(former)
        if what == "frozen":  # it still believes to be the master, and has the old numbers
            time.sleep(SECONDS)
            former.thaw()
            time.sleep(SECONDS)


# ---- PostgreSQL ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("end", [lambda server: server.stop("immediate"), lambda server: server.stop("fast"), Postgres.kill],
                         ids=["immediate", "fast", "killed"])
def test_postgresql_is_gone_for_a_while(house, end):
    with trouble(house, POSTGRES_GONE, MONEY_GONE):
        end(house.postgres)
        time.sleep(SECONDS)
        house.postgres.start()


def test_a_frozen_postgresql(house):
    with trouble(house, POSTGRES_GONE, MONEY_GONE):
        house.postgres.freeze()
        time.sleep(SECONDS + 1.0)
        house.postgres.thaw()


def test_postgresql_ends_sessions_again_and_again(house):
    with trouble(house, POSTGRES_GONE, MONEY_GONE, noticed=False):
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            house.postgres.terminate_backends(house.database)
            time.sleep(0.02)


def test_connections_to_postgresql_are_reset_again_and_again(house):
    with trouble(house, POSTGRES_GONE, MONEY_GONE, noticed=False):
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            for way in house.postgres_ways:
                way.cut()
            time.sleep(0.05)


@pytest.mark.parametrize("direction", [None, UP, DOWN], ids=["both", "up", "down"])
def test_the_way_to_postgresql_is_a_black_hole_for_one_instance(house, direction):
    """With answers lost, commits happen that no one hears of."""
    with trouble(house, POSTGRES_GONE, MONEY_GONE, spared=[1], held=2.5 * PATIENCE):
        house.postgres_ways[0].swallow(direction)
        time.sleep(SECONDS + 1.0)
        house.postgres_ways[0].heal()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to mount a small file system")
def test_the_disk_of_postgresql_is_full_for_a_while(tmp_path):
    try:
        postgres = Postgres(tcp=True, durable=True, disk_megabytes=128,
                            settings={"max_wal_size": "48MB", "min_wal_size": "32MB"})
    except PermissionError as refusal:
        pytest.skip(str(refusal))
    with Redis() as redis, postgres:
        house = House(tmp_path, redis, postgres)
        ballast = postgres.disk / "ballast"
        with trouble(house, POSTGRES_GONE, MONEY_GONE) as load:
            ends = time.monotonic() + 20 * PATIENCE
            with open(ballast, "wb", buffering=0) as file:
                while not load.money_errors():  # it writes into room that it has, as long as there is some
                    assert time.monotonic() < ends, "the disk never filled up"
                    with contextlib.suppress(OSError):
                        file.write(bytes(4096))
            time.sleep(SECONDS)
            ballast.unlink()
            if not postgres.running:
                postgres.process = None
                postgres.start()
        house.close()


# ---- both ----------------------------------------------------------------------------------------------

def test_both_are_gone_and_come_back(house):
    with trouble(house, REDIS_SILENT | POSTGRES_GONE, MONEY_GONE):
        house.redis.kill()
        house.postgres.kill()
        time.sleep(SECONDS)
        house.postgres.start()
        house.redis.start()


def test_an_instance_that_is_killed_takes_nothing_with_it(house):
    """The other goes on; what it had begun is finished by whoever asks again."""
    service = house.services[0]

    def post(identity):
        client = Client(service, house.key)
        with contextlib.suppress(OSError, http.client.HTTPException):
            client.ask("POST", WALLET, json.dumps(credit(house.players[2], identity, 1)),
                       {"Content-Type": "application/json"})
        client.close()

    for number in range(5):
        identity = f"killed-{number}"
        thread = threading.Thread(target=post, args=[identity])
        thread.start()
        time.sleep(random.random() * 0.01)
        service.kill()
        thread.join()
        house.open.append((house.players[2], identity))
        service.start()
        service.await_admission(house.key)
    house.assert_money_is_right()
