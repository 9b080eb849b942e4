#!/usr/bin/python3
"""Measures croupier against a bare epoll loop and nginx, all in one run.

    make bench                 everything, five interleaved rounds (about ten minutes)
    bench/run.py --only answers --rounds 3 --seconds 2

Servers run on one core, wrk on another. What is compared is the CPU time that a server's process used
(schedstat: user and system) divided by the requests that wrk counted, because that is what a machine
is bought for, and because it does not depend on how fast wrk is. Rounds are interleaved (every server
in turn, again and again), and medians are compared, because these machines are noisy.

Writes bench/out/results.md and results.json; bench/RESULTS.md holds the recorded figures.
"""

import argparse
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
import zlib

HERE = pathlib.Path(__file__).resolve().parent
SERVER_CORE, LOAD_CORE = 0, 1
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


# ---- processes ------------------------------------------------------------------------------------

def cpu_ns(pid):
    """CPU time of all threads of a process so far."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except FileNotFoundError:
            pass
    return total


def rss_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmRSS")


class Server:
    """A process pinned to the servers' core."""

    def __init__(self, name, command, **keywords):
        self.name, self.port = name, None
        self.process = subprocess.Popen(["taskset", "-c", str(SERVER_CORE), *command], **keywords)
        self.pid = self.process.pid

    def cpu_ns(self):
        return cpu_ns(self.pid)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class BareLoop(Server):
    def __init__(self, binary, response, directory):
        file = directory / f"response-{secrets.token_hex(4)}"
        file.write_bytes(response)
        super().__init__("bare loop", [binary, str(file)], stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())


class Nginx(Server):
    """nginx, one worker, the answers as files, no admission, no access log."""

    def __init__(self, directory, bodies):
        root = directory / "nginx"
        (root / "files").mkdir(parents=True)
        for name, body in bodies.items():
            (root / "files" / name).write_bytes(body)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (root / "nginx.conf").write_text(f"""
daemon off; master_process off; worker_processes 1; pid {root}/pid; error_log {root}/error.log;
events {{ worker_connections 4096; multi_accept on; }}
http {{
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000;
  open_file_cache max=1000 inactive=600s; open_file_cache_valid 600s;
  default_type application/json;
  client_body_temp_path {root}/b; proxy_temp_path {root}/p; fastcgi_temp_path {root}/f;
  uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;
  server {{ listen 127.0.0.1:{port} backlog=4096; root {root}/files; }}
}}""")
        super().__init__("nginx", ["nginx", "-c", str(root / "nginx.conf"), "-e",
                                   str(root / "error.log")])
        self.port = port
        wait_for_port(port)


def wait_for_port(port, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"nothing listens on port {port}")


class Croupier(Server):
    """croupier serve, one thread, stores in a directory of its own, the access log written to a file."""

    def __init__(self, binary, directory, name="croupier", log_level="info", prepare=None):
        self.binary = str(binary)
        self.directory = directory / name.replace(" ", "-")
        self.directory.mkdir()
        self.config = self.directory / "croupier.conf"
        self.port = None
        self.config.write_text(f"""
[server]
listen = 127.0.0.1:0
threads = 1
max_connections = 12000
[operator]
listen = 127.0.0.1:0
[odds]
store = embedded:{self.directory}/odds
[platform]
store = sqlite:{self.directory}/platform.db
[log]
level = {log_level}
format = json
""")
        self.run("migrate")
        if prepare:
            prepare(self)
        self.log_path = self.directory / "log"
        self.log = open(self.log_path, "wb")
        started = time.monotonic()
        super().__init__(name, [self.binary, "serve", "-c", str(self.config)], stderr=self.log)
        while self.port is None:
            if self.process.poll() is not None or time.monotonic() - started > 60:
                raise RuntimeError("croupier did not start:\n" + self.log_path.read_text())
            for line in self.log_path.read_text().splitlines():
                row = json.loads(line)
                if row.get("message") == "listening" and row["listener"] == "public":
                    self.port = int(row["address"].rsplit(":", 1)[1])
            time.sleep(0.005)
        self.start_seconds = time.monotonic() - started

    def run(self, *arguments, data=None):
        done = subprocess.run([self.binary, *arguments, "-c", str(self.config)], input=data,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=True)
        return done.stdout.decode().strip()

    def customer(self):
        customer = self.run("customer", "add", "Bench", "--cidr", "127.0.0.0/8", "--rate",
                            "1000000000/60")
        key = self.run("key", "issue", customer)
        while self.port is not None and status_of(self.port, "/api/v1/sports", key) != 200:
            time.sleep(0.01)  # the running server sees it within a second
        return customer, key

    def publish(self, catalog, odds):
        self.run("feed", "catalog", "cricket", "-", data=json.dumps(catalog).encode())
        for event, markets in odds.items():
            self.run("feed", "odds", "cricket", str(event), "-", data=json.dumps(markets).encode())


# ---- data -------------------------------------------------------------------------------------------

def event_row(gmid):
    return {"gmid": gmid, "ename": f"Northbridge v Saltmarsh {gmid}", "etid": 4, "status": "OPEN",
            "providerEventId": "p-1"}


