//! `POST /admin/backup` and `/admin/archive/seal`

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use actix_web::http::header;
use actix_web::web::Bytes;
use futures_util::stream;
use headcount_actors::backup::{self, BackupFailure, BackupSnapshot, TakenErasures};
use headcount_actors::domain::fault::FaultKind;
use headcount_actors::{AskError, SealError, Sealed};
#[cfg(feature = "cluster")]
use headcount_actors::{Engine, NodesBackupError};
use headcount_api::blocking;
use headcount_api::command::{Client, CommandSettings, Failure, OperatorFlags, is_held, print};
use headcount_api::endpoint::*;
use headcount_common::clock::{Clock, SystemClock};
use headcount_storage::backup::{Backup, BackupFolder, BackupManifest, TarTarget, unpack};
use serde::Serialize;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The size of a part of the stream.
const PART_BYTES: usize = 64 << 10;
/// How many parts may wait for the client.
const PARTS_AHEAD: usize = 4;

type TarPart = Result<Bytes, io::Error>;

/// Backs up everything while the server runs, as a tar stream: all that was acknowledged before. `manifest.json` is its last
/// file; without it the backup is not complete. `headcount backup` makes a directory of it. If it can't be completed, the stream
/// ends with a file `NOT_COMPLETED`, which says why, or within a file.
///
/// A node of a cluster takes what all nodes have, and the directory is that of a server that is alone.
#[utoipa::path(
    post, path = "/admin/backup", tag = "operations", operation_id = "backup",
    responses((status = 200, description = "The backup.", content_type = "application/x-tar", body = [u8]), ConflictErrors),
    security(("operator_token" = []))
)]
pub(crate) async fn backup(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let (sender, receiver) = channel(PARTS_AHEAD);
    let engine = state.engine.clone();
    match blocking::run(move || engine.begin_backup()).await? {
        #[cfg(feature = "cluster")]
        Err(BackupFailure::SharedLog) => send_all_nodes(state.engine.clone(), sender).await?,
        begun => {
            let snapshot = begun.map_err(|failure| refused(&failure))?;
            let thread = std::thread::Builder::new().name("backup".into()).spawn(move || {
                send(&sender, |target| snapshot.write(target).map_err(|error| error.to_string()));
            });
            thread.map_err(|error| {
                tracing::error!(%error, "the thread of a backup could not be started");
                ApiError::internal()
            })?;
        }
    }
    Ok(HttpResponse::Ok()
        .content_type("application/x-tar")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .streaming(parts(receiver)))
}

/// Sends the data of all nodes of a cluster.
#[cfg(feature = "cluster")]
async fn send_all_nodes(engine: Engine, sender: Sender<TarPart>) -> Result<()> {
    let begun = blocking::run(move || engine.begin_nodes_backup()).await?;
    let backup = begun.map_err(|failure| refused_of_nodes(&failure))?;
    // It asks other nodes from there.
    drop(tokio::task::spawn_blocking(move || {
        send(&sender, |target| backup.write(target, &|| sender.is_closed()).map_err(|error| error.to_string()));
    }));
    Ok(())
}

fn refused(failure: &BackupFailure) -> ApiError {
    if let BackupFailure::Running = failure {
        return ApiError::new(ErrorCode::BackupRunning, "another backup is being made");
    }
    tracing::error!(%failure, "a backup could not be begun");
    // Only the operator asks.
    ApiError::new(ErrorCode::Internal, failure.to_string())
}

#[cfg(feature = "cluster")]
fn refused_of_nodes(failure: &NodesBackupError) -> ApiError {
    let code = match failure {
        NodesBackupError::Failed(failure) => return refused(failure),
        NodesBackupError::Asking(_)
        | NodesBackupError::Removed(_)
        | NodesBackupError::NotSealed(_)
        | NodesBackupError::DiskFull
        | NodesBackupError::Stopped => ErrorCode::Overloaded,
    };
    tracing::warn!(%failure, "a backup of the cluster could not be begun");
    ApiError::new(code, failure.to_string())
}

