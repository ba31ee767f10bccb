//! Common parts of all campaigns: work directory, server, organization, load and models.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use headcount_histories::Rng;
use headcount_model::Json;
use tempfile::TempDir;

use crate::arguments::Common;
use crate::error::{Result, harness, violation};
use crate::load::Shared;
use crate::oracle::Oracle;
use crate::resend::{self, Resent};
use crate::server::{Launch, Server, any_port};
use crate::tenant::Tenant;

/// Everything that a campaign works with.
#[derive(Debug)]
pub struct Rig {
    /// How to start servers.
    pub launch: Launch,
    /// State shared with the load.
    pub shared: Rc<Shared>,
    /// The models.
    pub oracle: Oracle,
    /// Source of all randomness.
    pub rng: Rng,
}

/// Work directory of a campaign. It is kept as evidence if the campaign fails.
#[derive(Debug)]
pub struct WorkDir {
    dir: Option<TempDir>,
    discard: bool,
}

impl WorkDir {
    /// Creates the directory.
    ///
    /// # Errors
    /// It can't be created.
    pub fn make(common: &Common) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("headcount-crash-").tempdir_in(&common.work_dir)?;
        Ok(Self { dir: Some(dir), discard: common.discard })
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// Keeps the directory, unless `--discard` is given.
    pub fn keep(&mut self) {
        if !self.discard
            && let Some(dir) = self.dir.take()
        {
            eprintln!("kept as evidence: {}", dir.keep().display());
        }
    }
}

impl Rig {
    /// Creates an organization in `data_dir`; no server runs afterwards.
    ///
    /// # Errors
    /// A request to the server fails.
    pub async fn make(common: &Common, data_dir: PathBuf, flags: &[&str]) -> Result<Self> {
        Self::make_with(common, data_dir, flags, Vec::new()).await
    }

    /// As [`Rig::make`], with additional environment variables for servers.
    ///
    /// # Errors
    /// A request to the server fails.
    pub async fn make_with(
        common: &Common,
        data_dir: PathBuf,
        flags: &[&str],
        environment: Vec<(&'static str, String)>,
    ) -> Result<Self> {
        let seed = common.seed();
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let (binary, fault) = (common.binary()?, common.fault.clone());
        let launch = Launch { binary, data_dir, runner: Vec::new(), listen: any_port(), flags, fault, environment };
        println!("{} of {}, seed {seed}", launch.binary.display(), env!("CARGO_PKG_VERSION"));
        let tenant = Tenant::make(&launch).await?;
        let oracle = Oracle::new(&tenant);
        Ok(Self { launch, shared: Shared::new(tenant, seed), oracle, rng: Rng::new(seed) })
    }

    /// Changes the number of shards, the checkpoint interval, and when events are sealed, for the
    /// next start.
    pub fn shuffle_flags(&mut self) {
        let (shards, interval) = (1 + self.rng.below(4), *self.rng.pick(&[1, 1, 2, 60]));
        let seal_events = *self.rng.pick(&[1, 200, 262_144]);
        let shuffled = ["--shards", "--checkpoint-interval", "--seal-events"];
        self.launch.flags.retain(|flag| !shuffled.iter().any(|name| flag.starts_with(name)));
        let checkpoints = format!("--checkpoint-interval={interval}s");
        self.launch.flags.extend([format!("--shards={shards}"), checkpoints, format!("--seal-events={seal_events}")]);
    }

    /// Sends unacknowledged events again, and compares every answer with the model.
    ///
    /// # Errors
    /// A violation.
    pub async fn resend_and_check(&mut self, server: &Server) -> Result<Checked> {
        let resent = self.resend_pending(server).await?;
        let answers = self.check(server).await?;
        Ok(Checked { resent, answers })
    }

    /// Runs `verify` through the running server, and returns the number of cells that it compared.
    ///
    /// # Errors
    /// A violation if it finds anything.
    pub async fn verify(&self) -> Result<u64> {
        self.verify_with(&self.launch).await
    }

    /// As [`Rig::verify`], of the server that `launch` started.
    ///
    /// # Errors
    /// A violation if it finds anything.
    pub async fn verify_with(&self, launch: &Launch) -> Result<u64> {
        let mut command = launch.command(&["verify", "--json"]);
        let output =
            tokio::task::spawn_blocking(move || command.output()).await.map_err(|error| harness(error.to_string()))??;
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(violation(format!("verify: {}: {report}{errors}", output.status)));
        }
        let parsed = Json::parse(&report).map_err(|error| harness(format!("verify printed {report}: {error}")))?;
        let cells = |project: &Json| project.field("cells").to_string().parse::<u64>().ok();
        Ok(parsed.field("projects").items().iter().filter_map(cells).sum())
    }

    /// Sends unacknowledged events again.
    ///
    /// # Errors
    /// A violation.
    pub async fn resend_pending(&mut self, server: &Server) -> Result<Resent> {
        let pending = self.shared.ledger.borrow().pending();
        let resent = resend::send_again(server.address, &self.shared.tenant, &self.shared.ledger, &pending).await?;
        resend::mark_acknowledged(&mut self.shared.ledger.borrow_mut(), &pending);
        Ok(resent)
    }

    /// Feeds the models with all events of the ledger, compares every answer, and returns their
    /// number.
    ///
    /// # Errors
    /// A violation.
    pub async fn check(&mut self, server: &Server) -> Result<usize> {
        self.shared.findings.check()?;
        self.oracle.feed(&self.shared.ledger.borrow())?;
        self.oracle.check(&[server.address], &self.shared.tenant, &mut self.rng).await
    }
}

/// Results of a successful check.
#[derive(Debug, Clone, Copy)]
pub struct Checked {
    /// Events sent again.
    pub resent: Resent,
    /// Number of answers, all equal to the model's.
    pub answers: usize,
}
