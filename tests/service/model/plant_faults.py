#!/usr/bin/env python3
"""Shows that the model finds faults: `make model-faults`, or with ARGUMENTS= and names of faults only these, and their steps, shrunk.

It plants each patch of faults/ in a copy of the tree, builds the program there, and runs the model against it. Each must fail."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FAULTS = sorted(Path(__file__).with_name("faults").glob("*.patch"))


def call(*command, cwd, **options):
    return subprocess.run([*map(str, command)], cwd=cwd, check=True, stdout=subprocess.DEVNULL, **options)


def copy_tree(tree):
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)


def model(tree, shrink):
    """Whether the program of the copy passes, and what the model says of it."""
    environment = {**os.environ, "CROUPIER_BIN": str(tree / "build" / "croupier"), "PYTHONDONTWRITEBYTECODE": "1",
                   "MODEL_EXAMPLES": "60", "MODEL_SHRINK": "yes" if shrink else "no"}
    done = subprocess.run([ROOT / "tools" / "in_memory", sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=short",
                           "-k", "says", ROOT / "tests" / "service" / "model"], cwd=ROOT, env=environment, capture_output=True, text=True)
    return done.returncode == 0, done.stdout


def main(names):
    missed = []
    with tempfile.TemporaryDirectory(prefix="croupier-faults-") as directory:
        tree = Path(directory)
        copy_tree(tree)
        call("meson", "setup", "build", cwd=tree)
        call("ninja", "-C", "build", "croupier", cwd=tree)
        passes, said = model(tree, shrink=False)
        if not passes:
            sys.exit(f"{said}\nThe model fails without a fault.")
        for fault in FAULTS:
            if names and fault.stem not in names:
                continue
            call("git", "apply", "--recount", "-C1", fault, cwd=tree)
            call("ninja", "-C", "build", "croupier", cwd=tree)
            passes, said = model(tree, shrink=names)
            call("git", "apply", "--recount", "-C1", "-R", fault, cwd=tree)
            reasons = [line[4:] for line in said.splitlines() if line.startswith("E   AssertionError")]
            print(f"{fault.stem}: {'MISSED' if passes else 'found: ' + (reasons or ['?'])[0]}", flush=True)
            if names:
                print(said, flush=True)
            if passes or not reasons:
                missed.append(fault.stem)
    if missed:
        sys.exit(f"The model missed {', '.join(missed)}.")


if __name__ == "__main__":
    main(sys.argv[1:])
