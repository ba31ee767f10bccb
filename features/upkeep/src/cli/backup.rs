//! `headcount backup` and `headcount restore`.

use std::path::PathBuf;
use std::process::ExitCode;

use headcount_actors::backup::{self, BackupSnapshot, TakenErasures};
use headcount_api::command::client::{Client, OperatorFlags, is_held};
use headcount_api::command::failure::Failure;
use headcount_api::command::output::print;
use headcount_api::command::settings::CommandSettings;
use headcount_common::clock::{Clock, SystemClock};
use headcount_storage::backup::{Backup, BackupFolder, BackupManifest, unpack};
use serde::Serialize;

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
    let summary = BackupSummary::of(args.dir.clone(), &manifest, is_incremental.then(|| folder.linked_bytes()));
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
