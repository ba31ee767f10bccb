//! Erasures that begin at the same time, and beside events that link ids.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::addresses::{ADDRESS, identify};
use super::*;

/// The most records of an erasure that begins: its ids, others that three looks find, its ends, and
/// one for each of two projects that it ends in meanwhile.
const MAX_RECORDS: u64 = 1 + 3 + 1 + 2;

/// Links more ids to a person, and reports the person's address of others, until the end. Returns
/// the numbers of the devices that reported it.
async fn keep_linking(engine: Engine, project: ProjectId, ends: Arc<AtomicBool>) -> Vec<u64> {
    let (mut number, mut reported) = (0, Vec::new());
    while !ends.load(Ordering::Acquire) {
        let of_device = NewEvent::new("identify").anonymous(format!("device-{number}"));
        let events = [
            of_device.metadata(&serde_json::json!({ "email": ADDRESS })).unwrap(),
            of_user("zanzibar", 1).anonymous(format!("zanzibar-linked{number}")),
            identify(&format!("zanzibar-namesake{number}"), ADDRESS),
            // The device is linked to a user, who has another one.
            of_user(&format!("owner-{number}"), 2).anonymous(format!("device-{number}")),
            of_user(&format!("owner-{number}"), 3).anonymous(format!("tablet-{number}")),
        ];
        for (place, event) in events.iter().enumerate() {
            // A project that is being folded takes no events.
            let recorded = engine.track(project, event).await.is_ok_and(|receipt| receipt.status == Status::Recorded);
            if place == 0 && recorded {
                reported.push(number);
            }
        }
        number += 1;
    }
    reported
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_keeps_linking_ids_keeps_nobody_from_being_erased() {
    for by_address in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let rig = Rig::new(home.path());
        for event in [identify("zanzibar", ADDRESS), of_user("zanzibar", 0).anonymous("zanzibar-device"), of_user("others", 1)] {
            assert_eq!(rig.engine.track(rig.projects[0], &event).await.unwrap().status, Status::Recorded);
        }
        let ends = Arc::<AtomicBool>::default();
        let link = |place: usize| tokio::spawn(keep_linking(rig.engine.clone(), rig.projects[place], Arc::clone(&ends)));
        let clients = [0, 1].map(link);
        tokio::time::sleep(Duration::from_millis(200)).await;
        let before = rig.engine.registry().applied().unwrap();
        let subject = if by_address { ErasureSubject::Email(ADDRESS.into()) } else { ErasureSubject::User("zanzibar".into()) };
        let erasure = rig.erase(subject).await.unwrap();
        let records = rig.engine.registry().applied().unwrap() - before;
        assert!(records <= MAX_RECORDS, "{records} records");
        rig.finish(erasure, "beside new links").await;
        ends.store(true, Ordering::Release);
        for (place, client) in clients.into_iter().enumerate() {
            let reported = client.await.unwrap();
            assert!(reported.len() > 2, "the client was held up");
            for number in reported.iter().filter(|_| by_address) {
                let event = NewEvent::new("pageview").anonymous(format!("device-{number}"));
                let status = rig.engine.track(rig.projects[place], &event).await.unwrap().status;
                assert_eq!(status, Status::Dropped(DropReason::OptedOut), "device {number}");
            }
        }
        rig.engine.close().await;
        let found = search_erased(&config(home.path()), &[], &false.into()).unwrap();
        assert!(found.is_clean() && found.ids > 6, "by address: {by_address}: {found:?}");
        if by_address {
            assert_gone(home.path(), "zanzibar", "beside new links");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ids_of_a_linked_user_in_other_projects_are_erased_too() {
    let home = tempfile::tempdir().unwrap();
    let rig = Rig::new(home.path());
    let status = async |event: NewEvent, project: usize| rig.engine.track(rig.projects[project], &event).await.unwrap().status;
    let alone = || NewEvent::new("pageview").anonymous("zanzibar-b").at_ms(BASE_MS);
    assert_eq!(status(of_user("zanzibar", 1).anonymous("zanzibar-a"), 0).await, Status::Recorded);
    assert_eq!(status(of_user("zanzibar", 2).anonymous("zanzibar-b"), 1).await, Status::Recorded);
    assert_eq!(status(alone(), 1).await, Status::Recorded);
    let erasure = rig.erase(ErasureSubject::Anonymous(rig.projects[0], "zanzibar-a".into())).await.unwrap();
    assert_eq!(status(alone(), 1).await, Status::Dropped(DropReason::OptedOut));
    rig.finish(erasure, "by an id of another project").await;
    rig.engine.close().await;
    assert_gone(home.path(), "zanzibar", "by an id of another project");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_are_erased_at_once_and_some_twice() {
    const PEOPLE: u64 = 20;
    let home = tempfile::tempdir().unwrap();
    let rig = Arc::new(Rig::new(home.path()));
    let user = |number| of_user(&format!("{}-{number}", if number < PEOPLE { "zanzibar" } else { "others" }), number);
    rig.engine.track_batch(rig.projects[0], &(0..2 * PEOPLE).map(user).collect::<Vec<_>>()).await.unwrap();
    let erase = |number: u64| {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move { rig.erase(ErasureSubject::User(format!("zanzibar-{number}"))).await })
    };
    let erasures: Vec<_> = (0..PEOPLE).chain(0..4).map(erase).collect();
    let mut numbers = BTreeSet::new();
    for erasure in erasures {
        numbers.insert(erasure.await.unwrap().unwrap());
    }
    assert_eq!(numbers.len() as u64, PEOPLE + 4);
    for number in numbers {
        rig.finish(number, "at once").await;
    }
    let users = rig.engine.ask(rig.projects[0], UniqueUsersQuery { window: window() }).await.unwrap();
    assert_eq!(users.total, PEOPLE);
    rig.engine.close().await;
    assert_gone(home.path(), "zanzibar", "at once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_begins_while_a_project_is_held_for_another_one() {
    let home = tempfile::tempdir().unwrap();
    let made = Rig::new(home.path());
    for event in [of_user("ben", 1), identify("zanzibar", ADDRESS)] {
        assert_eq!(made.engine.track(made.projects[0], &event).await.unwrap().status, Status::Recorded);
    }
    made.engine.close().await;
    let (held, mut config) = (Arc::<AtomicBool>::default(), config(home.path()));
    let is_held = Arc::clone(&held);
    config.archive_probe = Some(Arc::new(move |step: &'static str| {
        if step == "state without an erased identity computed" && !is_held.swap(true, Ordering::AcqRel) {
            std::thread::sleep(Duration::from_secs(1));
        }
    }));
    let rig = Rig { engine: Engine::open(config).unwrap(), ..made };
    let first = rig.erase(ErasureSubject::User("ben".into())).await.unwrap();
    while !held.load(Ordering::Acquire) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let second = rig.erase(ErasureSubject::Email(ADDRESS.into())).await.unwrap();
    for number in [first, second] {
        rig.finish(number, "held").await;
    }
    rig.engine.close().await;
    assert_gone(home.path(), "zanzibar", "held");
}
