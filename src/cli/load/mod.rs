//! `headcount load`: a load generator, cheap enough to run on the same machine as the server.

mod events;
mod http;
mod pace;
mod report;
mod verify;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use headcount_domain::ids::ProjectId;

use super::client::Client;
use super::failure::Failure;
use super::flags::duration;
use super::output::print;
use super::runtime::{runtime, since_epoch};
use events::{Bodies, BodyContent};
use http::Connection;
use pace::{Pace, Turn};
use report::{LoadReport, Measured};

/// The flags of `load`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LoadArgs {
    /// URL of the server; with --raw, the full URL to post to
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Public key of the project that receives the events
    #[arg(long, value_name = "KEY", required_unless_present = "raw")]
    key: Option<String>,
    /// Requests per second, sent whether or not responses arrive [default: each connection waits for its response]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<f64>,
    /// Number of connections
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Duration of the measurement
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// Duration of the warm-up before it
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    warm_up: Duration,
    /// Events per request, sent to /i/batch; 0 sends single events to /i
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=5_000))]
    batch: u32,
    /// Number of distinct users
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    users: u64,
    /// Number of sending threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// Post to the URL as given, to compare with other servers
    #[arg(long)]
    raw: bool,
    /// File with the request body for --raw [default: an event]
    #[arg(long, value_name = "FILE", requires = "raw")]
    body: Option<PathBuf>,
    /// Expected status
    #[arg(long, value_name = "STATUS", default_value_t = 202)]
    expect: u16,
    /// API token, to verify afterwards that the server counted everything; nothing else may use the project
    #[arg(long, value_name = "TOKEN", env = "HEADCOUNT_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Project of the key, if the token can't list projects
    #[arg(long, value_name = "PROJECT", requires = "token")]
    project: Option<ProjectId>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn rate(text: &str) -> Result<f64, &'static str> {
    let is_allowed = |rate: &f64| *rate > 0.0 && *rate <= 10_000_000.0;
    text.parse().ok().filter(is_allowed).ok_or("must be a positive number of requests per second")
}

/// Where requests are posted, and what they contain.
struct Target {
    address: SocketAddr,
    head: Vec<u8>,
    bodies: Bodies,
    fixed_body: Option<Vec<u8>>,
    events_per_request: u64,
    expect: u16,
}

/// What was sent in requests with the expected status, including the warm-up.
struct Accepted {
    orders: AtomicU64,
    users: Box<[AtomicU64]>,
}

