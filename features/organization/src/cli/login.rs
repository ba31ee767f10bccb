//! `headcount login`: a one-time link that signs a browser in.

use std::process::ExitCode;

use headcount_api::command::client::{Client, ServerFlags, is_held};
use headcount_api::command::credentials::describe_sign_in;
use headcount_api::command::failure::Failure;
use headcount_api::command::output::print;
use headcount_api::command::settings::CommandSettings;
use serde::{Deserialize, Serialize};

/// The flags of `login`.
#[derive(Debug, clap::Args)]
pub struct LoginArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerFlags,
}

/// The answer of `POST /session/codes`.
#[derive(Debug, Serialize, Deserialize)]
struct SignIn {
    code: String,
    url: String,
    expires_at: String,
}

/// Runs the command. A server must run, since it keeps the code in memory.
pub fn run(settings: &dyn CommandSettings, args: &LoginArgs) -> Result<ExitCode, Failure> {
    if args.server.url.is_none() && !is_held(settings.data_dir())? {
        return Err(Failure(format!("no server runs on {}: `headcount serve` starts one", settings.data_dir().display())));
    }
    let sign_in: SignIn = Client::new(&args.server, &settings.server_place())?.post_once("/session/codes", b"{}")?;
    print(args.json, &sign_in, || describe_sign_in(&sign_in.url))?;
    Ok(ExitCode::SUCCESS)
}
