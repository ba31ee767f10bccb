//! The parts that an engine needs to be a member of a cluster.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use headcount_actors::ingest::Ticket;
use headcount_actors::{Common, Installation, LogSink, OpenError};
use headcount_common::local::{CopiedDocuments, kind_dir};
use headcount_common::secrets::{KEYS_DIR, Secrets};
use headcount_common::{DocumentStores, Documents, NoFiles, Owners, SharedArchive, SharedValues};
use headcount_storage::lock::DirLock;
use headcount_storage::log::Commit;
use tokio::runtime::Handle;

use crate::connection::Connection;
use crate::control::{OpenRegistryError, open_log};
use crate::documents::DocumentStream;
use crate::files::SharedFiles;
use crate::identity::node_id;
use crate::letters::LetterLists;
use crate::log::{AuditTiming, StreamCommit, StreamLog};
use crate::record::ClusterRecord;
use crate::values::{BrokerValues, COUNTS, OF_DOCUMENTS};

/// The parts of an engine in a cluster.
#[derive(Debug, Clone)]
pub struct MemberLog {
    runtime: Handle,
    pub(super) connection: Connection,
    pub(super) record: ClusterRecord,
    pub(super) log: Arc<StreamLog>,
    /// Set when the engine is opened.
    pub(super) commit: Arc<OnceLock<Arc<StreamCommit<Ticket>>>>,
    pub(super) owners: Arc<Owners>,
    pub(super) files: Option<Arc<SharedFiles>>,
    pub(super) letters: Arc<LetterLists>,
    audit: AuditTiming,
}

impl MemberLog {
    /// Begins without partitions. Reads and records with `runtime`, and keeps archives in `files`.
    /// Without `files`, it seals nothing.
    pub fn new(runtime: &Handle, connection: &Connection, record: &ClusterRecord, files: Option<Arc<SharedFiles>>) -> Self {
        Self {
            runtime: runtime.clone(),
            connection: connection.clone(),
            record: record.clone(),
            log: Arc::new(StreamLog::new(runtime.clone())),
            commit: Arc::default(),
            owners: Arc::new(Owners::unknown()),
            files,
            letters: Arc::new(LetterLists::new(runtime, connection)),
            audit: AuditTiming::default(),
        }
    }

    /// Sets the times of audits.
    #[must_use]
    pub fn audited(self, audit: AuditTiming) -> Self {
        Self { audit, ..self }
    }

    /// Opens the parts of a node's engine. Call it once. The data directory must be empty or belong
    /// to this cluster, and have the hash key of the cluster. A task of the runtime must not call
    /// this.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(&self, data_dir: &Path) -> Result<Common, OpenError> {
        let Self { runtime, connection, record, .. } = self;
        let directory = |error: &dyn Display| OpenError::Directory(error.to_string());
        let lock = DirLock::acquire(data_dir).map_err(|error| directory(&error))?;
        let (format, control) = open_log(runtime, connection, record, data_dir).map_err(|error| match error {
            OpenRegistryError::Registry(error) => error.into(),
            OpenRegistryError::Secrets(error) => error.into(),
            error @ (OpenRegistryError::Format(_) | OpenRegistryError::HashKey(_)) => directory(&error),
        })?;
        // From now on, no standalone server opens the directory.
        node_id(data_dir).map_err(|error| directory(&format_args!("the id of the node: {error}")))?;
        let secrets = Secrets::open_shared(&data_dir.join(KEYS_DIR))?;
        let stores = ClusterStores { runtime: runtime.clone(), connection: connection.clone(), replicas: record.replicas };
        let codes = Arc::new(BrokerValues::of_codes(runtime, connection, record.replicas));
        let counts = Arc::new(BrokerValues::new((runtime, connection, record.replicas), COUNTS));
        let (runtime, commit, audit) = (runtime.clone(), Arc::clone(&self.commit), self.audit);
        let start = move |sink: LogSink| {
            let commit = commit.get_or_init(|| Arc::new(StreamCommit::start(&runtime, sink).audited(audit)));
            Ok(Arc::clone(commit) as Arc<dyn Commit<Ticket>>)
        };
        Ok(Common {
            installation: Installation { lock, format, answers: Some(record.answers()), secrets },
            owners: Arc::clone(&self.owners),
            log: Arc::<StreamLog>::clone(&self.log),
            commit: Box::new(start),
            files: self.files.clone().map_or_else(|| Arc::new(NoFiles) as _, |files| files as Arc<dyn SharedArchive>),
            control: Box::new(control),
            stores: Arc::new(stores),
            codes,
            counts,
            letters: Some(Arc::<LetterLists>::clone(&self.letters)),
        })
    }
}

/// The documents and values of a cluster.
#[derive(Debug)]
struct ClusterStores {
    runtime: Handle,
    connection: Connection,
    replicas: usize,
}

impl DocumentStores for ClusterStores {
    fn documents(&self, kind: &'static str) -> io::Result<Arc<dyn Documents>> {
        Ok(Arc::new(DocumentStream::new(&self.runtime, &self.connection, kind, self.replicas)))
    }

    fn copied_documents(&self, kind: &'static str, data_dir: &Path) -> io::Result<Arc<dyn Documents>> {
        Ok(Arc::new(CopiedDocuments::new(self.documents(kind)?, &kind_dir(data_dir, kind))?))
    }

    fn values(&self, _: &'static str) -> io::Result<Arc<dyn SharedValues>> {
        Ok(Arc::new(BrokerValues::new((&self.runtime, &self.connection, self.replicas), OF_DOCUMENTS)))
    }
}
