use std::sync::Arc;

use crate::agent;
use crate::hosts::HostList;
use crate::ids::{OrganizationId, ProjectId};
use crate::intake::admission::{Client, Sender, Verdict, admit};
use crate::intake::client_address::ClientAddress;
use crate::intake::fields::*;
use crate::intake::policy::{BotPolicy, Policy, SignalsPolicy};
use crate::intake::submission::Submission;
use crate::money::Currency;
use crate::time::{Instant, Timezone};

const CHROME: &str =
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36";

/// Admits this body, sent by Chrome on Windows to a project that counts in USD.
pub(crate) fn event(body: &str) -> Event {
    let policy = Policy {
        project: ProjectId(1),
        organization: OrganizationId(1),
        currency: Currency::USD,
        organization_currency: Currency::USD,
        rates: Arc::default(),
        timezone: Timezone::default(),
        bots: BotPolicy::default(),
        signals: SignalsPolicy::default(),
        cookieless: true,
        server_only_revenue: true,
        no_referrers: HostList::default(),
    };
    let agent = agent::parse(CHROME);
    let client = Client {
        sender: Sender::Public,
        address: Some(ClientAddress::parse("192.0.2.1")),
        user_agent: Some(CHROME),
        country: Country::parse("CH"),
        agent: &agent,
        gpc: false,
        dnt: false,
        salt: Some([0; 16]),
    };
    let admitted =
        Submission::read(body.as_bytes(), |submission| admit(submission, &policy, &client, Instant(1_700_000_000_000)));
    match admitted.flatten().expect(body) {
        Verdict::Record { event, .. } => *event,
        Verdict::Dropped(reason) => panic!("dropped: {reason:?}"),
    }
}

fn value_of(body: &str, field: BuiltIn, entry: Option<&Entry>) -> String {
    field.value(&event(body), entry).map_or("-".to_owned(), Cow::into_owned)
}

#[test]
fn names_read_back() {
    assert_eq!(BuiltIn::ALL.len(), 25);
    for field in BuiltIn::ALL.iter().copied() {
        assert_eq!(field.as_str().parse(), Ok(field));
        assert_eq!(Field::parse(field.as_str()), Ok(Field::BuiltIn(field)));
    }
    for name in ["browser", "metadata.plan", "metadata.plan.name", "metadata.metadata.x", "metadata. "] {
        assert_eq!(Field::parse(name).map(|field| field.to_string()).as_deref(), Ok(name));
    }
}

#[test]
fn an_unknown_field_is_refused_with_a_list_of_the_known() {
    for name in ["", "Browser", " browser", "metadata", "plan", "country", "value"] {
        let error = Field::parse(name).expect_err(name).to_string();
        assert!(error.contains("name, browser, browser_version,") && error.contains("metadata.<path>"), "{error}");
        assert!(error.ends_with(&format!("not {name:?}")), "{error}");
    }
    let long = format!("metadata.{}", "x".repeat(MAX_PATH_BYTES + 1));
    for name in ["metadata.", &long] {
        assert_eq!(Field::parse(name), Err(FieldError::Path(PathError)), "{name}");
    }
}

#[test]
fn an_event_that_sends_everything_has_everything() {
    let body = r#"{
        "name": "order", "language": "de-CH", "screen": "1920x1080", "hostname": "Shop.example",
        "url": "https://www.shop.example/pricing?utm_source=News%20Letter&utm_medium=EMAIL&utm_campaign=a&utm_term=b&utm_content=C#top",
        "referrer": "https://www.Google.com/search", "channel": "sales", "value": 5, "currency": "eur",
        "group_type": "team", "group_id": "T-1", "user_id": "Ada", "consent_source": "banner"
    }"#;
    let entry = Entry { url: Some("https://shop.example/blog".into()), channel: Some(Channel::OrganicSearch) };
    let table = [
        (BuiltIn::Name, "order"),
        (BuiltIn::Browser, "Chrome"),
        (BuiltIn::BrowserVersion, "124.0.0.0"),
        (BuiltIn::Os, "Windows"),
        (BuiltIn::Device, "desktop"),
        (BuiltIn::LocationCountry, "CH"),
        (BuiltIn::Language, "de-CH"),
        (BuiltIn::Screen, "1920x1080"),
        (BuiltIn::Hostname, "Shop.example"),
        (BuiltIn::Url, "https://www.shop.example/pricing"),
        (BuiltIn::Path, "/pricing"),
        (BuiltIn::EntryUrl, "https://shop.example/blog"),
        (BuiltIn::Referrer, "google.com"),
        (BuiltIn::UtmSource, "news letter"),
        (BuiltIn::UtmMedium, "email"),
        (BuiltIn::UtmCampaign, "a"),
        (BuiltIn::UtmTerm, "b"),
        (BuiltIn::UtmContent, "c"),
        (BuiltIn::AcquisitionChannel, "Organic Search"),
        (BuiltIn::Channel, "sales"),
        (BuiltIn::Currency, "EUR"),
        (BuiltIn::GroupType, "team"),
        (BuiltIn::GroupId, "T-1"),
        (BuiltIn::UserId, "Ada"),
        (BuiltIn::ConsentSource, "banner"),
    ];
    assert_eq!(table.map(|(field, _)| field), BuiltIn::ALL);
    for (field, expected) in table {
        assert_eq!(value_of(body, field, Some(&entry)), expected, "{field}");
        let needs_entry = value_of(body, field, None) != expected;
        assert_eq!(field.of_session(), needs_entry, "{field}");
    }
}

