//! From a body to a receipt: what `POST /track` and the embedded API do with events.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use headcount_domain::agent::Agent;
use headcount_domain::ids::{ProjectId, public_id};
use headcount_domain::intake::admission::{Client, DropReason, Sender, Verdict, admit};
use headcount_domain::intake::country::Country;
use headcount_domain::intake::event::Position;
use headcount_domain::intake::policy::Policy;
use headcount_domain::intake::submission::{Invalid, Submission};
use headcount_domain::text::cut_bytes;
use serde_json::value::RawValue;

use crate::engine::{Engine, QuotaExceeded, Tracker};
use crate::ingest::Permit;
use crate::ingest::TrackError;
use crate::registry::KeyedProject;
use crate::shard::{Events, Outcome};

/// How many events one batch may hold.
pub const MAX_BATCH_EVENTS: usize = 5_000;
/// What follows in a user agent is neither read nor kept; the longest honest ones have some 400 bytes.
const MAX_AGENT_BYTES: usize = 512;
/// How many bytes of user agents, and of what they say, each thread remembers.
const AGENTS_BYTES: usize = 1 << 20;

/// What is known of the request that brought an event.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Who sent it. From a server, agent, address and country are those of the event itself.
    pub sender: Sender,
    /// The visitor's address. Never stored.
    pub address: Option<&'a str>,
    /// The visitor's user agent. Never stored.
    pub user_agent: Option<&'a str>,
    /// The visitor's country: what a proxy tells, else [`Engine::country_of`] the address.
    pub country: Option<Country>,
    /// `Sec-GPC: 1` was sent.
    pub gpc: bool,
    /// `DNT: 1` was sent.
    pub dnt: bool,
}

impl Origin<'_> {
    /// A server's, without a visitor's request.
    pub const SERVER: Origin<'static> =
        Origin { sender: Sender::Server, address: None, user_agent: None, country: None, gpc: false, dnt: false };
}

/// What became of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Its id; a duplicate has the id of the first. Absent if it was dropped.
    pub id: Option<String>,
    /// Whether it counts.
    pub status: Status,
    /// Its time lay too far ahead, and the time of receipt is used.
    pub clamped: bool,
    /// Its position; a duplicate has that of the first. Absent if it was dropped.
    pub position: Option<Position>,
}

/// Whether an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is durable, and in every figure.
    Recorded,
    /// An event with its `external_id` is; this one changes nothing.
    Duplicate,
    /// The project's policy is not to record it.
    Dropped(DropReason),
}

/// What became of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchReceipt {
    /// How many were recorded.
    pub recorded: usize,
    /// How many had an `external_id` that was there already.
    pub duplicates: usize,
    /// How many were dropped by the project's policy.
    pub dropped: usize,
    /// The invalid ones and those that exceed a quota, by their place in the batch. All others need no resending.
    pub errors: Vec<(usize, Invalid)>,
}

/// Why events were not taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// The event itself.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// There is no such project.
    #[error("unknown project")]
    UnknownProject,
    /// The engine.
    #[error(transparent)]
    Track(#[from] TrackError),
}

/// An event that was read and judged, on its way into the log.
#[derive(Debug)]
pub struct Prepared {
    verdict: Verdict,
}

impl Prepared {
    /// What was probably not meant, in words for the sender. They are there once.
    #[must_use]
    pub fn take_warnings(&mut self) -> Vec<String> {
        match &mut self.verdict {
            Verdict::Record { warnings, .. } => std::mem::take(warnings),
            Verdict::Dropped(_) => Vec::new(),
        }
    }

    /// Whether it is to be recorded; otherwise it is dropped.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        matches!(self.verdict, Verdict::Record { .. })
    }
}

impl Engine {
    /// Reads and judges one event. Pure but for the clock and today's salt.
    ///
    /// # Errors
    /// The event is invalid, or today's salt could not be made durable.
    pub fn prepare(&self, policy: &Policy, body: &[u8], origin: &Origin<'_>) -> Result<Prepared, Refusal> {
        self.prepare_submission(policy, &Submission::parse(body)?, origin)
    }

