//! `cluster`: faults of brokers, nodes and the network between them, under load on all nodes of a
//! cluster.

pub mod brokers;
pub mod campaign;
pub mod faults;
pub mod figures;
pub mod load;
pub mod nats;
pub mod network;
pub mod nodes;
pub mod readers;
pub mod site;
pub mod timeline;

use std::path::PathBuf;

use clap::Args;
use headcount_histories::Rng;

use self::campaign::Campaign;
use self::faults::Fault;
use self::figures::Figures;
use self::network::Network;
use self::site::Site;
use crate::arguments::Common;
use crate::error::{Result, harness, violation};
use crate::rig::WorkDir;

/// Cycles of each fault.
const CYCLES: usize = 20;

/// Arguments of `cluster`.
#[derive(Debug, Clone, Args)]
pub struct ClusterArguments {
    /// Arguments of all campaigns; the cycles are those of each fault.
    #[command(flatten)]
    pub common: Common,
    /// Path of nats-server [default: `HEADCOUNT_NATS_SERVER`, or the one in PATH]
    #[arg(long)]
    pub nats: Option<PathBuf>,
    /// The faults, one after the other on one cluster
    #[arg(long, value_delimiter = ',', value_enum, default_value = "owner,leader,follower,brokers,pause")]
    pub faults: Vec<Fault>,
    /// Fail if a time is beyond its limit
    #[arg(long)]
    pub limits: bool,
}

/// Runs the campaign.
///
/// # Errors
/// A violation, or the harness fails.
pub async fn run(arguments: &ClusterArguments) -> Result<()> {
    let Some(nats) = nats_server(arguments) else {
        println!("SKIPPED cluster: no nats-server");
        if std::env::var_os("HEADCOUNT_REQUIRE_CLUSTER").is_some() {
            return Err(harness("no nats-server: pass --nats, or set HEADCOUNT_NATS_SERVER"));
        }
        return Ok(());
    };
    let network = Network::of_process();
    if network.is_none() && arguments.faults.iter().any(|fault| fault.needs_network()) {
        return in_network().await;
    }
    let common = &arguments.common;
    let seed = common.seed();
    println!("{} of {} with {}, seed {seed}", common.binary()?.display(), env!("CARGO_PKG_VERSION"), version(&nats)?);
    let mut work = WorkDir::make(common)?;
    let mut rng = Rng::new(seed);
    let site = network.map_or_else(|| Site::loopback(&mut rng), |network| network.site());
    // The seed is part of every event: it is the same for the whole campaign.
    let common = Common { seed: Some(seed), ..common.clone() };
    let mut figures = Figures::default();
    let result = async {
        let mut campaign = Campaign::start(&common, &nats, work.path(), &site, rng).await?;
        let result = cycles(&mut campaign, arguments, &mut figures).await;
        if result.is_err() || arguments.limits && figures.exceed_a_limit() {
            campaign.cluster.save_logs()?;
        }
        result
    }
    .await;
    let missed = figures.print();
    if result.is_err() || arguments.limits && figures.exceed_a_limit() {
        work.keep();
    }
    result?;
    if arguments.limits && !missed.is_empty() {
        return Err(violation(missed.join("; ")));
    }
    Ok(())
}

/// Runs the campaign in a process whose nodes can be cut off.
async fn in_network() -> Result<()> {
    match Network::run_again().await?.code() {
        Some(0) => Ok(()),
        Some(1) => Err(violation("as the process in network namespaces says")),
        _ => Err(harness("the process in network namespaces failed")),
    }
}

async fn cycles(campaign: &mut Campaign, arguments: &ClusterArguments, figures: &mut Figures) -> Result<()> {
    for fault in &arguments.faults {
        for cycle in 0..arguments.common.cycles.unwrap_or(CYCLES) {
            campaign.cycle(*fault, cycle + 1, figures).await?;
        }
    }
    Ok(())
}

fn nats_server(arguments: &ClusterArguments) -> Option<PathBuf> {
    let named = arguments.nats.clone().or_else(|| std::env::var_os("HEADCOUNT_NATS_SERVER").map(PathBuf::from));
    named.filter(|program| program.exists()).or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join("nats-server")).find(|program| program.exists())
    })
}

fn version(nats: &std::path::Path) -> Result<String> {
    let output = std::process::Command::new(nats).arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
