//! The background load: idle connections, readers of live streams, and dashboards that poll each
//! second.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle as TaskHandle, LocalSet, spawn_local};

use super::failure::Failure;
use super::http::Connection;
use super::measured::{Measurement, Recorder, RequestOutcome, Times};
use super::mix::RequestKind;
use super::process::runtime;
use super::visitor::{LoadVisitor, Target};

/// The interval between requests of an idle connection.
const IDLE_EVERY: Duration = Duration::from_secs(20);
/// The interval at which a dashboard asks its questions.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// The number of connections that open at the same time.
const OPENING: usize = 64;
/// How long opening a stream may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the final requests of idle connections may take.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// The interval at which a task checks whether the run is over.
const LOOK: Duration = Duration::from_millis(100);

/// The number of clients of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CrowdSizes {
    /// Idle connections.
    pub(crate) idle: u32,
    /// Readers of live streams.
    pub(crate) streams: u32,
    /// Dashboards.
    pub(crate) dashboards: u32,
}

/// The results of the idle connections.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct IdleCounts {
    /// How many to open.
    pub(crate) wanted: u32,
    /// How many opened and got an answer.
    pub(crate) opened: u32,
    /// How many stayed open until the end, and got one more answer.
    pub(crate) answered_at_end: u32,
}

impl IdleCounts {
    /// Formats the results as text.
    pub(crate) fn describe(&self) -> String {
        format!(
            "idle  {} of {} connections opened, {} still open and answered at the end\n",
            self.opened, self.wanted, self.answered_at_end
        )
    }
}

/// The results of the readers of live streams.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct StreamCounts {
    /// How many to open.
    pub(crate) wanted: u32,
    /// How many opened.
    pub(crate) opened: u32,
    /// Refusals by the server's message.
    pub(crate) refused: BTreeMap<String, u64>,
    /// How many ended before the run.
    pub(crate) ended_early: u32,
    /// Frames, including keep-alives.
    pub(crate) frames: u64,
    /// Bytes of all streams.
    pub(crate) bytes: u64,
}

impl StreamCounts {
    /// Formats the results as text.
    pub(crate) fn describe(&self) -> String {
        let refused: Vec<String> = self.refused.iter().map(|(what, count)| format!(", refused {count} × {what}")).collect();
        format!(
            "streams  {} of {} opened{}, {} ended early; {} frames, {} bytes\n",
            self.opened,
            self.wanted,
            refused.concat(),
            self.ended_early,
            self.frames,
            self.bytes
        )
    }
}

/// The results of the crowd.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CrowdCounts {
    /// The idle connections.
    pub(crate) idle: Option<IdleCounts>,
    /// The readers of live streams.
    pub(crate) streams: Option<StreamCounts>,
}

/// The shared state of the thread's tasks.
struct Shared {
    target: Arc<Target>,
    address: SocketAddr,
    measurement: OnceLock<Arc<Measurement>>,
    over_since: OnceLock<Instant>,
    idle: Mutex<IdleCounts>,
    streams: Mutex<StreamCounts>,
}

/// The thread of the crowd.
pub(crate) struct Crowd {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(), Failure>>,
    sizes: CrowdSizes,
}

/// The context of a task.
#[derive(Clone)]
struct CrowdPart {
    shared: Arc<Shared>,
    opening: Rc<Semaphore>,
    opened: Rc<Cell<u32>>,
    recorder: Rc<RefCell<Option<Recorder>>>,
}

impl Crowd {
    /// Opens all connections, and returns when each is open or refused.
    pub(crate) fn gather(sizes: CrowdSizes, target: &Arc<Target>, address: SocketAddr) -> Result<Option<Self>, Failure> {
        if sizes == CrowdSizes::default() {
            return Ok(None);
        }
        let shared = Arc::new(Shared {
            target: Arc::clone(target),
            address,
            measurement: OnceLock::new(),
            over_since: OnceLock::new(),
            idle: Mutex::new(IdleCounts { wanted: sizes.idle, ..IdleCounts::default() }),
            streams: Mutex::new(StreamCounts { wanted: sizes.streams, ..StreamCounts::default() }),
        });
        let (ready, is_ready) = mpsc::channel();
        let mine = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("load-crowd".into()).spawn(move || run(sizes, mine, &ready))?;
        // An error means that the thread has ended; `end` reports its failure.
        let _ = is_ready.recv();
        Ok(Some(Self { shared, thread, sizes }))
    }

