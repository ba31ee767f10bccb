//! Evaluates alerts, on its own thread, and sends their messages.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::{AskError, EngineParts};
use headcount_common::{ControlError, partition_of};
use headcount_control::{DefinitionId, DefinitionKind};
use headcount_domain::figures::{ComparedWindows, Report, ReportQuery, ReportQuestion};
use headcount_domain::time::{Day, Interval, Timezone};
use headcount_domain::{Instant, Position, ProjectId, Window};
use tokio::task::JoinSet;

use crate::alert::{Alert, AlertEvents, AlertRule, Condition};
use crate::alert_message::message;
use crate::alert_state::{AlertChange, AlertMessage, AlertState, MessageKey, MessageStatus, Outcome, TRIED_MS};
use crate::channel::Channel;
use crate::evaluation::{ChangeKind, Evaluation, Reading};
use crate::pushed::Pushed;

/// How often projects are looked at for new events.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The pause after a project was evaluated, as a multiple of its time.
const REST: u32 = 4;
/// The pause after a failure of the server itself.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// How long a message waits whose delivery could not be recorded: it may be sent twice.
const AFTER_UNRECORDED: Duration = Duration::from_secs(60);
/// Threads for messages, their states, and questions.
const MAX_THREADS: usize = 20;

/// Answers with the figures of an alert, as `report` does.
pub(crate) async fn report(
    parts: &EngineParts,
    project: ProjectId,
    events: &AlertEvents,
    (window, interval): (Window, Interval),
) -> Result<Report, AskError> {
    let windows = ComparedWindows { window, previous: None };
    match events.predicate.clone() {
        None => parts.ask(project, ReportQuery { windows, interval }).await,
        Some(predicate) => {
            let question = ReportQuestion { windows, interval, predicate, goal: events.goal.clone() };
            parts.scans.report(project, question).await
        }
    }
}

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

/// What an answer about a project depends on: its events, its erasures and its day.
type Seen = (Position, u64, Day);

