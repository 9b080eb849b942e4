"""man/croupier.1 names every command that the program has, and the documents name no other."""

import itertools
import re

import pytest

from croupier import ROOT

pytestmark = [pytest.mark.depends_on(), pytest.mark.threadless]


def listed(text, heading):
    """The first words of the lines under `heading`, up to an empty line."""
    block = text.partition(f"\n{heading}\n")[2].partition("\n\n")[0]
    names = [line.split()[0] for line in block.splitlines()]
    assert names, text
    return names


def test_the_man_page_names_every_command(service):
    page = (ROOT / "man" / "croupier.1").read_text()
    synopsis = page.partition(".Sh SYNOPSIS\n")[2].partition(".Sh")[0]
    told = {}
    for entry in synopsis.split(".Nm\n")[1:]:
        words = re.findall(r"^\.Cm (.*)$", entry, re.MULTILINE)
        told[words[0]] = words[1].split(" | ") if len(words) > 1 else []
    overview = service.run("--help", configuration=False).text
    expected = {name: [] for name in listed(overview, "Commands:")}
    for group in listed(overview, "Groups of commands:"):
        expected[group] = listed(service.run(group, "--help", configuration=False).text, "Commands:")
    expected["help"] = ["settings"]
    assert told == expected
    for name in expected:
        assert re.search(rf"^\.It Cm .*\b{name}\b", page, re.MULTILINE), name


def documents():
    return [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md")), *sorted((ROOT / "examples").rglob("*.md")), ROOT / "llms.txt"]


def test_the_documents_name_commands_and_options_that_exist(service):
    """Those in the text between back quotes; the blocks are run by test_documents.py."""
    helps = {}

    def help_of(*words):
        if words not in helps:
            helps[words] = service.run(*words, "--help", configuration=False).text
        return helps[words]

    groups = {group: listed(help_of(group), "Commands:") for group in listed(help_of(), "Groups of commands:")}
    alone = {*listed(help_of(), "Commands:"), "help"}
    checked, wrong = 0, []
    for page in documents():
        text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for span in re.findall(r"`([a-z][^`]+)`", text):
            first, *words = re.split(r"\s[|;&<>#]", span)[0].removeprefix("croupier ").split()
            if first in groups and words and words[0] in groups[first]:
                shown, words = help_of(first, words[0]), words[1:]
            elif first in alone:
                shown = help_of(first)
            else:
                if re.match(r"croupier [a-z]", span) and (first not in groups or words and re.match("[a-z]", words[0])):
                    wrong.append(f"{page.name}: {span}")
                continue
            checked += 1
            for option, value in itertools.zip_longest(words, words[1:]):
                if re.match("--?[a-z]", option):
                    named = re.search(rf"(?<![\w-]){re.escape(option)}( [^ \n]+)?(?![\w-])", shown)
                    if not named or value in ("on", "off") and named[1] != " on|off":
                        wrong.append(f"{page.name}: {span}")
    assert checked > 100 and not wrong, (checked, wrong)
