#!/usr/bin/env python3
"""Turns the table of metrics into C: the type of each and what it counts.

usage: embed_metrics.py OUTPUT.c docs/metrics.md

A row of the table has the name, the type, the labels and the text that a scrape shows as HELP. The service's tests
hold that it has every metric that the service writes, and no other.
"""
import re
import sys

ROW = re.compile(r"\| `(\w+)` \| (counter|gauge|histogram) \| [^|]*\| (.+) \|")


def main():
    output, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        rows = [row for row in map(ROW.fullmatch, file.read().splitlines()) if row]
    with open(output, "w", encoding="utf-8") as out:
        out.write('/* Made by tools/embed_metrics.py from docs/metrics.md; do not edit. */\n#include "metrics/metrics.h"\n\n')
        out.write("const struct metric_about metrics_about[] = {\n")
        for row in rows:
            name, kind, what = row.groups()
            quoted = what.replace("\\", "\\\\").replace('"', '\\"')
            out.write(f'    {{"{name}", "{kind}", "{quoted}"}},\n')
        out.write("    {0},\n};\n")


main()
