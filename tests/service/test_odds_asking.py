"""Odds from a Redis that reports no changes (docs/deployment.md, "Redis without tracking"): each request asks it."""

import concurrent.futures
import itertools
import json
import threading

import pytest

from croupier import eventually, row
from servers import WITHOUT_HELLO, WITHOUT_TRACKING, Redis

pytestmark = [pytest.mark.only("redis"), pytest.mark.depends_on("odds")]

EVENTS = "/api/v1/cricket/events"


@pytest.fixture
def redis(request):
    with Redis(settings=getattr(request, "param", WITHOUT_TRACKING)) as server:
        yield server


@pytest.fixture
def dealing(redis, make_service):
    """Two services on that Redis, with two events."""
    services = [make_service({"odds.store": redis.tcp_uri(), "odds.ask_ms": 20}) for _ in range(2)]
    services[0].publish("cricket", [row(1), row(2)], {1: [{"n": 0}], 2: [{"n": 0}]})
    for service in services:
        service.customer = service.add_customer()
        service.start()
        service.await_admission(service.customer.key)
    return services


def get(service, path=f"{EVENTS}/1", **headers):
    return service.get(path, key=service.customer.key, headers={name.replace("_", "-"): value for name, value in headers.items()})


def total(service, name):
    return service.metrics()[f"croupier_{name}_total"]


@pytest.mark.parametrize("redis", [WITHOUT_TRACKING, WITHOUT_HELLO], ids=["no tracking", "no HELLO"], indirect=True)
def test_the_next_request_has_what_was_published(redis, dealing):
    for number in range(1, 200):
        redis.call("SET", "odds:cricket:1", f'[{{"n":{number}}}]')
        for service in dealing:
            assert get(service).json()["odds"] == [{"n": number}]
    redis.call("SET", "catalog:cricket", '[{"gmid":2},{"gmid":1,"ename":"new"}]')
    assert [get(service).json()["event"]["ename"] for service in dealing] == ["new"] * 2
    redis.call("SET", "catalog:cricket", '[{"gmid":2}]')
    assert [get(service).status for service in dealing] == [404] * 2
    redis.call("UNLINK", "catalog:cricket")
    assert [get(service, EVENTS).status for service in dealing] == [503] * 2


def test_no_answer_is_older_than_its_request(redis, dealing):
    """What was stored before a request was sent is in its answer: many at once, at two services, beside a busy feed."""
    stored, ending = [0, 0], threading.Event()

    def feed():
        with redis.connect() as connection:
            for number in itertools.count(1):
                connection.call("SET", f"odds:cricket:{1 + number % 2}", f'[{{"n":{number}}}]')
                stored[number % 2] = number
                if ending.is_set():
                    return

    def poll(service):
        answers = 0
        with service.connect() as connection:
            while answers < 400:
                before = list(stored)
                for event in (1, 2) * 4:
                    connection.send(f"GET {EVENTS}/{event} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {service.customer.key}\r\n\r\n")
                for event in (1, 2) * 4:
                    assert connection.receive().json()["odds"][0]["n"] >= before[event - 1]
                    answers += 1
        return answers

    with concurrent.futures.ThreadPoolExecutor() as threads:
        writer = threads.submit(feed)
        try:
            polls = [threads.submit(poll, service) for service in dealing for _ in range(3)]
            assert sum(one.result() for one in polls) == 2400
        finally:
            ending.set()
        writer.result()


def test_what_has_not_changed_is_not_made_again(dealing):
    service = dealing[0]
    tag = get(service, Accept_Encoding="gzip").header("etag")
    eventually(lambda: get(service, Accept_Encoding="gzip").header("content-encoding") == "gzip")
    tag = get(service, Accept_Encoding="gzip").header("etag")
    before = [total(service, name) for name in ("ready_rebuilds", "gzip_rebuilds")]
    reads = total(service, "odds_reads")
    for _ in range(50):
        answer = get(service, Accept_Encoding="gzip", If_None_Match=tag)
        assert answer.status == 304 and answer.header("x-published-at")
    assert [total(service, name) for name in ("ready_rebuilds", "gzip_rebuilds")] == before
    assert total(service, "odds_reads") == reads + 50, "one read a request, and none of the catalog"


def test_a_waiting_poll_hears_of_a_change_and_of_an_end(redis, dealing):
    with dealing[0].connect() as one, dealing[1].connect() as two:
        for event, service, connection in ((1, dealing[0], one), (2, dealing[1], two)):
            connection.send(f"GET {EVENTS}/{event} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {service.customer.key}\r\nPrefer: wait=55\r\n"
                            f"If-None-Match: {get(service, f'{EVENTS}/{event}').header('etag')}\r\n\r\n")
            eventually(lambda service=service: service.metrics()["croupier_waiting_polls"] == 1)
        redis.call("SET", "odds:cricket:1", '[{"n":1}]')
        assert one.receive().json()["odds"] == [{"n": 1}]
        redis.call("PEXPIRE", "odds:cricket:2", "3000")  # long enough for a look of a busy machine to hear of it
        assert two.receive().status == 404
        eventually(lambda: dealing[1].metrics()['croupier_odds_expired_total{sport="cricket"}'] == 1)


def test_the_mode_is_named(redis, dealing):
    service = dealing[0]
    assert service.metrics()["croupier_odds_asking"] == 1
    assert '"mode":"asking"' in service.log_text() and "the odds store does not report changes" in service.log_text()
    assert "asking: the server reports no changes" in service.run("check").text
    checks = {one["check"]: one for one in json.loads(service.run("check", "--json").text)}
    assert checks["odds mode"]["ok"] and checks["odds mode"]["message"].startswith("asking")
    assert get(service, "/api/v1/health").status == 200
    with Redis() as other:
        service.configure({"odds.store": other.tcp_uri()})
        assert "tracking: the server reports changes" in service.run("check").text
