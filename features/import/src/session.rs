//! The main loop of an import, independent of the sink that records its events.

use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use headcount_api::command::Failure;
use headcount_domain::ProjectId;

use super::args::ImportArgs;
use super::events::{Events, Reading};
use super::journal::Journal;
use super::lines::{Opening, Place};
use super::pipeline::{self, Batch};
use super::report::{Reporter, Summary};

/// The idle time after which the journal is written.
const IDLE: Duration = Duration::from_millis(100);

/// The sink that records the events of an import.
pub(crate) trait EventSink {
    /// The result of preparing a batch.
    type Prepared: Send + 'static;

    /// Returns the number of threads that prepare batches, and their function.
    fn prepare(&self) -> (usize, impl Fn(&mut Events) -> Self::Prepared + Send + Sync + 'static);

    /// Whether other clients record events at the same time.
    const IS_SERVER: bool;

    /// Begins to record a batch.
    async fn submit(&mut self, batch: Batch<Self::Prepared>, session: &mut Session) -> Result<(), Failure>;

    /// Does idle work. The future may be dropped when the next batch arrives.
    async fn idle(&mut self, session: &mut Session) -> Result<(), Failure>;

    /// Waits for all batches in flight.
    async fn finish(&mut self, session: &mut Session) -> Result<(), Failure>;
}

/// The progress of an import, for the next run and for the report.
pub(crate) struct Session {
    pub(crate) journal: Option<Journal>,
    pub(crate) reporter: Reporter,
}

/// Writes the journal after a short idle time. If the journal is complete, waits for ever.
///
/// # Errors
/// The journal can't be written.
pub(crate) async fn save_when_idle(session: &mut Session) -> Result<(), Failure> {
    match &mut session.journal {
        Some(journal) if journal.is_unsaved() => {
            tokio::time::sleep(IDLE).await;
            Ok(journal.save()?)
        }
        _ => std::future::pending().await,
    }
}

/// Imports the file, and its successors of the same name if it is followed.
pub(crate) async fn import<D: EventSink>(
    args: &ImportArgs,
    sink: &mut D,
    data_dir: Option<&Path>,
    project: ProjectId,
    stop: impl Future<Output = ()>,
) -> Result<Summary, Failure> {
    let (mut reporter, mut again, mut stop) = (args.reporter()?, args.again, std::pin::pin!(stop));
    loop {
        let (from, journal) = args.resume(data_dir, project, again)?;
        let reading = args.reading(project, (from, journal.as_ref()), D::IS_SERVER)?;
        let opening = args.opening(from, &mut reporter);
        let mut session = Session { journal, reporter };
        let reached = run(sink, opening, reading, &mut session, stop.as_mut()).await;
        let ended = reached.and_then(|is_end| args.file_ended(is_end, session.journal.as_mut()));
        reporter = session.reporter;
        match ended.transpose() {
            None => again = false,
            Some(finished) => {
                let summary = reporter.end(finished)?;
                if let Some(journal) = session.journal.filter(|_| from == Place::START && summary.has_only_refusals()) {
                    journal.forget()?;
                }
                return Ok(summary);
            }
        }
    }
}

/// Records all blocks of a file. Returns whether its end was reached; otherwise `stop` came first.
async fn run<D: EventSink>(
    sink: &mut D,
    opening: Opening,
    reading: Reading,
    session: &mut Session,
    stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<bool, Failure> {
    let (threads, prepare) = sink.prepare();
    let batches = pipeline::start(opening, threads, reading, prepare)?;
    let reached = record(sink, batches, session, stop).await;
    // Always wait for the batches in flight, and report the first failure.
    let finished = sink.finish(session).await.and_then(|()| session.reporter.show());
    reached.and_then(|is_end| finished.map(|()| is_end))
}

async fn record<D: EventSink>(
    sink: &mut D,
    mut batches: pipeline::Ordered<D::Prepared>,
    session: &mut Session,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<bool, Failure> {
    loop {
        // Let other tasks and signals proceed, even if batches are always ready.
        tokio::task::yield_now().await;
        let batch = tokio::select! {
            biased;
            () = stop.as_mut() => return Ok(false),
            batch = batches.next() => batch?,
            idle = sink.idle(session) => {
                idle?;
                continue;
            }
        };
        let Some(batch) = batch else { return Ok(true) };
        session.reporter.lines_read(&batch.events);
        sink.submit(batch, session).await?;
        session.reporter.show()?;
    }
}
