#!/usr/bin/env python3
"""Measures `headcount verify` of a stopped data directory: time, peak memory, compared cells.

usage: verify.py [--events 1000000] [--shape people|companies] [--retention-days N] [--memory 1GiB]

The events are those of memory.py. They are imported and sealed. With --retention-days, a project that keeps its events so long lets earlier ones
go first, so that their figures are frozen and the rest starts from a base. Requires a release build.
"""
import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import memory


def run(data, *command):
    output = subprocess.run([memory.HEADCOUNT, *command, "--data-dir", data], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert output.returncode == 0, f"{command}: {output.stdout}"
    return output.stdout


def measured(data, *command):
    """Runs a command. Returns what it printed, its seconds, and its peak memory in MB."""
    began = time.monotonic()
    child = subprocess.Popen([memory.HEADCOUNT, *command, "--data-dir", data], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    printed = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0, f"{command}: {status} {printed}"
    return printed, time.monotonic() - began, used.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--shape", choices=["people", "companies"], default="people")
    parser.add_argument("--retention-days", type=int)
    parser.add_argument("--memory", default="1GiB")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        data, file = Path(place) / "data", Path(place) / "events.ndjson"
        with open(file, "w") as lines:
            for number, event in enumerate(memory.events(args.events, args.shape)):
                if number == args.events:
                    break
                lines.write(json.dumps(event) + "\n")
        run(data, "init")
        run(data, "import", "--project", "default", file)
        if args.retention_days:
            run(data, "project", "set", "default", "--retention-days", str(args.retention_days))
        run(data, "archive", "seal")
        for quick in [True, False]:
            flags = ["--quick"] if quick else []
            printed, seconds, peak_mb = measured(data, "verify", "--json", "--memory", args.memory, *flags)
            report = json.loads(printed)
            of = report["projects"].values() if isinstance(report["projects"], dict) else report["projects"]
            sums = {name: sum(project.get(name, 0) for project in of) for name in ["events", "cells", "frozen"]}
            print(json.dumps({"quick": quick, "status": report["status"], "seconds": round(seconds, 1), "peak_mb": round(peak_mb), **sums}), flush=True)


if __name__ == "__main__":
    main()
