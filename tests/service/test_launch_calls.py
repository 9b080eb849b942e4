"""Launches of games whose provider has a launch endpoint: the call, its signature, and everything that a provider can
do wrong, each of which is 503 provider_unavailable in time and harms no one else."""

import hashlib
import hmac
import json
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from servers import Stopwatch
from croupier import PATIENCE, Clock, eventually
from wallet_model import as_providers_read
from fake_provider import Authority, FakeProvider, at_head, raw, reply, reset

pytestmark = pytest.mark.depends_on("platform")

SECRET = "0123456789abcdef0123456789abcdef"
REAL = {"mode": "real", "player_reference": "player-1", "currency": "EUR"}
UNAVAILABLE = (503, "provider_unavailable")
TIMEOUT_MS = int(5000 * PATIENCE)
URL = "https://play.oasis.example/?session=s1#lobby"
GOOD = {"launch_url": URL}
# Nothing of the environment may lead a call elsewhere.
PROXIES = {name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")}


def add(service, identity, endpoint):
    service.prepare("provider", "add", identity, "--name", identity, "--launch-endpoint", endpoint, "--secret", "-",
                    input=SECRET)
    service.prepare("game", "import", "-", input=json.dumps(
        [{"id": f"{identity}-game", "name": identity, "provider": identity, "category": "slots", "demo": True,
          "currencies": ["EUR", "JPY"], "languages": ["en", "de"], "devices": ["desktop"]}]))


def launch(service, identity, body=None, headers=()):
    return service.request("POST", f"/api/v1/casino/games/{identity}-game/launch", key=service.player.key,
                           headers={"Content-Type": "application/json", **dict(headers)}, body=json.dumps(body or REAL).encode())


def prepare(service):
    service.player = service.add_customer("Casino", options=("--casino",))
    return service


def serve(service):
    service.start()
    service.await_admission(service.player.key)
    return service


def calls(service, outcome):
    return service.metrics()[f'croupier_launch_calls_total{{outcome="{outcome}"}}']


def at_once(count, what):
    """Runs what() that often at once; the answers, and how long each took, in the order of their ends."""
    answers = []

    def ask():
        began = time.monotonic()
        answer = what()
        answers.append((answer, time.monotonic() - began))

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, answers


def join(threads):
    for thread in threads:
        thread.join(60 * PATIENCE)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def provider():
    made = FakeProvider(reply(GOOD))
    yield made
    made.close()


@pytest.fixture(scope="module")
def casino(tmp_path_factory, authority, provider):
    from croupier import Service
    service = prepare(Service(tmp_path_factory.mktemp("casino"),
                              {"casino.launch_timeout_ms": TIMEOUT_MS, "casino.launch_ca_file": authority.file},
                              environment=PROXIES))
    add(service, "oasis", provider.url + "?brand=secret-brand")
    service.run("provider", "set", "oasis", "--return-url", "https://back.example/", "--audience", "oasis-prod")
    serve(service)
    yield service
    service.stop()


@pytest.fixture
def behave(provider):
    """Sets how the provider behaves in this test, and forgets what was asked before."""
    def change(behaviour):
        provider.requests.clear()
        provider.behaviour = behaviour
        return provider

    yield change
    provider.released.set()
    provider.released.clear()
    provider.behaviour = reply(GOOD)


# ---- the call --------------------------------------------------------------------------------------------------------

def test_the_provider_is_asked_with_a_signed_document_and_its_url_is_the_answer(casino, behave):
    provider = behave(reply(GOOD))
    answer = launch(casino, "oasis", dict(REAL, language="de", device="desktop", country="DE", player_ip="203.0.113.7"))
    assert answer.status == 200
    body = answer.json()
    assert list(body) == ["launch_url", "launch_id", "player_id", "game_id", "mode", "currency", "currency_exponent",
                          "expires_at"]
    assert body["launch_url"] == URL
    [request] = provider.requests
    assert request.line == "POST /launch?brand=secret-brand HTTP/1.1"
    assert request.field("content-type") == "application/json"
    assert request.field("host") == f"127.0.0.1:{provider.port}"
    assert not request.has("expect") and not request.has("authorization")
    timestamp = request.field("x-croupier-timestamp")
    assert abs(int(timestamp) - time.time()) < 60
    expected = hmac.new(SECRET.encode(), timestamp.encode() + b"." + request.body, hashlib.sha256).hexdigest()
    assert request.field("x-croupier-signature") == f"v1={expected}"
    document = request.json()
    as_providers_read("LaunchDocument", document)
    issued = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(int(timestamp)))
    expires = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(int(timestamp) + 300))
    subject = document.pop("player_id")
    assert document == {"launch_id": body["launch_id"], "audience": "oasis-prod", "game_id": "oasis-game",
                        "mode": "real", "currency": "EUR", "currency_exponent": 2, "language": "de",
                        "device": "desktop", "return_url": "https://back.example/", "country": "DE", "ip": "203.0.113.7", "issued_at": issued,
                        "expires_at": expires}
    assert body["expires_at"] == expires
    for ours in (body["player_id"], "player-1", casino.player.id, casino.player.key, SECRET):
        assert ours.encode() not in request.body
    launch(casino, "oasis", dict(REAL, currency="EUR"))
    assert provider.requests[1].json()["player_id"] == subject
    assert provider.requests[1].json()["launch_id"] != document["launch_id"]


