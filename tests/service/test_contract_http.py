"""HTTP/1.0 and 1.1 on the wire: what is refused before anything is believed of it, and what is allowed.

The malformed requests are written after the public collections on request smuggling: anything that a proxy
before the service might read otherwise must end in an error document and a closed connection."""

import json
import socket

import pytest

from croupier import Service, eventually, match_odds, row

pytestmark = pytest.mark.depends_on()

HEALTH = b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\n\r\n"
SMUGGLED = b"GET /api/v1/sports HTTP/1.1\r\nHost: smuggled\r\n\r\n"


@pytest.fixture(scope="module", autouse=True)
def published(shared):
    shared.publish("cricket", [row(1)], {1: match_odds()})


def head(*lines, request=b"GET /api/v1/health HTTP/1.1", host=b"Host: a"):
    fields = [line if isinstance(line, bytes) else line.encode("latin-1") for line in lines]
    return b"\r\n".join([request, *([host] if host else []), *fields]) + b"\r\n\r\n"


def refused(service, request, status, code, follow=SMUGGLED):
    """Sends a request (and one more behind it): one error document must come, then the end."""
    with service.connect() as connection:
        try:
            connection.send(request + follow)
        except OSError:
            pass  # closed while we were still sending: fine, as long as the answer is there
        response = connection.receive()
        statuses = status if isinstance(status, tuple) else (status,)
        assert response.status in statuses, response
        codes = code if isinstance(code, tuple) else (code,)
        document = json.loads(response.body)
        assert set(document) == {"error", "message"} and document["error"] in codes
        assert response.header("connection").lower() == "close"
        assert response.header("content-type").lower().startswith("application/json")
        assert response.header("x-content-type-options") == "nosniff"
        assert connection.at_end(), "something came after the refusal"


