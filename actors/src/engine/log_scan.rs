//! Answers that no rollup keeps: recomputed from the log, by the domain's rules.
//!
//! A scan reads a project's events up to the position that its shard had applied when the query came: it sees everything that
//! was acknowledged before, and one state of the links. It takes a bounded amount of memory: it asks the index of external ids
//! for duplicates, and sorts identities on disk. It ends when nobody waits for it any more.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_domain::filter::Predicate;
use headcount_domain::identity::{IdentityLink, SentKeys, SortedLinks};
use headcount_domain::ids::{KeyHasher, ProjectId, RecordKey};
use headcount_domain::intake::event::Event;
use headcount_domain::intake::event::Position;
use headcount_domain::queries::UniqueUsers;
use headcount_domain::time::{Day, Window};
use headcount_storage::external_ids::ExternalIdsView;

use super::external_sort::Sorter;
use super::handle::Engine;
use super::shard_client::AskError;
use crate::history::{Piece, Wanted};
use crate::shard::partition_of;

/// Memory of each sort; three sorts are under way at a time.
const SORT_BYTES: usize = 4 << 20;
/// The shard is asked after this many ids that only it knows, or this many bytes of events.
const IDS_A_QUESTION: usize = 512;
const BYTES_A_QUESTION: usize = 1 << 20;

/// Set when nobody waits for a scan any more.
type Cancelled = Arc<AtomicBool>;

struct CancelOnDrop(Cancelled);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Why a scan has no answer.
#[derive(Debug, thiserror::Error)]
enum ScanError {
    #[error("nobody waits for it any more")]
    Cancelled,
    #[error("a file could not be sorted: {0}")]
    Sort(#[from] io::Error),
    #[error("{0}")]
    Read(String),
    #[error(transparent)]
    Ask(#[from] AskError),
}

impl Engine {
    /// Unique users with an event that matches `predicate`, per day of `window` and over it.
    ///
    /// Costs a pass over the project's partition of the log. Dropping the future ends it.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn scan_unique_users(
        &self,
        project: ProjectId,
        window: Window,
        predicate: Predicate,
    ) -> Result<UniqueUsers, AskError> {
        let cancelled = Cancelled::default();
        let _cancel = CancelOnDrop(Arc::clone(&cancelled));
        let turn = Arc::clone(&self.inner.scans).acquire_owned().await.map_err(|_| AskError::NoAnswer)?;
        let until = self.last(project).await?;
        let known = self.known_ids(project).await?;
        let engine = self.clone();
        let scan = move || {
            // The permit is held until the scan is over, whether or not somebody waits.
            let _turn = turn;
            let scan = Scan { engine: &engine, project, until, known, cancelled: &cancelled, sort_bytes: SORT_BYTES };
            scan.unique_users(window, &predicate)
        };
        match tokio::task::spawn_blocking(scan).await.map_err(|_| AskError::NoAnswer)? {
            Ok(users) => Ok(users),
            Err(ScanError::Ask(error)) => Err(error),
            Err(error) => {
                tracing::error!(%error, "the log could not be scanned");
                Err(AskError::NoAnswer)
            }
        }
    }
}

impl Engine {
    /// Returns a view of the external ids of a project's partition that are on disk or on their way there.
    async fn known_ids(&self, project: ProjectId) -> Result<ExternalIdsView, AskError> {
        self.ask_shard(project, move |shard| shard.known_ids(project)).await
    }

    /// Returns the first positions that have these external ids.
    async fn first_positions(&self, project: ProjectId, ids: Vec<u128>) -> Result<Vec<Option<Position>>, AskError> {
        self.ask_shard(project, move |shard| shard.first_positions(project, &ids)).await
    }
}

/// One pass over a project's events.
struct Scan<'e> {
    engine: &'e Engine,
    project: ProjectId,
    until: Position,
    /// The external ids that were on disk, or on their way there, when the scan began.
    known: ExternalIdsView,
    cancelled: &'e AtomicBool,
    sort_bytes: usize,
}

/// An event that waits until it is known whether it is a duplicate.
struct Candidate {
    event: Box<Event>,
    position: Position,
    /// The index of its id among those that the shard is asked for.
    asked: Option<usize>,
}

