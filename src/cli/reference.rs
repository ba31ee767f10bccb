//! `headcount completions` and `headcount man`: shell completions and manual pages.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;
use headcount_api::command::failure::Failure;

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
