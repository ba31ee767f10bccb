//! Privacy requests: one node works on an organization's requests, and the next one continues.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_actors::domain::ids::OrganizationId;
use headcount_actors::engine::ErasureError;
use headcount_actors::ingest::NewEvent;
use headcount_actors::{Engine, EngineConfig};
use headcount_common::nodes::{AskNode, AskNodeError, NodeAnswer, NodeCall};
use headcount_common::{PARTITIONS, home_of};
use headcount_control::{PrivacyRequestId, RegistryError};
use headcount_privacy::{
    DownloadError, Privacy, PrivacyQuery, PrivacyRequest, PrivacyRequestKind, PrivacySettings, PrivacyStatus, PrivacySubject,
    install,
};
use parking_lot::Mutex;
use serde_json::Value;

use crate::node::{BASE_MS, Cluster, ClusterNode, NOW, record, wait_until};

/// The way from each node to the others, in one process.
#[derive(Default)]
struct Ways(Mutex<BTreeMap<String, Engine>>);

impl AskNode for Ways {
    fn ask(&self, call: NodeCall) -> NodeAnswer {
        let engine = self.0.lock().get(&*call.address).cloned();
        Box::pin(async move {
            let engine = engine.ok_or_else(|| AskNodeError::Unreachable("it is gone".to_owned()))?;
            engine.answer_remote(&call.request).await
        })
    }
}

/// Starts a node that the others can ask.
fn join(cluster: &Cluster, ways: &Arc<Ways>, name: &str) -> ClusterNode {
    let asks = Arc::clone(ways) as Arc<dyn AskNode>;
    let node = cluster.join_with(name, |config: &mut EngineConfig| {
        config.ask_node = Some(asks);
        let settings = PrivacySettings { export_pauses: [Duration::from_millis(100); 4], ..PrivacySettings::default() };
        config.features = vec![install(settings)];
    });
    ways.0.lock().insert(format!("http://{name}"), node.engine.clone());
    node
}

fn privacy(engine: &Engine) -> Arc<Privacy> {
    engine.feature().unwrap()
}

fn organization(node: &ClusterNode) -> OrganizationId {
    node.engine.registry().organizations()[0].id
}

/// The index of the node that works on the requests.
fn home(nodes: &[ClusterNode]) -> Option<usize> {
    nodes.iter().position(|node| privacy(&node.engine).is_home(organization(node)))
}

fn made(node: &ClusterNode, user: &str) -> Result<Arc<PrivacyRequest>, ErasureError> {
    let (engine, organization, subject) = (node.engine.clone(), organization(node), PrivacySubject::UserId(user.to_owned()));
    let make = move || privacy(&engine).make(organization, PrivacyRequestKind::Export, subject, NOW);
    node.block_on(async { tokio::task::spawn_blocking(make).await.unwrap() })
}

