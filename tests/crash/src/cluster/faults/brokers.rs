//! Faults of brokers.

use std::time::{Duration, Instant};

use crate::cluster::brokers::COUNT;
use crate::cluster::campaign::Campaign;
use crate::cluster::figures::{Measure, limited, measured};
use crate::cluster::load::Load;
use crate::error::Result;

/// How long a broker, or all of them, are gone.
const GONE: Duration = Duration::from_secs(5);
const ALL_GONE: Duration = Duration::from_secs(3);
/// How long a broker is frozen: its streams get no other leader so soon.
const FROZEN: Duration = Duration::from_secs(2);
const MOMENT: Duration = Duration::from_secs(1);

/// Kills the broker that leads the stream of a project, or another one.
pub(super) async fn one(campaign: &mut Campaign, load: &Load, leads: bool) -> Result<Vec<Measure>> {
    let all = campaign.projects();
    let project = *campaign.rng.pick(&all);
    let stream = campaign.cluster.stream_of(project);
    let leader = campaign.cluster.brokers.leader(&stream).await?;
    let place = if leads { leader } else { (leader + 1 + campaign.rng.below(COUNT - 1)) % COUNT };
    let killed = Instant::now();
    campaign.cluster.brokers.kill(place)?;
    let served = campaign.wait_until_served(load, killed, &all, &[0, 1, 2]).await?;
    tokio::time::sleep(GONE.saturating_sub(killed.elapsed())).await;
    campaign.cluster.brokers.start_one(place)?;
    let ready = campaign.cluster.brokers.wait_until_ready().await?;
    tokio::time::sleep(MOMENT).await;
    // Its return is part of it: that may move leaders again.
    let gap = load.field.timeline.longest_gap(&all, killed);
    Ok(vec![limited("longest gap", gap, 10), measured("served again", served), measured("the broker is ready", ready)])
}

/// Freezes the broker that leads the stream of a project for a moment. It records afterwards what
/// nobody has an answer to.
pub(super) async fn freeze(campaign: &mut Campaign, load: &Load) -> Result<Vec<Measure>> {
    let all = campaign.projects();
    let project = *campaign.rng.pick(&all);
    let leader = campaign.cluster.brokers.leader(&campaign.cluster.stream_of(project)).await?;
    let frozen = Instant::now();
    campaign.cluster.brokers.freeze(leader, true)?;
    tokio::time::sleep(FROZEN).await;
    let thawed = Instant::now();
    campaign.cluster.brokers.freeze(leader, false)?;
    let served = campaign.wait_until_served(load, thawed, &all, &[0, 1, 2]).await?;
    tokio::time::sleep(MOMENT).await;
    let gap = load.field.timeline.longest_gap(&all, frozen);
    Ok(vec![limited("longest gap", gap, 10), measured("served again", served)])
}

/// Kills all brokers, and starts them again.
pub(super) async fn all(campaign: &mut Campaign, load: &Load) -> Result<Vec<Measure>> {
    let projects = campaign.projects();
    let killed = Instant::now();
    for place in 0..COUNT {
        campaign.cluster.brokers.kill(place)?;
    }
    tokio::time::sleep(ALL_GONE).await;
    let started = Instant::now();
    for place in 0..COUNT {
        campaign.cluster.brokers.start_one(place)?;
    }
    let ready = campaign.cluster.brokers.wait_until_ready().await?;
    let served = campaign.wait_until_served(load, started, &projects, &[0, 1, 2]).await?;
    let gap = load.field.timeline.longest_gap(&projects, killed);
    Ok(vec![limited("served after their start", served, 20), measured("they are ready", ready), measured("longest gap", gap)])
}
