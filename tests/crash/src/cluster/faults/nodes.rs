//! Faults of nodes: killed, stopped, frozen.

use std::time::{Duration, Instant};

use crate::cluster::campaign::Campaign;
use crate::cluster::figures::{Measure, limited, measured};
use crate::cluster::load::Load;
use crate::cluster::readers::{self, Readers};
use crate::cluster::site::NODES;
use crate::error::{Result, violation};

/// How long a node is frozen: until long after its leases.
const FROZEN: Duration = Duration::from_secs(25);
/// How long a node that lost its leases is watched.
const WATCHED: Duration = Duration::from_secs(6);
const MOMENT: Duration = Duration::from_secs(1);

/// Kills the node that owns most; the others have to serve its projects. Then it comes back.
pub(super) async fn owner(campaign: &mut Campaign, load: &Load) -> Result<Vec<Measure>> {
    let (node, projects) = campaign.cluster.main_owner().await?;
    let killed = Instant::now();
    campaign.cluster.take_server(node)?.kill()?;
    let others = campaign.cluster.running();
    let served = campaign.wait_until_served(load, killed, &projects, &others).await?;
    tokio::time::sleep(MOMENT).await;
    let gap = load.field.timeline.longest_gap(&projects, killed);
    let started = Instant::now();
    campaign.cluster.start_node(node).await?;
    let all = campaign.projects();
    let back = campaign.wait_until_served(load, started, &all, &[node]).await?;
    Ok(vec![limited("served again", served, 15), measured("longest gap", gap), measured("back after its start", back)])
}

/// Kills the node that owns most, and starts it again at once: it has its own leases still.
pub(super) async fn restart(campaign: &mut Campaign, load: &Load) -> Result<Vec<Measure>> {
    let (node, projects) = campaign.cluster.main_owner().await?;
    let killed = Instant::now();
    campaign.cluster.take_server(node)?.kill()?;
    let listened = campaign.cluster.start_node(node).await?;
    let served = campaign.wait_until_served(load, killed, &projects, &[0, 1, 2]).await?;
    let gap = load.field.timeline.longest_gap(&projects, killed);
    Ok(vec![limited("served again", served, 4), measured("longest gap", gap), measured("until it listens", listened)])
}

/// Freezes the owner until others have long had its partitions, and lets it go on. Nothing that it
/// answers then may be of before.
pub(super) async fn pause(campaign: &mut Campaign, load: &Load) -> Result<Vec<Measure>> {
    let (node, projects) = campaign.cluster.main_owner().await?;
    let others: Vec<usize> = (0..NODES).filter(|other| *other != node).collect();
    let frozen = Instant::now();
    campaign.cluster.server(node)?.freeze()?;
    let result = campaign.wait_until_served(load, frozen, &projects, &others).await;
    let gap = load.field.timeline.longest_gap(&projects, frozen);
    if result.is_ok() {
        tokio::time::sleep(FROZEN.saturating_sub(frozen.elapsed())).await;
    }
    // Questions that wait in its sockets when it goes on: it must not answer them from what it
    // knew.
    let early = Readers::start(campaign, node);
    tokio::time::sleep(MOMENT / 2).await;
    let resumed = Instant::now();
    campaign.cluster.server(node)?.thaw()?;
    let served = result?;
    tokio::time::sleep(WATCHED).await;
    let read = early.finish().await;
    let all = campaign.projects();
    let back = campaign.wait_until_served(load, resumed, &all, &[node]).await?;
    // What it acknowledged since then is where it says: in the stream, behind the epoch of its
    // successor.
    let acknowledged = load.field.timeline.acknowledged_by(node, frozen);
    let compared = readers::compare_positions(campaign, &acknowledged).await?;
    if read.answered == 0 {
        return Err(violation("the resumed node answered no question"));
    }
    println!(
        "  node {node}, frozen, then: {} questions answered, {} refused, none stale; {compared} acknowledged events have kept their positions",
        read.answered, read.refused
    );
    Ok(vec![limited("served again", served, 15), measured("longest gap", gap), measured("back after its resumption", back)])
}

/// Stops and starts each node in turn.
pub(super) async fn rolling(campaign: &mut Campaign, load: &Load) -> Result<Vec<Measure>> {
    let all = campaign.projects();
    let mut measures = Vec::new();
    for node in 0..NODES {
        let stopped = Instant::now();
        let took = campaign.cluster.take_server(node)?.terminate().await?;
        campaign.cluster.start_node(node).await?;
        let started = Instant::now();
        campaign.wait_until_served(load, started, &all, &[0, 1, 2]).await?;
        tokio::time::sleep(MOMENT).await;
        let gaps = all.iter().map(|project| load.field.timeline.longest_gap(&[*project], stopped));
        measures.extend(gaps.map(|gap| limited("longest gap of a project", gap, 2)));
        measures.push(measured("until it has stopped", took));
    }
    Ok(measures)
}