    fn prepare_submission(&self, policy: &Policy, submission: &Submission<'_>, origin: &Origin<'_>) -> Result<Prepared, Refusal> {
        let now = self.clock().now();
        let salt = self.secrets().salt(now).map_err(|error| {
            tracing::error!(%error, "no salt for today's visitors");
            TrackError::Unavailable("today's visitor salt could not be written".into())
        })?;
        let (user_agent, address, country) = match origin.sender {
            Sender::Public => (origin.user_agent, origin.address, origin.country),
            Sender::Server => {
                let (user_agent, address) = (submission.user_agent(), submission.ip());
                (user_agent.or(origin.user_agent), address.or(origin.address), self.country_of_text(address))
            }
        };
        let user_agent = user_agent.map(|user_agent| cut_bytes(user_agent, MAX_AGENT_BYTES));
        let verdict = with_agent(user_agent.unwrap_or_default(), |agent| {
            let client =
                Client { sender: origin.sender, address, user_agent, country, agent, gpc: origin.gpc, dnt: origin.dnt, salt };
            admit(submission, policy, &client, now)
        })?;
        Ok(Prepared { verdict })
    }

    fn country_of_text(&self, address: Option<&str>) -> Option<Country> {
        let address = address.filter(|_| self.has_geo())?;
        self.country_of(address.trim().parse().ok()?)
    }

    /// Records one prepared event.
    ///
    /// # Errors
    /// See [`TrackError`].
    pub async fn record(&self, tracker: &Tracker, prepared: Prepared, permit: Permit) -> Result<Receipt, TrackError> {
        let (event, clamped) = match prepared.verdict {
            Verdict::Record { event, clamped, .. } => (event, clamped),
            Verdict::Dropped(reason) => {
                return Ok(Receipt { id: None, status: Status::Dropped(reason), clamped: false, position: None });
            }
        };
        let (project, external_id) = (event.project, event.external_id.clone());
        self.accepts(project).map_err(|why| TrackError::Unavailable(why.into()))?;
        let events = vec![event];
        if let Some((_, exceeded)) = self.over_quota(&events).await?.first() {
            return Err(TrackError::QuotaExceeded(*exceeded));
        }
        let outcomes = tracker.record(events, permit).await?;
        let outcome = outcomes.first().ok_or(TrackError::OutcomeUnknown)?;
        Ok(receipt(project, external_id.as_deref(), *outcome, clamped))
    }

    /// Records a batch of one project. Events that are invalid or exceed a quota are reported, and do not keep the others back.
    ///
    /// # Errors
    /// See [`TrackError`].
    pub async fn record_batch(
        &self,
        tracker: &Tracker,
        prepared: impl IntoIterator<Item = Result<Prepared, Refusal>>,
        permit: Permit,
    ) -> Result<BatchReceipt, TrackError> {
        let mut receipt = BatchReceipt::default();
        let (mut events, mut places) = (Events::new(), Vec::new());
        for (index, prepared) in prepared.into_iter().enumerate() {
            match prepared {
                Ok(Prepared { verdict: Verdict::Record { event, .. } }) => {
                    events.push(event);
                    places.push(index);
                }
                Ok(Prepared { verdict: Verdict::Dropped(_) }) => receipt.dropped += 1,
                Err(Refusal::Invalid(invalid)) => receipt.errors.push((index, invalid)),
                Err(Refusal::Track(error)) => return Err(error),
                Err(Refusal::UnknownProject) => return Err(TrackError::Unavailable("unknown project".into())),
            }
        }
        let Some(first) = events.first() else { return Ok(receipt) };
        self.accepts(first.project).map_err(|why| TrackError::Unavailable(why.into()))?;
        let events = self.within_quota(events, &places, &mut receipt).await?;
        if events.is_empty() {
            return Ok(receipt);
        }
        for outcome in tracker.record(events, permit).await? {
            if outcome.is_duplicate() {
                receipt.duplicates += 1;
            } else {
                receipt.recorded += 1;
            }
        }
        Ok(receipt)
    }

    /// The events of a batch that exceed no quota. The others become errors of `receipt`, by their `places` in the batch.
    async fn within_quota(&self, events: Events, places: &[usize], receipt: &mut BatchReceipt) -> Result<Events, TrackError> {
        let refused = self.over_quota(&events).await?;
        if refused.is_empty() {
            return Ok(events);
        }
        let error = |(place, exceeded): &(usize, QuotaExceeded)| {
            let invalid = Invalid { code: QuotaExceeded::CODE, param: None, message: exceeded.to_string() };
            Some((*places.get(*place)?, invalid))
        };
        receipt.errors.extend(refused.iter().filter_map(error));
        receipt.errors.sort_by_key(|(place, _)| *place);
        let mut refused = refused.into_iter().map(|(place, _)| place).peekable();
        let kept = events.into_iter().enumerate().filter(|(place, _)| refused.next_if_eq(place).is_none());
        Ok(kept.map(|(_, event)| event).collect())
    }

