//! The schemas of names in explanations.

use headcount_domain::figures::{ExplainedFigure, Reason};
use headcount_domain::names::NamedValues;
use headcount_domain::queries::{Dimension, EntityLevel, TouchModel};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

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
