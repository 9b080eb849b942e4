"""POST /api/v1/casino/games/{gameId}/launch: the answer, the token, and every refusal."""

import base64
import gzip
import hashlib
import hmac
import json
import threading
import time
from urllib.parse import parse_qs, urlsplit

import pytest

from croupier import eventually
from wallet_model import as_providers_read

pytestmark = pytest.mark.depends_on("platform")

SECRET = "0123456789abcdef0123456789abcdef"
REAL = {"mode": "real", "player_reference": "player-1", "currency": "EUR"}
GAMES = [
    {"id": "book", "name": "Book", "provider": "acme", "category": "slots", "demo": True, "currencies": ["EUR", "JPY"],
     "languages": ["en", "de"], "devices": ["desktop"]},
    {"id": "cash-only", "name": "Cash", "provider": "acme", "category": "slots", "currencies": ["EUR", "ANG", "XCG", "XAD"]},
    {"id": "sand-book", "name": "Sand", "provider": "sand", "category": "slots", "demo": True, "currencies": ["EUR"]},
]


@pytest.fixture(scope="module")
def casino(shared):
    shared.prepare("provider", "add", "acme", "--name", "Acme", "--launch-url", "https://acme.example/play?brand=7",
                   "--return-url", "https://back.example/", "--audience", "acme-prod", "--secret", "-", input=SECRET)
    shared.prepare("provider", "add", "sand", "--name", "Sand", "--launch-url", "https://sand.example/", "--secret", "-",
                   input="sand" * 10)
    shared.prepare("game", "import", "-", input=json.dumps(GAMES))
    shared.player = shared.add_customer("Casino", options=("--casino",))
    shared.await_admission(shared.player.key)
    eventually(lambda: launch(shared, {"mode": "demo"}).status == 200)
    return shared


def launch(service, body, game="book", key=None, headers=()):
    fields = {"Content-Type": "application/json", **dict(headers)}
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return service.request("POST", f"/api/v1/casino/games/{game}/launch", key=key or service.player.key,
                           headers=fields, body=body)


def claims_of(url, secret=SECRET):
    [token] = parse_qs(urlsplit(url).query)["token"]
    header, claims, signature = token.split(".")
    expected = hmac.new(secret.encode(), f"{header}.{claims}".encode(), hashlib.sha256).digest()
    assert base64.urlsafe_b64encode(expected).rstrip(b"=").decode() == signature
    decoded = [json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in (header, claims)]
    assert decoded[0] == {"alg": "HS256", "typ": "JWT"}
    return decoded[1]


def kept(service, launch_id):
    return service.platform.execute("SELECT customer_id, coalesce(player_id, '-'), provider_id, subject, game_id"
                                    f" FROM launch WHERE id = '{launch_id}'")


def test_every_launch_is_kept_before_it_is_answered(casino):
    real, demo = launch(casino, REAL).json(), launch(casino, {"mode": "demo"}, "sand-book").json()
    assert kept(casino, real["launch_id"]) == [
        (casino.player.id, real["player_id"], "acme", claims_of(real["launch_url"])["sub"], "book")]
    assert kept(casino, demo["launch_id"]) == [
        (casino.player.id, "-", "sand", claims_of(demo["launch_url"], "sand" * 10)["sub"], "sand-book")]
    for change in ("UPDATE launch SET created_ms = 0", "DELETE FROM launch"):
        with pytest.raises(Exception, match="a launch is never"):
            casino.platform.execute(change)


def test_launches_that_come_at_once_are_all_kept(casino):
    bodies = [dict(REAL, player_reference=f"at-once-{i % 20}") if i % 2 else {"mode": "demo"} for i in range(60)]
    answers = []
    threads = [threading.Thread(target=lambda part: answers.extend(launch(casino, body) for body in part), args=(bodies[i::6],))
               for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [200] * 60
    ids = {answer.json()["launch_id"] for answer in answers}
    wanted = ", ".join(f"'{launch_id}'" for launch_id in ids)
    assert len(ids) == 60
    assert len(casino.platform.execute(f"SELECT id FROM launch WHERE id IN ({wanted})")) == 60


def test_a_launch_for_money(casino):
    answer = launch(casino, dict(REAL, language="de", device="desktop"))
    assert answer.status == 200
    assert answer.header("cache-control") == "no-store"
    body = answer.json()
    assert list(body) == ["launch_url", "launch_id", "player_id", "game_id", "mode", "currency", "currency_exponent",
                          "expires_at"]
    assert body["player_id"].startswith("ply_") and body["launch_id"].startswith("lau_")
    assert (body["game_id"], body["mode"], body["currency"], body["currency_exponent"]) == ("book", "real", "EUR", 2)
    assert body["launch_url"].startswith("https://acme.example/play?brand=7&token=")
    claims = claims_of(body["launch_url"])
    assert abs(claims["iat"] - time.time()) < 60 and claims["exp"] == claims["iat"] + 300
    assert body["expires_at"] == time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(claims["exp"]))
    assert {name: claims[name] for name in claims if name not in ("iat", "exp", "sub")} == {
        "iss": "croupier", "aud": "acme-prod", "jti": body["launch_id"], "game": "book", "mode": "real",
        "currency": "EUR", "language": "de", "device": "desktop", "return_url": "https://back.example/"}
    assert claims["sub"] and body["player_id"] not in body["launch_url"]
    assert "player-1" not in json.dumps(claims) and casino.player.id not in json.dumps(claims)


