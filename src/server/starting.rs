//! The server that runs while the engine opens. It reports that the process is alive, and the
//! progress.
//!
//! It shares its sockets with the real server, so no connection is refused in between. It ends
//! before the real server is announced.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::{KeepAlive, Method};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use headcount_actors::Progress;
use headcount_api::middleware;
use headcount_api::respond::error::ApiError;

use crate::http::resources::health;
use crate::server::thread::ServerThread;

/// The maximum number of connections. The opening engine needs the other files.
const MAX_CONNECTIONS: usize = 256;
/// How long a request may take to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(2);
/// How long requests in flight may take once the engine is open, in seconds.
const SHUTDOWN_TIMEOUT_S: u64 = 1;

/// The server during a start.
#[derive(Debug)]
pub(crate) struct StartingServer(ServerThread);

impl StartingServer {
    /// Accepts connections from these sockets until it is stopped.
    ///
    /// # Errors
    /// Its thread can't be started.
    pub(crate) fn start(listeners: Vec<TcpListener>, progress: Arc<Progress>) -> io::Result<Self> {
        ServerThread::start("http-starting", move || build(listeners, progress)).map(Self)
    }

    /// Accepts no more connections, answers the requests in progress, and ends.
    pub(crate) async fn stop(self) {
        if let Err(error) = self.0.stop().await {
            tracing::warn!(%error, "the server that reports the progress of the start did not stop cleanly");
        }
    }
}

fn build(listeners: Vec<TcpListener>, progress: Arc<Progress>) -> io::Result<actix_web::dev::Server> {
    let progress = web::Data::from(progress);
    let application =
        move || App::new().app_data(progress.clone()).wrap(from_fn(middleware::handle)).default_service(web::to(answer));
    let mut server = HttpServer::new(application)
        .workers(1)
        .max_connections(MAX_CONNECTIONS)
        .client_request_timeout(HEAD_TIMEOUT)
        .keep_alive(KeepAlive::Disabled)
        .shutdown_timeout(SHUTDOWN_TIMEOUT_S)
        .disable_signals();
    for listener in listeners {
        server = server.listen(listener)?;
    }
    Ok(server.run())
}

async fn answer(progress: web::Data<Progress>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    match (request.path(), request.method()) {
        ("/healthz", &Method::GET | &Method::HEAD) => return health::alive(&request),
        ("/healthz", _) => return Err(ApiError::method_not_allowed(&[Method::GET, Method::HEAD])),
        _ => {}
    }
    Err(ApiError::overloaded(match progress.replayed() {
        None => "the server is starting".to_owned(),
        Some((reached, end)) => format!("the server is starting: it has replayed the log up to position {reached} of {end}"),
    }))
}
