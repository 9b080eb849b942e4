"""man/croupier.1 names every command that the program has."""

import re

import pytest

from croupier import ROOT

pytestmark = pytest.mark.depends_on()


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