def test_a_demo_launch_has_no_player_and_no_currency(casino, behave):
    provider = behave(reply(GOOD))
    body = launch(casino, "oasis", {"mode": "demo"}).json()
    assert (body["player_id"], body["currency"], body["currency_exponent"]) == (None, None, None)
    document = provider.requests[0].json()
    as_providers_read("LaunchDocument", document)
    assert document["mode"] == "demo"
    for name in ("currency", "currency_exponent", "language", "device", "country", "ip"):
        assert document[name] is None
    launch(casino, "oasis", {"mode": "demo"})
    assert provider.requests[1].json()["player_id"] != document["player_id"]


def test_the_provider_may_say_that_its_url_expires_sooner_but_not_later(casino, behave):
    def expiring(seconds):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))

    sooner, later = expiring(60), expiring(3600)
    behave(reply({"launch_url": URL, "expires_at": sooner, "something": {"new": True}}))
    assert launch(casino, "oasis").json()["expires_at"] == sooner.replace("Z", ".000Z")
    behave(reply({"launch_url": URL, "expires_at": later}))
    assert launch(casino, "oasis").json()["expires_at"] < later


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def test_the_trace_of_a_launch_is_logged_and_goes_on_to_the_provider(casino, behave):
    provider = behave(reply(GOOD))
    for sent in (TRACEPARENT, f"01{TRACEPARENT[2:]}-more"):
        answer = launch(casino, "oasis", headers={"traceparent": sent, "tracestate": "a=1"})
        assert answer.status == 200 and casino.log_line(answer)["trace"] == TRACE
        assert provider.requests[-1].field("traceparent") == TRACEPARENT
        assert not provider.requests[-1].has("tracestate")


@pytest.mark.parametrize("sent", [[], [TRACEPARENT] * 2, [TRACEPARENT.upper()], [f"ff{TRACEPARENT[2:]}"], [f"00-{'0' * 32}-00f067aa0ba902b7-01"],
                                  [f"{TRACEPARENT}-more"], [TRACE], [""]],
                         ids=["none", "two", "capitals", "version", "zeros", "longer", "shorter", "empty"])
