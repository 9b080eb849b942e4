#!/usr/bin/env python3
"""Turns the files of the operator's console into a C table.

usage: embed_console.py OUTPUT.c [PATH=]FILE…

A file becomes a row of `console_files` (src/console/files.h): the path that it is asked for by, its
content type, its size, an entity tag made from its bytes, and the bytes gzipped. The path is
"/console/" and the file's name, or what is given; index.html is "/". Browsers get empty lines in
place of the comments that have lines to themselves, so lines keep their numbers.
"""
import base64
import gzip
import hashlib
import pathlib
import re
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".yaml": "application/yaml",
}
SAVED = {".yaml"}  # by whoever follows a link to it: no page loads it
# All that a browser loads, over a telephone's line from a cellar: 64 KB.
GZIPPED_MAX = 64_000
COMMENT = re.compile(rb"^[ \t]*(//[^\n]*|/\*(?:(?!\*/).)*\*/)$", re.MULTILINE | re.DOTALL)


def constant(number, data):
    rows = (data[at : at + 24] for at in range(0, len(data), 24))
    values = "".join("\n    " + " ".join(f"{byte}," for byte in row) for row in rows)
    return f"static const uint8_t file_{number}[] = {{{values}\n}};\n"


def main():
    output, arguments = sys.argv[1], sys.argv[2:]
    constants, rows, total = [], [], 0
    for number, argument in enumerate(arguments):
        path, _, file = argument.rpartition("=")
        file = pathlib.Path(file)
        path = path or ("/" if file.name == "index.html" else f"/console/{file.name}")
        data = file.read_bytes()
        if file.suffix in (".js", ".css"):
            data = COMMENT.sub(lambda found: b"\n" * found[0].count(b"\n"), data)
        gzipped = gzip.compress(data, 9, mtime=0)
        total += 0 if file.suffix in SAVED else len(gzipped)
        tag = base64.urlsafe_b64encode(hashlib.sha256(data).digest()[:18]).decode()
        constants.append(constant(number, gzipped))
        rows.append(f'    {{TEXT_INIT("{path}"), "{TYPES[file.suffix]}", "{tag}", {len(data)}, file_{number}, sizeof file_{number}}},\n')
    if total > GZIPPED_MAX:
        sys.exit(f"the console's files are {total} bytes gzipped; {GZIPPED_MAX} is the most")
    with open(output, "w", encoding="ascii") as out:
        out.write('/* Made by tools/embed_console.py from console/; do not edit. */\n#include "console/files.h"\n\n')
        out.write("\n".join(constants))
        out.write(f'\nconst struct console_file console_files[] = {{\n{"".join(rows)}}};\n')
        out.write(f"const size_t console_file_count = {len(rows)};\n")


main()
