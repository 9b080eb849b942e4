"""The index of transaction ids when the process dies and the disk fails, at every call that touches its files.

No id may be lost and nothing stops; a process that was killed leaves no run that is not sound. ID_TOOL names the
program that acts (tests/faults/id_tool.c). WALLET_FAULTS=all tries every call, else some of each kind.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from servers import SAMPLE  # noqa: E402

TOOL = os.environ["ID_TOOL"]
ROWS = 350

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not there")


def traced(directory, *options, first=0, rows=ROWS):
    """The workload under strace, in a new directory; its exit status, and the last row that was committed."""
    directory.mkdir(exist_ok=True)
    (directory / "ledger").touch()
    done = subprocess.run(["strace", "-qq", *map(str, options), TOOL, "run", directory / "ledger", str(first), str(rows)],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, "LSAN_OPTIONS": "detect_leaks=0"})  # which cannot work under strace
    if "ptrace" in done.stderr and "not permitted" in done.stderr:
        pytest.skip("strace may not trace here")
    return done, int((done.stdout.split() or ["0"])[-1])


def points_of(directory, call):
    """Of the calls of this name, counted from 1, those that have to do with the index's files."""
    trace = directory / "trace"
    directory.mkdir()
    done, _ = traced(directory, "-y", "-o", trace, "-e", f"trace={call}")
    assert done.returncode == 0, done.stderr
    calls = [line for line in trace.read_text().splitlines() if line.startswith(f"{call}(")]
    points = [number for number, line in enumerate(calls, 1) if "ledger-ids" in line]
    if os.environ.get("WALLET_FAULTS") == "all":
        return points
    chosen = sorted(random.sample(points, min(-(-6 // SAMPLE), len(points))))
    print(call, "points:", chosen)
    return chosen


def check(directory, last):
    """How many runs were not sound."""
    done = subprocess.run([TOOL, "check", directory / "ledger", str(last)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


CALLS = ["pwrite64", "fsync", "fdatasync", "renameat", "unlinkat", "openat", "mkdir", "fchmod", "flock", "pread64", "close"]


@pytest.mark.parametrize("call", [call for call in CALLS if call != "fdatasync"])
def test_killed_at_any_call(tmp_path, call):
    points = points_of(tmp_path / "counted", call)
    assert points
    for point in points:
        directory = tmp_path / f"{point}"
        done, last = traced(directory, "-o", "/dev/null", "-e", f"trace={call}", "-e",
                            f"inject={call}:signal=SIGKILL:when={point}")
        assert done.returncode != 0, point
        assert check(directory, last) == 0, point
        assert check(directory, last) == 0, point


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("call", [call for call in CALLS if call not in ("close", "fdatasync")])
def test_an_error_at_any_call(tmp_path, call, error):
    for point in points_of(tmp_path / "counted", call):
        directory = tmp_path / f"{point}"
        done, last = traced(directory, "-o", "/dev/null", "-e", f"trace={call}", "-e",
                            f"inject={call}:error={error}:when={point}")
        assert done.returncode == 0, (point, done.stderr)
        assert check(directory, last) == 0 or call in ("unlinkat", "pread64", "openat"), point


@pytest.mark.parametrize("call, error", [("fsync", "EIO"), ("pwrite64", "ENOSPC"), ("renameat", "EACCES"), ("flock", "ENOLCK"),
                                         ("flock", "ENOSYS"), ("flock", "EOPNOTSUPP")])
def test_nothing_stops_while_it_can_never_be_written(tmp_path, call, error):
    """Until memory is at its bound, which the workload does not reach here; then it is made from the rows."""
    done, last = traced(tmp_path / "store", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error={error}",
                        rows=120)
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "store/ledger-ids").glob("*.run"))
    done, again = traced(tmp_path / "store", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error={error}",
                         first=last, rows=last + 10)
    assert done.returncode == 0 and again > last, done.stderr
    assert check(tmp_path / "store", again) == 0


def test_a_write_that_is_cut_short(tmp_path):
    for point in points_of(tmp_path / "counted", "pwrite64"):
        directory = tmp_path / f"{point}"
        done, last = traced(directory, "-o", "/dev/null", "-e", "trace=pwrite64", "-e", f"inject=pwrite64:retval=1:when={point}")
        # The kernel says that one byte was written, and has written none: as if the disk had lost it.
        assert done.returncode == 0, (point, done.stderr)
        check(directory, last)  # which finds each id; the damaged run and those after it were made again
