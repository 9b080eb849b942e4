"""Polls that wait: what a delivered answer costs, how late it is, and what a poll that waits takes.

The clients are bench/waiters.c, on the load's core; the server is on the other. A message says when it was made,
just before it was handed to the feed, so that what is late contains the commit. CPU is that of the server's own
process, as in harness.py; wall-clock figures hold for a machine that does nothing else.
"""

import contextlib
import http.client
import json
import pathlib
import statistics
import subprocess
import time

from grown import NotHere, install_node_packages
from harness import Croupier, HERE, LOAD_CORE, Server, event_row, minified, raw_response, rss_bytes, wait_for_port
from servers import free_port

CLIENTS, EVENTS = 10000, 2000
PROCESSES = 10     # of CLIENTS each: a process may have 20,000 descriptors here
EVERY = 0.6        # seconds between two publications that all clients are sent
DELIVERIES = 20000  # a second, spread over the events
FILLING = "x" * 420
BARE, ASKED = "bare loop that only sends", "bare loop that is asked"
AIM_OF_ASKED = 1.10   # of the loop that is asked, a delivery at one event
AIM_SPREAD_US = 13.5  # half of what a delivery cost before that was an aim, spread over the events
POLL = ("GET /api/v1/cricket/events/@EVENT@ HTTP/1.1\r\nHost: bench\r\nX-Api-Key: {key}\r\nIf-None-Match: @TAG@\r\n"
        "{prefer}\r\n")


def markets():
    return [{"t": f"{time.monotonic_ns():019d}", "filling": FILLING}]


