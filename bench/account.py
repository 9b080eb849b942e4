"""What a customer's own reads (/api/v1/account) take on a large ledger, and what polls and bets notice of them.

The server has one core for all its threads, those that read too, so this is the worst case. All entries are of one customer, so a
page of its is not found among others'.
"""

import contextlib
import http.client
import json
import os
import re
import statistics
import sys
import threading
import time

from console import quartiles
from grown import Postgres
from harness import HERE, LOAD_CORE, Croupier, event_row, markets_of_size, raw_response, wrk

READERS = 8
RATE = 5 * READERS, 1  # requests in so many seconds: each reader's share of 300 in 60, in bursts ([account] rate)
ASKED = 21  # times for each question
CUSTOMER = "cus_LedgerBench00000"  # of bench/ledger
CLIENTS = 8  # that poll, and that bet
EVENT = "/api/v1/cricket/events/3400000"  # and a figure: 1 is polled, the others are as large as answers of readers


class Reader:
    """Asks as one customer, over one connection."""

    def __init__(self, server, key):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
        self.headers = {"Authorization": f"Bearer {key}"}

    def get(self, path, allowed):
        self.connection.request("GET", path if path.startswith(EVENT) else f"/api/v1/account{path}", headers=self.headers)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status not in allowed:
            raise RuntimeError(f"{path}: {answer.status} {body}")
        return answer.status, body, answer.getheader("Retry-After")

    def ask(self, path):
        return json.loads(self.get(path, (200,))[1])


