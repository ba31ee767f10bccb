//! `headcount init`: the first organization, its project and its keys.

use std::path::Path;
use std::process::ExitCode;

use headcount_actors::Engine;
use headcount_actors::clock::{Clock, SystemClock};
use headcount_actors::registry::{MAX_NAME_CHARACTERS, NewOrganization, Registry, RegistryError};
use headcount_domain::money::Currency;
use headcount_domain::time::Timezone;
use headcount_storage::format::Format;
use headcount_storage::lock::DirLock;

use super::credentials::{CREDENTIALS_FILE, Credentials};
use super::{Failure, print_json};
use crate::config::Settings;

/// What the first organization is like: for `init`, and for a `serve` that makes it.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "The first organization")]
pub struct FirstArgs {
    /// In which timezone days are counted, such as Europe/Berlin; fixed once an event is recorded [default: UTC]
    #[arg(long, value_name = "TIMEZONE", value_parser = timezone)]
    timezone: Option<Timezone>,
    /// To which currency amounts are converted, such as EUR; fixed once an event is recorded [default: USD]
    #[arg(long, value_name = "CODE", value_parser = currency)]
    currency: Option<Currency>,
    /// Its name [default: default]
    #[arg(long, value_name = "NAME", value_parser = organization_name)]
    name: Option<String>,
}

fn timezone(text: &str) -> Result<Timezone, String> {
    Timezone::parse(text).map_err(|error| error.to_string())
}

fn currency(text: &str) -> Result<Currency, String> {
    Currency::parse(text).map_err(|error| error.to_string())
}

fn organization_name(text: &str) -> Result<String, String> {
    let is_fine = !text.trim().is_empty() && text.chars().count() <= MAX_NAME_CHARACTERS;
    if is_fine { Ok(text.to_owned()) } else { Err(format!("must have 1 to {MAX_NAME_CHARACTERS} characters")) }
}

impl FirstArgs {
    fn organization(&self) -> NewOrganization {
        NewOrganization { name: self.name.clone(), timezone: self.timezone, currency: self.currency }
    }

    /// The flags that were given.
    fn given(&self) -> Vec<&'static str> {
        let flags =
            [("--timezone", self.timezone.is_some()), ("--currency", self.currency.is_some()), ("--name", self.name.is_some())];
        flags.into_iter().filter_map(|(flag, is_given)| is_given.then_some(flag)).collect()
    }
}

/// The flags of `init`.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    #[command(flatten)]
    first: FirstArgs,
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
    let initial = registry.initialize_as(args.first.organization(), SystemClock.now()).map_err(|error| match error {
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
        println!("{}", describe(&credentials, dir));
    }
    saved.map(|_| ExitCode::SUCCESS)
}

/// Makes the first organization of an engine that has none, and keeps its keys in the data directory. Where there is one,
/// `args` change nothing, and a warning says so.
///
/// # Errors
/// The registry can't be written.
pub fn first(engine: &Engine, args: &FirstArgs) -> Result<Option<Credentials>, Failure> {
    if !engine.registry().is_empty() {
        let ignored = args.given().join(", ");
        if !ignored.is_empty() {
            tracing::warn!(ignored, "there is an organization already; `PATCH /organization` changes it");
        }
        return Ok(None);
    }
    let initial = engine.registry().initialize_as(args.organization(), engine.clock().now())?;
    let credentials = Credentials::from(&initial);
    // They exist only now: shown, whatever became of the file.
    if let Err(failure) = credentials.save(engine.data_dir()) {
        tracing::error!(%failure, "the keys could not be saved: what is printed is all there is of them");
    }
    Ok(Some(credentials))
}

/// For people, with lines for a shell.
#[must_use]
pub fn describe(credentials: &Credentials, data_dir: &Path) -> String {
    let Credentials { organization_id, project_id, public_key, api_token, root_token } = credentials;
    let file = data_dir.join(CREDENTIALS_FILE);
    let kept = if file.exists() {
        format!("They are in {} too, and shown here once.", file.display())
    } else {
        "They are shown once.".into()
    };
    format!(
        "organization  {organization_id}\n\
         project       {project_id}  (default)\n\
         public key    {public_key}  for trackers\n\
         API token     {api_token}  for queries and management: keep it secret\n\
         root token    {root_token}  for making more organizations: keep it secret\n\
         {kept} For a shell:\n\
         export PK={public_key}\n\
         export TOKEN={api_token}\n\
         export PROJECT={project_id}"
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Args {
        #[command(flatten)]
        first: FirstArgs,
    }

    #[test]
    fn the_first_organization_is_as_the_flags_say() {
        let dir = tempfile::tempdir().unwrap();
        let flags = ["--timezone", "Europe/Berlin", "--currency", "EUR", "--name", "Acme"];
        let args = Args::try_parse_from(["init"].into_iter().chain(flags)).unwrap_or_else(|error| panic!("{error}")).first;
        let engine = Engine::open(headcount_actors::EngineConfig::new(dir.path())).unwrap();
        let credentials = first(&engine, &args).unwrap().unwrap();
        let organization = &engine.registry().organizations()[0];
        let project = &engine.registry().projects(organization.id).unwrap()[0];
        assert_eq!(
            (&*organization.name, organization.timezone.to_string(), organization.currency.to_string()),
            ("Acme", "Europe/Berlin".into(), "EUR".into())
        );
        assert_eq!(project.currency.to_string(), "EUR");
        let text = describe(&credentials, dir.path());
        for line in [
            format!("export PK={}", credentials.public_key),
            format!("export TOKEN={}", credentials.api_token),
            format!("export PROJECT={}", credentials.project_id),
        ] {
            assert!(text.lines().any(|it| it == line), "{text}");
        }
        let file = dir.path().join("credentials.json");
        assert!(text.contains(&file.display().to_string()));
        std::fs::remove_file(&file).unwrap();
        assert!(!describe(&credentials, dir.path()).contains("credentials.json"));
        assert_eq!(args.given(), ["--timezone", "--currency", "--name"]);
        assert!(first(&engine, &args).unwrap().is_none());
    }

    #[test]
    fn what_is_not_allowed_is_refused_before_anything_is_made() {
        for flags in [["--timezone", "Berlin"], ["--currency", "euro"], ["--name", " "]] {
            assert!(Args::try_parse_from(["init"].into_iter().chain(flags)).is_err(), "{flags:?}");
        }
    }
}
