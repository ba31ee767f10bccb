//! Projects, public keys, API tokens and the organization.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::Tenant;

#[test]
fn projects_are_made_listed_and_changed() {
    let tenant = Tenant::new();
    let body = json!({
        "name": "Büro", "currency": "eur", "allowed_origins": ["https://shop.example"], "cookieless": false,
        "bots": "record", "signals_policy": "drop", "server_only_revenue": true,
        "own_domains": ["blog.example", "10.0.0.1"], "ignored_referrers": ["pay.example"]
    });
    let made = tenant.post("/projects", &body);
    let project = made.ok(201);
    let id = project["project_id"].as_str().unwrap();
    let path = format!("/projects/{id}");
    for (name, value) in body.as_object().unwrap() {
        let expected = if name == "currency" { &json!("EUR") } else { value };
        assert_eq!(&project[name], expected, "{name}");
    }
    assert!(project["public_key"].as_str().is_some_and(|key| is_secret(key, "pk_")), "{project}");
    assert!(project["created_at"].as_str().is_some_and(|at| at.len() == 24 && at.ends_with('Z')), "{project}");
    assert_eq!(tenant.get(&path).ok(200), project);
    let list = tenant.get("/projects").ok(200);
    let names: Vec<_> = list["projects"].as_array().unwrap().iter().map(|project| &project["name"]).collect();
    assert_eq!((names.len(), &list["truncated"]), (2, &json!(false)));
    assert_eq!(list["projects"][1], project);

    let patch = json!({"name": "Office", "allowed_origins": [], "bots": "drop", "ignored_referrers": []});
    let changed = tenant.patch(&path, &patch).ok(200);
    let mut expected = project.clone();
    expected.as_object_mut().unwrap().extend(patch.as_object().unwrap().clone());
    assert_eq!(changed, expected, "what is left out stays");
    assert_eq!(tenant.get(&path).ok(200), expected);
    assert_eq!(tenant.patch(&path, &json!({})).ok(200), expected);
    let defaults = tenant.post("/projects", &json!({"name": "plain"})).ok(201);
    let usual = json!({"currency": "USD", "allowed_origins": [], "cookieless": true, "bots": "drop", "signals_policy": "record",
        "server_only_revenue": false, "own_domains": [], "ignored_referrers": []});
    for (name, value) in usual.as_object().unwrap() {
        assert_eq!(&defaults[name], value, "{name}");
    }
}

