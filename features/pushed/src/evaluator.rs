//! Evaluates alerts, on its own thread, and sends their messages.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::AskError;
use headcount_common::ControlError;
use headcount_control::{DefinitionId, DefinitionKind};
use headcount_domain::time::{Day, Interval, Timezone};
use headcount_domain::{Depends, Instant, OrganizationId, Position, ProjectId, Window};
use tokio::task::JoinSet;

use crate::alert::Alert;
use crate::alert_message::message;
use crate::alert_state::{AlertChange, AlertMessage, AlertState, MessageKey, Outcome, TRIED_MS};
use crate::alert_values::{Asked, read};
use crate::channel::{Channel, Post};
use crate::evaluation::{COOLDOWN_MS, ChangeKind, Evaluation, Reading};
use crate::mail::Mailed;
use crate::pushed::Pushed;

/// How often projects are looked at for new events.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The pause after a project was evaluated, as a multiple of its time.
const REST: u32 = 4;
/// The shortest pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// The pause before a delivery that could not be recorded is recorded again.
const AFTER_UNRECORDED: Duration = Duration::from_secs(5);
/// The number of projects that are evaluated at the same time, in all and of one organization.
const MAX_EVALUATING: (usize, usize) = (8, 2);
/// Threads for messages, their states, and questions.
const MAX_THREADS: usize = 40;
/// How long a window is evaluated after its end, in which events come late.
const LATE_MS: i64 = 48 * 60 * 60 * 1_000;

/// Evaluates, on its own thread, until the engine closes.
///
/// # Errors
/// The thread can't be started.
pub(crate) fn start(pushed: Arc<Pushed>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().max_blocking_threads(MAX_THREADS).build()?;
    std::thread::Builder::new().name("alerts".into()).spawn(move || {
        runtime.block_on(Evaluator::new(pushed).run());
        // A slow channel delays nothing. Its message is sent again after the next start.
        runtime.shutdown_background();
    })?;
    Ok(())
}

/// What the figures of a project depend on: the data, its last event, and the day.
type Seen = (u128, Position, Day);

