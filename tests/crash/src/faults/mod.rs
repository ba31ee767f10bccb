//! `faults`: fails the file operations of log, checkpoints, merges and sealing, one at a time, with
//! ENOSPC and EIO, once and several times in a row.
//!
//! A first run without a fault lists the operations. For each of them, the campaign starts a server
//! on a copy of the same data with the fault injected (`HEADCOUNT_IO_FAULT`), and sends events. The
//! server must either resume and become ready once the fault is over, or exit with a message that
//! names the error. Another server, without a fault, then starts on the same data: every
//! acknowledged event must be counted once, and recognized as a duplicate.
//!
//! Operations are identified by number. The interleaving of threads varies, so that a number may
//! stand for another operation in another run; the output names the operation that failed.

pub mod attempt;
pub mod points;

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use tokio::task::JoinSet;

use crate::arguments::{Common, FaultArguments};
use crate::error::{CampaignError, Result, harness, violation};
use crate::mount::copy_directory;
use crate::prove::build_with_faults;
use crate::rig::{Rig, WorkDir};
use attempt::{Baseline, FaultCase, Reaction, prepare};
use points::{Phase, Point};

/// Number of faults in a sample.
const SAMPLE: usize = 200;
/// Numbers of consecutive failures.
const FAILURES: [u64; 2] = [1, 3];
const ERRNOS: [&str; 2] = ["ENOSPC", "EIO"];
/// Segment size: small enough for the events of a run to fill several.
const SEGMENT_BYTES: u64 = 16 << 10;
/// Number of violations after which the campaign ends; with a planted mistake, it ends after the
/// first.
const ENOUGH: usize = 5;

/// Results of the faults of a phase and an area.
#[derive(Debug, Default)]
struct Row {
    tried: usize,
    recovered: usize,
    stopped: usize,
    not_reached: usize,
    violations: usize,
}

/// Runs the campaign. `--binary` must have been built with fault injection; by default the campaign
/// builds it.
///
/// # Errors
/// A violation, or the harness fails.
pub async fn run(arguments: &FaultArguments) -> Result<()> {
    let binary = match &arguments.common.binary {
        Some(binary) => binary.clone(),
        None => build_with_faults()?,
    };
    // A fixed default seed, so that a fault can be repeated with the same events.
    let seed = Some(arguments.common.seed.unwrap_or(1));
    let common = Common { binary: Some(binary), seed, fault: None, ..arguments.common.clone() };
    let mut work = WorkDir::make(&common)?;
    let result = campaign(arguments, &common, work.path()).await;
    if matches!(result, Err(CampaignError::Violation(_))) {
        work.keep();
    }
    result
}

async fn campaign(arguments: &FaultArguments, common: &Common, work: &Path) -> Result<()> {
    let flags = ["--shards=1", "--workers=1", "--checkpoint-interval=1s", "--min-free-bytes=0", "--seal-events=1"];
    let environment =
        vec![("HEADCOUNT_CHECKPOINT_EVENTS", "1".to_owned()), ("HEADCOUNT_SEGMENT_BYTES", SEGMENT_BYTES.to_string())];
    let mut rig = Rig::make_with(common, work.join("pristine"), &flags, environment).await?;
    prepare(&mut rig).await?;
    let ledger = rig.shared.ledger.borrow().clone();
    let (tenant, pristine) = (rig.shared.tenant.clone(), rig.launch.data_dir.clone());
    let mistake = arguments.common.fault.clone();
    let base = Rc::new(Baseline { launch: rig.launch, mistake, tenant, ledger, seed: common.seed(), pristine });

    let traced = work.join("traced");
    copy_directory(&base.pristine, &traced)?;
    let log = base.trace_operations(traced.clone()).await?;
    let (operations, points) = points::parse(&log.text(), &traced);
    if operations == 0 {
        return Err(harness("the server does not trace its operations: build it with the feature fault-injection"));
    }
    std::fs::remove_dir_all(&traced)?;
    let cases = cases(arguments, &points);
    println!(
        "{operations} file operations without a fault, {} of them fault points; {} faults to inject; {} events in the initial data",
        points.len(),
        cases.len(),
        base.ledger.len()
    );
    report(&attempts(&base, cases, arguments.jobs.max(1), work).await?)
}

