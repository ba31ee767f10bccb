//! `headcount init`: the first organization, its project and its keys.

use std::path::Path;
use std::process::ExitCode;

use headcount_actors::Engine;
use headcount_api::command::{CREDENTIALS_FILE, Failure, InitialCredentials, print};
use headcount_common::clock::{Clock, SystemClock};
use headcount_control::{Actor, ActorKind, Author, Initial, MAX_NAME_CHARACTERS, NewOrganization, Registry, RegistryError};
use headcount_domain::{Currency, Timezone};
use headcount_storage::format::Format;
use headcount_storage::lock::DirLock;

use crate::config::Settings;

/// The flags of the first organization, for `init` and `serve`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "First organization")]
pub(crate) struct FirstArgs {
    /// Timezone of days, such as Europe/Berlin; can't change after the first event [default: UTC]
    #[arg(long, value_name = "TIMEZONE", value_parser = Timezone::parse)]
    timezone: Option<Timezone>,
    /// Currency of figures, such as EUR; can't change after the first event [default: USD]
    #[arg(long, value_name = "CODE", value_parser = Currency::parse)]
    currency: Option<Currency>,
    /// Name of the organization [default: default]
    #[arg(long, value_name = "NAME", value_parser = organization_name)]
    name: Option<String>,
}

fn organization_name(text: &str) -> Result<String, String> {
    let is_fine = !text.trim().is_empty() && text.chars().count() <= MAX_NAME_CHARACTERS;
    if is_fine { Ok(text.to_owned()) } else { Err(format!("must have 1 to {MAX_NAME_CHARACTERS} characters")) }
}

impl FirstArgs {
    /// Describes the organization.
    pub(crate) fn organization(&self) -> NewOrganization {
        NewOrganization { name: self.name.clone(), timezone: self.timezone, currency: self.currency }
    }

    /// The names of the given flags.
    fn given(&self) -> Vec<&'static str> {
        let flags =
            [("--timezone", self.timezone.is_some()), ("--currency", self.currency.is_some()), ("--name", self.name.is_some())];
        flags.into_iter().filter_map(|(flag, is_given)| is_given.then_some(flag)).collect()
    }
}

/// The flags of `init`.
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    first: FirstArgs,
}

/// Runs the command. It fails if the directory has an organization already or is in use.
pub(crate) fn run(settings: &Settings, args: &InitArgs) -> Result<ExitCode, Failure> {
    let dir = &settings.data_dir;
    let _lock = DirLock::acquire(dir)?;
    Format::open(dir)?;
    let registry = Registry::open(dir)?;
    let author = Author { actor: Actor::of(ActorKind::Cli), ..SystemClock.now().into() };
    let initial = registry.initialize_as(args.first.organization(), author).map_err(|error| match error {
        RegistryError::Conflict { code: "already_initialized", .. } => {
            Failure(format!("{} already has an organization; its keys were shown when it was created", dir.display()))
        }
        error => error.into(),
    })?;
    let credentials = InitialCredentials::from(&initial);
    let saved = credentials.save(dir);
    // Print the keys even if saving them failed: nothing else can show them.
    print(args.json, &credentials, || describe(&credentials, dir))?;
    saved.map(|()| ExitCode::SUCCESS)
}

/// Saves keys in the data directory, then creates the first organization with them. If an
/// organization exists, logs that the flags have no effect.
pub(crate) fn first(engine: &Engine, args: &FirstArgs) -> Result<Option<InitialCredentials>, Failure> {
    if !engine.registry().is_empty() {
        let ignored = args.given().join(", ");
        if !ignored.is_empty() {
            tracing::warn!(ignored, "ignored flags: the organization exists already; `PATCH /organization` changes it");
        }
        return Ok(None);
    }
    let save = |initial: &Initial| InitialCredentials::from(initial).save(engine.data_dir());
    let initial = engine.registry().initialize_kept(args.organization(), engine.clock().now(), save)?;
    Ok(Some(InitialCredentials::from(&initial)))
}

/// Describes where the credentials are, without any secret.
fn describe_place(credentials: &InitialCredentials, data_dir: &Path) -> String {
    let InitialCredentials { organization_id, project_id, public_key, .. } = credentials;
    let (file, dir) = (data_dir.join(CREDENTIALS_FILE), data_dir.display());
    format!(
        "organization  {organization_id}\n\
         project       {project_id}  (default)\n\
         public key    {public_key}  for trackers\n\
         The API token and the root token are in {}, which only its owner can read.\n\
         `headcount login --data-dir {dir}` prints a one-time link that signs a browser in.",
        file.display()
    )
}

/// Formats the credentials as text. Only a terminal gets the secrets, since other output is often
/// stored and read by others.
pub(crate) fn describe_first(credentials: &InitialCredentials, data_dir: &Path, is_terminal: bool) -> String {
    if is_terminal { describe(credentials, data_dir) } else { describe_place(credentials, data_dir) }
}

/// Formats the credentials as text, with lines for a shell.
pub(crate) fn describe(credentials: &InitialCredentials, data_dir: &Path) -> String {
    let InitialCredentials { organization_id, project_id, public_key, api_token, root_token } = credentials;
    let file = data_dir.join(CREDENTIALS_FILE);
    let saved = if file.exists() {
        format!("They are saved in {}, and shown here only once.", file.display())
    } else {
        "They are shown only once.".into()
    };
    format!(
        "organization  {organization_id}\n\
         project       {project_id}  (default)\n\
         public key    {public_key}  for trackers\n\
         API token     {api_token}  for queries and management: keep it secret\n\
         root token    {root_token}  creates more organizations: keep it secret\n\
         {saved} For a shell:\n\
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
        let place = describe_place(&credentials, dir.path());
        assert!(place.contains(&file.display().to_string()) && place.contains(&credentials.public_key), "{place}");
        assert!(!place.contains(&credentials.api_token) && !place.contains(&credentials.root_token), "{place}");
        assert_eq!(args.given(), ["--timezone", "--currency", "--name"]);
        assert!(first(&engine, &args).unwrap().is_none());
    }

    /// Nothing else can show them.
    #[test]
    fn without_a_place_for_its_keys_there_is_no_organization() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(headcount_actors::EngineConfig::new(dir.path())).unwrap();
        std::fs::create_dir(dir.path().join(CREDENTIALS_FILE)).unwrap();
        assert!(first(&engine, &FirstArgs::default()).is_err());
        assert!(engine.registry().is_empty());
    }

    #[test]
    fn what_is_not_allowed_is_refused_before_anything_is_made() {
        for flags in [["--timezone", "Berlin"], ["--currency", "euro"], ["--name", " "]] {
            assert!(Args::try_parse_from(["init"].into_iter().chain(flags)).is_err(), "{flags:?}");
        }
    }
}
