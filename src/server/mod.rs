//! The HTTP server around an engine. `headcount serve`, embedding programs and tests use the same
//! one.

mod connection;
#[cfg(test)]
mod nodes_tests;
mod starting;
mod thread;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_http::error::DispatchError;
use actix_http::{HttpService, Request};
use actix_server::ServerBuilder;
use actix_service::{ServiceFactoryExt, fn_service};
use actix_web::HttpResponse;
use actix_web::http::ConnectionType;
use actix_web::http::header::HeaderName;
use actix_web::rt::net::TcpStream;
use headcount_actors::{Engine, Progress, thread_name};
use headcount_api::app::AppState;
use headcount_api::call::Worker;
use headcount_api::dispatcher::Dispatcher;
pub use headcount_api::extra_paths::ExtraPaths;
pub use headcount_api::node_tls::NodeTls;
use headcount_api::open_files;
use headcount_api::request_metrics::RequestMetrics;
use headcount_api::respond::kept::KeptAnswers;
use headcount_api::respond::sent::sent;
use headcount_api::respond::slices::LargeAnswers;
use headcount_api::turns::WaitingQuestions;
use headcount_common::PARTITIONS;
use headcount_control::OperatorToken;
use ipnet::IpNet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::http::{endpoints, features};
use connection::{BoundedConnection, HeadBytes, LastRequest, Socket};
use starting::StartingServer;
use thread::ServerThread;

/// How long the head of a request may take to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may wait for its next request.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// How long a closed connection discards the bytes that the client still sends.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How many connections may wait to be accepted.
const BACKLOG: i32 = 4_096;
/// How many unsent bytes of a connection the kernel buffers.
#[cfg(any(target_os = "linux", target_os = "android"))]
const MAX_UNSENT: u32 = 64 << 10;
/// How long requests in flight may take when the server stops, in seconds.
const SHUTDOWN_TIMEOUT_S: u64 = 5;

/// The configuration of the HTTP server.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// `ADDRESS:PORT`; port 0 picks a free port.
    pub listen: String,
    /// The number of threads that serve requests.
    pub workers: usize,
    /// The proxies whose `X-Forwarded-For` and `geo_header` are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// The header in which these proxies report the visitor's country, as an ISO 3166-1 alpha-2
    /// code.
    pub geo_header: Option<HeaderName>,
    /// The origins whose pages may use the API with a token, as browsers send them.
    pub query_origins: Vec<String>,
    /// The server's URL for browsers and SDKs, without a trailing slash; `None`: the host of each
    /// request.
    pub public_url: Option<String>,
    /// Further names of `/hc.js` and `/i`.
    pub extra_paths: ExtraPaths,
    /// Where other nodes reach the server by TLS.
    pub nodes: Option<NodeListener>,
}

/// An address at which only other nodes connect, by TLS.
#[derive(Debug, Clone)]
pub struct NodeListener {
    /// `ADDRESS:PORT`; port 0 picks a free port.
    pub listen: String,
    /// The certificates.
    pub tls: NodeTls,
}

impl HttpConfig {
    /// The default configuration for `listen`.
    pub fn new(listen: impl Into<String>) -> Self {
        let workers = Self::default_workers();
        Self {
            listen: listen.into(),
            workers,
            trusted_proxies: Vec::new(),
            geo_header: None,
            query_origins: Vec::new(),
            public_url: None,
            extra_paths: ExtraPaths::default(),
            nodes: None,
        }
    }

    /// Half the cores, at least one. The other half is for the engine (the log and the shards).
    pub fn default_workers() -> usize {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (cores / 2).max(1)
    }
}

