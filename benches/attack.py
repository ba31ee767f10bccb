#!/usr/bin/env python3
"""Measures what a sender with a public key can cost: memory, work per event, and the latency of another organization.

usage: attack.py [memory|work|neighbour|paths ...] [--only NAME ...] [--binary PATH] [--memory 128MiB] [--events 1000000] [--seconds 60]

memory     peak memory of the server (VmHWM) for each of: a new company, group, source, referrer, e-mail domain (also such that begin alike), user or page with each
           event; a million values of a property, and events with 128 metadata keys, sealed and aggregated; 5,000 user agents of 120 KB;
           100 connections that never read; 1,100 connections held open; bodies held on every path that takes one, and 100 large ones of
           management; eight concurrent heavy queries; eight builds of company profiles from websites of four origins with 512 KB of
           robots.txt each, and from pages that expand when they are read;
           a list of the most active of 400,000 companies that e-mail domains are
work       CPU time of the server per batch of 5,000 events of one user, with a new company, group, page or referrer in each event:
           the last batches compared with the first; then a kill, and the rate of the replay
neighbour  eight connections of that load for a while: latency of another organization's events and queries meanwhile; duration of a
           stop; time until the server answers after a kill
paths      goals, funnels and journeys over a million pages, a million events of one person, and 200 goals: how long an answer takes, fresh and
           kept; the latency of another organization's events and queries meanwhile; peak memory

Requires a release build. Uses loopback and temporary directories only, and stops all processes it started. Prints one table per part.
"""
import argparse
import contextlib
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.pop(0)  # keep http.py in this directory from shadowing the standard module
import http.client
import http.server

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[1] / "target"))
BATCH = 5_000
# The attacker's address, which differs from its neighbour's.
ATTACKER = ("127.0.0.2", 0)
TICK = os.sysconf("SC_CLK_TCK")


