"""`croupier feed stream`: a feed as one process, whose every line is answered."""

import contextlib
import itertools
import json
import os
import re
import select
import subprocess
import threading

import pytest

from croupier import BINARY, PATIENCE, ROOT, eventually
from servers import SAMPLE

pytestmark = pytest.mark.depends_on("odds")

MIB = 1024 * 1024


class Stream:
    """The process; its standard input and output are pipes of ours."""

    def __init__(self, service, *options):
        self.process = subprocess.Popen(
            [str(BINARY), "feed", "stream", "-c", str(service.configuration), *options], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=service.environment)

    def send(self, *lines):
        for line in lines:
            self.process.stdin.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
        self.process.stdin.flush()

    def receive(self):
        return json.loads(self.process.stdout.readline())

    def end(self):
        """The rest of what it wrote, when its input has ended."""
        output, errors = self.process.communicate(timeout=60 * PATIENCE)
        assert errors == b"" and self.process.returncode == 0, errors
        return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
def stream(request):
    made = []

    def make(service, *options):
        made.append(Stream(service, *options))
        return made[-1]

    yield make
    for each in made:
        each.process.kill()
        each.process.wait()
        for pipe in (each.process.stdin, each.process.stdout, each.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def catalog(*ids, sport="cricket"):
    return {"catalog": sport, "document": [{"gmid": each} for each in ids]}


def odds(event, document, sport="cricket"):
    return {"odds": sport, "event": str(event), "document": document}


def event_path(event, sport="cricket"):
    return f"/api/v1/{sport}/events/{event}"


# ---- lines and answers -------------------------------------------------------------------------------


def test_what_was_answered_is_seen(shared, stream):
    feed = stream(shared)
    key = shared.customer.key
    feed.send(catalog(1, 2))
    assert feed.receive() == {"line": 1, "published": True}
    eventually(lambda: shared.get("/api/v1/cricket/events", key).json() == [{"gmid": 1}, {"gmid": 2}])
    for number in range(2, 30):
        feed.send(odds(1, [{"n": number}]))
        assert feed.receive() == {"line": number, "published": True}
        eventually(lambda: shared.get(event_path(1), key).json().get("odds") == [{"n": number}])
    feed.send({"withdraw": "cricket", "event": "1"})
    assert feed.receive() == {"line": 30, "published": True}
    eventually(lambda: shared.get(event_path(1), key).status == 404)
    assert feed.end() == []


def test_bytes_stay_as_they_are(shared, stream):
    document = '[ {"gmid" : 5 , "price":1.80, "big":34000001000000000000000000, "escaped":"\\u00e9\\/"} ]'
    feed = stream(shared)
    feed.send(f'{{"document": {document}, "catalog":"football"}}'.encode())
    assert feed.receive()["published"] is True
    expected = b'[{"gmid":5,"price":1.80,"big":34000001000000000000000000,"escaped":"\\u00e9\\/"}]'
    eventually(lambda: shared.get("/api/v1/football/events", shared.customer.key).body == expected)
    assert feed.end() == []


def test_a_refused_line_changes_nothing_and_stops_nothing(shared, stream):
    feed = stream(shared)
    feed.send(catalog(1), odds(1, [{"n": 1}]), b"oops", b"", odds(1, {"n": 2}), {"odds": "cricket", "event": "x"},
              {"together": [odds(1, [{"n": 3}]), {"catalog": "curling", "document": []}]}, {**catalog(1), "id": "last"})
    answers = [feed.receive() for _ in range(7)]
    assert answers[0] == {"line": 1, "published": True} and answers[1] == {"line": 2, "published": True}
    assert answers[2] == {"line": 3, "error": "expected a value", "column": 1}
    assert answers[3]["line"] == 5 and answers[3]["column"] == json.dumps(odds(1, {"n": 2})).index('{"n"') + 1
    assert answers[4]["line"] == 6 and answers[4]["error"] == "the document is missing"
    assert answers[5]["line"] == 7 and answers[5]["error"].startswith("not a sport")
    assert answers[6] == {"line": 8, "id": "last", "published": True}
    eventually(lambda: shared.get(event_path(1), shared.customer.key).json().get("odds") == [{"n": 1}])
    assert feed.end() == []


def test_rows_that_cannot_be_asked_for_are_counted(shared, stream):
    feed = stream(shared)
    feed.send(catalog(1, "x", 2, 2, "002"))
    assert feed.receive() == {"line": 1, "published": True, "rows_without_id": 1, "rows_repeated": 2}


def test_the_last_line_needs_no_end_and_each_is_answered_in_order(service, stream):
    feed = stream(service)
    feed.send(*[odds(n % 7 + 1, [{"n": n}]) if n % 5 else b"{" for n in range(1, 5000)])
    feed.process.stdin.write(json.dumps({**catalog(1), "id": 5000}).encode())
    answers = feed.end()
    assert [answer["line"] for answer in answers] == list(range(1, 5001))
    assert [answer["line"] for answer in answers if "error" in answer] == list(range(5, 5000, 5))
    assert answers[-1] == {"line": 5000, "id": 5000, "published": True}


def test_no_input_is_no_publication(service, stream):
    assert stream(service).end() == []


@pytest.mark.threadless
def test_a_line_that_is_too_long_is_skipped(service, stream):
    feed = stream(service)

    def send():
        feed.send(catalog(1), b"[" + b" " * 40 * MIB, catalog(2), b" " * (32 * MIB - 100) + json.dumps(catalog(3)).encode())
        feed.process.stdin.close()

    thread = threading.Thread(target=send)
    thread.start()
    answers = [feed.receive() for _ in range(4)]
    thread.join()
    assert [answer.get("published") for answer in answers] == [True, None, True, True]
    assert answers[1] == {"line": 2, "error": "a line has at most 32 MiB", "column": 32 * MIB + 1}
    assert feed.process.wait(60 * PATIENCE) == 0


# ---- together ----------------------------------------------------------------------------------------


NUMBERS = itertools.count()  # go on from test to test: with Redis a moment passes before all threads forget what another test published


def number_of(connection, path, key):
    connection.send(f"GET {path} HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\n\r\n")
    answer = connection.receive().json()
    return answer["event"].get("n"), answer["odds"][0]["n"]


@pytest.mark.parametrize("with_row, padding, least", [(True, 0, 3000 // SAMPLE), (True, 500_000, 50 // SAMPLE), (False, 0, 3000 // SAMPLE)],
                         ids=["in one answer", "with a large catalog", "in answers one after the other"])
def test_what_is_published_together_is_seen_together(shared, stream, with_row, padding, least):
    feed = stream(shared)
    key, seen, torn, over = shared.customer.key, set(), [], threading.Event()
    paths = [event_path(event, "tennis") for event in (9, 8)]

    def document(n):
        rows = [{"gmid": 7, "n": "x" * (n % 7)}, {"gmid": 9, "n": n}, {"gmid": 8}, {"gmid": 6, "n": "y" * padding}]
        row = {"catalog": "tennis", "document": rows}
        return {"together": [*[row] * with_row, odds(9, [{"n": n}], "tennis"), odds(8, [{"n": n}], "tennis")]}

    feed.send({"catalog": "tennis", "document": [{"gmid": 9}, {"gmid": 8}]}, document(next(NUMBERS)))
    assert feed.receive()["published"] and feed.receive()["published"]
    eventually(lambda: all(shared.get(path, key).status == 200 for path in paths))

    def poll():
        with shared.connect() as connection:
            while not over.is_set():
                (row, first), (_, second) = [number_of(connection, path, key) for path in paths]
                seen.add(first)
                if second < first or row not in (None, first):
                    torn.append((row, first, second))

    polling = [threading.Thread(target=poll) for _ in range(3)]
    for thread in polling:
        thread.start()
    try:
        number = 0
        while (len(seen) < 50 or number < least) and number < 20000 and not torn:
            number += 1
            feed.send(document(next(NUMBERS)))
            assert feed.receive()["published"]
    finally:
        over.set()
        for thread in polling:
            thread.join()
    assert not torn and len(seen) >= 50


@pytest.mark.only("redis")
def test_each_transaction_of_redis_has_whole_lines(shared, stream):
    """However much is published at once: what is between MULTI and EXEC is all that others can see of it."""
    lines, events = 30, 900
    ours = f"[{shared.odds.database} ".encode()
    parts, counted = [{}], 0
    with shared.odds.server.connect(timeout=60 * PATIENCE) as monitor:
        monitor.call("MONITOR")
        feed = stream(shared)
        feed.send(*({"together": [odds(event, [{"line": n}], "tennis") for event in range(1, events + 1)]} for n in range(lines)))
        assert [feed.receive()["published"] for _ in range(lines)] == [True] * lines
        while counted < lines * events:
            words = monitor.receive()
            if ours in words and b'"SET" "odds:tennis:' in words:
                line = int(words.rpartition(b":")[2].strip(b'}]"'))
                parts[-1][line] = parts[-1].get(line, 0) + 1
                counted += 1
            elif ours in words and b'"EXEC"' in words.upper():
                parts.append({})
    assert {line: count for part in parts for line, count in part.items()} == dict.fromkeys(range(lines), events), parts


def test_a_sport_is_withdrawn_with_what_was_published_before(shared, stream):
    feed = stream(shared)
    key = shared.customer.key
    feed.send(catalog(1, 2, sport="football"), odds(1, [], "football"),
              {"together": [odds(2, [], "football"), {"withdraw": "football"}, catalog(1, 2, 3, sport="football"),
                            odds(3, [{"n": 3}], "football")]})
    assert [feed.receive()["published"] for _ in range(3)] == [True] * 3
    eventually(lambda: shared.get(event_path(3, "football"), key).status == 200)
    for event in (1, 2):  # withdrawn with what is there now
        assert shared.get(event_path(event, "football"), key).error == (404, "odds_not_found")
    feed.send({"withdraw": "football"})
    assert feed.receive()["published"]
    eventually(lambda: b"catalog_unavailable" in shared.get("/api/v1/football/events", key).body)


# ---- bounds and faults -------------------------------------------------------------------------------


def test_a_reader_that_does_not_read_is_waited_for(service, stream):
    """Answers pile up in the pipe, then lines in the queue, then nothing is read any more: what is held is bounded."""
    feed = stream(service)
    os.set_blocking(feed.process.stdin.fileno(), False)
    line = json.dumps(odds(1, [])).encode() + b"\n"
    sent = b""
    lines = 0
    for _ in range(200000):  # 16 MiB of lines and what stands around them are some 70,000
        _, writable, _ = select.select([], [feed.process.stdin], [], 3 * PATIENCE)
        if not writable:
            break
        sent = sent or line * 500
        written = os.write(feed.process.stdin.fileno(), sent)
        lines += sent[:written].count(b"\n")
        sent = sent[written:]
    else:
        raise AssertionError("it reads on and on")
    os.set_blocking(feed.process.stdin.fileno(), True)
    thread = threading.Thread(target=lambda: (feed.process.stdin.write(sent), feed.process.stdin.close()))
    thread.start()
    lines += sent.count(b"\n")
    for number in range(1, lines + 1):
        assert feed.receive() == {"line": number, "published": True}
    thread.join()
    assert feed.process.wait(60 * PATIENCE) == 0


def test_a_reader_that_has_gone_is_an_error(service, stream):
    feed = stream(service)
    feed.send(catalog(1))
    feed.receive()
    feed.process.stdout.close()
    feed.send(catalog(2))
    assert feed.process.wait(60 * PATIENCE) == 1
    errors = feed.process.stderr.read().decode()
    assert errors.startswith("croupier feed stream: cannot write to standard output") and errors.count("\n") == 1


def test_what_was_answered_survives_a_kill(service, stream):
    customer = service.add_customer()
    service.start()
    service.await_admission(customer.key)
    last = dict.fromkeys(range(1, 8), 0)
    for attempt in range(3):
        feed = stream(service)
        feed.send(catalog(*range(1, 8)))
        assert feed.receive()["published"]
        count, answered = 3000, threading.Event()

        def send():
            try:
                for n in range(count):
                    feed.send(odds(n % 7 + 1, [{"n": attempt * count + n + 1}]))
            except BrokenPipeError:
                pass

        sending = threading.Thread(target=send)
        sending.start()
        for n in range(300 * (attempt + 1)):
            answer = feed.receive()
            assert answer == {"line": n + 2, "published": True}
            last[n % 7 + 1] = attempt * count + n + 1
        feed.process.kill()
        for line in feed.process.stdout.read().splitlines(keepends=True):
            if line.endswith(b"\n"):
                n = json.loads(line)["line"] - 2
                last[n % 7 + 1] = attempt * count + n + 1
        sending.join()
        feed.process.wait()
        for event, number in last.items():
            eventually(lambda: shown(service, customer, event) >= number)
            last[event] = shown(service, customer, event)


def shown(service, customer, event):
    return service.get(event_path(event), customer.key).json()["odds"][0]["n"]


def test_a_store_that_is_away_is_told_of_line_by_line(fragile, stream):
    feed = stream(fragile)
    feed.send(catalog(1))
    assert feed.receive()["published"]
    fragile.odds.take_away()
    feed.send({**catalog(2), "id": 2})
    answer = feed.receive()
    assert answer["line"] == 2 and answer["id"] == 2 and "column" not in answer and fragile.odds.where in answer["error"]
    fragile.odds.bring_back()
    lines = iter(range(3, 10000))

    def published():
        feed.send(catalog(3))
        answer = feed.receive()
        assert answer["line"] == next(lines)
        return answer.get("published")

    eventually(published)
    assert feed.end() == []


@pytest.mark.only("redis")
def test_what_redis_refuses_is_of_its_own_line(fragile, stream):
    fragile.odds.call("ACL", "SETUSER", "default", "-unlink")
    feed = stream(fragile)
    withdrawn = {"withdraw": "cricket", "event": "1"}
    feed.send(odds(1, []), withdrawn, {"together": [odds(2, []), withdrawn, odds(3, [])]}, odds(4, []))
    answers = [feed.receive() for _ in range(4)]
    assert [answer.get("published") for answer in answers] == [True, None, None, True], answers
    assert all(re.match("cannot publish: .*NOPERM .*'unlink' command", answer["error"]) for answer in answers[1:3]), answers
    assert [fragile.odds.call("GET", f"odds:cricket:{event}") for event in range(1, 5)] == [b"[]", None, None, b"[]"]
    assert feed.end() == []


# ---- interest ----------------------------------------------------------------------------------------


def test_events_that_are_polled_are_told_of(service, stream):
    customer = service.add_customer()
    service.publish("cricket", [{"gmid": 1}, {"gmid": 2}], {1: []})
    service.start()
    service.await_admission(customer.key)
    feed = stream(service, "--interest", "1")
    service.get(event_path(2), customer.key)  # it is wanted most when its odds are missing
    assert feed.receive() == {"interest": "cricket", "event": "2"}
    told = []

    def poll_until_told(times):
        while len(told) < times:
            service.get(event_path(1), customer.key)
            if select.select([feed.process.stdout], [], [], 0.05)[0]:
                told.append(feed.receive())

    poll_until_told(3)
    assert told == [{"interest": "cricket", "event": "1"}] * 3
    feed.send(odds(1, [{"n": 1}]))
    assert eventually(lambda: (answer := feed.receive()).get("published") and answer) == {"line": 1, "published": True}
    assert all("interest" in line for line in feed.end())


@pytest.mark.only("embedded", "sqlite")  # of programs in other languages
@pytest.mark.parametrize("language, program", [("python", "/usr/bin/python3"),
                                               pytest.param("javascript", "node", marks=pytest.mark.takes("node"))])
def test_the_feeders_of_the_documents_follow_what_is_polled(service, tmp_path, language, program):
    [text] = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs" / "feed.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "feeder").write_text(text)
    (tmp_path / "croupier").write_text(f'#!/bin/sh\nexec "{BINARY}" "$@" -c "{service.configuration}"\n')
    (tmp_path / "croupier").chmod(0o755)
    customer = service.add_customer()
    service.start()
    service.await_admission(customer.key)
    feeder = subprocess.Popen([program, str(tmp_path / "feeder"), str(5 * PATIENCE)], stderr=subprocess.PIPE,
                              env={**service.environment, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    try:
        eventually(lambda: service.get(event_path(34000002), customer.key).status == 200)
        seen = set()  # far more than are published when no one polls
        eventually(lambda: seen.add(service.get(event_path(34000002), customer.key).header("etag")) or len(seen) > 10)
        assert feeder.wait(60 * PATIENCE) == 0
        assert feeder.stderr.read() == b""
    finally:
        feeder.kill()
        feeder.wait()
        feeder.stderr.close()


@pytest.mark.parametrize("arguments", [["--interest", "0"], ["--interest", "x"], ["--interest", "3601"], ["now"]])
def test_usage(service, arguments):
    assert "Usage" in (done := service.run("feed", "stream", *arguments, status=2)).errors or done.errors


@pytest.mark.only("embedded")
@pytest.mark.skipif(subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True).returncode != 0,
                    reason="no pid namespace may be made here")
def test_two_containers_with_equal_process_ids_are_told_what_to_do(make_service):
    service = make_service()
    container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", str(BINARY)]
    options = ["-c", str(service.configuration)]
    feed = subprocess.Popen([*container, "feed", "stream", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=service.environment)
    try:
        feed.stdin.write(b'{"odds": "cricket", "event": "1", "document": []}\n')
        feed.stdin.flush()
        assert json.loads(feed.stdout.readline())["published"]

        def publish():
            return subprocess.run([*container, "feed", "odds", "cricket", "2", "-", *options], input=b"[]", capture_output=True,
                                  env=service.environment)

        refused = publish()
        assert refused.returncode == 1
        assert b"the same id (1) in another container; let the containers share a pid namespace, or use Redis" in refused.stderr
    finally:
        feed.communicate()
    assert publish().returncode == 0
