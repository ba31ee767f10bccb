//! Who may do what: 401, 403 and 404.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::client::Call;
use crate::errors::assert_refused;
use crate::paths::{MANAGEMENT, OF_ORGANIZATION, OF_PROJECT, Operation, Role, SCOPES, filled, operations};
use crate::server::TestServer;
use crate::tenant::{Tenant, now_ms, rfc3339};

/// Every scope but those given.
fn all_scopes_but(scope: &str) -> Vec<&'static str> {
    SCOPES.into_iter().filter(|known| *known != scope).collect()
}

#[test]
fn no_operation_answers_without_a_valid_token() {
    let tenant = Tenant::capable();
    let unknown = format!("Bearer sk_{}", "0".repeat(32));
    let root = format!("Bearer {}", tenant.server.initial("root_token"));
    let key = format!("Bearer {}", tenant.key);
    let basic = "Basic c2tfMDAwMDA6".to_owned();
    let twice = format!("Bearer {0} {0}", tenant.token);
    let cut = format!("Bearer {}", &tenant.token[..34]);
    let bare = tenant.token.clone();
    let cases = ["Bearer", "Bearer ", "Bearer x", "", &unknown, &root, &key, &basic, &twice, &cut, &bare];
    for operation in operations() {
        let what = format!("{} {}", operation.method, operation.path);
        assert_refused(&what, &tenant.send(operation.call(&tenant)), 401, "invalid_credential", None);
        for credential in cases {
            let answer = tenant.send(operation.call(&tenant).header("authorization", credential));
            assert_refused(&format!("{what} with {credential:?}"), &answer, 401, "invalid_credential", None);
            assert!(credential.len() < 20 || !answer.text().contains(&credential[10..]), "{what} repeats a secret");
        }
        let by_key = tenant.send(operation.call(&tenant).key(&tenant.key));
        assert_refused(&format!("{what} with a public key"), &by_key, 401, "invalid_credential", None);
    }
    let answer = tenant.send(Call::get("/organization").header("authorization", format!("bearer {}", tenant.token)));
    assert_eq!(answer.status, 200, "the scheme's case doesn't matter");
}

#[test]
fn revoked_and_expired_tokens_are_unknown() {
    let tenant = Tenant::capable();
    let soon = rfc3339(now_ms() + 4_000);
    let body = json!({"name": "brief", "role": "owner", "scopes": all_scopes_but(""), "expires_at": soon});
    let brief = tenant.post("/api-tokens", &body);
    assert_eq!(brief.status, 201, "{}", brief.text());
    let body = json!({"name": "revoked", "role": "owner", "scopes": all_scopes_but("")});
    let revoked = tenant.post("/api-tokens", &body);
    for made in [&brief, &revoked] {
        assert_eq!(tenant.send(Call::get("/organization").bearer(&made.field("token"))).status, 200);
    }
    assert_eq!(tenant.delete(&format!("/api-tokens/{}", revoked.field("token_id"))).status, 204);
    let answer = tenant.send(Call::get("/organization").bearer(&revoked.field("token")));
    assert_refused("the next request", &answer, 401, "invalid_credential", None);
    std::thread::sleep(Duration::from_millis(4_100));
    for operation in operations() {
        for (what, made) in [("revoked", &revoked), ("expired", &brief)] {
            let answer = tenant.send(operation.call(&tenant).bearer(&made.field("token")));
            assert_refused(&format!("{what}: {} {}", operation.method, operation.path), &answer, 401, "invalid_credential", None);
        }
    }
}

