//! Webhooks: the owner of a project sends its notifications, and each arrives at least once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_actors::EngineConfig;
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::time::Instant as Moment;
use headcount_actors::ingest::{Field, NewEvent};
use headcount_common::{PARTITIONS, partition_of};
use headcount_control::{RegistryError, WebhookId};
use headcount_webhooks::{
    DeliveryQuery, NewWebhook, SignedRequest, Webhook, WebhookPatch, WebhookQuery, WebhookSettings, WebhookStatus, Webhooks,
    install,
};
use hmac::{Hmac, Mac};
use parking_lot::Mutex;
use serde_json::Value;
use sha2::Sha256;

use crate::lost::{lose_events, wait_until_served};
use crate::node::{Cluster, ClusterNode, wait_until};

const NOW: Moment = Moment(1_700_000_000_000);

/// A slow receiver of all nodes.
#[derive(Default)]
struct Receiver {
    /// The id and message of each request, in order.
    got: Mutex<Vec<(String, usize)>>,
    /// The signing secrets.
    secrets: Mutex<Vec<String>>,
}

fn is_signed(secret: &str, request: &SignedRequest) -> bool {
    let (time, signatures) = request.signature.split_once(',').unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{}.", time.strip_prefix("t=").unwrap()).as_bytes());
    mac.update(&request.body);
    let expected: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    signatures.split(',').any(|signature| signature.strip_prefix("v1=") == Some(&expected))
}

impl Receiver {
    /// The configuration of a node that sends to it.
    fn configure(self: &Arc<Self>) -> impl Fn(&mut EngineConfig) + use<> {
        let receiver = Arc::clone(self);
        move |config| {
            let receiver = Arc::clone(&receiver);
            let settings =
                WebhookSettings::new(Arc::new(|url| Ok(url.to_owned())), Arc::new(move |request| receiver.take(request)));
            config.features = vec![install(WebhookSettings { waits: vec![Duration::from_millis(50)], ..settings })];
        }
    }

    fn take(&self, request: &SignedRequest) -> Result<u16, &'static str> {
        std::thread::sleep(Duration::from_millis(5));
        if !self.secrets.lock().iter().any(|secret| is_signed(secret, request)) {
            return Ok(401);
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let message = body["data"]["message"].as_str().unwrap().parse().unwrap();
        self.got.lock().push((body["id"].as_str().unwrap().to_owned(), message));
        Ok(200)
    }
}

