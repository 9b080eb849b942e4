#!/usr/bin/env python3
"""A customer of croupier in one file: polls odds, launches a game, and moves a player's money so that nothing is lost or done
twice, even when this program or the server is killed in between. README.md shows how to run it."""

import base64
import gzip
import hashlib
import http.client
import json
import os
import re
import sys
import time
import urllib.error
import urllib.request
import uuid

BASE = re.sub("(/api/v1)?/*$", "", os.environ.get("BASE", "http://127.0.0.1:8080"), count=1)
KEY = os.environ.get("KEY") or sys.exit("customer.py: set KEY to the key that the operator gave you (crk_…)")
JOURNAL = os.environ.get("JOURNAL", "wallet.journal")
# The refusals beside 409 and 422 that decide: this operation was not applied, in an earlier attempt either. player_not_found
# decides about a first attempt alone: an earlier one may have been applied with the key of another customer of yours.
DECIDES = re.compile(r'"error":"(player_blocked|reference_not_found|game_not_found|invalid_request|unknown_field)"')
WAIT_S = 55  # how long a poll may wait for a change

try:  # what makes a body of the one before it and their difference; with neither, the polls are answered in gzip
    from compression import zstd  # Python 3.14

    def patch(before, difference):
        return zstd.decompress(difference, zstd.ZstdDict(before, is_raw=True).as_prefix)
