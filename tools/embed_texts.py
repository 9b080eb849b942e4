#!/usr/bin/env python3
"""Turns files of text into C strings.

usage: embed_texts.py OUTPUT.c HEADER NAME FILE [NAME FILE]…

Each FILE becomes `const char NAME[]`, which HEADER declares.
"""
import sys


def main():
    output, header, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    with open(output, "w", encoding="ascii") as out:
        out.write(f'/* Made by tools/embed_texts.py; do not edit. */\n#include "{header}"\n')
        for name, path in zip(rest[::2], rest[1::2]):
            with open(path, "rb") as file:
                data = file.read()
            if b"\0" in data:
                sys.exit(f"{path}: holds a NUL byte")
            rows = (data[at : at + 20] for at in range(0, len(data), 20))
            values = "".join("\n    " + " ".join(f"{byte}," for byte in row) for row in rows)
            out.write(f"\nconst char {name}[] = {{{values}\n    0}};\n")


main()
