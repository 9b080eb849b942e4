"""The parts of the bench that need Redis and PostgreSQL: what croupier costs there, and what others do.

The servers are those of tests/servers.py, started and ended here. Redis, the feed and wrk run on the load's
core; none of them is in the CPU time that is compared. PostgreSQL may use both cores: of the wallet durable
operations a second are compared, not CPU time.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from harness import (Croupier, HERE, LOAD_CORE, NO_LIMITS, SIZES, Server, cost, cpu_ns, event_row, interleaved, markets_of_size,
                     raw_response, status_of, wait_for_port, wrk)

sys.path.insert(0, str(HERE.parent / "tests"))

from servers import WITHOUT_TRACKING, Postgres, Redis, free_port  # noqa: E402

FIRST, OTHERS = 34000001, 100  # the event that is polled, and how many others there are
OTHERS_A_SECOND, POLLED_A_SECOND = 200, 5
CHANGES_SEEN = 250  # a round, one every 20 ms
ALONE = 8           # servers of one commit an operation
CLIENTS = 256


def keep_servers_on(directory):
    """PostgreSQL's data on a real disk, where the path is short enough for a socket and open to its user."""
    place = str(directory)
    if len(place) < 40 and all(parent.stat().st_mode & 0o005 == 0o005 for parent in [directory, *directory.parents]):
        tempfile.tempdir = place


def postgres_ns(postgres):
    """CPU time of all processes of a PostgreSQL so far, also of those that have ended; of None: 0."""
    if postgres is None:
        return 0
    ended = sum(map(int, pathlib.Path(f"/proc/{postgres.process.pid}/stat").read_text().rpartition(")")[2].split()[13:15]))
    total = ended * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    for pid in postgres.processes():
        with contextlib.suppress(FileNotFoundError):
            total += cpu_ns(pid)
    return total


def turning(markets):
    """The same markets with a member that a feed can count up."""
    return [{"turn": "00000000", **markets[0]}, *markets[1:]]


def reads_of(redis):
    """Values read so far."""
    stats = redis.info("commandstats")
    return sum(int(stats[f"cmdstat_{name}"].split(",")[0].removeprefix("calls="))
               for name in ("get", "mget") if f"cmdstat_{name}" in stats)


class NotHere(Exception):
    """A peer that this machine cannot run, and why."""


class Node(Server):
    """bench/peers/node: Fastify and ioredis, one process."""

    def __init__(self, place, customers, redis):
        install_node_packages(place)
        super().__init__("Node", ["node", str(place / "server.js"), "127.0.0.1", str(redis.port), str(customers)],
                         stdout=subprocess.PIPE, env={**os.environ, "NODE_ENV": "production"})
        line = self.process.stdout.readline()
        if not line:
            raise NotHere("node did not start")
        self.port = json.loads(line)["port"]


def install_node_packages(place, source=HERE / "peers" / "node"):
    """The packages of the lock file, into the build directory, and the server beside them."""
    for tool in ("node", "npm"):
        if not shutil.which(tool):
            raise NotHere(f"{tool} is not installed")
    version = subprocess.run(["node", "--version"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    if int(version[1:].split(".")[0]) < 20:
        raise NotHere(f"Node 20 is needed, here is {version}")
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / "server.js", place)
    stamp, wanted = place / "installed", (source / "package-lock.json").read_text()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, place)
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=place,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
    if done.returncode != 0:
        raise NotHere(f"npm ci ended with {done.returncode}: {done.stderr.decode()[-300:]}")
    stamp.write_text(wanted)


class NginxLua(Server):
    """bench/peers/lua: nginx, Lua and lua-resty-redis, one worker."""

    def __init__(self, directory, customers, redis):
        for path, package in (("/usr/lib/nginx/modules/ngx_http_lua_module.so", "libnginx-mod-http-lua"),
                              ("/usr/share/lua/5.1/nginx/redis.lua", "lua-nginx-redis")):
            if not pathlib.Path(path).exists():
                raise NotHere(f"no {package} here")
        root = directory / "nginx-lua"
        root.mkdir()
        source, port = HERE / "peers" / "lua", free_port()
        text = (source / "nginx.conf").read_text()
        for name, value in {"root": root, "here": source, "customers": customers, "redis_port": redis.port,
                            "port": port}.items():
            text = text.replace(f"@{name}@", str(value))
        (root / "nginx.conf").write_text(text)
        super().__init__("nginx and Lua", ["nginx", "-c", str(root / "nginx.conf"), "-e", str(root / "error.log")])
        self.port = port
        wait_for_port(port)