/// The parts as they come.
fn parts(receiver: Receiver<TarPart>) -> impl stream::Stream<Item = TarPart> {
    stream::unfold(receiver, |mut receiver| async move { receiver.recv().await.map(|part| (part, receiver)) })
}

/// Sends what `write` writes. It waits for the client, and ends when the connection is closed.
fn send(parts: &Sender<TarPart>, write: impl FnOnce(&mut TarTarget<TarWriter>) -> Result<BackupManifest, String>) {
    let mut target = target_of(parts);
    let written = write(&mut target);
    if let Err(reason) = &written
        && let Err(error) = target.give_up(reason)
    {
        tracing::debug!(%error, "nobody is there to hear why a backup was not completed");
    }
    let sent = target.into_writer().map_err(|error| error.to_string());
    let sent = sent.and_then(|mut writer| writer.flush().map_err(|error| error.to_string()));
    finish(written.and(sent), parts);
}

fn target_of(parts: &Sender<TarPart>) -> TarTarget<TarWriter> {
    TarTarget::new(TarWriter { parts: parts.clone(), waiting: Vec::with_capacity(PART_BYTES) })
}

/// Notes how the sending ended.
fn finish(sent: Result<(), String>, parts: &Sender<TarPart>) {
    if let Err(error) = sent {
        tracing::error!(%error, "a backup was not completed");
        // The stream must not look as if it ended by itself. Nobody may be there to see it.
        let _ = parts.blocking_send(Err(io::Error::other("the backup was not completed")));
    }
}

/// Passes what is written on in parts.
struct TarWriter {
    parts: Sender<TarPart>,
    waiting: Vec<u8>,
}

impl Write for TarWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PART_BYTES - self.waiting.len());
        self.waiting.extend_from_slice(&bytes[..count]);
        if self.waiting.len() == PART_BYTES {
            self.flush()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        let part = std::mem::replace(&mut self.waiting, Vec::with_capacity(PART_BYTES));
        self.parts.blocking_send(Ok(part.into())).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// What was sealed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SealAnswer {
    /// The position up to which all events are in the archive, except those of `waiting_projects`.
    sealed_until: u64,
    /// The number of events that were added to the archive.
    events: u64,
    /// The projects whose events stay in the log, because their list of archive files is damaged.
    waiting_projects: Vec<String>,
}

/// Moves all recorded events from the log to the archive.
///
/// Writes checkpoints first, so it may take some seconds. If it fails, the events stay in the log.
#[utoipa::path(
    post, path = "/admin/archive/seal", tag = "operations", operation_id = "seal_archive",
    responses((status = 200, description = "Everything recorded before the request is sealed, except events of `waiting_projects`.", body = SealAnswer)),
    security(("operator_token" = []))
)]
pub(crate) async fn seal(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let sealed = state.engine.seal_archive().await.map_err(|error| {
        tracing::warn!(%error, "the archive could not be sealed");
        match error {
            SealError::Here(fault) if fault.kind == FaultKind::DamagedArchive => ApiError::from(AskError::Lost(fault)),
            SealError::Here(_) => {
                ApiError::overloaded("the events could not be sealed now; they stay in the log, and the server's log says why")
            }
            SealError::NoFiles => ApiError::new(ErrorCode::UnsupportedInCluster, error.to_string()),
            // Only the operator asks.
            SealError::Node { .. } | SealError::Partitions(_) => {
                ApiError::overloaded(format!("not everything is sealed: {error}; what is not stays in the log"))
            }
        }
    })?;
    let Sealed { sealed_until, events, waiting, .. } = sealed;
    let waiting_projects = waiting.iter().map(ToString::to_string).collect();
    Ok(HttpResponse::Ok().json(SealAnswer { sealed_until, events, waiting_projects }))
}

