//! Partitions that move between engines: each event counts once, whoever has its partition.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use copies::copy;
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::intake::event::Event;
use headcount_actors::domain::queries::{RevenueMetricsQuery, UniqueUsersQuery};
use headcount_actors::domain::time::{Day, Window};
use headcount_actors::domain::versions::Depends;
use headcount_actors::ingest::{NewEvent, Status, Ticket};
use headcount_actors::registry::{ControlError, NewProject, Registry};
use headcount_actors::{
    Adoption, AskError, CopiedState, DocumentChange, DocumentVisitor, Engine, EngineConfig, LogSink, Membership, Owners, SharedCursors,
    SharedDocuments, SharedDocumentsError, SharedLetters, SharedLettersError, partition_of,
};
use headcount_storage::TableFile;
use headcount_storage::boot_time::boot_time;
use headcount_storage::format::Incarnation;
use headcount_storage::log::{Commit, Committed, LogError, Outcome, Position, ReadLog, Record, RecordVisitor, WantedAfter};
use parking_lot::Mutex;
use tempfile::TempDir;

#[path = "support/copies.rs"]
mod copies;
mod support;

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;

/// A record: the position of its first event, the number of its events, and its bytes.
type Recorded = (Position, u32, Vec<u8>);

/// The log of several engines. Positions have gaps, as those of brokers.
#[derive(Debug, Default)]
struct SharedLog {
    partitions: Mutex<BTreeMap<u16, Vec<Recorded>>>,
}

impl SharedLog {
    fn end(&self, partition: u16) -> Position {
        self.partitions.lock().get(&partition).and_then(|records| records.last()).map_or(0, |last| last.0 + u64::from(last.1) - 1)
    }
}

impl ReadLog for SharedLog {
    fn first_position(&self, _: u16) -> Position {
        1
    }

    fn last_position(&self, partition: u16) -> Position {
        self.end(partition)
    }

    fn events_after(&self, partition: u16, position: Position) -> u64 {
        self.end(partition).saturating_sub(position)
    }

    fn is_in_order(&self) -> bool {
        false
    }

