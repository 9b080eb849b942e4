"""What HTTP/2 costs at the edge: polls that wait on one connection of a customer, through the HAProxy of dist/reference.

HAProxy and croupier are on the servers' core, the customer (bench/edge.mjs, Node) on the load's. CPU is that of the two
processes, as in harness.py.
"""

import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import time

from grown import NotHere
from harness import HERE, LOAD_CORE, Server, wait_for_port
from servers import free_port, make_certificate

POLLS = 500    # fewer than tune.h2.max-concurrent-streams
EVERY = 0.5    # seconds between two publications that all polls are sent
PATH = "/api/v1/cricket/events/1"
ALONE, HTTP1, HTTP2 = "croupier alone, HTTP/1.1", "HAProxy, HTTP/1.1", "HAProxy, HTTP/2"


class HaProxy(Server):
    """One thread, with the file of the reference and its line for HTTPS, in front of one croupier."""

    def __init__(self, directory, croupier):
        program = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None or not shutil.which("node"):
            raise NotHere("no haproxy or no node here")
        root, port = directory / "haproxy", free_port()
        root.mkdir()
        pem = root / "croupier.pem"
        pem.write_bytes(b"".join(path.read_bytes() for path in make_certificate(root, "edge", "DNS:localhost")))
        text = (HERE.parent / "dist" / "reference" / "haproxy.cfg").read_text()
        text = re.sub(r"^    bind .*\n", "", text, flags=re.MULTILINE)
        text = re.sub(r"# (bind) \S+ ssl crt \S+", rf"\1 127.0.0.1:{port} ssl crt {pem}", text)
        text = re.sub(r"^ +server croupier-2 .*\n", "", text.replace("10.20.0.11:8080", f"127.0.0.1:{croupier.port}"),
                      flags=re.MULTILINE)
        (root / "haproxy.cfg").write_text(text)
        self.log = open(root / "log", "wb")
        super().__init__("haproxy", [program, "-db", "-f", str(root / "haproxy.cfg")], stdout=self.log, stderr=self.log)
        self.port = port
        wait_for_port(port)


class Edge:
    """The part of the bench that is about the edge; a base of Bench."""

    def customer_at(self, url, version, key):
        client = subprocess.Popen(["taskset", "-c", str(LOAD_CORE), "node", str(HERE / "edge.mjs"), version, url, PATH, key,
                                   str(POLLS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if client.stdout.readline() != b"ready\n":
            raise RuntimeError("the polls were not answered")
        return client

    def deliver_at(self, servers, url, version, key):
        """CPU microseconds a delivery of each server, p50 and p99."""
        client = self.customer_at(url, version, key)
        time.sleep(2 * EVERY)
        before, began = [server.cpu_ns() for server in servers], time.monotonic()
        while time.monotonic() - began < 2 * self.options.seconds:
            servers[0].publish(1)
            time.sleep(EVERY)
        used = [server.cpu_ns() - at for server, at in zip(servers, before)]
        client.stdin.close()
        counted = json.loads(client.stdout.read())
        client.wait()
        return [cpu / counted["deliveries"] / 1000 for cpu in used], counted["p50_ms"], counted["p99_ms"]

    def edge(self):
        """Polls that wait on one HTTP/2 connection, against one connection each, through HAProxy."""
        with contextlib.ExitStack() as stack:
            croupier = self.waiting_server("edge", env={**os.environ, "CROUPIER_SERVER_TRUSTED_PROXIES": "127.0.0.1"})
            stack.callback(croupier.stop)
            stack.callback(croupier.stream.stop)
            try:
                proxy = HaProxy(self.directory, croupier)
            except NotHere as reason:
                print(f"  left out: {reason}")
                return
            stack.callback(proxy.stop)
            cases = {ALONE: ((croupier,), f"http://127.0.0.1:{croupier.port}", "h1"),
                     HTTP1: ((croupier, proxy), f"https://localhost:{proxy.port}", "h1"),
                     HTTP2: ((croupier, proxy), f"https://localhost:{proxy.port}", "h2")}
            found = {name: [] for name in cases}
            for _ in range(self.options.rounds):
                for name, case in cases.items():
                    found[name].append(self.deliver_at(*case, croupier.key))
        sums = {name: statistics.median(sum(row[0]) for row in rows) for name, rows in found.items()}
        self.say(f"A delivery to each of {POLLS} polls of one customer that wait for one event", [
            {"way": name, "connections": 1 if name == HTTP2 else POLLS, "croupier_us": self.middle(rows, lambda row: row[0][0]),
             "haproxy_us": self.middle(rows, lambda row: row[0][1]) if name != ALONE else "",
             "of_http1": round(sums[name] / sums[HTTP1], 2),
             "p50_ms": self.middle(rows, lambda row: row[1]), "p99_ms": self.middle(rows, lambda row: row[2]),
             "spread": f"{min(sum(row[0]) for row in rows):.1f} to {max(sum(row[0]) for row in rows):.1f}"}
            for name, rows in found.items()],
            f"CPU of croupier and of HAProxy a delivery, each of which is a poll as well; of_http1 compares their sum. HTTPS to HAProxy, "
            f"a publication every {EVERY} s; from before the commit to received by Node, which takes longer than the servers")

    @staticmethod
    def middle(rows, of):
        return round(statistics.median(of(row) for row in rows), 2)
