//! Creates a cluster.
//!
//! An interrupted attempt can be repeated with the same data directory, because of its order:
//! streams and bucket, the directory with its keys, the first organization, and at last the
//! [record](ClusterRecord), which turns them into a cluster. If two attempts run at once, the first
//! record of the control log decides: only the attempt with the keys of that organization
//! continues.

use std::path::{Path, PathBuf};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use headcount_actors::MovingSource;
use headcount_common::secrets::{SecretsError, hash_key_digest, visitor_salts};
use headcount_common::{PARTITIONS, secrets};
use headcount_control::{Registry, RegistryError};
use headcount_storage::files;
use headcount_storage::format::{Format, FormatError, Incarnation};
use headcount_storage::lock::{DirLock, LockError};
use tokio::runtime::Handle;

use crate::agreed::{AgreedLevels, LevelsError};
use crate::check::{self, Problem};
use crate::connection::{ConnectError, Connection, Credentials};
use crate::control::{OpenRegistryError, open_registry};
use crate::files::Bucket;
use crate::identity::node_id;
use crate::lease::{LeaseError, Leases, Timing};
use crate::moving::{Load, MoveError, MoveProgress, Moved};
use crate::node::bring_salts;
use crate::record::{self, BUCKET, ClusterRecord, RecordError, read_key, write_key};
use crate::stream::{StreamError, StreamName};

/// The number of streams created at once.
const AT_ONCE: usize = 8;
/// The key that describes the installation to move in. Its revision is the epoch of the attempt:
/// later than the epochs of earlier attempts, and earlier than the epochs of nodes.
const MOVING_KEY: &str = "moving";
/// The files that an attempt leaves in a data directory, and in its `control`. All other files
/// belong to an installation.
const LEFT: [&str; 5] = ["LOCK", "FORMAT", "keys", "control", "credentials.json"];
const LEFT_IN_CONTROL: [&str; 1] = ["audit"];
/// Streams of documents, of data that belongs to them, and of snapshots. Nodes create these
/// streams, so the streams of an earlier cluster would count as those of the new cluster.
const DOCUMENTS: [&str; 6] =
    ["HC_DOC_PROFILES", "HC_DOC_PRIVACY", "HC_DOC_WEBHOOKS", "KV_hc_hooks", "KV_hc_intake", "HC_CTL_SNAP"];

/// The cluster to create.
#[derive(Debug, Clone)]
pub struct InitOptions {
    /// The addresses of all brokers.
    pub brokers: Vec<String>,
    /// The credentials for the brokers.
    pub credentials: Credentials,
    /// The number of brokers that keep each message.
    pub replicas: usize,
    /// The maximum size of a partition's stream.
    pub max_bytes: i64,
    /// The data directory of the first node.
    pub data_dir: PathBuf,
    /// The place where the nodes are to keep files. Only an installation with files needs it.
    pub files: Option<Bucket>,
}

