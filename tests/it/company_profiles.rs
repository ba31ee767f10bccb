//! `/company-profiles` and `/organization/actions`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::Tenant;

const PATH: &str = "/company-profiles";

fn path(profile: &Value) -> String {
    format!("{PATH}/{}", profile["id"].as_str().unwrap())
}

#[test]
fn a_target_account_is_made_changed_and_removed() {
    let tenant = Tenant::capable();
    let made =
        tenant.post(PATH, &json!({"website": "HTTP://www.Acme.com/about?x=1", "emails": ["Hi@Acme.com", "hi@acme.com"]})).ok(201);
    assert!(made["id"].as_str().is_some_and(|id| id.starts_with("cp_") && id.len() == 19), "{made}");
    let expected = json!({
        "id": made["id"], "kind": "account", "label": "acme.com", "website": "http://www.acme.com", "company_id": made["company_id"],
        "name": null, "description": null, "industry": null, "logo_url": null, "social": {}, "emails": ["hi@acme.com"],
        "technologies": [], "sources": [], "created_at": made["created_at"], "updated_at": made["created_at"],
    });
    assert_eq!(made, expected);
    tenant.recorded(&json!({"name": "pageview", "user_id": "ada", "metadata": {"email": "ada@acme.com"}}));
    assert_eq!(tenant.get("/companies/lookup?domain=acme.com").ok(200)["company_id"], made["company_id"]);
    let patch = json!({
        "label": " Acme ", "name": "Acme Inc.", "description": "Anvils\nand more", "industry": "Tools",
        "logo_url": "https://acme.com/logo.png", "social": {"linkedin": "https://linkedin.com/company/acme"},
        "technologies": ["Rust"], "website": null,
    });
    let changed = tenant.patch(&path(&made), &patch).ok(200);
    assert_eq!((&changed["label"], &changed["website"]), (&json!("Acme"), &json!("http://www.acme.com")));
    assert_eq!(changed["social"], patch["social"]);
    assert_eq!(tenant.get(&path(&made)).ok(200), changed);
    let cleared = json!({"website": "", "name": "", "social": {}, "emails": []});
    let cleared = tenant.patch(&path(&made), &cleared).ok(200);
    let nothing = (&Value::Null, &Value::Null, &json!({}), &json!([]), &Value::Null);
    assert_eq!((&cleared["website"], &cleared["name"], &cleared["social"], &cleared["emails"], &cleared["company_id"]), nothing);
    assert_eq!(cleared["description"], "Anvils\nand more");
    assert_eq!(tenant.delete(&path(&made)).status, 204);
    assert_refused("removed", &tenant.get(&path(&made)), 404, "not_found", None);
    assert_refused("removed", &tenant.delete(&path(&made)), 404, "not_found", None);

    let entries = tenant.get("/audit-log?limit=100").ok(200);
    let entries: Vec<&Value> =
        entries["entries"].as_array().unwrap().iter().filter(|entry| entry["target"]["id"] == made["id"]).collect();
    let actions: Vec<&str> = entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    let [deleted, updated, created] = ["deleted", "updated", "created"].map(|what| format!("company_profile.{what}"));
    assert_eq!(actions, [&*deleted, &updated, &updated, &created]);
    assert_eq!(entries[2]["changes"]["label"], json!({"from": "acme.com", "to": "Acme"}));
    assert_eq!(entries[0]["target"]["type"], "company_profile");
}

#[test]
fn fields_are_bounded() {
    let tenant = Tenant::capable();
    let many: Vec<String> = (0..51).map(|i| format!("t{i}")).collect();
    let links: serde_json::Map<String, Value> = (0..51).map(|i| (format!("s{i}"), json!("https://a.example"))).collect();
    let long = "x".repeat(201);
    let cases = [
        (json!({}), "label"),
        (json!({"label": ""}), "label"),
        (json!({"label": long}), "label"),
        (json!({"label": "a", "website": "ftp://a.example"}), "website"),
        (json!({"label": "a", "website": "https://u:p@a.example"}), "website"),
        (json!({"label": "a", "name": long}), "name"),
        (json!({"label": "a", "name": "a\u{0}"}), "name"),
        (json!({"label": "a", "industry": long}), "industry"),
        (json!({"label": "a", "description": "x".repeat(5_001)}), "description"),
        (json!({"label": "a", "logo_url": "javascript:alert(1)"}), "logo_url"),
        (json!({"label": "a", "technologies": many}), "technologies"),
        (json!({"label": "a", "technologies": [""]}), "technologies[0]"),
        (json!({"label": "a", "emails": ["a@b.example", "none"]}), "emails[1]"),
        (json!({"label": "a", "social": links}), "social"),
        (json!({"label": "a", "social": {"x": "data:text/html,a"}}), "social.x"),
        (json!({"label": "a", "social": ["https://a.example"]}), "social"),
    ];
    for (body, param) in cases {
        assert_refused(&body.to_string(), &tenant.post(PATH, &body), 400, "invalid_parameter", Some(param));
    }
    assert_refused("a field", &tenant.post(PATH, &json!({"label": "a", "kind": "self"})), 400, "unknown_parameter", Some("kind"));
    assert_eq!(tenant.get(PATH).ok(200), json!({"company_profiles": [], "truncated": false}));
}