def test_the_provider_learns_where_the_player_is(casino):
    for given, sent in (("203.0.113.7", "203.0.113.7"), ("2001:DB8:0::1", "2001:db8::1"), ("::ffff:192.0.2.1", "192.0.2.1")):
        claims = claims_of(launch(casino, dict(REAL, country="DE", player_ip=given)).json()["launch_url"])
        assert (claims["country"], claims["ip"]) == ("DE", sent)
        as_providers_read("LaunchClaims", claims)
    claims = claims_of(launch(casino, {"mode": "demo", "country": "XK"}).json()["launch_url"])
    assert claims["country"] == "XK" and "ip" not in claims
    as_providers_read("LaunchClaims", claims)


@pytest.mark.parametrize("member, value", [
    ("country", "de"), ("country", "UK"), ("country", "DEU"), ("country", ""), ("country", None), ("country", 1),
    ("player_ip", "203.0.113"), ("player_ip", "203.0.113.7:80"), ("player_ip", ""), ("player_ip", None), ("player_ip", "x" * 60)])
def test_where_the_player_is_must_be_a_country_and_an_address(casino, member, value):
    answer = launch(casino, dict(REAL, **{member: value}))
    assert answer.error == (400, "invalid_request")
    assert answer.json()["message"].startswith(f"The field {member} must be ")


def test_a_game_is_not_offered_where_it_or_its_provider_must_not_be(casino):
    def settled(expected, *arguments):
        casino.run(*arguments)
        eventually(lambda: launch(casino, dict(REAL, country="US")).status == expected)

    settled(422, "game", "set", "book", "--blocked-country", "US", "--blocked-country", "GB")
    assert launch(casino, dict(REAL, country="GB")).error == (422, "country_not_supported")
    assert launch(casino, {"mode": "demo", "country": "GB"}).error == (422, "country_not_supported")
    assert launch(casino, dict(REAL, country="DE")).status == 200
    assert launch(casino, {"mode": "demo"}).status == 200
    answer = launch(casino, REAL)
    assert answer.error == (400, "invalid_request") and answer.json()["message"] == "The field country is missing."
    assert launch(casino, REAL, game="sand-book").status == 200  # another provider's
    settled(200, "game", "set", "book", "--no-blocked-countries")
    settled(422, "provider", "set", "acme", "--blocked-country", "US")
    assert launch(casino, REAL).error == (400, "invalid_request")
    assert launch(casino, dict(REAL, country="GB")).status == 200
    settled(200, "provider", "set", "acme", "--no-blocked-countries")
    assert launch(casino, REAL).status == 200


def test_a_demo_launch_has_no_player(casino):
    body = launch(casino, {"mode": "demo"}).json()
    assert (body["player_id"], body["currency"], body["currency_exponent"]) == (None, None, None)
    claims = claims_of(body["launch_url"])
    assert claims["mode"] == "demo" and "currency" not in claims
    assert claims_of(launch(casino, {"mode": "demo"}).json()["launch_url"])["sub"] != claims["sub"]


def test_one_reference_and_currency_is_one_player_whatever_the_game_and_however_many_ask_at_once(casino):
    answers = []

    def ask():
        answers.append(launch(casino, dict(REAL, player_reference="many")).json())

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({each["player_id"] for each in answers}) == 1
    assert len({each["launch_id"] for each in answers}) == 16
    [player] = {each["player_id"] for each in answers}
    yen = launch(casino, dict(REAL, player_reference="many", currency="JPY")).json()
    assert yen["player_id"] != player and yen["currency_exponent"] == 0
    elsewhere = launch(casino, dict(REAL, player_reference="many"), game="sand-book").json()
    assert elsewhere["player_id"] == player
    subject = claims_of(answers[0]["launch_url"])["sub"]
    assert claims_of(answers[1]["launch_url"])["sub"] == subject
    assert claims_of(elsewhere["launch_url"], "sand" * 10)["sub"] != subject


