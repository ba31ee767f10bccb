//! The files of webhooks: whatever fails, and at whatever step a kill comes, no notification is
//! lost, and none with saved progress is repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::Engine;
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::intake::event::Position;
use headcount_control::{NewProject, RegistryError, WebhookId};
use headcount_storage::files::switch::{Errno, Plan, Switch};
use headcount_webhooks::{NewWebhook, Webhook, WebhookPatch, WebhookQuery};

use super::copies::copy;
use super::{PATIENCE, Receivers, config, create, deliveries, notification, organization, support, track, wait_for, webhooks};

const DAY: Duration = Duration::from_secs(86_400);
const FILES: &str = "control/webhooks";

fn open(dir: &Path, receivers: &Arc<Receivers>) -> (Engine, ProjectId) {
    support::open(config(dir, receivers, DAY))
}

fn all(engine: &Engine) -> Vec<Webhook> {
    webhooks(engine).page(organization(engine), &WebhookQuery { limit: 1_000, starting_after: None }).unwrap().webhooks
}

/// Repeats a failed attempt once.
fn again<R>(attempt: impl Fn() -> Result<R, RegistryError>) -> R {
    attempt().or_else(|_| attempt()).unwrap()
}

/// Writes a webhook's files in every way except sending. Returns its id.
fn written(engine: &Engine, project: ProjectId, at: u64) -> WebhookId {
    let (organization, now, webhooks) = (organization(engine), engine.clock().now(), webhooks(engine));
    let new = |url: String| NewWebhook { project, url, events: None };
    let id = again(|| webhooks.create(organization, new(format!("u{at}")), now)).0.id;
    let patch = || WebhookPatch { url: Some(format!("v{at}")), ..WebhookPatch::default() };
    again(|| webhooks.change(organization, &id, patch(), now));
    again(|| webhooks.rotate_secret(organization, &id, now));
    // This sends nothing again, and writes the progress.
    again(|| webhooks.replay(organization, &id, Position::MAX, now));
    let other = again(|| webhooks.create(organization, new("w".to_owned()), now)).0.id;
    again(|| webhooks.replay(organization, &other, Position::MAX, now));
    again(|| webhooks.remove(organization, &other, now));
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn each_operation_on_files_fails_once_and_nothing_is_lost() {
    for done in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let receivers = Receivers::new(|_| Some(200));
        let (engine, _) = open(dir.path(), &receivers);
        let mut made = BTreeMap::new();
        for at in 1_u64.. {
            let new = NewProject { name: at.to_string(), ..NewProject::default() };
            let project = engine.registry().create_project(organization(&engine), new, engine.clock().now()).unwrap().id;
            let errno = if at.is_multiple_of(2) { Errno::NoSpace } else { Errno::Io };
            let switch = Switch::arm(&dir.path().join(FILES), Plan { at, failures: 1, errno, done });
            let id = written(&engine, project, at);
            track(&engine, project, notification("first")).await;
            assert_eq!(receivers.messages(&format!("v{at}"), |messages| !messages.is_empty()), ["first"], "{errno:?} at {at}");
            wait_for(&engine, &id, &["delivered"]).await;
            let failed = switch.failed();
            drop(switch);
            made.insert(id, (project, format!("v{at}"), format!("{errno:?} at {at}, done: {done}: {failed:?}")));
            if failed.is_empty() {
                break;
            }
        }
        assert!(made.len() > 40, "{} failures", made.len() - 1);
        let shown: BTreeMap<_, _> = all(&engine).into_iter().map(|webhook| (webhook.id.clone(), webhook)).collect();
        engine.close().await;
        drop(engine);
        let (engine, _) = open(dir.path(), &receivers);
        let read: BTreeMap<_, _> = all(&engine).into_iter().map(|webhook| (webhook.id.clone(), webhook)).collect();
        assert_eq!(read, shown, "what was refused has not come back");
        assert!(read.keys().eq(made.keys()), "{read:?}");
        for (id, (project, url, what)) in &made {
            track(&engine, *project, notification("second")).await;
            let messages = receivers.messages(url, |messages| messages.iter().any(|message| message == "second"));
            assert_eq!(messages, ["first", "second"], "{what}");
            wait_for(&engine, id, &["delivered", "delivered"]).await;
        }
        engine.close().await;
    }
}

/// The test's knowledge when its data directory was copied.
#[derive(Debug)]
struct KilledAt {
    data: PathBuf,
    /// The number of recorded notifications.
    recorded: usize,
    /// Whether the progress of the second webhook was saved.
    is_saved: bool,
}

/// The progress of a test.
#[derive(Default)]
struct Course {
    recorded: AtomicUsize,
    is_saved: AtomicBool,
    killed: Mutex<Vec<KilledAt>>,
}