#[derive(Default)]
struct Batch {
    waiting: Vec<Candidate>,
    ids: Vec<u128>,
    bytes: usize,
}

impl Scan<'_> {
    fn unique_users(&self, window: Window, predicate: &Predicate) -> Result<UniqueUsers, ScanError> {
        let mut users = Users::new(self.engine.hasher(), self.engine.data_dir(), self.sort_bytes);
        self.visit_events(&mut |position, event| {
            users.see(position, event, window.contains(event.day) && predicate.matches(event, None))
        })?;
        users.answer(window, self.cancelled)
    }

    /// Passes every recorded event of the project to `visit`, in order, without duplicates and without events that were set
    /// aside.
    fn visit_events(&self, visit: &mut dyn FnMut(Position, &Event) -> io::Result<()>) -> Result<(), ScanError> {
        let wanted = Wanted { partition: partition_of(self.project), project: Some(self.project), after: 0, until: self.until };
        let mut outcome = Ok(());
        let mut batch = Batch::default();
        let result = self.engine.inner.history.read(&[wanted], &mut |piece: Piece| {
            outcome = self.take(piece, &mut batch, visit);
            if outcome.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        outcome?;
        result.map_err(|error| ScanError::Read(error.to_string()))?;
        self.hand_over(&mut batch, visit)
    }

    fn take(
        &self,
        piece: Piece,
        batch: &mut Batch,
        visit: &mut dyn FnMut(Position, &Event) -> io::Result<()>,
    ) -> Result<(), ScanError> {
        check(self.cancelled)?;
        if self.engine.inner.admission.is_closing() {
            return Err(AskError::NoAnswer.into());
        }
        for (position, event) in piece.events {
            if self.engine.inner.dead.contains(position) {
                continue;
            }
            let mut asked = None;
            if let Some(external_id) = &event.external_id {
                let id = self.engine.hasher().external_id(self.project, external_id);
                match self.known.get(id).map_err(|error| ScanError::Read(error.to_string()))? {
                    Some(first) if first < position => continue,
                    Some(_) => {}
                    None => {
                        asked = Some(batch.ids.len());
                        batch.ids.push(id);
                    }
                }
            }
            batch.waiting.push(Candidate { event, position, asked });
            if batch.ids.len() >= IDS_A_QUESTION {
                self.hand_over(batch, visit)?;
            }
        }
        batch.bytes += piece.bytes;
        if batch.bytes >= BYTES_A_QUESTION { self.hand_over(batch, visit) } else { Ok(()) }
    }

    /// Asks the shard for ids that only it knows, and passes on the events that are no duplicates.
    fn hand_over(&self, batch: &mut Batch, visit: &mut dyn FnMut(Position, &Event) -> io::Result<()>) -> Result<(), ScanError> {
        let Batch { waiting, ids, .. } = std::mem::take(batch);
        let firsts = match ids.is_empty() {
            true => Vec::new(),
            false => tokio::runtime::Handle::current().block_on(self.engine.first_positions(self.project, ids))?,
        };
        for Candidate { event, position, asked } in waiting {
            if let Some(index) = asked {
                // It was applied, so its id is known, unless the state was lost meanwhile.
                let first = firsts.get(index).copied().flatten().ok_or(AskError::NoAnswer)?;
                if first < position {
                    continue;
                }
            }
            visit(position, &event)?;
        }
        Ok(())
    }
}

fn check(cancelled: &AtomicBool) -> Result<(), ScanError> {
    if cancelled.load(Ordering::Acquire) { Err(ScanError::Cancelled) } else { Ok(()) }
}

/// Length of a key in a sort.
const KEY: usize = 16;
/// An [`IdentityLink`] in a sort: anonymous id, position, user.
const LINK: usize = KEY + 8 + KEY;
/// An identity and a day.
const ACTIVE: usize = KEY + 4;

/// The identities of matching events, and the links of all events.
struct Users<'h> {
    hasher: &'h KeyHasher,
    links: Sorter<LINK>,
    active: Sorter<ACTIVE>,
    identities: Sorter<ACTIVE>,
}

