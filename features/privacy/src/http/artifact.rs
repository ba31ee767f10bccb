//! The artifact of an export, `headcount.export.v1`, for the document: `exporting` writes it.

use std::collections::BTreeMap;

use headcount_api::openapi::own_schema;
use headcount_api::openapi::schemas::AnyJson;
use headcount_api::respond::answer::Timestamp;
use utoipa::ToSchema as _;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Ref, RefOr};

use crate::exporting::{AnonymousIdRow, ArtifactValue, CompanyRow, EventRow, GroupRow, OrderRow, SessionRow, object};
use crate::subject_answer::PrivacySubjectAnswer;

/// The document has it already.
impl ArtifactValue for PrivacySubjectAnswer {
    fn schema() -> RefOr<Schema> {
        Ref::from_schema_name(Self::name()).into()
    }
}

/// Describes objects that are written piece by piece.
macro_rules! shapes {
    ($($(#[doc = $summary:literal])+ $visibility:vis struct $name:ident { $(#[doc = $text:literal] $field:ident: $type:ty,)* })*) => {
        $(
            $(#[doc = $summary])+
            $visibility struct $name;

            object! { [] $name, concat!($($summary),+), $($text $field: $type,)* }
        )*
    };
}

shapes! {
    /// What is recorded of a person, over all projects. Keys are always there, and null if there is no value.
    pub(crate) struct PrivacyArtifactShape {
        /// `headcount.export.v1`.
        format: String,
        /// Whom the export is about.
        subject: PrivacySubjectAnswer,
        /// The identity that was seen last.
        identity: Option<ArtifactIdentityShape>,
        /// All identities.
        identities: Vec<ArtifactIdentityShape>,
        /// The events, by time.
        events: Vec<EventRow<'static>>,
        /// The sessions, by their begin.
        sessions: Vec<SessionRow<'static>>,
        /// The orders and refunds, by time.
        orders: Vec<OrderRow<'static>>,
        /// The companies, that with most events first.
        companies: Vec<CompanyRow>,
        /// The groups that are no companies, that with most events first.
        groups: Vec<GroupRow>,
        /// When the export was made.
        generated_at: Timestamp,
    }

    /// Who a person is.
    pub(crate) struct ArtifactIdentityShape {
        /// The identity, `id_…`.
        identity_id: String,
        /// The user's id; null of a visitor without one.
        user_id: Option<String>,
        /// The e-mail addresses.
        emails: Vec<String>,
        /// What names the identity in lists.
        resolved_identifier: Option<String>,
        /// The anonymous ids.
        anonymous_ids: Vec<AnonymousIdRow<'static>>,
        /// The traits, each with its latest value.
        traits: BTreeMap<String, AnyJson>,
        /// The first event.
        first_seen: Option<Timestamp>,
        /// The last event.
        last_seen: Option<Timestamp>,
    }
}

own_schema!(PrivacyArtifactShape, <Self as ArtifactValue>::schema());