/// The reason why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address can't be listened on.
    #[error("can't listen on {listen}: {source}")]
    Listen {
        /// The address.
        listen: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// `script_path` or `collect_path` is in use.
    #[error("script_path and collect_path must differ from each other and from every path of the API: {0} is taken")]
    Path(String),
    /// The server's threads can't be started.
    #[error("the server could not start: {0}")]
    Start(#[from] io::Error),
}

/// Starts servers.
#[derive(Debug, Clone, Copy)]
pub struct Server;

/// A server that runs on its own threads. Dropping the value doesn't stop the server; call
/// [`RunningServer::stop`].
#[derive(Debug)]
pub struct RunningServer {
    addresses: Vec<SocketAddr>,
    /// Those for other nodes, with TLS.
    node_addresses: Vec<SocketAddr>,
    thread: ServerThread,
}

impl Server {
    /// Serves `engine`. Returns once connections are accepted.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(engine: Engine, config: HttpConfig) -> Result<RunningServer, StartError> {
        Self::listen(&config)?.serve(engine, config)
    }

    /// Binds the addresses before the engine is open. Connections wait until [`Listening::serve`],
    /// unless `answer_meanwhile` answers them.
    ///
    /// # Errors
    /// Returns [`StartError::Listen`].
    pub fn listen(config: &HttpConfig) -> Result<Listening, StartError> {
        let of_nodes = config.nodes.as_ref().map_or_else(|| Ok(Vec::new()), |nodes| bind(&nodes.listen))?;
        Ok(Listening { listeners: bind(&config.listen)?, of_nodes })
    }
}

/// Binds all addresses of a name, or at least one.
fn bind(listen: &str) -> Result<Vec<TcpListener>, StartError> {
    let failed = |source| StartError::Listen { listen: listen.to_owned(), source };
    let (mut listeners, mut refused) = (Vec::new(), None);
    for address in listen.to_socket_addrs().map_err(failed)? {
        match TcpListener::bind(address).and_then(prepared) {
            Ok(listener) => listeners.push(listener),
            Err(error) => refused = Some(error),
        }
    }
    if listeners.is_empty() {
        return Err(failed(refused.unwrap_or_else(|| io::Error::other("the name has no address"))));
    }
    Ok(listeners)
}

/// Raises the backlog of a listener above the standard library's, and bounds the kernel's buffer
/// for slow clients: a stream then sends them current figures, instead of figures from minutes ago.
fn prepared(listener: TcpListener) -> io::Result<TcpListener> {
    rustix::net::listen(&listener, BACKLOG)?;
    // Connections inherit it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket2::SockRef::from(&listener).set_tcp_notsent_lowat(MAX_UNSENT)?;
    Ok(listener)
}

/// A bound address of a server that has not started.
#[derive(Debug)]
pub struct Listening {
    listeners: Vec<TcpListener>,
    /// Those for other nodes, with TLS.
    of_nodes: Vec<TcpListener>,
}

impl Listening {
    /// Answers until the server starts: `/healthz` with success, everything else with 503 and the
    /// progress.
    pub(crate) fn answer_meanwhile(&self, progress: Arc<Progress>) -> Result<StartingServer, StartError> {
        let listeners = self.listeners.iter().map(TcpListener::try_clone).collect::<io::Result<_>>()?;
        Ok(StartingServer::start(listeners, progress)?)
    }

    /// Serves `engine`. Ignores the addresses in `config`.
    ///
    /// # Errors
    /// Returns [`StartError::Start`], [`StartError::Path`].
    pub fn serve(self, engine: Engine, config: HttpConfig) -> Result<RunningServer, StartError> {
        if let Some(taken) = endpoints::taken(&config.extra_paths) {
            return Err(StartError::Path(taken.to_owned()));
        }
        let addresses = |listeners: &[TcpListener]| listeners.iter().map(TcpListener::local_addr).collect::<io::Result<_>>();
        let (addresses, node_addresses) = (addresses(&self.listeners)?, addresses(&self.of_nodes)?);
        let thread = ServerThread::start("http", move || build(engine, config, self))?;
        Ok(RunningServer { addresses, node_addresses, thread })
    }
}

