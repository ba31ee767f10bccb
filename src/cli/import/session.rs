//! The course of an import, whatever records its events.

use std::path::Path;
use std::pin::Pin;

use headcount_domain::ids::ProjectId;

use super::args::{ImportArgs, ResumePoint};
use super::events::{Events, Reading, Tags};
use super::journal::{Journal, JournalError};
use super::lines::{Opening, Place};
use super::pipeline::{self, Batch};
use super::report::{Reporter, Summary};
use crate::cli::failure::Failure;

/// What records the events of an import.
pub(crate) trait EventSink {
    /// What the preparing threads make of a batch.
    type Prepared: Send + 'static;

    /// Returns how many threads prepare batches, and what they do.
    fn prepare(&self) -> (usize, impl Fn(&mut Events) -> Self::Prepared + Send + Sync + 'static);

    /// The last position of the log, if nobody else records events.
    fn log_position(&self) -> Option<u64>;

    /// Begins to record a batch.
    async fn submit(&mut self, batch: Batch<Self::Prepared>, session: &mut Session) -> Result<(), Failure>;

    /// Waits for all batches that were begun.
    async fn finish(&mut self, reporter: &mut Reporter) -> Result<(), Failure>;
}

/// How far an import came: for the next run, and for people.
pub(crate) struct Session {
    pub(crate) journal: Option<Journal>,
    pub(crate) reporter: Reporter,
}

impl Session {
    /// Writes into the journal that a batch is about to be recorded.
    pub(crate) fn announce(&mut self, events: usize, end: Place) -> Result<(), JournalError> {
        let events = u64::try_from(events).unwrap_or(0);
        self.journal.as_mut().map_or(Ok(()), |journal| journal.announce(events, end))
    }
}

/// Imports the file, and its successors of the same name if it is followed.
pub(crate) async fn import(
    args: &ImportArgs,
    sink: &mut impl EventSink,
    data_dir: Option<&Path>,
    project: ProjectId,
    stop: impl Future<Output = ()>,
) -> Result<Summary, Failure> {
    let (mut reporter, mut again, mut stop) = (args.reporter()?, args.again, std::pin::pin!(stop));
    loop {
        let position = sink.log_position();
        let ResumePoint { from, sent_until, journal } = args.resume(data_dir, project, position, again)?;
        // Only an `external_id` tells that a server has an event already.
        let until = if position.is_some() { sent_until } else { u64::MAX };
        let prefix = (until > from.offset).then(|| match &journal {
            Some(journal) => Ok(journal.prefix().to_owned()),
            None => args.prefix(project),
        });
        let reading = args.reading(prefix.transpose()?.map(|prefix| Tags { prefix, until }));
        let opening = args.opening(from, &mut reporter);
        let mut session = Session { journal, reporter };
        let reached = run(sink, opening, reading, &mut session, stop.as_mut()).await;
        let ended = reached.and_then(|is_end| args.file_ended(is_end, session.journal.as_mut()));
        reporter = session.reporter;
        match ended.transpose() {
            None => again = false,
            Some(finished) => return reporter.end(finished),
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
    if let Some(journal) = &mut session.journal {
        journal.begin(sink.log_position());
    }
    let reached = record(sink, batches, session, stop).await;
    // Wait for what was begun, whatever ended the import, and report the first failure.
    let finished = sink.finish(&mut session.reporter).await.and_then(|()| session.reporter.show());
    reached.and_then(|is_end| finished.map(|()| is_end))
}

async fn record<D: EventSink>(
    sink: &mut D,
    mut batches: pipeline::Ordered<D::Prepared>,
    session: &mut Session,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<bool, Failure> {
    loop {
        // Let spawned tasks begin and signals arrive, even if batches are always ready.
        tokio::task::yield_now().await;
        let batch = tokio::select! {
            biased;
            () = stop.as_mut() => return Ok(false),
            batch = batches.next() => batch?,
        };
        let Some(mut batch) = batch else { return Ok(true) };
        session.reporter.lines_read(&mut batch.events);
        sink.submit(batch, session).await?;
        session.reporter.show()?;
    }
}
