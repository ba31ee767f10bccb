//! What the readers of a share may ask: figures of its project. Never of people or companies, and
//! of money only if the share shows it.
//!
//! A share may ask only a [`SharedQuestion`], and the fields of the question are checked as they
//! were parsed.

use headcount_control::{Scope, Share};
use headcount_domain::intake::fields::{BuiltIn, Field};
use headcount_domain::{Clause, Filter};

use crate::respond::code::ErrorCode;
use crate::respond::error::{ApiError, Result};

/// A field that a question names, and the parameter that names it.
pub type NamedField = (String, Field);

/// The parameters of a question that readers of shares may ask.
pub trait SharedQuestion {
    /// Returns every field that the question names. An implementation lists all parameters, so that a new one is not forgotten.
    fn named_fields(&self) -> Vec<NamedField>;
}

/// Says of questions, each with all its parameters, that they name no field.
#[macro_export]
macro_rules! names_no_field {
    ($($question:ident { $($parameter:ident),* };)+) => {$(
        impl $crate::extract::share_rules::SharedQuestion for $question {
            fn named_fields(&self) -> Vec<$crate::extract::share_rules::NamedField> {
                let Self { $($parameter: _),* } = self;
                Vec::new()
            }
        }
    )+};
}
pub use names_no_field;

/// Returns the fields that filters name, alternatives included.
pub fn named_by_filters(filters: &[Clause]) -> Vec<NamedField> {
    let one = |place: String, filter: &Filter| (format!("{place}.field"), filter.field().clone());
    let mut named = Vec::new();
    for (place, clause) in filters.iter().enumerate() {
        let place = format!("filters[{place}]");
        match clause {
            Clause::One(filter) => named.push(one(place, filter)),
            Clause::Any(lists) => {
                for (list, filters) in lists.iter().enumerate() {
                    let place = |number: usize| format!("{place}.any[{list}][{number}]");
                    named.extend(filters.iter().enumerate().map(|(number, filter)| one(place(number), filter)));
                }
            }
        }
    }
    named
}

fn forbidden(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::ShareForbidden, message)
}

/// The answer to whatever is no [`SharedQuestion`].
pub(crate) fn not_for_shares() -> ApiError {
    forbidden("a share shows figures of its project, and nothing else")
}

/// Checks that a share shows what needs this scope.
pub(crate) fn check_scope(share: &Share, scope: Scope) -> Result<()> {
    match scope {
        Scope::RevenueRead if !share.revenue => Err(forbidden("the share doesn't show money")),
        Scope::RevenueRead | Scope::AnalyticsRead => Ok(()),
        _ => Err(not_for_shares()),
    }
}

/// Checks that a share may show the fields that a question names.
pub(crate) fn check_fields(question: &impl SharedQuestion) -> Result<()> {
    match question.named_fields().into_iter().find(|(_, field)| may_name_somebody(field)) {
        None => Ok(()),
        Some((param, field)) => {
            let message = format!("a share doesn't show {field}, which may name people or companies");
            Err(forbidden(message).with_param(param))
        }
    }
}

/// Whether the values of a field may name a person or a company. Metadata may hold anything: addresses, names, amounts.
fn may_name_somebody(field: &Field) -> bool {
    match field {
        Field::Metadata(_) | Field::BuiltIn(BuiltIn::UserId | BuiltIn::GroupId) => true,
        Field::BuiltIn(
            BuiltIn::Name
            | BuiltIn::Browser
            | BuiltIn::BrowserVersion
            | BuiltIn::Os
            | BuiltIn::Device
            | BuiltIn::LocationCountry
            | BuiltIn::Language
            | BuiltIn::Screen
            | BuiltIn::Hostname
            | BuiltIn::Url
            | BuiltIn::Path
            | BuiltIn::EntryUrl
            | BuiltIn::Referrer
            | BuiltIn::UtmSource
            | BuiltIn::UtmMedium
            | BuiltIn::UtmCampaign
            | BuiltIn::UtmTerm
            | BuiltIn::UtmContent
            | BuiltIn::AcquisitionChannel
            | BuiltIn::Channel
            | BuiltIn::Currency
            | BuiltIn::GroupType
            | BuiltIn::ConsentSource,
        )
        | Field::Session(_) => false,
    }
}
