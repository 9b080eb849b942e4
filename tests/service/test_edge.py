"""HTTP/2 at the edge (docs/deployment.md): dist/reference/haproxy.cfg in front of croupier, and a customer whose polls all wait on
one HTTP/2 connection."""

import json
import re
import shutil
import subprocess

import pytest

from croupier import BINARY, ROOT, Response, certificate, eventually, row, trusting
from reference import Proxy
from servers import free_port

pytestmark = [pytest.mark.depends_on("odds"), pytest.mark.takes("haproxy", "node"),
              pytest.mark.skipif(shutil.which("node") is None, reason="no node here; on Debian: apt install nodejs")]

POLLS = 100
LONG = 55
CLIENT = ROOT / "tests" / "service" / "http2_client.mjs"


def path_of(event):
    return f"/api/v1/cricket/events/{event}"


def reference_file(service, port, pem, server_timeout="15s", maxconn=10000, open_most=9000):
    """The reference's file with its line for HTTPS, in front of this one croupier."""
    text = (ROOT / "dist" / "reference" / "haproxy.cfg").read_text()
    plain, secure = "    bind 10.20.0.5:8443\n", "    # bind 10.20.0.5:443 ssl crt /etc/haproxy/croupier.pem "
    assert plain in text and secure in text and "timeout server 15s" in text
    text = text.replace(plain, "").replace(secure, f"    bind 127.0.0.1:{port} ssl crt {pem} ")
    text = text.replace("timeout server 15s", f"timeout server {server_timeout}")
    assert "maxconn 10000\n" in text
    text = text.replace("maxconn 10000\n", f"maxconn {maxconn}\n")
    assert "gt 9000 }" in text
    text = text.replace("gt 9000 }", f"gt {open_most} }}")
    text = text.replace("10.20.0.11:8080", "{}:{}".format(*service.address))
    return re.sub(r"^ +server croupier-2 .*\n", "", text, flags=re.MULTILINE)


class Edge:
    """A croupier behind HAProxy, with a customer and POLLS events; clients that speak HTTP/2 to it."""

    def __init__(self, service, directory):
        self.service = service
        self.certificate, key = certificate(directory)
        self.pem = directory / "croupier.pem"
        self.pem.write_bytes(self.certificate.read_bytes() + key.read_bytes())
        service.customer = service.add_customer("Edge")
        events = range(1, POLLS + 1)
        # The catalog has 350 KB, more than HAProxy and its socket take of an answer that is not read.
        service.publish("cricket", [{**row(event), "note": "x" * 3500} for event in events], {event: [{"n": 0}] for event in events})
        service.start()
        service.await_admission(service.customer.key)
        self.proxy = Proxy(None, "haproxy", "127.0.0.1")
        self.address = ("127.0.0.1", free_port())
        self.feed = subprocess.Popen([BINARY, "feed", "stream", "-c", service.configuration], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True, env=service.environment)
        self.clients = []

    def start_proxy(self, **options):
        self.proxy.start(reference_file(self.service, self.address[1], self.pem, **options))
        eventually(lambda: self.request("/api/v1/health").status == 200)

    def publish(self, event, number):
        self.feed.stdin.write(json.dumps({"odds": "cricket", "event": event, "document": [{"n": number}]}) + "\n")
        self.feed.stdin.flush()
        assert '"published": true' in self.feed.stdout.readline()

    def request(self, path, **options):
        """One request of HTTP/1.1, through the proxy."""
        try:
            return self.service.attempt("GET", path, address=self.address, tls=trusting(self.certificate), **options)
        except OSError:
            assert self.proxy.process.poll() is None, self.proxy.log_text()
            return Response(0, [], b"")

    def client(self, customer=None, window=None):
        client = Client("https://{}:{}".format(*self.address), self.certificate, (customer or self.service.customer).key, window)
        self.clients.append(client)
        return client

    def waiting(self):
        return self.service.metrics()["croupier_waiting_polls"]

    def close(self):
        for client in self.clients:
            client.close()
        self.feed.communicate()
        if self.proxy.process is not None:
            self.proxy.kill()
        shutil.rmtree(self.proxy.directory, ignore_errors=True)