#[test]
fn ingestion_needs_a_public_key() {
    let tenant = Tenant::new();
    let unknown = format!("pk_{}", "0".repeat(32));
    for path in ["/i", "/track", "/i/batch"] {
        for key in [None, Some(""), Some("pk_"), Some(unknown.as_str()), Some(tenant.token.as_str())] {
            for is_header in [true, false] {
                let call = match (key, is_header) {
                    (Some(key), true) => Call::post(path).key(key),
                    (Some(key), false) => Call::post(format!("{path}?pk={key}")),
                    (None, _) => Call::post(path),
                };
                let answer = tenant.send(call.json(&json!({"name": "a", "events": []})));
                assert_refused(&format!("{path} {key:?}"), &answer, 401, "invalid_credential", None);
            }
        }
        let answer = tenant.send(Call::post(path).bearer(&tenant.token).json(&json!({"name": "a"})));
        assert_refused(&format!("{path} with a token"), &answer, 401, "invalid_credential", None);
    }
    assert_refused("the pixel", &tenant.send(Call::get("/i?d=e30")), 401, "invalid_credential", None);
}

#[test]
fn members_do_what_members_may() {
    let tenant = Tenant::capable();
    let member = tenant.token("member", &all_scopes_but(""), None);
    let admin = tenant.token("admin", &all_scopes_but(""), None);
    for operation in operations() {
        let what = format!("{} {}", operation.method, operation.path);
        let answer = tenant.send(operation.call(&tenant).bearer(&member));
        match operation.role {
            Role::Admin => assert_refused(&what, &answer, 403, "insufficient_role", None),
            Role::Member => {
                let is_missing = answer.status == 404 && operation.is_of_one_thing();
                assert!((200..300).contains(&answer.status) || is_missing, "{what}: {}", answer.text());
            }
        }
        let answer = tenant.send(operation.call(&tenant).bearer(&admin));
        assert!(![401, 403].contains(&answer.status), "{what} as admin: {}", answer.text());
    }
}

#[test]
fn no_scope_implies_another() {
    let tenant = Tenant::capable();
    for scope in ["analytics:read", "revenue:read", "identities:read", "companies:read", "groups:read", "events:write", "admin"] {
        let lacks = tenant.token("owner", &all_scopes_but(scope), None);
        let alone = tenant.token("owner", &[scope], None);
        for operation in operations() {
            let what = format!("{} {}", operation.method, operation.path);
            let has_it = operation.scope == scope;
            let (with, without) = if has_it { (&alone, &lacks) } else { (&lacks, &alone) };
            let refused = tenant.send(operation.call(&tenant).bearer(without));
            assert_refused(&what, &refused, 403, "insufficient_scope", None);
            assert!(refused.text().contains(operation.scope), "it says which scope is missing: {}", refused.text());
            if operation.method == "DELETE" {
                continue;
            }
            let answer = tenant.send(operation.call(&tenant).bearer(with));
            let is_missing = answer.status == 404 && operation.is_of_one_thing();
            assert!((200..300).contains(&answer.status) || is_missing, "{what} with {scope}: {}", answer.text());
        }
    }
}

#[test]
fn a_token_of_one_project_stays_in_it() {
    let tenant = Tenant::new();
    let sibling = tenant.project(&json!({"name": "sibling"}));
    let scoped = tenant.token("owner", &all_scopes_but(""), Some(&tenant.project));
    for operation in OF_PROJECT {
        let own = tenant.send(operation.call(&tenant).bearer(&scoped));
        assert!((200..300).contains(&own.status), "{}: {}", operation.path, own.text());
        let path = |project: &str| Call::new(operation.method, operation.path.replace("{project}", project)).bearer(&scoped);
        let with_body =
            |call: Call| if let Some(body) = operation.filled_body() { call.text("application/json", body) } else { call };
        let answer = tenant.send(with_body(path(&sibling.id)));
        assert_refused(operation.path, &answer, 403, "project_forbidden", None);
        let answer = tenant.send(with_body(path("prj_00000000000")));
        assert_refused(operation.path, &answer, 404, "not_found", None);
    }
    for operation in MANAGEMENT.iter().chain(&OF_ORGANIZATION).filter(|operation| !operation.is_of_project()) {
        let answer = tenant.send(operation.call(&tenant).bearer(&scoped));
        assert_refused(&format!("{} {}", operation.method, operation.path), &answer, 403, "project_forbidden", None);
    }
}

