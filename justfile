# Tasks for developers. `just` lists them.

default:
    @just --list

# Checks that every commit must pass: format, lints, tests.
check:
    cargo fmt --all --check
    rustfmt --check --edition 2024 tests/model/src/answers/rollups/*.rs
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test --workspace

# Count the production lines of each crate.
lines:
    cargo test --quiet -p headcount-tidy --test habits production_lines_stay -- --nocapture

# Build from nothing, as a newcomer does, and print how long each build took, and how large the release is. Some 20 minutes.
build-time:
    #!/usr/bin/env bash
    set -euo pipefail
    target="$(mktemp -d)"
    trap 'rm -rf "$target"' EXIT
    export CARGO_TARGET_DIR="$target" CARGO_INCREMENTAL=0
    for build in "run -- --version" "build --release"; do
        began=$SECONDS
        cargo --quiet $build
        echo "cargo $build: $((SECONDS - began)) s"
    done
    ls -l --block-size=M "$target/release/headcount"

# Run the server with sample events.
demo:
    cargo run -- demo

# Run the CI script.
ci:
    bash .ci/run

# Build the tracker (requires Node 20).
tracker:
    cd tracker && npm ci --ignore-scripts && npm run build

# Build the page (requires Node 20).
page:
    cd web && npm ci --ignore-scripts && npm run build

# Test the tracker and the page in a browser (requires Node 20 and chromium).
browser:
    cargo build --bin headcount
    cd tests/browser && npm ci --ignore-scripts && npm test

# Test the published SDKs of Segment against the server (requires Node 20, chromium and pip).
segment: browser
    cd tests/segment && npm ci --ignore-scripts && npm test

# Check the systemd unit, the proxies and the Grafana boards.
packaging:
    cargo build --bin headcount
    bash packaging/check.sh target/debug/headcount

# Check the files of deploy/.
deploy:
    bash deploy/check.sh "$(sh tests/cluster/nats-server.sh target/nats-server)"

# Build the static binary, as the Dockerfile does, and serve with it in an empty root directory.
static:
    #!/usr/bin/env bash
    set -euo pipefail
    target="$(rustc -vV | sed -n 's/^host: //p')"
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --locked --profile dist --features cluster --bin headcount --target "$target"
    bash packaging/chroot.sh "target/$target/dist/headcount"

# Compare the domain with the naive model on 5,000 random histories, and explanations of the engine on fewer.
histories trials="5000" explained="1000":
    HEADCOUNT_TRIALS={{trials}} cargo test --release -p headcount-domain --test against_model -- --nocapture
    HEADCOUNT_TRIALS={{explained}} cargo test --release -p headcount-actors --test explain histories -- --nocapture

# Have the intake take bodies that are wrong in every way: none panics, is refused but for four reasons, or is another event than its repaired self.
fuzz bodies="1000000" seed="0":
    HEADCOUNT_BODIES={{bodies}} HEADCOUNT_SEED={{seed}} cargo test --release -p headcount-domain --test leniency -- --nocapture

# Compare when alerts change with a naive model, in random histories: about half an hour.
alerts trials="1000":
    HEADCOUNT_ALERT_TRIALS={{trials}} cargo test -p headcount-pushed --lib -- alerts_change_as

# Compare the server over HTTP with the naive model on random histories, with floors, shared devices, erasures, restarts, kills, and clocks that jump; also exports and imports.
histories-http trials="300":
    HEADCOUNT_TRIALS={{trials}} HEADCOUNT_EXPLAIN_TRIALS={{trials}} HEADCOUNT_SCAN_TRIALS={{trials}} HEADCOUNT_CLOCK_TRIALS={{trials}} HEADCOUNT_IMPORT_TRIALS={{trials}} cargo test --release --test it -- histories scans --nocapture

# Random histories with erasures, and every operation of an erasure failing once.
erasures histories="200":
    HEADCOUNT_ERASURES={{histories}} cargo test --release -p headcount-actors --test erasure -- --nocapture

# Compare the server over HTTP with the naive model on random histories in which people are erased.
erased-histories trials="1000":
    HEADCOUNT_TRIALS={{trials}} cargo test --release --test it erased_histories -- --nocapture

# Kill imports at 200 random moments, half of them into a data directory and half through a server: about a quarter of an hour.
killed-imports kills="100":
    HEADCOUNT_KILLS={{kills}} cargo test --test it killed_imports -- --nocapture

# Plant bugs, one at a time; the tests must catch each.
planted:
    python3 tests/planted/run.py

# Test the log of a cluster with the brokers of a Debian release: trixie (2.10.27), or sid.
cluster release="trixie":
    HEADCOUNT_REQUIRE_CLUSTER=1 HEADCOUNT_NATS_SERVER="$(sh tests/cluster/nats-server.sh target/nats-server {{release}})" cargo test -p headcount-cluster
    HEADCOUNT_REQUIRE_CLUSTER=1 HEADCOUNT_NATS_SERVER="$(sh tests/cluster/nats-server.sh target/nats-server {{release}})" cargo test -p headcount --test it -- cluster two_versions

# Compare three nodes with the naive model on random histories, while nodes are killed, stopped and halted, also of two versions, and with files and erasures: an hour or more.
cluster-histories trials="330" release="trixie":
    HEADCOUNT_TRIALS={{trials}} HEADCOUNT_REQUIRE_CLUSTER=1 HEADCOUNT_NATS_SERVER="$(sh tests/cluster/nats-server.sh target/nats-server {{release}})" cargo test -p headcount --test it -- cluster_histories cluster_erased_histories --nocapture

# Kill the server under load.
crash-kill cycles="50": build-crash
    target/release/headcount-crash kill --cycles {{cycles}}

# Simulate power cuts on a loop device.
crash-power cycles="20": build-crash
    target/release/headcount-crash power --cycles {{cycles}}

# Damage stores and logs.
crash-damage: build-crash
    target/release/headcount-crash damage

# Exceed the admission limit tenfold; fill the disk.
crash-overload: build-crash
    target/release/headcount-crash overload
    target/release/headcount-crash disk-full

# Fail every file operation with ENOSPC and EIO, one at a time: about an hour.
crash-faults:
    cargo build --release -p headcount-crash
    target/release/headcount-crash faults --all

# Verify that the crash harness detects premature acknowledgements.
crash-prove:
    cargo build --release -p headcount-crash
    target/release/headcount-crash prove

# Kill, stop and cut off the nodes and brokers of a cluster: about three hours.
crash-cluster cycles="20" release="trixie": build-crash
    #!/usr/bin/env bash
    set -euo pipefail
    export HEADCOUNT_REQUIRE_CLUSTER=1
    nats="$(sh tests/cluster/nats-server.sh target/nats-server {{release}})"
    # Each on a cluster of its own, whose histories stay short.
    for fault in owner restart leader follower freeze brokers pause rolling revoke external-ids etag full slow-disk bucket cut cut-out cut-in; do
        target/release/headcount-crash cluster --nats "$nats" --faults "$fault" --cycles {{cycles}}
    done
    target/release/headcount-crash cluster --nats "$nats" --faults long-bucket --cycles 1

# Verify that the crash tests of a cluster detect nodes that are wrong.
crash-cluster-prove release="trixie":
    #!/usr/bin/env bash
    set -euo pipefail
    nats="$(sh tests/cluster/nats-server.sh target/nats-server {{release}})"
    cargo build --release -p headcount-crash
    target/release/headcount-crash prove --nats "$nats"
    # Two mistakes that no campaign makes matter.
    HEADCOUNT_NATS_SERVER="$nats" python3 tests/planted/run.py "a former owner publishes" "a message may be anywhere"

build-crash:
    cargo build --release -p headcount -p headcount-crash --features headcount/cluster

# Test the OpenAPI document against the running server.
schemathesis:
    bash tests/schemathesis/run.sh

# Run the microbenchmarks; see benches/README.md.
bench:
    cargo bench -p headcount-bench

# Run every benchmark of benches/README.md, which takes hours; `just bench-all --small` only shows that all of them work.
bench-all *arguments:
    python3 benches/all.py {{arguments}}

# Compare headcount with DuckDB, SQLite and the bare handler on the same work (requires numpy, pyarrow, duckdb).
bench-peers:
    cargo build --release -p headcount -p headcount-bench -p headcount-load
    python3 benches/peers.py

# Measure many projects, a hot one, idle connections, readers of live streams, and dashboards that poll.
bench-crowds:
    cargo build --release -p headcount -p headcount-load
    python3 benches/crowds.py

# Compare instructions and allocations of the hot paths with those in benches/guard.txt (requires valgrind).
guard:
    python3 benches/guard_tests.py
    python3 benches/guard.py

# Accept what the hot paths cost now.
guard-accept:
    python3 benches/guard.py --accept

# Benchmark ingestion over HTTP.
bench-http:
    cargo build --release -p headcount -p headcount-bench -p headcount-load
    python3 benches/http.py

# Benchmark query latency against DuckDB, after comparing the answers (requires numpy, pyarrow, duckdb).
bench-latency:
    cargo build --release -p headcount -p headcount-bench -p headcount-load
    python3 benches/latency.py

# Measure memory use with more identities than fit into the memory target.
bench-memory:
    cargo build --release -p headcount
    python3 benches/memory.py
    python3 benches/memory.py --identities 300000 --shape companies
    python3 benches/person.py

# Measure the cost of attacks with a public key: memory, work per event, latency of another organization.
bench-attack:
    cargo build --release -p headcount
    python3 benches/attack.py

# Compare the SQL of bench-latency with the naive model (requires numpy, pyarrow, duckdb).
bench-latency-naive:
    cargo build --release -p headcount-model --example answers
    python3 benches/latency.py --naive

# Check licenses and advisories (requires cargo-deny).
deny:
    cargo deny check

# Update the lists of crawlers and browsers.
user-agents:
    python3 domain/src/agent/data/update.py

# Update the list of domains of free mail.
free-mail:
    python3 domain/src/company/data/update.py

# Generate the clients for TypeScript and Python from the OpenAPI document (requires Node 20 and pip).
clients:
    cargo build --bin headcount
    python3 clients/generate.py

# Generate the clients and test both.
clients-test: clients
    node --test clients/test/*.test.js

# Take the picture of README.md (requires Node 20 and chromium).
screenshot:
    cargo build --bin headcount
    cd tests/browser && npm ci --ignore-scripts && node screenshot.mjs

# Run the commands in the documents (requires Node 20 and pip).
docs *names: clients
    python3 tests/docs/run.py {{names}}
