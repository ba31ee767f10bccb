//! The state of each alert: whether it fires, its last changes, and the deliveries of their
//! messages. A document, so that every node has it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use headcount_actors::{BackedUpControl, EngineParts, MovedDocuments, PositionMap};
use headcount_common::local::{kind_dir, write_items};
use headcount_common::{ControlError, DocumentItem, DocumentSet, follow_made};
use headcount_control::DefinitionId;
use headcount_domain::{Day, Instant, OrganizationId, ProjectId, named_values};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::alert::Alert;
use crate::channel::{MailProgress, Sent};
use crate::evaluation::{ChangeKind, Firings};
use crate::mail::Mailed;
use crate::message::Message;

/// The kind of the documents.
pub(crate) const KIND: &str = "pushed";
/// The number of changes that are listed. More than an alert has in [`TRIED_MS`], since an hour is
/// between two firings.
const MAX_CHANGES: usize = 60;
/// How long a message is tried.
pub(crate) const TRIED_MS: i64 = 24 * 60 * 60 * 1_000;
/// The pauses after failed tries, in seconds. The last one repeats.
const PAUSES: [i64; 5] = [10, 60, 300, 900, 3_600];

named_values! {
    /// What became of a message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum MessageStatus by as_str {
        /// It is being tried.
        Pending = "pending",
        /// The channel took it.
        Delivered = "delivered",
        /// It was given up.
        Dead = "dead",
    }
}

/// The message about a change to one channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AlertMessage {
    pub(crate) channel: DefinitionId,
    pub(crate) status: MessageStatus,
    /// The number of tries.
    pub(crate) attempts: usize,
    /// The time of the next try, while it is pending.
    pub(crate) next_at: Instant,
    /// The status of the last answer, if there was one.
    pub(crate) last_status: Option<u16>,
    /// The code of the error without an answer.
    pub(crate) last_error: Option<String>,
    /// The addresses that have it, if it is e-mail.
    pub(crate) progress: MailProgress,
}

impl AlertMessage {
    /// A message that was not tried yet.
    pub(crate) fn new(channel: DefinitionId, now: Instant) -> Self {
        let (status, progress) = (MessageStatus::Pending, MailProgress::default());
        Self { channel, status, attempts: 0, next_at: now, last_status: None, last_error: None, progress }
    }
}

/// A change of an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AlertChange {
    /// Its number among all changes of the alert, from 1.
    pub(crate) number: u64,
    pub(crate) kind: ChangeKind,
    pub(crate) at: Instant,
    /// The value of the figure, in millionths.
    pub(crate) value: String,
    /// The first and the last day of the window.
    pub(crate) window: (Day, Day),
    /// The text of its messages.
    pub(crate) message: Message,
    /// The messages; none while the alert is muted.
    pub(crate) messages: Vec<AlertMessage>,
}

/// The state of an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AlertState {
    pub(crate) organization: OrganizationId,
    pub(crate) project: ProjectId,
    /// The fingerprint of the rule that `firings` belong to.
    pub(crate) rule: String,
    pub(crate) firings: Firings,
    /// The last changes, latest last.
    pub(crate) changes: Vec<AlertChange>,
}

impl DocumentItem for AlertState {
    type Id = DefinitionId;
    const WHAT: &'static str = "state of an alert";

    fn is_of(&self, _: &DefinitionId) -> bool {
        true
    }
}

/// A message that is due: an alert, the number of its change, and a channel.
pub(crate) type MessageKey = (DefinitionId, u64, DefinitionId);

/// Errors after which a message is not tried again.
const PERMANENT: [&str; 2] = ["channel_removed", "no_recipients"];

/// What the channel did with a message: the status of its answer, or the code of the error, and the
/// addresses of e-mail that have it now.
pub(crate) type Outcome = (Sent, Mailed);

impl AlertState {
    /// The state of an alert that never fired.
    pub(crate) fn new(organization: OrganizationId, project: ProjectId) -> Self {
        Self { organization, project, rule: String::new(), firings: Firings::default(), changes: Vec::new() }
    }

    /// Whether an alert fires, by its present rule. A changed rule starts over.
    pub(crate) fn firings_of(&self, alert: &Alert) -> Firings {
        if self.rule == alert.fingerprint { self.firings } else { Firings::default() }
    }

    /// Whether there were messages when it last began to fire.
    pub(crate) fn was_announced(&self) -> bool {
        let fired = self.changes.iter().rev().find(|change| change.kind == ChangeKind::Fired);
        fired.is_some_and(|change| !change.messages.is_empty())
    }

    /// The time of the next try of a message.
    fn next_try(&self) -> Option<Instant> {
        let messages = self.changes.iter().flat_map(|change| &change.messages);
        messages.filter(|message| message.status == MessageStatus::Pending).map(|message| message.next_at).min()
    }

    /// Adds a change.
    pub(crate) fn push(&mut self, change: AlertChange) {
        self.changes.push(change);
        let surplus = self.changes.len().saturating_sub(MAX_CHANGES);
        let is_pending = |change: &AlertChange| change.messages.iter().any(|message| message.status == MessageStatus::Pending);
        let done = self.changes.iter().take(surplus).take_while(|change| !is_pending(change)).count();
        self.changes.drain(..done);
    }

