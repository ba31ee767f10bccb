//! What the store of webhooks is asked, and what it answers.

use std::time::Duration;

use headcount_control::{Secret, WebhookId};
use headcount_domain::intake::event::Position;
use headcount_domain::time::Instant;

use super::webhook::Webhook;

/// The webhooks to list.
#[derive(Debug, Clone, Default)]
pub struct WebhookQuery {
    /// The most webhooks.
    pub limit: usize,
    /// Only webhooks older than this one.
    pub starting_after: Option<WebhookId>,
}

/// A part of the list of webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookPage {
    /// The webhooks, newest first.
    pub webhooks: Vec<Webhook>,
    /// Whether older ones follow.
    pub truncated: bool,
}

/// A new secret of a webhook.
#[derive(Debug)]
pub struct Rotation {
    /// The secret.
    pub secret: Secret,
    /// Until when the former one signs, too.
    pub previous_valid_until: Instant,
}

/// What is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookReplay {
    /// The first position.
    pub from: Position,
    /// The last position, as far as it is known now.
    pub to: Position,
}

/// Figures about the deliveries since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WebhookFigures {
    /// Notifications that a receiver took.
    pub delivered: u64,
    /// Tries that failed.
    pub failed: u64,
    /// Notifications that were given up.
    pub dead: u64,
    /// Webhooks whose last try failed.
    pub failing: usize,
    /// The age of the oldest notification that is tried again; zero if there is none.
    pub lag: Duration,
}

/// What a webhook has to do.
#[derive(Debug, Clone)]
pub(crate) struct Outlook {
    pub(crate) webhook: Webhook,
    pub(crate) done: Position,
    /// The last erasure of the project that the list of deliveries reflects.
    pub(crate) reflected: u64,
    /// When the delivery that failed is tried again.
    pub(crate) next_at: Option<Instant>,
    /// Changes with each replay.
    pub(crate) generation: u64,
}

/// The outcome of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryAttempt {
    /// The notification is done: delivered, or given up.
    Done,
    /// It is tried again after this.
    Again(Duration),
    /// The webhook was changed meanwhile: the outcome is of no use.
    Outdated,
}
