"""`croupier completion`: each shell, asked what may follow, offers what the help of the program lists."""

import re
import shutil
import subprocess

import pytest

from croupier import BINARY, PATIENCE

pytestmark = [pytest.mark.depends_on(), pytest.mark.threadless]

# What each shell runs: it completes each line of standard input and prints the words that it offers. '@' is a word not begun.
ASK_BASH = """
source "$1"
while read -r line; do
    read -ra COMP_WORDS <<<"$line"
    COMP_WORDS=("${COMP_WORDS[@]/#@/}")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _croupier
    echo "${COMPREPLY[*]}"
done
"""
# What _describe is given, of which it offers what begins as the word does.
ASK_ZSH = """
source $1
_describe() { print -r -- ${(M)${found%%:*}:#${words[CURRENT]}*} }
_files() { print }
while read -r line; do
    words=(${=line})
    CURRENT=$#words
    words[CURRENT]=${words[CURRENT]#@}
    found=()
    _croupier
done
"""
ASK_FISH = """
source $argv[1]
while read -l line
    string join -- ' ' (complete -C (string replace -r ' ?@' ' ' -- $line) | string replace -r '\\t.*' '')
end
true
"""
SHELLS = {"bash": ["bash", "-c", ASK_BASH], "zsh": ["zsh", "-f", "-c", ASK_ZSH], "fish": ["fish", "-N", "-c", ASK_FISH]}


def croupier(*words):
    return subprocess.run([BINARY, *words], capture_output=True, text=True, check=True, timeout=30 * PATIENCE).stdout


def listed(text, heading):
    """The first words of the lines under `heading`."""
    return [line.split()[0] for line in text.partition(f"\n{heading}\n")[2].partition("\n\n")[0].splitlines()]


def help_of(*words):
    return croupier(*words, "--help")


def options(*words):
    return set(re.findall(r"^  (?:-c, )?(--[a-z-]+)", help_of(*words), re.MULTILINE)) | {"--version"}


@pytest.fixture(scope="module")
def expected():
    """What may be completed: the words of a line, the last of them begun, to what may stand there."""
    overview = help_of()
    groups, top = listed(overview, "Groups of commands:"), listed(overview, "Commands:")
    expected = {"croupier @": {*groups, *top, "help"}}
    for group in groups:
        expected[f"croupier {group} @"] = set(listed(help_of(group), "Commands:"))
    for command in ("check",), ("usage",), ("customer", "add"), ("provider", "set"):  # none, a table, made ones
        expected[f"croupier {' '.join(command)} --"] = options(*command)
    return expected


# And lines that people really type.
TYPED = {
    "croupier -c some.conf cust": {"customer"},
    "croupier customer a": {"add"},
    "croupier --config some.conf customer --json add --cid": {"--cidr"},
    "croupier customer add Acme --ra": {"--rate"},
    "croupier help customer a": {"add"},
    "croupier completion @": {"bash", "zsh", "fish"},
    "croupier completion f": {"fish"},
}


@pytest.mark.parametrize("shell", ["bash", *(pytest.param(shell, marks=pytest.mark.takes(shell)) for shell in ("zsh", "fish"))])
def test_a_shell_completes_commands_and_options(shell, expected, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"this machine has no {shell}")
    script = tmp_path / "script"
    script.write_text(croupier("completion", shell))
    ask = {**expected, **TYPED}
    name, *rest = SHELLS[shell]
    done = subprocess.run([name, *rest, *([] if shell == "fish" else ["ask"]), script], cwd=tmp_path, text=True,
                          input="".join(f"{line}\n" for line in ask), capture_output=True, timeout=120 * PATIENCE,
                          env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == len(ask)
    wrong = {line: words for (line, wanted), words in zip(ask.items(), answers) if set(words.split()) != wanted}
    assert wrong == {}
