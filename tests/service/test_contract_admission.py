"""Who is let in: keys and their headers, customers and their CIDR lists, legacy addresses, and the order in
which a request is judged. (docs/interface.md)"""

import re
import zlib

import pytest

from croupier import NOT_ALLOWED, SPORTS, SPORT_KEYS, basic, match_odds, row

pytestmark = pytest.mark.depends_on("platform")

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ROUTES = ["/api/v1/sports", "/api/v1/cricket/events", "/api/v1/cricket/events/1", "/api/v1/rugby/events",
          "/api/v1/cricket/events/abc", "/api/v1/nothing", "/", "/favicon.ico", "/api/v1/casino/games",
          "/api/v1/casino/wallet", "/metrics", "/api/v1/cricket/events/", "/api/v2/sports"]


@pytest.fixture(scope="module")
def world(shared):
    """Customers of every kind. Legacy addresses are loopback addresses that a test calls from."""
    shared.publish("cricket", [row(1)], {1: match_odds()})
    shared.publish("tennis", [])
    shared.narrow = shared.add_customer("Narrow", cidrs=["127.0.1.0/24", "2001:db8::/32"])
    shared.nowhere = shared.add_customer("Nowhere", cidrs=[])
    shared.disabled = shared.add_customer("Disabled")
    shared.run("customer", "disable", shared.disabled.id)
    shared.tennis = shared.add_customer("Tennis only", sports="tennis")
    shared.none = shared.add_customer("No sports", sports="none")
    shared.revoked = shared.add_customer("Revoked")
    shared.second_key = shared.issue_key(shared.revoked.id, "--label", "second")
    identity = next(key["id"] for key in shared.ask("key", "list", shared.revoked.id) if key["label"] != "second")
    shared.run("key", "revoke", identity)
    both = shared.add_customer("Both", cidrs=["127.0.0.0/8"], options=["--casino"]).id
    shared.only_sports = shared.issue_key(both, "--only", "sports")
    shared.only_casino = shared.issue_key(both, "--only", "casino")
    shared.only_there = shared.issue_key(both, "--cidr", "127.0.9.0/24")
    shared.run("ip", "add", "127.0.3.1", "--sports", "cricket,tennis")
    shared.run("ip", "add", "127.0.3.2")
    shared.run("ip", "disable", "127.0.3.2")
    shared.run("ip", "add", "127.0.3.4")
    shared.run("ip", "remove", "127.0.3.4")
    shared.run("ip", "add", "127.0.3.5", "--sports", "none")
    shared.await_admission(source="127.0.3.5")
    return shared


def verdict(response):
    return response.status, response.json()


def admitted(response):
    return response.status == 200


# ---- the key headers ----------------------------------------------------------------------------------

def test_a_bearer_key_admits(world):
    assert admitted(world.get("/api/v1/sports", headers={"Authorization": f"Bearer {world.customer.key}"}))


def test_an_api_key_header_admits(world):
    assert admitted(world.get("/api/v1/sports", headers={"X-Api-Key": world.customer.key}))


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "bEaReR", "Bearer\t"])
def test_scheme_names_compare_case_insensitively(world, scheme):
    assert admitted(world.get("/api/v1/sports", headers={"Authorization": f"{scheme} {world.customer.key}"}))


@pytest.mark.parametrize("name", ["x-api-key", "X-API-KEY", "authorization", "AUTHORIZATION"])
def test_field_names_compare_case_insensitively(world, name):
    value = world.customer.key if "key" in name.lower() else f"Bearer {world.customer.key}"
    assert admitted(world.get("/api/v1/sports", headers={name: value}))


def test_the_bearer_token_wins_over_the_api_key(world):
    good, bad = world.customer.key, "crk_wrong"
    get = lambda **headers: world.get("/api/v1/sports", headers={k.replace("_", "-"): v for k, v in headers.items()})
    assert admitted(get(Authorization=f"Bearer {good}", X_Api_Key=bad))
    assert verdict(get(Authorization=f"Bearer {bad}", X_Api_Key=good)) == NOT_ALLOWED


