//! Imports through a running server.

use headcount_api::command::{Client, Failure};
use headcount_api::event_answer::BatchAnswer;
use headcount_domain::ProjectId;
use serde_json::value::RawValue;

use super::events::{Events, RefusedLine, too_large};
use super::journal::Journal;
use super::pipeline::Batch;
use super::session::{EventSink, Session, save_when_idle};

/// A running server. It gets one batch after another, which keeps their order.
pub(crate) struct RemoteServer {
    client: Client,
    path: String,
}

impl RemoteServer {
    /// Creates the sink of events of this project.
    pub(crate) fn new(client: Client, project: ProjectId, as_new: bool) -> Self {
        let operation = if as_new { "batch" } else { "import" };
        Self { client, path: format!("/projects/{project}/{operation}") }
    }
}

impl EventSink for RemoteServer {
    /// The body of a request.
    type Prepared = Vec<u8>;

    fn prepare(&self) -> (usize, impl Fn(&mut Events) -> Vec<u8> + Send + Sync + 'static) {
        (1, body)
    }

    const IS_SERVER: bool = true;

    async fn submit(&mut self, batch: Batch<Vec<u8>>, session: &mut Session) -> Result<(), Failure> {
        let Batch { events: Events { start, end, spans, .. }, prepared } = batch;
        if !spans.is_empty() {
            if let Some(journal) = &mut session.journal {
                journal.sending(end)?;
            }
            let answer: BatchAnswer = self.client.post(&self.path, &prepared)?;
            session.reporter.recorded(answer, &spans);
        }
        if let Some(journal) = &mut session.journal {
            journal.read(start, end);
        }
        Ok(())
    }

    async fn idle(&mut self, session: &mut Session) -> Result<(), Failure> {
        save_when_idle(session).await
    }

    async fn finish(&mut self, session: &mut Session) -> Result<(), Failure> {
        Ok(session.journal.as_mut().map_or(Ok(()), Journal::save)?)
    }
}

/// Writes the body of a batch. Refuses lines that would make the server refuse the whole request.
fn body(events: &mut Events) -> Vec<u8> {
    let mut body = Vec::with_capacity(events.json.len() + events.spans.len() + 16);
    body.extend_from_slice(b"{\"events\":[");
    let (json, refused) = (&events.json, &mut events.refused);
    events.spans.retain(|(span, line)| {
        let event = &json[span.clone()];
        let problem = match serde_json::from_slice::<&RawValue>(event) {
            Err(error) => Some(("invalid_json", format!("the line is not JSON: {error}"))),
            Ok(_) => too_large(event).map(|invalid| (invalid.code, invalid.message)),
        };
        if let Some((code, message)) = problem {
            refused.push(RefusedLine { line: *line, code: code.into(), message });
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
