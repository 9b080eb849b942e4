#!/usr/bin/env python3
"""Puts the documents into the one folder that the package has for them.

    tools/package_docs.py DIRECTORY

README.md, the pages of docs/ and bench/RESULTS.md are beside each other there, so links between them lose their folders;
docs/decisions and examples stay folders. A link that leads to nothing fails.
"""
import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#:]+)((?:#[^)]*)?)\)")
FLAT = ("README.md", "llms.txt", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/RESULTS.md", "docs/*.*")
FOLDERS = ("docs/decisions", "examples")


def placed():
    """Where each file goes, by where it is."""
    places = {path: pathlib.PurePath(path.name) for pattern in FLAT for path in ROOT.glob(pattern)}
    for folder in FOLDERS:
        places |= {path: pathlib.PurePath(folder).name / path.relative_to(ROOT / folder)
                   for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    return places


def main(directory):
    places = placed()
    for path, place in places.items():
        def follow(link):
            target = pathlib.Path(os.path.normpath(path.parent / link[1]))
            if target not in places:
                sys.exit(f"{path.relative_to(ROOT)}: {link[1]} is not in the package")
            return f"]({os.path.relpath(places[target], place.parent)}{link[2]})"

        to = directory / place
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md" or path.name == "llms.txt":
            to.write_text(LINK.sub(follow, path.read_text()))
        else:
            shutil.copyfile(path, to)
        to.chmod(0o755 if os.access(path, os.X_OK) else 0o644)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
