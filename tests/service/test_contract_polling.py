"""What makes polling cheap: entity tags, 304, gzip, and the fields that tell caches what they may do."""

import gzip

import pytest

from croupier import match_odds, row

pytestmark = pytest.mark.depends_on("odds")

PATHS = ["/api/v1/cricket/events", "/api/v1/cricket/events/1"]


@pytest.fixture(scope="module", autouse=True)
def published(shared):
    markets = b"[" + b",".join([match_odds()[1:-1]] * 40) + b"]"
    shared.publish("cricket", [row(n, ename="Somebody v Somebody else") for n in range(1, 101)], {1: markets})


def get(shared, path, **headers):
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return shared.get(path, key=shared.customer.key, headers=fields)


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_has_a_strong_entity_tag_and_is_private(shared, path):
    response = get(shared, path)
    tag = response.header("etag")
    assert tag.startswith('"') and tag.endswith('"') and len(tag) > 10
    assert sorted(response.header("cache-control").replace(" ", "").split(",")) == ["no-cache", "private"]
    assert response.header("vary").lower() == "accept-encoding, available-dictionary"
    assert response.header("last-modified") is None


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_a_known_tag_is_answered_304_without_a_body(shared, path, encoding):
    headers = {"Accept_Encoding": encoding} if encoding else {}
    full = get(shared, path, **headers)
    for condition in (full.header("etag"), f'"other", {full.header("etag")}', f'W/{full.header("etag")}', "*",
                      f'  {full.header("etag")}  ', f'"a,b",{full.header("etag")},"c"'):
        response = get(shared, path, If_None_Match=condition, **headers)
        assert response.status == 304 and response.body == b""
        for name in ("etag", "vary", "cache-control"):
            assert response.header(name) == full.header(name)
        assert response.header("content-encoding") is None
        assert response.header("content-length") in (None, full.header("content-length"))
        assert response.header("x-request-id")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("condition", ['"other"', "", "nonsense", '"', 'W/"x"', "W/*", '"*"', ",,,", '"unfinished'])
def test_another_tag_is_answered_in_full(shared, path, condition):
    assert get(shared, path, If_None_Match=condition).status == 200


def test_a_tag_without_its_quotes_is_another_tag(shared):
    tag = get(shared, PATHS[0]).header("etag")
    assert get(shared, PATHS[0], If_None_Match=tag.strip('"')).status == 200
    assert get(shared, PATHS[0], If_None_Match=tag[:-2] + '"').status == 200


def test_a_tag_among_several_lines_is_found(shared):
    tag = get(shared, PATHS[0]).header("etag")
    response = shared.get(PATHS[0], key=shared.customer.key,
                          headers=[("If-None-Match", '"a"'), ("If-None-Match", tag), ("If-None-Match", '"b"')])
    assert response.status == 304


@pytest.mark.parametrize("path", PATHS)
def test_head_may_be_conditional_too(shared, path):
    tag = get(shared, path).header("etag")
    assert shared.request("HEAD", path, key=shared.customer.key, headers={"If-None-Match": tag}).status == 304


@pytest.mark.parametrize("headers", [{}, {"Accept-Encoding": "gzip"}])
@pytest.mark.parametrize("path", PATHS)
def test_if_match_demands_a_tag(shared, path, headers):
    get(shared, path, **headers)  # from here on a gzipped form is at hand
    tag = get(shared, path, **headers).header("etag")
    for condition in (tag, "*", f'"other", {tag}', f'"a,b" ,{tag}'):
        assert get(shared, path, If_Match=condition, **headers).status == 200
        assert get(shared, path, If_Match=condition, If_None_Match=tag, Prefer="wait=55", **headers).status == 304
    for condition in ('"other"', f"W/{tag}", tag.strip('"'), "", "nonsense"):
        for other in ({}, {"If_None_Match": tag}, {"If_None_Match": tag, "Prefer": "wait=55"}):
            response = get(shared, path, If_Match=condition, **other, **headers)
            assert response.error == (412, "precondition_failed") and response.header("etag") is None
    assert shared.request("HEAD", path, key=shared.customer.key, headers={"If-Match": '"other"'}).status == 412
    assert shared.get(path, headers={"If-Match": '"other"'}).status == 403
    assert get(shared, "/api/v1/cricket/events/999", If_Match="*").status == 404


def test_if_modified_since_means_nothing(shared):
    assert get(shared, PATHS[0], If_Modified_Since="Fri, 01 Jan 2100 00:00:00 GMT").status == 200


def test_the_tag_is_of_the_content_and_of_nothing_else(shared):
    def tags(rows, odds):
        shared.publish("football", rows, {5: odds})
        return [get(shared, f"/api/v1/football/events{rest}").header("etag") for rest in ("", "/5")]

    first = tags([row(5), row(6)], b'[{"marketId":"1","a":1.80}]')
    again = tags([row(5), row(6)], b'[{"marketId":"1","a":1.80}]')
    assert again == first
    other_odds = tags([row(5), row(6)], b'[{"marketId":"1","a":1.81}]')
    assert other_odds[0] == first[0] and other_odds[1] != first[1]
    other_row = tags([row(5, status="CLOSED"), row(6)], b'[{"marketId":"1","a":1.80}]')
    assert other_row[0] != first[0] and other_row[1] != first[1]
    other_event = tags([row(5), row(6, status="CLOSED")], b'[{"marketId":"1","a":1.80}]')
    assert other_event[0] != first[0] and other_event[1] == first[1]
    hidden = tags([row(5, feed_source="x"), row(6)], b'[{"marketId":"1","tv":true,"a":1.80}]')
    assert hidden == first


