//! Requests that a node refuses, and the errors that the asking node gets.

use std::sync::atomic::Ordering;

use headcount_actors::domain::time::Window;
use headcount_actors::{AskError, Engine};
use headcount_common::nodes::{AskNodeError, MAX_REQUEST_BYTES};
use headcount_common::partition_of;
use headcount_control::NewProject;
use headcount_histories::{History, Rng, Size, Step};

use crate::rig::{NOW_MS, Rig, Trouble};
use crate::{Names, answers, windows};

/// The tag of requests for versions.
const VERSIONS: [u8; 2] = 1000_u16.to_le_bytes();

/// The bytes of every query between nodes, each with its tag, from the golden tests of the domain,
/// without their version.
fn golden_queries() -> impl Iterator<Item = (u16, Vec<u8>)> {
    let lines = include_str!("../../../domain/tests/travelling/golden.txt").lines();
    lines.filter(|line| line.contains(" query ")).map(|line| {
        let (tag, hex) = (line.split(' ').next().unwrap(), line.rsplit(' ').next().unwrap());
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (tag.parse().unwrap(), (2..hex.len()).step_by(2).map(byte).collect())
    })
}

async fn rig(events: usize) -> (Rig, Names) {
    let history = History::from_seed(23_500, NOW_MS, Size { events, questions: 0 });
    let (rig, mut rng, mut names) = (Rig::new(&history).await, Rng::new(1), Names::default());
    for step in &history.steps {
        if let Step::Track { body, .. } = step {
            names.add(body);
            rig.send(*rng.pick(&rig.projects), body).await;
        }
    }
    (rig, names)
}

