//! `headcount init`: the first organization, its project and its keys.

use std::process::ExitCode;

use headcount_actors::Engine;
use headcount_actors::clock::{Clock, SystemClock};
use headcount_actors::registry::{Registry, RegistryError};
use headcount_storage::format::Format;
use headcount_storage::lock::DirLock;

use super::credentials::Credentials;
use super::{Failure, print_json};
use crate::config::Settings;

/// The flags of `init`.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// The directory has an organization already, is in use, or can't be written.
pub fn run(settings: &Settings, args: &InitArgs) -> Result<ExitCode, Failure> {
    let dir = &settings.data_dir;
    let _lock = DirLock::acquire(dir).map_err(|error| Failure(error.to_string()))?;
    Format::open(dir).map_err(|error| Failure(error.to_string()))?;
    let registry = Registry::open(dir)?;
    let initial = registry.initialize(SystemClock.now()).map_err(|error| match error {
        RegistryError::Conflict { code: "already_initialized", .. } => {
            Failure(format!("{} has an organization already; its keys were shown when it was made", dir.display()))
        }
        error => error.into(),
    })?;
    let credentials = Credentials::from(&initial);
    let saved = credentials.save(dir);
    // They exist only now: shown, whatever became of the file.
    if args.json {
        print_json(&credentials)?;
    } else {
        println!("{}", describe(&credentials));
    }
    saved.map(|_| ExitCode::SUCCESS)
}

/// Makes the first organization of an engine that has none, and keeps its keys in the data directory.
///
/// # Errors
/// They can't be written.
pub fn first(engine: &Engine) -> Result<Option<Credentials>, Failure> {
    if !engine.registry().is_empty() {
        return Ok(None);
    }
    let initial = engine.registry().initialize(engine.clock().now())?;
    let credentials = Credentials::from(&initial);
    credentials.save(engine.data_dir())?;
    Ok(Some(credentials))
}

/// For people.
#[must_use]
pub fn describe(credentials: &Credentials) -> String {
    let Credentials { organization_id, project_id, public_key, api_token, root_token } = credentials;
    format!(
        "organization  {organization_id}  (default)\n\
         project       {project_id}  (default)\n\
         public key    {public_key}  for trackers\n\
         API token     {api_token}  for queries and management: keep it secret\n\
         root token    {root_token}  for making more organizations: keep it secret\n\
         These are shown once."
    )
}
