"""GET /api/v1/casino/games: who sees what, filters, pages, and how soon a change shows."""

import gzip
import json

import pytest

from croupier import eventually

pytestmark = pytest.mark.depends_on("platform")

PATH = "/api/v1/casino/games"
NAMES = [f"game-{number:02}" for number in range(12)]


def game(identity, **fields):
    return {"id": identity, "name": identity.title(), "provider": "acme", "category": "slots",
            "currencies": ["EUR"], "languages": ["en"], "devices": ["desktop"], **fields}


@pytest.fixture(scope="module")
def casino(shared):
    shared.prepare("provider", "add", "acme", "--name", "Acme Games", "--launch-url", "https://acme.example/",
                   "--secret", "-", input="0123456789abcdef0123456789abcdef")
    shared.prepare("game", "import", "-", input=json.dumps([game(name) for name in NAMES]))
    shared.player = shared.add_customer("Casino", options=("--casino",))
    shared.await_admission(shared.player.key)
    eventually(lambda: ids(shared) == NAMES)
    return shared


def ids(service, query="", key=None):
    response = service.get(PATH + query, key=key or service.player.key)
    return [each["id"] for each in response.json()["games"]] if response.status == 200 else response.status


def test_a_game_is_shown_with_all_its_members(casino):
    casino.run("game", "import", "-", input=json.dumps([game(
        "zz-full", features=["jackpot"], rtp_bps=9612, volatility="high", thumbnail_url="https://cdn.example/z.png",
        demo=True, category="table")]))
    eventually(lambda: ids(casino, "?category=table") == ["zz-full"])
    [shown] = casino.get(PATH + "?category=table", key=casino.player.key).json()["games"]
    assert shown == {
        "id": "zz-full", "name": "Zz-Full", "provider": {"id": "acme", "name": "Acme Games"}, "category": "table",
        "features": ["jackpot"], "rtp_bps": 9612, "volatility": "high", "thumbnail_url": "https://cdn.example/z.png",
        "demo": True, "currencies": ["EUR"], "languages": ["en"], "devices": ["desktop"],
        "updated_at": shown["updated_at"]}
    casino.run("game", "disable", "zz-full")
    eventually(lambda: ids(casino) == NAMES)


def test_pages_lead_through_all_games(casino):
    seen, cursor, pages = [], "", 0
    while True:
        page = casino.get(f"{PATH}?limit=5{cursor}", key=casino.player.key).json()
        seen += [each["id"] for each in page["games"]]
        pages += 1
        if page["next_cursor"] is None:
            break
        cursor = "&cursor=" + page["next_cursor"]
    assert seen == NAMES and pages == 3


def test_a_cursor_is_refused_with_other_filters_or_for_another_customer(casino):
    cursor = casino.get(PATH + "?limit=1", key=casino.player.key).json()["next_cursor"]
    assert ids(casino, f"?limit=1&cursor={cursor}") == NAMES[1:2]
    assert ids(casino, f"?limit=1&demo=false&cursor={cursor}") == 400
    other = casino.add_customer("Other", options=("--casino",))
    casino.await_admission(other.key)
    assert ids(casino, f"?limit=1&cursor={cursor}", key=other.key) == 400
    assert ids(casino, f"?limit=1&cursor={cursor}x") == 400


UNKNOWN = ("The request has an unknown parameter. It may have limit, cursor, provider, category, feature, device,"
           " currency, language, demo, q.")
LIMIT = "The parameter limit must be an integer from 1 to 200."
Q = "The parameter q must be 1 to 64 bytes without control characters."


@pytest.mark.parametrize("query, message", [
    ("?x=1", UNKNOWN), ("?&", UNKNOWN), ("?customer_id=1", UNKNOWN), ("?limit=0", LIMIT), ("?limit=201", LIMIT),
    ("?limit", LIMIT), ("?limit=1&limit=1", "A parameter is given twice."), ("?q=", Q), ("?q=%00", Q),
    ("?demo=yes", "The parameter demo must be true or false."),
    ("?provider=A", "The parameter provider must be the id of a provider."),
    ("?currency=eur", "The parameter currency must be three capital letters."),
    ("?cursor=x", "The parameter cursor must be a next_cursor of the same query.")])
def test_a_query_out_of_bounds_is_refused_by_name(casino, query, message):
    response = casino.get(PATH + query, key=casino.player.key)
    assert response.status == 400
    assert response.json() == {"error": "invalid_request", "message": message}


def test_polling_is_cheap(casino):
    plain = casino.get(PATH, key=casino.player.key)
    tag = plain.header("etag")
    again = casino.get(PATH, key=casino.player.key, headers={"If-None-Match": tag})
    assert again.status == 304 and again.body == b""
    zipped = casino.get(PATH, key=casino.player.key, headers={"Accept-Encoding": "gzip"})
    assert zipped.header("content-encoding") == "gzip" and zipped.header("etag") != tag
    assert gzip.decompress(zipped.body) == plain.body
    assert casino.get(PATH, key=casino.player.key, headers={"Accept-Encoding": "gzip",
                      "If-None-Match": zipped.header("etag")}).status == 304
    head = casino.request("HEAD", PATH, key=casino.player.key)
    assert head.status == 200 and head.body == b""


def test_a_change_shows_within_a_second(casino):
    casino.run("game", "disable", NAMES[0])
    eventually(lambda: ids(casino) == NAMES[1:], seconds=5)
    casino.run("game", "enable", NAMES[0])
    eventually(lambda: ids(casino) == NAMES, seconds=5)
    casino.run("provider", "disable", "acme")
    eventually(lambda: ids(casino) == [], seconds=5)
    casino.run("provider", "enable", "acme")
    eventually(lambda: ids(casino) == NAMES, seconds=5)
    casino.run("game", "allow", casino.player.id, NAMES[3], NAMES[1])
    eventually(lambda: ids(casino) == [NAMES[1], NAMES[3]], seconds=5)
    casino.run("game", "allow", casino.player.id, "all")
    eventually(lambda: ids(casino) == NAMES, seconds=5)


def test_the_casino_is_for_customers_that_may_use_it(casino):
    response = casino.get(PATH, key=casino.customer.key)
    assert response.error == (403, "casino_access_disabled")
    casino.run("ip", "add", "127.0.0.7")
    casino.await_admission(source="127.0.0.7")
    for path in (PATH, "/api/v1/casino/", "/api/v1/casino/nothing"):
        response = casino.get(path, source="127.0.0.7")
        assert response.error == (403, "ip_not_allowed"), path
    assert casino.get("/api/v1/casino/nothing", key=casino.player.key).status == 404
    response = casino.request("POST", PATH, key=casino.player.key, body=b"")
    assert response.status == 405 and response.header("allow") == "GET, HEAD"


def test_the_rate_limit_does_not_count_casino_requests(casino):
    limited = casino.add_customer("Limited", rate="1/3600", options=("--casino",))
    eventually(lambda: casino.get(PATH, key=limited.key).status == 200)
    for _ in range(5):
        response = casino.get(PATH, key=limited.key)
        assert response.status == 200 and response.header("x-ratelimit-limit") is None


@pytest.mark.long(5)
def test_without_the_key_of_secrets_the_sports_go_on(make_service):
    service = make_service()
    customer = service.add_customer(options=("--casino",))
    (service.directory / "secrets.key").unlink()
    service.start()
    service.await_admission(customer.key)
    assert service.get(PATH, key=customer.key).status == 503
    assert service.get("/api/v1/sports", key=customer.key).status == 200
    service.run("migrate")
    eventually(lambda: service.get(PATH, key=customer.key).status == 200)
