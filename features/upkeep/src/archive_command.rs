//! `headcount archive`: the archive of a data directory.

use std::process::ExitCode;

use headcount_api::command::{Client, CommandSettings, Failure, is_held, print, runtime};
use serde::{Deserialize, Serialize};

/// The flags of `archive`.
#[derive(Debug, clap::Args)]
pub struct ArchiveArgs {
    #[command(subcommand)]
    command: ArchiveCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ArchiveCommand {
    /// Move all recorded events from the log to the archive. If a server runs on the data
    /// directory, it does the work. Exits with 1 if a project's list of files is damaged: the
    /// events of that project stay in the log
    Seal(SealArgs),
}

#[derive(Debug, clap::Args)]
struct SealArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The result of sealing.
#[derive(Debug, Serialize, Deserialize)]
struct SealSummary {
    sealed_until: u64,
    events: u64,
    #[serde(default)]
    waiting_projects: Vec<String>,
}

/// Runs the command.
pub fn run(settings: &dyn CommandSettings, args: &ArchiveArgs) -> Result<ExitCode, Failure> {
    let ArchiveCommand::Seal(SealArgs { json }) = &args.command;
    let summary = if is_held(settings.data_dir())? {
        Client::operator(&settings.server_place())?.post("/admin/archive/seal", b"")?
    } else {
        runtime()?.block_on(seal(settings))?
    };
    print(*json, &summary, || {
        let SealSummary { sealed_until, events, waiting_projects: _ } = &summary;
        format!("sealed {events} events; the archive has everything up to position {sealed_until}")
    })?;
    for project in &summary.waiting_projects {
        eprintln!("the events of {project} stay in the log: its list of files, manifest.json, is damaged");
    }
    Ok(if summary.waiting_projects.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn seal(settings: &dyn CommandSettings) -> Result<SealSummary, Failure> {
    let engine = settings.open_engine()?;
    let sealed = engine.seal_archive().await;
    if sealed.is_ok() && !engine.merge_tables().await {
        tracing::warn!("the files of the store are not merged yet; a running server merges them when it is idle");
    }
    engine.close().await;
    let sealed = sealed.map_err(|fault| Failure::new("the events could not be sealed", fault))?;
    let waiting_projects = sealed.waiting.iter().map(ToString::to_string).collect();
    Ok(SealSummary { sealed_until: sealed.sealed_until, events: sealed.events, waiting_projects })
}
