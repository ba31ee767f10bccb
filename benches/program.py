"""A server on loopback, and `headcount-load` against it, for the benchmarks."""
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

BIN = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[1] / "target")) / "release"


def require(binaries, *names):
    """Ends the program if binaries are missing, with the command that builds them."""
    missing = [name for name in names if not (binaries / name).exists()]
    if missing:
        raise SystemExit(f"{', '.join(missing)}: not in {binaries}; run `cargo build --release -p headcount -p headcount-bench -p headcount-load`")


def load(binaries, *arguments):
    """Runs `headcount-load`. Returns its report, and whether it ended well: the server counted what it acknowledged."""
    run = subprocess.run([binaries / "headcount-load", "--json", *map(str, arguments)], capture_output=True, text=True)
    if not run.stdout:
        raise SystemExit(f"headcount-load {' '.join(map(str, arguments))} failed: {run.stderr}")
    return json.loads(run.stdout), run.returncode == 0


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Reference:
    """The bare handler: it reads the body of a request, and answers 202 without one."""

    def __init__(self, binaries):
        port = free_port()
        self.process = subprocess.Popen([binaries / "reference", str(port), "1"])
        self.url = f"http://127.0.0.1:{port}/none"
        time.sleep(1)

    def close(self):
        self.process.terminate()
        self.process.wait()


class Program:
    """A server with a data directory of its own."""

    def __init__(self, binaries, directory=None, settings=()):
        self.binaries = binaries
        self.directory = Path(tempfile.mkdtemp(prefix="headcount-bench-", dir=directory))
        init = [binaries / "headcount", "init", "--json", "--data-dir", self.directory / "data"]
        self.keys = json.loads(subprocess.run(init, capture_output=True, text=True, check=True).stdout)
        serve = [binaries / "headcount", "serve", "--data-dir", self.directory / "data", "--listen", "127.0.0.1:0", *settings]
        self.process = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            line = next((line for line in self.process.stdout if "listening on" in line), None)
            if line is None:
                raise SystemExit("the server did not start")
            self.url = line.split()[-1]
        except BaseException:
            self.close()
            raise

    def load(self, *arguments):
        """Sends load to it with its process watched."""
        return load(self.binaries, "--url", self.url, "--pid", self.process.pid, *arguments)

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
