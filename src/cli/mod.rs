//! The command line: one file per command.
//!
//! Answers go to standard output, logs and refusals to standard error. Exit codes: 0 done, 1 refused or failed (one line says
//! why), 2 the command line itself is wrong.

pub mod client;
pub mod credentials;
pub mod demo;
pub mod import;
pub mod init;
pub mod load;
pub mod serve;
pub mod show;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use headcount_storage::private::{self, Narrowed};

use crate::config::{Flags, Settings, unknown_variables};
use crate::telemetry;

/// Why a command failed: one line for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl Failure {
    /// With what was being done.
    pub fn new(doing: &str, error: impl std::fmt::Display) -> Self {
        Self(format!("{doing}: {error}"))
    }
}

macro_rules! failure_from {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self(error.to_string())
            }
        })*
    };
}

failure_from!(
    headcount_actors::OpenError,
    headcount_actors::registry::RegistryError,
    crate::config::ConfigError,
    crate::server::StartError,
    crate::telemetry::BadFilter,
    std::io::Error,
);

/// Self-hosted product and web analytics, revenue and account intelligence in one process.
#[derive(Debug, Parser)]
#[command(name = "headcount", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server; on an empty data directory, make the first organization and print its keys, once
    Serve(init::FirstArgs),
    /// Make the first organization, project and keys, and print them, once
    Init(init::InitArgs),
    /// Print the settings in force, and where each came from
    Config(show::ConfigArgs),
    /// Serve a temporary directory filled with sample events, to look around
    Demo(demo::DemoArgs),
    /// Record the events of a file: NDJSON, or a web server's access log
    Import(import::ImportArgs),
    /// Put load on a server, and measure
    Load(load::LoadArgs),
}

/// Runs the command line of the process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("headcount: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(Cli { flags, command }: Cli) -> Result<ExitCode, Failure> {
    // What is no Unicode is as if it were not there: no setting can be.
    let settings = Settings::resolve(&flags, |name| std::env::var(name).ok())?;
    telemetry::init(&settings.log, settings.log_format)?;
    for warning in settings.warnings() {
        tracing::warn!("{warning}");
    }
    for variable in unknown_variables(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())) {
        tracing::warn!(variable, "the variable means nothing; `headcount serve --help` lists those that do");
    }
    // What this process makes is nobody else's to read, whatever the shell allows.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    if matches!(command, Command::Serve(_) | Command::Init(_) | Command::Import(_)) {
        narrow(&settings.data_dir);
    }
    match command {
        Command::Serve(first) => serve::run(&settings, &first),
        Command::Init(args) => init::run(&settings, &args),
        Command::Config(args) => show::run(&settings, &args),
        Command::Demo(args) => demo::run(&settings, &args),
        Command::Import(args) => import::run(&settings, &args),
        Command::Load(args) => load::run(&args),
    }
}

/// Takes away what a data directory that exists allows others.
fn narrow(data_dir: &Path) {
    let data_dir_text = data_dir.display();
    match private::narrow(data_dir) {
        Ok(Narrowed { narrowed, failed }) => {
            if narrowed > 0 {
                tracing::warn!(data_dir = %data_dir_text, narrowed, "files were open to other users of this machine, and no longer are");
            }
            if failed > 0 {
                tracing::warn!(data_dir = %data_dir_text, failed, "files are open to other users of this machine: they belong to another user");
            }
        }
        Err(error) => tracing::warn!(data_dir = %data_dir_text, %error, "who can read the data directory could not be checked"),
    }
}

/// A runtime for a command, on the calling thread.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new("could not start", error))
}

/// A line of JSON on standard output.
fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::new("the answer could not be written", error))?;
    println!("{text}");
    Ok(())
}
