"""The ledger when the process dies and the disk fails, at every write and every sync of a workload.

Whatever was acknowledged must be there, and be answered again word for word; nothing may be applied
twice; and the proof must hold. WALLET_TOOL names the program that acts (tests/faults/wallet_tool.c).
"""

import collections
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from servers import SAMPLE  # noqa: E402

TOOL = os.environ["WALLET_TOOL"]
COUNT, BURST = 36, 3
PLAYERS = []


def tool(*arguments, status=0):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    if status is not None:
        assert done.returncode == status, (arguments, done.returncode, done.stderr)
    print(done.stderr, end="")
    return done.stdout


def answers(output):
    """{number: (outcome, sequence, balance, replayed)} of what was acknowledged, and what was not."""
    acknowledged, others = {}, {}
    for line in output.splitlines():
        number, outcome, *rest = line.split()
        if rest:
            acknowledged[int(number)] = (outcome, int(rest[0]), int(rest[1]), rest[2] == "1")
        else:
            others[int(number)] = outcome
    return acknowledged, others


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    directory = tmp_path_factory.mktemp("fresh")
    PLAYERS[:] = tool("setup", f"sqlite:{directory}/platform.db").split()
    return directory


@pytest.fixture
def uri(fresh, tmp_path):
    shutil.copytree(fresh, tmp_path / "store")
    return f"sqlite:{tmp_path}/store/platform.db"


def traced(uri, count, burst, *options):
    """Runs the workload under strace; where it stops at all calls if it is to kill, for with --seccomp-bpf strace 6.1 forgets to."""
    kills = any("signal=" in str(option) for option in options)
    fast = [] if kills else ["--seccomp-bpf"]
    done = subprocess.run(["strace", "-f", *fast, "-qq", *map(str, options), TOOL, "run", uri, str(count), str(burst), *PLAYERS],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, "LSAN_OPTIONS": "detect_leaks=0"})  # which cannot work under strace
    if "ptrace" in done.stderr and "not permitted" in done.stderr:
        pytest.skip("strace may not trace here")
    return done


def injected(uri, what, count=COUNT, burst=BURST, path=()):
    """Runs the workload with a fault (strace's: it counts calls of each thread); its exit status and output."""
    return traced(uri, count, burst, *path, "-o", "/dev/null", "-e", f"trace={what.split(':')[0]}", "-e", f"inject={what}")


def points_of(fresh, tmp_path, call, count=COUNT, burst=BURST, path=()):
    """1 to the number of these calls that the thread with the most of them makes, when nothing fails."""
    for attempt in range(20):  # upkeep may have no time for what it does, in a run as short as these
        directory, trace = tmp_path / f"counted-{attempt}", tmp_path / "trace"
        shutil.copytree(fresh, directory)
        paths = [option if option == "-P" else directory / option for option in path]
        done = traced(f"sqlite:{directory}/platform.db", count, burst, *paths, "-o", trace, "-e", f"trace={call}")
        assert done.returncode == 0, done.stderr
        calls = collections.Counter(line.split()[0] for line in trace.read_text().splitlines() if f" {call}(" in line)
        if calls:
            return list(range(1, max(calls.values()) + 1))
    raise AssertionError(f"no {call} in any run")


def assert_whole(uri, output, count=COUNT, burst=BURST):
    """What `output` acknowledged is there, once; then everything is asked again, and the ledger is whole."""
    before, _ = answers(output)
    tool("verify", uri)
    again, others = answers(tool("run", uri, count, burst, *PLAYERS))
    assert not others, others
    for number, (outcome, sequence, balance, _) in before.items():
        assert again[number] == (outcome, sequence, balance, True), number
    entries = int(tool("verify", uri))
    assert entries == len([number for number, answer in again.items() if answer[1] > 0])
    last, _ = answers(tool("run", uri, count, burst, *PLAYERS))
    assert {number: answer[:3] for number, answer in again.items()} == {n: answer[:3] for n, answer in last.items()}
    assert all(answer[3] for answer in last.values())
    with contextlib.closing(sqlite3.connect(uri.removeprefix("sqlite:"))) as database:  # both kinds of client moved money
        assert {moved for moved, in database.execute("SELECT DISTINCT provider FROM ledger_transaction")} == {None, "acme"}


