#!/usr/bin/env python3
"""Benchmarks the latency of queries over HTTP, compared with DuckDB's time for the equivalent SQL over the same events in the same run.

First compares every answer, cell by cell; if one differs, measures nothing and exits with code 1.

usage: latency.py [--n 2000000] [--dir DIR] [--keep] [--only PATTERN] [--bin DIR] [--max-seconds 1800] [--ingest RATE]
       latency.py --naive [--n 20000]    compare the SQL with the naive model instead, for all projects and many users and
                                         companies: no server, no measurement

Requires numpy, pyarrow and duckdb, and release builds: cargo build --release -p headcount -p headcount-bench -p headcount-load
(for --naive: cargo build --release -p headcount-model --example answers).
Uses loopback only, and stops all processes it started.
"""
import argparse
import contextlib
import datetime
import itertools
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from decimal import Decimal
from pathlib import Path

HERE = sys.path.pop(0)  # keep http.py in this directory from shadowing the standard module
import http.client
sys.path.insert(0, HERE)

import duckdb

import dataset
import latency_sql
from latency_sql import Id, Queries

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[1] / "target"))
SHOWN = 10


def today():
    return datetime.datetime.now(datetime.timezone.utc).date()


class Ids:
    """Maps identifiers to their spelling: each entity has one text in all answers, and each text one entity."""

    def __init__(self):
        self.texts, self.things = {}, {}

    def bind(self, thing, text):
        return isinstance(text, str) and self.texts.setdefault(thing, text) == text and self.things.setdefault(text, thing) == thing


def differences(expected, got, ids, place=""):
    """Yields the differences. `got` may have more fields than expected; lists must have exactly the expected elements; numbers are exact."""
    if isinstance(expected, Id):
        if not ids.bind(expected.of, got):
            yield f"{place}: expected the id of {expected.of}, known as {ids.texts.get(expected.of)}, got {got!r}"
    elif isinstance(expected, dict):
        if not isinstance(got, dict) or (not expected and got):
            yield f"{place}: expected {expected}, got {got!r}"
            return
        for field, value in expected.items():
            inner = f"{place}.{field}" if place else field
            if field not in got:
                yield f"{inner}: expected {value}, the field is missing"
            else:
                yield from differences(value, got[field], ids, inner)
    elif isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            yield f"{place}: expected {len(expected)} elements, got {len(got) if isinstance(got, list) else got!r}"
        for index, (value, found) in enumerate(zip(expected, got if isinstance(got, list) else [])):
            yield from differences(value, found, ids, f"{place}[{index}]")
    else:
        number = lambda value: isinstance(value, (int, Decimal)) and not isinstance(value, bool)
        same_kind = number(expected) and number(got) or type(expected) is type(got)
        if not same_kind or expected != got:
            yield f"{place}: expected {expected!r}, got {got!r}"


def parsed(text):
    return json.loads(text, parse_float=Decimal)


