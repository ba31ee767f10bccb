#!/usr/bin/env python3
"""What an outsider with a public key can cost: memory, work per event, and another organization's answers.

usage: attack.py [memory|work|neighbour ...] [--only NAME ...] [--binary PATH] [--memory 128MiB] [--events 1000000] [--seconds 60]

memory     peak memory of the server (VmHWM) in each of: ever new companies, groups, sources, referrers, e-mail domains, users, pages;
           5,000 user agents of 120 KB; 100 connections that never read; 1,100 held connections; eight heavy questions at a time
work       processor time of the server per batch of 5,000 events of one user with ever new companies, groups, pages, referrers:
           the last batches beside the first; then a kill, and the rate of the replay
neighbour  eight connections of that for a while: what another organization's events and questions take meanwhile; how long a stop
           takes; how long the start after a kill takes to answer

Needs a release build. Everything stays on loopback, in temporary directories, and stops by itself. Prints one table a part.
"""
import argparse
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

sys.path.pop(0)  # http.py beside this file is not the module that is meant
import http.client

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[1] / "target"))
BATCH = 5_000
# Where the attacker comes from: another address than its neighbour.
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
        """Starts the process; answers when it is ready. The address is known once it listens."""
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
        answer = connection.getresponse()
        result = answer.status, answer.read()
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

    def stop(self, how=signal.SIGTERM, patience=90):
        """Seconds until the process was gone; `None`: it had to be killed."""
        began = time.monotonic()
        self.process.send_signal(how)
        try:
            self.process.wait(patience)
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


NEW = {  # what is new with every event
    "companies": '{{"name":"open","user_id":"one","group_id":"c{0}.example"}}',
    "groups": '{{"name":"open","user_id":"one","group_type":"team","group_id":"g{0}"}}',
    "sources": '{{"name":"pageview","user_id":"u{0}","url":"https://x.example/?utm_source=s{0}"}}',
    "referrers": '{{"name":"pageview","user_id":"one","url":"https://x.example/","referrer":"https://r{0}.example/"}}',
    "domains": '{{"name":"open","user_id":"u{0}","metadata":{{"email":"u@d{0}.example"}}}}',
    "users": '{{"name":"open","user_id":"u{0}"}}',
    "pages": '{{"name":"pageview","user_id":"one","url":"https://x.example/p{0}"}}',
}


def batch(kind, first, count=BATCH):
    event = NEW[kind].format
    return '{"events":[' + ",".join([event(number) for number in range(first, first + count)]) + "]}"


