//! Company profiles, which all nodes have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headcount_actors::EngineConfig;
use headcount_actors::domain::ids::OrganizationId;
use headcount_actors::domain::time::Instant as Moment;
use headcount_control::{ActionsQuery, CompanyProfileId, OrganizationPatch, RegistryError};
use headcount_profiles::{
    BuildRequest, BuildSettings, CompanyProfile, NewCompanyProfile, ProfileFields, ProfilePatch, ProfileQuery, Profiles,
    SiteFindings, install,
};
use parking_lot::Mutex;

use crate::node::{Cluster, ClusterNode, wait_until};

const NOW: Moment = Moment(1_700_000_000_000);

fn organization(node: &ClusterNode) -> OrganizationId {
    node.engine.registry().organizations()[0].id
}

fn patch(website: &str, description: &str) -> ProfilePatch {
    let (website, description) = (Some(website.to_owned()), Some(description.to_owned()));
    ProfilePatch { website, description, ..ProfilePatch::default() }
}

fn of(node: &ClusterNode) -> Arc<Profiles> {
    node.engine.feature().unwrap()
}

/// The configuration of a node that reads no websites.
fn without_builds(config: &mut EngineConfig) {
    config.features = vec![install(BuildSettings::new(Arc::new(|_| SiteFindings::default())))];
}

fn create(node: &ClusterNode, website: &str) -> Result<CompanyProfile, RegistryError> {
    of(node).store().create(organization(node), NewCompanyProfile(patch(website, "first text")), NOW)
}

fn get(node: &ClusterNode, id: &CompanyProfileId) -> Option<CompanyProfile> {
    of(node).store().get(organization(node), id).ok()
}

fn all(node: &ClusterNode) -> Vec<CompanyProfile> {
    let query = ProfileQuery { limit: 1000, starting_after: None };
    of(node).store().page(organization(node), &query).unwrap().profiles
}

#[test]
fn a_change_that_was_answered_is_known_to_all_nodes() {
    let Some(cluster) = Cluster::start() else { return };
    let mut nodes: Vec<ClusterNode> = ["a", "b", "c"].map(|name| cluster.join_with(name, without_builds)).into();
    let organization = organization(&nodes[0]);
    for round in 0..12 {
        let (one, other) = (&nodes[round % 3], &nodes[(round + 1) % 3]);
        let made = create(one, &format!("https://w{round}.example")).unwrap();
        assert_eq!(get(other, &made.id).as_ref(), Some(&made), "at once");
        let (secret, website) = (format!("former text {round}"), format!("https://w{round}.example"));
        // The audit log has short texts, and the sizes of long ones.
        let long = format!("{} {secret}", "word ".repeat(200));
        let changed = of(other).store().change(organization, &made.id, &patch(&website, &long), NOW).unwrap();
        assert!(cluster.brokers.have_on_disk(&secret));
        assert!(nodes.iter().all(|node| get(node, &made.id).as_ref() == Some(&changed)));
        match round % 2 {
            0 => of(one).store().remove(organization, &made.id, NOW).unwrap(),
            _ => drop(of(one).store().change(organization, &made.id, &patch(&website, "kept text"), NOW).unwrap()),
        }
        assert!(nodes.iter().all(|node| get(node, &made.id).is_some() == (round % 2 == 1)));
        assert!(!cluster.brokers.have_on_disk(&secret), "nothing is left of what it was");
    }
    assert!(cluster.brokers.have_on_disk("kept text"));
    let expected = all(&nodes[0]);
    assert_eq!(expected.len(), 6);
    // A node that joins later has all of them, and so does one that comes back after a kill.
    nodes.push(cluster.join_with("d", without_builds));
    assert!(nodes.iter().all(|node| all(node) == expected));
    nodes.remove(1).kill();
    create(&nodes[0], "https://later.example").unwrap();
    nodes.push(cluster.join_with("b", without_builds));
    let expected = all(&nodes[0]);
    assert_eq!(expected.len(), 7);
    assert!(nodes.iter().all(|node| all(node) == expected));
    nodes.into_iter().for_each(ClusterNode::stop);
}

