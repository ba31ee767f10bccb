//! Acquisition: the source, medium, campaign and channel of a visit.
//!
//! Each of the four is resolved separately. Explicit values (overrides, then URL parameters) come
//! first, then a click on an ad, then the referrer, then the mark of a shared link.

mod brands;
mod category;
mod channels;
mod referrer;
mod sites;
mod sources;

use std::borrow::Cow;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use category::Category;
pub use channels::Channel;
pub use referrer::external_host;

use crate::text;

/// The source of a visit with an unknown source.
pub const DIRECT: &str = "(direct)";
/// The medium or campaign of a visit with an unknown one.
pub const NONE: &str = "(none)";
/// The maximum number of characters of a value; longer values are truncated.
pub const MAX_VALUE_CHARS: usize = 255;

/// The acquisition of a visit. All values are trimmed and lower-cased.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Acquisition {
    /// The site or sender, or [`DIRECT`].
    pub source: CompactString,
    /// The kind of link, or [`NONE`].
    pub medium: CompactString,
    /// The campaign, or [`NONE`].
    pub campaign: CompactString,
    /// The channel that follows from the other three.
    pub channel: Channel,
}

impl Acquisition {
    /// Returns the acquisition of a visit without any known value.
    #[must_use]
    pub fn direct() -> Acquisition {
        Acquisition { source: DIRECT.into(), medium: NONE.into(), campaign: NONE.into(), channel: Channel::Direct }
    }

    /// Whether the source is unknown. Attribution ignores such a visit if there is any other.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.source == DIRECT
    }

    /// Whether source, medium and campaign are unknown.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.is_direct() && self.medium == NONE && self.campaign == NONE
    }
}

impl Default for Acquisition {
    fn default() -> Acquisition {
        Acquisition::direct()
    }
}

/// Values that the sender sets explicitly: the event's `_acOverrides`. Empty values count as
/// absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overrides<'a> {
    /// The source.
    pub source: Option<&'a str>,
    /// The medium.
    pub medium: Option<&'a str>,
    /// The campaign.
    pub campaign: Option<&'a str>,
    /// The channel's name, in any case; unknown names are ignored.
    pub channel: Option<&'a str>,
}

/// The fields of an event from which its acquisition is resolved.
#[derive(Debug, Clone, Copy, Default)]
pub struct Touchpoint<'a> {
    /// The page's URL as sent, including its query; may be relative.
    pub url: Option<&'a str>,
    /// The external referrer's host, as returned by [`external_host`].
    pub referrer_host: Option<&'a str>,
    /// The event's `_acOverrides`.
    pub overrides: Option<Overrides<'a>>,
}

/// The campaign parameters of a page's URL, trimmed, lower-cased and truncated; `None` if absent or
/// empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Utm {
    /// `utm_source`
    pub source: Option<CompactString>,
    /// `utm_medium`
    pub medium: Option<CompactString>,
    /// `utm_campaign`
    pub campaign: Option<CompactString>,
    /// `utm_term`
    pub term: Option<CompactString>,
    /// `utm_content`
    pub content: Option<CompactString>,
}

