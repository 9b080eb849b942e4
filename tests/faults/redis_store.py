"""A store of the Redis engine in a process of its own, and how the names that it looks up resolve.

REDIS_TOOL names the program that acts (tests/faults/redis_tool.c), SLOW_NAMES the library that makes names slow.
"""

import contextlib
import os
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from servers import Stopwatch  # noqa: E402

PATIENCE = float(os.environ.get("CROUPIER_PATIENCE", "1"))


def eventually(condition):
    deadline = time.monotonic() + 60 * PATIENCE  # the machine may be busy with something else
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.002)


class Store:
    """A store that serves, or that feeds, in a process of its own."""

    def __init__(self, uri, timeout_ms=1000, prefix="", names=None, feeds=False):
        self.process = subprocess.Popen([os.environ["REDIS_TOOL"], uri, str(timeout_ms), prefix, *(["feeds"] if feeds else [])],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=names.environment() if names else None)
        self.answers, self.reads, self.watches, self.log = queue.Queue(), {}, {}, []
        self.tags = 0
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._keep_log, daemon=True).start()
        self.first = self.answers.get(timeout=30 * PATIENCE)

    def _listen(self):
        for line in self.process.stdout:
            words = line.rstrip("\n").split(" ")
            if words[0] == "read":
                self.reads[words[1]].put(words[2:])
            else:
                self.answers.put(line.rstrip("\n"))

    def _keep_log(self):
        for line in self.process.stderr:
            self.log.append(line)

    def log_text(self):
        return "".join(self.log)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answers.get(timeout=60 * PATIENCE)

    def start_read(self, what="cricket 1"):
        self.tags += 1
        tag = str(self.tags)
        self.reads[tag] = queue.Queue()
        self.watches[tag] = Stopwatch()
        self.process.stdin.write(f"read {tag} {what}\n")
        self.process.stdin.flush()
        return tag

    def result(self, tag):
        """(status, version, milliseconds that it may have taken at most, the first bytes)"""
        status, version, milliseconds, _size, *text = self.reads[tag].get(timeout=60 * PATIENCE)
        late = self.watches[tag].elapsed() - self.watches[tag].seconds()
        return status, int(version), int(milliseconds) - 1000 * late, " ".join(text)

    def read(self, what="cricket 1"):
        return self.result(self.start_read(what))

    def value(self, what="cricket 1"):
        status, _, _, text = self.read(what)
        assert status == "ok", (status, self.log_text())
        return text

    def stamp(self):
        _, status, number = self.ask("stamp").split()
        return status, int(number)

    def status(self):
        return self.stamp()[0]

    def versions(self, what="cricket 1"):
        """(catalog, odds); None: not known."""
        _, status, _, catalog, odds = self.ask(f"versions {what}").split()
        assert status in ("ok", "pending"), status
        return tuple(None if version == "-" else int(version) for version in (catalog, odds))

    def odds_version(self, what="cricket 1"):
        return self.versions(what)[1]

    def facts(self):
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", self.ask("facts"))}

    def ping(self, need=""):
        return self.ask(f"ping {need}").split(" ", 2)[1:]

    def await_status(self, status):
        eventually(lambda: self.status() == status)

    def written(self):
        """Bytes that it has written so far, to a server for the most part."""
        return int(re.search(r"wchar: (\d+)", Path(f"/proc/{self.process.pid}/io").read_text())[1])

    def close(self):
        if self.process.stdin and not self.process.stdin.closed:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        assert self.process.wait(60 * PATIENCE) == 0, self.log_text()


class Names:
    """How names resolve (slow_names.c), and how often they were looked up."""

    def __init__(self, path):
        self.path = path

    def set(self, **names):
        """NAME=(seconds, address…); in the name, a _ stands for a hyphen"""
        lines = [f"{name.replace('_', '-')} {seconds} {' '.join(addresses)}\n"
                 for name, (seconds, *addresses) in names.items()]
        fresh = self.path.with_suffix(".new")
        fresh.write_text("".join(lines))
        fresh.rename(self.path)

    def environment(self):
        asan = os.environ.get("ASAN_OPTIONS", "exitcode=99") + ":verify_asan_link_order=0"
        return {**os.environ, "LD_PRELOAD": os.environ["SLOW_NAMES"], "CROUPIER_TEST_SLOW_NAMES": str(self.path),
                "ASAN_OPTIONS": asan}

    def lookups(self):
        """How many were begun. Never were two of one name under way at once."""
        log, under_way, begun = Path(f"{self.path}.log"), set(), 0
        for line in log.read_text().splitlines() if log.exists() else []:
            if line[0] == "+":
                assert line[1:] not in under_way, "it was being looked up already"
                under_way.add(line[1:])
                begun += 1
            else:
                under_way.remove(line[1:])
        return begun
