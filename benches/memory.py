#!/usr/bin/env python3
"""How much memory the process takes with more identities than fit into it.

usage: memory.py [--identities 3000000] [--memory 128MiB] [--shape people|companies] [--dir DIR]

`people`: one page view each, a third comes back later. `companies`: an e-mail address each, half of them of one company, and
1,000 teams. Imports them, then serves them and asks about some of them at random. Needs a release build. Everything stays on
loopback and stops by itself. The kernel's peak of the process (VmHWM) is what is printed.
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

sys.path.pop(0)  # http.py beside this file is not the module that is meant
import http.client

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[1] / "target"))
HEADCOUNT = TARGET / "release" / "headcount"
START_MS, DAYS = 1_780_272_000_000, 50
RANGE = "start_date=2026-06-01&end_date=2026-07-20"
QUESTIONS = 20_000


def events(identities, shape):
    """Lines in the order of time."""
    chance = random.Random(5)
    for i in range(identities):
        at = START_MS + i * DAYS * 86_400_000 // identities
        event = {"name": "pageview", "user_id": f"u{i}", "timestamp": at, "url": f"https://app.example.com/p/{i % 500}?utm_source=s{i % 20}"}
        if i % 40 == 0:
            event["value"] = i % 50
        if shape == "companies":
            event["metadata"] = {"email": f"u{i}@" + ("big.example" if i % 2 == 0 else f"c{i % 5000}.example")}
        yield event
        if i % 3 == 0 and i > identities // 10:
            again = {"name": "open", "user_id": f"u{i - chance.randrange(1, identities // 10)}", "timestamp": at + 1}
            if shape == "companies":
                again |= {"group_type": "team", "group_id": f"t{i % 1000}"}
            yield again


def peak_mb(pid):
    """What a process took at most so far; 0 when it is gone."""
    try:
        return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024
    except (OSError, AttributeError):
        return 0


class Peak(threading.Thread):
    """Looks at a process until it ends."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.mb = pid, 0
        self.start()

    def run(self):
        while now := peak_mb(self.pid):
            self.mb = max(self.mb, now)
            time.sleep(0.05)


def run_import(data, memory, project, file):
    began = time.monotonic()
    command = [HEADCOUNT, "import", "--data-dir", data, "--memory", memory, "--project", project, "--json", file]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    peak = Peak(process.pid)
    summary = json.loads(process.communicate()[0])
    return summary["recorded"], summary["recorded"] / (time.monotonic() - began), peak.mb


def ask(address, token, identities):
    """Asks about people at random. Gives the median and the 99th percentile in milliseconds."""
    connection, took, chance = http.client.HTTPConnection(address), [], random.Random(7)
    for _ in range(QUESTIONS):
        began = time.monotonic()
        path = f"/identities/profile?user_id=u{chance.randrange(identities)}&{RANGE}"
        connection.request("GET", path, headers={"authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        body = json.loads(answer.read())
        assert answer.status == 200 and body["events"] >= 1, body
        took.append((time.monotonic() - began) * 1000)
    took.sort()
    return took[len(took) // 2], took[len(took) * 99 // 100]


def serve(data, memory, token, identities):
    command = [HEADCOUNT, "serve", "--data-dir", data, "--memory", memory, "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        address = re.search(r"http://(\S+)", server.stdout.readline()).group(1)
        started = peak_mb(server.pid)
        return started, *ask(address, token, identities), peak_mb(server.pid)
    finally:
        server.terminate()
        server.wait()


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--identities", type=int, default=3_000_000)
    options.add_argument("--memory", default="128MiB")
    options.add_argument("--shape", choices=["people", "companies"], default="people")
    options.add_argument("--dir")
    options = options.parse_args()
    place = Path(tempfile.mkdtemp(prefix="headcount-memory-", dir=options.dir))
    try:
        file, data = place / "events.ndjson", place / "data"
        with open(file, "w", encoding="utf-8") as out:
            for event in events(options.identities, options.shape):
                out.write(json.dumps(event, separators=(",", ":")) + "\n")
        keys = json.loads(subprocess.run([HEADCOUNT, "init", "--data-dir", data, "--json"], check=True, capture_output=True).stdout)
        recorded, rate, imported = run_import(data, options.memory, keys["project_id"], file)
        store = sum(path.stat().st_size for path in (data / "store").rglob("*") if path.is_file())
        print(f"{options.identities} identities ({options.shape}), {recorded} events, --memory {options.memory}")
        print(f"import: {rate:.0f} events/s, at most {imported:.0f} MiB; store {store / 2**20:.0f} MiB")
        started, median, slow, served = serve(data, options.memory, keys["api_token"], options.identities)
        print(f"serve: {started:.0f} MiB at the start, {served:.0f} MiB after {QUESTIONS} profiles: p50 {median:.2f} ms, p99 {slow:.2f} ms")
        shutil.rmtree(data / "store")
        started, median, slow, served = serve(data, options.memory, keys["api_token"], options.identities)
        print(f"rebuilt from the log: at most {started:.0f} MiB, {served:.0f} MiB after {QUESTIONS} profiles: p50 {median:.2f} ms, p99 {slow:.2f} ms")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
