"""The odds store when processes die, disks fill, and files are damaged, moved and lost.

ODDS_TOOL names the program that acts (tests/faults/odds_tool.c).
"""

import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from servers import PATIENCE, sampled  # noqa: E402

TOOL = os.environ["ODDS_TOOL"]


class Watcher:
    """A process that reads the store as a server does. Its lines come in a file."""

    def __init__(self, uri, directory):
        self.path = pathlib.Path(directory) / "watcher.out"
        self.output = open(self.path, "wb")
        self.process = subprocess.Popen([TOOL, "watch", uri], stdout=self.output, stderr=self.output)

    def lines(self):
        return self.path.read_text().splitlines()

    def statuses(self):
        return [line for line in self.lines() if not line.startswith("2")]

    def await_status(self, wanted):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.lines()[-5:]
            if self.statuses()[-1:] == [wanted]:
                return
            time.sleep(0.02)
        raise AssertionError(f"never {wanted}: {self.lines()[-5:]}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.output.close()


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def watchers(tmp_path):
    made = []

    def make(uri):
        made.append(Watcher(uri, tempfile.mkdtemp(dir=tmp_path)))
        return made[-1]

    yield make
    for watcher in made:
        watcher.kill()


def uri_of(directory):
    return f"embedded:{directory}"


def number(directory):
    done = subprocess.run([TOOL, "number", uri_of(directory)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    catalog, odds = done.stdout.split()
    assert catalog == odds
    return int(odds)


def write_until_killed(directory, count):
    """Kills a writer at some moment after it acknowledged so many, and returns the last number that it did. 0: at any moment."""
    with subprocess.Popen([TOOL, "write", uri_of(directory)], stdout=subprocess.PIPE) as writer:
        lines = [writer.stdout.readline() for _ in range(count)]
        time.sleep(random.random() * (0.002 if count > 0 else 0.02))
        writer.kill()
        lines += writer.stdout.read().splitlines()
    assert writer.returncode == -signal.SIGKILL, lines[-1:]
    return int(lines[-1]) if lines else 0


def write_some(directory):
    return write_until_killed(directory, 20)


def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(store, watchers):
    write_some(store)
    watcher = watchers(uri_of(store))
    watcher.await_status("ok")
    last = 0
    for _ in sampled(range(50)):
        acknowledged = write_until_killed(store, random.randrange(40))
        last = max(last, acknowledged)
        now = number(store)
        assert now >= last, "an acknowledged publication was lost"
        # At most the one that was under way may be there as well.
        assert acknowledged == 0 or now <= acknowledged + 1
        last = now
        assert watcher.process.poll() is None, watcher.lines()[-3:]
    assert watcher.statuses() == ["ok"]


def test_killed_readers_neither_stop_the_writer_nor_make_the_file_grow(store, watchers):
    write_some(store)
    writer = subprocess.Popen([TOOL, "write", uri_of(store)], stdout=subprocess.DEVNULL)
    try:
        for _ in range(20):
            several = [watchers(uri_of(store)) for _ in range(3)]
            several[0].await_status("ok")
            for watcher in several:
                watcher.kill()
                assert not {"torn", "went back"} & set(watcher.lines())
        early = (store / "values" / "data.mdb").stat().st_size
        before = number(store)
        while number(store) < before + 2000:
            assert writer.poll() is None
        late = (store / "values" / "data.mdb").stat().st_size
        assert late < 3 * early + 8 * 1024 * 1024, "old pages are not used again"
    finally:
        writer.kill()
        writer.wait()


def test_no_answer_is_confirmed_that_a_publication_had_replaced(store):
    write_some(store)
    writer = subprocess.Popen([TOOL, "write", uri_of(store)], stdout=subprocess.PIPE)
    fresh = subprocess.Popen([TOOL, "fresh", uri_of(store)], stdin=writer.stdout, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
    writer.stdout.close()
    before = number(store)
    while number(store) < before + 2000:
        assert writer.poll() is None and fresh.poll() is None
    writer.kill()
    writer.wait()
    output = fresh.communicate(timeout=60)[0].decode()
    assert fresh.returncode == 0, output
    seen = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", output)}
    assert seen["reads"] > 10 and seen["published"] > 10, output


def test_a_store_that_is_removed_and_made_again_is_noticed(store, watchers):
    write_some(store)
    watcher = watchers(uri_of(store))
    watcher.await_status("ok")
    for _ in range(3):
        while store.exists():  # the watcher may put a file there meanwhile
            shutil.rmtree(store, ignore_errors=True)
        watcher.await_status("unavailable")
        write_some(store)
        watcher.await_status("ok")


@pytest.mark.parametrize("name, keep", [("data.mdb", 0), ("data.mdb", 100), ("data.mdb", 4096), ("data.mdb", 12288),
                                        ("data.mdb", 40960), ("lock.mdb", 0)])
def test_a_truncated_file_does_not_take_the_reader_with_it(store, watchers, name, keep):
    write_some(store)
    watcher = watchers(uri_of(store))
    watcher.await_status("ok")
    os.truncate(store / "values" / name, keep)
    write_some(store)  # into a new store, where the old one cannot be used
    watcher.await_status("ok")
    assert not {"torn", "went back"} & set(watcher.lines())


def test_garbage_in_the_file_does_not_take_the_reader_with_it(store, watchers):
    for attempt in sampled(range(8)):
        write_some(store)
        data = store / "values" / "data.mdb"
        watcher = watchers(uri_of(store))
        watcher.await_status("ok")
        generator = random.Random(attempt)
        with open(data, "r+b") as file:
            for page in range(2 if generator.random() < 0.5 else 0, data.stat().st_size // 4096):
                file.seek(page * 4096)
                file.write(generator.randbytes(4096))
        assert number(store) == 0, "the store was not set aside"
        assert (store / "values.damaged" / "data.mdb").exists()
        watcher.await_status("ok")
        assert not {"torn", "went back"} & set(watcher.lines())
        watcher.kill()


# ---- file systems ---------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 8 MB."""
    mountpoint = tmp_path / "disk"
    mountpoint.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "croupier-test", str(mountpoint)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"mounting a small tmpfs is not permitted here: {done.stderr.strip()}")
    yield mountpoint
    subprocess.run(["umount", "-l", str(mountpoint)], check=True)


def fill_up(path):
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(file, bytes(4096))
    except OSError:
        os.close(file)


@pytest.mark.parametrize("size", [1000, 100000, 3000000])
def test_a_full_disk_refuses_and_loses_nothing(small_disk, watchers, size):
    directory = small_disk / "store"
    write_some(directory)
    watcher = watchers(uri_of(directory))
    watcher.await_status("ok")
    done = subprocess.run([TOOL, "fill", uri_of(directory), str(size)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    refused, count, emptied, published = done.stdout.splitlines()
    assert refused.startswith("full: ") and str(directory) in refused
    assert int(count) >= 1 or size > 2000000
    # LMDB needs a few free pages even to free some: on a disk that has none it stays full …
    assert {emptied, published} <= {"ok", "full"}
    # … until there is room.
    subprocess.run(["mount", "-o", "remount,size=512m", str(small_disk)], check=True)
    assert write_some(directory) > 0
    assert watcher.process.poll() is None
    assert watcher.statuses() == ["ok"]


def test_a_full_disk_can_be_used_again_after_room_was_made(small_disk):
    directory = small_disk / "store"
    write_some(directory)
    ballast = small_disk / "ballast"
    fill_up(ballast)
    before = number(directory)
    done = subprocess.run([TOOL, "fill", uri_of(directory), "2000000"], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("full: "), done
    ballast.unlink()
    assert number(directory) in (before, 0)
    assert write_some(directory) > 0


def test_a_disk_that_is_full_from_the_start_is_said_to_be(small_disk):
    fill_up(small_disk / "ballast")
    done = subprocess.run([TOOL, "write", uri_of(small_disk / "store")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout.startswith("full: ") or "No space left" in done.stdout, done
    (small_disk / "ballast").unlink()
    assert write_some(small_disk / "store") > 0


def test_a_read_only_file_system_is_refused_by_name(small_disk):
    directory = small_disk / "store"
    write_some(directory)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = subprocess.run([TOOL, "number", uri_of(directory)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert re.match(r"unavailable: .*/values/(lock|data)\.mdb cannot be opened for reading and writing: "
                    r"Read-only file system", done.stdout), done


def drop_privileges():
    os.setgid(65534)
    os.setuid(65534)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")
def test_a_directory_of_somebody_else_is_refused_by_name(store, tmp_path):
    write_some(store)
    others = pathlib.Path(tempfile.gettempdir())
    for directory in (store, tmp_path, *(path for path in tmp_path.parents if others in path.parents)):  # pytest's own are private
        os.chmod(directory, 0o755)
    os.chmod(store / "values", 0o755)
    os.chmod(store / "values" / "data.mdb", 0o666)
    os.chmod(store / "values" / "lock.mdb", 0o644)
    tool = shutil.copy(TOOL, tmp_path / "odds_tool")  # the build may be in a directory that is root's alone
    done = subprocess.run([tool, "number", uri_of(store)], capture_output=True, text=True, timeout=60,
                          preexec_fn=drop_privileges)
    assert done.returncode == 1
    assert "values/lock.mdb cannot be opened for reading and writing: Permission denied" in done.stdout, done


if __name__ == "__main__":
    sys.exit(pytest.main(sys.argv))


def test_a_store_that_another_build_of_lmdb_uses_is_not_set_aside(store, watchers):
    write_some(store)
    watcher = watchers(uri_of(store))
    watcher.await_status("ok")
    with open(store / "values" / "lock.mdb", "r+b") as lock:
        lock.seek(4)  # the version of its form
        version = lock.read(4)
        lock.seek(4)
        lock.write(bytes(byte ^ 1 for byte in version))
    refused = subprocess.run([TOOL, "number", uri_of(store)], capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0 and not (store / "values.damaged").exists(), refused
    assert watcher.statuses()[-1:] == ["ok"]
