#!/usr/bin/env python3
"""The same work for headcount, DuckDB, SQLite and the bare reference handler, in one run on one machine: prints rates, times and ratios.

usage: peers.py [--n 2000000] [--seconds 8] [--rounds 3] [--dir DIR] [--bin DIR]

- Recording: single events and 1,000 at a time, each on disk before the next step (headcount: over HTTP, answered once they are on disk and counted,
  64 connections; DuckDB and SQLite: a commit on one connection of this process, without HTTP and without any figure; the reference: the same
  HTTP requests, nothing else). In turns, medians of the rounds.
- Import: the events of the largest project as NDJSON, from the file to the end of the process. DuckDB makes columns of the fields; SQLite checks the
  JSON and keeps it.
- Questions: over the same events. Every answer is compared first, cell by cell, with both databases; if one differs, nothing is measured and the exit
  code is 1. DuckDB and SQLite have warm tables with all that headcount computes at ingestion (`latency_sql.py`); SQLite has indexes.

Requires numpy, pyarrow and duckdb, and release builds: cargo build --release -p headcount -p headcount-bench -p headcount-load
Uses loopback only, and stops all processes it started.
"""
import argparse
import datetime
import itertools
import json
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = sys.path.pop(0)  # keep http.py in this directory from shadowing the standard module
import http.client  # noqa: F401
sys.path.insert(0, HERE)

import duckdb
import pyarrow.parquet as pq

import dataset
import latency
import peers_sql
from latency_sql import Queries
from program import BIN, Program, Reference, load, require

START = datetime.date(2026, 6, 1)
ROWS = 20_000


def sqlite(file):
    """Opens a database whose commits are on disk, with room to keep it in memory."""
    connection = sqlite3.connect(file, isolation_level=None)
    for pragma in ("journal_mode=wal", "synchronous=full", "cache_size=-1000000", "mmap_size=4000000000", "temp_store=memory"):
        connection.execute(f"pragma {pragma}").fetchall()
    return connection


def row(what, unit, figures, more_is_better):
    """Prints a row: figures by name, and how many times better headcount is than each other."""
    ours = figures["headcount"]

    def ratio(name):
        if not figures.get(name):
            return ""
        return f"{ours / figures[name] if more_is_better else figures[name] / ours:,.2f}"
    shown = [f"{figures[name]:,.{0 if more_is_better else 3}f}" if figures.get(name) else "" for name in ("reference", "headcount", "DuckDB", "SQLite")]
    print(f"| {what}, {unit} | {' | '.join(shown)} | {' | '.join(map(ratio, ('reference', 'DuckDB', 'SQLite')))} |", flush=True)


def commits(seconds, parts, size, write):
    """Writes parts of `size` rows for some seconds. Returns rows per second."""
    began, written = time.perf_counter(), 0
    for part in itertools.cycle(parts):
        write(part)
        written += size
        took = time.perf_counter() - began
        if took >= seconds:
            return written / took


def recording(options, directory, parquet):
    """Measures how fast events are recorded durably."""
    names = ["position", "project", "at_ms", "user_id", "anonymous_id", "name", "page", "hostname", "referrer", "utm_source", "utm_medium",
             "utm_campaign", "browser", "country", "minor", "currency"]
    events = pq.read_table(parquet, columns=names).slice(0, ROWS)
    rows = list(zip(*(column.to_pylist() for column in events.columns)))
    types = {"position": "bigint", "project": "integer", "at_ms": "bigint", "minor": "bigint"}
    table = "create table events (" + ", ".join(f"{name} {types.get(name, 'text')}" for name in names) + ")"
    insert = f"insert into events values ({', '.join('?' * len(names))})"
    ducks, lite = duckdb.connect(str(directory / "commits.duckdb")), sqlite(directory / "commits.sqlite")
    for database in (ducks, lite):
        database.execute(table)

    def duck(part):
        # Several rows as a table of Arrow, which is what DuckDB takes quickest.
        if isinstance(part, list):
            ducks.execute(insert, part[0])
        else:
            ducks.execute("insert into events select * from part")

    def light(part):
        lite.execute("begin")
        lite.executemany(insert, part)
        lite.execute("commit")
    server, reference = Program(options.bin, options.dir), Reference(options.bin)
    common = ["--duration", f"{options.seconds}s", "--connections", 64, "--users", 200_000]
    figures = {1: [], 1000: []}
    try:
        for _ in range(options.rounds):
            for size in figures:
                batch = ["--batch", size] if size > 1 else []
                report, is_well = server.load("--key", server.keys["public_key"], "--token", server.keys["api_token"], *batch, *common)
                if not is_well:
                    raise SystemExit(f"the server counted something else than it acknowledged: {report['verified']}")
                parts = [rows[at:at + size] for at in range(0, len(rows) - size + 1, size)]
                tables = parts if size == 1 else [events.slice(at, size) for at in range(0, len(rows) - size + 1, size)]
                bare = load(options.bin, "--raw", "--url", reference.url, *common)[0]["requests_per_second"] if size == 1 else None
                figures[size].append({"headcount": report["events_per_second"], "reference": bare,
                                      "DuckDB": commits(options.seconds, tables, size, duck), "SQLite": commits(options.seconds, parts, size, light)})
    finally:
        server.close()
        reference.close()
    for size, rounds in figures.items():
        medians = {name: statistics.median(each[name] for each in rounds) if rounds[0][name] else None for name in rounds[0]}
        row(f"recording {'single events' if size == 1 else f'{size:,} at a time'}", "events/s", medians, True)


