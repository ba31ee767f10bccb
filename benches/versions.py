#!/usr/bin/env python3
"""Compares two builds in one run: the latency of the questions of latency.py, and how many events a server takes and what each costs it.

Both servers stay, with the same events, and are measured in turns. Each line has the median of the ratios of the second build to the first one, and their quartiles.

usage: versions.py FORMER [--bin DIR] [--n 200000] [--rounds 20] [--only PATTERN] [--pairs 20]
       FORMER is the directory with the other build's `headcount`; --pairs 0 leaves the events out, --rounds 0 the questions

Requires numpy, pyarrow and duckdb, and release builds: cargo build --release -p headcount -p headcount-bench -p headcount-load
Uses loopback only, and stops all processes it started.
"""
import argparse
import contextlib
import datetime
import json
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

import latency
import dataset
from latency_sql import Queries

NAMES = ("former", "new")
LOAD = ["--duration", "4s", "--warm-up", "1s", "--connections", "16"]


def in_turns(number):
    """Both names, the other one first each time."""
    return NAMES if number % 2 else NAMES[::-1]


def line(ratios):
    first, median, last = statistics.quantiles(ratios, n=4)
    return f"{median:.2f} ({first:.2f} to {last:.2f})"


class Build:
    """A server of one build, with events."""

    def __init__(self, binaries, clients, directory, options):
        directory.mkdir()
        self.clients, self.server = clients, latency.Server(binaries, directory)
        try:
            connection, projects = latency.prepare(self.server, directory, options.n, options.start)
            half = options.start + datetime.timedelta(days=dataset.DAYS // 2)
            last = options.start + datetime.timedelta(days=dataset.DAYS - 1)
            typical = Queries(connection, projects[1], half, last, latency.today()).typical()
            self.queries = [query for query in typical if re.search(options.only, query.name)]
            self.ids = latency.Ids()
            _, loaded = self.server.ask("POST", "/organizations", body={"name": "loaded"}, token=self.server.root_token)
            self.key = loaded["public_key"]
            self.server.wait_until_idle()
        except BaseException:
            self.server.close()
            raise

    def latencies_us(self, number):
        """The median latencies of a question: computed, kept, unchanged."""
        query = self.queries[number]
        timer = latency.Timer(self.clients, self.server.address, self.server.token)
        body = "" if query.body is None else json.dumps(query.body)
        path = latency.target(latency.path_of(query, self.ids, self.server), query.parameters)
        figures = timer.measure(latency.method_of(query), path, body)
        timer.close()
        if figures["status"] != 200:
            raise SystemExit(f"{query.name}: status {figures['status']}")
        return [float(part["p50_us"]) for part in (figures, figures["kept"], figures["conditional"]) if part]

    def processor_ticks(self):
        return sum(map(int, Path(f"/proc/{self.server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))

    def load(self, batch):
        """Sends events as fast as they are taken. Returns how many a second, and the processor time of one in some unit."""
        command = [self.clients / "headcount-load", "--url", f"http://{self.server.address}", "--key", self.key, "--batch", str(batch), *LOAD]
        before = self.processor_ticks()
        run = subprocess.run(command, capture_output=True, text=True)
        found = re.search(r"([\d,.]+) events/s", run.stdout)
        if run.returncode or not found:
            raise SystemExit(f"the load failed: {run.stdout}{run.stderr}")
        rate = float(found.group(1).replace(",", ""))
        return rate, (self.processor_ticks() - before) / rate


def compare_questions(builds, rounds):
    print("| question | computed | kept | unchanged |\n|---|---|---|---|")
    medians = []
    for number, query in enumerate(builds["new"].queries):
        pairs = []
        for turn in range(rounds):
            measured = {name: builds[name].latencies_us(number) for name in in_turns(turn)}
            pairs.append([new / former for former, new in zip(measured["former"], measured["new"])])
        ratios = list(zip(*pairs))
        medians.append(statistics.median(ratios[0]))
        print(f"| {query.name} | {' | '.join(map(line, ratios))} |", flush=True)
    print(f"the median of all that are computed: {statistics.median(medians):.2f}")


def compare_loads(builds, pairs):
    for batch, what in ((100, "batches of 100"), (0, "single events")):
        rates, costs = [], []
        for turn in range(pairs):
            measured = {name: builds[name].load(batch) for name in in_turns(turn)}
            (former_rate, former_cost), (new_rate, new_cost) = (measured[name] for name in NAMES)
            rates.append(new_rate / former_rate)
            costs.append(new_cost / former_cost)
        print(f"{what}: events a second {line(rates)}, processor time of the server for one {line(costs)}", flush=True)


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("former", type=Path)
    parser.add_argument("--bin", type=Path, default=latency.TARGET / "release")
    parser.add_argument("--n", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--pairs", type=int, default=20)
    options = parser.parse_args()
    options.start = latency.today() - datetime.timedelta(days=200)
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        builds = {}
        for name, binaries in zip(NAMES, (options.former, options.bin)):
            builds[name] = Build(binaries.resolve(), options.bin.resolve(), Path(directory) / name, options)
            stack.callback(builds[name].server.close)
        if options.rounds:
            compare_questions(builds, options.rounds)
        if options.pairs:
            compare_loads(builds, options.pairs)


if __name__ == "__main__":
    main()