class Account:
    """A part of bench/run.py."""

    def account(self):
        """A customer's own reads: what a page takes with --entries entries, and p99 of polls and bets beside eight readers."""
        with contextlib.ExitStack() as stack:
            for name, uri in self.account_ledgers(stack):
                self.account_pages(name, uri)
                self.account_beside(name, uri)

    def account_ledgers(self, stack):
        """Ledgers with --entries entries: those of --account-store, or new ones on both engines."""
        if self.options.account_store:
            return [(uri.partition(":")[0], uri) for uri in self.options.account_store]
        postgres = stack.enter_context(Postgres(durable=True))
        found = [("sqlite", f"sqlite:{self.directory}/account.db"), ("postgresql", postgres.uri_of(postgres.create_database("account")))]
        for _, uri in found:
            self.drive(uri, "--entries", self.options.entries, sync="off")
        return found

    @contextlib.contextmanager
    def account_server(self, name, uri, rate):
        def prepare(server):
            server.key = server.open_casino(CUSTOMER)
            server.account_key = server.run("key", "issue", CUSTOMER, "--only", "account")
            server.run("wallet", "report")  # adds up what no server did while bench/ledger worked

        server = Croupier(self.options.croupier, self.directory, name=name, platform=uri, prepare=prepare,
                          settings=f"[account]\nrate = {rate}\n[casino]\nsecrets_key_file = {self.directory}/secrets.key")
        try:
            yield server
        finally:
            server.stop()

    def account_pages(self, name, uri):
        with self.account_server(f"account {name}", uri, "off") as server:
            reader = Reader(server, server.account_key)
            page = reader.ask("/entries?limit=200")
            entry, day = page["entries"][100], page["entries"][100]["created_at"][:10]
            for _ in range(50):
                page = reader.ask(f"/entries?limit=200&cursor={page['next_cursor']}")
            rows = []
            for path in (f"/transactions?id={entry['transaction_id']}", "/players?reference=player-500", f"/players?player_id={entry['player_id']}",
                         f"/statement?player_id={entry['player_id']}&limit=200", "/entries?limit=200",
                         f"/entries?limit=200&cursor={page['next_cursor']}", f"/days?day={day}", f"/rounds?player_id={entry['player_id']}&limit=200", "/usage"):
                times, before = [], server.cpu_ns()
                for _ in range(ASKED):
                    begun = time.monotonic()
                    reader.ask(path)
                    times.append((time.monotonic() - begun) * 1000)
                times.sort()
                rows.append({"question": re.sub(r"(id|cursor)=[^&]+", r"\1=", path), "ms": round(times[ASKED // 2], 2), "worst_ms": round(times[-1], 2),
                             "cpu_ms": round((server.cpu_ns() - before) / ASKED / 1e6, 2)})
            self.say(f"A customer's own reads, {name}", rows,
                     f"{ASKED} times one after the other, {self.options.entries} entries of one customer and 1,000 players; cpu_ms: of the server's "
                     "process, not of PostgreSQL")

    def account_beside(self, name, uri):
        with self.account_server(f"beside {name}", uri, "/".join(map(str, RATE))) as server:
            reader = Reader(server, server.account_key)
            entries = reader.ask("/entries?limit=200")["entries"]
            players, day = {entry["player_id"]: entry["transaction_id"] for entry in entries}, entries[0]["created_at"][:10]
            asked = [[f"/statement?player_id={player}", f"/transactions?id={transaction}", "/entries?limit=200", f"/days?day={day}"]
                     for player, transaction in players.items()]
            sizes = {34000002 + i: len(reader.get(path, (200, 503))[1]) for i, path in enumerate(asked[0])}
            server.publish([event_row(event) for event in (34000001, *sizes)],
                           {34000001: markets_of_size(2000), **{event: markets_of_size(size) for event, size in sizes.items()}})
            copies = [[EVENT + str(event % 10) for event in sizes]]
            server.players = server.directory / "players"
            server.players.write_text("\n".join(players) + "\n")
            headers = [f"X-Api-Key: {server.customer()[1]}"]
            tag = re.search(rb"(?i)\r\netag: (\S+)", raw_response(server.port, EVENT + "1", headers)).group(1).decode()
            headers.append(f"If-None-Match: {tag}")

            def poll(script=None):
                return wrk(server.port, EVENT + "1", self.options.seconds, headers, connections=CLIENTS, latency=True, script=script)

            cases = {"polls, paced": lambda: poll(HERE / "paced.lua"), "bets, paced": lambda: self.play(server, CLIENTS, "PACED"),
                     "polls": poll, "bets": lambda: self.play(server, CLIENTS)}
            rows = []
            for of, load in cases.items():
                load()
                found, reads = {"alone": [], "beside": [], "beside_copies": [], "alone_again": []}, 0
                for number in range(self.options.rounds):
                    found["alone"].append(load()["p99"])
                    with readers(server, server.account_key, asked) as answered:
                        found["beside"].append(load()["p99"])
                    with readers(server, server.customer()[1], copies):
                        found["beside_copies"].append(load()["p99"])
                    reads += sum(answered)
                    found["alone_again"].append(load()["p99"])
                    print(f"  {of}: round {number + 1} of {self.options.rounds}", file=sys.stderr, flush=True)
                rows.append({"p99_of": of, **{name: quartiles([b / a for a, b in zip(found["alone"], p99)]) for name, p99 in found.items() if name != "alone"},
                             "beside_of_copies": quartiles([a / b for a, b in zip(found["beside"], found["beside_copies"])]),
                             "alone_ms": round(statistics.median(found["alone"]) * 1000, 3), "reads": reads})
            self.say(f"Polls and bets beside {READERS} readers, {name}", rows,
                     f"{CLIENTS} connections that poll (304), or bet; {self.options.rounds} rounds of {self.options.seconds} s in turns; ratios to the "
                     f"time alone before: median and quartiles. The readers ask as fast as they may, {RATE[0]} times in {RATE[1]} s together; copies: "
                     "events of the sizes of their answers, asked for as often, which read no ledger")


@contextlib.contextmanager
def readers(server, key, asked):
    """READERS of them, who go through lists of paths. Gives how many answers each has got."""
    over, answered, failed = threading.Event(), [0] * READERS, []

    def read(number):
        # A reader is another machine's: it must not take the time of those that are measured.
        os.sched_setaffinity(0, {LOAD_CORE})
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        try:
            reader = Reader(server, key)
            while not over.is_set():
                for path in asked[(number + answered[number]) % len(asked)]:
                    # 503: a day's sums lie behind by more entries than can be added up in time.
                    status, _, pause = reader.get(path, (200, 429, 503))
                    answered[number] += status == 200
                    if (pause or path.startswith(EVENT)) and over.wait(float(pause or READERS * RATE[1] / RATE[0])):
                        break
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(READERS)]
    for thread in threads:
        thread.start()
    try:
        yield answered
    finally:
        over.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]
