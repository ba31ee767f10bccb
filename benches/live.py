#!/usr/bin/env python3
"""What live streams cost: python3 benches/live.py [--readers N] [--rounds N] [--seconds N]

Measures, in a server of its own:
- how long after its answer an event is in a frame, without other traffic;
- the server's processor time with N streams whose readers are fast, at 30 events a second, and without any;
- how fast events are taken with N slow readers of the project's stream, against without any, in turns, the server's processor time for an
  event, and what memory the readers take;
- how far apart the frames of a fast reader are under that load.
A slow reader takes 1 KiB a second. On a machine with other work, compare processor times, not rates."""

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.pop(0)  # keep http.py in this directory from shadowing the standard module
import urllib.request

BIN = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[1] / "target")) / "release" / "headcount"

# The rest before each load: a watch that nobody reads ends, and the last events are sealed.
REST = 12


def memory_mb(pid, what="VmRSS"):
    return int(re.search(rf"{what}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


def cpu_seconds(pid):
    """The time on a processor of all threads that run; exact, other than the ticks of /proc/PID/stat."""
    return sum(int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0]) for task in os.listdir(f"/proc/{pid}/task")) / 1e9


class Server:
    def __init__(self, data):
        run = subprocess.run([BIN, "init", "--json", "--data-dir", data], capture_output=True, text=True, check=True)
        self.keys = json.loads(run.stdout)
        self.process = subprocess.Popen([BIN, "serve", "--data-dir", data, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().split()[-1]
        self.address = ("127.0.0.1", int(self.url.rsplit(":", 1)[1]))
        for _ in range(100):
            try:
                urllib.request.urlopen(self.url + "/readyz")
                break
            except OSError:
                time.sleep(0.1)

    def stream(self):
        stream = socket.create_connection(self.address)
        request = f"GET /projects/{self.keys['project_id']}/live HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {self.keys['api_token']}\r\n\r\n"
        stream.sendall(request.encode())
        return stream

    def record(self, event):
        request = urllib.request.Request(self.url + "/i", json.dumps(event).encode(), {"content-type": "application/json", "x-service-pk": self.keys["public_key"], "user-agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def load(self, seconds):
        command = [BIN.with_name("headcount-load"), "--json", "--url", self.url, "--key", self.keys["public_key"], "--batch", "100", "--connections", "16",
                   "--duration", f"{seconds}s", "--warm-up", "2s", "--users", "20000"]
        before = self.events(), cpu_seconds(self.process.pid)
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            raise SystemExit(f"load failed: {run.stdout}{run.stderr}")
        events, cpu = self.events() - before[0], cpu_seconds(self.process.pid) - before[1]
        return json.loads(run.stdout)["events_per_second"], cpu / events * 1e6

    def events(self):
        request = urllib.request.Request(f"{self.url}/projects/{self.keys['project_id']}/intake", headers={"authorization": f"Bearer {self.keys['api_token']}"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["recorded"]


class FastReader(threading.Thread):
    """Reads frames at once, and notes when each came and how many events it shows."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.stream = server.stream()
        self.frames = []
        self.start()

    def run(self):
        data = None
        for line in self.stream.makefile("r", encoding="utf-8", newline="\n"):
            if line.startswith("data: "):
                data = json.loads(line[6:])
            elif line == "\n" and data:
                if "today" in data:
                    self.frames.append((time.monotonic(), data["today"]["events"]))
                data = None

    def events(self):
        return self.frames[-1][1] if self.frames else None

    def gaps(self, began):
        times = [at for at, _ in self.frames if at >= began]
        return [after - before for before, after in zip(times, times[1:])]


class Readers(threading.Thread):
    """Takes `most` bytes of each stream, `each` second."""

    def __init__(self, server, count, most, each):
        super().__init__(daemon=True)
        self.streams = [server.stream() for _ in range(count)]
        self.closed = self.bytes = 0
        self.most, self.each = most, each
        self.is_over = False
        self.start()

    def run(self):
        while not self.is_over:
            began = time.monotonic()
            for stream in self.streams:
                stream.setblocking(False)
                try:
                    read = len(stream.recv(self.most))
                    self.bytes += read
                    self.closed += read == 0
                except BlockingIOError:
                    pass
                except OSError:
                    self.closed += 1
            time.sleep(max(0.05, self.each - (time.monotonic() - began)))

    def end(self):
        self.is_over = True
        self.join()
        [stream.close() for stream in self.streams]


def latency(server, events):
    reader = FastReader(server)
    delays = []
    for number in range(events):
        while reader.events() != number:
            time.sleep(0.001)
        time.sleep(0.137)
        server.record({"name": "pageview", "user_id": f"u{number}"})
        answered = time.monotonic()
        while reader.events() != number + 1:
            time.sleep(0.001)
        delays.append((reader.frames[-1][0] - answered) * 1000)
    reader.stream.close()
    delays.sort()
    print(f"an event is in a frame {delays[len(delays) // 2]:.0f} ms after its answer, at most {delays[-1]:.0f} ms ({events} events)", flush=True)


def few_events(server, count, seconds):
    """The processor time of the server at 30 events a second, with and without streams."""
    def measure():
        before, until = cpu_seconds(server.process.pid), time.monotonic() + seconds
        number = 0
        while time.monotonic() < until:
            server.record({"name": "pageview", "user_id": f"u{number}"})
            number += 1
            time.sleep(1 / 30)
        return (cpu_seconds(server.process.pid) - before) / seconds * 100

    alone = measure()
    readers = Readers(server, count, 1 << 20, 0.2)
    time.sleep(2)
    begun = readers.bytes
    watched = measure()
    readers.end()
    rate = (readers.bytes - begun) / seconds / count
    print(f"30 events a second take {alone:.1f} % of a core, with {count} streams of {rate:,.0f} bytes a second {watched:.1f} %", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    data = tempfile.mkdtemp(prefix="headcount-bench-")
    server = Server(data + "/d")
    pid = server.process.pid
    try:
        latency(server, 30)
        server.load(2)
        few_events(server, options.readers, options.seconds)
        time.sleep(REST)
        # The state grows: each load with readers is compared with the mean of those before and after it.
        alone, shares = [server.load(options.seconds)], []
        for number in range(options.rounds):
            before = memory_mb(pid)
            readers, fast = Readers(server, options.readers, 1024, 1), FastReader(server)
            while fast.events() is None:
                time.sleep(0.1)
            time.sleep(REST)
            opened, began = memory_mb(pid), time.monotonic()
            watched = server.load(options.seconds)
            gaps = sorted(fast.gaps(began)) or [float("nan")]
            after = memory_mb(pid)
            readers.end()
            fast.stream.close()
            time.sleep(REST)
            alone.append(server.load(options.seconds))
            (rate, cpu) = [statistics.mean(of) for of in zip(*alone[-2:])]
            shares.append((watched[0] / rate, watched[1] / cpu))
            print(f"round {number + 1}: alone {rate:,.0f} events/s, {cpu:.1f} µs each; {options.readers} slow readers {watched[0]:,.0f} ({shares[-1][0]:.3f}), "
                  f"{watched[1]:.1f} µs each ({shares[-1][1]:.3f}); memory {before:.0f} MB, with the readers {opened:.0f} MB, at the end {after:.0f} MB; "
                  f"closed {readers.closed}; frames {len(gaps)}, apart {gaps[len(gaps) // 2]:.2f} s, at most {gaps[-1]:.2f} s", flush=True)
        rates, cpus = zip(*shares)
        print(f"medians with readers: {statistics.median(rates):.3f} of the rate alone, {statistics.median(cpus):.3f} times the processor time of an event")
    finally:
        server.process.terminate()
        server.process.wait()
        shutil.rmtree(data)


if __name__ == "__main__":
    main()
