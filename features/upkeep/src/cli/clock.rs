//! `headcount clock`: shows the clock, and confirms a clock that is far ahead.

use std::process::ExitCode;

use headcount_actors::ClockState;
use headcount_api::command::client::{Client, is_held};
use headcount_api::command::failure::Failure;
use headcount_api::command::output::print;
use headcount_api::command::runtime::runtime;
use headcount_api::command::settings::CommandSettings;
use headcount_domain::time::Day;
use serde_json::{Value, json};

use crate::clock::ClockAnswer;

const PATH: &str = "/admin/clock";

/// The flags of `clock`.
#[derive(Debug, clap::Args)]
pub struct ClockArgs {
    #[command(subcommand)]
    command: ClockCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ClockCommand {
    /// Show the time of the clock, and the time that headcount believes. If a server runs on the
    /// data directory, shows its clock
    Show(ShowArgs),
    /// Confirm a clock that is far ahead of the last known time. From then on, expired data is
    /// removed
    Confirm(ConfirmArgs),
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ConfirmArgs {
    /// Today's date. The command fails unless the clock shows this day
    #[arg(long, value_name = "DATE", value_parser = day)]
    today: Day,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn day(text: &str) -> Result<Day, String> {
    Day::parse(text).ok_or_else(|| "a date such as 2026-11-29 is expected".to_owned())
}

/// Runs the command.
pub fn run(settings: &dyn CommandSettings, args: &ClockArgs) -> Result<ExitCode, Failure> {
    let (today, is_json) = match &args.command {
        ClockCommand::Show(ShowArgs { json }) => (None, *json),
        ClockCommand::Confirm(ConfirmArgs { today, json }) => (Some(*today), *json),
    };
    let answer: Value = if is_held(settings.data_dir())? {
        let client = Client::operator(&settings.server_place())?;
        match today {
            None => client.get(PATH)?,
            Some(today) => client.post_once(PATH, &serde_json::to_vec(&json!({"today": today.to_string()}))?)?,
        }
    } else {
        let state = runtime()?.block_on(at_rest(settings, today))?;
        serde_json::to_value(ClockAnswer::of(state))?
    };
    print(is_json, &answer, || describe(&answer))?;
    Ok(ExitCode::SUCCESS)
}

/// The same without a server.
async fn at_rest(settings: &dyn CommandSettings, today: Option<Day>) -> Result<ClockState, Failure> {
    let engine = settings.open_engine()?;
    let confirmed = today.map_or(Ok(()), |today| engine.confirm_clock(today));
    let state = engine.clock_state();
    engine.close().await;
    confirmed.map(|()| state).map_err(|error| Failure::new("the clock is not confirmed", error))
}

fn describe(answer: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (shown, believed) = (text(&answer["shown"]), text(&answer["believed"]));
    if answer["doubted"] == true {
        return format!(
            "the clock shows {shown}, but the last known time is {believed}: nothing is removed until you set or confirm the clock"
        );
    }
    match &answer["jump"] {
        Value::Null => format!("the clock shows {shown}, and is believed"),
        jump => format!(
            "the clock shows {shown}, and is believed; it jumped from {} to {}: projects with a shorter retention keep their events until you confirm it",
            text(&jump["from"]),
            text(&jump["to"])
        ),
    }
}
