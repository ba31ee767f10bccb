//! Every path, its methods, and what each operation asks of its caller.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::client::Call;
use crate::tenant::Tenant;

/// Every scope.
pub(crate) const SCOPES: [&str; 11] = [
    "analytics:read",
    "revenue:read",
    "identities:read",
    "companies:read",
    "companies:write",
    "groups:read",
    "privacy_requests:read",
    "privacy_requests:write",
    "admin",
    "events:read",
    "events:write",
];

/// The minimum role for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Member,
    Admin,
}

/// An operation that needs an API token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    /// `{project}`, `{key}` and `{token}` are those of a tenant.
    pub(crate) path: &'static str,
    /// A valid query.
    pub(crate) query: &'static str,
    /// A valid body. `{number}` stands for a number that no other request has.
    pub(crate) body: Option<&'static str>,
    pub(crate) scope: &'static str,
    pub(crate) role: Role,
    /// The capability that the organization needs.
    pub(crate) capability: Option<&'static str>,
}

const fn read(path: &'static str, scope: &'static str, role: Role) -> Operation {
    Operation { method: "GET", path, query: "", body: None, scope, role, capability: None }
}

/// A read for owners and admins, about the subject of the query.
const fn ask(path: &'static str, query: &'static str, scope: &'static str) -> Operation {
    Operation { method: "GET", path, query, body: None, scope, role: Role::Admin, capability: None }
}

const fn delete(path: &'static str) -> Operation {
    Operation { method: "DELETE", path, query: "", body: None, scope: "admin", role: Role::Admin, capability: None }
}

const fn send(method: &'static str, path: &'static str, body: &'static str, scope: &'static str, role: Role) -> Operation {
    Operation { method, path, query: "", body: Some(body), scope, role, capability: None }
}

const AGGREGATE: &str = r#"{"start_date": "2024-03-01", "group_by": "name"}"#;
const FUNNEL: &str = r#"{"steps": [{"event_name": "a"}, {"page": "/b"}]}"#;
const KEPT_FUNNEL: &str = r#"{"name": "f", "steps": [{"event_name": "a"}, {"page": "/b"}]}"#;
const FUNNEL_PEOPLE: &str = r#"{"steps": [{"event_name": "a"}, {"page": "/b"}], "step": 1}"#;
const TOKEN: &str = r#"{"name": "t", "role": "member", "scopes": ["analytics:read"]}"#;

