//! A long erasure, beside other work of the archive's thread.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// The maximum number of rows in a file.
const FILE_ROWS: u64 = 10;
const FILES: usize = 30;
/// More than one turn rewrites.
const LATER_FILES: usize = 12;

fn events(user: &'static str, numbers: Range<u64>) -> impl Iterator<Item = NewEvent> {
    numbers.map(move |number| of_user(user, number))
}

/// Returns events for this number of files. One event in each file is of the user.
fn files_with(user: &'static str, files: usize) -> Vec<NewEvent> {
    (0..files).flat_map(|_| events(user, 0..1).chain(events("others", 0..FILE_ROWS - 1))).collect()
}

/// An installation in which rewriting a file takes a while, and the number of rewritten files.
async fn slow(dir: &Path) -> (Rig, Arc<AtomicUsize>) {
    let (rewritten, mut config) = (Arc::<AtomicUsize>::default(), config(dir));
    let counted = Arc::clone(&rewritten);
    config.archive.file_rows = Some(FILE_ROWS);
    config.archive_probe = Some(Arc::new(move |step: &'static str| {
        if step == "file without an erased identity listed" {
            counted.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(100));
        }
    }));
    let made = Rig::new(dir);
    made.engine.close().await;
    (Rig { engine: Engine::open(config).unwrap(), ..made }, rewritten)
}

async fn begun(rewritten: &AtomicUsize) {
    let until = Stopwatch::now() + Duration::from_secs(60);
    while rewritten.load(Ordering::Relaxed) == 0 {
        assert!(Stopwatch::now() < until, "no file is rewritten");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_sealed_while_somebody_is_erased_from_many_files() {
    let home = tempfile::tempdir().unwrap();
    let (rig, rewritten) = slow(home.path()).await;
    rig.engine.track_batch(rig.projects[0], &files_with("zanzibar", FILES)).await.unwrap();
    rig.engine.seal_archive().await.unwrap();

    let erasure = rig.erase(ErasureSubject::User("zanzibar".into())).await.unwrap();
    begun(&rewritten).await;
    rig.engine.track_batch(rig.projects[1], &events("others", 0..5).collect::<Vec<_>>()).await.unwrap();
    let sealed = rig.engine.seal_archive().await.unwrap();
    let meanwhile = rewritten.load(Ordering::Relaxed);
    assert_eq!(sealed.events, 5);
    assert!(meanwhile < FILES, "sealing waited for all files");
    rig.finish(erasure, "from many files").await;
    assert_eq!(rewritten.load(Ordering::Relaxed), FILES, "each is rewritten once");
    rig.engine.close().await;
    assert_gone(home.path(), "zanzibar", "from many files");
}

/// Files with events from after an opt-in seem to need erasing, even after they were rewritten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_ends_although_the_person_has_opted_in() {
    let home = tempfile::tempdir().unwrap();
    let (rig, rewritten) = slow(home.path()).await;
    rig.engine.track_batch(rig.projects[0], &files_with("ada", FILES)).await.unwrap();
    rig.engine.seal_archive().await.unwrap();

    let erasure = rig.erase(ErasureSubject::User("ada".into())).await.unwrap();
    begun(&rewritten).await;
    let (engine, organization) = (rig.engine.clone(), rig.organization);
    tokio::task::spawn_blocking(move || engine.opt_in(organization, &ErasureSubject::User("ada".into()))).await.unwrap().unwrap();
    rig.engine.track_batch(rig.projects[0], &files_with("ada", LATER_FILES)).await.unwrap();
    rig.engine.seal_archive().await.unwrap();
    assert_eq!(rig.engine.erasure(rig.organization, erasure), Some(ErasureState::Running), "it takes long");
    rig.finish(erasure, "of somebody who has opted in").await;
    let rewritten = rewritten.load(Ordering::Relaxed);
    assert!((FILES..=FILES + LATER_FILES).contains(&rewritten), "{rewritten} files are rewritten");
    let users = rig.engine.ask(rig.projects[0], UniqueUsersQuery { window: window() }).await.unwrap();
    assert_eq!(users.total, 2);
    rig.engine.close().await;
}
