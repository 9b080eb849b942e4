"""What a feed wrote is what a client reads, byte for byte, without the hidden members; and what is not proper
JSON is 502, never half of an answer."""

import itertools
import json

import pytest

from croupier import row
from servers import sampled

pytestmark = pytest.mark.depends_on("odds")

ids = itertools.count(7000001)


@pytest.fixture
def read(shared):
    """Stores documents as they are and returns what the service makes of them."""

    class Read:
        @staticmethod
        def catalog(document):
            shared.put("cricket", None, document)
            return shared.get("/api/v1/cricket/events", key=shared.customer.key)

        @staticmethod
        def event(catalog_row, markets, event):
            shared.put("cricket", None, b"[" + catalog_row + b"]")
            shared.put("cricket", event, markets)
            return shared.get(f"/api/v1/cricket/events/{event}", key=shared.customer.key)

        @staticmethod
        def odds(markets):
            """The bytes of `odds` in the answer for an event with these markets, or the answer itself."""
            event = next(ids)
            response = Read.event(b'{"gmid":%d}' % event, markets, event)
            if response.status != 200:
                return response
            start = b'{"sport":"cricket","event_id":%d,"event":{"gmid":%d},"odds":' % (event, event)
            assert response.body.startswith(start) and response.body.endswith(b"}")
            return response.body[len(start):-1]

    return Read


# ---- values keep their text ---------------------------------------------------------------------------

VALUES = [
    b"1.80", b"0", b"-0", b"-0.0", b"1e2", b"1E+2", b"1.0e-7", b"283.3844663329566", b"0.1000000000000000055511151231257827",
    b"99999999999999999999", b"18446744073709551616", b"-9223372036854775809", b"123456789012345678901234567890",
    b"1e400", b"1" + b"0" * 500, b"9007199254740993", b"2.1", b"true", b"false", b"null", b"{}", b"[]", b'""',
    b'"\\u0041"', b'"A"', b'"\\/"', b'"/"', b'"\\b\\f\\n\\r\\t\\"\\\\"', b'"\\u00e9"', '"é"'.encode(), b'"\\ud83d\\ude00"',
    '"😀"'.encode(), b'"\\u0000"', '"\u2028\u2029"'.encode(), '"\ufeff"'.encode(), b'"\x7f"', '"\uffff"'.encode(),
    '"\U0010ffff"'.encode(), b'"<script>&amp;"', b'"Ball Running"', b'"May 25 2026 10:00AM (IST)"', b'"-"', b'"false"',
    b'[1,[2,[3,[]]],{"a":{"b":[null]}}]', b'{"b":1,"a":2,"b":3}', b'{"":1,"\\u0062":2}', b'"\\uDEAD"', b'"\\ud800"']


@pytest.mark.sampled
@pytest.mark.parametrize("value", sampled(VALUES))
def test_a_value_keeps_its_text_in_a_catalog_and_in_odds(read, value):
    document = b'[{"gmid":1,"x":' + value + b',"z":{"y":[' + value + b']}}]'
    assert read.catalog(document).body == document
    assert read.odds(document) == document


def test_members_keep_their_order_and_repeated_names_stay(read):
    document = b'[{"z":1,"gmid":5,"a":2,"z":3,"m":4,"a":{"z":1,"a":2}},{"gmid":6}]'
    assert read.catalog(document).body == document


def test_space_between_tokens_does_not_change_the_content(read):
    spaced = b' \t\r\n[ { "gmid" : 1 , "x y" : [ 1.80 , "a  b" ,\n null ] } ,\r\n { "gmid" : 2 } ] \n'
    response = read.catalog(spaced)
    assert response.status == 200
    assert json.loads(response.body) == json.loads(spaced)
    assert b'1.80' in response.body and b'"a  b"' in response.body


def test_a_real_market_comes_back_as_it_was_fed(shared):
    markets = (b'[{"gmid":555,"mid":8881,"marketId":"1.55","marketName":"MATCH_ODDS","gtype":"match","status":"OPEN",'
               b'"maxb":1e5,"runners":[{"selectionId":"7461","runnerName":"Aston Villa","status":"ACTIVE","ex":{'
               b'"availableToBack":[{"price":1.80,"size":283.3844663329566,"tno":0}],"availableToLay":[]}}]},'
               b'{"marketId":"1.56","marketName":"Normal","gtype":"fancy","status":"OPEN","section":[{"sid":2.1,'
               b'"nat":"6 over runs","gstatus":"","odds":[{"odds":65,"otype":"back","oname":"back1","size":100}]}]}]')
    shared.publish("football", [row(555)], {555: markets})
    response = shared.get("/api/v1/football/events/555", key=shared.customer.key)
    assert response.body.endswith(b'"odds":' + markets + b"}")


