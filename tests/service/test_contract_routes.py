"""Every route: what it answers, what it refuses and in which words, and which request is which route."""

import json
import re

import pytest

from croupier import NOT_ALLOWED, SPORT_KEYS, SPORTS, match_odds, row

pytestmark = pytest.mark.depends_on("odds")

UNSUPPORTED = ("Unsupported sport. Supported sports: "
               "cricket, football, tennis, horse-racing, greyhound-racing")


@pytest.fixture(scope="module", autouse=True)
def published(shared):
    shared.publish("cricket", [row(34000001, ename="India v Australia"), row(34000002)], {34000001: match_odds()})
    shared.publish("football", [row(35000001)], {35000001: []})
    shared.publish("tennis", [])
    shared.put("greyhound-racing", None, b"[{")


def get(shared, path, **options):
    return shared.get(path, key=shared.customer.key, **options)


# ---- what is there ------------------------------------------------------------------------------------

def test_health_is_ok_when_both_stores_answer(shared):
    response = shared.get("/api/v1/health")
    assert (response.status, response.json()) == (200, {"status": "ok", "cache": "ok"})


def test_health_needs_neither_key_nor_admission(shared):
    for headers in ({}, {"X-Api-Key": "wrong"}, {"X-Forwarded-For": "nonsense"}):
        assert shared.get("/api/v1/health", headers=headers, source="127.0.0.9").status == 200


def test_sports_come_in_canonical_order_with_key_and_name_alone(shared):
    response = get(shared, "/api/v1/sports")
    assert response.status == 200
    assert response.json() == {"sports": [{"key": key, "name": name} for key, name in SPORTS]}


def test_a_catalog_is_an_array_of_its_events(shared):
    response = get(shared, "/api/v1/cricket/events")
    assert response.status == 200
    assert [event["gmid"] for event in response.json()] == [34000001, 34000002]


def test_a_published_catalog_without_rows_is_an_empty_array(shared):
    response = get(shared, "/api/v1/tennis/events")
    assert (response.status, response.json()) == (200, [])


def test_a_catalog_never_published_is_503_and_not_an_empty_array(shared):
    response = get(shared, "/api/v1/horse-racing/events")
    assert response.error == (503, "catalog_unavailable")
    assert get(shared, "/api/v1/horse-racing/events/1").error == (503, "catalog_unavailable")


def test_an_unreadable_catalog_is_502_for_the_list_and_for_every_event(shared):
    assert get(shared, "/api/v1/greyhound-racing/events").error == (502, "malformed_upstream_data")
    assert get(shared, "/api/v1/greyhound-racing/events/1").error == (502, "malformed_upstream_data")


def test_one_event_has_sport_id_event_and_odds_in_that_order(shared):
    response = get(shared, "/api/v1/cricket/events/34000001")
    assert response.status == 200
    document = response.json()
    assert list(document) == ["sport", "event_id", "event", "odds"]
    assert document["sport"] == "cricket"
    assert document["event_id"] == document["event"]["gmid"] == 34000001
    assert document["event"]["ename"] == "India v Australia"
    assert [market["marketId"] for market in document["odds"]] == ["1.234"]


def test_an_event_without_markets_has_empty_odds(shared):
    document = get(shared, "/api/v1/football/events/35000001").json()
    assert document["odds"] == []


def test_an_event_whose_odds_were_never_stored_is_odds_not_found(shared):
    assert get(shared, "/api/v1/cricket/events/34000002").error == (404, "odds_not_found")


def test_an_event_that_is_not_in_that_sports_catalog_is_not_found(shared):
    for path in ("/api/v1/cricket/events/99", "/api/v1/football/events/34000001", "/api/v1/tennis/events/34000001"):
        response = get(shared, path)
        assert (response.status, response.json()) == (404, {"error": "event_not_found", "message": "Event not found"})


# ---- path parameters ----------------------------------------------------------------------------------

@pytest.mark.parametrize("sport", ["Cricket", "CRICKET", "rugby", "4", "horse_racing", "horseracing", "cricket%20",
                                   "%00", "sports", "health", "..%2fcricket", "cricket,football", "c", "x" * 500])
