//! What every campaign has: a place to work in, a server's program, a world, a load, and a model.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use headcount_histories::Rng;
use tempfile::TempDir;

use crate::arguments::Common;
use crate::load::Shared;
use crate::oracle::Oracle;
use crate::server::{Launch, Server};
use crate::settle::{self, Settled};
use crate::trouble::Result;
use crate::world::World;

/// See the module.
#[derive(Debug)]
pub struct Rig {
    /// How servers are started.
    pub launch: Launch,
    /// What the load shares.
    pub shared: Rc<Shared>,
    /// The models.
    pub oracle: Oracle,
    /// What all that is random follows from.
    pub rng: Rng,
}

/// A directory of the campaign's own. It stays behind when the campaign fails, as evidence.
#[derive(Debug)]
pub struct WorkDir {
    dir: Option<TempDir>,
    discard: bool,
}

impl WorkDir {
    /// Makes it.
    ///
    /// # Errors
    /// The operating system's.
    pub fn make(common: &Common) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("headcount-crash-").tempdir_in(&common.work_dir)?;
        Ok(Self { dir: Some(dir), discard: common.discard })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// Keeps it, unless it was said not to.
    pub fn keep(&mut self) {
        if !self.discard
            && let Some(dir) = self.dir.take()
        {
            eprintln!("kept as evidence: {}", dir.keep().display());
        }
    }
}

impl Rig {
    /// A new world in `data_dir`, made by a server that is stopped again.
    ///
    /// # Errors
    /// The server does not do as it is told.
    pub async fn make(common: &Common, data_dir: PathBuf, flags: &[&str]) -> Result<Self> {
        Self::make_with(common, data_dir, flags, Vec::new()).await
    }

    /// As [`Rig::make`], with more variables in the servers' environment.
    ///
    /// # Errors
    /// The server does not do as it is told.
    pub async fn make_with(
        common: &Common,
        data_dir: PathBuf,
        flags: &[&str],
        environment: Vec<(&'static str, String)>,
    ) -> Result<Self> {
        let seed = common.seed();
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let launch = Launch { binary: common.binary()?, data_dir, flags, fault: common.fault.clone(), environment };
        println!("{} of {}, seed {seed}", launch.binary.display(), env!("CARGO_PKG_VERSION"));
        let world = World::make(&launch).await?;
        let oracle = Oracle::new(&world);
        Ok(Self { launch, shared: Shared::new(world, seed), oracle, rng: Rng::new(seed) })
    }

    /// The number of shards and how often state is written down: other ones at every start.
    pub fn shuffle_flags(&mut self) {
        let (shards, interval) = (1 + self.rng.below(4), *self.rng.pick(&[1, 1, 2, 60]));
        self.launch.flags.retain(|flag| !flag.starts_with("--shards") && !flag.starts_with("--checkpoint-interval"));
        self.launch.flags.extend([format!("--shards={shards}"), format!("--checkpoint-interval={interval}s")]);
    }

    /// Sends again what was not acknowledged, and compares every answer with the model's.
    ///
    /// # Errors
    /// A violation.
    pub async fn settle_and_check(&mut self, server: &Server) -> Result<Checked> {
        let settled = self.settle(server).await?;
        let answers = self.check(server).await?;
        Ok(Checked { settled, answers })
    }

    /// Sends again what was not acknowledged.
    ///
    /// # Errors
    /// A violation.
    pub async fn settle(&mut self, server: &Server) -> Result<Settled> {
        let pending = self.shared.ledger.borrow().pending();
        let settled = settle::send_again(server.address, &self.shared.world, &self.shared.ledger, &pending).await?;
        settle::settle(&mut self.shared.ledger.borrow_mut(), &pending);
        Ok(settled)
    }

    /// Compares every answer with the model's, fed with all events of the ledger.
    ///
    /// # Errors
    /// A violation.
    pub async fn check(&mut self, server: &Server) -> Result<usize> {
        self.shared.findings.none()?;
        self.oracle.feed(&self.shared.ledger.borrow())?;
        self.oracle.check(server.address, &self.shared.world, &mut self.rng).await
    }
}

/// What a check found to be right.
#[derive(Debug, Clone, Copy)]
pub struct Checked {
    /// What was sent again.
    pub settled: Settled,
    /// How many answers equal the model's.
    pub answers: usize,
}
