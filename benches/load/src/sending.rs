//! The threads that send requests, and the supervision of a run.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::crowd::{Crowd, CrowdCounts};
use super::failure::Failure;
use super::http::Connection;
use super::measured::{Measured, Measurement, Recorder, Times, message_of};
use super::mix::RequestKind;
use super::pace::Pace;
use super::process::{runtime, stop_signal};
use super::progress::ProgressLine;
use super::usage::{ServerProcess, Usage};
use super::visitor::{LoadVisitor, Target};

/// The interval at which a run is checked.
const LOOK: Duration = Duration::from_millis(20);
/// How long all requests may fail before the run ends.
const GONE_AFTER: Duration = Duration::from_secs(5);
/// The pause of a connection after a request that had no answer, so that it doesn't spin while the
/// server is unreachable.
const PAUSE: Duration = Duration::from_millis(10);

/// The rate and duration of a run or a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendPlan {
    /// Requests per second; `None`: as fast as responses arrive.
    pub(crate) rate: Option<f64>,
    /// The number of connections.
    pub(crate) connections: u32,
    /// The number of threads.
    pub(crate) threads: u32,
    /// The duration of the warm-up.
    pub(crate) warm_up: Duration,
    /// The duration of the measurement.
    pub(crate) duration: Duration,
}

/// The result of a plan.
pub(crate) struct Sent {
    /// The measurements.
    pub(crate) measured: Measured,
    /// Their duration, until the last answers.
    pub(crate) lasting: Duration,
    /// The reason why it ended early, if it did.
    pub(crate) ended_early: Option<EarlyEnd>,
    /// The usage of the server's process at the beginning and the end.
    pub(crate) usage: Option<(Usage, Usage)>,
    /// The results of the background load.
    pub(crate) crowd: CrowdCounts,
}

/// The reason why sending ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlyEnd {
    /// A signal stopped the program.
    Stopped,
    /// The server no longer answers.
    ServerGone,
}

impl EarlyEnd {
    /// The reason as text.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Stopped => "stopped by a signal",
            Self::ServerGone => "the server no longer answers",
        }
    }
}

/// Sends requests.
pub(crate) struct Sender {
    /// The content of the requests.
    pub(crate) target: Arc<Target>,
    /// The address of the server.
    pub(crate) address: SocketAddr,
    /// The background load of the next plan.
    pub(crate) crowd: Option<Crowd>,
    /// The server's process.
    pub(crate) process: Option<ServerProcess>,
    /// The progress line.
    pub(crate) progress: ProgressLine,
    /// The number of the next request.
    pub(crate) next_number: u64,
}

/// The results that the threads share.
#[derive(Debug, Default)]
struct Signs {
    answered: AtomicBool,
    failed: AtomicBool,
}

/// The context of each thread.
#[derive(Clone)]
struct ThreadPart {
    target: Arc<Target>,
    address: SocketAddr,
    pace: Pace,
    measurement: Arc<Measurement>,
    signs: Arc<Signs>,
}

impl Sender {
    /// Sends one request of each kind of the mix, so that a mistake in a flag is one error instead
    /// of thousands.
    pub(crate) fn try_each_kind(&mut self) -> Result<(), Failure> {
        let kinds = RequestKind::ALL.into_iter().filter(|kind| self.target.mix.has(*kind));
        let mut visitor = LoadVisitor::new(Arc::clone(&self.target), 0);
        let mut connection = Connection::new(self.address);
        let mut request = Vec::new();
        let runtime = runtime()?;
        for kind in kinds {
            let exchange = visitor.write_kind(kind, self.next_number, &mut request);
            self.next_number += 1;
            let answer = runtime.block_on(connection.send(&request));
            let outcome = visitor.read(exchange, &answer, &connection);
            let outcome = outcome.map_err(|error| Failure(format!("no answer from http://{}: {error}", self.target.host)))?;
            // 429 may be the point of the run.
            if !outcome.is_expected && outcome.status != 429 {
                let body = answer.map(|answer| message_of(connection.body(answer))).unwrap_or_default();
                return Err(Failure(format!("the server answered {} to a {} request: {body}", outcome.status, kind.name())));
            }
        }
        Ok(())
    }