def test_an_unknown_sport_is_refused_with_the_list_of_sports(shared, sport):
    for path in (f"/api/v1/{sport}/events", f"/api/v1/{sport}/events/34000001", f"/api/v1/{sport}/events/abc"):
        response = get(shared, path)
        assert (response.status, response.json()) == (400, {"error": "invalid_sport", "message": UNSUPPORTED})


@pytest.mark.parametrize("event", ["0", "00", "00000000000000000000", "-1", "+1", "1.0", "1e3", "abc", "0x10", "1a",
                                   "%201", "1%20", "123456789012345678901", "000000000000000000001", "%D9%A1", "null",
                                   "1" * 300, "34000001;x", "34000001,34000002"])
def test_an_event_id_that_is_not_a_positive_integer_of_at_most_20_digits_is_refused(shared, event):
    assert get(shared, f"/api/v1/cricket/events/{event}").error == (400, "invalid_event_id")


@pytest.mark.parametrize("event", ["1", "99999999999999999999", "18446744073709551616", "00000000000000000099"])
def test_a_proper_event_id_is_looked_up(shared, event):
    assert get(shared, f"/api/v1/cricket/events/{event}").error == (404, "event_not_found")


def test_leading_zeros_do_not_change_an_event_id(shared):
    assert get(shared, "/api/v1/cricket/events/00034000001").json()["event_id"] == 34000001


# ---- which path is which ------------------------------------------------------------------------------

@pytest.mark.parametrize("path", [
    "/", "/api", "/api/", "/api/v1", "/api/v1/", "/api/v2/sports", "/api/v1/sports/", "//api/v1/sports",
    "/api//v1/sports", "/api/v1//sports", "/API/v1/sports", "/api/V1/sports", "/api/v1/Sports", "/api/v1/health/",
    "/api/v1/Health", "/api/v1/cricket", "/api/v1/cricket/", "/api/v1/cricket/events/", "/api/v1/cricket/Events",
    "/api/v1/cricket/events/34000001/", "/api/v1/cricket/events/34000001/odds", "/api/v1//events",
    "/api/v1/cricket//events", "/api/v1/cricket/events//34000001", "/sports", "/metrics", "/health", "/favicon.ico",
    "/api/v1/./sports", "/api/v1/../v1/sports", "/api/v1/sports%2F", "/api/v1%2Fsports", "/api/v1/sports;x=1",
    "/api/v1/sports%00", "/api/v1/cricket%2Fevents", "/%2e%2e/%2e%2e/etc/passwd", "/api/v1/nothing"])
def test_any_other_path_is_not_found(shared, path):
    assert get(shared, path).error == (404, "not_found")


@pytest.mark.parametrize("path", [
    "/api/v1/%73ports", "/%61pi/%76%31/sp%6Frts", "/api/v1/spor%74s", "/api/v1/spor%74%73?x=1"])
def test_percent_encoding_of_unreserved_characters_is_equivalent(shared, path):
    assert get(shared, path).status == 200


def test_percent_encoding_works_in_sport_and_event(shared):
    assert get(shared, "/api/v1/c%72icket/%65vents/3400000%31").json()["event_id"] == 34000001
    assert get(shared, "/api/v1/horse%2Dracing/events").error == (503, "catalog_unavailable")


@pytest.mark.parametrize("query", ["?", "?x=1", "?limit=5&limit=6", "?%7a%7A", "?sport=tennis", "?a/b?c", "?" + "q" * 4000])
def test_query_parameters_on_sports_routes_are_ignored(shared, query):
    plain = get(shared, "/api/v1/cricket/events")
    assert get(shared, "/api/v1/cricket/events" + query).body == plain.body


def test_a_body_on_a_get_is_ignored(shared):
    with shared.connect() as connection:
        for _ in range(2):
            connection.send(f"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\nX-Api-Key: {shared.customer.key}\r\n"
                            "Content-Length: 5\r\n\r\nhello")
            assert connection.receive().status == 200


# ---- methods ------------------------------------------------------------------------------------------

KNOWN_PATHS = ["/api/v1/health", "/api/v1/sports", "/api/v1/cricket/events", "/api/v1/cricket/events/34000001"]


