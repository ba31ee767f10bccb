//! The artifact of an export, `headcount.export.v1`, for the document: `exporting` writes it.

use std::collections::BTreeMap;

use headcount_api::openapi::own_schema;
use headcount_api::openapi::schemas::AnyJson;
use headcount_api::respond::answer::{Decimal, Timestamp};
use utoipa::PartialSchema;
use utoipa::ToSchema as _;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};

use super::requests::PrivacySubjectAnswer;

/// The type of a value in the artifact.
trait ArtifactValue {
    fn schema() -> RefOr<Schema>;
}

macro_rules! values {
    ($($type:ty),*) => { $(impl ArtifactValue for $type {
        fn schema() -> RefOr<Schema> {
            <$type as PartialSchema>::schema()
        }
    })* };
}

values!(String, u64, bool, Timestamp, Decimal, AnyJson);

/// The document has it already.
impl ArtifactValue for PrivacySubjectAnswer {
    fn schema() -> RefOr<Schema> {
        Ref::from_schema_name(Self::name()).into()
    }
}

impl<T: ArtifactValue> ArtifactValue for Option<T> {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new().item(ObjectBuilder::new().schema_type(Type::Null)).item(T::schema()).into()
    }
}

impl<T: ArtifactValue> ArtifactValue for Vec<T> {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(T::schema()).into()
    }
}

impl<T: ArtifactValue> ArtifactValue for BTreeMap<String, T> {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().additional_properties(Some(T::schema())).into()
    }
}

fn described(schema: RefOr<Schema>, text: &str) -> RefOr<Schema> {
    let text = text.trim().to_owned();
    if let RefOr::Ref(mut reference) = schema {
        reference.description = text;
        return reference.into();
    }
    let text = Some(text);
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            object.description = text;
            object.into()
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.description = text;
            array.into()
        }
        RefOr::T(Schema::OneOf(mut options)) => {
            options.description = text;
            RefOr::T(Schema::OneOf(options))
        }
        other => other,
    }
}

