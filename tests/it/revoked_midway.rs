//! Credentials that end after the head of a request was read, and before its last byte: a client
//! chooses how long that takes.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::{Call, Connection};
use crate::errors::assert_refused;
use crate::paths::{Operation, Role, SCOPES, operations};
use crate::sign_in::{by_page, cookie};
use crate::tenant::{BROWSER, Tenant, now_ms, rfc3339};

const ROLES: [&str; 3] = ["owner", "admin", "member"];
/// How long a server may take to read a head.
const HEAD_TAKES: Duration = Duration::from_millis(500);

/// A request without its last byte.
struct Held {
    what: String,
    call: Call,
    connection: Connection,
    last: u8,
}

impl Held {
    fn begin(tenant: &Tenant, what: String, call: Call) -> Held {
        let mut connection = Connection::open(tenant.server.address()).expect("a connection");
        let last = connection.begin(&call).expect("it is sent");
        Held { what, call, connection, last }
    }
}

/// The operations with a body.
fn with_body() -> impl Iterator<Item = Operation> {
    operations().filter(|operation| operation.body.is_some())
}

/// What requests could have changed.
fn things(tenant: &Tenant) -> Vec<Value> {
    let of_organization = [
        "/organization",
        "/projects",
        "/members",
        "/api-tokens",
        "/webhooks",
        "/channels",
        "/company-profiles",
        "/privacy-requests",
    ];
    let of_project = ["shares", "keys", "alerts", "events"].map(|rest| tenant.path(rest));
    let paths = of_organization.into_iter().map(str::to_owned).chain(of_project);
    paths.map(|path| tenant.get(&path).ok(200)).collect()
}

/// Ends the credentials of requests that are under way, and sends the last bytes.
#[track_caller]
fn end(tenant: &Tenant, held: Vec<Held>, end_them: impl FnOnce(), (status, code): (u16, &str)) {
    std::thread::sleep(HEAD_TAKES);
    end_them();
    let before = things(tenant);
    for Held { what, call, mut connection, last } in held {
        let answer = connection.finish(&call, last).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_refused(&what, &answer, status, code, None);
    }
    assert_eq!(things(tenant), before);
}

/// Tokens that are made alike, each with its role, its scopes, its id and its secret.
struct Tokens(Vec<(&'static str, Vec<&'static str>, String, String)>);

impl Tokens {
    /// One of each role with all scopes, and with each scope that an operation with a body needs.
    fn make(tenant: &Tenant, more: &Value) -> Tokens {
        let mut scopes: Vec<Vec<&str>> = with_body().map(|operation| vec![operation.scope]).collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes.push(SCOPES.to_vec());
        let mut tokens = Vec::new();
        for role in ROLES {
            for scopes in &scopes {
                let mut body = json!({"name": "t", "role": role, "scopes": scopes});
                body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                let made = tenant.post("/api-tokens", &body).ok(201);
                let text = |name: &str| made[name].as_str().unwrap().to_owned();
                tokens.push((role, scopes.clone(), text("token_id"), text("token")));
            }
        }
        Tokens(tokens)
    }

    /// Begins each operation with each token that may do it.
    fn begin(&self, tenant: &Tenant) -> Vec<Held> {
        let mut held = Vec::new();
        for operation in with_body() {
            for (role, scopes, _, secret) in &self.0 {
                if !scopes.contains(&operation.scope) || *role == "member" && operation.role == Role::Admin {
                    continue;
                }
                let what = format!("{} {} as {role} with {scopes:?}", operation.method, operation.path);
                held.push(Held::begin(tenant, what, operation.call(tenant).bearer(secret)));
            }
        }
        assert!(held.len() > 80, "{}", held.len());
        held
    }
}

#[test]
fn tokens_that_end_midway_do_nothing() {
    let tenant = Tenant::capable();
    let tokens = Tokens::make(&tenant, &json!({}));
    let revoke = || tokens.0.iter().for_each(|(_, _, id, _)| drop(tenant.delete(&format!("/api-tokens/{id}")).ok(204)));
    end(&tenant, tokens.begin(&tenant), revoke, (401, "invalid_credential"));

    let until = now_ms() + 4_000;
    let tokens = Tokens::make(&tenant, &json!({"expires_at": rfc3339(until)}));
    let held = tokens.begin(&tenant);
    assert!(now_ms() < until, "the machine is too slow");
    let wait = || std::thread::sleep(Duration::from_millis((until + 10 - now_ms()).max(0).unsigned_abs()));
    end(&tenant, held, wait, (401, "invalid_credential"));
}

