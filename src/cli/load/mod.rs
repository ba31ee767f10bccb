//! `headcount load`: a load generator, cheap enough to run beside what it measures.

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
use events::{Bodies, Content};
use http::Connection;
use pace::{Pace, Turn};
use report::{LoadReport, Measured};

/// The flags of `load`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LoadArgs {
    /// The server's address; with --raw, all of the URL that is posted to
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// The public key of the project that the events are for
    #[arg(long, value_name = "KEY", required_unless_present = "raw")]
    key: Option<String>,
    /// Requests a second, whether or not answers come [default: each connection asks again once it was answered]
    #[arg(long, value_name = "RATE")]
    rate: Option<f64>,
    /// How many connections
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// How long it is measured
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// How long it runs before that
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    warm_up: Duration,
    /// Events a request, sent to /i/batch [default: one, to /i]
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=5_000))]
    batch: u32,
    /// How many different users there are
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    users: u64,
    /// How many threads send
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// Post to the URL as it is, to compare with other servers
    #[arg(long)]
    raw: bool,
    /// With --raw: a file with the body to be posted [default: an event]
    #[arg(long, value_name = "FILE", requires = "raw")]
    body: Option<PathBuf>,
    /// The status that is expected
    #[arg(long, default_value_t = 202)]
    expect: u16,
    /// An API token: afterwards the server is asked whether it counted everything. For a project that nobody else uses
    #[arg(long, value_name = "TOKEN", env = "HEADCOUNT_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// The project of the key, where the token can't list projects
    #[arg(long, value_name = "PROJECT", requires = "token")]
    project: Option<ProjectId>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Where and how requests are posted.
struct Target {
    address: SocketAddr,
    head: Vec<u8>,
    bodies: Bodies,
    fixed_body: Option<Vec<u8>>,
    events_a_request: u64,
    expect: u16,
}

/// What was answered as expected since the beginning, warm-up included.
struct Accepted {
    orders: AtomicU64,
    users: Box<[AtomicU64]>,
}

/// Runs the command.
pub(crate) fn run(args: &LoadArgs) -> Result<ExitCode, Failure> {
    if args.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 10_000_000.0)) {
        return Err(Failure("--rate must be a positive number of requests a second".into()));
    }
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
    let unanswered = !measured.failures.is_empty();
    let any_as_expected = measured.by_status.contains_key(&args.expect);
    let mut report = LoadReport::new(measured, lasting, args.connections as usize, args.rate);
    if let Some((client, project, before)) = check {
        let after = verify::counts(&client, project)?;
        report.verified = Some(before.compare(after, accepted.orders.load(Ordering::Relaxed), accepted.users(), unanswered));
    }
    print(args.json, &report, || report.describe())?;
    let agrees = report.verified.is_none_or(|verified| verified.agrees);
    if !any_as_expected {
        return Err(Failure(format!("no request was answered {}", args.expect)));
    }
    Ok(if agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs all threads to their end. The warm-up is one run with the measured one: connections stay open.
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

/// One thread: its connections take turns until time is up, and wait for their last answers.
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
                    let answer = connection.ask(&request).await;
                    let latency = turn.due.elapsed();
                    let as_expected = answer.as_ref().is_ok_and(|answer| answer.status == target.expect);
                    if as_expected && target.counts_all(connection.body_of(&answer)) {
                        accepted.note(&target.bodies, turn, content, target.events_a_request);
                    }
                    if turn.due >= measured_from {
                        note(&mut measured.borrow_mut(), &answer, latency, as_expected, content);
                    }
                    if answer.is_err() {
                        // A server that is not there is not asked a million times a second.
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
    content: Content,
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
        let rest = args.url.strip_prefix("http://").ok_or_else(wrong)?;
        let (host, path) = rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
        let with_port = if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
            host.to_owned()
        } else {
            format!("{host}:80")
        };
        let address = with_port.to_socket_addrs().ok().and_then(|mut addresses| addresses.next()).ok_or_else(wrong)?;
        let path = match (args.raw, args.batch) {
            (true, _) if path.is_empty() => "/".to_owned(),
            (true, _) => path,
            (false, 0) => format!("{}/i", path.trim_end_matches('/')),
            (false, _) => format!("{}/i/batch", path.trim_end_matches('/')),
        };
        let key = args.key.as_deref().unwrap_or_default();
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong());
        }
        let key = if key.is_empty() { String::new() } else { format!("x-service-pk: {key}\r\n") };
        let head = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n{key}content-length: ");
        let fixed_body = args.body.as_deref().map(std::fs::read).transpose();
        let fixed_body = fixed_body.map_err(|error| Failure::new("--body", error))?;
        let batch = args.batch as usize;
        Ok(Self {
            address,
            head: head.into_bytes(),
            // Of this run only, so that it can be told from those before.
            bodies: Bodies::new(&format!("load{:x}", since_epoch().as_millis()), args.users, batch),
            fixed_body,
            events_a_request: u64::from(args.batch.max(1)),
            expect: args.expect,
        })
    }

    /// Writes the request of this number.
    fn write(&self, number: u64, request: &mut Vec<u8>) -> Content {
        // The length comes before what it is of: three blanks more are cheaper than a second buffer.
        const LENGTH_DIGITS: usize = 8;
        request.clear();
        request.extend_from_slice(&self.head);
        let length_at = request.len();
        request.extend_from_slice(b"00000000\r\n\r\n");
        let body_at = request.len();
        let content = match &self.fixed_body {
            Some(body) => {
                request.extend_from_slice(body);
                Content { events: 1, orders: 0 }
            }
            None => self.bodies.write(number * self.events_a_request, request),
        };
        let mut rest = request.len() - body_at;
        for digit in request[length_at..length_at + LENGTH_DIGITS].iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
        content
    }

    /// Whether the answer says that all of the request was recorded.
    fn counts_all(&self, body: &[u8]) -> bool {
        let expected: &[u8] = if self.events_a_request > 1 { b"\"dropped\":0,\"errors\":[]" } else { b"\"recorded\"" };
        memchr::memmem::find(body, expected).is_some()
    }
}

impl Accepted {
    fn new(users: u64) -> Self {
        let words = usize::try_from(users / 64 + 1).unwrap_or(1);
        Self { orders: AtomicU64::new(0), users: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    fn note(&self, bodies: &Bodies, turn: Turn, content: Content, events_a_request: u64) {
        self.orders.fetch_add(content.orders, Ordering::Relaxed);
        for offset in 0..events_a_request {
            let user = bodies.user(turn.number * events_a_request + offset);
            if let Some(word) = usize::try_from(user / 64).ok().and_then(|at| self.users.get(at)) {
                word.fetch_or(1 << (user % 64), Ordering::Relaxed);
            }
        }
    }

    fn users(&self) -> u64 {
        self.users.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }
}
