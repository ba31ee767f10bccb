#!/usr/bin/env python3
"""Measures the memory of the server while it exports a person with many events, and while the artifact is downloaded.

usage: person.py [--events 1000000] [--others 1000000] [--memory 128MiB] [--unsealed] [--dir DIR] [--binary PATH]

Imports the events, starts the server anew, makes the export, and downloads it twice: whole, and in ranges of 1 MiB. Both must have the length and the SHA-256 (the
ETag) that the server names, and each event once, in order. Prints the resident memory before, and its peak (VmHWM) after each step. `--unsealed` leaves the events in the log.
Requires a release build. Uses loopback only, and stops the server that it started.
"""
import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.pop(0)  # keep http.py in this directory from shadowing the standard module
import http.client

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[1] / "target"))
START_MS = 1_780_272_000_000
RANGE = 1 << 20


def events(theirs, others):
    """Yields events: those of the person are numbered, and spread over those of many others."""
    total, sent = theirs + others, 0
    for number in range(total):
        at = START_MS + number * 2_000
        page = f"https://app.example.com/docs/section-{number % 20}/page-{number % 400}?utm_source=news"
        if sent * total < theirs * (number + 1):
            yield {"name": "pageview", "user_id": "ada", "external_id": f"ada-{sent}", "timestamp": at, "url": page, "value": sent % 50}
            sent += 1
        else:
            yield {"name": "pageview", "user_id": f"u{number * 7919 % 100_000}", "timestamp": at, "url": page}


class Server:
    def __init__(self, binary, data, memory, token):
        command = [binary, "serve", "--data-dir", data, "--memory", memory, "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = re.search(r"http://(\S+)", self.process.stdout.readline()).group(1)
        self.token = token

    def mib(self, line):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{line}:\s+(\d+)", status).group(1)) / 1024

    def forget_peak(self):
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def ask(self, method, path, body=None, headers=None, connection=None):
        """Returns the response, which is to be read."""
        connection = connection or http.client.HTTPConnection(self.address)
        headers = {"authorization": f"Bearer {self.token}"} | (headers or {})
        if body is not None:
            headers["content-type"] = "application/json"
        connection.request(method, path, body and json.dumps(body), headers)
        return connection.getresponse()

    def json(self, method, path, body=None):
        response = self.ask(method, path, body)
        text = response.read()
        assert response.status < 300, (response.status, text)
        return json.loads(text)


def whole(server, path, expected):
    """Downloads the artifact as a stream, and checks its events. Returns its length and SHA-256."""
    response, hash, length, count, rest = server.ask("GET", path), hashlib.sha256(), 0, 0, b""
    assert response.status == 200, (response.status, response.read(500))
    while part := response.read(RANGE):
        hash.update(part)
        length += len(part)
        lines = (rest + part).split(b"\n")
        rest = lines.pop()
        for line in lines:
            if found := re.search(rb'"external_id":"ada-(\d+)"', line):
                assert int(found.group(1)) == count, (found.group(1), count)
                count += 1
    assert count == expected, (count, expected)
    return length, hash.hexdigest(), response.headers["etag"].strip('"')


def ranges(server, path, length):
    connection, hash = http.client.HTTPConnection(server.address), hashlib.sha256()
    for begin in range(0, length, RANGE):
        response = server.ask("GET", path, headers={"range": f"bytes={begin}-{begin + RANGE - 1}"}, connection=connection)
        part = response.read()
        assert (response.status, len(part)) == (206, min(RANGE, length - begin)), (response.status, len(part))
        hash.update(part)
    return hash.hexdigest()


def measure(server, options):
    time.sleep(2)
    server.forget_peak()
    before, began = server.mib("VmRSS"), time.monotonic()
    request = server.json("POST", "/privacy-requests", {"type": "export", "user_id": "ada"})
    path = f"/privacy-requests/{request['id']}"
    while (shown := server.json("GET", path))["status"] != "completed":
        assert shown["status"] != "failed", shown
        time.sleep(0.1)
    took, made = time.monotonic() - began, server.mib("VmHWM")
    server.forget_peak()
    length, hash, etag = whole(server, f"{path}/download", options.events)
    at_once = server.mib("VmHWM")
    assert hash == etag, (hash, etag)
    server.forget_peak()
    assert ranges(server, f"{path}/download", length) == etag, "the ranges are not the whole"
    print(f"{options.events} events among {options.events + options.others}, --memory {options.memory}: {length / 2**20:.0f} MiB in {took:.1f} s")
    print(f"memory: {before:.0f} MiB before; peaks: {made:.0f} MiB while it was made, {at_once:.0f} MiB while it was downloaded as a whole, "
          f"{server.mib('VmHWM'):.0f} MiB in ranges, which are the same bytes")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--others", type=int, default=1_000_000)
    options.add_argument("--memory", default="128MiB")
    options.add_argument("--unsealed", action="store_true")
    options.add_argument("--dir")
    options.add_argument("--binary", type=Path, default=TARGET / "release" / "headcount")
    options = options.parse_args()
    place = Path(tempfile.mkdtemp(prefix="headcount-person-", dir=options.dir))
    try:
        file, data = place / "events.ndjson", place / "data"
        with open(file, "w", encoding="utf-8") as out:
            for event in events(options.events, options.others):
                out.write(json.dumps(event, separators=(",", ":")) + "\n")

        def run(*command):
            command = [options.binary, *command, "--data-dir", data, "--json"]
            return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

        keys = run("init")
        imported = run("import", "--memory", options.memory, "--project", keys["project_id"], file)
        assert imported["recorded"] == options.events + options.others, imported
        file.unlink()
        if not options.unsealed:
            run("archive", "seal")
        server = Server(options.binary, data, options.memory, keys["api_token"])
        try:
            measure(server, options)
        finally:
            server.process.terminate()
            server.process.wait()
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
