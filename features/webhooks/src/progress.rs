//! Deliveries: the state of each notification of a webhook.

use std::collections::BTreeMap;

use headcount_common::DocumentItem;
use headcount_common::local::VALUE_SUFFIX;
use headcount_control::WebhookId;
use headcount_domain::{Instant, Position, named_values};
use serde::{Deserialize, Serialize};

use crate::request::{Notification, delivery_id};
use crate::webhook::Webhook;

/// The maximum number of listed deliveries of a webhook. The latest ones are listed.
pub const MAX_DELIVERIES: usize = 1_000;
/// The room for a delivery in a value that holds as many as fit.
const DELIVERY_BYTES: usize = 1_024;
/// How long a delivery is listed.
const LISTED_MS: i64 = 30 * 24 * 60 * 60 * 1_000;

named_values! {
    /// The status of a delivery.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DeliveryStatus by as_str {
        /// It is being tried.
        Pending = "pending",
        /// The receiver accepted it.
        Delivered = "delivered",
        /// It was given up.
        Dead = "dead",
    }
}

/// The maximum number of deliveries in a value of at most `bytes`.
pub(crate) fn most_deliveries(bytes: usize) -> usize {
    bytes / DELIVERY_BYTES
}

/// The state of a notification. It holds nothing of the event but its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// The event's position.
    pub position: Position,
    /// The event's id.
    pub event_id: String,
    /// The status.
    pub status: DeliveryStatus,
    /// The number of tries.
    pub attempts: u32,
    /// The status of the last answer, if there was one.
    pub last_status: Option<u16>,
    /// The code of the error without an answer.
    pub last_error: Option<String>,
    /// The time when the event was received.
    pub created_at: Instant,
    /// The time when the receiver accepted it.
    pub delivered_at: Option<Instant>,
    /// The time of the first try.
    pub(crate) tried_since: Instant,
    /// The time of the next try, while it is pending.
    pub(crate) next_at: Instant,
}

/// The deliveries to list.
#[derive(Debug, Clone, Default)]
pub struct DeliveryQuery {
    /// The maximum number of deliveries.
    pub limit: usize,
    /// Only deliveries before this one.
    pub starting_after: Option<String>,
    /// Only deliveries with this status.
    pub status: Option<DeliveryStatus>,
}

/// A part of a list of deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryPage {
    /// The deliveries with their ids, latest first.
    pub deliveries: Vec<(String, Delivery)>,
    /// Whether earlier deliveries follow.
    pub truncated: bool,
}

/// The progress of a webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeliveryProgress {
    /// The position up to which all notifications are done.
    pub(crate) done: Position,
    /// The last erasure of the project that the deliveries reflect.
    pub(crate) reflected: u64,
    /// The last deliveries, by position.
    pub(crate) deliveries: BTreeMap<Position, Delivery>,
}

impl DocumentItem for DeliveryProgress {
    type Id = WebhookId;
    const WHAT: &'static str = "webhook's progress";
    const SUFFIX: &'static str = VALUE_SUFFIX;

    fn is_of(&self, _: &WebhookId) -> bool {
        true
    }
}

impl DeliveryProgress {
    /// The progress of a webhook that has sent nothing.
    pub(crate) fn of(webhook: &Webhook) -> Self {
        Self { done: webhook.created_after, ..Self::default() }
    }

    /// Forgets everything after the position `until`. Returns whether there was anything.
    pub(crate) fn cut_after(&mut self, until: Position) -> bool {
        let lost = until.checked_add(1).map(|next| self.deliveries.split_off(&next)).unwrap_or_default();
        let is_cut = self.done > until || !lost.is_empty();
        self.done = self.done.min(until);
        is_cut
    }

    /// The delivery being tried, if there is one. It comes after the done ones.
    pub(crate) fn pending(&self) -> Option<&Delivery> {
        let next = self.done.checked_add(1)?;
        self.deliveries.range(next..).map(|(_, delivery)| delivery).find(|delivery| delivery.status == DeliveryStatus::Pending)
    }

    /// Returns the delivery of a notification to try now: the one in progress, or a new one.
    pub(crate) fn begin(&mut self, notification: &Notification, now: Instant) -> &mut Delivery {
        let new = || Delivery {
            position: notification.position(),
            event_id: notification.event_id().to_owned(),
            status: DeliveryStatus::Pending,
            attempts: 0,
            last_status: None,
            last_error: None,
            created_at: notification.received,
            delivered_at: None,
            tried_since: now,
            next_at: now,
        };
        let delivery = self.deliveries.entry(notification.position()).or_insert_with(new);
        if delivery.status != DeliveryStatus::Pending {
            // A replay, or a repetition after a stop.
            *delivery = new();
        }
        delivery
    }

    /// Returns the progress with only the latest finished deliveries.
    pub(crate) fn shortened(&self, most: usize) -> Self {
        let mut short = self.clone();
        let ended = |delivery: &Delivery| delivery.status != DeliveryStatus::Pending;
        let surplus = short.deliveries.len().saturating_sub(most);
        let earliest: Vec<_> =
            short.deliveries.iter().filter(|(_, delivery)| ended(delivery)).map(|(at, _)| *at).take(surplus).collect();
        for position in earliest {
            short.deliveries.remove(&position);
        }
        short
    }

    /// Forgets old deliveries, and the earliest of too many; never the one being tried.
    pub(crate) fn prune(&mut self, now: Instant) {
        let (done, listed_since) = (self.done, now.0.saturating_sub(LISTED_MS));
        self.deliveries.retain(|position, delivery| match delivery.status {
            // A skipped event was erased.
            DeliveryStatus::Pending => *position > done,
            DeliveryStatus::Delivered | DeliveryStatus::Dead => delivery.created_at.0 > listed_since,
        });
        while self.deliveries.len() > MAX_DELIVERIES {
            let ended = self.deliveries.iter().find(|(_, delivery)| delivery.status != DeliveryStatus::Pending);
            let Some(earliest) = ended.map(|(position, _)| *position) else { return };
            self.deliveries.remove(&earliest);
        }
    }

    /// Returns deliveries, latest first; `None` if the delivery `starting_after` doesn't exist.
    pub(crate) fn page(&self, webhook: &WebhookId, query: &DeliveryQuery) -> Option<DeliveryPage> {
        let all = self.deliveries.values().rev().map(|delivery| (delivery_id(webhook, delivery.position), delivery));
        let all: Vec<_> = all.collect();
        let begin = match &query.starting_after {
            None => 0,
            Some(after) => all.iter().position(|(id, _)| id == after)? + 1,
        };
        let mut rest =
            all.into_iter().skip(begin).filter(|(_, delivery)| query.status.is_none_or(|status| status == delivery.status));
        let deliveries: Vec<_> = rest.by_ref().take(query.limit).map(|(id, delivery)| (id, delivery.clone())).collect();
        Some(DeliveryPage { deliveries, truncated: rest.next().is_some() })
    }
}
