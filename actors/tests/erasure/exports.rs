//! Exports end complete whatever fails, and leave nothing of who is erased.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::privacy::{
    PrivacyAuditEvent, PrivacyFailure, PrivacyRequest, PrivacyRequestKind, PrivacyStatus, PrivacySubject,
};
use headcount_actors::{Engine, search_erased};
use headcount_storage::files::switch::{Errno, Plan, Switch};

use super::{Rig, assert_gone, config, copy, half_sealed, sampled};

fn of_zanzibar() -> PrivacySubject {
    PrivacySubject::UserId("zanzibar".to_owned())
}

impl Rig {
    fn shown(&self, request: &PrivacyRequest) -> Arc<PrivacyRequest> {
        self.engine.privacy_request(self.organization, &request.id).unwrap()
    }

    /// A request once `is_so`.
    async fn when(&self, request: &PrivacyRequest, what: &str, is_so: impl Fn(&PrivacyRequest) -> bool) -> Arc<PrivacyRequest> {
        let until = Stopwatch::now() + Duration::from_secs(60);
        loop {
            let shown = self.shown(request);
            if is_so(&shown) {
                return shown;
            }
            assert!(Stopwatch::now() < until, "{what}: {shown:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The artifact of a completed request, as it is read.
    fn artifact(&self, request: &PrivacyRequest) -> serde_json::Value {
        let found = self.engine.open_export(self.organization, &request.id).unwrap();
        let mut bytes = vec![0; usize::try_from(found.bytes).unwrap()];
        found.file.read_exact_at(&mut bytes, 0).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }
}

fn artifacts(dir: &Path) -> usize {
    fs::read_dir(dir.join("exports")).unwrap().count()
}

fn is_done(request: &PrivacyRequest) -> bool {
    request.status == PrivacyStatus::Completed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_on_files_fail_once_and_the_export_ends() {
    let home = tempfile::tempdir().unwrap();
    let base = home.path().join("base");
    let rig = half_sealed(&base).await;
    for (area, least) in [("exports", 3), ("control/privacy", 2)] {
        let mut failures = 0;
        for at in sampled(&[1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25], &[1, 2, 4, 6]) {
            let data = home.path().join(format!("{}-{at}", area.replace('/', "-")));
            copy(&base, &data);
            let rig = rig.open(&data);
            let errno = if at.is_multiple_of(2) { Errno::NoSpace } else { Errno::Io };
            let what = format!("{area} {errno:?} at {at}");
            let switch = Switch::arm(&data.join(area), Plan { at, failures: 1, errno, done: false });
            let made = match rig.request(PrivacyRequestKind::Export, of_zanzibar()).await {
                Ok(made) => made,
                Err(_) => rig.request(PrivacyRequestKind::Export, of_zanzibar()).await.unwrap(),
            };
            let done = rig.when(&made, &what, is_done).await;
            let failed = switch.failed().first().cloned();
            drop(switch);
            let first = rig.artifact(&done);
            assert_eq!(first["events"].as_array().unwrap().len(), 10, "{what}: {failed:?}");
            let was_retried = done.audit.iter().any(|entry| matches!(entry.event, PrivacyAuditEvent::Retried { .. }));
            assert!(area != "exports" || was_retried == failed.is_some(), "{what}: {failed:?} {done:?}");
            rig.engine.close().await;
            let rig = rig.open(&data);
            assert_eq!(rig.artifact(&rig.shown(&made)), first, "{what}");
            rig.engine.close().await;
            if failed.is_none() {
                break;
            }
            failures += 1;
        }
        assert!(failures >= least, "{area}: {failures} failures");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_under_way_leaves_nothing_of_who_is_erased() {
    let home = tempfile::tempdir().unwrap();
    let base = home.path().join("base");
    let rig = half_sealed(&base).await;
    for delay_ms in [0, 5, 30] {
        let data = home.path().join(format!("after-{delay_ms}"));
        copy(&base, &data);
        let rig = rig.open(&data);
        let export = rig.request(PrivacyRequestKind::Export, of_zanzibar()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        let erasure = rig.request(PrivacyRequestKind::Erasure, of_zanzibar()).await.unwrap();
        let what = format!("erased after {delay_ms} ms");
        rig.when(&erasure, &what, is_done).await;
        let shown = rig.shown(&export);
        assert!(!shown.has_artifact(rig.engine.clock().now()) && shown.subject.is_erased(), "{what}: {shown:?}");
        let is_over = shown.failure() == Some(PrivacyFailure::SubjectErased)
            || shown.audit.iter().any(|entry| matches!(entry.event, PrivacyAuditEvent::ArtifactErased));
        assert!(is_over, "{what}: {shown:?}");
        rig.engine.close().await;
        assert_eq!(artifacts(&data), 0, "{what}");
        assert_gone(&data, "zanzibar", &what);
        let found = search_erased(&config(&data), &["zanzibar".to_owned()], &false.into()).unwrap();
        assert!(found.is_clean() && found.ids == 1 && found.events >= 30, "{what}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nearly_full_disk_ends_attempts_and_not_ingestion() {
    let home = tempfile::tempdir().unwrap();
    let rig = half_sealed(home.path()).await;
    let free = rustix::fs::statvfs(home.path()).map(|stat| stat.f_bavail * stat.f_frsize).unwrap();
    let mut full = config(home.path());
    full.min_free_bytes = free / 10 * 6;
    let rig = Rig { engine: Engine::open(full).unwrap(), ..rig };
    let made = rig.request(PrivacyRequestKind::Export, of_zanzibar()).await.unwrap();
    let is_retried = |entry: &PrivacyAuditEvent| *entry == PrivacyAuditEvent::Retried { failure: PrivacyFailure::DiskFull };
    rig.when(&made, "full", |shown| shown.audit.iter().any(|entry| is_retried(&entry.event))).await;
    assert_eq!((rig.engine.unavailable(), artifacts(home.path())), (None, 0));
    rig.engine.close().await;
    // What a kill leaves.
    let cut = home.path().join("exports").join(format!("{}.json.tmp", made.id));
    fs::File::create(&cut).unwrap().write_all(b"{\"format\"").unwrap();
    let rig = rig.open(home.path());
    let done = rig.when(&made, "with room again", is_done).await;
    assert!(done.audit.iter().any(|entry| entry.event == PrivacyAuditEvent::Resumed), "{done:?}");
    assert_eq!((artifacts(home.path()), rig.artifact(&done)["events"].as_array().unwrap().len()), (1, 10));
    rig.engine.close().await;
    // A restored backup has the request without its artifact.
    fs::remove_file(home.path().join("exports").join(format!("{}.json", made.id))).unwrap();
    let rig = rig.open(home.path());
    rig.when(&made, "made again", is_done).await;
    assert_eq!(artifacts(home.path()), 1);
    rig.engine.close().await;
}
