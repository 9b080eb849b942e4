#!/usr/bin/env python3
"""Turns the statements of an engine into C: `const struct sql_texts NAME_texts`.

usage: embed_statements.py NAME OUTPUT.c HEADER.h FILE.sql…

A line of a file that begins with one of these words in a comment begins a part, which ends where the
next begins; other comments stand for themselves:

    -- define NAME             a piece of SQL, for {NAME} in others
    -- define NAME(a, b)       the same with words for {a} and {b}, for {NAME(x, y)}; {{a}} is the
                               piece whose name was given as `a`
    -- field NAME              a member of struct sql_texts (src/stores/platform/texts.h),
                               which is a piece as well
    -- check WHAT              a row of its `checks`; without WHAT the statement itself says it

A macro of the header that is a string is a piece as well: C writes the same SQL into statements of
its own.
"""
import json
import re
import sys

PART = re.compile(r"-- (define|field|check)\b *(.*)")
MACRO = re.compile(r'#define (\w+)((?:[ \\\n]*"[^"\n]*")+)')
CALL = re.compile(r"\{(\w+)(?:\(([^(){}]*)\))?\}")


def parts(paths):
    """(kind, name, SQL) of each part, without comments and line feeds."""
    found = []
    for path in paths:
        with open(path, encoding="ascii") as file:
            for line in file:
                part = PART.match(line)
                if part:
                    found.append((part.group(1), part.group(2).strip(), []))
                elif line.strip() and not line.startswith("--"):
                    found[-1][2].append(line.strip())
    return [(kind, name, " ".join(lines)) for kind, name, lines in found]


def macros(path):
    """The pieces that a header defines."""
    with open(path, encoding="ascii") as file:
        return {name: ([], "".join(re.findall(r'"([^"\n]*)"', strings)))
                for name, strings in MACRO.findall(file.read())}


def expand(sql, pieces, depth=0):
    """The text with all its pieces in place."""
    if depth > 20:
        sys.exit(f"a piece stands within itself: {sql:.80}")

    def piece(call):
        words, body = pieces[call.group(1)]
        given = re.split(r", *", call.group(2)) if call.group(2) else []
        if len(words) != len(given):
            sys.exit(f"{call.group(0)}: wants {len(words)} words")
        for word, value in zip(words, given):
            body = body.replace("{" + word + "}", value)
        return expand(body, pieces, depth + 1)

    return re.sub(CALL, piece, sql)


def main():
    name, output, header, paths = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    found, pieces = parts(paths), macros(header)
    for kind, title, sql in found:
        if kind != "check":
            head = re.fullmatch(r"([\w.]+)(?:\(([\w, ]+)\))?", title)
            if head is None or head.group(1) in pieces:
                sys.exit(f"{title}: is no name, or is there twice")
            pieces[head.group(1)] = (re.split(r", *", head.group(2)) if head.group(2) else [], sql)
    text = {at: json.dumps(re.sub(r" +", " ", expand(sql, pieces)).strip())
            for at, (kind, _, sql) in enumerate(found) if kind != "define"}
    with open(output, "w", encoding="ascii") as file:
        file.write("/* Made by tools/embed_statements.py from sql/statements/; do not edit. */\n")
        file.write('#include "stores/platform/texts.h"\n\n')
        file.write("/* Texts are longer than the 4095 bytes that ISO C asks of a compiler. */\n")
        file.write('#pragma GCC diagnostic ignored "-Woverlength-strings"\n\n')
        file.write("static const struct ledger_check_text checks[] = {\n")
        for at, (kind, title, _) in enumerate(found):
            if kind == "check":
                file.write(f"    {{{json.dumps(title) if title else 'NULL'}, {text[at]}}},\n")
        file.write(f"}};\n\nconst struct sql_texts {name}_texts = {{\n")
        for at, (kind, title, _) in enumerate(found):
            if kind == "field":
                file.write(f"    .{title} = {text[at]},\n")
        file.write("    .checks = checks,\n    .check_count = sizeof checks / sizeof checks[0],\n};\n")


main()