@pytest.mark.parametrize("bearer", ["Bearer", "Bearer ", "Bearer    ", "bearer\t"])
def test_an_empty_bearer_token_is_the_key_even_beside_an_api_key(world, bearer):
    assert verdict(world.get("/api/v1/sports", headers={"Authorization": bearer, "X-Api-Key": world.customer.key})) \
        == NOT_ALLOWED


@pytest.mark.parametrize("headers", [{"Authorization": "Bearer"}, {"Authorization": "Bearer  "}, {"X-Api-Key": ""},
                                     {"X-Api-Key": "   "}, {"Authorization": basic(), "X-Api-Key": ""}])
def test_an_empty_key_counts_as_supplied_and_does_not_fall_through_to_the_address(world, headers):
    assert admitted(world.get("/api/v1/sports", source="127.0.3.1"))
    assert verdict(world.get("/api/v1/sports", headers=headers, source="127.0.3.1")) == NOT_ALLOWED


@pytest.mark.parametrize("authorization", [basic(), "Digest a=b", "Negotiate", "", "Bearerx", "BearerToken abc", "Token"])
def test_other_schemes_are_ignored(world, authorization):
    headers = {"Authorization": authorization}
    assert admitted(world.get("/api/v1/sports", headers=headers, source="127.0.3.1"))
    assert admitted(world.get("/api/v1/sports", headers={**headers, "X-Api-Key": world.customer.key}))
    assert verdict(world.get("/api/v1/sports", headers=headers)) == NOT_ALLOWED


@pytest.mark.parametrize("same", [True, False])
def test_two_lines_of_a_key_header_are_an_unusable_key(world, same):
    key = world.customer.key
    other = key if same else ""
    assert verdict(world.get("/api/v1/sports", headers=[("X-Api-Key", key), ("X-Api-Key", other)])) == NOT_ALLOWED
    assert verdict(world.get("/api/v1/sports", headers=[("Authorization", f"Bearer {key}"),
                                                        ("Authorization", f"Bearer {other}")])) == NOT_ALLOWED
    assert verdict(world.get("/api/v1/sports", headers=[("Authorization", basic()),
                                                        ("Authorization", f"Bearer {key}")])) == NOT_ALLOWED
    assert verdict(world.get("/api/v1/sports", headers=[("Authorization", f"Bearer {key}"), ("X-Api-Key", key),
                                                        ("X-Api-Key", other)])) == NOT_ALLOWED


def test_two_lines_of_a_key_header_do_not_fall_through_to_the_address(world):
    assert verdict(world.get("/api/v1/sports", headers=[("X-Api-Key", "a"), ("X-Api-Key", "b")],
                             source="127.0.3.1")) == NOT_ALLOWED


def test_a_key_in_the_query_is_no_key(world):
    assert verdict(world.get(f"/api/v1/sports?api_key={world.customer.key}&key={world.customer.key}")) == NOT_ALLOWED


# ---- the key ------------------------------------------------------------------------------------------

def test_keys_have_a_form_that_scanners_can_check(world):
    key = world.customer.key
    assert re.fullmatch(r"crk_[0-9A-Za-z]{36}", key)
    checksum = zlib.crc32(key[:-6].encode())
    digits = ""
    for _ in range(6):
        checksum, digit = divmod(checksum, 62)
        digits = BASE62[digit] + digits
    assert key[-6:].swapcase() in (digits, digits.swapcase())  # whichever case comes first in the alphabet


@pytest.mark.parametrize("spoil", [
    lambda key: key[:-1], lambda key: key + "x", lambda key: key + " x", lambda key: key[:-1] + ("a" if key[-1] != "a" else "b"),
    lambda key: key.upper(), lambda key: key.swapcase(), lambda key: key[4:], lambda key: "crk_" + "0" * 36,
    lambda key: "x" * 8000, lambda key: f'"{key}"', lambda key: key + ",", lambda key: "crk_", lambda key: "\xff\xfe",
    lambda key: key[:10] + "%" + key[11:]])
