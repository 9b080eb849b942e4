#!/usr/bin/env python3
"""Turns numbered migrations into a C table, so that the program carries its schema.

usage: embed_migrations.py NAME OUTPUT.c FILE.sql…

NAME becomes `const struct migration NAME_migrations[]` (src/stores/platform/schema.h). Files are
called NNNN_words.sql and numbered without a gap: a gap would be a migration that somebody forgot to
commit. The checksum of one is its SHA-256, or what its first line says: "-- As released: HEX".
"""
import hashlib
import os
import re
import sys


def main():
    name, output, paths = sys.argv[1], sys.argv[2], sorted(sys.argv[3:], key=os.path.basename)
    bodies, rows = [], []
    for number, path in enumerate(paths, int(os.path.basename(paths[0])[:4])):
        base = os.path.basename(path)
        match = re.fullmatch(r"(\d{4})_([a-z0-9_]+)\.sql", base)
        if match is None or int(match.group(1)) != number:
            sys.exit(f"{path}: expected a file named {number:04d}_words.sql")
        with open(path, "rb") as file:
            sql = file.read()
        if b"\0" in sql:
            sys.exit(f"{path}: holds a NUL byte")
        bytes_text = "".join(
            "\n    " + " ".join(f"{byte}," for byte in sql[at : at + 20])
            for at in range(0, len(sql), 20)
        )
        bodies.append(f"static const char sql_{number}[] = {{{bytes_text}\n    0}};\n")
        released = re.match(rb"-- As released: ([0-9a-f]{64})\n", sql)
        digest = released.group(1).decode() if released else hashlib.sha256(sql).hexdigest()
        rows.append(f'    {{{number}, "{match.group(2)}", "{digest}", sql_{number}}},\n')
    with open(output, "w", encoding="ascii") as file:
        file.write("/* Made by tools/embed_migrations.py from sql/; do not edit. */\n")
        file.write('#include "stores/platform/schema.h"\n\n')
        file.write("\n".join(bodies))
        file.write(f"\nconst struct migration {name}_migrations[] = {{\n{''.join(rows)}}};\n")
        file.write(f"const size_t {name}_migration_count = {len(rows)};\n")


main()