/// Why an alert was not evaluated.
#[derive(Debug, thiserror::Error)]
enum Unevaluated {
    #[error(transparent)]
    Asked(#[from] AskError),
    #[error(transparent)]
    Unwritten(#[from] ControlError),
    #[error("its state could not be changed: {0}")]
    Failed(#[from] tokio::task::JoinError),
}

/// Work that has ended.
enum Ended {
    /// The alerts of a project were evaluated: what was seen, whether one waits for the end of its
    /// cooldown, and how long it took.
    Evaluated { project: ProjectId, generation: u64, seen: Seen, waits: Result<bool, Unevaluated>, took: Duration },
    /// A message was tried.
    Sent(MessageKey),
}

struct Evaluator {
    pushed: Arc<Pushed>,
    alerts: BTreeMap<ProjectId, Arc<[Arc<Alert>]>>,
    /// Rises when the definitions are read again.
    generation: u64,
    /// What was evaluated of each project, and whether twice: an event in the log may be counted later.
    seen: HashMap<ProjectId, (Seen, bool)>,
    /// The projects that are being evaluated.
    evaluating: HashSet<ProjectId>,
    /// Until when a project rests.
    rests: HashMap<ProjectId, Stopwatch>,
    /// The messages that are being sent.
    sending: HashSet<MessageKey>,
    tasks: JoinSet<Ended>,
}

impl Evaluator {
    fn new(pushed: Arc<Pushed>) -> Self {
        Self {
            pushed,
            alerts: BTreeMap::new(),
            generation: 0,
            seen: HashMap::new(),
            evaluating: HashSet::new(),
            rests: HashMap::new(),
            sending: HashSet::new(),
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
            self.look();
            let is_idle = self.alerts.is_empty() && self.tasks.is_empty();
            tokio::select! {
                _ = control.changed(), if is_idle => control.mark_changed(),
                () = pushed.work.notified() => {}
                Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => match ended {
                    Ok(ended) => self.end(ended),
                    Err(error) => tracing::error!(%error, "the evaluation of alerts failed"),
                },
                () = tokio::time::sleep(LOOK_EVERY), if !is_idle => {}
            }
        }
    }

    /// Reads the definitions again.
    fn read(&mut self) {
        self.generation += 1;
        self.alerts.clear();
        self.seen.clear();
        self.rests.clear();
        let registry = self.pushed.parts.registry();
        for organization in registry.organizations() {
            for project in registry.projects(organization.id).unwrap_or_default() {
                let alerts = registry.definitions((organization.id, Some(project.id)), DefinitionKind::Alert);
                // An alert that names a removed goal or segment has no figure.
                let read: Vec<_> = (alerts.unwrap_or_default().iter())
                    .filter_map(|definition| Alert::of(definition, registry).ok().map(Arc::new))
                    .collect();
                if !read.is_empty() {
                    self.alerts.insert(project.id, read.into());
                }
            }
        }
    }

    /// Begins to evaluate the alerts of projects that have changed, and to send what is due.
    fn look(&mut self) {
        let now = self.pushed.parts.clock().now();
        for (project, alerts) in &self.alerts {
            let (project, is_resting) = (*project, self.rests.get(project).is_some_and(|until| Stopwatch::now() < *until));
            if is_resting || self.evaluating.contains(&project) {
                continue;
            }
            let parts = &self.pushed.parts;
            let Some(config) = parts.registry().policy(project).filter(|_| self.pushed.is_here(project)) else {
                self.seen.remove(&project);
                continue;
            };
            let (timezone, partition) = (config.policy.timezone, partition_of(project));
            let seen = (parts.last_position(partition), parts.reflected_erasures(project), timezone.day_of(now));
            let before = self.seen.get(&project).copied();
            if before == Some((seen, true)) {
                continue;
            }
            self.evaluating.insert(project);
            let (pushed, alerts, generation) = (Arc::clone(&self.pushed), Arc::clone(alerts), self.generation);
            self.tasks.spawn(async move {
                let began = Stopwatch::now();
                let waits = evaluate_all(&pushed, &alerts, before.is_none(), (timezone, now)).await;
                Ended::Evaluated { project, generation, seen, waits, took: began.elapsed() }
            });
        }
        self.send_due(now);
    }

    fn end(&mut self, ended: Ended) {
        match ended {
            Ended::Sent(key) => drop(self.sending.remove(&key)),
            Ended::Evaluated { project, generation, seen, waits, took } => {
                self.evaluating.remove(&project);
                let rest = if waits.is_ok() { took * REST } else { AFTER_FAILURE };
                self.rests.insert(project, Stopwatch::now() + rest);
                let before = self.seen.remove(&project);
                match waits {
                    Ok(false) if generation == self.generation => {
                        self.seen.insert(project, (seen, before.is_some_and(|(before, _)| before == seen)));
                    }
                    Ok(_) => {}
                    Err(error) => tracing::debug!(%project, %error, "alerts could not be evaluated; they are tried again"),
                }
            }
        }
    }

    /// Begins to send the messages that are due.
    fn send_due(&mut self, now: Instant) {
        let pushed = &self.pushed;
        for key in pushed.states.due(now, |project| pushed.is_here(project)) {
            if self.sending.contains(&key) {
                continue;
            }
            let Some(send) = self.prepared(&key, now) else { continue };
            self.sending.insert(key.clone());
            let pushed = Arc::clone(pushed);
            self.tasks.spawn(async move {
                let outcome = match tokio::task::spawn_blocking(send).await {
                    Ok(outcome) => outcome,
                    Err(_) => Err("internal_error"),
                };
                // A message is not tried once more because the engine closes.
                let tried = key.clone();
                let recorded = pushed.blocking(move |pushed| record(pushed, &tried, outcome)).await;
                if let Ok(Err(error)) = recorded {
                    tracing::warn!(alert = %key.0, %error, "the delivery of a message could not be recorded; it is sent again");
                    tokio::time::sleep(AFTER_UNRECORDED).await;
                }
                Ended::Sent(key)
            });
        }
    }

    /// Returns what sends a message; `None` if too many are being sent, or the alert is gone.
    fn prepared(&self, (id, number, channel): &MessageKey, now: Instant) -> Option<Box<dyn FnOnce() -> Outcome + Send>> {
        let (pushed, registry) = (&self.pushed, self.pushed.parts.registry());
        let state = pushed.states.get(id)?;
        let change = state.changes.iter().find(|change| change.number == *number)?;
        let alert = self.alerts.get(&state.project)?.iter().find(|alert| alert.id == *id)?;
        // A server that was off for a day has no news.
        if now.0.saturating_sub(change.at.0) > TRIED_MS {
            return Some(Box::new(|| Err("too_old")));
        }
        let project = registry.project(state.organization, state.project).ok()?;
        let config = registry.policy(state.project)?;
        let currency = project.currency.to_string();
        let message = message(alert, change, (&project.name, &currency, config.policy.timezone.name()));
        let channel = registry.definition((state.organization, None), channel).ok();
        let Some(channel) = channel.as_deref().and_then(Channel::of) else { return Some(Box::new(|| Err("channel_removed"))) };
        let permit = pushed.permit(state.organization)?;
        Some(Box::new(move || permit.send(&channel, &message)))
    }
}

/// Evaluates the alerts of a project. Returns whether one waits for the end of its cooldown.
async fn evaluate_all(
    pushed: &Arc<Pushed>,
    alerts: &[Arc<Alert>],
    is_first: bool,
    at: (Timezone, Instant),
) -> Result<bool, Unevaluated> {
    if is_first {
        // Another node may have evaluated since.
        pushed.blocking(|pushed| pushed.states.follow()).await??;
    }
    let (mut waits, mut failed) = (false, Ok(()));
    for alert in alerts {
        // An alert that can't be evaluated delays no other one.
        match evaluate(pushed, alert, at).await {
            Ok(is_waiting) => waits |= is_waiting,
            Err(error) => failed = Err(error),
        }
    }
    failed.map(|()| waits)
}

/// Evaluates an alert. Returns whether it waits for the end of its cooldown.
async fn evaluate(pushed: &Arc<Pushed>, alert: &Arc<Alert>, (timezone, now): (Timezone, Instant)) -> Result<bool, Unevaluated> {
    let AlertRule { figure, over, condition, .. } = alert.rule;
    let Some(window) = evaluated_window(alert, timezone, now) else { return Ok(false) };
    let report = report(&pushed.parts, alert.project, &alert.events, (window, over.into())).await?;
    pushed.counts.evaluated.fetch_add(1, Ordering::Relaxed);
    let reading = Reading { window: window.start, value: figure.of(&report.current.totals) };
    let firings = pushed.states.get(&alert.id).map_or_else(Default::default, |state| state.firings);
    match firings.evaluate(condition, figure, reading, now) {
        Evaluation::Same => return Ok(false),
        Evaluation::Waits => return Ok(true),
        Evaluation::Changed(_) => {}
    }
    let alert = Arc::clone(alert);
    let kind = pushed.blocking(move |pushed| change(pushed, &alert, reading, window, now)).await??;
    if kind == Some(ChangeKind::Fired) {
        pushed.counts.fired.fetch_add(1, Ordering::Relaxed);
    }
    Ok(false)
}

/// The window that an alert is evaluated by now: the current one, or the last one that is over. `None`: no
/// window has ended since the alert was made.
fn evaluated_window(alert: &Alert, timezone: Timezone, now: Instant) -> Option<Window> {
    let interval = Interval::from(alert.rule.over);
    let current = interval.window_of(timezone.day_of(now));
    match alert.rule.condition {
        Condition::Above(_) => Some(current),
        Condition::Below(_) => {
            let last = interval.window_of(current.start.plus(-1));
            (timezone.end_of(last.end) > alert.created_at).then_some(last)
        }
    }
}

/// Records a change with its messages, unless another node did. Returns the change. Blocks.
fn change(
    pushed: &Pushed,
    alert: &Alert,
    reading: Reading,
    window: Window,
    now: Instant,
) -> Result<Option<ChangeKind>, ControlError> {
    let Some(config) = pushed.parts.registry().policy(alert.project) else { return Ok(None) };
    let AlertRule { figure, condition, channels, muted_until, .. } = &alert.rule;
    let is_muted = muted_until.is_some_and(|until| now < until);
    let kind = std::cell::Cell::new(None);
    let edit = |state: Option<AlertState>| {
        let mut state = state.unwrap_or_else(|| AlertState::new(config.policy.organization, alert.project));
        let Evaluation::Changed(change) = state.firings.evaluate(*condition, *figure, reading, now) else { return None };
        kind.set(Some(change));
        state.firings = state.firings.after(change, reading, now);
        let message = |channel: &DefinitionId| AlertMessage {
            channel: channel.clone(),
            status: MessageStatus::Pending,
            attempts: 0,
            next_at: now,
            last_status: None,
            last_error: None,
        };
        let messages = if is_muted { Vec::new() } else { channels.iter().map(message).collect() };
        let (value, window) = (reading.value.to_string(), (window.start, window.end));
        state.push(AlertChange { number: state.next_number(), kind: change, at: now, value, window, messages });
        Some(Some(state))
    };
    let is_changed = pushed.states.change(&alert.id, edit)?;
    Ok(kind.get().filter(|_| is_changed))
}

/// Records a try of a message. Blocks.
fn record(pushed: &Pushed, key: &MessageKey, outcome: Outcome) -> Result<(), ControlError> {
    let now = pushed.parts.clock().now();
    let edit = |state: Option<AlertState>| {
        let mut state = state?;
        state.tried(key, outcome, now).then_some(Some(state))
    };
    pushed.states.change(&key.0, edit)?;
    pushed.counts.count(outcome);
    Ok(())
}

#[cfg(test)]
mod tests;
