#!/usr/bin/env python3
"""Plants bugs in a copy of the domain, one at a time, and shows that the naive model catches each.

usage: run.py [NAME ...]      all bugs, or those whose names contain one of the words
       run.py --check         only whether each has its place in the source, and names nothing that its file does not
The bugs are in bugs.py, and how their places are found in source.py. A bug is caught when the comparison of random histories with
the model fails, or that of the named ones; it survives when both pass. The tree itself is never touched: the domain is copied to
target/planted, and built there, or in CARGO_TARGET_DIR.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import source
from bugs import BUGS

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "planted"
# What the comparison is built from.
PARTS = ["domain", "storage", "tests/model", "tests/histories"]
TRIALS = os.environ.get("HEADCOUNT_TRIALS", "250")
# Names that need no import.
PRELUDE = {"Err", "None", "Ok", "Option", "Self", "Some", "String", "Vec", "crate", "self", "std", "super", "i64", "u32", "u64"}


def make_copy():
    """The domain and what its comparison needs, in a workspace of their own."""
    tree = WORK / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for part in PARTS:
        # New times: cargo would take the copy for older than the build of the last planted bug.
        shutil.copytree(ROOT / part, tree / part, copy_function=shutil.copyfile)
    root = (ROOT / "Cargo.toml").read_text()
    # Bugs leave things unused.
    manifest = root[: root.index("[workspace.lints.rust]")] + '[workspace.lints.rust]\nwarnings = "allow"\n\n'
    manifest = re.sub(r"members = \[.*?\]", 'members = ' + json.dumps(PARTS), manifest, count=1, flags=re.S)
    # Everything is built as in the whole workspace, so that it can be built once.
    manifest += root[root.index("[profile.dev]") : root.index("[profile.release]")]
    (tree / "Cargo.toml").write_text(manifest)
    shutil.copy(ROOT / "Cargo.lock", tree / "Cargo.lock")
    return tree


def trial(tree, tests=("every_answer_equals_the_model",)):
    """Runs the comparison. Returns (passed, last lines)."""
    command = ["cargo", "test", "--quiet", "-p", "headcount-domain", "--test", "against_model", "--", *tests]
    target = os.environ.get("CARGO_TARGET_DIR", str(WORK / "build"))
    environment = dict(os.environ, CARGO_TARGET_DIR=target, HEADCOUNT_TRIALS=TRIALS, HEADCOUNT_AS_FOUND="1", RUST_BACKTRACE="0")
    try:
        run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        return False, "it hangs"
    output = run.stdout + run.stderr
    if "error: could not compile" in output:
        return None, output[-3000:]
    return run.returncode == 0, output


def planted(tree, changes):
    """The files that a bug changes, each with its former text and the one with the bug. Fails if something is not found once."""
    sources = {path: path.read_text() for path in (tree / "domain" / "src").rglob("*.rs")}
    wrong = {}
    for there, bug in zip(changes[::2], changes[1::2]):
        path, start, end = source.find(there, sources | wrong)
        text = wrong.get(path, sources[path])
        wrong[path] = text[:start] + bug + text[end:]
    return [(path, sources[path], text) for path, text in wrong.items()]


def plant(tree, name, changes):
    """Plants one bug, runs the comparison, and takes the bug out again. Returns whether it was caught."""
    try:
        files = planted(tree, changes)
    except source.NotFound as error:
        print(f"STALE     {name}: {error}", flush=True)
        return False
    for path, _, wrong in files:
        path.write_text(wrong)
    began = time.monotonic()
    if name.startswith("a version"):
        passed, output = trial(tree, ["changes_without_its_version"])
    else:
        passed, output = trial(tree)
        if passed:
            # Some coincidences are rare in random histories, so that they are written by hand.
            passed, output = trial(tree, ["what_once_was_hard_stays_right"])
    for path, right, _ in files:
        path.write_text(right)
    seconds = time.monotonic() - began
    if passed is None:
        print(f"BROKEN    {name}: does not compile\n{output}", flush=True)
    elif passed:
        print(f"SURVIVED  {name} ({seconds:.0f} s)", flush=True)
    else:
        how = re.search(r"seed \d+", output) or re.search(r"panicked at .*\n.*", output)
        how = " ".join(how.group().split()) if how else output[-100:].strip()
        print(f"caught    {name} ({how}, {seconds:.0f} s)", flush=True)
    return passed is False


def names(text):
    """The types, constants and modules that source text names without a path before them."""
    return set(re.findall(r"(?<!::)\b(?:[A-Z]\w*|[a-z]\w*(?=::\w))", re.sub(r"//.*", "", text)))


def check():
    """Whether every bug still has its place in the tree as it is, and names only what its file does."""
    stale = 0
    for name, *changes in BUGS:
        try:
            unknown = {unknown for _, right, wrong in planted(ROOT, changes) for unknown in names(wrong) - names(right) - PRELUDE}
            if unknown:
                raise source.NotFound(f"its file does not name {', '.join(sorted(unknown))}")
        except source.NotFound as error:
            print(f"STALE     {name}: {error}")
            stale += 1
    print(f"{len(BUGS) - stale} bugs have their place, {stale} have none")
    return 1 if stale else 0


def main():
    words = sys.argv[1:]
    if words == ["--check"]:
        return check()
    bugs = [bug for bug in BUGS if not words or any(word in bug[0] for word in words)]
    tree = make_copy()
    passed, output = trial(tree)
    if not passed:
        print("the domain as it is does not pass:", output[-3000:])
        return 1
    failed = [name for name, *changes in bugs if not plant(tree, name, changes)]
    print(f"{len(bugs) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