def send(connection, key, body):
    """Recorded events and status."""
    connection.request("POST", "/i/batch", body, {"x-service-pk": key, "content-type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    return (json.loads(text)["recorded"] if answer.status == 202 else 0), answer.status


def fill(server, kind, events):
    """Sends so many events, a batch after the other. Recorded events, and answers by status."""
    connection, recorded, statuses = http.client.HTTPConnection(server.address, timeout=120), 0, {}
    for first in range(0, events, BATCH):
        for _ in range(200):
            more, status = send(connection, server.keys["public_key"], batch(kind, first))
            statuses[status] = statuses.get(status, 0) + 1
            recorded += more
            if status != 503:
                break
            time.sleep(0.1)
    return recorded, statuses


# memory


def ever_new(kind):
    def run(server, options):
        recorded, statuses = fill(server, kind, options.events)
        return f"{recorded:,} recorded, answers {statuses}"

    return run


def agents(server, _):
    connection = http.client.HTTPConnection(server.address, timeout=30)
    statuses = {}
    for number in range(5_000):
        agent = f"Mozilla/5.0 ({number}) " + "x" * 120_000
        head = {"x-service-pk": server.keys["public_key"], "content-type": "application/json", "user-agent": agent}
        connection.request("POST", "/i", '{"name":"open"}', head)
        answer = connection.getresponse()
        answer.read()
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
    return f"answers {statuses}"


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
    return f"{sent / len(request) * 500:,.0f} requests taken, {len(open_)} connections still open"


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
    return f"a neighbour's events meanwhile: {statuses}, at most {worst * 1000:.0f} ms"


def questions(server, options):
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
    return f"answers {statuses}, at most {worst[0] * 1000:,.0f} ms; /healthz at most {health * 1000:,.0f} ms"


MEMORY = {kind: ever_new(kind) for kind in NEW} | {"agents": agents, "unread": unread, "held": held, "questions": questions}


def memory(options):
    print(f"\n| `--memory {options.memory}` | peak MiB | seconds | |\n|---|---|---|---|", flush=True)
    for name, run in MEMORY.items():
        if options.only and name not in options.only:
            continue
        server = Server(options)
        try:
            began = time.monotonic()
            said = run(server, options)
            print(f"| {name} | {server.memory_mib():.0f} | {time.monotonic() - began:.0f} | {said} |", flush=True)
        except (OSError, http.client.HTTPException) as error:
            print(f"| {name} | | | {error!r} |", flush=True)
        finally:
            server.remove()


# work


def work(options):
    print("\n| ever new | first ms a batch | last ms a batch | ratio | replay events/s | |\n|---|---|---|---|---|---|", flush=True)
    for kind in ("companies", "groups", "pages", "referrers"):
        if options.only and kind not in options.only:
            continue
        server = Server(options)
        try:
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
            told = re.search(r"replayed=(\d+) took_ms=(\d+)", re.sub(r"\x1b\[[0-9;]*m", "", log.read_text()))
            rate = f"{int(told[1]) / max(int(told[2]), 1) * 1000:,.0f} ({told[1]})" if told else "?"
            events = json.loads(server.ask("/identities/profile?user_id=one")[1])["events"]
            right = "counted right" if events == recorded else f"WRONG: {events} counted of {recorded}"
            print(f"| {kind} | {first:.0f} | {last:.0f} | {last / max(first, 1):.2f} | {rate} | start {started:.1f} s, {right} |", flush=True)
        finally:
            server.remove()


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


def neighbour_of(address, keys, until, results):
    """Twenty events and as many questions a second, of another organization."""
    connection = http.client.HTTPConnection(address, timeout=60)
    took, statuses, number = [], {}, 0
    while time.monotonic() < until:
        began = time.monotonic()
        for question in (False, True):
            asked = time.monotonic()
            try:
                if question:
                    connection.request("GET", f"/projects/{keys['project_id']}/revenue/metrics", headers={"authorization": f"Bearer {keys['api_token']}"})
                else:
                    body = json.dumps({"name": "open", "user_id": f"n{number}", "value": 1, "external_id": f"n{number}"})
                    connection.request("POST", "/i", body, {"x-service-pk": keys["public_key"], "content-type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                status = answer.status
            except (OSError, http.client.HTTPException) as error:
                status = type(error).__name__
                connection = http.client.HTTPConnection(address, timeout=60)
            took.append(time.monotonic() - asked)
            statuses[status] = statuses.get(status, 0) + 1
        number += 1
        time.sleep(max(0, 0.05 - (time.monotonic() - began)))
    results.put((took, statuses))


def under_attack(server, kind, seconds):
    until, results = time.monotonic() + seconds, multiprocessing.Queue()
    senders = [multiprocessing.Process(target=attack, args=(server.address, server.keys["public_key"], kind, number, until)) for number in range(8)]
    other = multiprocessing.Process(target=neighbour_of, args=(server.address, server.other, until, results))
    [process.start() for process in [*senders, other]]
    took, statuses = results.get(timeout=seconds + 120)
    return sorted(took), statuses, senders


def end(senders):
    for process in senders:
        process.kill()
        process.join()


def neighbour(options):
    print("\n| ever new, 8 connections | neighbour's p50 ms | p99 ms | worst ms | answers | SIGTERM s | after SIGKILL /healthz s |\n|---|---|---|---|---|---|---|", flush=True)
    for kind in ("companies", "groups", "pages", "referrers"):
        if options.only and kind not in options.only:
            continue
        server = Server(options, "--shards", "1")
        try:
            took, statuses, senders = under_attack(server, kind, options.seconds)
            stopped = server.stop()
            end(senders)
            server.start()
            _, _, senders = under_attack(server, kind, min(options.seconds, 15))
            server.stop(signal.SIGKILL)
            end(senders)
            back = after_kill(server)
            at = lambda share: took[min(int(len(took) * share), len(took) - 1)] * 1000
            stop_text = f"{stopped:.1f}" if stopped is not None else "> 90"
            print(f"| {kind} | {at(0.5):.1f} | {at(0.99):.0f} | {at(1):.0f} | {statuses} | {stop_text} | {back} |", flush=True)
        finally:
            server.remove()


def after_kill(server):
    """Starts again on a known port; answers when `/healthz` is 200, and when `/readyz` is."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = [flag if flag != "127.0.0.1:0" else f"127.0.0.1:{port}" for flag in server.flags]
    began, seen = time.monotonic(), {}
    server.process = subprocess.Popen([server.binary, "serve", *flags], stdout=subprocess.DEVNULL, stderr=server.log)
    while time.monotonic() < began + 300 and "/readyz" not in seen:
        for path in ("/healthz", "/readyz"):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", path)
                if connection.getresponse().status == 200:
                    seen.setdefault(path, time.monotonic() - began)
            except (OSError, http.client.HTTPException):
                pass
        time.sleep(0.02)
    return f"{seen.get('/healthz', 300):.2f} (ready {seen.get('/readyz', 300):.1f})"


def main():
    parts = {"memory": memory, "work": work, "neighbour": neighbour}
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
