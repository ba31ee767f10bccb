#!/usr/bin/env python3
"""Runs everything that README.md describes, one after the other, and keeps the outputs.

usage: all.py [--small] [--only PATTERN] [--list] [--out DIR]

Each benchmark runs also if an earlier one failed; the exit code is 1 if one did. `--small` takes sizes of a few seconds, to see that all of them work: it
measures nothing. Without it, it takes hours. Builds what it needs. Requires numpy, pyarrow and duckdb for some, and Node 20 and chromium for one.
Uses loopback only.
"""
import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
TABLES = ("numpy", "pyarrow", "duckdb")


def benchmarks(small, scratch):
    """Returns the name, the command and the modules of each benchmark."""
    python = lambda name, *arguments: [sys.executable, str(ROOT / "benches" / name), *arguments]
    sized = lambda full, little: little if small else full
    cargo = ["cargo", "bench", "-p", "headcount-bench"]
    return [
        ("stages", sized(cargo, [*cargo, "--", "--test"]), ()),
        ("http", python("http.py", *sized(["--seconds", "60"], ["--seconds", "1", "--rounds", "1"])), ()),
        ("embedded", [str(BIN / "embedded"), *sized(["1000000", "1000", "8"], ["20000", "1000", "8"])], ()),
        ("shapes", [str(BIN / "shapes"), *sized([], ["500", "1000"])], ()),
        ("latency", python("latency.py", *sized([], ["--n", "20000"])), TABLES),
        ("peers", python("peers.py", *sized([], ["--n", "20000", "--seconds", "1"])), TABLES),
        ("memory, people", python("memory.py", *sized([], ["--identities", "5000"])), ()),
        ("memory, companies", python("memory.py", "--shape", "companies", "--identities", sized("300000", "5000")), ()),
        ("growth", python("growth.py", *sized([], ["--events", "24000", "--people", "3000", "--companies", "50"])), ()),
        ("crowds", python("crowds.py", *sized([], ["--scale", "0.01", "--seconds", "2", "--rate", "200"])), ()),
        ("attacks", python("attack.py", *sized([], ["work", "--events", "20000", "--seconds", "2"])), ()),
        ("scans", python("scans.py", sized("2000000", "20000"), str(scratch / "scans"), *sized([], ["--rounds", "1"])), ("duckdb",)),
        ("exports of a person", [str(BIN / "privacy_export"), *sized(["1000000", "1000000", "128"], ["5000", "5000", "128"])], ()),
        ("exports of a person, over HTTP", python("person.py", *sized([], ["--events", "5000", "--others", "5000"])), ()),
        ("live streams", python("live.py", *sized([], ["--readers", "10", "--rounds", "1", "--seconds", "2"])), ()),
        ("numbers on the screen", ["node", str(ROOT / "benches" / "screen.mjs"), *sized([], ["--rate", "100", "--seconds", "5"])], ()),
        ("verification", python("verify.py", *sized([], ["--events", "20000"])), ()),
    ]


def run(name, command, modules, out):
    """Runs a benchmark, shows what it prints, and keeps that. Returns how it ended."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        return f"left out: needs {', '.join(missing)}"
    began = time.monotonic()
    with open(out / (re.sub(r"\W+", "-", name) + ".txt"), "w", encoding="utf-8") as kept:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
                                   env=os.environ | {"PYTHONUNBUFFERED": "1"})
        for line in process.stdout:
            sys.stdout.write(line)
            kept.write(line)
            kept.flush()
        code = process.wait()
    return f"{'done' if code == 0 else f'FAILED with {code}'} in {time.monotonic() - began:.0f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="sizes of a few seconds: measures nothing")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only benchmarks whose name matches")
    parser.add_argument("--list", action="store_true", help="print the commands, and run nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "benches", help="directory for the outputs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headcount-benches-") as scratch:
        chosen = [each for each in benchmarks(options.small, Path(scratch)) if re.search(options.only, each[0])]
        if options.list:
            for name, command, _ in chosen:
                print(f"{name}: {' '.join(command)}")
            return
        options.out.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cargo", "build", "--release", "-p", "headcount", "-p", "headcount-bench", "-p", "headcount-load"], cwd=ROOT, check=True)
        if any(command[0] == "node" for _, command, _ in chosen):
            subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=ROOT / "tests" / "browser", check=True)
        ends = {}
        for name, command, modules in chosen:
            print(f"\n== {name}: {' '.join(command)}", flush=True)
            ends[name] = run(name, command, modules, options.out)
    print("\n== all")
    for name, end in ends.items():
        print(f"{name}: {end}")
    sys.exit(1 if not ends or any(not end.startswith("done") for end in ends.values()) else 0)


if __name__ == "__main__":
    main()
