"""croupier upgrade: another process takes a running server's place on its ports, and no client notices."""

import contextlib
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import threading
from collections import Counter
from pathlib import Path

import pytest

import croupier
from croupier import BINARY, PATIENCE, Service, eventually, match_odds, row
from wallet_model import PATH, add_player, balance, credit, send

pytestmark = pytest.mark.depends_on("platform")

EVENT = "34000001"
EVENT_PATH = f"/api/v1/cricket/events/{EVENT}"


class Upgraded(Service):
    """A server that was replaced by others: `pid` is the one that serves."""

    pid = None
    others = ()

    def serving(self):
        return self.pid or self.process.pid

    def upgrade(self):
        before = self.serving()
        watch = os.pidfd_open(before)
        self.pid = self.ask("upgrade", before)["process"]
        assert self.pid != before
        self.others = (*self.others, self.pid)
        return watch

    def refused_upgrade(self):
        return self.run("upgrade", self.serving(), status=1).errors

    def stop(self):
        if self.pid is not None:
            end(self.pid)
            self.pid = None
            status = self.wait()  # of the first one, which has handed over
            text = self.log_text()
            assert not croupier.REPORT.search(text), text
            assert status == 0 and text.count('"stopped"') == 1 + len(self.others), text
        super().stop()


def ended(watch):
    """Waits until the process of a descriptor has ended."""
    with contextlib.closing(os.fdopen(watch)):
        assert select.select([watch], [], [], 30 * PATIENCE)[0], "the process did not end"


def end(pid):
    watch = os.pidfd_open(pid)
    os.kill(pid, signal.SIGTERM)
    ended(watch)


