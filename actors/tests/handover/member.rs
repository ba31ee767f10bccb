//! A node's engine, and the log that the nodes share.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::intake::event::Event;
use headcount_actors::domain::queries::{RevenueMetricsQuery, UniqueUsersQuery};
use headcount_actors::domain::time::{Day, Window};
use headcount_actors::ingest::{NewEvent, Status, Ticket};
use headcount_actors::{Adoption, AskError, Common, CopiedState, Engine, EngineConfig, Installation, LogSink, OpenError};
use headcount_common::local::MemoryValues;
use headcount_common::secrets::{KEYS_DIR, Secrets};
use headcount_common::{
    ControlError, DocumentChange, DocumentStores, DocumentVisitor, Documents, DocumentsError, NoFiles, Owners, SharedLetters,
    SharedLettersError, SharedValues,
};
use headcount_control::Registry;
use headcount_storage::TableFile;
use headcount_storage::boot_time::boot_time;
use headcount_storage::format::{Format, Incarnation};
use headcount_storage::lock::DirLock;
use headcount_storage::log::{
    Commit, Committed, LogError, LogMark, Outcome, Position, ReadLog, Record, RecordVisitor, RemoteFailure, WantedAfter,
};
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::copies::copy;
use crate::support;

/// 2024-03-01T10:00:00Z
pub(crate) const BASE_MS: i64 = 1_709_287_200_000;

/// A record: the position of its first event, the number of its events, and its bytes.
pub(crate) type Recorded = (Position, u32, Vec<u8>);

/// The log of several engines. Positions have gaps, as with brokers.
#[derive(Debug, Default)]
pub(crate) struct SharedLog {
    pub(crate) partitions: Mutex<BTreeMap<u16, Vec<Recorded>>>,
    /// The next read reports its beginning, and waits.
    pub(crate) halt: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    /// The way in which reads fail.
    pub(crate) failure: Mutex<Option<RemoteFailure>>,
    /// The first position with known marks.
    pub(crate) marked_from: Mutex<Option<Position>>,
    /// Records submitted without an answer, while this list exists: they are not read yet.
    pub(crate) unanswered: Mutex<Option<Vec<(u16, Recorded)>>>,
    /// The counts of dropped events.
    pub(crate) counts: OnceLock<Arc<MemoryValues>>,
    /// The epoch of the last owner of any partition.
    pub(crate) epoch: AtomicU64,
}

