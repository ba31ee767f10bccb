//! Moving an installation into a cluster: interrupted attempts, and refused installations.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use headcount_actors::domain::ids::{OrganizationId, ProjectId};
use headcount_actors::ingest::{Field, NewEvent};
use headcount_actors::{Engine, EngineConfig, LeftBehind, MovingError, MovingSource};
use headcount_cluster::files::Bucket;
use headcount_cluster::init::{InitError, InitOptions, init, init_from};
use headcount_cluster::log::{Content, LogEnd, LogReader};
use headcount_cluster::moving::{MoveError, Moved};
use headcount_cluster::status::status;
use headcount_cluster::{ClusterRecord, Credentials, RecordError, StreamName};
use headcount_common::{PARTITIONS, partition_of};
use headcount_control::{NewProject, ProjectPatch, Registry};
use headcount_profiles::{BuildSettings, NewCompanyProfile, ProfilePatch, Profiles, SiteFindings, install};
use tokio::runtime::{Builder, Runtime};

use crate::brokers::Brokers;
use crate::node::wait_until;

/// The stream of the bucket with the record.
const BUCKET: &str = "KV_hc";
const PROJECTS: usize = 4;
const BATCHES: usize = 6;
/// Random texts don't compress: each project's events take two megabytes.
const EVENTS: usize = 500;
const TEXT_BYTES: usize = 600;
/// A visitor salt, and its day.
const SALT: [u8; 16] = [7; 16];
const SALT_DAY: i64 = 20_000;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Records events of some projects in a data directory. Returns the number of each project's
/// events.
fn fill(runtime: &Runtime, dir: &Path) -> BTreeMap<ProjectId, u64> {
    let mut random = fastrand::Rng::with_seed(7);
    runtime.block_on(async {
        let mut config = EngineConfig { shards: 1, min_free_bytes: 1 << 20, ..EngineConfig::new(dir) };
        config.checkpoints.interval = Duration::from_millis(500);
        config.features = vec![install(BuildSettings::new(Arc::new(|_| SiteFindings::default())))];
        let engine = Engine::open(config.clone()).unwrap();
        let now = engine.clock().now();
        engine.registry().initialize(now).unwrap();
        let organization = engine.registry().organizations()[0].id;
        let profile = ProfilePatch { website: Some("acme.example".to_owned()), ..ProfilePatch::default() };
        let profiles = engine.feature::<Profiles>().unwrap();
        drop(profiles.store().create(organization, NewCompanyProfile(profile), now).unwrap());
        drop(profiles);
        let mut counts = BTreeMap::new();
        for number in 0..PROJECTS {
            let new = NewProject { name: format!("project {number}"), ..NewProject::default() };
            let project = engine.registry().create_project(organization, new, now).unwrap().id;
            for batch in 0..BATCHES {
                let mut event = |n: usize| {
                    let text: String = std::iter::repeat_with(|| random.alphanumeric()).take(TEXT_BYTES).collect();
                    NewEvent::new("order").user(format!("u{n}")).external_id(format!("{batch}-{n}")).with(Field::Message, text)
                };
                let events: Vec<NewEvent> = (0..EVENTS).map(&mut event).collect();
                assert_eq!(engine.track_batch(project, &events).await.unwrap().errors.len(), 0);
            }
            counts.insert(project, (BATCHES * EVENTS) as u64);
        }
        lose_events(&engine, organization).await;
        engine.close().await;
        // All projects are checked after a start.
        let engine = Engine::open(config).unwrap();
        wait_until("events are removed", || bases_in(dir) > 0 && engine.vitals().retention_pending == 0);
        engine.seal_archive().await.unwrap();
        engine.close().await;
        counts
    })
}

/// Creates a project with events that its retention removes.
async fn lose_events(engine: &Engine, organization: OrganizationId) {
    let now = engine.clock().now();
    let new = NewProject { name: "forgets".to_owned(), ..NewProject::default() };
    let project = engine.registry().create_project(organization, new, now).unwrap().id;
    for days in [1, 2, 40, 41] {
        let event = NewEvent::new("order").user("ada").at_ms(now.0 - days * 86_400_000);
        engine.track(project, &event).await.unwrap();
    }
    engine.seal_archive().await.unwrap();
    let patch = ProjectPatch { retention_days: Some(Some(30)), ..ProjectPatch::default() };
    engine.registry().update_project(organization, project, patch, now).unwrap();
    assert!(engine.ingest.apply_retention(project).await.unwrap().is_some());
}

