#!/usr/bin/env bash
# Asks a server everything that its own document says can be asked, and more: random and boundary requests, right and
# wrong ones. It finds answers that the document doesn't have, of other types or shapes, every 5xx, and operations that
# never succeed. It starts the server, and stops it, by itself.
#
#   HEADCOUNT_BIN                  the program (built if not given)
#   SCHEMATHESIS_MAX_EXAMPLES      requests for each operation and phase (40)
#   SCHEMATHESIS_SECONDS           when to give up (1200)
#   SCHEMATHESIS_VENV              where schemathesis is installed (a directory under target/)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
version=4.32.5
examples=${SCHEMATHESIS_MAX_EXAMPLES:-40}
seconds=${SCHEMATHESIS_SECONDS:-1200}
venv=${SCHEMATHESIS_VENV:-${CARGO_TARGET_DIR:-$root/target}/schemathesis-$version}

if [ -z "${HEADCOUNT_BIN:-}" ]; then
    (cd "$root" && cargo build --quiet --bin headcount)
    HEADCOUNT_BIN=${CARGO_TARGET_DIR:-$root/target}/debug/headcount
fi
if [ ! -x "$venv/bin/schemathesis" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version"
fi

work=$(mktemp -d)
server=
stop() {
    if [ -n "$server" ]; then
        kill -TERM "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap stop EXIT

# A fuzzed setting must not be one of whoever runs this.
for name in $(compgen -e HEADCOUNT_); do
    [ "$name" = HEADCOUNT_BIN ] || unset "$name"
done
keys=$("$HEADCOUNT_BIN" init --data-dir "$work/data" --json)
site=$(python3 -c 'import socket; free = socket.socket(); free.bind(("127.0.0.1", 0)); print(free.getsockname()[1])')
"$HEADCOUNT_BIN" serve --data-dir "$work/data" --listen 127.0.0.1:0 --min-free-bytes 1MiB --outbound-allow "127.0.0.1:$site" >"$work/out" 2>"$work/log" &
server=$!
for _ in $(seq 300); do
    url=$(sed -n 's/^listening on //p' "$work/out")
    [ -n "$url" ] && break
    kill -0 "$server" 2>/dev/null || { cat "$work/log"; exit 1; }
    sleep 0.1
done
[ -n "$url" ] || { echo "the server did not start"; cat "$work/log"; exit 1; }

checks=not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance
checks=$checks,response_schema_conformance,allow_header_conformance
failed=0
cd "$work"
HEADCOUNT_URL=$url HEADCOUNT_KEYS=$keys HEADCOUNT_OPERATOR=$(cat "$work/data/operator-token") HEADCOUNT_REPORT=$work/report.json \
HEADCOUNT_SITE_PORT=$site \
PYTHONPATH=$here SCHEMATHESIS_HOOKS=hooks \
    timeout --signal=INT --kill-after=30 "$seconds" "$venv/bin/schemathesis" run "$url/openapi.json" \
    --checks "$checks" --max-examples "$examples" --seed 1 --generation-database none --no-shrink \
    --generation-with-security-parameters false --request-timeout 15 --continue-on-failure --warnings off || failed=$?

python3 "$here/reached.py" "$work/report.json" <(curl --silent --fail "$url/openapi.json") || failed=1
kill -0 "$server" || { echo "the server ended"; failed=1; }
# What is no HTTP never reaches the program: its framework says so in a log line of its own.
if grep -E 'ERROR|panicked' "$work/log" | grep -v 'actix_http::h1::dispatcher: stream error'; then
    echo "the server logged errors"
    failed=1
fi
exit "$failed"
