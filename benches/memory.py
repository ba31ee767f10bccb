#!/usr/bin/env python3
"""Measures the memory use of the server with more identities than fit into its memory target.

usage: memory.py [--identities 3000000] [--memory 128MiB] [--shape people|companies] [--dir DIR]

`people`: one page view each; a third of the users return later. `companies`: each user has an e-mail address, half of them of one
company; 1,000 teams. The script imports the events, then serves them and queries random users. It prints the peak memory of the
process (VmHWM). Requires a release build. Uses loopback only, and stops all processes it started.
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
START_MS, DAYS = 1_780_272_000_000, 50
RANGE = "start_date=2026-06-01&end_date=2026-07-20"
QUERIES = 20_000


def events(identities, shape):
    """Yields the events in chronological order."""
    rng = random.Random(5)
    for i in range(identities):
        at = START_MS + i * DAYS * 86_400_000 // identities
        event = {"name": "pageview", "user_id": f"u{i}", "timestamp": at, "url": f"https://app.example.com/p/{i % 500}?utm_source=s{i % 20}"}
        if i % 40 == 0:
            event["value"] = i % 50
        if shape == "companies":
            event["metadata"] = {"email": f"u{i}@" + ("big.example" if i % 2 == 0 else f"c{i % 5000}.example")}
        yield event
        if i % 3 == 0 and i > identities // 10:
            again = {"name": "open", "user_id": f"u{i - rng.randrange(1, identities // 10)}", "timestamp": at + 1}
            if shape == "companies":
                again |= {"group_type": "team", "group_id": f"t{i % 1000}"}
            yield again


def peak_mb(pid):
    """Returns the peak memory of a process so far; 0 if it has exited."""
    try:
        return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024
    except (OSError, AttributeError):
        return 0


class Peak(threading.Thread):
    """Polls the peak memory of a process until it exits."""

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


def query(address, token, identities):
    """Queries random users. Returns the median and the 99th percentile in milliseconds."""
    connection, took, rng = http.client.HTTPConnection(address), [], random.Random(7)
    for _ in range(QUERIES):
        began = time.monotonic()
        path = f"/identities/profile?user_id=u{rng.randrange(identities)}&{RANGE}"
        connection.request("GET", path, headers={"authorization": f"Bearer {token}"})
        response = connection.getresponse()
        body = json.loads(response.read())
        assert response.status == 200 and body["events"] >= 1, body
        took.append((time.monotonic() - began) * 1000)
    took.sort()
    return took[len(took) // 2], took[len(took) * 99 // 100]


def serve(data, memory, token, identities):
    command = [HEADCOUNT, "serve", "--data-dir", data, "--memory", memory, "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        address = re.search(r"http://(\S+)", server.stdout.readline()).group(1)
        started = peak_mb(server.pid)
        return started, *query(address, token, identities), peak_mb(server.pid)
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
        print(f"import: {rate:.0f} events/s, peak {imported:.0f} MiB; store {store / 2**20:.0f} MiB")
        started, median, slow, served = serve(data, options.memory, keys["api_token"], options.identities)
        print(f"serve: {started:.0f} MiB at the start, {served:.0f} MiB after {QUERIES} profiles: p50 {median:.2f} ms, p99 {slow:.2f} ms")
        shutil.rmtree(data / "store")
        started, median, slow, served = serve(data, options.memory, keys["api_token"], options.identities)
        print(f"rebuilt from the log: peak {started:.0f} MiB, {served:.0f} MiB after {QUERIES} profiles: p50 {median:.2f} ms, p99 {slow:.2f} ms")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