/// Why alerts were not evaluated.
#[derive(Debug, thiserror::Error)]
enum Unevaluated {
    #[error(transparent)]
    Asked(#[from] AskError),
    #[error(transparent)]
    Unwritten(#[from] ControlError),
    #[error("the work was cut short: {0}")]
    Cut(#[from] tokio::task::JoinError),
}

/// The alerts of a project that were evaluated.
struct Evaluated {
    project: ProjectId,
    /// The alerts, as they were read.
    alerts: ProjectAlerts,
    seen: Seen,
    /// When the cooldown of an alert ends whose condition holds.
    outcome: Result<Option<Instant>, Unevaluated>,
    took: Duration,
}

/// Work that has ended.
enum Ended {
    Evaluated(Evaluated),
    Sent(MessageKey),
}

type ProjectAlerts = Arc<[Alert]>;

/// Sends a message once. Blocks.
type Send = Box<dyn FnOnce() -> Outcome + std::marker::Send>;

struct Evaluator {
    pushed: Arc<Pushed>,
    alerts: BTreeMap<ProjectId, ProjectAlerts>,
    /// What was evaluated of each project, and when it is evaluated again without a change.
    seen: HashMap<ProjectId, (Seen, Option<Instant>)>,
    /// The projects that are being evaluated, each with its organization.
    evaluating: HashMap<ProjectId, OrganizationId>,
    /// Until when a project rests.
    rests: HashMap<ProjectId, Stopwatch>,
    /// The projects whose states have been followed since this machine owns them.
    followed: HashSet<ProjectId>,
    /// The messages that are being sent, each with its organization.
    sending: HashMap<MessageKey, OrganizationId>,
    tasks: JoinSet<Ended>,
}

impl Evaluator {
    fn new(pushed: Arc<Pushed>) -> Self {
        Self {
            pushed,
            alerts: BTreeMap::new(),
            seen: HashMap::new(),
            evaluating: HashMap::new(),
            rests: HashMap::new(),
            followed: HashSet::new(),
            sending: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    async fn run(mut self) {
        let pushed = Arc::clone(&self.pushed);
        let mut control = pushed.parts.registry().changes();
        control.mark_changed();
        while !pushed.is_stopped() {
            if control.has_changed().unwrap_or(false) {
                control.mark_unchanged();
                self.read();
            }
            self.look().await;
            let is_idle = self.alerts.is_empty() && self.tasks.is_empty();
            tokio::select! {
                _ = control.changed(), if is_idle => control.mark_changed(),
                () = pushed.work.notified() => {}
                Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => match ended {
                    Ok(ended) => self.end(ended),
                    Err(error) => {
                        tracing::error!(%error, "the evaluation of alerts failed");
                        // The project is unknown. To evaluate one twice does no harm.
                        self.evaluating.clear();
                    }
                },
                () = tokio::time::sleep(LOOK_EVERY), if !is_idle => {}
            }
        }
    }

    /// Reads the definitions again. Alerts that are the same keep their rest.
    fn read(&mut self) {
        let mut former = std::mem::take(&mut self.alerts);
        let registry = self.pushed.parts.registry();
        for organization in registry.organizations() {
            for project in registry.projects(organization.id).unwrap_or_default() {
                let alerts = registry.definitions((organization.id, Some(project.id)), DefinitionKind::Alert);
                let alerts = alerts.unwrap_or_default();
                // Without its goal or segment an alert has no figure. Its messages still go.
                let read: ProjectAlerts = alerts.iter().filter_map(|alert| Alert::of(alert, registry).ok()).collect();
                let former = former.remove(&project.id).filter(|former| *former == read);
                if former.is_none() {
                    self.seen.remove(&project.id);
                }
                if !alerts.is_empty() {
                    self.alerts.insert(project.id, former.unwrap_or(read));
                }
            }
        }
        self.seen.retain(|project, _| self.alerts.contains_key(project));
        self.rests.retain(|project, _| self.alerts.contains_key(project));
        self.followed.retain(|project| self.alerts.contains_key(project));
    }

    /// Begins to evaluate the alerts of projects that have changed, and to send what is due.
    async fn look(&mut self) {
        let (parts, now) = (self.pushed.parts.clone(), self.pushed.parts.clock().now());
        let mut rested = Vec::new();
        for (project, alerts) in &self.alerts {
            let rest = self.rests.get(project).copied();
            if self.evaluating.contains_key(project) || rest.is_some_and(|until| Stopwatch::now() < until) {
                continue;
            }
            let Some(config) = parts.registry().policy(*project).filter(|_| self.pushed.is_here(*project)) else {
                self.seen.remove(project);
                self.followed.remove(project);
                continue;
            };
            let timezone = config.policy.timezone;
            let Ok((incarnation, last)) = parts.version(*project, &Depends::Everything).await else { continue };
            let seen = (incarnation, last, timezone.day_of(now));
            let is_same = |(before, again): &(Seen, Option<Instant>)| *before == seen && again.is_none_or(|again| now < again);
            if !self.seen.get(project).is_some_and(is_same) {
                rested.push((rest, *project, config.policy.organization, (Arc::clone(alerts), timezone, seen)));
            }
        }
        // Who has rested the longest comes first.
        rested.sort_by_key(|(rest, project, ..)| (*rest, *project));
        for (_, project, organization, (alerts, timezone, seen)) in rested {
            let of_one = self.evaluating.values().filter(|other| **other == organization).count();
            if self.evaluating.len() >= MAX_EVALUATING.0 || of_one >= MAX_EVALUATING.1 {
                continue;
            }
            self.evaluating.insert(project, organization);
            let (pushed, is_followed) = (Arc::clone(&self.pushed), self.followed.contains(&project));
            self.tasks.spawn(async move {
                let began = Stopwatch::now();
                let outcome = evaluate_all(&pushed, &alerts, is_followed, (timezone, now)).await;
                Ended::Evaluated(Evaluated { project, alerts, seen, outcome, took: began.elapsed() })
            });
        }
        self.send_due(now);
    }

    fn end(&mut self, ended: Ended) {
        let Evaluated { project, alerts, seen, outcome, took } = match ended {
            Ended::Sent(key) => {
                self.sending.remove(&key);
                return;
            }
            Ended::Evaluated(evaluated) => evaluated,
        };
        self.evaluating.remove(&project);
        let least = if outcome.is_ok() { Duration::ZERO } else { AFTER_FAILURE };
        self.rests.insert(project, Stopwatch::now() + least.max(took * REST));
        let is_current = self.alerts.get(&project).is_some_and(|current| Arc::ptr_eq(current, &alerts));
        if matches!(outcome, Ok(_) | Err(Unevaluated::Asked(_))) && self.pushed.is_here(project) {
            self.followed.insert(project);
        }
        match outcome {
            Ok(again) if is_current => drop(self.seen.insert(project, (seen, again))),
            Ok(_) => {}
            Err(error) => {
                self.seen.remove(&project);
                tracing::debug!(%project, %error, "alerts could not be evaluated; they are tried again");
            }
        }
    }

    /// Begins to send the messages that are due, at first for the organizations with the fewest.
    fn send_due(&mut self, now: Instant) {
        let pushed = &self.pushed;
        let mut due = pushed.states.due(now, |project| self.followed.contains(&project) && pushed.is_here(project));
        let count = |organization| self.sending.values().filter(|other| **other == organization).count();
        due.sort_by_cached_key(|(organization, at, _)| (count(*organization), *at));
        for (organization, _, key) in due {
            // A channel gets one message at a time.
            if self.sending.keys().any(|(_, _, channel)| *channel == key.2) {
                continue;
            }
            let Some(send) = self.prepared(&key, now) else { continue };
            self.sending.insert(key.clone(), organization);
            let pushed = Arc::clone(&self.pushed);
            self.tasks.spawn(async move {
                let sent = tokio::task::spawn_blocking(send).await;
                let outcome = sent.unwrap_or_else(|_| (Err("internal_error"), Mailed::default()));
                // The message is sent, whatever happens to its record.
                loop {
                    let (tried, outcome) = (key.clone(), outcome.clone());
                    match pushed.blocking(move |pushed| record(pushed, &tried, &outcome)).await {
                        Ok(Ok(())) => break,
                        Ok(Err(error)) => tracing::warn!(alert = %key.0, %error, "a delivery could not be recorded yet"),
                        Err(error) => tracing::warn!(alert = %key.0, %error, "a delivery could not be recorded yet"),
                    }
                    if pushed.is_stopped() {
                        break;
                    }
                    tokio::time::sleep(AFTER_UNRECORDED).await;
                }
                Ended::Sent(key)
            });
        }
    }

    /// Returns what sends a message; `None` if too many are being sent, or the alert is gone.
    fn prepared(&self, (id, number, channel): &MessageKey, now: Instant) -> Option<Send> {
        let (pushed, registry) = (&self.pushed, self.pushed.parts.registry());
        let state = pushed.states.get(id)?;
        registry.definition((state.organization, Some(state.project)), id).ok()?;
        let change = state.changes.into_iter().find(|change| change.number == *number)?;
        let never = |code| -> Option<Send> { Some(Box::new(move || (Err(code), Mailed::default()))) };
        // A server that was off for a day has no news.
        if now.0.saturating_sub(change.at.0) > TRIED_MS {
            return never("too_old");
        }
        let found = registry.definition((state.organization, None), channel).ok();
        let Some(found) = found.as_deref().and_then(Channel::of) else { return never("channel_removed") };
        let permit = pushed.permit((state.organization, found.recipients().is_some()))?;
        // Two channels may have one address.
        let (channel, message_id) = (channel.clone(), format!("{id}.{number}.{channel}"));
        Some(Box::new(move || {
            let Some(message) = change.messages.iter().find(|message| message.channel == channel) else {
                return (Err("channel_removed"), Mailed::default());
            };
            let (attempts, done) = (message.attempts, &message.progress.done[..]);
            permit.send(&found, Post { message: &change.message, id: &message_id, attempts, done })
        }))
    }
}

/// Evaluates the alerts of a project. Returns when the cooldown ends of an alert whose condition holds.
async fn evaluate_all(
    pushed: &Arc<Pushed>,
    alerts: &[Alert],
    is_followed: bool,
    at: (Timezone, Instant),
) -> Result<Option<Instant>, Unevaluated> {
    if !is_followed {
        // Another node may have evaluated since.
        pushed.blocking(|pushed| pushed.states.follow()).await??;
    }
    let (timezone, now) = at;
    let of = alerts.iter().find(|alert| alert.events.predicate.is_some());
    let floor = match of {
        Some(alert) => pushed.parts.floor(alert.project).await?,
        None => None,
    };
    let Some(project) = alerts.first().map(|alert| alert.project) else { return Ok(None) };
    let (mut again, mut failed) = (None, Ok(()));
    // Comparisons ask for more windows, and only about windows that are over: they can wait.
    for is_change in [false, true] {
        let mut windows = Vec::new();
        for alert in alerts.iter().filter(|alert| alert.rule.condition.is_change() == is_change) {
            let mut evaluated = evaluated_windows(alert, timezone, now);
            evaluated.retain(|(window, _)| !alert.events.is_below(floor, window.start));
            windows.extend(evaluated.into_iter().map(|window| (alert, window)));
        }
        let asked = windows.iter().map(|(Alert { rule, events, .. }, (window, _))| Asked { rule, events, window: *window });
        let asked: Vec<_> = asked.collect();
        let (read, failure) = read(&pushed.parts, project, &asked, (timezone.day_of(now), floor)).await;
        failed = failure.map_or(failed, |error| Err(error.into()));
        for ((alert, (window, is_late)), read) in windows.into_iter().zip(read) {
            let Some((value, baseline)) = read else { continue };
            match evaluate(pushed, alert, Reading { window, is_late, value, baseline }, now).await {
                Ok(None) => {}
                Ok(Some(end)) => again = Some(again.map_or(end, |again: Instant| again.min(end))),
                // The others are still evaluated.
                Err(error) => failed = Err(error),
            }
        }
    }
    failed.map(|()| again)
}

/// Evaluates a figure of an alert. Returns when its cooldown ends, if its condition holds.
async fn evaluate(pushed: &Arc<Pushed>, alert: &Alert, reading: Reading, now: Instant) -> Result<Option<Instant>, Unevaluated> {
    pushed.counts.evaluated.fetch_add(1, Ordering::Relaxed);
    let firings = pushed.states.get(&alert.id).map_or_else(Default::default, |state| state.firings_of(alert));
    match firings.evaluate(alert.rule.condition, alert.rule.figure, reading, now) {
        Evaluation::Same => return Ok(None),
        Evaluation::Waits => return Ok(firings.last_fired.map(|last| last.plus_ms(COOLDOWN_MS))),
        Evaluation::Changed(_) => {}
    }
    let alert = alert.clone();
    if pushed.blocking(move |pushed| change(pushed, &alert, reading, now)).await?? == Some(ChangeKind::Fired) {
        pushed.counts.fired.fetch_add(1, Ordering::Relaxed);
    }
    Ok(None)
}

/// The windows that an alert is evaluated in now, and whether events in each are late: the last one
/// that is over, unless it ended before the alert was made; and the current one, if the figure can pass
/// the threshold before its end.
pub(crate) fn evaluated_windows(alert: &Alert, timezone: Timezone, now: Instant) -> Vec<(Window, bool)> {
    let interval = Interval::from(alert.rule.over);
    let current = interval.window_of(timezone.day_of(now));
    let last = interval.window_of(current.start.plus(-1));
    let end = timezone.end_of(last.end);
    let is_running = alert.rule.is_running();
    let is_late = is_running && now.0.saturating_sub(end.0) <= LATE_MS;
    let mut windows = Vec::with_capacity(2);
    if end > alert.created_at && (is_late || !is_running) {
        windows.push((last, is_running));
    }
    if is_running {
        windows.push((current, false));
    }
    windows
}

/// Records a change with its messages, unless another node did. Returns the change. Blocks.
fn change(pushed: &Pushed, alert: &Alert, reading: Reading, now: Instant) -> Result<Option<ChangeKind>, ControlError> {
    let registry = pushed.parts.registry();
    let Some(config) = registry.policy(alert.project) else { return Ok(None) };
    let organization = config.policy.organization;
    let Ok(project) = registry.project(organization, alert.project) else { return Ok(None) };
    let is_muted = alert.rule.muted_until.is_some_and(|until| now < until);
    let kind = std::cell::Cell::new(None);
    let edit = |state: Option<AlertState>| {
        // It may have been removed meanwhile, with its state.
        registry.definition((organization, Some(alert.project)), &alert.id).ok()?;
        let mut state = state.unwrap_or_else(|| AlertState::new(organization, alert.project));
        let firings = state.firings_of(alert);
        let Evaluation::Changed(change) = firings.evaluate(alert.rule.condition, alert.rule.figure, reading, now) else {
            return None;
        };
        kind.set(Some(change));
        (state.rule, state.firings) = (alert.fingerprint.clone(), firings.after(change, reading, now));
        // Nobody hears of the end who did not hear of the beginning.
        let is_heard = !is_muted && (change == ChangeKind::Fired || state.was_announced());
        let to = |channel: &DefinitionId| AlertMessage::new(channel.clone(), now);
        state.push(AlertChange {
            number: state.next_number(),
            kind: change,
            at: now,
            value: reading.value.micros().to_string(),
            window: (reading.window.start, reading.window.end),
            message: message(
                alert,
                change,
                reading,
                (&project.name, &project.currency.to_string(), config.policy.timezone.name()),
                pushed.settings.public_url.as_deref(),
            ),
            messages: if is_heard { alert.rule.channels.iter().map(to).collect() } else { Vec::new() },
        });
        Some(Some(state))
    };
    let is_changed = pushed.states.change(&alert.id, edit)?;
    Ok(kind.get().filter(|_| is_changed))
}

/// Records a try of a message. Blocks.
fn record(pushed: &Pushed, key: &MessageKey, outcome: &Outcome) -> Result<(), ControlError> {
    let now = pushed.parts.clock().now();
    let edit = |state: Option<AlertState>| {
        let mut state = state?;
        state.tried(key, outcome, now).then_some(Some(state))
    };
    pushed.states.change(&key.0, edit)?;
    pushed.counts.count(outcome.0);
    Ok(())
}

#[cfg(test)]
mod tests;