def test_a_key_that_is_not_exactly_an_issued_one_is_refused(world, spoil):
    bad = spoil(world.customer.key)
    for headers in ({"Authorization": f"Bearer {bad}"}, {"X-Api-Key": bad}):
        headers = {name: value.encode("latin-1") for name, value in headers.items()}
        assert verdict(world.get("/api/v1/sports", headers=headers)) == NOT_ALLOWED


def test_spaces_around_a_key_do_not_matter(world):
    assert admitted(world.get("/api/v1/sports", headers={"Authorization": f"Bearer   {world.customer.key}  "}))
    assert admitted(world.get("/api/v1/sports", headers={"X-Api-Key": f"  {world.customer.key} "}))


def test_a_revoked_key_is_refused_and_the_customers_other_key_is_not(world):
    assert verdict(world.get("/api/v1/sports", key=world.revoked.key)) == NOT_ALLOWED
    assert admitted(world.get("/api/v1/sports", key=world.second_key))


def test_a_disabled_customer_is_refused(world):
    assert verdict(world.get("/api/v1/sports", key=world.disabled.key)) == NOT_ALLOWED


def test_all_reasons_for_a_refusal_look_the_same(world):
    answers = [world.get("/api/v1/sports", key=key, source=source) for key, source in [
        (None, None), ("", None), ("crk_unknown", None), (world.disabled.key, None), (world.revoked.key, None),
        (world.nowhere.key, None), (world.narrow.key, None), (None, "127.0.3.2"), (None, "127.0.3.4")]]
    assert {answer.body for answer in answers} == {answers[0].body}
    assert {tuple(sorted(name.lower() for name, _ in answer.fields)) for answer in answers} \
        == {tuple(sorted(name.lower() for name, _ in answers[0].fields))}


# ---- where a customer calls from ----------------------------------------------------------------------

@pytest.mark.parametrize("source, allowed", [("127.0.1.0", True), ("127.0.1.255", True), ("127.0.1.7", True),
                                             ("127.0.0.255", False), ("127.0.2.0", False), ("127.0.0.1", False)])
def test_a_customer_is_admitted_from_its_networks_alone(world, source, allowed):
    response = world.get("/api/v1/sports", key=world.narrow.key, source=source)
    assert admitted(response) if allowed else verdict(response) == NOT_ALLOWED


def test_an_empty_cidr_list_denies_every_request(world):
    for source in ("127.0.0.1", "127.0.1.1", "127.255.255.254"):
        assert verdict(world.get("/api/v1/sports", key=world.nowhere.key, source=source)) == NOT_ALLOWED


def test_a_key_from_a_legacy_address_is_judged_as_the_customer(world):
    assert verdict(world.get("/api/v1/sports", key=world.narrow.key, source="127.0.3.1")) == NOT_ALLOWED
    assert verdict(world.get("/api/v1/sports", key="crk_unknown", source="127.0.3.1")) == NOT_ALLOWED


# ---- keys that may less than their customer ------------------------------------------------------------

def test_a_key_for_sports_only_has_no_part_in_the_casino(world):
    assert admitted(world.get("/api/v1/cricket/events", key=world.only_sports))
    assert world.get("/api/v1/casino/games", key=world.only_sports).error == (403, "casino_access_disabled")


def test_a_key_for_the_casino_only_sees_no_sport(world):
    assert world.get("/api/v1/sports", key=world.only_casino).json() == {"sports": []}
    assert world.get("/api/v1/cricket/events", key=world.only_casino).error == (403, "sport_not_allowed")
    assert admitted(world.get("/api/v1/casino/games", key=world.only_casino))


@pytest.mark.parametrize("source, allowed", [("127.0.9.7", True), ("127.0.8.7", False), ("127.0.0.1", False)])
def test_a_key_may_be_used_from_its_own_blocks_alone(world, source, allowed):
    response = world.get("/api/v1/sports", key=world.only_there, source=source)
    assert admitted(response) if allowed else verdict(response) == NOT_ALLOWED


# ---- legacy addresses ---------------------------------------------------------------------------------

def test_a_legacy_address_is_admitted_without_a_key_by_its_exact_address(world):
    assert admitted(world.get("/api/v1/sports", source="127.0.3.1"))
    for source in ("127.0.3.0", "127.0.3.3", "127.0.0.1"):
        assert verdict(world.get("/api/v1/sports", source=source)) == NOT_ALLOWED