/// The operations of one project's figures and events.
pub(crate) const OF_PROJECT: [Operation; 22] = [
    send("POST", "/projects/{project}/analytics/count-unique-users-per-day", "{}", "analytics:read", Role::Member),
    send("POST", "/projects/{project}/analytics/aggregate", AGGREGATE, "analytics:read", Role::Member),
    send("POST", "/projects/{project}/analytics/report", "{}", "analytics:read", Role::Member),
    send("POST", "/projects/{project}/analytics/breakdown", r#"{"dimension": "name"}"#, "analytics:read", Role::Member),
    send("POST", "/projects/{project}/analytics/goals", "{}", "analytics:read", Role::Member),
    send("POST", "/projects/{project}/analytics/funnel", FUNNEL, "analytics:read", Role::Member),
    send("POST", "/projects/{project}/analytics/funnel/people", FUNNEL_PEOPLE, "identities:read", Role::Admin),
    send("POST", "/projects/{project}/analytics/journeys", "{}", "analytics:read", Role::Member),
    read("/projects/{project}/analytics/traffic", "analytics:read", Role::Member),
    send("POST", "/projects/{project}/explain", r#"{"figure": "sessions"}"#, "analytics:read", Role::Member),
    read("/projects/{project}/analytics/retention", "analytics:read", Role::Member),
    read("/projects/{project}/analytics/fields", "analytics:read", Role::Member),
    read("/projects/{project}/intake", "analytics:read", Role::Member),
    read("/projects/{project}/revenue/metrics", "revenue:read", Role::Admin),
    read("/projects/{project}/revenue/timeseries", "revenue:read", Role::Admin),
    read("/projects/{project}/revenue/by-attribution", "revenue:read", Role::Admin),
    read("/projects/{project}/revenue/ltv-cohorts", "revenue:read", Role::Admin),
    read("/projects/{project}/events", "events:read", Role::Admin),
    read("/projects/{project}/export", "events:read", Role::Admin),
    send("POST", "/projects/{project}/track", r#"{"name": "a"}"#, "events:write", Role::Member),
    send("POST", "/projects/{project}/batch", r#"{"events": []}"#, "events:write", Role::Member),
    send("POST", "/projects/{project}/import", r#"{"events": []}"#, "events:write", Role::Admin),
];

/// The questions about a whole organization. Their subjects are in
/// [`crate::tenant::Tenant::peopled`].
pub(crate) const OF_ORGANIZATION: [Operation; 10] = [
    ask("/identities/profile", "user_id=ada", "identities:read"),
    ask("/identities/referrers", "user_id=ada", "identities:read"),
    ask("/identities/top-pages", "email=ada%40acme.com", "identities:read"),
    ask("/identities/top", "sort=revenue", "identities:read"),
    ask("/companies/lookup", "domain=acme.com", "companies:read"),
    ask("/companies/top", "", "companies:read"),
    ask("/companies/co_0000000000000000000000/metrics", "", "companies:read"),
    ask("/companies/co_0000000000000000000000/top-users", "", "companies:read"),
    ask("/groups/metrics", "group_type=team&group_key=t1", "groups:read"),
    ask("/groups/top", "group_type=team", "groups:read"),
];

/// The operations of management, but for the deletion of a project, which a tenant can do once:
/// `management.rs` has it.
pub(crate) const MANAGEMENT: [Operation; 24] = [
    read("/organization/actions", "admin", Role::Admin),
    read("/organization", "admin", Role::Admin),
    send("PATCH", "/organization", "{}", "admin", Role::Admin),
    read("/members", "admin", Role::Admin),
    send("POST", "/members", r#"{"email": "a{number}@b.example", "role": "member"}"#, "admin", Role::Admin),
    read("/members/mem_0000000000000000", "admin", Role::Admin),
    send("PATCH", "/members/mem_0000000000000000", "{}", "admin", Role::Admin),
    delete("/members/mem_0000000000000000"),
    read("/projects", "admin", Role::Admin),
    send("POST", "/projects", r#"{"name": "p"}"#, "admin", Role::Admin),
    read("/projects/{project}", "admin", Role::Admin),
    send("PATCH", "/projects/{project}", "{}", "admin", Role::Admin),
    read("/projects/{project}/keys", "admin", Role::Admin),
    send("POST", "/projects/{project}/keys", "{}", "admin", Role::Admin),
    send("PATCH", "/projects/{project}/keys/{key}", "{}", "admin", Role::Admin),
    delete("/projects/{project}/keys/{key}"),
    read("/projects/{project}/shares", "admin", Role::Admin),
    send("POST", "/projects/{project}/shares", r#"{"name": "s"}"#, "admin", Role::Admin),
    delete("/projects/{project}/shares/shr_0000000000000000"),
    read("/audit-log", "admin", Role::Admin),
    read("/api-tokens", "admin", Role::Admin),
    send("POST", "/api-tokens", TOKEN, "admin", Role::Admin),
    send("PATCH", "/api-tokens/tok_0000000000000000", "{}", "admin", Role::Admin),
    delete("/api-tokens/tok_0000000000000000"),
];

/// The operations of privacy requests. Nobody is opted in.
pub(crate) const OF_PRIVACY: [Operation; 4] = [
    read("/privacy-requests", "privacy_requests:read", Role::Member),
    send("POST", "/privacy-requests", r#"{"type": "opt_in", "user_id": "nobody"}"#, "privacy_requests:write", Role::Admin),
    read("/privacy-requests/pr_0000000000000000", "privacy_requests:read", Role::Member),
    read("/privacy-requests/pr_0000000000000000/download", "privacy_requests:read", Role::Member),
];

/// The operations of company profiles.
pub(crate) const OF_PROFILES: [Operation; 7] = [
    read("/company-profiles", "companies:read", Role::Admin),
    Operation {
        capability: Some("target_accounts"),
        ..send("POST", "/company-profiles", r#"{"website": "a{number}.example"}"#, "companies:write", Role::Admin)
    },
    read("/company-profiles/cp_0000000000000000", "companies:read", Role::Admin),
    send("PATCH", "/company-profiles/cp_0000000000000000", "{}", "companies:write", Role::Admin),
    Operation { scope: "companies:write", ..delete("/company-profiles/cp_0000000000000000") },
    send(
        "POST",
        "/company-profiles/build",
        r#"{"website": "a.example", "profile_id": "cp_0000000000000000"}"#,
        "companies:write",
        Role::Admin,
    ),
    read("/company-profiles/builds/run_0000000000000000", "companies:read", Role::Admin),
];

/// The operations of definitions.
pub(crate) const OF_DEFINITIONS: [Operation; 16] = [
    read("/projects/{project}/segments", "analytics:read", Role::Member),
    send("POST", "/projects/{project}/segments", r#"{"name": "s"}"#, "admin", Role::Admin),
    send("PATCH", "/projects/{project}/segments/segment_0000000000000000", "{}", "admin", Role::Admin),
    delete("/projects/{project}/segments/segment_0000000000000000"),
    read("/projects/{project}/goals", "analytics:read", Role::Member),
    send("POST", "/projects/{project}/goals", r#"{"name": "g", "event_name": "order"}"#, "admin", Role::Admin),
    send("PATCH", "/projects/{project}/goals/goal_0000000000000000", "{}", "admin", Role::Admin),
    delete("/projects/{project}/goals/goal_0000000000000000"),
    read("/projects/{project}/funnels", "analytics:read", Role::Member),
    send("POST", "/projects/{project}/funnels", KEPT_FUNNEL, "admin", Role::Admin),
    send("PATCH", "/projects/{project}/funnels/funnel_0000000000000000", "{}", "admin", Role::Admin),
    delete("/projects/{project}/funnels/funnel_0000000000000000"),
    read("/projects/{project}/annotations", "analytics:read", Role::Member),
    send("POST", "/projects/{project}/annotations", r#"{"day": "2024-03-01", "text": "t"}"#, "admin", Role::Admin),
    send("PATCH", "/projects/{project}/annotations/annotation_0000000000000000", "{}", "admin", Role::Admin),
    delete("/projects/{project}/annotations/annotation_0000000000000000"),
];

/// The operations of webhooks.
pub(crate) const OF_WEBHOOKS: [Operation; 8] = [
    read("/webhooks", "admin", Role::Admin),
    send("POST", "/webhooks", r#"{"project_id": "prj_00000000000", "url": "https://a.example"}"#, "admin", Role::Admin),
    read("/webhooks/wh_0000000000000000", "admin", Role::Admin),
    send("PATCH", "/webhooks/wh_0000000000000000", "{}", "admin", Role::Admin),
    delete("/webhooks/wh_0000000000000000"),
    send("POST", "/webhooks/wh_0000000000000000/rotate-secret", "{}", "admin", Role::Admin),
    read("/webhooks/wh_0000000000000000/deliveries", "admin", Role::Admin),
    send("POST", "/webhooks/wh_0000000000000000/replay", r#"{"from_position": 1}"#, "admin", Role::Admin),
];

/// The operations of channels.
const OF_CHANNELS: [Operation; 5] = [
    read("/channels", "admin", Role::Admin),
    send("POST", "/channels", r#"{"name": "c", "kind": "slack", "url": "https://a.example"}"#, "admin", Role::Admin),
    send("PATCH", "/channels/channel_0000000000000000", "{}", "admin", Role::Admin),
    delete("/channels/channel_0000000000000000"),
    send("POST", "/channels/channel_0000000000000000/test", "{}", "admin", Role::Admin),
];

/// The operations of alerts.
const OF_ALERTS: [Operation; 5] = [
    read("/projects/{project}/alerts", "admin", Role::Admin),
    send(
        "POST",
        "/projects/{project}/alerts",
        r#"{"name": "a", "figure": "events", "over": "day", "condition": {"above": 5}, "channels": []}"#,
        "admin",
        Role::Admin,
    ),
    send("PATCH", "/projects/{project}/alerts/alert_0000000000000000", "{}", "admin", Role::Admin),
    delete("/projects/{project}/alerts/alert_0000000000000000"),
    send(
        "POST",
        "/projects/{project}/alerts/preview",
        r#"{"figure": "events", "over": "day", "condition": {"above": 5}}"#,
        "admin",
        Role::Admin,
    ),
];

/// The methods that take no API token, or that a tenant can use once, by path.
const MORE: [(&str, &[&str]); 30] = [
    ("/i", &["POST", "GET", "OPTIONS"]),
    ("/track", &["POST", "OPTIONS"]),
    ("/i/batch", &["POST", "OPTIONS"]),
    ("/v1/track", &["POST", "OPTIONS"]),
    ("/v1/identify", &["POST", "OPTIONS"]),
    ("/v1/page", &["POST", "OPTIONS"]),
    ("/v1/screen", &["POST", "OPTIONS"]),
    ("/v1/group", &["POST", "OPTIONS"]),
    ("/v1/alias", &["POST", "OPTIONS"]),
    ("/v1/batch", &["POST", "OPTIONS"]),
    ("/v1/import", &["POST", "OPTIONS"]),
    ("/v1/m", &["POST", "OPTIONS"]),
    ("/v1/projects/{key}/settings", &["GET", "HEAD", "OPTIONS"]),
    ("/projects/{project}/live", &["GET", "HEAD"]),
    ("/mail/{mail_token}", &["GET", "HEAD", "POST"]),
    ("/organizations", &["POST"]),
    ("/admin/archive/seal", &["POST"]),
    ("/admin/clock", &["GET", "HEAD", "POST"]),
    ("/projects/{project}", &["DELETE"]),
    ("/session", &["POST", "GET", "HEAD", "DELETE"]),
    ("/session/codes", &["POST"]),
    ("/admin/backup", &["POST"]),
    ("/admin/verify", &["POST"]),
    ("/healthz", &["GET", "HEAD"]),
    ("/readyz", &["GET", "HEAD"]),
    ("/version", &["GET", "HEAD"]),
    ("/metrics", &["GET", "HEAD"]),
    ("/openapi.json", &["GET", "HEAD"]),
    ("/docs", &["GET", "HEAD"]),
    ("/hc.js", &["GET", "HEAD"]),
];

/// Every path, and the methods that it takes.
pub(crate) fn paths() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut paths: BTreeMap<_, Vec<_>> = MORE.map(|(path, methods)| (path, methods.to_vec())).into();
    for Operation { method, path, .. } in operations() {
        let methods = paths.entry(path).or_default();
        methods.push(method);
        methods.extend((method == "GET").then_some("HEAD"));
    }
    paths
}

/// A path of a tenant.
pub(crate) fn filled(path: &str, tenant: &Tenant) -> String {
    path.replace("{project}", &tenant.project).replace("{key}", &tenant.key)
}

fn unused_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// All operations that take an API token.
pub(crate) fn operations() -> impl Iterator<Item = Operation> {
    OF_PROJECT
        .into_iter()
        .chain(OF_ORGANIZATION)
        .chain(MANAGEMENT)
        .chain(OF_PRIVACY)
        .chain(OF_PROFILES)
        .chain(OF_DEFINITIONS)
        .chain(OF_WEBHOOKS)
        .chain(OF_CHANNELS)
        .chain(OF_ALERTS)
}

impl Operation {
    /// The request, about what is the tenant's, without a credential.
    pub(crate) fn call(&self, tenant: &Tenant) -> Call {
        self.call_with(tenant, "")
    }

    /// The same with more in its query.
    pub(crate) fn call_with(&self, tenant: &Tenant, more: &str) -> Call {
        let query = [self.query, more].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("&");
        let mark = if query.is_empty() { "" } else { "?" };
        let call = Call::new(self.method, filled(self.path, tenant) + mark + &query);
        match self.filled_body() {
            Some(body) => call.text("application/json", body),
            None => call,
        }
    }

    /// The body of one request.
    pub(crate) fn filled_body(&self) -> Option<String> {
        Some(self.body?.replace("{number}", &unused_number().to_string()))
    }

    /// Whether it can be about something that isn't there: to who may do it, 404 is an answer then.
    pub(crate) fn is_of_one_thing(&self) -> bool {
        let is_unknown = |text: &str| text.contains("_0000000000000000");
        self.method == "DELETE"
            || is_unknown(self.path)
            || self.body.is_some_and(is_unknown)
            || self.method == "POST" && self.path == "/webhooks"
            || self.scope == "privacy_requests:write"
            || !self.query.is_empty() && !self.path.ends_with("/top")
    }

    /// Whether it is about one project.
    pub(crate) fn is_of_project(&self) -> bool {
        self.path.contains("{project}")
    }
}