/// The flags of `backup`.
#[derive(Debug, clap::Args)]
pub struct BackupArgs {
    /// Directory to write the backup to; it must be empty or missing
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Earlier backup. Unchanged files become hard links to it, or copies on another file system
    #[arg(long, value_name = "OLD")]
    incremental_from: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: OperatorFlags,
}

/// The flags of `restore`.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// Directory with the backup; --data-dir must be empty or missing
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The original data directory, of a stopped server. People who were erased after the backup
    /// stay erased
    #[arg(long, value_name = "DATA_DIR")]
    erasures_from: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The result of a backup or a restore.
#[derive(Serialize)]
struct BackupSummary {
    directory: PathBuf,
    files: usize,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    linked_bytes: Option<u64>,
    projects: usize,
    /// The last position of the backup.
    position: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    taken: Option<TakenSummary>,
}

/// The erasures and requests that a restore took from the original data directory.
#[derive(Serialize)]
struct TakenSummary {
    erasures: u64,
    opt_ins: u64,
    requests: u64,
}

impl From<TakenErasures> for TakenSummary {
    fn from(TakenErasures { erasures, opt_ins, requests }: TakenErasures) -> Self {
        Self { erasures, opt_ins, requests }
    }
}

impl BackupSummary {
    fn of(directory: PathBuf, manifest: &BackupManifest, linked_bytes: Option<u64>) -> Self {
        Self {
            directory,
            files: manifest.files.len(),
            bytes: manifest.files.iter().map(|file| file.bytes).sum(),
            linked_bytes,
            projects: manifest.projects.len(),
            position: manifest.last_position(),
            taken: None,
        }
    }

    fn describe(&self, what: &str) -> String {
        let Self { directory, files, bytes, linked_bytes, projects, position, taken: _ } = self;
        let linked = linked_bytes.map_or_else(String::new, |linked| format!(", {linked} of them as links"));
        let directory = directory.display();
        format!("{what} {directory}: {files} files, {bytes} bytes{linked}; {projects} projects up to position {position}")
    }
}

/// Runs `backup`. A failed backup leaves nothing that looks like a complete one.
pub fn run(settings: &dyn CommandSettings, args: &BackupArgs) -> Result<ExitCode, Failure> {
    let through_server = args.server.url.is_some() || is_held(settings.data_dir())?;
    let previous = args.incremental_from.as_deref().map(Backup::open).transpose()?;
    let is_incremental = previous.is_some();
    let mut folder = BackupFolder::create(&args.dir, previous)?;
    let manifest = if through_server {
        let stream = Client::operator_of(&args.server, &settings.server_place())?.post_for_stream("/admin/backup")?;
        unpack(stream, &mut folder)?
    } else {
        BackupSnapshot::of_directory(settings.data_dir(), SystemClock.now())?.write(&mut folder)?
    };
    let summary = BackupSummary::of(args.dir.clone(), &manifest, is_incremental.then_some(folder.linked_bytes));
    print(args.json, &summary, || summary.describe("backed up to"))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `restore`.
pub fn restore(settings: &dyn CommandSettings, args: &RestoreArgs) -> Result<ExitCode, Failure> {
    let opened = Backup::open(&args.dir)?;
    let taken = backup::restore(&opened, settings.data_dir(), args.erasures_from.as_deref())?.map(TakenSummary::from);
    let summary = BackupSummary { taken, ..BackupSummary::of(settings.data_dir().to_owned(), opened.manifest(), None) };
    print(args.json, &summary, || {
        let erased = match &summary.taken {
            Some(TakenSummary { erasures, opt_ins, requests }) => {
                format!(
                    "kept: {erasures} later erasures (the first start finishes them), {opt_ins} opt-ins, {requests} privacy requests"
                )
            }
            None => "the backup still has people who were erased after it was made; --erasures-from keeps them erased".to_owned(),
        };
        format!("{}\nthe first start rebuilds every figure from the log\n{erased}", summary.describe("restored to"))
    })?;
    Ok(ExitCode::SUCCESS)
}
