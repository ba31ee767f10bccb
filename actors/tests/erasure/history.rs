//! Random histories with erasures, compared with data directories that never had the erased
//! identities.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use headcount_actors::domain::identity::IdentityId;
use headcount_actors::domain::time::Day;
use headcount_actors::engine::{ErasureError, ErasureSubject};
use headcount_actors::ingest::{Field, NewEvent, Status};

use super::{BASE_MS, DAY_MS, HOUR_MS, Rig, assert_gone, copy};

/// Splitmix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }

    fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// An event of a history.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) project: usize,
    user: Option<String>,
    anonymous: Option<String>,
    number: u64,
    at: i64,
    kind: u64,
    place: u64,
}

impl Sent {
    pub(super) fn random(random: &mut Random, number: u64) -> Self {
        Self {
            project: usize::try_from(random.below(2)).unwrap(),
            user: random.is(50).then(|| format!("zanzibar-u{}", random.below(6))),
            anonymous: random.is(70).then(|| format!("zanzibar-a{}", random.below(9))),
            number,
            at: BASE_MS + i64::try_from(random.below(30)).unwrap() * DAY_MS + i64::try_from(random.below(8)).unwrap() * HOUR_MS,
            kind: random.below(6),
            place: random.below(5),
        }
    }

    pub(super) fn event(&self) -> NewEvent {
        let name = match self.kind {
            0 => "order",
            1 => "identify",
            _ => "pageview",
        };
        let event = NewEvent::new(name).at_ms(self.at).external_id(format!("zanzibar-x{}", self.number));
        let who = self.user.as_deref().or(self.anonymous.as_deref()).unwrap_or("nobody");
        let event = event.with(Field::Url, format!("https://shop.example/{who}/{}?utm_source={who}-s&utm_medium=m", self.place));
        let event = if self.kind == 0 { event.value("12.25").unwrap() } else { event };
        let event = match self.place {
            0 => event.with(Field::GroupType, "company").with(Field::GroupId, format!("acme{}.example", self.number % 3)),
            1 => event.with(Field::GroupType, "team").with(Field::GroupId, format!("team{}", self.number % 2)),
            _ => event,
        };
        let event = match &self.user {
            Some(user) if self.kind == 1 => {
                event.metadata(&serde_json::json!({ "email": format!("{user}@mail{}.example", self.number % 2) })).unwrap()
            }
            _ => event,
        };
        let event = match &self.user {
            Some(user) => event.user(user.clone()),
            None => event,
        };
        match &self.anonymous {
            Some(anonymous) => event.anonymous(anonymous.clone()),
            None => event,
        }
    }
}

/// The history without the erased identities, by independent rules.
#[derive(Debug, Default)]
struct Expected {
    sent: Vec<Sent>,
    links: BTreeMap<(usize, String), String>,
    gone_users: BTreeSet<String>,
    gone_others: BTreeSet<(usize, String)>,
}

impl Expected {
    /// Takes an event. Returns whether it is recorded.
    fn take(&mut self, mut sent: Sent) -> bool {
        let other = sent.anonymous.clone().map(|id| (sent.project, id));
        let is_other_gone = other.as_ref().is_some_and(|other| self.gone_others.contains(other));
        match &sent.user {
            Some(user) if self.gone_users.contains(user) => return false,
            Some(user) => {
                if is_other_gone {
                    sent.anonymous = None;
                } else if let Some(other) = other {
                    self.links.entry(other).or_insert_with(|| user.clone());
                }
            }
            None if is_other_gone => return false,
            None => {}
        }
        self.sent.push(sent);
        true
    }

    fn erase(&mut self, subject: (usize, IdentityId)) {
        let mut user = None;
        match subject {
            (_, IdentityId::User(id)) => user = Some(id.to_string()),
            (project, IdentityId::Anonymous(id)) => {
                user = self.links.get(&(project, id.to_string())).cloned();
                let _new = self.gone_others.insert((project, id.to_string()));
            }
            _ => {}
        }
        if let Some(user) = user {
            let linked = self.links.iter().filter(|(_, owner)| **owner == user).map(|(other, _)| other.clone());
            self.gone_others.extend(linked);
            let _new = self.gone_users.insert(user);
        }
        let (users, others) = (&self.gone_users, &self.gone_others);
        self.sent.retain_mut(|sent| {
            let is_other_gone = sent.anonymous.as_ref().is_some_and(|id| others.contains(&(sent.project, id.clone())));
            match &sent.user {
                Some(user) => {
                    if is_other_gone {
                        sent.anonymous = None;
                    }
                    !users.contains(user)
                }
                None => !is_other_gone,
            }
        });
    }
}

