#!/usr/bin/env bash
# Runs a static binary as the image of the Dockerfile does: in a root directory that has nothing but the binary, /data and /tmp, without
# privileges and with the image's environment. Takes root, for chroot.
#
#   packaging/chroot.sh target/x86_64-unknown-linux-gnu/dist/headcount
set -euo pipefail
binary="$1"
here="$(cd "$(dirname "$0")" && pwd)"
patience_s=30

if [ "$(id -u)" != 0 ]; then
  printf 'SKIPPED: only root can chroot, so that nobody runs the binary in an empty directory\n'
  exit 0
fi
if readelf --program-headers "$binary" | grep -q INTERP; then
  printf '%s needs a dynamic linker\n' "$binary" >&2
  exit 1
fi

root="$(mktemp -d)"
server=
finish() {
  if [ -n "$server" ]; then kill -KILL "$server" 2>/dev/null || true; fi
  rm -rf "$root"
}
trap finish EXIT
chmod 0755 "$root"
install -m 0755 "$binary" "$root/headcount"
install -d -m 0700 -o 65532 -g 65532 "$root/data"
install -d -m 1777 "$root/tmp"
# What every container runtime provides (the OCI runtime specification, "Default Devices"). The static glibc has no other source of random numbers.
install -d "$root/dev"
mknod -m 0666 "$root/dev/random" c 1 8
mknod -m 0666 "$root/dev/urandom" c 1 9

# The image's environment, on a free port of the loopback address instead of all addresses.
read -r -a image < <(sed -n 's/^ENV //p' "$here/Dockerfile")
port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
# Replaces the shell that runs it: so the server is a process of this script, and gets its signals.
inside() {
  exec env -i "${image[@]}" HEADCOUNT_LISTEN="127.0.0.1:$port" HEADCOUNT_MIN_FREE_BYTES=0 \
    "$(command -v chroot)" --userspec=65532:65532 "$root" /headcount "$@"
}

inside serve >"$root/stdout" 2>"$root/stderr" &
server=$!
until (inside health) >/dev/null 2>&1; do
  if ! kill -0 "$server" 2>/dev/null || [ "$SECONDS" -gt "$patience_s" ]; then
    cat "$root/stdout" "$root/stderr" >&2
    exit 1
  fi
  sleep 0.1
done

value() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$root/data/credentials.json" "$1"; }
key="$(value public_key)" token="$(value api_token)" project="$(value project_id)"
url="http://127.0.0.1:$port"
curl --fail --silent --show-error "$url/i?pk=$key" -H 'content-type: text/plain' --data '{"name": "pageview", "user_id": "ada"}' >/dev/null
users="$(curl --fail --silent --show-error "$url/projects/$project/analytics/count-unique-users-per-day" \
  -H "authorization: Bearer $token" -H 'content-type: application/json' --data '{}')"
grep -q '"total_unique_users":1[,}]' <<<"$users" || { printf 'unexpected answer: %s\n' "$users" >&2; exit 1; }
curl --fail --silent --show-error "$url/" --output /dev/null

kill -TERM "$server"
wait "$server"
server=
if (inside health) >/dev/null 2>&1; then
  printf 'health says that a stopped server is ready\n' >&2
  exit 1
fi
printf 'served in an empty root: %s bytes\n' "$(stat --format=%s "$binary")"