#[test]
fn tokens_of_members_who_leave_midway_do_nothing() {
    let tenant = Tenant::capable();
    let member = |email: &str| tenant.post("/members", &json!({"email": email, "role": "owner"})).ok(201)["member_id"].clone();
    let removed = member("removed@acme.com");
    let tokens = Tokens::make(&tenant, &json!({"member_id": removed}));
    let remove = || drop(tenant.delete(&format!("/members/{}", removed.as_str().unwrap())).ok(204));
    end(&tenant, tokens.begin(&tenant), remove, (401, "invalid_credential"));

    let lowered = member("lowered@acme.com");
    let mut tokens = Tokens::make(&tenant, &json!({"member_id": lowered}));
    tokens.0.retain(|(role, ..)| *role != "member");
    let lower = || {
        let path = format!("/members/{}", lowered.as_str().unwrap());
        tenant.patch(&path, &json!({"role": "member"})).ok(200);
    };
    end(&tenant, tokens.begin(&tenant), lower, (403, "insufficient_role"));
}

#[test]
fn sessions_that_end_midway_do_nothing() {
    let tenant = Tenant::capable();
    for ends_by_token in [false, true] {
        let made = tenant.post("/api-tokens", &json!({"name": "t", "role": "owner", "scopes": SCOPES})).ok(201);
        let cookie = cookie(&tenant, &json!({"token": made["token"]}));
        let begin = |operation: Operation| {
            let what = format!("{} {}", operation.method, operation.path);
            Held::begin(&tenant, what, by_page(operation.call(&tenant), &cookie))
        };
        let held = with_body().map(begin).collect();
        let end_it = || match ends_by_token {
            true => drop(tenant.delete(&format!("/api-tokens/{}", made["token_id"].as_str().unwrap())).ok(204)),
            false => drop(tenant.send(by_page(Call::delete("/session"), &cookie)).ok(204)),
        };
        end(&tenant, held, end_it, (401, "invalid_credential"));
    }
}

#[test]
fn shares_and_codes_that_end_midway_show_nothing() {
    let tenant = Tenant::capable();
    let made = tenant.post(&tenant.path("shares"), &json!({"name": "s", "revenue": true})).ok(201);
    let (_, secret) = made["url"].as_str().unwrap().split_once("#share=").unwrap();
    let token = tenant.post("/api-tokens", &json!({"name": "t", "role": "member", "scopes": ["analytics:read"]})).ok(201);
    let of_share = |operation: &Operation| operation.path.contains("/analytics/") && operation.scope == "analytics:read";
    let mut held: Vec<Held> = with_body()
        .filter(of_share)
        .map(|operation| Held::begin(&tenant, operation.path.to_owned(), operation.call(&tenant).bearer(secret)))
        .collect();
    assert_eq!(held.len(), 7);
    let code = Call::post("/session/codes").bearer(token["token"].as_str().unwrap()).json(&json!({}));
    held.push(Held::begin(&tenant, "a code".to_owned(), code));
    let revoke = || {
        tenant.delete(&tenant.path(&format!("shares/{}", made["share_id"].as_str().unwrap()))).ok(204);
        tenant.delete(&format!("/api-tokens/{}", token["token_id"].as_str().unwrap())).ok(204);
    };
    end(&tenant, held, revoke, (401, "invalid_credential"));
}

#[test]
fn keys_that_are_removed_midway_record_nothing() {
    let tenant = Tenant::new();
    let key = tenant.post(&tenant.path("keys"), &json!({})).ok(201)["public_key"].as_str().unwrap().to_owned();
    let event = json!({"name": "a", "user_id": "ada"});
    let track = json!({"type": "track", "event": "a", "userId": "ada", "writeKey": key});
    let by_header = [("/i", event.clone()), ("/track", event.clone()), ("/i/batch", json!({"events": [event]}))];
    let mut held: Vec<Held> = by_header
        .iter()
        .map(|(path, body)| Held::begin(&tenant, (*path).to_owned(), Call::post(*path).key(&key).agent(BROWSER).json(body)))
        .collect();
    for (path, body) in [("/v1/track", track.clone()), ("/v1/batch", json!({"batch": [track], "writeKey": key}))] {
        // The user of HTTP Basic, and the field of the body.
        let basic = format!("Basic {}", STANDARD.encode(format!("{key}:")));
        let by_basic = Call::post(path).header("authorization", basic).agent(BROWSER).json(&body);
        held.push(Held::begin(&tenant, format!("{path} by Basic"), by_basic));
        held.push(Held::begin(&tenant, format!("{path} by field"), Call::post(path).agent(BROWSER).json(&body)));
    }
    let remove = || drop(tenant.delete(&tenant.path(&format!("keys/{key}"))).ok(204));
    end(&tenant, held, remove, (401, "invalid_credential"));
}