/// Defines objects all of whose keys are always there.
macro_rules! shapes {
    ($($(#[doc = $summary:literal])+ $visibility:vis struct $name:ident { $(#[doc = $text:literal] $field:ident: $type:ty,)* })*) => {
        $(
            $(#[doc = $summary])+
            $visibility struct $name;

            impl ArtifactValue for $name {
                fn schema() -> RefOr<Schema> {
                    let object = ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(false)));
                    $(
                        let schema = described(<$type as ArtifactValue>::schema(), $text);
                        let object = object.property(stringify!($field), schema).required(stringify!($field));
                    )*
                    described(object.into(), concat!($($summary),+))
                }
            }
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
        events: Vec<ArtifactEventShape>,
        /// The sessions, by their begin.
        sessions: Vec<ArtifactSessionShape>,
        /// The orders and refunds, by time.
        orders: Vec<ArtifactOrderShape>,
        /// The companies, that with most events first.
        companies: Vec<ArtifactCompanyShape>,
        /// The groups that are no companies, that with most events first.
        groups: Vec<ArtifactGroupShape>,
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
        anonymous_ids: Vec<ArtifactAnonymousIdShape>,
        /// The traits, each with its latest value.
        traits: BTreeMap<String, AnyJson>,
        /// The first event.
        first_seen: Option<Timestamp>,
        /// The last event.
        last_seen: Option<Timestamp>,
    }

    /// An anonymous id.
    pub(crate) struct ArtifactAnonymousIdShape {
        /// The project that reported it.
        project_id: String,
        /// The id.
        anonymous_id: String,
    }

    /// An event, as it is stored.
    pub(crate) struct ArtifactEventShape {
        /// The event's id.
        event_id: String,
        /// Its project.
        project_id: String,
        /// Its position in the project.
        position: u64,
        /// Whose it is.
        identity_id: String,
        /// When it happened.
        timestamp: Timestamp,
        /// When it was received.
        received_at: Timestamp,
        /// Its name.
        name: String,
        /// The user's id.
        user_id: Option<String>,
        /// The anonymous id.
        anonymous_id: Option<String>,
        /// The sender's id of the event.
        external_id: Option<String>,
        /// The page.
        url: Option<String>,
        /// The page's host.
        hostname: Option<String>,
        /// Where the visitor came from.
        referrer: Option<String>,
        /// The host of an external referrer.
        referrer_host: Option<String>,
        /// The size of the screen.
        screen: Option<String>,
        /// The language.
        language: Option<String>,
        /// The channel, as it was sent.
        channel: Option<String>,
        /// The text of a notification.
        message: Option<String>,
        /// Whether it is a notification.
        notify: Option<bool>,
        /// The type of its group.
        group_type: Option<String>,
        /// The key of its group.
        group_id: Option<String>,
        /// The categories that were granted.
        privacy_categories: Option<String>,
        /// The privacy signals.
        privacy_signals: Option<String>,
        /// Where the consent was given.
        consent_source: Option<String>,
        /// The money, as it was sent.
        value: Option<Decimal>,
        /// Its currency.
        currency: Option<String>,
        /// What the sender added.
        metadata: AnyJson,
        /// The browser.
        browser: Option<String>,
        /// The browser's version.
        browser_version: Option<String>,
        /// The operating system.
        os: Option<String>,
        /// The kind of device.
        device: Option<String>,
        /// The country.
        location_country: Option<String>,
        /// The event's own source, not its session's.
        source: Option<String>,
        /// The event's own medium.
        medium: Option<String>,
        /// The event's own campaign.
        campaign: Option<String>,
        /// The event's own channel group.
        acquisition_channel: Option<String>,
        /// The company.
        company_id: Option<String>,
        /// The money in the project's currency.
        amount: Option<Decimal>,
        /// Whether the money counts.
        counted: Option<bool>,
        /// Whether somebody did something at its time: only such events make sessions.
        interactive: bool,
    }

    /// A session.
    pub(crate) struct ArtifactSessionShape {
        /// Its project.
        project_id: String,
        /// Whose it is.
        identity_id: String,
        /// Its first event.
        started_at: Timestamp,
        /// Its last event.
        ended_at: Timestamp,
        /// The time between them in seconds.
        duration_sec: Decimal,
        /// How many events.
        events: u64,
        /// How many of them are pageviews.
        pageviews: u64,
        /// Where it came from.
        source: String,
        /// By which medium.
        medium: String,
        /// By which campaign.
        campaign: String,
        /// The channel group.
        acquisition_channel: String,
        /// Its first page.
        entry_url: Option<String>,
        /// Its last page.
        exit_url: Option<String>,
    }

    /// An order or a refund.
    pub(crate) struct ArtifactOrderShape {
        /// The event's id.
        event_id: String,
        /// Its project.
        project_id: String,
        /// When it happened.
        at: Timestamp,
        /// `order` or `refund`.
        kind: String,
        /// The money, as it was sent.
        value: Decimal,
        /// Its currency.
        currency: String,
        /// The money in the project's currency.
        amount: Option<Decimal>,
        /// Whether the money counts.
        counted: bool,
    }

    /// A company that events belong to.
    pub(crate) struct ArtifactCompanyShape {
        /// The company, `co_…`.
        company_id: String,
        /// Its name.
        name: Option<String>,
        /// Its domain.
        domain: Option<String>,
        /// How many of the events.
        events: u64,
    }

    /// A group that events belong to.
    pub(crate) struct ArtifactGroupShape {
        /// Its type.
        group_type: String,
        /// Its key.
        group_key: String,
        /// Its name.
        name: Option<String>,
        /// How many of the events.
        events: u64,
    }
}

own_schema!(PrivacyArtifactShape, <Self as ArtifactValue>::schema());