/// A parameter of links, and the source and medium that it implies.
type LinkMark = (&'static str, &'static str, &'static str);

/// The parameters of clicks on ads, in order of precedence.
const AD_CLICKS: [LinkMark; 11] = [
    ("gclid", "google", "cpc"),
    ("wbraid", "google", "cpc"),
    ("gbraid", "google", "cpc"),
    ("msclkid", "bing", "cpc"),
    ("ttclid", "tiktok", "paid_social"),
    ("twclid", "twitter", "paid_social"),
    ("li_fat_id", "linkedin", "paid_social"),
    ("yclid", "yandex", "cpc"),
    ("epik", "pinterest", "paid_social"),
    ("rdt_cid", "reddit", "paid_social"),
    ("sccid", "snapchat", "paid_social"),
];

/// The parameters that apps add to shared links, in order of precedence. They don't prove a paid
/// click.
const SHARED_LINKS: [LinkMark; 3] =
    [("fbclid", "facebook", "social"), ("igshid", "instagram", "social"), ("igsh", "instagram", "social")];

/// Reads the campaign parameters of a page's URL, absolute or relative. The first value of a
/// repeated parameter counts.
#[must_use]
pub fn utm(url: &str) -> Utm {
    UrlQuery::read(url).utm
}

/// Resolves the acquisition of a visit. For each value, the first known one in this order counts:
///
/// - source: override, `utm_source`, `source`, `ref` (each replaced by its brand, if known), click
///   on an ad, referrer (its brand, else its host), shared link, `(direct)`;
/// - medium: override, `utm_medium`, click on an ad, referrer (`organic`, `social`, `referral`),
///   shared link, `(none)`;
/// - campaign: override, `utm_campaign`, `(none)`;
/// - channel: override, if it is the name of a channel, else the channel of the three values above
///   ([`Channel::of`]).
#[must_use]
pub fn resolve(touchpoint: &Touchpoint<'_>) -> Acquisition {
    let query = touchpoint.url.map(UrlQuery::read).unwrap_or_default();
    let overrides = touchpoint.overrides.unwrap_or_default();
    let referrer = touchpoint.referrer_host.and_then(Origin::of_referrer);
    let link = query.ad.map(|index| Origin::of_mark(&AD_CLICKS[index])).or(referrer);
    let link = link.or_else(|| query.shared.map(|index| Origin::of_mark(&SHARED_LINKS[index])));

    let named = overrides.source.and_then(clean).or(query.utm.source).or(query.source).or(query.reference);
    let named = named.map(sources::by_brand);
    let (link_source, link_medium) = link.map(|link| (link.source, link.medium)).unzip();
    let source = named.or(link_source).unwrap_or_else(|| DIRECT.into());
    let medium = overrides.medium.and_then(clean).or(query.utm.medium);
    let medium = medium.or_else(|| link_medium.map(Into::into)).unwrap_or_else(|| NONE.into());
    let campaign = overrides.campaign.and_then(clean).or(query.utm.campaign).unwrap_or_else(|| NONE.into());
    let channel = overrides.channel.and_then(Channel::parse).unwrap_or_else(|| Channel::of(&source, &medium, &campaign));
    Acquisition { source, medium, campaign, channel }
}

/// The acquisition parameters of a page's query.
#[derive(Default)]
struct UrlQuery {
    utm: Utm,
    source: Option<CompactString>,
    reference: Option<CompactString>,
    /// The index in [`AD_CLICKS`] of the first parameter that is present.
    ad: Option<usize>,
    /// The index in [`SHARED_LINKS`] of the first parameter that is present.
    shared: Option<usize>,
}

impl UrlQuery {
    fn read(url: &str) -> UrlQuery {
        let mut query = UrlQuery::default();
        for (name, value) in text::query_params(url) {
            query.take(&text::decode_param(name), value);
        }
        query
    }

    /// Reads a parameter with an undecoded value. Its name may have any case.
    fn take(&mut self, name: &str, value: &str) {
        let name = in_lower_case(name);
        let field = match &*name {
            "utm_source" => &mut self.utm.source,
            "utm_medium" => &mut self.utm.medium,
            "utm_campaign" => &mut self.utm.campaign,
            "utm_term" => &mut self.utm.term,
            "utm_content" => &mut self.utm.content,
            "source" => &mut self.source,
            "ref" => &mut self.reference,
            name => {
                let index = |marks: &[LinkMark]| marks.iter().position(|(mark, ..)| *mark == name);
                let (ad, shared) = (index(&AD_CLICKS), index(&SHARED_LINKS));
                if (ad.is_some() || shared.is_some()) && text::non_empty(&text::decode_param(value)).is_some() {
                    self.ad = self.ad.into_iter().chain(ad).min();
                    self.shared = self.shared.into_iter().chain(shared).min();
                }
                return;
            }
        };
        if field.is_none() {
            *field = clean(&text::decode_param(value));
        }
    }
}

fn in_lower_case(name: &str) -> Cow<'_, str> {
    match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}

/// The source and medium that a link implies.
struct Origin {
    source: CompactString,
    medium: &'static str,
}

impl Origin {
    fn of_mark((_, source, medium): &LinkMark) -> Origin {
        Origin { source: (*source).into(), medium }
    }

    fn of_referrer(host: &str) -> Option<Origin> {
        let host = clean_host(host)?;
        let host = host.strip_prefix("www.").unwrap_or(&host);
        let site = sources::site_of(host);
        let medium = match site.and_then(|site| site.category) {
            Some(Category::Search) => "organic",
            Some(Category::Social) => "social",
            Some(Category::Shopping | Category::Video | Category::AiAssistant) | None => "referral",
        };
        let source = site.and_then(|site| site.brand).unwrap_or(host).into();
        Some(Origin { source, medium })
    }
}

/// Like [`clean`], but fast for a host that is clean already, as nearly all are.
fn clean_host(host: &str) -> Option<Cow<'_, str>> {
    let is_clean = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'.' || byte == b'-';
    if (1..=MAX_VALUE_CHARS).contains(&host.len()) && host.bytes().all(is_clean) {
        return Some(Cow::Borrowed(host));
    }
    clean(host).map(|host| Cow::Owned(host.into()))
}

/// Normalizes a value for comparison and display: trimmed, lower-cased, truncated to
/// [`MAX_VALUE_CHARS`]; `None` if empty.
fn clean(value: &str) -> Option<CompactString> {
    let value = text::non_empty(value)?;
    if value.len() <= MAX_VALUE_CHARS && value.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Some(value.into());
    }
    let lower = value.to_lowercase();
    Some(text::cut_chars(&lower, MAX_VALUE_CHARS).into())
}

#[cfg(test)]
mod tests;
