//! Webhooks of an engine, with receivers whose answers each test sets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use headcount_actors::domain::ids::{OrganizationId, ProjectId};
use headcount_actors::domain::time::Instant as Timestamp;
use headcount_actors::ingest::{Field, NewEvent, Status};
use headcount_actors::{Engine, EngineConfig};
use headcount_common::clock::{Clock as _, FixedClock};
use headcount_control::WebhookId;
use headcount_webhooks::{Delivery, DeliveryQuery, NewWebhook, SignedRequest, WebhookQuery, WebhookSettings, Webhooks, install};
use hmac::{Hmac, Mac};
use serde_json::Value;
use sha2::Sha256;

#[path = "../../../../actors/tests/support/copies.rs"]
mod copies;
mod files;
#[path = "../../../../actors/tests/support/mod.rs"]
mod support;

const PATIENCE: Duration = Duration::from_secs(60);

/// Answers a request with a status, or not at all.
type Answer = Box<dyn FnMut(&SignedRequest) -> Option<u16> + Send>;

/// Takes requests by URL.
struct Receivers {
    answer: Mutex<Answer>,
    got: Mutex<Vec<(String, Value)>>,
    came: Condvar,
}

impl Receivers {
    fn new(answer: impl FnMut(&SignedRequest) -> Option<u16> + Send + 'static) -> Arc<Self> {
        Arc::new(Self { answer: Mutex::new(Box::new(answer)), got: Mutex::default(), came: Condvar::new() })
    }

    /// Waits until `is_enough` of the requests at a URL, and returns their messages.
    #[track_caller]
    fn messages(&self, url: &str, is_enough: impl Fn(&[String]) -> bool) -> Vec<String> {
        let messages = |got: &[(String, Value)]| -> Vec<String> {
            let of_url = got.iter().filter(|(to, _)| to == url);
            of_url.map(|(_, body)| body["data"]["message"].as_str().unwrap().to_owned()).collect()
        };
        let got = self.got.lock().unwrap();
        let (got, timeout) = self.came.wait_timeout_while(got, PATIENCE, |got| !is_enough(&messages(got))).unwrap();
        assert!(!timeout.timed_out(), "{got:?}");
        messages(&got)
    }
}

impl Receivers {
    fn take(&self, request: &SignedRequest) -> Result<u16, &'static str> {
        let answer = (self.answer.lock().unwrap())(request);
        self.got.lock().unwrap().push((request.url.clone(), serde_json::from_slice(&request.body).unwrap()));
        self.came.notify_all();
        answer.ok_or("connect_failed")
    }
}

fn settings(receivers: &Arc<Receivers>, give_up_after: Duration) -> WebhookSettings {
    let receivers = Arc::clone(receivers);
    let settings = WebhookSettings::new(Arc::new(|url| Ok(url.to_owned())), Arc::new(move |request| receivers.take(request)));
    WebhookSettings { waits: vec![Duration::from_millis(2)], give_up_after, ..settings }
}

fn with(dir: &Path, settings: WebhookSettings) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.shards = 1;
    config.min_free_bytes = 1 << 20;
    config.features = vec![install(settings)];
    config
}

fn config(dir: &Path, receivers: &Arc<Receivers>, give_up_after: Duration) -> EngineConfig {
    with(dir, settings(receivers, give_up_after))
}

fn webhooks(engine: &Engine) -> Arc<Webhooks> {
    engine.feature().unwrap()
}

fn organization(engine: &Engine) -> OrganizationId {
    engine.registry().organizations()[0].id
}

fn create(engine: &Engine, project: ProjectId, url: &str) -> WebhookId {
    let new = NewWebhook { project, url: url.into(), events: None };
    webhooks(engine).create(organization(engine), new, engine.clock().now()).unwrap().0.id
}

fn notification(message: impl Into<String>) -> NewEvent {
    NewEvent::new("sale").notify().with(Field::Message, message)
}

async fn track(engine: &Engine, project: ProjectId, event: NewEvent) {
    assert_eq!(engine.track(project, &event).await.unwrap().status, Status::Recorded);
}

fn deliveries(engine: &Engine, id: &WebhookId) -> Vec<Delivery> {
    let query = DeliveryQuery { limit: 1_000, ..DeliveryQuery::default() };
    let page = webhooks(engine).deliveries(organization(engine), id, &query).unwrap();
    page.deliveries.into_iter().rev().map(|(_, delivery)| delivery).collect()
}

