//! `faults`: the operations on files of log, checkpoints and merges fail, one at a time, with ENOSPC and with EIO, once and several
//! times in a row.
//!
//! A first run without a fault tells which operations there are. For each a server is started on a copy of the same data with the
//! fault planted (`HEADCOUNT_IO_FAULT`), and sent events. It either goes on by itself, and is ready once the fault is over, or ends
//! with a message that names the error. Another server, without a fault, then goes on with the same data: every acknowledged event
//! is counted once, and known as a duplicate.
//!
//! Operations are told by their number. Threads take turns in no fixed order, so that the same number may be another operation in
//! another run; what is printed is what failed.

pub mod attempt;
pub mod points;

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use tokio::task::JoinSet;

use crate::arguments::{Common, Faults};
use crate::mount::copy_directory;
use crate::prove::build_with_faults;
use crate::rig::{Rig, WorkDir};
use crate::trouble::{Result, Trouble, harness, violation};
use attempt::{Base, Came, Case, prepare};
use points::{Phase, Point};

/// Faults of a sample.
const SAMPLE: usize = 200;
/// How many operations fail in a row.
const FAILURES: [u64; 2] = [1, 3];
const ERRNOS: [&str; 2] = ["ENOSPC", "EIO"];
/// Small enough that the events of a run fill some.
const SEGMENT_BYTES: u64 = 16 << 10;
/// After so many wrong results the campaign ends; where the server makes a mistake on purpose, one will do.
const ENOUGH: usize = 5;

/// What came of the attempts of a phase and an area.
#[derive(Debug, Default)]
struct Row {
    tried: usize,
    recovered: usize,
    stopped: usize,
    not_reached: usize,
    wrong: usize,
}

/// Runs the campaign. `--binary` names a server that was built with the feature; without it one is built.
///
/// # Errors
/// A violation, or the harness fails.
pub async fn run(arguments: &Faults) -> Result<()> {
    let binary = match &arguments.common.binary {
        Some(binary) => binary.clone(),
        None => build_with_faults()?,
    };
    // The same events each time, unless told otherwise, so that a fault can be repeated.
    let seed = Some(arguments.common.seed.unwrap_or(1));
    let common = Common { binary: Some(binary), seed, fault: None, ..arguments.common.clone() };
    let mut work = WorkDir::make(&common)?;
    let result = campaign(arguments, &common, work.path()).await;
    if matches!(result, Err(Trouble::Violation(_))) {
        work.keep();
    }
    result
}

async fn campaign(arguments: &Faults, common: &Common, work: &Path) -> Result<()> {
    let flags = ["--shards=1", "--workers=1", "--checkpoint-interval=1s", "--min-free-bytes=0"];
    let environment =
        vec![("HEADCOUNT_CHECKPOINT_EVENTS", "1".to_owned()), ("HEADCOUNT_SEGMENT_BYTES", SEGMENT_BYTES.to_string())];
    let mut rig = Rig::make_with(common, work.join("pristine"), &flags, environment).await?;
    prepare(&mut rig).await?;
    let ledger = rig.shared.ledger.borrow().clone();
    let (world, pristine) = (rig.shared.world.clone(), rig.launch.data_dir.clone());
    let mistake = arguments.common.fault.clone();
    let base = Rc::new(Base { launch: rig.launch, mistake, world, ledger, seed: common.seed(), pristine });

    let rehearsal = work.join("rehearsal");
    copy_directory(&base.pristine, &rehearsal)?;
    let log = base.rehearse(rehearsal.clone()).await?;
    let (operations, points) = points::read(&log.text(), &rehearsal);
    if operations == 0 {
        return Err(harness("the server does not trace its operations: it has to be built with the feature fault-injection"));
    }
    std::fs::remove_dir_all(&rehearsal)?;
    let cases = cases(arguments, &points);
    println!(
        "{operations} operations on files without a fault, {} of them to fail; {} faults to try; {} events beforehand",
        points.len(),
        cases.len(),
        base.ledger.len()
    );
    report(&attempts(&base, cases, arguments.jobs.max(1), work).await?)
}

