//! Tests from touchpoints to acquisitions.

use super::*;
use proptest::prelude::*;

/// Resolves a page and its referrer's host to `source / medium / campaign / channel`.
fn of(url: &str, referrer_host: Option<&str>, overrides: Overrides<'_>) -> String {
    let touchpoint = Touchpoint { url: Some(url), referrer_host, overrides: Some(overrides) };
    let found = resolve(&touchpoint);
    format!("{} / {} / {} / {}", found.source, found.medium, found.campaign, found.channel)
}

#[test]
#[rustfmt::skip]
fn the_page_tells_before_the_referrer() {
    let table = [
        // page, referrer's host, acquisition
        ("https://a.example/", None, "(direct) / (none) / (none) / Direct"),
        ("https://a.example/", Some("bing.com"), "bing / organic / (none) / Organic Search"),
        ("https://a.example/", Some("www.google.co.uk"), "google / organic / (none) / Organic Search"),
        ("https://a.example/", Some("l.facebook.com"), "facebook / social / (none) / Organic Social"),
        ("https://a.example/", Some("t.co"), "twitter / social / (none) / Organic Social"),
        ("https://a.example/", Some("m.youtube.com"), "youtube / referral / (none) / Organic Video"),
        ("https://a.example/", Some("chat.openai.com"), "chatgpt / referral / (none) / AI Assistants"),
        ("https://a.example/", Some("github.com"), "github / referral / (none) / Referral"),
        ("https://a.example/", Some("blog.example"), "blog.example / referral / (none) / Referral"),
        ("https://a.example/?utm_source=google&utm_medium=cpc", None, "google / cpc / (none) / Paid Search"),
        ("https://a.example/?utm_source=adnet&utm_medium=cpc", None, "adnet / cpc / (none) / Paid Other"),
        ("https://a.example/?ref=hn", None, "hn / (none) / (none) / Unassigned"),
        ("https://a.example/?source=partner&ref=hn", None, "partner / (none) / (none) / Unassigned"),
        ("https://a.example/?ref=hn&source=partner&utm_source=news", None, "news / (none) / (none) / Unassigned"),
        ("/pricing?utm_source=News+Letter&utm_medium=Email&utm_campaign=%20Spring%20", Some("google.com"), "news letter / email / spring / Email"),
        ("https://a.example/?utm_source=&utm_medium=+&ref=", Some("google.com"), "google / organic / (none) / Organic Search"),
        ("https://a.example/?utm_source=chatgpt.com", None, "chatgpt / (none) / (none) / AI Assistants"),
        ("https://a.example/?UTM_SOURCE=ChatGPT.com&UTM_Medium=Referral", None, "chatgpt / referral / (none) / AI Assistants"),
        ("https://a.example/?Ref=https://www.google.com/x", None, "google / (none) / (none) / Organic Search"),
        ("https://a.example/?source=FB", None, "facebook / (none) / (none) / Organic Social"),
        ("https://a.example/?utm_source=facebook.com&utm_medium=paid", None, "facebook / paid / (none) / Paid Social"),
        ("https://a.example/", Some("mail.google.com"), "mail.google.com / referral / (none) / Referral"),
        ("https://a.example/", Some("com.google.android.gm"), "com.google.android.gm / referral / (none) / Referral"),
        ("https://a.example/", Some("news.google.com"), "news.google.com / organic / (none) / Organic Search"),
        ("https://a.example/", Some("perplexity.ai"), "perplexity / referral / (none) / AI Assistants"),
        ("https://a.example/?gclid=x", Some("google.com"), "google / cpc / (none) / Paid Search"),
        ("https://a.example/?msclkid=x", None, "bing / cpc / (none) / Paid Search"),
        ("https://a.example/?wbraid=x&gad_source=1", Some("google.com"), "google / cpc / (none) / Paid Search"),
        ("https://a.example/?gbraid=x", None, "google / cpc / (none) / Paid Search"),
        ("https://a.example/?GCLID=x", Some("news.example"), "google / cpc / (none) / Paid Search"),
        ("https://a.example/?yclid=x", Some("yandex.ru"), "yandex / cpc / (none) / Paid Search"),
        ("https://a.example/?epik=x", None, "pinterest / paid_social / (none) / Paid Social"),
        ("https://a.example/?rdt_cid=x", None, "reddit / paid_social / (none) / Paid Social"),
        ("https://a.example/?ScCid=x", None, "snapchat / paid_social / (none) / Paid Social"),
        ("https://a.example/?fbclid=x", None, "facebook / social / (none) / Organic Social"),
        ("https://a.example/?fbclid=x", Some("l.instagram.com"), "instagram / social / (none) / Organic Social"),
        ("https://a.example/?fbclid=x", Some("partner.example"), "partner.example / referral / (none) / Referral"),
        ("https://a.example/?fbclid=x&utm_source=fb&utm_medium=paid_social", None, "facebook / paid_social / (none) / Paid Social"),
        ("https://a.example/?igshid=x", None, "instagram / social / (none) / Organic Social"),
        ("https://a.example/?igsh=x", None, "instagram / social / (none) / Organic Social"),
        ("https://a.example/?ttclid=x", None, "tiktok / paid_social / (none) / Paid Social"),
        ("https://a.example/?twclid=x", None, "twitter / paid_social / (none) / Paid Social"),
        ("https://a.example/?li_fat_id=x", None, "linkedin / paid_social / (none) / Paid Social"),
        ("https://a.example/?fbclid=x&gclid=y", None, "google / cpc / (none) / Paid Search"),
        ("https://a.example/?fbclid=x&gclid=", None, "facebook / social / (none) / Organic Social"),
        ("https://a.example/?utm_source=ig&fbclid=x", None, "instagram / social / (none) / Organic Social"),
        ("https://a.example/?utm_medium=email", None, "(direct) / email / (none) / Email"),
        ("https://a.example/?utm_source=a&utm_source=b", None, "a / (none) / (none) / Unassigned"),
        ("https://a.example/#?utm_source=a", None, "(direct) / (none) / (none) / Direct"),
    ];
    for (url, referrer_host, expected) in table {
        assert_eq!(of(url, referrer_host, Overrides::default()), expected, "{url} from {referrer_host:?}");
    }
}

