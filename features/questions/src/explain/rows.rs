//! The names in questions and explanations, and the rows of explanations.

use headcount_api::endpoint::*;
use headcount_domain::figures::{ExplainedEvent, ExplainedFigure, Reason};
use headcount_domain::ids::event_id;
use headcount_domain::intake::policy::Policy;
use headcount_domain::queries::{Dimension, EntityLevel, TouchModel};
use headcount_domain::{NamedValues, Position};
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

/// Why an event contributes.
const CONTRIBUTIONS: [Reason; 6] =
    [Reason::FirstOfUser, Reason::FirstOfSession, Reason::Order, Reason::Refund, Reason::Touch, Reason::Direct];
/// Why an event is not counted.
const OMISSIONS: [Reason; 6] =
    [Reason::NoConsent, Reason::NoSession, Reason::BeganBefore, Reason::ServerOnly, Reason::NoRate, Reason::Refund];

fn names(reasons: &[Reason]) -> Vec<String> {
    reasons.iter().map(ToString::to_string).collect()
}

macro_rules! name_schemas {
    ($($(#[$doc:meta])* $name:ident of $names:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some($names)).into()
            }
        }

        impl ToSchema for $name {}
    )*};
}

name_schemas! {
    /// The name of a figure.
    FigureName of ExplainedFigure::names();
    /// The name of an attribution model.
    TouchModelName of TouchModel::names();
    /// The name of a level of touches.
    EntityLevelName of EntityLevel::names();
    /// The name of a property of a touch.
    DimensionName of Dimension::names();
    /// Why an event contributes.
    ContributionReason of names(&CONTRIBUTIONS);
    /// Why an event is not counted.
    OmissionReason of names(&OMISSIONS);
}

answer! {
    /// An event that contributes to the figure.
    pub(crate) struct ContributingEvent from |event: ExplainedEvent, policy: &Policy, has_money: bool| {
        /// The event's id, as `POST /track` answered it.
        event_id: String = event_id(policy.project, event.external_id.as_deref(), event.at.position),
        /// The position in the order of recording.
        position: Position = event.at.position,
        /// When it happened.
        at: String = event.at.time.to_string(),
        /// The event's name.
        name: String,
        /// The identity, after links; null without consent.
        #[schema(required)]
        identity_id: Option<String> = event.identity.map(|identity| identity.public(policy.organization, policy.project)),
        /// The value, as sent; null if it has none. Absent if the token may not see money.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Option<Decimal>)]
        value: Option<Option<Decimal>> = has_money.then_some(event.money.map(|(value, _)| value.into())),
        /// The currency of `value`; null if it has none. Absent if the token may not see money.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Option<String>)]
        currency: Option<Option<String>> = has_money.then_some(event.money.map(|(_, currency)| currency.to_string())),
        /// What it adds to the figure. The sum over all pages is `result`.
        contributes: Decimal = event.contributes.into(),
        /// Why it contributes: `first_of_user`, `first_of_session`, `order`, `refund`; for `attribution`, `touch`, or `direct` if its entity has no touch.
        #[schema(value_type = ContributionReason)]
        why: &'static str = event.why.as_str(),
    }
}

answer! {
    /// A chosen event that is not counted.
    pub(crate) struct UncountedEvent from |event: ExplainedEvent, policy: &Policy, has_money: bool| {
        /// The event's id, as `POST /track` answered it.
        event_id: String = event_id(policy.project, event.external_id.as_deref(), event.at.position),
        /// The position in the order of recording.
        position: Position = event.at.position,
        /// When it happened.
        at: String = event.at.time.to_string(),
        /// The event's name.
        name: String,
        /// The identity, after links; null without consent.
        #[schema(required)]
        identity_id: Option<String> = event.identity.map(|identity| identity.public(policy.organization, policy.project)),
        /// The value, as sent; null if it has none. Absent if the token may not see money.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Option<Decimal>)]
        value: Option<Option<Decimal>> = has_money.then_some(event.money.map(|(value, _)| value.into())),
        /// The currency of `value`; null if it has none. Absent if the token may not see money.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(required = false, value_type = Option<String>)]
        currency: Option<Option<String>> = has_money.then_some(event.money.map(|(_, currency)| currency.to_string())),
        /// Why it is not counted: recorded without consent, its session began before the window, money that only servers may send, no rate, or a refund
        /// among orders.
        #[schema(value_type = OmissionReason)]
        why: &'static str = event.why.as_str(),
    }
}
