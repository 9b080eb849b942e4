"""What polling customers notice of an operator who looks around in the console: nothing, it is meant.

The server has one core for all its threads, those of the console too, so this is the worst case. In turns: a time in which customers
poll alone, one with the operator, and one alone again; of the two alone the one tells how far noise goes.
"""

import contextlib
import http.client
import itertools
import json
import re
import statistics
import threading

from harness import Croupier, event_row, markets_of_size, raw_response, wrk

# What the pages ask for, in the order in which somebody would open them; a page a second, which is more than a person does.
PAGES = [["overview?span=hours", "health"], ["customers?limit=50"], ["customers/{id}", "keys?customer={id}", "customers/{id}/denials",
         "usage?customer={id}"], ["audit?limit=100"], ["settings"], ["overview", "health"]]
PAGE_SECONDS = 1
CONNECTIONS = 8


class Operator:
    """Signs in, and opens one page after the other on one thread while another follows the overview, until it is stopped."""

    def __init__(self, server, customer):
        self.server, self.customer = server, customer
        link = re.search(r"lnk_\w+", server.run("operator", "add", "bench", "--role", "owner")).group()
        connection = self.connect()
        connection.request("POST", "/admin/v1/session", json.dumps({"link": link}),
                           {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(answer.read())
        self.cookie = answer.getheader("Set-Cookie").partition(";")[0]
        connection.close()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.server.operator_port, timeout=70)

    def ask(self, connection, path, **fields):
        connection.request("GET", f"/admin/v1/{path}", headers={"Cookie": self.cookie, **fields})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status not in (200, 304):
            raise RuntimeError(f"{path}: {answer.status} {body}")
        self.asked += 1
        return answer.getheader("ETag")

    def browse(self):
        connection = self.connect()
        for page in itertools.cycle(PAGES):
            for path in page:
                self.ask(connection, path.format(id=self.customer))
            if self.over.wait(PAGE_SECONDS):
                break
        connection.close()

    def follow(self):
        connection, tag = self.connect(), '""'
        while not self.over.is_set():
            tag = self.ask(connection, "overview", **{"If-None-Match": tag, "Prefer": "wait=1"})
        connection.close()

    @contextlib.contextmanager
    def looking_around(self):
        self.over, self.asked = threading.Event(), 0
        threads = [threading.Thread(target=target) for target in (self.browse, self.follow)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.over.set()
            for thread in threads:
                thread.join()


def quartiles(values):
    low, median, high = statistics.quantiles(values, n=4)
    return f"{median:.2f} ({low:.2f} to {high:.2f})"


class Console:
    """A part of bench/run.py."""

    def console(self):
        """The p99 of polling customers beside an operator who looks around in the console."""
        server = Croupier(self.options.croupier, self.directory, name="console")
        try:
            customer, key = server.customer()
            server.publish([event_row(34000001)], {34000001: markets_of_size(2000)})
            operator = Operator(server, customer)
            path = "/api/v1/cricket/events/34000001"
            headers = [f"X-Api-Key: {key}"]
            tag = re.search(rb"(?i)\r\netag: (\S+)", raw_response(server.port, path, headers)).group(1).decode()
            headers.append(f"If-None-Match: {tag}")

            def poll():
                return wrk(server.port, path, self.options.seconds, headers, connections=CONNECTIONS, latency=True)

            poll()
            alone, beside, again, asked = [], [], [], 0
            for _ in range(self.options.rounds):
                alone.append(poll())
                with operator.looking_around():
                    beside.append(poll())
                asked += operator.asked
                again.append(poll())
            rows = [{"of": name, "beside an operator": quartiles([b[what] / a[what] for a, b in zip(alone, beside)]),
                     "alone again": quartiles([b[what] / a[what] for a, b in zip(alone, again)]),
                     "alone": f"{statistics.median(a[what] for a in alone):.3g}"}
                    for name, what in (("p50", "p50"), ("p99", "p99"), ("requests a second", "rate"))]
            self.say("Polling beside a browsing operator", rows,
                     f"304 to {CONNECTIONS} connections, {self.options.rounds} rounds of {self.options.seconds} s in turns; ratios to the time "
                     f"alone before: median and quartiles. The operator was answered {asked} times. p50 and p99 alone in seconds")
        finally:
            server.stop()
