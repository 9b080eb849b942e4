#!/usr/bin/env python3
"""Turns the options of resources' fields, and what --help says of them, into C initializers.

usage: embed_options.py OUTPUT.h FILE.txt

The file has some lines for each option, and an empty one between two of them:

    # customer --cidr CIDR (repeatable)
    add: an address block that it may call from
    set: the address blocks that it may call from, instead of those it has
    set --no-cidrs: no address block: denied everywhere

which become `OPTION_CUSTOMER_CIDR`, a struct field_option (src/operator/field.h). An option without a
value is a flag. `add, set:` says the same of both; a command that is not there does not have the option.
"""
import re
import sys

HEAD = re.compile(r"# ([a-z]+) --([a-z-]+)(?: (\S+))?( \(repeatable\))?")
HELP = re.compile(r"(add|set|add, set|set --([a-z-]+)): (.+)")


def quoted(text):
    return "NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") + '"'


def main():
    output, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        options = file.read().rstrip("\n").split("\n\n")
    with open(output, "w", encoding="utf-8") as out:
        out.write("/* Made by tools/embed_options.py from help/options.txt; do not edit. */\n#pragma once\n\n")
        for option in options:
            head, *lines = option.split("\n")
            match = HEAD.fullmatch(head)
            helps = [HELP.fullmatch(line) for line in lines]
            if match is None or not helps or None in helps:
                sys.exit(f"{path}: expected # group --option VALUE, and lines of add: or set: {option}")
            group, name, value, repeatable = match.groups()
            said = {command: help[3] for help in helps if help[2] is None for command in help[1].split(", ")}
            no_name, no_help = next(((help[2], help[3]) for help in helps if help[2]), (None, None))
            members = [name, value, said.get("add"), said.get("set"), no_name, no_help]
            macro = re.sub("-", "_", f"option_{group}_{name}").upper()
            out.write(f"#define {macro} {{{', '.join(map(quoted, members))}, {'true' if repeatable else 'false'}}}\n")


main()