def test_the_tag_outlives_the_server(make_service):
    service = make_service()
    customer = service.add_customer()
    service.publish("tennis", [row(3)], {3: match_odds()})
    seen = []
    for _ in range(2):
        service.start()
        service.await_admission(customer.key)
        seen.append([service.get(f"/api/v1/tennis/events{rest}", key=customer.key).header("etag") for rest in ("", "/3")])
        service.stop()
    assert seen[0] == seen[1]


def test_a_condition_does_not_hide_a_refusal(shared):
    tag = get(shared, PATHS[0]).header("etag")
    assert shared.get(PATHS[0], headers={"If-None-Match": tag}).status == 403
    assert shared.get(PATHS[0], headers={"If-None-Match": "*"}).status == 403
    assert get(shared, "/api/v1/cricket/events/999", If_None_Match="*").status == 404


# ---- compression --------------------------------------------------------------------------------------

@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("accept", ["gzip", "GZIP", "x-gzip", "deflate, gzip", "gzip;q=1.0", "gzip; q=0.5", "*",
                                    "br, *;q=0.1", "identity;q=0.5, gzip;q=0.8", "gzip, deflate, br, zstd", "gzip;q=1,*;q=0"])
def test_gzip_is_sent_to_who_takes_it(shared, path, accept):
    plain, packed = get(shared, path), get(shared, path, Accept_Encoding=accept)
    assert packed.header("content-encoding") == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body)
    assert packed.header("vary").lower() == "accept-encoding, available-dictionary"
    assert packed.header("content-type") == plain.header("content-type")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("accept", ["", "identity", "br", "deflate", "gzip;q=0", "gzip;q=0.0", "gzip;q=0.000", "*;q=0",
                                    "identity;q=1, gzip;q=0.5", "gzip;q=x", "gzipped", "gzip;q=0, *"])
def test_gzip_is_not_sent_to_who_does_not(shared, path, accept):
    response = get(shared, path, Accept_Encoding=accept)
    assert response.header("content-encoding") is None
    assert response.body == get(shared, path).body


@pytest.mark.parametrize("path", PATHS)
def test_the_two_representations_have_two_tags(shared, path):
    plain, packed = get(shared, path), get(shared, path, Accept_Encoding="gzip")
    assert plain.header("etag") != packed.header("etag")
    assert get(shared, path, Accept_Encoding="gzip", If_None_Match=packed.header("etag")).status == 304
    assert get(shared, path, If_None_Match=plain.header("etag")).status == 304


def test_head_describes_the_compressed_answer(shared):
    packed = get(shared, PATHS[0], Accept_Encoding="gzip")
    head = shared.request("HEAD", PATHS[0], key=shared.customer.key, headers={"Accept-Encoding": "gzip"})
    for name in ("content-length", "content-encoding", "etag"):
        assert head.header(name) == packed.header(name)


def test_errors_are_never_compressed(shared):
    for path in ("/api/v1/rugby/events", "/nothing", "/api/v1/cricket/events/999"):
        assert get(shared, path, Accept_Encoding="gzip").header("content-encoding") is None


def test_requests_in_turn_on_one_connection_each_have_their_own_answer(shared):
    """Each twice, because the second is recognised as the first once more."""
    key = f"X-Api-Key: {shared.customer.key}\r\n"
    requests = [f"GET /api/v1/cricket/events/1 HTTP/1.1\r\nHost: a\r\n{key}\r\n",
                "GET /api/v1/health HTTP/1.1\r\nHost: a\r\n\r\n",
                f"POST /api/v1/casino/wallet HTTP/1.1\r\nHost: a\r\n{key}Content-Length: 1\r\n\r\nx",
                "GET /api/v1/sports HTTP/1.1\r\nHost: a\r\nX-Api-Key: crk_wrong\r\n\r\n",
                f"GET /api/v1/cricket/events HTTP/1.1\r\nHost: a\r\n{key}\r\n",
                f"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\n{key}\r\n"]

    def answers(order):
        with shared.connect() as connection:
            connection.send("".join(requests[number] for number in order))
            found = [connection.receive() for _ in order]
        return [(answer.status, answer.error if answer.status >= 400 else answer.body) for answer in found]

    expected = [answers([number])[0] for number in range(len(requests))]
    assert [status for status, _ in expected] == [200, 200, 403, 403, 200, 200]
    for order in ([0, 0, 1, 1, 0, 2, 0, 3, 0, 4, 4, 0], [0, 1, 1, 4, 1, 1, 5, 5, 1, 0], [4, 3, 3, 4, 4, 0, 0, 5, 0, 5, 5]):
        assert answers(order) == [expected[number] for number in order]