# Some of each kind; tests/unit/http/test_intake.c and test_target.c have the others.
BAD_REQUESTS = {
    "CR before the request line": b"\r" + HEALTH,
    "CR after an empty line": b"\r\n\r" + HEALTH,
    "LF before the request line": b"\n" + HEALTH,
    "no version": b"GET /api/v1/health\r\n\r\n",
    "no target": b"GET HTTP/1.1\r\nHost: a\r\n\r\n",
    "something after the version": b"GET /api/v1/health HTTP/1.1 x\r\nHost: a\r\n\r\n",
    "space in the target": b"GET /api/v1/he alth HTTP/1.1\r\nHost: a\r\n\r\n",
    "NUL in the target": b"GET /api/v1/health\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
    "control character in the target": b"GET /api/v1/health\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
    "bare LF everywhere": b"GET /api/v1/health HTTP/1.1\nHost: a\n\n",
    "CR CR LF": b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\r\n\r\n",
    "no Host": head(host=None),
    "two Hosts that differ": head("Host: b"),
    "space before the colon of a framing field": head("Content-Length : 5"),
    "space in a field name": head("X Y: z"),
    "NUL in a field name": head("X\x00Y: z"),
    "high byte in a field name": head(b"X\xff: z"),
    "control character in a field value": head("X: a\x01b"),
    "DEL in a field value": head("X: a\x7fb"),
    "folded framing field": head("Content-Length:", " 5"),
    "Content-Length with a fraction": head("Content-Length: 5.0"),
    "Content-Length as a list that differs": head("Content-Length: 5, 6"),
    "two Content-Lengths that differ": head("Content-Length: 5", "Content-Length: 6"),
    "two Content-Lengths, one zero": head("Content-Length: 0", "Content-Length: 44"),
    "Content-Length in other digits": head(b"Content-Length: \xd9\xa5"),
    "Content-Length beyond 64 bits": head("Content-Length: 18446744073709551621"),
    "Content-Length and chunked": head("Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
    "chunked and Content-Length": head("Transfer-Encoding: chunked", "Content-Length: 5") + b"0\r\n\r\n",
    "chunked in two lines": head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
    "chunked, identity": head("Transfer-Encoding: chunked, identity") + b"0\r\n\r\n",
    "identity and Content-Length": head("Transfer-Encoding: identity", "Content-Length: 0"),
    "chunkedx": head("Transfer-Encoding: chunkedx") + b"0\r\n\r\n",
    "chunked in quotes": head('Transfer-Encoding: "chunked"') + b"0\r\n\r\n",
    "chunked after a form feed": head("Transfer-Encoding: \x0cchunked") + b"0\r\n\r\n",
    "chunked with HTTP/1.0": head("Transfer-Encoding: chunked", request=b"GET /api/v1/health HTTP/1.0") + b"0\r\n\r\n",
    "chunk size not a number": head("Transfer-Encoding: chunked") + b"g\r\n\r\n",
    "chunk size with a sign": head("Transfer-Encoding: chunked") + b"+5\r\nhello\r\n0\r\n\r\n",
    "space before a chunk size": head("Transfer-Encoding: chunked") + b" 5\r\nhello\r\n0\r\n\r\n",
    "chunk without its line end": head("Transfer-Encoding: chunked") + b"5\r\nhello0\r\n\r\n",
    "bare LF after a chunk": head("Transfer-Encoding: chunked") + b"5\r\nhello\n0\r\n\r\n",
    "bare CR in a chunk extension": head("Transfer-Encoding: chunked") + b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    "bare LF in a chunk extension": head("Transfer-Encoding: chunked") + b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "space before the colon in a trailer": head("Transfer-Encoding: chunked") + b"0\r\nX : y\r\n\r\n",
    "a TLS greeting": bytes.fromhex("16030100a5010000a10303") + b"\x00" * 60 + b"\r\n\r\n",
    "an answer": b"HTTP/1.1 200 OK\r\nHost: a\r\n\r\n",
    "a space in Host": head(host=b"Host: a b"),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_request_that_is_not_proper_http_is_refused_and_never_repaired(shared, name):
    # A method or a version that cannot be is as good a reason as any where the line is nonsense anyway.
    lenient = name in ("a TLS greeting", "an answer", "no target", "no version", "something after the version", "bare LF everywhere")
    size = name in ("Content-Length beyond 64 bits",)
    refused(shared, BAD_REQUESTS[name],
            (400, 501, 505) if lenient else (400, 413) if size else 400,
            ("bad_request", "not_implemented", "version_not_supported") if lenient else
            ("bad_request", "payload_too_large") if size else "bad_request")


@pytest.mark.parametrize("version", ["1.2", "2.0", "0.9", "3.0", "1.9", "9.9"])
def test_another_version_is_505(shared, version):
    refused(shared, f"GET /api/v1/health HTTP/{version}\r\nHost: a\r\n\r\n".encode(), 505, "version_not_supported")


@pytest.mark.parametrize("method", ["FOO", "get", "Get", "PROPFIND", "BREW", "GETT", "PURGE", "LINK", "M-SEARCH", "QUERY"])
def test_an_unknown_method_is_501(shared, method):
    refused(shared, f"{method} /api/v1/health HTTP/1.1\r\nHost: a\r\n\r\n".encode(), 501, "not_implemented")


@pytest.mark.parametrize("value", ["gzip, chunked", "gzip\t,\tchunked", "deflate, Chunked", "new-coding, chunked"])
def test_an_unknown_transfer_coding_is_501(shared, value):
    refused(shared, head(f"Transfer-Encoding: {value}") + b"0\r\n\r\n", 501, "not_implemented")


@pytest.mark.parametrize("request_line, status", [
    (b"/ HTTP/1.1\r\nHost: a\r\nBad : x", 400), (b"/" + b"a" * 8192 + b" HTTP/1.1", 414), (b"/ HTTP/2.0", 505),
    (b"/ HTTP/1.1\r\nHost: a\r\nX: " + b"v" * 16384, 431), (b"/ HTTP/1.1\r\nHost: a\r\nExpect: miracles", 417)],
    ids=[400, 414, 505, 431, 417])
def test_a_refused_head_has_the_fields_of_the_refusal_and_no_body(shared, request_line, status):
    answers = {}
    for method in ("GET", "HEAD"):
        with shared.connect() as connection:
            connection.send(method.encode() + b" " + request_line + b"\r\n\r\n" + SMUGGLED)
            answers[method] = connection.receive(method)
            assert connection.at_end(), "something came after the refusal"
    assert answers["HEAD"].status == answers["GET"].status == status
    fields = {method: {name: answer.header(name) for name in (
        "content-type", "content-length", "cache-control", "x-content-type-options", "connection")}
        for method, answer in answers.items()}
    assert fields["HEAD"] == fields["GET"] and int(fields["HEAD"]["content-length"]) > 0


# ---- bounds -------------------------------------------------------------------------------------------

def test_a_target_of_8_kib_is_the_longest(shared):
    for size in (8192, 8191):
        with shared.connect() as connection:
            connection.send(head(request=b"GET /" + b"a" * (size - 1) + b" HTTP/1.1"))
            assert connection.receive().status == 403
    refused(shared, head(request=b"GET /" + b"a" * 8192 + b" HTTP/1.1"), 414, "uri_too_long")
    refused(shared, b"GET /" + b"a" * 200_000, 414, "uri_too_long", follow=b"")


def test_header_fields_have_a_limit_in_bytes(shared):
    with shared.connect() as connection:
        connection.send(head(*[f"X-{n}: " + "v" * 1000 for n in range(15)]))
        assert connection.receive().status == 200
    refused(shared, head("X: " + "v" * 16384), 431, "headers_too_large")
    refused(shared, head(*[f"X-{n}: " + "v" * 1000 for n in range(17)]), 431, "headers_too_large")
    refused(shared, b"GET / HTTP/1.1\r\nX: " + b"v" * 200_000, 431, "headers_too_large", follow=b"")
    refused(shared, b"GET / HTTP/1.1\r\n" + b"v" * 200_000, 431, "headers_too_large", follow=b"")


def test_header_fields_have_a_limit_in_number(shared):
    with shared.connect() as connection:
        connection.send(head(*[f"X-{n}: v" for n in range(99)]))  # and Host
        assert connection.receive().status == 200
    refused(shared, head(*[f"X-{n}: v" for n in range(100)]), 431, "headers_too_large")


def test_a_body_has_a_limit(shared):
    key = shared.customer.key
    with shared.connect() as connection:
        connection.send(head(f"X-Api-Key: {key}", "Content-Length: 16384", request=b"GET /api/v1/sports HTTP/1.1")
                        + b"x" * 16384 + HEALTH)
        assert connection.receive().status == 200
        assert connection.receive().json()["status"] == "ok"
    refused(shared, head("Content-Length: 16385") + b"x" * 16385, 413, "payload_too_large", follow=b"")
    refused(shared, head("Content-Length: 99999999999"), 413, "payload_too_large", follow=b"")
    refused(shared, head("Transfer-Encoding: chunked") + b"2000\r\n" + b"x" * 8192 + b"\r\n2001\r\n" + b"x" * 8193
            + b"\r\n0\r\n\r\n", 413, "payload_too_large", follow=b"")
    refused(shared, head("Transfer-Encoding: chunked") + b"ffffffffffffffff\r\n", (400, 413),
            ("payload_too_large", "bad_request"), follow=b"")


def test_chunk_extensions_and_trailers_are_bounded_too(shared):
    refused(shared, head("Transfer-Encoding: chunked") + b"1;" + b"e" * 200_000, (400, 413, 431),
            ("bad_request", "payload_too_large", "headers_too_large"), follow=b"")
    refused(shared, head("Transfer-Encoding: chunked") + b"0\r\n" + b"T: v\r\n" * 50_000, (400, 413, 431),
            ("bad_request", "payload_too_large", "headers_too_large"), follow=b"")


# ---- what is allowed ----------------------------------------------------------------------------------

@pytest.mark.parametrize("request_bytes", [
    HEALTH, b"\r\n" + HEALTH, head("X:"), head("X: "), head("X:y"), head("X:\ty \t"), head(b"X: \xff\xfe"),
    head("x-very_odd.name!#$%&'*+-^`|~: y"), head(host=b"hOsT: a"), head(host=b"Host: [::1]:80"),
    head(request=b"GET http://example.org/api/v1/health HTTP/1.1"), head("Content-Length: 0"),
    head("Content-Length: 00005") + b"hello", head("Content-Length:  5 ") + b"hello",
    head("Content-Length: 5\t") + b"he\tlo", head("Content-Length:\t 5\t ") + b"hello",
    head("Transfer-Encoding: chunked\t") + b"5\r\nhe\tlo\r\n0\r\n\r\n", head("Connection: keep-alive\t"),
    head("Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n",
    head("Transfer-Encoding: Chunked") + b"5\r\nhello\r\n00\r\n\r\n",
    head("transfer-encoding:  CHUNKED ") + b"005\r\nhello\r\n0\r\n\r\n",
    head("Transfer-Encoding: chunked") + b"5;a=b;c=\"d\"\r\nhello\r\n0;x\r\n\r\n",
    head("Transfer-Encoding: chunked") + b"1\r\na\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
    head("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"),
    head("Upgrade: websocket", "Connection: Upgrade"), head("Accept: text/html;q=0"), head("Range: bytes=0-1"),
    head("X: " + "a, " * 500)], ids=lambda data: repr(data[-40:]))
def test_a_proper_request_is_answered_and_the_connection_goes_on(shared, request_bytes):
    with shared.connect() as connection:
        connection.send(request_bytes)
        response = connection.receive()
        assert response.status == 200 and response.json()["status"] == "ok"
        connection.send(HEALTH)
        assert connection.receive().status == 200


def test_pipelined_requests_are_answered_in_order(shared):
    key = f"X-Api-Key: {shared.customer.key}"
    kinds = [(head(key, request=b"GET /api/v1/sports HTTP/1.1"), 200, "GET"),
             (head(key, request=b"GET /api/v1/cricket/events/1 HTTP/1.1"), 200, "GET"),
             (head(key, request=b"HEAD /api/v1/cricket/events HTTP/1.1"), 200, "HEAD"),
             (head(request=b"GET /api/v1/sports HTTP/1.1"), 403, "GET"),
             (HEALTH, 200, "GET"),
             (head(key, "Content-Length: 3", request=b"POST /api/v1/sports HTTP/1.1") + b"abc", 405, "GET"),
             (head(key, request=b"GET /api/v1/cricket/events/77 HTTP/1.1"), 404, "GET"),
             (head(key, "Transfer-Encoding: chunked", request=b"GET /nothing HTTP/1.1") + b"1\r\nx\r\n0\r\n\r\n", 404, "GET")]
    with shared.connect() as connection:
        connection.send(b"".join(request for request, _, _ in kinds * 12))
        for _, status, method in kinds * 12:
            assert connection.receive(method).status == status


def test_a_bad_request_behind_good_ones_is_refused_after_their_answers(shared):
    with shared.connect() as connection:
        connection.send(HEALTH * 3 + b"GET / HTTP/1.1\r\nBad : x\r\n\r\n" + SMUGGLED)
        assert [connection.receive().status for _ in range(3)] == [200] * 3
        assert connection.receive().error == (400, "bad_request")
        assert connection.at_end()


def test_options_asterisk_is_a_request_like_any_other(shared):
    with shared.connect() as connection:
        connection.send(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n" + HEALTH)
        assert connection.receive().error == (403, "ip_not_allowed")
        assert connection.receive().status == 200


def test_connect_is_refused_and_is_no_tunnel(shared):
    with shared.connect() as connection:
        connection.send(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n" + SMUGGLED)
        assert connection.receive().status in (400, 403, 405, 501)


def test_many_idle_connections_do_not_keep_others_out(shared):
    idle = [shared.connect() for _ in range(200)]
    try:
        assert shared.get("/api/v1/health").status == 200
    finally:
        for connection in idle:
            connection.close()


# ---- slow clients -------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """A service whose patience with a client is a second."""
    service = Service(tmp_path_factory.mktemp("hasty"), {
        "server.header_seconds": 1, "server.body_seconds": 1, "server.write_seconds": 1, "server.idle_seconds": 1})
    service.customer = service.add_customer()
    service.publish("cricket", [row(n, note="x" * 1000) for n in range(1, 8001)])
    service.start()
    service.await_admission(service.customer.key)
    yield service
    service.stop()


def test_a_head_that_does_not_end_is_408(hasty):
    with hasty.connect() as connection:
        connection.send(b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\n")
        assert connection.receive().error == (408, "request_timeout")
        assert connection.at_end()


def test_a_body_that_does_not_come_is_408(hasty):
    for framing, start in [("Content-Length: 10", b"hello"), ("Transfer-Encoding: chunked", b"5\r\nhel")]:
        with hasty.connect() as connection:
            connection.send(head(framing) + start)
            assert connection.receive().error == (408, "request_timeout")
            assert connection.at_end()


def test_an_idle_connection_is_closed_without_a_word(hasty):
    with hasty.connect() as fresh, hasty.connect() as used:
        used.send(HEALTH)
        assert used.receive().status == 200
        assert used.at_end() and fresh.at_end()


def test_a_client_that_does_not_read_is_given_up(hasty):
    with hasty.connect() as connection:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.send(head(f"X-Api-Key: {hasty.customer.key}", request=b"GET /api/v1/cricket/events HTTP/1.1") * 4)
        eventually(lambda: hasty.metrics()["croupier_connections"] == 0)  # closed in the middle of an answer