/// The faults to try.
fn cases(arguments: &Faults, points: &[Point]) -> Vec<Case> {
    let fits = |(errno, failures): &(&'static str, u64)| {
        arguments.errno.as_deref().is_none_or(|only| only == *errno) && arguments.failures.is_none_or(|only| only == *failures)
    };
    let failures = arguments.failures.map_or_else(|| FAILURES.to_vec(), |only| vec![only]);
    let all = failures.iter().flat_map(|failures| ERRNOS.map(|errno| (errno, *failures)));
    let variants: Vec<(&'static str, u64)> = all.filter(fits).collect();
    let case = |point: &Point, (errno, failures): (&'static str, u64)| Case { point: point.clone(), errno, failures };
    let of_all_variants = |point: &Point| variants.iter().map(|variant| case(point, *variant)).collect::<Vec<_>>();
    if let Some(at) = arguments.at {
        let point = points.iter().find(|point| point.number >= at).or(points.last());
        return point.map(|point| of_all_variants(&Point { number: at, ..point.clone() })).unwrap_or_default();
    }
    if arguments.all {
        return points.iter().flat_map(of_all_variants).collect();
    }
    let count = arguments.common.cycles.unwrap_or(SAMPLE);
    let sample = points::spread(points, count);
    sample.iter().enumerate().map(|(place, point)| case(point, variants[place % variants.len()])).collect()
}

/// A fault, and what came of it.
type Tried = (Case, Result<Came>);

/// Tries them, some side by side.
async fn attempts(base: &Rc<Base>, cases: Vec<Case>, jobs: usize, work: &Path) -> Result<Vec<Tried>> {
    let (count, enough) = (cases.len(), if base.mistake.is_some() { 1 } else { ENOUGH });
    let (mut waiting, mut running, mut done) = (cases.into_iter().enumerate(), JoinSet::new(), Vec::<Tried>::new());
    loop {
        let wrong = done.iter().filter(|(_, came)| came.is_err()).count();
        while running.len() < jobs && wrong < enough {
            let Some((number, case)) = waiting.next() else { break };
            let (base, data_dir) = (Rc::clone(base), work.join(format!("fault-{number}")));
            running.spawn_local(async move {
                let came = alone(&base, &case, &data_dir).await;
                (case, came)
            });
        }
        let Some(ended) = running.join_next().await else { return Ok(done) };
        let (case, came) = ended.map_err(|error| harness(format!("an attempt failed: {error}")))?;
        let what = match &came {
            Ok(Came::Recovered) => "recovered".to_owned(),
            Ok(Came::NotReached) => "not reached".to_owned(),
            Ok(Came::Stopped(message)) => format!("stopped: {message}"),
            Err(trouble) => trouble.to_string(),
        };
        let points::Kind { phase, area, operation } = &case.point.kind;
        println!("{:>4} of {count}: {} ({phase}, {area}, {operation}): {what}", done.len() + 1, case.arguments());
        done.push((case, came));
    }
}

/// One attempt, in a directory that only stays behind if something is wrong.
async fn alone(base: &Base, case: &Case, data_dir: &Path) -> Result<Came> {
    copy_directory(&base.pristine, data_dir)?;
    let came = base.attempt(case, data_dir.to_owned()).await?;
    std::fs::remove_dir_all(data_dir)?;
    Ok(came)
}

/// Prints the table.
fn report(done: &[Tried]) -> Result<()> {
    let mut rows: BTreeMap<(Phase, &str), Row> = BTreeMap::new();
    let mut total = Row::default();
    for (case, came) in done {
        let row = rows.entry((case.point.kind.phase, &case.point.kind.area)).or_default();
        for row in [row, &mut total] {
            row.tried += 1;
            match came {
                Ok(Came::Recovered) => row.recovered += 1,
                Ok(Came::Stopped(_)) => row.stopped += 1,
                Ok(Came::NotReached) => row.not_reached += 1,
                Err(_) => row.wrong += 1,
            }
        }
    }
    println!(
        "{:<6} {:<14} {:>6} {:>10} {:>8} {:>12} {:>6}",
        "when", "files", "faults", "recovered", "stopped", "not reached", "wrong"
    );
    let line = |phase: &str, area: &str, row: &Row| {
        let Row { tried, recovered, stopped, not_reached, wrong } = row;
        println!("{phase:<6} {area:<14} {tried:>6} {recovered:>10} {stopped:>8} {not_reached:>12} {wrong:>6}");
    };
    rows.iter().for_each(|((phase, area), row)| line(&phase.to_string(), area, row));
    line("all", "", &total);
    let wrong: Vec<String> = done.iter().filter(|(_, came)| came.is_err()).map(|(case, _)| case.arguments()).collect();
    if !wrong.is_empty() {
        return Err(violation(format!("{} of {} faults led to wrong results: {}", wrong.len(), total.tried, wrong.join("; "))));
    }
    println!(
        "faults: {} tried, {} recovered, {} stopped with a message, {} not reached, wrong: 0",
        total.tried, total.recovered, total.stopped, total.not_reached
    );
    Ok(())
}
