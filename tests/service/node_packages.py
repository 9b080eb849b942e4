"""Packages from npm that tests need, in the versions of a lock file."""

import fcntl
import os
import shutil
import subprocess

import pytest

from croupier import PATIENCE


def install(source, target):
    """npm gets what `source`/package-lock.json names, unless `target`/node_modules has it; returns node_modules.

    One process at a time installs into `target`; the others wait for it. A test is skipped where npm's registry is out of reach,
    and fails there when TEST_NPM_REQUIRED is set, as .ci/run sets it.
    """
    wanted = (source / "package-lock.json").read_text()
    there, complete = target / "node_modules", target / "package-lock.json"
    target.mkdir(parents=True, exist_ok=True)
    with open(target / "installing", "w") as installing:
        fcntl.flock(installing, fcntl.LOCK_EX)
        if not there.exists() or not complete.exists() or complete.read_text() != wanted:
            complete.unlink(missing_ok=True)
            made = target / "made"
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(source / name, made)
            fetch(made)
            shutil.rmtree(there, ignore_errors=True)
            (made / "node_modules").rename(there)
            complete.write_text(wanted)  # comes last: with it, all is there
            shutil.rmtree(made)
    return there


def fetch(directory):
    done = npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", directory=directory)
    if done.returncode == 0:
        return
    # A registry that answers has what the lock file names: then the failure is the project's.
    reached = npm("ping", "--fetch-retries=0", directory=directory)
    if reached.returncode != 0 and not os.environ.get("TEST_NPM_REQUIRED"):
        reasons = [line for line in reached.stderr.splitlines() if " code " in line] or reached.stderr.splitlines()[-1:]
        pytest.skip(f"npm's registry is out of reach: {' '.join(reasons)}")
    raise AssertionError(done.stderr)


def needs_node(version):
    """Skips the test where Node is older than the packages take."""
    said = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout if shutil.which("node") else "v0.0"
    if tuple(int(part) for part in said.strip().lstrip("v").split(".")[:2]) < version:
        pytest.skip(f"Node {version[0]}.{version[1]} or later is needed; here is {said.strip()}")


def npm(*words, directory):
    if shutil.which("npm") is None:
        return subprocess.CompletedProcess(words, 1, "", "npm is not installed; on Debian: apt install npm")
    return subprocess.run(["npm", *words], cwd=directory, capture_output=True, text=True, timeout=600 * PATIENCE)