impl RunningServer {
    /// The addresses on which the server listens, with the real port. A host name may have several.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The first address as a URL that works on this machine, without a trailing slash.
    pub fn url(&self) -> String {
        let Some(mut address) = self.addresses.first().copied() else { return String::new() };
        if address.ip().is_unspecified() {
            let loopback = if address.is_ipv4() { IpAddr::from(Ipv4Addr::LOCALHOST) } else { IpAddr::from(Ipv6Addr::LOCALHOST) };
            address.set_ip(loopback);
        }
        format!("http://{address}")
    }

    /// Returns the URL at which other nodes reach the server; `None` if it listens on all
    /// addresses, none of which another machine could connect to.
    #[must_use]
    pub fn node_url(&self) -> Option<String> {
        reachable(&self.addresses, &self.node_addresses)
    }

    /// Stops accepting connections, lets requests in flight finish, and ends. The engine stays
    /// open.
    ///
    /// # Errors
    /// A worker failed.
    pub async fn stop(self) -> io::Result<()> {
        self.thread.stop().await
    }
}

fn reachable(addresses: &[SocketAddr], of_nodes: &[SocketAddr]) -> Option<String> {
    let of_nodes = of_nodes.first().map(|address| ("https", address));
    let (scheme, address) = of_nodes.or_else(|| addresses.first().map(|address| ("http", address)))?;
    (!address.ip().is_unspecified()).then(|| format!("{scheme}://{address}"))
}

/// Builds the server on the thread that runs it: workers become arbiters of that thread's actix
/// system.
fn build(engine: Engine, config: HttpConfig, Listening { listeners, of_nodes }: Listening) -> io::Result<actix_web::dev::Server> {
    let HttpConfig { listen: _, workers, trusted_proxies, geo_header, query_origins, public_url, extra_paths, nodes } = config;
    let node_tls = nodes.map(|nodes| nodes.tls);
    let workers = workers.max(1);
    if geo_header.is_some() && trusted_proxies.is_empty() {
        tracing::warn!("geo_header has no effect: trusted_proxies is empty");
    }
    let routes = Arc::new(endpoints::routes(&extra_paths)?);
    let state = Arc::new(AppState {
        engine: engine.clone(),
        trusted_proxies,
        geo_header,
        query_origins,
        public_url,
        extra_paths,
        node_tls: node_tls.clone(),
        kept: KeptAnswers::default(),
        waiting: WaitingQuestions::default(),
        request_metrics: RequestMetrics::new().map_err(io::Error::other)?,
        operator: operator_token(&engine),
        features: features::states(&engine),
        document: endpoints::json,
    });
    let (heads, answers) = (HeadBytes::default(), LargeAnswers::default());
    // Where partitions are on other nodes, each connection may need another one to a node.
    let is_whole = engine.owners().here().count() == usize::from(PARTITIONS);
    let connections = open_files::connections() / if is_whole { 1 } else { 2 };
    let mut builder = ServerBuilder::new()
        .workers(workers)
        .max_concurrent_connections((connections / workers).max(1))
        .shutdown_timeout(SHUTDOWN_TIMEOUT_S)
        .disable_signals();
    let stop = builder.graceful_shutdown_signal();
    let named = Arc::new(AtomicUsize::new(0));
    let of_nodes = of_nodes.into_iter().map(|listener| (listener, node_tls.as_ref().map(NodeTls::acceptor)));
    let listeners = listeners.into_iter().map(|listener| (listener, None)).chain(of_nodes);
    for (place, (listener, acceptor)) in listeners.enumerate() {
        let (engine, state, heads, answers, stop) = (engine.clone(), state.clone(), heads.clone(), answers.clone(), stop.clone());
        let (named, routes) = (Arc::clone(&named), Arc::clone(&routes));
        builder = builder.listen("http", listener, move || {
            if place == 0 {
                thread_name::name_current(&format!("http-{}", named.fetch_add(1, Ordering::Relaxed)));
            }
            // Runs on each worker's own thread, so that answers wake only that thread.
            let worker = Worker::new(Arc::clone(&state), engine.ingest.local_tracker());
            let (dispatcher, answers) = (Rc::new(Dispatcher::new(worker, Arc::clone(&routes))), answers.clone());
            let answer = move |request| answer(Rc::clone(&dispatcher), request, answers.clone());
            let (heads, stop) = (heads.clone(), stop.clone());
            let acceptor = acceptor.clone();
            let connection = fn_service(move |socket: TcpStream| {
                let (heads, acceptor) = (heads.clone(), acceptor.clone());
                async move { accepted(socket, acceptor, heads).await.map_err(DispatchError::from) }
            });
            let http = HttpService::build()
                .graceful_shutdown_signal(move || {
                    let stop = stop.clone();
                    async move { stop.notified().await }
                })
                .keep_alive(KEEP_ALIVE)
                .client_request_timeout(HEAD_TIMEOUT)
                .client_disconnect_timeout(DISCONNECT_TIMEOUT)
                .on_connect_ext(BoundedConnection::share)
                .h1(fn_service(answer));
            connection.and_then(http)
        })?;
    }
    Ok(builder.run())
}

