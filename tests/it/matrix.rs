//! Who may do what: every operation of the document with every kind of credential, role and scope,
//! with and without its capability. The document is made from the routes, so that an operation that
//! this table doesn't have is an error here.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::paths::{Operation, Role, SCOPES, operations};
use crate::tenant::{Tenant, now_ms, rfc3339};

const ROLES: [&str; 3] = ["owner", "admin", "member"];

/// Where a token is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Organization,
    Project,
    Sibling,
}

/// Every capability.
const CAPABILITIES: [&str; 1] = ["target_accounts"];

const REACHES: [Reach; 3] = [Reach::Organization, Reach::Project, Reach::Sibling];

/// A token whose rights are known.
struct Holder {
    role: &'static str,
    reach: Reach,
    scopes: Vec<&'static str>,
    secret: String,
}

/// What an answer must be; `None` if the operation is allowed.
fn refusal(operation: &Operation, holder: &Holder, capabilities: &[&str]) -> Option<&'static str> {
    let is_of_project = operation.is_of_project();
    if operation.role == Role::Admin && holder.role == "member" {
        return Some("insufficient_role");
    }
    if !holder.scopes.contains(&operation.scope) {
        return Some("insufficient_scope");
    }
    match holder.reach {
        Reach::Organization => {
            let is_lacking = operation.capability.is_some_and(|capability| !capabilities.contains(&capability));
            is_lacking.then_some("capability_required")
        }
        Reach::Project if is_of_project => None,
        Reach::Project | Reach::Sibling => Some("project_forbidden"),
    }
}

fn check(operation: &Operation, holder: &Holder, capabilities: &[&str], answer: &Answer) {
    let Holder { role, reach, scopes, .. } = holder;
    let what = format!("{} {} as {role} of {reach:?} with {scopes:?} and {capabilities:?}", operation.method, operation.path);
    match refusal(operation, holder, capabilities) {
        Some(code) => assert_refused(&what, answer, 403, code, None),
        None => assert!(![401, 403, 405].contains(&answer.status), "{what}: {} {}", answer.status, answer.text()),
    }
}

/// All holders of a role and a reach: with all scopes, and, for the operation's own, without it and
/// with it alone.
fn holders(tenant: &Tenant, sibling: &str) -> Vec<Holder> {
    let mut holders = Vec::new();
    for reach in REACHES {
        let project = match reach {
            Reach::Organization => None,
            Reach::Project => Some(&*tenant.project),
            Reach::Sibling => Some(sibling),
        };
        for role in ROLES {
            let mut add = |scopes: Vec<&'static str>| {
                holders.push(Holder { role, reach, secret: tenant.token(role, &scopes, project), scopes });
            };
            add(SCOPES.to_vec());
            // Only where the scope decides: which role and reach do, the others show.
            if role == "owner" && reach == Reach::Organization {
                SCOPES.into_iter().for_each(|scope| add(vec![scope]));
                SCOPES.into_iter().for_each(|scope| add(SCOPES.into_iter().filter(|other| *other != scope).collect()));
            }
        }
    }
    holders
}

/// Tokens that members hold have the lower of the two roles.
fn held(tenant: &Tenant) -> Vec<Holder> {
    let mut holders = Vec::new();
    for (of_member, of_token, role) in [("member", "owner", "member"), ("owner", "member", "member"), ("admin", "owner", "admin")]
    {
        let email = format!("{of_member}.{of_token}@acme.com");
        let member = tenant.post("/members", &json!({"email": email, "role": of_member})).ok(201);
        let body = json!({"name": "held", "role": of_token, "scopes": SCOPES, "member_id": member["member_id"]});
        let secret = tenant.post("/api-tokens", &body).ok(201)["token"].as_str().unwrap().to_owned();
        holders.push(Holder { role, reach: Reach::Organization, scopes: SCOPES.to_vec(), secret });
    }
    holders
}

