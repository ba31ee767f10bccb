//! The thread that seals and merges the archive of a single machine, or the archives of a node's
//! partitions.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use headcount_common::{PARTITIONS, SharedArchive};
use headcount_domain::{Fault, Position};
use headcount_storage::background::{self, Tempo};
use parking_lot::Mutex;

use super::error::SealingError;
use super::figures::ArchiveFigures;
use super::file_cache::FileCache;
use super::resting::Resting;
use super::sealing::Sealed;
use super::sources::{EngineSources, Sources};
use super::work::ArchiveWork;
use crate::history::SealedEvents;

const TICK: Duration = Duration::from_secs(1);
/// The time between two ticks during an erasure, which a client waits for.
const ERASURE_TICK: Duration = Duration::from_millis(50);

/// The minimum number of unsealed events at which sealing must keep up. A checkpoint has at most a
/// million.
const STEADY_FROM_EVENTS: u64 = 2_000_000;
/// The minimum number of unsealed events at which sealing no longer leaves the processors to other
/// work.
const FULL_FROM_EVENTS: u64 = 3_000_000;

enum ArchiverRequest {
    /// Seals everything.
    Seal(Sender<Result<Sealed, Fault>>),
    /// Seals one partition that has its own archive.
    #[cfg(feature = "cluster")]
    SealPartition(u16, Sender<Result<Sealed, Fault>>),
    /// Merges the tables of all partitions, and answers whether nothing is left to merge.
    MergeTables(Sender<bool>),
    /// Begins to work on the archive of one partition, until it is given up.
    Adopt(u16, Arc<SealedEvents>, AdoptedArchive),
    /// Forgets an archive that was given up.
    Release(u16),
}

/// Ends the work on the archive of a partition.
#[derive(Debug, Clone, Default)]
struct AdoptedArchive {
    is_given_up: Arc<AtomicBool>,
    /// Locked during each piece of work.
    turn: Arc<Mutex<()>>,
}

impl AdoptedArchive {
    /// Ends the work: waits for the current piece, and allows no more.
    fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Release);
        drop(self.turn.lock());
    }
}

/// The handle of the thread.
pub(crate) struct Archiver {
    requests: Mutex<Option<Sender<ArchiverRequest>>>,
    /// The number of requests that wait for an answer.
    asked: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    files: Arc<dyn SharedArchive>,
    /// The figures.
    pub(crate) figures: Arc<ArchiveFigures>,
    /// The archives of owned partitions.
    held: Mutex<BTreeMap<u16, AdoptedArchive>>,
}

