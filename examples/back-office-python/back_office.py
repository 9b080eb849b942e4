#!/usr/bin/env python3
"""A back office in one file: adds a customer, issues a key and reads its usage by the admin API. README.md shows how to
run it."""

import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

CONSOLE = os.environ.get("CONSOLE", "http://127.0.0.1:9090")
TOKEN = os.environ.get("TOKEN") or sys.exit("back_office.py: set TOKEN to a token of croupier operator token add")


def call(method, path, document=None):
    """What the API answers; exits with its sentence when it refuses."""
    body = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(f"{CONSOLE}/admin/v1/{path}", data=body, method=method, headers={
        "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        error = json.load(refused)["error"]
        sys.exit(f"back_office.py: {refused.code} {error['code']}: {error['message']}")
    except OSError as error:
        sys.exit(f"back_office.py: {error}")


def customers(words):
    """All customers with these words in a text, page by page."""
    cursor = ""
    while cursor is not None:
        page = call("GET", "customers?" + urllib.parse.urlencode({"q": words, "limit": 200, **({"cursor": cursor} if cursor else {})}))
        yield from page["items"]
        cursor = page["next"]


def add(name, cidr):
    """Adds a customer unless there is one of that name, so that it may be run again, and issues a key."""
    customer = next((one for one in customers(name) if one["name"] == name), None)
    if customer is None:
        customer = call("POST", "customers", {"name": name, "cidrs": [cidr]})
    key = call("POST", "keys", {"customer": customer["id"], "expires_at": "365d"})
    print(customer["id"], key["key"])


def usage(customer):
    print(json.dumps(call("GET", "usage?" + urllib.parse.urlencode({"customer": customer}))))


COMMANDS = {"add": (add, 2), "usage": (usage, 1)}

if __name__ == "__main__":
    run, count = COMMANDS.get(sys.argv[1] if len(sys.argv) > 1 else "", (None, 0))
    if run is None or len(sys.argv) != 2 + count:
        print("usage: back_office.py add NAME CIDR | usage CUSTOMER", file=sys.stderr)
        sys.exit(2)
    run(*sys.argv[2:])