class Client:
    """http2_client.mjs: polls are sent, and answers come in their own order."""

    def __init__(self, url, certificate_path, key, window=None):
        words = ["node", CLIENT, url, certificate_path, key] + ([] if window is None else [str(window)])
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.agreed = self.receive()

    def send(self, *polls):
        self.process.stdin.write("".join(json.dumps(poll) + "\n" for poll in polls))
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        assert line, f"the client ended with {self.process.wait()}"
        return json.loads(line)

    def tags(self, events):
        """The current tags, {event: tag}, by a poll each."""
        self.send(*({"id": event, "path": path_of(event)} for event in events))
        answers = [self.receive() for _ in events]
        assert all(answer["status"] == 200 for answer in answers), answers
        return {answer["id"]: answer["tag"] for answer in answers}

    def close(self):
        """Closes the connection, whatever waits on it."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
            rest = self.process.stdout.read()
            self.process.stdout.close()
            assert self.process.wait() == 0, rest


def waiting_poll(event, tag, wait=LONG, number=None):
    return {"id": event if number is None else number, "path": path_of(event), "tag": tag, "wait": wait}


@pytest.fixture
def edge(make_service, tmp_path):
    made = Edge(make_service({"server.trusted_proxies": "127.0.0.1"}), tmp_path)
    yield made
    made.close()


def test_100_polls_wait_on_one_connection_and_are_woken_one_by_one(edge):
    edge.start_proxy()
    client = edge.client()
    assert client.agreed["protocol"] == "h2" and client.agreed["streams"] == POLLS
    tags = client.tags(range(1, POLLS + 1))
    client.send(*(waiting_poll(event, tag) for event, tag in tags.items()))
    eventually(lambda: edge.waiting() == POLLS)
    for event in range(POLLS, 0, -1):  # an answer to another poll would come in place of this one
        edge.publish(event, 1)
        answer = client.receive()
        assert (answer["id"], answer["status"], answer["applied"]) == (event, 200, f"wait={LONG}"), answer
        assert json.loads(answer["body"])["odds"] == [{"n": 1}] and answer["tag"] != tags[event]
    assert edge.waiting() == 0


def test_one_change_wakes_100_polls_on_one_connection(edge):
    edge.start_proxy()
    client = edge.client()
    tag = client.tags([1])[1]
    for change in (1, 2):
        client.send(*(waiting_poll(1, tag, number=number) for number in range(POLLS)))
        eventually(lambda: edge.waiting() == POLLS)
        edge.publish(1, change)
        answers = [client.receive() for _ in range(POLLS)]
        assert {answer["status"] for answer in answers} == {200}
        assert sorted(answer["id"] for answer in answers) == list(range(POLLS))
        (tag,) = {answer["tag"] for answer in answers}


def test_a_client_that_goes_leaves_no_poll_behind(edge):
    edge.start_proxy()
    client = edge.client()
    tags = client.tags(range(1, POLLS + 1))
    client.send(*(waiting_poll(event, tag) for event, tag in tags.items()))
    eventually(lambda: edge.waiting() == POLLS)
    client.close()
    eventually(lambda: edge.waiting() == 0)
    assert edge.service.metrics()["croupier_waiting_left_total"] == POLLS  # and none was answered when its time was over


def test_a_poll_that_is_given_up_leaves_the_others(edge):
    edge.start_proxy()
    client = edge.client()
    tags = client.tags([1, 2])
    client.send(*(waiting_poll(event, tag) for event, tag in tags.items()))
    eventually(lambda: edge.waiting() == 2)
    client.send({"cancel": 1})
    eventually(lambda: edge.waiting() == 1)
    assert edge.service.metrics()["croupier_waiting_left_total"] == 1
    edge.publish(1, 1)
    edge.publish(2, 1)
    answer = client.receive()
    assert (answer["id"], answer["status"]) == (2, 200), answer


def test_clients_of_both_versions_are_served_on_one_port(edge):
    edge.start_proxy()
    answer = edge.request(path_of(1), key=edge.service.customer.key)
    assert answer.status == 200 and edge.client().tags([1])[1] == answer.header("etag")


def test_a_wait_may_be_longer_than_other_answers(edge):
    """The proxy gives a poll that waits more time than `timeout server`, which is shorter than this wait here."""
    edge.start_proxy(server_timeout="900ms")
    client = edge.client()
    tag = edge.service.get(path_of(1), key=edge.service.customer.key).header("etag")
    client.send(waiting_poll(1, tag, wait=1))
    answer = client.receive()
    assert (answer["status"], answer["applied"]) == (304, "wait=1"), answer


def test_requests_that_an_address_has_open_are_bounded_with_those_whose_body_has_not_come(edge):
    edge.start_proxy(open_most=20)
    client = edge.client()
    client.send(*({"id": number, "path": "/api/v1/casino/wallet", "unfinished": True} for number in range(40)))
    eventually(lambda: edge.request(path_of(1), key=edge.service.customer.key).status == 429)
    client.close()
    eventually(lambda: edge.request(path_of(1), key=edge.service.customer.key).status == 200)


@pytest.mark.only("embedded", "sqlite")  # HAProxy keeps them from croupier, so no sanitized run has it
def test_unfinished_bodies_without_a_key_take_no_connection_to_croupier(edge):
    """HAProxy gives no request to croupier before its body is there: with few connections to it, others are served meanwhile."""
    edge.start_proxy(maxconn=20)
    for _ in range(10):
        client = edge.client()
        unfinished = [{"id": number, "path": "/api/v1/casino/wallet", "unfinished": True} for number in range(1000)]
        fits = client.agreed["streams"] - 1
        client.send(*unfinished[:fits], {"id": "sent", "path": path_of(1)})
        assert client.receive()["status"] == 200  # HAProxy has the heads that were sent before on this connection
        client.send(*unfinished[fits:])
        assert edge.request(path_of(1), key=edge.service.customer.key).status == 200


def test_answers_that_a_customer_does_not_read_leave_connections_to_others(edge):
    """HAProxy keeps a connection to croupier for each answer that it cannot pass on. croupier counts it for the customer, so that
    most of them stay for others."""
    greedy = edge.service.add_customer("Greedy")
    edge.service.configure({"server.connections_per_customer": 10})
    edge.service.run("reload", str(edge.service.process.pid))
    edge.service.await_admission(greedy.key)
    edge.start_proxy(maxconn=20)
    client = edge.client(greedy, window=0)
    client.send(*({"id": number, "path": "/api/v1/cricket/events"} for number in range(60)))
    eventually(lambda: edge.service.metrics()['croupier_client_limited_total{setting="connections_per_customer"}'] == 50)
    for _ in range(10):
        assert edge.request(path_of(1), key=edge.service.customer.key).status == 200
    assert edge.request(path_of(1), key=greedy.key).error == (503, "overloaded")
    client.close()
    eventually(lambda: edge.request(path_of(1), key=greedy.key).status == 200)