class Server:
    """headcount, queried over HTTP."""

    def __init__(self, binaries, directory):
        self.binaries, self.data = binaries, directory / "headcount"
        keys = json.loads(self.command("init", "--json"))
        self.token, self.root_token = keys["api_token"], keys["root_token"]
        arguments = [binaries / "headcount", "serve", "--data-dir", self.data, "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            line = next((line for line in self.process.stdout if "listening on" in line), None)
            if line is None:
                raise SystemExit("the server did not start")
            self.address = line.split("//")[-1].strip().rstrip("/")
        except BaseException:
            self.close()
            raise

    def command(self, *arguments):
        run = subprocess.run([self.binaries / "headcount", *arguments, "--data-dir", self.data], capture_output=True, text=True)
        if run.returncode != 0:
            raise SystemExit(f"headcount {arguments[0]} failed: {run.stdout}{run.stderr}")
        return run.stdout

    def ask(self, method, path, query=None, body=None, token=None):
        connection = http.client.HTTPConnection(self.address, timeout=120)
        headers = {"authorization": f"Bearer {token or self.token}", "content-type": "application/json"}
        connection.request(method, target(path, query), "" if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        content = answer.read().decode()
        connection.close()
        return answer.status, parsed(content)

    def load(self, project, file):
        summary = parsed(self.command("import", "--json", "--project", project["id"], str(file)))
        return summary["recorded"], summary["duplicates"]

    def memory_mb(self):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text()).group(1)) / 1024

    def wait_until_idle(self):
        """Waits, for a minute at most, until the background work of the import is done."""
        used = lambda: sum(map(int, Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
        for _ in range(60):
            before = used()
            time.sleep(1)
            # At most 1 % of a core.
            if used() - before <= os.sysconf("SC_CLK_TCK") // 100:
                return
        print("the server is still busy after a minute", flush=True)

    def close(self):
        self.process.terminate()
        self.process.wait()


class Naive:
    """The naive model of the tests, queried over standard input."""

    def __init__(self, binaries, directory):
        arguments = [binaries / "examples" / "answers", str(int(time.time() * 1000))]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self, **fields):
        self.process.stdin.write(json.dumps(fields) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the naive model stopped")
        return parsed(line)

    def ask(self, method, path, query=None, body=None):
        answer = self.line(method=method, path=path, query=query, body=body)
        return answer["status"], answer["body"]

    def load(self, project, file):
        counts = self.line(project=project["name"], file=str(file))
        return counts.get("recorded", 0), counts.get("duplicate", 0)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def target(path, query):
    return path + ("?" + urllib.parse.urlencode(query) if query else "")


def prepare(subject, directory, n, start):
    """Generates the events and loads them into both. Returns the connection to DuckDB and the projects by number."""
    began = time.monotonic()
    parquet = directory / "events.parquet"
    repeated = dataset.write(n, directory, start)
    print(f"{n:,} events generated in {time.monotonic() - began:.0f} s", flush=True)
    rates = {currency: float(rate) for currency, rate in latency_sql.RATES.items()}
    status, answer = subject.ask("PATCH", "/organization", body={"fx_rates": rates})
    if status != 200:
        raise SystemExit(f"the rates were refused: {answer}")
    began, projects, counts = time.monotonic(), {}, [0, 0]
    for number in range(1, dataset.PROJECTS + 1):
        name = f"app{number}"
        status, answer = subject.ask("POST", "/projects", body={"name": name, "currency": "USD"})
        if status != 201:
            raise SystemExit(f"project {name} was refused: {answer}")
        projects[number] = {"number": number, "name": name, "id": answer["project_id"]}
        counts = [sum(pair) for pair in zip(counts, subject.load(projects[number], directory / f"track-{number}.ndjson"))]
    print(f"{counts[0]:,} recorded, {counts[1]:,} duplicates, in {time.monotonic() - began:.0f} s", flush=True)
    if counts != [n, repeated]:
        raise SystemExit(f"expected {n:,} recorded and {repeated:,} duplicates")
    began = time.monotonic()
    connection = duckdb.connect(str(directory / "duckdb"))
    latency_sql.load(connection, parquet)
    print(f"DuckDB {duckdb.__version__}, tables created in {time.monotonic() - began:.0f} s", flush=True)
    return connection, projects


def rows(connection, query):
    return [connection.execute(statement).fetchall() for statement in query.statements]


def path_of(query, ids, subject):
    """Returns the path with the company's id, which is looked up by domain if no answer has contained it yet."""
    if "{company}" not in query.path:
        return query.path
    thing = ("company", query.company)
    if thing not in ids.texts:
        _, answer = subject.ask("GET", "/companies/lookup", {"domain": query.company})
        ids.bind(thing, answer.get("company_id"))
    return query.path.replace("{company}", urllib.parse.quote(ids.texts.get(thing, "unknown"), safe=":"))


def method_of(query):
    return "GET" if query.body is None else "POST"


def compare(subject, connection, queries, ids):
    """Compares all answers, and prints the first differences of each. Returns the number of answers that differ."""
    different = 0
    for query in queries:
        expected = query.shape(*rows(connection, query))
        status, got = subject.ask(method_of(query), path_of(query, ids, subject), query.parameters, query.body)
        found = [f"status {status}: {got}"] if status != 200 else list(itertools.islice(differences(expected, got, ids), SHOWN))
        print(f"{'DIFFERS' if found else 'same':8} {query.name}: {target(query.path, query.parameters)}", flush=True)
        for place in found:
            print(f"         {place}", flush=True)
        different += bool(found)
    return different


class Timer:
    """The benchmark client, with its own connection."""

    def __init__(self, binaries, address, token=""):
        environment = os.environ | {"HEADCOUNT_TOKEN": token}
        self.process = subprocess.Popen([binaries / "latency", address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)

    def measure(self, method, path, body):
        self.process.stdin.write(f"{method}\t{path}\t{body}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the benchmark client stopped at {method} {path}")
        return parsed(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def duckdb_ms(connection, query):
    """Returns the median of five runs after a warm-up: all statements of the query, including fetching their rows."""
    rows(connection, query)
    took = []
    for _ in range(5):
        began = time.perf_counter()
        rows(connection, query)
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


def bare_handler(binaries, use):
    """Returns what `use` returns for the address of a handler that does nothing: the cost of the connection and the client."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([binaries / "reference", str(port), "1"])
    try:
        time.sleep(1)
        return use(f"127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait()


def bare_latency(binaries, address):
    timer = Timer(binaries, address)
    figures = timer.measure("POST", "/none", "{}")
    timer.close()
    return figures


def rate(binaries, address, line, token=""):
    """Returns how often a second the request of a line is answered on 32 connections."""
    run = subprocess.run([binaries / "latency", address, "32", "5"], input=line + "\n", capture_output=True, text=True, check=True,
                         env=os.environ | {"HEADCOUNT_TOKEN": token})
    return int(run.stdout)


def unchanged_polls(server, query, ids, binaries):
    """Prints the rate of unchanged polls beside that of the bare handler, in turns."""
    poll = "\t".join([method_of(query), target(path_of(query, ids, server), query.parameters), "" if query.body is None else json.dumps(query.body)])
    shares = []
    for _ in range(3):
        bare = bare_handler(binaries, lambda address: rate(binaries, address, "POST\t/none\t" + "x" * 570))
        unchanged = rate(binaries, server.address, poll, server.token)
        shares.append(unchanged / bare)
        print(f"unchanged polls of {query.name}: {unchanged:,}/s, {unchanged / bare:.0%} of the bare handler's {bare:,}/s", flush=True)
    print(f"median: {statistics.median(shares):.0%}", flush=True)


def table(server, connection, queries, ids, binaries):
    print("\n| query | computed p50 ms | p99 ms | kept p50 ms | 304 p50 ms | DuckDB median ms | ratio |\n|---|---|---|---|---|---|---|")
    bare = bare_handler(binaries, lambda address: bare_latency(binaries, address))
    print(f"| (bare handler, empty response) | {bare['p50_us'] / 1000:.3f} | {bare['p99_us'] / 1000:.3f} | | | | |", flush=True)
    timer = Timer(binaries, server.address, server.token)
    for query in queries:
        expected = query.shape(*rows(connection, query))
        body = "" if query.body is None else json.dumps(query.body)
        figures = timer.measure(method_of(query), target(path_of(query, ids, server), query.parameters), body)
        found = next(differences(expected, figures["body"], ids), None)
        if figures["status"] != 200 or found:
            raise SystemExit(f"{query.name}: the measured answer differs: {figures['status']} {found}")
        duckdb_median_ms = duckdb_ms(connection, query)
        p50, p99 = (float(figures[figure]) / 1000 for figure in ("p50_us", "p99_us"))
        unchanged = figures["conditional"]
        conditional = f"{float(unchanged['p50_us']) / 1000:.3f}" if unchanged else "no ETag"
        kept = float(figures["kept"]["p50_us"]) / 1000
        print(f"| {query.name} | {p50:.3f} | {p99:.3f} | {kept:.3f} | {conditional} | {duckdb_median_ms:.2f} | {duckdb_median_ms / p50:,.0f} |", flush=True)
    timer.close()


@contextlib.contextmanager
def ingesting(server, options):
    """Has single events sent to another organization, if that was asked for."""
    if not options.ingest:
        yield
        return
    _, other = server.ask("POST", "/organizations", body={"name": "ingesting"}, token=server.root_token)
    arguments = [options.bin / "headcount-load", "--url", f"http://{server.address}", "--key", other["public_key"], "--rate", options.ingest]
    load = subprocess.Popen([*map(str, arguments), "--duration", f"{options.max_seconds}s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        load.terminate()
        load.wait()


def run(options, directory):
    if (today() - options.start).days + 1 - dataset.DAYS // 2 > 365:
        raise SystemExit(f"range_days reaches back 365 days: give a later --start than {options.start}")
    subject = (Naive if options.naive else Server)(options.bin, directory)
    try:
        connection, projects = prepare(subject, directory, options.n, options.start)
        half = options.start + datetime.timedelta(days=dataset.DAYS // 2)
        last = options.start + datetime.timedelta(days=dataset.DAYS - 1)
        while True:
            day = today()
            if options.naive:
                by_project = (Queries(connection, project, half, last, day).thorough() for project in projects.values())
            else:
                by_project = [Queries(connection, projects[1], half, last, day).typical()]
            queries = [query for of_project in by_project for query in of_project if re.search(options.only, query.name)]
            ids = Ids()
            different = compare(subject, connection, queries, ids)
            # Queries that count back from today change at midnight.
            if day == today():
                break
        print(f"{len(queries)} queries, {different} with a different answer", flush=True)
        if different or not queries:
            return 1
        if not options.naive:
            subject.wait_until_idle()
            threads = connection.execute("select current_setting('threads')").fetchone()[0]
            print(f"server: {subject.memory_mb():.0f} MB; DuckDB: {threads} threads")
            with ingesting(subject, options):
                table(subject, connection, queries, ids, options.bin)
            unchanged_polls(subject, queries[0], ids, options.bin)
        return 0
    finally:
        subject.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, help="number of events [default: 2,000,000; with --naive 20,000]")
    parser.add_argument("--naive", action="store_true", help="compare the SQL with the naive model")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only queries whose name matches")
    parser.add_argument("--dir", type=Path, help="directory for events and data [default: a temporary directory]")
    parser.add_argument("--keep", action="store_true", help="keep events and data")
    parser.add_argument("--ingest", type=int, metavar="RATE", help="measure while so many events a second are recorded in another organization")
    parser.add_argument("--start", type=datetime.date.fromisoformat, default=datetime.date(2026, 6, 1), help="first day of the events")
    parser.add_argument("--bin", type=Path, default=TARGET / "release", help="directory of the binaries")
    parser.add_argument("--max-seconds", type=int, default=1800, help="time limit")
    options = parser.parse_args()
    options.n = options.n or (20_000 if options.naive else 2_000_000)

    def stop_run(number, _):
        raise SystemExit(f"stopped by {signal.Signals(number).name}" + (f" after {options.max_seconds} s" if number == signal.SIGALRM else ""))
    for stop in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(stop, stop_run)
    signal.alarm(options.max_seconds)
    if options.dir:
        options.dir.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="headcount-latency-", dir=options.dir))
    try:
        sys.exit(run(options, directory))
    finally:
        if options.keep:
            print(f"kept: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