    fn read(&self, wanted: &WantedAfter<'_>, visit: &mut RecordVisitor<'_>) -> Result<(), LogError> {
        let partitions = self.partitions.lock().clone();
        for (partition, records) in &partitions {
            let Some(after) = wanted(*partition) else { continue };
            for (first, count, payload) in records {
                let record = Record { partition: *partition, first: *first, count: *count, payload };
                if first + u64::from(*count) > after + 1 && visit(record) == ControlFlow::Break(()) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// What one engine records with.
struct SharedCommit {
    log: Arc<SharedLog>,
    sink: LogSink,
}

impl Commit<Ticket> for SharedCommit {
    fn submit(&self, partition: u16, count: u32, payload: Vec<u8>, ticket: Ticket) -> Result<(), Ticket> {
        let mut partitions = self.log.partitions.lock();
        let records = partitions.entry(partition).or_default();
        let first = (records.len() as u64 + 1) << 13;
        records.push((first, count, payload));
        (self.sink)(vec![Outcome::Committed(Committed { partition, first, count, ticket })]);
        Ok(())
    }

    fn end_segment(&self, _: Position) {}

    fn close(&self) {}
}

/// Which events were set aside, as all engines see it.
#[derive(Debug, Default)]
struct CommonLetters {
    positions: Mutex<BTreeMap<u16, BTreeSet<Position>>>,
    is_silent: AtomicBool,
}

impl SharedLetters for CommonLetters {
    fn set_aside(&self, partition: u16, positions: &BTreeSet<Position>) -> Result<(), SharedLettersError> {
        if self.is_silent.load(Ordering::SeqCst) {
            return Err(SharedLettersError::Unavailable("no answer".to_owned()));
        }
        self.positions.lock().entry(partition).or_default().extend(positions);
        Ok(())
    }
}

/// Engines that share no documents.
#[derive(Debug)]
struct NoDocuments;

impl SharedDocuments for NoDocuments {
    fn follow(&self, _: &mut DocumentVisitor<'_>) -> Result<u64, ControlError> {
        Ok(0)
    }

    fn put(&self, _: u64, _: DocumentChange<'_>) -> Result<(), SharedDocumentsError> {
        Err(SharedDocumentsError::Unavailable("there are none".to_owned()))
    }
}

impl SharedCursors for NoDocuments {
    fn read(&self, _: &str) -> Result<Option<(Vec<u8>, u64)>, SharedDocumentsError> {
        Ok(None)
    }

    fn write(&self, _: &str, _: &[u8], _: u64) -> Result<u64, SharedDocumentsError> {
        Err(SharedDocumentsError::Unavailable("there are none".to_owned()))
    }

    fn remove(&self, _: &str) -> Result<(), SharedDocumentsError> {
        Ok(())
    }
}

struct Node {
    engine: Engine,
    log: Arc<SharedLog>,
    owners: Arc<Owners>,
    letters: Arc<CommonLetters>,
    dir: TempDir,
}

impl Node {
    /// Starts an engine with a copy of this control data and these keys.
    fn start(origin: &Path, log: &Arc<SharedLog>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::start_in(dir, Some(origin), log)
    }

    fn start_in(dir: TempDir, origin: Option<&Path>, log: &Arc<SharedLog>) -> Self {
        Self::start_with(dir, origin, (log, &Arc::default()), false)
    }

    /// The same, with what is set aside. `panics`: events called `poison` make it panic.
    fn start_with(
        dir: TempDir,
        origin: Option<&Path>,
        (log, letters): (&Arc<SharedLog>, &Arc<CommonLetters>),
        panics: bool,
    ) -> Self {
        let (owners, origin) = (Arc::new(Owners::unknown()), origin.map(Path::to_owned));
        let keys = dir.path().join("keys");
        origin.iter().for_each(|origin| copy(&origin.join("keys"), &keys));
        let registry = move |dir: &Path| {
            origin.iter().for_each(|origin| copy(&origin.join("control"), &dir.join("control")));
            Ok(Registry::open(dir)?)
        };
        let shared = Arc::clone(log);
        let commit = move |sink| Arc::new(SharedCommit { log: shared, sink }) as Arc<dyn Commit<Ticket>>;
        let membership = Membership {
            incarnation: Incarnation::from_number(77),
            registry: Box::new(registry),
            log: Arc::<SharedLog>::clone(log),
            commit: Box::new(commit),
            archive: None,
            letters: Arc::<CommonLetters>::clone(letters),
            profiles: Arc::new(NoDocuments),
            webhooks: (Arc::new(NoDocuments), Arc::new(NoDocuments)),
            owners: Arc::clone(&owners),
        };
        let mut config = EngineConfig { shards: 2, min_free_bytes: 1 << 20, ..EngineConfig::new(dir.path()) };
        if panics {
            config.probe = Some(Arc::new(|event: &Event| assert!(&*event.name != "poison", "planted")));
        }
        let engine = Engine::open_member(config, membership).unwrap();
        assert!(keys.join("hash.key").exists());
        let today = engine.clock().now().utc_day();
        engine.set_visitor_salt(today, [7; 16]).unwrap();
        Self { engine, log: Arc::clone(log), owners, letters: Arc::clone(letters), dir }
    }

    async fn take(&self, partition: u16) {
        self.take_until(partition, self.log.end(partition)).await;
    }

    async fn take_until(&self, partition: u16, until: Position) {
        self.take_copy(partition, until, None).await;
    }

    async fn take_copy(&self, partition: u16, until: Position, copied: Option<CopiedState>) {
        let set_aside = self.letters.positions.lock().get(&partition).cloned().unwrap_or_default();
        self.engine.adopt_letters(partition, set_aside);
        self.engine.adopt(partition, until, copied).await.unwrap();
        assert_eq!(self.adopted(partition).await, Adoption::Done);
        self.owners.hold(partition, boot_time() + Duration::from_secs(600));
    }

    /// Waits until it is taken over, or can't be.
    async fn adopted(&self, partition: u16) -> Adoption {
        loop {
            match self.engine.adoption(partition) {
                Adoption::UnderWay => tokio::time::sleep(Duration::from_millis(2)).await,
                ended => return ended,
            }
        }
    }

    /// Copies what is saved of a partition to a directory, once everything is.
    async fn copied(&self, partition: u16, dir: &Path) -> (Position, CopiedState) {
        self.engine.save(partition).await.unwrap();
        assert_eq!(self.engine.saved_position(partition).unwrap(), self.log.end(partition));
        let engine = self.engine.clone();
        let saved = tokio::task::spawn_blocking(move || engine.saved_state(partition)).await.unwrap().unwrap().unwrap();
        let (tables, ids) = (CopiedState::tables_dir(dir), CopiedState::external_ids_dir(dir));
        for (files, dir) in [(&saved.tables, &tables), (&saved.external_ids, &ids)] {
            std::fs::create_dir_all(dir).unwrap();
            for file in files {
                let mut copy = std::fs::File::create(dir.join(TableFile::copy_name(file.id()))).unwrap();
                std::io::copy(&mut file.reader(), &mut copy).unwrap();
            }
        }
        let numbers = |files: &[TableFile]| files.iter().map(TableFile::id).collect();
        let (tables, external_ids) = (numbers(&saved.tables), numbers(&saved.external_ids));
        (saved.position, CopiedState { dir: dir.to_owned(), letters: saved.letters, small: saved.small, tables, external_ids })
    }

    async fn give(&self, partition: u16) {
        self.owners.give_up(partition);
        self.engine.release(partition).await.unwrap();
    }

    async fn users(&self, project: ProjectId) -> Result<u64, AskError> {
        Ok(self.engine.ask(project, UniqueUsersQuery { window: window() }).await?.total)
    }

    async fn revenue(&self, project: ProjectId) -> String {
        let metrics = self.engine.ask(project, RevenueMetricsQuery { window: window() }).await.unwrap();
        format!("{metrics:?}")
    }

    async fn order(&self, project: ProjectId, user: u64) -> Status {
        let order = NewEvent::new("order").user(format!("u{user}")).external_id(format!("o{user}")).at_ms(BASE_MS);
        self.engine.track(project, &order.value("2").unwrap()).await.unwrap().status
    }
}

fn window() -> Window {
    let day = Day::parse("2024-03-01").unwrap();
    Window { start: day, end: day }
}

/// Returns a data directory with a project, closed.
async fn origin() -> (TempDir, ProjectId) {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = support::open(EngineConfig { min_free_bytes: 1 << 20, ..EngineConfig::new(dir.path()) });
    // The first event fixes the calendar for all.
    engine.track(project, &NewEvent::new("ping").user("nobody").at_ms(BASE_MS)).await.unwrap();
    engine.close().await;
    (dir, project)
}

#[tokio::test]
async fn each_event_counts_once_whoever_has_the_partition() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let nodes = [Node::start(origin.path(), &log), Node::start(origin.path(), &log)];
    let partition = partition_of(project);
    let mut recorded = 0;
    for round in 0..6 {
        let (owner, other) = (&nodes[round % 2], &nodes[(round + 1) % 2]);
        owner.take(partition).await;
        assert!(matches!(other.users(project).await, Err(AskError::Lost(_))), "it is not here");
        assert_eq!(owner.users(project).await.unwrap(), recorded);
        for user in 0..recorded {
            assert_eq!(owner.order(project, user).await, Status::Duplicate, "round {round}, user {user}");
        }
        for user in recorded..recorded + 20 {
            assert_eq!(owner.order(project, user).await, Status::Recorded);
        }
        recorded += 20;
        let version = owner.engine.version(project, &Depends::Everything).await.unwrap();
        let revenue = owner.revenue(project).await;
        owner.give(partition).await;
        assert!(owner.engine.version(project, &Depends::Everything).await.is_err(), "it has given it up");
        // The other one answers the same, with the same version.
        other.take(partition).await;
        assert_eq!(other.engine.version(project, &Depends::Everything).await.unwrap(), version);
        assert_eq!((other.users(project).await.unwrap(), other.revenue(project).await), (recorded, revenue));
        other.give(partition).await;
    }
}

#[tokio::test]
async fn a_partition_is_taken_over_from_where_its_last_checkpoint_here_left_it() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let partition = partition_of(project);
    let node = Node::start(origin.path(), &log);
    node.take(partition).await;
    for user in 0..50 {
        node.order(project, user).await;
    }
    node.give(partition).await;
    // What is saved is not read again, neither by this process nor by the next one.
    let end = log.end(partition);
    let saved = std::mem::take(log.partitions.lock().get_mut(&partition).unwrap());
    let moved = saved.len() as u64;
    node.take_until(partition, end).await;
    assert_eq!(node.users(project).await.unwrap(), 50);
    node.give(partition).await;
    node.engine.close().await;
    let node = Node::start_in(node.dir, None, &log);
    node.take_until(partition, end).await;
    assert_eq!(node.users(project).await.unwrap(), 50);
    *log.partitions.lock().get_mut(&partition).unwrap() = saved;
    assert_eq!(node.order(project, 3).await, Status::Duplicate);
    assert_eq!(node.order(project, 50).await, Status::Recorded);
    assert_eq!(log.partitions.lock()[&partition].len() as u64, moved + 2);
}

#[tokio::test]
async fn a_partition_is_taken_over_from_a_copy_of_what_another_engine_saved() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let (partition, copy) = (partition_of(project), tempfile::tempdir().unwrap());
    let nodes = [0, 1, 2].map(|_| Node::start(origin.path(), &log));
    // One that has a state of its own, from before.
    nodes[2].take(partition).await;
    nodes[2].order(project, 0).await;
    nodes[2].give(partition).await;
    nodes[0].take(partition).await;
    for user in 1..60 {
        nodes[0].order(project, user).await;
    }
    let (position, copied) = nodes[0].copied(partition, copy.path()).await;
    assert_eq!(position, log.end(partition));
    for user in 60..70 {
        nodes[0].order(project, user).await;
    }
    let (version, revenue) =
        (nodes[0].engine.version(project, &Depends::Everything).await.unwrap(), nodes[0].revenue(project).await);
    nodes[0].give(partition).await;
    // Whoever has the copy reads only what is not in it.
    let records = log.partitions.lock()[&partition].clone();
    let later = records.iter().filter(|(first, ..)| *first > position).cloned().collect();
    for node in &nodes[1..] {
        log.partitions.lock().insert(partition, Vec::clone(&later));
        node.take_copy(partition, log.end(partition), Some(copied.clone())).await;
        log.partitions.lock().insert(partition, records.clone());
        assert_eq!((node.users(project).await.unwrap(), node.revenue(project).await), (70, revenue.clone()));
        assert_eq!(node.engine.version(project, &Depends::Everything).await.unwrap(), version);
        for user in [0, 30, 65] {
            assert_eq!(node.order(project, user).await, Status::Duplicate, "user {user}");
        }
        // A copy that has less than what is here changes nothing, and neither does one that is damaged.
        node.give(partition).await;
        node.take_copy(partition, log.end(partition), Some(copied.clone())).await;
        assert_eq!(node.users(project).await.unwrap(), 70);
        node.give(partition).await;
        log.partitions.lock().insert(partition, records.clone());
    }
    let node = Node::start(origin.path(), &log);
    let damaged = CopiedState { small: copied.small[..copied.small.len() - 1].to_vec(), ..copied };
    node.take_copy(partition, log.end(partition), Some(damaged)).await;
    assert_eq!((node.users(project).await.unwrap(), node.revenue(project).await), (70, revenue));
}

#[tokio::test]
async fn an_owner_whose_time_is_over_answers_nothing() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let node = Node::start(origin.path(), &log);
    node.take(partition_of(project)).await;
    node.order(project, 1).await;
    node.owners.hold(partition_of(project), boot_time());
    let order = NewEvent::new("order").user("u2").at_ms(BASE_MS);
    assert!(node.engine.track(project, &order).await.is_err());
    assert!(node.users(project).await.is_err());
    assert!(node.engine.version(project, &Depends::Everything).await.is_err());
    assert_eq!(log.partitions.lock()[&partition_of(project)].len(), 1);
    // Renewed in time, it goes on.
    node.owners.hold(partition_of(project), boot_time() + Duration::from_secs(600));
    assert_eq!(node.users(project).await.unwrap(), 1);
}

