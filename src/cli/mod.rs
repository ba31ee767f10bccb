//! The command line: one module per command.
//!
//! Answers go to standard output, logs and errors to standard error. Exit codes: 0 for success, 1
//! for a failure (one line gives the reason), 2 for a wrong command line.

mod archive;
mod backup;
mod clock;
#[cfg(feature = "cluster")]
mod cluster;
mod demo;
mod erased;
mod export;
mod flags;
mod health;
mod import;
mod init;
mod login;
mod manage;
#[cfg(not(feature = "cluster"))]
mod no_node;
#[cfg(feature = "cluster")]
mod node;
mod openapi;
mod reference;
mod reindex;
mod runtime;
mod serve;
mod service_manager;
#[cfg(feature = "cluster")]
mod threads;
mod verify;

use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use headcount_api::command::ManageArgs;
use headcount_api::command::failure::Failure;

use headcount_storage::private::{self, Narrowed};

use crate::config::{Flags, Settings, unknown_variables};
use crate::telemetry;

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
    /// Run the server. On an empty data directory, it first creates an organization and prints its
    /// keys
    Serve(init::FirstArgs),
    /// Create the first organization, project and keys, and print the keys
    Init(init::InitArgs),
    /// Print the effective settings and the source of each
    Config(reference::ConfigArgs),
    /// Print the OpenAPI document of the API, the same as `/openapi.json`
    Openapi,
    /// Check whether the running server is ready: exit code 0 if ready, 1 if not
    Health(health::HealthArgs),
    /// Print a one-time link that signs a browser in to the running server
    Login(login::LoginArgs),
    /// Run a server with sample events in a temporary directory
    Demo(demo::DemoArgs),
    /// Import events from a file: NDJSON, an export, a web server's access log, or an export of
    /// Umami or GoatCounter
    Import(import::ImportArgs),
    /// Back up the data directory of a running or stopped server
    Backup(backup::BackupArgs),
    /// Restore a backup to a new data directory
    Restore(backup::RestoreArgs),
    /// Recompute every figure from the recorded events, and check all files
    Verify(verify::VerifyArgs),
    /// Export the recorded events of a project as NDJSON, CSV or Parquet
    Export(export::ExportArgs),
    /// Move events from the log to the archive
    Archive(archive::ArchiveArgs),
    /// Show the server's clock, and confirm it after a long downtime
    Clock(clock::ClockArgs),
    /// Show and change the organization, or create another one
    Organization(ManageArgs<manage::OrganizationCommand>),
    /// List, create, show, change and delete the members of the organization
    Member(ManageArgs<manage::MemberCommand>),
    /// List, create, show, change and delete projects
    Project(ManageArgs<manage::ProjectCommand>),
    /// List, create, show, change and delete the public keys of a project
    Key(ManageArgs<manage::KeyCommand>),
    /// List, create and revoke the shares of a project
    Share(ManageArgs<manage::ShareCommand>),
    /// List, create, show and revoke API tokens
    Token(ManageArgs<manage::TokenCommand>),
    /// List, create, show, change and delete webhooks, with their deliveries and secrets
    Webhook(ManageArgs<manage::WebhookCommand>),
    /// Export and erase the data of people, opt them in again, and list the requests
    Privacy(ManageArgs<manage::PrivacyCommand>),
    /// List the changes of the organization and who made them, newest first
    AuditLog(manage::AuditLogArgs),
    /// Change the timezone of an organization's days, on the data directory of a stopped server
    Reindex(reindex::ReindexArgs),
    /// Check and measure NATS brokers, and create, show and maintain a cluster
    #[cfg(feature = "cluster")]
    Cluster(cluster::ClusterArgs),
    /// Print the completion script of a shell
    Completions(reference::CompletionsArgs),
    /// Write the manual pages into a directory
    Man(reference::ManArgs),
}

