#!/usr/bin/env python3
"""Runs the query of each panel of the Grafana boards against `headcount demo`.

    grafana/check.py PROGRAM

Panels of Infinity: the request is answered 200, and each row has the fields that the panel selects. Panels of Prometheus: each metric and label
of the expression is in `/metrics`, and `promtool`, where it is installed, parses the expression.
"""

import datetime
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).parent
# The demo stops by itself after this long, whatever happens to this script.
LASTING = "120s"
TIMEOUT_S = 30
# Those of an expression that are neither metrics nor labels.
WORDS = {"by", "rate", "sum", "max", "histogram_quantile", "le", "class", "quota", "instance"}


def request(url, method="GET", data=None, headers=()):
    sent = urllib.request.Request(url, method=method, data=data, headers=dict(headers))
    try:
        with urllib.request.urlopen(sent, timeout=TIMEOUT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def start(program):
    """Starts the demo. Returns its process, URL, project and owner's token."""
    demo = subprocess.Popen([program, "demo", "--listen", "127.0.0.1:0", "--for", LASTING], stdout=subprocess.PIPE, text=True)
    url, said = None, ""
    for line in demo.stdout:
        said += line
        if line.startswith("listening on "):
            url = line.split()[-1]
        # The last of what it prints.
        if "#code=" in line:
            break
    project, token = re.search(r"prj_\w+", said), re.search(r"sk_\w+", said)
    if not (url and project and token):
        raise SystemExit(f"the demo did not start:\n{said}")
    return demo, url, project[0], token[0]


def grafana_token(url, owner):
    """Creates the token that `datasources.yaml` describes."""
    command = re.search(r"token create --name (\S+) --role (\S+) --scopes (\S+)", (HERE / "datasources.yaml").read_text())
    body = json.dumps({"name": command[1], "role": command[2], "scopes": command[3].split(",")}).encode()
    headers = {"authorization": f"Bearer {owner}", "content-type": "application/json"}
    status, answer = request(f"{url}/api-tokens", "POST", body, headers)
    assert status == 201, answer
    return json.loads(answer)["token"]


def interpolated(text, variables):
    """Replaces variables as Grafana does. One that is unknown fails."""
    return re.sub(r"\$\{([^}]+)\}", lambda found: variables[found[1]], text)


def selected(value, selector):
    """What a selector of Infinity finds. Raises KeyError if a field is missing."""
    for name in selector.split(".") if selector else []:
        value = value[name]
    return value


def check_infinity(target, variables, token):
    options = target["url_options"]
    url = interpolated(target["url"], variables)
    headers = {"authorization": f"Bearer {token}"}
    parameters = [(one["key"], interpolated(one["value"], variables)) for one in options.get("params", [])]
    if parameters:
        url += "?" + urllib.parse.urlencode(parameters)
    data = None
    if options["method"] == "POST":
        assert options["body_type"] == "raw", options
        headers["content-type"] = options["body_content_type"]
        data = interpolated(options["data"], variables).encode()
    status, answer = request(url, options["method"], data, headers)
    assert status == 200, f"{status} {answer}"
    found = selected(json.loads(answer), target["root_selector"])
    rows = found if isinstance(found, list) else [found]
    assert rows, f"no rows in {answer[:200]}"
    for row in rows:
        for column in target["columns"]:
            value = selected(row, column["selector"])
            if column["type"] == "number":
                assert isinstance(value, (int, float)) and not isinstance(value, bool), (column, value)
            elif column["type"] == "timestamp":
                datetime.date.fromisoformat(value)
            else:
                # Null: events without the property.
                assert value is None or isinstance(value, str), (column, value)
    return f"{len(rows)} rows"


def check_prometheus(target, metrics):
    expression = target["expr"]
    names = set(re.findall(r"[a-zA-Z_][a-zA-Z0-9_]*", re.sub(r'"[^"]*"|\[[^\]]*\]', "", expression))) - WORDS
    assert names, expression
    for name in names:
        assert re.search(rf"^{name}[{{ ]", metrics, re.MULTILINE), f"{name} is not in /metrics"
    for label in re.findall(r"by \((\w+)\)", expression):
        assert any(re.search(rf'^{name}\{{.*\b{label}="', metrics, re.MULTILINE) for name in names), f"{names} has no label {label}"
    return ", ".join(sorted(names))


def check_syntax(expressions):
    """Has promtool parse the expressions, as rules."""
    if not shutil.which("promtool"):
        print("SKIPPED: promtool is not installed, so that nobody parses the expressions")
        return
    expressions = [expression.replace("$__rate_interval", "1m").replace("$instance", ".*") for expression in expressions]
    rules = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(expressions)]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump({"groups": [{"name": "panels", "rules": rules}]}, file)
        file.flush()
        subprocess.run(["promtool", "check", "rules", file.name], check=True, stdout=subprocess.DEVNULL)


def check_board(name, variables, token, metrics):
    board = json.loads((HERE / name).read_text())
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)), "panels share an id"
    failed, expressions = 0, []
    for panel in board["panels"]:
        for target in panel["targets"]:
            try:
                if "expr" in target:
                    expressions.append(target["expr"])
                    found = check_prometheus(target, metrics)
                else:
                    found = check_infinity(target, variables, token)
                print(f"{name}: {panel['title']}: {found}")
            except (AssertionError, KeyError, TypeError, ValueError) as error:
                failed += 1
                print(f"{name}: {panel['title']}: FAILED: {error!r}")
    if expressions:
        check_syntax(expressions)
    return failed


def main():
    demo, url, project, owner = start(sys.argv[1])
    try:
        today = datetime.datetime.now(datetime.timezone.utc).date()
        variables = {
            "url": url,
            "project": project,
            "__from:date:YYYY-MM-DD": str(today - datetime.timedelta(days=30)),
            "__to:date:YYYY-MM-DD": str(today),
        }
        status, metrics = request(f"{url}/metrics")
        assert status == 200, metrics
        token = grafana_token(url, owner)
        failed = sum(check_board(name, variables, token, metrics) for name in ("server.json", "figures.json"))
    finally:
        demo.terminate()
        demo.wait(TIMEOUT_S)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
