"""One budget a client for the sports routes, in fixed windows aligned to the epoch."""

import concurrent.futures
import time

import pytest

from croupier import eventually, row

pytestmark = pytest.mark.depends_on("odds")

WINDOW = 86400
CLOCK_REALTIME_COARSE = 5  # of Linux: the clock that the service reads, up to a tick behind time.time()


@pytest.fixture(autouse=True)
def not_at_the_end_of_a_window():
    left = WINDOW - time.time() % WINDOW
    if left < 60:
        time.sleep(left + 0.1)


@pytest.fixture
def limited(shared):
    """Makes a customer with a budget of so many requests an hour."""
    shared.publish("cricket", [row(1)], {1: []})

    def make(requests, window=WINDOW, source=None, **options):
        customer = shared.add_customer("Limited", rate=f"{requests}/{window}", **options)
        shared.await_admission(customer.key, source=source)
        return customer

    return make


def rate_fields(response):
    return {name.lower(): int(value) for name, value in response.fields if name.lower().startswith("x-ratelimit")}


def test_requests_over_the_budget_are_refused_with_the_seconds_left(shared, limited):
    key = limited(3).key
    assert [shared.get("/api/v1/sports", key=key).status for _ in range(3)] == [200] * 3
    before = time.clock_gettime(CLOCK_REALTIME_COARSE)
    response = shared.get("/api/v1/sports", key=key)
    after = time.time()
    assert response.error == (429, "rate_limited")
    assert WINDOW - after % WINDOW <= int(response.header("retry-after")) <= WINDOW - before % WINDOW + 1


def test_sports_answers_tell_what_is_left(shared, limited):
    key = limited(3).key
    for remaining in (2, 1, 0, 0, 0):
        before = time.clock_gettime(CLOCK_REALTIME_COARSE)
        fields = rate_fields(shared.get("/api/v1/cricket/events", key=key))
        assert set(fields) == {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}
        assert fields["x-ratelimit-limit"] == 3 and fields["x-ratelimit-remaining"] == remaining
        assert WINDOW - time.time() % WINDOW <= fields["x-ratelimit-reset"] <= WINDOW - before % WINDOW + 1


def test_all_sports_routes_share_one_budget(shared, limited):
    key = limited(3).key
    for path in ("/api/v1/sports", "/api/v1/cricket/events", "/api/v1/cricket/events/1"):
        assert shared.get(path, key=key).status == 200
    for path in ("/api/v1/sports", "/api/v1/cricket/events", "/api/v1/cricket/events/1"):
        assert shared.get(path, key=key).error == (429, "rate_limited")


@pytest.mark.parametrize("method, path, status", [
    ("GET", "/api/v1/rugby/events", 400), ("GET", "/api/v1/cricket/events/abc", 400),
    ("GET", "/api/v1/cricket/events/99", 404), ("GET", "/api/v1/football/events", 503),
    ("DELETE", "/api/v1/sports", 405), ("POST", "/api/v1/cricket/events", 405),
    ("HEAD", "/api/v1/sports", 200), ("GET", "/api/v1/sports?x=1", 200), ("GET", "/api/v1/%73ports", 200)])
def test_a_sports_path_counts_whatever_its_outcome(shared, limited, method, path, status):
    key = limited(2).key
    for expected in (status, status, 429):
        response = shared.request(method, path, key=key, body=b"" if method == "POST" else None)
        assert response.status == expected
        assert rate_fields(response)["x-ratelimit-limit"] == 2


def test_the_limit_comes_before_method_and_path_parameters(shared, limited):
    key = limited(1, sports="tennis").key
    assert shared.get("/api/v1/sports", key=key).status == 200
    for method, path in [("DELETE", "/api/v1/sports"), ("GET", "/api/v1/rugby/events"),
                         ("GET", "/api/v1/cricket/events/abc"), ("GET", "/api/v1/cricket/events")]:
        assert shared.request(method, path, key=key).error == (429, "rate_limited")


@pytest.mark.parametrize("path", ["/api/v1/health", "/api/v1/nothing", "/", "/api/v1/cricket/events/1/odds",
                                  "/api/v1/casino/games", "/api/v1/casino/wallet", "/api/v1/casino/events",
                                  "/api/v1/casino/games/events", "/api/v1/sports/"])