/// The number of bases below a directory.
fn bases_in(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let is_base = |path: &Path| path.file_name().unwrap().to_string_lossy().starts_with("state-");
    entries.map(|path| if path.is_dir() { bases_in(&path) } else { usize::from(is_base(&path)) }).sum()
}

fn options(brokers: &Brokers, dir: &Path, max_bytes: i64) -> InitOptions {
    let (brokers, data_dir) = (brokers.addresses(), dir.to_owned());
    InitOptions { brokers, credentials: Credentials::None, replicas: 1, max_bytes, data_dir, files: None }
}

/// Moves in, while `goes_on` returns true for the number of recorded events.
fn move_in(
    runtime: &Runtime,
    options: &InitOptions,
    from: &Path,
    goes_on: impl Fn(u64) -> bool,
) -> Result<(ClusterRecord, Moved), InitError> {
    let scratch = tempfile::tempdir().unwrap();
    let source = MovingSource::open(from, scratch.path(), &[headcount_profiles::MOVED]).unwrap();
    let mut progress = |recorded, _| if goes_on(recorded) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    init_from(runtime.handle(), options, &source, &mut progress)
}

/// Counts the events of each partition on the brokers, with the chain of their messages.
async fn recorded(brokers: &Brokers) -> BTreeMap<u16, u64> {
    let connection = brokers.connect().await;
    let mut counts = BTreeMap::new();
    for partition in 0..PARTITIONS {
        let reader = LogReader::open(&connection, &StreamName::of_partition(partition).stream).await.unwrap();
        let mut count = |_, message: headcount_cluster::log::Message| {
            if let Content::Events(entries) = message.content {
                *counts.entry(partition).or_default() += entries.iter().map(|entry| u64::from(entry.count)).sum::<u64>();
            }
            ControlFlow::Continue(())
        };
        let sequence = reader.known_bounds().0 - 1;
        reader.read(LogEnd { sequence, ..LogEnd::default() }, &mut count).await.unwrap();
    }
    counts
}

