"""An answer as the difference from one before it (RFC 9842, `dcz`): each decodes to the bytes of the plain one."""

import base64
import hashlib
import json
import random
import signal
import threading

import pytest
import zstandard

from croupier import eventually, match_odds, row

pytestmark = pytest.mark.depends_on("odds")

MAGIC = bytes.fromhex("5e2a4d1820000000")
EVENT = "/api/v1/cricket/events/1"
LIST = "/api/v1/cricket/events"


def name_of(body):
    return f":{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def decoded(response, dictionary=None):
    if response.header("content-encoding") != "dcz":
        return response.content
    assert response.body[:40] == MAGIC + hashlib.sha256(dictionary).digest()
    prefix = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdDecompressor(dict_data=prefix).decompress(response.body[40:])


class Feed:
    """An event of 20 KB and its list, of which a price and a name change."""

    def __init__(self, service):
        self.service = service
        self.customer = service.add_customer()
        self.random = random.Random(5)
        self.markets = [json.loads(match_odds())[0] | {"marketId": str(n)} for n in range(60)]
        self.publish()

    def publish(self):
        market = self.random.choice(self.markets)
        market["changed"] = self.random.randrange(10**9)
        rows = [row(n, ename=f"Somebody v {self.random.randrange(10**6) if n == 7 else n}") for n in range(1, 101)]
        self.service.publish("cricket", rows, {1: json.dumps(self.markets).encode()})

    def get(self, path, accept="gzip, dcz", dictionary=None, tag=None, method="GET", **headers):
        fields = {"Accept-Encoding": accept, "Available-Dictionary": dictionary, "If-None-Match": tag, **headers}
        return self.service.request(method, path, key=self.customer.key,
                                    headers={name: value for name, value in fields.items() if value is not None})

    def plain(self, path):
        return self.get(path, accept="identity").body


@pytest.fixture
def feed(make_service):
    service = make_service()
    feed = Feed(service)
    service.start()
    service.await_admission(feed.customer.key)
    return feed


@pytest.mark.parametrize("path", [EVENT, LIST])
def test_a_change_is_sent_as_the_difference_from_the_body_that_the_client_holds(feed, path):
    first = feed.get(path)
    assert first.header("content-encoding") == "gzip" and first.header("x-content-type-options") == "nosniff"
    assert first.header("use-as-dictionary") == f'match="{path.rpartition("/")[2]}"'
    body, tag = first.content, first.header("etag")
    for _ in range(5):
        feed.publish()
        response = eventually(lambda: (found := feed.get(path, dictionary=name_of(body), tag=tag)).status == 200 and found)
        assert response.header("content-encoding") == "dcz" and response.header("x-content-type-options") is None
        assert response.header("vary") == "Accept-Encoding, Available-Dictionary"
        assert response.header("cache-control") == "private, no-cache"
        assert response.header("use-as-dictionary") == f'match="{path.rpartition("/")[2]}"'
        assert response.header("etag").endswith(f'-dcz-{hashlib.sha256(body).hexdigest()[:8]}"')
        before, body, tag = body, decoded(response, body), response.header("etag")
        assert body == feed.plain(path) != before
        assert len(response.body) * 2 < len(feed.get(path, accept="gzip").body)
        again = feed.get(path, dictionary=name_of(body), tag=tag)
        assert again.status == 304 and again.body == b"" and again.header("use-as-dictionary") is None
        head = feed.get(path, dictionary=name_of(before), method="HEAD")
        assert head.header("content-length") == response.header("content-length") and head.body == b""


def test_earlier_bodies_are_dictionaries_too(feed):
    held = []
    for _ in range(6):
        held.append(feed.get(EVENT).content)
        feed.publish()
    new = feed.plain(EVENT)
    for body in held:
        response = feed.get(EVENT, dictionary=name_of(body))
        assert response.header("content-encoding") == "dcz" and decoded(response, body) == new


@pytest.mark.parametrize("accept", ["gzip", "*", "gzip, dcz;q=0", "dcb, zstd", "identity"])
def test_who_does_not_name_the_coding_gets_what_it_gets_today(feed, accept):
    body = feed.get(EVENT).content
    feed.publish()
    response = feed.get(EVENT, accept=accept, dictionary=name_of(body))
    assert response.header("content-encoding") in (None, "gzip")
    assert response.header("use-as-dictionary") is None and response.content == feed.plain(EVENT)


def wrong_names(body):
    name = name_of(body)
    return [name[1:-1], name[:-1], name + ";a=1", name.replace("=", ""), ":" + "A" * 43 + "=:", '"' + name + '"', "", ":=:",
            name_of(b"something foreign"), name.swapcase(), "\xff" * 46, ":" + "A" * 4000 + ":"]


def test_an_unknown_damaged_or_foreign_dictionary_gives_the_whole_body(feed):
    body, other = feed.get(EVENT).content, feed.get(LIST).content
    feed.publish()
    new = feed.plain(EVENT)
    for name in [*wrong_names(body), name_of(other), name_of(new), f"{name_of(body)}, {name_of(body)}"]:
        response = feed.get(EVENT, dictionary=name)
        assert response.header("content-encoding") in (None, "gzip"), name
        assert response.content == new
    twice = feed.service.request("GET", EVENT, key=feed.customer.key, headers=[
        ("Accept-Encoding", "dcz"), ("Available-Dictionary", name_of(body)), ("Available-Dictionary", name_of(body))])
    assert twice.header("content-encoding") is None and twice.body == new