def test_a_malformed_trace_is_as_none(casino, behave, sent):
    provider = behave(reply(GOOD))
    with casino.connect() as connection:
        lines = "".join(f"Traceparent: {value}\r\n" for value in sent)
        body = json.dumps({"mode": "demo"})
        connection.send(f"POST /api/v1/casino/games/oasis-game/launch HTTP/1.1\r\nHost: x\r\nX-Api-Key: {casino.player.key}\r\n{lines}"
                        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
        answer = connection.receive()
    assert answer.status == 200 and "trace" not in casino.log_line(answer)
    assert not provider.requests[-1].has("traceparent")


def test_each_request_of_a_connection_is_logged_with_its_own_trace(casino):
    with casino.connect() as connection:
        for trace in (TRACE, TRACE, TRACE[::-1], None, TRACE):
            line = f"traceparent: 00-{trace}-00f067aa0ba902b7-00\r\n" if trace else ""
            connection.send(f"GET /api/v1/sports HTTP/1.1\r\nHost: x\r\nX-Api-Key: {casino.player.key}\r\n{line}\r\n")
            assert casino.log_line(connection.receive()).get("trace") == trace


@pytest.mark.parametrize("body, error", [
    ({"mode": "real"}, (400, "invalid_request")),
    (dict(REAL, extra=1), (400, "unknown_field")),
    (dict(REAL, currency="SEK"), (422, "currency_not_supported")),
    (dict(REAL, language="fr"), (422, "language_not_supported")),
    (dict(REAL, device="watch"), (422, "device_not_supported")),
])
def test_a_bad_launch_is_refused_without_a_call(casino, behave, body, error):
    provider = behave(reply(GOOD))
    assert launch(casino, "oasis", body).error == error
    assert provider.requests == []


# ---- what a provider can do wrong ------------------------------------------------------------------------------------

WELL = json.dumps(GOOD).encode()
WRONG = {
    "500": (reply(GOOD, status="500 Oops"), "refused"),
    "201": (reply(GOOD, status="201 Created"), "refused"),
    "204": (raw(b"HTTP/1.1 204 No Content\r\n\r\n"), "refused"),
    "401": (reply({}, status="401 Unauthorized", fields=['WWW-Authenticate: Basic realm="x"']), "refused"),
    "nothing": (raw(b""), "broken"),
    "a reset": (reset, "broken"),
    "not http": (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "broken"),
    "http 0.9": (raw(WELL), "broken"),
    "closing in the head": (raw(b"HTTP/1.1 200 OK\r\nContent-Le"), "malformed"),
    "closing in the body": (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + WELL), "broken"),
    "closing in a chunk": (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" + WELL), "broken"),
    "no chunk": (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n" + WELL), "broken"),
    "a long body": (reply(b" " * 20000 + WELL), "malformed"),
    "a body without end": (raw(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 2000000), "malformed"),
    "a long head": (reply(GOOD, fields=[f"X-{i}: {'y' * 1000}" for i in range(20)]), "malformed"),
    "a long field": (reply(GOOD, fields=["X-Long: " + "y" * 90000]), "malformed"),
    "empty": (reply(b""), "malformed"),
    "not json": (reply(b"<html>ok</html>"), "malformed"),
    "compressed": (reply(b"\x1f\x8b\x08\x00", fields=["Content-Encoding: gzip"]), "malformed"),
    "two documents": (reply(WELL + WELL), "malformed"),
    "an array": (reply([GOOD]), "malformed"),
    "deep": (reply(b'{"launch_url":' + b"[" * 5000 + b"]" * 5000 + b"}"), "malformed"),
    "no url": (reply({"url": URL}), "malformed"),
    "two urls": (reply(b'{"launch_url":"https://a/","launch_url":"https://b/"}'), "malformed"),
    "two urls, escaped": (reply(b'{"launch_url":"https://a/","l\\u0061unch_url":"https://b/"}'), "malformed"),
    "a number": (reply({"launch_url": 7}), "malformed"),
    "null": (reply({"launch_url": None}), "malformed"),
    "a relative url": (reply({"launch_url": "/play"}), "malformed"),
    "a script": (reply({"launch_url": "javascript:alert(1)"}), "malformed"),
    "plain http elsewhere": (reply({"launch_url": "http://play.example/"}), "malformed"),
    "a user name": (reply({"launch_url": "https://play.example@evil.example/"}), "malformed"),
    "a line end": (reply({"launch_url": "https://play.example/\r\nX: y"}), "malformed"),
    "a long url": (reply({"launch_url": "https://play.example/" + "x" * 4096}), "malformed"),
    "no utf-8": (reply(b'{"launch_url":"https://a/\xff"}'), "malformed"),
    "expired": (reply({"launch_url": URL, "expires_at": "2020-01-01T00:00:00Z"}), "malformed"),
    "no time": (reply({"launch_url": URL, "expires_at": 1}), "malformed"),
}


@pytest.mark.parametrize("name", WRONG)
def test_whatever_it_answers_wrongly_is_provider_unavailable(casino, behave, name):
    behaviour, outcome = WRONG[name]
    provider = behave(behaviour)
    before = calls(casino, outcome)
    assert launch(casino, "oasis").error == UNAVAILABLE
    assert len(provider.requests) == 1, "a launch is asked for once"
    assert calls(casino, outcome) == before + 1
    eventually(provider.is_idle)  # else the next launch may leave on a connection that is about to be closed
    behave(reply(GOOD))
    assert launch(casino, "oasis").status == 200


def test_an_answer_is_heard_though_a_reset_follows_it(casino, behave):
    """As from one that refuses what the head says, or proxies, and does not read the rest."""
    head = b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    for _ in range(10):
        behave(at_head(head % (b"200 OK", len(WELL)) + WELL))
        assert launch(casino, "oasis").status == 200
    before = calls(casino, "refused")
    for _ in range(10):
        behave(at_head(head % (b"401 Unauthorized", 2) + b"{}"))
        assert launch(casino, "oasis").error == UNAVAILABLE
    assert calls(casino, "refused") == before + 10


def test_a_redirect_is_not_followed(casino, behave):
    target = FakeProvider(reply(GOOD))
    for status in ("301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"):
        behave(reply({}, status=status, fields=[f"Location: {target.url}"]))
        assert launch(casino, "oasis").error == UNAVAILABLE
    assert target.connections == 0
    target.close()


def dribble(connection, _):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n")
    for _ in range(600):
        connection.sendall(b" ")
        time.sleep(0.05)
    return False


def interim_answers_without_end(connection, _):
    for _ in range(600):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.05)
    return False


@pytest.mark.long(5)
@pytest.mark.parametrize("behaviour", [None, dribble, interim_answers_without_end])
def test_one_that_is_too_slow_is_given_up_at_the_deadline(casino, behave, behaviour):
    provider = behave(behaviour)
    provider.behaviour = behaviour or provider.hang
    before = calls(casino, "timeout")
    watch = Stopwatch()
    assert launch(casino, "oasis").error == UNAVAILABLE
    assert watch.elapsed() > TIMEOUT_MS / 1000 - 0.1
    assert calls(casino, "timeout") == before + 1


def test_one_that_is_down_is_unavailable_at_once_and_said_once_in_the_log(casino):
    provider = FakeProvider(reply(GOOD))
    provider.close()
    add(casino, "down", provider.url + "?token=in-the-query")
    eventually(lambda: launch(casino, "down").error == UNAVAILABLE)
    for _ in range(5):
        assert launch(casino, "down").error == UNAVAILABLE
    said = [line for line in casino.log_lines() if line.get("provider") == "down"]
    assert [(line["message"], line["level"], line["outcome"]) for line in said] == [
        ("launch endpoint fails", "error", "unreachable")]
    text = casino.log_text()
    assert "in-the-query" not in text and "secret-brand" not in text and SECRET not in text and URL not in text


def test_its_recovery_is_said_once_too(casino):
    provider = FakeProvider(reply(GOOD, status="503 Busy"))
    add(casino, "flaky", provider.url)
    eventually(lambda: launch(casino, "flaky").error == UNAVAILABLE)
    provider.behaviour = reply(GOOD)

    def said():
        assert launch(casino, "flaky").status == 200
        return [(line["message"], line.get("reason")) for line in casino.log_lines() if line.get("provider") == "flaky"]

    eventually(lambda: len(said()) > 1, interval=0.2)
    assert said() == [("launch endpoint fails", "status 503"), ("launch endpoint answers again", None)]
    provider.close()


def test_a_name_that_does_not_exist_is_unavailable(casino):
    add(casino, "nowhere", "https://nowhere.invalid/launch")
    before = calls(casino, "unreachable")
    eventually(lambda: launch(casino, "nowhere").error == UNAVAILABLE)
    eventually(lambda: calls(casino, "unreachable") + calls(casino, "timeout") > before)


# ---- https -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, subject, outcome", [
    ("right", "IP:127.0.0.1", "launched"),
    ("wrong-host", "IP:127.0.0.2,DNS:oasis.example", "untrusted"),
    ("unknown-authority", "IP:127.0.0.1", "untrusted"),
])
def test_https_is_verified(casino, authority, tmp_path, name, subject, outcome):
    signer = Authority(tmp_path, "stranger") if name == "unknown-authority" else authority
    provider = FakeProvider(reply(GOOD), signer.certificate(name, subject))
    add(casino, name, provider.url)
    before = calls(casino, outcome)
    expected = 200 if outcome == "launched" else 503
    eventually(lambda: launch(casino, name).status == expected and calls(casino, outcome) > before)
    assert bool(provider.requests) == (outcome == "launched"), "nothing is told to whom no one trusts"
    provider.close()


