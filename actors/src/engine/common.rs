//! The parts of an engine that differ between one machine and a node of a cluster: where its data
//! are, and which partitions are here.

use std::io;
use std::sync::Arc;

use headcount_common::local::{LocalStores, LocalValues, kind_dir};
use headcount_common::secrets::{KEYS_DIR, Secrets};
use headcount_common::{ControlLog, DocumentStores, Owners, SharedArchive, SharedLetters, SharedValues};
use headcount_control::Registry;
use headcount_storage::format::{Format, Incarnation};
use headcount_storage::lock::DirLock;
use headcount_storage::log::{Commit, GroupCommit, Log, Outcome, ReadLog};

use super::config::{EngineConfig, OpenError, directory};
use crate::ingest::Ticket;
use crate::intake_counts::INTAKE;

/// Receives the outcomes of submissions to the log.
pub type LogSink = Box<dyn Fn(Vec<Outcome<Ticket>>) + Send + Sync>;
/// Starts the commit of events to the log.
pub type StartCommit = Box<dyn FnOnce(LogSink) -> io::Result<Arc<dyn Commit<Ticket>>> + Send>;

/// The parts with which an engine is opened.
pub struct Common {
    /// The data directory.
    pub installation: Installation,
    /// The owner of each partition.
    pub owners: Arc<Owners>,
    /// Reads the events of this engine's partitions.
    pub log: Arc<dyn ReadLog>,
    /// Records events of these partitions.
    pub commit: StartCommit,
    /// Stores archives, and trims the log.
    pub files: Arc<dyn SharedArchive>,
    /// The control data.
    pub control: Box<dyn ControlLog>,
    /// Opens the documents and their values.
    pub stores: Arc<dyn DocumentStores>,
    /// Keeps sign-in codes.
    pub codes: Arc<dyn SharedValues>,
    /// Keeps the counts of dropped events.
    pub counts: Arc<dyn SharedValues>,
    /// Stores the dead letters for all nodes.
    pub letters: Option<Arc<dyn SharedLetters>>,
}

/// A data directory that this process has locked.
#[derive(Debug)]
pub struct Installation {
    /// The lock.
    pub lock: DirLock,
    /// The description of the directory.
    pub format: Format,
    /// The incarnation of answers, a part of every entity tag and cursor. It changes if positions
    /// may stand for other events. `None`: that of the directory.
    pub answers: Option<Incarnation>,
    /// The keys.
    pub secrets: Secrets,
}

impl Common {
    /// Opens the parts of one machine, which are all in its data directory.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn local(config: &EngineConfig) -> Result<Self, OpenError> {
        let dir = &config.data_dir;
        let (lock, format) = (DirLock::acquire(dir).map_err(directory)?, Format::open(dir).map_err(directory)?);
        let control = Registry::local_log(dir)?;
        let (log, recovery) = Log::open(dir.join("log"), config.log.clone())?;
        if recovery.cut_bytes > 0 {
            tracing::warn!(
                bytes = recovery.cut_bytes,
                "an unfinished write at the end of the log was cut; nothing acknowledged was in it"
            );
        }
        let secrets = Secrets::open(&dir.join(KEYS_DIR))?;
        let (reader, trimmer, group) = (log.reader(), log.trimmer(), config.group.clone());
        let commit = move |sink| Ok(Arc::new(GroupCommit::spawn(log, group, sink)?) as Arc<dyn Commit<Ticket>>);
        Ok(Self {
            installation: Installation { lock, format, answers: None, secrets },
            owners: Arc::new(Owners::alone()),
            log: Arc::new(reader),
            commit: Box::new(commit),
            files: Arc::new(trimmer),
            control,
            stores: Arc::new(LocalStores::new(dir)),
            codes: Registry::codes_in_memory(),
            counts: Arc::new(LocalValues::of_partitions(&kind_dir(dir, INTAKE)).map_err(directory)?),
            letters: None,
        })
    }
}

impl std::fmt::Debug for Common {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Common").field("installation", &self.installation).finish_non_exhaustive()
    }
}
