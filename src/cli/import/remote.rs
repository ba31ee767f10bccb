//! Importing through a running server.

use std::borrow::Cow;

use headcount_domain::ids::ProjectId;
use serde::Deserialize;

use super::events::{Events, Reading, RefusedLine};
use super::journal::Journal;
use super::lines::Opening;
use super::pipeline;
use super::report::Reporter;
use crate::cli::client::Client;
use crate::cli::failure::Failure;
use crate::http::extract::body::EVENT_LIMIT_BYTES;

#[derive(Deserialize)]
struct ServerReceipt {
    recorded: u64,
    duplicates: u64,
    dropped: u64,
    errors: Vec<ServerRefusal>,
}

#[derive(Deserialize)]
struct ServerRefusal {
    index: usize,
    code: String,
    message: String,
}

/// Sends all blocks, one after another so that their order stays. Returns whether the end was reached; otherwise `stop` came first.
pub(crate) async fn run(
    client: &Client,
    project: ProjectId,
    (opening, reading): (Opening, Reading),
    mut journal: Option<&mut Journal>,
    report: &mut Reporter,
    stop: impl Future<Output = ()>,
) -> Result<bool, Failure> {
    let failed = |error: super::journal::JournalError| Failure(error.to_string());
    let path = format!("/projects/{project}/batch");
    let mut batches = pipeline::start(opening, 1, reading, body)?;
    if let Some(journal) = journal.as_deref_mut() {
        journal.begin(None).map_err(failed)?;
    }
    let mut stop = std::pin::pin!(stop);
    loop {
        // Sending blocks; without a pause in between, signals would not be noticed.
        tokio::task::yield_now().await;
        let batch = tokio::select! {
            biased;
            () = &mut stop => return Ok(false),
            batch = batches.next() => batch?,
        };
        let Some(pipeline::Batch { events, prepared }) = batch else { return Ok(true) };
        let Events { end, spans, refused, skipped, .. } = events;
        report.summary.skipped += skipped;
        report.summary.lines += u64::try_from(spans.len() + refused.len()).unwrap_or(0) + skipped;
        report.refuse(refused);
        if !spans.is_empty() {
            if let Some(journal) = journal.as_deref_mut() {
                journal.announce(u64::try_from(spans.len()).unwrap_or(0), end).map_err(failed)?;
            }
            let answer: ServerReceipt = client.post(&path, &prepared)?;
            report.summary.recorded += answer.recorded;
            report.summary.duplicates += answer.duplicates;
            report.summary.dropped += answer.dropped;
            let refused = answer.errors.into_iter().map(|error| RefusedLine {
                line: spans.get(error.index).map_or(0, |(_, line)| *line),
                code: Cow::Owned(error.code),
                message: error.message,
            });
            report.refuse(refused.collect());
        }
        if let Some(journal) = journal.as_deref_mut() {
            journal.done(end).map_err(failed)?;
            if journal.is_long() {
                journal.shorten().and_then(|()| journal.begin(None)).map_err(failed)?;
            }
        }
        report.show();
    }
}

/// The body of a batch. What is no JSON by itself would spoil all of it, and what is too large could not be sent.
fn body(events: &mut Events) -> Vec<u8> {
    let mut body = Vec::with_capacity(events.json.len() + events.spans.len() + 16);
    body.extend_from_slice(b"{\"events\":[");
    let (json, refused) = (&events.json, &mut events.refused);
    events.spans.retain(|(span, line)| {
        let event = &json[span.clone()];
        let problem = match serde_json::from_slice::<&serde_json::value::RawValue>(event) {
            Err(error) => Some(("invalid_json", format!("the line is not JSON: {error}"))),
            Ok(_) if event.len() > EVENT_LIMIT_BYTES => {
                Some(("event_too_large", format!("the event has {} bytes; at most {EVENT_LIMIT_BYTES} are allowed", event.len())))
            }
            Ok(_) => None,
        };
        if let Some((code, message)) = problem {
            refused.push(RefusedLine { line: *line, code: Cow::Borrowed(code), message });
            return false;
        }
        if body.last() != Some(&b'[') {
            body.push(b',');
        }
        body.extend_from_slice(event);
        true
    });
    body.extend_from_slice(b"]}");
    body
}
