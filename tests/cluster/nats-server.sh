#!/bin/sh
# Unpacks the broker of a Debian release into a directory, and prints the path of its program.
#
# usage: nats-server.sh DIRECTORY [RELEASE]
#
# Debian bookworm's own package (2.9.10) is too old for a cluster. The package of trixie (2.10.27) or sid needs no other one, and is not installed:
# the lists of packages are fetched into the directory, and checked by apt, beside those of the system.
set -eu
directory=${1:?usage: nats-server.sh DIRECTORY [RELEASE]}
release=${2:-trixie}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)/$release
program=$directory/usr/sbin/nats-server
if [ ! -x "$program" ]; then
    mkdir -p "$directory/apt/lists/partial" "$directory/apt/archives/partial" "$directory/apt/parts"
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$keyring] http://deb.debian.org/debian $release main" > "$directory/apt/sources.list"
    apt() {
        apt-get -qq -o Dir::Etc::SourceList="$directory/apt/sources.list" -o Dir::Etc::SourceParts="$directory/apt/parts" \
            -o Dir::State::Lists="$directory/apt/lists" -o Dir::Cache="$directory/apt" -o APT::Sandbox::User=root \
            -o Acquire::Languages=none "$@"
    }
    apt update >&2
    (cd "$directory/apt" && apt download nats-server >&2)
    dpkg -x "$directory"/apt/nats-server_*.deb "$directory"
    rm -r "$directory/apt"
fi
"$program" --version >&2
echo "$program"