def test_any_form_of_the_content_is_not_modified(feed):
    body = feed.get(EVENT).content
    feed.publish()
    difference = feed.get(EVENT, dictionary=name_of(body))
    plain, gzipped = feed.get(EVENT, accept="identity"), feed.get(EVENT)
    for response in (difference, plain, gzipped):
        assert feed.get(EVENT, dictionary=name_of(body), tag=response.header("etag")).status == 304
        assert feed.get(EVENT, tag=f'"x", {response.header("etag")}').status == 304
    assert feed.get(EVENT, accept="gzip", tag=difference.header("etag")).status == 200
    for tag in ('"other"', difference.header("etag")):
        assert feed.get(EVENT, dictionary=name_of(body), **{"If-Match": tag}).error == (412, "precondition_failed")


def test_any_tag_at_all_is_not_modified_and_does_not_wait(feed):
    body = feed.get(EVENT).content
    feed.publish()
    assert feed.get(EVENT, dictionary=name_of(body)).header("content-encoding") == "dcz"
    for accept in ("identity", "gzip", "gzip, dcz", "dcz"):
        response = feed.get(EVENT, accept=accept, dictionary=name_of(body), tag="*", Prefer="wait=50")
        assert response.status == 304 and response.header("preference-applied") is None, accept


def test_a_refused_condition_has_no_field_of_the_answer(feed):
    """An error document is nothing that a client may name as its dictionary, and was not published."""
    assert feed.get(EVENT).header("x-published-at") is not None
    for path in (EVENT, LIST):
        for tag in (None, feed.get(path).header("etag")):
            refused = feed.get(path, tag=tag, **{"If-Match": '"other"'})
            assert refused.error == (412, "precondition_failed")
            assert refused.header("use-as-dictionary") is None and refused.header("x-published-at") is None
        held = feed.get(path, **{"If-Match": "*"})
        assert held.status == 200 and held.header("use-as-dictionary") and held.header("x-published-at")


def test_waiting_polls_get_differences(feed):
    waits = []

    def wait(body, tag):
        waits.append((body, feed.get(EVENT, dictionary=name_of(body), tag=tag, Prefer="wait=50")))

    first = feed.get(EVENT)
    polls = [threading.Thread(target=wait, args=(first.content, first.header("etag"))) for _ in range(8)]
    for poll in polls:
        poll.start()
    eventually(lambda: feed.service.metrics()["croupier_waiting_polls"] == len(polls))
    feed.publish()
    for poll in polls:
        poll.join()
    assert len(waits) == len(polls)
    for body, response in waits:
        assert response.header("content-encoding") == "dcz" and decoded(response, body) == feed.plain(EVENT)
    made = feed.service.metrics()["croupier_differences_total"]
    assert made == 1, "one difference is made for a pair, and shared"


def test_a_connection_that_names_another_dictionary_each_time_is_answered_rightly(feed):
    """The server remembers a poll's bytes, in which the tag and the dictionary may change."""
    first = feed.get(EVENT)
    body, tag = first.content, first.header("etag")
    with feed.service.connect() as connection:
        for step in range(12):
            if step % 3:
                feed.publish()
            for dictionary in (body, b"foreign"):
                connection.send(f"GET {EVENT} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {feed.customer.key}\r\nAccept-Encoding: dcz\r\n"
                                f"Available-Dictionary: {name_of(dictionary)}\r\nIf-None-Match: {tag}\r\n\r\n".encode())
                response = connection.receive()
                if response.status == 304:
                    assert body == feed.plain(EVENT)
                    continue
                assert (response.header("content-encoding") == "dcz") == (dictionary is body)
                new = decoded(response, dictionary)
                assert new == feed.plain(EVENT)
            if response.status == 200:
                body, tag = new, response.header("etag")


def test_nothing_is_kept_unless_somebody_asks_and_never_more_than_may_be(make_service):
    service = make_service({"odds.differences_mib": 0})
    feed = Feed(service)
    service.start()
    service.await_admission(feed.customer.key)
    body = feed.get(EVENT).content
    feed.publish()
    response = feed.get(EVENT, dictionary=name_of(body))
    assert response.header("content-encoding") == "gzip" and response.header("vary") == "Accept-Encoding"
    assert response.header("use-as-dictionary") is None
    service.configure({"odds.differences_mib": 1})
    service.signal(signal.SIGHUP)

    def polled_without():
        feed.publish()
        return "Dictionary" in feed.get(EVENT, accept="gzip").header("vary")

    eventually(polled_without)
    assert polled_without()
    assert service.metrics()["croupier_differences_kept_bytes"] == 0
    for _ in range(80):
        body = feed.get(EVENT).content
        feed.publish()
        response = feed.get(EVENT, dictionary=name_of(body))
        assert decoded(response, body) == feed.plain(EVENT) and response.header("content-encoding") == "dcz"
        assert service.metrics()["croupier_differences_kept_bytes"] <= 1024 * 1024