impl SharedLog {
    pub(crate) fn end(&self, partition: u16) -> Position {
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

    fn mark(&self, _: u16, position: Position) -> Option<LogMark> {
        let is_known = self.marked_from.lock().is_some_and(|from| position >= from);
        is_known.then_some(LogMark { position, digest: u128::from(position), resumed: 1 })
    }

    fn is_in_order(&self) -> bool {
        false
    }

    fn read(&self, wanted: &WantedAfter<'_>, visit: &mut RecordVisitor<'_>) -> Result<(), LogError> {
        let halt = self.halt.lock().take();
        if let Some((begins, goes_on)) = halt {
            begins.send(()).unwrap();
            goes_on.recv().unwrap();
        }
        if let Some(kind) = *self.failure.lock() {
            return Err(LogError::Remote { kind, source: "planted".into() });
        }
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

/// The commit of one engine.
pub(crate) struct SharedCommit {
    pub(crate) log: Arc<SharedLog>,
    pub(crate) sink: LogSink,
}

impl Commit<Ticket> for SharedCommit {
    fn submit(&self, partition: u16, count: u32, payload: Vec<u8>, ticket: Ticket) -> Result<(), Ticket> {
        let mut partitions = self.log.partitions.lock();
        let records = partitions.entry(partition).or_default();
        let first = (records.len() as u64 + 1) << 13;
        if let Some(unanswered) = &mut *self.log.unanswered.lock() {
            unanswered.push((partition, (first, count, payload)));
            drop(partitions);
            (self.sink)(vec![Outcome::Undecided(ticket)]);
            return Ok(());
        }
        records.push((first, count, payload));
        (self.sink)(vec![Outcome::Committed(Committed { partition, first, count, ticket })]);
        Ok(())
    }

    fn end_segment(&self, _: Position) -> bool {
        false
    }

    fn close(&self) {}
}

/// The dead letters, as all engines see them.
#[derive(Debug, Default)]
pub(crate) struct CommonLetters {
    pub(crate) positions: Mutex<BTreeMap<u16, BTreeSet<Position>>>,
    pub(crate) is_silent: AtomicBool,
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
pub(crate) struct NoDocuments;

impl Documents for NoDocuments {
    fn follow(&self, _: &mut DocumentVisitor<'_>) -> Result<u64, ControlError> {
        Ok(0)
    }

    fn read(&self, _: &str) -> Result<Option<Vec<u8>>, ControlError> {
        Ok(None)
    }

    fn put(&self, _: u64, _: DocumentChange<'_>) -> Result<(), DocumentsError> {
        Err(DocumentsError::Unavailable("there are none".to_owned()))
    }

    fn prove(&self, _: u64, _: &str) -> Result<(), DocumentsError> {
        Ok(())
    }
}

/// Documents of one engine, in the form that several share.
#[derive(Debug, Default)]
pub(crate) struct CommonDocuments {
    changes: Mutex<Vec<(String, Vec<u8>)>>,
    seen: Mutex<usize>,
    /// The next change with this text is made, without an answer.
    pub(crate) unanswered: Mutex<Option<&'static str>>,
}

impl Documents for CommonDocuments {
    fn follow(&self, visit: &mut DocumentVisitor<'_>) -> Result<u64, ControlError> {
        let (changes, mut seen) = (self.changes.lock(), self.seen.lock());
        for (key, content) in &changes[*seen..] {
            visit(DocumentChange { key, content: Some(content) })?;
            *seen += 1;
        }
        Ok(*seen as u64)
    }

    fn read(&self, _: &str) -> Result<Option<Vec<u8>>, ControlError> {
        Ok(None)
    }

    fn put(&self, expected: u64, change: DocumentChange<'_>) -> Result<(), DocumentsError> {
        let mut changes = self.changes.lock();
        if changes.len() as u64 != expected {
            return Err(DocumentsError::Conflict);
        }
        let content = change.content.unwrap_or_default().to_owned();
        let has = |text: &&str| String::from_utf8_lossy(&content).contains(*text);
        let is_unanswered = self.unanswered.lock().take_if(|text| has(&*text)).is_some();
        changes.push((change.key.to_owned(), content));
        if is_unanswered { Err(DocumentsError::Undecided("no answer".to_owned())) } else { Ok(()) }
    }

    fn prove(&self, expected: u64, by: &str) -> Result<(), DocumentsError> {
        self.put(expected, DocumentChange { key: by, content: Some(b"mark") })
    }
}

/// The stores of a member: the privacy requests, and nothing else.
#[derive(Debug)]
pub(crate) struct MemberStores(pub(crate) Arc<dyn Documents>);

impl DocumentStores for MemberStores {
    fn documents(&self, kind: &'static str) -> io::Result<Arc<dyn Documents>> {
        Ok(if kind == "privacy" { Arc::clone(&self.0) } else { Arc::new(NoDocuments) })
    }

    fn copied_documents(&self, kind: &'static str, _: &Path) -> io::Result<Arc<dyn Documents>> {
        self.documents(kind)
    }

    fn values(&self, _: &'static str) -> io::Result<Arc<dyn SharedValues>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The parts of a node that shares this log.
pub(crate) fn common(dir: &Path, log: &Arc<SharedLog>) -> Result<Common, OpenError> {
    let incarnation = Incarnation::from_number(77);
    let lock = DirLock::acquire(dir).unwrap();
    let format = Format::open_as(dir, incarnation).map_err(|error| OpenError::Directory(error.to_string()))?;
    let secrets = Secrets::open_shared(&dir.join(KEYS_DIR))?;
    let shared = Arc::clone(log);
    Ok(Common {
        installation: Installation { lock, format, answers: Some(incarnation), secrets },
        owners: Arc::new(Owners::unknown()),
        log: Arc::<SharedLog>::clone(log),
        commit: Box::new(move |sink| Ok(Arc::new(SharedCommit { log: shared, sink }) as Arc<dyn Commit<Ticket>>)),
        files: Arc::new(NoFiles),
        control: Registry::local_log(dir)?,
        stores: Arc::new(MemberStores(Arc::new(NoDocuments))),
        codes: Registry::codes_in_memory(),
        counts: Arc::<MemoryValues>::clone(log.counts.get_or_init(|| Arc::new(MemoryValues::new(Duration::MAX)))),
        letters: Some(Arc::<CommonLetters>::default()),
    })
}

pub(crate) struct Node {
    pub(crate) engine: Engine,
    pub(crate) log: Arc<SharedLog>,
    pub(crate) owners: Arc<Owners>,
    pub(crate) letters: Arc<CommonLetters>,
    pub(crate) dir: TempDir,
}

impl Node {
    /// Starts an engine with a copy of these control data and keys.
    pub(crate) fn start(origin: &Path, log: &Arc<SharedLog>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::start_in(dir, Some(origin), log)
    }

    pub(crate) fn start_in(dir: TempDir, origin: Option<&Path>, log: &Arc<SharedLog>) -> Self {
        Self::start_with(dir, origin, (log, &Arc::default()), false)
    }

    /// The same, with shared dead letters. If `panics`, events called `poison` make it panic.
    pub(crate) fn start_with(
        dir: TempDir,
        origin: Option<&Path>,
        (log, letters): (&Arc<SharedLog>, &Arc<CommonLetters>),
        panics: bool,
    ) -> Self {
        Self::start_sharing(dir, origin, (log, letters, Arc::new(NoDocuments)), |config: &mut EngineConfig| {
            if panics {
                config.probe = Some(Arc::new(|event: &Event| assert!(&*event.name != "poison", "planted")));
            }
        })
    }

    /// The same, with these privacy requests, and a configuration changed by `change`.
    pub(crate) fn start_sharing(
        dir: TempDir,
        origin: Option<&Path>,
        (log, letters, privacy): (&Arc<SharedLog>, &Arc<CommonLetters>, Arc<dyn Documents>),
        change: impl FnOnce(&mut EngineConfig),
    ) -> Self {
        let (owners, keys) = (Arc::new(Owners::unknown()), dir.path().join("keys"));
        if let Some(origin) = origin {
            copy(&origin.join("keys"), &keys);
        }
        let mut common = common(dir.path(), log).unwrap();
        if let Some(origin) = origin {
            copy(&origin.join("control"), &dir.path().join("control"));
            common.control = Registry::local_log(dir.path()).unwrap();
        }
        common.owners = Arc::clone(&owners);
        common.letters = Some(Arc::<CommonLetters>::clone(letters));
        common.stores = Arc::new(MemberStores(privacy));
        let mut config = EngineConfig { shards: 2, min_free_bytes: 1 << 20, ..EngineConfig::new(dir.path()) };
        change(&mut config);
        let engine = Engine::open_on(config, common).unwrap();
        assert!(keys.join("hash.key").exists());
        let today = engine.clock().now().utc_day();
        engine.secrets().set_salt(today, [7; 16]).unwrap();
        Self { engine, log: Arc::clone(log), owners, letters: Arc::clone(letters), dir }
    }

    pub(crate) async fn take(&self, partition: u16) {
        self.take_until(partition, self.log.end(partition)).await;
    }

    pub(crate) async fn take_until(&self, partition: u16, until: Position) {
        self.take_copy(partition, until, None).await;
    }

    pub(crate) async fn take_copy(&self, partition: u16, until: Position, copied: Option<CopiedState>) {
        let epoch = 1 + self.log.epoch.fetch_add(1, Ordering::SeqCst);
        self.engine.partitions.take_counts(partition, epoch).await;
        let set_aside = self.letters.positions.lock().get(&partition).cloned().unwrap_or_default();
        self.engine.partitions.adopt(partition, (until, set_aside), copied).await.unwrap();
        assert_eq!(self.adopted(partition).await, Adoption::Done);
        self.owners.hold(partition, boot_time() + Duration::from_secs(600));
    }

    /// Waits until it is taken over, or can't be.
    pub(crate) async fn adopted(&self, partition: u16) -> Adoption {
        loop {
            match self.engine.partitions.adoption(partition) {
                Adoption::UnderWay => tokio::time::sleep(Duration::from_millis(2)).await,
                ended => return ended,
            }
        }
    }

    /// Copies the saved state of a partition to a directory, once everything is saved.
    pub(crate) async fn copied(&self, partition: u16, dir: &Path) -> (Position, CopiedState) {
        self.engine.partitions.save(partition).await.unwrap();
        assert_eq!(self.engine.partitions.saved_positions(partition).unwrap().position, self.log.end(partition));
        let engine = self.engine.clone();
        let saved =
            tokio::task::spawn_blocking(move || engine.partitions.saved_state(partition)).await.unwrap().unwrap().unwrap();
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

    pub(crate) async fn give(&self, partition: u16) {
        self.owners.give_up(partition);
        self.engine.partitions.give_counts(partition).await;
        self.engine.partitions.release(partition).await.unwrap();
    }

    pub(crate) async fn users(&self, project: ProjectId) -> Result<u64, AskError> {
        Ok(self.engine.ask(project, UniqueUsersQuery { window: window() }).await?.total)
    }

    pub(crate) async fn revenue(&self, project: ProjectId) -> String {
        let metrics = self.engine.ask(project, RevenueMetricsQuery { window: window() }).await.unwrap();
        format!("{metrics:?}")
    }

    pub(crate) async fn order(&self, project: ProjectId, user: u64) -> Status {
        let order = NewEvent::new("order").user(format!("u{user}")).external_id(format!("o{user}")).at_ms(BASE_MS);
        self.engine.track(project, &order.value("2").unwrap()).await.unwrap().status
    }
}

pub(crate) fn window() -> Window {
    let day = Day::parse("2024-03-01").unwrap();
    Window { start: day, end: day }
}

/// Returns a data directory with a project, closed.
pub(crate) async fn origin() -> (TempDir, ProjectId) {
    let dir = tempfile::tempdir().unwrap();
    let (engine, project) = support::open(EngineConfig { min_free_bytes: 1 << 20, ..EngineConfig::new(dir.path()) });
    // The first event fixes the calendar for all engines.
    engine.track(project, &NewEvent::new("ping").user("nobody").at_ms(BASE_MS)).await.unwrap();
    engine.close().await;
    (dir, project)
}