def sweep(points, count=5):
    """Some of them, others each time, spread over all; WALLET_FAULTS=all for every one."""
    if os.environ.get("WALLET_FAULTS") == "all":
        return points
    chosen = sorted(random.sample(points, min(-(-count // SAMPLE), len(points))))
    print("points:", chosen)
    return chosen


FAULTS = ["signal=SIGKILL", "error=EIO", "error=ENOSPC"]


def assert_survived(directory, call, fault, point, count=COUNT, burst=BURST, path=()):
    uri = f"sqlite:{directory}/platform.db"
    done = injected(uri, f"{call}:{fault}:when={point}", count, burst, path)
    acknowledged, others = answers(done.stdout)
    assert set(others.values()) <= {"unknown", "unavailable"}, (point, others)
    if fault == "signal=SIGKILL":
        # Another run may have fewer calls, and upkeep no time to delete anything.
        assert not others and (done.returncode == -signal.SIGKILL or point > 1 or call == "unlinkat")
    else:
        assert done.returncode == 0 and len(acknowledged) + len(others) == count, (point, done.stderr)
    assert_whole(uri, done.stdout, count, burst)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not there")
@pytest.mark.parametrize("call", ["pwrite64", "fdatasync", "fsync", "renameat", "unlinkat"])  # the last three: of the runs of ids
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_any_write_or_sync_loses_nothing_and_applies_nothing_twice(fresh, tmp_path, call, fault):
    for point in sweep(points_of(fresh, tmp_path, call)):
        shutil.copytree(fresh, tmp_path / f"{point}")
        assert_survived(tmp_path / f"{point}", call, fault, point)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not there")
@pytest.mark.parametrize("call", ["pwrite64", "fdatasync", "ftruncate"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_while_the_log_is_brought_into_the_file(fresh, tmp_path, call, fault):
    """The same at what is done to the file itself, by a workload that fills the log."""
    count, burst = 700, 3
    for point in sweep(points_of(fresh, tmp_path, call, count, burst, ("-P", "platform.db")), 1):
        directory = tmp_path / f"{point}"
        shutil.copytree(fresh, directory)
        assert_survived(directory, call, fault, point, count, burst, ("-P", directory / "platform.db"))


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not there")
@pytest.mark.parametrize("call", ["pwrite64", "fdatasync", "rename"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_while_the_mark_is_made(uri, fault, call):
    store = pathlib.Path(uri.removeprefix("sqlite:")).parent
    assert not list(store.glob("*-last*"))
    done = injected(uri, f"{call}:{fault}:when=1", path=("-P", store / "platform.db-last-new", "-P", store / "platform.db-last"))
    acknowledged, _ = answers(done.stdout)
    assert len(acknowledged) < COUNT  # the fault took place
    assert_whole(uri, done.stdout)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not there")
def test_a_disk_that_never_syncs_acknowledges_nothing(uri):
    done = injected(uri, "fdatasync,fsync:error=EIO:when=1+", count=9)
    acknowledged, others = answers(done.stdout)
    assert not acknowledged and len(others) == 9
    assert "unknown" in others.values() or "unavailable" in others.values()
    assert_whole(uri, done.stdout)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not there")
def test_a_log_that_may_not_be_on_the_disk_is_written_again_before_anything_is_answered(uri, tmp_path):
    """After a failed sync the kernel may hold pages as written that are not, and a second sync says nothing."""
    log = tmp_path / "store" / "platform.db-wal"
    acknowledged, _ = answers(injected(uri, "fdatasync:signal=SIGKILL:when=8").stdout)
    size = log.stat().st_size
    assert acknowledged and size > 4096
    # A disk that cannot be written: nothing is answered, not even what was acknowledged.
    shutil.copytree(tmp_path / "store", tmp_path / "broken")
    # (Later batches find a store whose log was brought into its file when it was closed, which is as good.)
    done = injected(f"sqlite:{tmp_path}/broken/platform.db", "pwrite64:error=EIO:when=1+", BURST,
                    path=("-P", tmp_path / "broken" / "platform.db-wal"))
    assert answers(done.stdout) == ({}, dict.fromkeys(range(BURST), "unavailable"))
    trace = tmp_path / "trace"
    done = traced(uri, COUNT, BURST, "-y", "-s", 1, "-o", trace, "-e", "trace=pwrite64,fdatasync,fsync,write")
    assert all(answers(done.stdout)[0][number][3] for number in acknowledged)
    written, steps = set(), []
    for line in trace.read_text().splitlines():
        pwrite = re.search(r"pwrite64\(\d+<[^>]*platform\.db-wal>, .*, (\d+), (\d+)\) += (\d+)", line)
        if pwrite:
            written.update(range(int(pwrite[2]), int(pwrite[2]) + int(pwrite[3])))
        elif re.search(r"fdatasync\(\d+<[^>]*platform\.db-wal>", line) and len(written) >= size:
            steps.append("log")
        elif re.search(r"fsync\(\d+<[^>]*store>", line):
            steps.append("directory")
        elif re.search(r"write\(1<", line):
            break
    assert steps[:2] == ["log", "directory"]
    assert_whole(uri, done.stdout)


def test_killing_at_any_moment_loses_nothing_and_applies_nothing_twice(uri, tmp_path):
    seed = int(os.environ.get("WALLET_SEED") or random.SystemRandom().randrange(2**32))
    print(f"WALLET_SEED={seed}")
    chance = random.Random(seed)
    output = ""
    for _ in range(8):
        path, count = tmp_path / "output", chance.randrange(COUNT)
        with open(path, "wb") as file:
            process = subprocess.Popen([TOOL, "run", uri, str(COUNT), str(BURST), *PLAYERS], stdout=file)
            while process.poll() is None and path.read_bytes().count(b"\n") < count:
                time.sleep(0.0005)
            time.sleep(chance.random() * 0.005)
            process.send_signal(signal.SIGKILL)
            process.wait()
        text = path.read_text()
        output = text[:text.rfind("\n") + 1] or output
        tool("verify", uri)
    assert_whole(uri, output)


def replace_directory(store, older):
    store.rename(store.with_name("away"))
    shutil.copytree(older, store)


def remove(store, *suffixes):
    for suffix in suffixes:
        (store / f"platform.db{suffix}").unlink()


def write_again(database):
    text = database.read_bytes()
    with open(database, "r+b") as file:
        file.write(text)


def damage(database):
    """In place and without another size: the second half of every page but the first."""
    with open(database, "r+b") as file:
        for page in range(4096, database.stat().st_size, 4096):
            file.seek(page + 2048)
            file.write(b"\xff" * 2048)


TAKEN_AWAY = {
    "log and index removed": lambda store, older: remove(store, "-wal", "-shm"),
    "log removed": lambda store, older: remove(store, "-wal"),
    "log emptied": lambda store, older: os.truncate(store / "platform.db-wal", 0),
    "log overwritten": lambda store, older: shutil.copyfile(older / "platform.db-wal", store / "platform.db-wal"),
    "index emptied": lambda store, older: os.truncate(store / "platform.db-shm", 0),
    "database removed": lambda store, older: remove(store, ""),
    "database overwritten": lambda store, older: damage(store / "platform.db"),
    "database replaced": lambda store, older: shutil.copyfile(older / "platform.db", store / "new") and (store / "new").replace(store / "platform.db"),
    "directory replaced": replace_directory,
}


def wait_for(process, output, enough):
    deadline = time.monotonic() + 60
    while not enough(output.read_text()):
        assert process.poll() is None and time.monotonic() < deadline, output.read_text()[-500:]
        time.sleep(0.005)


@pytest.mark.parametrize("taken", TAKEN_AWAY)
def test_nothing_is_acknowledged_into_files_that_someone_took_away(uri, tmp_path, taken):
    store, older, output, log = (tmp_path / name for name in ("store", "older", "output", "log"))
    tool("run", uri, COUNT, BURST, *PLAYERS)
    with open(output, "wb") as to, open(log, "wb") as errors:
        process = subprocess.Popen([TOOL, "run", uri, "100000", str(BURST), *PLAYERS], stdout=to, stderr=errors)
    try:
        wait_for(process, output, lambda text: text.count("\n") > 60)
        shutil.copytree(store, older, ignore=shutil.ignore_patterns("*-ids"))
        wait_for(process, output, lambda text: text.count("\n") > 300)
        TAKEN_AWAY[taken](store, older)
        before = output.read_text().count("\n")
        wait_for(process, output, lambda text: text.count("unavailable") > 4 * BURST)
    finally:
        process.kill()
        process.wait()
    lines = output.read_text().splitlines()
    refused = [line.split()[1] in ("unavailable", "unknown") for line in lines]
    assert refused.index(True) <= before + 2 * BURST, "no more than what was on its way"
    assert all(refused[refused.index(True):]) and "unavailable" not in lines[refused.index(True) - 1]
    reasons = re.findall('ledger is unavailable reason="(.*)"', log.read_text())
    assert 1 <= len(reasons) == len(set(reasons)) <= 3, "each kind once"
    assert "available again" not in log.read_text(), log.read_text()
    if taken == "directory replaced":
        shutil.rmtree(store)  # its mark is the older one's: only who put it there knows
    elif taken != "database removed":
        assert_nothing_is_hidden(uri, output.read_text(), before)


@pytest.mark.parametrize("touch", [lambda database: os.utime(database), lambda database: os.utime(database, (1, 1)),
                                   lambda database: write_again(database)],
                         ids=["touched", "set back", "the same bytes again"])
def test_a_database_that_holds_what_it_should_is_used_whatever_its_time_of_change(uri, tmp_path, touch):
    output, log = tmp_path / "output", tmp_path / "log"
    tool("run", uri, COUNT, BURST, *PLAYERS)
    with open(output, "wb") as to, open(log, "wb") as errors:
        process = subprocess.Popen([TOOL, "run", uri, "100000", str(BURST), *PLAYERS], stdout=to, stderr=errors)
    try:
        wait_for(process, output, lambda text: text.count("\n") > 60)
        touch(tmp_path / "store" / "platform.db")
        before = output.read_text().count("\n")
        wait_for(process, output, lambda text: text.count("\n") > before + 20 * BURST)
    finally:
        process.kill()
        process.wait()
    assert log.read_text().count("all of it fits") == 1, log.read_text()
    assert "unknown" not in output.read_text()
    assert assert_nothing_is_hidden(uri, output.read_text(), 60)


def test_a_mark_that_was_emptied_is_whole_again_after_the_next_batch(uri, tmp_path):
    mark, output = tmp_path / "store" / "platform.db-last", tmp_path / "output"
    with open(output, "wb") as to:
        process = subprocess.Popen([TOOL, "run", uri, "100000", str(BURST), *PLAYERS], stdout=to)
    try:
        wait_for(process, output, lambda text: text.count("\n") > 60)
        size = mark.stat().st_size
        os.truncate(mark, 0)
        wait_for(process, output, lambda text: text.count("\n") > 300)
    finally:
        process.kill()
        process.wait()
    assert mark.stat().st_size == size and "unavailable" not in output.read_text()
    assert assert_nothing_is_hidden(uri, output.read_text(), 60)


def test_a_mark_that_was_moved_away_is_made_again_for_all_who_may_write_the_database(uri, tmp_path):
    mark, output = tmp_path / "store" / "platform.db-last", tmp_path / "output"
    (tmp_path / "store" / "platform.db").chmod(0o660)
    with open(output, "wb") as to:
        process = subprocess.Popen([TOOL, "run", uri, "100000", str(BURST), *PLAYERS], stdout=to, umask=0o077)
    try:
        wait_for(process, output, lambda text: text.count("\n") > 60)
        mark.rename(tmp_path / "moved")
        wait_for(process, output, lambda _: mark.exists() and mark.stat().st_size > 0)
        assert mark.stat().st_mode & 0o777 == 0o660
    finally:
        process.kill()
        process.wait()
    assert assert_nothing_is_hidden(uri, output.read_text(), 60)


def assert_nothing_is_hidden(uri, output, count):
    """Whatever was acknowledged is there; or the ledger refuses everything, and the proof says that it lost rows. True: it is there."""
    done = subprocess.run([TOOL, "verify", uri], capture_output=True, text=True, timeout=120)
    acknowledged, _ = answers(output)
    if done.returncode != 0:
        lost = "has lost its newest rows" in done.stderr or "-last: " in done.stderr
        assert lost or "damaged" in done.stderr, done.stderr
        count = 2 * BURST
    again, others = answers(tool("run", uri, count, BURST, *PLAYERS))
    if done.returncode == 0:
        assert not others
    elif lost:
        assert not again and set(others.values()) == {"unavailable"}
    for number, answer in again.items():
        if number in acknowledged:
            assert answer == (*acknowledged[number][:3], True), number
    return done.returncode == 0


def test_a_flipped_bit_in_the_files_of_a_killed_server_hides_nothing(uri, tmp_path):
    """In its log, of which SQLite then drops the rest, and in the mark that tells of it."""
    store, output, count = tmp_path / "store", tmp_path / "output", 4 * COUNT
    with open(output, "wb") as to:
        process = subprocess.Popen([TOOL, "run", uri, "100000", str(BURST), *PLAYERS], stdout=to)
        wait_for(process, output, lambda text: text.count("\n") > count)
        process.kill()
        process.wait()
    log = (store / "platform.db-wal").stat().st_size
    verdicts = collections.Counter()
    for name, position in [("platform.db-wal", random.randrange(log)) for _ in range(60 // SAMPLE)] + [("platform.db-last", n) for n in range(0, 512, 73)]:
        print(name, position)
        copy = tmp_path / "copy"
        shutil.copytree(store, copy)
        with open(copy / name, "r+b") as file:
            file.seek(position)
            byte = file.read(1)[0]
            file.seek(position)
            file.write(bytes([byte ^ 1 << random.randrange(8)]))
        verdicts[assert_nothing_is_hidden(f"sqlite:{copy}/platform.db", output.read_text(), output.read_text().count("\n"))] += 1
        shutil.rmtree(copy)
    assert verdicts[False] > 10, verdicts


def damage_blocks(run):
    """A bit of each block of a run of the index of ids (src/stores/platform/sqlite/ids/id_run.h)."""
    data = bytearray(run.read_bytes())
    block_size, count = int.from_bytes(data[12:16], sys.byteorder), int.from_bytes(data[80:88], sys.byteorder)
    for block in range(-(-count // (block_size // 16 - 1))):
        data[(1 + block) * block_size] ^= 1
    run.write_bytes(data)


def test_a_damaged_run_refuses_what_needs_it_until_it_is_made_again(uri, tmp_path):
    """Batches that meet it are 503, and nothing is decided without it."""
    before, others = answers(tool("run", uri, 150, 10, *PLAYERS))
    assert not others
    runs = list((tmp_path / "store" / "platform.db-ids").glob("*.run"))
    assert runs
    for run in runs:
        damage_blocks(run)
    logs = ""
    for _ in range(100):
        done = subprocess.run([TOOL, "run", uri, "150", "10", *PLAYERS], capture_output=True, text=True, timeout=120)
        logs += done.stderr
        again, others = answers(done.stdout)
        assert set(others.values()) <= {"unavailable"}
        assert all(again[number] == (*before[number][:3], True) for number in again)
        if not others:
            break
    assert not others and again.keys() == before.keys()
    assert "made again" in logs and "it is damaged" in logs
    assert_whole(uri, done.stdout, 150, 10)