#[test]
fn overrides_tell_before_the_page() {
    let overrides = |source: &'static str, medium: &'static str, campaign: &'static str, channel: &'static str| Overrides {
        source: Some(source),
        medium: Some(medium),
        campaign: Some(campaign),
        channel: Some(channel),
    };
    let url = "https://a.example/?utm_source=google&utm_medium=cpc&utm_campaign=q2";
    let table = [
        (overrides("", " ", "", ""), "google / cpc / q2 / Paid Search"),
        (overrides(" Bing ", "", "", ""), "bing / cpc / q2 / Paid Search"),
        (overrides("www.Bing.com", "", "", ""), "bing / cpc / q2 / Paid Search"),
        (overrides("", "Email", "Spring", ""), "google / email / spring / Organic Search"),
        (overrides("", "", "", "affiliates"), "google / cpc / q2 / Affiliates"),
        (overrides("", "", "", "Word of mouth"), "google / cpc / q2 / Paid Search"),
        (overrides("crm", "call", "x", "Direct"), "crm / call / x / Direct"),
    ];
    for (overrides, expected) in table {
        assert_eq!(of(url, None, overrides), expected, "{overrides:?}");
    }
}

#[test]
fn campaign_parameters_are_lower_cased_and_cut() {
    let found = utm("/?utm_source=A&utm_medium=B&utm_campaign=C&utm_term=D+E&utm_content=%C3%89");
    let text = |value: &str| Some(CompactString::from(value));
    let expected = Utm { source: text("a"), medium: text("b"), campaign: text("c"), term: text("d e"), content: text("é") };
    assert_eq!(found, expected);
    assert_eq!(utm("https://a.example/"), Utm::default());

    let long = "É".repeat(300);
    let cut = utm(&format!("/?utm_source={long}")).source.unwrap();
    assert_eq!(cut, "é".repeat(255));
}

#[test]
fn nothing_known_is_direct() {
    assert_eq!(resolve(&Touchpoint::default()), Acquisition::direct());
    assert!(Acquisition::default().is_direct());
}

proptest! {
    #[test]
    fn whatever_is_sent_gives_clean_values(
        url in "\\PC{0,40}",
        query in "([&?](utm_source|UTM_MEDIUM|ref|gclid|fbclid|utm_campaign)=[ -~éİ]{0,12}){0,4}",
        host in "\\PC{0,20}",
    ) {
        let url = format!("{url}?{query}");
        let found = resolve(&Touchpoint { url: Some(&url), referrer_host: Some(&host), overrides: None });
        for value in [&found.source, &found.medium, &found.campaign] {
            prop_assert!(!value.is_empty() && value.chars().count() <= MAX_VALUE_CHARS);
            prop_assert_eq!(value, &value.to_lowercase());
        }
        prop_assert_eq!(Channel::of(&found.source, &found.medium, &found.campaign), found.channel);
    }
}
