//! `headcount import`: imports events from lines of JSON, files of `export`, access logs of web
//! servers, or exports of other products.
//!
//! Every line is recorded exactly once, even if the import is killed and repeated: see [`journal`].
//! An import of a file that grew continues where the last one stopped: see [`source_file`].

#![forbid(unsafe_code)]

mod args;
mod combined;
mod embedded;
mod events;
mod foreign;
#[cfg(test)]
mod foreign_tests;
mod form;
mod goatcounter;
mod journal;
mod lines;
mod pipeline;
mod progress;
mod read_lines;
mod remote;
mod report;
mod session;
mod source_file;
#[cfg(test)]
mod table_tests;
mod tables;
#[cfg(test)]
mod tests;
mod umami;

use std::process::ExitCode;

use headcount_actors::Engine;
use headcount_api::command::{Client, CommandSettings, Failure, is_held, pick, print, runtime, stop_signal};

pub use args::ImportArgs;
pub use journal::recover_progress;

use embedded::EmbeddedEngine;
use remote::RemoteServer;
use report::Summary;

/// Runs the command.
pub fn run(settings: &dyn CommandSettings, args: &ImportArgs) -> Result<ExitCode, Failure> {
    let summary = runtime()?.block_on(import(settings, args, stop_signal))?;
    print(args.json, &summary, || summary.describe())?;
    // A signal may stop a followed file while its last line is half written.
    let is_whole = summary.unfinished_line.is_none() || args.follow;
    Ok(if summary.finished && is_whole && !summary.none_recorded() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn import<S: Future<Output = ()>>(
    settings: &dyn CommandSettings,
    args: &ImportArgs,
    stop: impl FnOnce() -> Result<S, Failure>,
) -> Result<Summary, Failure> {
    if args.server.url.is_some() || is_held(settings.data_dir())? {
        through_server(settings, args, stop()?).await
    } else {
        into_directory(settings, args, stop()?).await
    }
}

async fn into_directory(
    settings: &dyn CommandSettings,
    args: &ImportArgs,
    stop: impl Future<Output = ()>,
) -> Result<Summary, Failure> {
    let engine = settings.open_engine()?;
    let summary = into_engine(&engine, args, stop).await;
    engine.close().await;
    summary
}

async fn into_engine(engine: &Engine, args: &ImportArgs, stop: impl Future<Output = ()>) -> Result<Summary, Failure> {
    let registry = engine.registry();
    let organizations = registry.organizations();
    let projects = organizations.iter().filter_map(|organization| registry.projects(organization.id).ok()).flatten();
    let project = pick(args.project.as_deref(), projects.map(|project| (project.id, project.name.clone())))?;
    recover_progress(engine)?;
    let config = registry.policy(project).ok_or_else(|| Failure("the project no longer exists".into()))?;
    let mut policy = registry.pin_calendar(&config)?.policy.clone();
    policy.bots = args.bots.map_or(policy.bots, Into::into);
    let mut sink = EmbeddedEngine::new(engine.clone(), policy, args.as_new);
    session::import(args, &mut sink, Some(engine.data_dir()), project, stop).await
}

async fn through_server(
    settings: &dyn CommandSettings,
    args: &ImportArgs,
    stop: impl Future<Output = ()>,
) -> Result<Summary, Failure> {
    if args.bots.is_some() {
        let message = "--bots works only without a running server: stop the server, or set the project's policy `bots`";
        return Err(Failure(message.into()));
    }
    let client = Client::new(&args.server, &settings.server_place())?;
    let project = client.project(args.project.as_deref())?;
    let data_dir = args.server.url.is_none().then_some(settings.data_dir());
    tracing::info!(url = client.url(), "importing through the server");
    session::import(args, &mut RemoteServer::new(client, project, args.as_new), data_dir, project, stop).await
}
