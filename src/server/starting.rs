//! The server that runs while the engine opens. It reports that the process is alive, and the
//! progress.
//!
//! It shares its sockets with the real server, so no connection is refused in between. It ends
//! before the real server is announced.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use actix_service::fn_service;
use actix_web::http::{KeepAlive, Method};
use actix_web::{HttpResponse, HttpServer};
use headcount_actors::Progress;
use headcount_api::request::HttpRequest;
use headcount_api::request_id::REQUEST_ID;
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
    let service = move || {
        let progress = Arc::clone(&progress);
        fn_service(move |request| ready(Ok::<_, Infallible>(answer(&progress, &HttpRequest::from(request)))))
    };
    let mut server = HttpServer::new(service)
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

fn answer(progress: &Progress, request: &HttpRequest) -> HttpResponse {
    let alive = match (request.path(), request.method()) {
        ("/healthz", &Method::GET | &Method::HEAD) => health::alive(request),
        ("/healthz", _) => Err(ApiError::method_not_allowed(&[Method::GET, Method::HEAD])),
        _ => Err(ApiError::overloaded(match progress.replayed() {
            None => "the server is starting".to_owned(),
            Some((reached, end)) => format!("the server is starting: it has replayed the log up to position {reached} of {end}"),
        })),
    };
    let id = request.id();
    let mut response = alive.unwrap_or_else(|error| error.respond(id.as_str()));
    response.headers_mut().insert(REQUEST_ID, id.0.clone());
    response
}
