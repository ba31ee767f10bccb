//! `headcount config`: the effective settings.

use std::collections::BTreeMap;
use std::process::ExitCode;

use headcount_api::command::failure::Failure;
use headcount_api::command::output::print;

use crate::config::Settings;

/// The flags of `config`.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(settings: &Settings, args: &ConfigArgs) -> Result<ExitCode, Failure> {
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
