#!/usr/bin/env python3
"""Runs the commands of README.md, docs/*.md and clients/README.md.

usage: run.py [NAME…]

Each document has a directory and a server of its own, on loopback. Its blocks run in their order, with the variables that the first start of a server prints
(`PK`, `TOKEN`, `PROJECT`). A comment before a block says what is special about it:

    <!-- run: until ready -->       it starts the server of this document
    <!-- run: stopped -->           the server is stopped meanwhile
    <!-- run: setup COMMANDS -->    these commands run before it
    <!-- from: FILE -->             its lines are in this file, which CI compiles and runs
    <!-- not run: REASON -->        it is not run

`sh`, `bash`, `js` and `python` are run. A block of `text` or `json` after one of them is its output: spaces don't count, and `…` is anything. A block that is
none of these fails the test. `http://127.0.0.1:8080` is replaced by the server's address, and a placeholder such as `pk_…` or `co_…` by the server's key, or
the last id of this kind that a block printed. `cargo build` and `cargo run` use the program that is already built: `HEADCOUNT`, or `target/debug/headcount`.
"""
import collections
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("HEADCOUNT", ROOT / "target" / "debug" / "headcount")).absolute()
VENV = ROOT / "target" / "docs-venv"
PATIENCE_SECONDS = 60
RUN = {"sh": ["bash", "-eu", "-o", "pipefail"], "bash": ["bash", "-eu", "-o", "pipefail"], "js": ["node"], "python": [str(VENV / "bin" / "python")]}
OUTPUTS = {"text", "json"}
# What placeholders of these prefixes stand for: credentials of the first start.
OWN = {"pk": "public_key", "sk": "api_token", "prj": "project_id"}
# Refusals fail, and a stream, which has no end, is read for a moment.
PRELUDE = """
set -a; [ ! -f .environment ] || . ./.environment; set +a
curl() {
  case " $* " in
    *" -N "*) command curl -sS --fail-with-body --max-time 2 "$@" || [ $? = 28 ] ;;
    *) command curl -sS --fail-with-body "$@" ;;
  esac
}
trap 'export -p >.environment' EXIT
"""
CARGO = """#!/bin/sh
# The program is built already.
case "$1" in
  build) mkdir -p target/release && ln -sf "$HEADCOUNT" target/release/headcount ;;
  run) while [ "$1" != -- ]; do shift; done; shift; exec "$HEADCOUNT" "$@" ;;
  *) echo "cargo $1 is not run here" >&2; exit 1 ;;
esac
"""


class Failed(Exception):
    """A block that does not do what its document says."""


@dataclass
class Block:
    line: int
    language: str
    text: str
    comments: list[str]

    def marked(self, kind):
        return next((rest.strip() for rest in (each.removeprefix(kind) for each in self.comments if each.startswith(kind))), None)


def blocks(document):
    """The fenced blocks of a document, each with the comments before it."""
    found, comments, lines = [], [], iter(enumerate(document.read_text(encoding="utf-8").splitlines(), 1))
    for number, line in lines:
        if match := re.fullmatch(r"\s*<!-- (.+?) -->", line):
            comments.append(match[1])
        elif match := re.fullmatch(r"( *)```(\S*).*", line):
            text = []
            for _, inner in lines:
                if inner.strip() == "```":
                    break
                text.append(inner.removeprefix(match[1]))
            else:
                raise Failed(f"{document.name}:{number}: a block without an end")
            found.append(Block(number, match[2], "\n".join(text) + "\n", comments))
            comments = []
        elif line.strip():
            comments = []
    return found