/// Returns a new export, made by the home.
fn exported(nodes: &[ClusterNode], user: &str) -> PrivacyRequestId {
    let began = Instant::now();
    loop {
        match home(nodes).map(|home| made(&nodes[home], user)) {
            Some(Ok(request)) => return request.id.clone(),
            Some(Err(ErasureError::Unavailable(_) | ErasureError::Registry(RegistryError::Storage(_)))) | None => {}
            other => panic!("{other:?}"),
        }
        assert!(began.elapsed() < Duration::from_secs(60), "nobody makes the request");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn shown(nodes: &[ClusterNode], id: &PrivacyRequestId) -> Option<Arc<PrivacyRequest>> {
    let node = &nodes[home(nodes)?];
    privacy(&node.engine).get(organization(node), id).ok()
}

/// The artifact of a completed request; `None` if it is not completed, or not here.
fn artifact(node: &ClusterNode, id: &PrivacyRequestId) -> Option<Value> {
    match privacy(&node.engine).open_export(organization(node), id) {
        Ok(found) => {
            let mut bytes = vec![0; usize::try_from(found.bytes).unwrap()];
            found.file.read_exact_at(&mut bytes, 0).unwrap();
            Some(serde_json::from_slice(&bytes).unwrap())
        }
        Err(DownloadError::Elsewhere | DownloadError::MadeAgain | DownloadError::NotReady) => None,
        Err(error) => panic!("{error}"),
    }
}

fn events(nodes: &[ClusterNode], id: &PrivacyRequestId) -> usize {
    let began = Instant::now();
    loop {
        let artifacts: Vec<Value> = nodes.iter().filter_map(|node| artifact(node, id)).collect();
        if let [artifact] = &artifacts[..] {
            return artifact["events"].as_array().unwrap().len();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{} nodes have it: {:?}", artifacts.len(), shown(nodes, id));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A visitor of each project who signs in as a user a moment later: the link is not saved yet.
fn sign_in(cluster: &Cluster, nodes: &[ClusterNode], user: &str) {
    for project in &cluster.projects {
        let visit = NewEvent::new("visit").anonymous("a").external_id("v").at_ms(BASE_MS);
        let login = NewEvent::new("login").anonymous("a").user(user).external_id("l").at_ms(BASE_MS + 1);
        for event in [visit, login] {
            let tracked = || {
                let owner = nodes.iter().find(|node| node.has(*project))?;
                owner.block_on(owner.engine.track(*project, &event)).ok()
            };
            wait_until("it is recorded", || tracked().is_some());
        }
    }
}

fn pieces(node: &ClusterNode) -> usize {
    std::fs::read_dir(node.engine.data_dir().join("exports")).unwrap().count()
}

/// The number of messages of privacy requests on the brokers.
fn messages(cluster: &Cluster, node: &ClusterNode) -> u64 {
    node.block_on(async {
        let context = async_nats::jetstream::new(async_nats::connect(cluster.addresses()).await.unwrap());
        context.get_stream("HC_DOC_PRIVACY").await.unwrap().get_info().await.unwrap().state.messages
    })
}

#[test]
fn an_export_is_the_business_of_its_home_and_of_the_next_one() {
    let Some(cluster) = Cluster::start() else { return };
    let ways = Arc::<Ways>::default();
    let mut nodes: Vec<ClusterNode> = ["a", "b", "c"].map(|name| join(&cluster, &ways, name)).into();
    wait_until("each has its part", || nodes.iter().all(|node| node.serves() >= 16));
    wait_until("all are served", || nodes.iter().map(ClusterNode::serves).sum::<usize>() == usize::from(PARTITIONS));
    record(&cluster, &nodes, (0, 6));
    sign_in(&cluster, &nodes, "u3");
    let first = exported(&nodes, "u3");
    assert_eq!(events(&nodes, &first), 3 * cluster.projects.len(), "an order, a visit and a sign-in of each project");
    let expires_at = shown(&nodes, &first).unwrap().expires_at();
    let at = home(&nodes).unwrap();
    assert!((0..3).all(|node| pieces(&nodes[node]) == usize::from(node == at)), "one node has the artifact");
    // The other nodes answer that they have nothing, and make nothing.
    for node in nodes.iter().filter(|node| !privacy(&node.engine).is_home(organization(node))) {
        let query = PrivacyQuery { limit: 10, ..PrivacyQuery::default() };
        assert!(matches!(privacy(&node.engine).page(organization(node), &query), Err(RegistryError::Storage(_))));
        assert!(matches!(made(node, "u3"), Err(ErasureError::Registry(RegistryError::Storage(_)))));
    }
    // It hands the organization over while another export is made.
    let second = exported(&nodes, "u4");
    let name = ["a", "b", "c"][at];
    let left = nodes.remove(at);
    let data = left.engine.data_dir().to_owned();
    ways.0.lock().remove(&format!("http://{name}"));
    let dir = left.leave();
    assert_eq!([events(&nodes, &first), events(&nodes, &second)], [3, 1].map(|each| each * cluster.projects.len()));
    assert_eq!(shown(&nodes, &first).unwrap().expires_at(), expires_at, "it is kept for no longer");
    assert!(home_of(organization(&nodes[0])) < PARTITIONS);
    // The former home has nothing left once it has come back, whatever it had.
    std::fs::write(data.join(format!("exports/{first}.json")), "of a former time").unwrap();
    let again = cluster.rejoin(name, dir, |config| config.features = vec![install(PrivacySettings::default())]);
    assert_eq!(pieces(&again), 0);
    again.stop();
    // A killed node leaves no earlier states of requests: each request is one message, and so is
    // the home.
    let at = home(&nodes).unwrap();
    let third = exported(&nodes, "u5");
    nodes.remove(at).kill();
    for (id, each) in [(&first, 3), (&second, 1), (&third, 1)] {
        assert_eq!(events(&nodes, id), each * cluster.projects.len());
        assert_eq!(shown(&nodes, id).unwrap().status, PrivacyStatus::Completed);
    }
    wait_until("nothing is left", || messages(&cluster, &nodes[0]) == 4);
    nodes.into_iter().for_each(ClusterNode::stop);
}