/// `/projects/{id}/…` is all a project's own, its keys included; a sibling's are not.
#[test]
fn a_token_of_one_project_rotates_its_keys() {
    let tenant = Tenant::new();
    let sibling = tenant.project(&json!({"name": "sibling"}));
    let scoped = tenant.token("owner", &["admin"], Some(&tenant.project));
    let rotate = |project: &str| tenant.send(Call::post(format!("/projects/{project}/keys")).bearer(&scoped).json(&json!({})));
    assert_refused("a sibling's", &rotate(&sibling.id), 403, "project_forbidden", None);
    let own = rotate(&tenant.project);
    assert_eq!(own.status, 201, "{}", own.text());
}

#[test]
fn what_is_anothers_is_as_what_is_not() {
    let (tenant, other) = (Tenant::capable(), Tenant::capable());
    for operation in operations().filter(Operation::is_of_project) {
        let path = |project: &str, key: &str| operation.path.replace("{project}", project).replace("{key}", key);
        let ask = |target: String| {
            let call = Call::new(operation.method, target).bearer(&tenant.token).header("x-request-id", "same");
            tenant.send(if let Some(body) = operation.filled_body() { call.text("application/json", body) } else { call })
        };
        let foreign = ask(path(&other.project, &other.key));
        let unknown = ask(path("prj_00000000000", &other.key));
        let malformed = ask(path("default", &other.key));
        assert_refused(operation.path, &foreign, 404, "not_found", None);
        assert_eq!(without_date(&unknown.headers), without_date(&foreign.headers), "{}", operation.path);
        for answer in [&unknown, &malformed] {
            assert_eq!((answer.status, answer.text()), (404, foreign.text()), "{}", operation.path);
        }
    }
    let delete = |target: String| tenant.send(Call::delete(target).bearer(&tenant.token).header("x-request-id", "same"));
    let tokens = other.get("/api-tokens").ok(200);
    let foreign = delete(format!("/api-tokens/{}", tokens["api_tokens"][0]["token_id"].as_str().unwrap()));
    let unknown = delete("/api-tokens/tok_0000000000000000".to_owned());
    assert_refused("a foreign token", &foreign, 404, "not_found", None);
    assert_eq!(foreign.body, unknown.body);
    let foreign = delete(format!("/projects/{}/keys/{}", tenant.project, other.key));
    let unknown = delete(format!("/projects/{}/keys/pk_{}", tenant.project, "0".repeat(32)));
    assert_refused("a foreign key", &foreign, 404, "not_found", None);
    assert_eq!(foreign.body, unknown.body);
    assert_eq!(other.get("/organization").status, 200, "the other's token holds");
    assert_eq!(other.track(&json!({"name": "a"})).status, 202, "the other's key holds");
}

