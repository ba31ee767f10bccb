//! The parts that an engine needs to be a member of a cluster.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use headcount_actors::ingest::Ticket;
use headcount_actors::{LogSink, Membership, OpenError, OpenRegistry};
use headcount_common::local::{CopiedDocuments, kind_dir};
use headcount_common::{DocumentStores, Documents, Owners, SharedArchive, SharedValues};
use headcount_storage::log::Commit;
use tokio::runtime::Handle;

use crate::connection::Connection;
use crate::control::{OpenRegistryError, open_registry};
use crate::cursors::Cursors;
use crate::documents::DocumentStream;
use crate::files::SharedFiles;
use crate::identity::node_id;
use crate::letters::LetterLists;
use crate::log::{AuditTiming, StreamCommit, StreamLog};
use crate::record::ClusterRecord;

/// The log of an engine, and the owners that it knows.
#[derive(Debug, Clone)]
pub struct MemberLog {
    pub(super) log: Arc<StreamLog>,
    pub(super) commit: Arc<OnceLock<Arc<StreamCommit<Ticket>>>>,
    pub(super) owners: Arc<Owners>,
    pub(super) files: Option<Arc<SharedFiles>>,
    /// Set together with the membership.
    pub(super) letters: Arc<OnceLock<Arc<LetterLists>>>,
    audit: AuditTiming,
}

impl MemberLog {
    /// Begins without partitions. Reads and records with `runtime`, and keeps archives in `files`.
    /// Without `files`, it seals nothing.
    #[must_use]
    pub fn new(runtime: &Handle, files: Option<Arc<SharedFiles>>) -> Self {
        let log = Arc::new(StreamLog::new(runtime.clone()));
        let owners = Arc::new(Owners::unknown());
        Self { log, commit: Arc::default(), owners, files, letters: Arc::default(), audit: AuditTiming::default() }
    }

    /// Sets the times of audits.
    #[must_use]
    pub fn audited(self, audit: AuditTiming) -> Self {
        Self { audit, ..self }
    }

    /// Returns the membership to open an engine of the cluster with. Call it once. The data
    /// directory must be empty or belong to this cluster, and have the hash key of the cluster.
    #[must_use]
    pub fn membership(&self, runtime: &Handle, connection: &Connection, record: &ClusterRecord) -> Membership {
        let letters = self.letters.get_or_init(|| Arc::new(LetterLists::new(runtime, connection)));
        let letters = Arc::<LetterLists>::clone(letters);
        let (with, connection, record) = (runtime.clone(), connection.clone(), record.clone());
        let (incarnation, answers) = (record.incarnation, record.answers());
        let stores = ClusterStores { runtime: runtime.clone(), connection: connection.clone(), replicas: record.replicas };
        let stores = Arc::new(stores);
        let registry: OpenRegistry = Box::new(move |dir| {
            let registry = open_registry(&with, &connection, &record, dir).map_err(|error| match error {
                OpenRegistryError::Registry(error) => error.into(),
                OpenRegistryError::Secrets(error) => error.into(),
                error @ (OpenRegistryError::Format(_) | OpenRegistryError::HashKey(_)) => OpenError::Directory(error.to_string()),
            });
            // From now on, no standalone server opens the directory.
            let id = node_id(dir).map_err(|error| OpenError::Directory(format!("the id of the node: {error}")));
            id.and(registry)
        });
        let (runtime, commit, audit) = (runtime.clone(), Arc::clone(&self.commit), self.audit);
        let start = move |sink: LogSink| {
            Arc::clone(commit.get_or_init(|| Arc::new(StreamCommit::start(&runtime, sink).audited(audit))))
                as Arc<dyn Commit<Ticket>>
        };
        let (log, owners) = (Arc::clone(&self.log), Arc::clone(&self.owners));
        let archive = self.files.clone().map(|files| files as Arc<dyn SharedArchive>);
        let commit = Box::new(start);
        Membership { incarnation, answers, registry, log, commit, archive, letters, stores, owners }
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

    /// Only one kind has values.
    fn values(&self, _: &'static str) -> io::Result<Arc<dyn SharedValues>> {
        Ok(Arc::new(Cursors::new(&self.runtime, &self.connection, self.replicas)))
    }
}