def markets_of_size(size):
    """Match odds whose single-event answer is about `size` bytes."""
    markets, number = [], 0
    row = len(json.dumps(event_row(34000001), separators=(",", ":"))) + 60
    while len(json.dumps(markets, separators=(",", ":"))) + row < size:
        prices = [{"price": 1.8 + level / 100, "size": 283.3844663329566} for level in range(3)]
        runner = {"selectionId": 7000 + number, "runnerName": f"Runner {number}", "status": "ACTIVE",
                  "ex": {"availableToBack": prices, "availableToLay": prices}}
        if not markets or len(markets[-1]["runners"]) >= 12:
            markets.append({"marketId": f"1.{number}", "marketName": "MATCH_ODDS", "gtype": "match",
                            "status": "OPEN", "runners": []})
        if size < 1000:
            break
        markets[-1]["runners"].append(runner)
        number += 1
    return markets


SIZES = {"0.3 KB": 300, "16 KB": 16 * 1024, "100 KB": 100 * 1024}


# ---- load -------------------------------------------------------------------------------------------

def wrk(port, path, seconds, headers=(), connections=32, script=None, latency=False):
    command = ["taskset", "-c", str(LOAD_CORE), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s"]
    for header in headers:
        command += ["-H", header]
    if script:
        command += ["-s", str(script)]
    if latency:
        command.append("--latency")
    out = subprocess.run([*command, f"http://127.0.0.1:{port}{path}"], stdout=subprocess.PIPE,
                         check=True).stdout.decode()
    if "Non-2xx" in out and not any("If-None-Match" in header for header in headers):
        raise RuntimeError(out)
    result = {"requests": int(re.search(r"(\d+) requests in", out).group(1)),
              "rate": float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))}
    if latency:
        for line in re.findall(r"^\s+(50|75|90|99)%\s+([\d.]+)(us|ms|s)\s*$", out, re.M):
            scale = {"us": 1e-6, "ms": 1e-3, "s": 1.0}[line[2]]
            result[f"p{line[0]}"] = float(line[1]) * scale
    return result


def cost(server, path, seconds, headers=(), **keywords):
    """CPU microseconds of the server for one request."""
    before = server.cpu_ns()
    done = wrk(server.port, path, seconds, headers, **keywords)
    return (server.cpu_ns() - before) / done["requests"] / 1000


def interleaved(cases, rounds, seconds):
    """cases: name → (server, path, headers). Returns name → list of costs, measured in turns."""
    found = {name: [] for name in cases}
    for case in cases.values():  # warm up
        cost(case[0], case[1], 1, case[2])
    for number in range(rounds):
        for name, (server, path, headers) in cases.items():
            found[name].append(cost(server, path, seconds, headers))
        print(f"  round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return found


def raw_response(port, path, headers=()):
    """The whole response as bytes."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        lines = [f"GET {path} HTTP/1.1", "Host: bench", *headers, "", ""]
        connection.sendall("\r\n".join(lines).encode())
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        while length and len(body) < int(length.group(1)):
            body += connection.recv(1 << 20)
        return head + b"\r\n\r\n" + body


def ratio_rows(found, base):
    medians = {name: statistics.median(values) for name, values in found.items()}
    return [{"case": name, "microseconds": round(medians[name], 2),
             "ratio": round(medians[name] / medians[base], 3),
             "spread": f"{min(found[name]):.2f} to {max(found[name]):.2f}"} for name in found]


# ---- the measurements -------------------------------------------------------------------------------

class Bench:
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


def status_of(port, path, key):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path, headers={"X-Api-Key": key})
    status = connection.getresponse().status
    connection.close()
    return status


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}"


def markdown(results):
    lines = [f"Machine: {machine()}.", ""]
    for result in results:
        lines += [f"### {result['title']}", "", result["note"], ""]
        names = list(result["rows"][0])
        lines += ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
        lines += ["| " + " | ".join(str(row[name]) for name in names) + " |"
                  for row in result["rows"]]
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--croupier", default="build/croupier")
    parser.add_argument("--bare-loop", default="build/bench/bare_loop")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", action="append",
                        choices=["answers", "events", "customers", "idle", "publishing"])
    options = parser.parse_args()
    for tool in ("wrk", "nginx", "taskset"):
        if not shutil.which(tool):
            sys.exit(f"bench: {tool} is not installed (make bench installs it)")
    if os.cpu_count() < 2:
        sys.exit("bench: two cores are needed, one for the servers and one for wrk")
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    # On a real disk beside the sources, not in a /tmp that may be memory.
    with tempfile.TemporaryDirectory(dir=out) as directory:
        bench = Bench(options, pathlib.Path(directory))
        for name in options.only or ["answers", "events", "customers", "idle", "publishing"]:
            print(f"{name}: {getattr(Bench, name).__doc__}", file=sys.stderr, flush=True)
            getattr(bench, name)()
    (out / "results.json").write_text(json.dumps(bench.results, indent=1))
    (out / "results.md").write_text(markdown(bench.results))
    print(f"\nwritten: {out}/results.md", file=sys.stderr)


if __name__ == "__main__":
    main()