#[test]
fn every_operation_with_every_credential() {
    let tenant = Tenant::new();
    let sibling = tenant.project(&json!({"name": "sibling"}));
    // One key is deleted by some of the requests.
    let soon = json!({"name": "brief", "role": "owner", "scopes": SCOPES, "expires_at": rfc3339(now_ms() + 1_000)});
    let expired = tenant.post("/api-tokens", &soon).ok(201)["token"].as_str().unwrap().to_owned();
    let revoked = tenant.post("/api-tokens", &json!({"name": "r", "role": "owner", "scopes": SCOPES})).ok(201);
    assert_eq!(tenant.delete(&format!("/api-tokens/{}", revoked["token_id"].as_str().unwrap())).status, 204);
    let holders: Vec<Holder> = holders(&tenant, &sibling.id).into_iter().chain(held(&tenant)).collect();
    std::thread::sleep(Duration::from_millis(1_100));
    let operator = tenant.server.operator();
    let unknown =
        [&*expired, revoked["token"].as_str().unwrap(), tenant.server.initial("root_token"), &operator, &tenant.key, "sk_none"];
    for operation in operations() {
        let what = format!("{} {}", operation.method, operation.path);
        assert_refused(&what, &tenant.send(operation.call(&tenant)), 401, "invalid_credential", None);
        for credential in unknown {
            let answer = tenant.send(operation.call(&tenant).bearer(credential));
            assert_refused(&format!("{what} with {}", &credential[..3]), &answer, 401, "invalid_credential", None);
        }
        for holder in &holders {
            let scopes = holder.scopes.len();
            // Of the tokens of one scope, and of all but one, those that differ in the operation's
            // own.
            if scopes == 1 && holder.scopes[0] != operation.scope || scopes == 10 && holder.scopes.contains(&operation.scope) {
                continue;
            }
            let asked = |capabilities: &[&str]| {
                let answer = tenant.send(operation.call(&tenant).bearer(&holder.secret));
                check(&operation, holder, capabilities, &answer);
            };
            asked(&[]);
            if operation.capability.is_some() {
                tenant.patch("/organization", &json!({"capabilities": CAPABILITIES})).ok(200);
                asked(&CAPABILITIES);
                tenant.patch("/organization", &json!({"capabilities": []})).ok(200);
            }
        }
    }
}

/// Whether a path with values is of a path with parameters.
fn is_of(path: &str, documented: &str) -> bool {
    let (mut path, mut documented) = (path.split('/'), documented.split('/'));
    loop {
        match (path.next(), documented.next()) {
            (None, None) => return true,
            (Some(value), Some(part)) if part.starts_with('{') || value == part => {}
            _ => return false,
        }
    }
}

#[test]
fn no_operation_is_forgotten() {
    let tenant = Tenant::new();
    let document = tenant.send(Call::get("/openapi.json")).json();
    let by_token = json!({"api_token": []});
    let mut missing = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = method.to_uppercase();
            let security = operation.get("security").unwrap_or(&document["security"]);
            // A tenant can delete its project once: `management.rs` and `access.rs` have it.
            // `/metrics` needs a token from elsewhere only. A stream has no end: `live.rs` reads
            // it. Who signs in needs no scope: `sign_in.rs`.
            let is_elsewhere = (&*method, &**path) == ("DELETE", "/projects/{project_id}")
                || path == "/metrics"
                || path.starts_with("/session")
                || path == "/projects/{project_id}/live";
            let is_known = || operations().any(|known| known.method == method && is_of(known.path, path));
            let takes_token = security.as_array().is_some_and(|ways| ways.contains(&by_token));
            if takes_token && !is_elsewhere && !is_known() {
                missing.push(format!("{method} {path}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "operations that tests/it/paths.rs lacks");
    assert!(document["paths"].as_object().is_some_and(|paths| paths.len() > 30 && document["security"] != Value::Null));
}

/// A revoked token is refused from the request on that is sent after the revocation was answered.
#[test]
fn a_revoked_token_is_refused_at_once_while_it_is_used() {
    let tenant = Tenant::new();
    for _ in 0..5 {
        let made = tenant.post("/api-tokens", &json!({"name": "h", "role": "admin", "scopes": ["admin"]})).ok(201);
        let (id, secret) = (made["token_id"].as_str().unwrap(), made["token"].as_str().unwrap());
        let ask = || tenant.send(Call::get("/organization").bearer(secret)).status;
        let is_revoked = std::sync::atomic::AtomicBool::new(false);
        let order = std::sync::atomic::Ordering::SeqCst;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut refused = 0;
                    while refused < 20 {
                        let was_revoked = is_revoked.load(order);
                        let status = ask();
                        assert!(status == 401 || status == 200 && !was_revoked, "{status} after the revocation");
                        refused += usize::from(was_revoked);
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(50));
            let revocation = tenant.delete(&format!("/api-tokens/{id}"));
            is_revoked.store(true, order);
            assert_eq!(revocation.status, 204);
        });
    }
}
