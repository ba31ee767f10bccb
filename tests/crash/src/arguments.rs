//! Command-line arguments.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::cluster::ClusterArguments;
use crate::error::{Result, harness};

/// Crashes the server on purpose, and verifies that its data survives.
#[derive(Debug, Parser)]
#[command(name = "headcount-crash", version, arg_required_else_help = true)]
pub struct Arguments {
    /// The campaign to run.
    #[command(subcommand)]
    pub campaign: Campaign,
}

/// The campaigns.
#[derive(Debug, Clone, Subcommand)]
pub enum Campaign {
    /// Kill the server repeatedly under load
    Kill(Common),
    /// Simulate power cuts under load
    Power(Common),
    /// Damage the server's files between two starts
    Damage(Common),
    /// Send more bytes than the server admits
    Overload(Common),
    /// Fill up the server's disk
    DiskFull(Common),
    /// Fail the server's file operations, one at a time
    Faults(FaultArguments),
    /// Kill, stop and cut off the nodes and brokers of a cluster
    Cluster(ClusterArguments),
    /// Verify that the campaigns detect the mistakes of a faulty server
    Prove(ProveArguments),
}

/// Arguments of all campaigns.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Path of the server binary [default: the newer of target/{release,debug}/headcount]
    #[arg(long)]
    pub binary: Option<PathBuf>,
    /// Number of cycles
    #[arg(long)]
    pub cycles: Option<usize>,
    /// Seed of the random number generator [default: from the time and the process id]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Directory for data directories and disk images
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub work_dir: PathBuf,
    /// Mistake for the server to make, in builds with fault injection
    #[arg(long)]
    pub fault: Option<String>,
    /// Remove the data of a failed campaign as well
    #[arg(long)]
    pub discard: bool,
}

/// Arguments of `faults`.
#[derive(Debug, Clone, Args)]
pub struct FaultArguments {
    /// Arguments of all campaigns; each cycle injects one fault.
    #[command(flatten)]
    pub common: Common,
    /// Fail every writing operation with every error, instead of a sample of `--cycles`
    #[arg(long, conflicts_with_all = ["at", "cycles"])]
    pub all: bool,
    /// Start failing at the operation with this number
    #[arg(long)]
    pub at: Option<u64>,
    /// Inject only this error: ENOSPC or EIO
    #[arg(long, value_parser = ["ENOSPC", "EIO"])]
    pub errno: Option<String>,
    /// Fail this many operations in a row
    #[arg(long)]
    pub failures: Option<u64>,
    /// Number of servers that run concurrently
    #[arg(long, default_value_t = 6)]
    pub jobs: usize,
}

/// Arguments of `prove`.
#[derive(Debug, Clone, Args)]
pub struct ProveArguments {
    /// Arguments of all campaigns.
    #[command(flatten)]
    pub common: Common,
    /// Path of nats-server: verify the campaign of the cluster instead of all others
    #[arg(long)]
    pub nats: Option<PathBuf>,
    /// Leave out the trials without a mistake, since the campaigns have just passed with this
    /// binary
    #[arg(long)]
    pub only_mistakes: bool,
}

impl Common {
    /// Returns the path of the server binary.
    ///
    /// # Errors
    /// No binary is found.
    pub fn binary(&self) -> Result<PathBuf> {
        if let Some(binary) = &self.binary {
            return std::path::absolute(binary).map_err(Into::into);
        }
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
        let built = ["release", "debug"].map(|profile| target.join(profile).join("headcount"));
        let newest = built.iter().filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path))).max();
        let (_, path) = newest.ok_or_else(|| harness("target/ contains no headcount binary: build it, or pass --binary"))?;
        std::path::absolute(path).map_err(Into::into)
    }

    /// Returns the seed. Two campaigns that begin in the same millisecond have different ones,
    /// since their ports come from it.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
            .unwrap_or_else(|| u64::try_from(crate::oracle::now_ms()).unwrap_or(0) << 16 ^ u64::from(std::process::id() & 0xFFFF))
    }
}