/// A prefix and 32 characters of base62.
fn is_secret(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|rest| rest.len() == 32 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

#[test]
fn several_keys_are_valid_until_they_are_removed() {
    let tenant = Tenant::new();
    let track = |key: &str| tenant.send(Call::post("/track").key(key).json(&json!({"name": "a", "user_id": "ada"}))).status;
    let path = tenant.path("keys");
    let made = tenant.post(&path, &json!({})).ok(201);
    let new = made["public_key"].as_str().unwrap().to_owned();
    assert!(is_secret(&new, "pk_") && new != tenant.key, "{made}");
    let empty = tenant.send(Call::post(path.clone()).bearer(&tenant.token)).ok(201);
    let third = empty["public_key"].as_str().unwrap();
    for key in [&tenant.key, &new, third] {
        assert_eq!(track(key), 202);
    }
    for key in [&tenant.key, third] {
        assert_eq!(tenant.delete(&format!("{path}/{key}")).status, 204);
        assert_eq!(track(key), 401, "from the next request on");
        assert_refused("again", &tenant.delete(&format!("{path}/{key}")), 404, "not_found", None);
    }
    assert_eq!(track(&new), 202);
    assert_eq!(tenant.get(&format!("/projects/{}", tenant.project)).ok(200)["public_key"], json!(new));
    assert_refused("the last one", &tenant.delete(&format!("{path}/{new}")), 409, "last_public_key", None);
    assert_eq!(track(&new), 202);
    assert_eq!(tenant.users(&tenant.project), 1);
}

#[test]
fn a_secret_is_shown_once() {
    let tenant = Tenant::new();
    let scopes = json!(["analytics:read", "revenue:read"]);
    let body = json!({"name": "dashboard", "role": "admin", "scopes": scopes, "expires_at": "2100-01-01T00:00:00Z"});
    let made = tenant.post("/api-tokens", &body);
    let token = made.ok(201);
    let secret = token["token"].as_str().unwrap();
    assert!(is_secret(secret, "sk_"), "{token}");
    assert!(made.header("cache-control").is_some_and(|value| value.contains("no-store")));
    assert_eq!(token["expires_at"], "2100-01-01T00:00:00.000Z");
    let list = tenant.get("/api-tokens");
    assert!(!list.text().contains("sk_"), "{}", list.text());
    let listed = list.ok(200);
    assert_eq!((listed["api_tokens"].as_array().unwrap().len(), &listed["truncated"]), (2, &json!(false)));
    let mut expected = token.clone();
    expected.as_object_mut().unwrap().remove("token");
    assert_eq!(listed["api_tokens"][1], expected);
    assert_eq!((&expected["name"], &expected["role"], &expected["scopes"]), (&json!("dashboard"), &json!("admin"), &scopes));
    assert_eq!(expected["project_id"], Value::Null);

    let path = format!("/api-tokens/{}", token["token_id"].as_str().unwrap());
    let ask = || tenant.send(Call::get(tenant.path("revenue/metrics")).bearer(secret)).status;
    assert_eq!(ask(), 200);
    assert_eq!(tenant.delete(&path).status, 204);
    assert_eq!(ask(), 401);
    assert_refused("twice", &tenant.delete(&path), 404, "not_found", None);
    assert_eq!(tenant.get("/api-tokens").ok(200)["api_tokens"].as_array().unwrap().len(), 1);
}

/// An admin manages admins and members, and nothing of owners.
#[test]
fn members_have_tokens_of_at_most_their_role() {
    let tenant = Tenant::new();
    let admin = tenant.token("admin", &["admin"], None);
    let send = |call: Call, body: Value| tenant.send(call.bearer(&admin).json(&body));
    let create = |body: Value| send(Call::post("/members"), body);
    assert_refused("an owner", &create(json!({"email": "o@acme.com", "role": "owner"})), 403, "insufficient_role", None);
    let ada = create(json!({"email": "ada@acme.com", "role": "member"})).ok(201);
    let path = format!("/members/{}", ada["member_id"].as_str().unwrap());
    assert_eq!(send(Call::new("PATCH", &path), json!({"role": "admin"})).ok(200)["role"], "admin");
    assert_refused("raised", &send(Call::new("PATCH", &path), json!({"role": "owner"})), 403, "insufficient_role", None);
    let body = json!({"name": "t", "role": "owner", "scopes": ["admin"], "member_id": ada["member_id"]});
    let held = tenant.post("/api-tokens", &body).ok(201)["token"].as_str().unwrap().to_owned();
    let with_held = |call: Call| tenant.send(call.bearer(&held));
    // The token says owner, its member is an admin.
    let owner = json!({"name": "t", "role": "owner", "scopes": ["admin"]});
    assert_refused("lowered", &with_held(Call::post("/api-tokens").json(&owner)), 403, "insufficient_role", None);
    assert_eq!(with_held(Call::get("/members")).ok(200)["members"].as_array().unwrap().len(), 1);
    assert_eq!(send(Call::new("PATCH", &path), json!({"role": "member"})).status, 200);
    assert_refused("a member", &with_held(Call::get("/members")), 403, "insufficient_role", None);
    // Nothing of an owner, whatever the role of the token.
    let own = tenant.post("/members", &json!({"email": "own@acme.com", "role": "owner"})).ok(201);
    let of_owner = json!({"name": "t", "role": "member", "scopes": ["admin"], "member_id": own["member_id"]});
    assert_refused("for an owner", &send(Call::post("/api-tokens"), of_owner.clone()), 403, "insufficient_role", None);
    let token = tenant.post("/api-tokens", &of_owner).ok(201);
    let revoke = Call::delete(format!("/api-tokens/{}", token["token_id"].as_str().unwrap()));
    assert_refused("of an owner", &tenant.send(revoke.bearer(&admin)), 403, "insufficient_role", None);
    let path_of_owner = format!("/members/{}", own["member_id"].as_str().unwrap());
    assert_refused("changed", &send(Call::new("PATCH", &path_of_owner), json!({"name": "x"})), 403, "insufficient_role", None);
    assert_refused("removed", &tenant.send(Call::delete(&path_of_owner).bearer(&admin)), 403, "insufficient_role", None);
    assert_eq!(tenant.send(Call::delete(&path).bearer(&admin)).status, 204);
    assert_eq!(with_held(Call::get("/members")).status, 401, "revoked with its member");
    for (body, param) in [
        (json!({"role": "member"}), "email"),
        (json!({"email": "a@b.example"}), "role"),
        (json!({"email": "nobody", "role": "member"}), "email"),
        (json!({"email": "a@b.example", "role": "boss"}), "role"),
    ] {
        let code = if body.as_object().unwrap().len() == 1 { "missing_parameter" } else { "invalid_parameter" };
        assert_refused(&body.to_string(), &tenant.post("/members", &body), 400, code, Some(param));
    }
    let foreign = Tenant::new();
    assert_eq!(foreign.get(&path_of_owner).status, 404);
    assert_eq!(foreign.delete(&path_of_owner).status, 404);
    let token = json!({"name": "t", "role": "member", "scopes": ["admin"], "member_id": own["member_id"]});
    assert_refused("foreign", &foreign.post("/api-tokens", &token), 400, "invalid_parameter", Some("member_id"));
}

/// Only an owner can create an owner.
#[test]
fn an_admin_gives_no_more_than_it_has() {
    let tenant = Tenant::new();
    let admin = tenant.token("admin", &["admin", "analytics:read"], None);
    let make = |role: &str, scopes: Value| {
        let body = json!({"name": "t", "role": role, "scopes": scopes});
        tenant.send(Call::post("/api-tokens").bearer(&admin).json(&body))
    };
    assert_refused("an owner", &make("owner", json!(["admin"])), 403, "insufficient_role", None);
    assert_refused("a scope", &make("member", json!(["revenue:read"])), 403, "insufficient_scope", None);
    assert_eq!(make("admin", json!(["analytics:read", "admin"])).status, 201);
    let owner = tenant.get("/api-tokens").ok(200)["api_tokens"][0]["token_id"].as_str().unwrap().to_owned();
    let answer = tenant.send(Call::delete(format!("/api-tokens/{owner}")).bearer(&admin));
    assert_refused("an owner's token", &answer, 403, "insufficient_role", None);
    assert_eq!(tenant.get("/organization").status, 200);
}

#[test]
fn an_organization_has_its_settings() {
    let tenant = Tenant::new();
    let before = tenant.get("/organization").ok(200);
    let usual = json!({"timezone": "UTC", "currency": "USD", "fx_rates": {}, "capabilities": []});
    for (name, value) in usual.as_object().unwrap() {
        assert_eq!(&before[name], value, "{name}");
    }
    assert!(before["actions_balance"].is_u64(), "{before}");
    let settings = json!({
        "name": "Umbrella", "timezone": "Australia/Lord_Howe", "currency": "EUR", "capabilities": ["target_accounts"],
        "actions_balance": 12
    });
    let after = tenant.patch("/organization", &settings).ok(200);
    for (name, value) in settings.as_object().unwrap() {
        assert_eq!(&after[name], value, "{name}");
    }
    assert_eq!(tenant.get("/organization").ok(200), after);
    let rates = |body: &str| {
        let call = Call::patch("/organization").bearer(&tenant.token).text("application/json", body);
        let answer = tenant.send(call);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        let begin = text.find("\"fx_rates\":").unwrap();
        text[begin..=begin + text[begin..].find('}').unwrap()].to_owned()
    };
    assert_eq!(
        rates(r#"{"fx_rates": {"EUR": 1.08, "JPY": 0.0067, "INR": 0.0119833}}"#),
        r#""fx_rates":{"EUR":1.08,"INR":0.0119833,"JPY":0.0067}"#
    );
    assert_eq!(
        rates(r#"{"fx_rates": {"GBP": 1.2705, "USD": 1}}"#),
        r#""fx_rates":{"GBP":1.2705}"#,
        "another table takes its place"
    );
    assert_eq!(rates("{}"), r#""fx_rates":{"GBP":1.2705}"#);
    assert_eq!(rates(r#"{"fx_rates": {}}"#), r#""fx_rates":{}"#);
}

#[test]
fn a_currency_is_fixed_once_an_event_is_recorded() {
    let tenant = Tenant::new();
    let project = format!("/projects/{}", tenant.project);
    let currency = |path: &str, code: &str| tenant.patch(path, &json!({ "currency": code }));
    for path in ["/organization", &project] {
        assert_eq!(currency(path, "EUR").status, 200);
        assert_eq!(currency(path, "USD").status, 200);
    }
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "value": 5}));
    for path in ["/organization", &project] {
        assert_refused(path, &currency(path, "EUR"), 409, "currency_fixed", None);
        assert_eq!(currency(path, "USD").status, 200, "the same one changes nothing");
    }
}

#[test]
fn organizations_share_nothing() {
    let (tenant, other) = (Tenant::new(), Tenant::new());
    assert_ne!(tenant.organization, other.organization);
    assert_eq!(tenant.patch("/organization", &json!({"name": "mine", "fx_rates": {"EUR": 2}})).status, 200);
    assert_eq!(other.get("/organization").ok(200)["fx_rates"], json!({}));
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "value": 5, "external_id": "o-1"}));
    assert_eq!((other.users(&other.project), other.users(&other.project)), (0, 0));
    other.recorded(&json!({"name": "order", "user_id": "ada", "value": 5, "external_id": "o-1"}));
    assert_eq!(tenant.metrics(&tenant.project)["orders"], 1);
    assert_eq!(other.get("/projects").ok(200)["projects"].as_array().unwrap().len(), 1);
    assert_eq!(other.get("/api-tokens").ok(200)["api_tokens"].as_array().unwrap().len(), 1);
}