    /// The number of the next change.
    pub(crate) fn next_number(&self) -> u64 {
        self.changes.last().map_or(0, |change| change.number).saturating_add(1)
    }

    /// Records a try of a message. Returns whether the message was pending.
    pub(crate) fn tried(&mut self, (_, number, channel): &MessageKey, outcome: &Outcome, now: Instant) -> bool {
        let change = self.changes.iter_mut().find(|change| change.number == *number);
        let Some(change) = change else { return false };
        let is_one = |message: &&mut AlertMessage| message.channel == *channel && message.status == MessageStatus::Pending;
        let Some(message) = change.messages.iter_mut().find(is_one) else { return false };
        let (outcome, mailed) = outcome;
        message.last_status = outcome.ok();
        message.last_error = outcome.err().map(str::to_owned);
        message.progress.add(mailed);
        let pause_ms = PAUSES[message.attempts.min(PAUSES.len() - 1)] * 1_000;
        message.attempts = message.attempts.saturating_add(1);
        message.next_at = now.plus_ms(pause_ms);
        message.status = match outcome {
            Ok(200..300) => MessageStatus::Delivered,
            Err(error) if PERMANENT.contains(error) => MessageStatus::Dead,
            _ if message.next_at.0.saturating_sub(change.at.0) > TRIED_MS => MessageStatus::Dead,
            _ => MessageStatus::Pending,
        };
        if message.status != MessageStatus::Pending {
            message.progress.done.clear();
        }
        true
    }
}

/// The states of all alerts.
#[derive(Debug)]
pub(crate) struct AlertStates {
    items: DocumentSet<AlertState>,
    /// Each with the time of its next try.
    held: RwLock<BTreeMap<DefinitionId, (AlertState, Option<Instant>)>>,
}

impl AlertStates {
    /// Opens the states. A node knows none before it follows them.
    pub(crate) fn open(parts: &EngineParts) -> Result<Self, ControlError> {
        let failed = |error| ControlError::Documents(format!("the alerts can't be opened: {error}"));
        let items = DocumentSet::new(parts.stores.documents(KIND).map_err(failed)?);
        Ok(Self { items, held: RwLock::default() })
    }

    /// Applies the changes of other nodes up to now. Blocks.
    pub(crate) fn follow(&self) -> Result<u64, ControlError> {
        self.items.follow(|id, state| {
            let mut held = self.held.write();
            match state {
                Some(state) => {
                    let next_try = state.next_try();
                    held.insert(id.clone(), (state, next_try));
                }
                None => drop(held.remove(id)),
            }
            Ok(())
        })
    }

    /// Returns the known state of an alert; `None` if it never changed.
    pub(crate) fn get(&self, id: &DefinitionId) -> Option<AlertState> {
        self.held.read().get(id).map(|(state, _)| state.clone())
    }

    /// Changes a state durably, or removes it if `edit` returns `Some(None)`; `None` leaves it. It is
    /// called again if another change came first. Returns whether something was changed. Blocks.
    pub(crate) fn change(
        &self,
        id: &DefinitionId,
        edit: impl Fn(Option<AlertState>) -> Option<Option<AlertState>>,
    ) -> Result<bool, ControlError> {
        let attempt = |expected| -> Result<Option<bool>, ControlError> {
            let Some(edited) = edit(self.get(id)) else { return Ok(Some(false)) };
            Ok(self.items.put(expected, id, edited.as_ref())?.then_some(true))
        };
        let is_changed = DocumentSet::<AlertState>::attempt(|| self.follow(), attempt)?;
        if is_changed {
            follow_made(|| self.follow())?;
        }
        Ok(is_changed)
    }

    /// Removes the state of an alert, if it has one. Blocks.
    pub(crate) fn remove(&self, id: &DefinitionId) -> Result<bool, ControlError> {
        self.change(id, |state| state.map(|_| None))
    }

    /// The alerts with a state that `is_wanted`.
    pub(crate) fn ids(&self, is_wanted: impl Fn(&DefinitionId, &AlertState) -> bool) -> Vec<DefinitionId> {
        self.held.read().iter().filter(|(id, (state, _))| is_wanted(id, state)).map(|(id, _)| id.clone()).collect()
    }

    /// The states of the wanted projects.
    pub(crate) fn copied(&self, is_wanted: &dyn Fn(ProjectId) -> bool) -> CopiedStates {
        let held = self.held.read();
        CopiedStates(
            held.iter()
                .filter(|(_, (state, _))| is_wanted(state.project))
                .map(|(id, (state, _))| (id.clone(), state.clone()))
                .collect(),
        )
    }

