"""What schemathesis can't know: credentials, ids that exist, and which operations were done at least once."""

import atexit
import base64
import collections
import http.server
import json
import os
import random
import threading
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


def wait_for(path, statuses):
    """Waits while what is there has one of these statuses."""
    until = time.monotonic() + 60
    while ask("GET", path)["status"] in statuses:
        assert time.monotonic() < until, path
        time.sleep(0.1)


PROJECT = ask("POST", "/projects", {"name": "fuzzed"})
# Somebody, of a company and of a group. The examples of the document erase others.
GRACE = {"name": "order", "user_id": "grace", "value": 5, "group_type": "team", "group_id": "t1", "metadata": {"email": "grace@hopper.com"}}
ask("POST", "/projects/%s/track" % PROJECT["project_id"], GRACE)
COMPANY = ask("GET", "/companies/lookup?domain=hopper.com")["company_id"]
CAPABLE = {"capabilities": ["target_accounts"]}
ask("PATCH", "/organization", CAPABLE)
PROFILE = ask("POST", "/company-profiles", {"website": "hopper.com"})


class Site(http.server.BaseHTTPRequestHandler):
    """A website that a profile can be built from."""

    def do_GET(self):
        body = b"<title>Hopper</title><meta name=description content=Compilers.><a href='mailto:hi@hopper.example'>mail</a>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


SITE = "127.0.0.1:" + os.environ["HEADCOUNT_SITE_PORT"]
site = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["HEADCOUNT_SITE_PORT"])), Site)
threading.Thread(target=site.serve_forever, daemon=True).start()


def account(website):
    """A profile with a website, and a run that builds it, which has ended."""
    made = ask("POST", "/company-profiles", {"website": website})
    run = ask("POST", "/company-profiles/build", {"website": website, "profile_id": made["id"]})["run_id"]
    wait_for("/company-profiles/builds/" + run, ("queued", "running"))
    return {"website": website, "profile_id": made["id"], "run_id": run}


AFFORDED = dict(CAPABLE, actions_balance=1000)
ask("PATCH", "/organization", AFFORDED)
# The second one's address is not allowed: its builds fail.
ACCOUNTS = [account("http://" + SITE), account("http://127.0.0.1:9")]
WEBHOOK = ask("POST", "/webhooks", {"project_id": PROJECT["project_id"], "url": "https://hooks.example/", "events": ["notification"]})
EXPORT = ask("POST", "/privacy-requests", {"type": "export", "user_id": "grace"})
wait_for("/privacy-requests/" + EXPORT["id"], ("pending", "processing"))
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
    if case.operation.path.startswith("/v1/"):
        return "Authorization", "Basic " + base64.b64encode((PROJECT["public_key"] + ":").encode()).decode()
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
        ask("PATCH", "/organization", CAPABLE)
        profile = ask("POST", "/company-profiles", {"label": "to be removed"}) if is_removal else PROFILE
        case.path_parameters["profile_id"] = profile["id"]
    if "run_id" in case.path_parameters:
        case.path_parameters["run_id"] = rng.choice(ACCOUNTS)["run_id"]
    if path == "/webhooks" and isinstance(case.body, dict):
        case.body["project_id"] = PROJECT["project_id"]
        if "url" in case.body:
            case.body["url"] = "https://hooks.example/%d" % rng.randrange(9)
    if "webhook_id" in case.path_parameters:
        new = {"project_id": PROJECT["project_id"], "url": "https://hooks.example/"}
        case.path_parameters["webhook_id"] = (ask("POST", "/webhooks", new) if is_removal else WEBHOOK)["id"]
        if isinstance(case.query, dict):
            # Random ids are in no list.
            case.query.pop("starting_after", None)
    if case.operation.path.startswith("/v1/") and "public_key" in case.path_parameters:
        case.path_parameters["public_key"] = PROJECT["public_key"]
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
    if case.operation.label == "POST /company-profiles/build" and is_positive(case) and isinstance(case.body, dict):
        # Never a website of somebody else.
        ask("PATCH", "/organization", AFFORDED)
        known = rng.choice(ACCOUNTS)
        case.body["website"] = known["website"]
        if rng.randrange(4):
            case.body.pop("profile_id", None)
        if rng.randrange(2):
            case.body["profile_id"] = known["profile_id"]
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
    if case.operation.label == "POST /privacy-requests" and response.status_code == 201:
        # While an erasure puts a project's new state in place, the project answers 503: that is meant.
        wait_for("/privacy-requests/" + json.loads(response.content)["id"], ("pending", "processing"))


@atexit.register
def report():
    with open(REPORT, "w") as file:
        json.dump({label: dict(counts) for label, counts in answered.items()}, file)
