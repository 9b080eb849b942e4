#!/usr/bin/env python3
"""Finds files of src/ that call each other in both directions, for `make check`.

    tools/check_circles.py BUILD-DIRECTORY

Reads the symbols of the compiled library with nm: a file points at another when it uses a function or a
table that the other defines. Two files that point at each other cannot be read, tested or replaced on
their own: what the lower one has to say it returns, or calls back through a pointer that it was given.
"""
import collections
import sys

from library_symbols import symbols


def uses(library):
    """file -> file it points at -> the symbols."""
    found = list(symbols(library))
    home = {name: file for file, name, kind in found if kind not in "Uw"}
    edges = collections.defaultdict(lambda: collections.defaultdict(set))
    for file, name, kind in found:
        if kind == "U" and name in home and home[name] != file:
            edges[file][home[name]].add(name)
    return edges


def main():
    edges = uses(f"{sys.argv[1]}/libcroupier.a")
    if len(edges) < 50:
        sys.exit(f"only {len(edges)} files with symbols found: is this a build of croupier?")
    circles = [(one, other) for one in sorted(edges) for other in sorted(edges[one]) if one < other and one in edges.get(other, {})]
    for one, other in circles:
        print(f"{one} and {other} call each other: {', '.join(sorted(edges[one][other]))} / "
              f"{', '.join(sorted(edges[other][one]))}", file=sys.stderr)
    sys.exit(1 if circles else 0)


main()