@pytest.mark.long(5)
def test_https_to_a_server_that_speaks_plain_http_is_unavailable(casino):
    provider = FakeProvider(reply(GOOD))
    add(casino, "plain", provider.url.replace("http:", "https:"))
    eventually(lambda: launch(casino, "plain").error == UNAVAILABLE)
    assert provider.requests == []
    provider.close()


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not there")
def test_the_systems_certificates_are_read_once_and_not_for_each_connection(make_service, authority, tmp_path):
    # Reading them takes some 50 ms, in which no other call goes on.
    provider = FakeProvider(reply(GOOD), authority.certificate("untrusted", "IP:127.0.0.1"))
    service = prepare(make_service({"casino.launch_timeout_ms": 60000}))
    add(service, "oasis", provider.url)
    serve(service)
    opened = tmp_path / "opened"
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-e", "trace=open,openat", "-o", opened, "-p",
                               str(service.process.pid)], stderr=subprocess.PIPE)
    threads = Path(f"/proc/{service.process.pid}/task")

    def is_traced():
        return not any("TracerPid:\t0\n" in (thread / "status").read_text() for thread in threads.iterdir())

    def is_refused_again():
        assert launch(service, "oasis").error == UNAVAILABLE
        return calls(service, "untrusted") > 5

    try:
        eventually(lambda: tracer.poll() is not None or is_traced())
        if tracer.poll() is not None:
            pytest.skip("strace may not trace here")
        eventually(is_refused_again)
    finally:
        tracer.terminate()
        tracer.wait()
    read = [line for line in opened.read_text().splitlines() if ".crt" in line or ".pem" in line or "/certs" in line]
    assert len(read) == 1, read
    assert provider.requests == []
    provider.close()


