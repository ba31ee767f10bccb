//! Channels and their rules: GA4's default channel group (Analytics Help, answer 9756891, "Channels
//! for manual traffic") as a table, in the order of evaluation.

use serde::{Deserialize, Serialize};

use super::category::Category;
use super::{DIRECT, NONE, sources};
use crate::named_values;

// The index in this list is stored, so append new channels at its end.
named_values! {
    /// The channel of a visit, named as in GA4's default channel group, plus `AI Assistants`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum Channel by name {
        /// Ads over several networks at once.
        CrossNetwork = "Cross-network",
        /// Ads on shopping sites, or of a shopping campaign.
        PaidShopping = "Paid Shopping",
        /// Ads on search engines.
        PaidSearch = "Paid Search",
        /// Ads on social networks.
        PaidSocial = "Paid Social",
        /// Ads on video sites.
        PaidVideo = "Paid Video",
        /// Banners.
        Display = "Display",
        /// Ads anywhere else.
        PaidOther = "Paid Other",
        /// Links on shopping sites.
        OrganicShopping = "Organic Shopping",
        /// Links on social networks.
        OrganicSocial = "Organic Social",
        /// Links on video sites.
        OrganicVideo = "Organic Video",
        /// Links in answers of AI assistants.
        AiAssistants = "AI Assistants",
        /// Links in search results.
        OrganicSearch = "Organic Search",
        /// Links in e-mails.
        Email = "Email",
        /// Links of affiliates.
        Affiliates = "Affiliates",
        /// Audio ads.
        Audio = "Audio",
        /// Links in text messages.
        Sms = "SMS",
        /// Notifications of mobile apps.
        MobilePush = "Mobile Push Notifications",
        /// Links on any other site.
        Referral = "Referral",
        /// No known source.
        Direct = "Direct",
        /// No rule matched.
        Unassigned = "Unassigned",
    }
}

impl Channel {
    /// Returns the channel of a name, ignoring case and surrounding white space.
    #[must_use]
    pub fn parse(name: &str) -> Option<Channel> {
        let name = name.trim();
        Channel::ALL.iter().copied().find(|channel| channel.name().eq_ignore_ascii_case(name))
    }

    /// Returns the channel of the first rule that matches a source, medium and campaign, all of
    /// them trimmed and lower-cased.
    #[must_use]
    pub fn of(source: &str, medium: &str, campaign: &str) -> Channel {
        // Most visits have no acquisition data and match only the last rule.
        if (source, medium, campaign) == (DIRECT, NONE, NONE) {
            return Channel::Direct;
        }
        let visit = ChannelInput { source, category: sources::category_of(source), medium, campaign };
        let holds = |rule: &&Rule| rule.any_of.iter().any(|all_of| all_of.iter().all(|test| test.holds(&visit)));
        RULES.iter().find(holds).map_or(Channel::Unassigned, |rule| rule.channel)
    }
}

struct ChannelInput<'a> {
    source: &'a str,
    category: Option<Category>,
    medium: &'a str,
    campaign: &'a str,
}