/// Waits until the deliveries of a webhook have these statuses, in order.
async fn wait_for(engine: &Engine, id: &WebhookId, statuses: &[&str]) -> Vec<Delivery> {
    let began = Instant::now();
    loop {
        let found = deliveries(engine, id);
        if found.iter().map(|delivery| delivery.status.as_str()).eq(statuses.iter().copied()) {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{found:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_was_down_gets_everything_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut tries = 0;
    let receivers = Receivers::new(move |_| {
        tries += 1;
        // The receiver is down at first, then unreliable.
        match tries {
            ..=60 => None,
            _ if tries % 3 == 0 => Some(503),
            _ => Some(200),
        }
    });
    let open = || support::open(config(dir.path(), &receivers, Duration::from_secs(86_400)));
    let (engine, project) = open();
    let id = create(&engine, project, "a");
    for number in 0..150 {
        track(&engine, project, notification(number.to_string())).await;
        track(&engine, project, NewEvent::new("quiet")).await;
    }
    receivers.messages("a", |messages| messages.len() > 30);
    // A stop in between repeats nothing with saved progress, and loses nothing.
    engine.close().await;
    drop(engine);
    let (engine, _) = open();
    let delivered = wait_for(&engine, &id, &["delivered"; 150]).await;
    // A try in progress at the stop is not counted.
    assert!(delivered[0].attempts > 30 && delivered[0].delivered_at.is_some(), "{:?}", delivered[0]);
    let mut messages = receivers.messages("a", |_| true);
    messages.dedup();
    assert_eq!(messages, (0..150).map(|number| number.to_string()).collect::<Vec<_>>());
    let ids = receivers.got.lock().unwrap().iter().map(|(_, body)| body["id"].to_string()).collect::<BTreeSet<_>>();
    assert_eq!(ids.len(), 150);
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_too_long_is_dead_and_the_next_one_follows() {
    let dir = tempfile::tempdir().unwrap();
    let receivers = Receivers::new(|request| {
        let is_bad = String::from_utf8_lossy(&request.body).contains("bad");
        if is_bad { Some(400) } else { Some(204) }
    });
    let (engine, project) = support::open(config(dir.path(), &receivers, Duration::from_millis(30)));
    let id = create(&engine, project, "a");
    for message in ["one", "bad", "two"] {
        track(&engine, project, notification(message)).await;
    }
    let found = wait_for(&engine, &id, &["delivered", "dead", "delivered"]).await;
    assert!(found[1].attempts >= 2, "{:?}", found[1]);
    assert_eq!((found[1].last_status, found[1].delivered_at), (Some(400), None));
    let replay = webhooks(&engine).replay(organization(&engine), &id, found[2].position, engine.clock().now()).unwrap();
    assert_eq!((replay.from, replay.to >= found[2].position), (found[2].position, true));
    receivers.messages("a", |messages| messages.iter().filter(|message| *message == "two").count() == 2);
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_does_not_answer_delays_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let release = Arc::new((Mutex::new(false), Condvar::new()));
    let receivers = Receivers::new(|_| Some(200));
    let (slow, waits) = (Arc::clone(&receivers), Arc::clone(&release));
    let deliver = move |request: &SignedRequest| {
        if request.url == "slow" {
            drop(waits.1.wait_while(waits.0.lock().unwrap(), |released| !*released).unwrap());
        }
        slow.take(request)
    };
    let settings = WebhookSettings { deliver: Arc::new(deliver), ..settings(&receivers, Duration::from_secs(86_400)) };
    let (engine, project) = support::open(with(dir.path(), settings));
    create(&engine, project, "slow");
    create(&engine, project, "quick");
    for number in 0..20 {
        track(&engine, project, notification(number.to_string())).await;
    }
    receivers.messages("quick", |messages| messages.len() == 20);
    *release.0.lock().unwrap() = true;
    release.1.notify_all();
    receivers.messages("slow", |messages| messages.len() == 20);
    engine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_were_old_when_they_came_notify_nobody() {
    const DAY_MS: i64 = 86_400_000;
    let dir = tempfile::tempdir().unwrap();
    let receivers = Receivers::new(|_| Some(200));
    let (engine, project) = support::open(config(dir.path(), &receivers, Duration::from_secs(86_400)));
    create(&engine, project, "a");
    let now = engine.clock().now().0;
    track(&engine, project, notification("old").at_ms(now - DAY_MS - 60_000)).await;
    track(&engine, project, notification("late").at_ms(now - DAY_MS + 60_000)).await;
    track(&engine, project, notification("new")).await;
    assert_eq!(receivers.messages("a", |messages| messages.len() == 2), ["late", "new"]);
    engine.close().await;
}

/// The number of signatures in the header of a request that are right for a secret.
fn count_signed_by((header, body): &(String, Vec<u8>), secret: &str) -> usize {
    let (time, signatures) = header.split_once(',').unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(time.strip_prefix("t=").unwrap().as_bytes());
    mac.update(b".");
    mac.update(body);
    let expected: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    signatures.split(',').filter(|signature| signature.strip_prefix("v1=") == Some(&expected)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_try_has_the_same_bytes_and_is_signed_with_its_time() {
    const DAY_MS: i64 = 86_400_000;
    let dir = tempfile::tempdir().unwrap();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let receivers = Receivers::new(move |request| {
        let mut seen = seen.lock().unwrap();
        seen.push((request.signature.clone(), request.body.clone()));
        match seen.len() {
            1 => None,
            2 => Some(302),
            _ => Some(200),
        }
    });
    let start = Timestamp(1_790_000_000_000);
    let clock = FixedClock::at(start);
    // The clock does not advance.
    let settings = WebhookSettings { waits: vec![Duration::ZERO], ..settings(&receivers, Duration::from_secs(86_400)) };
    let config = EngineConfig { clock: Arc::new(clock.clone()), ..with(dir.path(), settings) };
    let (engine, project) = support::open(config);
    // It is not sent, not even by the replay from the beginning.
    track(&engine, project, notification("before")).await;
    let new = NewWebhook { project, url: "a".into(), events: None };
    let (webhook, secret) = webhooks(&engine).create(organization(&engine), new, start).unwrap();
    track(&engine, project, notification("0")).await;
    let first = wait_for(&engine, &webhook.id, &["delivered"]).await.remove(0);
    assert_eq!(first.attempts, 3, "a redirect is no delivery");
    let is_in_seconds = |(header, _): &(String, Vec<u8>)| header.starts_with("t=1790000000,");
    assert!(requests.lock().unwrap().iter().all(is_in_seconds));

    let rotated = webhooks(&engine).rotate_secret(organization(&engine), &webhook.id, start).unwrap();
    clock.set(start.plus_ms(DAY_MS - 1));
    track(&engine, project, notification("1")).await;
    wait_for(&engine, &webhook.id, &["delivered"; 2]).await;
    clock.set(start.plus_ms(DAY_MS));
    track(&engine, project, notification("2")).await;
    wait_for(&engine, &webhook.id, &["delivered"; 3]).await;
    webhooks(&engine).replay(organization(&engine), &webhook.id, 0, clock.now()).unwrap();
    receivers.messages("a", |messages| messages.len() == 8);
    let requests = requests.lock().unwrap().clone();
    let signed: Vec<_> = [&secret, &rotated.secret]
        .map(|secret| requests.iter().map(|request| count_signed_by(request, secret.expose())).collect::<Vec<_>>())
        .into();
    assert_eq!(signed, [[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 1, 1]]);
    let bodies: Vec<_> = requests.iter().map(|(_, body)| body).collect();
    assert!(bodies[..3].iter().all(|body| *body == bodies[5]), "each try, and a replay, has the same bytes");
    assert_eq!((bodies[3], bodies[4]), (bodies[6], bodies[7]));
    engine.close().await;
}

/// A backup has the webhooks and their progress. A restored server sends the notifications after
/// the backup, and no others.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_engine_goes_on_where_the_backup_was_taken() {
    use headcount_storage::backup::{Backup, BackupFolder, restore};
    let dir = tempfile::tempdir().unwrap();
    let receivers = Receivers::new(|_| Some(200));
    let place = |name: &str| dir.path().join(name);
    let (engine, project) = support::open(config(&place("data"), &receivers, Duration::from_secs(86_400)));
    let id = create(&engine, project, "a");
    track(&engine, project, notification("before")).await;
    wait_for(&engine, &id, &["delivered"]).await;
    engine.close().await;
    drop(engine);
    let (engine, _) = support::open(config(&place("data"), &receivers, Duration::from_secs(86_400)));
    let snapshot = engine.begin_backup().unwrap();
    snapshot.write(&mut BackupFolder::create(&place("backup"), None).unwrap()).unwrap();
    engine.close().await;
    restore(&Backup::open(&place("backup")).unwrap(), &place("restored")).unwrap();
    let (restored, project) = support::open(config(&place("restored"), &receivers, Duration::from_secs(86_400)));
    let all = webhooks(&restored).page(organization(&restored), &WebhookQuery { limit: 10, starting_after: None }).unwrap();
    assert_eq!(all.webhooks.iter().map(|webhook| &webhook.id).collect::<Vec<_>>(), [&id]);
    track(&restored, project, notification("after")).await;
    assert_eq!(receivers.messages("a", |messages| messages.len() == 2), ["before", "after"]);
    restored.close().await;
}
