//! `kill`: SIGKILL at random moments under load, sometimes SIGTERM, and sometimes SIGKILL again
//! while the server starts.
//!
//! The page cache outlives the process: a kill loses data that was not written, but not data that
//! was not synced. `power` covers the latter.

use std::time::Duration;

use crate::arguments::Common;
use crate::doomed::{Doomed, check_files};
use crate::error::Result;
use crate::load::{Load, Pace, Tally};
use crate::rig::{Checked, Rig, WorkDir};
use crate::server::Server;

/// Cycles of a full campaign.
const CYCLES: usize = 50;
/// Range of the time under load before the stop, in milliseconds.
const LOAD_MS: (usize, usize) = (200, 3_000);
/// Percentage of stops by SIGTERM.
const CLEAN_PERCENT: usize = 15;
/// Percentage of starts that are killed before they complete, once or twice in a row.
const KILLED_START_PERCENT: usize = 25;

/// How the server of a cycle stopped.
struct Stopped {
    how: String,
    tally: Tally,
    unanswered: usize,
}

/// The next server, and how many starts were killed before it.
struct Restarted {
    server: Server,
    killed: usize,
}

/// Runs the campaign.
///
/// # Errors
/// A violation, or the harness fails.
pub async fn run(common: &Common) -> Result<()> {
    let mut work = WorkDir::make(common)?;
    let mut rig = Rig::make(common, work.path().join("data"), &[]).await?;
    let result = cycles(&mut rig, common.cycles.unwrap_or(CYCLES)).await;
    if result.is_err() {
        work.keep();
    }
    result
}

async fn cycles(rig: &mut Rig, count: usize) -> Result<()> {
    let mut server = rig.launch.start().await?;
    let (mut acknowledged, mut unanswered, mut already_recorded) = (0, 0, 0);
    let mut doomed = Doomed::default();
    for cycle in 0..count {
        let stopped = stop_under_load(rig, server, cycle, &mut doomed).await?;
        let restarted = start_next(rig).await?;
        server = restarted.server;
        let Checked { resent, answers } = rig.resend_and_check(&server).await?;
        let cells = rig.verify().await?;
        let deleted = doomed.check(rig, &server).await?;
        let Stopped { how, tally, unanswered: in_flight } = stopped;
        println!(
            "cycle {:>2}: {how}: {} acknowledged, {in_flight} in flight ({} of these had been recorded); {} repeats, {} reads; \
             {}up in {} ms; {answers} answers equal the model's, of {} events; {cells} cells are verified; \
             {deleted} projects are deleted",
            cycle + 1,
            tally.acknowledged,
            resent.duplicates,
            tally.repeats,
            tally.reads,
            if restarted.killed > 0 { format!("killed {} × during the start, then ", restarted.killed) } else { String::new() },
            server.started_in.as_millis(),
            rig.shared.ledger.borrow().len(),
        );
        acknowledged += tally.acknowledged;
        unanswered += in_flight;
        already_recorded += resent.duplicates;
    }
    server.terminate().await?;
    let server = rig.launch.start().await?;
    doomed.wait(&server).await?;
    let answers = rig.check(&server).await?;
    let deleted = doomed.check(rig, &server).await?;
    server.terminate().await?;
    check_files(&rig.launch.data_dir)?;
    println!(
        "kill: {count} cycles, {acknowledged} events acknowledged, {unanswered} in flight ({already_recorded} of these had been recorded): \
         nothing lost, nothing counted twice; after a clean stop {answers} answers still equal the model's, and no file has anything of {deleted} deleted projects"
    );
    Ok(())
}

/// Generates load, and stops the server under it, sometimes in the middle of a deletion.
async fn stop_under_load(rig: &mut Rig, server: Server, cycle: usize, doomed: &mut Doomed) -> Result<Stopped> {
    let load_ms = LOAD_MS.0 + rig.rng.below(LOAD_MS.1 - LOAD_MS.0);
    let load = Load::start(&rig.shared, server.address, Pace::steady(cycle), &mut rig.rng);
    doomed.perhaps(rig, server.address).await?;
    load.run_up(Duration::from_millis(load_ms as u64)).await;
    let how = if rig.rng.chance(CLEAN_PERCENT) {
        let took = server.terminate().await?;
        format!("SIGTERM after {load_ms} ms, exited in {} ms", took.as_millis())
    } else {
        server.kill()?;
        format!("SIGKILL after {load_ms} ms")
    };
    let tally = load.finish().await;
    rig.shared.findings.check()?;
    let unanswered = rig.shared.ledger.borrow().unanswered();
    Ok(Stopped { how, tally, unanswered })
}

/// Starts the next server; sometimes kills it during its start, and starts another.
async fn start_next(rig: &mut Rig) -> Result<Restarted> {
    rig.shuffle_flags();
    let killed = if rig.rng.chance(KILLED_START_PERCENT) { 1 + rig.rng.below(2) } else { 0 };
    for _ in 0..killed {
        let starting = rig.launch.spawn()?;
        tokio::time::sleep(Duration::from_millis(rig.rng.below(150) as u64)).await;
        starting.kill()?;
    }
    Ok(Restarted { server: rig.launch.start().await?, killed })
}
