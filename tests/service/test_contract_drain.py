"""The end loses no request: busy clients get their answers, plain and through TLS, and know that it was the last."""

import signal
import threading

import pytest

from croupier import PATIENCE, certificate, eventually, match_odds, row, trusting

pytestmark = pytest.mark.depends_on()

@pytest.fixture(params=["plain", "tls"])
def busy(request, make_service, tmp_path):
    settings = {"server.drain_seconds": 60, "server.drain_idle_ms": 60000}
    if request.param == "tls":
        paths = certificate(tmp_path)
        settings.update({"server.tls_certificate": paths[0], "server.tls_key": paths[1]})
    service = make_service(settings)
    service.customer = service.add_customer()
    service.publish("cricket", [row(1)], {1: match_odds()})
    if request.param == "tls":
        service.tls = trusting(paths[0])
    service.start()
    service.await_admission(service.customer.key)
    return service


class Clients:
    """Clients that ask again as soon as they are answered."""

    def __init__(self, service, count, keep_alive):
        self.service = service
        close = "" if keep_alive else "Connection: close\r\n"
        self.request = (f"GET /api/v1/cricket/events/1 HTTP/1.1\r\nHost: a\r\nX-Api-Key: {service.customer.key}\r\n"
                        f"{close}\r\n")
        self.lock = threading.Lock()
        self.answered = 0
        self.lost = []
        self.threads = [threading.Thread(target=self.run, args=[keep_alive], daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, keep_alive):
        try:
            while self.poll_one_connection() and not keep_alive:
                pass
        except (OSError, EOFError, AssertionError) as error:
            self.lost.append(repr(error))

    def poll_one_connection(self):
        """Until an answer says that it was the last of this connection. False when no connection is taken."""
        try:
            connection = self.service.connect()
        except ConnectionRefusedError:
            return False
        with connection:
            while True:
                connection.send(self.request)
                answer = connection.receive()
                assert answer.status == 200
                with self.lock:
                    self.answered += 1
                if answer.header("connection") == "close":
                    return True

    def busy(self):
        return self.answered >= 5 * len(self.threads)

    def wait(self):
        for thread in self.threads:
            thread.join(60 * PATIENCE)
            assert not thread.is_alive()


def test_two_hundred_busy_clients_lose_no_request(busy):
    clients = Clients(busy, 200, keep_alive=True)
    eventually(clients.busy, 60)
    busy.signal(signal.SIGTERM)
    clients.wait()
    assert busy.wait() == 0, "nobody is left to wait for"
    assert clients.lost == []


def test_who_is_let_in_is_answered(busy):
    """Each request on a connection of its own, until no more are taken."""
    busy.configure({"server.drain_idle_ms": 3000})
    busy.signal(signal.SIGHUP)
    eventually(lambda: any(line["message"] == "configuration read again" for line in busy.log_lines()))
    clients = Clients(busy, 20, keep_alive=False)
    eventually(clients.busy, 60)
    busy.signal(signal.SIGTERM)
    clients.wait()
    assert busy.wait() == 0
    assert clients.lost == []


def test_an_idle_connection_may_send_one_more_request(busy):
    request = b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\n\r\n"
    with busy.connect() as used, busy.connect() as fresh:
        used.send(request)
        assert used.receive().header("connection") is None
        busy.signal(signal.SIGTERM)
        eventually(lambda: any(line["message"] == "draining" for line in busy.log_lines()))
        for connection in (used, fresh):
            connection.send(request)
            answer = connection.receive()
            assert answer.status == 200 and answer.header("connection") == "close"
            assert connection.at_end()
    assert busy.wait() == 0


def test_idle_connections_close_at_once_where_no_grace_is_set(make_service):
    service = make_service({"server.drain_idle_ms": 0})
    service.start()
    with service.connect() as used:
        used.send(b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\n\r\n")
        used.receive()
        service.signal(signal.SIGTERM)
        assert used.at_end()
        assert service.wait() == 0


def test_drain_seconds_bounds_the_grace(make_service):
    service = make_service({"server.drain_seconds": 1, "server.drain_idle_ms": 60000})
    service.start()
    with service.connect() as used:
        used.send(b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\n\r\n")
        used.receive()
        service.signal(signal.SIGTERM)
        assert used.at_end()
        assert service.wait() == 0
    assert any(line["message"] == "drain took too long; closing what is left" for line in service.log_lines())
