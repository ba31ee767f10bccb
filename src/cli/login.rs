//! `headcount login`: a one-time link that signs a browser in.

use std::process::ExitCode;

use headcount_actors::Engine;
use headcount_api::command::client::{Client, ServerFlags, is_held};
use headcount_api::command::failure::Failure;
use headcount_api::command::output::print;
use headcount_control::{Principal, SIGN_IN_CODE_SECONDS};
use serde::{Deserialize, Serialize};

use crate::config::Settings;

/// The flags of `login`.
#[derive(Debug, clap::Args)]
pub(crate) struct LoginArgs {
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
pub(crate) fn run(settings: &Settings, args: &LoginArgs) -> Result<ExitCode, Failure> {
    if args.server.url.is_none() && !is_held(&settings.data_dir)? {
        return Err(Failure(format!("no server runs on {}: `headcount serve` starts one", settings.data_dir.display())));
    }
    let sign_in: SignIn = Client::new(&args.server, &settings.server_place())?.post_once("/session/codes", b"{}")?;
    print(args.json, &sign_in, || describe(&sign_in.url))?;
    Ok(ExitCode::SUCCESS)
}

/// Formats a link with a code as text.
pub(crate) fn describe(url: &str) -> String {
    format!("{url}\nOpen this link to sign a browser in. It works once, within {} minutes.", SIGN_IN_CODE_SECONDS / 60)
}

/// Creates a sign-in link for an API token of this process's engine, and formats it as text.
pub(crate) fn first(engine: &Engine, api_token: &str, base_url: &str) -> Result<String, Failure> {
    let (registry, now) = (engine.registry(), engine.clock().now());
    let Ok(Principal::Token(holder)) = registry.authenticate(api_token, now) else {
        return Err(Failure("the first token is not valid".into()));
    };
    let (code, _) = registry.create_sign_in_code(holder.token.organization, &holder.token.token_id, now)?;
    Ok(describe(&format!("{base_url}/#code={}", code.expose())))
}
