#!/usr/bin/env python3
"""Guards the cost of the hot paths: instructions and allocations of each stage, as callgrind counts them, against those of guard.txt.

usage: guard.py              build, count and compare; fails if a stage costs more than its margin allows
       guard.py --accept     build, count, and write what was counted to guard.txt
       guard.py --profile STAGE [--thread http] [--top 25] [--release]
                             print which functions cost the most in a stage, and which allocate
With --release, a release is built and counted. Its figures are others than those of guard.txt.
The stages are in src/bin/guard/. Counts need valgrind, and no idle machine.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import callgrind

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "benches" / "guard.txt"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# A test is named, and built too, so that cargo selects the features that the tests have, and builds no crate again.
BUILD = ["cargo", "build", "--quiet", "--workspace", "--bin", "guard", "--test", "it"]
RELEASE = ["cargo", "build", "--quiet", "--release", "-p", "headcount", "-p", "headcount-bench", "--bin", "guard"]
# By how much a thread's instructions and allocations may grow. What threads hand to each other depends a little on who is faster.
MARGINS = {"main": (0.05, 0.02), "http": (0.05, 0.05), "shard": (0.0, 0.1)}
# How many allocations more or less are no matter: of some messages, several are handed over together.
SLACK = {"main": 0.1, "http": 0.5, "shard": 1.0}
# Threads that also do things from time to time, so that only their allocations are compared.
TIMED = {"shard"}
# Another compiler makes other instructions, and the same allocations.
OTHER_COMPILER = 0.2
# Of how many instructions it's no matter whether they double.
NEGLIGIBLE = 500
# What the stages need in files.
MEMORY_BYTES = 512 << 20
# How often is counted what is written to guard.txt.
ACCEPTED_OF = 3
ACCEPT = "python3 benches/guard.py --accept"


class Figure:
    """What an event or a question costs one thread of a stage."""

    def __init__(self, instructions, allocations):
        self.instructions, self.allocations = instructions, allocations

    @staticmethod
    def of(thread, counts, count):
        """The share of one of `count` events."""
        instructions = 0 if thread in TIMED else counts.instructions()
        return Figure(instructions / count, sum(counts.allocations().values()) / count)

    @staticmethod
    def median(figures):
        """The median of several runs."""
        return Figure(*(statistics.median(getattr(figure, name) for figure in figures) for name in ("instructions", "allocations")))


def compiler():
    """The version of the compiler."""
    return subprocess.run(["rustc", "--version"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def memory():
    """A directory in memory, if there is room: what waits for the disk is slow, and counts nothing."""
    shared = Path("/dev/shm")
    has_room = shared.is_dir() and os.access(shared, os.W_OK) and shutil.disk_usage(shared).free >= MEMORY_BYTES
    return shared if has_room else None


def count(program):
    """Runs the stages under callgrind. Returns the number of events and the counts by stage and thread, in order."""
    directory = Path(tempfile.mkdtemp(prefix="headcount-guard-", dir=memory()))
    try:
        # One thread runs at a time. They take turns: sled spins until another thread has finished, which may otherwise not run for minutes.
        command = ["valgrind", "--tool=callgrind", "--fair-sched=try", "--separate-threads=yes", "--dump-before=*guard_mark*"]
        command += [f"--callgrind-out-file={directory}/out", str(program)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=900, env=dict(os.environ, TMPDIR=str(directory)))
        if run.returncode != 0:
            raise SystemExit(f"the stages failed:\n{run.stdout[-2000:]}{run.stderr[-4000:]}")
        counted = {}
        for line in run.stdout.splitlines():
            stage, events, thread, mark = line.split("\t")
            [dump] = directory.glob(f"out.{mark}-*")
            counted[stage, thread] = int(events), callgrind.read(dump)
        return counted
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def figures_of(counted):
    """The figures of one run."""
    return {key: Figure.of(key[1], counts, events) for key, (events, counts) in counted.items()}


def read(text):
    """Reads guard.txt. Returns the compiler and the figures."""
    version, figures = None, {}
    for line in text.splitlines():
        if line.startswith("# rustc "):
            version = line[2:]
        elif line and not line.startswith("#"):
            stage, thread, instructions, allocations = (field.strip() for field in line.split("|"))
            figures[stage, thread] = Figure(float(instructions.replace(",", "")), float(allocations))
    return version, figures


def written(version, figures):
    """The text of guard.txt."""
    lines = [
        "# What an event or a question costs in each stage and on each thread: instructions | allocations.",
        f"# Written by {ACCEPT}, with the code of",
        f"# {version}",
    ]
    for (stage, thread), figure in figures.items():
        lines.append(f"{stage:27} | {thread:5} | {figure.instructions:9,.0f} | {figure.allocations:7.2f}")
    return "\n".join(lines) + "\n"


def growth(old, new):
    """By how much of the old figure the new one is larger."""
    return (new - old) / old if old else float(new > 0)


def compare(accepted, counted, same_compiler):
    """Returns what is too expensive, and what became cheaper than the margin, as sentences."""
    grown, shrunk = [], []
    for key in accepted.keys() | counted.keys():
        if key not in counted or key not in accepted:
            where = "is in guard.txt, but was not counted" if key in accepted else "is not in guard.txt"
            grown.append(f"{', '.join(key)}: {where}")
    for key in [key for key in accepted if key in counted]:
        for index, name in enumerate(("instructions", "allocations")):
            old, new = getattr(accepted[key], name), getattr(counted[key], name)
            margin = MARGINS[key[1]][index] if same_compiler or index == 1 else OTHER_COMPILER
            by = growth(old, new)
            is_little = max(old, new) < NEGLIGIBLE if index == 0 else abs(new - old) <= SLACK[key[1]]
            if is_little or abs(by) <= margin:
                continue
            spelling = f"{old:,.0f} to {new:,.0f}" if index == 0 else f"{old:.2f} to {new:.2f}"
            sentence = f"{', '.join(key)}: from {spelling} {name} ({by:+.1%}; up to {margin:.0%} is allowed)"
            (grown if by > 0 else shrunk).append(sentence)
    return sorted(grown), sorted(shrunk)


def profile(counted, stage, thread, top):
    """Prints where the costs of a stage are."""
    threads = [key for key in counted if key[0] == stage and thread in (None, key[1])]
    if not threads:
        raise SystemExit(f"no such stage: {', '.join(sorted({key[0] for key in counted}))}")
    for key in threads:
        events, counts = counted[key]
        inclusive, sites = counts.inclusive(), counts.allocations()
        for title, costs in (("with what they call", inclusive), ("themselves", counts.own)):
            print(f"\n{', '.join(key)}: functions by instructions per event, {title}\n{'inclusive':>10} {'self':>10}")
            for function, _ in costs.most_common(top):
                print(f"{inclusive[function] / events:10,.0f} {counts.own[function] / events:10,.0f}  {function}")
        print(f"\n{', '.join(key)}: allocations per event\n{'':>10}")
        for function, number in sites.most_common(top):
            print(f"{number / events:10.2f}  {function}")


def print_spread(runs):
    """Prints by how much runs differ: margins must be larger."""
    for key in runs[0]:
        instructions = [run[key].instructions for run in runs]
        allocations = [run[key].allocations for run in runs]
        spread, more = growth(min(instructions), max(instructions)), max(allocations) - min(allocations)
        print(f"{', '.join(key)}: {len(runs)} runs differ by {spread:.2%} of the instructions and {more:.2f} allocations")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--profile", metavar="STAGE")
    parser.add_argument("--thread", choices=sorted(MARGINS))
    parser.add_argument("--top", type=int, default=25)
    parser.add_argument("--release", action="store_true")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is missing")
    if options.release and not options.profile:
        parser.error("--release is for --profile")
    # Incremental compilation divides the code otherwise, and so optimizes it otherwise.
    subprocess.run(RELEASE if options.release else BUILD, cwd=ROOT, check=True, env=dict(os.environ, CARGO_INCREMENTAL="0"))
    program = TARGET / ("release" if options.release else "debug") / "guard"
    if options.profile:
        return profile(count(program), options.profile, options.thread, options.top)
    with ThreadPoolExecutor() as threads:
        runs = list(threads.map(lambda _: figures_of(count(program)), range(ACCEPTED_OF if options.accept else 1)))
    figures = {key: Figure.median([run[key] for run in runs]) for key in runs[0]}
    version = compiler()
    text = written(version, figures)
    if options.accept:
        FIGURES.write_text(text)
        print(text, end="")
        return print_spread(runs)
    print(text, end="")
    accepted_version, accepted = read(FIGURES.read_text())
    if version != accepted_version:
        print(f"The figures of guard.txt are those of {accepted_version}: instructions may grow by {OTHER_COMPILER:.0%}.")
    grown, shrunk = compare(accepted, figures, version == accepted_version)
    for sentence in shrunk:
        print(f"cheaper: {sentence}")
    for sentence in grown:
        print(f"TOO EXPENSIVE: {sentence}")
    if shrunk and not grown:
        print(f"Hold what was gained: {ACCEPT}")
    if grown:
        print(f"Find where with `guard.py --profile STAGE`. If it is worth that, accept it: {ACCEPT}")
        sys.exit(1)


if __name__ == "__main__":
    main()
