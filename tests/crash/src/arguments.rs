//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::trouble::{Result, harness};

/// Crashes on purpose, and what must be left of the data.
#[derive(Debug, Parser)]
#[command(name = "headcount-crash", version, arg_required_else_help = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub campaign: Campaign,
}

/// What can be done.
#[derive(Debug, Clone, Subcommand)]
pub enum Campaign {
    /// Kill the server under load, again and again
    Kill(Common),
    /// Cut it off from its disk under load, as a power cut does
    Power(Common),
    /// Damage its files between two starts
    Damage(Common),
    /// Send it more than it admits
    Overload(Common),
    /// Leave it no room on its disk
    DiskFull(Common),
    /// Fail its operations on files, one at a time
    Faults(Faults),
    /// Build a server that makes mistakes on purpose: each has to be noticed
    Prove(Common),
}

/// What all campaigns take.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// The server's program [default: the newer of target/{release,debug}/headcount]
    #[arg(long)]
    pub binary: Option<PathBuf>,
    /// How many cycles
    #[arg(long)]
    pub cycles: Option<usize>,
    /// What all that is random follows from [default: the time]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Where data directories and disk images are made
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub work_dir: PathBuf,
    /// The mistake that the server is told to make, in builds that can
    #[arg(long)]
    pub fault: Option<String>,
    /// Remove the data of a failed campaign, too
    #[arg(long)]
    pub discard: bool,
}

/// What `faults` takes.
#[derive(Debug, Clone, Args)]
pub struct Faults {
    /// What all campaigns take; a cycle is one fault.
    #[command(flatten)]
    pub common: Common,
    /// Every operation that writes, with every error, instead of a sample of `--cycles`
    #[arg(long, conflicts_with_all = ["at", "cycles"])]
    pub all: bool,
    /// Only the operation of this number, and so many after it as fail together
    #[arg(long)]
    pub at: Option<u64>,
    /// Only this error: ENOSPC or EIO
    #[arg(long, value_parser = ["ENOSPC", "EIO"])]
    pub errno: Option<String>,
    /// Only so many failures in a row
    #[arg(long)]
    pub failures: Option<u64>,
    /// How many servers run side by side
    #[arg(long, default_value_t = 6)]
    pub jobs: usize,
}

impl Common {
    /// The server's program.
    ///
    /// # Errors
    /// There is none.
    pub fn binary(&self) -> Result<PathBuf> {
        if let Some(binary) = &self.binary {
            return std::path::absolute(binary).map_err(Into::into);
        }
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
        let built = ["release", "debug"].map(|profile| target.join(profile).join("headcount"));
        let newest = built.iter().filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path))).max();
        let (_, path) = newest.ok_or_else(|| harness("there is no headcount in target/: build it, or give --binary"))?;
        std::path::absolute(path).map_err(Into::into)
    }

    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| u64::try_from(crate::oracle::now_ms()).unwrap_or(0))
    }
}
