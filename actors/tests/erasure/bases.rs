//! Projects whose early events are gone: they continue from a base, which loses the person.

use std::sync::mpsc;

use headcount_actors::verify::VerifyStatus;
use headcount_archive::{BaseEntry, BaseItem, BaseName};

use super::*;

/// The events of the first day are removed. It has 14 hours of them.
fn second_day() -> Option<Day> {
    Day::parse("2024-03-02")
}

/// Waits until no removable data are left.
pub(super) async fn removed(engine: &Engine) {
    let until = Stopwatch::now() + Duration::from_secs(120);
    while engine.vitals().retention_pending > 0 {
        assert!(Stopwatch::now() < until, "early events stay");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn archive_of(dir: &Path, project: ProjectId) -> Archive {
    Archive::existing(&dir.join("archive"), project).unwrap()
}

/// A closed data directory with a base that has both users, whose early events are gone.
async fn with_base(dir: &Path) -> Rig {
    let rig = Rig { keep_from: second_day(), ..half_sealed(dir).await };
    let rig = rig.open(dir);
    drop(rig.engine.seal_archive().await.unwrap());
    removed(&rig.engine).await;
    rig.engine.close().await;
    let archive = archive_of(dir, rig.projects[0]);
    assert!(archive.manifest().base().is_some());
    let mut rows = 0;
    let counted = archive.for_each_row(0, |_| -> Result<(), ArchiveError> {
        rows += 1;
        Ok(())
    });
    counted.unwrap();
    assert_eq!(rows, 40 - 14, "the events of the first day are gone");
    rig
}

/// The bytes of all pairs of the base of a project, if it has one.
pub(super) fn pairs(dir: &Path, project: ProjectId) -> Vec<Vec<u8>> {
    let (archive, mut pairs) = (archive_of(dir, project), Vec::new());
    let Some(mut base) = archive.base().unwrap() else { return pairs };
    while let Some(item) = base.next().unwrap() {
        if let BaseItem::Pair(key, value) = item {
            pairs.push([key, value].concat());
        }
    }
    pairs
}

pub(super) fn is_in(pairs: &[Vec<u8>], text: &str) -> bool {
    pairs.iter().any(|pair| pair.windows(text.len()).any(|window| window == text.as_bytes()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_base_is_written_anew_without_the_person() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    let made = with_base(&dir).await;
    let (project, former) = (made.projects[0], archive_of(&dir, made.projects[0]).manifest().base().cloned().unwrap());
    assert!(is_in(&pairs(&dir, project), "zanzibar") && is_in(&pairs(&dir, project), "others"));
    let (sent, release) = (mpsc::channel(), mpsc::channel::<()>());
    let ((reached, met), (go_on, waits)) = (sent, release);
    let (reached, waits) = (Mutex::new(reached), Mutex::new(waits));
    let mut config = keeping(&dir, made.keep_from);
    config.archive_probe = Some(Arc::new(move |step: &'static str| {
        if step == "states without an erased identity" {
            // The receiver listens only the first time.
            if reached.lock().unwrap().send(()).is_ok() {
                let _ = waits.lock().unwrap().recv();
            }
        }
    }));
    let rig = Rig { engine: Engine::open(config).unwrap(), ..made };
    let erasure = rig.erase(ErasureSubject::User("zanzibar".into())).await.unwrap();
    let met = tokio::task::spawn_blocking(move || met.recv().map(|()| met)).await.unwrap().unwrap();
    // The state has lost the person, but the base has not.
    let verify = async |what: &str| {
        let report = rig.engine.verify(false, &Arc::default()).await.unwrap();
        assert_eq!(report.status(), VerifyStatus::Clean, "{what}: {:?} {:?}", report.cells, report.damaged);
    };
    verify("before the base is written anew").await;
    assert_eq!(archive_of(&dir, project).manifest().base(), Some(&former));
    drop((met, go_on));
    rig.finish(erasure, "with a base").await;
    verify("afterwards").await;
    let answers = rig.answers().await;
    rig.engine.close().await;
    let base = archive_of(&dir, project).manifest().base().cloned().unwrap();
    // Nothing was recorded since.
    assert_eq!(base.name, BaseName { position: former.position(), rewrites: 1 });
    assert!(!is_in(&pairs(&dir, project), "zanzibar") && is_in(&pairs(&dir, project), "others"));
    assert_gone(&dir, "zanzibar", "with a base");
    for derived in ["store", "fingerprints"] {
        fs::remove_dir_all(dir.join(derived)).unwrap();
    }
    let rig = rig.open(&dir);
    assert_eq!(rig.answers().await, answers, "rebuilt");
    assert_eq!(archive_of(&dir, project).manifest().base().map(BaseEntry::name), Some(base.name()));
    rig.engine.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_each_step_leaves_a_base_to_be_finished() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("d");
    let (rig, steps) = erase_until(with_base(&dir).await, &dir, None).await;
    let expected = users(&rig).await;
    rig.engine.close().await;
    assert!(steps >= 9, "{steps} steps");
    for at in 0..steps {
        let dir = home.path().join(format!("k{at}"));
        killed(with_base(&dir).await, &dir, at, &expected).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_on_files_fail_once_and_a_base_is_written_anew() {
    let home = tempfile::tempdir().unwrap();
    let rig = with_base(&home.path().join("base")).await;
    let fold = format!("fold-tmp.{}", rig.projects[0]);
    fails_once(&rig, home.path(), &[("archive", 3), ("store/tables", 1), (&fold, 1)]).await;
}

/// After an opt-in, new events of the person count, although the base is as old as the erasure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_opts_in_again_stays_in_a_rebuild() {
    let home = tempfile::tempdir().unwrap();
    let rig = with_base(home.path()).await.open(home.path());
    let erasure = rig.erase(ErasureSubject::User("zanzibar".into())).await.unwrap();
    rig.finish(erasure, "opts in").await;
    let before = users(&rig).await;
    let (engine, organization) = (rig.engine.clone(), rig.organization);
    let opted = tokio::task::spawn_blocking(move || engine.opt_in(organization, &ErasureSubject::User("zanzibar".into())));
    opted.await.unwrap().unwrap();
    assert_eq!(rig.engine.track(rig.projects[0], &of_user("zanzibar", 50)).await.unwrap().status, Status::Recorded);
    let erasure = rig.erase(ErasureSubject::User("others".into())).await.unwrap();
    rig.finish(erasure, "another one").await;
    let expected = users(&rig).await;
    assert_ne!(expected, before);
    assert!(expected.contains("total: 1"), "{expected}");
    rig.engine.close().await;
    for derived in ["store", "fingerprints"] {
        fs::remove_dir_all(home.path().join(derived)).unwrap();
    }
    let rig = rig.open(home.path());
    assert_eq!(users(&rig).await, expected);
    rig.engine.close().await;
    assert_gone(home.path(), "shop.example/others", "another one");
}
