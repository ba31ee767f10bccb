//! Attempts to erase that end before they begin, and erasures that end beside a backup.

use headcount_actors::backup::restore;
use headcount_common::secrets::{KEYS_DIR, Secrets};
use headcount_control::{Erasure, ErasureStage};
use headcount_storage::backup::{Backup, BackupFolder};

use super::*;

async fn status(rig: &Rig, user: &'static str, number: u64) -> Status {
    rig.engine.track(rig.projects[0], &of_user(user, number)).await.unwrap().status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_a_kill_cut_off_suppresses_nobody_after_the_next_start() {
    let home = tempfile::tempdir().unwrap();
    let rig = Rig::new(home.path());
    assert_eq!(status(&rig, "ada", 0).await, Status::Recorded);
    let attempt = Erasure {
        number: 0,
        organization: rig.organization,
        users: vec![Secrets::open(&home.path().join(KEYS_DIR)).unwrap().hasher().user("ada")],
        others: Vec::new(),
        emails: Vec::new(),
        ends: Vec::new(),
        is_done: false,
        is_lifted: false,
    };
    rig.engine.registry().add_erasure(attempt, None).unwrap();
    rig.engine.close().await;
    let rig = rig.open(home.path());
    assert!(rig.engine.registry().erasures().iter().all(|erasure| erasure.is_done && erasure.ids() == 0));
    assert_eq!(status(&rig, "ada", 1).await, Status::Recorded);
    let erasure = rig.erase(ErasureSubject::User("ada".into())).await.unwrap();
    rig.finish(erasure, "after an attempt").await;
    assert_eq!(status(&rig, "ada", 2).await, Status::Dropped(DropReason::OptedOut));
    rig.engine.close().await;
}

/// The files of the backup may have the identity, so its control data must have the erasure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_waits_for_a_backup_that_is_being_made() {
    let home = tempfile::tempdir().unwrap();
    let (dir, backup, restored) = (home.path().join("d"), home.path().join("backup"), home.path().join("restored"));
    let rig = half_sealed(&dir).await.open(&dir);
    let snapshot = rig.engine.begin_backup().unwrap();
    let erasure = rig.erase(ErasureSubject::User("zanzibar".into())).await.unwrap();
    let began = Stopwatch::now();
    while began.elapsed() < Duration::from_secs(2) {
        let erasures = rig.engine.registry().erasures();
        assert!(erasures.iter().all(|erasure| erasure.stage_in(rig.projects[0]) == ErasureStage::Begun), "{erasures:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Ends it.
    snapshot.write(&mut BackupFolder::create(&backup, None).unwrap()).unwrap();
    rig.finish(erasure, "after the backup").await;
    rig.engine.close().await;
    restore(&Backup::open(&backup).unwrap(), &restored, Some(&dir)).unwrap();
    let rig = rig.open(&restored);
    rig.finish(erasure, "restored").await;
    rig.engine.close().await;
    assert_gone(&restored, "zanzibar", "restored");
}

/// An erasure that has begun goes on, although its client got an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_ends_although_it_could_not_be_noted() {
    let home = tempfile::tempdir().unwrap();
    let base = home.path().join("base");
    let made = half_sealed(&base).await;
    let mut begun = 0;
    for at in 1..=10 {
        let data = home.path().join(at.to_string());
        copy(&base, &data);
        let rig = made.open(&data);
        let switch = Switch::arm(&data.join("deletions.json.tmp"), Plan { at, ..Plan::default() });
        if rig.erase(ErasureSubject::User("zanzibar".into())).await.is_err() {
            begun += u32::from(rig.engine.registry().erasures()[0].has_begun());
        }
        drop(switch);
        if !rig.engine.registry().erasures()[0].has_begun() {
            assert_eq!(status(&rig, "zanzibar", 90).await, Status::Recorded, "given up after a failure at {at}");
            rig.erase(ErasureSubject::User("zanzibar".into())).await.unwrap();
        }
        let last = rig.engine.registry().erasures().last().unwrap().number;
        rig.finish(last, &format!("after a failure at {at}")).await;
        rig.engine.close().await;
        assert_gone(&data, "zanzibar", &format!("after a failure at {at}"));
    }
    assert!(begun > 0, "none had begun");
}

/// The list of a project has files that the catalog does not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_a_seal_that_a_kill_cut_off_lose_the_person() {
    let home = tempfile::tempdir().unwrap();
    let (dir, killed) = (home.path().join("d"), home.path().join("killed"));
    let made = Rig::new(&dir);
    for number in 0..20 {
        assert_eq!(status(&made, ["zanzibar", "others"][number as usize % 2], number).await, Status::Recorded);
    }
    made.engine.close().await;
    let (mut config, from, to) = (config(&dir), dir.clone(), killed.clone());
    config.archive_probe = Some(Arc::new(move |step: &'static str| {
        if step == "project listed" && !to.exists() {
            copy(&from, &to);
        }
    }));
    let rig = Rig { engine: Engine::open(config).unwrap(), ..made };
    rig.engine.seal_archive().await.unwrap();
    rig.engine.close().await;
    let rig = rig.open(&killed);
    let erasure = rig.erase(ErasureSubject::User("zanzibar".into())).await.unwrap();
    rig.finish(erasure, "after a kill").await;
    rig.engine.close().await;
    assert_gone(&killed, "zanzibar", "after a kill");
}
