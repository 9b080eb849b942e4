#!/usr/bin/env python3
"""Turns a list of errors into C.

usage: embed_errors.py OUTPUT.c OUTPUT.h HTTP.txt [FILE.txt]

A line of the list is an answer: its status, its code and its message. The lines below it that are indented
are the causes that have this answer, a word each; an answer without such lines is its only cause, named
like its code. An answer that stands in the list before, or in that of HTTP itself, is named without its
message. A status alone is an answer that has no error document. `#` begins a comment.

Each cause becomes `error_CAUSE`, and an element of `FOLDER_errors`, in the order of the list.
"""
import pathlib
import re
import sys

ANSWER = re.compile(r"(\d{3})(?: ([a-z_]+))?(?: (\S.*))?")
CAUSE = re.compile(r" +([a-z_]+)")


def answers(path, messages):
    """(status, code, message, causes) of each answer; keeps its message in `messages`."""
    answer = None
    for line in path.read_text(encoding="ascii").splitlines():
        if not line or line.startswith("#"):
            continue
        if cause := CAUSE.fullmatch(line):
            answer[3].append(cause[1])
            continue
        if answer:
            yield answer
        match = ANSWER.fullmatch(line)
        status, code, message = match.groups(default="") if match else sys.exit(f"{path}: no answer: {line}")
        message = message or messages.get((status, code), "")
        if code and not message:
            sys.exit(f"{path}: an answer without a message: {line}")
        messages[status, code] = message
        answer = (status, code, message, [])
    yield answer


def main():
    source, header = map(pathlib.Path, sys.argv[1:3])
    messages = {}
    for path in map(pathlib.Path, sys.argv[3:]):  # the last one is what is wanted
        rows = [(cause, status, code, message) for status, code, message, causes in answers(path, messages)
                for cause in causes or [code]]
    domain = path.parent.name
    made = f"/* Made by tools/embed_errors.py from src/{domain}/{path.name}; do not edit. */\n"
    needs = "" if domain == "http" else '#include "http/errors.h"\n\n'  # which includes HTTP's own rows
    header.write_text(made + "#pragma once\n\n" + needs
                      + "".join(f"extern const struct http_error error_{cause};\n" for cause, *_ in rows)
                      + f"extern const struct http_error *const {domain}_errors[]; /* all of them, then NULL */\n")
    source.write_text(made + f'#include "http/errors.h"\n#include "{domain}/error_rows.h"\n\n#include <stddef.h>\n\n'
                      + "".join(f'const struct http_error error_{cause} = {{{status}, "{code}", "{message}", "{cause}"}};\n'
                                for cause, status, code, message in rows)
                      + f"\nconst struct http_error *const {domain}_errors[] = {{\n"
                      + "".join(f"    &error_{cause},\n" for cause, *_ in rows) + "    NULL};\n")


main()
