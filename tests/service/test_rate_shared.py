"""One budget for several servers over one Redis: leases, the store's clock, and days without the store."""

import concurrent.futures
import signal
import threading
import time

import pytest

from servers import Stopwatch
from croupier import PATIENCE, STORE_TIMEOUT_MS, Clock, Connection, eventually

pytestmark = [pytest.mark.only("redis"), pytest.mark.depends_on("odds")]

WINDOW = 86400
SPORTS = "/api/v1/sports"
LEASES = "croupier_rate_leases_total"
WAITS = "croupier_rate_waits_total"
ALONE = "croupier_rate_alone_total"


def not_at_the_end_of(window, spare):
    left = window - time.time() % window
    if left < spare:
        time.sleep(left + 0.05)


@pytest.fixture(autouse=True)
def not_at_the_end_of_a_window():
    not_at_the_end_of(WINDOW, 60)


@pytest.fixture
def cluster(make_service):
    """Makes servers over the same stores, and a customer with a budget. A store is away when it does not
    answer for `timeout_ms`, which is more than a busy machine needs."""

    def make(rate, servers=2, environments=(), timeout_ms=STORE_TIMEOUT_MS, **options):
        first = make_service({"odds.timeout_ms": timeout_ms}, **options)
        customer = first.add_customer("Limited", rate=rate)
        services = [first]
        for i in range(1, servers):
            names = [("odds", "store"), ("odds", "timeout_ms"), ("platform", "store"), ("casino", "secrets_key_file")]
            settings = {".".join(name): first.settings[name] for name in names}
            services.append(make_service(settings, stores=False))
        for service, environment in zip(services, environments):
            service.environment.update(environment)
        for service in services:
            service.start()
            service.await_admission(customer.key)
        return services, customer

    return make


def request(key):
    return f"GET {SPORTS} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\n\r\n"


def count_admitted(service, key, requests, at_once=1, until=None, others=None):
    """Asks on one connection, `at_once` requests ahead; how many were admitted. With `until`, a server that only
    just woke up may not have confirmed its policies yet (503). With `others`, a barrier, it goes on when all have
    had their first answers."""
    statuses = []
    with service.connect() as connection:
        while len(statuses) < requests and (until is None or time.time() < until):
            connection.send(request(key) * at_once)
            statuses += [connection.receive().status for _ in range(at_once)]
            if others is not None and len(statuses) == at_once:
                others.wait(60 * PATIENCE)
            if until is not None and statuses[-1] == 429:
                time.sleep(0.002)
    assert set(statuses) <= ({200, 429} if until is None else {200, 429, 503})
    return statuses.count(200)


def together(services, key, requests, clients=2, at_once=1, until=None):
    """So many admitted by each of the services, all asked at the same time."""
    others = threading.Barrier(len(services) * clients) if until is None else None
    with concurrent.futures.ThreadPoolExecutor(len(services) * clients) as pool:
        futures = [(service, pool.submit(count_admitted, service, key, requests, at_once, until, others))
                   for service in services for _ in range(clients)]
        return [sum(future.result() for of, future in futures if of is service) for service in services]


def script_calls(service):
    """How often Redis was asked for leases."""
    stats = service.odds.server.info("commandstats")
    return sum(int(stats[name].split("calls=")[1].split(",")[0]) for name in ("cmdstat_evalsha", "cmdstat_eval")
               if name in stats)


def left_of_window():
    return WINDOW - time.time() % WINDOW


def fields_of(response):
    return {name: int(response.header(f"x-ratelimit-{name}")) for name in ("limit", "remaining", "reset")}


# ---- one server --------------------------------------------------------------------------------------

def test_a_few_calls_do_for_a_hundred_requests(cluster):
    (service,), customer = cluster(f"1000/{WINDOW}", servers=1, own_stores=True)
    assert count_admitted(service, customer.key, 1000) == 1000
    assert script_calls(service) <= 41  # one of them the script itself
    metrics = service.metrics()
    assert metrics[LEASES] <= 40 and metrics["croupier_rate_leased_requests_total"] == 1000
    assert metrics[ALONE] == 0 and metrics["croupier_rate_lease_failures_total"] == 0
    before = script_calls(service)
    assert count_admitted(service, customer.key, 500) == 0
    assert script_calls(service) <= before + 1  # that it is used up is remembered


def test_requests_sent_ahead_are_answered_in_order_while_the_first_waits(cluster):
    (service,), customer = cluster(f"5/{WINDOW}", servers=1)
    paths = [SPORTS, "/api/v1/cricket/events/abc", "/api/v1/health", "/api/v1/nothing", SPORTS, "/api/v1/cricket/events/abc",
             SPORTS, SPORTS]
    with service.connect() as connection:
        connection.send("".join(f"GET {path} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {customer.key}\r\n\r\n" for path in paths))
        assert [connection.receive().status for _ in paths] == [200, 400, 200, 404, 200, 400, 200, 429]
    assert service.metrics()[WAITS] >= 1