#[test]
fn all_of_it_survives_a_restart_and_a_crash() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    assert_eq!(tenant.patch("/organization", &json!({"timezone": "Asia/Kolkata", "fx_rates": {"EUR": 1.08}})).status, 200);
    let project = tenant.project(&json!({"currency": "EUR", "bots": "record"}));
    let member = tenant.token("member", &["analytics:read"], Some(&project.id));
    let revoked = tenant.post("/api-tokens", &json!({"name": "r", "role": "owner", "scopes": ["admin"]}));
    assert_eq!(tenant.delete(&format!("/api-tokens/{}", revoked.field("token_id"))).status, 204);
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "value": 5}));
    let look = || {
        let paths = ["/organization", "/projects", "/api-tokens"];
        (paths.map(|path| tenant.get(path).ok(200)), tenant.metrics(&tenant.project), tenant.users(&tenant.project))
    };
    let before = look();
    let again: [&dyn Fn(); 3] = [&|| server.restart(), &|| server.kill(), &|| server.restart()];
    for again in again {
        again();
        assert_eq!(look(), before);
        let users = Call::post(format!("/projects/{}/analytics/count-unique-users-per-day", project.id)).bearer(&member);
        assert_eq!(server.send(&users).status, 200);
        assert_eq!(server.send(&Call::get("/organization").bearer(&revoked.field("token"))).status, 401);
        assert_eq!(server.send(&Call::post("/track").key(&project.key).json(&json!({"name": "a"}))).status, 202);
    }
}

