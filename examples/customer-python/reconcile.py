#!/usr/bin/env python3
"""Keeps a copy of your entries and proves its days equal to the operator's, also after a kill. README.md shows how to run it."""

import datetime
import json
import os
import re
import sys
import time
import urllib.error
import urllib.request

BASE = re.sub("(/api/v1)?/*$", "", os.environ.get("BASE", "http://127.0.0.1:8080"), count=1)
KEY = os.environ.get("ACCOUNT_KEY") or sys.exit("reconcile.py: set ACCOUNT_KEY to a key with the area account (crk_…)")
COPY = os.environ.get("COPY", "entries.copy")


def get(path):
    """The text of an answer. Asks again while the server is busy or away."""
    while True:
        pause_s = 1
        try:
            request = urllib.request.Request(f"{BASE}/api/v1/account/{path}", headers={"Authorization": f"Bearer {KEY}"})
            with urllib.request.urlopen(request, timeout=15) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            reason = error.read().decode()
            if error.code != 429 and error.code < 500:
                sys.exit(f"reconcile.py: {error.code} {reason}")
            pause_s = int(error.headers.get("Retry-After", pause_s))
        except Exception as error:  # of the network: there are many
            reason = error
        print(f"no answer yet ({reason}); the same again", file=sys.stderr)
        time.sleep(pause_s)


def copy_entries():
    """Brings the copy up to now, and returns its entries. A line is a page as it came: its cursor stands or falls with its entries."""
    with open(COPY, "ab+") as copy:
        copy.seek(0)
        text = copy.read()
        copy.truncate(text.rfind(b"\n") + 1)  # what a kill left of a line is asked for again
        pages = [json.loads(line) for line in text.split(b"\n")[:-1]]
        more = True
        while more:
            cursor = f"&cursor={pages[-1]['next_cursor']}" if pages else ""
            page = get(f"entries?limit=200{cursor}")
            pages.append(json.loads(page))
            more = pages[-1]["more"]
            if more or pages[-1]["entries"]:
                copy.write(page.encode() + b"\n")
                copy.flush()
                os.fsync(copy.fileno())
    return [entry for page in pages for entry in page["entries"]]


def mine(entries):
    """By day and currency: how many entries, what they took, gave, and gave and took back."""
    sums = {}
    for entry in entries:
        row = sums.setdefault(entry["created_at"][:10], {}).setdefault(entry["currency"], [0] * 5)
        moved = entry["movement_minor"]
        row[0] += 1
        row[(1 if moved < 0 else 2) if entry["operation"] != "ROLLBACK" else (3 if moved > 0 else 4)] += abs(moved)
    return sums


GAVE = ("wins_minor", "promos_minor", "jackpots_minor", "adjustments_minor", "transfers_in_minor")
TOOK = ("stakes_minor", "transfers_out_minor")


def theirs(day):
    """The same of a day, by currency, from the operator's totals."""
    def add(row, names, before=""):
        return sum(row[before + name] for name in names)

    return {row["currency"]: [row["entries"], add(row, TOOK), add(row, GAVE), add(row, TOOK, "rolled_back_"), add(row, GAVE, "rolled_back_")]
            for row in json.loads(get(f"days?day={day}"))["days"]}


def asked(words, today):
    """The first day, or None, and the last one. ValueError: the arguments are not two days in their order."""
    days = [datetime.date.fromisoformat(word) for word in words]
    last = days[1] if len(days) > 1 else today - datetime.timedelta(days=1)  # today is not over
    if len(days) > 2 or [str(day) for day in days] != [*words] or days and not days[0] <= last <= today:
        raise ValueError(words)
    return days[0] if days else None, last


def main(*words):
    today = datetime.datetime.now(datetime.timezone.utc).date()
    try:
        day, last = asked(words, today)
    except ValueError:
        print("reconcile.py [FIRST [LAST]]: days as 2026-11-29, in their order, LAST no later than today (UTC); without it, yesterday",
              file=sys.stderr)
        sys.exit(2)
    sums = mine(copy_entries())
    day = day or datetime.date.fromisoformat(min(sums, default=str(today)))
    differ = False
    while day <= last:
        here, there = sums.get(str(day), {}), theirs(day)
        for currency in sorted({*here, *there}):
            ours, other = here.get(currency, [0] * 5), there.get(currency, [0] * 5)
            differ = differ or ours != other
            print(day, currency, *([*ours, "equal"] if ours == other else [*ours, "here, but", *other, "there"]))
        day += datetime.timedelta(days=1)
    sys.exit(1 if differ else 0)


main(*sys.argv[1:])