/// Runs the command.
pub(crate) fn run(args: &LoadArgs) -> Result<ExitCode, Failure> {
    let target = Arc::new(Target::new(args)?);
    let check = match &args.token {
        Some(token) if !args.raw => {
            let client = Client::with(&args.url, token)?;
            let project = match args.project {
                Some(project) => project,
                None => verify::project_of(&client, args.key.as_deref().unwrap_or_default())?,
            };
            let before = verify::counts(&client, project)?;
            Some((client, project, before))
        }
        _ => None,
    };
    let accepted = Arc::new(Accepted::new(args.users));
    let (measured, lasting) = measure(args, &target, &accepted)?;
    let any_unanswered = !measured.failures.is_empty();
    let any_as_expected = measured.by_status.contains_key(&args.expect);
    let mut report = LoadReport::new(measured, lasting, args.connections as usize, args.rate);
    if let Some((client, project, before)) = check {
        let after = verify::counts(&client, project)?;
        report.verified = Some(before.compare(after, accepted.orders.load(Ordering::Relaxed), accepted.users(), any_unanswered));
    }
    print(args.json, &report, || report.describe())?;
    let agrees = report.verified.is_none_or(|verified| verified.agrees);
    if !any_as_expected {
        return Err(Failure(format!("no request was answered {}", args.expect)));
    }
    Ok(if agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs all threads to their end. Connections stay open between warm-up and measurement.
fn measure(args: &LoadArgs, target: &Arc<Target>, accepted: &Arc<Accepted>) -> Result<(Measured, Duration), Failure> {
    let pace = Pace::start(args.rate, args.warm_up + args.duration)?;
    let measured_from = Instant::now() + args.warm_up;
    let threads = args.threads.min(args.connections);
    let mut handles = Vec::new();
    for thread in 0..threads {
        let connections = args.connections / threads + u32::from(thread < args.connections % threads);
        let (target, accepted, pace) = (Arc::clone(target), Arc::clone(accepted), pace.clone());
        let work = move || send(connections, &target, &accepted, &pace, measured_from);
        handles.push(std::thread::Builder::new().name(format!("load-{thread}")).spawn(work)?);
    }
    let mut measured = Measured::new();
    for handle in handles {
        measured.add(handle.join().map_err(|_| Failure("a sending thread failed".into()))??);
    }
    Ok((measured, args.duration.max(Instant::now().saturating_duration_since(measured_from))))
}

/// Runs one thread: its connections take turns until time is up, and wait for their last responses.
fn send(
    connections: u32,
    target: &Arc<Target>,
    accepted: &Arc<Accepted>,
    pace: &Pace,
    measured_from: Instant,
) -> Result<Measured, Failure> {
    let local = tokio::task::LocalSet::new();
    let measured = Rc::new(std::cell::RefCell::new(Measured::new()));
    let all = async {
        let mut tasks = Vec::new();
        for _ in 0..connections {
            let (target, accepted, pace, measured) =
                (Arc::clone(target), Arc::clone(accepted), pace.clone(), Rc::clone(&measured));
            tasks.push(tokio::task::spawn_local(async move {
                let mut connection = Connection::new(target.address);
                let mut request = Vec::with_capacity(4_096);
                while let Some(turn) = pace.turn().await {
                    let content = target.write(turn.number, &mut request);
                    let answer = connection.send(&request).await;
                    let latency = turn.due.elapsed();
                    let as_expected = answer.as_ref().is_ok_and(|answer| answer.status == target.expect);
                    if as_expected && target.counts_all(connection.body_of(&answer)) {
                        accepted.add(&target.bodies, turn, content, target.events_per_request);
                    }
                    if turn.due >= measured_from {
                        note(&mut measured.borrow_mut(), &answer, latency, as_expected, content);
                    }
                    if answer.is_err() {
                        // Do not spin while the server is unreachable.
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                }
            }));
        }
        for task in tasks {
            task.await.map_err(|_| Failure("a connection failed".into()))?;
        }
        Ok::<_, Failure>(())
    };
    local.block_on(&runtime()?, all)?;
    Ok(Rc::try_unwrap(measured).map_or_else(|_| Measured::new(), std::cell::RefCell::into_inner))
}

fn note(
    measured: &mut Measured,
    answer: &std::io::Result<http::Response>,
    latency: Duration,
    as_expected: bool,
    content: BodyContent,
) {
    match answer {
        Ok(answer) => {
            measured.answered(answer.status, latency);
            measured.events += if as_expected { content.events } else { 0 };
        }
        Err(error) => measured.failed(error),
    }
}

impl Connection {
    fn body_of(&self, answer: &std::io::Result<http::Response>) -> &[u8] {
        answer.as_ref().map_or(&[], |answer| self.body(*answer))
    }
}

impl Target {
    fn new(args: &LoadArgs) -> Result<Self, Failure> {
        let wrong = || Failure(format!("--url must be http://HOST[:PORT]/PATH, not {:?}", args.url));
        let uri: ureq::http::Uri = args.url.parse().map_err(|_| wrong())?;
        let host = uri.authority().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(wrong)?;
        let address = (host.host().trim_matches(['[', ']']), host.port_u16().unwrap_or(80));
        let address = address.to_socket_addrs().ok().and_then(|mut addresses| addresses.next()).ok_or_else(wrong)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = match (args.raw, args.batch) {
            (true, _) => path.to_owned(),
            (false, 0) => format!("{}/i", path.trim_end_matches('/')),
            (false, _) => format!("{}/i/batch", path.trim_end_matches('/')),
        };
        let key = args.key.as_deref().unwrap_or_default();
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure("--key must be a public key".into()));
        }
        let key = if key.is_empty() { String::new() } else { format!("x-service-pk: {key}\r\n") };
        let head = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n{key}content-length: ");
        let fixed_body = args.body.as_deref().map(std::fs::read).transpose();
        let fixed_body = fixed_body.map_err(|error| Failure::new("--body", error))?;
        let batch = args.batch as usize;
        Ok(Self {
            address,
            head: head.into_bytes(),
            // Users of this run are distinct from those of earlier runs.
            bodies: Bodies::new(&format!("load{:x}", since_epoch().as_millis()), args.users, batch),
            fixed_body,
            events_per_request: u64::from(args.batch.max(1)),
            expect: args.expect,
        })
    }

    /// Writes the request with this number.
    fn write(&self, number: u64, request: &mut Vec<u8>) -> BodyContent {
        // The length precedes the body: padding it with zeros is cheaper than a second buffer.
        const LENGTH_DIGITS: usize = 8;
        request.clear();
        request.extend_from_slice(&self.head);
        let length_at = request.len();
        request.extend_from_slice(b"00000000\r\n\r\n");
        let body_at = request.len();
        let content = match &self.fixed_body {
            Some(body) => {
                request.extend_from_slice(body);
                BodyContent { events: 1, orders: 0 }
            }
            None => self.bodies.write(number * self.events_per_request, request),
        };
        let mut rest = request.len() - body_at;
        for digit in request[length_at..length_at + LENGTH_DIGITS].iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
        content
    }

    /// Returns whether the response says that the whole request was recorded.
    fn counts_all(&self, body: &[u8]) -> bool {
        let expected: &[u8] = if self.events_per_request > 1 { b"\"dropped\":0,\"errors\":[]" } else { b"\"recorded\"" };
        memchr::memmem::find(body, expected).is_some()
    }
}

impl Accepted {
    fn new(users: u64) -> Self {
        let words = usize::try_from(users / 64 + 1).unwrap_or(1);
        Self { orders: AtomicU64::new(0), users: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    fn add(&self, bodies: &Bodies, turn: Turn, content: BodyContent, events_per_request: u64) {
        self.orders.fetch_add(content.orders, Ordering::Relaxed);
        for offset in 0..events_per_request {
            let user = bodies.user(turn.number * events_per_request + offset);
            if let Some(word) = usize::try_from(user / 64).ok().and_then(|at| self.users.get(at)) {
                word.fetch_or(1 << (user % 64), Ordering::Relaxed);
            }
        }
    }

    fn users(&self) -> u64 {
        self.users.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }
}