impl Archiver {
    /// Starts the thread. It works on `archive` on a single machine, and on the archives of its
    /// partitions in a cluster.
    ///
    /// # Errors
    /// The operating system refuses it.
    pub(crate) fn spawn(engine: EngineSources, archive: Arc<SealedEvents>) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let (requests, received) = channel();
        let (engine, figures, asked) = (Arc::new(engine), Arc::<ArchiveFigures>::default(), Arc::<AtomicUsize>::default());
        let mut works = BTreeMap::new();
        if engine.logged.is_in_order() {
            let partitions = 0..PARTITIONS;
            let sources = Sources { engine: Arc::clone(&engine), sealed: archive, partitions, is_given_up: Arc::default() };
            works.insert(0, ArchiveWork::new(sources, Arc::default()));
        }
        let (stop, held) = (Arc::clone(&engine.stop), Mutex::default());
        let files = Arc::clone(&engine.files);
        let thread = ArchiveThread {
            engine,
            asked: Arc::clone(&asked),
            works,
            resting: Resting::default(),
            cache: FileCache::default(),
            figures: Arc::clone(&figures),
            postponed: VecDeque::new(),
        };
        thread.sum_up();
        let thread = std::thread::Builder::new().name("archive".into()).spawn(move || thread.run(&received))?;
        let requests = Mutex::new(Some(requests));
        Ok((Arc::new(Self { requests, asked, stop, files, figures, held }), thread))
    }

    /// Begins to work on the archive of a partition soon. Does not wait for other partitions.
    pub(crate) fn adopt(&self, partition: u16, archive: Arc<SealedEvents>) {
        let held = AdoptedArchive::default();
        self.held.lock().insert(partition, held.clone());
        self.send(ArchiverRequest::Adopt(partition, archive, held));
    }

    /// Ends the work on the archive of a partition. Blocks until it has ended, without waiting for
    /// other partitions.
    pub(crate) fn release(&self, partition: u16) {
        let Some(held) = self.held.lock().remove(&partition) else { return };
        held.give_up();
        self.send(ArchiverRequest::Release(partition));
    }

    fn send(&self, request: ArchiverRequest) {
        // Without a thread, the engine is closing.
        let _taken = self.requests.lock().as_ref().map(|requests| requests.send(request));
    }

    /// The place of archives.
    pub(crate) fn files(&self) -> &dyn SharedArchive {
        &*self.files
    }

    /// The place of archives, if all nodes reach it.
    pub(crate) fn shared(&self) -> Option<Arc<dyn SharedArchive>> {
        self.files.source(0).map(|_| Arc::clone(&self.files))
    }

    /// Seals all events recorded before the call. Blocks.
    ///
    /// # Errors
    /// The cause.
    pub(crate) fn seal_all(&self) -> Result<Sealed, Fault> {
        self.ask(ArchiverRequest::Seal).unwrap_or_else(|| Err(SealingError::NoAnswer.into()))
    }

    /// Seals all events of a partition recorded before the call. Blocks.
    ///
    /// # Errors
    /// The cause; also if the partition is not here.
    #[cfg(feature = "cluster")]
    pub(crate) fn seal_partition(&self, partition: u16) -> Result<Sealed, Fault> {
        let sealed = self.ask(|reply| ArchiverRequest::SealPartition(partition, reply));
        sealed.unwrap_or_else(|| Err(SealingError::NoAnswer.into()))
    }

    /// Merges the sorted files of all partitions now, even if they are not at rest. Blocks. Returns
    /// `false` if some could not be merged: they will be when they are at rest.
    pub(crate) fn merge_tables(&self) -> bool {
        self.ask(ArchiverRequest::MergeTables).unwrap_or(false)
    }

    /// Sends a request and waits for its answer. Returns `None` if the thread has ended.
    fn ask<R>(&self, request: impl FnOnce(Sender<R>) -> ArchiverRequest) -> Option<R> {
        let (reply, answer) = channel();
        let requests = self.requests.lock().clone();
        self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = requests.and_then(|requests| requests.send(request(reply)).ok()).and_then(|()| answer.recv().ok());
        self.asked.fetch_sub(1, Ordering::Relaxed);
        answer
    }

    /// Ends the thread soon. The file that it is writing is removed, and written again after the
    /// next start.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.requests.lock().take();
    }
}

/// The speed of sealing that no client waits for, with `waiting` unsealed events. Sealing begins at
/// `seal_events`.
fn sealing_tempo(waiting: u64, seal_events: u64) -> Tempo {
    match waiting {
        _ if waiting > FULL_FROM_EVENTS.max(seal_events.saturating_mul(3)) => Tempo::Full,
        _ if waiting > STEADY_FROM_EVENTS.max(seal_events.saturating_mul(2)) => Tempo::Steady,
        _ => Tempo::Slow,
    }
}

/// The state of the thread.
struct ArchiveThread {
    engine: Arc<EngineSources>,
    /// The number of requests that wait for an answer.
    asked: Arc<AtomicUsize>,
    /// The work on each archive, by its first partition.
    works: BTreeMap<u16, ArchiveWork>,
    resting: Resting,
    cache: FileCache,
    figures: Arc<ArchiveFigures>,
    /// Requests that arrived during others, and wait for them.
    postponed: VecDeque<ArchiverRequest>,
}