    /// Judges with the project's policy. Before a project's first event is recorded its calendar and currencies are fixed
    /// (durably), and the event is judged again with what they are then.
    ///
    /// # Errors
    /// The mark could not be made durable.
    pub async fn judge<T>(
        &self,
        project: Arc<KeyedProject>,
        judge: impl Fn(&Policy) -> T,
        is_recorded: impl FnOnce(&T) -> bool,
    ) -> Result<T, TrackError> {
        let judged = judge(&project.policy);
        if project.is_calendar_pinned() || !is_recorded(&judged) {
            return Ok(judged);
        }
        let engine = self.clone();
        let pinned = tokio::task::spawn_blocking(move || engine.registry().pin_calendar(&project)).await;
        match pinned {
            Ok(Ok(project)) => Ok(judge(&project.policy)),
            Ok(Err(error)) => {
                tracing::error!(%error, "the calendar could not be fixed");
                Err(TrackError::Unavailable("the project's calendar could not be fixed".into()))
            }
            Err(_) => Err(TrackError::Unavailable("the server is shutting down".into())),
        }
    }

    /// The embedded API: records one event of `project`, and answers when it is durable and counted.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn track(&self, project: ProjectId, event: &NewEvent) -> Result<Receipt, Refusal> {
        let keyed = self.registry().policy(project).ok_or(Refusal::UnknownProject)?;
        let permit = self.embedded_permit(project, event.size_bytes())?;
        let prepare =
            |policy: &Policy| event.with_submission(|submission| self.prepare_submission(policy, submission, &Origin::SERVER));
        let prepared = self.judge(keyed, prepare, |judged| judged.as_ref().is_ok_and(Prepared::is_recorded)).await??;
        Ok(self.record(&self.tracker(), prepared, permit).await?)
    }

    /// The embedded API: records a batch of one project, all of it in one commit.
    ///
    /// # Errors
    /// See [`Refusal`]; single invalid events are in the receipt.
    pub async fn track_batch(&self, project: ProjectId, events: &[NewEvent]) -> Result<BatchReceipt, Refusal> {
        let keyed = self.registry().policy(project).ok_or(Refusal::UnknownProject)?;
        let permit = self.embedded_permit(project, events.iter().map(NewEvent::size_bytes).sum())?;
        let prepare = |policy: &Policy| -> Vec<Result<Prepared, Refusal>> {
            let one = |event: &NewEvent| {
                event.with_submission(|submission| self.prepare_submission(policy, submission, &Origin::SERVER))
            };
            events.iter().map(one).collect()
        };
        let prepared = self.judge(keyed, prepare, |judged| judged.iter().flatten().any(Prepared::is_recorded)).await?;
        Ok(self.record_batch(&self.tracker(), prepared, permit).await?)
    }

    fn embedded_permit(&self, project: ProjectId, bytes: usize) -> Result<Permit, Refusal> {
        self.admit(project, None, bytes).map_err(|why| TrackError::Unavailable(why.to_string()).into())
    }
}

fn receipt(project: ProjectId, external_id: Option<&str>, outcome: Outcome, clamped: bool) -> Receipt {
    let id = match external_id {
        Some(external_id) => public_id("ev_", project.0, 0, external_id),
        None => public_id("ev_", project.0, 1, &outcome.position.to_string()),
    };
    let status = if outcome.is_duplicate() { Status::Duplicate } else { Status::Recorded };
    Receipt { id: Some(id), status, clamped, position: Some(outcome.first) }
}

/// Calls `use_it` with what `user_agent` says; reading one costs microseconds, and the same ones come again and again.
fn with_agent<R>(user_agent: &str, use_it: impl FnOnce(&Agent) -> R) -> R {
    thread_local! {
        static KNOWN: RefCell<KnownAgents> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(agent) = known.agents.get(user_agent) {
            return use_it(agent);
        }
        use_it(known.learn(user_agent))
    })
}