# ---- hidden members -----------------------------------------------------------------------------------

EVENT_HIDDEN = [b"providerEventId", b"feed_source", b"provider\\u0045ventId", b"\\u0070roviderEventId",
                b"feed\\u005fsource", b"feed\\u005Fsource", b"\\u0066\\u0065\\u0065\\u0064_source"]
MARKET_HIDDEN = [b"tv", b"tvChannel", b"odd_type", b"t\\u0076", b"\\u0074\\u0076", b"tv\\u0043hannel", b"odd\\u005ftype",
                 b"odd\\u005Ftype"]
HIDDEN_VALUES = [b"1", b'"x"', b"null", b'{"tv":[1,{"}":"]"}]}', b'"a\\"b,}]"', b'[[],[{"gmid":9}]]', b'""']


def positions(name, value):
    """Documents with a hidden member in every place, and what should be left of each."""
    member = b'"' + name + b'":' + value
    return [(b'[{' + member + b',"gmid":1,"a":2}]', b'[{"gmid":1,"a":2}]'),
            (b'[{"gmid":1,' + member + b',"a":2}]', b'[{"gmid":1,"a":2}]'),
            (b'[{"gmid":1,"a":2,' + member + b'}]', b'[{"gmid":1,"a":2}]'),
            (b'[{' + member + b'}]', b'[{}]'),
            (b'[{' + member + b',' + member + b',"gmid":1,' + member + b'}]', b'[{"gmid":1}]'),
            (b'[{' + member + b',' + member + b'}]', b'[{}]'),
            (b'[{"gmid":1},{"gmid":2,' + member + b'},{"gmid":3}]', b'[{"gmid":1},{"gmid":2},{"gmid":3}]')]


@pytest.mark.sampled
@pytest.mark.parametrize("name", EVENT_HIDDEN)
def test_provider_members_of_an_event_go_wherever_and_however_written(read, name):
    for value in sampled(HIDDEN_VALUES):
        for document, left in positions(name, value):
            assert read.catalog(document).body == left


@pytest.mark.sampled
@pytest.mark.parametrize("name", MARKET_HIDDEN)
def test_internal_members_of_a_market_go_wherever_and_however_written(read, name):
    for value in sampled(HIDDEN_VALUES[:4]):
        for document, left in positions(name, value):
            assert read.odds(document) == left


def test_hidden_members_go_in_spite_of_space(read):
    left = read.catalog(b'[ { "gmid" : 1 , "feed_source" : { "a" : 1 } , "b" : 2 , "providerEventId" : 3 } ]')
    assert json.loads(left.body) == [{"gmid": 1, "b": 2}]


def test_hidden_members_go_from_the_event_of_a_single_event_answer_too(read):
    body = read.event(b'{"gmid":11,"feed_source":1,"a":1.50,"provider\\u0045ventId":"x"}', b"[]", 11).body
    assert body == b'{"sport":"cricket","event_id":11,"event":{"gmid":11,"a":1.50},"odds":[]}'


@pytest.mark.parametrize("kept", [
    b'[{"gmid":1,"tv":1,"tvChannel":2,"odd_type":3}]',          # a market's, in an event
    b'[{"gmid":1,"x":{"providerEventId":1,"feed_source":2}}]',  # nested
    b'[{"gmid":1,"x":[{"feed_source":2}]}]',
    b'[{"gmid":1,"FEED_SOURCE":1,"ProviderEventId":2,"feed_source ":3," feed_source":4,"feed_sourc":5,"feed_sources":6}]',
    b'[{"gmid":1,"x":"feed_source","y":"\\"feed_source\\":1"}]',
    b'[{"gmid":1,"feed\\\\u005fsource":1,"feed\\u0000_source":2,"provider\\u0065ventId":3}]'])
def test_all_else_stays_in_an_event(read, kept):
    assert read.catalog(kept).body == kept


@pytest.mark.parametrize("kept", [
    b'[{"marketId":"1","providerEventId":1,"feed_source":2}]', b'[{"runners":[{"tv":1,"ex":{"odd_type":2}}]}]',
    b'[{"section":[{"tvChannel":1}],"TV":1,"Tv":2,"tvchannel":3,"odd-type":4,"tv\\u0000":5}]'])
def test_all_else_stays_in_a_market(read, kept):
    assert read.odds(kept) == kept


# ---- ids ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("gmid", [b"1", b"34000001", b"9007199254740993", b"18446744073709551615",
                                  b"18446744073709551616", b"18446744073709551617", b"99999999999999999999"])
@pytest.mark.parametrize("quoted", [False, True])
def test_an_id_of_any_size_is_exact_as_a_number_and_as_a_string(read, gmid, quoted):
    written = b'"' + gmid + b'"' if quoted else gmid
    body = read.event(b'{"gmid":' + written + b"}", b"[]", gmid.decode()).body
    assert body == b'{"sport":"cricket","event_id":' + gmid + b',"event":{"gmid":' + written + b'},"odds":[]}'