impl ArchiveThread {
    fn run(mut self, requests: &Receiver<ArchiverRequest>) {
        let unsealed = Rc::<Cell<Unsealed>>::default();
        background::begin(self.tempo(&unsealed));
        let mut has_more = true;
        while !self.engine.stop.load(Ordering::Acquire) {
            unsealed.set(self.unsealed());
            let tick = if self.engine.erasures.is_awaited() { ERASURE_TICK } else { TICK };
            let next = match self.postponed.pop_front() {
                Some(request) => Ok(request),
                None => requests.recv_timeout(if has_more { Duration::ZERO } else { tick }),
            };
            match next {
                Ok(request) => {
                    let is_long = !matches!(request, ArchiverRequest::Adopt(..) | ArchiverRequest::Release(..));
                    self.take(request, requests);
                    // Repeated requests must not delay other work.
                    has_more = !is_long || self.tick(requests);
                }
                Err(RecvTimeoutError::Timeout) => has_more = self.tick(requests),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.sum_up();
        }
    }

    /// Handles waiting requests to adopt and release partitions.
    fn let_move(&mut self, requests: &Receiver<ArchiverRequest>) {
        while let Ok(request) = requests.try_recv() {
            match request {
                ArchiverRequest::Adopt(..) | ArchiverRequest::Release(..) => self.take(request, requests),
                request => self.postponed.push_back(request),
            }
        }
    }

    fn take(&mut self, request: ArchiverRequest, requests: &Receiver<ArchiverRequest>) {
        match request {
            ArchiverRequest::Seal(reply) => {
                // All requests that arrived before the pass get the same answer.
                self.let_move(requests);
                let mut replies = vec![reply];
                for request in std::mem::take(&mut self.postponed) {
                    match request {
                        ArchiverRequest::Seal(reply) => replies.push(reply),
                        other => self.postponed.push_back(other),
                    }
                }
                let outcome = self.seal_all(requests).map_err(Fault::from);
                // There are more files now.
                self.cache = FileCache::default();
                // A client that waited for this also reads the figures.
                self.sum_up();
                replies.into_iter().for_each(|reply| drop(reply.send(outcome.clone())));
            }
            #[cfg(feature = "cluster")]
            ArchiverRequest::SealPartition(partition, reply) => {
                let sealed = self.works.get_mut(&partition).and_then(|work| work.unless_given_up(ArchiveWork::seal_all));
                let _ = reply.send(sealed.unwrap_or(Err(SealingError::NoAnswer)).map_err(Fault::from));
            }
            ArchiverRequest::MergeTables(reply) => {
                let _ = reply.send(self.resting.merge_all(&self.engine));
            }
            ArchiverRequest::Adopt(partition, sealed, AdoptedArchive { is_given_up, turn }) => {
                let (engine, partitions) = (Arc::clone(&self.engine), partition..partition + 1);
                let sources = Sources { engine, sealed, partitions, is_given_up };
                self.works.insert(partition, ArchiveWork::new(sources, turn));
            }
            ArchiverRequest::Release(partition) => drop(self.works.remove(&partition)),
        }
    }

    /// Does the next piece of work of each archive. Returns whether there is more.
    fn tick(&mut self, requests: &Receiver<ArchiverRequest>) -> bool {
        self.resting.step(&self.engine);
        let mut has_more = false;
        for partition in self.works.keys().copied().collect::<Vec<_>>() {
            self.let_move(requests);
            let work = self.works.get_mut(&partition);
            let work = work.filter(|work| !work.sources.is_stopping());
            has_more |= work.and_then(|work| work.unless_given_up(ArchiveWork::tick)).unwrap_or(false);
        }
        // Done between pieces of work, when no file is being written.
        self.cache.step(&self.engine, &self.works);
        has_more
    }

    /// Seals all events recorded before the call, in all archives.
    fn seal_all(&mut self, requests: &Receiver<ArchiverRequest>) -> Result<Sealed, SealingError> {
        if !self.engine.files.seals() {
            return Err(SealingError::SharedLog);
        }
        let mut sum = Sealed::default();
        for partition in self.works.keys().copied().collect::<Vec<_>>() {
            self.let_move(requests);
            let Some(work) = self.works.get_mut(&partition) else { continue };
            let Some(sealed) = work.unless_given_up(ArchiveWork::seal_all) else { continue };
            sum = sum.and(sealed?);
        }
        Ok(sum)
    }

    fn unsealed(&self) -> Unsealed {
        match self.engine.logged.is_in_order() {
            false => Unsealed::Events(self.works.values().map(|work| work.sources.unsealed()).max().unwrap_or(0)),
            true => {
                let sealed_until = |work: &ArchiveWork| work.sources.sealed.catalog().sealed_until();
                Unsealed::After(self.works.values().map(sealed_until).min().unwrap_or(0))
            }
        }
    }

    /// The speed of the work: full while a client waits for it, and otherwise faster the more
    /// events are unsealed.
    fn tempo(&self, unsealed: &Rc<Cell<Unsealed>>) -> impl Fn() -> Tempo + 'static {
        let (engine, asked, unsealed) = (Arc::clone(&self.engine), Arc::clone(&self.asked), Rc::clone(unsealed));
        move || {
            let is_awaited =
                asked.load(Ordering::Relaxed) > 0 || engine.erasures.is_awaited() || engine.stop.load(Ordering::Relaxed);
            let waiting = match unsealed.get() {
                Unsealed::After(position) => engine.delivered.load(Ordering::Relaxed).saturating_sub(position),
                Unsealed::Events(events) => events,
            };
            if is_awaited { Tempo::Full } else { sealing_tempo(waiting, engine.settings.policy.seal_events) }
        }
    }