#[tokio::test]
async fn a_directory_of_other_events_is_refused() {
    let ((origin, _), log) = (origin().await, Arc::<SharedLog>::default());
    let membership = Membership {
        incarnation: Incarnation::from_number(77),
        registry: Box::new(|dir| Ok(Registry::open(dir)?)),
        log: Arc::<SharedLog>::clone(&log),
        commit: Box::new(move |sink| Arc::new(SharedCommit { log, sink })),
        archive: None,
        letters: Arc::<CommonLetters>::default(),
        profiles: Arc::new(NoDocuments),
        webhooks: (Arc::new(NoDocuments), Arc::new(NoDocuments)),
        owners: Arc::new(Owners::unknown()),
    };
    let error = Engine::open_member(EngineConfig::new(origin.path()), membership).unwrap_err();
    assert!(error.to_string().contains("another installation"), "{error}");
}

#[tokio::test]
async fn what_is_left_of_an_earlier_time_is_not_served() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let partition = partition_of(project);
    let nodes = [Node::start(origin.path(), &log), Node::start(origin.path(), &log)];
    nodes[0].take(partition).await;
    nodes[0].order(project, 1).await;
    // It could not give the partition up, which another one has had since.
    nodes[0].owners.give_up(partition);
    nodes[1].take(partition).await;
    nodes[1].order(project, 2).await;
    nodes[1].give(partition).await;
    nodes[0].take(partition).await;
    assert_eq!(nodes[0].users(project).await.unwrap(), 2);
    // Given up while it is taken over, and taken over again.
    for _ in 0..20 {
        nodes[0].give(partition).await;
        nodes[0].engine.adopt(partition, log.end(partition), None).await.unwrap();
    }
    nodes[0].take(partition).await;
    assert_eq!(nodes[0].users(project).await.unwrap(), 2);
    assert_eq!(nodes[0].order(project, 1).await, Status::Duplicate);
}