def test_head_and_unknown_events_count(cluster):
    (service,), customer = cluster(f"2/{WINDOW}", servers=1)
    assert service.request("HEAD", SPORTS, key=customer.key).status == 200
    assert service.get("/api/v1/rugby/events", key=customer.key).status == 400
    assert service.get(SPORTS, key=customer.key).status == 429


def test_a_restarted_server_does_not_give_the_budget_back(cluster):
    (service,), customer = cluster(f"10/{WINDOW}", servers=1)
    assert count_admitted(service, customer.key, 20) == 10
    service.stop()
    service.start()
    service.await_admission(customer.key)
    assert service.get(SPORTS, key=customer.key).status == 429


def test_the_budget_of_an_address_is_shared_too(cluster):
    services, _ = cluster(None)
    services[0].run("ip", "add", "127.0.8.1", "--rate", f"20/{WINDOW}")
    for service in services:
        service.await_admission(source="127.0.8.1")
    statuses = [service.get(SPORTS, source="127.0.8.1").status for _ in range(20) for service in services]
    assert statuses.count(200) == 20
    assert services[0].odds.call("GET", "rate:127.0.8.1").endswith(b":20")


def test_the_prefix_is_before_the_key(make_service):
    service = make_service({"odds.prefix": "house:"})
    customer = service.add_customer(rate=f"7/{WINDOW}")
    service.start()
    service.await_admission(customer.key)
    assert count_admitted(service, customer.key, 10) == 7
    start, used = service.odds.call("GET", f"house:rate:{customer.id}").split(b":")
    assert int(start) % WINDOW == 0 and used == b"7"
    assert 0 < service.odds.call("PTTL", f"house:rate:{customer.id}") <= (WINDOW + 3) * 1000


# ---- several servers ---------------------------------------------------------------------------------

@pytest.mark.parametrize("budget, at_once", [(30, 1), (1000, 1), (3000, 8)])
def test_two_servers_together_admit_exactly_the_budget_under_load(cluster, budget, at_once):
    services, customer = cluster(f"{budget}/{WINDOW}")
    admitted = together(services, customer.key, budget, at_once=at_once)
    assert sum(admitted) == budget and min(admitted) > 0


def test_no_window_gets_more_than_the_budget_nor_much_less(cluster):
    services, customer = cluster("60/2")
    time.sleep(2 - time.time() % 2 + 0.05)
    windows = 3
    end = time.time() // 2 * 2 + 2 * windows
    admitted = sum(together(services, customer.key, 10**6, until=end - 0.1))
    assert 0.9 * 60 * windows <= admitted <= 60 * windows + 4  # the last request of each client may be late


def test_a_changed_limit_holds_on_every_server(cluster):
    services, customer = cluster(f"10/{WINDOW}")
    assert sum(together(services, customer.key, 20)) == 10
    services[0].run("customer", "set", customer.id, "--rate", f"50/{WINDOW}")
    for service in services:
        eventually(lambda: fields_of(service.get(SPORTS, key=customer.key))["limit"] == 50)
    more = sum(together(services, customer.key, 60))
    assert 10 + more <= 50 and more >= 36  # one or two were spent while we looked
    services[0].run("customer", "set", customer.id, "--rate", f"20/{WINDOW}")
    for service in services:
        eventually(lambda: fields_of(service.get(SPORTS, key=customer.key))["limit"] == 20)
    assert sum(together(services, customer.key, 30)) == 0


def test_the_stores_clock_decides_and_not_the_servers(cluster, tmp_path):
    slow, fast = Clock(tmp_path / "slow"), Clock(tmp_path / "fast")
    slow.advance(wall=-1500)
    fast.advance(wall=2000)
    services, customer = cluster(f"400/{WINDOW}", servers=3, environments=[{}, slow.environment, fast.environment])
    dates = [service.get(SPORTS).header("date") for service in services]
    assert len({date[17:19] + date[20:22] for date in dates}) == 3, dates  # they are wrong indeed
    for service in services:
        before = left_of_window()
        fields = fields_of(service.get(SPORTS, key=customer.key))
        assert left_of_window() <= fields["reset"] <= before + 1
    assert 3 + sum(together(services, customer.key, 400)) == 400


# ---- without the store -------------------------------------------------------------------------------

def test_without_the_store_each_server_limits_for_itself_and_at_once(cluster):
    services, customer = cluster(f"200/{WINDOW}", own_stores=True, timeout_ms=250)
    assert sum(together(services, customer.key, 25, clients=1)) == 50
    services[0].odds.server.kill()
    alone = together(services, customer.key, 400, clients=1)
    assert 150 <= sum(alone) and max(alone) <= 200 - 25
    for service in services:
        assert service.metrics()[ALONE] > 0
        assert any(line["message"].startswith("rate limits are kept by this server alone") for line in service.log_lines())


