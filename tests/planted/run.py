#!/usr/bin/env python3
"""Plants bugs in a copy of the sources, one at a time, and shows that each is caught: those of the domain by the naive model, those of the engine by its tests.

usage: run.py [NAME ...]      all bugs, or those whose names contain one of the words; those of the cluster need HEADCOUNT_NATS_SERVER
       run.py --tested NAME ...
                              the same after the tests have passed: they are not run without a bug first, and no crate of ours is optimized, since that takes longer than it saves in a few trials
       run.py --check         only whether each has its place in the source, and names nothing that its file does not
The bugs are in bugs.py, engine_bugs.py, explain_bugs.py, node_bugs.py, cluster_bugs.py, version_bugs.py, paths_bugs.py, funnel_bugs.py and forward_bugs.py, and how their places are found in source.py. A bug of the domain is caught when the comparison of
random histories with the model fails, or that of the named ones, or a test of the domain; one of the engine when a test of webhooks or builds fails, or of explanations, or of nodes that ask each other take partitions over or look after privacy requests; one of the cluster when
one of its tests does, or when random histories through three nodes differ from the model; one of requests that travel when a test with two nodes does. It survives when all pass.
The tree itself is never touched: what is needed is copied to target/planted, and built there, or in CARGO_TARGET_DIR.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import bugs
import cluster_bugs
import engine_bugs
import explain_bugs
import forward_bugs
import funnel_bugs
import node_bugs
import paths_bugs
import source
import version_bugs

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "planted"
# How long the tests of a trial may take, in seconds: those of a cluster take 15 minutes where other work is done beside.
PATIENCE = 2400
TRIALS = os.environ.get("HEADCOUNT_TRIALS", "250")
# Our crates that [profile.dev] optimizes.
OPTIMIZED = ("headcount-domain", "headcount-histories", "headcount-model", "headcount-storage")
# The package in the root, and what its build needs of the root.
PROGRAM = "."
OF_PROGRAM = ("src", "web/dist", "tracker/dist", "tests/it")
# Names that need no import, those of tables of endpoints included.
PRELUDE = {"ProjectOwner", "Reads", "Err", "None", "Ok", "Option", "Self", "Some", "String", "Vec", "crate", "self", "std", "super", "i64", "u32", "u64"}


def run_tests(tree, *arguments, trials=TRIALS):
    """Runs tests. Returns (passed, last lines)."""
    command = ["cargo", "test", "--quiet", *arguments]
    target = os.environ.get("CARGO_TARGET_DIR", str(WORK / "build"))
    environment = dict(os.environ, CARGO_TARGET_DIR=target, HEADCOUNT_TRIALS=trials, HEADCOUNT_AS_FOUND="1", RUST_BACKTRACE="0")
    try:
        run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return False, "it hangs"
    output = run.stdout + run.stderr
    if run.returncode != 0 and "error: test failed" not in output:
        return None, output[-3000:]
    return run.returncode == 0, output


def compare(tree, *tests):
    return run_tests(tree, "-p", "headcount-domain", "--test", "against_model", "--", *tests)


def try_domain(tree, name=""):
    """Compares answers with those of the model, versions with answers, or a state that forgot people with one that never had them."""
    if name.startswith("a version"):
        return compare(tree, "changes_without_its_version")
    if name.startswith("forgetting"):
        return compare(tree, "a_state_that_forgot_people")
    passed, output = compare(tree, "every_answer_equals_the_model")
    if passed and name:
        # Some coincidences are rare in random histories, so that they are written by hand.
        passed, output = compare(tree, "what_once_was_hard_stays_right", "rows_equal_the_model")
    if passed and name:
        # Some need more rows, larger numbers or more time than a history has.
        passed, output = run_tests(tree, "-p", "headcount-domain", "--lib", "--test", "rollups", "--test", "cardinality")
    return passed, output


def try_webhooks(tree, name=""):
    """Runs the tests of webhooks."""
    passed, output = run_tests(tree, "-p", "headcount-webhooks")
    if passed and name:
        passed, output = run_tests(tree, "-p", "headcount-common", "--lib", "--", "local::")
    return passed, output


def try_builds(tree, name=""):
    """Runs the tests of builds of company profiles."""
    return run_tests(tree, "-p", "headcount-profiles", "--test", "builds")


def try_states(tree, name=""):
    """Runs tests of checkpoints, of long erasures and many at once, of raised floors, and of changes that are made already."""
    return run_tests(tree, "-p", "headcount-actors", "--lib", "--test", "erasure", "--test", "archive", "--", "sparse::", "events_are_sealed", "at_once::", "many_wait_together", "a_raised_floor", "a_change_that_is_made", "a_base_that", "in_the_wrong_room", "idle_partitions")


def try_explain(tree, name=""):
    """Compares explanations of random histories with the model, and their pages with one another."""
    if name.startswith("a floor"):
        # Few clocks of histories jump by just the days that matter.
        passed, output = run_tests(tree, "-p", "headcount-actors", "--lib", "--", "clock_guard::")
        if not passed:
            return passed, output
    return run_tests(tree, "-p", "headcount-actors", "--test", "explain", "--", "--skip", "by_sorts_on_disk")


def try_nodes(tree, name=""):
    """Compares the answers of two nodes with those of one, and lists of the bytes between them with what they have to be."""
    passed, output = run_tests(tree, "-p", "headcount-actors", "--test", "nodes")
    if passed and name:
        passed, output = run_tests(tree, "-p", "headcount-actors", "-p", "headcount-common", "--lib", "--", "nodes::", "active_identities")
    return passed, output


def try_handover(tree, name=""):
    """Has engines take partitions over from each other, in one process."""
    passed, output = run_tests(tree, "-p", "headcount-actors", "--test", "handover")
    if passed and name:
        passed, output = run_tests(tree, "-p", "headcount-actors", "-p", "headcount-common", "--lib", "--", "owners::", "secrets::", "verifying::", "intake_counts::")
    return passed, output


def try_cluster(tree, name=""):
    """Runs the tests of the log of a cluster, with real brokers."""
    os.environ["HEADCOUNT_REQUIRE_CLUSTER"] = "1"
    passed, output = run_tests(tree, "-p", "headcount-cluster", "--lib", "--test", "it", "--", "--skip", "killed", "--skip", "follow_one_another")
    if passed:
        passed, output = run_tests(tree, "-p", "headcount-cluster", "--test", "it", "--", "killed", "follow_one_another")
    return passed, output


def try_erasures(tree, name=""):
    """Erases identities on nodes that come and go, with real brokers."""
    os.environ["HEADCOUNT_REQUIRE_CLUSTER"] = "1"
    return run_tests(tree, "-p", "headcount-cluster", "--test", "it", "--", "an_erased_identity")


def try_lost(tree, name=""):
    """Puts the disks of real brokers back while a node runs."""
    os.environ["HEADCOUNT_REQUIRE_CLUSTER"] = "1"
    return run_tests(tree, "-p", "headcount-cluster", "--test", "it", "--", "lost::")


def try_backups(tree, name=""):
    """Sets retentions while a backup is made, and before a project moves back to an older checkpoint, with real brokers."""
    os.environ["HEADCOUNT_REQUIRE_CLUSTER"] = "1"
    return run_tests(tree, "-p", "headcount-cluster", "--test", "it", "--", "no_events_are_removed", "an_older_checkpoint")


def try_moving(tree, name=""):
    """Compares random histories through nodes that come and go with the model."""
    os.environ["HEADCOUNT_REQUIRE_CLUSTER"] = "1"
    return run_tests(tree, "-p", "headcount", "--test", "it", "--", "cluster_histories", trials="12")


def try_versions(tree, name=""):
    """Upgrades a cluster under load, node after node."""
    os.environ["HEADCOUNT_REQUIRE_CLUSTER"] = "1"
    return run_tests(tree, "-p", "headcount", "--test", "it", "--", "two_versions")


def try_privacy(tree, name=""):
    """Runs the tests of privacy requests of nodes, with a real broker."""
    os.environ["HEADCOUNT_REQUIRE_CLUSTER"] = "1"
    return run_tests(tree, "-p", "headcount-cluster", "--test", "it", "--", "privacy")


def try_forward(tree, name=""):
    """Runs the tests of requests that travel, with two nodes, and of their parts."""
    return run_tests(tree, "-p", "headcount", "-p", "headcount-api", "--lib", "--", "http::tests::forwarding", "http::tests::min_position", "forward::", "node_client")


def try_paths(tree, name=""):
    """Compares answers about goals, people, funnels and journeys with the model over HTTP, and runs the tests of definitions."""
    os.environ["HEADCOUNT_SCAN_TRIALS"] = os.environ.get("HEADCOUNT_SCAN_TRIALS", "40")
    if name:
        # Most of them are in the domain, whose tests are built in a tenth of the time.
        passed, output = run_tests(tree, "-p", "headcount-domain", "--lib", "--", "figures::", "filter::")
        if not passed:
            return passed, output
    return run_tests(tree, "-p", "headcount", "--test", "it", "--", "scans_equal_the_model", "sealing_changes_no_answer", "definitions::", "path_sums::")


def parts_of(crate):
    """A crate of the workspace and all that it needs of it, also for its tests, as paths from the root."""
    shared = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["dependencies"]
    parts, left = [], [crate]
    while left:
        part = left.pop()
        if part in parts:
            continue
        parts.append(part)
        manifest = tomllib.loads((ROOT / part / "Cargo.toml").read_text())
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            left += [shared[name]["path"] for name in manifest.get(kind, {}) if "path" in shared.get(name, {})]
    return sorted(parts)


class Suite:
    """Bugs of some crates, the crate whose tests are its trial, and the trial."""

    def __init__(self, crates, bugs, tested, trial):
        self.crates, self.bugs, self.tested, self.trial = crates, bugs, tested, trial

    def sources(self, root):
        return {path: path.read_text() for crate in self.crates for path in (root / crate / "src").rglob("*.rs")}


# The crates that an engine consists of, besides the domain and what keeps files.
ENGINE = ("common", "control", "actors")

SUITES = [
    Suite(("domain",), bugs.BUGS, "domain", try_domain),
    Suite((*ENGINE, "features/webhooks"), engine_bugs.WEBHOOK_BUGS, "features/webhooks", try_webhooks),
    Suite((*ENGINE, "features/profiles"), engine_bugs.BUILD_BUGS, "features/profiles", try_builds),
    Suite(ENGINE, engine_bugs.STATE_BUGS, "actors", try_states),
    Suite(ENGINE, explain_bugs.BUGS, "actors", try_explain),
    Suite(("domain",), explain_bugs.DOMAIN_BUGS, "actors", try_explain),
    Suite((*ENGINE, "domain", "api"), paths_bugs.BUGS, PROGRAM, try_paths),
    Suite((*ENGINE, "domain", "features/questions"), funnel_bugs.BUGS, PROGRAM, try_paths),
    Suite(ENGINE, node_bugs.BUGS, "actors", try_nodes),
    Suite(ENGINE, node_bugs.HANDOVER_BUGS, "actors", try_handover),
    Suite((*ENGINE, "features/privacy"), node_bugs.PRIVACY_BUGS, "cluster", try_privacy),
    Suite(("cluster",), cluster_bugs.BUGS, "cluster", try_cluster),
    Suite(ENGINE, cluster_bugs.ERASURE_BUGS, "cluster", try_erasures),
    Suite(ENGINE, cluster_bugs.LOST_BUGS, "cluster", try_lost),
    Suite(ENGINE, cluster_bugs.BACKUP_BUGS, "cluster", try_backups),
    Suite(ENGINE, node_bugs.MOVING_BUGS, PROGRAM, try_moving),
    Suite(("cluster",), node_bugs.MOVING_NODE_BUGS, PROGRAM, try_moving),
    Suite(("cluster",), version_bugs.BUGS, PROGRAM, try_versions),
    Suite(ENGINE, version_bugs.ENGINE_BUGS, PROGRAM, try_versions),
    Suite(("api", "features/events", "features/organization", PROGRAM), forward_bugs.BUGS, PROGRAM, try_forward),
]


def make_copy(suite, is_tested):
    """The crate and what its trial needs, in a workspace of their own."""
    # The same for all suites: cargo takes the crates of two such workspaces for the same, and looks for changes only where it found the crate first.
    tree = WORK / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    parts = parts_of(suite.tested)
    for part in parts:
        # New times: cargo would take the copy for older than the build of the last planted bug.
        for folder in OF_PROGRAM if part == PROGRAM else (part,):
            shutil.copytree(ROOT / folder, tree / folder, copy_function=shutil.copyfile)
    for path in [path for crate in suite.crates for path in (tree / crate / "tests").rglob("*.rs")]:
        # What a bug prevents is not waited for as long as what a loaded machine delays.
        path.write_text(path.read_text().replace("PATIENCE: Duration = Duration::from_secs(60)", "PATIENCE: Duration = Duration::from_secs(15)"))
    root = (ROOT / "Cargo.toml").read_text()
    # Bugs leave things unused.
    manifest = root[: root.index("[workspace.lints.rust]")] + '[workspace.lints.rust]\nwarnings = "allow"\n\n'
    members = [part for part in parts if part != PROGRAM]
    manifest = re.sub(r"members = \[.*?\]", 'members = ' + json.dumps(members), manifest, count=1, flags=re.S)
    if PROGRAM in parts:
        manifest += root[root.index("\n[package]") : root.index("\n[profile.dev]") + 1]
    # Everything is built as in the whole workspace, so that it can be built once.
    profile = root[root.index("[profile.dev]") : root.index("[profile.release]")]
    if is_tested:
        for crate in OPTIMIZED:
            profile = without_optimization(profile, crate)
    manifest += profile
    (tree / "Cargo.toml").write_text(manifest)
    shutil.copy(ROOT / "Cargo.lock", tree / "Cargo.lock")
    return tree


def without_optimization(profile, crate):
    """The profile, with one crate not optimized. Fails if the profile does not say how much that one is."""
    changed, count = re.subn(rf"(?m)^{crate}\.opt-level = \d$", f"{crate}.opt-level = 0", profile)
    if count != 1:
        raise SystemExit(f"[profile.dev.package] of Cargo.toml has no line of its own for the opt-level of {crate}")
    return changed


def planted(sources, changes):
    """The files that a bug changes, each with its former text and the one with the bug. Fails if something is not found once."""
    wrong = {}
    for there, bug in zip(changes[::2], changes[1::2]):
        path, start, end = source.find(there, sources | wrong)
        text = wrong.get(path, sources[path])
        wrong[path] = text[:start] + bug + text[end:]
    return [(path, sources[path], text) for path, text in wrong.items()]


def plant(suite, tree, name, changes):
    """Plants one bug, runs the comparison, and takes the bug out again. Returns whether it was caught."""
    try:
        files = planted(suite.sources(tree), changes)
    except source.NotFound as error:
        print(f"STALE     {name}: {error}", flush=True)
        return False
    for path, _, wrong in files:
        path.write_text(wrong)
    began = time.monotonic()
    passed, output = suite.trial(tree, name)
    for path, right, _ in files:
        path.write_text(right)
    seconds = time.monotonic() - began
    if passed is None:
        print(f"BROKEN    {name}: no test ran\n{output}", flush=True)
    elif passed:
        print(f"SURVIVED  {name} ({seconds:.0f} s)", flush=True)
    else:
        how = re.search(r"seed \d+", output) or re.search(r"panicked at .*\n.*", output)
        how = " ".join(how.group().split())[:120] if how else output[-100:].strip()
        print(f"caught    {name} ({how}, {seconds:.0f} s)", flush=True)
    return passed is False


def names(text):
    """The types, constants and modules that source text names without a path before them."""
    return set(re.findall(r"(?<!::)\b(?:[A-Z]\w*|[a-z]\w*(?=::\w))", re.sub(r"//.*", "", text)))


def check():
    """Whether every bug still has its place in the tree as it is, and names only what its file does."""
    stale = count = 0
    for suite in SUITES:
        sources = suite.sources(ROOT)
        for name, *changes in suite.bugs:
            count += 1
            try:
                unknown = {unknown for _, right, wrong in planted(sources, changes) for unknown in names(wrong) - names(right) - PRELUDE}
                if unknown:
                    raise source.NotFound(f"its file does not name {', '.join(sorted(unknown))}")
            except source.NotFound as error:
                print(f"STALE     {name}: {error}")
                stale += 1
    print(f"{count - stale} bugs have their place, {stale} have none")
    return 1 if stale else 0


def main():
    is_tested, words = "--tested" in sys.argv, [word for word in sys.argv[1:] if word != "--tested"]
    if words == ["--check"]:
        return check()
    count, failed = 0, []
    for suite in SUITES:
        chosen = [bug for bug in suite.bugs if not words or any(word in bug[0] for word in words)]
        if not chosen:
            continue
        tree = make_copy(suite, is_tested)
        passed, output = (True, "") if is_tested else suite.trial(tree)
        if not passed:
            print(" and ".join(suite.crates), "as they are do not pass:", output[-3000:])
            return 1
        count += len(chosen)
        failed += [name for name, *changes in chosen if not plant(suite, tree, name, changes)]
    print(f"{count - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
