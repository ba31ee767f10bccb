//! The shape of an event.

use utoipa::ToSchema;
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, SchemaFormat, SchemaType, Type};

/// Something that happened. Fields that are not listed are ignored; null and empty text are as if absent, but for
/// `privacy_categories` and `pc`.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "the shape for the document; the body is read by the engine")]
pub(crate) struct EventShape {
    /// What happened: `pageview`, `signup`, `order` …
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// When it happened.
    #[schema(schema_with = timestamp)]
    timestamp: Option<()>,
    /// Whether to send a notification about it.
    notify: Option<bool>,
    /// The text of the notification.
    #[schema(max_length = 4096)]
    message: Option<String>,
    /// Who, as the sender's own system names the user.
    #[schema(max_length = 4096)]
    user_id: Option<String>,
    /// Who, before the user is known. With both ids the event links them.
    #[schema(max_length = 4096)]
    anonymous_id: Option<String>,
    /// The address of the page before.
    #[schema(max_length = 4096)]
    referrer: Option<String>,
    /// The size or name of the screen.
    #[schema(max_length = 4096)]
    screen: Option<String>,
    /// The language of the user.
    #[schema(max_length = 4096)]
    language: Option<String>,
    /// The address of the page.
    #[schema(max_length = 4096)]
    url: Option<String>,
    /// The host of the page. Default: that of `url`.
    #[schema(max_length = 4096)]
    hostname: Option<String>,
    /// Any JSON; the fields of an object can be filtered, grouped and summed by.
    #[schema(value_type = Value, required = false)]
    metadata: Option<serde_json::Value>,
    /// Where to send the notification.
    #[schema(max_length = 4096)]
    channel: Option<String>,
    /// Money: above 0 an order, below 0 a refund. At most 6 decimals.
    #[schema(minimum = -1e12, maximum = 1e12)]
    value: Option<f64>,
    /// The currency of `value`: an ISO 4217 code of any case. Default: the project's.
    #[schema(pattern = "^[A-Za-z]{3}$")]
    currency: Option<String>,
    /// Names the event for ever within its project: a second one with the same changes nothing.
    #[schema(max_length = 4096)]
    external_id: Option<String>,
    /// The group that the event belongs to; a company, if no `group_type` is given.
    #[schema(max_length = 4096)]
    group_id: Option<String>,
    /// The type of that group. Default: `company`.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,63}$")]
    group_type: Option<String>,
    /// What the user consented to, separated by commas. Given and without `analytics`: the event counts, nobody is counted.
    #[schema(max_length = 4096)]
    privacy_categories: Option<String>,
    /// Short for `privacy_categories`, which wins.
    #[schema(max_length = 4096)]
    pc: Option<String>,
    /// Privacy signals, separated by commas: `gpc`, `dnt`, `gpp:…`.
    #[schema(max_length = 4096)]
    privacy_signals: Option<String>,
    /// Short for `privacy_signals`, which wins.
    #[schema(max_length = 4096)]
    ps: Option<String>,
    /// What asked for consent.
    #[schema(max_length = 4096)]
    consent_source: Option<String>,
    /// Where the visitor came from, instead of what url and referrer say.
    #[schema(rename = "_acOverrides")]
    ac_overrides: Option<OverridesShape>,
    /// The visitor's user agent. Only read from servers: a browser's own is that of its request.
    #[schema(max_length = 4096)]
    user_agent: Option<String>,
    /// The visitor's address, which tells visitors apart and, with a database, their country; it is not stored. Only read from
    /// servers: a browser's own is that of its request.
    #[schema(max_length = 4096)]
    ip: Option<String>,
}

/// Where a visitor came from.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "the shape for the document; the body is read by the engine")]
pub(crate) struct OverridesShape {
    /// The source, such as `google`.
    source: Option<String>,
    /// The medium, such as `cpc`.
    medium: Option<String>,
    /// The campaign.
    campaign: Option<String>,
    /// The channel; counts if it is the name of one, such as `Paid Search`.
    channel: Option<String>,
}

fn timestamp() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Number, Type::Null]))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some(
            "When it happened: RFC 3339, or milliseconds since 1970. Default: now. More than 5 minutes ahead: now. Before 1990: refused.",
        ))
        .build()
}
