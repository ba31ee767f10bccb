//! The sessions of a subject, made from its interactive events in order of time.

use std::collections::HashMap;
use std::io;

use headcount_actors::RecordSorter;
use headcount_api::respond::answer::{Decimal, Timestamp};
use headcount_domain::acquisition::Acquisition;
use headcount_domain::facts::SESSION_GAP_MS;
use headcount_domain::intake::fields::BuiltIn;
use headcount_domain::{Amount, Event, Instant, Position, ProjectId};

use super::rows::SessionRow;

/// The identities of a subject, as they are shown, by number.
pub(super) type PublicIds = [String];

/// A session whose end was not met.
struct OpenSession {
    entry: (Instant, Position),
    last: Instant,
    events: u64,
    pageviews: u64,
    /// Of the first event with a source, else of the entry.
    from: Acquisition,
    entry_url: Option<String>,
    exit_url: Option<String>,
}

/// See the module.
pub(super) struct SessionMaker {
    /// By project and number of the identity.
    open: HashMap<(ProjectId, u32), OpenSession>,
    /// Begin, project, number of the identity, JSON.
    done: RecordSorter,
}

impl SessionMaker {
    pub(super) fn new(done: RecordSorter) -> Self {
        Self { open: HashMap::new(), done }
    }

    /// Adds an event, whose time is not before that of the last one. One that is not interactive is
    /// of no session.
    pub(super) fn add(&mut self, number: u32, position: Position, event: &Event, identities: &PublicIds) -> io::Result<()> {
        if !event.interactive {
            return Ok(());
        }
        let key = (event.project, number);
        let is_over = |open: &OpenSession| event.time.0.saturating_sub(open.last.0) > SESSION_GAP_MS;
        if self.open.get(&key).is_some_and(is_over)
            && let Some(ended) = self.open.remove(&key)
        {
            self.end(key, &ended, identities)?;
        }
        let url = BuiltIn::Url.value(event, None).map(|url| url.into_owned());
        let session = self.open.entry(key).or_insert_with(|| OpenSession {
            entry: (event.time, position),
            last: event.time,
            events: 0,
            pageviews: 0,
            from: event.details.acquisition.clone().unwrap_or_else(Acquisition::direct),
            entry_url: None,
            exit_url: None,
        });
        if let Some(from) = event.details.acquisition.as_ref().filter(|from| session.from.is_direct() && !from.is_direct()) {
            session.from = from.clone();
        }
        session.last = event.time;
        session.events += 1;
        session.pageviews += u64::from(event.is_pageview());
        if url.is_some() {
            session.entry_url = session.entry_url.take().or_else(|| url.clone());
            session.exit_url = url;
        }
        Ok(())
    }

    fn end(&mut self, (project, number): (ProjectId, u32), session: &OpenSession, identities: &PublicIds) -> io::Result<()> {
        let OpenSession { entry, last, events, pageviews, from, entry_url, exit_url } = session;
        let identity_id = identities.get(number as usize).map_or("", String::as_str);
        let duration_ms = last.0.saturating_sub(entry.0.0);
        let row = SessionRow {
            project_id: project.to_string(),
            identity_id,
            started_at: Timestamp::from(entry.0),
            ended_at: Timestamp::from(*last),
            duration_sec: Decimal(Amount::from_micros(i128::from(duration_ms) * 1_000)),
            events: *events,
            pageviews: *pageviews,
            source: &from.source,
            medium: &from.medium,
            campaign: &from.campaign,
            acquisition_channel: from.channel.name(),
            entry_url: entry_url.as_deref(),
            exit_url: exit_url.as_deref(),
        };
        let begin = (entry.0.0.cast_unsigned() ^ 1 << 63).to_be_bytes();
        let order = [&begin[..], &project.0.to_be_bytes(), &entry.1.to_be_bytes()].concat();
        self.done.push(&[&order, &serde_json::to_vec(&row)?])
    }

    /// Passes the JSON of all sessions to `visit`, by begin and project.
    pub(super) fn finish(mut self, identities: &PublicIds, visit: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        for (key, session) in std::mem::take(&mut self.open) {
            self.end(key, &session, identities)?;
        }
        let mut done = self.done.finish()?;
        while let Some(record) = done.next()? {
            visit(record.get(8 + 8 + 8..).unwrap_or_default())?;
        }
        Ok(())
    }
}