/// Returns the faults to inject.
fn cases(arguments: &FaultArguments, points: &[Point]) -> Vec<FaultCase> {
    let fits = |(errno, failures): &(&'static str, u64)| {
        arguments.errno.as_deref().is_none_or(|only| only == *errno) && arguments.failures.is_none_or(|only| only == *failures)
    };
    let failures = arguments.failures.map_or_else(|| FAILURES.to_vec(), |only| vec![only]);
    let all = failures.iter().flat_map(|failures| ERRNOS.map(|errno| (errno, *failures)));
    let variants: Vec<(&'static str, u64)> = all.filter(fits).collect();
    let case = |point: &Point, (errno, failures): (&'static str, u64)| FaultCase { point: point.clone(), errno, failures };
    let of_all_variants = |point: &Point| variants.iter().map(|variant| case(point, *variant)).collect::<Vec<_>>();
    if let Some(at) = arguments.at {
        let point = points.iter().find(|point| point.number >= at).or(points.last());
        return point.map(|point| of_all_variants(&Point { number: at, ..point.clone() })).unwrap_or_default();
    }
    if arguments.all {
        return points.iter().flat_map(of_all_variants).collect();
    }
    let count = arguments.common.cycles.unwrap_or(SAMPLE);
    let sample = points::sample(points, count);
    sample.iter().enumerate().map(|(place, point)| case(point, variants[place % variants.len()])).collect()
}

/// A fault, and the reaction of the server.
type Tried = (FaultCase, Result<Reaction>);

/// Injects the faults, up to `jobs` at a time.
async fn attempts(base: &Rc<Baseline>, cases: Vec<FaultCase>, jobs: usize, work: &Path) -> Result<Vec<Tried>> {
    let (count, enough) = (cases.len(), if base.mistake.is_some() { 1 } else { ENOUGH });
    let (mut waiting, mut running, mut done) = (cases.into_iter().enumerate(), JoinSet::new(), Vec::<Tried>::new());
    loop {
        let violations = done.iter().filter(|(_, reaction)| reaction.is_err()).count();
        while running.len() < jobs && violations < enough {
            let Some((number, case)) = waiting.next() else { break };
            let (base, data_dir) = (Rc::clone(base), work.join(format!("fault-{number}")));
            running.spawn_local(async move {
                let reaction = attempt_in(&base, &case, &data_dir).await;
                (case, reaction)
            });
        }
        let Some(ended) = running.join_next().await else { return Ok(done) };
        let (case, reaction) = ended.map_err(|error| harness(format!("an attempt failed: {error}")))?;
        let what = match &reaction {
            Ok(Reaction::Recovered) => "recovered".to_owned(),
            Ok(Reaction::NotReached) => "not reached".to_owned(),
            Ok(Reaction::Stopped(message)) => format!("stopped: {message}"),
            Err(error) => error.to_string(),
        };
        let points::PointKind { phase, area, operation } = &case.point.kind;
        println!("{:>4} of {count}: {} ({phase}, {area}, {operation}): {what}", done.len() + 1, case.arguments());
        done.push((case, reaction));
    }
}

/// Makes one attempt in a directory that is kept only on a violation.
async fn attempt_in(base: &Baseline, case: &FaultCase, data_dir: &Path) -> Result<Reaction> {
    copy_directory(&base.pristine, data_dir)?;
    let reaction = base.attempt(case, data_dir.to_owned()).await?;
    std::fs::remove_dir_all(data_dir)?;
    Ok(reaction)
}

/// Prints the results as a table.
fn report(done: &[Tried]) -> Result<()> {
    let mut rows: BTreeMap<(Phase, &str), Row> = BTreeMap::new();
    let mut total = Row::default();
    for (case, reaction) in done {
        let row = rows.entry((case.point.kind.phase, &case.point.kind.area)).or_default();
        for row in [row, &mut total] {
            row.tried += 1;
            match reaction {
                Ok(Reaction::Recovered) => row.recovered += 1,
                Ok(Reaction::Stopped(_)) => row.stopped += 1,
                Ok(Reaction::NotReached) => row.not_reached += 1,
                Err(_) => row.violations += 1,
            }
        }
    }
    println!(
        "{:<6} {:<14} {:>6} {:>10} {:>8} {:>12} {:>10}",
        "when", "files", "faults", "recovered", "stopped", "not reached", "violations"
    );
    let line = |phase: &str, area: &str, row: &Row| {
        let Row { tried, recovered, stopped, not_reached, violations } = row;
        println!("{phase:<6} {area:<14} {tried:>6} {recovered:>10} {stopped:>8} {not_reached:>12} {violations:>10}");
    };
    rows.iter().for_each(|((phase, area), row)| line(&phase.to_string(), area, row));
    line("all", "", &total);
    let violations: Vec<String> =
        done.iter().filter(|(_, reaction)| reaction.is_err()).map(|(case, _)| case.arguments()).collect();
    if !violations.is_empty() {
        return Err(violation(format!(
            "{} of {} faults led to violations: {}",
            violations.len(),
            total.tried,
            violations.join("; ")
        )));
    }
    println!(
        "faults: {} tried, {} recovered, {} stopped with a message, {} not reached, no violation",
        total.tried, total.recovered, total.stopped, total.not_reached
    );
    Ok(())
}
