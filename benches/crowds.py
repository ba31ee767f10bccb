#!/usr/bin/env python3
"""Measures growth and crowds: many projects, a hot one, idle connections, readers of live streams, dashboards that poll each second.

usage: crowds.py [--only PATTERN] [--scale 1.0] [--seconds 10] [--rate 2000] [--bin DIR] [--dir DIR]

Each scenario has a server of its own, and the same mix of single events, batches, questions and profiles at the same rate. It prints the server's
processor time and memory, and the latencies; the counts of every project are verified, and the exit code is 1 if one differs. `--scale 0.01`
makes all sizes a hundredth, to see that it works. Requires release builds: cargo build --release -p headcount -p headcount-load
Uses loopback only, and stops all processes it started.
"""
import argparse
import re
import sys
from pathlib import Path

from program import BIN, Program, require

MIX = ["--mix", "single=80,batch=2,poll=12,profile=6", "--batch", "50", "--duplicates", "1"]


def scenarios(scale):
    """Returns name and flags of each scenario."""
    size = lambda count, least=1: max(least, round(count * scale))
    several = ["--projects", str(size(8, 2))]
    return [
        ("8 projects", several),
        ("1,000 projects", ["--projects", str(size(1_000, 2))]),
        ("100,000 projects", ["--projects", str(size(100_000, 2))]),
        ("8 projects, one has 90 % of the events", [*several, "--hot", "90"]),
        ("10,000 idle connections", [*several, "--idle", str(size(10_000))]),
        # A project takes 256 readers.
        ("1,000 readers of live streams", [*several, "--streams", str(size(1_000))]),
        ("200 dashboards that poll each second", [*several, "--dashboards", str(size(200))]),
    ]


def kind(report, name):
    """Formats a kind of requests that ran beside the load."""
    of = report["kinds"].get(name)
    return f"{of['requests_per_second']:,.0f} questions/s, {of['by_status'].get('304', 0) / of['requests']:.0%} of them 304, " \
           f"p50 {of['latency_ms']['p50']:.2f} ms, p99 {of['latency_ms']['p99']:.2f} ms" if of else ""


def beside(report):
    """Says what ran beside the load."""
    parts = [kind(report, "dashboard")]
    if "idle" in report:
        parts.append("{answered_at_end:,} of {wanted:,} open and answered at the end".format(**report["idle"]))
    if "streams" in report:
        parts.append("{opened:,} of {wanted:,} opened, {ended_early} ended early, {frames:,} frames".format(**report["streams"]))
    return "; ".join(part for part in parts if part)


def measure(name, flags, options):
    program = Program(options.bin, options.dir)
    try:
        root = ["--root-token", program.keys["root_token"]]
        common = ["--rate", options.rate, "--duration", f"{options.seconds}s", "--connections", 64, "--users", 200_000]
        report, is_well = program.load(*root, *flags, *MIX, *common)
    finally:
        program.close()
    server, latency = report["server"], report["latency_ms"]
    verified = "as sent" if report["verified"]["agrees"] else "NOT AS SENT"
    print(f"| {name} | {report['settings']['projects']:,} | {report['requests_per_second']:,.0f} | {report['events_per_second']:,.0f} | {latency['p50']:.2f} | "
          f"{latency['p99']:.2f} | {server['cores']:.2f} | {server['memory_before_mib']:,.0f} | {server['memory_after_mib']:,.0f} | "
          f"{server['memory_peak_mib']:,.0f} | {verified} | {beside(report)} |", flush=True)
    idle, streams = report.get("idle"), report.get("streams")
    all_stayed = (not idle or idle["answered_at_end"] == idle["wanted"]) and (not streams or (streams["opened"], streams["ended_early"]) == (streams["wanted"], 0))
    return is_well and all_stayed and report["unexpected"] == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PATTERN", help="only scenarios whose name matches")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies all sizes")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=2000, help="requests per second")
    parser.add_argument("--bin", type=Path, default=BIN, help="directory of the binaries")
    parser.add_argument("--dir", type=Path, help="directory for data [default: a temporary directory]")
    options = parser.parse_args()
    require(options.bin, "headcount", "headcount-load")
    print("| scenario | projects | requests/s | events/s | p50 ms | p99 ms | cores | MiB before | MiB after | MiB at most | counted | beside the load |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    chosen = [(name, flags) for name, flags in scenarios(options.scale) if re.search(options.only, name)]
    ends = [measure(name, flags, options) for name, flags in chosen]
    sys.exit(0 if all(ends) and ends else 1)


if __name__ == "__main__":
    main()