@pytest.mark.parametrize("body, game, expected", [
    (b"", "book", (400, "invalid_request")),
    (b"[]", "book", (400, "invalid_request")),
    (b'{"mode":"demo","mode":"demo"}', "book", (400, "invalid_request")),
    ({"mode": "demo", "customer_id": "x"}, "book", (400, "unknown_field")),
    ({"mode": "demo", "currency": "EUR"}, "book", (400, "invalid_request")),
    ({"mode": "real"}, "book", (400, "invalid_request")),
    (dict(REAL, player_reference="a b"), "book", (400, "invalid_request")),
    (dict(REAL, currency="eur"), "book", (400, "invalid_request")),
    ({"mode": "demo"}, "nothing", (404, "game_not_found")),
    ({"mode": "demo"}, "BOOK", (404, "game_not_found")),
    ({"mode": "demo"}, "cash-only", (422, "mode_not_supported")),
    (dict(REAL, currency="SEK"), "book", (422, "currency_not_supported")),
    (dict(REAL, currency="ANG"), "cash-only", (422, "currency_not_supported")),  # withdrawn, and the player would be new
    (dict(REAL, language="fr"), "book", (422, "language_not_supported")),
    (dict(REAL, device="watch"), "book", (422, "device_not_supported")),
    ({"mode": 1}, "nothing", (400, "invalid_request")),
])
def test_what_cannot_be_launched_is_refused(casino, body, game, expected):
    assert launch(casino, body, game).error == expected


@pytest.mark.parametrize("currency", ["XCG", "XAD"])
def test_a_new_currency_of_iso_4217_has_its_players(casino, currency):
    answer = launch(casino, dict(REAL, currency=currency), "cash-only").json()
    assert (answer["currency"], answer["currency_exponent"]) == (currency, 2)


def test_another_content_type_or_too_much_is_refused(casino):
    assert launch(casino, {"mode": "demo"}, headers={"Content-Type": "text/plain"}).error == (400, "invalid_request")
    assert launch(casino, b" " * 16385).error == (413, "payload_too_large")


def test_an_encoded_body_is_415(casino):
    for value in ("gzip", "identity, br", "deflate"):
        response = launch(casino, gzip.compress(b'{"mode": "demo"}'), headers={"Content-Encoding": value})
        assert response.error == (415, "unsupported_media_type") and response.header("Accept-Encoding") == "identity"
    assert launch(casino, {"mode": "demo"}, headers={"Content-Encoding": "identity"}).status == 200
    response = launch(casino, {"mode": "demo"}, key="crk_unknown", headers={"Content-Encoding": "gzip"})
    assert response.error == (403, "ip_not_allowed")


def test_a_hidden_game_is_not_launched(casino):
    casino.run("game", "disable", "book")
    eventually(lambda: launch(casino, {"mode": "demo"}).status == 404)
    assert launch(casino, REAL).error == (404, "game_not_found")
    casino.run("game", "enable", "book")
    eventually(lambda: launch(casino, {"mode": "demo"}).status == 200)
    casino.run("game", "allow", casino.player.id, "cash-only")
    eventually(lambda: launch(casino, {"mode": "demo"}).status == 404)
    casino.run("game", "allow", casino.player.id, "all")
    eventually(lambda: launch(casino, {"mode": "demo"}).status == 200)


def test_a_new_secret_signs_the_next_launches(casino):
    casino.run("provider", "set", "sand", "--secret", "-", input="another secret of the provider!!")

    def signed_anew():
        try:
            claims_of(launch(casino, {"mode": "demo"}, "sand-book").json()["launch_url"],
                      "another secret of the provider!!")
        except AssertionError:
            return False
        return True

    eventually(signed_anew)
    casino.run("provider", "set", "sand", "--secret", "-", input="sand" * 10)


def test_only_customers_of_the_casino_launch_and_only_by_post(casino):
    assert launch(casino, {"mode": "demo"}, key=casino.customer.key).error == (403, "casino_access_disabled")
    path = "/api/v1/casino/games/book/launch"
    response = casino.get(path, key=casino.player.key)
    assert response.status == 405 and response.header("allow") == "POST"
    assert casino.get(path, key="wrong").error == (403, "ip_not_allowed")
