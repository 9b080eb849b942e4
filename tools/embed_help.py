#!/usr/bin/env python3
"""Turns the help texts of commands into C constants.

usage: embed_help.py OUTPUT.c OUTPUT.h FILE.txt…

A file holds the texts of one group, command after command:

    # customer add
    add a customer; prints its id

    What it does, in as many paragraphs as it takes.

    Options:
    --cidr CIDR  an address block that it may call from
    --casino  it may use the casino

    Examples:
    croupier customer add Acme

which becomes `const struct command_help help_customer_add` (src/cli/command.h). A command without
options, or with those of a resource's fields, has none here. A command without texts does not link,
and a text that no command has is an unused constant.
"""
import re
import sys

WIDTH_MAX = 96  # of the paragraphs, as no terminal wraps a line at a word
SECTION = re.compile(r"([^\n]+)\n\n(.+?)\n\n(?:Options:\n(.+)\n\n)?Examples:\n(.+)", re.DOTALL)
OPTION = re.compile(r"--([a-z-]+)(?: (\S+))?  (.+)")


def quoted(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    return "\n    ".join(f'"{line}"' for line in escaped.replace("\n", "\\n\n").split("\n"))


def options(path, name, lines):
    """A list of struct command_option."""
    rows = []
    for line in lines.split("\n"):
        match = OPTION.fullmatch(line)
        if match is None:
            sys.exit(f"{path}: {name}: expected --option VALUE and its help after two spaces: {line}")
        rows.append("{" + ", ".join("NULL" if part is None else quoted(part) for part in match.groups()) + ", false}")
    return "(const struct command_option[]){" + ", ".join(rows) + ", {0}}"


def main():
    source, header, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
    texts, names = [], []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            sections = re.split(r"^# (.+)\n", file.read(), flags=re.MULTILINE)
        for name, body in zip(sections[1::2], sections[2::2]):
            match = SECTION.fullmatch(body.rstrip("\n"))
            if match is None:
                sys.exit(f"{path}: {name}: expected a line, paragraphs, perhaps Options:, and Examples:")
            for line in match.group(2).split("\n"):
                if len(line) > WIDTH_MAX:
                    sys.exit(f"{path}: {name}: longer than {WIDTH_MAX} characters: {line}")
            names.append(f"const struct command_help help_{re.sub('[ -]', '_', name)}")
            summary, details, own, examples = match.groups()
            members = [*map(quoted, (summary, details, examples)), options(path, name, own) if own else "NULL"]
            texts.append(f"{names[-1]} = {{\n    " + ",\n    ".join(members) + "};\n")
    note = "/* Made by tools/embed_help.py from help/; do not edit. */\n"
    with open(source, "w", encoding="utf-8") as file:
        file.write(f'{note}#include "commands/help_texts.h"\n\n' + "\n".join(texts))
    with open(header, "w", encoding="utf-8") as file:
        file.write(f'{note}#pragma once\n\n#include "cli/command.h"\n\n')
        file.write("".join(f"extern {name};\n" for name in names))


main()
