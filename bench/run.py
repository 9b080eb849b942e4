#!/usr/bin/python3
"""Measures croupier against a bare epoll loop, nginx and what a team would otherwise write, all in one run.

    make bench                 everything, five interleaved rounds (about half an hour)
    make bench ARGUMENTS='--only ledger --only flat --only wallet'      the casino
    make bench ARGUMENTS='--only redis --only visible --only peers --only wallet_postgres'
                               on Redis and PostgreSQL (grown.py), which it starts itself
    bench/run.py --only answers --rounds 3 --seconds 2
    bench/run.py --only cores --seconds 2              by threads (cores.py)
    bench/run.py --only differences --clients 1000     an hour of the feed's time, twice
    bench/run.py --only edge                           HTTP/2 through HAProxy (edge.py)
    bench/run.py --only flat --entries 10000000                         takes gigabytes, and an hour

Servers run on one core, wrk on another. What is compared of the polled answers is the CPU time that a
server's process used (schedstat: user and system) divided by the requests that wrk counted, because that
is what a machine is bought for, and because it does not depend on how fast wrk is. Of the casino it is
durable operations a second, because there the disk counts. Rounds are interleaved (every server in turn,
again and again), and medians are compared, because these machines are noisy.

Writes bench/out/results.md and results.json; bench/RESULTS.md holds the recorded figures.
"""

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import platform
import re
import resource
import secrets
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zlib

from account import Account
from console import Console
from cores import Cores
from differences import Differences
from edge import Edge
from grown import Grown, keep_servers_on
from harness import (BareLoop, Croupier, HERE, LOAD_CORE, NO_LIMITS, Nginx, SERVER_CORE, SIZES, Server, cost, event_row, interleaved, markets_of_size, ratio_rows,
                     raw_response, rss_bytes, status_of, wrk)
from tails import Tails
from waiting import Waiting

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PARTS = ["answers", "events", "customers", "idle", "publishing", "stream", "recording", "waiting", "crowd", "differences", "edge", "interest", "console", "account", "ledger", "bare", "flat", "wallet", "tails", "cores", "redis",
         "visible", "peers", "wallet_bare", "wallet_postgres", "bare_postgres", "wallet_older"]
SLOW_DISK_US = 2000  # of an fsync, where the disk of this machine is faster than most


# ---- the measurements -------------------------------------------------------------------------------

