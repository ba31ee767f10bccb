//! A backup from before an erasure is restored without the person.

use std::path::Path;

use headcount_actors::backup::{BackupSnapshot, RestoreFailure, TakenErasures, restore};
use headcount_storage::backup::{Backup, BackupFolder};

use super::*;

fn back_up(data: &Path, to: &Path) -> Backup {
    let snapshot = BackupSnapshot::of_directory(data, Instant(BASE_MS)).unwrap();
    let mut folder = BackupFolder::create(to, None).unwrap();
    assert!(!snapshot.write(&mut folder).unwrap().projects.is_empty());
    Backup::open(to).unwrap()
}

/// A closed data directory. Both projects know "zanzibar", and the first one knows "queenie".
async fn of_both_projects(dir: &Path) -> Rig {
    let rig = half_sealed(dir).await.open(dir);
    for event in [of_user("zanzibar", 60), of_user("others", 61)] {
        assert_eq!(rig.engine.track(rig.projects[1], &event).await.unwrap().status, Status::Recorded);
    }
    assert_eq!(rig.engine.track(rig.projects[0], &of_user("queenie", 62)).await.unwrap().status, Status::Recorded);
    rig.engine.close().await;
    rig
}

async fn erase_whole(rig: &Rig, user: &str) {
    let erasure = rig.erase(ErasureSubject::User(user.into())).await.unwrap();
    rig.finish(erasure, user).await;
}

async fn opt_in(rig: &Rig, user: &str) {
    let (engine, organization, subject) = (rig.engine.clone(), rig.organization, ErasureSubject::User(user.into()));
    tokio::task::spawn_blocking(move || engine.opt_in(organization, &subject)).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_erased_after_the_backup_stays_erased() {
    let home = tempfile::tempdir().unwrap();
    let [data, saved, restored, again] = ["data", "saved", "restored", "again"].map(|name| home.path().join(name));
    let rig = of_both_projects(&data).await.open(&data);
    erase_whole(&rig, "queenie").await;
    rig.engine.close().await;
    let backup = back_up(&data, &saved);

    let rig = rig.open(&data);
    opt_in(&rig, "queenie").await;
    // The erasure does not know of this project.
    rig.engine.delete_project(rig.organization, rig.projects[1], Instant(BASE_MS)).unwrap();
    erase_whole(&rig, "zanzibar").await;
    let expected = users(&rig).await;
    let refused = restore(&backup, &restored, Some(&data)).unwrap_err();
    assert!(matches!(refused, RestoreFailure::InUse(_)) && !restored.exists(), "{refused}");
    rig.engine.close().await;

    let taken = restore(&backup, &restored, Some(&data)).unwrap();
    assert_eq!(taken, Some(TakenErasures { erasures: 1, opt_ins: 1, requests: 0 }));
    let rig = rig.open(&restored);
    assert_eq!(users(&rig).await, expected, "before it is finished");
    let second = rig.engine.ask(rig.projects[1], UniqueUsersQuery { window: window() }).await.unwrap();
    assert_eq!(second.total, 1, "a project that was deleted since");
    let late = of_user("zanzibar", 3).external_id("late");
    let status = async |event: &NewEvent| rig.engine.track(rig.projects[0], event).await.unwrap().status;
    assert_eq!(status(&late).await, Status::Dropped(DropReason::OptedOut));
    assert_eq!(status(&of_user("others", 3).external_id("x4")).await, Status::Duplicate, "its external ids stay");
    assert_eq!(status(&of_user("queenie", 63)).await, Status::Recorded, "she opted in");
    rig.finish(2, "restored").await;
    rig.engine.close().await;
    assert_gone(&restored, "zanzibar", "restored");

    // The restored directory serves as a source of erasures as well.
    let taken = restore(&backup, &again, Some(&restored)).unwrap();
    assert_eq!(taken, Some(TakenErasures { erasures: 1, opt_ins: 1, requests: 0 }));
    let rig = rig.open(&again);
    assert_eq!(users(&rig).await, expected);
    rig.finish(2, "restored again").await;
    rig.engine.close().await;
    assert_gone(&again, "zanzibar", "restored again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn erasures_of_another_history_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let [data, other, stranger, saved, to] = ["data", "other", "stranger", "saved", "to"].map(|name| home.path().join(name));
    let rig = of_both_projects(&data).await;
    copy(&data, &other);
    for (dir, user) in [(&data, "zanzibar"), (&other, "queenie")] {
        let rig = rig.open(dir);
        erase_whole(&rig, user).await;
        rig.engine.close().await;
    }
    Rig::new(&stranger).engine.close().await;
    let backup = back_up(&data, &saved);
    let refused = |from: &Path| {
        let refused = restore(&backup, &to, Some(from)).unwrap_err();
        assert!(!to.join("FORMAT").exists() && !to.join("control").exists(), "{refused}");
        refused
    };
    let failure = refused(&other);
    assert!(matches!(failure, RestoreFailure::Diverged { .. }), "{failure}");
    let failure = refused(&stranger);
    assert!(matches!(failure, RestoreFailure::OtherKey { .. }), "{failure}");
    let nowhere = home.path().join("nowhere");
    let failure = refused(&nowhere);
    assert!(matches!(failure, RestoreFailure::NoDirectory { .. }) && !nowhere.exists(), "{failure}");
    assert_eq!(restore(&backup, &to, Some(&data)).unwrap(), Some(TakenErasures::default()), "the backup has everything");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn projects_without_early_events_lose_the_person_too() {
    let home = tempfile::tempdir().unwrap();
    let [data, saved, to] = ["data", "saved", "to"].map(|name| home.path().join(name));
    let rig = Rig { keep_from: Day::parse("2024-03-20"), ..of_both_projects(&data).await }.open(&data);
    bases::removed(&rig.engine).await;
    rig.engine.close().await;
    let backup = back_up(&data, &saved);
    let rig = rig.open(&data);
    // The erasure does not know of this project.
    rig.engine.delete_project(rig.organization, rig.projects[1], Instant(BASE_MS)).unwrap();
    erase_whole(&rig, "zanzibar").await;
    let expected = users(&rig).await;
    rig.engine.close().await;
    let taken = restore(&backup, &to, Some(&data)).unwrap();
    assert_eq!(taken, Some(TakenErasures { erasures: 1, opt_ins: 0, requests: 0 }));
    let rig = rig.open(&to);
    assert_eq!(users(&rig).await, expected, "before it is finished");
    let second = rig.engine.ask(rig.projects[1], UniqueUsersQuery { window: window() }).await.unwrap();
    assert_eq!(second.total, 1, "a project that was deleted since");
    rig.finish(1, "restored").await;
    rig.engine.close().await;
    assert_gone(&to, "zanzibar", "restored");
}
