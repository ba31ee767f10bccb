//! Two servers that share the projects of an organization, and ask each other over HTTP.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::rt;
use headcount_actors::ingest::{Field, NewEvent};
use headcount_actors::{Common, Engine, EngineConfig};
use headcount_api::node::{ASK_PATH, NODE_TOKEN};
use headcount_api::node_client::NodeClient;
use headcount_common::{Owners, partition_of};
use headcount_control::NewProject;
use headcount_domain::ProjectId;

use crate::http::tests::nodes::copy;
use crate::server::{HttpConfig, RunningServer, Server};

const FOREVER: Duration = Duration::from_secs(1 << 30);

fn config(dir: &Path) -> EngineConfig {
    EngineConfig { shards: 1, min_free_bytes: 0, ..EngineConfig::new(dir) }
}

/// Starts a server that owns some of the projects.
fn start(dir: &Path, here: &[ProjectId]) -> (Engine, RunningServer) {
    let owners = Owners::unknown();
    owners.live(FOREVER);
    here.iter().for_each(|project| owners.hold(partition_of(*project), FOREVER));
    let config = EngineConfig { ask_node: Some(Arc::new(NodeClient::default())), ..config(dir) };
    let common = Common { owners: Arc::new(owners), ..Common::local(&config).unwrap() };
    let engine = Engine::open_on(config, common).unwrap();
    let server = Server::start(engine.clone(), HttpConfig { workers: 1, ..HttpConfig::new("127.0.0.1:0") }).unwrap();
    (engine, server)
}

/// What a server answers: the status, the entity tag and the body.
type Answered = (u16, String, String);

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).build().into()
}

fn answered(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answered {
    let mut response = response.unwrap();
    let tag = response.headers().get("etag").map(|tag| tag.to_str().unwrap().to_owned());
    (response.status().as_u16(), tag.unwrap_or_default(), response.body_mut().read_to_string().unwrap())
}

fn get(url: &str, path: &str, token: &str, known: &str) -> Answered {
    let request = agent().get(format!("{url}{path}")).header("authorization", format!("Bearer {token}"));
    answered(request.header("if-none-match", known).call())
}

fn post(url: &str, path: &str, token: &str) -> Answered {
    answered(agent().post(format!("{url}{path}")).header(NODE_TOKEN.as_str(), token).send(&b"\x01\x00\x01"[..]))
}

fn without_id((status, _, body): Answered) -> (u16, String) {
    let mut body: serde_json::Value = serde_json::from_str(&body).unwrap();
    body["error"]["request_id"] = "".into();
    (status, body.to_string())
}

#[test]
fn two_servers_answer_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("first");
    let engine = Engine::open(config(&first)).unwrap();
    let now = engine.clock().now();
    let keys = engine.registry().initialize(now).unwrap();
    let mut projects = vec![keys.project_id];
    while projects.len() < 2 {
        let new = NewProject { name: "p".into(), ..NewProject::default() };
        let project = engine.registry().create_project(keys.organization_id, new, now).unwrap().id;
        if partition_of(project) != partition_of(projects[0]) {
            projects.push(project);
        }
    }
    rt::System::new().block_on(engine.close());
    let second = dir.path().join("second");
    copy(&first, &second);

    let ((a, server_a), (b, server_b)) = (start(&first, &projects[..1]), start(&second, &projects[1..]));
    let (url_a, url_b) = (server_a.url(), server_b.url());
    for project in engine_projects(&a, &keys) {
        let is_of_a = a.owners().is_here(partition_of(project));
        let is_of_b = b.owners().is_here(partition_of(project));
        if !is_of_a {
            a.owners().note_elsewhere(partition_of(project), Some(url_b.as_str().into()));
        }
        if !is_of_b {
            b.owners().note_elsewhere(partition_of(project), Some(url_a.as_str().into()));
        }
        if !is_of_a && !is_of_b {
            b.owners().hold(partition_of(project), FOREVER);
        }
    }
    let event = |name: &str| NewEvent::new(name).user("ada").with(Field::GroupType, "company").with(Field::GroupId, "acme.com");
    rt::System::new().block_on(async {
        a.track(projects[0], &event("one")).await.unwrap();
        b.track(projects[1], &event("two")).await.unwrap();
    });
    let token = keys.api_token.expose();
    for path in ["/companies/top?range_days=7", "/identities/top?range_days=7", "/identities/profile?user_id=ada"] {
        let (status, tag, body) = get(&url_a, path, token, "");
        assert_eq!((status, body.contains(r#""events":2"#)), (200, true), "{body}");
        assert_eq!(get(&url_b, path, token, ""), (200, tag.clone(), body), "{path}");
        assert_eq!(get(&url_b, path, token, &tag).0, 304, "{path}");
    }
    assert_only_nodes_may_ask(&a, &url_a);
    rt::System::new().block_on(server_b.stop()).unwrap();
    let began = Instant::now();
    assert_eq!(get(&url_a, "/companies/top?range_days=7", token, "").0, 503);
    assert!(began.elapsed() < Duration::from_secs(10));
    rt::System::new().block_on(async {
        server_a.stop().await.unwrap();
        a.close().await;
        b.close().await;
    });
}

/// For all others, nothing is there, as at any path that does not exist.
fn assert_only_nodes_may_ask(engine: &Engine, url: &str) {
    let token = engine.node_token().expose().to_owned();
    let unknown = without_id(post(url, "/nothing/there", &token));
    assert_eq!(unknown.0, 404);
    for wrong in ["", "x", &token[1..], &token.to_uppercase()] {
        assert_eq!(without_id(post(url, ASK_PATH, wrong)), unknown, "{wrong}");
    }
    assert_eq!(without_id(get(url, ASK_PATH, &token, "")), unknown);
    let (status, _, why) = post(url, ASK_PATH, &token);
    assert_eq!((status, why.starts_with("other_version ")), (409, true), "{why}");
}

fn engine_projects(engine: &Engine, keys: &headcount_control::Initial) -> Vec<ProjectId> {
    engine.registry().projects(keys.organization_id).unwrap().iter().map(|project| project.id).collect()
}
