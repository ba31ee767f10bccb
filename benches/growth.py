#!/usr/bin/env python3
"""Measures how speed, memory and disk use develop while one project grows.

usage: growth.py [--events 20000000] [--people 3000000] [--companies 5000] [--memory 1GiB] [--file FILE] [--dir DIR]

Events of 120 days in order of time: sessions of about 5 events, a few people with most of them, 400 pages, sources on half of the sessions,
7 of 10 people in one of 5,000 companies, 2 % orders with an `external_id`. The script imports them, seals them, and starts the server.
It prints throughput by tenths of the input, peak memory (VmHWM), bytes written to the disk, bytes per event at the end
and once the store is at rest, the time of a start, and that of a start which rebuilds the store.
`--file` names events that an earlier run kept, or keeps those of this run. 20 M events take 4 GB. Requires a release build.
Uses loopback only, and stops all processes it started.
"""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.pop(0)  # keep http.py in this directory from shadowing the standard module
import http.client

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[1] / "target"))
HEADCOUNT = TARGET / "release" / "headcount"
START_MS, DAYS = 1_780_272_000_000, 120
NAMES = ["pageview"] * 62 + ["click"] * 14 + ["feature_used"] * 12 + ["search"] * 6 + ["add_to_cart"] * 4 + ["order"] * 2
PAGES = [f"https://app.example.com/docs/section-{i % 20}/page-{i}" for i in range(400)]
REFERRERS = ["", "", "", "https://www.google.com/", "https://news.ycombinator.com/", "https://t.co/", "https://github.com/"]
CAMPAIGNS = [""] * 4 + ["?utm_source=google&utm_medium=cpc&utm_campaign=c{}", "?utm_source=newsletter&utm_medium=email&utm_campaign=n{}"]


def steps(rng, day, count, people):
    """Returns the events of a day without names, in order of time."""
    made = []
    while len(made) < count:
        person = int(people * rng.random() ** 2.2)
        at = START_MS + day * 86_400_000 + rng.randrange(86_400_000)
        referrer, campaign = rng.choice(REFERRERS), rng.choice(CAMPAIGNS).format(rng.randrange(12))
        for step in range(1 + int(rng.expovariate(0.25))):
            made.append((at, person, step, referrer, campaign))
            at += 500 + int(rng.expovariate(1 / 60_000))
    made.sort()
    return made


def line(rng, companies, number, at, person, step, referrer, campaign):
    """Returns one event as a line of JSON."""
    name = rng.choice(NAMES)
    text = (f'{{"name":"{name}","timestamp":{at},"user_id":"u{person}","url":"{rng.choice(PAGES)}{campaign if step == 0 else ""}",'
            f'"metadata":{{"plan":"{("free", "pro", "team")[person % 3]}","n":{person % 97}}}')
    if step == 0 and referrer:
        text += f',"referrer":"{referrer}"'
    if person % 10 < 7:
        text += f',"group_type":"company","group_id":"co{person % companies}.example"'
    if name == "order":
        text += f',"value":{rng.randrange(5, 500)}.{rng.randrange(100):02},"currency":"USD","external_id":"o{number}"'
    return text + "}\n"