impl Course {
    /// Copies a data directory each time that the files of webhooks are about to change, until the
    /// result is dropped.
    fn copy_at_each_step(self: &Arc<Self>, data: &Path, copies: &Path) -> Switch {
        let (data, copies, course) = (data.to_owned(), copies.to_owned(), Arc::clone(self));
        let last = Mutex::new(None);
        Switch::watch(&data.join(FILES), move |_, _| {
            let mut last = last.lock().unwrap();
            let paths = fs::read_dir(data.join(FILES)).unwrap().map(|entry| entry.unwrap().path());
            let now: BTreeMap<_, _> = paths.filter_map(|path| fs::read(&path).ok().map(|bytes| (path, bytes))).collect();
            if last.as_ref() != Some(&now) {
                let mut killed = course.killed.lock().unwrap();
                let (recorded, is_saved) = (course.recorded.load(Ordering::SeqCst), course.is_saved.load(Ordering::SeqCst));
                let target = copies.join(killed.len().to_string());
                copy(&data, &target);
                killed.push(KilledAt { data: target, recorded, is_saved });
                *last = Some(now);
            }
        })
    }

    async fn notify(&self, engine: &Engine, project: ProjectId) {
        let number = self.recorded.load(Ordering::SeqCst);
        track(engine, project, notification(number.to_string())).await;
        self.recorded.store(number + 1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_each_step_loses_nothing_and_repeats_nothing_that_was_saved() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let (course, receivers) = (Arc::<Course>::default(), Receivers::new(|_| Some(200)));
    let (engine, project) = open(&data, &receivers);
    let (organization, now) = (organization(&engine), engine.clock().now());
    let switch = course.copy_at_each_step(&data, &home.path().join("copies"));
    let first = create(&engine, project, "first");
    for _ in 0..3 {
        course.notify(&engine, project).await;
    }
    wait_for(&engine, &first, &["delivered"; 3]).await;
    webhooks(&engine).replay(organization, &first, Position::MAX, now).unwrap();
    webhooks(&engine).rotate_secret(organization, &first, now).unwrap();
    let second = create(&engine, project, "second");
    course.notify(&engine, project).await;
    wait_for(&engine, &second, &["delivered"]).await;
    webhooks(&engine).replay(organization, &second, Position::MAX, now).unwrap();
    course.is_saved.store(true, Ordering::SeqCst);
    webhooks(&engine).remove(organization, &second, now).unwrap();
    course.notify(&engine, project).await;
    wait_for(&engine, &first, &["delivered"; 5]).await;
    engine.close().await;
    drop(switch);

    let killed = std::mem::take(&mut *course.killed.lock().unwrap());
    let mut with_second = 0;
    for (step, killed_at) in killed.iter().enumerate() {
        let what = format!("step {step} of {}: {killed_at:?}", killed.len());
        let receivers = Receivers::new(|_| Some(200));
        let (engine, project) = open(&killed_at.data, &receivers);
        let there: BTreeSet<WebhookId> = all(&engine).into_iter().map(|webhook| webhook.id).collect();
        assert!(there.iter().all(|id| *id == first || *id == second), "{what}: {there:?}");
        track(&engine, project, notification("last")).await;
        let messages = |url: &str| receivers.messages(url, |messages| messages.iter().any(|message| message == "last"));
        if there.contains(&first) {
            let sent = messages("first");
            let all: Vec<String> = (0..5).map(|number| number.to_string()).collect();
            let rest = sent.strip_suffix(&["last".to_owned()][..]).unwrap();
            // An event may be recorded, and not answered yet.
            let can_end = [killed_at.recorded, killed_at.recorded + 1].into_iter().any(|end| all[..end.min(5)].ends_with(rest));
            assert!(can_end, "{what}: {sent:?}");
            let is_listed = |count: usize| deliveries(&engine, &first).len() == count;
            // A delivery is listed after it is recorded.
            let began = Stopwatch::now();
            while ![killed_at.recorded + 1, killed_at.recorded + 2].into_iter().any(is_listed) {
                assert!(began.elapsed() < PATIENCE, "{what}: {:?}", deliveries(&engine, &first));
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        if there.contains(&second) {
            let sent = messages("second");
            let repeats = sent.len() > 1;
            assert!(!(repeats && killed_at.is_saved) && sent.len() <= 2, "{what}: {sent:?}");
            with_second += 1;
        }
        engine.close().await;
        let left = fs::read_dir(killed_at.data.join(FILES)).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<String> = left.map(|name| name.into_string().unwrap()).collect();
        let is_known = |name: &String| name.ends_with(".json") && there.iter().any(|id| name.starts_with(id.as_str()));
        assert!(left.iter().all(is_known), "{what}: {left:?}");
    }
    assert!(killed.len() >= 12 && with_second >= 4, "{} steps, {with_second} with both", killed.len());
}
