#!/usr/bin/env bash
# Checks what this folder has.
#
#   deploy/check.sh [NATS-SERVER]
#
# Says SKIPPED for what can't be checked on this machine.
set -euo pipefail
server="${1:-$(command -v nats-server || true)}"
cd "$(dirname "$0")"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
# systemd's score, from 0 (nothing is exposed) to 10.
max_exposure=20 # tenths

printf -- '- configuration of the brokers\n'
if [ -n "$server" ]; then
  set -a
  # shellcheck disable=SC1091
  . <(sed "s/=\(.*\)/='\1'/" systemd/broker.env)
  BROKER_STORE="$scratch/store"
  set +a
  "$server" -t -c nats-server.conf
else
  printf 'SKIPPED: no nats-server\n'
fi

printf -- '- compose and Kubernetes\n'
if python3 -c 'import yaml' 2>/dev/null; then
  python3 check.py
else
  printf 'SKIPPED: no yaml for Python\n'
fi

printf -- '- systemd units\n'
if command -v systemd-analyze >/dev/null; then
  systemd-analyze security --offline=true --threshold="$max_exposure" systemd/headcount-broker.service | tail -n 1
  mkdir -p "$scratch/headcount.service.d"
  cp systemd/headcount.service.d/cluster.conf "$scratch/headcount.service.d/"
  # The units as they are, but for programs and files that are not here.
  sed 's|/usr/local/bin/headcount|/bin/true|' ../packaging/headcount.service >"$scratch/headcount.service"
  sed -e 's|/usr/sbin/nats-server|/bin/true|' -e '/^EnvironmentFile=/d' systemd/headcount-broker.service >"$scratch/headcount-broker.service"
  warnings="$(systemd-analyze verify --man=no "$scratch"/*.service 2>&1 | grep -F "$scratch" || true)"
  [ -z "$warnings" ] || { printf '%s\n' "$warnings" >&2; exit 1; }
else
  printf 'SKIPPED: no systemd-analyze\n'
fi
