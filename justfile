# Everything a developer does. `just` lists it.

default:
    @just --list

# Format, lints, tests: what a commit must pass.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test --workspace

# The main job, filled with sample events.
demo:
    cargo run --release -- demo

# What CI runs.
ci:
    bash .ci/run

# 5,000 random histories through the domain, against the naive model.
histories trials="5000":
    HEADCOUNT_TRIALS={{trials}} cargo test --release -p headcount-domain --test against_model -- --nocapture

# The same through HTTP, with restarts.
histories-http trials="300":
    HEADCOUNT_TRIALS={{trials}} cargo test --release --test it histories -- --nocapture

# Plants bugs in the domain, one at a time; each must be caught.
planted:
    python3 tests/planted/run.py

# kill -9 under load.
crash-kill cycles="50": build-crash
    target/release/headcount-crash kill --cycles {{cycles}}

# Power cuts on a loop device.
crash-power cycles="20": build-crash
    target/release/headcount-crash power --cycles {{cycles}}

# Damaged stores and logs.
crash-damage: build-crash
    target/release/headcount-crash damage

# Ten times the admission limit; a full disk.
crash-overload: build-crash
    target/release/headcount-crash overload
    target/release/headcount-crash disk-full

# ENOSPC and EIO at every operation on files, one at a time: about an hour.
crash-faults:
    cargo build --release -p headcount-crash
    target/release/headcount-crash faults --all

# Shows that the crash harness notices answers that come too early.
crash-prove:
    cargo build --release -p headcount-crash
    target/release/headcount-crash prove

build-crash:
    cargo build --release -p headcount -p headcount-crash

# The document against the running server.
schemathesis:
    bash tests/schemathesis/run.sh

# Measurements; see benches/README.md.
bench:
    cargo bench -p headcount-bench

bench-http:
    cargo build --release -p headcount -p headcount-bench
    python3 benches/http.py

# Latencies beside DuckDB, after comparing the answers (needs numpy, pyarrow, duckdb).
bench-latency:
    cargo build --release -p headcount -p headcount-bench
    python3 benches/latency.py

# What the process takes with more identities than fit into its memory.
bench-memory:
    cargo build --release -p headcount
    python3 benches/memory.py
    python3 benches/memory.py --identities 300000 --shape companies

# What an outsider can cost: memory, work per event, another organization's answers.
bench-attack:
    cargo build --release -p headcount
    python3 benches/attack.py

# The SQL of that, against the naive model.
bench-latency-naive:
    cargo build --release -p headcount-model --example answers
    python3 benches/latency.py --naive

# Licenses and advisories (needs cargo-deny).
deny:
    cargo deny check

# The lists of crawlers and of browsers, made anew.
user-agents:
    python3 domain/src/agent/data/update.py
