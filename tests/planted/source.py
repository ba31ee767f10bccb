"""Finds a piece of Rust among source files by its tokens: white space, comments and trailing commas don't count."""
import re

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<token>
        b?r(?P<hashes>\#*)".*?"(?P=hashes)     # a raw string
        |b?"(?:\\.|[^"\\])*"                   # a string
        |b?'(?:\\.|[^'\\\n])'                  # a character
        |'[A-Za-z_]\w*                          # a lifetime
        |\w+
        |.)""",
    re.S | re.X,
)
GAP = "…"


class NotFound(Exception):
    """What is looked for does not occur exactly once."""


def tokens(text):
    """The tokens of a text, each with its start and end."""
    found = [(m["token"], m.start(), m.end()) for m in TOKEN.finditer(text) if m["token"] is not None]
    follows = [token for token, _, _ in found[1:]] + ["}"]
    return [token for token, following in zip(found, follows) if not (token[0] == "," and following in ")]}")]


def occurrences(wanted, among):
    """The places among some tokens where the wanted ones begin."""
    words, length = [token for token, _, _ in among], len(wanted)
    return [at for at in range(len(words) - length + 1) if words[at] == wanted[0] and words[at : at + length] == wanted]


cache = {}


def tokens_of(path, text):
    if cache.get(path, ("", None))[0] != text:
        cache[path] = (text, tokens(text))
    return cache[path][1]


def find(anchor, sources):
    """The file where an anchor stands, and the start and end of it (of what follows the gap, if it has one)."""
    *scope, wanted = [[token for token, _, _ in tokens(part)] for part in anchor.split(GAP)]
    first = scope[0] if scope else wanted
    places = [(path, at) for path, text in sources.items() for at in occurrences(first, tokens_of(path, text))]
    if len(places) != 1:
        raise NotFound(f"it occurs {len(places)} times: {anchor.strip()[:80]!r}")
    path, at = places[0]
    among = tokens_of(path, sources[path])
    if scope:
        later = [place for place in occurrences(wanted, among) if place > at]
        if not later:
            raise NotFound(f"it does not occur: {anchor.strip()[:80]!r}")
        at = later[0]
    text, end = sources[path], among[at + len(wanted) - 1][2]
    # A comma at the end of the anchor is none of its tokens, but is replaced with them.
    if anchor.rstrip().endswith(",") and text[end:].lstrip().startswith(","):
        end = text.index(",", end) + 1
    return path, among[at][1], end