#[test]
fn a_website_is_of_one_profile() {
    let tenant = Tenant::capable();
    let acme = tenant.post(PATH, &json!({"website": "acme.com"})).ok(201);
    for same in ["https://www.acme.com/about", "HTTPS://ACME.COM:443", "acme.com."] {
        assert_refused(same, &tenant.post(PATH, &json!({"website": same})), 409, "website_taken", None);
    }
    let other = tenant.post(PATH, &json!({"website": "acme.com:8443"})).ok(201);
    assert_refused("taken", &tenant.patch(&path(&other), &json!({"website": "acme.com"})), 409, "website_taken", None);
    assert_eq!(tenant.get(&path(&other)).ok(200), other);
    tenant.patch(&path(&acme), &json!({"website": "www.acme.com"})).ok(200);
    assert_eq!(tenant.delete(&path(&acme)).status, 204);
    tenant.patch(&path(&other), &json!({"website": "acme.com"})).ok(200);
    tenant.post(PATH, &json!({"website": "acme.com:8443"})).ok(201);
}

#[test]
fn profiles_are_listed_stay_after_a_restart_and_a_restore_and_belong_to_one_organization() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    tenant.patch("/organization", &json!({"capabilities": ["target_accounts"], "actions_balance": 5})).ok(200);
    let made: Vec<Value> = (0..5).map(|i| tenant.post(PATH, &json!({"website": format!("l{i}.example")})).ok(201)).collect();
    let id = |i: usize| made[i]["id"].as_str().unwrap();
    let listed = |query: &str| {
        let page = tenant.get(&format!("{PATH}?{query}")).ok(200);
        let ids: Vec<String> = page["company_profiles"]
            .as_array()
            .unwrap()
            .iter()
            .map(|profile| profile["id"].as_str().unwrap().to_owned())
            .collect();
        (ids, page["truncated"].as_bool().unwrap())
    };
    server.restart();
    assert_eq!(tenant.get("/organization/actions").ok(200)["actions"][0]["balance"], 5);
    assert_refused("taken", &tenant.post(PATH, &json!({"website": "l0.example"})), 409, "website_taken", None);
    let place = tempfile::tempdir().unwrap();
    let backup = place.path().join("backup");
    server.run("backup", &[backup.to_str().unwrap()]);
    assert_eq!(tenant.delete(&path(&made[4])).status, 204, "after the backup");
    server.replace_by(&backup);
    assert_eq!(tenant.get(&path(&made[4])).ok(200), made[4]);
    let (first, truncated) = listed("limit=3");
    let (rest, end) = listed(&format!("limit=3&starting_after={}", first[2]));
    let mut all = [first, rest].concat();
    assert_eq!((all.len(), truncated, end), (5, true, false));
    all.sort();
    let mut expected: Vec<&str> = (0..5).map(id).collect();
    expected.sort_unstable();
    assert_eq!(all, expected);
    assert_refused("bad", &tenant.get(&format!("{PATH}?starting_after=x")), 400, "invalid_parameter", Some("starting_after"));
    let unknown = format!("{PATH}?starting_after=cp_0000000000000000");
    assert_refused("unknown", &tenant.get(&unknown), 400, "invalid_parameter", Some("starting_after"));

    let body = json!({"name": "Other"});
    let other = tenant.send(Call::new("POST", "/organizations").bearer(tenant.server.initial("root_token")).json(&body)).ok(201);
    let theirs = tenant.send(Call::get(&*path(&made[0])).bearer(other["api_token"].as_str().unwrap()));
    assert_refused("another organization", &theirs, 404, "not_found", None);
    for unknown in ["cp_0000000000000000", "none"] {
        assert_refused(unknown, &tenant.get(&format!("{PATH}/{unknown}")), 404, "not_found", None);
    }
}

#[test]
fn the_ledger_has_every_change_of_the_balance() {
    let tenant = Tenant::new();
    let ledger = |query: &str| tenant.get(&format!("/organization/actions{query}")).ok(200);
    assert_eq!(ledger(""), json!({"actions": [], "truncated": false, "balance": 0}));
    for balance in [7, 7, 3, 12] {
        tenant.patch("/organization", &json!({"actions_balance": balance})).ok(200);
    }
    tenant.patch("/organization", &json!({"name": "Acme"})).ok(200);
    let all = ledger("");
    let shown: Vec<(i64, i64)> = all["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (a["change"].as_i64().unwrap(), a["balance"].as_i64().unwrap()))
        .collect();
    assert_eq!((shown, &all["balance"]), (vec![(9, 12), (-4, 3), (7, 7)], &json!(12)));
    assert_eq!(all["actions"][0]["reason"], "set");
    assert!(all["actions"][0]["token_id"].as_str().is_some_and(|id| id.starts_with("tok_")), "{all}");
    let first = ledger("?limit=1");
    assert_eq!((&first["actions"][0], &first["truncated"]), (&all["actions"][0], &json!(true)));
    let rest = ledger(&format!("?starting_after={}", first["actions"][0]["id"].as_str().unwrap()));
    assert_eq!((rest["actions"].as_array().unwrap().len(), &rest["truncated"]), (2, &json!(false)));
    let wrong = tenant.patch("/organization", &json!({"actions_balance": 1_000_000_000_001_u64}));
    assert_refused("too many", &wrong, 400, "invalid_parameter", Some("actions_balance"));
    assert_eq!(ledger(""), all);
}