    /// Begins the measurement.
    pub(crate) fn measure(&self, measurement: &Arc<Measurement>) {
        let _ = self.shared.measurement.set(Arc::clone(measurement));
    }

    /// Ends all tasks, and returns the results of the idle connections and the streams, if there
    /// are any.
    pub(crate) fn end(self) -> Result<CrowdCounts, Failure> {
        let _ = self.shared.over_since.set(Instant::now());
        self.thread.join().map_err(|_| Failure("the thread of the crowd failed".into()))??;
        let streams = self.shared.streams.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(CrowdCounts { idle: (self.sizes.idle > 0).then_some(idle), streams: (self.sizes.streams > 0).then_some(streams) })
    }
}

fn run(sizes: CrowdSizes, shared: Arc<Shared>, ready: &mpsc::Sender<()>) -> Result<(), Failure> {
    let local = LocalSet::new();
    local.block_on(&runtime()?, async move {
        let place =
            CrowdPart { shared, opening: Rc::new(Semaphore::new(OPENING)), opened: Rc::default(), recorder: Rc::default() };
        let mut tasks: Vec<TaskHandle<()>> = Vec::new();
        tasks.extend((0..sizes.idle).map(|_| spawn_local(place.clone().idle())));
        tasks.extend((0..sizes.dashboards).map(|at| spawn_local(place.clone().dashboard(at, sizes.dashboards))));
        tasks.extend((0..sizes.streams).map(|at| spawn_local(place.clone().stream(at))));
        let all = sizes.idle + sizes.dashboards + sizes.streams;
        while place.opened.get() < all {
            tokio::time::sleep(LOOK).await;
        }
        let _ = ready.send(());
        for task in tasks {
            task.await.map_err(|_| Failure("a connection of the crowd failed".into()))?;
        }
        if let Some(recorder) = place.recorder.borrow_mut().as_mut() {
            recorder.flush();
        }
        Ok(())
    })
}

impl CrowdPart {
    fn is_over(&self) -> bool {
        self.shared.over_since.get().is_some()
    }

    /// Waits until `due`. Returns `false` if the run is over before.
    async fn wait_until(&self, due: Instant) -> bool {
        loop {
            if self.is_over() {
                return false;
            }
            let now = Instant::now();
            if now >= due {
                return true;
            }
            tokio::time::sleep((due - now).min(LOOK)).await;
        }
    }

    fn record(&self, kind: RequestKind, due: Instant, outcome: &std::io::Result<RequestOutcome>, body: &[u8]) {
        let Some(measurement) = self.shared.measurement.get() else { return };
        let mut recorder = self.recorder.borrow_mut();
        let recorder = recorder.get_or_insert_with(|| Recorder::new(Arc::clone(measurement)));
        recorder.record(kind, Times { due, answered: Instant::now() }, outcome, body);
    }

