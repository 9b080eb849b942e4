#!/usr/bin/env python3
"""Finds files of src/ that ask the machine for the time, or sleep, other than base/clock, for `make check`.

    tools/check_clock.py BUILD-DIRECTORY

Reads the symbols of the compiled library with nm, and the sources for SQL that asks a database.
"""
import re
import sys
from collections import Counter
from pathlib import Path

from library_symbols import symbols

CLOCK = "src_base_clock.c"
ASKING = {"clock_gettime", "clock_nanosleep", "ftime", "gettimeofday", "nanosleep", "sleep", "time", "timespec_get", "usleep",
          "uv_clock_gettime", "uv_gettimeofday", "uv_hrtime", "uv_now", "uv_sleep", "uv_update_time"}
SQL = re.compile(r"\b(now|clock_timestamp|statement_timestamp|transaction_timestamp|datetime|julianday|unixepoch)\s*\(\s*['\")]"
                 r"|\bcurrent_(date|time|timestamp)\b", re.IGNORECASE)
# Where a database is asked, how often, and why.
ALLOWED = {("sql/statements/postgresql_session.sql", "clock_timestamp"):
           (2, "compared with a time that the server noted itself, and with the machine's by `croupier check`")}


def asking(library):
    """(file, symbol) of every use outside base/clock."""
    files = set()
    for file, name, kind in symbols(library):
        files.add(file)
        if kind == "U" and name in ASKING and file != CLOCK:
            yield file, name
    if CLOCK not in files:
        sys.exit(f"{CLOCK} is not in {library}: is this a build of croupier?")


def main():
    failures = [f"{file} uses {name}: only base/clock asks for the time, or sleeps" for file, name in asking(f"{sys.argv[1]}/libcroupier.a")]
    unused = Counter({place: count for place, (count, _) in ALLOWED.items()})
    for path in sorted([*Path("src").rglob("*.[ch]"), *Path("sql").rglob("*.sql")]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for match in SQL.finditer(line):
                unused[str(path), match[1]] -= 1
                if unused[str(path), match[1]] < 0:
                    failures.append(f"{path}:{number}: {match[0]} asks a database for the time")
    failures += [f"{path} does not ask for {name} any more: take it from the list" for (path, name), left in unused.items() if left > 0]
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(1 if failures else 0)


main()
