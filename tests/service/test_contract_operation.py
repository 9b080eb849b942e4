"""Running it: start and end, signals, HTTPS, the operator's listener, logs, and configuration refused."""

import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from servers import free_port
from croupier import BINARY, PATIENCE, ROOT, Connection, Service, certificate, eventually, match_odds, row, sanitizer_environment, trusting
from fake_provider import Authority

pytestmark = pytest.mark.depends_on("platform")

HEALTH = b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture
def running(service):
    service.customer = service.add_customer()
    service.publish("cricket", [row(1)], {1: match_odds()})
    service.start()
    service.await_admission(service.customer.key)
    return service


def processes_of(directory):
    """Processes whose command line names this directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if str(directory).encode() in (entry / "cmdline").read_bytes():
                    found.append(entry.name)
            except OSError:
                pass
    return found


# ---- the end ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_with_status_0_and_leaves_no_process(running, number):
    running.signal(number)
    assert running.wait() == 0
    assert not processes_of(running.directory)


def test_a_signal_ends_a_server_that_still_waits_for_its_policies(make_service):
    service = make_service(stores=False)
    service.spawn()
    eventually(lambda: any(line["message"] == "policies cannot be refreshed" for line in service.log_lines()))
    service.signal(signal.SIGTERM)
    assert service.wait() == 0
    messages = [line["message"] for line in service.log_lines()]
    assert "draining" in messages and messages[-1] == "stopped"  # what is being taken down may say a word between
    assert "listening" not in messages, "it went on waiting for its policies before it looked at the signal"


def test_idle_connections_do_not_hold_up_the_end(make_service):
    service = make_service({"server.drain_seconds": 3600})
    service.start()
    with service.connect() as fresh, service.connect() as used:
        used.send(HEALTH)
        used.receive()
        service.stop()
        assert used.at_end() and fresh.at_end()


def test_an_answer_under_way_is_finished_before_the_end(running):
    running.publish("tennis", [row(n, note="x" * 2000) for n in range(1, 5001)])
    eventually(lambda: running.get("/api/v1/tennis/events", key=running.customer.key).status == 200)  # it is made
    with running.connect() as connection:
        connection.send(f"GET /api/v1/tennis/events HTTP/1.1\r\nHost: a\r\nX-Api-Key: {running.customer.key}\r\n\r\n")
        connection.more()
        running.signal(signal.SIGTERM)
        eventually(lambda: any(line["message"] == "draining" for line in running.log_lines()))
        assert running.process.poll() is None, "the server did not wait for the answer"
        assert len(connection.receive().json()) == 5000
        assert connection.at_end()
    assert running.wait() == 0


def test_new_connections_are_not_taken_while_draining(running):
    running.publish("tennis", [row(n, note="x" * 2000) for n in range(1, 5001)])
    with running.connect() as connection:
        connection.send(f"GET /api/v1/tennis/events HTTP/1.1\r\nHost: a\r\nX-Api-Key: {running.customer.key}\r\n\r\n")
        connection.more()
        running.signal(signal.SIGTERM)

        def refused():
            try:
                running.connect().close()
            except ConnectionError:
                return True
            return False
        eventually(refused, 3)
        connection.receive()
    assert running.wait() == 0


def test_a_client_that_does_not_read_cannot_keep_the_server_from_ending(make_service):
    service = make_service({"server.drain_seconds": 1})
    customer = service.add_customer()
    service.publish("tennis", [row(n, note="x" * 2000) for n in range(1, 5001)])
    service.start()
    service.await_admission(customer.key)
    with service.connect() as connection:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        connection.send(f"GET /api/v1/tennis/events HTTP/1.1\r\nHost: a\r\nX-Api-Key: {customer.key}\r\n\r\n")
        connection.more()
        service.stop()


def test_the_address_of_a_running_server_is_not_taken_twice(running, make_service):
    host, port = running.address
    second = make_service({"server.listen": f"{host}:{port}"})
    second.spawn()
    assert second.wait() == 1
    assert f"{host}:{port}" in second.log_text()


# ---- before the stores answer -------------------------------------------------------------------------

@pytest.fixture
def waiting(make_service):
    """A server whose platform store is not there: it gives it some seconds before it serves without."""
    service = make_service(own_stores=True)
    service.add_customer()
    service.platform.take_away()
    service.spawn()
    eventually(lambda: any("cannot be refreshed" in line["message"] for line in service.log_lines()), 30)
    assert not any(line["message"] == "listening" for line in service.log_lines())
    yield service
    service.platform.bring_back()


def test_a_server_that_waits_for_its_stores_ends_when_it_is_told(waiting):
    waiting.signal(signal.SIGTERM)
    assert waiting.wait() == 0
    assert not any(line["message"] == "listening" for line in waiting.log_lines())


def test_a_sighup_while_it_waits_is_not_forgotten(waiting):
    waiting.configure({"server.trusted_proxies": "192.0.2.1"})
    waiting.signal(signal.SIGHUP)
    eventually(waiting.listening, 30)
    eventually(lambda: any(line["message"] == "configuration read again" for line in waiting.log_lines()))
    assert any("no policies yet" in line["message"] for line in waiting.log_lines())
    assert waiting.get("/api/v1/sports", key="any").error == (503, "security_config_unavailable")


def test_who_comes_while_it_starts_is_answered_when_it_can_be(make_service):
    service = make_service(own_stores=True, settings={"server.listen": f"127.0.0.1:{free_port()}"})
    customer = service.add_customer()
    service.platform.take_away()
    service.spawn()
    address = ("127.0.0.1", int(service.settings[("server", "listen")].rpartition(":")[2]))
    connection = eventually(lambda: connected(address))
    with connection:
        connection.send(f"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\nX-Api-Key: {customer.key}\r\n\r\n")
        service.platform.bring_back()
        assert connection.receive().status == 200
    eventually(service.listening, 30)


def connected(address):
    try:
        return Connection(address)
    except ConnectionRefusedError:
        return None


# ---- SIGHUP -------------------------------------------------------------------------------------------

def test_sighup_takes_over_what_can_change(running):
    assert running.get("/api/v1/sports", headers={"X-Forwarded-For": "203.0.113.9"}).status == 403
    running.run("ip", "add", "203.0.113.9")
    running.configure({"server.trusted_proxies": "127.0.0.0/8", "log.level": "debug"})
    time.sleep(0.5)
    assert running.get("/api/v1/sports", headers={"X-Forwarded-For": "203.0.113.9"}).status == 403, "not before SIGHUP"
    running.signal(signal.SIGHUP)
    eventually(lambda: running.get("/api/v1/sports", headers={"X-Forwarded-For": "203.0.113.9"}).status == 200)


def test_a_broken_file_changes_nothing_and_says_so(running):
    good = running.configuration.read_text()
    running.configuration.write_text(good.replace("[log]", "[server]\ntrusted_proxies = 10.0.0.0/8\nnonsense = 1\n[log]"))
    lines = len(running.log_lines())
    running.signal(signal.SIGHUP)
    said = eventually(lambda: [line for line in running.log_lines()[lines:] if "nonsense" in json.dumps(line)])
    assert said[0]["level"] in ("warning", "error")
    assert running.get("/api/v1/sports", headers={"X-Forwarded-For": "203.0.113.9"}).status == 403
    assert running.get("/api/v1/sports", key=running.customer.key).status == 200
    running.configuration.unlink()
    lines = len(running.log_lines())
    running.signal(signal.SIGHUP)
    eventually(lambda: [line for line in running.log_lines()[lines:] if line["level"] in ("warning", "error")])
    running.configuration.write_text(good)
    running.signal(signal.SIGHUP)
    assert running.get("/api/v1/sports", key=running.customer.key).status == 200


def test_what_cannot_change_while_running_is_named(running):
    running.configure({"server.threads": 1, "server.listen": "127.0.0.1:1"})
    lines = len(running.log_lines())
    running.signal(signal.SIGHUP)
    said = eventually(lambda: [json.dumps(line) for line in running.log_lines()[lines:] if "restart" in json.dumps(line)])
    assert "server.listen" in said[0] or "[server] listen" in said[0]
    assert running.get("/api/v1/health").status == 200


def test_many_signals_while_busy_do_no_harm(running):
    for _ in range(20):
        running.signal(signal.SIGHUP)
        assert running.get("/api/v1/cricket/events", key=running.customer.key).status == 200


# ---- HTTPS --------------------------------------------------------------------------------------------

def certified(paths):
    return {"server.tls_certificate": paths[0], "server.tls_key": paths[1], "server.header_seconds": 2}


def start_https(service, paths):
    service.tls = trusting(paths[0])
    service.customer = service.add_customer()
    service.publish("cricket", [row(n, note="x" * 1000) for n in range(1, 3001)], {1: match_odds()})
    service.start()
    service.await_admission(service.customer.key)


@pytest.fixture
def own_https(make_service, tmp_path):
    paths = certificate(tmp_path)
    service = make_service(certified(paths))
    start_https(service, paths)
    return service


@pytest.fixture(scope="module")
def shared_https(tmp_path_factory):
    directory = tmp_path_factory.mktemp("https")
    paths = certificate(directory)
    service = Service(directory / "service", certified(paths))
    start_https(service, paths)
    yield service
    service.remove()


@pytest.fixture
def secure(shared_https):
    """It, for clients with a context of their own."""
    shared_https.tls = trusting(shared_https.settings[("server", "tls_certificate")])
    return shared_https


def test_https_serves_the_same(secure):
    response = secure.get("/api/v1/cricket/events", key=secure.customer.key)
    assert response.status == 200 and len(response.json()) == 3000
    with secure.connect() as connection:
        assert connection.socket.version() in ("TLSv1.2", "TLSv1.3")
        request = f"GET /api/v1/cricket/events/1 HTTP/1.1\r\nHost: a\r\nX-Api-Key: {secure.customer.key}\r\n\r\n"
        connection.send(request * 50)
        assert [connection.receive().status for _ in range(50)] == [200] * 50


def test_tls_1_2_takes_nothing_but_ecdhe_with_aead(make_service, tmp_path):
    """With an RSA certificate, which the static key exchange would need."""
    paths = certificate(tmp_path, key=("rsa:2048",))
    service = make_service({"server.tls_certificate": paths[0], "server.tls_key": paths[1]})
    service.tls = trusting(paths[0])
    service.start()
    for cipher in ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-CHACHA20-POLY1305", "AES128-GCM-SHA256", "AES256-SHA256",
                   "AES128-SHA", "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-SHA384", "DHE-RSA-AES128-GCM-SHA256"):
        client = trusting(paths[0])
        client.maximum_version = ssl.TLSVersion.TLSv1_2
        client.set_ciphers(cipher)
        with socket.create_connection(service.address, 10 * PATIENCE) as raw:
            if cipher in ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-CHACHA20-POLY1305"):
                assert client.wrap_socket(raw, server_hostname="localhost").cipher()[0] == cipher
            else:
                with pytest.raises(ssl.SSLError, match="HANDSHAKE_FAILURE"):
                    client.wrap_socket(raw, server_hostname="localhost")


def test_plain_http_on_the_https_port_is_told_so(secure):
    with Connection(secure.address, timeout=10 * PATIENCE) as connection:
        connection.send(HEALTH + HEALTH)
        assert connection.receive().error == (400, "https_required")
        assert connection.at_end()


def test_an_https_client_that_goes_away_in_the_middle_harms_no_one(secure):
    for _ in range(5):
        connection = secure.connect()
        connection.send(f"GET /api/v1/cricket/events HTTP/1.1\r\nHost: a\r\nX-Api-Key: {secure.customer.key}\r\n\r\n" * 5)
        connection.socket.recv(1000)
        connection.close()
    assert secure.get("/api/v1/health").status == 200


def shown_expiry(service):
    return service.metrics()['croupier_tls_certificate_expiry_timestamp_seconds{listener="public"}']


def expiry_of(path):
    done = subprocess.run(["openssl", "x509", "-enddate", "-noout", "-in", path], capture_output=True, text=True, check=True)
    return ssl.cert_time_to_seconds(done.stdout.partition("=")[2].strip())


def test_a_new_certificate_is_taken_over_by_sighup(own_https, tmp_path):
    paths = certificate(tmp_path, "renewed", days=9)
    old = own_https.tls
    assert shown_expiry(own_https) == expiry_of(own_https.settings[("server", "tls_certificate")]) < expiry_of(paths[0])
    Path(own_https.settings[("server", "tls_certificate")]).write_bytes(paths[0].read_bytes())
    Path(own_https.settings[("server", "tls_key")]).write_bytes(paths[1].read_bytes())
    with own_https.connect() as before:
        own_https.signal(signal.SIGHUP)
        own_https.tls = trusting(paths[0])

        def renewed():
            try:
                return own_https.get("/api/v1/health").status == 200
            except ssl.SSLError:
                return False
        eventually(renewed)
        before.send(HEALTH)
        assert before.receive().status == 200, "a connection that is open goes on"
    assert shown_expiry(own_https) == expiry_of(paths[0])
    own_https.tls = old
    with pytest.raises(ssl.SSLError):
        own_https.get("/api/v1/health")


def told_to_restart(service):
    """What a reload says that needs a restart."""
    def said(message):
        return [line for line in service.log_lines()[lines:] if line["message"] == message]
    lines = len(service.log_lines())
    service.signal(signal.SIGHUP)
    [line] = eventually(lambda: said("some changed settings need a restart"))
    return line["settings"]


def test_https_is_not_turned_on_by_sighup_which_says_so_each_time(running, tmp_path):
    paths = certificate(tmp_path)
    running.configure({"server.tls_certificate": paths[0], "server.tls_key": paths[1]})
    assert told_to_restart(running) == "server.tls_certificate, server.tls_key"
    assert told_to_restart(running) == "server.tls_certificate, server.tls_key"
    assert running.get("/api/v1/health").status == 200


def test_https_is_not_turned_off_by_sighup_which_says_so(own_https):
    own_https.configure({"server.tls_certificate": None, "server.tls_key": None})
    assert told_to_restart(own_https) == "server.tls_certificate, server.tls_key"
    assert own_https.get("/api/v1/health").status == 200


@pytest.mark.parametrize("spoil", ["missing", "garbage", "encrypted", "other key", "empty certificate"])
def test_an_unusable_certificate_is_refused_at_the_start(make_service, tmp_path, spoil):
    paths = certificate(tmp_path)
    other = certificate(tmp_path, "other")
    key = {"missing": tmp_path / "nowhere.key", "garbage": tmp_path / "garbage.key",
           "encrypted": tmp_path / "encrypted.key", "other key": other[1], "empty certificate": paths[1]}[spoil]
    (tmp_path / "garbage.key").write_text("nothing of a key")
    subprocess.run(["openssl", "pkey", "-in", paths[1], "-aes256", "-passout", "pass:x", "-out", tmp_path / "encrypted.key"], check=True)
    if spoil == "empty certificate":
        paths[0].write_text("")
    service = make_service({"server.tls_certificate": paths[0], "server.tls_key": key})
    service.spawn()
    assert service.wait() == 1
    assert (paths[0] if spoil == "empty certificate" else key).name in service.log_text()
    why = {"missing": "No such file", "garbage": "it is no PEM", "encrypted": "asks for no password", "other key": "mismatch",
           "empty certificate": "nothing in PEM form"}
    assert why[spoil] in service.log_text()


# ---- the operator's listener --------------------------------------------------------------------------

@pytest.fixture(scope="module")
def watched(shared):
    shared.publish("cricket", [row(1)], {1: match_odds()})
    return shared


def test_metrics_are_in_prometheus_text(watched):
    for _ in range(3):
        watched.get("/api/v1/cricket/events/1", key=watched.customer.key)
    watched.get("/api/v1/cricket/events/1")
    response = watched.request("GET", "/metrics", address=watched.operator_address)
    assert response.header("content-type").startswith("text/plain; version=0.0.4")
    types, samples = {}, []
    for line in response.body.decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types
            types[name] = kind
        elif not line.startswith("#"):
            assert re.fullmatch(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? (NaN|[+-]?Inf|-?[0-9.e+-]+)', line), line
            samples.append(line.split("{")[0].split(" ")[0])
    for name in samples:
        assert name in types or re.sub("_(bucket|sum|count)$", "", name) in types
    assert {"counter", "gauge", "histogram"} <= set(types.values())


def test_metrics_count_what_happened(watched):
    watched.publish("cricket", [row(1)])
    before = watched.metrics()
    for _ in range(4):
        watched.get("/api/v1/cricket/events/1", key=watched.customer.key)
    watched.get("/api/v1/cricket/events/1")
    with watched.connect() as connection:
        connection.send(b"NONSENSE / HTTP/1.1\r\nHost: a\r\n\r\n")
        connection.receive()

    def grown(*words):
        after = watched.metrics()
        return sum(value - before.get(name, 0) for name, value in after.items()
                   if name.startswith("croupier_requests_total") and all(word in name for word in words))
    eventually(lambda: grown("{sport}/events/{eventId}", '"200"') == 4)
    eventually(lambda: grown("{sport}/events/{eventId}", '"403"') == 1)
    eventually(lambda: grown('"501"') == 1)
    after = watched.metrics()
    assert after["croupier_not_admitted_total"] - before["croupier_not_admitted_total"] == 1
    denials = {name: value - before[name] for name, value in after.items() if name.startswith("croupier_denials_total")}
    assert {name: count for name, count in denials.items() if count} == {'croupier_denials_total{reason="no_policy"}': 1}
    assert after["croupier_policy_customers"] == 1 and after["croupier_policy_keys"] == 1
    assert 0 <= after["croupier_policy_age_seconds"] < 5
    ages = {name: value for name, value in after.items() if name.startswith("croupier_feed_age_seconds")}
    assert 0 <= next(value for name, value in ages.items() if "cricket" in name) < 600


def test_the_operators_listener_has_nothing_of_the_public_interface(watched):
    for path in ("/api/v1/health", "/api/v1/sports", "/", "/metrics/"):
        assert watched.request("GET", path, address=watched.operator_address).status == 404
    assert watched.request("POST", "/metrics", body=b"", address=watched.operator_address).status == 405


def test_an_orchestrator_hears_of_the_stores_until_they_are_loaded(make_service):
    service = make_service(own_stores=True)
    service.platform.take_away()
    service.start(healthy=False)
    assert service.word("/live") == (200, "ok") and service.word("/ready") == (503, "loading")
    service.platform.bring_back()
    eventually(lambda: service.word("/ready") == (200, "ok"))
    service.platform.take_away()
    eventually(lambda: service.get("/api/v1/health").status == 503)
    assert service.word("/live") == (200, "ok") and service.word("/ready") == (200, "ok")
    service.platform.bring_back()


def test_an_orchestrator_hears_of_the_end_while_requests_are_finished(make_service):
    service = make_service({"server.drain_seconds": 60, "server.drain_idle_ms": 60000})
    service.start()
    eventually(lambda: service.word("/ready") == (200, "ok"))
    with service.connect() as connection:
        connection.send(b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert connection.receive().status == 200
        service.signal(signal.SIGTERM)
        eventually(lambda: service.word("/ready") == (503, "draining"))
        assert service.word("/live") == (200, "ok")
    assert service.wait() == 0


def test_the_docs_name_every_metric_with_its_type_and_no_other(watched):
    docs = "\n".join(path.read_text() for path in sorted((Path(__file__).parents[2] / "docs").glob("*.md")))
    rows = [line for line in docs.splitlines() if line.startswith(("| `croupier_", "| `process_"))]
    body = watched.request("GET", "/metrics", address=watched.operator_address).body.decode()
    described = re.findall(r"^# HELP (\S+) (.+)\n# TYPE \1 (\S+)$", body, re.MULTILINE)
    assert len(described) == body.count("# HELP") == body.count("# TYPE") == len({name for name, _, _ in described})
    for name, what, kind in described:
        assert name.startswith(("croupier_", "process_")) and name.endswith("_total") == (kind == "counter")
        assert any(f"`{name}`" in row and f"| {kind} |" in row and what in row for row in rows), name
    known = {name + suffix for name, _, _ in described for suffix in ("", "_bucket", "_sum", "_count")}
    assert set(re.findall(r"^(\w+)", body, re.MULTILINE)) <= known, "a metric that the table lacks has no HELP"
    assert set(re.findall(r"(?<=[`({ ,])(?:croupier|process)_[a-z][a-z0-9_]*", docs)) <= known | {"croupier_session"}  # which is a cookie


# ---- logs ---------------------------------------------------------------------------------------------

def test_each_request_is_one_line_with_the_id_of_its_answer(watched):
    answers = [watched.get(path, key=key) for path, key in [
        ("/api/v1/cricket/events/1", watched.customer.key), ("/api/v1/cricket/events", None), ("/nothing", "x")]]
    for answer in answers:
        identity = answer.header("x-request-id")
        eventually(lambda: identity in watched.log_text())
        lines = [line for line in watched.log_lines() if identity in line.values()]
        assert len(lines) == 1
        assert answer.status in lines[0].values() or str(answer.status) in lines[0].values()
        assert lines[0]["level"] == "info"


def test_a_key_is_never_logged(make_service):
    service = make_service({"log.level": "debug"})
    customer = service.add_customer()
    service.start()
    service.await_admission(customer.key)
    key = customer.key
    wrong = "crk_" + "SECRETSECRETSECRETSECRETSECRET123456"
    service.get(f"/api/v1/sports?key={key}", key=key)
    service.get(f"/api/v1/{key}/events", headers={"X-Api-Key": wrong})
    service.get(f"/{wrong}", headers={"X-Api-Key": key, "Authorization": "Basic c2VjcmV0"})
    with service.connect() as connection:
        connection.send(f"GET / HTTP/1.1\r\nHost: a\r\nX-Api-Key : {wrong}\r\n\r\n")
        connection.receive()
    service.stop()
    text = service.log_text()
    assert key[9:] not in text and wrong[9:] not in text and "c2VjcmV0" not in text


def test_what_a_client_sends_cannot_forge_a_line(running):
    with running.connect() as connection:
        connection.send(b"GET /a%0a%22%7D%0a%7B%22level%22:'error' HTTP/1.1\r\nHost: a\r\n\r\n")
        connection.receive()
        connection.send(b'GET /api/v1/sports?%22%5C,%7B%7D HTTP/1.1\r\nHost: a\r\nX-Api-Key: "\\x\r\n\r\n')
        connection.receive()
    running.stop()
    for line in running.log_lines():
        assert isinstance(line, dict) and {"time", "level", "message"} <= set(line)


def test_text_logs_are_lines_of_text(make_service):
    service = make_service({"log.format": "text"})
    service.spawn()
    eventually(lambda: len(re.findall(r"^\S+Z \w+ +listening .*address=127\.0\.0\.1:\d+", service.log_text(), re.MULTILINE)) == 2, 30)


# ---- configuration ------------------------------------------------------------------------------------

@pytest.mark.parametrize("text, places", [
    ("[server]\nlisten = nonsense\n", [":2"]), ("[server]\nnonsense = 1\n", [":2"]), ("[nonsense]\nlisten = 1\n", [":1"]),
    ("[server]\nlisten = 127.0.0.1:0\n\n[odds]\ntimeout_ms = soon\n", [":5"]), ("nonsense\n", [":1"]),
    ("[server]\ntrusted_proxies = 10.0.0.0/33\n", [":2"]), ("[log]\nlevel = loud\n", [":2"]),
    ("[server]\ntls_certificate = /nowhere.crt\n", ["tls"]),
    ("[server]\nthreads = some\n[sever]\nlisten = 1\n[log]\nlevel = loud\nlevle = info\n", [":2", ":3", ":6", ":7"])])
@pytest.mark.parametrize("command", ["check", "serve", "migrate"])
def test_a_wrong_configuration_is_refused_with_file_line_and_reason(stored, text, places, command):
    stored.configuration.write_text(text)
    try:
        done = stored.run(command, status=2)
    finally:
        stored.configure({})  # the right one
    assert len(done.errors.strip().splitlines()) == (1 if command == "check" else len(places))
    said = done.text if command == "check" else done.errors  # a check reports on standard output
    lines = [line for line in said.splitlines() if "croupier.conf" in line]
    assert len(lines) == len(places) and all(place in line for place, line in zip(places, lines)), said


def test_the_environment_wins_and_is_named_when_it_is_wrong(service):
    service.environment["CROUPIER_ODDS_TIMEOUT_MS"] = "soon"
    assert "CROUPIER_ODDS_TIMEOUT_MS" in service.run("check", status=2).text
    service.environment["CROUPIER_ODDS_TIMEOUT_MS"] = "100"
    service.run("check")
    service.environment["CROUPIER_ODDS_TIMOUT_MS"] = "100"
    assert "did you mean CROUPIER_ODDS_TIMEOUT_MS?" in service.run("customer", "list", status=2).errors
    del service.environment["CROUPIER_ODDS_TIMOUT_MS"]
    service.environment["CROUPIER_SERVER_LISTEN"] = "127.0.0.2:0"
    service.start()
    assert service.address[0] == "127.0.0.2"


def test_without_a_configuration_the_option_is_named_that_gives_one(tmp_path):
    environment = {name: value for name, value in sanitizer_environment().items() if not name.startswith("CROUPIER_")}
    done = subprocess.run([BINARY, "customer", "list"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 1 and "-c FILE names a configuration" in done.stderr
    environment["CROUPIER_PLATFORM_STORE"] = f"sqlite:{tmp_path}/none.db"
    done = subprocess.run([BINARY, "customer", "list"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 1 and f"{tmp_path}/none.db" in done.stderr and "-c FILE" not in done.stderr


@pytest.mark.only("embedded")
def test_check_says_of_a_damaged_odds_store_what_a_start_does(make_service):
    """So does one of an older format: nobody need repair anything."""
    service = make_service()
    service.add_customer("Acme")
    service.publish("cricket", [row(1)], {})
    with open(service.odds.path / "values" / "data.mdb", "r+b") as file:
        file.write(b"x" * 9000)
    [odds] = [check for check in service.ask("check") if check["check"] == "odds store"]
    assert odds["warning"] and odds["message"].endswith("is damaged") and odds["remedy"].startswith("start the service, which sets it aside")


def test_check_knows_its_own_listeners_from_others(make_service):
    service = make_service({"provider.listen": f"127.0.0.1:{free_port()}"})
    service.start()
    ports = {"server.listen": service.address[1], "operator.listen": service.operator_address[1]}
    service.configure({name: f"127.0.0.1:{port}" for name, port in ports.items()})
    checks = {check["check"]: check for check in json.loads(service.run("check", "--json").text)}
    for name in (*ports, "provider.listen"):
        assert "by a croupier that is running" in checks[name]["message"]
    # Without the key of secrets no provider can be confirmed, and all are refused with 503.
    service.stop()
    (service.directory / "secrets.key").rename(service.directory / "away.key")
    service.start()
    checks = {check["check"]: check for check in json.loads(service.run("check", "--json", status=1).text)}
    assert [name for name, check in checks.items() if not check["ok"]] == ["secrets key"]
    assert "by a croupier that is running" in checks["provider.listen"]["message"]
    # What listens there is croupier, but another listener of it.
    service.configure({"server.listen": f"127.0.0.1:{ports['operator.listen']}", "operator.listen": "127.0.0.1:0"})
    checks = {check["check"]: check for check in json.loads(service.run("check", "--json", status=1).text)}
    assert "does not answer as croupier does" in checks["server.listen"]["message"]
    assert "CROUPIER_SERVER_LISTEN" in checks["server.listen"]["remedy"]


def test_messages_have_no_bytes_that_steer_a_terminal(service):
    for word, shown in (("\x1b[31m\x9b\u009b\r\n", "?[31m"), ("\x1b\udcff", "player show")):  # the store may quote the second
        done = service.run("player", "show", word, status=None)
        assert done.returncode != 0 and shown in done.errors
        assert not set(done.stderr.rstrip(b"\n")) & {*range(0x20), 0x7F, 0x9B, 0xFF}


def test_check_warns_of_a_password_that_everyone_may_read(service):
    def warnings():
        return [check["check"] for check in json.loads(service.run("check", "--json", status=None).text) if check["warning"]]
    service.configure({"odds.store": "redis://:secret@127.0.0.1:1"})
    service.configuration.chmod(0o644)
    assert "configuration secrecy" in warnings()
    service.configuration.chmod(0o640)
    assert "configuration secrecy" not in warnings()
    service.configuration.chmod(0o644)
    service.configure({"odds.store": "redis://127.0.0.1:1"})
    assert "configuration secrecy" not in warnings()


def test_check_warns_of_a_tls_key_that_everyone_may_read(service):
    certificate_path, key = certificate(service.directory, days=40)
    service.configure({"server.tls_certificate": certificate_path, "server.tls_key": key})
    for mode, warned in ((0o644, True), (0o640, False), (0o400, False)):
        Path(key).chmod(mode)
        [told] = [check for check in json.loads(service.run("check", "--json", status=None).text) if check["check"] == "tls"]
        assert told["ok"] and told["warning"] == warned and (not warned or str(key) in told["message"])


def test_a_server_that_may_open_too_few_files_says_so(make_service):
    service = make_service()
    for limit in (16, 32, 64):
        for command in ("serve", "check"):
            done = subprocess.run(["sh", "-c", f'ulimit -n {limit}; exec "$0" {command}', str(BINARY)], capture_output=True, text=True,
                                  env=service.environment, timeout=60 * PATIENCE)
            said = done.stdout if command == "check" else done.stderr
            assert done.returncode == 1 and f"{limit} files may be open" in said and "ulimit -n" in said, done


def test_check_names_certificates_that_have_expired_or_soon_will(make_service):
    service = make_service({"provider.listen": "127.0.0.1:0"})
    [gone, key], [soon, soon_key] = Authority(service.directory).certificate("gone", "DNS:localhost", days=-1), certificate(service.directory, days=9)
    late = certificate(service.directory, "late", days=40)
    for each in (key, soon_key, late[1]):
        each.chmod(0o600)
    service.configure({"server.tls_certificate": soon, "server.tls_key": soon_key, "provider.tls_certificate": gone, "provider.tls_key": key,
                       "operator.tls_certificate": late[0], "operator.tls_key": late[1]})
    checks = {check["check"]: check for check in json.loads(service.run("check", "--json", status=1).text)}
    told = checks["provider.tls"]
    assert not told["ok"] and told["message"] == f"{gone} expired on 2020-01-02" and "renew it" in told["remedy"]
    told = checks["tls"]
    assert told["ok"] and told["warning"] and re.fullmatch(rf"{soon} expires on \d{{4}}-\d\d-\d\d", told["message"])
    assert checks["operator.tls"]["ok"] and not checks["operator.tls"]["warning"]


@pytest.mark.only("sqlite")
def test_check_names_a_disk_that_is_full_or_mounted_read_only(tmp_path):
    disk, settings = tmp_path / "disk", tmp_path / "croupier.conf"
    disk.mkdir()
    settings.write_text(f"[server]\nlisten = 127.0.0.1:0\n[operator]\nlisten = 127.0.0.1:0\n[odds]\nstore = embedded:{disk}/odds\n"
                        f"[platform]\nstore = sqlite:{disk}/platform.db\n")
    script = f"""
        mount -t tmpfs -o size=8m tmpfs {disk} || exit 77
        {BINARY} migrate -c {settings} >&2 && echo '[]' | {BINARY} feed catalog -c {settings} cricket - >&2 || exit 1
        check() {{ {BINARY} check --json -c {settings}; echo ---; }}
        check
        head -c 8m /dev/zero >{disk}/ballast
        check
        rm {disk}/ballast
        mount -o remount,ro {disk}
        check
    """
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, env=sanitizer_environment(),
                          timeout=60 * PATIENCE)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("needs the right to mount")
    well, full, fixed = ({check["check"]: check for check in json.loads(document)} for document in done.stdout.split("---\n")[:3])
    stores = "odds store", "platform store"
    assert all(well[store]["ok"] for store in stores)
    assert "its disk has no room" in full["odds store"]["message"]
    for store in stores:
        assert not full[store]["ok"] and full[store]["remedy"].startswith("make room on that disk")
        assert not fixed[store]["ok"] and fixed[store]["remedy"].startswith("its disk is mounted read-only: mount it for writing")


@pytest.mark.only("sqlite")
def test_check_says_what_makes_a_second_name_of_a_database(make_service):
    service = make_service(own_stores=True)
    os.link(service.platform.path, service.directory / "other-name")
    store, = (row for row in json.loads(service.run("check", "--json", status=1).text) if row["check"] == "platform store")
    assert "a hard link" in store["message"] and "cp -al" in store["remedy"] and "read and write" not in store["remedy"]


def test_a_port_that_is_taken_is_named_with_its_setting(service):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        service.environment["CROUPIER_OPERATOR_LISTEN"] = address
        errors = service.run("serve", status=1).errors
        assert address in errors and "[operator] listen, or CROUPIER_OPERATOR_LISTEN, gives it another" in errors


def test_check_tells_whether_the_stores_answer(make_service):
    service = make_service(own_stores=True)
    service.run("check")
    service.platform.take_away()
    assert service.platform.where in service.run("check", status=1).text
    service.platform.bring_back()
    service.run("check")


@pytest.mark.depends_on("odds")
@pytest.mark.only("redis")  # an embedded store that is not there yet is no fault
def test_check_tells_whether_the_odds_store_answers(fragile):
    fragile.odds.take_away()
    assert fragile.odds.where in fragile.run("check", status=1).text
    fragile.odds.bring_back()
    fragile.run("check")


def test_the_sample_configuration_is_accepted(tmp_path):
    sample = Path(__file__).parents[2] / "dist" / "croupier.conf"
    text = sample.read_text().replace("/var/lib/croupier", str(tmp_path))
    # every setting that the sample shows is there as a comment with its default: take the comments off
    text = re.sub(r"^#(\w+ = \S.*)$", r"\1", text, flags=re.MULTILINE)
    text = re.sub(r"^(tls_\w+|trusted_proxies) = .*$", "", text, flags=re.MULTILINE)
    service = Service(tmp_path, stores=False)
    service.configuration.write_text(text)
    service.run("migrate")
    service.run("feed", "withdraw", "cricket")
    service.run("check")


def settings_of(lines):
    """Sections with keys, and their values, of lines such as `[server]` and `listen = 127.0.0.1:8080`."""
    section, found = None, {}
    for line in lines:
        if head := re.fullmatch(r"\[(\w+)\]", line):
            section = head[1]
        elif setting := re.fullmatch(r"(\w+) =(.*)", line):
            found[section, setting[1]] = setting[2].strip()
    return found


def test_the_sample_configuration_has_every_setting_with_its_default():
    told = settings_of(subprocess.run([BINARY, "help", "settings"], capture_output=True, text=True, check=True).stdout.splitlines())
    shown = settings_of((ROOT / "dist" / "croupier.conf").read_text().replace("\n#", "\n").splitlines())
    assert shown.keys() == told.keys()
    # An empty one may have an example.
    assert {name: shown[name] for name, default in told.items() if default} == {name: default for name, default in told.items() if default}


def test_the_program_tells_its_version_and_its_usage():
    version = subprocess.run([BINARY, "--version"], capture_output=True, text=True)
    assert version.returncode == 0 and re.search(r"\d+\.\d+\.\d+", version.stdout)
    for arguments in ([], ["--help"], ["serve", "--help"], ["customer", "--help"], ["customer", "add", "--help"]):
        done = subprocess.run([BINARY, *arguments], capture_output=True, text=True)
        assert "croupier" in done.stdout + done.stderr
        assert done.returncode == (0 if arguments else 2)
    for arguments in (["nonsense"], ["customer"], ["customer", "nonsense"], ["customer", "add"], ["serve", "--nonsense"]):
        done = subprocess.run([BINARY, *arguments], capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr


def test_connections_beyond_the_limit_are_turned_away_and_counted(make_service):
    service = make_service({"server.max_connections": 10, "server.threads": 1, "server.connections_per_address": 0})
    service.start()
    eventually(lambda: service.metrics()["croupier_connections"] == 0)
    held = []
    try:
        for _ in range(10):
            connection = service.connect()
            connection.send(HEALTH)
            assert connection.receive().status == 200
            held.append(connection)
        with service.connect() as over:
            try:
                over.send(HEALTH)
                assert b"HTTP/1.1 200" not in over.rest()
            except OSError:
                pass
        assert eventually(lambda: service.metrics()["croupier_connections_refused_total"]) >= 1
        held.pop().close()
        eventually(lambda: service.metrics()["croupier_connections"] == 9)
        assert service.get("/api/v1/health").status == 200
    finally:
        for connection in held:
            connection.close()


def fills(service, count, source, key=None):
    """So many connections on which a request was answered, and then one that was refused."""
    held = []
    for number in range(count + 1):
        held.append(service.connect(source=source))
        held[-1].send(f"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\n\r\n" if key else HEALTH)
        answer = held[-1].receive()
        assert answer.status == (200 if number < count else 503), number
    assert answer.error == (503, "overloaded") and answer.header("retry-after") == "1" and answer.header("connection") == "close"
    assert held[-1].at_end()
    held.pop().close()
    return held


def limited(service, setting):
    return service.metrics()[f'croupier_client_limited_total{{setting="{setting}"}}']


def test_one_address_has_a_share_of_the_connections(make_service):
    service = make_service({"server.max_connections": 16, "server.threads": 1, "server.trusted_proxies": "127.0.0.9"})
    service.start()
    with contextlib.ExitStack() as stack:
        for connection in fills(service, 4, "127.0.0.2"):
            stack.enter_context(connection)
        assert limited(service, "connections_per_address") == 1
        for _ in range(5):  # a proxy's are not counted
            proxied = stack.enter_context(service.connect(source="127.0.0.9"))
            proxied.send(HEALTH)
            assert proxied.receive().status == 200
        service.configure({"server.connections_per_address": 5})
        service.run("reload", str(service.process.pid))
        eventually(lambda: service.metrics()["croupier_connections"] == 9)
        for connection in fills(service, 1, "127.0.0.2"):
            stack.enter_context(connection)
    eventually(lambda: service.metrics()["croupier_connections"] == 0)
    for connection in fills(service, 5, "127.0.0.2"):
        connection.close()


def test_one_customer_has_a_share_of_the_connections(make_service):
    service = make_service({"server.max_connections": 8, "server.threads": 1, "server.connections_per_address": 0,
                            "server.trusted_proxies": "127.0.0.9"})
    one, other = service.add_customer("One"), service.add_customer("Other")
    service.start()
    for customer in (one, other):
        service.await_admission(customer.key)
    with contextlib.ExitStack() as stack:
        held = fills(service, 4, "127.0.0.2", one.key)
        for connection in held:
            stack.enter_context(connection)
        assert limited(service, "connections_per_customer") == 1
        eventually(lambda: service.metrics()["croupier_connections"] == 4)

        def ask(connection, key):
            connection.send(f"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\nX-Forwarded-For: 127.0.0.3\r\n\r\n")
            return connection.receive()
        # A proxy's connection counts for the customer of its last request.
        proxied = stack.enter_context(service.connect(source="127.0.0.9"))
        assert ask(proxied, other.key).status == 200
        assert ask(proxied, one.key).error == (503, "overloaded")
        assert ask(held[0], other.key).status == 200  # this one is the other's now
        proxied = stack.enter_context(service.connect(source="127.0.0.9"))
        assert ask(proxied, one.key).status == 200
        with service.connect(source="127.0.0.2") as over:
            assert ask(over, one.key).error == (503, "overloaded")
        assert ask(proxied, other.key).status == 200
        for connection in fills(service, 1, "127.0.0.2", one.key):
            stack.enter_context(connection)


def sockets_of_clients(service):
    """How many sockets the service has, less those that it listens on and those that the kernel knows to lead elsewhere: a
    session of a store may be opened at any time and stays."""
    process, (_, port) = Path(f"/proc/{service.process.pid}"), service.address

    def others():
        unix = [line.split()[6] for line in (process / "net/unix").read_text().splitlines()[1:]]
        tcp = [line.split() for line in (process / "net/tcp").read_text().splitlines()[1:]]
        return {*unix, *(words[9] for words in tcp if words[3] == "0A" or int(words[1].rpartition(":")[2], 16) != port)}

    found, before = set(), others()  # and after: one of them may be closed, or opened, meanwhile
    for entry in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.update(re.findall(r"^socket:\[(\d+)\]", os.readlink(entry)))
    return len(found - before - others())


def test_no_descriptor_is_left_of_what_was_served(running):
    eventually(lambda: sockets_of_clients(running) == 0)
    with running.connect():
        eventually(lambda: sockets_of_clients(running) == 1)
    for _ in range(300):
        running.get("/api/v1/cricket/events/1", key=running.customer.key)
    eventually(lambda: sockets_of_clients(running) == 0)


def test_the_health_command_asks_the_service_that_runs(make_service):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % other.getsockname()[1]
        service = make_service()
        service.configure({"server.listen": address})
        assert service.ask("health", status=1) == {"answers": False, "status": None}  # no one listens there
        other.listen()
        assert f"no croupier answers on {address}" in service.run("health", "--alive", status=1).errors  # something else does
    service.configure({"server.listen": "127.0.0.1:0"})
    service.start()
    service.configure({"server.listen": "%s:%d" % service.address})
    assert service.run("health").text == "ok\n"
    assert service.ask("health", "--alive") == {"answers": True, "status": "ok"}
    service.stop()
    service.configure({"server.listen": "127.0.0.1:0", "odds.store": "redis://127.0.0.1:1"})
    service.start(healthy=False)
    service.configure({"server.listen": "%s:%d" % service.address})
    assert "a store is away" in service.run("health", status=1).errors
    assert service.ask("health", "--alive") == {"answers": True, "status": "degraded"}


# ---- who starts it -------------------------------------------------------------------------------------


def test_commands_that_begin_without_standard_descriptors_do_their_work(make_service):
    """As cron or `<&- >&- 2>&-` start them: what is opened next would get the number of standard error."""
    service = make_service()
    service.publish("cricket", [{"gmid": 7, "ename": "Seven"}], {})
    (service.directory / "odds.json").write_text('[{"mid": 1}]')

    def run(*words):
        command = f"exec '{BINARY}' {' '.join(words)} -c '{service.configuration}' <&- >&- 2>&-"
        return subprocess.run(["/bin/sh", "-c", command], env=service.environment, cwd=service.directory, timeout=60 * PATIENCE).returncode

    assert run("feed", "odds", "cricket", "7", "odds.json") == 0
    assert run("customer", "list") == 0
    assert run("check") == 0
    process = subprocess.Popen(["/bin/sh", "-c", f"exec '{BINARY}' serve -c '{service.configuration}' <&- >&- 2>&-"],
                               env=service.environment, cwd=service.directory)
    try:
        eventually(lambda: os.path.realpath(f"/proc/{process.pid}/exe") == str(Path(BINARY).resolve())
                   and all(os.path.exists(f"/proc/{process.pid}/fd/{number}") for number in (0, 1, 2, 12)))
        assert [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in (0, 1, 2)] == ["/dev/null"] * 3
        process.terminate()
        assert process.wait(60 * PATIENCE) == 0
    finally:
        process.kill()
        process.wait()


# ThreadSanitizer loses a signal that arrives while it makes the record of the first thread's signals.
@pytest.mark.threadless
@pytest.mark.skipif(subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True).returncode != 0,
                    reason="may not make a namespace of process ids")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("words", [["feed", "stream"], ["wallet", "tail", "--follow"], ["audit", "tail", "--follow"], ["serve"],
                                   ["feed", "simulate"]], ids=" ".join)
def test_a_command_that_is_process_1_ends_by_a_signal(make_service, words, number):
    service = make_service()
    log = service.directory / "process-1.log"
    with open(log, "wb") as errors:
        outer = subprocess.Popen(["unshare", "--pid", "--fork", str(BINARY), *words, "-c", str(service.configuration)],
                                 env=service.environment, cwd=service.directory, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)
    try:
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        inner = int(eventually(lambda: children.read_text().split())[0])
        eventually(lambda: os.path.realpath(f"/proc/{inner}/exe") == str(Path(BINARY).resolve()))
        eventually(lambda: "SigCgt" in (text := Path(f"/proc/{inner}/status").read_text())
                   and int(re.search(r"SigCgt:\s+(\w+)", text)[1], 16) >> (number - 1) & 1)
        os.kill(inner, number)
        outer.wait(60 * PATIENCE)
    finally:
        outer.kill()
        outer.wait()