# ---- connections -----------------------------------------------------------------------------------------------------

def test_a_connection_is_kept_and_used_again(casino, behave):
    provider = behave(reply(GOOD))
    for _ in range(5):
        assert launch(casino, "oasis").status == 200
    assert len({request.connection_number for request in provider.requests}) == 1


def test_a_connection_that_was_closed_meanwhile_harms_no_one(casino, behave):
    provider = behave(reply(GOOD))
    assert launch(casino, "oasis").status == 200
    provider.drop_connections()
    time.sleep(0.2)
    assert launch(casino, "oasis").status == 200
    assert len(provider.requests) == 2


@pytest.mark.parametrize("end", [raw(b""), reset], ids=["an end", "a reset"])
def test_a_launch_that_the_provider_has_read_is_never_asked_for_twice(casino, behave, end):
    provider = behave(reply(GOOD))
    assert launch(casino, "oasis").status == 200
    provider.behaviour = end  # reads it, on the kept connection, and goes without a word
    assert launch(casino, "oasis").error == UNAVAILABLE
    assert len(provider.requests) == 2
    assert provider.requests[1].connection_number == provider.requests[0].connection_number


# ---- many at once ----------------------------------------------------------------------------------------------------

def test_a_slow_provider_makes_no_one_wait_but_its_own_players(make_service, provider):
    # A call ends only when the provider ends it, so that as many are counted however busy the machine is.
    service = serve(prepare(make_service({"casino.launch_timeout_ms": 60000})))
    slow = FakeProvider(reply(GOOD))
    add(service, "slow", slow.url)
    add(service, "oasis", provider.url)
    eventually(lambda: launch(service, "slow").status == launch(service, "oasis").status == 200)
    asked = len(slow.requests)
    slow.behaviour = slow.hang
    threads, answers = at_once(130, lambda: launch(service, "slow", {"mode": "demo"}))
    eventually(lambda: calls(service, "overloaded") == 130 - 32 - 64)
    eventually(lambda: len(slow.requests) - asked == 32)
    metrics = service.metrics()
    assert (metrics["croupier_launch_calls_in_flight"], metrics["croupier_launch_calls_waiting"]) == (32, 64)
    for _ in range(20):
        assert launch(service, "oasis").status == 200
    assert len(slow.requests) - asked == 32
    slow.behaviour = reset
    slow.released.set()
    join(threads)
    assert [answer.error for answer, _ in answers] == [UNAVAILABLE] * 130
    slow.close()