#[test]
fn an_attempt_that_is_cut_off_is_made_again_without_doubling_an_event() {
    let runtime = runtime();
    let Some(brokers) = runtime.block_on(Brokers::start(1)) else { return };
    let (from, to, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let events = fill(&runtime, from.path());
    let salts = serde_json::json!([{ "day": SALT_DAY, "salt": SALT }]);
    std::fs::write(from.path().join("keys/salts"), salts.to_string()).unwrap();
    let total: u64 = events.values().sum();
    let (place, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bucket_at = |dir: &Path| Some(Bucket::open(&format!("file://{}", dir.display())).unwrap());
    let files = bucket_at(place.path());
    let of_size = |bytes| InitOptions { files: files.clone(), ..options(&brokers, to.path(), bytes) };
    let without = move_in(&runtime, &options(&brokers, to.path(), 8 << 20), from.path(), |_| true).unwrap_err();
    assert!(matches!(&without, InitError::Move(error) if matches!(**error, MoveError::NoFiles(_))), "{without}");
    let refused = move_in(&runtime, &of_size(2 << 20), from.path(), |_| true).unwrap_err();
    let InitError::Move(refused) = refused else { panic!("{refused}") };
    let MoveError::NoRoom { wanted, .. } = *refused else { panic!("{refused}") };
    assert!((4..15).contains(&wanted), "{refused}");
    let options = of_size(i64::try_from(wanted << 20).unwrap());
    for (least, goes_on_until) in [(0, 1), (1, total / 2), (total / 2, total - 1)] {
        // The first attempt has the wrong place for files.
        let files = if least == 0 { bucket_at(elsewhere.path()) } else { files.clone() };
        let attempt = InitOptions { files, ..options.clone() };
        let stopped = move_in(&runtime, &attempt, from.path(), |recorded| recorded < goes_on_until).unwrap_err();
        assert!(matches!(&stopped, InitError::Move(error) if matches!(**error, MoveError::Stopped)), "{stopped}");
        let recorded: u64 = runtime.block_on(recorded(&brokers)).values().sum();
        assert!((least + 1..=total).contains(&recorded), "{recorded}");
        assert!(runtime.block_on(status(&brokers.addresses(), &Credentials::None)).is_err(), "there is no cluster yet");
    }
    // No other installation can continue it, and neither can an empty one.
    let else_dir = tempfile::tempdir().unwrap();
    fill_nothing(else_dir.path());
    let refused = move_in(&runtime, &options, else_dir.path(), |_| true).unwrap_err();
    assert!(matches!(&refused, InitError::Secrets(_) | InitError::Move(_)), "{refused}");
    let alone = InitOptions { data_dir: other.path().to_owned(), ..options.clone() };
    let first =
        |registry: &Registry| Ok::<_, InitError>(registry.initialize(headcount_actors::domain::time::Instant(1)).map(drop)?);
    let refused = init(runtime.handle(), &alone, first).unwrap_err();
    assert!(matches!(refused, InitError::Left(_)), "{refused}");
    let (record, moved) = move_in(&runtime, &options, from.path(), |_| true).unwrap();
    assert_eq!((moved.organizations, moved.projects, moved.events), (1, PROJECTS + 2, total));
    assert_eq!((moved.projects_with_files, bases_in(place.path())), (1, 1), "attempts publish the same object");
    assert_eq!(bases_in(elsewhere.path()), 1, "the first attempt had published it there");
    assert!(moved.recorded_before > total / 2, "{moved:?}");
    let LeftBehind { documents: left, set_aside } = &moved.left_behind;
    assert_eq!((moved.documents, left.iter().map(|(_, count)| count).sum::<usize>(), *set_aside), (1, 0, 0));
    let mut wanted = BTreeMap::<u16, u64>::new();
    events.iter().for_each(|(project, count)| *wanted.entry(partition_of(*project)).or_default() += count);
    assert_eq!(runtime.block_on(recorded(&brokers)), wanted);
    let refused = move_in(&runtime, &options, from.path(), |_| true).unwrap_err();
    assert!(matches!(refused, InitError::Record(RecordError::Exists(found)) if found == record.incarnation), "{refused}");
    // The state of an attempt that is interrupted before its last step.
    let whole = runtime.block_on(messages(&brokers));
    runtime.block_on(forget_record(&brokers));
    std::fs::remove_file(to.path().join("node")).unwrap();
    let (again, moved) = move_in(&runtime, &options, from.path(), |_| true).unwrap();
    assert_eq!((again, moved.recorded_before, moved.documents), (record, total, 1));
    assert_eq!(runtime.block_on(messages(&brokers)), whole, "no change of organizations and no document is recorded twice");
    assert_eq!(runtime.block_on(recorded(&brokers)), wanted, "nor is an event");
    let keys = |dir: &Path| std::fs::read(dir.join("keys/hash.key")).unwrap();
    assert_eq!(keys(from.path()), keys(to.path()));
    assert_eq!(runtime.block_on(salt(&brokers)), SALT, "whichever node starts first uses it");
}

/// The visitor salt of the day on the brokers.
async fn salt(brokers: &Brokers) -> Vec<u8> {
    let context = async_nats::jetstream::new(async_nats::connect(brokers.addresses()).await.unwrap());
    let salts = context.get_key_value("hc_salts").await.unwrap();
    salts.get(format!("day.{SALT_DAY}")).await.unwrap().unwrap().to_vec()
}

/// Removes the record that turns brokers into a cluster.
async fn forget_record(brokers: &Brokers) {
    let context = async_nats::jetstream::new(async_nats::connect(brokers.addresses()).await.unwrap());
    let purged = context.get_stream(BUCKET).await.unwrap().purge().filter("$KV.hc.cluster").await.unwrap();
    assert_eq!(purged.purged, 1);
}

/// The number of messages of each stream, except the bucket of the record and the streams of
/// events, in which each attempt begins an epoch.
async fn messages(brokers: &Brokers) -> BTreeMap<String, u64> {
    let context = async_nats::jetstream::new(async_nats::connect(brokers.addresses()).await.unwrap());
    let mut found: BTreeMap<String, u64> =
        context.streams().map_ok(|stream| (stream.config.name, stream.state.messages)).try_collect().await.unwrap();
    assert!(found.remove(BUCKET).is_some());
    found.retain(|name, _| !name.starts_with("EV_"));
    assert!(found.values().sum::<u64>() > 1, "{found:?}");
    found
}

/// Creates another installation.
fn fill_nothing(dir: &Path) {
    let engine = Engine::open(EngineConfig { shards: 1, min_free_bytes: 1 << 20, ..EngineConfig::new(dir) }).unwrap();
    engine.registry().initialize(engine.clock().now()).unwrap();
    runtime().block_on(engine.close());
}

#[test]
fn a_directory_that_is_neither_is_refused() {
    let (dir, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let refused = MovingSource::open(dir.path(), scratch.path(), &[]).unwrap_err();
    assert!(matches!(refused, MovingError::Neither(_)), "{refused}");
}
