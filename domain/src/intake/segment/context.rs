//! The context of a message: the page, the campaign, and the program that sent it.

use std::borrow::Cow;

use serde_json::json;

use super::values::{JsonField, text};
use crate::intake::json_fields::JsonFields;

/// The libraries, other than the library for pages, that run on a user's device. Their requests
/// come from the user's own address.
const DEVICE_LIBRARIES: [&str; 7] = [
    "analytics.js",
    "analytics-android",
    "analytics-ios",
    "analytics-kotlin",
    "analytics-swift",
    "@segment/analytics-react-native",
    "analytics_flutter",
];

/// The relevant fields of a context. Fields of unexpected types count as absent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Context<'a> {
    page: JsonField<'a>,
    campaign: JsonField<'a>,
    screen: JsonField<'a>,
    library: JsonField<'a>,
    locale: JsonField<'a>,
    user_agent: JsonField<'a>,
    ip: JsonField<'a>,
    group_id: JsonField<'a>,
}

/// Reads the fields of an object; none for any other value.
pub(super) fn object<'a>(field: JsonField<'a>) -> JsonFields<'a> {
    field.and_then(|json| JsonFields::read(json).ok()).unwrap_or_default()
}

impl<'a> Context<'a> {
    /// Reads a context.
    pub(super) fn read(field: JsonField<'a>) -> Self {
        let fields = object(field);
        Self {
            page: fields.get("page"),
            campaign: fields.get("campaign"),
            screen: fields.get("screen"),
            library: fields.get("library"),
            locale: fields.get("locale"),
            user_agent: fields.get("userAgent"),
            ip: fields.get("ip"),
            group_id: fields.get("groupId"),
        }
    }

    /// Fills missing fields from `outer`.
    pub(super) fn or(self, outer: Self) -> Self {
        Self {
            page: self.page.or(outer.page),
            campaign: self.campaign.or(outer.campaign),
            screen: self.screen.or(outer.screen),
            library: self.library.or(outer.library),
            locale: self.locale.or(outer.locale),
            user_agent: self.user_agent.or(outer.user_agent),
            ip: self.ip.or(outer.ip),
            group_id: self.group_id.or(outer.group_id),
        }
    }

    /// Returns the URL of the page, and of the page before.
    pub(super) fn page(self) -> [Option<Cow<'a, str>>; 2] {
        let page = object(self.page);
        ["url", "referrer"].map(|name| text(page.get(name)))
    }

    /// Returns the campaign as the JSON of `_acOverrides`.
    pub(super) fn overrides(self) -> Option<String> {
        let campaign = object(self.campaign);
        let [source, medium, campaign] = ["source", "medium", "name"].map(|name| text(campaign.get(name)));
        let is_any = source.is_some() || medium.is_some() || campaign.is_some();
        is_any.then(|| json!({"source": source, "medium": medium, "campaign": campaign}).to_string())
    }

    /// Returns the size of the screen, such as `1280x720`.
    pub(super) fn screen(self) -> Option<Cow<'a, str>> {
        let screen = object(self.screen);
        Some(format!("{}x{}", text(screen.get("width"))?, text(screen.get("height"))?).into())
    }

    /// Whether the message comes from a program on the user's device.
    pub(super) fn is_of_device(self) -> bool {
        text(object(self.library).get("name")).is_some_and(|name| DEVICE_LIBRARIES.contains(&&*name))
    }

    /// Returns the language.
    pub(super) fn locale(self) -> Option<Cow<'a, str>> {
        text(self.locale)
    }

    /// Returns the user agent of the user.
    pub(super) fn user_agent(self) -> Option<Cow<'a, str>> {
        text(self.user_agent)
    }

    /// Returns the user's address.
    pub(super) fn ip(self) -> Option<Cow<'a, str>> {
        text(self.ip)
    }

    /// Returns the group of the message.
    pub(super) fn group_id(self) -> JsonField<'a> {
        self.group_id
    }
}