/// Everything asked about the organization fails for one reason.
async fn assert_fails(rig: &Rig, node: &Engine, is_expected: impl Fn(&AskError) -> bool) {
    let window: Window = windows(rig.timezone)[2];
    let companies = headcount_actors::domain::queries::top_companies(&node.organization(rig.organization), window, 5).await;
    let identities = node.scans.top_identities(rig.organization, window, Default::default(), 5).await;
    let errors = [
        companies.map(|_| ()).unwrap_err(),
        identities.map(|_| ()).unwrap_err(),
        node.organization_version(rig.organization).await.map(|_| ()).unwrap_err(),
        node.complete_from(rig.organization, window).await.map(|_| ()).unwrap_err(),
    ];
    for error in errors {
        assert!(is_expected(&error), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_other_node_there_is_no_answer() {
    let (rig, _) = rig(10).await;
    let set = |trouble| *rig.wire.trouble.lock().unwrap() = trouble;
    set(Some(Trouble::Unreachable));
    assert_fails(&rig, &rig.a, |error| matches!(error, AskError::Node(AskNodeError::Unreachable(_)))).await;
    for trouble in [Trouble::OtherVersion, Trouble::StrangeAnswer] {
        set(Some(trouble));
        assert_fails(&rig, &rig.a, |error| matches!(error, AskError::Node(AskNodeError::OtherVersion(_)))).await;
    }
    set(None);
    // A single project's part is never asked for.
    rig.wire.too_large.store(usize::MAX, Ordering::SeqCst);
    assert_fails(&rig, &rig.a, |error| matches!(error, AskError::Node(AskNodeError::TooLarge))).await;
    rig.wire.too_large.store(0, Ordering::SeqCst);
    let last = partition_of(*rig.projects.last().unwrap());
    rig.b.owners().give_up(last);
    assert_fails(&rig, &rig.a, |error| matches!(error, AskError::Node(AskNodeError::NotHere))).await;
    rig.a.owners().note_elsewhere(last, None);
    assert_fails(&rig, &rig.a, |error| matches!(error, AskError::NoOwner)).await;
    rig.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn projects_of_other_organizations_are_refused() {
    let (rig, _) = rig(5).await;
    let now = rig.a.clock().now();
    let other = rig.a.registry().create_organization("other", now).unwrap().organization_id;
    // Ids are random. Partitions with projects of the first organization stay where they are.
    let is_free = |partition: &u16| rig.projects.iter().all(|project| partition_of(*project) != *partition);
    let mut free = Vec::new();
    while free.is_empty() {
        let new = NewProject { name: "p".into(), ..NewProject::default() };
        rig.a.registry().create_project(other, new, now).unwrap();
        let projects = rig.a.registry().projects(other).unwrap();
        free = projects.iter().map(|project| partition_of(project.id)).filter(is_free).collect();
    }
    // Node A takes the organization's other projects for those of another node. Node B knows
    // neither the organization nor the projects.
    for partition in free {
        rig.a.owners().note_elsewhere(partition, Some("b".into()));
        rig.a.owners().give_up(partition);
    }
    let error = rig.a.organization_version(other).await.unwrap_err();
    assert!(matches!(error, AskError::Node(AskNodeError::NotOfOrganization)), "{error:?}");
    // A request about the right projects in the name of another organization.
    rig.a.organization_version(rig.organization).await.unwrap();
    let mut request = rig.wire.requests.lock().unwrap().last().unwrap().clone();
    assert!(rig.b.answer_remote(&request).await.is_ok());
    request[4] ^= 1;
    assert_eq!(rig.b.answer_remote(&request).await, Err(AskNodeError::NotOfOrganization));
    rig.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_bytes_get_errors() {
    let (rig, names) = rig(120).await;
    let window = windows(rig.timezone)[2];
    let before = answers(&rig.a, rig.organization, &names, window, 5).await;
    let mut requests = std::mem::take(&mut *rig.wire.requests.lock().unwrap());
    // One request of each kind.
    requests.sort_by_key(|request| (request[..2].to_vec(), request.len()));
    requests.dedup_by_key(|request| request[..2].to_vec());
    assert!(requests.len() > 8, "{} kinds of requests", requests.len());
    let (mut rng, mut refused, mut answered) = (Rng::new(7), 0, 0);
    for request in &requests {
        for length in 0..request.len() {
            let cut = rig.b.answer_remote(&request[..length]).await;
            assert!(matches!(cut, Err(AskNodeError::OtherVersion(_))), "{length} bytes of {request:?}: {cut:?}");
        }
        for _ in 0..60 {
            let mut other = request.clone();
            for _ in 0..1 + rng.below(3) {
                let place = other.len() - 1 - rng.below(other.len().min(24));
                other[place] = u8::try_from(rng.below(256)).unwrap();
            }
            match rig.b.answer_remote(&other).await {
                Ok(_) => {}
                Err(AskNodeError::NoAnswer(why)) => assert!(!why.contains("panicked"), "{other:?}"),
                Err(_) => refused += 1,
            }
        }
    }
    // A request for versions has no question, so any question can follow it.
    let versions = requests.iter().find(|request| request[..2] == VERSIONS).unwrap().clone();
    for (tag, question) in golden_queries() {
        for round in 0..200 {
            let mut question = question.clone();
            for _ in 0..round % 4 {
                let likely = [0, 1, 2, 3, 20, 251, 252, 253, 254, 255, u8::try_from(rng.below(256)).unwrap()];
                let place = rng.below(question.len());
                question[place] = *rng.pick(&likely);
            }
            let request = [&tag.to_le_bytes(), &versions[2..], &question].concat();
            match rig.b.answer_remote(&request).await {
                Ok(_) => answered += 1,
                Err(AskNodeError::NoAnswer(why)) => assert!(!why.contains("panicked"), "{request:?}"),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(answered > 5_000, "{answered} questions were understood");
    for _ in 0..2_000 {
        let random: Vec<u8> = (0..rng.below(60)).map(|_| u8::try_from(rng.below(256)).unwrap()).collect();
        refused += usize::from(rig.b.answer_remote(&random).await.is_err());
    }
    assert!(refused > 2_500, "{refused}");
    assert_eq!(rig.b.answer_remote(&vec![1; MAX_REQUEST_BYTES + 1]).await, Err(AskNodeError::TooLarge));
    assert_eq!(answers(&rig.a, rig.organization, &names, window, 5).await, before);
    rig.close().await;
}