impl<'h> Users<'h> {
    fn new(hasher: &'h KeyHasher, dir: &Path, sort_bytes: usize) -> Self {
        Self {
            hasher,
            links: Sorter::new(dir, KEY, sort_bytes),
            active: Sorter::new(dir, ACTIVE, sort_bytes),
            identities: Sorter::new(dir, ACTIVE, sort_bytes),
        }
    }

    fn see(&mut self, position: Position, event: &Event, matches: bool) -> io::Result<()> {
        let keys = SentKeys::of(&event.who, self.hasher);
        if let Some(IdentityLink { anonymous, position, user }) = keys.link(position) {
            let mut link = [0; LINK];
            link[..KEY].copy_from_slice(&bytes(anonymous));
            link[KEY..KEY + 8].copy_from_slice(&position.to_be_bytes());
            link[KEY + 8..].copy_from_slice(&bytes(user));
            self.links.push(link)?;
        }
        if !matches {
            return Ok(());
        }
        match keys.named() {
            Some(key) => self.active.push(on_day(&bytes(key), &event.day.0.to_be_bytes())),
            None => Ok(()),
        }
    }

    fn answer(self, window: Window, cancelled: &AtomicBool) -> Result<UniqueUsers, ScanError> {
        let Self { links, active, mut identities, .. } = self;
        let mut links = SortedLinks::new(links.finish()?.map(|link| link.map(|link| read_link(&link))));
        for active in active.finish()? {
            check(cancelled)?;
            let active = active?;
            let (key, day) = active.split_at(KEY);
            let identity = links.resolve(key_of(key))?;
            identities.push(on_day(&bytes(identity), day))?;
        }
        let (mut by_day, mut total, mut last) = (BTreeMap::<Day, u64>::new(), 0, None::<[u8; ACTIVE]>);
        for identity in identities.finish()? {
            check(cancelled)?;
            let identity = identity?;
            total += u64::from(last.is_none_or(|last| last[..KEY] != identity[..KEY]));
            last = Some(identity);
            let [.., a, b, c, d] = identity;
            *by_day.entry(Day(i32::from_be_bytes([a, b, c, d]))).or_default() += 1;
        }
        let count = |day: Day| by_day.get(&day).copied().unwrap_or(0);
        Ok(UniqueUsers { series: window.days().map(|day| (day, count(day))).collect(), total })
    }
}

fn bytes(key: RecordKey) -> [u8; KEY] {
    let RecordKey(number) = key;
    number.to_be_bytes()
}

fn key_of(bytes: &[u8]) -> RecordKey {
    RecordKey(bytes.try_into().map_or(0, u128::from_be_bytes))
}

fn read_link(link: &[u8; LINK]) -> IdentityLink {
    let (anonymous, rest) = link.split_at(KEY);
    let (position, user) = rest.split_at(8);
    let position = position.try_into().map_or(0, u64::from_be_bytes);
    IdentityLink { anonymous: key_of(anonymous), position, user: key_of(user) }
}

