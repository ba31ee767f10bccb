//! Whether each operation travels to the owner of the project, by a rule beside the table of
//! endpoints.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use headcount_common::home_of;
use headcount_control::{NewToken, Role, Scope};
use serde_json::Value;
use ureq::http::Request;

use super::nodes::{FakeOwner, Nodes, bytes};
use crate::http::endpoints;

/// Whether an operation goes to the owner of the project, or to the home of the organization. The others are answered by the node that they reach: those of control data, of
/// the node itself, and of whole organizations, which ask the owners of their projects. A webhook that is made, its deliveries and its replay travel by its project
/// (`tests/it/cluster_nodes.rs`); the ids of these requests are no webhooks.
fn travels(method: &str, path: &str) -> bool {
    if let Some(of_project) = path.strip_prefix("/projects/{project_id}") {
        let of_control = ["/keys", "/shares", "/segments", "/goals", "/funnels", "/annotations", "/alerts"];
        if of_project == "/alerts/preview" {
            return true;
        }
        return !of_project.is_empty() && !of_control.into_iter().any(|control| of_project.starts_with(control));
    }
    let by_key = ["/i", "/i/batch", "/track"].contains(&path) || method == "post" && path.starts_with("/v1/") && path != "/v1/m";
    by_key || path.starts_with("/privacy-requests")
}

#[actix_web::test]
async fn every_operation_is_answered_where_it_has_to_be() {
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
    let mut count = 0;
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
            assert_eq!(status == 299, travels(method, &path), "{method} {path}");
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}