def test_the_budget_is_shared_again_when_the_store_is_back(cluster):
    services, customer = cluster(f"1000/{WINDOW}", own_stores=True, timeout_ms=250)
    key = customer.key
    admitted = sum(together(services, key, 100, clients=1))
    services[0].odds.server.kill()
    admitted += sum(together(services, key, 150, clients=1))
    assert admitted == 500  # far from any limit: no one was refused
    services[0].odds.server.start()
    for service in services:
        eventually(lambda: service.get("/api/v1/health").status == 200)
        alone = service.metrics()[ALONE]

        def shared():
            nonlocal alone, admitted
            admitted += service.get(SPORTS, key=key).status == 200
            alone, before = service.metrics()[ALONE], alone
            return alone == before

        eventually(shared, seconds=5, interval=0.1)
    # What was admitted without the store has been told to it, though it lost all it had.
    admitted += sum(together(services, key, 1000))
    assert 900 <= admitted <= 1100


def test_a_store_that_forgets_does_not_give_the_budget_back(cluster):
    services, customer = cluster(f"300/{WINDOW}", own_stores=True)
    # In turns, so that neither knows of less than the other by more than two leases (19 each).
    admitted = sum(service.get(SPORTS, key=customer.key).status == 200 for _ in range(50) for service in services)
    services[0].odds.call("FLUSHALL")
    admitted += sum(together(services, customer.key, 300))
    assert 285 <= admitted <= 300 + 40  # what the one that asked first did not know of


def test_a_frozen_store_delays_no_one_longer_than_its_deadline(cluster):
    services, customer = cluster(f"300/{WINDOW}", own_stores=True, timeout_ms=250)
    key = customer.key
    admitted = sum(together(services, key, 30, clients=1))
    services[0].odds.server.freeze()
    try:
        slowest = 0
        for _ in range(100):
            for service in services:
                watch = Stopwatch()
                admitted += service.get(SPORTS, key=key).status == 200
                slowest = max(slowest, watch.seconds())
        assert slowest < 0.25 + 0.25
    finally:
        services[0].odds.server.thaw()
    for service in services:
        eventually(lambda: service.get("/api/v1/health").status == 200)
    time.sleep(1)
    admitted += sum(together(services, key, 300))
    assert 240 <= admitted <= 2 * 300


def test_a_store_that_forgot_the_script_is_sent_it_again(cluster):
    (service,), customer = cluster(f"100/{WINDOW}", servers=1, own_stores=True)
    assert count_admitted(service, customer.key, 50) == 50
    service.odds.call("SCRIPT", "FLUSH")
    assert count_admitted(service, customer.key, 70) == 50
    assert service.metrics()[ALONE] == 0


def test_a_user_that_may_not_run_scripts_is_named_as_the_reason(cluster):
    (service,), customer = cluster(f"5/{WINDOW}", servers=1, own_stores=True)
    service.odds.call("ACL", "SETUSER", "default", "-eval", "-evalsha")
    assert count_admitted(service, customer.key, 10) == 5
    eventually(lambda: any(line["message"] == "the odds store does not lease rate limits"
                           and "NOPERM" in line["reason"] for line in service.log_lines()))
    service.odds.call("ACL", "SETUSER", "default", "+eval", "+evalsha")
    eventually(lambda: any(line["message"] == "rate limits are shared again" for line in service.log_lines())
               or service.get(SPORTS, key=customer.key) is None)


def test_a_few_commands_and_one_key_do(cluster):
    (service,), customer = cluster(f"5/{WINDOW}", servers=1, own_stores=True)
    service.odds.call("ACL", "SETUSER", "default", "resetkeys", "~rate:*", "-@all", "+evalsha", "+eval", "+time", "+get", "+set",
                      "+@connection", "+subscribe", "+role", "+info", "+acl")
    assert count_admitted(service, customer.key, 10) == 5
    assert service.metrics()[ALONE] == 0


def test_clients_that_go_away_while_they_wait_are_forgotten(cluster):
    (service,), customer = cluster(f"500/{WINDOW}", servers=1, own_stores=True, timeout_ms=250)
    service.odds.server.freeze()
    try:
        for _ in range(20):
            with Connection(service.address) as connection:
                connection.send(request(customer.key))
    finally:
        service.odds.server.thaw()
    eventually(lambda: service.get("/api/v1/health").status == 200)
    eventually(lambda: service.get(SPORTS, key=customer.key).status == 200)
    service.stop()


def test_something_else_under_the_name_of_a_budget_is_left_alone(cluster):
    (service,), customer = cluster(f"5/{WINDOW}", servers=1)
    service.odds.call("RPUSH", f"rate:{customer.id}", "x")
    assert count_admitted(service, customer.key, 10) == 5
    assert service.odds.call("LRANGE", f"rate:{customer.id}", 0, -1) == [b"x"]
    eventually(lambda: any("something else under its name" in line["message"] for line in service.log_lines()))


def test_a_server_stops_while_requests_wait(cluster):
    (service,), customer = cluster(f"500/{WINDOW}", servers=1, own_stores=True, timeout_ms=250)
    service.odds.server.freeze()
    try:
        with service.connect() as connection:
            connection.send(request(customer.key))
            service.signal(signal.SIGTERM)
            assert connection.receive().status in (200, 429)
        assert service.wait() == 0
    finally:
        service.odds.server.thaw()
