#!/usr/bin/env python3
"""Turns what the settings are for into C strings.

usage: embed_settings.py OUTPUT.h FILE.txt

The file has two lines for each setting, and an empty one between two of them:

    [server] body_seconds
    seconds for a whole request body, 1 to 3600

which become `setting_server_body_seconds`. A setting without a text does not compile, nor does a text
without a setting.
"""
import re
import sys

TEXT = re.compile(r"\[([a-z]+)\] ([a-z_]+)\n(.+)")


def main():
    output, path = sys.argv[1:]
    with open(path, encoding="ascii") as file:
        texts = file.read().rstrip("\n").split("\n\n")
    with open(output, "w", encoding="ascii") as out:
        out.write("/* Made by tools/embed_settings.py from help/settings.txt; do not edit. */\n#pragma once\n\n")
        for text in texts:
            match = TEXT.fullmatch(text)
            if match is None:
                sys.exit(f"{path}: expected [section] key and a line: {text}")
            section, key, what = match.groups()
            quoted = what.replace("\\", "\\\\").replace('"', '\\"')
            out.write(f'static const char setting_{section}_{key}[] = "{quoted}";\n')


main()