    /// The earliest message to each channel that is due now, of projects that are `here`, with its
    /// organization and the time of its change.
    pub(crate) fn due(&self, now: Instant, here: impl Fn(ProjectId) -> bool) -> Vec<(OrganizationId, Instant, MessageKey)> {
        // The clock may have been set back since the last try.
        let is_due = |at: Instant| at <= now || at.0.saturating_sub(now.0) > PAUSES[PAUSES.len() - 1] * 1_000;
        let mut due: BTreeMap<&DefinitionId, (OrganizationId, Instant, MessageKey)> = BTreeMap::new();
        let held = self.held.read();
        let states = held.iter().filter(|(_, (state, next))| next.is_some_and(is_due) && here(state.project));
        for (id, (state, _)) in states {
            for change in &state.changes {
                let is_tried = |message: &&AlertMessage| message.status == MessageStatus::Pending && is_due(message.next_at);
                for message in change.messages.iter().filter(is_tried) {
                    let key = || (id.clone(), change.number, message.channel.clone());
                    let first = due.entry(&message.channel).or_insert_with(|| (state.organization, change.at, key()));
                    if change.at < first.1 {
                        *first = (state.organization, change.at, key());
                    }
                }
            }
        }
        due.into_values().collect()
    }
}

/// States for a backup.
#[derive(Debug)]
pub(crate) struct CopiedStates(Vec<(DefinitionId, AlertState)>);

impl MovedDocuments for CopiedStates {
    fn write(&self, data_dir: &Path, control: &BackedUpControl<'_>, _: &PositionMap) -> io::Result<()> {
        let there = self.0.iter().filter(|(_, state)| (control.has_project)(state.project));
        write_items(&kind_dir(data_dir, KIND), there.map(|(id, state)| (id, state)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(kind: &str) -> DefinitionId {
        format!("{kind}_0000000000000000").parse().unwrap()
    }

    fn change(number: u64, status: MessageStatus) -> AlertChange {
        let (channel, at) = (id("channel"), Instant(0));
        let to = AlertMessage { status, ..AlertMessage::new(channel, at) };
        let message = Message { title: String::new(), lines: Vec::new(), link: None };
        AlertChange {
            number,
            kind: ChangeKind::Fired,
            at,
            value: "1".into(),
            window: (Day(0), Day(0)),
            message,
            messages: vec![to],
        }
    }

    fn state() -> AlertState {
        AlertState::new(OrganizationId(1), ProjectId(1))
    }

    #[test]
    fn a_message_is_tried_for_a_day() {
        let (mut state, key, mut now) = (state(), (id("alert"), 1, id("channel")), Instant(0));
        state.push(change(1, MessageStatus::Pending));
        let mut tries = 0;
        while state.tried(&key, &(Err("timeout"), Mailed::default()), now) {
            now = state.changes[0].messages[0].next_at;
            tries += 1;
        }
        let message = &state.changes[0].messages[0];
        assert_eq!((message.status, message.attempts), (MessageStatus::Dead, tries));
        assert!((25..30).contains(&tries) && now.0 > TRIED_MS, "{tries}");
        assert_eq!(message.last_error.as_deref(), Some("timeout"));
    }

    #[test]
    fn a_message_is_delivered_once() {
        let answer = |status| (Ok(status), Mailed::default());
        let (mut state, key) = (state(), (id("alert"), 1, id("channel")));
        state.push(change(1, MessageStatus::Pending));
        assert!(state.tried(&key, &answer(503), Instant(5)) && state.tried(&key, &answer(204), Instant(20_000)));
        assert!(!state.tried(&key, &answer(204), Instant(20_001)));
        let message = &state.changes[0].messages[0];
        assert_eq!((message.status, message.last_status, message.attempts), (MessageStatus::Delivered, Some(204), 2));
    }

    #[test]
    fn addresses_are_counted_once_whoever_sent_to_them() {
        let (mut state, key) = (state(), (id("alert"), 1, id("channel")));
        state.push(change(1, MessageStatus::Pending));
        let mailed = |accepted: &[u64], refused: &[u64]| Mailed { accepted: accepted.into(), refused: refused.into() };
        state.tried(&key, &(Ok(451), mailed(&[1, 2], &[3])), Instant(0));
        state.tried(&key, &(Err("timeout"), mailed(&[2], &[3])), Instant(0));
        let progress = MailProgress { done: vec![1, 2, 3], accepted: 2, refused: 1 };
        assert_eq!(state.changes[0].messages[0].progress, progress);
        state.tried(&key, &(Ok(250), mailed(&[4], &[])), Instant(0));
        let message = &state.changes[0].messages[0];
        assert_eq!(message.status, MessageStatus::Delivered);
        assert_eq!(message.progress, MailProgress { done: vec![], accepted: 3, refused: 1 });
    }

    #[test]
    fn changes_with_pending_messages_are_never_forgotten() {
        let mut state = state();
        state.push(change(1, MessageStatus::Pending));
        (2..=100).for_each(|number| state.push(change(number, MessageStatus::Delivered)));
        assert_eq!((state.changes.len(), state.next_number()), (100, 101));
        state.changes[0].messages[0].status = MessageStatus::Dead;
        state.push(change(101, MessageStatus::Pending));
        assert_eq!((state.changes.len(), state.changes[0].number), (MAX_CHANGES, 42));
    }
}
