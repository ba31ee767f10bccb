//! `kill`: SIGKILL at random moments under load, now and then SIGTERM, now and then again while the server starts.
//!
//! The page cache outlives the process: a kill loses what was never written, not what was never synced. That is what `power` is for.

use std::time::Duration;

use crate::arguments::Common;
use crate::load::{Load, Pace, Tally};
use crate::rig::{Checked, Rig, WorkDir};
use crate::server::Server;
use crate::trouble::Result;

/// Cycles of a full campaign.
const CYCLES: usize = 50;
/// When the end comes, in milliseconds of load.
const LOAD_MS: (usize, usize) = (200, 3_000);
/// So many of a hundred stops are clean.
const CLEAN_PERCENT: usize = 15;
/// So many of a hundred starts are killed before they are over, up to twice in a row.
const KILLED_START_PERCENT: usize = 25;

/// How a cycle's server ended.
struct Ending {
    how: String,
    tally: Tally,
    unanswered: usize,
}

/// How the next one started.
struct Start {
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
    let (mut acknowledged, mut unanswered, mut had_counted) = (0, 0, 0);
    for cycle in 0..count {
        let ending = end(rig, server, cycle).await?;
        let start = start(rig).await?;
        server = start.server;
        let Checked { settled, answers } = rig.settle_and_check(&server).await?;
        let Ending { how, tally, unanswered: open } = ending;
        println!(
            "cycle {:>2}: {how}: {} acknowledged, {open} in flight ({} of these had been recorded); {} repeats, {} reads; \
             {}up in {} ms; {answers} answers equal the model's, of {} events",
            cycle + 1,
            tally.acknowledged,
            settled.duplicates,
            tally.repeats,
            tally.reads,
            if start.killed > 0 { format!("killed {} × while starting, then ", start.killed) } else { String::new() },
            server.started_in.as_millis(),
            rig.shared.ledger.borrow().len(),
        );
        acknowledged += tally.acknowledged;
        unanswered += open;
        had_counted += settled.duplicates;
    }
    server.terminate().await?;
    let server = rig.launch.start().await?;
    let answers = rig.check(&server).await?;
    server.terminate().await?;
    println!(
        "kill: {count} cycles, {acknowledged} events acknowledged, {unanswered} in flight ({had_counted} of these had been recorded): \
         nothing lost, nothing counted twice; after a clean stop {answers} answers still equal the model's"
    );
    Ok(())
}

/// Load, and the end of the server in the middle of it.
async fn end(rig: &mut Rig, server: Server, cycle: usize) -> Result<Ending> {
    let load_ms = LOAD_MS.0 + rig.rng.below(LOAD_MS.1 - LOAD_MS.0);
    let load = Load::start(&rig.shared, server.address, Pace::steady(cycle), &mut rig.rng);
    load.run_up(Duration::from_millis(load_ms as u64)).await;
    let how = if rig.rng.chance(CLEAN_PERCENT) {
        let took = server.terminate().await?;
        format!("SIGTERM after {load_ms} ms, gone in {} ms", took.as_millis())
    } else {
        server.kill()?;
        format!("SIGKILL after {load_ms} ms")
    };
    let tally = load.finish().await;
    rig.shared.findings.none()?;
    let unanswered = rig.shared.ledger.borrow().unanswered();
    Ok(Ending { how, tally, unanswered })
}

/// Starts the next server; sometimes kills it before it is there, and starts another.
async fn start(rig: &mut Rig) -> Result<Start> {
    rig.shuffle_flags();
    let killed = if rig.rng.chance(KILLED_START_PERCENT) { 1 + rig.rng.below(2) } else { 0 };
    for _ in 0..killed {
        let starting = rig.launch.spawn()?;
        tokio::time::sleep(Duration::from_millis(rig.rng.below(150) as u64)).await;
        starting.kill()?;
    }
    Ok(Start { server: rig.launch.start().await?, killed })
}
