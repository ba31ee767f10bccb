//! `headcount reindex`: changes the timezone of an organization's days.

use std::process::ExitCode;

use headcount_actors::{Reindexed, reindex};
use headcount_api::command::{CommandSettings, Failure, is_held, print, runtime};
use headcount_api::open_files;
use headcount_common::clock::{Clock as _, SystemClock};
use headcount_control::{Actor, ActorKind, Author, Registry};
use headcount_domain::{OrganizationId, Timezone};
use serde::Serialize;

/// The flags of `reindex`.
#[derive(Debug, clap::Args)]
pub struct ReindexArgs {
    /// New timezone of days, such as Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    timezone: Timezone,
    /// Organization, by id [default: the only one]
    #[arg(long, value_name = "ORGANIZATION")]
    organization: Option<OrganizationId>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The result.
#[derive(Debug, Serialize)]
struct ReindexSummary {
    organization_id: String,
    timezone: String,
    files: u64,
    events: u64,
}

/// Runs the command.
pub fn run(settings: &dyn CommandSettings, args: &ReindexArgs) -> Result<ExitCode, Failure> {
    if is_held(settings.data_dir())? {
        return Err(Failure("a server runs on the data directory: stop it first, since every day is recomputed".to_owned()));
    }
    open_files::raise()?;
    let organization = organization(settings, args)?;
    let by = Author { actor: Actor::of(ActorKind::Cli), ..SystemClock.now().into() };
    let done = runtime()?.block_on(reindex(settings.engine(), organization, args.timezone, by));
    let Reindexed { files, events } = done.map_err(|error| Failure::new("the timezone was not changed", error))?;
    let timezone = args.timezone.name().to_owned();
    let summary = ReindexSummary { organization_id: organization.to_string(), timezone, files, events };
    print(args.json, &summary, || {
        let ReindexSummary { timezone, events, .. } = &summary;
        format!("{events} events now have days in {timezone}; the next start recounts them, which takes as long as a rebuild")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The organization of the flag, or the only one.
fn organization(settings: &dyn CommandSettings, args: &ReindexArgs) -> Result<OrganizationId, Failure> {
    if let Some(organization) = args.organization {
        return Ok(organization);
    }
    if !settings.data_dir().join("FORMAT").exists() {
        return Err(Failure(format!("{} is not a data directory", settings.data_dir().display())));
    }
    let failed = |error| Failure::new("the organizations can't be read", error);
    let organizations = Registry::open(settings.data_dir()).map_err(failed)?.organizations();
    match &organizations[..] {
        [organization] => Ok(organization.id),
        [] => Err(Failure("the data directory has no organization".to_owned())),
        _ => Err(Failure("there are several organizations: choose one with --organization".to_owned())),
    }
}
