//! Sends the notifications of webhooks, on its own thread.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::{AskError, FirstEvents};
use headcount_common::partition_of;
use headcount_control::WebhookId;
use headcount_domain::{Depends, Event, Instant, OrganizationId, Position};
use tokio::task::JoinSet;

use crate::request::{Notification, SignedRequest, signature};
use crate::sending::{DeliveryAttempt, Outlook};
use crate::store::Webhooks;
use crate::webhook::KIND;

/// The number of webhooks that send at the same time.
const MAX_SENDING: usize = 16;
/// The number for one organization, so that its slow receivers leave room for others.
const MAX_SENDING_OF_ONE: usize = 4;
/// How long wake-ups are collected, so that many notifications cause one.
const COLLECT: Duration = Duration::from_millis(20);
/// How long a webhook sends before the next one has its turn.
const TURN: Duration = Duration::from_secs(2);
/// The pause after a failure of the server itself.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// The maximum time between two checks: a project may have an event whose sender was gone when it
/// was recorded.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How often progress is written.
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// How many notifications are read at a time, and how many bytes of them.
const READ_TOGETHER: (usize, usize) = (100, 1 << 20);

/// The notification of an event, if it is one to send, with its size in bytes.
fn notification(position: Position, event: &Event) -> Option<(Notification, usize)> {
    let notification = Notification::of(position, event)?;
    let bytes = notification.bytes();
    Some((notification, bytes))
}

/// Sends, on its own thread, until the webhooks are stopped.
///
/// # Errors
/// The thread can't be started.
pub(crate) fn start(webhooks: Arc<Webhooks>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().max_blocking_threads(MAX_SENDING + 1).build()?;
    std::thread::Builder::new().name(KIND.into()).spawn(move || {
        runtime.block_on(Turns::new(Sender { webhooks }).run());
        // A slow receiver delays nothing. Its notification is sent again after the next start.
        runtime.shutdown_background();
    })?;
    Ok(())
}

/// The time of a webhook's next turn.
enum NextTurn {
    /// At once, after the other webhooks.
    Again,
    /// After this time, unless it is changed before.
    After(Duration),
    /// With the next notification.
    Woken,
}

type WebhookTurn = (WebhookId, OrganizationId, NextTurn);

/// Decides which webhook has the next turn.
struct Turns {
    sender: Sender,
    due: BTreeMap<WebhookId, (OrganizationId, Stopwatch)>,
    /// Webhooks whose last try failed. New events of a project don't shorten their wait.
    waiting: HashSet<WebhookId>,
    sending: HashMap<WebhookId, OrganizationId>,
    /// Webhooks that were woken while they sent.
    again: HashSet<WebhookId>,
    turns: JoinSet<WebhookTurn>,
}

impl Turns {
    fn new(sender: Sender) -> Self {
        let now = Stopwatch::now();
        let due = sender.webhooks.all().into_iter().map(|(id, organization)| (id, (organization, now))).collect();
        Self { sender, due, waiting: HashSet::new(), sending: HashMap::new(), again: HashSet::new(), turns: JoinSet::new() }
    }

