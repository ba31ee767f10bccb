"""Reads what callgrind counted: instructions by function, and calls between functions."""
import re
from collections import Counter

# The functions of the allocator, and those through which Rust calls them.
ALLOCATOR = re.compile(r"mi_(malloc|zalloc|realloc)(_aligned)?$")
SHIM = re.compile(r"__rustc::_*rust_(alloc|alloc_zeroed|realloc)$|mimalloc::MiMalloc as ")
NAMED = re.compile(r"\((\d+)\)(?: (.*))?")
# The hash that tells functions of the same path apart.
HASH = re.compile(r"::h[0-9a-f]{16}$")
# Callgrind tells recursive calls of a function apart by a number.
RECURSION = re.compile(r"'\d+$")


class Counts:
    """The counts of one thread between two dumps."""

    def __init__(self, part, thread):
        self.part, self.thread = part, thread
        self.own = Counter()
        self.calls = Counter()
        self.below = Counter()

    def add(self, other):
        """Adds those of another thread."""
        for mine, theirs in ((self.own, other.own), (self.calls, other.calls), (self.below, other.below)):
            mine.update(theirs)

    def instructions(self):
        """All instructions."""
        return sum(self.own.values())

    def allocations(self):
        """The number of allocations, by the function that asks for them. A change of size is one."""
        sites = Counter()
        for (caller, callee), count in self.calls.items():
            is_asked = SHIM.search(callee) or ALLOCATOR.match(callee)
            if is_asked and not SHIM.search(caller) and not caller.startswith("mi_"):
                sites[caller] += count
        return sites

    def inclusive(self):
        """Instructions by function with those of what it calls."""
        cost = Counter(self.own)
        for (caller, callee), below in self.below.items():
            # What a function that calls itself does below is its own once.
            if caller != callee:
                cost[caller] += below
        return cost


def read(path):
    """Reads a dump of one thread."""
    names, counts = {}, None
    part = thread = 0
    caller = callee = None

    def name(text):
        number, given = NAMED.fullmatch(text).groups()
        if given is not None:
            names[number] = RECURSION.sub("", HASH.sub("", RECURSION.sub("", given)))
        return names[number]

    counts = Counts(0, 0)
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            first = line[:1]
            if first.isdigit() or first in "+-*":
                cost = int(line.split()[1]) if " " in line.rstrip() else 0
                if callee is None:
                    counts.own[caller] += cost
                else:
                    counts.below[caller, callee] += cost
                    callee = None
            elif line.startswith("fn="):
                caller = name(line[3:].rstrip("\n"))
            elif line.startswith("cfn="):
                called = name(line[4:].rstrip("\n"))
            elif line.startswith("calls="):
                callee = called
                counts.calls[caller, callee] += int(line[6:].split()[0])
            elif line.startswith("part:"):
                counts.part = int(line[5:])
            elif line.startswith("thread:"):
                counts.thread = int(line[7:])
    return counts
