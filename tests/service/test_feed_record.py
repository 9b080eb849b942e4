"""The record of `croupier feed stream --record` (docs/feed.md, "A record")."""

import datetime
import http.client
import io
import json
import os
import random
import re
import subprocess
import threading
import time
import urllib.request

import pytest
import zstandard

from croupier import BINARY, PATIENCE, ROOT, at_a_terminal, eventually
from servers import SAMPLE, Stopwatch

pytestmark = pytest.mark.depends_on("odds")

NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.feed\.zst")


class Feed:
    """A stream with a record, whose input and output are pipes of ours."""

    def __init__(self, service, directory, *options):
        self.process = subprocess.Popen(
            [str(BINARY), "feed", "stream", "-c", str(service.configuration), "--record", str(directory), *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=service.environment)

    def send(self, *lines):
        """Sends lines (text, or what becomes JSON); returns their answers."""
        for line in lines:
            self.process.stdin.write((line if isinstance(line, str) else json.dumps(line)).encode() + b"\n")
        self.process.stdin.flush()
        return [json.loads(self.process.stdout.readline()) for _ in lines]

    def end(self):
        _, errors = self.process.communicate(timeout=60 * PATIENCE)
        assert self.process.returncode == 0, errors
        return errors.decode()


@pytest.fixture
def feed():
    made = []

    def make(*arguments):
        made.append(Feed(*arguments))
        return made[-1]

    yield make
    for each in made:
        each.process.kill()
        each.process.communicate()


def files(directory, pattern="*"):
    return sorted(directory.glob(pattern))


def text_of(file):
    """As zstdcat shows it, frame after frame; without an end that is cut off."""
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(file.read_bytes()), read_across_frames=True) as reader:
        return reader.read()


def lines_of(directory, pattern="*"):
    """(time, answer, sent) of each line; `sent` is missing from those that stand for lines."""
    lines = b"".join(text_of(file) for file in files(directory, pattern)).decode().split("\n")[:-1]
    return [(time, json.loads(answer), *sent) for time, answer, *sent in (line.split("\t", 2) for line in lines)]


def catalog(*ids, sport="cricket"):
    return {"catalog": sport, "document": [{"gmid": each} for each in ids]}


def odds(event, document, sport="cricket"):
    return {"odds": sport, "event": str(event), "document": document}


# ---- what is recorded --------------------------------------------------------------------------------


def test_each_accepted_line_is_recorded_with_its_bytes_and_its_answer(service, feed, tmp_path):
    recording = feed(service, tmp_path / "record")
    odd = ' { "document" : [ {"price":1.80,\t"name":"\\u00e9é"} ] , "catalog" : "tennis", "id": "\\"published\\"" } \r'
    sent = [json.dumps(catalog(1)), odd, "oops", "", json.dumps({"withdraw": "tennis"}), json.dumps({"alive": True})]
    before = datetime.datetime.now(datetime.timezone.utc)
    recording.send(*[line for line in sent if line])
    assert recording.end() == ""
    [file] = files(tmp_path / "record")
    assert NAME.fullmatch(file.name) and file.stat().st_mode & 0o777 == 0o640
    lines = lines_of(tmp_path / "record")
    assert [line[2] for line in lines] == [sent[0], odd, sent[4], sent[5]]
    assert [line[1] for line in lines] == [
        {"line": 1, "published": True}, {"line": 2, "id": '"published"', "published": True, "rows_without_id": 1},
        {"line": 4, "published": True}, {"line": 5, "published": True}]
    times = [datetime.datetime.fromisoformat(line[0].replace("Z", "+00:00")) for line in lines]
    assert times == sorted(times)
    assert (times[0] - before).total_seconds() > -0.001 and times[-1] <= datetime.datetime.now(datetime.timezone.utc)


def test_a_process_that_is_killed_loses_at_most_the_last_second(service, feed, tmp_path):
    recording = feed(service, tmp_path / "record")
    told = {}
    for number in range(1, 40):
        told[number] = Stopwatch()
        assert recording.send(odds(1, [{"n": number}]))[0]["published"]
        time.sleep(0.05)
    recording.process.kill()
    ages = {number: watch.seconds() for number, watch in told.items()}
    recording.process.wait()
    kept = [line[1]["line"] for line in lines_of(tmp_path / "record")]
    assert kept == list(range(1, len(kept) + 1)) and len(kept) >= 1
    assert all(age < 1.2 * PATIENCE for number, age in ages.items() if number > len(kept))
    again = feed(service, tmp_path / "record")  # begins a file of its own
    again.send(catalog(5))
    again.end()
    assert len(files(tmp_path / "record")) == 2 and lines_of(tmp_path / "record")[-1][2] == json.dumps(catalog(5))