    async fn run(mut self) {
        let (webhooks, mut looked, mut saved) = (Arc::clone(&self.sender.webhooks), Stopwatch::now(), Stopwatch::now());
        while !webhooks.is_stopped() {
            let is_look = looked.elapsed() >= LOOK_EVERY;
            if is_look {
                looked = Stopwatch::now();
            }
            self.note_woken(is_look);
            let now = Stopwatch::now();
            while let Some(id) = self.next_turn(now) {
                self.begin(id);
            }
            if webhooks.is_unsaved() && saved.elapsed() >= SAVE_EVERY {
                saved = Stopwatch::now();
                self.sender.save().await;
            }
            let pause = self.pause(now, webhooks.is_unsaved());
            tokio::select! {
                Some(ended) = self.turns.join_next(), if !self.turns.is_empty() => match ended {
                    Ok(turn) => self.end(turn),
                    Err(error) => tracing::error!(%error, "the sending of a webhook failed"),
                },
                () = webhooks.work.notified() => tokio::time::sleep(COLLECT).await,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Makes the webhooks of projects with new events due, or all webhooks.
    fn note_woken(&mut self, all: bool) {
        let woken = self.sender.webhooks.take_woken();
        if woken.is_empty() && !all {
            return;
        }
        let now = Stopwatch::now();
        let webhooks = &self.sender.webhooks;
        for (id, organization) in if all { webhooks.all() } else { webhooks.of_projects(&woken) } {
            if self.sending.contains_key(&id) {
                self.again.insert(id);
            } else if !self.waiting.contains(&id) {
                self.due.entry(id).or_insert((organization, now));
            } else if self.sender.webhooks.outlook(&id).is_none_or(|outlook| outlook.next_at.is_none()) {
                // A replay or a pause ended the wait.
                self.waiting.remove(&id);
                self.due.insert(id, (organization, now));
            }
        }
    }

    /// Returns the webhook that is due `now`, of the organization with the fewest sending webhooks.
    fn next_turn(&self, now: Stopwatch) -> Option<WebhookId> {
        if self.sending.len() >= MAX_SENDING {
            return None;
        }
        let mut of_one: HashMap<OrganizationId, usize> = HashMap::new();
        self.sending.values().for_each(|organization| *of_one.entry(*organization).or_default() += 1);
        let count = |organization: &OrganizationId| of_one.get(organization).copied().unwrap_or(0);
        let due = self.due.iter().filter(|(_, (organization, at))| *at <= now && count(organization) < MAX_SENDING_OF_ONE);
        due.min_by_key(|(_, (organization, at))| (count(organization), *at)).map(|(id, _)| id.clone())
    }

    fn begin(&mut self, id: WebhookId) {
        let Some((organization, _)) = self.due.remove(&id) else { return };
        self.waiting.remove(&id);
        self.sending.insert(id.clone(), organization);
        let sender = self.sender.clone();
        self.turns.spawn(async move {
            let next = sender.turn(&id).await;
            (id, organization, next)
        });
    }

    fn end(&mut self, (id, organization, next): WebhookTurn) {
        self.sending.remove(&id);
        let now = Stopwatch::now();
        let is_woken = self.again.remove(&id);
        match next {
            NextTurn::After(wait) => {
                self.waiting.insert(id.clone());
                self.due.insert(id, (organization, now + wait));
            }
            NextTurn::Woken if !is_woken => {}
            NextTurn::Again | NextTurn::Woken => {
                self.due.insert(id, (organization, now));
            }
        }
    }

    /// Returns the time until another webhook is due. Webhooks that were due at `looked` and did
    /// not begin wait for the end of another one.
    fn pause(&self, looked: Stopwatch, is_unsaved: bool) -> Duration {
        let free = self.sending.len() < MAX_SENDING;
        let later = self.due.values().map(|(_, at)| *at).filter(|at| *at > looked).min().filter(|_| free);
        let most = if is_unsaved { SAVE_EVERY } else { LOOK_EVERY };
        later.map_or(most, |at| most.min(at.saturating_duration_since(Stopwatch::now())))
    }
}

/// Sends the notifications of one webhook at a time.
#[derive(Clone)]
struct Sender {
    webhooks: Arc<Webhooks>,
}

/// The reason why a turn ended early.
enum Ended {
    /// The engine stops.
    Stopped,
    Asked(AskError),
    File(io::Error),
}

impl From<AskError> for Ended {
    fn from(error: AskError) -> Self {
        Self::Asked(error)
    }
}

impl Sender {
    /// Checks that the engine stays open for now.
    fn check_is_open(&self) -> Result<(), Ended> {
        if self.webhooks.is_stopped() || self.webhooks.parts.is_closing() { Err(Ended::Stopped) } else { Ok(()) }
    }

    async fn save(&self) {
        let webhooks = Arc::clone(&self.webhooks);
        let save = move || webhooks.write_unsaved(webhooks.parts.known_now(), false);
        if let Err(error) = tokio::task::spawn_blocking(save).await {
            tracing::error!(%error, "the progress of webhooks could not be written");
        }
    }

    async fn turn(&self, id: &WebhookId) -> NextTurn {
        match self.try_turn(id).await {
            Ok(next) => next,
            Err(Ended::Stopped) => NextTurn::Woken,
            Err(Ended::Asked(error)) => {
                tracing::debug!(webhook = %id, %error, "the notifications of a webhook could not be read; it is tried again");
                NextTurn::After(AFTER_FAILURE)
            }
            Err(Ended::File(error)) => {
                tracing::warn!(webhook = %id, %error, "the deliveries of a webhook could not be written; it is tried again");
                NextTurn::After(AFTER_FAILURE)
            }
        }
    }

    async fn try_turn(&self, id: &WebhookId) -> Result<NextTurn, Ended> {
        let Some(outlook) = self.webhooks.outlook(id) else { return Ok(NextTurn::Woken) };
        self.check_is_open()?;
        let (parts, project) = (&self.webhooks.parts, outlook.webhook.project);
        let now = parts.known_now();
        if let Some(wait) = self.wait(&outlook, now) {
            return Ok(NextTurn::After(wait));
        }
        if parts.registry().policy(project).is_none() || !parts.owners().is_here(partition_of(project)) {
            return Ok(NextTurn::Woken);
        }
        let outlook = self.load(id, outlook).await?;
        if let Some(wait) = self.wait(&outlook, now) {
            return Ok(NextTurn::After(wait));
        }
        let (incarnation, last) = parts.version(project, &Depends::Everything).await?;
        self.forget_erased(&outlook).await?;
        if last <= outlook.done {
            return Ok(NextTurn::Woken);
        }
        let FirstEvents { taken: notifications, until, has_more } =
            parts.scans.first_after(project, outlook.done, READ_TOGETHER, notification).await?;
        let began = Stopwatch::now();
        for notification in notifications {
            if began.elapsed() >= TURN {
                return Ok(NextTurn::Again);
            }
            self.check_is_open()?;
            // The notifications may have been erased since they were read.
            if parts.version(project, &Depends::Everything).await?.0 != incarnation {
                return Ok(NextTurn::Again);
            }
            match self.deliver(id, outlook.generation, notification).await? {
                DeliveryAttempt::Done => {}
                DeliveryAttempt::Again(wait) => return Ok(NextTurn::After(wait)),
                DeliveryAttempt::Outdated => return Ok(NextTurn::Again),
            }
        }
        self.webhooks.passed((id, outlook.generation), until, now);
        Ok(if has_more { NextTurn::Again } else { NextTurn::Woken })
    }

    /// Returns how long the next try has to wait. The clock may have been set back since the last
    /// one.
    fn wait(&self, outlook: &Outlook, now: Instant) -> Option<Duration> {
        let wait_ms = u64::try_from(outlook.next_at?.0.saturating_sub(now.0)).ok().filter(|wait| *wait > 0)?;
        Some(Duration::from_millis(wait_ms).min(self.webhooks.settings.wait_after(u32::MAX)))
    }

    /// Continues from the progress of the project's former owner. Costs nothing if that is known,
    /// or there is no other owner.
    async fn load(&self, id: &WebhookId, outlook: Outlook) -> Result<Outlook, Ended> {
        if !self.webhooks.is_to_load(id) {
            return Ok(outlook);
        }
        let (webhooks, of) = (Arc::clone(&self.webhooks), id.clone());
        tokio::task::spawn_blocking(move || webhooks.load(&of)).await.map_err(io::Error::other).flatten().map_err(Ended::File)?;
        self.webhooks.outlook(id).filter(|_| !self.webhooks.is_to_load(id)).ok_or(Ended::Stopped)
    }

    /// Tries a notification once.
    async fn deliver(&self, id: &WebhookId, generation: u64, notification: Notification) -> Result<DeliveryAttempt, Ended> {
        // The current webhook: it may have been paused, or have a new secret.
        let outlook = self.webhooks.outlook(id).filter(|outlook| outlook.generation == generation);
        let Some(Outlook { webhook, .. }) = outlook else { return Ok(DeliveryAttempt::Outdated) };
        self.check_is_open()?;
        let (parts, settings) = (&self.webhooks.parts, &self.webhooks.settings);
        let now = parts.clock().now();
        let body = notification.body(&webhook).map_err(|error| Ended::File(error.into()))?;
        let signature = signature(&self.webhooks.secrets_of(&webhook, now), now, &body);
        let request = SignedRequest { url: webhook.url, signature, body, timeout: settings.timeout };
        let deliver = Arc::clone(&settings.deliver);
        let sent = tokio::task::spawn_blocking(move || deliver(&request)).await;
        let outcome = match sent {
            Ok(answered) => answered,
            Err(error) => {
                tracing::error!(webhook = %id, %error, "a notification could not be sent");
                Err("internal_error")
            }
        };
        // A notification that is given up is lost.
        self.check_is_open()?;
        Ok(self.webhooks.tried((id, generation), &notification, outcome, parts.known_now()))
    }

    /// After an erasure, forgets deliveries of removed events.
    async fn forget_erased(&self, outlook: &Outlook) -> Result<(), Ended> {
        let (id, project, parts) = (&outlook.webhook.id, outlook.webhook.project, &self.webhooks.parts);
        let reflected = parts.reflected_erasures(project);
        if reflected == outlook.reflected {
            return Ok(());
        }
        let listed = self.webhooks.listed(id);
        let last = listed.last().copied().unwrap_or(0);
        let there = parts.scans.existing(project, listed).await?;
        let (webhooks, id) = (Arc::clone(&self.webhooks), id.clone());
        let kept = tokio::task::spawn_blocking(move || webhooks.keep(&id, &there, last, reflected)).await;
        kept.map_err(io::Error::other).flatten().map_err(Ended::File)
    }
}
