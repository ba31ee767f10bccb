//! Erasures that another node delays or prevents.

use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::Engine;
use headcount_actors::domain::ids::OrganizationId;
use headcount_actors::domain::time::Instant;
use headcount_actors::engine::{ErasureError, ErasureSubject};
use headcount_common::partition_of;
use headcount_histories::{History, Size};

use crate::rig::{NOW_MS, Rig, Trouble};

async fn erased(engine: &Engine, organization: OrganizationId, user: &str) -> Result<u64, ErasureError> {
    let (engine, subject) = (engine.clone(), ErasureSubject::User(user.to_owned()));
    tokio::task::spawn_blocking(move || engine.erase(organization, &subject)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_organization_does_not_wait_for_the_owner_of_another_ones_projects() {
    let rig = Rig::new(&History::from_seed(1, NOW_MS, Size { events: 1, questions: 0 })).await;
    let other = rig.a.registry().create_organization("other", Instant(NOW_MS)).unwrap();
    rig.a.owners().hold(partition_of(other.project_id), Duration::from_secs(1 << 30));
    *rig.wire.trouble.lock().unwrap() = Some(Trouble::Halted);
    let (engine, organization) = (rig.a.clone(), rig.organization);
    let halted = tokio::spawn(async move { erased(&engine, organization, "nobody").await });
    let began = Stopwatch::now();
    while rig.wire.requests.lock().unwrap().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "no owner is asked");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let began = Stopwatch::now();
    let of_other = erased(&rig.a, other.organization_id, "nobody").await;
    assert!(matches!(of_other, Err(ErasureError::Unknown)), "{of_other:?}");
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert!(!halted.is_finished());
    *rig.wire.trouble.lock().unwrap() = None;
    let ended = halted.await.unwrap();
    assert!(matches!(ended, Err(ErasureError::Unavailable(_))), "{ended:?}");
    rig.close().await;
}

/// The other node never learns of the erasure, as the two have separate control data. Each attempt
/// is given up after its ids are suppressed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_that_are_given_up_leave_two_records_and_suppress_nobody() {
    let rig = Rig::new(&History::from_seed(1, NOW_MS, Size { events: 1, questions: 0 })).await;
    for project in &rig.projects {
        rig.send(*project, r#"{"name": "e", "user_id": "ada"}"#).await;
    }
    let before = rig.a.registry().applied().unwrap();
    for attempts in 1..=4 {
        let refused = erased(&rig.a, rig.organization, "ada").await;
        assert!(matches!(refused, Err(ErasureError::Unavailable(_))), "{refused:?}");
        assert_eq!(rig.a.registry().applied().unwrap() - before, 2 * attempts);
        assert!(rig.a.registry().erasures().iter().all(|erasure| erasure.is_done && erasure.ids() == 0));
    }
    // Other people can be erased.
    let began = rig.wire.requests.lock().unwrap().len();
    let unknown = erased(&rig.a, rig.organization, "nobody").await;
    assert!(matches!(unknown, Err(ErasureError::Unknown)) && rig.wire.requests.lock().unwrap().len() > began, "{unknown:?}");
    rig.close().await;
}
