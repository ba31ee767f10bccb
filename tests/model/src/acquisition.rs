//! Acquisition: source, medium, campaign and channel of one event.
//!
//! The lists contain only well-known names. Generators of test events use these, or names that are
//! on no list.

use crate::event::Event;
use crate::text::without_www;

/// The source of a visit without a known one.
pub const DIRECT: &str = "(direct)";
/// The medium or campaign of a visit without one.
pub const NONE: &str = "(none)";

/// The origin of an event, as shown in a touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `google`, `newsletter`, `(direct)`, …
    pub source: String,
    /// `cpc`, `organic`, `(none)`, …
    pub medium: String,
    /// The campaign, or `(none)`.
    pub campaign: String,
}

impl Origin {
    /// Returns the origin of a visit without any known value.
    #[must_use]
    pub fn direct() -> Origin {
        Origin { source: DIRECT.to_owned(), medium: NONE.to_owned(), campaign: NONE.to_owned() }
    }
}

/// What clicks on ads leave in a URL, with the source and medium that it proves.
const ADS: [(&str, &str, &str); 11] = [
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

/// What links that somebody shared leave in a URL.
const SHARED: [(&str, &str); 3] = [("fbclid", "facebook"), ("igshid", "instagram"), ("igsh", "instagram")];

/// Hosts with their brands and the mediums of their referrers.
const HOSTS: [(&str, &str, &str); 20] = [
    ("google.com", "google", "organic"),
    ("google.co.uk", "google", "organic"),
    ("bing.com", "bing", "organic"),
    ("duckduckgo.com", "duckduckgo", "organic"),
    ("ecosia.org", "ecosia", "organic"),
    ("facebook.com", "facebook", "social"),
    ("l.facebook.com", "facebook", "social"),
    ("instagram.com", "instagram", "social"),
    ("l.instagram.com", "instagram", "social"),
    ("linkedin.com", "linkedin", "social"),
    ("lnkd.in", "linkedin", "social"),
    ("com.linkedin.android", "linkedin", "social"),
    ("twitter.com", "twitter", "social"),
    ("t.co", "twitter", "social"),
    ("reddit.com", "reddit", "social"),
    ("out.reddit.com", "reddit", "social"),
    ("github.com", "github", "referral"),
    ("chatgpt.com", "chatgpt", "referral"),
    ("perplexity.ai", "perplexity", "referral"),
    ("claude.ai", "claude", "referral"),
];

/// The usual short names of sources.
const SHORT: [(&str, &str); 4] = [("fb", "facebook"), ("ig", "instagram"), ("x", "twitter"), ("ddg", "duckduckgo")];

const SEARCH: [&str; 5] = ["google", "bing", "duckduckgo", "ecosia", "yandex"];
const SOCIAL: [&str; 8] = ["facebook", "instagram", "linkedin", "twitter", "reddit", "tiktok", "pinterest", "snapchat"];
const VIDEO: [&str; 2] = ["youtube", "vimeo"];
const SHOPPING: [&str; 2] = ["amazon", "ebay"];
const ASSISTANTS: [&str; 3] = ["chatgpt", "perplexity", "claude"];

const CHANNELS: [&str; 20] = [
    "Cross-network",
    "Paid Shopping",
    "Paid Search",
    "Paid Social",
    "Paid Video",
    "Display",
    "Paid Other",
    "Organic Shopping",
    "Organic Social",
    "Organic Video",
    "AI Assistants",
    "Organic Search",
    "Email",
    "Affiliates",
    "Audio",
    "SMS",
    "Mobile Push Notifications",
    "Referral",
    "Direct",
    "Unassigned",
];

/// Normalizes a value: trimmed, lower-cased, cut at 255 characters.
#[must_use]
pub fn value(text: &str) -> String {
    text.trim().to_lowercase().chars().take(255).collect()
}

/// Returns the name under which a source that somebody named is counted.
fn branded(name: &str) -> String {
    let name = value(name);
    if let Some((_, brand)) = SHORT.iter().find(|(short, _)| *short == name) {
        return (*brand).to_owned();
    }
    let address = name.split_once("://").map_or(name.as_str(), |(_, rest)| rest);
    let host = without_www(address.split('/').next().unwrap_or_default());
    HOSTS.iter().find(|(known, ..)| *known == host).map_or(name.clone(), |(_, brand, _)| (*brand).to_owned())
}

/// Returns the origin of an event.
#[must_use]
pub fn origin(event: &Event) -> Origin {
    let given = |name: &str| event.overrides.field(name).filled().filter(|text| !text.trim().is_empty());
    let asked = |name: &str| event.url.as_ref().and_then(|url| url.query(name));

    // What the link itself proves, from the strongest to the weakest.
    let ad = ADS.iter().find(|(field, ..)| asked(field).is_some()).map(|(_, source, medium)| (*source, *medium));
    let referrer = event.referrer.as_deref().map(|host| {
        let known = HOSTS.iter().find(|(known, ..)| *known == host);
        known.map_or((host, "referral"), |(_, brand, medium)| (brand, medium))
    });
    let shared = SHARED.iter().find(|(field, _)| asked(field).is_some()).map(|(_, source)| (*source, "social"));
    let link = ad.or(referrer).or(shared);

    let named = given("source").or_else(|| asked("utm_source")).or_else(|| asked("source")).or_else(|| asked("ref"));
    let medium = given("medium").or_else(|| asked("utm_medium")).or(link.map(|(_, medium)| medium));
    let campaign = given("campaign").or_else(|| asked("utm_campaign"));
    Origin {
        source: named.map_or_else(|| value(link.map_or(DIRECT, |(source, _)| source)), branded),
        medium: value(medium.unwrap_or(NONE)),
        campaign: value(campaign.unwrap_or(NONE)),
    }
}

/// Returns the channel of an event, by GA4's default rules in their order.
#[must_use]
pub fn channel(event: &Event) -> String {
    if let Some(named) = event.overrides.field("channel").text().filter(|named| CHANNELS.contains(named)) {
        return named.to_owned();
    }
    let origin = origin(event);
    let (source, medium) = (origin.source.as_str(), origin.medium.as_str());
    let paid = medium.contains("cp") || ["ppc", "retargeting"].contains(&medium) || medium.starts_with("paid");
    let shopping = SHOPPING.contains(&source) || shops(&origin.campaign);
    let rules = [
        (origin.campaign.contains("cross-network"), "Cross-network"),
        (shopping && paid, "Paid Shopping"),
        (SEARCH.contains(&source) && paid, "Paid Search"),
        (SOCIAL.contains(&source) && paid, "Paid Social"),
        (VIDEO.contains(&source) && paid, "Paid Video"),
        (["display", "banner", "expandable", "interstitial", "cpm"].contains(&medium), "Display"),
        (paid, "Paid Other"),
        (shopping, "Organic Shopping"),
        (SOCIAL.contains(&source) || is_social(medium), "Organic Social"),
        (VIDEO.contains(&source) || medium.contains("video"), "Organic Video"),
        (ASSISTANTS.contains(&source), "AI Assistants"),
        (SEARCH.contains(&source) || medium == "organic", "Organic Search"),
        (is_email(source) || is_email(medium), "Email"),
        (medium == "affiliate", "Affiliates"),
        (medium == "audio", "Audio"),
        (source == "sms" || medium == "sms", "SMS"),
        (is_push(source, medium), "Mobile Push Notifications"),
        (["referral", "app", "link"].contains(&medium), "Referral"),
        (source == DIRECT && medium == NONE, "Direct"),
    ];
    let first = rules.iter().find(|(holds, _)| *holds);
    first.map_or("Unassigned", |(_, name)| name).to_owned()
}

/// GA4's `^(.*(([^a-df-z]|^)shop|shopping).*)$`.
fn shops(campaign: &str) -> bool {
    let alone = |at: usize| match campaign[..at].chars().next_back() {
        None => true,
        Some(before) => before == 'e' || !before.is_ascii_lowercase(),
    };
    campaign.contains("shopping") || campaign.match_indices("shop").any(|(at, _)| alone(at))
}

fn is_social(medium: &str) -> bool {
    ["social", "social-network", "social-media", "sm", "social network", "social media"].contains(&medium)
}

fn is_email(name: &str) -> bool {
    ["email", "e-mail", "e_mail", "e mail"].contains(&name)
}

fn is_push(source: &str, medium: &str) -> bool {
    medium.ends_with("push") || medium.contains("mobile") || medium.contains("notification") || source == "firebase"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_and_channels() {
        for (fields, source, medium, channel) in [
            (r#""x": 1"#, "(direct)", "(none)", "Direct"),
            (r#""referrer": "https://www.google.com/""#, "google", "organic", "Organic Search"),
            (r#""referrer": "https://news.example/a""#, "news.example", "referral", "Referral"),
            (r#""referrer": "https://chatgpt.com/""#, "chatgpt", "referral", "AI Assistants"),
            (r#""url": "https://s.example/?gclid=1""#, "google", "cpc", "Paid Search"),
            (r#""url": "https://s.example/?fbclid=1""#, "facebook", "social", "Organic Social"),
            (r#""url": "https://s.example/?FBCLID=1", "referrer": "https://t.co/""#, "twitter", "social", "Organic Social"),
            (r#""url": "https://s.example/?wbraid=1&fbclid=1", "referrer": "https://t.co/""#, "google", "cpc", "Paid Search"),
            (r#""url": "https://s.example/?Utm_Source=chatgpt.com""#, "chatgpt", "(none)", "AI Assistants"),
            (r#""url": "https://s.example/?ref=https://www.google.com/x""#, "google", "(none)", "Organic Search"),
            (r#""url": "https://s.example/?utm_source=IG&fbclid=1""#, "instagram", "social", "Organic Social"),
            (r#""url": "https://s.example/", "referrer": "https://www.paypal.com/""#, "(direct)", "(none)", "Direct"),
            (r#""url": "https://s.example/?ref=hn""#, "hn", "(none)", "Unassigned"),
            (r#""url": "https://s.example/?utm_source=News&utm_medium=Email""#, "news", "email", "Email"),
            (r#""url": "https://s.example/?utm_source=adnet&utm_medium=cpc""#, "adnet", "cpc", "Paid Other"),
            (r#""url": "https://s.example/", "referrer": "https://www.s.example/a""#, "(direct)", "(none)", "Direct"),
            (r#""_acOverrides": {"source": "Y", "channel": "Display"}"#, "y", "(none)", "Display"),
        ] {
            let event = Event::example(fields);
            let origin = origin(&event);
            assert_eq!((origin.source.as_str(), origin.medium.as_str()), (source, medium), "{fields}");
            assert_eq!(super::channel(&event), channel, "{fields}");
        }
    }
}
