"""The record of `croupier feed stream --record` (docs/feed.md, "A record")."""

import datetime
import io
import json
import os
import re
import signal
import subprocess
import time

import pytest
import zstandard

from croupier import BINARY, PATIENCE, eventually

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


def files(directory):
    return sorted(directory.iterdir())


def text_of(file):
    """As zstdcat shows it, frame after frame; without an end that is cut off."""
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(file.read_bytes()), read_across_frames=True) as reader:
        return reader.read()


def lines_of(directory):
    """(time, answer, sent) of each line; `sent` is missing from those that stand for lines."""
    lines = b"".join(text_of(file) for file in files(directory)).decode().split("\n")[:-1]
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
        told[number] = time.monotonic()
        assert recording.send(odds(1, [{"n": number}]))[0]["published"]
        time.sleep(0.05)
    recording.process.kill()
    killed = time.monotonic()
    recording.process.wait()
    kept = [line[1]["line"] for line in lines_of(tmp_path / "record")]
    assert kept == list(range(1, len(kept) + 1)) and len(kept) >= 1
    assert all(killed - at < 1.2 * PATIENCE for number, at in told.items() if number > len(kept))
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