def same(one, other):
    """Whether two JSON values agree; numbers in ten digits, for a peer that does not keep them exactly."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, (int, float)):
        return abs(one - other) <= abs(one) * 1e-10
    return one == other


class Grown:
    @contextlib.contextmanager
    def on_redis(self, settings=None):
        with Redis(settings=settings) as redis:
            os.sched_setaffinity(redis.process.pid, {LOAD_CORE})
            yield redis

    def document(self, name, size):
        """A file with markets that a feed can change, of about this size."""
        path = self.directory / f"odds-{name.replace(' ', '-')}.json"
        markets = turning(markets_of_size(size))
        path.write_text(json.dumps(markets, separators=(",", ":")))
        return path, markets

    def feed(self, uri, seconds, *groups):
        """Starts bench/feed; its `communicate` says how much was published."""
        words = [str(word) for group in groups for word in group]
        return subprocess.Popen(["taskset", "-c", str(LOAD_CORE), self.options.feed, uri, str(seconds), *words],
                                stdout=subprocess.PIPE)

    # ---- croupier with Redis against croupier as it comes

    def redis(self):
        """One event's answer with Redis against the embedded store, in quiet and while a feed changes events."""
        with contextlib.ExitStack() as stack:
            redis = stack.enter_context(self.on_redis())
            uris = {"embedded": None, "Redis": redis.tcp_uri()}
            servers, rows = {}, []
            for name, uri in uris.items():
                servers[name] = Croupier(self.options.croupier, self.directory, name=f"odds in {name}", odds=uri)
                stack.callback(servers[name].stop)
                uris[name] = uri or f"embedded:{servers[name].directory}/odds"
                _, servers[name].key = servers[name].customer()
            others, other_markets = self.document("others", 2700)
            for label, size in SIZES.items():
                polled, markets = self.document(label, size)
                for server in servers.values():
                    server.publish([event_row(FIRST + number) for number in range(1 + OTHERS)],
                                   {FIRST: markets, FIRST + 1: other_markets})
                rows += self.redis_rows(label, servers, uris, redis, (
                    (FIRST + 1, OTHERS, OTHERS_A_SECOND, others), (FIRST, 1, POLLED_A_SECOND, polled)))
        self.say("An event with Redis, against the embedded store", rows,
                 f"CPU a request of croupier's process alone, all its threads; catalog of {1 + OTHERS} events; key, "
                 "CIDR, rate limit and access log on; Redis over TCP. A feed at work: it changes "
                 f"{OTHERS_A_SECOND} other events a second and the polled one {POLLED_A_SECOND} times; others_a_second "
                 "is how many it managed, gets_a_change how often Redis was asked for a value in that time, for each "
                 "change of the polled event")
        self.redis_modes()

    def redis_modes(self):
        """One event's answer with a Redis that reports changes, and with one that is asked at each request."""
        found, rows = {}, []
        with contextlib.ExitStack() as stack:
            modes = {}
            for mode, settings in {"tracking": None, "asking": WITHOUT_TRACKING}.items():
                redis = stack.enter_context(self.on_redis(settings))
                server = Croupier(self.options.croupier, self.directory, name=mode, odds=redis.tcp_uri())
                stack.callback(server.stop)
                _, key = server.customer()
                modes[mode] = server, redis, [f"Authorization: Bearer {key}"]
                server.publish([event_row(FIRST + number) for number in range(len(SIZES))],
                               {FIRST + number: markets_of_size(size) for number, size in enumerate(SIZES.values())})
            cases = [(label, f"/api/v1/cricket/events/{FIRST + number}") for number, label in enumerate(SIZES)]
            for turn in range(1 + self.options.rounds):
                for label, path in cases:
                    for mode, (server, redis, headers) in modes.items():
                        before = server.cpu_ns(), cpu_ns(redis.process.pid)
                        done = wrk(server.port, path, self.options.seconds if turn else 1, headers, latency=True)
                        spent = [(after - was) / done["requests"] / 1000
                                 for was, after in zip(before, (server.cpu_ns(), cpu_ns(redis.process.pid)))]
                        if turn:  # the first warms up
                            found.setdefault((label, mode), []).append((*spent, done["p99"] * 1000))
        for (label, mode), measured in found.items():
            here, there, p99 = zip(*measured)
            rows.append({"size": label, "mode": mode, "microseconds": round(statistics.median(here), 2),
                         "redis_microseconds": round(statistics.median(there), 2), "p99_ms": round(statistics.median(p99), 2),
                         "p99_spread": f"{min(p99):.2f} to {max(p99):.2f}"})
        self.say("An event with a Redis that reports no changes", rows,
                 "CPU a request of croupier's process and of Redis', 32 connections that ask at full speed for one event that "
                 "does not change; requests that come together share a read. Redis and wrk share a core, so that p99_ms holds "
                 "the wait of one for the other")

    def redis_rows(self, label, servers, uris, redis, groups):
        path = f"/api/v1/cricket/events/{FIRST}"
        cases = {(state, name): [] for state in ("quiet", "a feed at work") for name in servers}
        others, gets = {name: [] for name in servers}, []
        for server in servers.values():
            cost(server, path, 1, [f"Authorization: Bearer {server.key}"])
        for number in range(self.options.rounds):
            for (state, name), found in cases.items():
                server, headers = servers[name], [f"Authorization: Bearer {servers[name].key}"]
                if state == "quiet":
                    found.append(cost(server, path, self.options.seconds, headers))
                    continue
                before = reads_of(redis)
                feed = self.feed(uris[name], self.options.seconds, *groups)
                found.append(cost(server, path, self.options.seconds, headers))
                published = json.loads(feed.communicate()[0])
                others[name].append(published[0] / self.options.seconds)
                if name == "Redis":
                    gets.append((reads_of(redis) - before) / published[1])
            print(f"  {label}: round {number + 1} of {self.options.rounds}", file=sys.stderr, flush=True)
        rows = []
        for (state, name), found in cases.items():
            fed = state != "quiet"
            rows.append({
                "size": label, "state": state, "store": name, "microseconds": round(statistics.median(found), 2),
                "ratio": round(statistics.median(found) / statistics.median(cases[state, "embedded"]), 3),
                "spread": f"{min(found):.2f} to {max(found):.2f}",
                "others_a_second": round(statistics.median(others[name])) if fed else "",
                "gets_a_change": round(statistics.median(gets), 2) if fed and name == "Redis" else ""})
        return rows

    # ---- how soon a change shows

    def visible(self):
        """From a SET's reply until each of two instances shows the change."""
        with contextlib.ExitStack() as stack:
            redis = stack.enter_context(self.on_redis())
            uri, servers = redis.tcp_uri(), []
            for number in range(2):
                servers.append(Croupier(self.options.croupier, self.directory, name=f"instance {number}", odds=uri,
                                        platform=f"sqlite:{self.directory}/instances.db"))
                stack.callback(servers[-1].stop)
            _, key = servers[0].customer()
            while status_of(servers[1].port, "/api/v1/sports", key) != 200:
                time.sleep(0.01)  # it sees the new customer within a second
            others, other_markets = self.document("others", 2700)
            cases = {("0.3 KB", "quiet"): [], ("0.3 KB", "a feed at work"): [], ("100 KB", "quiet"): []}
            for number in range(self.options.rounds):
                for (label, state), found in cases.items():
                    path, markets = self.document(label, SIZES[label])
                    servers[0].publish([event_row(FIRST + number) for number in range(1 + OTHERS)],
                                       {FIRST: markets, FIRST + 1: other_markets})
                    found.append(self.see(redis, servers, path, key, others if state != "quiet" else None))
                print(f"  round {number + 1} of {self.options.rounds}", file=sys.stderr, flush=True)
        self.say("How soon a change shows in two instances", [{
            "size": label, "state": state, "samples": sum(row["samples"] for row in found),
            **{name: round(statistics.median(row[name] for row in found), 2) for name in ("p50_ms", "p99_ms")},
            "p99_spread": f"{min(row['p99_ms'] for row in found):.2f} to {max(row['p99_ms'] for row in found):.2f}",
            "max_ms": round(max(row["max_ms"] for row in found), 2),
            "refused": sum(row["refused"] for row in found),
            **{name: round(statistics.median(row[name] for row in found), 2)
               for name in ("asked_p99_ms", "pause_ms", "poll_p50_ms", "poll_p99_ms")}} for (label, state), found in cases.items()],
            "from the moment when the reply to SET was read to the moment when an answer that shows it was read, in "
            "each of two instances on one Redis; a change every 20 ms. asked_p99_ms ends when that answer was "
            "asked for; the rest of p99_ms is the wait for it. Each instance is polled pause_ms after its last "
            "answer, and poll_p50_ms and poll_p99_ms are how long any answer took (also one that shows nothing new): both "
            "are part of what is measured (bench/visible.c). Percentiles are medians of the rounds', the "
            f"maximum is of all; a feed at work changes {OTHERS_A_SECOND} other events a second")

    def see(self, redis, servers, path, key, others):
        feed = None
        if others:
            feed = self.feed(redis.tcp_uri(), CHANGES_SEEN // 50 + 2, (FIRST + 1, OTHERS, OTHERS_A_SECOND, others))
        done = subprocess.run(["taskset", "-c", str(LOAD_CORE), self.options.visible, str(redis.port), str(FIRST), str(path),
                               key, str(CHANGES_SEEN), *(str(server.port) for server in servers)],
                              stdout=subprocess.PIPE, check=True, timeout=120)
        if feed:
            feed.communicate()
        return json.loads(done.stdout)

    # ---- what a team would otherwise write

    def peers(self):
        """One event's answer against Node (Fastify, ioredis) and nginx with Lua, all on the same Redis."""
        with contextlib.ExitStack() as stack:
            redis = stack.enter_context(self.on_redis())
            croupier = Croupier(self.options.croupier, self.directory, name="peers", odds=redis.tcp_uri())
            stack.callback(croupier.stop)
            _, key = croupier.customer()
            customers = self.directory / "customers.json"
            customers.write_text(json.dumps({key: {"sports": ["cricket"], "limit": 1000000000, "seconds": 60}}))
            servers, absent = {"croupier": croupier}, []
            for name, make in {
                    "Node": lambda: Node(pathlib.Path(self.options.peers).resolve() / "node", customers, redis),
                    "nginx and Lua": lambda: NginxLua(self.directory, customers, redis)}.items():
                try:
                    servers[name] = make()
                    stack.callback(servers[name].stop)
                except NotHere as reason:
                    absent.append({"peer": name, "not_measured": str(reason)})
            for label, size, events in (*((label, size, 3) for label, size in SIZES.items()), ("16 KB", SIZES["16 KB"], 100)):
                self.peers_on(label, size, events, servers, key)
        if absent:
            self.say("Peers that are not here", absent)

    def peers_on(self, label, size, events, servers, key):
        markets = markets_of_size(size)
        markets[0] = {**markets[0], "tv": True, "odd_type": "x"}  # hidden
        markets[0]["runners"] = markets[0]["runners"] or [{"selectionId": 7000}]  # Debian's cjson has no empty array
        servers["croupier"].publish([event_row(FIRST + number) for number in range(events)], {FIRST: markets})
        path, headers = f"/api/v1/cricket/events/{FIRST}", [f"Authorization: Bearer {key}"]
        bodies = {name: json.loads(raw_response(server.port, path, headers).partition(b"\r\n\r\n")[2])
                  for name, server in servers.items()}
        for name, body in bodies.items():
            assert same(bodies["croupier"], body), f"{name} answers something else"
        found = interleaved({name: (server, path, headers) for name, server in servers.items()},
                            self.options.rounds, self.options.seconds)
        median = {name: statistics.median(costs) for name, costs in found.items()}
        self.say(f"Peers on the same Redis, {label}, catalog of {events} events", [{
            "server": name, "a_cpu_second": round(1e6 / median[name]), "microseconds": round(median[name], 2),
            "croupier_is_times": round(median[name] / median["croupier"], 1),
            "spread": f"{min(costs):.2f} to {max(costs):.2f}"} for name, costs in found.items()],
            "requests a CPU second of the server's own process, one worker each; Redis and wrk are not in it; all give "
            "the same JSON. The peers keep customers in memory and ask Redis for catalog and odds with one MGET a "
            "request; they have no access log, CIDR lists, shared rate limit, entity tags or gzip, croupier has all")

    # ---- the wallet on PostgreSQL

    def wallet_postgres(self):
        """The wallet over HTTP on PostgreSQL: batches, one commit an operation, and that in eight servers."""
        with contextlib.ExitStack() as stack:
            postgres = stack.enter_context(Postgres(durable=True))
            kinds = {"together": self.wallet_servers(stack, postgres, "together", 1, ""),
                     "alone": self.wallet_servers(stack, postgres, "alone", 1, "batch_max = 1"),
                     f"alone, {ALONE} servers": self.wallet_servers(stack, postgres, "alone8", ALONE, "batch_max = 1")}
            cases = {kind: [] for kind in kinds}
            for number in range(self.options.rounds):
                for kind, found in cases.items():
                    found.append(self.play_all(kinds[kind], CLIENTS))
                print(f"  round {number + 1} of {self.options.rounds}", file=sys.stderr, flush=True)
            stores = [servers[0].platform for servers in kinds.values()]
            for servers in kinds.values():
                for server in servers:
                    server.stop()
            for store in stores:
                self.audit(store)
        median = {kind: {name: statistics.median(row[name] for row in found)
                         for name in ("rate", "p50", "p99", "commit")} for kind, found in cases.items()}
        self.say(f"The wallet over HTTP on PostgreSQL, {CLIENTS} clients", [{
            "commits": kind, "writing_connections": len(kinds[kind]), "a_second": round(row["rate"]),
            "together_is_times": round(median["together"]["rate"] / row["rate"], 1),
            "commit_ms": round(row["commit"] * 1000, 2), "p50_ms": round(row["p50"] * 1000, 1),
            "p99_ms": round(row["p99"] * 1000, 1),
            "spread": f"{min(r['rate'] for r in cases[kind]):.0f} to {max(r['rate'] for r in cases[kind]):.0f}"}
            for kind, row in median.items()],
            "durable operations a second (fsync and synchronous_commit on); bets and wins of 1,000 players; alone: "
            "the same server and connections with [casino] batch_max = 1, so that each operation is its own commit (all "
            "with [platform] timeout_ms = 10000, or those would refuse some); "
            f"the last row is {ALONE} such servers on one database, each with its share of the clients, so that "
            "PostgreSQL can join their commits")

    def wallet_older(self):
        """The wallet over HTTP, this build and --older-build in turn, on SQLite and PostgreSQL."""
        with contextlib.ExitStack() as stack:
            servers, cases = {}, {}
            for build, directory in {"older": self.options.older_build, "this": None}.items():
                servers["SQLite", build] = server = self.casino_server(f"turns {build}", build=directory)
                server.database = None
                stack.callback(server.stop)
                postgres = stack.enter_context(Postgres(durable=True))
                servers["PostgreSQL", build], = self.wallet_servers(stack, postgres, f"turns_{build}", 1, "", directory)
                servers["PostgreSQL", build].database = postgres
            for number in range(self.options.rounds):
                for case, server in servers.items():
                    cases.setdefault(case, []).append(self.play_and_cost(server))
                print(f"  round {number + 1} of {self.options.rounds}", file=sys.stderr, flush=True)
        rows = []
        for (engine, build), found in cases.items():
            older = cases[engine, "older"]
            ratios = [one["rate"] / other["rate"] for one, other in zip(found, older)]
            rows.append({"store": engine, "build": build, "a_second": round(statistics.median(row["rate"] for row in found)),
                         "of_older": round(statistics.median(ratios), 2), "pairs": f"{min(ratios):.2f} to {max(ratios):.2f}",
                         **{name: round(statistics.median(row[name] for row in found), 1)
                            for name in ("cpu_us", "store_cpu_us")}})
        self.say(f"The wallet over HTTP, two builds in turn, {CLIENTS} clients", rows,
                 "durable operations a second, bets and wins of 1,000 players; cpu_us: the server's own, an operation; "
                 "store_cpu_us: all processes of PostgreSQL's, an operation (0: the store is in the server)")

    def bare_postgres(self):
        """What PostgreSQL spends on an operation of the wallet, against the least that a batch can cost there."""
        with contextlib.ExitStack() as stack:
            postgres = stack.enter_context(Postgres(durable=True))
            server, = self.wallet_servers(stack, postgres, "wallet", 1, "")
            server.database, bare = postgres, postgres.uri_of(postgres.create_database("bare"))
            found = {"bare batch": [], "wallet": []}
            for number in range(self.options.rounds):
                played = self.play_and_cost(server)
                found["wallet"].append((played["store_cpu_us"], played["rate"]))
                before, sessions = postgres_ns(postgres), len(postgres.processes())
                done = json.loads(self.on_load_core(self.options.bare_postgres, bare))
                while len(postgres.processes()) > sessions:
                    time.sleep(0.01)
                found["bare batch"].append(((postgres_ns(postgres) - before) / done["operations"] / 1000, done["per_second"]))
                print(f"  round {number + 1} of {self.options.rounds}", file=sys.stderr, flush=True)
        least = statistics.median(cost for cost, _ in found["bare batch"])
        self.say(f"The wallet on PostgreSQL against a bare batch, {CLIENTS} clients", [
            {"case": case, "store_cpu_us": round(statistics.median(cost for cost, _ in rows), 2),
             "of_bare": round(statistics.median(cost for cost, _ in rows) / least, 2),
             "a_second": round(statistics.median(rate for _, rate in rows)),
             "spread": f"{min(rows)[0]:.2f} to {max(rows)[0]:.2f}"} for case, rows in found.items()],
            "CPU an operation of all processes of PostgreSQL's; the bare batch inserts 256 rows with a primary key "
            "alone and updates their accounts (bench/bare_postgres.c)")

    def play_and_cost(self, server):
        """A round of the wallet, and what it cost an operation: the server, and the processes of its PostgreSQL."""
        before, store_before = server.cpu_ns(), postgres_ns(server.database)
        done = self.play(server, CLIENTS)
        done["cpu_us"] = (server.cpu_ns() - before) / done["requests"] / 1000
        done["store_cpu_us"] = (postgres_ns(server.database) - store_before) / done["requests"] / 1000
        return done

    def wallet_servers(self, stack, postgres, name, count, settings, build=None):
        """So many servers on one database with 1,000 players that have money. build: see casino_server."""
        database = postgres.create_database(name)
        uri = postgres.uri_of(database)
        directory = self.directory / f"wallet-{name}"
        directory.mkdir()
        servers = []

        def prepare(server):
            if servers:
                return
            self.drive(uri, "--entries", 10000, program=build and build / "bench/ledger")
            customer, *_ = postgres.sql("SELECT id FROM customer", database).split()
            players = postgres.sql("SELECT id FROM player", database).split()
            (directory / "key").write_text(server.open_casino(customer))
            (directory / "players").write_text("\n".join(players) + "\n")

        for number in range(count):
            server = Croupier(build / "croupier" if build else self.options.croupier, self.directory,
                              name=f"wallet {name} {number}", prepare=prepare, limits="" if build else NO_LIMITS,
                              platform=uri, env={**os.environ, "CROUPIER_PLATFORM_TIMEOUT_MS": "10000"},
                              settings=f"[casino]\nsecrets_key_file = {directory}/secrets.key\n{settings}")
            stack.callback(server.stop)
            server.key, server.players, server.platform = (directory / "key").read_text(), directory / "players", uri
            servers.append(server)
        return servers

    def play_all(self, servers, clients):
        """`play` on all of them at once, each with its share of the clients."""
        with concurrent.futures.ThreadPoolExecutor(len(servers)) as threads:
            rows = list(threads.map(lambda server: self.play(server, clients // len(servers)), servers))
        return {"rate": sum(row["rate"] for row in rows), "p50": statistics.median(row["p50"] for row in rows),
                "p99": max(row["p99"] for row in rows), "commit": statistics.mean(row["commit"] for row in rows)}
