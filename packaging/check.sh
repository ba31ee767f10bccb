#!/usr/bin/env bash
# Checks what this folder has: the systemd unit, the proxies, the Grafana boards, and a static binary if one is given.
#
#   packaging/check.sh PROGRAM [STATIC-BINARY]
#
# Installs what it needs from Debian's packages if it is root, and says SKIPPED for what could not be installed.
set -euo pipefail
program="$(realpath "$1")"
static="${2:+$(realpath "$2")}"
cd "$(dirname "$0")"
# systemd's score, from 0 (nothing is exposed) to 10.
max_exposure=20 # tenths
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

# Installs a package with this command, or says that it is skipped.
has() {
  local command="$1" package="$2"
  command -v "$command" >/dev/null && return
  if [ "$(id -u)" = 0 ]; then
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$package"; } >/dev/null 2>&1 || true
  fi
  command -v "$command" >/dev/null && return
  printf 'SKIPPED: %s could not be installed\n' "$package"
  return 1
}

printf -- '- systemd unit\n'
if has systemd-analyze systemd; then
  systemd-analyze security --offline=true --threshold="$max_exposure" headcount.service | tail -n 1
  # The unit as it is, but for the program's path.
  sed "s|/usr/local/bin/headcount|$program|" headcount.service >"$scratch/headcount.service"
  warnings="$(systemd-analyze verify --man=no "$scratch/headcount.service" 2>&1 | grep -F headcount.service || true)"
  [ -z "$warnings" ] || { printf '%s\n' "$warnings" >&2; exit 1; }
fi

printf -- '- nginx\n'
if has nginx nginx-light && has openssl openssl; then
  openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=stats.example.com \
    -keyout "$scratch/privkey.pem" -out "$scratch/fullchain.pem" 2>/dev/null
  sed "s|/etc/ssl/headcount/|$scratch/|" nginx.conf >"$scratch/stats.conf"
  cat >"$scratch/nginx.conf" <<END
pid $scratch/nginx.pid;
error_log stderr;
events {}
http {
    access_log off;
    include $scratch/stats.conf;
    server {
        listen 127.0.0.1:8079;
        server_name www.example.com;
        include $PWD/nginx-first-party.conf;
    }
}
END
  nginx -t -q -c "$scratch/nginx.conf"
fi

printf -- '- Caddy\n'
if has caddy caddy; then
  caddy validate --adapter caddyfile --config Caddyfile >"$scratch/caddy.log" 2>&1 || { cat "$scratch/caddy.log" >&2; exit 1; }
  caddy fmt --diff Caddyfile >"$scratch/caddy.log" || { cat "$scratch/caddy.log" >&2; exit 1; }
fi

printf -- '- completions and manual pages\n'
"$program" completions bash | bash -n
"$program" man "$scratch/man1"
[ "$(find "$scratch/man1" -name 'headcount*.1' | wc -l)" -gt 50 ]

printf -- '- Grafana boards\n'
python3 grafana/check.py "$program" >"$scratch/grafana.log" 2>"$scratch/demo.log" || { cat "$scratch/grafana.log" "$scratch/demo.log" >&2; exit 1; }
grep -c ': ' "$scratch/grafana.log" | sed 's/$/ queries/'
grep SKIPPED "$scratch/grafana.log" || true

printf -- '- static binary\n'
if [ -n "$static" ]; then
  bash chroot.sh "$static"
else
  printf 'SKIPPED: no static binary is given; `just static` builds one\n'
fi
