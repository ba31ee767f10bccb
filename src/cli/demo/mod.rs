//! `headcount demo`: a server with sample events in a temporary directory, which it removes at the
//! end.

mod args;
#[cfg(feature = "cluster")]
mod brokers;
#[cfg(feature = "cluster")]
mod child;
#[cfg(feature = "cluster")]
mod cluster;
mod filling;
mod sample;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use headcount_actors::Engine;
use headcount_api::command::credentials::InitialCredentials;
use headcount_api::command::failure::Failure;
use headcount_api::command::output::print_line;
use headcount_domain::ids::ProjectId;

use super::login;
use super::runtime::{runtime, stop_signal};
use super::serve::shut_down;
use crate::config::Settings;
use crate::server::{HttpConfig, RunningServer, Server, StartError};
pub(crate) use args::DemoArgs;
use args::after;
use filling::Sample;
use sample::Dice;

/// The interval between live events.
const LIVE_EVERY: Duration = Duration::from_millis(1_500);

/// Runs the command.
pub(crate) fn run(settings: &Settings, args: &DemoArgs) -> Result<ExitCode, Failure> {
    #[cfg(feature = "cluster")]
    if let Some(demo) = args.child_of {
        return Err(child::become_program(demo, &args.program));
    }
    #[cfg(feature = "cluster")]
    if args.cluster.is_some() {
        return cluster::run(settings, args);
    }
    let directory = tempfile::Builder::new().prefix("headcount-demo-").tempdir()?;
    let mut settings = settings.clone();
    settings.data_dir = directory.path().join("data");
    runtime()?.block_on(serve(&settings, args))?;
    directory.close()?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(settings: &Settings, args: &DemoArgs) -> Result<(), Failure> {
    let stop = stop_signal()?;
    crate::open_files::raise()?;
    let Sample { engine, made, project, events } = Sample::open(settings).await?;
    let server = start(&engine, settings)?;
    let base_url = settings.public_url.clone().unwrap_or_else(|| server.url());
    print_line(welcome(&server, &made, events))?;
    print_line(login::first(&engine, &made.api_token, &base_url)?)?;
    tokio::select! {
        () = stop => {}
        () = live(&engine, project) => {}
        () = after(args.lasting) => {}
    }
    shut_down(server, engine).await;
    Ok(())
}

/// Starts the server. If no setting names an address and the default one is taken, uses any free
/// port.
fn start(engine: &Engine, settings: &Settings) -> Result<RunningServer, Failure> {
    match Server::start(engine.clone(), settings.http()) {
        Err(StartError::Listen { source, .. }) if source.kind() == io::ErrorKind::AddrInUse && settings.is_default("listen") => {
            let free = HttpConfig { listen: "127.0.0.1:0".into(), ..settings.http() };
            Ok(Server::start(engine.clone(), free)?)
        }
        started => Ok(started?),
    }
}

/// Records light traffic until the future is dropped.
async fn live(engine: &Engine, project: ProjectId) {
    let now_ms = || u64::try_from(engine.clock().now().0).unwrap_or(0);
    let mut dice = Dice::new(now_ms());
    loop {
        tokio::time::sleep(LIVE_EVERY).await;
        let events = sample::live(&mut dice, now_ms()).unwrap_or_default();
        if let Err(error) = engine.track_batch(project, &events).await {
            tracing::warn!(%error, "a live event could not be recorded");
        }
    }
}

fn welcome(server: &RunningServer, credentials: &InitialCredentials, events: usize) -> String {
    let InitialCredentials { project_id, public_key, api_token, .. } = credentials;
    let url = server.url();
    let project = format!("{url}/projects/{project_id}");
    let token = format!("-H 'authorization: Bearer {api_token}'");
    let json = "-H 'content-type: application/json'";
    format!(
        "listening on {url}\n\
         \n\
         {events} sample events of the last {days} days, and more as you watch. They are deleted when the demo ends (control-C).\n\
         API documentation: {url}/docs\n\
         \n\
         # record an event\n\
         curl -X POST {url}/track -H 'x-service-pk: {public_key}' {json} -d '{{\"name\":\"signup\",\"user_id\":\"you\"}}'\n\
         # unique users, day by day\n\
         curl -X POST {project}/analytics/count-unique-users-per-day {token} {json} -d '{{}}'\n\
         # unique users who signed up\n\
         curl -X POST {project}/analytics/count-unique-users-per-day {token} {json} -d '{{\"event_name\":\"signup\"}}'\n\
         # revenue, orders, revenue per user and account\n\
         curl {project}/revenue/metrics {token}\n\
         # revenue, day by day\n\
         curl {project}/revenue/timeseries {token}\n\
         # revenue by what brought the buyers, and lifetime value by month of first sight\n\
         curl {project}/revenue/by-attribution {token}\n\
         curl {project}/revenue/ltv-cohorts {token}\n\
         # the most active companies\n\
         curl {url}/companies/top {token}\n\
         # everything else\n\
         curl {url}/openapi.json\n",
        days = sample::DAYS,
    )
}