/// What was recorded of it goes from every answer, and its credentials from the next request on.
#[test]
fn a_deleted_project_is_gone() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let project = tenant.project(&json!({"name": "brief"}));
    let path = format!("/projects/{}", project.id);
    let of_project = tenant.token("admin", &["admin", "analytics:read", "events:write"], Some(&project.id));
    let order = |key: &str, user: &str| {
        let event = json!({"name": "order", "user_id": user, "value": 5, "group_type": "team", "group_id": "t1",
            "metadata": {"email": format!("{user}@acme.com")}, "external_id": "o-1"});
        let answer = server.send(&Call::post("/track").key(key).json(&event));
        assert_eq!((answer.status, answer.field("status")), (202, "recorded".to_owned()), "{}", answer.text());
    };
    order(&project.key, "ada");
    order(&tenant.key, "bob");
    let company = tenant.get("/companies/lookup?domain=acme.com").field("company_id");
    let users = || json!(tenant.get(&format!("/companies/{company}/top-users")).ok(200)["users"].as_array().unwrap().len());
    let teams = || tenant.get("/groups/top?group_type=team").ok(200)["groups"][0]["events"].clone();
    assert_eq!((users(), teams(), tenant.get("/identities/profile?user_id=ada").status), (json!(2), json!(2), 200));

    assert_refused("by its own token", &tenant.send(Call::delete(&*path).bearer(&of_project)), 403, "project_forbidden", None);
    let member = tenant.token("member", &["admin"], None);
    assert_refused("by a member", &tenant.send(Call::delete(&*path).bearer(&member)), 403, "insufficient_role", None);
    let other = Tenant::on(&server);
    assert_refused("by others", &other.delete(&path), 404, "not_found", None);
    assert_refused("with a parameter", &tenant.delete(&format!("{path}?really=1")), 400, "unknown_parameter", Some("really"));
    let without_scope = tenant.token("owner", &["analytics:read"], None);
    assert_refused(
        "without the scope",
        &tenant.send(Call::delete(&*path).bearer(&without_scope)),
        403,
        "insufficient_scope",
        None,
    );
    for call in [Call::delete(&*path), Call::delete(&*path).key(&project.key), Call::delete(&*path).bearer(&server.operator())] {
        assert_refused("without a token", &tenant.send(call), 401, "invalid_credential", None);
    }
    let deleted = tenant.delete(&path);
    assert_eq!((deleted.status, deleted.body.len()), (204, 0));

    let is_gone = || {
        assert_refused("shown", &tenant.get(&path), 404, "not_found", None);
        assert_refused("again", &tenant.delete(&path), 404, "not_found", None);
        assert_refused("asked", &tenant.get(&format!("{path}/revenue/metrics")), 404, "not_found", None);
        let by_key = server.send(&Call::post("/track").key(&project.key).json(&json!({"name": "a"})));
        assert_refused("its key", &by_key, 401, "invalid_credential", None);
        let by_token = server.send(&Call::post(format!("{path}/track")).bearer(&of_project).json(&json!({"name": "a"})));
        assert_refused("its token", &by_token, 401, "invalid_credential", None);
        assert_eq!(tenant.get("/projects").ok(200)["projects"].as_array().unwrap().len(), 1);
        assert_eq!((users(), teams(), tenant.get("/identities/profile?user_id=ada").status), (json!(1), json!(1), 404));
        assert_eq!(tenant.users(&tenant.project), 1);
    };
    is_gone();
    server.kill();
    is_gone();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let metrics = || server.send(&Call::get("/metrics").header("host", "localhost")).text();
    while !metrics().contains("\nheadcount_deletions_pending 0\n") {
        assert!(std::time::Instant::now() < until, "the deletion does not end");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    server.restart();
    is_gone();
}
