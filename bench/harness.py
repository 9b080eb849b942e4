"""What all parts of the bench use: servers on one core, wrk on another, data, and what a request costs.

Cost is CPU time: user and system, of all threads of the server's own process (or processes), as the kernel
counts it in /proc/PID/task/*/schedstat, divided by the requests that wrk counted. A store's server, the feed
and wrk are other processes on the other core, and are not in it.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import secrets
import socket
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SERVER_CORE, LOAD_CORE = 0, 1
SIZES = {"0.3 KB": 300, "16 KB": 16 * 1024, "100 KB": 100 * 1024}


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


def on_cores(cores):
    return ["taskset", "-c", ",".join(map(str, cores))]


class Server:
    """A process pinned to the servers' core, or to these."""

    def __init__(self, name, command, cores=(SERVER_CORE,), **keywords):
        self.name, self.port = name, None
        self.process = subprocess.Popen([*on_cores(cores), *command], **keywords)
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


NO_LIMITS = "connections_per_address = 0\nconnections_per_customer = 0\nwaiting_per_customer = 0"


class Croupier(Server):
    """croupier serve, one thread unless more are asked for, the access log written to a file, stores in a directory of
    its own unless told of others. limits: settings of [server]; 0.1.0 has none of these."""

    def __init__(self, binary, directory, name="croupier", log_level="info", prepare=None, settings="",
                 preload=None, env=None, odds=None, platform=None, threads=1, cores=(SERVER_CORE,), limits=NO_LIMITS):
        self.binary = str(binary)
        self.directory = directory / name.replace(" ", "-")
        self.directory.mkdir()
        self.config = self.directory / "croupier.conf"
        self.port = None
        self.config.write_text(f"""
[server]
listen = 127.0.0.1:0
threads = {threads}
max_connections = 12000
{limits}
[operator]
listen = 127.0.0.1:0
[odds]
store = {odds or f"embedded:{self.directory}/odds"}
[platform]
store = {platform or f"sqlite:{self.directory}/platform.db"}
{settings}
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
        if preload:
            env = {**env, "LD_PRELOAD": os.path.abspath(preload)}
        super().__init__(name, [self.binary, "serve", "-c", str(self.config)], cores, stderr=self.log, env=env)
        while self.port is None:
            if self.process.poll() is not None or time.monotonic() - started > 60:
                raise RuntimeError("croupier did not start:\n" + self.log_path.read_text())
            for line in self.log_path.read_text().splitlines():
                row = json.loads(line)
                if row.get("message") == "listening" and row["listener"] == "operator":
                    self.operator_port = int(row["address"].rsplit(":", 1)[1])
                if row.get("message") == "listening" and row["listener"] == "public":
                    self.port = int(row["address"].rsplit(":", 1)[1])
            time.sleep(0.005)
        self.start_seconds = time.monotonic() - started

    def commits(self):
        """How many commits the ledger has made, and in how many seconds."""
        connection = http.client.HTTPConnection("127.0.0.1", self.operator_port)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return tuple(float(re.search(rf"^croupier_ledger_commit_seconds_{name} (\S+)$", text, re.M).group(1))
                     for name in ("count", "sum"))

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

    def open_casino(self, customer):
        """Lets in the customer that bench/ledger made; returns a key."""
        self.run("customer", "set", customer, "--cidr", "127.0.0.0/8")
        return self.run("key", "issue", customer)

    def publish(self, catalog, odds):
        self.run("feed", "catalog", "cricket", "-", data=minified(catalog))
        for event, markets in odds.items():
            self.run("feed", "odds", "cricket", str(event), "-", data=minified(markets))


# ---- data -------------------------------------------------------------------------------------------

def minified(value):
    """As feeds write it."""
    return json.dumps(value, separators=(",", ":")).encode()


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


def status_of(port, path, key):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path, headers={"X-Api-Key": key})
    status = connection.getresponse().status
    connection.close()
    return status


# ---- load -------------------------------------------------------------------------------------------

def wrk(port, path, seconds, headers=(), connections=32, script=None, latency=False, arguments=(), threads=1, cores=(LOAD_CORE,)):
    command = [*on_cores(cores), "wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s"]
    for header in headers:
        command += ["-H", header]
    if script:
        command += ["-s", str(script)]
    if latency:
        command.append("--latency")
    out = subprocess.run([*command, f"http://127.0.0.1:{port}{path}", "--", *map(str, arguments)],
                         stdout=subprocess.PIPE, check=True).stdout.decode()
    if "Non-2xx" in out and not any("If-None-Match" in header for header in headers):
        raise RuntimeError(out)
    result = {"requests": int(re.search(r"(\d+) requests in", out).group(1)),
              "rate": float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))}
    if latency:
        for line in re.findall(r"^\s+(50|75|90|99)%\s+([\d.]+)(us|ms|s)\s*$", out, re.M):
            scale = {"us": 1e-6, "ms": 1e-3, "s": 1.0}[line[2]]
            result[f"p{line[0]}"] = float(line[1]) * scale
    tail = re.search(r"^Tail of latency: (\d+) us, at most (\d+) us$", out, re.M)  # wallet.lua
    if tail:
        result["p99.9"], result["most"] = (int(value) / 1e6 for value in tail.groups())
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


def raw_response(port, path, headers=(), body=None):
    """The whole response as bytes; to a POST of this JSON, if it is given."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        content = [] if body is None else ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        lines = [f"{'POST' if content else 'GET'} {path} HTTP/1.1", "Host: bench", *headers, *content, "", body or ""]
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