def write_events(file, events, people, companies):
    """Writes the events to a file, in order of time."""
    rng, number = random.Random(7), 0
    with open(file, "w", encoding="utf-8") as out:
        for day in range(DAYS):
            for event in steps(rng, day, events // DAYS, people):
                out.write(line(rng, companies, number, *event))
                number += 1


class Watch(threading.Thread):
    """Follows a process until it exits: its memory, the bytes it wrote, and how far it has read a file."""

    def __init__(self, pid, file=None):
        super().__init__(daemon=True)
        self.proc, self.file = Path(f"/proc/{pid}"), file and os.path.realpath(file)
        self.peak_mib, self.written, self.progress = 0.0, 0, []
        self.start()

    def run(self):
        began, every = time.monotonic(), 0
        while True:
            try:
                self.peak_mib = int(re.search(r"VmHWM:\s+(\d+)", (self.proc / "status").read_text()).group(1)) / 1024
                self.written = int(re.search(r"\nwrite_bytes: (\d+)", (self.proc / "io").read_text()).group(1))
                if self.file and every % 10 == 0:
                    self.progress.append((time.monotonic() - began, self.position()))
            except (OSError, AttributeError):
                return
            every += 1
            time.sleep(0.05)

    def position(self):
        """Returns the greatest offset at which the process has the file open."""
        found = [0]
        for descriptor in (self.proc / "fd").iterdir():
            try:
                if os.readlink(descriptor) == self.file:
                    info = (self.proc / "fdinfo" / descriptor.name).read_text()
                    found.append(int(info.split("pos:")[1].split()[0]))
            except OSError:
                continue  # closed meanwhile
        return max(found)

    def tenths(self, size, events, end):
        """Returns the throughput of each tenth of the file, in events/s. The last one ends at `end`, when all is recorded."""
        rates, last = [], 0.0
        for at, position in [*self.progress, (end, size)]:
            while len(rates) < 10 and position >= size * (len(rates) + 1) / 10 and (position < size or at == end):
                rates.append(events / 10 / max(at - last, 0.05))
                last = at
        return rates


def run(command, file=None):
    """Runs a command. Returns its JSON output, its duration and what was seen of the process."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    watch = Watch(process.pid, file)
    output = process.communicate()[0]
    if process.returncode:
        sys.exit(f"{command[1]} failed with {process.returncode}")
    return json.loads(output), time.monotonic() - began, watch


def start(data, memory, keys, rests=False):
    """Starts the server. Returns seconds until it is ready, its memory, and milliseconds of a few answers.
    With `rests`, waits until the store at rest has been merged."""
    command = [HEADCOUNT, "serve", "--data-dir", data, "--memory", memory, "--listen", "127.0.0.1:0"]
    began = time.monotonic()
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    watch = Watch(server.pid)
    try:
        address = re.search(r"http://(\S+)", server.stdout.readline()).group(1)
        connection = http.client.HTTPConnection(address)
        while True:
            connection.request("GET", "/readyz")
            response = connection.getresponse()
            response.read()
            if response.status == 200:
                break
            time.sleep(0.01)
        ready, took = time.monotonic() - began, []
        project, token = keys["project_id"], keys["api_token"]
        for path in [f"/projects/{project}/revenue/timeseries?start_date=2026-06-01&end_date=2026-09-28", "/companies/top?range_days=30"]:
            best = []
            for _ in range(20):
                asked = time.monotonic()
                connection.request("GET", path, headers={"authorization": f"Bearer {token}"})
                response = connection.getresponse()
                response.read()
                best.append((time.monotonic() - asked) * 1000)
            took.append(f"{path.split('?')[0][1:]} {sorted(best)[10]:.2f} ms ({response.status})")
        peak_mib, sizes = watch.peak_mib, []
        # Tables are merged a minute after the last change.
        while rests and (len(sizes) < 100 or len(set(sizes[-30:])) > 1):
            time.sleep(1)
            sizes.append(bytes_below(data / "store"))
        return ready, peak_mib, took
    finally:
        server.terminate()
        server.wait()


def bytes_below(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--events", type=int, default=20_000_000)
    options.add_argument("--people", type=int, default=3_000_000)
    options.add_argument("--companies", type=int, default=5000)
    options.add_argument("--memory", default="1GiB")
    options.add_argument("--file")
    options.add_argument("--dir")
    options.add_argument("--keep", action="store_true", help="keep the data directory, and print its name")
    options = options.parse_args()
    place = Path(tempfile.mkdtemp(prefix="headcount-growth-", dir=options.dir))
    try:
        file, data = Path(options.file or place / "events.ndjson"), place / "data"
        if not file.exists():
            write_events(file, options.events, options.people, options.companies)
        size = file.stat().st_size
        init = subprocess.run([HEADCOUNT, "init", "--data-dir", data, "--json"], check=True, capture_output=True)
        keys = json.loads(init.stdout)
        settings = ["--data-dir", data, "--memory", options.memory]
        summary, took, watch = run([HEADCOUNT, "import", *settings, "--project", keys["project_id"], "--json", file], file)
        recorded = summary["recorded"]
        print(f"{recorded} events of {options.people} people, {size / recorded:.0f} B of JSON each, --memory {options.memory}")
        print(f"import: {recorded / took:.0f} events/s, peak {watch.peak_mib:.0f} MiB, {watch.written / size:.2f} x the input written")
        print("by tenths of the input: " + ", ".join(f"{rate:.0f}" for rate in watch.tenths(size, recorded, took)) + " events/s", flush=True)
        written = watch.written
        _, took, watch = run([HEADCOUNT, "archive", "seal", *settings, "--json"])
        print(f"sealing the rest: {took:.1f} s, peak {watch.peak_mib:.0f} MiB, {(written + watch.written) / size:.2f} x the input written in all")
        parts = {child.name: bytes_below(child) if child.is_dir() else child.stat().st_size for child in sorted(data.iterdir())}
        print(f"disk: {sum(parts.values()) / recorded:.1f} B an event: " + ", ".join(f"{name} {part / recorded:.1f}" for name, part in parts.items() if part > recorded / 100))
        for child in sorted((data / "store").iterdir()):
            part = bytes_below(child) if child.is_dir() else child.stat().st_size
            print(f"  store/{child.name}: {part / recorded:.1f} B an event")
        ready, peak, took = start(data, options.memory, keys, rests=True)
        print(f"start: ready after {ready:.2f} s, peak {peak:.0f} MiB; " + ", ".join(took), flush=True)
        print(f"disk at rest: {bytes_below(data) / recorded:.1f} B an event: store {bytes_below(data / 'store') / recorded:.1f}", flush=True)
        for part in ("store", "fingerprints"):
            shutil.rmtree(data / part, ignore_errors=True)
        ready, peak, took = start(data, options.memory, keys)
        print(f"start without a store: ready after {ready:.2f} s, peak {peak:.0f} MiB; " + ", ".join(took), flush=True)
    finally:
        if options.keep:
            print(place)
        else:
            shutil.rmtree(place)


if __name__ == "__main__":
    main()