/// Rules about several profiles hold, whichever nodes change them at once.
#[test]
fn nodes_that_make_changes_at_once_agree() {
    let Some(cluster) = Cluster::start() else { return };
    let nodes: Vec<ClusterNode> = ["a", "b", "c"].map(|name| cluster.join_with(name, without_builds)).into();
    let made = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (place, node) in nodes.iter().enumerate() {
            let made = &made;
            scope.spawn(move || {
                for round in 0..10 {
                    create(node, &format!("https://own{place}-{round}.example")).unwrap();
                    match create(node, &format!("https://common{round}.example")) {
                        Ok(profile) => made.lock().push(profile.website.unwrap().to_string()),
                        Err(RegistryError::Conflict { code, .. }) => assert_eq!(code, "website_taken"),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let mut made = made.into_inner();
    made.sort();
    made.dedup();
    assert_eq!(made.len(), 10, "each by one node");
    let expected = all(&nodes[0]);
    assert_eq!(expected.len(), 40);
    assert!(nodes.iter().all(|node| all(node) == expected));
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn a_build_of_a_node_that_is_gone_is_ended_by_another_one_and_paid_once() {
    let Some(cluster) = Cluster::start() else { return };
    let (read, is_held) = (Arc::<Mutex<Vec<_>>>::default(), Arc::new(AtomicBool::new(true)));
    let join = |node: &'static str| {
        let (read, is_held) = (Arc::clone(&read), Arc::clone(&is_held));
        let settings = BuildSettings::new(Arc::new(move |_| {
            read.lock().push(node);
            while is_held.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(10));
            }
            let fields = ProfileFields { name: Some("Acme".to_owned()), ..ProfileFields::default() };
            SiteFindings { fields, ..SiteFindings::default() }
        }));
        cluster.join_with(node, |config: &mut EngineConfig| config.features = vec![install(settings)])
    };
    let names = ["a", "b", "c"];
    let mut nodes: Vec<ClusterNode> = names.map(join).into();
    wait_until("all are served", || nodes.iter().map(ClusterNode::serves).sum::<usize>() == 64);
    let organization = organization(&nodes[0]);
    let balance = OrganizationPatch { actions_balance: Some(5), ..OrganizationPatch::default() };
    nodes[0].engine.registry().update_organization(organization, balance, NOW).unwrap();
    let profile = create(&nodes[1], "https://a.example").unwrap();
    let request = BuildRequest { website: "a.example".to_owned(), profile: None };
    let run = of(&nodes[2]).begin_build(organization, &request, NOW).unwrap();
    wait_until("its website is read", || !read.lock().is_empty());
    assert_eq!(of(&nodes[0]).begin_build(organization, &request, NOW).unwrap().id, run.id, "it is under way");
    let first = read.lock()[0];
    nodes.remove(names.iter().position(|name| *name == first).unwrap()).kill();
    wait_until("another one reads it", || read.lock().len() > 1);
    is_held.store(false, Ordering::SeqCst);
    wait_until("it has ended", || nodes.iter().all(|node| of(node).build(organization, &run.id).unwrap().run.outcome.is_some()));
    for node in &nodes {
        let ended = of(node).build(organization, &run.id).unwrap();
        assert_eq!(ended.run.outcome.unwrap().result.as_ref(), Ok(&profile.id));
        assert_eq!(ended.profile.unwrap().fields.name.as_deref(), Some("Acme"));
        let ledger = node.engine.registry().actions(organization, &ActionsQuery { limit: 10, starting_after: None }).unwrap();
        assert_eq!((ledger.balance, ledger.entries.len()), (4, 2));
    }
    assert!(read.lock().iter().skip(1).all(|node| *node != first), "{:?}", read.lock());
    nodes.into_iter().for_each(ClusterNode::stop);
}
