#!/usr/bin/env python3
"""Generates the clients from the OpenAPI document that `headcount openapi` prints.

Requires Python 3.11, Node 20 and a built server: `HEADCOUNT`, or `target/debug/headcount`. Installs the generators into `target/clients` and
`clients/typescript/node_modules`.
"""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SCRATCH = ROOT / "target" / "clients"
TYPESCRIPT = HERE / "typescript"
PYTHON = HERE / "python" / "headcount_client"
PROGRAM = Path(os.environ.get("HEADCOUNT", ROOT / "target" / "debug" / "headcount"))

# For browsers, and streams: README.md says why.
LEFT_OUT = {"docs", "openapi_json", "tracker", "pixel", "track_alias", "live", "backup"}
LEFT_OUT_TAGS = {"segment"}


def run(*command, **options):
    return subprocess.run([str(each) for each in command], check=True, **options)


def for_clients(document):
    """Returns the document without what clients can't or needn't use."""
    paths = {}
    for path, item in document["paths"].items():
        kept = {method: operation for method, operation in item.items() if is_for_clients(operation)}
        for operation in kept.values():
            operation.get("requestBody", {}).get("content", {}).pop("text/plain", None)
        if kept:
            paths[path] = kept
    document["paths"] = paths
    schemas = document["components"]["schemas"]
    while unused := [name for name in schemas if f'"#/components/schemas/{name}"' not in json.dumps(document)]:
        for name in unused:
            del schemas[name]
    return document


def is_for_clients(operation):
    return operation["operationId"] not in LEFT_OUT and not LEFT_OUT_TAGS & set(operation["tags"])


def generate_typescript(document):
    run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", cwd=TYPESCRIPT)
    modules = TYPESCRIPT / "node_modules"
    run(modules / ".bin" / "openapi-typescript", document, "--default-non-nullable=false", "--output", TYPESCRIPT / "schema.d.ts", stdout=subprocess.DEVNULL)
    # A copy, because npm links a directory that it is asked to install, and leaves out what that needs.
    fetch, helpers = modules / "openapi-fetch", modules / "openapi-typescript-helpers"
    copied = TYPESCRIPT / "openapi-fetch"
    shutil.rmtree(copied, ignore_errors=True)
    copied.mkdir()
    shutil.copy(fetch / "LICENSE", copied / "LICENSE")
    script = (fetch / "dist" / "index.mjs").read_text(encoding="utf-8")
    lines = [line for line in script.splitlines() if not line.startswith("//# sourceMappingURL=")]
    (copied / "index.js").write_text("\n".join(lines) + "\n", encoding="utf-8")
    types = (fetch / "dist" / "index.d.mts").read_text(encoding="utf-8")
    (copied / "index.d.ts").write_text(types.replace("openapi-typescript-helpers", "./helpers.js"), encoding="utf-8")
    shutil.copy(helpers / "dist" / "index.d.mts", copied / "helpers.d.ts")


def generate_python(document):
    venv = SCRATCH / "generator"
    if not (venv / "bin" / "python").exists():
        run(sys.executable, "-m", "venv", venv)
    run(venv / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", HERE / "requirements.txt")
    config = SCRATCH / "python.json"
    config.write_text(json.dumps({"package_name_override": PYTHON.name}), encoding="utf-8")
    shutil.rmtree(PYTHON, ignore_errors=True)
    run(venv / "bin" / "openapi-python-client", "generate", "--path", document, "--config", config, "--meta", "none", "--output-path", PYTHON,
        "--fail-on-warning", env=os.environ | {"PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"}, stdout=subprocess.DEVNULL)
    shutil.rmtree(PYTHON / ".ruff_cache", ignore_errors=True)


def main():
    SCRATCH.mkdir(parents=True, exist_ok=True)
    whole = json.loads(run(PROGRAM, "openapi", stdout=subprocess.PIPE).stdout)
    document = SCRATCH / "openapi.json"
    document.write_text(json.dumps(for_clients(whole), ensure_ascii=False), encoding="utf-8")
    generate_typescript(document)
    generate_python(document)


if __name__ == "__main__":
    main()