/// User agents that were read before.
#[derive(Debug, Default)]
struct KnownAgents {
    agents: HashMap<Box<str>, Agent>,
    bytes: usize,
}

impl KnownAgents {
    /// Reads an agent, and remembers it.
    fn learn(&mut self, user_agent: &str) -> &Agent {
        let agent = headcount_domain::agent::parse(user_agent);
        let texts = [&agent.browser, &agent.browser_version, &agent.os].into_iter().flatten();
        let bytes = size_of::<(Box<str>, Agent)>() + user_agent.len() + texts.map(String::len).sum::<usize>();
        if self.bytes + bytes > AGENTS_BYTES {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.agents.entry(user_agent.into()).or_insert(agent)
    }
}

/// An event of the embedded API: the fields of `POST /track`, typed.
#[derive(Debug, Clone, Default)]
pub struct NewEvent {
    name: String,
    texts: Vec<(Field, String)>,
    metadata: Option<Box<RawValue>>,
    value: Option<Box<RawValue>>,
    timestamp: Option<Box<RawValue>>,
}

/// The text fields of [`NewEvent`], by their names in `POST /track`.
pub use headcount_domain::intake::submission::TextField as Field;

impl NewEvent {
    /// An event of this name, happening now.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets a text field.
    #[must_use]
    pub fn with(mut self, field: Field, text: impl Into<String>) -> Self {
        self.texts.push((field, text.into()));
        self
    }

    /// Sets the user.
    #[must_use]
    pub fn user(self, user_id: impl Into<String>) -> Self {
        self.with(Field::UserId, user_id)
    }

    /// Sets the browser or device.
    #[must_use]
    pub fn anonymous(self, anonymous_id: impl Into<String>) -> Self {
        self.with(Field::AnonymousId, anonymous_id)
    }

    /// Sets the idempotency key: a repeated one changes nothing.
    #[must_use]
    pub fn external_id(self, external_id: impl Into<String>) -> Self {
        self.with(Field::ExternalId, external_id)
    }

    /// Sets the money, as the text of a decimal number (`"12.50"`), so that it stays exact.
    ///
    /// # Errors
    /// The text is no number.
    pub fn value(mut self, amount: &str) -> Result<Self, Invalid> {
        let raw = RawValue::from_string(amount.to_owned());
        self.value = Some(raw.map_err(|_| Invalid::parameter("value", "`value` must be a decimal number"))?);
        Ok(self)
    }

    /// Sets when it happened, in milliseconds since 1970.
    #[must_use]
    pub fn at_ms(mut self, epoch_ms: i64) -> Self {
        self.timestamp = RawValue::from_string(epoch_ms.to_string()).ok();
        self
    }

    /// Sets the metadata: anything that serialises to JSON.
    ///
    /// # Errors
    /// It does not serialise.
    pub fn metadata(mut self, metadata: &impl serde::Serialize) -> Result<Self, Invalid> {
        let raw = serde_json::value::to_raw_value(metadata);
        self.metadata = Some(raw.map_err(|error| Invalid::parameter("metadata", error.to_string()))?);
        Ok(self)
    }

    fn size_bytes(&self) -> usize {
        let raw = [&self.metadata, &self.value, &self.timestamp];
        let raw: usize = raw.into_iter().flatten().map(|raw| raw.get().len()).sum();
        256 + self.name.len() + raw + self.texts.iter().map(|(_, text)| text.len()).sum::<usize>()
    }

    fn with_submission<R>(&self, use_it: impl FnOnce(&Submission<'_>) -> R) -> R {
        let mut submission = Submission::new(&self.name);
        for (field, text) in &self.texts {
            submission.set(*field, text);
        }
        submission.set_raw(self.value.as_deref(), self.metadata.as_deref(), self.timestamp.as_deref());
        use_it(&submission)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_agents_are_bounded_in_bytes() {
        let mut known = KnownAgents::default();
        let agent = |i: usize| format!("Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/{i}.0 {}", "x".repeat(400));
        for i in 0..20_000 {
            assert_eq!(known.learn(&agent(i)).browser.as_deref(), Some("Firefox"));
            assert!(known.bytes <= AGENTS_BYTES && known.agents.len() < 3_000);
        }
        assert!(known.agents.len() > 1, "some are remembered");
    }
}