def test_a_legacy_address_has_its_own_sports(world):
    sports = world.get("/api/v1/sports", source="127.0.3.1").json()["sports"]
    assert [sport["key"] for sport in sports] == ["cricket", "tennis"]
    assert world.get("/api/v1/tennis/events", source="127.0.3.1").status == 200
    assert world.get("/api/v1/football/events", source="127.0.3.1").error == (403, "sport_not_allowed")


@pytest.mark.parametrize("source", ["127.0.3.2", "127.0.3.4"])
def test_a_disabled_or_removed_legacy_address_is_refused(world, source):
    assert verdict(world.get("/api/v1/sports", source=source)) == NOT_ALLOWED


# ---- sports -------------------------------------------------------------------------------------------

def test_sports_lists_only_what_the_policy_allows(world):
    assert world.get("/api/v1/sports", key=world.tennis.key).json() == {"sports": [{"key": "tennis", "name": "Tennis"}]}
    assert world.get("/api/v1/sports", key=world.customer.key).json() == \
        {"sports": [{"key": key, "name": name} for key, name in SPORTS]}


def test_an_enabled_client_without_sports_gets_an_empty_list(world):
    assert verdict(world.get("/api/v1/sports", key=world.none.key)) == (200, {"sports": []})
    assert verdict(world.get("/api/v1/sports", source="127.0.3.5")) == (200, {"sports": []})


@pytest.mark.parametrize("sport", SPORT_KEYS)
def test_a_sport_that_the_policy_lacks_is_refused_in_the_contracts_words(world, sport):
    refusal = (403, {"error": "sport_not_allowed", "message": "This sport is not enabled for your IP."})
    for path in (f"/api/v1/{sport}/events", f"/api/v1/{sport}/events/1"):
        assert verdict(world.get(path, key=world.none.key)) == refusal
        assert (verdict(world.get(path, key=world.tennis.key)) == refusal) == (sport != "tennis")


# ---- the order of judgement ---------------------------------------------------------------------------

@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
def test_an_outsider_is_told_nothing_on_any_path(world, path, method):
    body = b"{}" if method == "POST" else None
    for key in (None, "crk_unknown"):
        response = world.request(method, path, key=key, body=body)
        if method == "HEAD":
            assert response.status == 403
        else:
            assert verdict(response) == NOT_ALLOWED
        assert not response.all("allow") and not response.all("x-ratelimit-limit") and not response.all("etag")


def test_sport_comes_before_event_id_and_both_before_permission(world):
    assert world.get("/api/v1/rugby/events/abc", key=world.none.key).error == (400, "invalid_sport")
    assert world.get("/api/v1/cricket/events/abc", key=world.none.key).error == (400, "invalid_event_id")
    assert world.get("/api/v1/cricket/events/1", key=world.none.key).error == (403, "sport_not_allowed")


def test_permission_comes_before_the_store(world):
    # football was never published: 503 for who may see it
    assert world.get("/api/v1/football/events", key=world.customer.key).error == (503, "catalog_unavailable")
    assert world.get("/api/v1/football/events", key=world.tennis.key).error == (403, "sport_not_allowed")
    assert world.get("/api/v1/football/events/1", key=world.tennis.key).error == (403, "sport_not_allowed")


def test_one_connection_may_carry_many_callers(world):
    """What a connection remembers of one caller is never given to the next one."""
    with world.connect() as connection:
        for _ in range(3):
            for key, expected in [(world.customer.key, 200), (world.disabled.key, 403), (world.tennis.key, 200),
                                  ("", 403), (world.customer.key[:-1], 403), (world.none.key, 200), (None, 403),
                                  (world.customer.key, 200), (world.nowhere.key, 403)]:
                line = "" if key is None else f"X-Api-Key: {key}\r\n"
                connection.send(f"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\n{line}\r\n")
                response = connection.receive()
                assert response.status == expected
                if key == world.tennis.key:
                    assert [sport["key"] for sport in response.json()["sports"]] == ["tennis"]
                if key == world.none.key:
                    assert response.json()["sports"] == []