def started_by(pid):
    """The processes that this one has started, less what ThreadSanitizer starts to look whether a report is suppressed."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += [int(child) for child in (task / "children").read_text().split()
                      if "symbolizer" not in Path(f"/proc/{child}/comm").read_text()]
    return found


def new_process(pid):
    """The one process that this one has started, once it is there."""
    return eventually(lambda: (started := started_by(pid)) and len(started) == 1 and started)[0]


def serve(directory, **options):
    service = Upgraded(directory, {"provider.listen": "127.0.0.1:0"}, **options)
    service.customer = service.add_customer("Casino", options=["--casino"])
    service.player = add_player(service, service.customer)
    service.publish("cricket", [row(EVENT)], {EVENT: match_odds()})
    service.start()
    service.await_admission(service.customer.key)
    return service


@pytest.fixture
def served(tmp_path):
    service = serve(tmp_path / "served")
    yield service
    service.remove()


@pytest.fixture
def fragile_served(tmp_path):
    service = serve(tmp_path / "served", own_stores=True)
    yield service
    service.remove()


class Client(threading.Thread):
    """Asks again and again until it is to stop; whatever is not as it should be ends it and is its `failure`."""

    def __init__(self, served, kept_alive, make):
        super().__init__()
        self.served, self.kept_alive, self.make = served, kept_alive, make
        self.done, self.failure, self.over = 0, None, threading.Event()

    def run(self):
        try:
            client = None
            while not self.over.is_set():
                if client is None:
                    client = http.client.HTTPConnection(*self.served.address, timeout=20 * PATIENCE)
                method, path, body = self.make(self.done)
                headers = {"Authorization": f"Bearer {self.served.customer.key}"}
                if body is not None:
                    headers["Content-Type"] = "application/json"
                client.request(method, path, body, headers)
                answer = client.getresponse()
                content = answer.read()
                # As Service.request: on a machine that stands still for a second, the policies are that old.
                unconfirmed = answer.status == 503 and b"security_config_unavailable" in content
                assert answer.status == 200 or unconfirmed, (answer.status, content)
                self.done += answer.status == 200
                if not self.kept_alive or answer.getheader("Connection") == "close":
                    client.close()
                    client = None
        except Exception as failure:  # of the connection, too
            self.failure = failure


def test_no_client_notices_three_upgrades_under_load(served):
    def poll(_):
        return "GET", EVENT_PATH, None

    def play(name):
        return lambda count: ("POST", PATH, json.dumps(credit(served.player, f"{name}-{count}", 7)))

    clients = [Client(served, kept_alive, make) for kept_alive in (True, False)
               for make in (poll, poll, play(f"kept-{kept_alive}"))]
    for client in clients:
        client.start()
    try:
        for _ in range(3):
            counts = [client.done for client in clients]
            eventually(lambda: all(client.done > count + 5 or client.failure for client, count in zip(clients, counts)), 60)
            ended(served.upgrade())
            assert served.request("GET", "/metrics", address=served.operator_address).status == 200
            assert served.request("POST", "/provider/v1/wallet", address=served.provider_address, body=b"{}").status == 403
        counts = [client.done for client in clients]
        eventually(lambda: all(client.done > count + 5 or client.failure for client, count in zip(clients, counts)), 60)
    finally:
        for client in clients:
            client.over.set()
            client.join()
    assert [client.failure for client in clients] == [None] * len(clients)
    played = sum(client.done for client in clients[2::3])
    assert send(served, served.customer.key, balance(served.player)).json()["balance_minor"] == 7 * played
    assert served.ask("wallet", "verify")["entries"] == played


def test_what_the_old_server_has_begun_it_finishes(served):
    tag = served.get(EVENT_PATH, served.customer.key).header("ETag")
    with served.connect(timeout=30 * PATIENCE) as waiting, served.connect(timeout=30 * PATIENCE) as half:
        waiting.send(f"GET {EVENT_PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {served.customer.key}\r\n"
                     f"If-None-Match: {tag}\r\nPrefer: wait=50\r\n\r\n".encode())
        body = json.dumps(credit(served.player, "half", 5)).encode()
        half.send(f"POST {PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {served.customer.key}\r\n"
                  f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body[:20])
        eventually(lambda: served.metrics()["croupier_waiting_polls"] == 1)
        old = served.upgrade()
        answer = waiting.receive()
        assert (answer.status, answer.header("Connection")) == (304, "close")
        half.send(body[20:])
        answer = half.receive()
        assert (answer.status, answer.json()["balance_minor"], answer.header("Connection")) == (200, 5, "close")
        ended(old)


def test_a_new_process_that_cannot_serve_leaves_the_old_one_serving(served):
    good = served.configuration.read_text()
    before = served.process.pid
    served.configuration.write_text(good + "\n[log]\nnonsense = 1\n")
    told = served.refused_upgrade()
    assert f"{served.configuration}:{good.count(chr(10)) + 3}: " in told and "'nonsense'" in told
    served.configuration.write_text(good.replace("threads = 2", "threads = 3"))
    assert "[server] threads" in served.refused_upgrade()
    served.configuration.write_text(good.replace("[operator]\nlisten = 127.0.0.1:0", "[operator]\nlisten = 127.0.0.2:0"))
    assert "127.0.0.2" in served.refused_upgrade()
    served.configuration.write_text(good)
    assert served.get(EVENT_PATH, served.customer.key).status == 200 and served.process.pid == before
    eventually(lambda: served.log_text().count('"not handed over; going on"') == 3)
    ended(served.upgrade())
    assert served.get(EVENT_PATH, served.customer.key).status == 200


def handles(pid, number):
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", Path(f"/proc/{pid}/status").read_text(), re.M).group(1)
    return int(caught, 16) >> (number - 1) & 1


@pytest.mark.parametrize("number", (signal.SIGKILL, signal.SIGTERM))
def test_a_new_process_that_dies_on_the_way_leaves_the_old_one_serving(fragile_served, number):
    served = fragile_served
    served.odds.take_away()  # what it waits for
    said = []
    asking = threading.Thread(target=lambda: said.append(served.refused_upgrade()))
    asking.start()
    new = new_process(served.process.pid)
    assert "already" in served.refused_upgrade()
    assert new_process(served.process.pid) == new
    if number == signal.SIGTERM:
        eventually(lambda: handles(new, number))
        served.others = (new,)  # it writes that it has stopped
    os.kill(new, number)
    asking.join()
    assert "ended before it could serve" in said[0]
    assert served.request("GET", "/live", address=served.operator_address).status == 200
    assert served.request("POST", "/provider/v1/wallet", address=served.provider_address, body=b"{}").status == 403
    served.odds.bring_back()
    eventually(lambda: served.get(EVENT_PATH, served.customer.key).status == 200, 30)
    ended(served.upgrade())
    assert served.get(EVENT_PATH, served.customer.key).status == 200


def test_a_server_that_ends_on_the_way_takes_the_new_process_with_it(fragile_served):
    served = fragile_served
    served.odds.take_away()
    said = []
    asking = threading.Thread(target=lambda: said.append(served.refused_upgrade()))
    asking.start()
    watch = os.pidfd_open(new_process(served.process.pid))
    served.stop()
    asking.join()
    assert "ending" in said[0]
    ended(watch)


def test_it_is_the_program_on_disk_that_is_started(tmp_path, monkeypatch):
    program = tmp_path / "croupier"
    program.symlink_to(BINARY)
    monkeypatch.setattr(croupier, "BINARY", program)
    served = Upgraded(tmp_path / "served")
    try:
        served.start()
        program.unlink()
        monkeypatch.setattr(croupier, "BINARY", BINARY)
        assert "cannot be started" in served.refused_upgrade()
        assert served.get("/api/v1/health").status == 200
        program.symlink_to("/bin/false")
        assert "ended before it could serve" in served.refused_upgrade()
        program.unlink()
        program.symlink_to(BINARY)
        ended(served.upgrade())
        assert served.get("/api/v1/health").status == 200
    finally:
        served.remove()


def test_who_may_ask_and_what_for(service):
    assert "no croupier serves" in service.run("upgrade", 1, status=1).errors
    for word in ("0", "-1", "x"):
        service.run("upgrade", "--", word, status=2)
    assert "croupier upgrade PID" in service.run("serve", "--take-over", status=1).errors
    service.start()
    name = f"{service.environment['RUNTIME_DIRECTORY']}/{service.process.pid}.upgrade"
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    code = f"import os, socket; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect({name!r})"
    done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, timeout=60 * PATIENCE)
    assert "PermissionError" in done.stderr
    assert not started_by(service.process.pid) and service.get("/api/v1/health").status == 200


def test_a_service_manager_learns_which_process_it_is(tmp_path):
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    manager.settimeout(30 * PATIENCE)
    served = Upgraded(tmp_path / "served", environment={"NOTIFY_SOCKET": str(tmp_path / "notify")})
    try:
        served.start()
        assert manager.recv(99) == b"READY=1\n"
        ended(served.upgrade())
        told = {manager.recv(99), manager.recv(99)}
        assert told == {b"READY=1\n", f"MAINPID={served.pid}\n".encode()}
    finally:
        served.remove()
        manager.close()


def test_upgrades_leave_no_descriptor_behind(served):
    """Those that libraries open without O_CLOEXEC as well. What each leaves would be there three times more after three of
    them; what a server opens later, to write which keys were used, once more."""
    def kinds():
        found = Counter()
        for entry in Path(f"/proc/{served.serving()}/fd").iterdir():
            with contextlib.suppress(OSError):
                found[re.sub(r"\d+", "", os.readlink(entry))] += 1
        return found

    ended(served.upgrade())
    served.request("GET", EVENT_PATH, key=served.customer.key)
    first = kinds()
    for _ in range(3):
        ended(served.upgrade())
        served.request("GET", EVENT_PATH, key=served.customer.key)
    eventually(lambda: all(count < first[kind] + 3 for kind, count in kinds().items()))
