//! The questions to the store of webhooks, and its answers.

use std::time::Duration;

use headcount_control::{Secret, WebhookId};
use headcount_domain::intake::event::Position;
use headcount_domain::time::Instant;

use super::webhook::Webhook;

/// The webhooks to list.
#[derive(Debug, Clone, Default)]
pub struct WebhookQuery {
    /// The maximum number of webhooks.
    pub limit: usize,
    /// Only webhooks older than this one.
    pub starting_after: Option<WebhookId>,
}

/// A part of the list of webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookPage {
    /// The webhooks, newest first.
    pub webhooks: Vec<Webhook>,
    /// Whether older webhooks follow.
    pub truncated: bool,
}

/// A new secret of a webhook.
#[derive(Debug)]
pub struct Rotation {
    /// The secret.
    pub secret: Secret,
    /// The time until which the former secret signs, too.
    pub previous_valid_until: Instant,
}

/// The notifications to send again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookReplay {
    /// The first position.
    pub from: Position,
    /// The last position known now.
    pub to: Position,
}

/// Figures about the deliveries since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WebhookFigures {
    /// The number of notifications that receivers accepted.
    pub delivered: u64,
    /// The number of failed tries.
    pub failed: u64,
    /// The number of notifications given up.
    pub dead: u64,
    /// The number of webhooks whose last try failed.
    pub failing: usize,
    /// The age of the oldest notification being retried; zero if there is none.
    pub lag: Duration,
}

/// The next work of a webhook.
#[derive(Debug, Clone)]
pub(crate) struct Outlook {
    pub(crate) webhook: Webhook,
    pub(crate) done: Position,
    /// The last erasure of the project that the list of deliveries reflects.
    pub(crate) reflected: u64,
    /// The time of the next try of a failed delivery.
    pub(crate) next_at: Option<Instant>,
    /// A number that changes with each replay.
    pub(crate) generation: u64,
}

/// The outcome of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryAttempt {
    /// The notification is done: delivered, or given up.
    Done,
    /// It will be tried again after this time.
    Again(Duration),
    /// The webhook was changed meanwhile, so the outcome is ignored.
    Outdated,
}