#[tokio::test]
async fn a_log_that_lost_its_end_is_not_served() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let partition = partition_of(project);
    let node = Node::start(origin.path(), &log);
    node.take(partition).await;
    for user in 0..3 {
        node.order(project, user).await;
    }
    node.give(partition).await;
    log.partitions.lock().get_mut(&partition).unwrap().pop();
    node.engine.adopt(partition, log.end(partition), None).await.unwrap();
    let failed = node.adopted(partition).await;
    assert!(matches!(&failed, Adoption::Failed(why) if why.contains("ends at position")), "{failed:?}");
}

/// Returns another project of the organization, in another partition.
async fn with_another(origin: &TempDir) -> ProjectId {
    let engine = Engine::open(EngineConfig { min_free_bytes: 1 << 20, ..EngineConfig::new(origin.path()) }).unwrap();
    let organization = engine.registry().organizations()[0].id;
    let first = partition_of(engine.registry().projects(organization).unwrap()[0].id);
    loop {
        let new = NewProject { name: "other".to_owned(), ..NewProject::default() };
        let other = engine.registry().create_project(organization, new, engine.clock().now()).unwrap().id;
        if partition_of(other) != first {
            engine.close().await;
            return other;
        }
    }
}

async fn poison(node: &Node, project: ProjectId) -> Status {
    let poison = NewEvent::new("poison").user("eve").external_id("poison").at_ms(BASE_MS);
    node.engine.track(project, &poison).await.unwrap().status
}

