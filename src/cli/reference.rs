//! Commands that describe the program: `headcount config` prints the effective settings,
//! `completions` the shell completions, and `man` the manual pages.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;
use headcount_api::command::{Failure, print};

use crate::config::Settings;

/// The flags of `completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that runs the script
    shell: Shell,
}

/// The flags of `man`.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Directory to write the pages to; created if missing
    dir: PathBuf,
}

/// Prints the completion script of a shell.
pub(crate) fn complete(mut command: Command, args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "headcount", &mut script);
    let mut stdout = io::stdout().lock();
    match stdout.write_all(&script).and_then(|()| stdout.flush()) {
        // The reader, such as `head`, has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Writes the manual pages: one of the program, and one of each command.
pub(crate) fn write_pages(command: Command, args: &ManArgs) -> Result<ExitCode, Failure> {
    let unwritable = |error| Failure::new(args.dir.display(), error);
    std::fs::create_dir_all(&args.dir).map_err(unwritable)?;
    clap_mangen::generate_to(command, &args.dir).map_err(unwritable)?;
    Ok(ExitCode::SUCCESS)
}

/// The flags of `config`.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the settings in force, and where each comes from.
pub(crate) fn show_settings(settings: &Settings, args: &ConfigArgs) -> Result<ExitCode, Failure> {
    let fields: BTreeMap<_, _> = settings.in_force().into_iter().collect();
    print(args.json, &fields, || {
        let lines = settings
            .in_force()
            .into_iter()
            .map(|(name, it)| format!("{name:<20} {:<24} {}", if it.value.is_empty() { "(none)" } else { it.value }, it.source));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    Ok(ExitCode::SUCCESS)
}
