"""How long the slowest bets take, over minutes: what checkpoints, merges of the index of ids and the disk do to them."""

import statistics
import sys
import threading

CLIENTS = 1, 16, 64, 256
SECONDS, PIECE = 75, 5  # of each number of clients, in pieces: five minutes in all
TABLE_IDS, FANOUT = 131072, 4  # src/stores/platform/sqlite/ids/id_entry.h: the ids of four tables are merged


class Checkpoints:
    """Counts how often the database file was written to: its time changes, after a tenth of a second without a change."""

    def __init__(self, path):
        self.path, self.count, self.over = path, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        before, quiet = self.path.stat().st_mtime_ns, 5
        while not self.over.wait(0.02):
            now = self.path.stat().st_mtime_ns
            self.count += now != before and quiet >= 5
            before, quiet = now, 0 if now != before else quiet + 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *of_error):
        self.over.set()
        self.thread.join()


class Tails:
    """A part of bench/run.py."""

    def tails(self):
        """The slowest operations of the wallet on SQLite, over five minutes: p99.9 in commits, and a curve over time."""
        rows, curves = [], []
        server = self.casino_server("tails")
        try:
            for clients in CLIENTS:
                with Checkpoints(server.directory / "platform.db") as checkpoints:
                    pieces = []
                    for number in range(SECONDS // PIECE):
                        pieces.append(self.play(server, clients, seconds=PIECE))
                        print(f"  {clients} clients: {(number + 1) * PIECE} of {SECONDS} s", file=sys.stderr, flush=True)
                commit = statistics.median(piece["commit"] for piece in pieces)
                operations = sum(piece["requests"] for piece in pieces)
                tails = [piece["p99.9"] for piece in pieces]
                rows.append({"clients": clients, "operations": operations, "checkpoints": checkpoints.count,
                             "merges": round(operations / TABLE_IDS / FANOUT, 1), "commit_ms": round(commit * 1000, 2),
                             "p50_ms": round(statistics.median(piece["p50"] for piece in pieces) * 1000, 2),
                             "p99_9_ms": round(statistics.median(tails) * 1000, 2),
                             "p99_9_in_commits": round(statistics.median(tails) / commit, 1),
                             "worst_piece_in_commits": round(max(tails) / commit, 1),
                             "most_ms": round(max(piece["most"] for piece in pieces) * 1000, 1)})
                curves.append({"clients": clients} | {str(number * PIECE): round(tail * 1000, 1) for number, tail in enumerate(tails)})
        finally:
            server.stop()
        self.say("The slowest operations of the wallet, SQLite", rows,
                 f"bets and wins of 1,000 players, {SECONDS} s each in pieces of {PIECE}: medians of the pieces, and the worst; merges: of the "
                 "index of ids, of the first level alone")
        self.say("p99.9 over time, ms", curves, f"by the second at which a piece of {PIECE} s began")