    /// Runs a plan. Connections stay open between warm-up and measurement.
    pub(crate) fn send(&mut self, plan: &SendPlan) -> Result<Sent, Failure> {
        let pace = Pace::start(plan.rate, plan.warm_up + plan.duration, self.next_number)?;
        let measurement = Measurement::new(Instant::now() + plan.warm_up);
        if let Some(crowd) = &self.crowd {
            crowd.measure(&measurement);
        }
        let signs = Arc::<Signs>::default();
        let part = ThreadPart {
            target: Arc::clone(&self.target),
            address: self.address,
            pace: pace.clone(),
            measurement: Arc::clone(&measurement),
            signs: Arc::clone(&signs),
        };
        let threads = plan.threads.min(plan.connections).max(1);
        let mut handles = Vec::new();
        for thread in 0..threads {
            let connections = plan.connections / threads + u32::from(thread < plan.connections % threads);
            let part = part.clone();
            let work = move || part.run(thread * 10_000, connections);
            handles.push(std::thread::Builder::new().name(format!("load-{thread}")).spawn(work)?);
        }
        let (ended_early, before) = self.watch(plan, &pace, &measurement, &signs, &handles)?;
        for handle in handles {
            handle.join().map_err(|_| Failure("a sending thread failed".into()))??;
        }
        self.progress.clear();
        let usage = before.zip(self.process.as_ref().and_then(ServerProcess::usage));
        self.next_number = pace.next_number();
        let elapsed = Instant::now().saturating_duration_since(measurement.from());
        let lasting = if ended_early.is_some() { elapsed } else { plan.duration.max(elapsed) };
        // The crowd adds its last measurements at its end.
        let crowd = self.crowd.take().map(Crowd::end).transpose()?.unwrap_or_default();
        Ok(Sent { measured: measurement.so_far(), lasting, ended_early, usage, crowd })
    }

    /// Waits for the threads and shows the progress. Ends the run if the server is gone or a signal
    /// arrives.
    fn watch(
        &mut self,
        plan: &SendPlan,
        pace: &Pace,
        measurement: &Measurement,
        signs: &Signs,
        handles: &[JoinHandle<Result<(), Failure>>],
    ) -> Result<(Option<EarlyEnd>, Option<Usage>), Failure> {
        runtime()?.block_on(async {
            let mut stop = std::pin::pin!(stop_signal()?);
            let began = Instant::now();
            let (mut shown, mut last_answer, mut end, mut before) = (0, began, None, None);
            while !handles.iter().all(JoinHandle::is_finished) {
                tokio::select! {
                    () = &mut stop, if end.is_none() => end = Some(EarlyEnd::Stopped),
                    () = tokio::time::sleep(LOOK) => {}
                }
                let now = Instant::now();
                let failed = signs.failed.swap(false, Ordering::Relaxed);
                if signs.answered.swap(false, Ordering::Relaxed) {
                    last_answer = now;
                } else if failed && end.is_none() && now.saturating_duration_since(last_answer) > GONE_AFTER {
                    end = Some(EarlyEnd::ServerGone);
                }
                if end.is_some() && !pace.is_stopped() {
                    pace.stop();
                }
                if before.is_none() && now >= measurement.from() {
                    before = self.process.as_ref().and_then(ServerProcess::usage);
                }
                // A little after each second, when the threads have added it.
                let since = now.saturating_duration_since(began).as_millis();
                let second = since.saturating_sub(200) / 1_000;
                if second > shown {
                    shown = second;
                    self.progress.show(measurement, plan.rate);
                }
            }
            if shown == 0 {
                self.progress.show(measurement, plan.rate);
            }
            Ok((end, before))
        })
    }
}

impl ThreadPart {
    /// Runs one thread: its connections take turns until time is up, and wait for their last
    /// responses.
    fn run(self, first: u32, connections: u32) -> Result<(), Failure> {
        let recorder = Rc::new(RefCell::new(Recorder::new(Arc::clone(&self.measurement))));
        let local = tokio::task::LocalSet::new();
        let all = async {
            let mut tasks = Vec::new();
            for number in 0..connections {
                tasks.push(tokio::task::spawn_local(self.clone().connection(u64::from(first + number), Rc::clone(&recorder))));
            }
            for task in tasks {
                task.await.map_err(|_| Failure("a connection failed".into()))?;
            }
            Ok::<_, Failure>(())
        };
        local.block_on(&runtime()?, all)?;
        recorder.borrow_mut().flush();
        Ok(())
    }

    async fn connection(self, number: u64, recorder: Rc<RefCell<Recorder>>) {
        let mut visitor = LoadVisitor::new(Arc::clone(&self.target), number);
        let mut connection = Connection::new(self.address);
        let mut request = Vec::with_capacity(4_096);
        while let Some(turn) = self.pace.turn().await {
            let exchange = visitor.write(turn.number, &mut request);
            let answer = connection.send(&request).await;
            let times = Times { due: turn.due, answered: Instant::now() };
            let outcome = visitor.read(exchange, &answer, &connection);
            let body = answer.as_ref().map_or(&[][..], |answer| connection.body(*answer));
            recorder.borrow_mut().record(exchange.kind, times, &outcome, body);
            let sign = if answer.is_ok() { &self.signs.answered } else { &self.signs.failed };
            if !sign.load(Ordering::Relaxed) {
                sign.store(true, Ordering::Relaxed);
            }
            if answer.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