def importing(options, directory, events):
    """Measures how fast a file of events is imported."""
    file, data = directory / "track-1.ndjson", directory / "imported"
    program = options.bin / "headcount"
    keys = json.loads(subprocess.run([program, "init", "--json", "--data-dir", data], capture_output=True, text=True, check=True).stdout)
    began = time.perf_counter()
    subprocess.run([program, "import", "--json", "--data-dir", data, "--project", keys["project_id"], file], capture_output=True, check=True)
    figures = {"headcount": time.perf_counter() - began}
    began = time.perf_counter()
    ducks = duckdb.connect(str(directory / "imported.duckdb"))
    ducks.execute(f"create table events as select * from read_json('{file}', format = 'newline_delimited')")
    ducks.execute("checkpoint")
    figures["DuckDB"] = time.perf_counter() - began
    began = time.perf_counter()
    lite = sqlite(directory / "imported.sqlite")
    lite.execute("create table events (line text)")
    lite.execute("begin")
    with open(file, encoding="utf-8") as lines:
        lite.executemany("insert into events values (json(?))", ((line,) for line in lines))
    lite.execute("commit")
    figures["SQLite"] = time.perf_counter() - began
    row(f"importing {events:,} events as NDJSON", "events/s", {name: events / took for name, took in figures.items()}, True)


def median_ms(ask, times=5):
    """Returns the median of five times after a warm-up."""
    ask()
    took = []
    for _ in range(times):
        began = time.perf_counter()
        ask()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


def questions(options, directory, server, ducks, projects):
    """Compares the answers, and then measures the questions. Returns whether all answers are equal."""
    half = START + datetime.timedelta(days=dataset.DAYS // 2)
    last = START + datetime.timedelta(days=dataset.DAYS - 1)
    queries = Queries(ducks, projects[1], half, last, latency.today())
    lite = sqlite(directory / "events.sqlite")
    peers_sql.load(ducks, lite)
    ids, different, asked = latency.Ids(), 0, list(peers_sql.questions(queries))
    for query, statements in asked:
        status, got = server.ask(latency.method_of(query), latency.path_of(query, ids, server), query.parameters, query.body)
        for name, rows in (("DuckDB", latency.rows(ducks, query)), ("SQLite", [lite.execute(statement).fetchall() for statement in statements])):
            found = [f"status {status}"] if status != 200 else list(itertools.islice(latency.differences(query.shape(*rows), got, ids), 5))
            different += bool(found)
            for place in found:
                print(f"DIFFERS from {name}: {query.name}: {place}", flush=True)
    if different:
        return False
    server.wait_until_idle()
    timer = latency.Timer(options.bin, server.address, server.token)
    bare = float(latency.bare_handler(options.bin, lambda address: latency.bare_latency(options.bin, address))["p50_us"]) / 1000
    for query, statements in asked:
        body = "" if query.body is None else json.dumps(query.body)
        path = latency.target(latency.path_of(query, ids, server), query.parameters)
        ours = float(timer.measure(latency.method_of(query), path, body)["p50_us"]) / 1000
        figures = {"reference": bare, "headcount": ours, "DuckDB": median_ms(lambda: latency.rows(ducks, query)),
                   "SQLite": median_ms(lambda: [lite.execute(statement).fetchall() for statement in statements])}
        row(query.name, "median ms", figures, False)
    timer.close()
    return True


def run(options, directory):
    server = latency.Server(options.bin, directory)
    try:
        ducks, projects = latency.prepare(server, directory, options.n, START)
        print("\n| work | reference | headcount | DuckDB | SQLite | better than the reference | than DuckDB | than SQLite |\n|---|---|---|---|---|---|---|---|", flush=True)
        if not questions(options, directory, server, ducks, projects):
            return 1
    finally:
        server.close()
    with open(directory / "track-1.ndjson", encoding="utf-8") as lines:
        events = sum(1 for _ in lines)
    importing(options, directory, events)
    recording(options, directory, directory / "events.parquet")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=2_000_000, help="number of events")
    parser.add_argument("--seconds", type=int, default=8, help="time for each measurement of recording")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of recording")
    parser.add_argument("--bin", type=Path, default=BIN, help="directory of the binaries")
    parser.add_argument("--dir", type=Path, help="directory for events and data [default: a temporary directory]")
    options = parser.parse_args()
    require(options.bin, "headcount", "headcount-load", "reference", "latency")
    if (latency.today() - START).days + 1 - dataset.DAYS // 2 > 365:
        raise SystemExit("range_days reaches back 365 days: change START")
    directory = Path(tempfile.mkdtemp(prefix="headcount-peers-", dir=options.dir))
    try:
        sys.exit(run(options, directory))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