def test_a_call_that_waited_too_long_is_not_made(make_service, tmp_path):
    """A call that has waited for half the time that it has; the service's time is the test's."""
    clock = Clock(tmp_path / "clock")
    service = serve(prepare(make_service({"casino.launch_timeout_ms": 60000}, environment=clock.environment)))
    slow = FakeProvider(reply(GOOD))
    add(service, "slow", slow.url)
    eventually(lambda: launch(service, "slow").status == 200)
    asked, late = len(slow.requests), calls(service, "timeout")
    slow.behaviour = slow.hang
    threads, answers = at_once(40, lambda: launch(service, "slow", {"mode": "demo"}))
    eventually(lambda: len(slow.requests) - asked == 32)
    eventually(lambda: service.metrics()["croupier_launch_calls_waiting"] == 8)
    clock.advance(monotonic=31)
    eventually(lambda: len(answers) == 8)
    metrics = service.metrics()
    assert (metrics["croupier_launch_calls_in_flight"], metrics["croupier_launch_calls_waiting"]) == (32, 0)
    assert calls(service, "timeout") == late + 8
    slow.released.set()
    join(threads)
    assert [answer.error for answer, _ in answers] == [UNAVAILABLE] * 40
    assert len(slow.requests) - asked == 32, "those that waited too long were not made"
    slow.close()


def test_many_launches_of_a_good_provider_at_once_all_succeed(casino, behave):
    def after_a_while(connection, request):
        time.sleep(0.05)
        return reply(GOOD)(connection, request)

    provider = behave(after_a_while)
    threads, answers = at_once(80, lambda: launch(casino, "oasis"))
    join(threads)
    assert [answer.status for answer, _ in answers] == [200] * 80
    assert len(provider.requests) == 80
    assert len({answer.json()["launch_id"] for answer, _ in answers}) == 80


def test_a_client_that_has_gone_is_not_launched_for(casino):
    slow = FakeProvider(reply(GOOD))
    add(casino, "patient", slow.url)
    eventually(lambda: launch(casino, "patient", {"mode": "demo"}).status == 200)
    slow.behaviour = slow.hang
    asked, before = len(slow.requests), calls(casino, "abandoned")
    threads, _ = at_once(32, lambda: launch(casino, "patient", {"mode": "demo"}))
    eventually(lambda: len(slow.requests) - asked == 32)
    body = b'{"mode":"demo"}'
    connection = casino.connect()
    connection.send(b"POST /api/v1/casino/games/patient-game/launch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
                    + casino.player.key.encode() + b"\r\nContent-Type: application/json\r\nContent-Length: "
                    + str(len(body)).encode() + b"\r\n\r\n" + body)
    eventually(lambda: casino.metrics()["croupier_launch_calls_waiting"] == 1)
    # A reset, not an end of the request stream: that client will not read any more.
    import socket
    import struct
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    time.sleep(0.2)
    slow.released.set()
    join(threads)
    eventually(lambda: calls(casino, "abandoned") == before + 1)
    assert len(slow.requests) - asked == 32
    slow.close()


# ---- the end ---------------------------------------------------------------------------------------------------------

