//! The command line: one module per command.
//!
//! Answers go to standard output, logs and errors to standard error. Exit codes: 0 for success, 1
//! for a failure (one line gives the reason), 2 for a wrong command line.

#[cfg(feature = "cluster")]
mod cluster;
mod health;
mod init;
mod manage;
#[cfg(not(feature = "cluster"))]
mod no_node;
#[cfg(feature = "cluster")]
mod node;
mod openapi;
mod reference;
mod serve;
mod service_manager;
#[cfg(feature = "cluster")]
mod threads;

use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use headcount_api::command::{Failure, ManageArgs};

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

/// Makes the commands. A row has the arguments, whether the command may open the data directory
/// itself, and runs it.
macro_rules! commands {
    ($settings:ident; $(
        $(#[doc = $doc:tt])+
        $(#[cfg($when:meta)])?
        $name:ident $(($args:ident: $type:ty))? $(, opens_data: $opens_data:literal)? => $run:expr;
    )*) => {
        #[derive(Debug, Subcommand)]
        enum Command {$(
            $(#[doc = $doc])+
            $(#[cfg($when)])?
            $name $(($type))?,
        )*}

        impl Command {
            fn opens_data(&self) -> bool {
                match self {$(
                    $(#[cfg($when)])?
                    Self::$name { .. } => false $(|| $opens_data)?,
                )*}
            }

            fn run(self, $settings: &Settings) -> Result<ExitCode, Failure> {
                match self {$(
                    $(#[cfg($when)])?
                    Self::$name $(($args))? => $run,
                )*}
            }
        }
    };
}

commands! {
    settings;

    /// Run the server. On an empty data directory, it first creates an organization and prints its
    /// keys
    Serve(args: init::FirstArgs), opens_data: true => serve::run(settings, &args);
    /// Create the first organization, project and keys, and print the keys
    Init(args: init::InitArgs), opens_data: true => init::run(settings, &args);
    /// Print the effective settings and the source of each
    Config(args: reference::ConfigArgs) => reference::show_settings(settings, &args);
    /// Print the OpenAPI document of the API, the same as `/openapi.json`
    Openapi => openapi::run();
    /// Check whether the running server is ready: exit code 0 if ready, 1 if not
    Health(args: health::HealthArgs) => health::run(settings, &args);
    /// Print a one-time link that signs a browser in to the running server
    Login(args: headcount_organization::LoginArgs), opens_data: true => headcount_organization::login(settings, &args);
    /// Run a server with sample events in a temporary directory
    Demo(args: headcount_demo::DemoArgs) => headcount_demo::run(settings, &args);
    /// Import events from a file: NDJSON, an export, a web server's access log, or an export of
    /// Umami or GoatCounter
    Import(args: headcount_import::ImportArgs), opens_data: true => headcount_import::run(settings, &args);
    /// Back up the data directory of a running or stopped server
    Backup(args: headcount_upkeep::BackupArgs) => headcount_upkeep::backup(settings, &args);
    /// Restore a backup to a new data directory
    Restore(args: headcount_upkeep::RestoreArgs) => headcount_upkeep::restore(settings, &args);
    /// Recompute every figure from the recorded events, and check all files
    Verify(args: headcount_upkeep::VerifyArgs) => Ok(headcount_upkeep::verify(settings, &args));
    /// Export the recorded events of a project as NDJSON, CSV or Parquet
    Export(args: headcount_questions::ExportArgs), opens_data: true => headcount_questions::export(settings, &args);
    /// Move events from the log to the archive
    Archive(args: headcount_upkeep::ArchiveArgs), opens_data: true => headcount_upkeep::archive(settings, &args);
    /// Show the server's clock, and confirm it after a long downtime
    Clock(args: headcount_upkeep::ClockArgs), opens_data: true => headcount_upkeep::clock(settings, &args);
    /// Show and change the organization, or create another one
    Organization(args: ManageArgs<headcount_organization::OrganizationCommand>), opens_data: true => manage::run(settings, &args);
    /// List, create, show, change and delete the members of the organization
    Member(args: ManageArgs<headcount_organization::MemberCommand>), opens_data: true => manage::run(settings, &args);
    /// List, create, show, change and delete projects
    Project(args: ManageArgs<headcount_organization::ProjectCommand>), opens_data: true => manage::run(settings, &args);
    /// List, create, show, change and delete the public keys of a project
    Key(args: ManageArgs<headcount_organization::KeyCommand>), opens_data: true => manage::run(settings, &args);
    /// List, create and revoke the shares of a project
    Share(args: ManageArgs<headcount_organization::ShareCommand>), opens_data: true => manage::run(settings, &args);
    /// List, create, show and revoke API tokens
    Token(args: ManageArgs<headcount_organization::TokenCommand>), opens_data: true => manage::run(settings, &args);
    /// List, create, show, change and delete webhooks, with their deliveries and secrets
    Webhook(args: ManageArgs<headcount_webhooks::WebhookCommand>), opens_data: true => manage::run(settings, &args);
    /// Export and erase the data of people, opt them in again, and list the requests
    Privacy(args: ManageArgs<headcount_privacy::PrivacyCommand>), opens_data: true => manage::run(settings, &args);
    /// List the changes of the organization and who made them, newest first
    AuditLog(args: headcount_organization::AuditLogArgs), opens_data: true => manage::execute(settings, &args.common, &args.query);
    /// Change the timezone of an organization's days, on the data directory of a stopped server
    Reindex(args: headcount_upkeep::ReindexArgs), opens_data: true => headcount_upkeep::reindex(settings, &args);
    /// Check and measure NATS brokers, and create, show and maintain a cluster
    #[cfg(feature = "cluster")]
    Cluster(args: cluster::ClusterArgs) => cluster::run(settings, args);
    /// Print the completion script of a shell
    Completions(args: reference::CompletionsArgs) => reference::complete(Cli::command(), &args);
    /// Write the manual pages into a directory
    Man(args: reference::ManArgs) => reference::write_pages(Cli::command(), &args);
}

/// Runs the command line of the process.
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
    command.run(&settings)
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
