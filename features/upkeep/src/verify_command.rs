//! `headcount verify`: recomputes every figure from the recorded events.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_actors::verify::VerifyReport;
use headcount_actors::verify_directory;
use headcount_api::command::{Client, CommandSettings, Failure, OperatorFlags, is_held, print, runtime, stop_signal};
use headcount_api::open_files;
use headcount_storage::backup::{Backup, BackupError};
use serde::Deserialize;

use crate::erased::ErasedFlags;
use crate::verifications::{UnverifiedPartitionAnswer, VerifyAnswer};

/// The exit code of a verification that could not run.
const NOT_VERIFIED: u8 = 3;
/// The number of cells and files that the text output lists.
const SHOWN: usize = 20;

/// The flags of `verify`.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// Verify a backup instead of the data directory, in a temporary directory beside the backup
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    backup: Option<PathBuf>,
    /// Only check the files: checksums of log, archive and tables
    #[arg(long)]
    quick: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    erased: ErasedFlags,
    #[command(flatten)]
    server: OperatorFlags,
}

/// The reason why a server did not verify, in place of the result.
#[derive(Deserialize)]
struct NotVerified {
    error: Reason,
}

#[derive(Deserialize)]
struct Reason {
    message: String,
}

/// Runs the command. Exit codes: 0 if everything agrees, 1 if something differs or is damaged, 3 if
/// all or a part could not be verified.
pub fn run(settings: &dyn CommandSettings, args: &VerifyArgs) -> ExitCode {
    if args.erased.is_given() {
        return args.erased.run(settings, args.json).unwrap_or_else(|failure| not_verified(&failure));
    }
    let verified = match &args.backup {
        Some(backup) => verify_backup(settings, backup, args.quick),
        None => verify(settings, args),
    };
    match verified.and_then(|answer| print(args.json, &answer, || describe(&answer)).map(|()| answer)) {
        Ok(answer) if answer.is_clean() => ExitCode::SUCCESS,
        Ok(answer) if answer.is_incomplete() => ExitCode::from(NOT_VERIFIED),
        Ok(_) => ExitCode::FAILURE,
        Err(failure) => not_verified(&failure),
    }
}

fn not_verified(failure: &Failure) -> ExitCode {
    eprintln!("headcount: not verified: {failure}");
    ExitCode::from(NOT_VERIFIED)
}

fn verify(settings: &dyn CommandSettings, args: &VerifyArgs) -> Result<VerifyAnswer, Failure> {
    if args.server.url.is_none() && !is_held(settings.data_dir())? {
        return verify_stopped(settings, settings.data_dir(), args.quick);
    }
    let path = format!("/admin/verify?quick={}", args.quick);
    let mut answer = Vec::new();
    let mut stream = Client::operator_of(&args.server, &settings.server_place())?.post_for_stream(&path)?;
    std::io::Read::read_to_end(&mut stream, &mut answer).map_err(|error| Failure::new("the answer was cut off", error))?;
    if let Ok(NotVerified { error }) = serde_json::from_slice(&answer) {
        return Err(Failure(error.message));
    }
    serde_json::from_slice(&answer).map_err(|error| Failure::new("the server's answer could not be read", error))
}

/// Verifies a directory that no process has open. SIGTERM and SIGINT end it early, so that it
/// leaves no temporary files.
fn verify_stopped(settings: &dyn CommandSettings, data_dir: &Path, quick: bool) -> Result<VerifyAnswer, Failure> {
    open_files::raise()?;
    let mut config = settings.engine();
    data_dir.clone_into(&mut config.data_dir);
    let stop = Arc::<AtomicBool>::default();
    let runtime = runtime()?;
    runtime.block_on(async {
        let stopped = stop_signal()?;
        let (work_stop, (done, mut wait)) = (Arc::clone(&stop), tokio::sync::oneshot::channel());
        std::thread::Builder::new()
            .name("verify".into())
            .spawn(move || done.send(verify_directory(&config, quick, &work_stop)))?;
        let ended: Result<Result<VerifyReport, _>, _> = tokio::select! {
            ended = &mut wait => ended,
            () = stopped => {
                stop.store(true, Ordering::Relaxed);
                wait.await
            }
        };
        Ok(VerifyAnswer::of(&ended??))
    })
}

/// Verifies a backup: its checksums, then the figures of a data directory restored from it.
fn verify_backup(settings: &dyn CommandSettings, dir: &Path, quick: bool) -> Result<VerifyAnswer, Failure> {
    let damaged = |error| match error {
        BackupError::Damaged { name, reason } => {
            let mut report = VerifyReport::default();
            report.is_damaged(name, reason);
            Ok(VerifyAnswer::of(&report))
        }
        error => Err(Failure::from(error)),
    };
    let backup = match Backup::open(dir) {
        Ok(backup) => backup,
        Err(error) => return damaged(error),
    };
    if quick {
        return backup.check().map_or_else(damaged, |()| Ok(VerifyAnswer::of(&VerifyReport::default())));
    }
    let beside = dir.canonicalize()?;
    let beside = beside.parent().unwrap_or(Path::new("/"));
    let place = tempfile::Builder::new().prefix(".headcount-verify-").tempdir_in(beside)?;
    let restored = place.path().join("data");
    match headcount_storage::backup::restore(&backup, &restored) {
        Ok(()) => verify_stopped(settings, &restored, quick),
        Err(error) => damaged(error),
    }
}

fn describe(answer: &VerifyAnswer) -> String {
    let mut lines: Vec<String> = answer
        .damaged
        .iter()
        .take(SHOWN)
        .map(|damaged| format!("damaged: {}{}: {}", at(&damaged.node), damaged.file, damaged.reason))
        .collect();
    for cell in answer.cells.iter().take(SHOWN) {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        let (stored, recomputed) = (text(&cell.stored), text(&cell.recomputed));
        lines.push(format!(
            "differs: {}{} {} {}: stored {stored}, recomputed {recomputed}",
            at(&cell.node),
            cell.project_id,
            cell.rollup,
            cell.key
        ));
    }
    lines.extend(describe_unverified(answer));
    let (events, cells) =
        answer.projects.iter().fold((0, 0), |(events, cells), project| (events + project.events, cells + project.cells));
    let (projects, damaged, differing) = (answer.projects.len(), answer.damaged.len(), answer.differing);
    let unverified = match answer.not_verified.len() {
        0 => String::new(),
        partitions => format!("; {partitions} partitions are not verified"),
    };
    lines.push(match answer.is_clean() {
        true => format!("clean: {cells} cells of {projects} projects, recomputed from {events} events"),
        false => format!("{}: {differing} of {cells} cells of {projects} projects, {damaged} files", answer.status) + &unverified,
    });
    lines.join("\n")
}

/// The unverified partitions, one line for each reason.
fn describe_unverified(answer: &VerifyAnswer) -> Vec<String> {
    let mut reasons: BTreeMap<(&Option<String>, &str), Vec<String>> = BTreeMap::new();
    for UnverifiedPartitionAnswer { partition, node, reason } in &answer.not_verified {
        reasons.entry((node, reason)).or_default().push(format!("{partition:03}"));
    }
    let line = |((node, reason), partitions): ((&Option<String>, &str), Vec<String>)| {
        format!("not verified: {}partitions {}: {reason}", at(node), partitions.join(", "))
    };
    reasons.into_iter().map(line).collect()
}

/// The name of the cluster's node, if any.
fn at(node: &Option<String>) -> String {
    node.as_ref().map(|node| format!("{node} ")).unwrap_or_default()
}