except ImportError:
    try:
        import zstandard  # a package

        def patch(before, difference):
            raw = zstandard.ZstdCompressionDict(before, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            return zstandard.ZstdDecompressor(dict_data=raw).decompress(difference)
    except ImportError:
        patch = None


def decoded(answer, before):
    """The body of an answer. A difference begins with the digest of the body that it is from."""
    body, coding = answer.read(), answer.headers.get("Content-Encoding")
    if coding == "dcz":
        if before is None or body[:40] != b"\x5e*M\x18 \0\0\0" + hashlib.sha256(before).digest():
            raise ValueError("a difference from another body")
        return patch(before, body[40:])
    return gzip.decompress(body) if coding == "gzip" else body


def ask(method, path, body=None, headers=None, timeout_s=15, before=None):
    """Status, headers and text of an answer; OSError when there is none, or not all of it, or it cannot be decoded."""
    try:
        request = urllib.request.Request(BASE + path, method=method, data=body, headers={
            "Authorization": f"Bearer {KEY}", "Content-Type": "application/json", **(headers or {})})
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return answer.status, answer.headers, decoded(answer, before).decode()
    except urllib.error.HTTPError as error:  # 304 is one, too
        return error.code, error.headers, decoded(error, before).decode()
    except Exception as error:  # of the network, or of what an answer is made of: there are many
        raise OSError(f"no whole answer from {BASE}: {error!r}") from error


def fail(status, text):
    """Ends the program with the sentence of an error document."""
    try:
        error = json.loads(text)
        sys.exit(f"customer.py: {error['message']} ({status} {error['error']})")
    except (ValueError, KeyError):
        sys.exit(f"customer.py: the server answered {status}: {text}")


def pause_s(fields, otherwise):
    """How long to wait before the next attempt: Retry-After, where the answer has it."""
    return int(fields.get("Retry-After", otherwise)) if fields else otherwise


# ---- odds -------------------------------------------------------------------------------------------------------------------

def prices(event):
    """The best price of each runner. Decimals are kept as their text: they are no floats."""
    for market in event["odds"]:
        for runner in market.get("runners", []):
            back = runner.get("ex", {}).get("availableToBack", [])
            if back and float(back[0]["price"]) > 0:
                yield f"{market['marketName']}: {runner['runnerName']} {back[0]['price']}"


def poll(sport, event, changes):
    """Prints an event's prices, and again whenever they change. Keeps the last body, so that a change comes as the difference."""
    tag, seen, before = None, 0, None
    while seen < changes:
        headers = {"If-None-Match": tag, "Prefer": f"wait={WAIT_S}"} if tag else {}
        headers["Accept-Encoding"] = "gzip, dcz" if patch else "gzip"
        if patch and before is not None:
            headers["Available-Dictionary"] = f":{base64.b64encode(hashlib.sha256(before).digest()).decode()}:"
        try:
            status, fields, text = ask("GET", f"/api/v1/{sport}/events/{event}", None, headers, WAIT_S + 5, before)
        except OSError as error:
            print(f"{error}; the same again", file=sys.stderr, flush=True)
            before = None  # where the difference was damaged, the next answer is whole
            time.sleep(1)
            continue
        tag = fields.get("ETag", tag)
        if status == 200 and text.encode() != before:
            seen, before = seen + 1, text.encode()
            print(*prices(json.loads(text, parse_float=str)), sep="\n", flush=True)
        elif status in (200, 304):  # no change; one that did not wait is not asked for again at once
            time.sleep(0 if "Preference-Applied" in fields else 1)
        elif status == 429 or status >= 500 or "odds_not_found" in text:  # asking again tells the feed that odds are wanted
            print(f"{status} {text}", file=sys.stderr)
            time.sleep(pause_s(fields, 1))
        else:
            fail(status, text)


# ---- the wallet -------------------------------------------------------------------------------------------------------------

def note(**line):
    """Into the journal, and on the disk before this returns."""
    with open(JOURNAL, "a") as journal:
        journal.write(json.dumps(line) + "\n")
        journal.flush()
        os.fsync(journal.fileno())


def unanswered():
    """The bodies that were to be sent and have no answer yet, in their order."""
    waiting = {}
    if os.path.exists(JOURNAL):
        with open(JOURNAL) as journal:
            for text in journal:
                if not text.endswith("\n"):
                    break  # a kill in the middle of the line: it was not sent
                line = json.loads(text)
                if "send" in line:
                    waiting[line["id"]] = line["send"]
                else:
                    waiting.pop(line["id"], None)
    return waiting


def mend_journal():
    """Cuts off what a kill left of a line, so that the next one begins a line."""
    if os.path.exists(JOURNAL):
        with open(JOURNAL, "rb+") as journal:
            journal.truncate(journal.read().rfind(b"\n") + 1)


def settle(transaction, body, first=False):
    """Sends the same bytes under the same id until there is an answer, which is kept: whether it was applied. first: nobody has sent
    them yet."""
    growing_s = 0.1
    while True:
        try:
            status, fields, text = ask("POST", "/api/v1/casino/wallet", body.encode())
        except OSError as error:
            status, fields, text = 0, None, str(error)
        if status in (200, 409, 422) or DECIDES.search(text) or first and '"player_not_found"' in text:
            note(id=transaction, status=status, answer=text)
            print(status, text, flush=True)
            return status == 200
        if 400 <= status < 500 and status not in (408, 429):
            fail(status, text)  # of the key, the address or the HTTP: the operation stays in the journal, applied before or not
        first = False
        print(f"no answer yet ({status} {text}); the same again", file=sys.stderr, flush=True)
        time.sleep(pause_s(fields, growing_s))
        growing_s = min(2 * growing_s, 10)


# A command's operation, and what it takes. A stake names its game and round, and so does its win, which also names the
# stake's transaction_id. A DEBIT that names neither game nor round is money out: a blocked player's is not refused.
MONEY = ("player_id", "amount_minor", "currency")
PLAY = (*MONEY, "game_id", "round_id")
MOVES = {"deposit": ("CREDIT", MONEY), "withdraw": ("DEBIT", MONEY), "bet": ("DEBIT", PLAY),
         "win": ("CREDIT", (*PLAY, "reference_transaction_id"))}


def move(command, arguments):
    operation, names = MOVES[command]
    fields = dict(zip(names, arguments))
    fields["amount_minor"] = int(fields["amount_minor"])  # main has looked at its digits
    transaction = str(uuid.uuid4())
    body = json.dumps({"operation": operation, "transaction_id": transaction, **fields})
    note(id=transaction, send=body)
    return settle(transaction, body, first=True)


TAKES = {"poll": 3, "launch": 3, "settle": 0, **{command: len(names) for command, (_, names) in MOVES.items()}}
DIGITS = re.compile("[0-9]{1,13}")  # the wallet takes amounts to 10^12


def main(command="", *arguments):
    numbers = arguments[2:3] if command == "poll" else arguments[1:2] if command in MOVES else ()
    if len(arguments) != TAKES.get(command) or not all(map(DIGITS.fullmatch, numbers)):
        print("customer.py poll SPORT EVENT CHANGES | launch GAME REFERENCE CURRENCY | "
              "deposit|withdraw PLAYER AMOUNT_MINOR CURRENCY | bet PLAYER AMOUNT_MINOR CURRENCY GAME ROUND | "
              "win PLAYER AMOUNT_MINOR CURRENCY GAME ROUND BET | settle; an amount is in digits: 250 is 2.50 EUR", file=sys.stderr)
        sys.exit(2)
    if command == "poll":
        return poll(arguments[0], arguments[1], int(arguments[2]))
    if command == "launch":
        game, reference, currency = arguments
        body = json.dumps({"mode": "real", "player_reference": reference, "currency": currency})
        status, _, text = ask("POST", f"/api/v1/casino/games/{game}/launch", body.encode())
        return print(text) if status == 200 else fail(status, text)
    mend_journal()
    applied = [settle(transaction, body) for transaction, body in unanswered().items()]  # first what was left open
    if command != "settle":
        applied.append(move(command, arguments))
    sys.exit(0 if all(applied) else 1)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except OSError as error:  # of a launch, or of the journal
        sys.exit(f"customer.py: {error}")