/// Erases a random person, if there is one.
async fn erase_somebody(rig: &Rig, expected: &mut Expected, random: &mut Random) -> Option<u64> {
    let project = usize::try_from(random.below(2)).unwrap();
    let (id, subject) = match random.is(60) {
        true => {
            let id = format!("zanzibar-u{}", random.below(6));
            (IdentityId::User(id.clone().into()), ErasureSubject::User(id))
        }
        false => {
            let id = format!("zanzibar-a{}", random.below(9));
            (IdentityId::Anonymous(id.clone().into()), ErasureSubject::Anonymous(rig.projects[project], id))
        }
    };
    match rig.erase(subject).await {
        Ok(erasure) => {
            expected.erase((project, id));
            Some(erasure)
        }
        Err(ErasureError::Unknown | ErasureError::Unavailable(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

/// One history of events, erasures, restarts, sealing and rebuilds, compared with a data directory
/// that never had the erased identities.
async fn history(seed: u64, keep_from: Option<Day>) {
    let what = format!("history {seed}, with events from {keep_from:?} on");
    let mut random = Random(seed);
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut rig = Rig::keeping(home.path(), keep_from);
    rig.engine.close().await;
    copy(home.path(), other.path());
    rig = rig.open(home.path());
    let (mut expected, mut begun) = (Expected::default(), Vec::new());
    for number in 0..60 + random.below(60) {
        let sent = Sent::random(&mut random, number);
        let is_recorded = expected.take(sent.clone());
        let status = rig.send(&sent).await;
        assert_eq!(status == Status::Recorded, is_recorded, "{what}: {sent:?} {status:?}");
        match random.below(25) {
            0 => {
                if let Some(erasure) = erase_somebody(&rig, &mut expected, &mut random).await {
                    begun.push(erasure);
                    if random.is(50) {
                        rig.finish(erasure, &what).await;
                    }
                }
            }
            1 => {
                rig.engine.close().await;
                if random.is(30) {
                    fs::remove_dir_all(home.path().join("store")).unwrap();
                    fs::remove_dir_all(home.path().join("fingerprints")).unwrap();
                }
                rig = rig.open(home.path());
            }
            2 => drop(rig.engine.seal_archive().await.unwrap()),
            _ => {}
        }
    }
    for erasure in begun {
        rig.finish(erasure, &what).await;
    }
    compare(rig, &expected, home.path(), other.path(), &what).await;
}

/// Compares a data directory with one that only ever had the expected events, and searches it for
/// erased ids.
async fn compare(rig: Rig, expected: &Expected, home: &Path, other: &Path, what: &str) {
    let never = rig.open(other);
    for sent in &expected.sent {
        assert_eq!(never.send(sent).await, Status::Recorded);
    }
    let answers = never.answers().await;
    assert_eq!(rig.answers().await, answers, "{what}");
    let report = rig.engine.verify(false, &Arc::default()).await.unwrap();
    assert!(report.differing == 0 && report.damaged.is_empty(), "{what}: {report:?}");
    rig.engine.close().await;
    never.engine.close().await;
    let rig = rig.open(home);
    assert_eq!(rig.answers().await, answers, "{what}: after a restart");
    rig.engine.close().await;
    let mut gone: Vec<String> = expected.gone_users.iter().cloned().collect();
    let kept: BTreeSet<String> = expected.sent.iter().flat_map(|sent| sent.anonymous.clone()).collect();
    gone.extend(expected.gone_others.iter().map(|(_, id)| id.clone()).filter(|id| !kept.contains(id)));
    gone.iter().for_each(|id| assert_gone(home, id, what));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_a_history_without_the_erased() {
    let count = std::env::var("HEADCOUNT_ERASURES").map_or(2, |count| count.parse().unwrap());
    for seed in 0..count {
        history(seed, None).await;
        // Removed events are in bases, which lose the erased people.
        history(seed, Day::parse("2024-03-16")).await;
    }
}