class Server:
    """A server with two organizations: `key` is the attacker's, `other` the neighbour's."""

    def __init__(self, options, *flags):
        self.binary, self.place = options.binary, Path(tempfile.mkdtemp(prefix="headcount-attack-", dir=options.dir))
        self.flags = ["--data-dir", str(self.place / "data"), "--memory", options.memory, "--listen", "127.0.0.1:0", *flags]
        init = [self.binary, "init", "--json", "--data-dir", self.place / "data"]
        self.keys = json.loads(subprocess.run(init, capture_output=True, text=True, check=True).stdout)
        self.start()
        body = json.dumps({"name": "neighbour"})
        head = {"authorization": f"Bearer {self.keys['root_token']}", "content-type": "application/json"}
        self.other = json.loads(self.request("POST", "/organizations", body, head)[1])

    def start(self):
        """Starts the process, waits until it listens, and returns how long that took."""
        began = time.monotonic()
        self.log = open(self.place / "log", "a", encoding="utf-8")
        self.process = subprocess.Popen([self.binary, "serve", *self.flags], stdout=subprocess.PIPE, stderr=self.log, text=True)
        for line in self.process.stdout:
            if found := re.search(r"listening on http://(\S+)", line):
                self.address = found.group(1)
                return time.monotonic() - began
        raise SystemExit(f"the server did not start: {(self.place / 'log').read_text()[-2000:]}")

    def request(self, method, path, body=None, head=None, timeout=120):
        connection = http.client.HTTPConnection(self.address, timeout=timeout)
        connection.request(method, path, body, head or {})
        response = connection.getresponse()
        result = response.status, response.read()
        connection.close()
        return result

    def ask(self, path, keys=None, body=None, timeout=120):
        head = {"authorization": f"Bearer {(keys or self.keys)['api_token']}", "content-type": "application/json"}
        return self.request("POST" if body else "GET", path, body, head, timeout)

    def memory_mib(self, field="VmHWM"):
        return int(re.search(rf"{field}:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text()).group(1)) / 1024

    def cpu_s(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def stop(self, how=signal.SIGTERM, timeout=90):
        """Stops the process. Returns the seconds until it exited; `None` if it had to be killed."""
        began = time.monotonic()
        self.process.send_signal(how)
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        return time.monotonic() - began

    def remove(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.place)


@contextlib.contextmanager
def running(options, *flags):
    """A server that runs for the duration of a `with` block."""
    server = Server(options, *flags)
    try:
        yield server
    finally:
        server.remove()


def selected(options, names):
    return [name for name in names if not options.only or name in options.only]


NEW = {  # events, by the attribute that is new in each
    "companies": '{{"name":"open","user_id":"one","group_id":"c{0}.example"}}',
    "groups": '{{"name":"open","user_id":"one","group_type":"team","group_id":"g{0}"}}',
    "sources": '{{"name":"pageview","user_id":"u{0}","url":"https://x.example/?utm_source=s{0}"}}',
    "referrers": '{{"name":"pageview","user_id":"one","url":"https://x.example/","referrer":"https://r{0}.example/"}}',
    "domains": '{{"name":"open","user_id":"u{0}","metadata":{{"email":"u@d{0}.example"}}}}',
    # Beyond what a top list knows of names without reading records.
    "alike": '{{"name":"open","user_id":"u{0}","metadata":{{"email":"u@customer-of-ours-{0:06d}.example"}}}}',
    "users": '{{"name":"open","user_id":"u{0}"}}',
    "events": '{{"name":"open","user_id":"one"}}',
    "pages": '{{"name":"pageview","user_id":"one","url":"https://x.example/p{0}"}}',
    "values": '{{"name":"open","user_id":"u","metadata":{{"value":"value number {0}","n":{0}}}}}',
    # 128 keys and some 4 KB each: a batch of 900 has nearly 4 MiB.
    "keys": '{{"name":"open","user_id":"u","metadata":{{' + ",".join(f'"key{at}":"value {{0}} of {at}"' for at in range(128)) + "}}}}",
}

# The kinds that `work` and `neighbour` measure.
KINDS = ("companies", "groups", "pages", "referrers")


def batch(kind, first, count=BATCH):
    event = NEW[kind].format
    return '{"events":[' + ",".join([event(number) for number in range(first, first + count)]) + "]}"


BATCHES = {"keys": 900}


def send(connection, key, body):
    """Sends a batch. Returns the number of recorded events and the status."""
    connection.request("POST", "/i/batch", body, {"x-service-pk": key, "content-type": "application/json"})
    response = connection.getresponse()
    text = response.read()
    return (json.loads(text)["recorded"] if response.status == 202 else 0), response.status


def fill(server, kind, events):
    """Sends `events` events in sequential batches. Returns the number of recorded events, and the responses by status."""
    connection, recorded, statuses = http.client.HTTPConnection(server.address, timeout=120), 0, {}
    count = BATCHES.get(kind, BATCH)
    for first in range(0, events, count):
        for _ in range(200):
            more, status = send(connection, server.keys["public_key"], batch(kind, first, count))
            statuses[status] = statuses.get(status, 0) + 1
            recorded += more
            if status != 503:
                break
            time.sleep(0.1)
    return recorded, statuses


# memory


def always_new(kind):
    def run(server, options):
        recorded, statuses = fill(server, kind, options.events)
        return f"{recorded:,} recorded, responses {statuses}"

    return run


def large_agents(server, _):
    connection = http.client.HTTPConnection(server.address, timeout=30)
    statuses = {}
    for number in range(5_000):
        agent = f"Mozilla/5.0 ({number}) " + "x" * 120_000
        head = {"x-service-pk": server.keys["public_key"], "content-type": "application/json", "user-agent": agent}
        connection.request("POST", "/i", '{"name":"open"}', head)
        response = connection.getresponse()
        response.read()
        statuses[response.status] = statuses.get(response.status, 0) + 1
    return f"responses {statuses}"


def unread(server, _):
    host, port = server.address.split(":")
    request, open_ = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 500, []
    for _ in range(100):
        one = socket.create_connection((host, int(port)), source_address=ATTACKER)
        one.setblocking(False)
        open_.append(one)
    end, sent = time.monotonic() + 10, 0
    while time.monotonic() < end:
        for one in list(open_):
            try:
                sent += one.send(request)
            except BlockingIOError:
                pass
            except OSError:
                open_.remove(one)
        time.sleep(0.01)
    return f"{sent / len(request) * 500:,.0f} requests accepted, {len(open_)} connections still open"


def held(server, _):
    host, port = server.address.split(":")
    head = f"POST /i/batch HTTP/1.1\r\nhost: x\r\nx-service-pk: {server.keys['public_key']}\r\ncontent-type: application/json\r\ncontent-length: 4000000\r\n\r\n"
    open_ = []
    for _ in range(1_100):
        one = socket.create_connection((host, int(port)), source_address=ATTACKER)
        one.setblocking(False)
        try:
            one.send(head.encode() + b'{"events":[' + b" " * 60_000)
        except OSError:
            pass
        open_.append(one)
    worst, statuses, end = 0, {}, time.monotonic() + 8
    while time.monotonic() < end:
        began = time.monotonic()
        body, key = '{"name":"open","user_id":"n"}', server.other["public_key"]
        status, _ = server.request("POST", "/i", body, {"x-service-pk": key, "content-type": "application/json"})
        worst, statuses[status] = max(worst, time.monotonic() - began), statuses.get(status, 0) + 1
        time.sleep(0.05)
    return f"events of another organization meanwhile: {statuses}, at most {worst * 1000:.0f} ms"


def holding(server, head, length, sent, connections):
    """Opens connections, and sends so much of a body of this length on each. Returns them."""
    host, port = server.address.split(":")
    request, open_ = f"{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n".encode() + b" " * sent, []
    for _ in range(connections):
        one = socket.create_connection((host, int(port)), source_address=ATTACKER)
        one.settimeout(1)
        with contextlib.suppress(OSError):
            one.sendall(request)
        open_.append(one)
    return open_


def bodies(server, _):
    """Holds bodies on every path of the document that takes one, one path after the other."""
    document, worst, statuses = json.loads(server.request("GET", "/openapi.json")[1]), {}, {}
    paths = [(method, path) for path, of in document["paths"].items() for method, operation in of.items() if "requestBody" in operation]
    for method, path in paths:
        filled = re.sub(r"\{[^}]*\}", "x", path.replace("{project_id}", server.keys["project_id"]))
        head = f"{method.upper()} {filled} HTTP/1.1\r\nhost: x\r\nx-service-pk: {server.keys['public_key']}\r\n"
        if not path.startswith("/v1"):
            head += f"authorization: Bearer {server.keys['api_token']}\r\n"
        open_ = holding(server, head, 65_536, 65_000, 1_100)
        worst[f"{method} {path}"] = server.memory_mib("VmRSS")
        body, key = '{"name":"open","user_id":"n"}', server.other["public_key"]
        status, _ = server.request("POST", "/i", body, {"x-service-pk": key, "content-type": "application/json"})
        statuses[status] = statuses.get(status, 0) + 1
        [one.close() for one in open_]
    most = max(worst, key=worst.get)
    return f"{len(paths)} paths, most with {most}; events of another organization meanwhile: {statuses}"


def management(server, _):
    """Holds large bodies of changes, while another organization changes itself."""
    head = f"PATCH /organization HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {server.keys['api_token']}\r\n"
    open_ = holding(server, head, 4 << 20, (4 << 20) - 1, 100)
    other = {"authorization": f"Bearer {server.other['api_token']}", "content-type": "application/json"}
    statuses = [server.request("PATCH", "/organization", '{"name":"another"}', other)[0] for _ in range(20)]
    [one.close() for one in open_]
    return f"changes of another organization meanwhile: { {status: statuses.count(status) for status in statuses} }"


def queries(server, options):
    fill(server, "companies", options.events * 3 // 10)
    fill(server, "groups", options.events * 3 // 10)
    paths = ["/groups/top?group_type=team&limit=100", "/companies/top?limit=100&range_days=365"]
    scan = f"/projects/{server.keys['project_id']}/analytics/count-unique-users-per-day"
    statuses, worst, end = {}, [0], time.monotonic() + 20

    def work(number):
        while time.monotonic() < end:
            began = time.monotonic()
            if number % 3 == 2:
                status, _ = server.ask(scan, body='{"event_name":"open"}')
            else:
                status, _ = server.ask(paths[number % 3])
            statuses[status] = statuses.get(status, 0) + 1
            worst[0] = max(worst[0], time.monotonic() - began)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    health = 0
    while time.monotonic() < end:
        began = time.monotonic()
        server.request("GET", "/healthz")
        health = max(health, time.monotonic() - began)
        time.sleep(0.05)
    [thread.join() for thread in threads]
    return f"responses {statuses}, at most {worst[0] * 1000:,.0f} ms; /healthz at most {health * 1000:,.0f} ms"


def top_domains(server, options):
    """The companies of e-mail domains that begin alike, of one event each, and the list of the most active ones."""
    recorded, statuses = fill(server, "alike", options.events * 4 // 10)
    filled, took = server.memory_mib(), []
    for _ in range(3):
        began = time.monotonic()
        status, _ = server.ask("/companies/top?limit=100&range_days=365")
        took.append(f"{time.monotonic() - began:.1f} s ({status})")
    return f"{recorded:,} recorded, {statuses}; {filled:.0f} MiB before the lists; they took {took}"


def sealed(kind, field, share):
    """Seals the events while one property of them is asked for, then asks again."""

    def run(server, options):
        recorded, statuses = fill(server, kind, int(options.events * share))
        filled = server.memory_mib()
        token = (server.place / "data" / "operator-token").read_text().strip()
        took = []

        def ask():
            began = time.monotonic()
            path = f"/projects/{server.keys['project_id']}/analytics/aggregate"
            question = {"start_date": "2026-01-01", "metadata_field": field, "sum_metadata_field": "n", "limit": 10}
            status, body = server.ask(path, body=json.dumps(question))
            took.append(f"{time.monotonic() - began:.1f} s ({status}, {json.loads(body).get('total_groups')} groups)")

        asking = threading.Thread(target=ask)
        asking.start()
        status, _ = server.request("POST", "/admin/archive/seal", "", {"authorization": f"Bearer {token}"})
        asking.join()
        ask()
        return f"{recorded:,} recorded, {statuses}; {filled:.0f} MiB before sealing ({status}); asked meanwhile and after: {took}"

    return run


class Website(http.server.BaseHTTPRequestHandler):
    """A website of which every part is as large as it may be. Its home page leads from port to port, then to one of the pages."""

    ROBOTS = b"User-agent: *\n" + b"Disallow:/%x*$\n" * 34_951
    PAGES = [
        b"<p " + b"a b c d e " * 209_000,
        b"<base href='/" + b"b" * (1 << 20) + b"/'>" + b"<a href=about>about</a>" * 2_000,
        b"<script type='application/ld+json'>[" + b'{"":0},' * 36_000 + b"0]</script>",
        "\u20ac".encode() * 690_000,
    ]

    def do_GET(self):
        host, port = self.server.server_address
        ports = self.server.ports
        if self.path == "/robots.txt":
            self.answer(self.ROBOTS)
        elif port != ports[-1]:
            self.answer(b"", f"http://{host}:{ports[ports.index(port) + 1]}/")
        else:
            self.server.answered += 1
            self.answer(self.PAGES[self.server.answered % len(self.PAGES)])

    def answer(self, body, location=None):
        self.send_response(302 if location else 200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        if location:
            self.send_header("location", location)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_):
        pass


def robots(server, _):
    origins = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Website) for _ in range(4)]
    for one in origins:
        one.ports, one.answered = [other.server_address[1] for other in origins], 0
        threading.Thread(target=one.serve_forever, daemon=True).start()
    head = {"authorization": f"Bearer {server.keys['root_token']}", "content-type": "application/json"}
    website, runs, ends = f"http://127.0.0.1:{origins[0].ports[0]}", [], {}
    for number in range(16):
        keys = json.loads(server.request("POST", "/organizations", json.dumps({"name": f"o{number}"}), head)[1])
        status, body = server.ask("/company-profiles/build", keys, json.dumps({"website": website}))
        assert status == 202, body
        runs.append((keys, json.loads(body)["run_id"]))
    for keys, run in runs:
        while (build := json.loads(server.ask(f"/company-profiles/builds/{run}", keys)[1]))["status"] in ("queued", "running"):
            time.sleep(0.1)
        end = (build["error"] or {}).get("code", build["status"])
        ends[end] = ends.get(end, 0) + 1
    for one in origins:
        one.shutdown()
        one.server_close()
    return f"builds {ends}"


SEALED = {"values": sealed("values", "value", 1), "keys": sealed("keys", "key0", 0.06)}
HELD = {"held": held, "bodies": bodies, "management": management}
MEMORY = {kind: always_new(kind) for kind in NEW if kind != "events"} | SEALED | {"agents": large_agents, "unread": unread} | HELD | {"queries": queries}
MEMORY |= {"robots.txt": robots, "top domains": top_domains}
FLAGS = {"robots.txt": ["--outbound-allow", "127.0.0.1"]}


def memory(options):
    print(f"\n| `--memory {options.memory}` | peak MiB | seconds | |\n|---|---|---|---|", flush=True)
    for name in selected(options, MEMORY):
        with running(options, *FLAGS.get(name, [])) as server:
            began = time.monotonic()
            try:
                result = MEMORY[name](server, options)
                print(f"| {name} | {server.memory_mib():.0f} | {time.monotonic() - began:.0f} | {result} |", flush=True)
            except (OSError, http.client.HTTPException) as error:
                print(f"| {name} | | | {error!r} |", flush=True)


# work


def work(options):
    print("\n| new in each event | first batches, ms each | last batches, ms each | ratio | replay events/s | |\n|---|---|---|---|---|---|", flush=True)
    for kind in selected(options, KINDS):
        with running(options) as server:
            connection, took, recorded = http.client.HTTPConnection(server.address, timeout=120), [], 0
            for first in range(0, 150_000, BATCH):
                body, before = batch(kind, first), server.cpu_s()
                recorded += send(connection, server.keys["public_key"], body)[0]
                took.append((server.cpu_s() - before) * 1000)
            first, last = statistics.mean(took[1:6]), statistics.mean(took[-5:])
            server.stop(signal.SIGKILL)
            log = server.place / "log"
            log.write_text("")
            started = server.start()
            replay = re.search(r"replayed=(\d+) took_ms=(\d+)", re.sub(r"\x1b\[[0-9;]*m", "", log.read_text()))
            rate = f"{int(replay[1]) / max(int(replay[2]), 1) * 1000:,.0f} ({replay[1]})" if replay else "?"
            events = json.loads(server.ask("/identities/profile?user_id=one")[1])["events"]
            outcome = "counted right" if events == recorded else f"WRONG: {events} counted of {recorded}"
            print(f"| {kind} | {first:.0f} | {last:.0f} | {last / max(first, 1):.2f} | {rate} | start {started:.1f} s, {outcome} |", flush=True)


# neighbour


def attack(address, key, kind, number, until):
    connection, first = None, number * 100_000_000
    while time.monotonic() < until:
        try:
            connection = connection or http.client.HTTPConnection(address, timeout=60, source_address=ATTACKER)
            _, status = send(connection, key, batch(kind, first))
            if status == 202:
                first += BATCH
            else:
                time.sleep(0.1)
        except (OSError, http.client.HTTPException):
            connection = None
            time.sleep(0.1)


def measure_neighbour(address, keys, until, results):
    """Sends twenty events and twenty queries a second for another organization."""
    connection = http.client.HTTPConnection(address, timeout=60)
    took, statuses, number = [], {}, 0
    while time.monotonic() < until:
        began = time.monotonic()
        for is_query in (False, True):
            sent = time.monotonic()
            try:
                if is_query:
                    connection.request("GET", f"/projects/{keys['project_id']}/revenue/metrics", headers={"authorization": f"Bearer {keys['api_token']}"})
                else:
                    body = json.dumps({"name": "open", "user_id": f"n{number}", "value": 1, "external_id": f"n{number}"})
                    connection.request("POST", "/i", body, {"x-service-pk": keys["public_key"], "content-type": "application/json"})
                response = connection.getresponse()
                response.read()
                status = response.status
            except (OSError, http.client.HTTPException) as error:
                status = type(error).__name__
                connection = http.client.HTTPConnection(address, timeout=60)
            took.append(time.monotonic() - sent)
            statuses[status] = statuses.get(status, 0) + 1
        number += 1
        time.sleep(max(0, 0.05 - (time.monotonic() - began)))
    results.put((took, statuses))


def under_attack(server, kind, seconds):
    until, results = time.monotonic() + seconds, multiprocessing.Queue()
    senders = [multiprocessing.Process(target=attack, args=(server.address, server.keys["public_key"], kind, number, until)) for number in range(8)]
    other = multiprocessing.Process(target=measure_neighbour, args=(server.address, server.other, until, results))
    [process.start() for process in [*senders, other]]
    took, statuses = results.get(timeout=seconds + 120)
    return sorted(took), statuses, senders


def kill(senders):
    for process in senders:
        process.kill()
        process.join()


def neighbour(options):
    print("\n| new in each event, 8 connections | other organization: p50 ms | p99 ms | worst ms | responses | SIGTERM s | after SIGKILL /healthz s |\n|---|---|---|---|---|---|---|", flush=True)
    for kind in selected(options, KINDS):
        with running(options, "--shards", "1") as server:
            took, statuses, senders = under_attack(server, kind, options.seconds)
            stopped = server.stop()
            kill(senders)
            server.start()
            _, _, senders = under_attack(server, kind, min(options.seconds, 15))
            server.stop(signal.SIGKILL)
            kill(senders)
            restarted = after_kill(server)
            at = lambda share: took[min(int(len(took) * share), len(took) - 1)] * 1000
            stop_text = f"{stopped:.1f}" if stopped is not None else "> 90"
            print(f"| {kind} | {at(0.5):.1f} | {at(0.99):.0f} | {at(1):.0f} | {statuses} | {stop_text} | {restarted} |", flush=True)


def after_kill(server):
    """Restarts the server on a known port. Returns the times until `/healthz` and `/readyz` answer 200."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = [flag if flag != "127.0.0.1:0" else f"127.0.0.1:{port}" for flag in server.flags]
    began, ready = time.monotonic(), {}
    server.process = subprocess.Popen([server.binary, "serve", *flags], stdout=subprocess.DEVNULL, stderr=server.log)
    while time.monotonic() < began + 300 and "/readyz" not in ready:
        for path in ("/healthz", "/readyz"):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", path)
                if connection.getresponse().status == 200:
                    ready.setdefault(path, time.monotonic() - began)
            except (OSError, http.client.HTTPException):
                pass
        time.sleep(0.02)
    return f"{ready.get('/healthz', 300):.2f} (ready {ready.get('/readyz', 300):.1f})"


# paths


def steps(order, step, within={"days": 90}, **more):
    return "funnel", {"steps": [step] * 12, "order": order, "within": within} | more


def goals(server, count):
    """Defines goals that each event reaches."""
    for number in range(count):
        body = {"name": f"goal {number}", "event_name": "open", "filters": [{"field": "name", "operator": "starts_with", "value": "op"}]}
        status, answer = server.ask(f"/projects/{server.keys['project_id']}/goals", body=json.dumps(body))
        assert status == 201, answer


OPEN, PAGE = {"event_name": "open"}, {"page": "/**"}
# Events, the number of goals, and the questions.
PATHS = {
    "a million pages": ("pages", 0, [("journeys", {"by": "path", "depth": 10, "rows": 50}), ("journeys", {"by": "path", "to": "/p9*", "rows": 50}),
                                     steps("loose", PAGE, breakdown="path"), ("breakdown", {"dimension": "path", "limit": 1000})]),
    "a million events of one person": ("events", 0, [steps("loose", OPEN), steps("strict", OPEN), steps("any", OPEN), steps("loose", OPEN, "session"),
                                                     steps("loose", OPEN, level="account"), ("journeys", {"by": "event_name", "depth": 10})]),
    "a million people": ("users", 0, [steps("loose", OPEN), steps("any", OPEN), steps("loose", OPEN, breakdown="browser"),
                                      ("report", {"people": [{"did_not": OPEN, "at_least": 5, "within": "ever"}]}),
                                      ("journeys", {"by": "event_name", "depth": 10})]),
    "200 goals": ("users", 200, [("goals", {}), ("goals", {"compare": "previous_period"})]),
}


def paths(options):
    print(f"\n| `--memory {options.memory}`, {options.events:,} events | question | first s | again ms | other organization: p99 ms | worst ms | responses | peak MiB |\n|---|---|---|---|---|---|---|---|", flush=True)
    for name in selected(options, PATHS):
        kind, count, questions = PATHS[name]
        with running(options) as server:
            recorded, statuses = fill(server, kind, options.events)
            assert recorded == options.events, statuses
            goals(server, count)
            for path, question in questions:
                ask_beside(server, name, path, question)


def ask_beside(server, name, path, question):
    """Asks twice, while another organization sends events and queries."""
    results, until = multiprocessing.Queue(), time.monotonic() + 10
    other = multiprocessing.Process(target=measure_neighbour, args=(server.address, server.other, until, results))
    other.start()
    took = []
    for _ in range(2):
        began = time.monotonic()
        status, answer = server.ask(f"/projects/{server.keys['project_id']}/analytics/{path}", body=json.dumps(question))
        took.append(time.monotonic() - began)
    latencies, statuses = results.get(timeout=120)
    latencies.sort()
    other.join()
    text = json.dumps(question)
    shown = path if len(question) == 0 else f"{path} {text if len(text) < 90 else text[:40] + ' … ' + text[-40:]}"
    outcome = "" if status == 200 else f" ({status} {answer[:200]})"
    print(f"| {name} | `{shown}` | {took[0]:.2f}{outcome} | {took[1] * 1000:.1f} | {latencies[int(len(latencies) * 0.99)] * 1000:.0f} | "
          f"{latencies[-1] * 1000:.0f} | {statuses} | {server.memory_mib():.0f} |", flush=True)


def main():
    parts = {"memory": memory, "work": work, "neighbour": neighbour, "paths": paths}
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("parts", nargs="*", choices=[*parts, []])
    options.add_argument("--only", nargs="*")
    options.add_argument("--binary", type=Path, default=TARGET / "release" / "headcount")
    options.add_argument("--memory", default="128MiB")
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--dir")
    options = options.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8_192, hard), hard))
    for part in options.parts or parts:
        parts[part](options)


if __name__ == "__main__":
    main()
