//! Exports end completely whatever fails, and leave no data of erased people.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::{Engine, EngineConfig, search_erased};
use headcount_privacy::{
    PrivacyAuditEvent, PrivacyFailure, PrivacyRequest, PrivacyRequestKind, PrivacySettings, PrivacyStatus, PrivacySubject,
    install,
};
use headcount_storage::files::switch::{Errno, Plan, Switch};

use super::requests::privacy;
use super::{Rig, all_files, assert_gone, config, copy, half_sealed};

fn of_zanzibar() -> PrivacySubject {
    PrivacySubject::UserId("zanzibar".to_owned())
}

impl Rig {
    fn shown(&self, request: &PrivacyRequest) -> Arc<PrivacyRequest> {
        privacy(&self.engine).get(self.organization, &request.id).unwrap()
    }

    /// Returns a request once `is_so`.
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

    /// Reads the artifact of a completed request.
    fn artifact(&self, request: &PrivacyRequest) -> serde_json::Value {
        let found = privacy(&self.engine).open_export(self.organization, &request.id).unwrap();
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

/// Failed attempts follow each other after a while.
fn pausing(dir: &Path, pause_ms: u64) -> EngineConfig {
    let settings = PrivacySettings { export_pauses: [Duration::from_millis(pause_ms); 4], ..PrivacySettings::default() };
    EngineConfig { features: vec![install(settings)], ..config(dir) }
}

/// Failed attempts follow each other quickly.
fn quick(dir: &Path) -> EngineConfig {
    pausing(dir, 1)
}

impl Rig {
    fn open_quick(&self, dir: &Path) -> Self {
        let engine = Engine::open(quick(dir)).unwrap();
        Self { engine, organization: self.organization, projects: self.projects.clone(), keep_from: self.keep_from }
    }
}

/// Asserts that an artifact has each event of zanzibar once, in order, and no other person's.
fn assert_whole(artifact: &serde_json::Value, what: &str) {
    let ids: Vec<&str> =
        artifact["events"].as_array().unwrap().iter().map(|event| event["external_id"].as_str().unwrap()).collect();
    let expected: Vec<String> = (0..40).step_by(4).map(|number| format!("x{number}")).collect();
    assert_eq!(ids, expected, "{what}");
}

fn times(request: &PrivacyRequest, name: &str) -> usize {
    request.audit.iter().filter(|entry| entry.event.name() == name).count()
}

/// Every operation on the files of exports, on those of requests, and on temporary files fails once
/// before it is done, and once after. If a sync fails, the artifact may be made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_operation_on_files_fails_once_and_the_export_ends() {
    let home = tempfile::tempdir().unwrap();
    let base = home.path().join("base");
    let rig = half_sealed(&base).await;
    for (area, done, least) in [
        ("exports", false, 6),
        ("exports", true, 6),
        ("control/privacy", false, 24),
        ("control/privacy", true, 24),
        ("unnamed", false, 5),
    ] {
        let data = home.path().join(format!("{}-{done}", area.replace('/', "-")));
        copy(&base, &data);
        let rig = rig.open_quick(&data);
        let mut made = Vec::new();
        for at in 1_u64.. {
            let errno = if at.is_multiple_of(2) { Errno::NoSpace } else { Errno::Io };
            let switch = Switch::arm(&data.join(area), Plan { at, failures: 1, errno, done });
            let request = match rig.request(PrivacyRequestKind::Export, of_zanzibar()).await {
                Ok(request) => request,
                Err(_) => rig.request(PrivacyRequestKind::Export, of_zanzibar()).await.unwrap(),
            };
            let ended = rig.when(&request, &format!("{area} {errno:?} at {at}"), is_done).await;
            let failed = switch.failed();
            drop(switch);
            let what = format!("{area} {errno:?} at {at}, done: {done}: {failed:?}");
            let artifact = rig.artifact(&ended);
            assert_whole(&artifact, &what);
            assert_eq!(times(&ended, "completed"), 1, "{what}: {ended:?}");
            let retried = times(&ended, "retried");
            assert!(retried <= 1 && (area == "control/privacy" || retried == failed.len()), "{what}: {ended:?}");
            if failed.is_empty() {
                assert!(at > least, "{what}");
                break;
            }
            made.push((request, artifact, what));
        }
        rig.engine.close().await;
        let rig = rig.open_quick(&data);
        for (request, artifact, what) in &made {
            assert_eq!(rig.artifact(&rig.shown(request)), *artifact, "{what}");
        }
        rig.engine.close().await;
    }
}

/// The files of exports and of requests.
fn files_of_exports(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = ["exports", "control/privacy"].map(|area| all_files(&dir.join(area)));
    files.into_iter().flatten().filter_map(|path| fs::read(&path).ok().map(|bytes| (path, bytes))).collect()
}

/// Copies a data directory each time that the files of exports are about to change, until the
/// result is dropped.
fn copy_at_each_step(data: &Path, copies: &Path) -> (Switch, Arc<Mutex<Vec<PathBuf>>>) {
    let made = Arc::<Mutex<Vec<PathBuf>>>::default();
    let (data, copies, noted) = (data.to_owned(), copies.to_owned(), Arc::clone(&made));
    let last = Mutex::new(None);
    let switch = Switch::watch(&data.clone(), move |_, path| {
        if !path.starts_with(data.join("exports")) && !path.starts_with(data.join("control/privacy")) {
            return;
        }
        let mut last = last.lock().unwrap();
        let now = files_of_exports(&data);
        if last.as_ref() != Some(&now) {
            let mut noted = noted.lock().unwrap();
            let target = copies.join(noted.len().to_string());
            copy(&data, &target);
            noted.push(target);
            *last = Some(now);
        }
    });
    (switch, made)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_each_step_leaves_an_export_to_be_finished() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let rig = half_sealed(&data).await.open_quick(&data);
    let (switch, copies) = copy_at_each_step(&data, &home.path().join("copies"));
    let made = rig.request(PrivacyRequestKind::Export, of_zanzibar()).await.unwrap();
    rig.when(&made, "without a kill", is_done).await;
    drop(switch);
    rig.engine.close().await;
    let copies = std::mem::take(&mut *copies.lock().unwrap());
    let mut finished = 0;
    for (step, killed) in copies.iter().enumerate() {
        let (what, rig) = (format!("killed at step {step} of {}", copies.len()), rig.open_quick(killed));
        if privacy(&rig.engine).get(rig.organization, &made.id).is_ok() {
            let done = rig.when(&made, &what, is_done).await;
            assert_whole(&rig.artifact(&done), &what);
            assert!(times(&done, "completed") == 1 && times(&done, "retried") == 0, "{what}: {done:?}");
            finished += 1;
        }
        rig.engine.close().await;
        let left: Vec<_> = files_of_exports(killed).into_keys().map(|path| path.file_name().unwrap().to_owned()).collect();
        let expected = if finished > 0 { vec![OsString::from(format!("{}.json", made.id)); 2] } else { Vec::new() };
        assert_eq!(left, expected, "{what}");
    }
    assert!(finished >= 12 && copies.len() - finished >= 2, "{finished} of {} steps", copies.len());
}

/// A kill at any step of an erasure leaves no file and no request with the person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_each_step_of_an_erasure_leaves_no_export_of_who_is_erased() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let rig = half_sealed(&data).await.open_quick(&data);
    let made = rig.request(PrivacyRequestKind::Export, of_zanzibar()).await.unwrap();
    rig.when(&made, "without a kill", is_done).await;
    let (switch, copies) = copy_at_each_step(&data, &home.path().join("copies"));
    let erasure = rig.request(PrivacyRequestKind::Erasure, of_zanzibar()).await.unwrap();
    rig.when(&erasure, "without a kill", is_done).await;
    drop(switch);
    rig.engine.close().await;
    let copies = std::mem::take(&mut *copies.lock().unwrap());
    for (step, killed) in copies.iter().enumerate() {
        let (what, rig) = (format!("killed at step {step} of {}", copies.len()), rig.open_quick(killed));
        // The request is recorded even before it has a file.
        rig.finish(1, &what).await;
        let is_over = |shown: &PrivacyRequest| shown.subject.is_erased() && times(shown, "artifact_erased") == 1;
        let shown = rig.when(&made, &what, is_over).await;
        assert_eq!(
            (shown.status, shown.audit.last().unwrap().event.name()),
            (PrivacyStatus::Completed, "artifact_erased"),
            "{what}"
        );
        if privacy(&rig.engine).get(rig.organization, &erasure.id).is_ok() {
            rig.when(&erasure, &what, is_done).await;
        }
        rig.engine.close().await;
        assert_eq!(artifacts(killed), 0, "{what}");
        assert_gone(killed, "zanzibar", &what);
    }
    assert!(copies.len() >= 12, "{} steps", copies.len());
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
    assert_eq!((rig.engine.admission.unavailable(), artifacts(home.path())), (None, 0));
    rig.engine.close().await;
    // A kill leaves this file.
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

/// No person was erased: an export has the current events, which are none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_of_somebody_whose_only_project_was_deleted_is_empty() {
    let home = tempfile::tempdir().unwrap();
    let made = Rig::new(home.path());
    drop(made.engine.track(made.projects[1], &super::of_user("zanzibar", 1)).await.unwrap());
    made.engine.close().await;
    let config = pausing(home.path(), 800);
    let rig = Rig { engine: Engine::open(config).unwrap(), ..made };
    let switch = Switch::arm(&home.path().join("exports"), Plan { at: 1, failures: 1, errno: Errno::Io, done: false });
    let request = rig.request(PrivacyRequestKind::Export, of_zanzibar()).await.unwrap();
    rig.when(&request, "an attempt fails", |shown| times(shown, "retried") == 1).await;
    drop(switch);
    rig.engine.delete_project(rig.organization, rig.projects[1], rig.engine.clock().now()).unwrap();
    let ended = rig.when(&request, "it ends", |shown| !shown.is_open()).await;
    assert_eq!((ended.status, ended.failure()), (PrivacyStatus::Completed, None), "{ended:?}");
    let artifact = rig.artifact(&ended);
    let list = |name: &str| artifact[name].as_array().unwrap().len();
    assert!(artifact["identity"].is_null() && ["identities", "events", "orders"].map(list) == [0; 3], "{artifact}");
    rig.engine.close().await;
}