#[tokio::test]
async fn an_event_that_one_engine_sets_aside_counts_at_none() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let other = with_another(&origin).await;
    let letters = Arc::<CommonLetters>::default();
    let start = |panics| Node::start_with(tempfile::tempdir().unwrap(), Some(origin.path()), (&log, &letters), panics);
    let (counts, panics) = (start(false), start(true));
    let partition = partition_of(project);
    // It counts at first, and is in a checkpoint. The first event of the other partition has the same position.
    counts.take(partition).await;
    counts.take(partition_of(other)).await;
    poison(&counts, project).await;
    for of in [project, other] {
        assert_eq!((counts.order(of, 1).await, counts.order(of, 2).await), (Status::Recorded, Status::Recorded));
    }
    assert_eq!((counts.users(project).await.unwrap(), counts.users(other).await.unwrap()), (3, 2));
    counts.give(partition).await;
    counts.give(partition_of(other)).await;
    // Another engine can't count it.
    panics.take(partition).await;
    panics.take(partition_of(other)).await;
    assert_eq!(letters.positions.lock().clone(), BTreeMap::from([(partition, BTreeSet::from([1 << 13]))]));
    assert_eq!((panics.users(project).await.unwrap(), panics.users(other).await.unwrap()), (2, 2));
    assert_eq!(panics.engine.vitals().dead_letters, 1);
    let scanned = panics.revenue(project).await;
    panics.give(partition).await;
    assert_eq!(panics.engine.vitals().dead_letters, 0, "it is counted where its partition is");
    // From then on, it counts nowhere, after a start neither. What was not saved under this rule is not used.
    let mut node = counts;
    for _ in 0..3 {
        node.take(partition).await;
        assert_eq!((node.users(project).await.unwrap(), node.revenue(project).await), (2, scanned.clone()));
        assert_eq!((node.order(project, 1).await, node.engine.vitals().dead_letters), (Status::Duplicate, 1));
        node.give(partition).await;
        node.engine.close().await;
        node = Node::start_with(node.dir, None, (&log, &letters), false);
    }
    // What it has saved since lacks the event for certain, so that it is read on from there.
    node.take(partition).await;
    node.give(partition).await;
    let (end, saved) = (log.end(partition), std::mem::take(log.partitions.lock().get_mut(&partition).unwrap()));
    assert_eq!(saved.len(), 3 + 3);
    node.take_until(partition, end).await;
    assert_eq!(node.users(project).await.unwrap(), 2);
}

#[tokio::test]
async fn an_event_counts_or_is_set_aside_where_all_know_it() {
    let ((origin, project), log) = (origin().await, Arc::<SharedLog>::default());
    let letters = Arc::<CommonLetters>::default();
    let node = Arc::new(Node::start_with(tempfile::tempdir().unwrap(), Some(origin.path()), (&log, &letters), true));
    node.take(partition_of(project)).await;
    node.order(project, 1).await;
    letters.is_silent.store(true, Ordering::SeqCst);
    let sender = Arc::clone(&node);
    let sent = tokio::spawn(async move { poison(&sender, project).await });
    // Nobody is answered without the event as long as others may count it.
    while !matches!(node.engine.adoption(partition_of(project)), Adoption::Failed(why) if why.contains("no answer")) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(node.users(project).await.is_err());
    assert_eq!(node.engine.vitals().dead_letters, 0);
    letters.is_silent.store(false, Ordering::SeqCst);
    assert_eq!(sent.await.unwrap(), Status::Recorded);
    assert_eq!((node.users(project).await.unwrap(), node.engine.vitals().dead_letters), (1, 1));
    assert_eq!(node.order(project, 2).await, Status::Recorded);
}