def test_ids_that_a_machine_integer_would_confuse_are_different(shared, read):
    near = [b"18446744073709551616", b"18446744073709551617", b"99999999999999999999", b"9007199254740992",
            b"9007199254740993", b"1", b"2"]
    read.catalog(b"[" + b",".join(b'{"gmid":%s,"n":%d}' % (gmid, n) for n, gmid in enumerate(near)) + b"]")
    for n, gmid in enumerate(near):
        shared.put("cricket", gmid.decode(), b'[{"marketId":"%d"}]' % n)
    for n, gmid in enumerate(near):
        document = shared.get(f"/api/v1/cricket/events/{gmid.decode()}", key=shared.customer.key).json()
        assert (document["event_id"], document["event"]["n"]) == (int(gmid), n)
        assert document["odds"] == [{"marketId": str(n)}]
    assert shared.get("/api/v1/cricket/events/0000000000000000001", key=shared.customer.key).json()["event"]["n"] == 5
    for absent in ("18446744073709551618", "9007199254740994", "3", "0000000000000000003"):
        assert shared.get(f"/api/v1/cricket/events/{absent}", key=shared.customer.key).error == (404, "event_not_found")


@pytest.mark.parametrize("unusable", [b'{}', b'{"gmid":null}', b'{"gmid":true}', b'{"gmid":""}', b'{"gmid":"abc"}',
                                      b'{"gmid":0}', b'{"gmid":-5}', b'{"gmid":5.0}', b'{"gmid":5e0}', b'{"gmid":"5.0"}',
                                      b'{"gmid":[5]}', b'{"gmid":{"gmid":5}}', b'{"gmid":" 5"}', b'{"gmid":"+5"}',
                                      b'{"gmid":123456789012345678901}', b'{"gmid":"000000000000000000005"}',
                                      b'{"gmid":"000"}', b'{"gmid":"5\\u0000"}', b'{"gmid":"\\ud800"}',
                                      b'{"x":{"gmid":5}}', b'{"GMID":5}'])
def test_a_row_without_a_usable_id_stays_in_the_list_and_cannot_be_addressed(shared, read, unusable):
    document = b'[{"gmid":1},' + unusable + b',{"gmid":2}]'
    assert read.catalog(document).body == document
    for event in ("1", "2"):
        shared.put("cricket", event, b"[]")
        assert shared.get(f"/api/v1/cricket/events/{event}", key=shared.customer.key).status == 200
    assert shared.get("/api/v1/cricket/events/5", key=shared.customer.key).error == (404, "event_not_found")


def test_an_id_written_with_escapes_is_the_same_id(read):
    assert json.loads(read.event(b'{"\\u0067mid":"3\\u0034"}', b"[]", 34).body)["event_id"] == 34


def test_of_two_rows_with_one_id_the_first_is_addressed(shared, read):
    document = b'[{"gmid":41,"n":1},{"gmid":"41","n":2},{"gmid":41,"n":3}]'
    assert read.catalog(document).body == document
    shared.put("cricket", 41, b"[]")
    assert shared.get("/api/v1/cricket/events/41", key=shared.customer.key).json()["event"]["n"] == 1


# ---- what cannot be read ------------------------------------------------------------------------------

BAD_VALUES = [
    b"", b"01", b"-", b"-01", b"+1", b"1.", b".5", b"1e", b"1e+", b"1.e1", b"0x10", b"1_000", b"1,5", b"NaN", b"Infinity",
    b"-Infinity", b"nan", b"True", b"TRUE", b"nul", b"nulll", b"undefined", b"'a'", b'"', b'"a', b'"\\x41"', b'"\\u12"',
    b'"\\u12G4"', b'"\\', b'"\\a"', b'"\\\n"', b'"\n"', b'"\t"', b'"\x00"', b'"\x1f"', b"\x00", b"[", b"]", b"[1,]", b"[,1]",
    b"[1,,2]", b"[1 2]", b"{", b"}", b'{"a"}', b'{"a":}', b'{"a":1,}', b'{,"a":1}', b"{a:1}", b"{1:1}", b'{"a" 1}',
    b'{"a":1 "b":2}', b'{"a":1;"b":2}', b"{'a':1}", b'[1}', b'{"a":1]', b"/*c*/1", b"1//c", b"#", b"1 2", b"(1)",
    b'"a" "b"', b"\\u0031", b"\xa0", b"\x0b1", b"\x0c1", "\u2028 1".encode(),
    b'"\xff"', b'"\x80"', b'"\xc0\xaf"', b'"\xc1\xbf"', b'"\xe0\x80\xaf"', b'"\xed\xa0\x80"', b'"\xed\xbf\xbf"',
    b'"\xf0\x80\x80\xaf"', b'"\xf4\x90\x80\x80"', b'"\xf5\x80\x80\x80"', b'"\xe2\x82"', b'"\xc3"', b'"\xf0\x9f\x98"', b'"a\xffb"',
    b"1.5.5", b"--1", b"1-", b"1e5e5", b"$", b"@", b"<b>"]