#[test]
fn an_event_that_sends_a_name_only_has_that_and_what_its_request_tells() {
    let body = r#"{"name": "x"}"#;
    for field in BuiltIn::ALL.iter().copied() {
        let expected = match field {
            BuiltIn::Name => "x",
            BuiltIn::Browser => "Chrome",
            BuiltIn::BrowserVersion => "124.0.0.0",
            BuiltIn::Os => "Windows",
            BuiltIn::Device => "desktop",
            BuiltIn::LocationCountry => "CH",
            _ => "-",
        };
        assert_eq!(value_of(body, field, None), expected, "{field}");
    }
}

#[test]
fn values_take_their_form() {
    let table = [
        // body, field, value
        (r#"{"name": "x", "url": "https://Shop.example:8443/a"}"#, BuiltIn::Hostname, "shop.example"),
        (r#"{"name": "x", "url": "/a"}"#, BuiltIn::Hostname, "-"),
        (r#"{"name": "x", "url": "/a?b#c"}"#, BuiltIn::Url, "/a"),
        (r#"{"name": "x", "url": "?b"}"#, BuiltIn::Url, "-"),
        (r#"{"name": "x", "url": "https://a.example"}"#, BuiltIn::Path, "/"),
        (r#"{"name": "x", "url": "/a?utm_source="}"#, BuiltIn::UtmSource, "-"),
        (r#"{"name": "x", "url": "/a", "referrer": "https://a.example/"}"#, BuiltIn::Referrer, "a.example"),
        (r#"{"name": "x", "hostname": "a.example", "referrer": "https://www.a.example/"}"#, BuiltIn::Referrer, "-"),
        (r#"{"name": "x", "group_id": "acme"}"#, BuiltIn::GroupType, "company"),
        (r#"{"name": "x", "group_type": "team"}"#, BuiltIn::GroupType, "-"),
        (r#"{"name": "x", "currency": "EUR"}"#, BuiltIn::Currency, "-"),
        (r#"{"name": "x", "value": 0}"#, BuiltIn::Currency, "USD"),
        // Without consent, ids, agent and country are removed; the fields that describe the page
        // stay.
        (r#"{"name": "x", "pc": "", "user_id": "ada"}"#, BuiltIn::UserId, "-"),
        (r#"{"name": "x", "pc": ""}"#, BuiltIn::Browser, "-"),
        (r#"{"name": "x", "pc": ""}"#, BuiltIn::Device, "-"),
        (r#"{"name": "x", "pc": ""}"#, BuiltIn::LocationCountry, "-"),
        (r#"{"name": "x", "pc": "", "url": "/a"}"#, BuiltIn::Path, "/a"),
    ];
    for (body, field, expected) in table {
        assert_eq!(value_of(body, field, None), expected, "{field} of {body}");
    }
}

#[test]
fn an_entry_is_the_page_and_the_channel_of_its_event() {
    let entry = Entry::of(&event(r#"{"name": "x", "url": "https://a.example/b?c#d", "referrer": "https://www.bing.com/"}"#));
    assert_eq!(entry, Entry { url: Some("https://a.example/b".into()), channel: Some(Channel::OrganicSearch) });
    assert_eq!(Entry::of(&event(r#"{"name": "x"}"#)), Entry { url: None, channel: Some(Channel::Direct) });
}

#[test]
fn a_field_of_the_metadata_keeps_its_json_type() {
    let event = event(r#"{"name": "x", "metadata": {"plan": {"name": "pro"}, "seats": 5.0}}"#);
    let value = |name: &str| Field::parse(name).expect(name).value(&event, None);
    assert_eq!(value("metadata.plan.name"), Scalar::Text("pro".into()));
    assert_eq!(value("metadata.seats"), Scalar::Number(Number::parse("5").expect("a number")));
    assert_eq!(value("metadata.plan"), Scalar::Null);
    assert_eq!(value("name"), Scalar::Text("x".into()));
    assert_eq!(value("url"), Scalar::Null);
}

#[test]
fn fields_are_made_of_the_texts_that_they_read() {
    let bodies = [
        r#"{"name": "a", "url": "https://Shop.example/a?utm_source=X&utm_medium=m&utm_term=t#f", "referrer": "https://www.google.com/", "user_id": "u"}"#,
        r#"{"name": "b", "url": "https://shop.example", "hostname": "other.example", "referrer": "https://other.example/", "language": "de",
            "screen": "1x1", "channel": "c", "consent_source": "banner"}"#,
        r#"{"name": "c", "value": 5, "group_id": "g", "group_type": "team", "referrer": "no address"}"#,
    ];
    for body in bodies {
        let event = event(body);
        for field in BuiltIn::ALL.iter().copied().filter(|field| !field.of_session()) {
            let text = |text: EventText| {
                assert!(field.reads().contains(&text), "{field} reads {text:?}");
                text.of(&event)
            };
            assert_eq!(field.value_of(text), field.value(&event, None), "{field} of {body}");
        }
    }
    assert!(BuiltIn::ALL.iter().all(|field| field.reads().is_empty() == field.of_session()));
}