/// Users, companies and groups of another organization look like unknown ones.
#[test]
fn what_others_recorded_is_as_what_nobody_did() {
    let (tenant, other) = (Tenant::new(), Tenant::new());
    tenant.recorded(&json!({"name": "a", "user_id": "nobody else"}));
    let company = other.peopled();
    let metrics = format!("/companies/{company}/metrics");
    let users = format!("/companies/{company}/top-users");
    let table = [
        // what is asked for, the other's, nobody's
        ("identity", "/identities/profile?user_id=ada", "/identities/profile?user_id=zoe"),
        ("identity", "/identities/profile?email=ada%40acme.com", "/identities/profile?email=zoe%40acme.com"),
        ("identity", "/identities/referrers?user_id=ada", "/identities/referrers?user_id=zoe"),
        ("identity", "/identities/top-pages?user_id=ada", "/identities/top-pages?user_id=zoe"),
        ("company", "/companies/lookup?domain=acme.com", "/companies/lookup?domain=unknown.example"),
        ("company", &*metrics, "/companies/co_0000000000000000000000/metrics"),
        ("company", &*users, "/companies/co_0000000000000000000000/top-users"),
        ("group", "/groups/metrics?group_type=team&group_key=t1", "/groups/metrics?group_type=team&group_key=t9"),
    ];
    for (what, others, nobodys) in table {
        assert_eq!(other.get(others).status, 200, "{others}: {}", other.get(others).text());
        let ask = |target: &str| tenant.send(Call::get(target).bearer(&tenant.token).header("x-request-id", "same"));
        let (foreign, unknown) = (ask(others), ask(nobodys));
        assert_refused(others, &foreign, 404, "not_found", None);
        assert_eq!(foreign.text(), unknown.text(), "{others}");
        assert_eq!(without_date(&foreign.headers), without_date(&unknown.headers), "{others}");
        assert!(foreign.text().contains(&format!("no such {what}")), "{}", foreign.text());
        // Nor does a tag tell that it is there.
        for known in ["*".to_owned(), other.get(others).etag()] {
            let answer = tenant.send(Call::get(others).bearer(&tenant.token).header("if-none-match", known));
            assert_refused(others, &answer, 404, "not_found", None);
        }
    }
    for list in ["/companies/top", "/groups/top?group_type=team"] {
        let body = tenant.get(list).ok(200);
        let name = if list.contains("companies") { "companies" } else { "groups" };
        assert_eq!(body, json!({name: [], "truncated": false, "complete_from": null}), "{list}");
    }
    for id in ["co_", "acme.com", "co_0000000000000000000000x", "default", "%00", "%C3%A4", "id_0000000000000000000000", "top"] {
        let answer = tenant.get(&format!("/companies/{id}/metrics"));
        assert_refused(id, &answer, 404, "not_found", None);
    }
}

/// All headers but the date, sorted: the framework writes them in the order of a hash map.
fn without_date(headers: &[(String, String)]) -> Vec<(String, String)> {
    let mut headers: Vec<_> = headers.iter().filter(|(name, _)| name != "date").cloned().collect();
    headers.sort();
    headers
}

#[test]
fn the_root_token_makes_organizations_and_nothing_else() {
    let tenant = Tenant::capable();
    let root = tenant.server.initial("root_token").to_owned();
    let post = |token: &str| tenant.send(Call::post("/organizations").bearer(token).json(&json!({"name": "one more"})));
    assert_eq!(post(&root).status, 201);
    assert_refused("an owner", &post(&tenant.token), 403, "insufficient_role", None);
    assert_refused("nobody", &post("rk_unknown"), 401, "invalid_credential", None);
    assert_refused("a key", &post(&tenant.key), 401, "invalid_credential", None);
    for operation in operations() {
        let answer = tenant.send(operation.call(&tenant).bearer(&root));
        assert_refused(&filled(operation.path, &tenant), &answer, 401, "invalid_credential", None);
    }
}

/// Also where no operation is, so that nobody else learns which there are.
#[test]
fn administration_is_for_the_operator_token_alone() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let operator = server.operator();
    let ask = |token: &str| tenant.send(Call::post("/admin/nothing").bearer(token));
    assert_refused("the operator", &ask(&operator), 404, "not_found", None);
    for token in [&*tenant.token, server.initial("root_token"), &tenant.token("member", &["analytics:read"], None)] {
        assert_refused("another token", &ask(token), 403, "operator_required", None);
    }
    for token in ["op_unknown", "", &operator[..20], &operator.replace("op_", "sk_"), &tenant.key] {
        assert_refused(token, &ask(token), 401, "invalid_credential", None);
    }
    assert_refused("nobody", &tenant.send(Call::post("/admin/nothing")), 401, "invalid_credential", None);
    let both = Call::post("/admin/nothing").bearer(&operator).bearer(&tenant.token);
    assert_refused("both", &tenant.send(both), 400, "duplicate_credentials", None);
    for operation in operations() {
        let answer = tenant.send(operation.call(&tenant).bearer(&operator));
        assert_refused(&filled(operation.path, &tenant), &answer, 401, "invalid_credential", None);
    }
    let organizations = Call::post("/organizations").bearer(&operator).json(&json!({"name": "one more"}));
    assert_refused("organizations", &tenant.send(organizations), 401, "invalid_credential", None);
    server.restart();
    assert_refused("the former start's", &ask(&operator), 401, "invalid_credential", None);
    assert_refused("the new start's", &ask(&server.operator()), 404, "not_found", None);
}