class Waiters:
    """Clients that run until `stop`, which says what they have counted."""

    def __init__(self, program, port, clients, events, request, mode, directory):
        file = directory / f"request-{port}-{mode}"
        file.write_bytes(request.encode())
        self.process = subprocess.Popen(["taskset", "-c", str(LOAD_CORE), program, str(port), str(clients), str(events), str(file),
                                         str(mode)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("the clients did not get ready")

    def stop(self):
        self.process.stdin.close()
        return json.loads(self.process.stdout.read())


class Stream:
    """`croupier feed stream` on the load's core; every line is answered."""

    def __init__(self, server):
        self.process = subprocess.Popen(["taskset", "-c", str(LOAD_CORE), server.binary, "feed", "stream", "-c", str(server.config)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def publish(self, *events):
        for event in events:
            self.process.stdin.write(json.dumps({"odds": "cricket", "event": event, "document": markets()}) + "\n")
        self.process.stdin.flush()
        for _ in events:
            assert '"published": true' in self.process.stdout.readline()

    def stop(self):
        self.process.stdin.close()
        assert self.process.wait(20) == 0


class Pushing(Server):
    """Sends the lines of its standard input to all who are connected."""

    mode, events = "push", 1

    def publish(self, *_events):
        self.process.stdin.write(minified(markets()) + b"\n")
        self.process.stdin.flush()


class BarePush(Pushing):
    """Sends, to all or to who has asked since; with `poll` the clients are those of croupier, request and all."""

    def __init__(self, name, program, head, directory, events=1, mode="push", request="GET / HTTP/1.1\r\n\r\n"):
        file = directory / "push-head"
        file.write_bytes(head)
        super().__init__(name, [program, str(file), mode, str(events)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())
        self.events, self.mode, self.request = events, mode, request
        self.publish(1)

    def publish(self, *events):
        for event in events:
            self.process.stdin.write((b"%d " % event if self.events > 1 else b"") + minified(markets()) + b"\n")
        self.process.stdin.flush()


class NodePush(Pushing):
    def __init__(self, place):
        install_node_packages(place, HERE / "peers" / "push")
        super().__init__("Node and ws", ["node", str(place / "server.js")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = json.loads(self.process.stdout.readline())["port"]
        self.request = ("GET / HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")


class Nchan(Server):
    """nginx with Debian's nchan, one worker, EventSource."""

    MODULE, mode, events = pathlib.Path("/usr/lib/nginx/modules/ngx_nchan_module.so"), "push", 1

    def __init__(self, directory):
        if not self.MODULE.exists():
            raise NotHere("no libnginx-mod-nchan here")
        root, port = directory / "nchan", free_port()
        root.mkdir()
        (root / "nginx.conf").write_text(f"""
load_module {self.MODULE};
daemon off; master_process off; worker_processes 1; pid {root}/pid; error_log {root}/error.log;
events {{ worker_connections 32000; multi_accept on; }}
http {{
  access_log off; tcp_nodelay on; client_body_temp_path {root}/b; proxy_temp_path {root}/p;
  fastcgi_temp_path {root}/f; uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;
  server {{ listen 127.0.0.1:{port} backlog=4096;
    location /publish {{ nchan_publisher; nchan_channel_id e; nchan_message_buffer_length 2; }}
    location /wait {{ nchan_subscriber eventsource; nchan_channel_id e; nchan_subscriber_first_message oldest; }}
  }}
}}""")
        super().__init__("nchan", ["nginx", "-c", str(root / "nginx.conf"), "-e", str(root / "error.log")])
        self.port = port
        wait_for_port(port)
        self.request = "GET /wait HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n"
        self.publish()

    def publish(self, *_events):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/publish", minified(markets()))
        assert connection.getresponse().status in (200, 201, 202)
        connection.close()


class Waiting:
    """The part of the bench that is about waiting; a base of Bench."""

    def waiting_server(self, name="croupier", **options):
        server = Croupier(self.options.croupier, self.directory, name=name, **options)
        _, server.key = server.customer()
        server.publish([event_row(1 + i) for i in range(EVENTS)], {})
        stream = Stream(server)
        for first in range(1, EVENTS + 1, 500):
            stream.publish(*range(first, min(first + 500, EVENTS + 1)))
        server.publish, server.stream = stream.publish, stream
        server.events, server.mode, server.request = None, "poll", POLL.format(key=server.key, prefer="Prefer: wait=55\r\n")
        return server

    def waiters(self, server, clients, events, mode, request=None):
        return Waiters(self.options.waiters, server.port, clients, events, request or server.request, mode, self.directory)

    def deliver(self, server):
        """(CPU microseconds a delivery, p99 in ms, deliveries) of so many seconds."""
        waiters = self.waiters(server, CLIENTS, 1, server.mode)
        server.publish(1)
        time.sleep(EVERY)
        before, began = server.cpu_ns(), time.monotonic()
        while time.monotonic() - began < 2 * self.options.seconds:
            server.publish(1)
            time.sleep(EVERY)
        time.sleep(EVERY)
        cpu = server.cpu_ns() - before
        counted = waiters.stop()
        for _ in range(2):  # one that only sends notices so who has gone
            server.publish(1)
            time.sleep(EVERY)
        deliveries = max(counted["deliveries"] - CLIENTS, 1)  # the first was before
        return cpu / deliveries / 1000, counted["p99_ms"], deliveries

    def waiting(self):
        """Polls that wait: CPU a delivery, how late, memory, others' polls beside a wave."""
        with contextlib.ExitStack() as stack:
            def started(make):
                try:
                    server = make()
                except NotHere as reason:
                    print(f"  left out: {reason}")
                    return
                stack.callback(server.stop)
                servers.append(server)
            servers = []
            started(self.waiting_server)
            croupier = servers[0]
            stack.callback(croupier.stream.stop)
            whole = raw_response(croupier.port, "/api/v1/cricket/events/1", [f"X-Api-Key: {croupier.key}"])
            head, _, body = whole.partition(b"\r\n\r\n")
            start = body[:body.index(b'"odds":')] + b'"odds":'
            for events in (1, EVENTS):
                for name, mode in ((BARE, {}), (ASKED, {"mode": "poll", "request": croupier.request})):
                    started(lambda: BarePush(name, self.options.bare_push, head + b"\r\n\r\n" + start, self.directory, events, **mode))
            started(lambda: Nchan(self.directory))
            started(lambda: NodePush(pathlib.Path(self.options.peers) / "push"))
            self.parked(croupier)
            self.one_event([server for server in servers if server.events != EVENTS], len(whole))
            self.many_events([croupier, *(server for server in servers if server.events == EVENTS)])
            self.wave(croupier)
            self.against_polling(croupier)

    def in_turns(self, servers, measure):
        """By server: the median CPU a delivery, its spread, and the medians of what else `measure` returns."""
        found = {server.name: [] for server in servers}
        for _ in range(self.options.rounds):
            for server in servers:
                found[server.name].append(measure(server))
        rows = {}
        for name, rounds in found.items():
            cpu, *others = zip(*rounds)
            rows[name] = (statistics.median(cpu), f"{min(cpu):.2f} to {max(cpu):.2f}", *map(statistics.median, others))
        return rows

    def one_event(self, servers, size):
        found = self.in_turns(servers, self.deliver)
        self.say("A delivery to each of 10,000 clients that wait for one event", [
            {"server": name, "cpu_us": round(cpu, 2), "of_bare": round(cpu / found[BARE][0], 2),
             "of_asked": round(cpu / found[ASKED][0], 2), "aim_of_asked": AIM_OF_ASKED if name == "croupier" else "",
             "p99_ms": round(late, 1), "deliveries": round(deliveries * self.options.rounds), "cpu_spread": spread}
            for name, (cpu, spread, late, deliveries) in found.items()],
            f"CPU of the server a message of about {size} bytes that a client has received; with croupier each delivery "
            "is a poll as well: read, judged, parked, answered, logged. The bare loops send the same bytes, one of them to "
            "clients that ask each time as croupier's do; "
            f"nchan speaks EventSource, Node WebSocket. A publication every {EVERY} s; p99 from before the commit to received")

    def many_events(self, servers):
        found = self.in_turns(servers, self.spread)
        self.say("Deliveries that are spread over 2,000 events", [
            {"server": name, "cpu_us": round(cpu, 2), "of_asked": round(cpu / found[ASKED][0], 2),
             "aim_us": AIM_SPREAD_US if name == "croupier" else "", "p50_ms": round(half, 2), "p99_ms": round(late, 2),
             "deliveries_a_second": round(a_second), "cpu_spread": spread}
            for name, (cpu, spread, half, late, a_second) in found.items()],
            f"10,000 clients, five to an event, {DELIVERIES} deliveries a second; CPU of the server a delivery; from before the "
            "commit to received. The bare loops only find an event's clients and send")

    def spread(self, server):
        waiters = self.waiters(server, CLIENTS, EVENTS, server.mode)
        a_second = DELIVERIES * EVENTS // CLIENTS
        before, began, sent = server.cpu_ns(), time.monotonic(), 0
        while (elapsed := time.monotonic() - began) < 2 * self.options.seconds:
            due = min(int(elapsed * a_second) - sent, EVENTS)
            if due > 0:
                server.publish(*(1 + (sent + i) % EVENTS for i in range(due)))
                sent += due
            time.sleep(0.001)
        took = time.monotonic() - began
        time.sleep(0.3)
        cpu = server.cpu_ns() - before
        counted = waiters.stop()
        for _ in range(2):  # as in `deliver`
            server.publish(*range(1, EVENTS + 1))
            time.sleep(EVERY)
        return cpu / counted["deliveries"] / 1000, counted["p50_ms"], counted["p99_ms"], counted["deliveries"] / took

    def parked(self, server):
        before = rss_bytes(server.pid)
        waiters = self.waiters(server, CLIENTS, 1, "poll")
        time.sleep(1)
        more = rss_bytes(server.pid) - before
        waiters.stop()
        self.say("What a poll that waits takes", [{"clients": CLIENTS, "bytes_each": more // CLIENTS}],
                 "resident memory that a fresh server has more with them than before: of the process, without the kernel's")

    def wave(self, server):
        """Others' polls beside a wave; so many clients as one process may have."""
        counts, rows = [0, 10000], []
        for clients in counts:
            waiters = self.waiters(server, clients, 1, "poll") if clients else None
            plain = self.plain_poll(server)
            for _ in range(4):
                server.publish(1)
                time.sleep(EVERY)
            rows.append({"clients_that_wait": clients, "waves": 4 if clients else 0, **self.polled(plain)})
            if waiters:
                waiters.stop()
        self.say("A poll of another event beside waves", rows,
                 "one client that polls every 5 ms, without waiting; how long its answers took")

    def crowd(self):
        """As many clients as several processes may have, all of them sent each publication."""
        with contextlib.ExitStack() as stack:
            servers = []
            for number in range(PROCESSES):
                server = self.waiting_server(f"crowd {number}")
                stack.callback(server.stop)
                stack.callback(server.stream.stop)
                servers.append(server)
            before = sum(rss_bytes(server.pid) for server in servers)
            waiters = [self.waiters(server, CLIENTS, 1, "poll") for server in servers]
            plain = self.plain_poll(servers[0])
            more = sum(rss_bytes(server.pid) for server in servers) - before
            cpu, waves, pause = sum(server.cpu_ns() for server in servers), 4, 10 * EVERY
            for _ in range(waves):
                for server in servers:
                    server.publish(1)
                time.sleep(pause)
            cpu = sum(server.cpu_ns() for server in servers) - cpu
            polled = self.polled(plain)
            counted = [clients.stop() for clients in waiters]
        self.say("100,000 that wait for one event", [
            {"processes": PROCESSES, "clients": PROCESSES * CLIENTS, "bytes_each": more // (PROCESSES * CLIENTS),
             "cpu_us": round(cpu / sum(row["deliveries"] for row in counted) / 1000, 2), "waves": waves,
             "deliveries": sum(row["deliveries"] for row in counted), "p99_ms": max(row["p99_ms"] for row in counted),
             "plain_polls": polled["polls"], "plain_p50_ms": polled["p50_ms"], "plain_p99_ms": polled["p99_ms"]}],
            f"{PROCESSES} processes of croupier on one core, as many of clients on the other; a publication to all of them every "
            f"{pause:.0f} s; p99 of the slowest process, from before its commit to received; beside it a client that polls "
            "another event of the first every 5 ms")

    def plain_poll(self, server):
        poll = POLL.format(key=server.key, prefer="").replace("If-None-Match: @TAG@\r\n", "")
        return self.waiters(server, 1, 1, "5", poll.replace("@EVENT@", "2"))

    @staticmethod
    def polled(plain):
        counted = plain.stop()
        return {"polls": counted["answers"], "p50_ms": counted["took_p50_ms"], "p99_ms": counted["took_p99_ms"]}

    def against_polling(self, server):
        rows, clients = [], 1000
        for name, mode, prefer in (("waits", "poll", "Prefer: wait=55\r\n"), ("polls each second", 1000, "")):
            waiters = self.waiters(server, clients, 1, mode, POLL.format(key=server.key, prefer=prefer))
            before, began, published = server.cpu_ns(), time.monotonic(), 0
            while time.monotonic() - began < 20:
                server.publish(1)
                published += 1
                time.sleep(5)
            cpu, took = server.cpu_ns() - before, time.monotonic() - began
            counted = waiters.stop()
            rows.append({"client": name, "bytes_a_second": round((counted["bytes_in"] + counted["bytes_out"]) / clients / took, 1),
                         "cpu_us_a_second": round(cpu / clients / took / 1000, 2), "p50_ms": counted["p50_ms"]})
        self.say("A client that waits against one that polls each second", rows,
                 f"an event of about 0.6 KB that changes every 5 s, {clients} clients; bytes of requests and answers, CPU of the "
                 "server, both a client and second; how late a change is, half of them")

    def interest(self):
        """From the first request of an event until the store knows of it."""
        count, rows = 300, []
        with contextlib.ExitStack() as stack:
            redis = stack.enter_context(self.on_redis())
            for store, uri in (("embedded", None), ("Redis", redis.tcp_uri())):
                server = Croupier(self.options.croupier, self.directory, name=f"interest {store}", odds=uri)
                stack.callback(server.stop)
                _, key = server.customer()
                server.publish([event_row(1 + i) for i in range(count)], {})
                done = self.on_load_core(self.options.interest, uri or f"embedded:{server.directory}/odds", server.port, key, count)
                rows.append({"store": store, "events": count, **json.loads(done)})
        self.say("Interest in an event", rows,
                 "from before the first request of an event was sent until the store, asked every 0.2 ms, knows of it")
