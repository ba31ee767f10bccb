//! What must never be in a log, at any level: secrets, and who the visitors are.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::Call;
use crate::server::TestServer;
use crate::tenant::{BROWSER, Tenant};

const EMAIL: &str = "canary-email@canary-domain.example";
const METADATA: &str = "canary-metadata-text";
const USER: &str = "canary-user-id";
const ANONYMOUS: &str = "canary-anonymous-id";
const ADDRESS: &str = "203.0.113.77";
const AGENT: &str = "CanaryBrowser/7.7";
const GROUP: &str = "canary-group";
const KEY: &str = "canary-external-id";
const PAGE: &str = "canary-page";
const TOKEN: &str = "sk_canary0canary0canary0canary0canar";

/// An event with a canary in every field.
fn event() -> Value {
    json!({
        "name": "identify", "user_id": USER, "anonymous_id": ANONYMOUS, "external_id": KEY, "group_id": GROUP, "value": 5,
        "url": format!("https://shop.example/{PAGE}?token={TOKEN}"), "ip": ADDRESS, "user_agent": AGENT,
        "metadata": {"email": EMAIL, "note": METADATA}
    })
}

/// Sends canaries by every way in: taken, refused as a whole, refused in one field, with unknown
/// credentials.
fn plant(tenant: &Tenant) {
    let with = |name: &str, value: Value| {
        let mut event = event();
        event[name] = value;
        event
    };
    let events = [
        event(),
        event(),
        with("value", json!(METADATA)),
        with("currency", json!(EMAIL)),
        with("timestamp", json!(METADATA)),
        with("group_type", json!(METADATA)),
        with("user_id", json!({"id": USER})),
        with("user_id", json!(USER.repeat(500))),
        with("metadata", json!({"a": METADATA.repeat(1_000)})),
        with("pc", json!("")),
    ];
    for event in &events {
        let call = |path: &str| Call::post(path).header("x-forwarded-for", ADDRESS);
        tenant.send(call("/track").key(&tenant.key).agent(AGENT).json(event));
        tenant.send(call(&format!("/i?pk={}&{METADATA}={EMAIL}", tenant.key)).text("text/plain", event.to_string()));
        tenant.send(call(&tenant.path("track")).bearer(&tenant.token).json(event));
        tenant.send(call("/i/batch").key(&tenant.key).json(&json!({ "events": [event, event] })));
        let mut cut = event.to_string();
        cut.truncate(cut.len() - 3);
        assert_eq!(tenant.send(call("/track").key(&tenant.key).text("application/json", cut)).status, 400);
        tenant.send(call("/track").key(TOKEN).json(event));
    }
    for target in ["/organization", "/nothing", &tenant.path("revenue/metrics")] {
        tenant.send(Call::get(target).bearer(TOKEN));
        tenant.send(Call::get(format!("{target}?email={EMAIL}")).bearer(&tenant.token));
        tenant.send(Call::get(target).header("authorization", format!("Basic {TOKEN}")));
        tenant.send(Call::get(target).header("x-request-id", format!("{EMAIL} {TOKEN}")));
    }
    let filter = json!({"filters": [{"field": "user_id", "operator": "is", "value": USER}], "event_name": METADATA});
    assert_eq!(tenant.post(&tenant.path("analytics/count-unique-users-per-day"), &filter).status, 200);
    assert_eq!(tenant.send(Call::get(tenant.path("revenue/metrics")).bearer(&tenant.token).agent(BROWSER)).status, 200);
}

fn planted(level: &str, format: &str) {
    let server = Arc::new(TestServer::start_with(&["--log", level, "--log-format", format]));
    let tenant = Tenant::on(&server);
    let mut operators = Vec::new();
    plant(&tenant);
    operators.push(ask_as_operator(&tenant));
    server.restart();
    plant(&tenant);
    operators.push(ask_as_operator(&tenant));
    server.kill();
    plant(&tenant);
    operators.push(ask_as_operator(&tenant));
    assert!(server.stop().success());
    let log = server.log();
    assert!(log.lines().count() >= 3, "there is a log: {log}");
    let [first, second, last] = &operators[..] else { panic!("there are three") };
    let [first, second, last] = [first, second, last].map(|token| &token[3..]);
    let tokens = [&*tenant.token, server.initial("api_token"), server.initial("root_token"), &tenant.token[3..]];
    let secrets: Vec<&str> = tokens.into_iter().chain([first, second, last]).collect();
    let canaries = [EMAIL, METADATA, USER, ANONYMOUS, ADDRESS, AGENT, GROUP, KEY, PAGE, TOKEN, "canary"];
    for canary in canaries.iter().chain(&secrets) {
        let line = log.lines().find(|line| line.contains(*canary));
        assert_eq!(line, None, "{canary} is in the log at level {level}");
    }
    for secret in secrets {
        let file = files(server.data_dir()).into_iter().find(|path| contains(path, secret));
        assert!(file.as_ref().is_none_or(|path| is_private_copy(path)), "a secret is in {file:?}");
    }
}

/// Sends requests with the operator token, and returns it.
fn ask_as_operator(tenant: &Tenant) -> String {
    let operator = tenant.server.operator();
    for path in ["/admin/nothing", "/organization", &format!("/nothing?token={operator}")] {
        tenant.send(Call::get(path).bearer(&operator));
    }
    operator
}

/// The credentials that `init` stores for commands beside a server: readable by their owner only.
fn is_private_copy(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path).unwrap().permissions().mode();
    (path.ends_with("credentials.json") || path.ends_with("operator-token")) && mode & 0o077 == 0
}

pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() { found.extend(files(&entry)) } else { found.push(entry) }
    }
    found
}

fn contains(path: &Path, text: &str) -> bool {
    // What is searched for is ASCII, which stays as it is.
    String::from_utf8_lossy(&fs::read(path).unwrap()).contains(text)
}

#[test]
fn no_canary_is_logged_at_debug() {
    planted("debug", "text");
}

#[test]
fn no_canary_is_logged_at_trace_by_the_program_itself() {
    planted("info,headcount=trace,headcount_actors=trace,headcount_storage=trace,headcount_domain=trace", "json");
}
