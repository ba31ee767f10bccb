#!/usr/bin/env python3
"""Benchmarks ingestion over HTTP, alternating with the bare reference handler: machines are noisy, ratios less so.

usage: http.py [--seconds 10] [--rounds 3] [--connections 64] [--batch 100]
Requires release builds: cargo build --release -p headcount -p headcount-bench -p headcount-load
Uses loopback only, and stops all processes it started.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

BIN = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[1] / "target")) / "release"


def load(*arguments):
    run = subprocess.run([BIN / "headcount-load", "--json", *map(str, arguments)], capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f"load failed: {run.stdout}{run.stderr}")
    return json.loads(run.stdout)


def memory_mb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


def rest(pid, seconds=60):
    """Waits until the process has used next to no processor time for a second: what it still seals and merges would slow the reference down."""
    used = lambda: sum(int(field) for field in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])
    for _ in range(seconds):
        before = used()
        time.sleep(1)
        if used() - before <= os.sysconf("SC_CLK_TCK") // 50:
            return


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--batch", type=int, default=100)
    options = parser.parse_args()
    data = Path(tempfile.mkdtemp(prefix="headcount-bench-"))
    keys = json.loads(subprocess.run([BIN / "headcount", "init", "--json", "--data-dir", data / "d"], capture_output=True, text=True, check=True).stdout)
    server = subprocess.Popen([BIN / "headcount", "serve", "--data-dir", data / "d", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    reference = subprocess.Popen([BIN / "reference", "18099", "1"])
    try:
        url = server.stdout.readline().split()[-1]
        time.sleep(1)
        common = ["--duration", f"{options.seconds}s", "--warm-up", "2s", "--connections", options.connections, "--users", 200_000]
        rows = []
        for number in range(options.rounds):
            rest(server.pid)
            bare = load("--raw", "--url", "http://127.0.0.1:18099/none", *common)
            single = load("--url", url, "--key", keys["public_key"], "--token", keys["api_token"], *common)
            batch = load("--url", url, "--key", keys["public_key"], "--batch", options.batch, *common)
            row = {"reference": bare["requests_per_second"], "single": single["requests_per_second"], "batch": batch["events_per_second"],
                   "p50": single["latency_ms"]["p50"], "p99": single["latency_ms"]["p99"]}
            rows.append(row)
            print(f"round {number + 1}: reference {row['reference']:,.0f}/s, single {row['single']:,.0f}/s ({row['single'] / row['reference']:.0%}), "
                  f"p50 {row['p50']:.2f} ms, p99 {row['p99']:.2f} ms, batches of {options.batch}: {row['batch']:,.0f} events/s, {memory_mb(server.pid):.0f} MB", flush=True)
        median = lambda pick: statistics.median(pick(row) for row in rows)
        print(f"median: single events at {median(lambda r: r['single'] / r['reference']):.0%} of the reference; batches {median(lambda r: r['batch']):,.0f} events/s")
    finally:
        for process in (server, reference):
            process.terminate()
            process.wait()
        shutil.rmtree(data)


if __name__ == "__main__":
    main()
