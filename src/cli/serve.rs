//! `headcount serve`: all of it, until it is told to stop.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use headcount_actors::Engine;
use tokio::signal::unix::{SignalKind, signal};

use super::{Failure, client, import, init, runtime};
use crate::config::Settings;
use crate::open_files;
use crate::server::{RunningServer, Server};

/// How long the engine may take to write everything down at the end. What is left then, the next start replays.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(14);

/// Runs the command.
///
/// # Errors
/// The data directory or the address can't be used.
pub fn run(settings: &Settings) -> Result<ExitCode, Failure> {
    open_files::raise()?;
    runtime()?.block_on(async {
        // From the first moment on: a signal during a long start must not kill half of it.
        let stop = stop_signal()?;
        let engine = Engine::open(settings.engine())?;
        import::settle(&engine);
        // Shown before anything else can go wrong: they are shown once.
        if let Some(credentials) = init::first(&engine)? {
            println!("{}", init::describe(&credentials));
        }
        let server = Server::start(engine.clone(), settings.http())?;
        client::leave_address(&settings.data_dir, &server.url());
        announce(&server)?;
        tracing::info!(address = %server.url(), data_dir = %settings.data_dir.display(), "serving");
        stop.await;
        client::remove_address(&settings.data_dir);
        shut_down(server, engine).await;
        Ok(ExitCode::SUCCESS)
    })
}

/// Says, to whoever waits for it, that the server is ready.
pub(crate) fn announce(server: &RunningServer) -> Result<(), Failure> {
    println!("listening on {}", server.url());
    std::io::stdout().flush().map_err(Failure::from)
}

/// Ends when the process is asked to stop: SIGTERM, or SIGINT (control-C).
pub(crate) fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Stops accepting, lets requests finish, writes everything down.
pub(crate) async fn shut_down(server: RunningServer, engine: Engine) {
    tracing::info!("stopping");
    engine.begin_drain();
    if let Err(error) = server.stop().await {
        tracing::error!(%error, "the server did not stop cleanly");
    }
    if tokio::time::timeout(CLOSE_TIMEOUT, engine.close()).await.is_err() {
        tracing::warn!("the last checkpoint took too long; the next start replays the log instead");
    }
    tracing::info!("stopped");
}
