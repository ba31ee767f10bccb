//! Which operations travel to the owner of their project, or to the home of their organization.
//!
//! Below `/projects/{project_id}/` all do that are not listed here. Those with a public key do in `resources/events/ingest.rs`, where the key names the
//! project. `tests/forwarding_table.rs` has a line for every operation.

use actix_web::http::Method;

/// The operations of a project that every node answers from the control data.
const OF_CONTROL_DATA: [&str; 5] = ["", "/keys", "/keys/{public_key}", "/shares", "/shares/{share_id}"];
/// Those that record events.
const RECORDING: [&str; 3] = ["/track", "/batch", "/import"];

/// What the paths of a project begin with.
const PROJECT: &str = "/projects/{project_id}";

/// What the paths of a webhook begin with.
const WEBHOOK: &str = "/webhooks/{webhook_id}";

/// What the paths of privacy requests begin with.
const PRIVACY_REQUESTS: &str = "/privacy-requests";

/// What an operation that travels does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Travel {
    /// It records something: what was sent and not answered may be recorded.
    Records,
    /// It reads.
    Reads,
    /// It reads, and the answer takes as long as the client reads.
    ReadsForLong,
    /// The same, and the answer has no end: it says what is new.
    Follows,
}

impl Travel {
    /// Whether it reads.
    pub(crate) fn reads(self) -> bool {
        self != Self::Records
    }
}

/// Where the requests of an endpoint are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    /// By the node that they reach.
    Here,
    /// By the owner of the project in the path.
    ProjectOwner(Travel),
    /// By the owner of the project of the webhook in the path.
    WebhookOwner(Travel),
    /// By the home of the caller's organization.
    Home(Travel),
}

impl Destination {
    /// That of an operation.
    pub(crate) fn of(method: &Method, path: &str) -> Self {
        let project = path.strip_prefix(PROJECT).and_then(of_project).map(Self::ProjectOwner);
        let webhook = of_webhook(path).map(Self::WebhookOwner);
        let organization = of_organization(method, path).map(Self::Home);
        project.or(webhook).or(organization).unwrap_or(Self::Here)
    }

    /// What an operation does that travels.
    pub(crate) fn travel(self) -> Option<Travel> {
        match self {
            Self::Here => None,
            Self::ProjectOwner(travel) | Self::WebhookOwner(travel) | Self::Home(travel) => Some(travel),
        }
    }
}

/// Returns what an operation below the path of a project does, by the rest of its path. `None`: it does not travel.
fn of_project(rest: &str) -> Option<Travel> {
    match rest {
        _ if OF_CONTROL_DATA.contains(&rest) => None,
        _ if RECORDING.contains(&rest) => Some(Travel::Records),
        "/export" => Some(Travel::ReadsForLong),
        "/live" => Some(Travel::Follows),
        _ => Some(Travel::Reads),
    }
}

/// Returns what an operation of a webhook does that travels to the owner of the webhook's project. `None`: it does not travel.
fn of_webhook(path: &str) -> Option<Travel> {
    match path.strip_prefix(WEBHOOK)? {
        "/deliveries" => Some(Travel::Reads),
        "/replay" => Some(Travel::Records),
        _ => None,
    }
}

/// Returns what an operation does that travels to the home of its organization. `None`: it does not travel.
fn of_organization(method: &Method, path: &str) -> Option<Travel> {
    match path.strip_prefix(PRIVACY_REQUESTS)? {
        "" if method == Method::POST => Some(Travel::Records),
        "" | "/{request_id}" => Some(Travel::Reads),
        "/{request_id}/download" => Some(Travel::ReadsForLong),
        _ => None,
    }
}
