#!/usr/bin/env python3
"""A provider of games in one file: believes a launch's token only when its signature, audience and time are good, and moves the
player's money by signed calls. README.md shows how to run it."""

import base64
import hashlib
import hmac
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

WALLET = os.environ.get("WALLET", "http://127.0.0.1:8090/provider/v1/wallet")
PROVIDER = os.environ.get("PROVIDER") or sys.exit("provider.py: set PROVIDER to the id that the operator gave you")
NOT_OFFERED = os.environ.get("NOT_OFFERED", "").split()  # countries where this provider may not offer its games: "US GB"
SECRET = (os.environ.get("SECRET") or sys.exit("provider.py: set SECRET to the secret of that provider")).encode()
# The errors beside 409 and 422 that decide: this operation was not applied, in an earlier attempt either.
DECIDES = ("player_blocked", "player_not_found", "game_not_found", "reference_not_found", "invalid_request", "unknown_field")


def part(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def verify(token):
    """The claims of a token that is to be believed; ValueError for any other."""
    try:
        header, claims, signature = token.split(".")
        algorithm = json.loads(part(header))["alg"]
        expected = hmac.new(SECRET, f"{header}.{claims}".encode(), hashlib.sha256).digest()
        good = hmac.compare_digest(expected, part(signature)) and algorithm == "HS256"
        claims = json.loads(part(claims)) if good else {}
        good = good and claims["aud"] == PROVIDER and claims["exp"] > time.time()
    except (KeyError, TypeError, UnicodeError, ValueError) as error:
        raise ValueError("the token is malformed") from error
    if not good:
        raise ValueError("the token is not good")
    return claims


def ask(request):
    """Status, text and Retry-After of an answer."""
    try:
        with urllib.request.urlopen(request, timeout=15) as answer:
            return answer.status, answer.read(), 0
    except urllib.error.HTTPError as error:
        return error.code, error.read(), int(error.headers.get("Retry-After", 0))


def move(claims, operation, amount_minor, round_id, **more):
    """One operation, sent with the same id until it is decided. Each attempt is signed as of its own time."""
    transaction = str(uuid.uuid4())
    body = json.dumps({"operation": operation, "player_id": claims["sub"], "transaction_id": transaction,
                       "amount_minor": amount_minor, "currency": claims["currency"], "game_id": claims["game"],
                       "launch_id": claims["jti"], "round_id": round_id, **more}).encode()
    pause_s = 0.1
    while True:
        timestamp = str(int(time.time()))
        signature = hmac.new(SECRET, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        request = urllib.request.Request(WALLET, data=body, headers={
            "Content-Type": "application/json", "X-Croupier-Provider": PROVIDER, "X-Croupier-Timestamp": timestamp,
            "X-Croupier-Signature": f"v1={signature}"})
        status, asked_s = 0, 0
        try:
            status, text, asked_s = ask(request)
            came = f"{status} {text.decode(errors='replace')}"
            answer = json.loads(text)
            if status in (200, 409, 422) or answer.get("error") in DECIDES:
                return answer
        except (OSError, http.client.HTTPException, AttributeError, ValueError) as error:
            came = came if status else error  # no answer, or not all of it, or not the wallet's
        if 400 <= status < 500 and status not in (408, 429):  # of the signature, the address or the HTTP
            sys.exit(f"provider.py: {came}; the outcome of the {operation} {transaction} is open. "
                     f"Mend the cause, then send the same again: {body.decode()}")
        print(f"provider.py: no answer of {WALLET} yet ({came}); the same again", file=sys.stderr, flush=True)
        time.sleep(max(pause_s, asked_s))
        pause_s = min(2 * pause_s, 10)


def applied(answer):
    print(json.dumps(answer), flush=True)
    if answer.get("status") != "applied":
        sys.exit(f"provider.py: {answer.get('message')} ({answer.get('error')})")
    return answer


def main(token, stake_minor, win_minor):
    claims = verify(token)
    if claims.get("country") in NOT_OFFERED:
        sys.exit(f"provider.py: the game is not offered in {claims['country']}")
    round_id = str(uuid.uuid4())
    bet = applied(move(claims, "DEBIT", int(stake_minor), round_id))
    applied(move(claims, "CREDIT", int(win_minor), round_id, reference_transaction_id=bet["transaction_id"], round_ended=True))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("provider.py TOKEN STAKE_MINOR WIN_MINOR")
    try:
        main(*sys.argv[1:])
    except ValueError as error:
        sys.exit(f"provider.py: {error}")