/// The reason why a cluster could not be created.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The brokers can't carry a cluster.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Brokers(Vec<Problem>),
    /// The brokers can't be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The data directory belongs to an installation.
    #[error("{} has {name}, which `headcount cluster init` does not make: choose an empty directory", dir.display())]
    NotEmpty {
        /// The directory.
        dir: PathBuf,
        /// The name of a file in it.
        name: String,
    },
    /// A stream has messages, but there is no cluster.
    #[error(
        "the stream {0} has messages, but these brokers have no cluster: if nobody needs them, delete it (`nats stream rm {0}`)"
    )]
    Left(String),
    /// An installation could not be moved in.
    #[error(transparent)]
    Move(Box<MoveError>),
    /// Another attempt began during this one.
    #[error("another `headcount cluster init` with these brokers began meanwhile: let it finish, or run this one again")]
    Overtaken,
    /// The visitor salts can't be moved in.
    #[error("the visitor salts could not be brought along: {0}")]
    Salts(String),
    /// A stream can't be created.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The bucket can't be created.
    #[error("the bucket {BUCKET} can't be created: {0}")]
    Bucket(#[source] LeaseError),
    /// The first levels of the cluster can't be written.
    #[error(transparent)]
    Levels(#[from] LevelsError),
    /// The data directory is in use, or can't be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The format file of the data directory can't be written.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The data directory can't be read.
    #[error("{0} can't be listed: {1}")]
    List(String, #[source] std::io::Error),
    /// The keys can't be created.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// The id of the node can't be written. The cluster exists; the node gets its id when it
    /// starts.
    #[error("the cluster is made, but the directory could not be marked as that of a node: {0}")]
    Identity(#[source] std::io::Error),
    /// The control data can't be opened.
    #[error(transparent)]
    Open(#[from] OpenRegistryError),
    /// The control log can't be read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A cluster exists already, or its record can't be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Creates a cluster. `first` creates the first organization, or finds in the data directory that
/// an earlier attempt did. It stores the keys before they become valid. A task of the runtime must
/// not call this.
///
/// # Errors
/// Returns an [`InitError`], and the errors of `first`. The call can be repeated.
pub fn init<T, E: From<InitError>>(
    runtime: &Handle,
    options: &InitOptions,
    first: impl FnOnce(&Registry) -> Result<T, E>,
) -> Result<(ClusterRecord, T), E> {
    let (connection, _lock) = runtime.block_on(begin(options))?;
    runtime.block_on(check_no_documents(&connection))?;
    let record = runtime.block_on(prepare(&connection, options, &|_| FirstMessage { sequence: 1, may_be_there: false }))?;
    let registry = open_registry(runtime, &connection, &record, &options.data_dir).map_err(InitError::from)?;
    // The first answer about the end of the log may have been out of date.
    registry.catch_up().map_err(InitError::from)?;
    let made = first(&registry)?;
    runtime.block_on(record.publish(&connection)).map_err(InitError::from)?;
    node_id(&options.data_dir).map_err(InitError::Identity)?;
    Ok((record, made))
}

/// Creates a cluster from an installation, which stays as it is. `progress` gets the number of
/// recorded events and of all events, and may end the attempt. A task of the runtime must not call
/// this.
///
/// # Errors
/// Returns an [`InitError`]. The call can be repeated with the same installation, and continues the
/// former attempt.
pub fn init_from(
    runtime: &Handle,
    options: &InitOptions,
    source: &MovingSource,
    progress: &mut MoveProgress<'_>,
) -> Result<(ClusterRecord, Moved), InitError> {
    let moving = |error: MoveError| InitError::Move(Box::new(error));
    runtime.block_on(Load::check_place(source, options.files.as_ref())).map_err(moving)?;
    let (connection, _lock) = runtime.block_on(begin(options))?;
    let load = Load::measure(source, options.max_bytes, options.files.as_ref()).map_err(moving)?;
    source.bring_keys(&options.data_dir).map_err(|error| moving(error.into()))?;
    let begun = runtime.block_on(read_key(&connection, MOVING_KEY))?;
    if begun.as_ref().is_some_and(|begun| begun.value != source.digest().as_bytes()) {
        return Err(moving(MoveError::OtherSource));
    }
    if begun.is_none() {
        runtime.block_on(check_no_documents(&connection))?;
    }
    let first = |partition| FirstMessage {
        sequence: load.first_message(partition),
        may_be_there: begun.is_some() && load.has(partition),
    };
    let record = runtime.block_on(prepare(&connection, options, &first))?;
    let epoch = runtime.block_on(write_key(&connection, MOVING_KEY, source.digest()))?;
    // Another attempt may have ended meanwhile, and nodes may already use the data that this one
    // would change.
    check_none(runtime.block_on(ClusterRecord::read(&connection))?)?;
    let moved = load.record((runtime, &connection), &record, epoch, progress).map_err(moving)?;
    open_registry(runtime, &connection, &record, &options.data_dir)?.catch_up()?;
    let salts = visitor_salts(&options.data_dir)?;
    runtime.block_on(bring_salts(&connection, options.replicas, &salts)).map_err(|error| InitError::Salts(error.to_string()))?;
    // One that began later changes the same streams.
    if runtime.block_on(read_key(&connection, MOVING_KEY))?.map(|cell| cell.revision) != Some(epoch) {
        return Err(InitError::Overtaken);
    }
    runtime.block_on(record.publish(&connection))?;
    node_id(&options.data_dir).map_err(InitError::Identity)?;
    Ok((record, moved))
}

/// Checks the brokers and the data directory, and locks the directory.
async fn begin(options: &InitOptions) -> Result<(Connection, DirLock), InitError> {
    let (_, problems) = check::ask(&options.brokers, &options.credentials, options.replicas).await;
    if !problems.is_empty() {
        return Err(InitError::Brokers(problems));
    }
    let connection = Connection::open(&options.brokers, &options.credentials).await?;
    check_none(ClusterRecord::read(&connection).await?)?;
    let lock = DirLock::acquire(&options.data_dir)?;
    check_left(&options.data_dir, &LEFT)?;
    check_left(&options.data_dir.join("control"), &LEFT_IN_CONTROL)?;
    Ok((connection, lock))
}

/// Checks that no cluster exists.
fn check_none(found: Option<ClusterRecord>) -> Result<(), RecordError> {
    found.map_or(Ok(()), |found| Err(RecordError::Exists(found.incarnation)))
}

/// Checks that a directory holds only files of an earlier attempt. It need not exist.
fn check_left(dir: &Path, left: &[&str]) -> Result<(), InitError> {
    if !dir.exists() {
        return Ok(());
    }
    let entries = files::list(dir).map_err(|error| InitError::List(dir.display().to_string(), error))?;
    let names = entries.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    // Temporary files of an interrupted write.
    let other = |name: &String| !left.contains(&name.as_str()) && !name.ends_with(".tmp");
    match names.into_iter().find(other) {
        Some(name) => Err(InitError::NotEmpty { dir: dir.to_owned(), name }),
        None => Ok(()),
    }
}

/// Checks that no documents of an earlier cluster exist.
async fn check_no_documents(connection: &Connection) -> Result<(), InitError> {
    for name in DOCUMENTS {
        if record::stream(connection, name).await?.is_some_and(|stream| stream.cached_info().state.messages > 0) {
            return Err(InitError::Left(name.to_owned()));
        }
    }
    Ok(())
}

/// The first message of a partition's stream.
struct FirstMessage {
    sequence: u64,
    /// Whether an earlier attempt may have recorded the message.
    may_be_there: bool,
}

/// Creates the streams, the bucket, the data directory and its keys. Returns the record, which is
/// not written yet.
async fn prepare(
    connection: &Connection,
    options: &InitOptions,
    first: &dyn Fn(u16) -> FirstMessage,
) -> Result<ClusterRecord, InitError> {
    let InitOptions { replicas, max_bytes, data_dir, .. } = options;
    let make = async |partition: u16| {
        let (name, FirstMessage { sequence, may_be_there }) = (StreamName::of_partition(partition), first(partition));
        match name.make(connection, *replicas, *max_bytes).await? {
            0 if sequence > 1 => Ok(name.begin_at(connection, sequence).await?),
            last if last < sequence || may_be_there => Ok(()),
            _ => Err(InitError::Left(name.stream)),
        }
    };
    stream::iter((0..PARTITIONS).map(make)).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    let control_records = StreamName::control().make(connection, *replicas, -1).await?;
    Leases::create(connection, BUCKET, *replicas, Timing::default()).await.map_err(InitError::Bucket)?;
    AgreedLevels::begin(connection).await?;
    let incarnation = match (Format::is_in(data_dir), control_records) {
        (false, _) => Incarnation::random().map_err(|source| FormatError::Io { path: data_dir.clone(), source })?,
        // The attempt that left the directory may have used other brokers.
        (true, 0) => Format::open(data_dir)?.renew(data_dir)?.incarnation,
        (true, _) => Format::open(data_dir)?.incarnation,
    };
    Format::open_as(data_dir, incarnation)?;
    secrets::create(data_dir)?;
    let digest = hash_key_digest(data_dir)?.unwrap_or_default();
    Ok(ClusterRecord::new(incarnation, PARTITIONS, *replicas, digest))
}