    /// A connection that is idle most of the time. It sends one more request at the end.
    async fn idle(self) {
        let mut connection = Connection::new(self.shared.address);
        let permit = self.opening.acquire().await.ok();
        let mut due = Instant::now();
        let note = |change: &dyn Fn(&mut IdleCounts)| {
            change(&mut self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner));
        };
        let mut is_same = self.is_answered(&mut connection, due).await;
        if is_same {
            note(&|counts| counts.opened += 1);
        }
        drop(permit);
        self.opened.set(self.opened.get() + 1);
        loop {
            due += IDLE_EVERY;
            let goes_on = self.wait_until(due).await;
            let permit = if goes_on { None } else { self.opening.acquire().await.ok() };
            // A server that hangs must not delay the end by the timeouts of all connections.
            if self.shared.over_since.get().is_some_and(|since| since.elapsed() > END_TIMEOUT) {
                return;
            }
            // A failed connection reopens, which proves nothing about idle ones.
            is_same &= connection.is_open();
            is_same &= self.is_answered(&mut connection, if goes_on { due } else { Instant::now() }).await;
            drop(permit);
            if !goes_on {
                break;
            }
        }
        if is_same {
            note(&|counts| counts.answered_at_end += 1);
        }
    }

    /// Sends a request on an idle connection.
    async fn is_answered(&self, connection: &mut Connection, due: Instant) -> bool {
        let request = format!("GET {}/healthz HTTP/1.1\r\nhost: {}\r\n\r\n", self.shared.target.base, self.shared.target.host);
        let answer = connection.send(request.as_bytes()).await;
        let outcome =
            answer.as_ref().map(|answer| RequestOutcome { status: answer.status, is_expected: answer.status == 200, events: 0 });
        let outcome = outcome.map_err(|error| std::io::Error::new(error.kind(), error.to_string()));
        let body = answer.as_ref().map_or(&[][..], |answer| connection.body(*answer));
        self.record(RequestKind::Idle, due, &outcome, body);
        outcome.is_ok_and(|outcome| outcome.is_expected)
    }

    /// A dashboard. Each second it asks all of its questions, one after the other on one
    /// connection, as a page does.
    async fn dashboard(self, at: u32, of: u32) {
        let mut visitor = LoadVisitor::new(Arc::clone(&self.shared.target), u64::from(at));
        let mut connection = Connection::new(self.shared.address);
        let mut request = Vec::new();
        let mut due = Instant::now() + POLL_EVERY * at / of.max(1);
        let mut permit = self.opening.acquire().await.ok();
        loop {
            for question in 0..LoadVisitor::questions() {
                let sent_at = if question == 0 { due } else { Instant::now() };
                let exchange = visitor.write_question(RequestKind::Dashboard, &mut request);
                let answer = connection.send(&request).await;
                let outcome = visitor.read(exchange, &answer, &connection);
                let body = answer.as_ref().map_or(&[][..], |answer| connection.body(*answer));
                self.record(RequestKind::Dashboard, sent_at, &outcome, body);
            }
            if permit.take().is_some() {
                self.opened.set(self.opened.get() + 1);
            }
            due += POLL_EVERY;
            if !self.wait_until(due).await {
                return;
            }
        }
    }

    /// A reader of the live stream of a project.
    async fn stream(self, at: u32) {
        let permit = self.opening.acquire().await.ok();
        let opened = tokio::time::timeout(OPEN_TIMEOUT, self.open_stream(at)).await;
        drop(permit);
        self.opened.set(self.opened.get() + 1);
        let note = |change: &dyn Fn(&mut StreamCounts)| {
            change(&mut self.shared.streams.lock().unwrap_or_else(PoisonError::into_inner));
        };
        let mut stream = match opened {
            Ok(Ok(stream)) => stream,
            Ok(Err(why)) => return note(&|counts| *counts.refused.entry(why.clone()).or_default() += 1),
            Err(_) => return note(&|counts| *counts.refused.entry("no answer".into()).or_default() += 1),
        };
        note(&|counts| counts.opened += 1);
        let (mut buffer, mut before, mut frames, mut bytes) = (vec![0; 4 << 10], 0u8, 0, 0);
        while !self.is_over() {
            match tokio::time::timeout(LOOK, stream.read(&mut buffer)).await {
                Err(_) => {}
                Ok(Ok(0) | Err(_)) => {
                    note(&|counts| counts.ended_early += 1);
                    break;
                }
                Ok(Ok(count)) => {
                    bytes += count as u64;
                    // A frame ends with an empty line. Lines with chunk lengths have a carriage
                    // return.
                    for byte in buffer.iter().take(count) {
                        frames += u64::from(before == b'\n' && *byte == b'\n');
                        before = *byte;
                    }
                }
            }
        }
        note(&|counts| {
            counts.frames += frames;
            counts.bytes += bytes;
        });
    }

    /// Opens a stream. Fails with the server's message.
    async fn open_stream(&self, at: u32) -> Result<TcpStream, String> {
        let target = &self.shared.target;
        let of = at as usize % target.destinations.len().max(1);
        let destination = target.destinations.get(of).ok_or("no project")?;
        let project = destination.project.as_deref().unwrap_or_default();
        let request = format!(
            "GET {}/projects/{project}/live HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
            target.base, target.host, destination.token
        );
        let mut stream = TcpStream::connect(self.shared.address).await.map_err(|error| error.to_string())?;
        stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut line = Vec::new();
        while !line.contains(&b'\n') {
            let byte = stream.read_u8().await.map_err(|error| error.to_string())?;
            line.push(byte);
        }
        let status = String::from_utf8_lossy(&line).split_whitespace().nth(1).unwrap_or_default().to_owned();
        if status == "200" { Ok(stream) } else { Err(status) }
    }
}
