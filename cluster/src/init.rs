//! Making a cluster.
//!
//! The order is such that an attempt that was interrupted can be made again, with the same data directory: streams and bucket, the directory with its keys, the first
//! organization, and at last the [record](ClusterRecord), which makes them a cluster. The first record of the control log decides between two attempts at once: only the
//! attempt that has the keys of that organization goes on.

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

/// How many streams are created at once.
const AT_ONCE: usize = 8;
/// The key that says what moves in. Its revision is the epoch of an attempt: later than those of earlier attempts, and earlier than those of nodes.
const MOVING_KEY: &str = "moving";
/// What an attempt leaves in a data directory, and in its `control`. What else is there belongs to an installation.
const LEFT: [&str; 5] = ["LOCK", "FORMAT", "keys", "control", "credentials.json"];
const LEFT_IN_CONTROL: [&str; 1] = ["audit"];
/// Streams of documents and of what belongs to them, which nodes make. Those of an earlier cluster would be taken for those of this one.
const DOCUMENTS: [&str; 4] = ["HC_DOC_PROFILES", "HC_DOC_PRIVACY", "HC_DOC_WEBHOOKS", "KV_hc_hooks"];

/// What to make.
#[derive(Debug, Clone)]
pub struct InitOptions {
    /// The addresses of all brokers.
    pub brokers: Vec<String>,
    /// What they are shown.
    pub credentials: Credentials,
    /// On how many brokers each message is kept.
    pub replicas: usize,
    /// The size of a partition's stream at most.
    pub max_bytes: i64,
    /// The data directory of the first node.
    pub data_dir: PathBuf,
    /// Where the nodes are to keep files. Only what moves in with files needs it here.
    pub files: Option<Bucket>,
}

/// Why a cluster could not be made.
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
        /// What is there.
        name: String,
    },
    /// A stream has messages, but there is no cluster.
    #[error(
        "the stream {0} has messages, but these brokers have no cluster: if nobody needs them, delete it (`nats stream rm {0}`)"
    )]
    Left(String),
    /// An installation did not move in.
    #[error(transparent)]
    Move(Box<MoveError>),
    /// Another attempt began while this one was under way.
    #[error("another `headcount cluster init` with these brokers began meanwhile: let it finish, or run this one again")]
    Overtaken,
    /// The visitor salts can't be brought along.
    #[error("the visitor salts could not be brought along: {0}")]
    Salts(String),
    /// A stream can't be made.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The bucket can't be made.
    #[error("the bucket {BUCKET} can't be created: {0}")]
    Bucket(#[source] LeaseError),
    /// The levels at which the nodes begin can't be written.
    #[error(transparent)]
    Levels(#[from] LevelsError),
    /// The data directory is in use, or can't be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The data directory can't be described.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The data directory can't be read.
    #[error("{0} can't be listed: {1}")]
    List(String, #[source] std::io::Error),
    /// The keys can't be created.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// The id of the node can't be written. The cluster is made; the node gets its id when it starts.
    #[error("the cluster is made, but the directory could not be marked as that of a node: {0}")]
    Identity(#[source] std::io::Error),
    /// The control data can't be opened.
    #[error(transparent)]
    Open(#[from] OpenRegistryError),
    /// The control log can't be read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// There is a cluster already, or its record can't be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Makes a cluster. `first` creates the first organization, or finds in the data directory that an earlier attempt did; it keeps the keys before they are valid. Must not be
/// called by a task of the runtime.
///
/// # Errors
/// [`InitError`], and those of `first`. It can be called again.
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

/// Makes a cluster that has what an installation has, which stays as it is. `progress` gets how many of how many events are recorded, and may end the attempt. Must not be called by a
/// task of the runtime.
///
/// # Errors
/// [`InitError`]. It can be called again with the same installation, and goes on then.
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
    // Another attempt may have ended meanwhile, and nodes may have what this one would change.
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

/// Checks the brokers and the data directory, and locks it.
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

/// Checks that there is no cluster.
fn check_none(found: Option<ClusterRecord>) -> Result<(), RecordError> {
    found.map_or(Ok(()), |found| Err(RecordError::Exists(found.incarnation)))
}

/// Checks that a directory has nothing but what an earlier attempt left. It need not exist.
fn check_left(dir: &Path, left: &[&str]) -> Result<(), InitError> {
    if !dir.exists() {
        return Ok(());
    }
    let entries = files::list(dir).map_err(|error| InitError::List(dir.display().to_string(), error))?;
    let names = entries.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    // Files that were being written.
    let other = |name: &String| !left.contains(&name.as_str()) && !name.ends_with(".tmp");
    match names.into_iter().find(other) {
        Some(name) => Err(InitError::NotEmpty { dir: dir.to_owned(), name }),
        None => Ok(()),
    }
}

/// Checks that an earlier cluster has left no documents.
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
    /// Whether an earlier attempt may have recorded it.
    may_be_there: bool,
}

/// Makes the streams, the bucket, the data directory and its keys. Returns the record, which is not written yet.
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
    let control_records = StreamName::control().make_whole(connection, *replicas).await?;
    Leases::create(connection, BUCKET, *replicas, Timing::default()).await.map_err(InitError::Bucket)?;
    AgreedLevels::begin(connection).await?;
    let incarnation = match (Format::is_in(data_dir), control_records) {
        (false, _) => Incarnation::random().map_err(|source| FormatError::Io { path: data_dir.clone(), source })?,
        // The attempt that left the directory may have been with other brokers.
        (true, 0) => Format::open(data_dir)?.renew(data_dir)?.incarnation,
        (true, _) => Format::open(data_dir)?.incarnation,
    };
    Format::open_as(data_dir, incarnation)?;
    secrets::create(data_dir)?;
    let digest = hash_key_digest(data_dir)?.unwrap_or_default();
    Ok(ClusterRecord::new(incarnation, PARTITIONS, *replicas, digest))
}
