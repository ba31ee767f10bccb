"""Lists how each operation was answered; fails if one never succeeded.

    reached.py REPORT DOCUMENT
"""

import json
import sys

METHODS = {"get", "put", "post", "delete", "patch"}


def main(report, document):
    with open(report) as file:
        answered = json.load(file)
    with open(document) as file:
        paths = json.load(file)["paths"]
    never = []
    for path, item in sorted(paths.items()):
        for method in sorted(METHODS & item.keys()):
            label = f"{method.upper()} {path}"
            counts = answered.get(label, {})
            print(f"{label:<68}", " ".join(f"{status}:{count}" for status, count in sorted(counts.items())))
            # The document itself was read to begin with, and is not asked for again.
            if path != "/openapi.json" and not any(status.startswith("2") for status in counts):
                never.append(label)
    for label in never:
        print("never succeeded:", label)
    return 1 if never else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
