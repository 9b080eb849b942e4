"""How old an answer is: X-Published-At, and what the operator sees of it. Nothing that a client has to know."""

import datetime
import time

import pytest

from croupier import eventually, row

pytestmark = pytest.mark.depends_on("odds")

EVENTS = "/api/v1/cricket/events"
EVENT = f"{EVENTS}/1"


def get(service, path, **headers):
    return service.get(path, key=service.customer.key, headers={name.replace("_", "-"): value for name, value in headers.items()})


def published(service, path):
    answer = get(service, path)
    text = answer.header("x-published-at")
    assert answer.status == 200 and len(text) == 24 and text.endswith("Z")
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.fixture
def dealing(make_service):
    service = make_service({"odds.stale_after_s": 1})
    service.publish("cricket", [row(1)], {1: [{"n": 0}]})
    service.customer = service.add_customer()
    service.start()
    service.await_admission(service.customer.key)
    eventually(lambda: get(service, EVENT).status == 200)
    return service


def test_an_answer_says_when_it_was_published(dealing):
    for path, publish in ((EVENTS, lambda: dealing.publish("cricket", [row(1)])),
                          (EVENT, lambda: dealing.publish_odds("cricket", 1, [{"n": 0}]))):
        first = published(dealing, path)
        assert abs(time.time() - first) < 60
        tag = get(dealing, path).header("etag")
        publish()  # the same bytes: the tag stays, and the time moves
        eventually(lambda: published(dealing, path) > first)
        answer = get(dealing, path, If_None_Match=tag)
        assert answer.status == 304 and len(answer.all("x-published-at")) == 1
        assert published(dealing, path) <= time.time() + 1
    assert get(dealing, "/api/v1/sports").header("x-published-at") is None
    assert get(dealing, f"{EVENTS}/2").header("x-published-at") is None


def test_frozen_odds_beside_a_living_catalog_are_seen(dealing):
    def ages():
        assert get(dealing, EVENTS).status == get(dealing, EVENT).status == 200
        metrics = dealing.metrics()
        return [metrics[f'croupier_{name}{{sport="cricket"}}'] for name in ("catalog_age_seconds", "odds_age_seconds", "odds_stale_events")]

    eventually(lambda: ages()[2] == 1)
    eventually(lambda: "odds are stale" in dealing.log_text())
    dealing.publish("cricket", [row(1)])
    catalog, odds, stale = ages()
    assert catalog < odds and odds > 1 and stale == 1
    eventually(lambda: dealing.publish_odds("cricket", 1, [{"n": 1}]) or ages()[2] == 0)
    eventually(lambda: "odds are not stale any more" in dealing.log_text())
