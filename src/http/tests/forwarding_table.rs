//! Every operation, and whether it travels to the owner of the project.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use headcount_common::home_of;
use headcount_control::{NewToken, Role, Scope};
use serde_json::Value;
use ureq::http::Request;

use super::nodes::{FakeOwner, Nodes, bytes};
use crate::http::endpoints;

/// The operations that go to the owner of the project, or to the home of the organization.
const TRAVEL: &[&str] = &[
    "get /i",
    "get /privacy-requests",
    "get /privacy-requests/{request_id}",
    "get /privacy-requests/{request_id}/download",
    "get /projects/{project_id}/analytics/fields",
    "get /projects/{project_id}/analytics/retention",
    "get /projects/{project_id}/analytics/traffic",
    "get /projects/{project_id}/events",
    "get /projects/{project_id}/export",
    "get /projects/{project_id}/intake",
    "get /projects/{project_id}/live",
    "get /projects/{project_id}/revenue/by-attribution",
    "get /projects/{project_id}/revenue/ltv-cohorts",
    "get /projects/{project_id}/revenue/metrics",
    "get /projects/{project_id}/revenue/timeseries",
    "post /i",
    "post /i/batch",
    "post /privacy-requests",
    "post /projects/{project_id}/analytics/aggregate",
    "post /projects/{project_id}/analytics/breakdown",
    "post /projects/{project_id}/analytics/count-unique-users-per-day",
    "post /projects/{project_id}/analytics/report",
    "post /projects/{project_id}/batch",
    "post /projects/{project_id}/explain",
    "post /projects/{project_id}/import",
    "post /projects/{project_id}/track",
    "post /track",
    "post /v1/alias",
    "post /v1/batch",
    "post /v1/group",
    "post /v1/identify",
    "post /v1/import",
    "post /v1/page",
    "post /v1/screen",
    "post /v1/track",
];

/// Those that the node answers that they reach: of control data, of the node itself, and of whole organizations, which ask the owners of their projects.
/// A webhook that is made, its deliveries and its replay travel by its project (`tests/it/cluster_nodes.rs`); the ids of these requests are no webhooks.
const STAY: &[&str] = &[
    "delete /api-tokens/{token_id}",
    "delete /company-profiles/{profile_id}",
    "delete /members/{member_id}",
    "delete /projects/{project_id}",
    "delete /projects/{project_id}/keys/{public_key}",
    "delete /projects/{project_id}/shares/{share_id}",
    "delete /session",
    "delete /webhooks/{webhook_id}",
    "get /admin/clock",
    "get /api-tokens",
    "get /audit-log",
    "get /companies/lookup",
    "get /companies/top",
    "get /companies/{company_id}/metrics",
    "get /companies/{company_id}/top-users",
    "get /company-profiles",
    "get /company-profiles/builds/{run_id}",
    "get /company-profiles/{profile_id}",
    "get /docs",
    "get /groups/metrics",
    "get /groups/top",
    "get /hc.js",
    "get /healthz",
    "get /identities/profile",
    "get /identities/referrers",
    "get /identities/top",
    "get /identities/top-pages",
    "get /members",
    "get /members/{member_id}",
    "get /metrics",
    "get /openapi.json",
    "get /organization",
    "get /organization/actions",
    "get /projects",
    "get /projects/{project_id}",
    "get /projects/{project_id}/keys",
    "get /projects/{project_id}/shares",
    "get /readyz",
    "get /session",
    "get /v1/projects/{public_key}/settings",
    "get /version",
    "get /webhooks",
    "get /webhooks/{webhook_id}",
    "get /webhooks/{webhook_id}/deliveries",
    "patch /api-tokens/{token_id}",
    "patch /company-profiles/{profile_id}",
    "patch /members/{member_id}",
    "patch /organization",
    "patch /projects/{project_id}",
    "patch /projects/{project_id}/keys/{public_key}",
    "patch /webhooks/{webhook_id}",
    "post /admin/archive/seal",
    "post /admin/backup",
    "post /admin/clock",
    "post /admin/verify",
    "post /api-tokens",
    "post /company-profiles",
    "post /company-profiles/build",
    "post /members",
    "post /organizations",
    "post /projects",
    "post /projects/{project_id}/keys",
    "post /projects/{project_id}/shares",
    "post /session",
    "post /session/codes",
    "post /v1/m",
    "post /webhooks",
    "post /webhooks/{webhook_id}/replay",
    "post /webhooks/{webhook_id}/rotate-secret",
];

#[actix_web::test]
async fn every_operation_travels_or_stays_as_the_table_says() {
    let nodes = Nodes::start().await;
    let fake = FakeOwner::answering("HTTP/1.1 299 From The Owner\r\ncontent-length: 0\r\n\r\n");
    nodes.first.look_for(&nodes.there, &fake.url);
    // Someone of the organization who may change nothing.
    let registry = nodes.first.engine.registry();
    let new = NewToken {
        name: "reader".to_owned(),
        role: Role::Member,
        scopes: vec![Scope::AnalyticsRead],
        project: None,
        expires_at: None,
        member: None,
    };
    let (organization, now) = (registry.organizations()[0].id, nodes.first.engine.clock().now());
    nodes.first.owners.give_up(home_of(organization));
    nodes.first.owners.note_elsewhere(home_of(organization), Some(fake.url.as_str().into()));
    let token = registry.create_token(organization, new, now).unwrap().1.expose().to_owned();
    let document: Value = serde_json::from_str(endpoints::json()).unwrap();
    let paths: BTreeMap<String, BTreeMap<String, Value>> = serde_json::from_value(document["paths"].clone()).unwrap();
    let mut found = Vec::new();
    for (path, operations) in paths {
        for method in operations.keys().filter(|key| ["get", "post", "patch", "put", "delete"].contains(&key.as_str())) {
            let concrete = path.replace("{project_id}", &nodes.there.id.to_string());
            let concrete = concrete.replace("{public_key}", &nodes.there.public_key).replace(['{', '}'], "");
            let is_segment = path.starts_with("/v1/");
            let basic = format!("Basic {}", STANDARD.encode(format!("{}:", nodes.there.public_key)));
            let authorization = if is_segment { basic } else { format!("Bearer {token}") };
            let request = Request::builder().method(method.to_uppercase().as_str()).uri(format!("{}{concrete}", nodes.first.url));
            let request = request.header("authorization", authorization).header("x-service-pk", &nodes.there.public_key);
            let status = bytes(request.body(String::new()).unwrap()).await.0.status();
            found.push((format!("{method} {path}"), status == 299));
        }
    }
    found.sort();
    let travel: Vec<&str> = found.iter().filter(|(_, travels)| *travels).map(|(name, _)| name.as_str()).collect();
    let stay: Vec<&str> = found.iter().filter(|(_, travels)| !travels).map(|(name, _)| name.as_str()).collect();
    assert_eq!(travel, TRAVEL);
    assert_eq!(stay, STAY);
}