/// Begins a connection: by TLS if there is an acceptor. Returns it with the client's address.
async fn accepted(
    socket: TcpStream,
    acceptor: Option<TlsAcceptor>,
    heads: HeadBytes,
) -> io::Result<(BoundedConnection, Option<SocketAddr>)> {
    socket.set_nodelay(true)?;
    let client = socket.peer_addr().ok();
    let begin = |socket| (BoundedConnection::new(socket, heads), client);
    let Some(acceptor) = acceptor else { return Ok(begin(Socket::Plain(socket))) };
    let failed = |error: io::Error| {
        tracing::debug!(%error, "a connection for nodes did not begin with TLS");
        error
    };
    let accepted = timeout(HEAD_TIMEOUT, acceptor.accept(socket)).await.map_err(|_| failed(io::ErrorKind::TimedOut.into()))?;
    let socket = accepted.map_err(failed)?;
    Ok(begin(Socket::Secured(Box::new(socket))))
}

/// Answers a request on a connection.
async fn answer(dispatcher: Rc<Dispatcher>, request: Request, answers: LargeAnswers) -> Result<HttpResponse, Infallible> {
    let (request, mut response) = dispatcher.answer(request).await;
    if request.conn_data().is_some_and(LastRequest::get) {
        response.head_mut().set_connection_type(ConnectionType::Close);
    }
    Ok(sent(&request, response, &answers).await)
}

/// Creates the operator token of this server. If it can't be written, such as on a full disk, the
/// server runs but refuses the operations that need it.
fn operator_token(engine: &Engine) -> Option<OperatorToken> {
    let failed =
        |error| tracing::error!(%error, "the operator token could not be written: /admin/* refuses all requests until a restart");
    OperatorToken::create(engine.data_dir()).map_err(failed).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_nodes_reach_an_address_of_this_machine_and_no_other() {
        let url = |address: &str, of_nodes: &[&str]| {
            let of_nodes: Vec<_> = of_nodes.iter().map(|address| address.parse().unwrap()).collect();
            reachable(&[address.parse().unwrap()], &of_nodes)
        };
        assert_eq!(url("10.0.1.1:8080", &[]).as_deref(), Some("http://10.0.1.1:8080"));
        assert_eq!(url("0.0.0.0:8080", &["10.0.1.1:8443"]).as_deref(), Some("https://10.0.1.1:8443"));
        for (address, of_nodes) in [("0.0.0.0:8080", vec![]), ("[::]:8080", vec![]), ("10.0.1.1:8080", vec!["0.0.0.0:8443"])] {
            assert_eq!(url(address, &of_nodes), None, "{address} {of_nodes:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_holds_little_for_clients_that_do_not_read() {
        let listener = prepared(TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (connection, _) = listener.accept().unwrap();
        assert_eq!(socket2::SockRef::from(&connection).tcp_notsent_lowat().unwrap(), MAX_UNSENT);
    }
}