def test_other_paths_neither_count_nor_are_limited(shared, limited, path):
    key = limited(1).key
    for _ in range(3):
        response = shared.get(path, key=key)
        assert response.status != 429 and not rate_fields(response)
    assert shared.get("/api/v1/sports", key=key).status == 200
    assert shared.get("/api/v1/sports", key=key).status == 429
    assert shared.get(path, key=key).status != 429


def test_not_modified_counts(shared, limited):
    key = limited(3).key
    tag = shared.get("/api/v1/cricket/events", key=key).header("etag")
    response = shared.get("/api/v1/cricket/events", key=key, headers={"If-None-Match": tag})
    assert response.status == 304 and rate_fields(response)["x-ratelimit-remaining"] == 1
    assert shared.get("/api/v1/cricket/events", key=key, headers={"If-None-Match": tag}).status == 304
    assert shared.get("/api/v1/cricket/events", key=key, headers={"If-None-Match": tag}).status == 429


def test_all_keys_and_addresses_of_a_customer_share_its_budget(shared, limited):
    customer = limited(4)
    second = shared.issue_key(customer.id)
    shared.await_admission(second)
    for key, source in [(customer.key, None), (second, None), (customer.key, "127.0.7.1"), (second, "127.0.7.2")]:
        assert shared.get("/api/v1/sports", key=key, source=source).status == 200
    for key, source in [(customer.key, None), (second, "127.0.7.3")]:
        assert shared.get("/api/v1/sports", key=key, source=source).status == 429


def test_customers_do_not_share(shared, limited):
    first, second = limited(1), limited(1)
    assert shared.get("/api/v1/sports", key=first.key).status == 200
    assert shared.get("/api/v1/sports", key=first.key).status == 429
    assert shared.get("/api/v1/sports", key=second.key).status == 200


def test_a_legacy_address_has_a_budget_of_its_own(shared):
    shared.run("ip", "add", "127.0.8.1", "--rate", f"2/{WINDOW}")
    shared.run("ip", "add", "127.0.8.2", "--rate", f"2/{WINDOW}")
    shared.await_admission(source="127.0.8.2")
    assert [shared.get("/api/v1/sports", source="127.0.8.1").status for _ in range(3)] == [200, 200, 429]
    assert shared.get("/api/v1/sports", source="127.0.8.2").status == 200


def test_who_is_not_admitted_spends_nothing(shared, limited):
    customer = limited(2, source="127.0.9.1", cidrs=["127.0.9.0/24"])
    for _ in range(5):
        assert shared.get("/api/v1/sports", key=customer.key).status == 403
    assert [shared.get("/api/v1/sports", key=customer.key, source="127.0.9.1").status for _ in range(3)] == [200, 200, 429]


def test_a_client_without_a_limit_is_told_of_none(shared):
    response = shared.get("/api/v1/sports", key=shared.customer.key)
    assert response.status == 200 and not rate_fields(response)


def test_no_more_than_the_budget_is_admitted_at_once(shared, limited):
    key = limited(25).key

    def client(_):
        with shared.connect() as connection:
            statuses = []
            for _ in range(10):
                connection.send(f"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\n\r\n")
                statuses.append(connection.receive().status)
            return statuses

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        statuses = [status for statuses in pool.map(client, range(8)) for status in statuses]
    assert sorted(set(statuses)) == [200, 429] and statuses.count(200) == 25


def test_a_new_window_brings_a_new_budget_though_refused_requests_counted(shared, limited):
    key = limited(2, window=2).key
    time.sleep(2 - time.time() % 2 + 0.05)
    statuses = [shared.get("/api/v1/sports", key=key).status for _ in range(6)]
    if 200 not in statuses[2:]:  # a slow machine may cross into the next window
        assert statuses == [200, 200, 429, 429, 429, 429]
    refused = eventually(lambda: [r for r in [shared.get("/api/v1/sports", key=key)] if r.status == 429])[0]
    assert refused.header("retry-after") in ("1", "2")
    time.sleep(int(refused.header("retry-after")) + 0.05)
    assert shared.get("/api/v1/sports", key=key).status == 200


def test_a_changed_limit_holds_for_the_next_requests(shared, limited):
    customer = limited(1)
    assert shared.get("/api/v1/sports", key=customer.key).status == 200
    assert shared.get("/api/v1/sports", key=customer.key).status == 429
    shared.run("customer", "set", customer.id, "--rate", f"1000/{WINDOW}")
    eventually(lambda: shared.get("/api/v1/sports", key=customer.key).status == 200)
