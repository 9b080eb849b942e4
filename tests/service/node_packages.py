"""Packages from npm that tests need, in the versions of a lock file."""

import shutil
import subprocess

from croupier import PATIENCE


def install(source, target):
    """Has `target`/node_modules what `source`/package-lock.json names? Else npm gets it; returns node_modules."""
    lock = target / "package-lock.json"
    there = target / "node_modules"
    wanted = (source / "package-lock.json").read_text()
    if not there.exists() or not lock.exists() or lock.read_text() != wanted:
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / "package.json", target)
        # Its lock comes last: with it, all is there.
        lock.write_text(wanted)
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=target, capture_output=True,
                              timeout=600 * PATIENCE)
        if done.returncode != 0:
            lock.unlink()
        assert done.returncode == 0, done.stderr.decode()
    return there
