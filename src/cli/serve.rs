//! `headcount serve`: all of it, until it is told to stop.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use headcount_actors::{Engine, EngineConfig};
use tokio::signal::unix::{SignalKind, signal};

use super::init::FirstArgs;
use super::{Failure, client, import, init, runtime};
use crate::config::Settings;
use crate::open_files;
use crate::server::{RunningServer, Server};

/// How long requests under way may take at the end, a little more than the server gives them.
const STOP_TIMEOUT: Duration = Duration::from_millis(5_500);
/// How long the engine may take after that. It keeps to less by itself.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the command.
///
/// # Errors
/// The data directory or the address can't be used.
pub fn run(settings: &Settings, first: &FirstArgs) -> Result<ExitCode, Failure> {
    open_files::raise()?;
    let runtime = runtime()?;
    let result = runtime.block_on(serve(settings, first));
    // What still blocks a thread then, such as a pass over the log for somebody who is gone, ends with the process.
    runtime.shutdown_background();
    result
}

async fn serve(settings: &Settings, first: &FirstArgs) -> Result<ExitCode, Failure> {
    // From the first moment on: a signal during a long start must not kill half of it.
    let stop = stop_signal()?;
    // Before anything is created: a second server on the address leaves nothing behind.
    let http = settings.http();
    let listening = Server::listen(&http.listen)?;
    let config = settings.engine();
    let starting = listening.answer_meanwhile(Arc::clone(&config.progress))?;
    let mut stop = std::pin::pin!(stop);
    let engine = tokio::select! {
        opened = open(config)? => opened?,
        () = &mut stop => {
            // As after a kill: what was replayed is replayed again at the next start.
            tracing::info!("stopped while starting");
            return Ok(ExitCode::SUCCESS);
        }
    };
    import::settle(&engine);
    // Shown before anything else can go wrong: they are shown once.
    if let Some(credentials) = init::first(&engine, first)? {
        println!("{}", init::describe(&credentials, &settings.data_dir));
    }
    let server = listening.serve(engine.clone(), http)?;
    starting.stop().await;
    client::leave_address(&settings.data_dir, &server.url());
    announce(&server)?;
    tracing::info!(address = %server.url(), data_dir = %settings.data_dir.display(), "serving");
    stop.await;
    client::remove_address(&settings.data_dir);
    shut_down(server, engine).await;
    Ok(ExitCode::SUCCESS)
}

/// Opens the engine on a thread of its own, which ends with the process if nobody waits for it any more.
fn open(config: EngineConfig) -> Result<impl Future<Output = Result<Engine, Failure>>, Failure> {
    let (opened, wait) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("open".into()).spawn(move || drop(opened.send(Engine::open(config))))?;
    Ok(async move {
        let panicked = |_| Failure("the engine panicked while it was opened".into());
        Ok(wait.await.map_err(panicked)??)
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
    match tokio::time::timeout(STOP_TIMEOUT, server.stop()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "the server did not stop cleanly"),
        Err(_) => tracing::warn!("some requests took too long to finish"),
    }
    if tokio::time::timeout(CLOSE_TIMEOUT, engine.close()).await.is_err() {
        tracing::warn!("the last checkpoint took too long; the next start replays the log instead");
    }
    tracing::info!("stopped");
}
