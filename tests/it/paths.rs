//! Every path, its methods, and what each operation asks of its caller.

use crate::client::Call;
use crate::tenant::Tenant;

/// The least role that an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Member,
    Admin,
}

/// An operation that takes an API token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    /// `{project}`, `{key}` and `{token}` are those of a tenant.
    pub(crate) path: &'static str,
    /// A body that is fine.
    pub(crate) body: Option<&'static str>,
    pub(crate) scope: &'static str,
    pub(crate) role: Role,
}

const fn read(path: &'static str, scope: &'static str, role: Role) -> Operation {
    Operation { method: "GET", path, body: None, scope, role }
}

const fn send(method: &'static str, path: &'static str, body: &'static str, scope: &'static str, role: Role) -> Operation {
    Operation { method, path, body: Some(body), scope, role }
}

const TOKEN: &str = r#"{"name": "t", "role": "member", "scopes": ["analytics:read"]}"#;

/// The operations of one project's figures and events.
pub(crate) const OF_PROJECT: [Operation; 5] = [
    send("POST", "/projects/{project}/analytics/count-unique-users-per-day", "{}", "analytics:read", Role::Member),
    read("/projects/{project}/revenue/metrics", "revenue:read", Role::Admin),
    read("/projects/{project}/revenue/timeseries", "revenue:read", Role::Admin),
    send("POST", "/projects/{project}/track", r#"{"name": "a"}"#, "events:write", Role::Member),
    send("POST", "/projects/{project}/batch", r#"{"events": []}"#, "events:write", Role::Member),
];

/// The operations of management.
pub(crate) const MANAGEMENT: [Operation; 11] = [
    read("/organization", "admin", Role::Admin),
    send("PATCH", "/organization", "{}", "admin", Role::Admin),
    read("/projects", "admin", Role::Admin),
    send("POST", "/projects", r#"{"name": "p"}"#, "admin", Role::Admin),
    read("/projects/{project}", "admin", Role::Admin),
    send("PATCH", "/projects/{project}", "{}", "admin", Role::Admin),
    send("POST", "/projects/{project}/keys", "{}", "admin", Role::Admin),
    Operation { method: "DELETE", path: "/projects/{project}/keys/{key}", body: None, scope: "admin", role: Role::Admin },
    read("/api-tokens", "admin", Role::Admin),
    send("POST", "/api-tokens", TOKEN, "admin", Role::Admin),
    Operation { method: "DELETE", path: "/api-tokens/tok_0000000000000000", body: None, scope: "admin", role: Role::Admin },
];

/// Every path, and the methods that it takes.
pub(crate) const PATHS: [(&str, &[&str]); 22] = [
    ("/i", &["POST", "GET", "OPTIONS"]),
    ("/track", &["POST", "OPTIONS"]),
    ("/i/batch", &["POST", "OPTIONS"]),
    ("/projects/{project}/track", &["POST"]),
    ("/projects/{project}/batch", &["POST"]),
    ("/projects/{project}/analytics/count-unique-users-per-day", &["POST"]),
    ("/projects/{project}/revenue/metrics", &["GET", "HEAD"]),
    ("/projects/{project}/revenue/timeseries", &["GET", "HEAD"]),
    ("/organizations", &["POST"]),
    ("/organization", &["GET", "HEAD", "PATCH"]),
    ("/projects", &["GET", "HEAD", "POST"]),
    ("/projects/{project}", &["GET", "HEAD", "PATCH"]),
    ("/projects/{project}/keys", &["POST"]),
    ("/projects/{project}/keys/{key}", &["DELETE"]),
    ("/api-tokens", &["GET", "HEAD", "POST"]),
    ("/api-tokens/tok_0000000000000000", &["DELETE"]),
    ("/healthz", &["GET", "HEAD"]),
    ("/readyz", &["GET", "HEAD"]),
    ("/version", &["GET", "HEAD"]),
    ("/metrics", &["GET", "HEAD"]),
    ("/openapi.json", &["GET", "HEAD"]),
    ("/docs", &["GET", "HEAD"]),
];

/// A path of a tenant.
pub(crate) fn filled(path: &str, tenant: &Tenant) -> String {
    path.replace("{project}", &tenant.project).replace("{key}", &tenant.key)
}

/// All operations that take an API token.
pub(crate) fn operations() -> impl Iterator<Item = Operation> {
    OF_PROJECT.into_iter().chain(MANAGEMENT)
}

impl Operation {
    /// The request, about what is the tenant's, without a credential.
    pub(crate) fn call(&self, tenant: &Tenant) -> Call {
        self.call_with(tenant, "")
    }

    /// The same with a query string.
    pub(crate) fn call_with(&self, tenant: &Tenant, query: &str) -> Call {
        let call = Call::new(self.method, filled(self.path, tenant) + query);
        match self.body {
            Some(body) => call.text("application/json", body),
            None => call,
        }
    }

    /// Whether it is about one project.
    pub(crate) fn is_of_project(&self) -> bool {
        self.path.contains("{project}")
    }
}
