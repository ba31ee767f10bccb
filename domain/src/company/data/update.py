#!/usr/bin/env python3
"""Makes providers.txt and LICENSE beside this script anew from an npm package: `just free-mail`.

The package is free-email-domains (MIT, Kiko Beats), which joins what HubSpot refuses as free mail with lists of throwaway
addresses. Another version: change VERSION, and read the difference before you commit it. Needs Python 3.12 and npm.

own.txt and with_subdomains.txt are edited by hand. This script only says which lines of own.txt the package has by now.
"""

import json
import pathlib
import re
import subprocess
import tarfile
import tempfile

HERE = pathlib.Path(__file__).parent
PACKAGE, VERSION, RELEASED = "free-email-domains", "1.12.6", "2026-09"

# In the package, and yet the domain of those who work there.
COMPANIES = {"test.de"}

DOMAIN = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}")


def fetch(directory):
    """Unpacks the package; returns its directory."""
    command = ["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"]
    subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL)
    [archive] = pathlib.Path(directory).glob("*.tgz")
    with tarfile.open(archive) as tar:
        tar.extractall(directory, filter="data")
    return pathlib.Path(directory) / "package"


def lines(name):
    return [line for line in (HERE / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = fetch(directory)
        domains = json.loads((root / "domains.json").read_text(encoding="utf-8"))
        licence = (root / "LICENSE.md").read_text(encoding="utf-8")
    domains = {domain.strip().lower().removeprefix("www.") for domain in domains}
    domains = sorted(domain for domain in domains - COMPANIES if DOMAIN.fullmatch(domain))
    source = f"# Made by update.py from {PACKAGE} {VERSION} ({RELEASED}; MIT, see LICENSE). Not edited by hand."
    text = "".join(f"{line}\n" for line in [source, *domains])
    (HERE / "providers.txt").write_text(text, encoding="utf-8")
    (HERE / "LICENSE").write_text(f"{PACKAGE} {VERSION} (providers.txt)\n\n{licence.strip()}\n", encoding="utf-8")
    for line in sorted(set(lines("own.txt")) & set(domains)):
        print(f"own.txt: {line} is in {PACKAGE} by now")


main()