@pytest.mark.parametrize("path", KNOWN_PATHS)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_another_method_on_a_known_path_is_405_with_allow(shared, path, method):
    response = shared.request(method, path, key=shared.customer.key, body=b"" if method in ("POST", "PUT") else None)
    assert response.error == (405, "method_not_allowed")
    assert re.split(r"\s*,\s*", response.header("allow")) == ["GET", "HEAD"]


def test_another_method_on_an_unknown_path_is_not_found(shared):
    assert shared.request("POST", "/api/v1/nothing", key=shared.customer.key, body=b"{}").error == (404, "not_found")


def test_method_comes_before_path_parameters(shared):
    key = shared.customer.key
    assert shared.request("DELETE", "/api/v1/rugby/events", key=key).error == (405, "method_not_allowed")
    assert shared.request("DELETE", "/api/v1/cricket/events/abc", key=key).error == (405, "method_not_allowed")


@pytest.mark.parametrize("path", KNOWN_PATHS + ["/api/v1/nothing", "/api/v1/rugby/events", "/api/v1/cricket/events/99"])
def test_head_is_get_without_the_body(shared, path):
    for key in (shared.customer.key, None):
        get_answer = shared.get(path, key=key)
        head_answer = shared.request("HEAD", path, key=key)
        assert head_answer.status == get_answer.status
        assert head_answer.body == b""
        for name in ("content-length", "content-type", "etag", "vary", "cache-control"):
            assert head_answer.header(name) == get_answer.header(name)
        assert get_answer.header("content-length") == str(len(get_answer.body))


def test_no_cross_origin_fields(shared):
    response = get(shared, "/api/v1/sports", headers={"Origin": "https://example.org"})
    assert not [name for name, _ in response.fields if name.lower().startswith("access-control")]


# ---- what every answer carries ------------------------------------------------------------------------

EVERY_ANSWER = KNOWN_PATHS + ["/api/v1/rugby/events", "/api/v1/cricket/events/x", "/api/v1/cricket/events/99",
                              "/api/v1/cricket/events/34000002", "/api/v1/horse-racing/events", "/nothing",
                              "/api/v1/greyhound-racing/events"]


@pytest.mark.parametrize("path", EVERY_ANSWER)
@pytest.mark.parametrize("with_key", [True, False])
def test_every_answer_is_json_is_not_sniffed_and_has_an_id(shared, path, with_key):
    response = shared.get(path, key=shared.customer.key if with_key else None)
    assert re.fullmatch(r"application/json(; ?charset=utf-8)?", response.header("content-type"), re.IGNORECASE)
    assert response.header("x-content-type-options") == "nosniff"
    assert re.fullmatch(r"[A-Za-z0-9_-]{8,64}", response.header("x-request-id"))
    assert response.header("date")
    assert response.header("content-length") == str(len(response.body))
    json.loads(response.body.decode("utf-8"))


def test_the_request_id_is_the_servers_own_and_new_each_time(shared):
    ids = {get(shared, "/api/v1/sports", headers={"X-Request-Id": "mine"}).header("x-request-id") for _ in range(20)}
    assert len(ids) == 20 and "mine" not in ids


def test_nothing_of_a_request_is_echoed(shared):
    mark = "zqxjkvb"
    for path in (f"/{mark}", f"/api/v1/{mark}/events", f"/api/v1/cricket/events/{mark}", f"/api/v1/sports?{mark}"):
        for key in (shared.customer.key, mark):
            response = shared.get(path, key=key, headers={"X-Whatever": mark, "X-Request-Id": mark, "Origin": mark})
            assert mark.encode() not in response.body
            assert not [field for field in response.fields if mark in field[1]]


def test_errors_and_health_are_not_to_be_stored(shared):
    for path in ("/api/v1/health", "/api/v1/rugby/events", "/nothing", "/api/v1/cricket/events/99"):
        assert "no-store" in get(shared, path).header("cache-control")


def test_the_operators_paths_are_not_on_the_public_listener(shared):
    response = shared.get("/metrics")
    assert (response.status, response.json()) == NOT_ALLOWED
    assert get(shared, "/metrics").error == (404, "not_found")


def test_the_keys_of_the_sports_are_the_five(shared):
    for sport in SPORT_KEYS:
        assert get(shared, f"/api/v1/{sport}/events").status in (200, 502, 503)