def test_the_server_ends_in_order_with_calls_under_way(make_service):
    slow = FakeProvider(None)
    slow.behaviour = slow.hang
    service = prepare(make_service({"casino.launch_timeout_ms": 60000, "server.drain_seconds": 1}))
    add(service, "slow", slow.url)
    serve(service)

    def ask():
        try:
            return launch(service, "slow", {"mode": "demo"}).status
        except OSError:
            return None

    threads, _ = at_once(40, ask)
    eventually(lambda: len(slow.requests) == 32)
    watch = Stopwatch()
    service.stop()
    assert watch.seconds() < 10 * PATIENCE
    join(threads)
    slow.close()


def test_launches_under_way_are_answered_before_the_server_ends(make_service):
    provider = FakeProvider(None)

    def after_release(connection, request):
        provider.released.wait(30)
        return reply(GOOD)(connection, request)

    provider.behaviour = after_release
    service = prepare(make_service({"casino.launch_timeout_ms": 30000}))
    add(service, "oasis", provider.url)
    serve(service)
    threads, answers = at_once(1, lambda: launch(service, "oasis"))
    eventually(lambda: provider.requests)
    import signal
    service.signal(signal.SIGTERM)
    eventually(lambda: "draining" in service.log_text())
    provider.released.set()
    join(threads)
    assert answers[0][0].json()["launch_url"] == URL
    assert service.wait() == 0
    provider.close()


def test_a_file_of_certificates_that_is_none_is_told_at_once(make_service, tmp_path):
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("nothing of that kind\n")
    service = make_service({"casino.launch_ca_file": wrong})
    done = service.run("check", status=1)
    assert "casino.launch_ca_file" in done.text and "cannot be read as certificates" in done.text
    service.spawn()
    assert service.wait() == 1
    assert "cannot be read as certificates" in service.log_text()


def test_the_provider_is_told_by_a_token_again_when_its_endpoint_is_replaced(casino, behave):
    provider = behave(reply(GOOD))
    other = FakeProvider(reply(GOOD))
    add(casino, "changing", other.url)
    eventually(lambda: launch(casino, "changing").status == 200)
    casino.run("provider", "set", "changing", "--launch-url", "https://changing.example/play")
    eventually(lambda: launch(casino, "changing").json().get("launch_url", "").startswith("https://changing.example/play?token="))
    casino.run("provider", "set", "changing", "--launch-endpoint", provider.url)
    eventually(lambda: launch(casino, "changing").json().get("launch_url") == URL)
    other.close()


def test_calls_and_the_games_table_are_in_the_metrics(casino):
    assert launch(casino, "oasis").status == 200

    def at_rest():  # calls of the tests before may still wait to be given up
        found = casino.metrics()
        return found if found["croupier_launch_calls_in_flight"] == found["croupier_launch_queue_depth"] == 0 else None

    metrics = eventually(at_rest)
    assert metrics["croupier_launch_call_seconds_count"] > 0
    assert metrics["croupier_launch_call_seconds_sum"] > 0
    assert metrics['croupier_launch_call_seconds_bucket{le="+Inf"}'] == metrics["croupier_launch_call_seconds_count"]
    assert 0 <= metrics["croupier_games_age_seconds"] < 1


# ---- a secret and the one after it -----------------------------------------------------------------------------------

def test_the_newest_secret_signs_and_says_which_it_is(casino):
    provider = FakeProvider(reply(GOOD))
    other = "another-secret-of-the-provider-0123456789"
    add(casino, "renewed", provider.url)
    eventually(lambda: launch(casino, "renewed").status == 200)
    assert not provider.requests[-1].has("x-croupier-key-id")
    casino.run("provider", "secret", "add", "renewed", input=other)
    kid = casino.ask("provider", "secret", "list", "renewed")[0]["kid"]

    def signed_with(secret):
        request = provider.requests[-1]
        data = request.field("x-croupier-timestamp").encode() + b"." + request.body
        return request.field("x-croupier-signature") == "v1=" + hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()

    def named():
        assert launch(casino, "renewed").status == 200
        return provider.requests[-1].has("x-croupier-key-id")

    eventually(named)
    assert provider.requests[-1].field("x-croupier-key-id") == kid and signed_with(other)
    casino.run("provider", "secret", "retire", "renewed", kid)  # back again
    eventually(lambda: not named())
    assert signed_with(SECRET)
    provider.close()


