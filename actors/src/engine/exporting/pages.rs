//! Pages of a subject's events, for an export on another node.

use std::collections::HashSet;
use std::io;
use std::sync::OnceLock;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::ids::{ProjectId, RecordKey};
use headcount_domain::intake::event::{EVENT_VERSION, Event, Position};
use headcount_storage::codec;

use super::questions::{SubjectEvents, SubjectEventsQuestion};
use crate::engine::handle::Engine;
use crate::scans::SubjectSink;
use crate::shard::AskError;

/// About how many bytes of events a page has.
const PAGE_BYTES: usize = 4 << 20;
/// How long events are read for a page: an answer has to come in time, whether or not it has any.
const PAGE_TIME: Duration = Duration::from_secs(10);

/// Takes the events of a page.
struct Page {
    ids: HashSet<RecordKey>,
    events: Vec<(Position, Vec<u8>)>,
    bytes: usize,
    began: OnceLock<Stopwatch>,
}

impl SubjectSink for Page {
    fn wants(&self, _: ProjectId, named: RecordKey) -> bool {
        self.ids.contains(&named)
    }

    fn goes_on(&self) -> bool {
        // The time that it waited for its turn does not count.
        self.began.get_or_init(Stopwatch::now);
        true
    }

    fn is_enough(&self) -> bool {
        self.bytes >= PAGE_BYTES || self.began.get().is_some_and(|began| began.elapsed() >= PAGE_TIME)
    }

    fn take(&mut self, position: Position, event: Box<Event>) -> io::Result<()> {
        let encoded = codec::encode(EVENT_VERSION, &*event).map_err(io::Error::other)?;
        self.bytes += encoded.len();
        self.events.push((position, encoded));
        Ok(())
    }
}

impl Engine {
    /// Answers a question for events of a subject, of a partition that is here.
    pub(in crate::engine) async fn subject_events(
        &self,
        project: ProjectId,
        question: SubjectEventsQuestion,
    ) -> Result<SubjectEvents, AskError> {
        let SubjectEventsQuestion { users, others, after, until } = question;
        let ids = users.into_iter().chain(others).collect();
        let page = Page { ids, events: Vec::new(), bytes: 0, began: OnceLock::new() };
        let (page, reached) = self.scans.collect_part(project, (after, until), page).await?;
        Ok(SubjectEvents { events: page.events, reached })
    }
}
