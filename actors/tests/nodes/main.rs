//! Questions about an organization whose projects are on two nodes: each answers like a node that
//! has all of them.
//!
//! `HEADCOUNT_NODE_TRIALS` sets the number of histories.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod backups;
#[path = "../support/copies.rs"]
mod copies;
mod erasures;
mod exports;
mod refusals;
mod rig;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use headcount_actors::Engine;
use headcount_actors::domain::ids::OrganizationId;
use headcount_actors::domain::queries::{self, CountOf, IdentityOrder, IdentitySelector};
use headcount_actors::domain::time::{Instant, Timezone, Window};
use headcount_histories::{History, Rng, Size, Step};
use headcount_model::Json;

use crate::rig::{NOW_MS, Rig};

const TRIALS: u64 = 6;

/// The names in a history.
#[derive(Debug, Default)]
struct Names {
    users: BTreeSet<String>,
    emails: BTreeSet<String>,
    groups: BTreeSet<(String, String)>,
}

impl Names {
    fn add(&mut self, body: &str) {
        let Ok(body) = Json::parse(body) else { return };
        let text = |name: &str| body.field(name).text().map(str::to_owned);
        self.users.extend(text("user_id"));
        self.emails.extend(text("email"));
        self.groups.extend(text("group_type").zip(text("group_id")));
    }

    fn identities(&self) -> impl Iterator<Item = IdentitySelector> {
        let users = self.users.iter().cloned().map(IdentitySelector::User);
        users.chain(self.emails.iter().cloned().map(IdentitySelector::Email))
    }
}

/// Every answer about an organization.
async fn answers(engine: &Engine, organization: OrganizationId, names: &Names, window: Window, limit: usize) -> Vec<String> {
    let projects = engine.organization(organization);
    let mut answers = vec![format!("complete from {:?}", engine.complete_from(organization, window).await)];
    for who in names.identities() {
        answers.push(format!("{who:?} {:?}", queries::profile(&projects, &who, window).await));
        for of in [CountOf::Pages, CountOf::Referrers] {
            answers.push(format!("{who:?} {of:?} {:?}", queries::counts(&projects, &who, of, window, limit).await));
        }
    }
    for order in [IdentityOrder::Events, IdentityOrder::Revenue, IdentityOrder::LastSeen] {
        answers.push(format!("{order:?} {:?}", engine.scans.top_identities(organization, window, order, limit).await));
    }
    let top = queries::top_companies(&projects, window, limit).await;
    answers.push(format!("companies {top:?}"));
    let companies = queries::top_companies(&projects, window, 500).await.map_or(Vec::new(), |top| top.rows);
    for company in companies {
        let id = &company.company_id;
        answers.push(format!("{id} {:?}", queries::company_by_id(&projects, id, window).await));
        answers.push(format!("{id} users {:?}", queries::company_top_users(&projects, id, window, limit).await));
        if let Some(domain) = &company.domain {
            answers.push(format!("{domain} {:?}", queries::company_by_domain(&projects, domain, window).await));
        }
    }
    let kinds: BTreeSet<&String> = names.groups.iter().map(|(kind, _)| kind).collect();
    for kind in kinds {
        answers.push(format!("{kind} {:?}", queries::top_groups(&projects, kind, window, limit).await));
    }
    for (kind, key) in &names.groups {
        answers.push(format!("{kind} {key} {:?}", queries::group_metrics(&projects, kind, key, window).await));
    }
    answers
}

fn windows(timezone: Timezone) -> [Window; 3] {
    [7, 90, 365].map(|days| Window::last_days(days, timezone, Instant(NOW_MS)))
}

/// Compares all answers of both nodes with those of the node with everything. Returns their number.
async fn compare(rig: &Rig, names: &Names, rng: &mut Rng, of: &str) -> usize {
    let mut compared = 0;
    for window in windows(rig.timezone) {
        let limit = 1 + rng.below(12);
        let expected = answers(&rig.single, rig.organization, names, window, limit).await;
        for (name, node) in [("a", &rig.a), ("b", &rig.b)] {
            // Sometimes the first answers are too large for one message.
            rig.wire.too_large.store(rng.below(3) / 2, Ordering::SeqCst);
            let got = answers(node, rig.organization, names, window, limit).await;
            for (expected, got) in expected.iter().zip(&got) {
                assert_eq!(expected, got, "{of}: node {name}, {window:?}, {limit} rows");
            }
            assert_eq!(expected.len(), got.len(), "{of}");
        }
        compared += expected.iter().filter(|answer| !answer.contains("Ok(None)")).count();
    }
    compared
}

/// Versions change on every node exactly when they change on a node with all projects.
async fn send_and_compare_versions(rig: &Rig, rng: &mut Rng, body: &str, of: &str) {
    let nodes = [&rig.single, &rig.a, &rig.b];
    let mut before = Vec::new();
    for node in nodes {
        before.push(node.organization_version(rig.organization).await.unwrap());
    }
    rig.send(*rng.pick(&rig.projects), body).await;
    let mut after = Vec::new();
    for node in nodes {
        after.push(node.organization_version(rig.organization).await.unwrap());
    }
    let changed: Vec<bool> = before.iter().zip(&after).map(|(before, after)| before != after).collect();
    assert!(changed.iter().all(|node| *node == changed[0]), "{of}: {changed:?} by {body}");
    assert_eq!(after[1], after[2], "{of}: a tag of one node is known to the other");
}

async fn trial(seed: u64) -> usize {
    let history = History::from_seed(seed, NOW_MS, Size { events: 100, questions: 0 });
    let (rig, mut rng, mut names) = (Rig::new(&history).await, Rng::new(seed), Names::default());
    for step in &history.steps {
        let bodies = match step {
            Step::Track { body, .. } => vec![body],
            Step::Batch { bodies, .. } => bodies.iter().collect(),
            Step::Rates(table) => {
                rig.set_rates(table);
                continue;
            }
            Step::Settings { .. } | Step::Restart | Step::Floor { .. } | Step::Clock { .. } | Step::Ask(_) => continue,
        };
        for body in bodies {
            names.add(body);
            send_and_compare_versions(&rig, &mut rng, body, &format!("seed {seed}")).await;
        }
    }
    let mut compared = compare(&rig, &names, &mut rng, &format!("seed {seed}")).await;
    for days in [200, 60] {
        rig.retain(*rng.pick(&rig.projects), days).await;
    }
    compared += compare(&rig, &names, &mut rng, &format!("seed {seed}, with floors")).await;
    rig.close().await;
    compared
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_answer_as_one() {
    let trials = std::env::var("HEADCOUNT_NODE_TRIALS").ok().and_then(|number| number.parse().ok()).unwrap_or(TRIALS);
    let mut compared = 0;
    for seed in 23_000..23_000 + trials {
        compared += trial(seed).await;
    }
    println!("{compared} answers of two nodes compared with those of one");
    assert!(compared as u64 > trials * 50, "{compared}");
}
