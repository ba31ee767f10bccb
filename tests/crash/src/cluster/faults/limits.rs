//! Brokers that are slow or full, and nodes that are cut off.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cluster::campaign::Campaign;
use crate::cluster::figures::{Measure, limited, measured};
use crate::cluster::load::Load;
use crate::cluster::network::{Direction, Network};
use crate::cluster::readers::{self, Readers};
use crate::cluster::site::NODES;
use crate::cluster::timeline::quantile;
use crate::error::{CampaignError, Result, harness, violation};

/// How long a disk is slow.
const SLOW: Duration = Duration::from_secs(15);
/// What a stream that is about to be full may still get, and how long it stays full.
const ROOM_BYTES: u64 = 20_000;
const FULL: Duration = Duration::from_secs(4);
/// How long a stream may take until it is full.
const FILLED_WITHIN: Duration = Duration::from_secs(60);
/// How long that takes if no events leave it meanwhile.
const REFUSED_WITHIN: Duration = Duration::from_secs(20);
/// How long a node is cut off, and how long it may answer after that.
const CUT: Duration = Duration::from_secs(30);
/// From which length on a time without acknowledgements is printed.
const LONG_GAP: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(20);

/// A tracer of a process, which goes on without it when it is dropped.
struct Tracer(Child);

impl Drop for Tracer {
    fn drop(&mut self) {
        // Not SIGKILL: it has to let go of what it traces first.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// Makes each sync of a broker take 200 ms longer: in turn the one that leads a project's stream,
/// and another one.
pub(super) async fn slow_disk(campaign: &mut Campaign, load: &Load, cycle: usize) -> Result<Vec<Measure>> {
    let all = campaign.projects();
    let project = *campaign.rng.pick(&all);
    let leader = campaign.cluster.brokers.leader(&campaign.cluster.stream_of(project)).await?;
    let place = (leader + cycle % 2) % NODES;
    let id = campaign.cluster.brokers.process_id(place).ok_or_else(|| harness("a broker does not run"))?;
    let mut command = Command::new("strace");
    command.args([
        "-f",
        "-q",
        "-e",
        "trace=fsync,fdatasync",
        "-e",
        "inject=fsync,fdatasync:delay_enter=200000",
        "-o",
        "/dev/null",
        "-p",
    ]);
    let child = command.arg(id.to_string()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut tracer = Tracer(child.map_err(|error| CampaignError::Skipped(format!("no strace: {error}")))?);
    tokio::time::sleep(MOMENT).await;
    if let Some(status) = tracer.0.try_wait()? {
        return Err(CampaignError::Skipped(format!("strace can't trace a broker: {status}")));
    }
    let from = Instant::now();
    tokio::time::sleep(SLOW).await;
    let to = Instant::now();
    drop(tracer);
    campaign.wait_until_served(load, to, &all, &[0, 1, 2]).await?;
    let times = load.field.timeline.latencies(from, to);
    let gap = load.field.timeline.longest_gap(&all, from);
    println!(
        "  the disk of broker {place} was slow; the project's leader was {leader}; {} acknowledgements meanwhile",
        times.len()
    );
    Ok(vec![
        limited("99 of 100 acknowledgements", quantile(&times, 99), 5),
        measured("half of the acknowledgements", quantile(&times, 50)),
        measured("longest gap", gap),
    ])
}

/// Lets a stream get full, and raises its limit again.
pub(super) async fn full(campaign: &mut Campaign, load: &Load) -> Result<Vec<Measure>> {
    let all = campaign.projects();
    let project = *campaign.rng.pick(&all);
    let name = campaign.cluster.stream_of(project);
    let before = limit_to_what_it_has(campaign, &name).await?;
    let began = Instant::now();
    let filled = loop {
        // Events that are sealed meanwhile leave the stream, and make room.
        match wait_until_refused(campaign, load, project).await {
            Ok(false) if began.elapsed() < FILLED_WITHIN => limit_to_what_it_has(campaign, &name).await?,
            Ok(false) => break Err(violation("a stream takes events beyond its limit")),
            Ok(true) => break Ok(()),
            Err(error) => break Err(error),
        };
    };
    tokio::time::sleep(FULL).await;
    let raised = Instant::now();
    campaign.cluster.brokers.limit(&name, before).await?;
    filled?;
    let served = campaign.wait_until_served(load, raised, &[project], &[0, 1, 2]).await?;
    Ok(vec![limited("served after the limit was raised", served, 5)])
}

/// Leaves a stream little room. Returns its limit until now.
async fn limit_to_what_it_has(campaign: &Campaign, name: &str) -> Result<i64> {
    let bytes = campaign.cluster.brokers.stream(name).await?.bytes + ROOM_BYTES;
    let limit = i64::try_from(bytes).map_err(|error| harness(error.to_string()))?;
    campaign.cluster.brokers.limit(name, limit).await
}

/// Takes the place of files away, and gives it back after a while.
pub(super) async fn bucket(campaign: &mut Campaign, load: &Load, gone_for: Duration) -> Result<Vec<Measure>> {
    // Nodes that have just come get their part after a minute, and events of a partition that moves
    // wait.
    campaign.cluster.wait_until_nothing_moves().await?;
    let bucket = campaign.cluster.bucket.clone();
    let away = bucket.with_extension("away");
    let gone = Instant::now();
    std::fs::rename(&bucket, &away)?;
    // Nothing can be written to a directory that is a file.
    std::fs::write(&bucket, "")?;
    tokio::time::sleep(gone_for).await;
    std::fs::remove_file(&bucket)?;
    std::fs::rename(&away, &bucket)?;
    let back = Instant::now();
    let all = campaign.projects();
    campaign.wait_until_served(load, back, &all, &[0, 1, 2]).await?;
    let times = load.field.timeline.latencies(gone, back);
    let gap = load.field.timeline.longest_gap(&all, gone);
    println!("  {} acknowledgements while files could not be reached", times.len());
    for long in load.field.timeline.gaps(&all, gone).filter(|gap| gap.lasted >= LONG_GAP) {
        println!(
            "  none of project {} for {:.2} s, from {:.1} s after they were gone on",
            long.project,
            long.lasted.as_secs_f64(),
            long.began.saturating_duration_since(gone).as_secs_f64()
        );
    }
    Ok(vec![limited("longest gap", gap, 2), measured("99 of 100 acknowledgements", quantile(&times, 99))])
}

/// Waits until a project has got no acknowledgement for a second, while the load goes on. Returns
/// whether it was so in time.
async fn wait_until_refused(campaign: &mut Campaign, load: &Load, project: usize) -> Result<bool> {
    let began = Instant::now();
    while began.elapsed() < REFUSED_WITHIN {
        let now = Instant::now();
        tokio::time::sleep(MOMENT).await;
        campaign.shared.findings.check()?;
        campaign.cluster.check_alive()?;
        if (0..NODES).all(|node| load.field.timeline.served_after(now, &[project], &[node]).is_none()) {
            return Ok(true);
        }
        tokio::time::sleep(TICK).await;
    }
    Ok(false)
}

/// Cuts the node that owns most off from brokers and other nodes for 30 s.
pub(super) async fn cut(campaign: &mut Campaign, load: &Load, direction: Direction) -> Result<Vec<Measure>> {
    let network = Network::of_process().ok_or_else(|| CampaignError::Skipped("no network namespaces here".to_owned()))?;
    let (node, projects) = campaign.cluster.main_owner().await?;
    let others: Vec<usize> = (0..NODES).filter(|other| *other != node).collect();
    let readers = Readers::start(campaign, node);
    tokio::time::sleep(MOMENT).await;
    let cut = Instant::now();
    // As the logs of the nodes have it.
    println!("  node {node} is cut off at {}", chrono::Utc::now().format("%T%.3f"));
    network.cut(node, direction)?;
    let served = campaign.wait_until_served(load, cut, &projects, &others).await;
    let gap = load.field.timeline.longest_gap(&projects, cut);
    tokio::time::sleep(CUT.saturating_sub(cut.elapsed())).await;
    let read = readers.finish().await;
    let mended = Instant::now();
    network.mend(node, direction)?;
    let served = served?;
    let all = campaign.projects();
    let back = campaign.wait_until_served(load, mended, &all, &[node]).await?;
    let acknowledged = load.field.timeline.acknowledged_by(node, cut);
    let compared = readers::compare_positions(campaign, &acknowledged).await?;
    println!(
        "  node {node}, cut off: {} questions answered, {} refused, none stale; {compared} acknowledged events have kept their positions",
        read.answered, read.refused
    );
    let silent = read.last_answered.map_or(Duration::ZERO, |last| last.saturating_duration_since(cut));
    Ok(vec![
        limited("until it only refuses", silent, 10),
        limited("served again by others", served, 15),
        measured("longest gap", gap),
        measured("back after the cut", back),
    ])
}
