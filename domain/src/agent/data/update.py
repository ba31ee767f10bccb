#!/usr/bin/env python3
"""Makes the files beside this script anew from two npm packages: `just user-agents`.

- names.txt, crawlers.txt: crawler-user-agents (MIT, Martin Monperrus): its patterns as literal names, and its examples.
- browsers.txt: user-agents (BSD-2-Clause, Intoli LLC): the distinct agents of its sample of real visitors.

LICENSES has both licences. Needs Python 3.11 and npm.
"""

import json
import pathlib
import re._parser as regex
import subprocess
import tarfile
import tempfile

HERE = pathlib.Path(__file__).parent

# Tagged as libraries, like curl, but they do nothing except crawl.
CRAWLING_LIBRARIES = {
    "GoParserBot", "HTTrack", "Scrapy", "SimpleCrawler", "Download Ninja", "colly", "crawler4j", "larbin", "newspaper\\/",
    "phpcrawl", "python-opengraph", "rawweb-bot", "trafilatura",
}

# Patterns that also match agents of people or of servers, and what replaces them.
REPLACED = {
    # App Engine adds its name to the agent of whatever runs there.
    "AppEngine-Google": [],
    # Slack's desktop program says it.
    "Sonic": ["RankSonic", "compatible; Sonic/"],
    # The browser inside the program says it too, at its end.
    "Viber": ["^Viber"],
}


def fetch(package, directory):
    """Unpacks an npm package; returns its directory and version."""
    subprocess.run(["npm", "pack", "--silent", package], cwd=directory, check=True, stdout=subprocess.DEVNULL)
    [archive] = pathlib.Path(directory).glob("*.tgz")
    unpacked = pathlib.Path(directory) / "unpacked"
    with tarfile.open(archive) as tar:
        tar.extractall(unpacked, filter="data")
    root = unpacked / "package"
    return root, json.loads((root / "package.json").read_text())["version"]


def names(pattern):
    """The literal names that a pattern stands for, `^` before one that begins an agent, `$` after one that ends it."""
    found = set()
    for pieces in alternatives(regex.parse(pattern)):
        if None in pieces:
            # What is between variable parts: the longest says most.
            runs = "".join(piece or "\n" for piece in pieces if piece not in ("^", "$")).split("\n")
            found.add(max(runs, key=len))
        else:
            found.add("".join(pieces))
    return found


def alternatives(tree):
    sequences = [[]]
    for operator, argument in tree:
        sequences = [sequence + choice for sequence in sequences for choice in choices(str(operator), argument)]
    return sequences


def choices(operator, argument):
    if operator == "LITERAL":
        return [[chr(argument)]]
    if operator == "AT":
        return [["^" if "BEGINNING" in str(argument) else "$"]]
    if operator == "IN" and all(str(kind) == "LITERAL" for kind, _ in argument):
        return [[chr(character)] for _, character in argument]
    if operator == "BRANCH":
        return [choice for branch in argument[1] for choice in alternatives(branch)]
    if operator == "SUBPATTERN":
        return alternatives(argument[3])
    return [[None]]


def write(name, header, lines):
    lines = sorted(set(lines))
    assert not any("\n" in line or line.startswith("#") for line in lines), name
    text = "".join(f"{line}\n" for line in [*(f"# {line}" for line in header), *lines])
    (HERE / name).write_text(text, encoding="utf-8")


def main():
    with tempfile.TemporaryDirectory() as directory:
        root, version = fetch("crawler-user-agents", directory)
        entries = json.loads((root / "crawler-user-agents.json").read_text(encoding="utf-8"))
        licences = [f"crawler-user-agents {version} (names.txt, crawlers.txt)\n\n{(root / 'LICENSE').read_text()}"]
    crawlers = [e for e in entries if "http-library" not in e.get("tags", []) or e["pattern"] in CRAWLING_LIBRARIES]
    source = f"Made by update.py from crawler-user-agents {version} (MIT, see LICENSES). Not edited by hand."
    found = set()
    for entry in crawlers:
        found |= set(REPLACED.get(entry["pattern"]) if entry["pattern"] in REPLACED else names(entry["pattern"]))
    write("names.txt", [source], found)
    write("crawlers.txt", [source], (example for entry in crawlers for example in entry["instances"]))
    with tempfile.TemporaryDirectory() as directory:
        root, version = fetch("user-agents", directory)
        sample = json.loads((root / "dist" / "user-agents.json").read_text(encoding="utf-8"))
        licences.append(f"user-agents {version} (browsers.txt)\n\n{(root / 'LICENSE').read_text()}")
    source = f"Made by update.py from user-agents {version} (BSD-2-Clause, see LICENSES). Not edited by hand."
    write("browsers.txt", [source], (agent["userAgent"] for agent in sample))
    (HERE / "LICENSES").write_text("\n\n".join(licence.strip() for licence in licences) + "\n", encoding="utf-8")


main()
