//! The events of an explanation.

use headcount_domain::figures::ExplainedEvent;
use headcount_domain::ids::event_id;
use headcount_domain::intake::event::Position;
use headcount_domain::intake::policy::Policy;
use serde::Serialize;
use utoipa::ToSchema;

use super::names::{ContributionReason, OmissionReason};
use crate::http::respond::decimal::Decimal;

/// An event that contributes to the figure.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContributingEvent {
    /// The event's id, as `POST /track` answered it.
    event_id: String,
    /// The position in the order of recording.
    position: Position,
    /// When it happened.
    at: String,
    /// The event's name.
    name: String,
    /// The identity, after links; null without consent.
    #[schema(required)]
    identity_id: Option<String>,
    /// The value, as sent; null if it has none. Absent if the token may not see money.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Option<Decimal>)]
    value: Option<Option<Decimal>>,
    /// The currency of `value`; null if it has none. Absent if the token may not see money.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Option<String>)]
    currency: Option<Option<String>>,
    /// What it adds to the figure. The sum over all pages is `result`.
    contributes: Decimal,
    /// Why it contributes: `first_of_user`, `first_of_session`, `order`, `refund`; for `attribution`, `touch`, or `direct` if its entity has no touch.
    #[schema(value_type = ContributionReason)]
    why: &'static str,
}

/// A chosen event that is not counted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UncountedEvent {
    /// The event's id, as `POST /track` answered it.
    event_id: String,
    /// The position in the order of recording.
    position: Position,
    /// When it happened.
    at: String,
    /// The event's name.
    name: String,
    /// The identity, after links; null without consent.
    #[schema(required)]
    identity_id: Option<String>,
    /// The value, as sent; null if it has none. Absent if the token may not see money.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Option<Decimal>)]
    value: Option<Option<Decimal>>,
    /// The currency of `value`; null if it has none. Absent if the token may not see money.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Option<String>)]
    currency: Option<Option<String>>,
    /// Why it is not counted: recorded without consent, its session began before the window, money that only servers may send, no rate, or a refund
    /// among orders.
    #[schema(value_type = OmissionReason)]
    why: &'static str,
}

impl ContributingEvent {
    pub(crate) fn new(event: ExplainedEvent, policy: &Policy, has_money: bool) -> Self {
        let contributes = Decimal(event.contributes);
        let UncountedEvent { event_id, position, at, name, identity_id, value, currency, why } =
            UncountedEvent::new(event, policy, has_money);
        Self { event_id, position, at, name, identity_id, value, currency, contributes, why }
    }
}

impl UncountedEvent {
    pub(crate) fn new(event: ExplainedEvent, policy: &Policy, has_money: bool) -> Self {
        let ExplainedEvent { at, name, external_id, identity, money, why, .. } = event;
        let (value, currency) = money.map(|(value, currency)| (Decimal(value), currency.to_string())).unzip();
        Self {
            event_id: event_id(policy.project, external_id.as_deref(), at.position),
            position: at.position,
            at: at.time.to_string(),
            name,
            identity_id: identity.map(|identity| identity.public(policy.organization, policy.project)),
            value: has_money.then_some(value),
            currency: has_money.then_some(currency),
            why: why.as_str(),
        }
    }
}
