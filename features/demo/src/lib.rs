//! `headcount demo`: a server with sample events in a temporary directory, which it removes at the
//! end.

#![forbid(unsafe_code)]

mod args;
#[cfg(feature = "cluster")]
mod brokers;
#[cfg(feature = "cluster")]
mod child;
#[cfg(feature = "cluster")]
mod cluster;
mod filling;
mod sample;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use headcount_actors::Engine;
use headcount_api::command::{CommandSettings, Failure, InitialCredentials, print_line, runtime, stop_signal};
use headcount_api::open_files;
use headcount_domain::ProjectId;

use filling::Sample;
use sample::Dice;

pub use args::DemoArgs;
/// The interval between live events.
const LIVE_EVERY: Duration = Duration::from_millis(1_500);

/// Runs the command.
pub fn run(settings: &dyn CommandSettings, args: &DemoArgs) -> Result<ExitCode, Failure> {
    #[cfg(feature = "cluster")]
    if let Some(demo) = args.child_of {
        return Err(child::become_program(demo, &args.program));
    }
    #[cfg(feature = "cluster")]
    if args.cluster.is_some() {
        return cluster::run(settings, args);
    }
    let directory = tempfile::Builder::new().prefix("headcount-demo-").tempdir()?;
    runtime()?.block_on(serve(settings, &directory.path().join("data"), args))?;
    directory.close()?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(settings: &dyn CommandSettings, data_dir: &Path, args: &DemoArgs) -> Result<(), Failure> {
    let stop = stop_signal()?;
    open_files::raise()?;
    let Sample { engine, made, project, events } = Sample::open(settings, data_dir).await?;
    let server = settings.start_server(engine.clone())?;
    print_line(welcome(&server.url, &made, events))?;
    print_line(made.sign_in(&engine, &server.base_url)?)?;
    let lasting = async {
        match args.lasting {
            Some(lasting) => tokio::time::sleep(lasting).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop => {}
        () = live(&engine, project) => {}
        () = lasting => {}
    }
    server.stop.await;
    Ok(())
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

fn welcome(url: &str, credentials: &InitialCredentials, events: usize) -> String {
    let InitialCredentials { project_id, public_key, api_token, .. } = credentials;
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
