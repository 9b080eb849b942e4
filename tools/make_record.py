#!/usr/bin/env python3
"""Makes examples/record: half a minute of five sports of the simulator, as `croupier feed stream --record` keeps it.

    CROUPIER_BIN=build/croupier /usr/bin/python3 tools/make_record.py [DIRECTORY [SECONDS]]

The simulator publishes into a Redis of this program's own. What changes there goes to the stream, a line a value, the odds of an event before
the catalog that lists it. Each sport has an event with the id that `croupier demo` has, for the commands of its tour.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from servers import Redis  # noqa: E402

SPORTS = ["cricket", "football", "tennis", "horse-racing", "greyhound-racing"]
BINARY = os.environ.get("CROUPIER_BIN", str(ROOT / "build" / "croupier"))


def settings(directory, name, store):
    path = Path(directory) / name
    path.write_text(f"[odds]\nstore = {store}\n")
    return str(path)


def main(directory=ROOT / "examples" / "record", seconds="30"):
    with Redis() as redis, redis.connect() as connection, tempfile.TemporaryDirectory() as work:
        simulator = subprocess.Popen([BINARY, "feed", "simulate", "--events", "2", "--interval", "5000", "--seed", "34", "-c", settings(work, "from", redis.uri)],
                                     stdout=subprocess.DEVNULL)
        stream = subprocess.Popen([BINARY, "feed", "stream", "--record", str(directory), "-c", settings(work, "to", f"embedded:{work}/odds")],
                                  stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        known, names, end = {}, {}, time.monotonic() + float(seconds)
        while time.monotonic() < end:
            keys = sorted(connection.call("KEYS", "*:*"), key=lambda key: key.startswith(b"catalog:"))
            for key in keys:
                kind, sport, *event = key.decode().split(":")
                if kind == "interest":
                    continue
                value = connection.call("GET", key)
                if kind == "catalog" and sport not in names:  # the last event of the first catalog is the latest to begin
                    names[sport] = str(json.loads(value)[-1]["gmid"]), str(34000001 + SPORTS.index(sport))
                if event:
                    connection.call("ZADD", f"interest:{sport}", int(time.time() * 1000), event[0])
                if value is None or known.get(key) == value or sport not in names:
                    continue
                known[key] = value
                line = {kind: sport, **({"event": event[0]} if event else {})}
                text = json.dumps(line)[:-1].encode() + b', "document": ' + value + b"}\n"
                stream.stdin.write(text.replace(*(name.encode() for name in names[sport])))
            stream.stdin.flush()
            time.sleep(0.2)
        simulator.terminate()
        simulator.wait()
        stream.communicate()
        sys.exit(stream.returncode)


if __name__ == "__main__":
    main(*sys.argv[1:])