BAD_DOCUMENTS = [
    b"", b" ", b"\n", b"{}", b'{"gmid":1}', b"null", b"1", b'"x"', b"true", b"[", b"]", b"[{}", b"[{}]]", b"[{}],", b"[{}]x",
    b"[{}] []", b"[{},]", b"[,{}]", b"[1]", b"[null]", b"[[]]", b'["x"]', b"[{},1]", b"[{},null]", b"[[{}]]", b"[true]",
    b"\xef\xbb\xbf[{}]", b"[{}]\x00", b"\x00[{}]", b"[\x00{}]", "[{}]".encode("utf-16"), "[{}]".encode("utf-16-le"),
    "[{}]".encode("utf-32"), b"<html>", b"[{}{}]", b"[{};{}]", b"// x\n[{}]", b"[{}]\x0c", b"\xa0[{}]", b"[{}",
    b"{}{}", b"[{}]\n[{}]", b"[" * 1000, b"[" * 100000, b"[{" * 50000, b'[{"a":' * 50000]


@pytest.mark.parametrize("value", BAD_VALUES)
def test_a_value_that_is_not_json_makes_the_document_unreadable(read, value):
    document = b'[{"gmid":1,"x":' + value + b'}]'
    assert read.catalog(document).error == (502, "malformed_upstream_data")
    assert read.odds(document).error == (502, "malformed_upstream_data")


@pytest.mark.parametrize("document", BAD_DOCUMENTS, ids=lambda document: repr(document[:20]))
def test_a_document_that_is_not_an_array_of_objects_is_unreadable(read, document):
    assert read.catalog(document).error == (502, "malformed_upstream_data")
    assert read.odds(document).error == (502, "malformed_upstream_data")


def test_what_is_wrong_inside_a_hidden_member_counts_too(read):
    assert read.catalog(b'[{"gmid":1,"feed_source":01}]').error == (502, "malformed_upstream_data")
    assert read.odds(b'[{"tv":"\xff"}]').error == (502, "malformed_upstream_data")


def test_depth_has_a_limit_and_all_up_to_it_passes(read):
    for depth, readable in [(200, True), (256, True), (257, False), (300, False)]:
        inner = depth - 2  # the array and the event are two
        document = b'[{"x":' + b"[" * inner + b"]" * inner + b"}]"
        response = read.catalog(document)
        if readable:
            assert response.body == document
        else:
            assert response.error == (502, "malformed_upstream_data")


def test_a_broken_document_harms_no_other(shared, read):
    shared.publish("football", [row(60)], {60: []})
    read.catalog(b"[{")
    assert shared.get("/api/v1/cricket/events", key=shared.customer.key).status == 502
    assert shared.get("/api/v1/football/events/60", key=shared.customer.key).status == 200
    read.catalog(b'[{"gmid":61},{"gmid":62}]')
    shared.put("cricket", 61, b"nonsense")
    shared.put("cricket", 62, b"[]")
    assert shared.get("/api/v1/cricket/events/61", key=shared.customer.key).error == (502, "malformed_upstream_data")
    assert shared.get("/api/v1/cricket/events/62", key=shared.customer.key).status == 200


def test_big_documents_pass_whole(shared):
    rows = [row(10_000_000 + n, note="x" * 400) for n in range(20_000)]
    shared.publish("tennis", rows, {10_019_999: [{"marketId": str(n), "tv": 1} for n in range(50_000)]})
    response = shared.get("/api/v1/tennis/events", key=shared.customer.key)
    assert len(response.body) > 8_000_000 and response.json() == rows
    odds = shared.get("/api/v1/tennis/events/10019999", key=shared.customer.key).json()["odds"]
    assert odds == [{"marketId": str(n)} for n in range(50_000)]


def test_the_feed_refuses_what_the_service_could_not_read(shared):
    shared.publish("football", [row(70)])
    before = shared.get("/api/v1/football/events", key=shared.customer.key).body
    for document in (b"", b"{}", b"[1]", b'[{"gmid":01}]', b'[{"gmid":1},]', b'[{"gmid":"\xff"}]'):
        done = shared.run("feed", "catalog", "football", "-", input=document, status=1)
        assert len(done.errors.strip().splitlines()) == 1
        shared.run("feed", "odds", "football", "70", "-", input=document, status=1)
    assert shared.get("/api/v1/football/events", key=shared.customer.key).body == before