impl Command {
    /// Whether the command may open the data directory itself.
    fn opens_data(&self) -> bool {
        match self {
            Self::Serve(_) | Self::Init(_) | Self::Import(_) | Self::Export(_) | Self::Archive(_) | Self::Clock(_) => true,
            Self::Organization(_) | Self::Member(_) | Self::Project(_) | Self::Key(_) | Self::Token(_) => true,
            Self::Share(_) | Self::Login(_) => true,
            Self::Webhook(_) | Self::Privacy(_) | Self::AuditLog(_) | Self::Reindex(_) => true,
            Self::Config(_) | Self::Openapi | Self::Demo(_) => false,
            Self::Backup(_) | Self::Restore(_) | Self::Verify(_) => false,
            #[cfg(feature = "cluster")]
            Self::Cluster(_) => false,
            Self::Health(_) | Self::Completions(_) | Self::Man(_) => false,
        }
    }
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
    // Ignore non-Unicode variables; no setting needs one.
    let settings = Settings::resolve(&flags, |name| std::env::var(name).ok())?;
    telemetry::init(&settings.log, settings.log_format)?;
    for warning in settings.warnings() {
        tracing::warn!("{warning}");
    }
    for variable in unknown_variables(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())) {
        tracing::warn!(variable, "unknown variable; `headcount serve --help` lists the known ones");
    }
    if !matches!(command, Command::Man(_)) {
        // Files of this process are private, whatever the umask of the shell. Manual pages are
        // public.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    }
    if command.opens_data() {
        narrow(&settings.data_dir);
    }
    match command {
        Command::Serve(first) => serve::run(&settings, &first),
        Command::Init(args) => init::run(&settings, &args),
        Command::Config(args) => reference::show_settings(&settings, &args),
        Command::Openapi => openapi::run(),
        Command::Demo(args) => demo::run(&settings, &args),
        Command::Import(args) => import::run(&settings, &args),
        Command::Backup(args) => backup::run(&settings, &args),
        Command::Restore(args) => backup::restore(&settings, &args),
        Command::Verify(args) => Ok(verify::run(&settings, &args)),
        Command::Export(args) => export::run(&settings, &args),
        Command::Archive(args) => archive::run(&settings, &args),
        Command::Clock(args) => clock::run(&settings, &args),
        Command::Organization(args) => manage::run(&settings, &args),
        Command::Member(args) => manage::run(&settings, &args),
        Command::Project(args) => manage::run(&settings, &args),
        Command::Key(args) => manage::run(&settings, &args),
        Command::Share(args) => manage::run(&settings, &args),
        Command::Login(args) => login::run(&settings, &args),
        Command::Health(args) => health::run(&settings, &args),
        Command::Token(args) => manage::run(&settings, &args),
        Command::Webhook(args) => manage::run(&settings, &args),
        Command::Privacy(args) => manage::run(&settings, &args),
        Command::AuditLog(args) => manage::audit_log(&settings, &args),
        Command::Reindex(args) => reindex::run(&settings, &args),
        #[cfg(feature = "cluster")]
        Command::Cluster(args) => cluster::run(&settings, args),
        Command::Completions(args) => reference::complete(Cli::command(), &args),
        Command::Man(args) => reference::write_pages(Cli::command(), &args),
    }
}

/// Removes the permissions of other users from an existing data directory.
fn narrow(data_dir: &Path) {
    let data_dir_text = data_dir.display();
    match private::narrow(data_dir) {
        Ok(Narrowed { narrowed, failed }) => {
            if narrowed > 0 {
                tracing::warn!(data_dir = %data_dir_text, narrowed, "removed the permissions of other users from these files");
            }
            if failed > 0 {
                tracing::warn!(data_dir = %data_dir_text, failed, "other users of this machine can read these files; the permissions can't be changed because the files belong to another user");
            }
        }
        Err(error) => tracing::warn!(data_dir = %data_dir_text, %error, "could not check who can read the data directory"),
    }
}
