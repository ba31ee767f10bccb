#!/bin/sh
# Unpacks the broker of a Debian release into a directory, and prints the path of its program.
#
# usage: nats-server.sh DIRECTORY [RELEASE]
#
# Debian bookworm's own package (2.9.10) is too old for a cluster. The package of trixie (2.10.27) or sid needs no other one, and is not installed:
# the lists of packages are fetched into the directory, and checked by apt, beside those of the system. They come from where the system gets
# Debian's packages.
set -eu
directory=${1:?usage: nats-server.sh DIRECTORY [RELEASE]}
release=${2:-trixie}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)/$release
program=$directory/usr/sbin/nats-server

# apt-get with lists and files of packages of its own, and the sources of this machine.
own_apt() {
    apt-get -qq -o Dir::State::Lists="$directory/apt/lists" -o Dir::Cache="$directory/apt" -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}

# The address from which apt gets Debian's packages, if it has their lists. Security updates, which come from elsewhere, have another label.
debian_archive() {
    "$@" indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main' | sed '/^cdrom:/d; q'
}

if [ ! -x "$program" ]; then
    mkdir -p "$directory/apt/lists/partial" "$directory/apt/archives/partial" "$directory/apt/parts"
    archive=$(debian_archive apt-get)
    if [ -z "$archive" ]; then
        # The lists of this machine were never fetched, or are removed. Other sources than Debian's may fail.
        own_apt update >&2 || true
        archive=$(debian_archive own_apt)
    fi
    if [ -z "$archive" ]; then
        echo "apt has no source of Debian's packages here: install nats-server, and name it in HEADCOUNT_NATS_SERVER" >&2
        exit 1
    fi
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$keyring] $archive $release main" > "$directory/apt/sources.list"
    debian_apt() {
        own_apt -o Dir::Etc::SourceList="$directory/apt/sources.list" -o Dir::Etc::SourceParts="$directory/apt/parts" "$@"
    }
    debian_apt update >&2
    (cd "$directory/apt" && debian_apt download nats-server >&2)
    dpkg -x "$directory"/apt/nats-server_*.deb "$directory"
    rm -r "$directory/apt"
fi
"$program" --version >&2
echo "$program"
