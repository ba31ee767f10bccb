//! `headcount config`: the settings in force.

use std::process::ExitCode;

use super::{Failure, print_json};
use crate::config::Settings;

/// The flags of `config`.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// None but those of printing.
pub fn run(settings: &Settings, args: &ConfigArgs) -> Result<ExitCode, Failure> {
    let settings = settings.in_force();
    if args.json {
        let fields: serde_json::Map<String, serde_json::Value> = settings
            .iter()
            .map(|(name, it)| ((*name).to_owned(), serde_json::json!({ "value": it.value, "source": it.source })))
            .collect();
        print_json(&fields)?;
        return Ok(ExitCode::SUCCESS);
    }
    for (name, it) in settings {
        println!("{name:<20} {:<24} {}", if it.value.is_empty() { "(none)" } else { it.value }, it.source);
    }
    Ok(ExitCode::SUCCESS)
}
