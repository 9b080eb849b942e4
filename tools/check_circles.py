#!/usr/bin/env python3
"""Finds circles of files of src/ that call each other, of any length, for `make check`.

    tools/check_circles.py BUILD-DIRECTORY

Reads the symbols of the compiled library with nm: a file points at another when it uses a function or a
table that the other defines. Files in a circle cannot be read, tested or replaced on their own: what the
lower one has to say it returns, or calls back through a pointer that it was given.
"""
import collections
import sys

from library_symbols import symbols

# What the check must find, before it is believed when it finds nothing: a circle of three among files without one.
KNOWN = {"a": "bx", "b": "c", "c": "ay", "x": "y", "y": "z"}


def uses(library):
    """file -> file it points at -> the symbols."""
    found = list(symbols(library))
    home = {name: file for file, name, kind in found if kind not in "Uw"}
    edges = collections.defaultdict(lambda: collections.defaultdict(set))
    for file, name, kind in found:
        if kind == "U" and name in home and home[name] != file:
            edges[file][home[name]].add(name)
    return edges


def circles(edges):
    """The sets of files that all lead to each other (Tarjan's strongly connected components)."""
    found, stack, numbers, lowest = [], [], {}, {}

    def visit(file):
        numbers[file] = lowest[file] = len(numbers)
        stack.append(file)
        for other in edges.get(file, ()):
            if other not in numbers:
                visit(other)
            if other in stack:
                lowest[file] = min(lowest[file], lowest[other])
        if lowest[file] == numbers[file]:
            at = stack.index(file)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for file in sorted(edges):
        if file not in numbers:
            visit(file)
    return found


def main():
    edges = uses(f"{sys.argv[1]}/libcroupier.a")
    if len(edges) < 50:
        sys.exit(f"only {len(edges)} files with symbols found: is this a build of croupier?")
    if circles(KNOWN) != [["a", "b", "c"]]:
        sys.exit("the check does not find a circle that is there")
    found = circles(edges)
    for circle in found:
        print(f"{len(circle)} files call each other in a circle:", file=sys.stderr)
        for file in circle:
            for other in sorted(set(edges[file]) & set(circle)):
                print(f"  {file} uses {', '.join(sorted(edges[file][other]))} of {other}", file=sys.stderr)
    sys.exit(1 if found else 0)


main()
