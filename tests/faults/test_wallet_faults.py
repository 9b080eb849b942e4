"""The ledger when the process dies and the disk fails, at every write and every sync of a workload.

Whatever was acknowledged must be there, and be answered again word for word; nothing may be applied
twice; and the proof must hold. WALLET_TOOL names the program that acts (tests/faults/wallet_tool.c).
"""

import collections
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

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
    """Runs the workload under strace."""
    done = subprocess.run(["strace", "-f", "-qq", *map(str, options), TOOL, "run", uri, str(count), str(burst), *PLAYERS],
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
    shutil.copytree(fresh, tmp_path / "counted")
    paths = [option if option == "-P" else tmp_path / "counted" / option for option in path]
    trace = tmp_path / "trace"
    done = traced(f"sqlite:{tmp_path}/counted/platform.db", count, burst, *paths, "-o", trace, "-e", f"trace={call}")
    assert done.returncode == 0, done.stderr
    calls = collections.Counter(line.split()[0] for line in trace.read_text().splitlines() if f" {call}(" in line)
    return list(range(1, max(calls.values()) + 1))


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


def sweep(points, count=5):
    """Some of them, others each time, spread over all; WALLET_FAULTS=all for every one."""
    if os.environ.get("WALLET_FAULTS") == "all":
        return points
    chosen = sorted(random.sample(points, min(count, len(points))))
    print("points:", chosen)
    return chosen


FAULTS = ["signal=SIGKILL", "error=EIO", "error=ENOSPC"]


def assert_survived(directory, call, fault, point, count=COUNT, burst=BURST, path=()):
    uri = f"sqlite:{directory}/platform.db"
    done = injected(uri, f"{call}:{fault}:when={point}", count, burst, path)
    acknowledged, others = answers(done.stdout)
    assert set(others.values()) <= {"unknown", "unavailable"}, (point, others)
    if fault == "signal=SIGKILL":
        assert not others
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
    acknowledged, _ = answers(injected(uri, "fdatasync:signal=SIGKILL:when=6").stdout)
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
        path = tmp_path / "output"
        with open(path, "wb") as file:
            process = subprocess.Popen([TOOL, "run", uri, str(COUNT), str(BURST), *PLAYERS], stdout=file)
            time.sleep(chance.random() * 0.06)
            process.send_signal(signal.SIGKILL)
            process.wait()
        text = path.read_text()
        output = text[:text.rfind("\n") + 1] or output
        tool("verify", uri)
    assert_whole(uri, output)
