//! The context of a message: the page, the campaign, and the program that sent it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;

use super::values::{JsonField, text};

/// The libraries that run on the device of a user, besides those of pages. Their requests come from the user's own address.
const DEVICE_LIBRARIES: [&str; 7] = [
    "analytics.js",
    "analytics-android",
    "analytics-ios",
    "analytics-kotlin",
    "analytics-swift",
    "@segment/analytics-react-native",
    "analytics_flutter",
];

/// What is read of a context. Fields of other types than expected are as if absent.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Context<'a> {
    #[serde(borrow)]
    page: JsonField<'a>,
    #[serde(borrow)]
    campaign: JsonField<'a>,
    #[serde(borrow)]
    screen: JsonField<'a>,
    #[serde(borrow)]
    library: JsonField<'a>,
    #[serde(borrow)]
    locale: JsonField<'a>,
    #[serde(borrow)]
    user_agent: JsonField<'a>,
    #[serde(borrow)]
    ip: JsonField<'a>,
    #[serde(borrow)]
    group_id: JsonField<'a>,
}

/// A page.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct ContextPage<'a> {
    #[serde(borrow)]
    url: JsonField<'a>,
    #[serde(borrow)]
    referrer: JsonField<'a>,
}

#[derive(Default, Deserialize)]
struct Campaign<'a> {
    #[serde(borrow)]
    name: JsonField<'a>,
    #[serde(borrow)]
    source: JsonField<'a>,
    #[serde(borrow)]
    medium: JsonField<'a>,
}

#[derive(Default, Deserialize)]
struct Screen<'a> {
    #[serde(borrow)]
    width: JsonField<'a>,
    #[serde(borrow)]
    height: JsonField<'a>,
}

#[derive(Default, Deserialize)]
struct Library<'a> {
    #[serde(borrow)]
    name: JsonField<'a>,
}

/// Reads the fields of an object; none if it is no object.
fn object<'a, T: Default + Deserialize<'a>>(field: JsonField<'a>) -> T {
    let json = field.map(|raw| raw.get()).filter(|json| json.starts_with('{'));
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

impl<'a> Context<'a> {
    /// Reads a context.
    pub(super) fn read(field: JsonField<'a>) -> Self {
        object(field)
    }

    /// Takes from `outer` the fields that this context does not have.
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

    /// Returns the address of the page, and that of the page before.
    pub(super) fn page(self) -> [Option<Cow<'a, str>>; 2] {
        let page: ContextPage<'a> = object(self.page);
        [text(page.url), text(page.referrer)]
    }

    /// Returns the campaign as the JSON of `_acOverrides`.
    pub(super) fn overrides(self) -> Option<String> {
        let campaign: Campaign<'a> = object(self.campaign);
        let [source, medium, campaign] = [campaign.source, campaign.medium, campaign.name].map(text);
        let is_any = source.is_some() || medium.is_some() || campaign.is_some();
        is_any.then(|| json!({"source": source, "medium": medium, "campaign": campaign}).to_string())
    }

    /// Returns the size of the screen, such as `1280x720`.
    pub(super) fn screen(self) -> Option<Cow<'a, str>> {
        let screen: Screen<'a> = object(self.screen);
        Some(format!("{}x{}", text(screen.width)?, text(screen.height)?).into())
    }

    /// Whether the program that sent the message runs on the user's device.
    pub(super) fn is_of_device(self) -> bool {
        let library: Library<'a> = object(self.library);
        text(library.name).is_some_and(|name| DEVICE_LIBRARIES.contains(&&*name))
    }

    /// Returns the language.
    pub(super) fn locale(self) -> Option<Cow<'a, str>> {
        text(self.locale)
    }

    /// Returns the user agent of the user.
    pub(super) fn user_agent(self) -> Option<Cow<'a, str>> {
        text(self.user_agent)
    }

    /// Returns the address of the user.
    pub(super) fn ip(self) -> Option<Cow<'a, str>> {
        text(self.ip)
    }

    /// Returns the group that the message is about.
    pub(super) fn group_id(self) -> Option<Cow<'a, str>> {
        text(self.group_id)
    }
}
