//! `/admin/clock`: needs the operator token.

use std::process::ExitCode;

use headcount_actors::{ClockJump, ClockState, ConfirmClockError};
use headcount_api::command::{Client, CommandSettings, Failure, is_held, print, runtime};
use headcount_api::endpoint::*;
use headcount_api::management;
use headcount_domain::Day;
use serde_json::{Value, json};

json_body! {
    /// A confirmation that the clock is right.
    #[schema(example = json!({"today": "2026-11-29"}))]
    pub(crate) struct ClockConfirmation {
        /// Which day it is, in any timezone. It must be the day that the clock shows.
        #[schema(format = Date)]
        today: String = required("a date such as 2026-11-29"),
    }
}

answer! {
    /// What the clock of the server shows, and what of it is believed where something would be removed.
    pub(crate) struct ClockAnswer from |state: ClockState| {
        /// What the clock shows.
        shown: Timestamp,
        /// The time as of which something is removed.
        believed: Timestamp,
        /// Whether the clock is so far ahead that nothing is removed by it.
        doubted: bool = state.is_doubted,
        /// The jump at which the floors of projects stop whose retention is shorter; null: none.
        #[schema(required)]
        jump: Option<ClockJumpAnswer> = state.jump.map(Into::into),
        /// The last jumps that were confirmed, oldest first.
        confirmed: Vec<ClockJumpAnswer> = shown(state.confirmed),
    }
}

answer! {
    /// A jump of the clock.
    pub(crate) struct ClockJumpAnswer from ClockJump {
        /// The time before it.
        from: Timestamp,
        /// What the clock showed after it.
        to: Timestamp,
    }
}

fn answered(state: ClockState) -> HttpResponse {
    management::unstored(&ClockAnswer::from(state))
}

/// What the clock shows, and whether it is believed.
#[utoipa::path(
    get, path = "/admin/clock", tag = "operations", operation_id = "show_clock",
    responses((status = 200, description = "What the clock of this server shows.", body = ClockAnswer)),
    security(("operator_token" = []))
)]
pub(crate) async fn show(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    Ok(answered(state.engine.clock_state()))
}

/// Confirms that the clock is right, although it is far ahead of the last known time: what has expired by it is removed from then on, and that can't be undone.
#[utoipa::path(
    post, path = "/admin/clock", tag = "operations", operation_id = "confirm_clock",
    request_body = ClockConfirmation,
    responses(
        (status = 200, description = "The clock is believed, which is noted with the jump. If it was before, nothing has changed.", body = ClockAnswer),
    ),
    security(("operator_token" = []))
)]
pub(crate) async fn confirm(ApiCall { state, request, payload }: ApiCall) -> Result<HttpResponse> {
    let ClockConfirmation { today } = json::read(&state, &request, payload).await?;
    let day = Day::parse(&today).ok_or_else(|| ApiError::parameter("today", "`today` must be a date such as 2026-11-29"))?;
    let confirmed = management::on_engine(&state, move |engine| Ok(engine.confirm_clock(day).map(|()| engine.clock_state())));
    match confirmed.await? {
        Ok(state) => Ok(answered(state)),
        Err(error @ ConfirmClockError::OtherDay(_)) => Err(ApiError::parameter("today", format!("`today`: {error}"))),
        Err(error @ ConfirmClockError::Io(_)) => {
            tracing::error!(%error, "the clock could not be confirmed");
            Err(ApiError::overloaded("the confirmation can't be written now"))
        }
    }
}

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
        serde_json::to_value(ClockAnswer::from(state))?
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