/// One condition of a rule.
enum Test {
    SourceIn(&'static [&'static str]),
    SourceOf(Category),
    MediumIn(&'static [&'static str]),
    MediumContains(&'static str),
    MediumEndsWith(&'static str),
    /// `^(.*cp.*|ppc|retargeting|paid.*)$`
    MediumIsPaid,
    CampaignContains(&'static str),
    /// `^(.*(([^a-df-z]|^)shop|shopping).*)$`: "shop" unless preceded by a letter other than e (as
    /// in "eshop").
    CampaignIsShopping,
}

impl Test {
    fn holds(&self, visit: &ChannelInput<'_>) -> bool {
        match self {
            Test::SourceIn(words) => words.contains(&visit.source),
            Test::SourceOf(category) => visit.category == Some(*category),
            Test::MediumIn(words) => words.contains(&visit.medium),
            Test::MediumContains(part) => contains(visit.medium, part),
            Test::MediumEndsWith(end) => visit.medium.ends_with(end),
            Test::MediumIsPaid => is_paid(visit.medium),
            Test::CampaignContains(part) => contains(visit.campaign, part),
            Test::CampaignIsShopping => is_shopping(visit.campaign),
        }
    }
}

/// Like [`str::contains`], which spends more time on preparing a search than a short text takes.
fn contains(text: &str, part: &str) -> bool {
    match text.len() {
        0..=32 => text.as_bytes().windows(part.len()).any(|place| place == part.as_bytes()),
        _ => text.contains(part),
    }
}

fn is_paid(medium: &str) -> bool {
    contains(medium, "cp") || medium == "ppc" || medium == "retargeting" || medium.starts_with("paid")
}

fn is_shopping(campaign: &str) -> bool {
    let stands_free = |at: usize| !campaign[..at].ends_with(|before: char| matches!(before, 'a'..='d' | 'f'..='z'));
    contains(campaign, "shop") && (campaign.contains("shopping") || campaign.match_indices("shop").any(|(at, _)| stands_free(at)))
}

/// A channel and its alternative conditions: a visit matches if all tests of one list hold.
struct Rule {
    channel: Channel,
    any_of: &'static [&'static [Test]],
}

const EMAIL: &[&str] = &["email", "e-mail", "e_mail", "e mail"];

use Test::{CampaignContains, CampaignIsShopping, MediumContains, MediumEndsWith, MediumIn, MediumIsPaid, SourceIn, SourceOf};

#[rustfmt::skip]
static RULES: &[Rule] = &[
    Rule { channel: Channel::CrossNetwork, any_of: &[&[CampaignContains("cross-network")]] },
    Rule { channel: Channel::PaidShopping, any_of: &[
        &[SourceOf(Category::Shopping), MediumIsPaid],
        &[CampaignIsShopping, MediumIsPaid],
    ] },
    Rule { channel: Channel::PaidSearch, any_of: &[&[SourceOf(Category::Search), MediumIsPaid]] },
    Rule { channel: Channel::PaidSocial, any_of: &[&[SourceOf(Category::Social), MediumIsPaid]] },
    Rule { channel: Channel::PaidVideo, any_of: &[&[SourceOf(Category::Video), MediumIsPaid]] },
    Rule { channel: Channel::Display, any_of: &[&[MediumIn(&["display", "banner", "expandable", "interstitial", "cpm"])]] },
    Rule { channel: Channel::PaidOther, any_of: &[&[MediumIsPaid]] },
    Rule { channel: Channel::OrganicShopping, any_of: &[&[SourceOf(Category::Shopping)], &[CampaignIsShopping]] },
    Rule { channel: Channel::OrganicSocial, any_of: &[
        &[SourceOf(Category::Social)],
        &[MediumIn(&["social", "social-network", "social-media", "sm", "social network", "social media"])],
    ] },
    Rule { channel: Channel::OrganicVideo, any_of: &[&[SourceOf(Category::Video)], &[MediumContains("video")]] },
    Rule { channel: Channel::AiAssistants, any_of: &[&[SourceOf(Category::AiAssistant)]] },
    Rule { channel: Channel::OrganicSearch, any_of: &[&[SourceOf(Category::Search)], &[MediumIn(&["organic"])]] },
    Rule { channel: Channel::Email, any_of: &[&[SourceIn(EMAIL)], &[MediumIn(EMAIL)]] },
    Rule { channel: Channel::Affiliates, any_of: &[&[MediumIn(&["affiliate"])]] },
    Rule { channel: Channel::Audio, any_of: &[&[MediumIn(&["audio"])]] },
    Rule { channel: Channel::Sms, any_of: &[&[SourceIn(&["sms"])], &[MediumIn(&["sms"])]] },
    Rule { channel: Channel::MobilePush, any_of: &[
        &[MediumEndsWith("push")],
        &[MediumContains("mobile")],
        &[MediumContains("notification")],
        &[SourceIn(&["firebase"])],
    ] },
    Rule { channel: Channel::Referral, any_of: &[&[MediumIn(&["referral", "app", "link"])]] },
    Rule { channel: Channel::Direct, any_of: &[&[SourceIn(&[DIRECT]), MediumIn(&[NONE, "(not set)"])]] },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip]
    fn the_first_rule_that_holds_tells_the_channel() {
        let table = [
            // source, medium, campaign, channel
            ("google", "cpc", "q2 cross-network", "Cross-network"),
            ("google", "cpc", "summer-shop", "Paid Shopping"),
            ("amazon", "cpc", "(none)", "Paid Shopping"),
            ("google", "cpc", "(none)", "Paid Search"),
            ("bing", "ppc", "workshop", "Paid Search"),
            ("facebook", "paid_social", "(none)", "Paid Social"),
            ("fb", "retargeting", "(none)", "Paid Social"),
            ("youtube", "cpv", "(none)", "Paid Video"),
            ("adnet", "cpm", "(none)", "Display"),
            ("adnet", "banner", "(none)", "Display"),
            ("adnet", "cpc", "(none)", "Paid Other"),
            ("newsletter", "paid-placement", "(none)", "Paid Other"),
            ("etsy", "referral", "(none)", "Organic Shopping"),
            ("newsletter", "email", "eshop", "Organic Shopping"),
            ("newsletter", "email", "workshop", "Email"),
            ("reddit", "social", "(none)", "Organic Social"),
            ("news.ycombinator.com", "social", "(none)", "Organic Social"),
            ("acme", "social-media", "(none)", "Organic Social"),
            ("youtube", "referral", "(none)", "Organic Video"),
            ("acme", "video-ad", "(none)", "Organic Video"),
            ("chatgpt", "referral", "(none)", "AI Assistants"),
            ("chatgpt.com", "(none)", "(none)", "AI Assistants"),
            ("bing", "organic", "(none)", "Organic Search"),
            ("acme", "organic", "(none)", "Organic Search"),
            ("google", "(none)", "(none)", "Organic Search"),
            ("email", "(none)", "(none)", "Email"),
            ("acme", "e-mail", "(none)", "Email"),
            ("acme", "affiliate", "(none)", "Affiliates"),
            ("acme", "audio", "(none)", "Audio"),
            ("sms", "(none)", "(none)", "SMS"),
            ("acme", "webpush", "(none)", "Mobile Push Notifications"),
            ("firebase", "(none)", "(none)", "Mobile Push Notifications"),
            ("blog.example", "referral", "(none)", "Referral"),
            ("acme", "link", "(none)", "Referral"),
            ("(direct)", "(none)", "(none)", "Direct"),
            ("(direct)", "(none)", "spring", "Direct"),
            ("hn", "(none)", "(none)", "Unassigned"),
            ("acme", "print", "(none)", "Unassigned"),
        ];
        for (source, medium, campaign, channel) in table {
            assert_eq!(Channel::of(source, medium, campaign).name(), channel, "{source} / {medium} / {campaign}");
        }
    }

    #[test]
    fn names_read_back() {
        for channel in Channel::ALL {
            assert_eq!(Channel::parse(channel.name()), Some(*channel));
            assert_eq!(Channel::parse(&format!(" {} ", channel.name().to_uppercase())), Some(*channel));
        }
        assert_eq!(Channel::parse("Paid"), None);
        assert_eq!(Channel::parse(""), None);
        assert_eq!(Channel::ALL.len(), 20);
    }

    #[test]
    fn every_channel_but_the_last_has_one_rule_and_in_this_order() {
        let of_rules: Vec<Channel> = RULES.iter().map(|rule| rule.channel).collect();
        let (last, rest) = Channel::ALL.split_last().unwrap();
        assert_eq!((of_rules.as_slice(), *last), (rest, Channel::Unassigned));
    }
}