    /// Adds the figures of the archives up.
    fn sum_up(&self) {
        let figures = |of: fn(&ArchiveFigures) -> &AtomicU64| {
            self.works.values().map(move |work| of(&work.figures).load(Ordering::Relaxed))
        };
        let fields: [fn(&ArchiveFigures) -> &AtomicU64; 4] =
            [|of| &of.files, |of| &of.bytes, |of| &of.waiting_projects, |of| &of.retention_pending];
        for field in fields {
            field(&self.figures).store(figures(field).sum(), Ordering::Relaxed);
        }
        self.figures.lag_ms.store(figures(|of| &of.lag_ms).max().unwrap_or(0), Ordering::Relaxed);
    }
}

/// The unsealed events.
#[derive(Debug, Clone, Copy)]
enum Unsealed {
    /// The events delivered after this position.
    After(Position),
    /// Approximately this number of events.
    Events(u64),
}

impl Default for Unsealed {
    fn default() -> Self {
        Self::After(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealing_hurries_the_more_it_falls_behind() {
        let usual = 1 << 18;
        let table = [
            (0, usual, Tempo::Slow),
            (STEADY_FROM_EVENTS, usual, Tempo::Slow),
            (STEADY_FROM_EVENTS + 1, usual, Tempo::Steady),
            (FULL_FROM_EVENTS, usual, Tempo::Steady),
            (FULL_FROM_EVENTS + 1, usual, Tempo::Full),
            // Events that are not due yet are no reason to hurry.
            (10_000_000, 10_000_000, Tempo::Slow),
            (20_000_001, 10_000_000, Tempo::Steady),
            (30_000_001, 10_000_000, Tempo::Full),
            (u64::MAX, u64::MAX, Tempo::Slow),
        ];
        for (waiting, seal_events, expected) in table {
            assert_eq!(sealing_tempo(waiting, seal_events), expected, "{waiting} of {seal_events}");
        }
    }

    #[test]
    fn partitions_come_and_go_while_the_thread_works_on_others() {
        let place = tempfile::tempdir().unwrap();
        let archive = |partition: u16| {
            let dir = place.path().join(partition.to_string());
            Arc::new(SealedEvents::open(&dir, Arc::default()).unwrap())
        };
        // No thread takes the requests.
        let (requests, received) = channel();
        let archiver = Archiver {
            requests: Mutex::new(Some(requests)),
            asked: Arc::default(),
            stop: Arc::default(),
            files: Arc::new(headcount_common::NoFiles),
            figures: Arc::default(),
            held: Mutex::default(),
        };
        archiver.adopt(1, archive(1));
        archiver.release(1);
        archiver.adopt(2, archive(2));
        let taken: Vec<u16> = received
            .try_iter()
            .map(|request| match request {
                ArchiverRequest::Adopt(partition, _, held) => {
                    assert_eq!(held.is_given_up.load(Ordering::Acquire), partition == 1);
                    partition
                }
                ArchiverRequest::Release(partition) => 100 + partition,
                _ => panic!("another request"),
            })
            .collect();
        assert_eq!(taken, [1, 101, 2]);
        // Work on the partition itself is waited for.
        let turn = Arc::clone(&archiver.held.lock()[&2].turn);
        let working = turn.lock();
        std::thread::scope(|scope| {
            let releasing = scope.spawn(|| archiver.release(2));
            std::thread::sleep(Duration::from_millis(100));
            assert!(!releasing.is_finished());
            drop(working);
        });
        assert!(archiver.held.lock().is_empty());
    }
}