# ---- croupier provider try -------------------------------------------------------------------------------------------

def attempt(service, identity, status, *words):
    return json.loads(service.run("provider", "try", identity, *words, "--json", status=status).text)


def test_an_endpoint_is_tried_without_a_customer(casino, behave):
    provider = behave(reply(GOOD))
    told = attempt(casino, "oasis", 0)
    assert (told["outcome"], told["status"], told["reason"], told["launch_url"]) == ("launched", 200, None, URL)
    assert told["game_id"] == "oasis-game" and told["milliseconds"] >= 0 and told["launch_endpoint"].startswith(provider.url)
    [request] = provider.requests
    signature = hmac.new(SECRET.encode(), request.field("x-croupier-timestamp").encode() + b"." + request.body, hashlib.sha256)
    assert request.field("x-croupier-signature") == "v1=" + signature.hexdigest()
    document = request.json()
    assert (document["mode"], document["audience"], document["currency"]) == ("demo", "oasis-prod", None)
    assert len(document["player_id"]) == 22
    assert casino.platform.execute(f"SELECT id FROM launch WHERE id = '{document['launch_id']}'") == []
    text = casino.run("provider", "try", "oasis", "oasis-game").text
    assert text.startswith("oasis launched oasis-game in ") and text.endswith(f"status 200, {URL}\n")


@pytest.mark.parametrize("behaviour, outcome, status, reason", [
    (reply({}, status="401 No"), "refused", 401, "status 401"),
    (reply(b"[]"), "malformed", 200, None),
    (reset, "broken", None, None),
], ids=["status", "body", "reset"])
def test_what_an_endpoint_does_wrong_is_told(casino, behave, behaviour, outcome, status, reason):
    behave(behaviour)
    told = attempt(casino, "oasis", 1)
    assert (told["outcome"], told["status"], told["launch_url"]) == (outcome, status, None)
    assert told["reason"] == reason if reason else told["reason"]
    errors = casino.run("provider", "try", "oasis", status=1).errors
    assert f"oasis did not launch oasis-game: {outcome} after " in errors and SECRET not in errors


def test_a_try_tells_what_tls_does_not_like_and_what_cannot_be_tried(casino, tmp_path):
    provider = FakeProvider(reply(GOOD), certificate=Authority(tmp_path, "stranger").certificate("tried", "IP:127.0.0.1"))
    add(casino, "strange", provider.url)
    told = attempt(casino, "strange", 1)
    assert told["outcome"] == "untrusted" and told["reason"]
    provider.close()
    assert "has no game 'dune'" in casino.run("provider", "try", "oasis", "dune", status=1).errors
    assert "there is no provider 'nobody'" in casino.run("provider", "try", "nobody", status=1).errors
    casino.run("provider", "add", "page", "--name", "Page", "--launch-url", "https://page.example/", "--secret", "-", input=SECRET)
    assert "no launch endpoint" in casino.run("provider", "try", "page", status=1).errors


def test_another_reason_of_a_failure_is_said_and_the_count_with_the_recovery(casino):
    provider = FakeProvider(reply(GOOD, status="503 Busy"))
    add(casino, "moody", provider.url)

    def lines():
        launch(casino, "moody")
        return [line for line in casino.log_lines() if line.get("provider") == "moody"]

    eventually(lambda: launch(casino, "moody").error == UNAVAILABLE)
    provider.behaviour = reply(GOOD, status="500 Broken")
    eventually(lambda: len(lines()) > 1, interval=0.2)
    provider.behaviour = reply(GOOD)
    eventually(lambda: len(lines()) > 2, interval=0.2)
    said = lines()
    assert [(line["message"], line.get("reason")) for line in said] == [
        ("launch endpoint fails", "status 503"), ("launch endpoint fails", "status 500"), ("launch endpoint answers again", None)]
    assert said[0]["failures"] == 1 < said[1]["failures"] <= said[2]["failures"]
    provider.close()
