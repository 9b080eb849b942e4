"""Bytes of the embedded odds store that change under a running server: every answer is the right one, 502 or 503. Never
another event's odds, older ones, or a 404 for an event that has some."""

import os
import random

import pytest

from croupier import eventually, row
from servers import sampled

EVENTS = range(1, 41)
BARE = {4, 17, 33}  # in the catalog, without odds

pytestmark = pytest.mark.only("embedded")


def odds_of(event, turn):
    size = 4 if event % 5 else 60  # some on pages of their own
    return [{"marketId": f"{event}.{n}", "marketName": f"turn {turn} of {event}", "status": "OPEN"} for n in range(size)]


@pytest.fixture
def damaged(make_service):
    service = make_service()
    service.customer = service.add_customer()
    service.publish("cricket", [row(event) for event in EVENTS])
    for turn in (1, 2):
        service.publish_odds_of("cricket", {event: odds_of(event, turn) for event in EVENTS if event not in BARE})
        if turn == 1:
            service.older = data_of(service).read_bytes()
    service.start()
    service.await_admission(service.customer.key)
    return service


def data_of(service):
    return service.odds.path / "values" / "data.mdb"


def look(service, event):
    """The status of one event's answer, which is judged."""
    answer = service.get(f"/api/v1/cricket/events/{event}", key=service.customer.key)
    if answer.status == 200:
        assert answer.json()["odds"] == odds_of(event, 2) and event not in BARE
    elif answer.status == 404:
        assert event in BARE and answer.error == (404, "odds_not_found")
    else:
        assert answer.error in ((502, "malformed_upstream_data"), (503, "cache_unavailable")), answer.error
    return answer.status


def test_every_answer_is_right_or_refused_whatever_byte_changes(damaged):
    service, chance, seen = damaged, random.Random(5), set()
    path = data_of(service)
    with open(path, "r+b", buffering=0) as file:
        for number, at in enumerate(sampled(range(0, path.stat().st_size, path.stat().st_size // 120 | 1))):
            at += chance.randrange(997)
            whole = os.pread(file.fileno(), 1, at)
            if not whole:
                continue
            os.pwrite(file.fileno(), bytes([whole[0] ^ 0x81]), at)
            # The stamp moves, so that what is in memory is asked for again. The feed may refuse the file.
            service.run("feed", "odds", "tennis", number + 1, "-", input="[]", status=None)
            seen |= {look(service, event) for event in chance.sample(EVENTS, 6)}
            os.pwrite(file.fileno(), whole, at)
    assert 200 in seen


def test_an_older_file_in_its_place_is_refused(damaged):
    service = damaged
    assert {look(service, event) for event in EVENTS} == {200, 404}
    with open(data_of(service), "r+b", buffering=0) as file:
        os.pwrite(file.fileno(), service.older, 0)
    for event in EVENTS:
        assert look(service, event) == 503
    eventually(lambda: any("an older state of itself" in str(line.get("reason")) for line in service.log_lines()))
    assert look(service, 1) == 503 and service.get("/api/v1/health").status == 503
