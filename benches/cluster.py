"""What three nodes over three brokers record on one machine, beside one process, in one run.

usage: cluster.py [--rounds 3] [--seconds 10] [--nats-server PATH]
Each round loads a server that is alone, and then `headcount demo --cluster`, first with batches of 100 and then with single events, on 48 connections and 12 projects. Each node has a
third of both, so that two thirds of its events travel to another node. `headcount-load` compares what the server counted with what it acknowledged. Everything is on loopback.
"""
import argparse
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from program import BIN, Program, load, require

KINDS = {"batches of 100": 100, "single events": 0}


def measure(options, urls, token):
    """Loads all addresses at once. Returns events per second in all, and the highest p99 in milliseconds, of each kind."""
    figures = []
    for batch in KINDS.values():
        share = ["--connections", 48 // len(urls), "--projects", 12 // len(urls), "--duration", f"{options.seconds}s"]
        one = lambda url: load(BIN, "--url", url, "--token", token, "--batch", batch, *share)
        with ThreadPoolExecutor(len(urls)) as pool:
            results = list(pool.map(one, urls))
        if not all(is_right for _, is_right in results):
            raise SystemExit(f"the server did not count what it acknowledged, or refused events: {results}")
        reports = [report for report, _ in results]
        figures.append((sum(report["events_per_second"] for report in reports), max(report["latency_ms"]["p99"] for report in reports)))
    return figures


def wait_until_ready(url):
    """Waits for a node that has just started, and does not know for certain yet what changed."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if subprocess.run([BIN / "headcount", "health", "--url", url], capture_output=True).returncode == 0:
            return
        time.sleep(0.2)
    raise SystemExit(f"{url} is not ready")


def alone(options):
    server = Program(BIN)
    try:
        return measure(options, [server.url], server.keys["api_token"])
    finally:
        server.close()


def cluster(options):
    with tempfile.TemporaryDirectory() as scratch:
        printed = Path(scratch) / "demo"
        with printed.open("w") as output:
            command = [BIN / "headcount", "demo", "--cluster", "--nats-server", options.nats_server]
            demo = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            while "headcount login" not in printed.read_text():
                if demo.poll() is not None:
                    raise SystemExit(printed.read_text())
                time.sleep(0.2)
            urls = re.findall(r"^\S+  (http://\S+)  process", printed.read_text(), re.M)
            for url in urls:
                wait_until_ready(url)
            return measure(options, urls, re.search(r"API token\s+(\S+)", printed.read_text())[1])
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait(timeout=60)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--nats-server", default=os.environ.get("HEADCOUNT_NATS_SERVER", "nats-server"))
    options = parser.parse_args()
    require(BIN, "headcount", "headcount-load")
    rounds = [(alone(options), cluster(options)) for _ in range(options.rounds)]
    for place, kind in enumerate(KINDS):
        for number, name in enumerate(("one process", "three nodes and three brokers")):
            rate, p99 = (statistics.median(of_round[number][place][part] for of_round in rounds) for part in range(2))
            print(f"{kind}, {name}: {rate:,.0f} events/s, p99 {p99:.1f} ms")


main()
