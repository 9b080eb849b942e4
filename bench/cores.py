"""Requests a second and CPU a request, by threads: one to sixteen, each on a core of its own.

On a machine with more cores than the server takes, wrk has as many others ("apart"): that is what the server can do. Everywhere, and on
two cores alone, the server also shares its cores with wrk ("shared"), from one core on. Both need every core, so what wrk costs is
in the rate of each row alike, and the rates of shared rows can be divided by each other; they say nothing of how fast the server is.
CPU a request is the server's alone in both.
"""

import os
import pathlib
import secrets
import statistics
import sys

from harness import HERE, Croupier, event_row, markets_of_size, wrk

EVENT = 34000001
POLLS, CLIENTS = 32, 256  # connections: of polls a thread; of the wallet in all, so that its commits are as large in every row


def waits(pid):
    """How often threads of a process have given up the processor, to wait for something."""
    return sum(int((task / "status").read_text().split("\nvoluntary_ctxt_switches:")[1].split()[0])
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


def layouts():
    """(threads, how, the server's cores, wrk's)"""
    cores = sorted(os.sched_getaffinity(0))
    counts = [count for count in (1, 2, 4, 8, 16) if count <= len(cores)]
    return ([(count, "apart", cores[:count], cores[count:2 * count]) for count in counts if 2 * count <= len(cores)]
            + [(count, "shared", cores[:count], cores[:count]) for count in counts])


class Cores:
    def cores(self):
        """Polled odds and the wallet by 1, 2, 4, 8 and 16 threads, where the machine has the cores."""
        self.by_cores("Cores: polled odds of 0.3 KB", self.odds_server, self.poll,
                      f"{POLLS} connections a thread")
        self.by_cores("Cores: the wallet on SQLite", self.wallet_server, self.move_money,
                      f"{CLIENTS} clients; bets and wins of 1,000 players; the disk syncs each commit")

    def odds_server(self, name, threads, cores):
        server = Croupier(self.options.croupier, self.directory, name=f"odds {name}", threads=threads, cores=cores)
        _, server.key = server.customer()
        server.publish([event_row(EVENT)], {EVENT: markets_of_size(300)})
        return server

    def poll(self, server, threads, cores):
        return wrk(server.port, f"/api/v1/cricket/events/{EVENT}", self.options.seconds, [f"Authorization: Bearer {server.key}"],
                   connections=POLLS * threads, threads=threads, cores=cores)

    def wallet_server(self, name, threads, cores):
        return self.casino_server(f"wallet {name}", threads=threads, cores=cores)

    def move_money(self, server, threads, cores):
        return wrk(server.port, "/api/v1/casino/wallet", self.options.seconds, [f"Authorization: Bearer {server.key}"],
                   connections=CLIENTS, threads=threads, cores=cores, script=HERE / "wallet.lua",
                   arguments=[server.players, secrets.randbits(30)])

    def by_cores(self, title, make_server, load, note):
        """One server at a time, so that no thread of another one is on its cores."""
        found = {layout[:2]: [] for layout in layouts()}
        for number in range(self.options.rounds):
            for threads, how, its, others in layouts():
                server = make_server(f"{threads} {how} {number}", threads, its)
                try:
                    load(server, threads, others)  # warm up
                    before, waited = server.cpu_ns(), waits(server.pid)
                    done = load(server, threads, others)
                    used = server.cpu_ns() - before
                    found[threads, how].append({
                        "rate": done["rate"], "cost": used / done["requests"] / 1000,
                        "busy": used / (threads * done["requests"] / done["rate"] * 1e9),
                        "waits": (waits(server.pid) - waited) / done["requests"]})
                finally:
                    server.stop()
            print(f"  round {number + 1} of {self.options.rounds}", file=sys.stderr, flush=True)
        median = {case: {name: statistics.median(row[name] for row in rows) for name in rows[0]} for case, rows in found.items()}
        self.say(title, [{
            "threads": threads, "wrk": how, "a_second": round(row["rate"]), "of_one_thread": round(row["rate"] / median[1, how]["rate"], 2),
            "cpu_us": round(row["cost"], 2), "cpu_of_one_thread": round(row["cost"] / median[1, how]["cost"], 2),
            "busy": round(row["busy"], 2), "waits": round(row["waits"], 3),
            "spread": f"{min(one['rate'] for one in found[threads, how]):.0f} to {max(one['rate'] for one in found[threads, how]):.0f}"}
            for (threads, how), row in median.items() if (1, how) in median],
            f"{note}. apart: wrk has as many cores beside the server's; shared: it runs on the server's, so compare rates of shared rows "
            "with each other only. busy: of the server's cores, by the server; waits: how often its threads waited, a request")
