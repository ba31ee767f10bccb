//! Two servers that share the projects of an organization, and ask each other over HTTP.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::rt;
use headcount_actors::ingest::{Field, NewEvent};
use headcount_actors::{Common, Engine, EngineConfig};
use headcount_api::node::{ASK_PATH, NODE_TOKEN};
use headcount_api::node_client::NodeClient;
use headcount_common::nodes::{AskNode as _, AskNodeError, NodeCall};
use headcount_common::{Owners, partition_of};
use headcount_control::NewProject;
use headcount_domain::{OrganizationId, ProjectId};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::http::tests::nodes::copy;
use crate::server::{HttpConfig, NodeListener, NodeTls, RunningServer, Server};

const FOREVER: Duration = Duration::from_secs(1 << 30);

fn config(dir: &Path) -> EngineConfig {
    EngineConfig { shards: 1, min_free_bytes: 0, ..EngineConfig::new(dir) }
}

/// Starts a server that owns some of the projects.
fn start(dir: &Path, here: &[ProjectId], tls: Option<&NodeTls>) -> (Engine, RunningServer) {
    let owners = Owners::unknown();
    owners.live(FOREVER);
    here.iter().for_each(|project| owners.hold(partition_of(*project), FOREVER));
    let config = EngineConfig { ask_node: Some(Arc::new(NodeClient::new(tls))), ..config(dir) };
    let common = Common { owners: Arc::new(owners), ..Common::local(&config).unwrap() };
    let engine = Engine::open_on(config, common).unwrap();
    let nodes = tls.map(|tls| NodeListener { listen: "127.0.0.1:0".into(), tls: tls.clone() });
    let config = HttpConfig { workers: 1, nodes, ..HttpConfig::new("127.0.0.1:0") };
    let server = Server::start(engine.clone(), config).unwrap();
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
    assert_servers_answer_as_one(None);
}

#[test]
fn two_servers_answer_as_one_by_tls() {
    let authority = Authority::new();
    let server = assert_servers_answer_as_one(Some(&authority.node("127.0.0.1")));
    assert!(server.starts_with("https://"), "{server}");
}

#[test]
fn a_node_trusts_only_certificates_of_its_authority_and_for_the_address() {
    let (ours, dir) = (Authority::new(), tempfile::tempdir().unwrap());
    Engine::open(config(dir.path())).unwrap();
    let (engine, server) = start(dir.path(), &[], Some(&ours.node("127.0.0.1")));
    let url = server.node_url().unwrap();
    let ask = |tls: Option<&NodeTls>, address: &str| {
        let client = NodeClient::new(tls);
        let (organization, within) = (OrganizationId(1), Duration::from_secs(5));
        let token = engine.node_token().expose().to_owned();
        let call = NodeCall { address: address.into(), token, organization, request: vec![1, 0, 1], within };
        rt::System::new().block_on(client.ask(call)).unwrap_err()
    };
    let is_answered = |error: AskNodeError| matches!(error, AskNodeError::OtherVersion(_));
    assert!(is_answered(ask(Some(&ours.node("127.0.0.1")), &url)));
    assert!(is_answered(ask(None, &server.url())));
    // Another authority, a name that is not in the certificate, and no TLS.
    assert!(!is_answered(ask(Some(&Authority::new().node("127.0.0.1")), &url)));
    assert!(!is_answered(ask(Some(&ours.node("127.0.0.1")), &url.replace("127.0.0.1", "localhost"))));
    assert!(!is_answered(ask(None, &url.replace("https://", "http://"))));
    rt::System::new().block_on(async {
        server.stop().await.unwrap();
        engine.close().await;
    });
}

/// Asks two servers about an organization that has a project on each. Returns the address of one
/// for the other.
fn assert_servers_answer_as_one(tls: Option<&NodeTls>) -> String {
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

    let ((a, server_a), (b, server_b)) = (start(&first, &projects[..1], tls), start(&second, &projects[1..], tls));
    let (url_a, url_b) = (server_a.url(), server_b.url());
    let (node_a, node_b) = (server_a.node_url().unwrap(), server_b.node_url().unwrap());
    for project in engine_projects(&a, &keys) {
        let is_of_a = a.owners().is_here(partition_of(project));
        let is_of_b = b.owners().is_here(partition_of(project));
        if !is_of_a {
            a.owners().note_elsewhere(partition_of(project), Some(node_b.as_str().into()));
        }
        if !is_of_b {
            b.owners().note_elsewhere(partition_of(project), Some(node_a.as_str().into()));
        }
        if !is_of_a && !is_of_b {
            b.owners().hold(partition_of(project), FOREVER);
        }
    }
    let event = |name: &str| NewEvent::new(name).user("ada").with(Field::GroupType, "company").with(Field::GroupId, "acme.com");
    rt::System::new().block_on(async {
        a.track(projects[0], &event("one")).await.unwrap();
    });
    // The first server sends it to the second one.
    let of_b =
        b.registry().projects(keys.organization_id).unwrap().into_iter().find(|project| project.id == projects[1]).unwrap();
    let key = &of_b.public_keys[0];
    let event = r#"{"name":"two","user_id":"ada","group_type":"company","group_id":"acme.com"}"#;
    let sent =
        agent().post(format!("{url_a}/i")).header("x-service-pk", key).content_type("application/json").send(event).unwrap();
    assert_eq!(sent.status().as_u16(), 202);
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
    node_b
}

/// An authority that signs the certificates of nodes.
struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self { certificate: params.self_signed(&key).unwrap(), issuer: Issuer::new(params, key) }
    }

    /// The files of a node at `name`.
    fn node(&self, name: &str) -> NodeTls {
        let dir = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        for (file, content) in
            [("tls.crt", certificate.pem()), ("tls.key", key.serialize_pem()), ("ca.crt", self.certificate.pem())]
        {
            std::fs::write(dir.path().join(file), content).unwrap();
        }
        NodeTls::read(dir.path()).unwrap()
    }
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