def test_records_that_are_older_are_removed_and_nothing_else(service, feed, tmp_path):
    directory = tmp_path / "record"
    directory.mkdir()
    now = datetime.datetime.now(datetime.timezone.utc)
    old, young = ((now - datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H-%M-%S.000Z.feed.zst") for hours in (4, 2.5))
    others = [old + ".keep", "x" + old, "notes.txt", "2020-13-01T00-00-00.000Z.feed.zst", young]
    for name in (old, *others):
        (directory / name).write_bytes(b"")
    recording = feed(service, directory, "--keep", "2h")
    recording.send(catalog(1))
    recording.end()
    left = {file.name for file in files(directory)}
    assert old not in left and left > set(others) and len(left) == len(others) + 1


def test_one_process_records_in_a_directory(service, feed, tmp_path):
    recording = feed(service, tmp_path / "record")
    recording.send(catalog(1))
    refused = service.run("feed", "stream", "--record", tmp_path / "record", status=1)
    assert f"{tmp_path}/record: another process records there" in refused.errors


@pytest.mark.parametrize("options, status, said", [
    (["--keep", "3d"], 2, "--keep goes with --record"),
    (["--record", "{}", "--keep", "soon"], 2, "--keep: 'soon' is not a time"),
    (["--record", "{}", "--keep", "2999-01-01"], 2, "--keep goes with --record, and is a time such as 30d"),
    (["--record", "{}/file"], 1, "/file: "),
    (["--record", "{}/missing/record"], 1, "/missing/record: ")])
def test_a_record_that_cannot_be_kept_is_refused_before_anything_is_published(service, tmp_path, options, status, said):
    (tmp_path / "file").write_text("")
    refused = service.run("feed", "stream", *[option.format(tmp_path) for option in options], input=json.dumps(catalog(1)),
                          status=status)
    assert said in refused.errors and refused.text == ""


def test_a_full_disk_holds_up_no_prices_and_leaves_a_gap(service, tmp_path):
    """In a mount namespace of the test's own, on a file system of 64 KiB that another file fills and leaves."""
    room = tmp_path / "room"
    room.mkdir()
    script = f"""
        mount -t tmpfs -o size=64k tmpfs {room} || exit 77
        head -c 61440 /dev/zero >{room}/ballast
        mkfifo {tmp_path}/lines
        {BINARY} feed stream -c {service.configuration} --record {room}/record <{tmp_path}/lines >{tmp_path}/answers 2>{tmp_path}/log &
        exec 3>{tmp_path}/lines
        i=0
        until grep -q 'goes on without' {tmp_path}/log; do
            i=$((i + 1))
            echo "{{\\"odds\\":\\"cricket\\",\\"event\\":\\"1\\",\\"document\\":[{{\\"n\\":\\"$(head -c 300 /dev/urandom | base64 -w0)\\"}}]}}" >&3
        done
        rm {room}/ballast
        until grep -q 'has a gap' {tmp_path}/log; do sleep 0.05; done
        echo '{{"withdraw":"cricket"}}' >&3
        exec 3>&-
        wait
        cp {room}/record/* {tmp_path}/kept/
    """
    (tmp_path / "kept").mkdir()
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True,
                          env=service.environment, timeout=120 * PATIENCE)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("needs the right to mount")
    assert done.returncode == 0, done
    answers = [json.loads(line) for line in (tmp_path / "answers").read_text().splitlines()]
    assert all(answer.get("published") for answer in answers)
    lines = lines_of(tmp_path / "kept")
    lost = sum(line[1].get("gap", 0) for line in lines)
    assert lost > 0 and len([line for line in lines if len(line) == 3]) + lost == len(answers)
    assert lines[-1][2] == '{"withdraw":"cricket"}'
    log = (tmp_path / "log").read_text()
    assert "No space left on device" in log and len(log.splitlines()) <= 4, log


# ---- a day again -------------------------------------------------------------------------------------

SPORTS = ["cricket", "football", "tennis", "horse-racing", "greyhound-racing"]
EXAMPLE = ROOT / "examples" / "record"


def answers(service):
    """What a client gets, of every catalog and event: status, body."""
    paths = [f"/api/v1/{sport}/events{event}" for sport in SPORTS for event in ("", "/1", "/2", "/3")]
    return [(answer.status, answer.body if answer.status == 200 else answer.error) for answer in
            (service.get(path, service.customer.key) for path in paths)]


def begin(service):
    service.customer = service.add_customer()
    service.start()
    service.await_admission(service.customer.key)
    return service


def play(recording):
    """Three moments of five sports, after each of which the caller may look."""
    for sport in SPORTS:
        recording.send(odds(1, [{"price": 1}], sport), f'{{"catalog":"{sport}","document":[ {{"gmid":1, "n": 1.80}},{{"gmid":2}} ]}}')
    yield
    recording.send({"together": [odds(event, [{"n": event}], sport) for sport in SPORTS for event in (2, 3)]},
                   {"withdraw": "tennis"}, {"withdraw": "cricket", "event": "1"}, "no line", {"alive": True})
    yield
    recording.send(catalog(1, 2, 3), odds(1, [{"price": 2.50}]), {"withdraw": "football"},
                   {"catalog": "football", "document": [{"gmid": 3}]}, odds(3, [], "football"))
    yield


def settled(service, expected):
    eventually(lambda: answers(service) == expected)


def test_a_record_that_is_replayed_gives_the_same_answers_byte_for_byte(make_service, feed, tmp_path):
    first, second = begin(make_service()), make_service()
    recording = feed(first, tmp_path / "record")
    seen, times = [], []
    for _ in play(recording):
        time.sleep(0.05)
        times.append(datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z"))
        time.sleep(0.05)
        seen.append(answers(first))
    recording.end()
    assert len({str(moment) for moment in seen}) == 3
    begin(second)
    for moment, at in zip(seen, times):
        replayed = second.run("feed", "replay", tmp_path / "record", "--to", at, "--live", "--speed", "60", "--json")
        assert json.loads(replayed.text)["lines"] > 0 and replayed.errors == ""
        settled(second, moment)


HOUR = 3600 // SAMPLE  # seconds


def an_hour(directory):
    """What two events of five sports have in an hour that is polled: a catalog a minute, and odds of one of them each second. Documents of the
    simulator, with prices by a fixed seed; each is another. (seconds, line, event or None)."""
    chance, names = random.Random(34), {}
    for _, _, sent in lines_of(directory, "*.zst"):
        line = json.loads(sent)
        names[line.get("odds", "catalog"), line.get("event", line.get("catalog"))] = sent
    catalogs = [line for (kind, _), line in names.items() if kind == "catalog"]
    events = {event: line for event, line in names.items() if event[0] != "catalog"}
    for second in range(HOUR):
        event = chance.choice(list(events)) if second >= len(events) else list(events)[second]
        yield second, re.sub(r'("price": ?)[0-9.]+', rf"\g<1>{second + 1}.{chance.randrange(10, 99)}", events[event], count=3), event
        if second % 60 == 0:
            yield from ((second, line, None) for line in catalogs)


def watch(service, event, seen, done):
    """Appends each answer to polls of the event that differs from the one before."""
    client, tag = http.client.HTTPConnection(*service.address, timeout=60 * PATIENCE), None
    while not done.is_set():
        client.request("GET", f"/api/v1/{event[0]}/events/{event[1]}", headers={
            "Authorization": f"Bearer {service.customer.key}", "Prefer": "wait=1", **({"If-None-Match": tag} if tag else {})})
        answer = client.getresponse()
        body, tag = answer.read(), answer.headers.get("ETag")
        if answer.status == 200 and b'"odds":[{' in body:
            seen.append(body)
    client.close()


@pytest.mark.only("embedded")
def test_a_recorded_hour_gives_the_same_answers_in_the_same_order(make_service, feed, tmp_path):
    """The first time each answer is asked for before the next line is sent, so that none is missed. The second time those who poll
    get some of them, all of their time, byte for byte and in that order."""
    first, second = begin(make_service()), make_service()
    recording, answers, moments = feed(first, tmp_path / "record"), {}, []
    client = http.client.HTTPConnection(*first.address, timeout=60 * PATIENCE)
    for at, line, event in an_hour(EXAMPLE):
        assert recording.send(line)[0].get("published")
        moments.append(at)
        if event is not None and at >= 10:
            client.request("GET", f"/api/v1/{event[0]}/events/{event[1]}", headers={"Authorization": f"Bearer {first.customer.key}"})
            answers.setdefault(event, []).append(client.getresponse().read())
    recording.end()
    hour = datetime.datetime(2026, 11, 28, tzinfo=datetime.timezone.utc)
    lines = b"".join(text_of(file) for file in files(tmp_path / "record")).split(b"\n")[:-1]
    stamps = ((hour + datetime.timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%S.000Z").encode() for at in moments)
    (tmp_path / "hour").mkdir()
    (tmp_path / "hour" / "2026-11-28T00-00-00.000Z.feed.zst").write_bytes(
        zstandard.compress(b"".join(stamp + line[len(stamp):] + b"\n" for stamp, line in zip(stamps, lines, strict=True))))
    begin(second)
    done, seen = threading.Event(), {event: [] for event in answers}
    watchers = [threading.Thread(target=watch, args=(second, *each, done)) for each in seen.items()]
    for each in watchers:
        each.start()
    try:
        replayed = json.loads(second.run("feed", "replay", tmp_path / "hour", "--speed", str(HOUR // 5), "--json").text)
        eventually(lambda: all(bodies and bodies[-1] == answers[event][-1] for event, bodies in seen.items()))
    finally:
        done.set()
        for each in watchers:
            each.join()
    assert replayed["lines"] == len(moments) and sum(map(len, answers.values())) == HOUR - 10
    for event, bodies in seen.items():
        place = {body: at for at, body in enumerate(answers[event])}
        order = [place[body] for body in bodies if body in place]
        assert len(order) >= len(bodies) - 2, "the first two may be of moments that were not asked for"
        assert order == sorted(order) and len(set(order)) == len(order)
    assert sum(map(len, seen.values())) > 100  # a busy machine shows few of them


@pytest.mark.only("embedded")
def test_a_replay_keeps_the_pauses_divided_by_its_speed(service, feed, tmp_path):
    recording = feed(service, tmp_path / "record")
    for number in range(40):
        recording.send(odds(number % 3 + 1, [{"n": number}]))
        time.sleep(0.02)
    recording.end()
    before = lines_of(tmp_path / "record")
    begun = time.monotonic()
    service.run("feed", "replay", tmp_path / "record", "--live", "--speed", "2")
    taken = time.monotonic() - begun
    span = [datetime.datetime.fromisoformat(before[at][0].replace("Z", "+00:00")) for at in (0, -1)]
    assert taken >= (span[1] - span[0]).total_seconds() / 2 - 0.01
    at = [json.loads(service.run("feed", "at", "cricket", str(event), "0s", tmp_path / "record").text) for event in (1, 2, 3)]
    assert at == [[{"n": 39}], [{"n": 37}], [{"n": 38}]]


def test_what_was_before_stands_when_a_replay_begins_later(make_service, feed, tmp_path):
    first, second = make_service(), make_service()
    recording = feed(first, tmp_path / "record")
    recording.send(catalog(1), odds(1, [{"n": 1}]))
    time.sleep(0.05)
    after = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    recording.send(odds(2, [{"n": 2}]))
    recording.end()
    begin(second).run("feed", "replay", tmp_path / "record", "--from", after, "--live")
    eventually(lambda: second.get("/api/v1/cricket/events/1", second.customer.key).json().get("odds") == [{"n": 1}])


@pytest.mark.only("embedded")
def test_a_store_that_is_published_to_is_refused_unless_it_is_meant(make_service, feed, tmp_path):
    service, quiet = make_service(), make_service()
    recording = feed(service, tmp_path / "record")
    recording.send(catalog(1), odds(1, []))
    recording.end()
    refused = service.run("feed", "replay", tmp_path / "record", status=1)
    assert "cricket was published to this store within the last minute" in refused.errors and refused.text == ""
    assert service.run("feed", "replay", tmp_path / "record", "--live").text == "replayed 2 lines\n"
    assert quiet.run("feed", "replay", tmp_path / "record").text == "replayed 2 lines\n"


@pytest.mark.only("redis")
def test_redis_does_not_tell_and_so_it_must_be_meant(service, feed, tmp_path):
    recording = feed(service, tmp_path / "record")
    recording.send(catalog(1))
    recording.end()
    assert "say with --live" in service.run("feed", "replay", tmp_path / "record", status=1).errors
    assert service.run("feed", "replay", tmp_path / "record", "--live").text == "replayed 1 line\n"


@pytest.mark.only("embedded")
def test_lines_that_the_record_does_not_have_are_told(service, feed, tmp_path):
    recording = feed(service, tmp_path / "record")
    recording.send(catalog(1), odds(1, [{"n": 1}]))
    recording.end()
    [file] = files(tmp_path / "record")
    whole = file.read_bytes()
    missing = zstandard.compress(file.name[:10].encode() + b'T00:00:00.000Z\t{"gap": 12}\n')
    failed = zstandard.compress(file.name[:10].encode() + b'T00:00:00.000Z\t{"line": 3, "error": "away"}\t{"withdraw":"cricket"}\n')
    file.write_bytes(whole + missing + failed + whole[:-3])
    replayed = service.run("feed", "replay", tmp_path / "record", "--live")
    assert replayed.text == "replayed 2 lines\n"
    assert "counts 12 of them" in replayed.errors and "a file is cut off" in replayed.errors
    told = json.loads(service.run("feed", "at", "cricket", "1", "0s", tmp_path / "record", "--json").text)
    assert told["lost"] == 12 and told["files_cut_off"] == 1 and told["document"] == '[{"n": 1}]'
    file.write_bytes(bytes([*whole[:30], whole[30] ^ 1, *whole[31:]]))
    for command in (["replay", tmp_path / "record", "--live"], ["at", "cricket", "1", "0s", tmp_path / "record"]):
        refused = service.run("feed", *command, status=1)
        assert refused.errors.endswith(f"{file} is damaged\n") and refused.text == ""


@pytest.mark.parametrize("command, status, said", [
    (["replay", "{}/missing"], 1, "/missing: No such file or directory"),
    (["replay", "{}/empty"], 1, "/empty: there is no record in it"),
    (["replay", "{}/record", "--to", "2020-01-01"], 1, "nothing was published then"),
    (["replay", "{}/record", "--from", "noon"], 2, "--from: 'noon' is not a time"),
    (["replay", "{}/record", "--speed", "0"], 2, "--speed: '0' is not a number from 1"),
    (["at", "curling", "1", "0s", "{}/record"], 2, "'curling' is not a sport"),
    (["at", "cricket", "x", "0s", "{}/record"], 2, "'x' is not an event id"),
    (["at", "cricket", "1", "2999-01-01", "{}/record"], 2, "'2999-01-01' is not over yet"),
    (["at", "cricket", "1", "2020-01-01", "{}/record"], 1, "no publication of it by then"),
    (["at", "cricket", "2", "0s", "{}/record"], 1, "no publication of it by then"),
    (["at", "tennis", "1", "0s", "{}/record"], 1, "it was withdrawn at 20"),
    (["at", "cricket", "1", "0s", "{}/empty"], 1, "/empty: there is no record in it")])
def test_a_question_that_has_no_answer_says_why(service, feed, tmp_path, command, status, said):
    (tmp_path / "empty").mkdir()
    recording = feed(service, tmp_path / "record")
    recording.send(odds(1, []), odds(1, [], "tennis"), {"withdraw": "tennis"})
    recording.end()
    refused = service.run("feed", *[word.format(tmp_path) for word in command], status=status)
    assert said in refused.errors and refused.text == ""


def test_each_moment_of_a_record_can_be_asked_for(service, feed, tmp_path):
    """Byte for byte, over files of several hours, of which the older have what the newer do not."""
    recording = feed(service, tmp_path / "record")
    recording.send('{"odds":"cricket","event":"1","document":[ {"price": 1.80} ]}', catalog(1))
    recording.end()
    [file] = files(tmp_path / "record")
    old = text_of(file)
    file.unlink()
    for hour in range(10):
        stamp = f"2026-11-2{hour // 5}T0{hour}"
        text = old.replace(old[:13], stamp.encode()) if hour == 2 else b""
        text += f'{stamp}:30:00.000Z\t{{"line": {hour + 3}, "published": true}}\t{json.dumps(odds(2, [{"hour": hour}]))}\n'.encode()
        (tmp_path / "record" / f"{stamp}-00-00.000Z.feed.zst").write_bytes(zstandard.compress(text))

    def ask(what, when, *options):
        return service.run("feed", "at", "cricket", what, when, tmp_path / "record", *options)

    assert ask("1", "2026-11-28").text == '[ {"price": 1.80} ]'
    assert ask("catalog", "2026-11-28").text == json.dumps(catalog(1)["document"])
    assert "published at 2026-11-20T02:" in ask("1", "2026-11-21T09:59:59Z").errors
    for hour in range(10):
        at = f"2026-11-2{hour // 5}T0{hour}:30:00"
        assert ask("2", f"{at}Z").text == json.dumps([{"hour": hour}])
        if hour > 0:
            assert ask("2", f"2026-11-2{hour // 5}T0{hour}:29:59.999Z").text == json.dumps([{"hour": hour - 1}])
    assert json.loads(ask("2", "2026-11-20T04:45:00Z", "--json").text) == {
        "sport": "cricket", "event": "2", "published_at": "2026-11-20T04:30:00.000Z", "lost": 0, "files_cut_off": 0,
        "document": '[{"hour": 4}]'}


@pytest.mark.only("embedded")
@pytest.mark.parametrize("answer, status", [("yes", 0), ("no", 1)])
def test_at_a_terminal_a_replay_is_asked_about(make_service, feed, tmp_path, answer, status):
    service, quiet = make_service(), make_service()
    recording = feed(service, tmp_path / "record")
    recording.send(catalog(1))
    recording.end()
    done, said = at_a_terminal(answer, "feed", "replay", tmp_path / "record", "-c", quiet.configuration, env=quiet.environment)
    assert done == status and "Publish 1 lines? yes or no: " in said
    assert ("replayed 1 line" if status == 0 else "nothing was published") in said


def test_the_demo_plays_the_example_with_five_sports(demo):
    """It serves what is replayed, with the events that its tour names, and changes as the record does."""
    published = {}
    for _, _, sent in lines_of(EXAMPLE, "*.zst"):
        line = json.loads(sent)
        if "odds" in line:
            for market in line["document"]:
                for hidden in ("tv", "tvChannel", "odd_type"):  # customers do not get them (docs/feed.md)
                    market.pop(hidden, None)
            published.setdefault((line["odds"], line["event"]), []).append(line["document"])
    for number, sport in enumerate(SPORTS, 34000001):
        documents, seen = published[sport, str(number)], []

        def changes():
            odds = ask(demo, f"/{sport}/events/{number}").get("odds")
            if odds in documents and odds not in seen:
                seen.append(odds)
            return len(seen) >= (2 if sport == "cricket" else 1)

        eventually(changes)
        assert len(ask(demo, f"/{sport}/events")) == 2


def test_the_demo_refuses_what_is_no_record(tmp_path):
    for name, said in (("missing", "/missing: No such file or directory"), ("", "there is no record in it")):
        refused = subprocess.run([str(BINARY), "demo", "--replay", str(tmp_path / name), "--dir", str(tmp_path / "demo")], capture_output=True, text=True)
        assert refused.returncode == 1 and said in refused.stderr and not (tmp_path / "demo").exists()


def ask(demo, path):
    request = urllib.request.Request(demo["api"] + path, headers={"Authorization": f"Bearer {demo['key']}"})
    with urllib.request.urlopen(request, timeout=60 * PATIENCE) as answer:
        return json.load(answer)


@pytest.fixture
def demo(tmp_path):
    environment = {**os.environ, "CROUPIER_OPERATOR_LISTEN": "127.0.0.1:0"}
    process = subprocess.Popen([str(BINARY), "demo", "--replay", str(EXAMPLE), "--players", "0", "--dir", str(tmp_path / "demo"), "--listen", "127.0.0.1:0",
                                "--json"], stdout=subprocess.PIPE, env=environment)
    yield json.loads(process.stdout.readline())
    process.terminate()
    process.communicate(timeout=60 * PATIENCE)
