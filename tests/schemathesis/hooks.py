"""What schemathesis can't know: credentials, ids that exist, and which operations were done at least once."""

import atexit
import base64
import collections
import json
import os
import random
import time
import urllib.request

import schemathesis

BASE = os.environ["HEADCOUNT_URL"]
KEYS = json.loads(os.environ["HEADCOUNT_KEYS"])
# For backups and the like, which no API token allows.
OPERATOR = os.environ["HEADCOUNT_OPERATOR"]
REPORT = os.environ["HEADCOUNT_REPORT"]
# Of so many requests one goes without a credential, so that 401 is looked at too.
ANONYMOUS_OF = 20

rng = random.Random(1)
answered = collections.defaultdict(collections.Counter)


def ask(method, path, body=None):
    """Asks as the owner: what a request is about must be there first."""
    headers = {"authorization": "Bearer " + KEYS["api_token"], "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(BASE + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


PROJECT = ask("POST", "/projects", {"name": "fuzzed"})
# Somebody, of a company and of a group. The examples of the document erase others.
GRACE = {"name": "order", "user_id": "grace", "value": 5, "group_type": "team", "group_id": "t1", "metadata": {"email": "grace@hopper.com"}}
ask("POST", "/projects/%s/track" % PROJECT["project_id"], GRACE)
COMPANY = ask("GET", "/companies/lookup?domain=hopper.com")["company_id"]
CAPABLE = {"capabilities": ["target_accounts"]}
ask("PATCH", "/organization", CAPABLE)
PROFILE = ask("POST", "/company-profiles", {"website": "hopper.com"})
WEBHOOK = ask("POST", "/webhooks", {"project_id": PROJECT["project_id"], "url": "https://hooks.example/", "events": ["notification"]})
EXPORT = ask("POST", "/privacy-requests", {"type": "export", "user_id": "grace"})
while ask("GET", "/privacy-requests/" + EXPORT["id"])["status"] != "completed":
    time.sleep(0.1)
# What names them, by path; of several ways any.
KNOWN = {
    "/identities/": [{"user_id": "grace"}, {"email": "Grace@hopper.com"}],
    "/companies/lookup": [{"domain": "hopper.com"}],
    "/groups/metrics": [{"group_type": "team", "group_key": "t1"}],
}


def is_positive(case):
    """Whether the request is meant to be valid."""
    meta = case.meta
    return meta is None or meta.generation.mode.value == "positive"


def credential(case):
    if case.operation.path in ("/i", "/track", "/i/batch"):
        return "x-service-pk", PROJECT["public_key"]
    if case.operation.path == "/organizations":
        return "Authorization", "Bearer " + KEYS["root_token"]
    if case.operation.path.startswith("/admin/"):
        return "Authorization", "Bearer " + OPERATOR
    return "Authorization", "Bearer " + KEYS["api_token"]


def name_known(case):
    """Puts the ids of what is there into a request. What the request removes is made first."""
    path, is_removal = case.operation.path, case.method == "DELETE"
    if path == "/company-profiles" and case.method == "POST":
        # Whatever was tried on the organization.
        ask("PATCH", "/organization", CAPABLE)
    if "profile_id" in case.path_parameters:
        profile = ask("POST", "/company-profiles", {"label": "to be removed"}) if is_removal else PROFILE
        case.path_parameters["profile_id"] = profile["id"]
    if path == "/webhooks" and isinstance(case.body, dict):
        case.body["project_id"] = PROJECT["project_id"]
    if "webhook_id" in case.path_parameters:
        new = {"project_id": PROJECT["project_id"], "url": "https://hooks.example/"}
        case.path_parameters["webhook_id"] = (ask("POST", "/webhooks", new) if is_removal else WEBHOOK)["id"]
    if "request_id" in case.path_parameters:
        case.path_parameters["request_id"] = EXPORT["id"]


@schemathesis.hook
def before_call(context, case, kwargs):
    name, value = credential(case)
    if rng.randrange(ANONYMOUS_OF):
        case.headers[name] = value
    # Random ids name nothing.
    if is_positive(case) and "project_id" in case.path_parameters and rng.randrange(4):
        case.path_parameters["project_id"] = PROJECT["project_id"]
        if case.operation.path == "/projects/{project_id}/keys/{public_key}":
            # A project's last key stays, and a project has so many at most: a new one for each. A limit must not be of the key that
            # this run sends events with.
            project = ask("POST", "/projects", {"name": "of a key"})
            ask("POST", "/projects/%s/keys" % project["project_id"], {})
            case.path_parameters["project_id"] = project["project_id"]
            case.path_parameters["public_key"] = project["public_key"]
    if case.operation.label == "DELETE /projects/{project_id}":
        # Whatever was learnt from a list: the project that this run asks about must stay.
        project = ask("POST", "/projects", {"name": "to be deleted"})
        case.path_parameters["project_id"] = project["project_id"] if is_positive(case) else "prj_00000000000"
    if is_positive(case) and "company_id" in case.path_parameters and rng.randrange(4):
        case.path_parameters["company_id"] = COMPANY
    if is_positive(case) and rng.randrange(4):
        name_known(case)
    for path, ways in KNOWN.items():
        if is_positive(case) and case.operation.path.startswith(path) and rng.randrange(4):
            for name in {name for way in ways for name in way}:
                case.query.pop(name, None)
            case.query.update(rng.choice(ways))
    if case.operation.label == "DELETE /api-tokens/{token_id}":
        # Whatever was learnt from a list: the token that this run asks with must stay.
        made = ask("POST", "/api-tokens", {"name": "to be revoked", "role": "member", "scopes": ["admin"]})
        if is_positive(case):
            case.path_parameters["token_id"] = made["token_id"]
    if case.operation.label == "GET /i" and is_positive(case):
        event = json.dumps({"name": "pageview", "url": "https://shop.example/%d" % rng.randrange(9)})
        case.query["pk"] = PROJECT["public_key"]
        case.query["d"] = base64.urlsafe_b64encode(event.encode()).decode().rstrip("=")
    if isinstance(case.query, dict) and case.operation.label == "GET /i" and rng.randrange(ANONYMOUS_OF) == 0:
        case.query.pop("pk", None)


@schemathesis.hook
def after_call(context, case, response):
    answered[case.operation.label][response.status_code] += 1


@atexit.register
def report():
    with open(REPORT, "w") as file:
        json.dump({label: dict(counts) for label, counts in answered.items()}, file)
