#!/usr/bin/env python3
"""Holds the includes of src/ to its order, for `make check`.

src/meson.build lists the modules from the bottom up: a file includes what its own module and those before
it have. A folder inside a module (stores/odds/redis) is seen from that module alone. No two modules,
folders or files include each other in a circle.
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "src"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def modules():
    listed = re.search(r"foreach module : \[(.*?)\]", (SOURCE / "meson.build").read_text(), re.DOTALL)
    return re.findall(r"'([^']+)'", listed.group(1))


def includes():
    """(file, file it includes), both relative to src/."""
    for path in sorted(SOURCE.rglob("*.[ch]")):
        for included in INCLUDE.findall(path.read_text()):
            yield path.relative_to(SOURCE), pathlib.PurePath(included)


def is_generated(included):
    """The build makes it, as the meson.build of its folder says; an error_rows.h of the folder's errors.txt."""
    if included.name == "error_rows.h":
        return (SOURCE / included.parent / "errors.txt").exists()
    recipe = SOURCE / included.parent / "meson.build"
    return recipe.exists() and f"'{included.name}'" in recipe.read_text()


def problem(rank, source, included):
    if not (SOURCE / included).exists() and not is_generated(included):
        return "is not a path below src/"
    if len(source.parts) == 1:  # main.c
        return None
    if rank[included.parts[0]] > rank[source.parts[0]]:
        return f"points up: {source.parts[0]}/ stands below {included.parts[0]}/ in src/meson.build"
    if len(included.parts) > 2 and included.parts[0] != source.parts[0]:
        return f"reaches into {included.parent}/, which is {included.parts[0]}/'s own"
    return None


def circle(edges):
    """A list of headers that include each other, or None."""
    below = {}
    for source, included in edges:
        below.setdefault(source, []).append(included)
    done, path = set(), []

    def visit(header):
        if header in path:
            return [*path[path.index(header) :], header]
        if header in done:
            return None
        path.append(header)
        found = next(filter(None, map(visit, below.get(header, []))), None)
        path.pop()
        done.add(header)
        return found

    return next(filter(None, map(visit, list(below))), None)


def main():
    names = modules()
    rank = {name: place for place, name in enumerate(names)}
    unlisted = {path.name for path in SOURCE.iterdir() if path.is_dir()} ^ set(names)
    failures = [f"src/meson.build and the folders of src/ differ: {name}" for name in sorted(unlisted)]
    edges = [(str(source), str(included)) for source, included in includes()]
    if not failures:
        for source, included in includes():
            if reason := problem(rank, source, included):
                failures.append(f'src/{source}: #include "{included}" {reason}')
    if ring := circle(edges):
        failures.append("headers include each other: " + " -> ".join(ring))
    for failure in failures:
        print(failure, file=sys.stderr)
    if not edges:
        sys.exit("no includes found below src/: is this the right place?")
    sys.exit(1 if failures else 0)


main()