class Bench(Grown, Waiting, Differences, Edge, Console, Account, Cores, Tails):
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.results = []

    def say(self, title, rows, note=""):
        self.results.append({"title": title, "rows": rows, "note": note})
        print(f"\n### {title}\n{note}")
        for row in rows:
            print("  " + "  ".join(f"{key}={value}" for key, value in row.items()), flush=True)

    def answers(self):
        """One event's answer against the bare loop and nginx."""
        croupier = Croupier(self.options.croupier, self.directory)
        servers = [croupier]
        try:
            _, key = croupier.customer()
            events = {34000001 + i: size for i, size in enumerate(SIZES.values())}
            croupier.publish([event_row(event) for event in events],
                             {event: markets_of_size(size) for event, size in events.items()})
            bodies = {}
            for event in events:
                path = f"/api/v1/cricket/events/{event}"
                bodies[f"{event}.json"] = raw_response(
                    croupier.port, path, [f"X-Api-Key: {key}"]).partition(b"\r\n\r\n")[2]
            nginx = Nginx(self.directory, bodies)
            servers.append(nginx)
            for (label, _), event in zip(SIZES.items(), events):
                path = f"/api/v1/cricket/events/{event}"
                auth = [f"Authorization: Bearer {key}"]
                zipped = auth + ["Accept-Encoding: gzip"]
                whole = raw_response(croupier.port, path, auth)
                packed = raw_response(croupier.port, path, zipped)
                assert b"Content-Encoding: gzip" in packed.partition(b"\r\n\r\n")[0], packed[:400]
                etag = re.search(rb"(?i)\r\netag: (\S+)", whole).group(1).decode()
                bare = BareLoop(self.options.bare_loop, whole, self.directory)
                servers.append(bare)
                found = interleaved({
                    "bare loop": (bare, path, auth),
                    "croupier": (croupier, path, auth),
                    "croupier gzip": (croupier, path, zipped),
                    "croupier 304": (croupier, path, auth + [f"If-None-Match: {etag}"]),
                    "nginx file": (nginx, f"/{event}.json", auth),
                }, self.options.rounds, self.options.seconds)
                self.say(f"Single event, {label}", ratio_rows(found, "bare loop"),
                         f"answer {len(whole)} bytes with its head, gzip {len(packed)} bytes; "
                         "key, CIDR, rate limit and access log on; CPU a request")
                bare.stop()
        finally:
            for server in servers:
                server.stop()

    def stream(self):
        """`croupier feed stream` beside polling at full speed, against bare LMDB and pipelined SETs of redis-benchmark."""
        size, events, publications = 1000, 2000, 200000
        lines = self.directory / "stream.ndjson"
        with open(lines, "w") as file:
            file.write(json.dumps({"catalog": "cricket", "document": [event_row(1 + i) for i in range(events)]}) + "\n")
            for i in range(publications):
                document = json.dumps([{"turn": i, "filling": "x" * (size - 40)}], separators=(",", ":"))
                file.write(f'{{"odds":"cricket","event":{i % events + 1},"document":{document}}}\n')
        with contextlib.ExitStack() as stack:
            redis = stack.enter_context(self.on_redis())
            servers, uri = {}, redis.tcp_uri()
            for name, store in {"embedded": None, "Redis": uri}.items():
                servers[name] = Croupier(self.options.croupier, self.directory, name=f"stream to {name}", odds=store)
                stack.callback(servers[name].stop)
                _, servers[name].key = servers[name].customer()
                self.feed_lines(servers[name], lines)
            found = {case: [] for case in ("bare LMDB, 1,024 a transaction", "feed stream, embedded", "redis-benchmark",
                                           "redis-benchmark, TCP, watched keys", "feed stream, Redis")}
            for number in range(self.options.rounds):
                bare = self.directory / f"bare-{number}"
                bare.mkdir()
                with self.polling(servers["embedded"]):
                    done = self.on_load_core(self.options.bare_lmdb, bare, publications, size, 1024, events)
                    found["bare LMDB, 1,024 a transaction"].append(json.loads(done)["per_second"])
                    found["feed stream, embedded"].append(publications / self.feed_lines(servers["embedded"], lines))
                with self.polling(servers["Redis"]):
                    for case, where in {
                            "redis-benchmark": ("-s", redis.socket, "-t", "set", "-d", size),
                            "redis-benchmark, TCP, watched keys": (
                                "-p", redis.port, "--dbnum", uri.rpartition("/")[2], "set", "odds:cricket:__rand_int__", "x" * size)}.items():
                        done = self.on_load_core("redis-benchmark", "-P", 256, "-c", 1, "-r", events, "-n", publications, "--csv", *where)
                        found[case].append(float(done.splitlines()[-1].split(",")[1].strip('"')))
                    found["feed stream, Redis"].append(publications / self.feed_lines(servers["Redis"], lines))
        medians = {case: statistics.median(rates) for case, rates in found.items()}
        peers = {"feed stream, embedded": "bare LMDB, 1,024 a transaction", "feed stream, Redis": "redis-benchmark",
                 "redis-benchmark, TCP, watched keys": "redis-benchmark"}
        self.say("A stream of publications", [
            {"case": case, "a_second": round(medians[case]),
             "of_its_peer": round(medians[case] / medians[peers[case]], 2) if case in peers else 1.0,
             "spread": f"{min(rates):.0f} to {max(rates):.0f}"} for case, rates in found.items()],
            f"{publications} publications of {size} bytes over {events} events, durable, the feed on one core, the server "
            "and wrk, which polls one of the events at full speed meanwhile, on the other. redis-benchmark repeats one prepared buffer "
            "over a Unix socket; with watched keys it sets what the feed sets over TCP, and Redis reports each to the server")

    def recording(self):
        """`croupier feed stream` at 10,000 publications of 1 KB a second, with and without --record."""
        a_second, together, events, turns = 10000, 100, 2000, 20
        shape = markets_of_size(1000)
        lines = []
        for number in range(turns * events):  # prices that move, as a feed's do
            document = re.sub(r"\d\.\d+", lambda price: f"{float(price.group()) + number * 7919 % 997 / 100:.2f}", json.dumps(shape, separators=(",", ":")))
            lines.append(f'{{"odds":"cricket","event":{number % events + 1},"document":{document}}}\n'.encode())
        chunks = [b"".join(lines[at:at + together]) for at in range(0, len(lines), together)]
        found = {"without": [], "recorded": []}
        for number in range(self.options.rounds):
            for case, results in found.items():
                results.append(self.feed_at_a_rate(f"{case}-{number}", chunks, a_second / together, case == "recorded"))
        medians = {case: [statistics.median(values) for values in zip(*results)] for case, results in found.items()}
        self.say("Recording a feed", [
            {"case": case, "publications_a_second": round(rate * together), "us_of_the_publishing_thread": round(thread / together, 2),
             "us_of_the_process": round(process / together, 2), "of_the_thread": round(thread / medians["without"][1], 3),
             "of_the_process": round(process / medians["without"][2], 3)} for case, (rate, thread, process) in medians.items()],
            f"lines of {len(lines[0])} bytes over {events} events into the embedded store, {together} at a time; CPU a publication")

    def feed_at_a_rate(self, name, chunks, a_second, recorded):
        """Chunks a second, and the microseconds of CPU a chunk that the publishing thread and the whole process used."""
        directory = self.directory / f"recording-{name}"
        directory.mkdir()
        (directory / "conf").write_text(f"[odds]\nstore = embedded:{directory}/odds\n")
        feed = Server(name, [self.options.croupier, "feed", "stream", "-c", directory / "conf", *(["--record", directory / "record"] if recorded else [])],
                      stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

        def used():
            return int(pathlib.Path(f"/proc/{feed.pid}/task/{feed.pid}/schedstat").read_text().split()[0]), feed.cpu_ns()

        def send(count, begun):
            for number in range(count):
                time.sleep(max(0, begun + number / a_second - time.monotonic()))
                feed.process.stdin.write(chunks[number % len(chunks)])
                feed.process.stdin.flush()

        send(int(a_second), time.monotonic())  # the store and its files are made
        before, begun, count = used(), time.monotonic(), int(a_second * self.options.seconds)
        send(count, begun)
        took = time.monotonic() - begun
        time.sleep(1)  # what is recorded once a second
        after = used()
        feed.process.stdin.close()
        assert feed.process.wait(60) == 0
        shutil.rmtree(directory)
        return count / took, *((now - then) / 1000 / count for now, then in zip(after, before))

    def on_load_core(self, *command, **options):
        done = subprocess.run(["taskset", "-c", str(LOAD_CORE), *map(str, command)], stdout=subprocess.PIPE, check=True, **options)
        return done.stdout.decode()

    def feed_lines(self, server, lines):
        """How many seconds `feed stream` takes; every line must be published."""
        began = time.monotonic()
        with open(lines) as file:
            answers = self.on_load_core(self.options.croupier, "feed", "stream", "-c", server.config, stdin=file)
        took = time.monotonic() - began
        assert answers.count('"published": true') == answers.count("\n")
        return took

    @contextlib.contextmanager
    def polling(self, server):
        """wrk polls an event at full speed, on the server's core."""
        wrk = subprocess.Popen(["taskset", "-c", str(SERVER_CORE), "wrk", "-t1", "-c16", "-d120s", "-H",
                                f"Authorization: Bearer {server.key}", f"http://127.0.0.1:{server.port}/api/v1/cricket/events/7"],
                               stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            wrk.kill()
            wrk.wait()

    # ---- the casino

    def drive(self, store, *arguments, sync=None, program=None):
        """Runs bench/ledger on a store; returns what it measured. sync: see bench/sync.h."""
        done = subprocess.run([program or self.options.ledger, store, *map(str, arguments)],
                              env=with_sync(sync), stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout) if done.stdout else None

    def ledger(self):
        """The ledger alone: durable operations a second, by batch, with fsync and without."""
        store = f"sqlite:{self.directory}/ledger.db"
        self.drive(store, "--entries", 10000, sync="off")
        # As many operations as take a second or so, whatever the batch.
        operations = {1: 300, 16: 4000, 64: 12000, 256: 30000}
        cases = {(batch, sync): [] for sync in (None, "off", SLOW_DISK_US) for batch in operations}
        for number in range(self.options.rounds):
            for (batch, sync), found in cases.items():
                found.append(self.drive(
                    store, "--batch", batch, "--warm-up", 4 * batch, "--operations",
                    operations[batch] * (10 if batch == 1 and sync != SLOW_DISK_US else 1), sync=sync))
            print(f"  round {number + 1} of {self.options.rounds}", file=sys.stderr, flush=True)
        rates = {case: statistics.median(row["per_second"] for row in found)
                 for case, found in cases.items()}
        rows = []
        for (batch, sync), found in cases.items():
            rows.append({
                "batch": batch, "fsync": {None: "on", "off": "off"}.get(sync, f"{SLOW_DISK_US} us"),
                "a_second": round(rates[batch, sync]),
                "of_batch_1": round(rates[batch, sync] / rates[1, sync], 1),
                "of_fsync_off": round(rates[batch, sync] / rates[batch, "off"], 3),
                **{name: round(statistics.median(row[name] for row in found), 3)
                   for name in ("commit_ms", "sync_ms", "syncs_a_commit", "cpu_us", "p99_ms")},
                "spread": f"{min(row['per_second'] for row in found):.0f} to "
                          f"{max(row['per_second'] for row in found):.0f}"})
        self.say("The ledger alone", rows,
                 "queue, batch, commit, answer, without HTTP; SQLite, synchronous=FULL; 1,000 players, bets "
                 "and wins that refer to them, ids of 32 random digits; the next batch is always waiting. "
                 "commit_ms is to write and commit a batch, sync_ms what of it was fsync, cpu_us an "
                 "operation's CPU time in the whole process, p99_ms from submission to answer, which is about "
                 "two batches. fsync off: the calls do nothing, in the bench's program only; a number: they sync and "
                 "then wait until that time is over, as a slower disk would")
        self.audit(store)

    def bare(self):
        """CPU of an operation in batches of 256 against the least that SQLite can do, and against an older build."""
        programs = {"bare transaction": self.options.bare_ledger, "this build": self.options.ledger}
        if self.options.older_ledger:
            programs["older build"] = self.options.older_ledger
        samples = {name: [] for name in programs}
        for number in range(self.options.rounds):
            for name, program in programs.items():
                path = self.directory / f"{name.replace(' ', '-')}-{number}.db"
                uri = str(path) if name == "bare transaction" else f"sqlite:{path}"
                more = [] if name == "bare transaction" else ["--warm-up", "5000"]
                done = subprocess.run([program, uri, "--batch", "256", "--operations", "100000", *more],
                                      stdout=subprocess.PIPE, check=True)
                samples[name].append(json.loads(done.stdout)["cpu_us"])
                for file in self.directory.glob(path.name + "*"):
                    shutil.rmtree(file) if file.is_dir() else file.unlink()
            print(f"  round {number + 1} of {self.options.rounds}", file=sys.stderr, flush=True)
        medians = {name: statistics.median(found) for name, found in samples.items()}
        self.say("The ledger against a bare transaction", [
            {"program": name, "cpu_us": medians[name], "of_bare": round(medians[name] / medians["bare transaction"], 2),
             "of_older": round(medians[name] / medians["older build"], 2) if "older build" in medians else None,
             "spread": f"{min(found):.2f} to {max(found):.2f}"} for name, found in samples.items()],
            "CPU an operation of the whole process, batches of 256, synchronous=FULL, 1,000 players, fsync on; bare: one row an "
            "operation and the accounts, nothing else (bench/bare_ledger.c); an older build is another commit's bench/ledger, "
            "named by --older-ledger")

    def flat(self):
        """Cost of an operation from 10^3 entries on."""
        sizes, files = [], {}
        size = 1000
        while size <= self.options.entries:
            sizes.append(size)
            size *= 10
        for at, size in enumerate(sizes):
            files[size] = (self.options.ledgers or self.directory) / f"entries-{size}.db"
            if not files[size].exists():
                if at > 0:
                    shutil.copy(files[sizes[at - 1]], files[size])
                self.drive(f"sqlite:{files[size]}", "--entries", size, sync="off")
                print(f"  made {size} entries", file=sys.stderr, flush=True)
        samples = {(size, batch): [] for batch in (1, 256) for size in sizes}
        for number in range(self.options.rounds):
            for (size, batch), found in samples.items():
                file = files[size]
                if size <= 10000:  # a sample would make it grow by much
                    file = self.directory / f"sample-{number}-{size}-{batch}.db"  # a new name: what is beside a ledger belongs to it
                    shutil.copy(files[size], file)
                # A server that runs has in its page cache what it needs often; of a small ledger that is all.
                warm_up = 4 * batch if size <= 10000 else 20000
                found.append(self.drive(f"sqlite:{file}", "--batch", batch, "--warm-up", warm_up,
                                        "--operations", 200 if batch == 1 else 20 * batch))
            print(f"  round {number + 1} of {self.options.rounds}", file=sys.stderr, flush=True)
        rows = []
        for (size, batch), found in samples.items():
            medians = {name: statistics.median(row[name] for row in found)
                       for name in ("operation_us", "cpu_us", "sync_ms")}
            base = statistics.median(row["operation_us"] for row in samples[1000, batch])
            base_cpu = statistics.median(row["cpu_us"] for row in samples[1000, batch])
            rows.append({"batch": batch, "entries": size, "microseconds": round(medians["operation_us"], 2),
                         "ratio": round(medians["operation_us"] / base, 3),
                         "cpu_us": round(medians["cpu_us"], 2),
                         "cpu_ratio": round(medians["cpu_us"] / base_cpu, 3),
                         "sync_ms": round(medians["sync_ms"], 2),
                         "spread": f"{min(row['operation_us'] for row in found):.2f} to "
                                   f"{max(row['operation_us'] for row in found):.2f}"})
        self.say("Flat in the number of entries", rows,
                 "the ledger alone as above; time and CPU an operation, ratios to 1,000 entries")
        self.reading(files[sizes[-1]], sizes[-1])

    def audit(self, store):
        """What the bench wrote is a sound ledger, or nothing above counts."""
        path = self.directory / "audit.conf"
        path.write_text(f"[platform]\nstore = {store}\n")
        subprocess.run([self.options.croupier, "wallet", "verify", "-c", str(path)],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    def reading(self, file, size):
        """Memory and time of what reads the whole ledger."""
        config = self.directory / "reading.conf"
        config.write_text(f"[platform]\nstore = sqlite:{file}\n")
        with sqlite3.connect(file) as database:
            player = database.execute("SELECT id FROM player LIMIT 1").fetchone()[0]
        today = time.strftime("%Y-%m-%d", time.gmtime())
        rows = []
        for words in (["verify"], ["export"], ["export", "--day", today], ["export", "--day", "2001-01-01"],
                      ["statement", player]):
            started = time.monotonic()
            process = subprocess.Popen([self.options.croupier, "wallet", *words, "-c", str(config)],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                raise RuntimeError(f"wallet {words}: {process.returncode}")
            rows.append({"command": "wallet " + " ".join(words).replace(player, "PLAYER"),
                         "seconds": round(time.monotonic() - started, 2),
                         "peak_mb": round(usage.ru_maxrss / 1024, 1)})
        self.say(f"Reading {size:,} entries", rows, "time, and the most memory that the command ever had")

    def casino_server(self, name, settings="", sync=None, build=None, **of_server):
        """A server with 1,000 players that have money. build: the directory of another one than this."""
        def prepare(server):
            store = f"sqlite:{server.directory}/platform.db"
            self.drive(store, "--entries", 10000, sync="off", program=build and build / "bench/ledger")
            with sqlite3.connect(server.directory / "platform.db") as database:
                customer = database.execute("SELECT id FROM customer").fetchone()[0]
                players = [row[0] for row in database.execute("SELECT id FROM player")]
            server.key = server.open_casino(customer)
            server.players = server.directory / "players"
            server.players.write_text("\n".join(players) + "\n")

        return Croupier(build / "croupier" if build else self.options.croupier, self.directory, name=name, prepare=prepare,
                        settings=settings, preload=self.options.sync if sync else None, env=with_sync(sync),
                        limits="" if build else NO_LIMITS, **of_server)

    def play(self, server, clients, *operation, seconds=None):
        """One round of the wallet; also how long a commit took meanwhile."""
        before = server.commits()
        done = wrk(server.port, "/api/v1/casino/wallet", seconds or self.options.seconds,
                   [f"Authorization: Bearer {server.key}"], connections=clients,
                   script=HERE / "wallet.lua", latency=True,
                   arguments=[server.players, secrets.randbits(31), *operation])
        count, seconds = (now - then for now, then in zip(server.commits(), before))
        done["commit"] = seconds / count if count else 0
        return done

    def wallet(self):
        """The wallet over HTTP: 1 to 256 clients; each operation its own commit; balances meanwhile."""
        self.wallet_on("this disk", None)
        self.wallet_on(f"a disk that takes {SLOW_DISK_US} us to sync", SLOW_DISK_US)

    def wallet_bare(self):
        """CPU of the wallet's operation over HTTP against the least: a bare loop's request and a bare transaction."""
        clients, server = 256, self.casino_server("wallet bare")
        servers, found = [server], {name: [] for name in ("bare loop", "bare transaction", "croupier")}
        path, headers = "/api/v1/casino/wallet", [f"Authorization: Bearer {server.key}"]
        try:
            player = server.players.read_text().split()[0]
            body = json.dumps({"operation": "DEBIT", "player_id": player, "transaction_id": "bare-1", "amount_minor": 100, "currency": "EUR",
                               "round_id": "r-1"})
            bare = BareLoop(self.options.bare_loop, raw_response(server.port, path, headers, body), self.directory)
            servers.append(bare)
            for number in range(self.options.rounds):
                for name, one in (("croupier", server), ("bare loop", bare)):
                    found[name].append(cost(one, path, self.options.seconds, headers, connections=clients, script=HERE / "wallet.lua",
                                            arguments=[server.players, secrets.randbits(31)]))
                done = self.on_load_core(self.options.bare_ledger, self.directory / f"bare-{number}.db", "--batch", "256",
                                           "--operations", "100000")
                found["bare transaction"].append(json.loads(done)["cpu_us"])
        finally:
            for one in servers:
                one.stop()
        medians = {name: statistics.median(costs) for name, costs in found.items()}
        least = medians["bare loop"] + medians["bare transaction"]
        self.say("The wallet over HTTP against a bare request and a bare transaction", [
            {"case": name, "cpu_us": round(value, 2), "of_both": round(value / least, 2)} for name, value in medians.items()],
            f"{clients} clients, SQLite; bets and wins of 1,000 players; the bare loop gives the wallet's answer to the same requests")

    def wallet_on(self, disk, sync):
        together = self.casino_server(f"wallet {sync}", sync=sync)
        alone = self.casino_server(f"wallet {sync} alone", "[casino]\nbatch_max = 1", sync=sync)
        cases = {("together", clients): [] for clients in (1, 16, 64, 256)} | {("alone", 256): []}
        balances = {"quiet": [], "beside": []}
        try:
            for number in range(self.options.rounds):
                for (kind, clients), found in cases.items():
                    found.append(self.play(together if kind == "together" else alone, clients))
                balances["quiet"].append(self.balances(together, self.options.seconds))
                load = threading.Thread(target=self.play, args=(together, 64))
                load.start()
                time.sleep(0.2)
                # Shorter than the load beside it, so that it is never without.
                balances["beside"].append(self.balances(together, max(1, self.options.seconds - 1)))
                load.join()
                print(f"  round {number + 1} of {self.options.rounds}", file=sys.stderr, flush=True)
        finally:
            together.stop()
            alone.stop()
        median = {case: {name: statistics.median(row[name] for row in found)
                         for name in ("rate", "p50", "p99", "commit")} for case, found in cases.items()}
        self.say(f"The wallet over HTTP, {disk}", [{
            "commits": kind, "clients": clients, "a_second": round(row["rate"]),
            "of_alone": round(row["rate"] / median["alone", 256]["rate"], 2),
            "commit_ms": round(row["commit"] * 1000, 2),
            "p50_ms": round(row["p50"] * 1000, 2), "p99_ms": round(row["p99"] * 1000, 2),
            "p99_in_commits": round(row["p99"] / row["commit"], 2)}
            for (kind, clients), row in median.items()],
            "bets and wins of 1,000 players; alone: the same server with [casino] batch_max = 1; commit_ms is "
            "what the server says in croupier_ledger_commit_seconds")
        self.say(f"BALANCE beside 64 clients that write, {disk}", [{
            "balances": name, **{f"{at}_ms": round(statistics.median(row[at] for row in found) * 1000, 3)
                                 for at in ("p50", "p90", "p99")}} for name, found in balances.items()],
            f"one client; a commit takes {median['together', 64]['commit'] * 1000:.2f} ms")
        for server in (together, alone):
            self.audit(f"sqlite:{server.directory}/platform.db")

    def balances(self, server, seconds):
        return wrk(server.port, "/api/v1/casino/wallet", seconds, [f"Authorization: Bearer {server.key}"],
                   connections=1, script=HERE / "wallet.lua", latency=True,
                   arguments=[server.players, 1, "BALANCE"])

    def events(self):
        """10 or 10,000 events in the sport."""
        servers = {}
        try:
            for count in (10, 10000):
                server = Croupier(self.options.croupier, self.directory, name=f"events {count}")
                servers[count] = server
                _, server.key = server.customer()
                server.publish([event_row(34000000 + i) for i in range(count)],
                               {34000005: markets_of_size(300)})
            path = "/api/v1/cricket/events/34000005"
            found = interleaved({f"{count} events": (server, path,
                                                     [f"Authorization: Bearer {server.key}"])
                                 for count, server in servers.items()},
                                self.options.rounds, self.options.seconds)
            self.say("Flat in the number of events", ratio_rows(found, "10 events"),
                     "one event of 0.3 KB polled; CPU a request")
        finally:
            for server in servers.values():
                server.stop()

    def customers(self):
        """1 or 100,000 customers: cost, memory, first load, one change."""
        servers = {}
        try:
            for count in (1, 100000):
                server = Croupier(
                    self.options.croupier, self.directory, name=f"customers {count}",
                    prepare=lambda server, count=count: self.add_customers(server, count))
                servers[count] = server
                server.publish([event_row(34000001)], {34000001: markets_of_size(300)})
            path = "/api/v1/cricket/events/34000001"
            cases = {f"{count} customers": (server, path, [f"Authorization: Bearer {server.key}"])
                     for count, server in servers.items()}
            found = interleaved(cases, self.options.rounds, self.options.seconds)
            self.say("Flat in the number of customers", ratio_rows(found, "1 customers"),
                     "CPU a request")
            small, large = servers[1], servers[100000]
            self.say("100,000 customers", [{
                "memory_mb": round((rss_bytes(large.pid) - rss_bytes(small.pid)) / 1e6, 1),
                "start_seconds_with_1": round(small.start_seconds, 3),
                "start_seconds_with_100000": round(large.start_seconds, 3)}],
                "memory beyond that of a server with one customer; time from exec to listening, "
                "which waits for the first load")
            self.one_change(large, path)
        finally:
            for server in servers.values():
                server.stop()

    def one_change(self, server, path):
        """One customer changes while another polls at full speed."""
        headers = [f"Authorization: Bearer {server.key}"]
        quiet = [wrk(server.port, path, self.options.seconds, headers, latency=True)["p99"]
                 for _ in range(3)]
        seen, stop = [], threading.Event()

        def change():
            state = "disable"
            while not stop.is_set():
                server.run("customer", state, server.other_customer)
                begun = time.monotonic()
                wanted = 403 if state == "disable" else 200
                while status_of(server.port, path, server.other_key) != wanted:
                    time.sleep(0.005)
                seen.append(time.monotonic() - begun)
                state = "enable" if state == "disable" else "disable"
                time.sleep(0.2)

        thread = threading.Thread(target=change)
        thread.start()
        busy = [wrk(server.port, path, self.options.seconds, headers, latency=True)["p99"]
                for _ in range(3)]
        stop.set()
        thread.join()
        self.say("One change among 100,000 customers", [{
            "changes": len(seen), "slowest_seen_ms": round(max(seen) * 1000),
            "p99_quiet_ms": round(statistics.median(quiet) * 1000, 3),
            "p99_changing_ms": round(statistics.median(busy) * 1000, 3),
            "ratio": round(statistics.median(busy) / statistics.median(quiet), 2)}],
            "time from the end of the command until a request sees it; p99 of another customer's polls")

    def add_customers(self, server, count):
        """The first by the command line, the rest as copies of its rows."""
        customer, server.key = server.customer()
        if count == 1:
            return
        with sqlite3.connect(server.directory / "platform.db") as database:
            copy_rows(database, customer, count - 1, server)

    def idle(self):
        """10,000 idle keep-alive connections."""
        count = 10000
        server = Croupier(self.options.croupier, self.directory, name="idle")
        try:
            _, key = server.customer()
            server.publish([event_row(34000001)], {34000001: markets_of_size(300)})
            request = (f"GET /api/v1/cricket/events/34000001 HTTP/1.1\r\nHost: bench\r\n"
                       f"Authorization: Bearer {key}\r\n\r\n").encode()
            status_of(server.port, "/api/v1/cricket/events/34000001", key)
            before = rss_bytes(server.pid)
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            connections = []
            for _ in range(count):
                connection = socket.create_connection(("127.0.0.1", server.port))
                connection.sendall(request)
                assert connection.recv(65536).startswith(b"HTTP/1.1 200")
                connections.append(connection)
            after = rss_bytes(server.pid)
            self.say("10,000 idle keep-alive connections",
                     [{"bytes_each": round((after - before) / count)}],
                     "resident memory, each connection has had one answer")
            for connection in connections:
                connection.close()
        finally:
            server.stop()

    def publishing(self):
        """A 1 MB catalog is published again and again while it is polled."""
        server = Croupier(self.options.croupier, self.directory, name="publishing")
        try:
            _, key = server.customer()
            rows = [{**event_row(34000000 + i), "note": "x" * 120} for i in range(4300)]
            server.publish(rows, {})
            path, headers = "/api/v1/cricket/events", [f"Authorization: Bearer {key}"]
            size = len(raw_response(server.port, path, headers))
            quiet, busy, published = [], [], 0
            for number in range(self.options.rounds):
                quiet.append(wrk(server.port, path, self.options.seconds, headers, latency=True,
                                 connections=16)["p99"])
                stop = threading.Event()
                counts = []

                def publish():
                    turn = 0
                    while not stop.wait(1.0):
                        turn += 1
                        rows[0]["note"] = f"{number} {turn}"
                        server.run("feed", "catalog", "cricket", "-", data=json.dumps(rows).encode())
                        counts.append(1)

                thread = threading.Thread(target=publish)
                thread.start()
                busy.append(wrk(server.port, path, self.options.seconds, headers, latency=True,
                                connections=16)["p99"])
                stop.set()
                thread.join()
                published += len(counts)
                print(f"  round {number + 1} of {self.options.rounds}", file=sys.stderr, flush=True)
            self.say("Publishing a 1 MB catalog under full polling", [{
                "answer_bytes": size, "publications": published,
                "p99_quiet_ms": round(statistics.median(quiet) * 1000, 2),
                "p99_publishing_ms": round(statistics.median(busy) * 1000, 2),
                "ratio": round(statistics.median(busy) / statistics.median(quiet), 2)}],
                "once a second, 16 connections asking for the whole catalog without pause")
        finally:
            server.stop()


def with_sync(sync):
    """The environment for a program of which bench/sync.c is part."""
    return {**os.environ, "CROUPIER_BENCH_SYNC": str(sync)} if sync else None


def make_key():
    """As admission/key.h has it."""
    body = "crk_" + "".join(secrets.choice(BASE62) for _ in range(30))
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return body + digits


def copy_rows(database, customer, count, server):
    """Copies one customer and its key `count` times, each with names and revisions of its own."""
    database.row_factory = sqlite3.Row
    customer_row = dict(database.execute("SELECT * FROM customer WHERE id = ?",
                                         (customer,)).fetchone())
    key_row = dict(database.execute("SELECT * FROM api_key WHERE customer_id = ?",
                                    (customer,)).fetchone())
    revision = database.execute("SELECT revision FROM store_revision").fetchone()[0]
    customers, keys = [], []
    for number in range(count):
        key = make_key()
        server.other_customer, server.other_key = f"cus_{number:016d}", key
        customers.append({**customer_row, "number": None, "id": server.other_customer,
                          "name": f"Customer {number}", "revision": revision + 1 + 2 * number})
        keys.append({**key_row, "number": None, "id": f"key_{number:016d}", "prefix": key[:8],
                     "customer_id": server.other_customer,
                     "digest": hashlib.sha256(key.encode()).digest(),
                     "revision": revision + 2 + 2 * number})
    for table, rows in (("customer", customers), ("api_key", keys)):
        names = ", ".join(f":{name}" for name in rows[0])
        database.executemany(f"INSERT INTO {table} VALUES ({names})", rows)
    database.execute("UPDATE store_revision SET revision = ?", (revision + 2 * count,))



def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}"


def markdown(results):
    """A table each, then its note. The spread of rounds stays in results.json."""
    lines = [f"Machine: {machine()}.", ""]
    for result in results:
        names = [name for name in result["rows"][0] if "spread" not in name]
        lines += [f"### {result['title']}", "", "| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
        lines += ["| " + " | ".join(str(row[name]) for name in names) + " |"
                  for row in result["rows"]]
        lines += ["", result["note"], ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--croupier", default="build/croupier")
    parser.add_argument("--bare-loop", default="build/bench/bare_loop")
    parser.add_argument("--bare-lmdb", default="build/bench/bare_lmdb")
    parser.add_argument("--waiters", default="build/bench/waiters")
    parser.add_argument("--bare-push", default="build/bench/bare_push")
    parser.add_argument("--changes", default="build/bench/changes")
    parser.add_argument("--clients", type=int, default=10000, help="how many wait in `differences` (10000)")
    parser.add_argument("--minutes", type=int, default=60, help="how much time of the feed `differences` takes (60)")
    parser.add_argument("--interest", default="build/bench/interest")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--ledger", default="build/bench/ledger")
    parser.add_argument("--bare-ledger", default="build/bench/bare_ledger")
    parser.add_argument("--bare-postgres", default="build/bench/bare_postgres")
    parser.add_argument("--older-ledger", help="bench/ledger of an older build, to be measured in the same run (bare)")
    parser.add_argument("--older-build", type=pathlib.Path, help="directory of an older build, with bench/ledger in it (wallet_older)")
    parser.add_argument("--sync", default="build/bench/sync.so")
    parser.add_argument("--feed", default="build/bench/feed")
    parser.add_argument("--visible", default="build/bench/visible")
    parser.add_argument("--peers", default="build/bench/peers", help="where what peers need is installed")
    parser.add_argument("--entries", type=int, default=1000000, help="how far `flat` goes, and of what `account` reads (1000000)")
    parser.add_argument("--account-store", action="append", metavar="URI",
                        help="a store with --entries entries that bench/ledger made, for `account`; else it makes them")
    parser.add_argument("--ledgers", type=pathlib.Path,
                        help="where `flat` keeps its ledgers, which take long to make, for the next time")
    parser.add_argument("--only", action="append", choices=PARTS)
    options = parser.parse_args()
    for tool in ("wrk", "nginx", "taskset"):
        if not shutil.which(tool):
            sys.exit(f"bench: {tool} is not installed (make bench installs it)")
    if os.cpu_count() < 2:
        sys.exit("bench: two cores are needed, one for the servers and one for wrk")
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    keep_servers_on(out)
    failed = []
    # On a real disk beside the sources, not in a /tmp that may be memory.
    with tempfile.TemporaryDirectory(dir=out) as directory:
        bench = Bench(options, pathlib.Path(directory))
        for name in options.only or [part for part in PARTS if part != "wallet_older" or options.older_build]:
            print(f"{name}: {getattr(Bench, name).__doc__}", file=sys.stderr, flush=True)
            try:
                getattr(bench, name)()
            except Exception:  # half an hour of other parts is not thrown away for one
                traceback.print_exc()
                failed.append(name)
            (out / "results.json").write_text(json.dumps(bench.results, indent=1))
            (out / "results.md").write_text(markdown(bench.results))
    print(f"\nwritten: {out}/results.md", file=sys.stderr)
    if failed:
        sys.exit("bench: failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