/// Runs work at a project's current owner, retrying until it is done.
fn at_owner<R>(nodes: &[ClusterNode], project: ProjectId, work: impl Fn(&ClusterNode) -> Option<R>) -> R {
    let began = Instant::now();
    loop {
        let owner = nodes.iter().find(|node| node.engine.owners().is_here(partition_of(project)));
        if let Some(done) = owner.and_then(&work) {
            return done;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no owner does it");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn notify(nodes: &[ClusterNode], project: ProjectId, messages: std::ops::Range<usize>) {
    for message in messages {
        let event = NewEvent::new("sale").notify().with(Field::Message, message.to_string());
        let event = event.external_id(format!("n{message}"));
        at_owner(nodes, project, |node| node.block_on(node.engine.track(project, &event)).ok());
    }
}

fn of(node: &ClusterNode) -> Arc<Webhooks> {
    node.engine.feature().unwrap()
}

fn webhooks(node: &ClusterNode) -> Vec<Webhook> {
    let organization = node.engine.registry().organizations()[0].id;
    of(node).page(organization, &WebhookQuery { limit: 100, starting_after: None }).unwrap().webhooks
}

fn delivered(node: &ClusterNode, id: &WebhookId) -> Option<usize> {
    let organization = node.engine.registry().organizations()[0].id;
    let query = DeliveryQuery { limit: 1000, ..DeliveryQuery::default() };
    of(node).deliveries(organization, id, &query).ok().map(|page| page.deliveries.len())
}

/// Checks that each notification has one id, and that they came in order, except repetitions.
/// Returns the ids.
fn check_order(receiver: &Receiver) -> BTreeMap<usize, String> {
    let got = receiver.got.lock().clone();
    assert!(got.iter().all(|(_, message)| *message < 1000), "what was before is not sent");
    // Each has one id, and they come in order, except repetitions.
    let mut ids = BTreeMap::new();
    got.iter().for_each(|(id, message)| assert_eq!(ids.entry(*message).or_insert_with(|| id.clone()), id));
    let mut first: Vec<usize> = Vec::new();
    got.iter().for_each(|(_, message)| {
        if !first.contains(message) {
            first.push(*message)
        }
    });
    assert!(first.is_sorted(), "{first:?}");
    let others: usize = got.len() - first.len();
    println!("{} notifications, {others} repeated", first.len());
    ids
}

#[test]
fn each_notification_comes_at_least_once_whoever_has_the_project() {
    let Some(cluster) = Cluster::start() else { return };
    let receiver = Arc::<Receiver>::default();
    let join = |name: &str| cluster.join_with(name, receiver.configure());
    let mut nodes: Vec<ClusterNode> = ["a", "b", "c"].map(join).into();
    wait_until("all are served", || nodes.iter().map(ClusterNode::serves).sum::<usize>() == usize::from(PARTITIONS));
    let project = cluster.projects[0];
    let organization = nodes[0].engine.registry().organizations()[0].id;
    // Earlier notifications are not sent.
    notify(&nodes, project, 1000..1003);
    let new = || NewWebhook { project, url: "https://receiver.example/".to_owned(), events: None };
    let elsewhere = nodes.iter().find(|node| !node.engine.owners().is_here(partition_of(project))).unwrap();
    let refused = of(elsewhere).create(organization, new(), NOW);
    assert!(matches!(refused, Err(RegistryError::Storage(_))), "only the owner knows where it begins");
    let (webhook, secret) = at_owner(&nodes, project, |node| of(node).create(organization, new(), NOW).ok());
    receiver.secrets.lock().push(secret.expose().to_owned());
    assert!(nodes.iter().all(|node| webhooks(node) == [webhook.clone()]));
    assert!(!cluster.brokers.have_on_disk(secret.expose()), "brokers can't sign");
    notify(&nodes, project, 0..100);
    // Its owner is killed while it sends.
    let owner = nodes.iter().position(|node| node.engine.owners().is_here(partition_of(project))).unwrap();
    let came = receiver.got.lock().len();
    nodes.remove(owner).kill();
    assert!(came < 100, "it sends while it is killed");
    notify(&nodes, project, 100..150);
    // Other nodes manage it meanwhile. Notifications during the pause are sent afterwards, with the
    // new secret, too.
    let pause = |node: &ClusterNode, status| {
        let patch = WebhookPatch { status: Some(status), ..WebhookPatch::default() };
        of(node).change(organization, &webhook.id, patch, NOW).unwrap();
    };
    pause(&nodes[0], WebhookStatus::Paused);
    notify(&nodes, project, 150..160);
    let rotation = of(&nodes[1]).rotate_secret(organization, &webhook.id, NOW).unwrap();
    *receiver.secrets.lock() = vec![rotation.secret.expose().to_owned()];
    pause(&nodes[1], WebhookStatus::Active);
    notify(&nodes, project, 160..170);
    let all = |up_to: usize| {
        let got = receiver.got.lock();
        (0..up_to).all(|message| got.iter().any(|(_, found)| *found == message))
    };
    wait_until("all came", || all(170));
    // After a proper stop, hardly any is repeated: the next owner continues from the progress.
    let owner = nodes.iter().position(|node| node.engine.owners().is_here(partition_of(project))).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let before = receiver.got.lock().len();
    nodes.remove(owner).stop();
    notify(&nodes, project, 170..200);
    wait_until("all came", || all(200));
    let last = receiver.got.lock()[before..].to_vec();
    assert!(last.iter().all(|(_, message)| *message >= 165), "{last:?}");
    let ids = check_order(&receiver);
    // The list of deliveries has followed the project.
    assert!(delivered(&nodes[0], &webhook.id).unwrap() >= 199, "{:?}", delivered(&nodes[0], &webhook.id));
    // A replay sends all again, with the same ids.
    receiver.got.lock().clear();
    let replayed = of(&nodes[0]).replay(organization, &webhook.id, 0, NOW).unwrap();
    assert!(replayed.from > 1 && replayed.to > replayed.from, "{replayed:?}");
    wait_until("all came again", || all(200));
    assert!(receiver.got.lock().iter().all(|(id, message)| ids[message] == *id));
    of(&nodes[0]).remove(organization, &webhook.id, NOW).unwrap();
    assert!(webhooks(&nodes[0]).is_empty());
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn a_webhook_is_notified_of_events_that_have_positions_of_lost_ones() {
    let Some(mut cluster) = Cluster::start() else { return };
    let receiver = Arc::<Receiver>::default();
    let configure = || receiver.configure();
    let came = |messages: std::ops::Range<usize>| {
        let got = receiver.got.lock();
        messages.into_iter().all(|message| got.iter().any(|(_, found)| *found == message))
    };
    let project = cluster.projects[0];
    let nodes = [cluster.join_with("a", configure())];
    wait_until_served(&nodes[0]);
    let organization = nodes[0].engine.registry().organizations()[0].id;
    let new = NewWebhook { project, url: "https://receiver.example/".to_owned(), events: None };
    let (_, secret) = of(&nodes[0]).create(organization, new, NOW).unwrap();
    receiver.secrets.lock().push(secret.expose().to_owned());
    notify(&nodes, project, 0..3);
    wait_until("all came", || came(0..3));
    let [node] = nodes;
    let dir = node.leave();
    let earlier = cluster.restart_brokers_after(|brokers| brokers.copy(0));
    let nodes = [cluster.rejoin("a", dir, configure())];
    wait_until_served(&nodes[0]);
    notify(&nodes, project, 3..20);
    wait_until("all came", || came(3..20));
    nodes.into_iter().for_each(ClusterNode::stop);
    lose_events(&mut cluster, &earlier);
    // Fewer than were lost.
    let nodes = [cluster.join_with("b", configure())];
    wait_until_served(&nodes[0]);
    notify(&nodes, project, 20..30);
    wait_until("all came", || came(20..30));
    nodes.into_iter().for_each(ClusterNode::stop);
}