fn on_day(key: &[u8], day: &[u8]) -> [u8; ACTIVE] {
    let mut active = [0; ACTIVE];
    active[..KEY].copy_from_slice(key);
    active[KEY..].copy_from_slice(day);
    active
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant as Stopwatch};

    use headcount_domain::queries::UniqueUsersQuery;

    use super::super::handle::MAX_SCANS;
    use super::*;
    use crate::engine::EngineConfig;
    use crate::ingest::NewEvent;

    /// 2024-03-01T10:00:00Z
    const BASE_MS: i64 = 1_709_287_200_000;
    const DAY_MS: i64 = 86_400_000;
    const BATCHES: usize = 12;
    const BATCH: usize = 100;

    fn open(dir: &Path, checkpoint_events: u64) -> (Engine, ProjectId) {
        let mut config = EngineConfig::new(dir);
        config.min_free_bytes = 0;
        config.log.segment_bytes = 1 << 20;
        config.checkpoints.events = checkpoint_events;
        let engine = Engine::open(config).unwrap();
        let project = engine.registry().initialize(engine.clock().now()).unwrap().project_id;
        (engine, project)
    }

    fn window() -> Window {
        Window { start: Day::parse("2024-03-01").unwrap(), end: Day::parse("2024-03-08").unwrap() }
    }

    fn everything() -> Predicate {
        Predicate::new(Some("order"), Vec::new()).unwrap()
    }

    /// Some sign in late, and every fourth event was sent before; then on another day, which must not count.
    async fn send(engine: &Engine, project: ProjectId, batch: usize) {
        let event = |number: usize| {
            let original = if number % 4 == 3 { number / 2 } else { number };
            let day = if number == original { number % 7 } else { (number + 3) % 7 };
            let event = NewEvent::new("order").at_ms(BASE_MS + i64::try_from(day).unwrap() * DAY_MS);
            let event = event.anonymous(format!("a{}", original % 300)).external_id(format!("o{original}"));
            if number > 500 && number.is_multiple_of(5) { event.user(format!("u{}", original % 120)) } else { event }
        };
        let events: Vec<_> = (batch * BATCH..(batch + 1) * BATCH).map(event).collect();
        assert!(engine.track_batch(project, &events).await.unwrap().errors.is_empty());
    }

    async fn scan(engine: &Engine, project: ProjectId, sort_bytes: usize) -> UniqueUsers {
        let until = engine.last(project).await.unwrap();
        let known = engine.known_ids(project).await.unwrap();
        let engine = engine.clone();
        let scan = move || {
            let scan = Scan { engine: &engine, project, until, known, cancelled: &AtomicBool::new(false), sort_bytes };
            scan.unique_users(window(), &everything()).unwrap()
        };
        tokio::task::spawn_blocking(scan).await.unwrap()
    }

    #[tokio::test]
    async fn a_scan_counts_what_the_rollups_count() {
        for checkpoint_events in [u64::MAX, 250] {
            let dir = tempfile::tempdir().unwrap();
            let (engine, project) = open(dir.path(), checkpoint_events);
            for batch in 0..BATCHES {
                send(&engine, project, batch).await;
                // A checkpoint is due every second.
                if batch % 4 == 2 && checkpoint_events < u64::MAX {
                    tokio::time::sleep(Duration::from_millis(1_200)).await;
                }
                let expected = engine.ask(project, UniqueUsersQuery { window: window() }).await.unwrap();
                assert!(expected.total > 20);
                for sort_bytes in [200, SORT_BYTES] {
                    assert_eq!(scan(&engine, project, sort_bytes).await, expected, "batch {batch}, {sort_bytes} bytes");
                }
                let public = engine.scan_unique_users(project, window(), everything()).await.unwrap();
                assert_eq!(public, expected);
            }
            engine.close().await;
        }
    }

    #[tokio::test]
    async fn a_scan_ends_when_nobody_waits() {
        let dir = tempfile::tempdir().unwrap();
        let (engine, project) = open(dir.path(), u64::MAX);
        for batch in 0..BATCHES {
            send(&engine, project, batch).await;
        }
        let until = engine.last(project).await.unwrap();
        let known = engine.known_ids(project).await.unwrap();
        let scanned = engine.clone();
        let scan = move || {
            let cancelled = AtomicBool::new(false);
            let scan = Scan { engine: &scanned, project, until, known, cancelled: &cancelled, sort_bytes: 1 << 20 };
            let mut seen = 0;
            let end = scan.visit_events(&mut |_, _| {
                seen += 1;
                cancelled.store(true, Ordering::Release);
                Ok(())
            });
            (end, seen)
        };
        let (end, seen) = tokio::task::spawn_blocking(scan).await.unwrap();
        assert!(matches!(end, Err(ScanError::Cancelled)), "{end:?}");
        assert!((1..=IDS_A_QUESTION + BATCH).contains(&seen), "{seen} of {}", BATCHES * BATCH);
        // Whoever goes away takes their scan with them, and it gives its place back.
        for _ in 0..2 * MAX_SCANS {
            let scan = engine.scan_unique_users(project, window(), everything());
            let _ = tokio::time::timeout(Duration::from_millis(1), scan).await;
        }
        let began = Stopwatch::now();
        while engine.inner.scans.available_permits() < MAX_SCANS {
            assert!(began.elapsed() < Duration::from_secs(60), "a scan goes on");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        engine.close().await;
    }
}
