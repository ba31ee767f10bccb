//! The management commands, on a stopped data directory and beside a server: what they print is the
//! answer of the API.

use std::path::Path;

use serde_json::{Value, json};

use crate::client::Call;
use crate::server::{TestServer, command};

/// Runs a command such as `project list`, and returns its exit code and what it printed.
fn run(dir: &Path, arguments: &[&str]) -> (bool, String, String) {
    let output = command(arguments[0], dir).args(&arguments[1..]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// The JSON that a command prints, on one line.
#[track_caller]
fn answer(dir: &Path, arguments: &[&str]) -> Value {
    let (is_ok, printed, errors) = run(dir, &[arguments, &["--json"]].concat());
    assert!(is_ok && printed.lines().count() <= 1, "{arguments:?}: {printed} {errors}");
    if printed.is_empty() { Value::Null } else { serde_json::from_str(&printed).unwrap() }
}

#[track_caller]
fn refused(dir: &Path, arguments: &[&str], message: &str) {
    let (is_ok, printed, errors) = run(dir, arguments);
    let last = errors.lines().last().unwrap_or_default();
    assert!(!is_ok && printed.is_empty() && last.contains(message), "{arguments:?}: {printed} {errors}");
}

/// All commands, one after the other. The data directory has one organization with the project
/// `default`.
fn manage(dir: &Path, initial: &dyn Fn(&str) -> String) {
    let shop = answer(
        dir,
        &["project", "create", "--name", "Shop", "--currency", "eur", "--allowed-origins", "https://a.example,https://b.example"],
    );
    let id = shop["project_id"].as_str().unwrap();
    assert_eq!((&shop["name"], &shop["currency"]), (&json!("Shop"), &json!("EUR")));
    assert_eq!(shop["allowed_origins"], json!(["https://a.example", "https://b.example"]));
    assert_eq!(answer(dir, &["project", "show", id]), shop);
    let flags =
        ["--name", "Store", "--allowed-origins", "", "--cookieless", "false", "--bots", "record", "--signals-policy", "drop"];
    let hosts =
        answer(dir, &["project", "set", "Shop", "--own-domains", "a.example,B.example", "--ignored-referrers", "pay.example"]);
    assert_eq!(json!([hosts["own_domains"], hosts["ignored_referrers"]]), json!([["a.example", "b.example"], ["pay.example"]]));
    let changed = answer(dir, &[&["project", "set", "Shop", "--server-only-revenue", "true"], &flags[..]].concat());
    assert_eq!(
        json!([changed["name"], changed["allowed_origins"], changed["cookieless"], changed["bots"], changed["signals_policy"]]),
        json!(["Store", [], false, "record", "drop"])
    );
    assert_eq!(changed["server_only_revenue"], json!(true));
    let limited =
        answer(dir, &["project", "set", "Store", "--rate-limit", "5", "--burst", "9", "--quotas", "pages=70,sources=8"]);
    assert_eq!(
        json!([limited["rate_limit"], limited["burst"], limited["quotas"]["pages"], limited["quotas"]["sources"]]),
        json!([5, 9, 70, 8])
    );
    refused(dir, &["project", "set", "Store", "--quotas", "pages"], "pages=5000");
    let names: Vec<Value> =
        answer(dir, &["project", "list"])["projects"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["default", "Store"]);

    retention(dir, id);
    keys(dir, id, shop["public_key"].as_str().unwrap());
    members(dir);
    webhooks(dir, id);
    tokens(dir, id);
    organization(dir);
    let (is_ok, text, _) = run(dir, &["project", "list"]);
    assert!(is_ok && text.lines().count() == 3 && text.lines().nth(1).unwrap().contains(&initial("project_id")), "{text}");
    assert_eq!(answer(dir, &["project", "delete", "Store"]), Value::Null);
    refused(dir, &["project", "show", id], "not_found");
    refused(dir, &["project", "set", "default", "--bots", "eat"], "bots");
    refused(dir, &["project", "create", "--name", ""], "name");
}

/// Webhooks of the project `Store`.
fn webhooks(dir: &Path, project: &str) {
    let made = answer(dir, &["webhook", "create", "--project", project, "--to", "https://a.example/hook"]);
    let id = made["id"].as_str().unwrap();
    assert!(made["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{made}");
    let shown = answer(dir, &["webhook", "show", id]);
    assert_eq!(
        json!([shown["url"], shown["events"], shown["secret"]]),
        json!(["https://a.example/hook", ["notification"], null])
    );
    let changed = answer(dir, &["webhook", "set", id, "--to", "https://b.example/", "--status", "paused"]);
    assert_eq!(json!([changed["url"], changed["status"]]), json!(["https://b.example/", "paused"]));
    assert_eq!(answer(dir, &["webhook", "list"])["webhooks"], json!([changed]));
    assert_ne!(answer(dir, &["webhook", "rotate-secret", id])["secret"], made["secret"]);
    assert_eq!(answer(dir, &["webhook", "deliveries", id, "--status", "dead"]), json!({"deliveries": [], "truncated": false}));
    assert!(answer(dir, &["webhook", "replay", id, "--from-position", "1"])["from_position"].is_u64());
    refused(dir, &["webhook", "set", id, "--to", "http://127.0.0.1/"], "127.0.0.1");
    assert_eq!(answer(dir, &["webhook", "delete", id]), Value::Null);
    refused(dir, &["webhook", "show", id], "not_found");
}

/// How long the project `Store` keeps its events.
fn retention(dir: &Path, id: &str) {
    let set = |days: &str| answer(dir, &["project", "set", id, "--retention-days", days]);
    let changed = set("3660");
    let floor = changed["retention_floor"].as_str().unwrap().to_owned();
    assert_eq!(changed["retention_days"], 3660);
    let cleared = set("0");
    assert_eq!((&cleared["retention_days"], cleared["retention_floor"].as_str()), (&Value::Null, Some(&*floor)), "a floor stays");
    refused(dir, &["project", "set", id, "--retention-days", "3661"], "retention_days");
}

/// The keys of the project `Store`, which has the key `former`.
fn keys(dir: &Path, id: &str, former: &str) {
    let made = answer(dir, &["key", "create", "--project", "Store"]);
    let key = made["public_key"].as_str().unwrap();
    let limited = answer(dir, &["key", "set", key, "--project", "Store", "--rate-limit", "5", "--burst", "9"]);
    assert_eq!(limited, json!({"public_key": key, "rate_limit": 5, "burst": 9}));
    assert_eq!(answer(dir, &["key", "show", key, "--project", id]), limited);
    assert_eq!(answer(dir, &["key", "delete", former, "--project", id]), Value::Null);
    assert_eq!(answer(dir, &["key", "list", "--project", id])["keys"], json!([limited]));
    refused(dir, &["key", "show", former, "--project", id], former);
    refused(dir, &["key", "delete", key, "--project", id], "last_public_key");
    refused(dir, &["key", "list"], "--project: choose one of");
}

/// A member with a token.
fn members(dir: &Path) {
    let made = answer(dir, &["member", "create", "--email", "Ada@Acme.com", "--role", "admin", "--name", "Ada"]);
    let id = made["member_id"].as_str().unwrap();
    assert_eq!(json!([made["email"], made["role"], made["name"]]), json!(["ada@acme.com", "admin", "Ada"]));
    refused(dir, &["member", "create", "--email", "ada@acme.com", "--role", "member"], "email_taken");
    let changed = answer(dir, &["member", "set", id, "--role", "member", "--name", ""]);
    assert_eq!(json!([changed["email"], changed["role"], changed["name"]]), json!(["ada@acme.com", "member", null]));
    assert_eq!(answer(dir, &["member", "show", id]), changed);
    assert_eq!(answer(dir, &["member", "list"])["members"], json!([changed]));
    let token = answer(dir, &["token", "create", "--name", "of Ada", "--role", "admin", "--member", id]);
    assert_eq!(token["member_id"], *id);
    assert_eq!(answer(dir, &["member", "delete", id]), Value::Null);
    refused(dir, &["token", "show", token["token_id"].as_str().unwrap()], "there is no tok_");
    refused(dir, &["member", "show", id], "not_found");
}

/// A token of the project `Store`.
fn tokens(dir: &Path, id: &str) {
    let flags = [
        "--role",
        "member",
        "--scopes",
        "analytics:read,events:read",
        "--project",
        "Store",
        "--expires-at",
        "2099-01-01T00:00:00Z",
    ];
    let token = answer(dir, &[&["token", "create", "--name", "dashboard"], &flags[..]].concat());
    let token_id = token["token_id"].as_str().unwrap();
    assert_eq!((&token["role"], &token["project_id"]), (&json!("member"), &json!(id)));
    assert_eq!(token["scopes"], json!(["analytics:read", "events:read"]));
    let shown = answer(dir, &["token", "show", token_id]);
    assert_eq!((&shown["name"], &shown["token"]), (&json!("dashboard"), &Value::Null));
    let listed = answer(dir, &["token", "list"]);
    assert_eq!(listed["api_tokens"].as_array().unwrap().len(), 2, "the first one, and this: {listed}");
    let limited = answer(dir, &["token", "set", token_id, "--rate-limit", "7", "--name", "slow"]);
    assert_eq!(json!([limited["rate_limit"], limited["burst"], limited["name"]]), json!([7, 7, "slow"]));
    assert_eq!(answer(dir, &["token", "revoke", token_id]), Value::Null);
    refused(dir, &["token", "revoke", token_id], "not_found");
}

fn organization(dir: &Path) {
    let flags = [
        "--name",
        "Acme",
        "--timezone",
        "Europe/Berlin",
        "--fx-rates",
        "EUR=1.080000000001,GBP=1.27",
        "--capabilities",
        "target_accounts",
    ];
    let organization = answer(dir, &[&["organization", "set", "--actions-balance", "7"], &flags[..]].concat());
    assert_eq!(answer(dir, &["organization", "show"]), organization);
    assert_eq!((&organization["name"], &organization["actions_balance"]), (&json!("Acme"), &json!(7)));
    assert_eq!(organization["fx_rates"].to_string(), r#"{"EUR":1.080000000001,"GBP":1.27}"#);
    let cleared = answer(dir, &["organization", "set", "--fx-rates", "", "--capabilities", ""]);
    assert_eq!((&cleared["fx_rates"], &cleared["capabilities"]), (&json!({}), &json!([])));
    refused(dir, &["organization", "set", "--fx-rates", "EUR:1"], "EUR=1.08");
}

#[test]
fn commands_manage_a_stopped_data_directory_and_beside_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let (is_ok, made, _) = run(dir.path(), &["init", "--json"]);
    assert!(is_ok);
    let initial: Value = serde_json::from_str(&made).unwrap();
    let field = |name: &str| initial[name].as_str().unwrap().to_owned();
    manage(dir.path(), &field);
    // Without a server, a directory with several organizations doesn't tell which one is meant.
    let second = answer(dir.path(), &["organization", "create", "--name", "Second"]);
    let id = second["organization_id"].as_str().unwrap();
    refused(dir.path(), &["project", "list"], "--organization: choose one of");
    assert_eq!(answer(dir.path(), &["organization", "show", "--organization", id])["name"], "Second");
    refused(dir.path(), &["organization", "show", "--organization", "org_00000000000"], "organization");
    refused(&dir.path().join("none"), &["project", "list"], "not a data directory");

    let server = TestServer::start();
    manage(server.data_dir(), &|name| server.initial(name).to_owned());
    let second = answer(server.data_dir(), &["organization", "create", "--name", "Second"]);
    let token = second["api_token"].as_str().unwrap();
    assert_eq!(answer(server.data_dir(), &["organization", "show", "--token", token])["name"], "Second");
    refused(server.data_dir(), &["project", "list", "--organization", id], "--organization");
    refused(server.data_dir(), &["project", "list", "--token", "sk_none"], "401");
    let url = format!("http://{}", server.address());
    assert_eq!(
        answer(&server.data_dir().join("none"), &["organization", "show", "--url", &url, "--token", token])["name"],
        "Second"
    );
}

/// Nobody who has the data directory is locked out.
#[test]
fn a_stopped_data_directory_gives_a_new_owner_token() {
    let server = TestServer::start();
    std::fs::remove_file(server.data_dir().join("credentials.json")).unwrap();
    refused(server.data_dir(), &["token", "create", "--name", "new", "--role", "owner"], "no API token");
    let made = server.stopped(|dir| {
        let made = answer(dir, &["token", "create", "--name", "new", "--role", "owner"]);
        let former = answer(dir, &["token", "list"])["api_tokens"][0]["token_id"].as_str().unwrap().to_owned();
        answer(dir, &["token", "revoke", &former]);
        refused(dir, &["token", "revoke", made["token_id"].as_str().unwrap()], "last_owner");
        made
    });
    let list = Call::get("/api-tokens").bearer(made["token"].as_str().unwrap());
    assert_eq!(server.send(&list).json()["api_tokens"].as_array().unwrap().len(), 1);
    assert_eq!(server.send(&Call::get("/api-tokens").bearer(server.initial("api_token"))).status, 401);
}
