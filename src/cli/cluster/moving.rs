//! `headcount cluster init --from`: creates a cluster from the data of a single server.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use headcount_actors::{LeftBehind, MovingSource};
use headcount_api::command::{Failure, print};
use headcount_cluster::ClusterRecord;
use headcount_cluster::init::{InitOptions, init_from};
use headcount_cluster::moving::{MoveError, Moved};
use serde::Serialize;
use tokio::runtime::Handle;

use crate::features;

/// The interval of progress reports.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// What was made.
#[derive(Serialize)]
struct MovedIn {
    cluster: ClusterRecord,
    moved: Moved,
}

/// Runs the command. After a failure, run it again with the same directories.
pub(super) fn run(runtime: &Handle, options: &InitOptions, from: &Path, json: bool) -> Result<ExitCode, Failure> {
    // Copies of the files that opening would change.
    let scratch = tempfile::Builder::new().prefix("headcount-moving-").tempdir()?;
    let source = MovingSource::open(from, scratch.path(), &features::MOVED).map_err(MoveError::from)?;
    let mut said = Instant::now();
    let mut progress = |recorded, total| {
        if said.elapsed() >= PROGRESS_EVERY {
            said = Instant::now();
            tracing::info!(recorded, total, "moving events in");
        }
        ControlFlow::Continue(())
    };
    let (cluster, moved) = init_from(runtime, options, &source, &mut progress)?;
    drop(source);
    scratch.close()?;
    let made = MovedIn { cluster, moved };
    print(json, &made, || text(&made, &options.data_dir))?;
    Ok(ExitCode::SUCCESS)
}

fn text(MovedIn { cluster, moved }: &MovedIn, data_dir: &Path) -> String {
    let ClusterRecord { incarnation, partitions, replicas, .. } = cluster;
    let Moved { organizations, projects, events, bytes, projects_with_files, recorded_before, documents, left_behind } = moved;
    let mut lines = vec![
        format!("moved in: {organizations} organizations, {projects} projects, {events} events, {bytes} bytes on each broker"),
        format!("cluster {incarnation}: {partitions} partitions, replicas: {replicas}"),
    ];
    if *recorded_before > 0 {
        lines.push(format!("{recorded_before} of the events were recorded by an earlier attempt"));
    }
    if *projects_with_files > 0 {
        lines.push(format!("moved in as files: the archives of {projects_with_files} projects whose retention removed events"));
    }
    if *documents > 0 {
        lines.push(format!("moved in: {documents} {}", features::MOVED_NAMES));
    }
    lines.extend(stayed(left_behind));
    lines.push(format!("Copy {}/keys/hash.key into `keys` of the data directory of each other node.", data_dir.display()));
    lines.join("\n")
}

/// A line that lists the data that did not move.
fn stayed(left: &LeftBehind) -> Option<String> {
    let documents = left.documents.iter().map(|(name, count)| (name.replace('_', " "), *count));
    let all = documents.chain([("events that were set aside".to_owned(), left.set_aside)]);
    let there: Vec<String> = all.filter(|(_, count)| *count > 0).map(|(what, count)| format!("{count} {what}")).collect();
    (!there.is_empty()).then(|| format!("not moved, because it is unreadable or counted nowhere: {}", there.join(", ")))
}