class Server:
    """The server of a document."""

    def __init__(self, directory):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.directory = directory
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None
        self.credentials = {}
        self.ids = {}
        (directory / "bin").mkdir()
        (directory / "bin" / "headcount").symlink_to(PROGRAM)
        (directory / "bin" / "cargo").write_text(CARGO)
        (directory / "bin" / "cargo").chmod(0o755)
        # As if `npm install` had been run, which clients/test does.
        (directory / "node_modules").mkdir()
        (directory / "node_modules" / "headcount-client").symlink_to(ROOT / "clients" / "typescript")

    def environment(self):
        names = {"PK": "public_key", "TOKEN": "api_token", "PROJECT": "project_id"}
        known = {name: self.credentials[field] for name, field in names.items() if self.credentials}
        path = f"{self.directory / 'bin'}{os.pathsep}{os.environ['PATH']}"
        settings = {"HEADCOUNT_LISTEN": f"127.0.0.1:{self.port}", "HEADCOUNT_MIN_FREE_BYTES": "0", "HEADCOUNT_LOG": "warn"}
        return {**os.environ, **known, **settings, "PATH": path, "HEADCOUNT": str(PROGRAM), "ROOT": str(ROOT), "no_proxy": "127.0.0.1"}

    def ensure(self):
        if self.process is None:
            self.start("headcount serve --data-dir ./headcount-data")

    def start(self, script):
        with open(self.directory / "server.log", "a", encoding="utf-8") as log:
            # The shell becomes the server, so that it is the server that gets the signal.
            *before, last = script.strip().splitlines()
            command = "\n".join([*before, f"exec {last}"])
            self.process = subprocess.Popen([*RUN["sh"], "-c", command], cwd=self.directory, env=self.environment(), stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failed(f"the server does not start: {(self.directory / 'server.log').read_text()}")
            time.sleep(0.05)
        file = self.directory / "headcount-data" / "credentials.json"
        if file.exists():
            self.credentials = json.loads(file.read_text())
            self.ids |= {prefix: self.credentials[field] for prefix, field in OWN.items()}

    def is_ready(self):
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{self.url}/readyz", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(PATIENCE_SECONDS)
            self.process = None

    def replaced(self, text):
        text = re.sub(r"\b([a-z]{2,4})_…", lambda match: self.ids.get(match[1], match[0]), self.located(text))
        return text.replace("/backups/", f"{self.directory}/backups/")

    def located(self, text):
        return text.replace("http://127.0.0.1:8080", self.url).replace("127.0.0.1:8080", self.url.removeprefix("http://"))

    def remember(self, printed):
        """The ids that a block printed last stand for placeholders of later blocks."""
        self.ids |= dict((match[1], match[0]) for match in re.finditer(r"\b([a-z]{2,4})_[A-Za-z0-9]{8,}\b", printed) if match[1] not in OWN)


def run(server, block):
    """Runs a block. Returns what it printed."""
    if block.marked("run: until ready") is not None:
        server.stop()
        server.start(server.replaced(block.text))
        return ""
    server.ensure()
    if block.marked("run: stopped") is not None:
        server.stop()
    try:
        if setup := block.marked("run: setup "):
            execute(server, "sh", setup)
        return execute(server, block.language, block.text)
    finally:
        server.ensure()


def execute(server, language, text):
    text = server.replaced(text)
    flags = []
    if language in ("sh", "bash"):
        flags = ["-c", PRELUDE + text]
    else:
        script = server.directory / ("block.mjs" if language == "js" else "block.py")
        script.write_text(text, encoding="utf-8")
        flags = [str(script)]
    ended = subprocess.run([*RUN[language], *flags], cwd=server.directory, env=server.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=PATIENCE_SECONDS)
    if ended.returncode:
        raise Failed(f"exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
    server.remember(ended.stdout)
    return ended.stdout


def compare(server, shown, printed):
    tight = lambda text: re.sub(r"\s+", "", text)
    pattern = ".*?".join(re.escape(part) for part in tight(server.located(shown)).split("…"))
    if not re.fullmatch(pattern, tight(printed), re.DOTALL):
        raise Failed(f"it shows\n{shown}but the output is\n{printed}")


def contained(block, file):
    """Fails unless the lines of the block are lines of the file, one after the other."""
    lines = lambda text: [line.strip() for line in text.splitlines() if line.strip()]
    wanted, present = lines(block.text), lines((ROOT / file).read_text(encoding="utf-8"))
    if not any(present[at:at + len(wanted)] == wanted for at in range(len(present))):
        raise Failed(f"its lines are not in {file}")


def check(block, before, server):
    """Deals with one block. Returns how, and what it printed if it was run."""
    if (reason := block.marked("not run:")) is not None:
        if not reason:
            raise Failed("it is not run, without a reason")
        return "marked", None
    if file := block.marked("from:"):
        contained(block, file)
        return "compiled", None
    if block.language in OUTPUTS and before[0] == "skipped":
        return before
    if block.language in OUTPUTS and before[1] is not None:
        compare(server, block.text, before[1])
        return "compared", None
    if block.language not in RUN:
        raise Failed(f"a block of {block.language or 'no language'} is not run: mark it")
    if shutil.which(RUN[block.language][0]) is None:
        return "skipped", None
    return "run", run(server, block)


def test(document):
    """Returns how many blocks of a document were dealt with in each way, and what failed."""
    ways, failures, before = collections.Counter(), [], ("", None)
    with tempfile.TemporaryDirectory(prefix="headcount-docs-") as directory:
        server = Server(Path(directory))
        try:
            for block in blocks(document):
                try:
                    before = check(block, before, server)
                    ways[before[0]] += 1
                except (Failed, subprocess.TimeoutExpired) as failure:
                    before = ("failed", None)
                    failures.append(f"{document.relative_to(ROOT)}:{block.line}: {failure}")
        finally:
            server.stop()
    return ways, failures


def install_clients():
    """Installs the Python client, for the blocks that use it. Blocks whose client nobody has generated or can install are skipped."""
    if not (ROOT / "clients" / "typescript" / "openapi-fetch").exists():
        RUN["js"] = ["node-with-the-client"]
    commands = ["-m", "venv", str(VENV)], ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(ROOT / "clients" / "python")]
    for program, command in zip((sys.executable, RUN["python"][0]), commands):
        if subprocess.run([program, *command], check=False).returncode:
            RUN["python"] = ["python-with-the-client"]
            return


def main():
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "clients" / "README.md"]
    if names := sys.argv[1:]:
        documents = [each for each in documents if str(each.relative_to(ROOT)) in names]
    if not documents:
        sys.exit("no such document")
    if any(block.language in ("js", "python") for each in documents for block in blocks(each)):
        install_clients()
    failed = False
    for document in documents:
        began = time.monotonic()
        ways, failures = test(document)
        dealt = ", ".join(f"{count} {way}" for way, count in sorted(ways.items())) or "none"
        print(f"{document.relative_to(ROOT)}: blocks: {dealt}; {time.monotonic() - began:.1f} s", flush=True)
        if ways["skipped"]:
            print(f"SKIPPED: {ways['skipped']} blocks of {document.relative_to(ROOT)}: node or a client is missing (`just clients`)", flush=True)
        for failure in failures:
            print(f"FAILED {failure}", flush=True)
        failed |= bool(failures)
    sys.exit(failed)


if __name__ == "__main__":
    main()
