//! `headcount serve`: runs the server until a signal stops it.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use headcount_actors::{Common, Engine, EngineConfig, OpenError};
use headcount_api::command::{CommandSettings, Failure, ProcessServer, ServerPlace, client, print_line, runtime, stop_signal};
use headcount_api::open_files;

use super::init::{self, FirstArgs};
#[cfg(not(feature = "cluster"))]
use super::no_node::NoCluster as Joining;
#[cfg(feature = "cluster")]
use super::node::Joining;
use super::service_manager::ServiceManager;
use crate::config::Settings;
use crate::server::{HttpConfig, Listening, RunningServer, Server, StartError};

/// How long requests may take to finish on shutdown: a little more than the server allows them.
const STOP_TIMEOUT: Duration = Duration::from_millis(5_500);
/// How long the engine may take after that. Its own limit is lower.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the command.
pub(crate) fn run(settings: &Settings, first: &FirstArgs) -> Result<ExitCode, Failure> {
    open_files::raise()?;
    let runtime = runtime()?;
    let result = runtime.block_on(serve(settings, first));
    // Don't wait for threads that still block, such as a scan whose client has disconnected.
    runtime.shutdown_background();
    result
}

async fn serve(settings: &Settings, first: &FirstArgs) -> Result<ExitCode, Failure> {
    // First of all, so that a signal ends even a long start cleanly.
    let stop = stop_signal()?;
    let (config, http, listening) = listen(settings)?;
    let starting = listening.answer_meanwhile(Arc::clone(&config.progress))?;
    let mut stop = std::pin::pin!(stop);
    let opening = async {
        let joining = Joining::begin(settings).await?;
        let of_node = joining.as_ref().map(Joining::opener);
        Ok::<_, Failure>((open(config, of_node)?.await?, joining))
    };
    let (engine, joining) = tokio::select! {
        opened = opening => opened?,
        () = &mut stop => {
            // The next start replays the same events, as after a kill.
            tracing::info!("stopped while starting");
            return Ok(ExitCode::SUCCESS);
        }
    };
    if let Err(error) = headcount_import::recover_progress(&engine) {
        tracing::error!(%error, "can't find out whether an import was interrupted; an interrupted import can't be resumed once new events are recorded");
    }
    let is_terminal = io::stdout().is_terminal();
    let credentials = init::first(&engine, first)?;
    if let Some(credentials) = &credentials {
        print_line(init::describe_first(credentials, &settings.data_dir, is_terminal))?;
    }
    let server = listening.serve(engine.clone(), http)?;
    starting.stop().await;
    client::write_address(&settings.data_dir, &server.url());
    announce(&server)?;
    if let Some(credentials) = credentials.filter(|_| is_terminal) {
        let base_url = settings.public_url.clone().unwrap_or_else(|| server.url());
        print_line(credentials.sign_in(&engine, &base_url)?)?;
    }
    let node = match &joining {
        Some(joining) => {
            let address = node_url(settings, &server)?;
            tokio::select! {
                started = joining.start(&engine, &settings.data_dir, address) => Some(started?),
                () = &mut stop => {
                    tracing::info!("stopped while joining the cluster");
                    joining.leave(&settings.data_dir).await;
                    client::remove_address(&settings.data_dir);
                    shut_down(server, engine).await;
                    return Ok(ExitCode::SUCCESS);
                }
            }
        }
        None => None,
    };
    tracing::info!(address = %server.url(), data_dir = %settings.data_dir.display(), "serving");
    let manager = ServiceManager::of_process();
    manager.ready(&server.url());
    tokio::select! {
        () = stop => {}
        () = manager.keep_alive(&engine) => {}
    }
    manager.stopping();
    client::remove_address(&settings.data_dir);
    engine.admission.begin_drain();
    if let (Some(joining), Some(node)) = (&joining, node) {
        joining.stop(node).await;
    }
    shut_down(server, engine).await;
    Ok(ExitCode::SUCCESS)
}

/// Binds the addresses, before anything is created: a second server on the same address must leave
/// nothing behind.
fn listen(settings: &Settings) -> Result<(EngineConfig, HttpConfig, Listening), Failure> {
    let nodes = settings.nodes()?;
    let config = settings.serving_engine(nodes.as_ref().map(|nodes| &nodes.tls));
    let http = HttpConfig { nodes, ..settings.http() };
    let listening = Server::listen(&http)?;
    Ok((config, http, listening))
}

/// Returns the address at which other nodes reach this one.
fn node_url(settings: &Settings, server: &RunningServer) -> Result<String, Failure> {
    if let Some(url) = &settings.node_url {
        return Ok(url.clone());
    }
    server.node_url().ok_or_else(|| {
        Failure("the server listens on all addresses: set --node-url to the address at which other nodes reach it".into())
    })
}

/// Opens the engine on its own thread. If the caller stops waiting, the thread ends with the
/// process.
fn open(
    config: EngineConfig,
    of_node: Option<impl FnOnce(&Path) -> Result<Common, OpenError> + Send + 'static>,
) -> Result<impl Future<Output = Result<Engine, Failure>>, Failure> {
    let (opened, wait) = tokio::sync::oneshot::channel();
    let open = move || match of_node {
        Some(of_node) => of_node(&config.data_dir).and_then(|common| Engine::open_on(config, common)),
        None => Engine::open(config),
    };
    std::thread::Builder::new().name("open".into()).spawn(move || drop(opened.send(open())))?;
    Ok(async move {
        let panicked = |_| Failure("the engine panicked while it was opened".into());
        Ok(wait.await.map_err(panicked)??)
    })
}

/// Prints that the server is ready.
fn announce(server: &RunningServer) -> Result<(), Failure> {
    print_line(format_args!("listening on {}", server.url()))
}

impl CommandSettings for Settings {
    fn server_place(&self) -> ServerPlace<'_> {
        self.server_place()
    }

    fn engine(&self) -> EngineConfig {
        self.engine()
    }

    fn serving_engine(&self, data_dir: &Path) -> EngineConfig {
        let mut settings = self.clone();
        settings.data_dir = data_dir.to_owned();
        settings.serving_engine(None)
    }

    fn start_server(&self, engine: Engine) -> Result<ProcessServer, Failure> {
        let server = match Server::start(engine.clone(), self.http()) {
            Err(StartError::Listen { source, .. }) if source.kind() == io::ErrorKind::AddrInUse && self.is_default("listen") => {
                let free = HttpConfig { listen: "127.0.0.1:0".into(), ..self.http() };
                Server::start(engine.clone(), free)
            }
            started => started,
        }?;
        let url = server.url();
        let base_url = self.public_url.clone().unwrap_or_else(|| url.clone());
        Ok(ProcessServer { url, base_url, stop: Box::pin(shut_down(server, engine)) })
    }
}

/// Stops accepting, lets requests finish, and closes the engine with a last checkpoint.
pub(crate) async fn shut_down(server: RunningServer, engine: Engine) {
    tracing::info!("stopping");
    engine.admission.begin_drain();
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
