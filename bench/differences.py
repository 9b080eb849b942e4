"""Answers as differences (`dcz`) against gzip: bytes with the head, and the server's CPU, of a delivery to polls that wait.

bench/changes.c runs the simulated feed as fast as it is taken, at a fixed seed. After each second of its time the
clients of every event that changed read their answers and wait again, so that bytes do not depend on the machine.
"""

import base64
import collections
import contextlib
import gzip
import hashlib
import http.client
import socket
import subprocess

import zstandard

from harness import LOAD_CORE, Croupier

SEED, EVENTS = 33, 4  # of each sport
AIM, AIM_OF_A_SPORT = 0.45, 0.65  # of gzip's bytes


class Event:
    """An event and the clients that wait for it, all of which hold the same body."""

    def __init__(self, server, path, coding, clients):
        self.server, self.path, self.coding, self.clients = server, path, coding, clients
        self.body, self.plain_tag, self.tag = None, "", ""
        self.ask(clients)

    def ask(self, clients):
        lines = [f"GET {self.path} HTTP/1.1", "Host: bench", f"X-Api-Key: {self.server.key}", f"Accept-Encoding: gzip, {self.coding}"]
        if self.body is not None:
            lines += [f"If-None-Match: {self.tag}", "Prefer: wait=55"]
            if self.coding == "dcz":
                lines.append(f"Available-Dictionary: :{base64.b64encode(hashlib.sha256(self.body).digest()).decode()}:")
        for client in clients:
            client.sendall("\r\n".join([*lines, "", ""]).encode())

    def take(self, client):
        """The size, the head and the body of the next answer that is no 304."""
        while True:
            got = client.recv(1 << 20)
            head, _, body = got.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
            while len(body) < int(fields.get("Content-Length", 0)):
                body += client.recv(1 << 20)
            if not got.startswith(b"HTTP/1.1 304"):
                return len(head) + 4 + len(body), fields, body
            self.ask([client])

    def deliver(self, probe, count):
        """Reads what the clients are sent, if the event has changed; `count` is given each size and coding."""
        probe.request("GET", self.path, headers={"X-Api-Key": self.server.key, "If-None-Match": self.plain_tag})
        whole = probe.getresponse()
        plain, self.plain_tag = whole.read(), whole.headers["ETag"]
        if whole.status == 304:
            return
        assert whole.status == 200, plain
        for number, client in enumerate(self.clients):
            size, fields, body = self.take(client)
            coding = fields.get("Content-Encoding")
            if self.body is not None:  # else nobody has waited
                count(size, coding)
            if number == 0:
                assert self.decoded(coding, body) == plain
        self.body, self.tag = plain, fields["ETag"]
        self.ask(self.clients)

    def decoded(self, coding, body):
        if coding == "dcz":
            raw = zstandard.ZstdCompressionDict(self.body, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            return zstandard.ZstdDecompressor(dict_data=raw).decompress(body[40:])
        return gzip.decompress(body) if coding == "gzip" else body


class Differences:
    """The part of the bench that is about differences; a base of Bench."""

    def differences(self):
        """Differences against gzip: bytes and CPU of a delivery, an hour of the simulated feed."""
        sizes, cpu = {}, {}
        for coding in ("identity", "dcz"):  # beside gzip
            sizes[coding], cpu[coding] = self.an_hour(coding)
        rows = []
        for sport, (deliveries, size, differences) in {**sizes["dcz"], "all": map(sum, zip(*sizes["dcz"].values()))}.items():
            zipped = sizes["identity"]
            gzip_each = (sum(row[1] for row in zipped.values()) / sum(row[0] for row in zipped.values()) if sport == "all"
                         else zipped[sport][1] / zipped[sport][0])
            rows.append({"sport": sport, "deliveries": deliveries, "gzip_bytes": round(gzip_each), "dcz_bytes": round(size / deliveries),
                         "of_gzip": round(size / deliveries / gzip_each, 3), "aim": AIM if sport == "all" else AIM_OF_A_SPORT,
                         "differences": round(differences / deliveries, 3)})
        self.say("A change as the difference from the body before", rows,
                 f"bytes of an answer with its head to a poll that waits; {self.options.minutes} minutes of the simulated feed at seed {SEED}, "
                 f"{EVENTS} events of each sport, {self.options.clients} clients; differences: the share of answers that are one")
        self.say("CPU of a delivery as a difference", [
            {"coding": name, "cpu_us": round(cpu[coding], 2), "of_gzip": round(cpu[coding] / cpu["identity"], 2)}
            for name, coding in (("gzip", "identity"), ("dcz", "dcz"))],
            "CPU of the server a delivery, with its part of reading the publication and making the answer")

    def an_hour(self, coding):
        """By sport: deliveries, bytes, and how many were differences; CPU microseconds a delivery."""
        sizes, events = collections.defaultdict(lambda: [0, 0, 0]), {}
        with contextlib.ExitStack() as stack:
            server = Croupier(self.options.croupier, self.directory, name=f"differences {coding}")
            stack.callback(server.stop)
            _, server.key = server.customer()
            changes = subprocess.Popen(["taskset", "-c", str(LOAD_CORE), self.options.changes, str(SEED), str(EVENTS),
                                        str(60 * self.options.minutes)], stdout=subprocess.PIPE)
            feed = subprocess.Popen(["taskset", "-c", str(LOAD_CORE), server.binary, "feed", "stream", "-c", str(server.config)],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            stack.callback(changes.kill)
            stack.callback(feed.kill)
            probe = http.client.HTTPConnection("127.0.0.1", server.port)
            idle = collections.defaultdict(list)  # clients by sport
            before = server.cpu_ns()
            for names, publication in zip(changes.stdout, changes.stdout):
                feed.stdin.write(publication)
                feed.stdin.flush()
                assert b'"published": true' in feed.stdout.readline()
                for name in names.decode().split():
                    sport = name.strip("-").partition("/")[0]
                    if name.startswith("-"):
                        gone = events.pop(name[1:])
                        for client in gone.clients:
                            gone.take(client)
                        idle[sport] += gone.clients
                    elif name not in events:
                        each = self.options.clients // (5 * EVENTS)
                        idle[sport] += [socket.create_connection(("127.0.0.1", server.port)) for _ in range(each - len(idle[sport]))]
                        clients, idle[sport] = idle[sport][:each], idle[sport][each:]
                        events[name] = Event(server, "/api/v1/{}/events/{}".format(*name.split("/")), coding, clients)

                for name, event in events.items():
                    def count(size, coding, of=sizes[name.partition("/")[0]]):
                        of[0] += 1
                        of[1] += size
                        of[2] += coding == "dcz"
                    event.deliver(probe, count)
            used = server.cpu_ns() - before
        return sizes, used / sum(row[0] for row in sizes.values()) / 1000
