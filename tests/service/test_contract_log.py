"""Logging never makes a request wait: standard error that no one reads, or that cannot be written."""

import fcntl
import json
import os
import re
import signal

import pytest

from servers import free_port
from croupier import eventually

pytestmark = pytest.mark.depends_on()

POLLS = 100
PATH = "/" + "p" * 8000  # as much of it is logged as ever is


@pytest.fixture
def made(make_service):
    """A service whose ports are known without its log."""
    listen = {"server.listen": f"127.0.0.1:{free_port()}", "operator.listen": f"127.0.0.1:{free_port()}"}
    service = make_service(listen)
    service.customer = service.add_customer()
    service.address, service.operator_address = (
        ("127.0.0.1", int(listen[name].rpartition(":")[2])) for name in ("server.listen", "operator.listen"))
    return service


def spawn(service, descriptor):
    service.spawn(errors=descriptor)

    def healthy():
        try:
            return service.get("/api/v1/health").status == 200
        except OSError:
            return False
    eventually(healthy, 30)
    service.await_admission(service.customer.key)


def dropped(service):
    return service.metrics()["croupier_log_lines_dropped_total"]


def poll(service, connection):
    """A hundred requests, each answered; one line of the log each."""
    request = f"GET {PATH} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {service.customer.key}\r\n\r\n"
    connection.send(request * POLLS)
    assert [connection.receive().status for _ in range(POLLS)] == [404] * POLLS
    return POLLS


def poll_until_dropped(service):
    polls = 0
    with service.connect() as connection:
        while dropped(service) == 0:
            polls += poll(service, connection)
    assert service.get("/api/v1/health").status == 200
    return polls


def ends(service):
    service.signal(signal.SIGTERM)
    return service.wait()


@pytest.fixture(params=["pipe", pytest.param("fifo", marks=pytest.mark.threadless)])
def unread(request, tmp_path):
    """(reader, writer) of a pipe that no one reads."""
    if request.param == "pipe":
        reader, writer = os.pipe()
    else:
        os.mkfifo(tmp_path / "errors")
        reader = os.open(tmp_path / "errors", os.O_RDONLY | os.O_NONBLOCK)
        writer = os.open(tmp_path / "errors", os.O_WRONLY)
        os.set_blocking(reader, True)
    yield reader, writer
    for descriptor in (reader, writer):
        try:
            os.close(descriptor)
        except OSError:
            pass


def test_an_unread_standard_error_makes_no_one_wait_and_is_no_reason_not_to_end(made, unread):
    reader, writer = unread
    spawn(made, writer)
    poll_until_dropped(made)
    with made.connect() as connection:
        for _ in range(10):
            poll(made, connection)
    made.customer = made.add_customer("Later")
    made.await_admission(made.customer.key)
    assert ends(made) == 0
    os.close(writer)
    text = b""
    while piece := os.read(reader, 65536):
        text += piece
    for line in text.decode().splitlines(keepends=True):
        assert line.endswith("\n")
        json.loads(line)


def test_when_it_is_read_again_the_log_says_how_many_lines_are_missing(made, unread):
    reader, writer = unread
    spawn(made, writer)
    polls = poll_until_dropped(made)
    os.set_blocking(reader, False)
    os.close(writer)
    text = bytearray()

    def told():
        try:
            while piece := os.read(reader, 65536):
                text.extend(piece)
        except BlockingIOError:
            pass
        return sum(map(int, re.findall(rb'"log lines were dropped","lines":(\d+)', text)))
    missing = eventually(lambda: told() if told() == dropped(made) else 0, 30)
    last = made.get("/api/v1/sports", key=made.customer.key).header("x-request-id").encode()
    eventually(lambda: told() == missing and last in text)
    assert ends(made) == 0
    assert told() == missing
    lines = [json.loads(line) for line in text.decode().splitlines()]
    assert lines[-1]["message"] == "stopped"
    assert sum(line["message"] == "request" and line["path"].startswith("/ppp") for line in lines) + missing >= polls
    stamps = [line["time"] for line in lines if line["message"] != "request"]
    assert stamps == sorted(stamps)


def test_a_reader_that_goes_away_harms_no_one(made, unread):
    reader, writer = unread
    spawn(made, writer)
    os.close(writer)
    os.close(reader)
    with made.connect() as connection:
        for _ in range(10):
            poll(made, connection)
    eventually(lambda: dropped(made) > 0)
    assert made.get("/api/v1/health").status == 200
    assert ends(made) == 0


def test_a_full_disk_costs_lines_alone(made):
    with open("/dev/full", "wb") as full:
        spawn(made, full.fileno())
    with made.connect() as connection:
        poll(made, connection)
    eventually(lambda: dropped(made) >= POLLS)
    assert ends(made) == 0


def test_why_it_does_not_start_is_said_last(made):
    """What was logged before comes before the refusal, whole."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 1 << 20)
    made.configure({"casino.launch_ca_file": "/nowhere/ca.pem", "server.max_connections": 1000000})
    made.spawn(errors=writer)
    os.close(writer)
    with os.fdopen(reader) as errors:
        lines = errors.read().splitlines()
    assert made.wait() == 1
    assert "/nowhere/ca.pem" in lines[-1] and lines[-1].startswith("croupier serve: ")
    assert json.loads(lines[0])["message"] == "fewer descriptors than max_connections needs"