#[test]
fn a_token_of_one_project_shows_and_changes_it() {
    let tenant = Tenant::new();
    let (own, other) = (tenant.project(&json!({})), tenant.project(&json!({})));
    let token = tenant.token("admin", &["admin"], Some(&own.id));
    let path = format!("/projects/{}", own.id);
    let shown = tenant.send(Call::get(&*path).bearer(&token)).ok(200);
    assert_eq!(shown["public_key"], own.key.as_str());
    let changed = tenant.send(Call::patch(&*path).bearer(&token).json(&json!({"name": "renamed"}))).ok(200);
    assert_eq!(changed["name"], "renamed");
    assert_refused("removal", &tenant.send(Call::delete(&*path).bearer(&token)), 403, "project_forbidden", None);
    let sibling = format!("/projects/{}", other.id);
    let patch = |path: &str, token: &str| Call::patch(path).bearer(token).json(&json!({"name": "x"}));
    for call in [Call::get(&*sibling).bearer(&token), patch(&sibling, &token)] {
        assert_refused("a sibling", &tenant.send(call), 403, "project_forbidden", None);
    }
    let theirs = format!("/projects/{}", Tenant::new().project);
    for call in [Call::get(&*theirs).bearer(&token), patch(&theirs, &token)] {
        assert_refused("another organization's", &tenant.send(call), 404, "not_found", None);
    }
    let reader = tenant.token("admin", &["analytics:read"], Some(&own.id));
    assert_refused("without the scope", &tenant.send(patch(&path, &reader)), 403, "insufficient_scope", None);
    let member = tenant.token("member", &["admin"], Some(&own.id));
    assert_refused("without the role", &tenant.send(patch(&path, &member)), 403, "insufficient_role", None);
}

#[test]
fn the_last_owner_stays() {
    let tenant = Tenant::new();
    let tokens = tenant.get("/api-tokens").json();
    let first = tokens["api_tokens"][0]["token_id"].as_str().expect("an id").to_owned();
    // None of these could make another owner.
    tenant.token("admin", &all_scopes_but(""), None);
    tenant.token("owner", &all_scopes_but(""), Some(&tenant.project));
    tenant.token("owner", &["analytics:read"], None);
    let soon = rfc3339(now_ms() + 1_500);
    let brief = json!({"name": "brief", "role": "owner", "scopes": ["admin"], "expires_at": soon});
    assert_eq!(tenant.post("/api-tokens", &brief).status, 201);
    std::thread::sleep(Duration::from_millis(1_600));
    let last = tenant.delete(&format!("/api-tokens/{first}"));
    assert_refused("the last owner", &last, 409, "last_owner", None);
    assert_eq!(tenant.get("/organization").status, 200, "it is still valid");
    let second = tenant.token("owner", &["admin"], None);
    assert_eq!(tenant.delete(&format!("/api-tokens/{first}")).status, 204);
    let listed = tenant.send(Call::get("/api-tokens").bearer(&second)).ok(200);
    let id = listed["api_tokens"].as_array().and_then(|tokens| tokens.last()).expect("tokens")["token_id"].clone();
    let last = tenant.send(Call::delete(format!("/api-tokens/{}", id.as_str().expect("an id"))).bearer(&second));
    assert_refused("the last owner by itself", &last, 409, "last_owner", None);
}

#[test]
fn several_credentials_are_refused() {
    let tenant = Tenant::new();
    for (first, second) in [(&tenant.token, "sk_x"), (&tenant.token, &*tenant.token), (&"sk_x".to_owned(), &*tenant.token)] {
        for path in ["/organization", &tenant.path("revenue/metrics"), "/identities/profile?user_id=ada"] {
            let answer = tenant.send(Call::get(path).bearer(first).bearer(second));
            assert_refused(path, &answer, 400, "duplicate_credentials", None);
        }
    }
}
