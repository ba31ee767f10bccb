//! Rows for tests: two that are the same for ever, arbitrary ones, and plausible ones.

use std::path::Path;

use compact_str::CompactString;
use headcount_archive::{Archive, Currencies, Row, SealOptions, Sealer};
use headcount_domain::acquisition::{Acquisition, Channel};
use headcount_domain::agent::{Agent, Device};
use headcount_domain::company::CompanyKey;
use headcount_domain::intake::country::Country;
use headcount_domain::intake::event::{Details, Money, SentIds};
use headcount_domain::time::MS_PER_DAY;
use headcount_domain::{Amount, Currency, Day, Event, Instant, Position, ProjectId};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

pub(crate) const PROJECT: ProjectId = ProjectId(0x0123_4567_89ab_cdef);
/// 2026-03-01T00:00:00Z.
pub(crate) const MARCH: Instant = Instant(1_772_323_200_000);

pub(crate) fn currencies() -> Currencies {
    Currencies { project: Currency::parse("EUR").unwrap(), organization: Currency::USD }
}

/// A directory in memory, where there is one: thousands of syncs take their time on a disk.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// An event with every field, and one with none but what every event has.
pub(crate) fn sample() -> Vec<Row> {
    let text = |text: &str| Some(text.into());
    let full = Event {
        project: PROJECT,
        time: Instant(1_700_000_000_000),
        received: Instant(1_700_000_000_250),
        day: Day(19_675),
        interactive: true,
        name: "order".into(),
        who: SentIds { user_id: text("ada"), anonymous_id: text("a-1"), visitor: Some(u128::MAX - 1) },
        external_id: text("o-1"),
        money: Some(Money {
            amount: Amount::parse("12.5").unwrap(),
            currency: Currency::parse("EUR").unwrap(),
            in_project: Some(Amount::parse("13.5").unwrap()),
            in_organization: None,
            counted: true,
        }),
        company: CompanyKey::from_group_id("acme"),
        company_domain: CompanyKey::from_domain("acme.example"),
        email_company: CompanyKey::from_email("ada@lovelace.example"),
        details: full_details(),
    };
    let mut full = Row::new(7, full, currencies());
    full.set_aside = true;
    vec![full, Row::new(9, bare(), currencies())]
}

fn full_details() -> Details {
    let text = |text: &str| Some(text.into());
    Details {
        url: text("https://shop.example/a?b=c"),
        hostname: text("shop.example"),
        referrer: text("https://www.google.com/"),
        referrer_host: text("google.com"),
        screen: text("1920x1080"),
        language: text("de-CH"),
        channel: text("sales"),
        message: text("an order"),
        notify: Some(true),
        group_type: text("company"),
        group_id: text("acme"),
        email: text("ada@lovelace.example"),
        privacy_categories: text("analytics"),
        privacy_signals: text("gpp:DBAA"),
        consent_source: text("banner"),
        metadata: text(r#"{"plan":"pro", "cart": {"items": 3.0}}"#),
        agent: Some(Agent {
            browser: Some("Chrome".into()),
            browser_version: Some("124.0.0.0".into()),
            os: Some("Windows".into()),
            device: Device::Desktop,
        }),
        acquisition: Some(Acquisition {
            source: "google".into(),
            medium: "organic".into(),
            campaign: "(none)".into(),
            channel: Channel::OrganicSearch,
        }),
        country: Country::parse("CH"),
    }
}

fn bare() -> Event {
    Event {
        project: PROJECT,
        time: Instant(-1),
        received: Instant(0),
        day: Day(-1),
        interactive: false,
        name: "\u{e9}".into(),
        who: SentIds::default(),
        external_id: None,
        money: None,
        company: None,
        company_domain: None,
        email_company: None,
        details: Details::default(),
    }
}

/// A plausible event at `position`, received `after_ms` after [`MARCH`].
pub(crate) fn plausible(position: Position, after_ms: i64) -> Row {
    let text = |text: String| Some(text.into());
    let received = MARCH.plus_ms(after_ms);
    let time = received.plus_ms(-((position * 7_919 % 100_000) as i64));
    let day = Day(i32::try_from(time.0.div_euclid(MS_PER_DAY)).unwrap());
    let is_order = position.is_multiple_of(10);
    let micros = i128::from(position * 7_001 % 90_000) * 10_000 - 100_000_000;
    let is_counted = !position.is_multiple_of(30);
    let money = is_order.then(|| Money {
        amount: Amount(micros),
        currency: Currency::USD,
        in_project: (!position.is_multiple_of(70)).then_some(Amount(micros * 9 / 10)),
        in_organization: Some(Amount(micros)),
        counted: is_counted,
    });
    let plan = ["free", "pro", "team"][(position % 3) as usize];
    let metadata = format!(r#"{{"plan":"{plan}","size":{},"cart":{{"id":"c{position}"}}}}"#, position % 5);
    let details = Details {
        url: text(format!("https://shop.example/p/{}", position % 50)),
        metadata: (!position.is_multiple_of(4)).then(|| metadata.into()),
        acquisition: Some(Acquisition::direct()),
        agent: Some(Agent { browser: Some("Firefox".into()), device: Device::Mobile, ..Agent::default() }),
        ..Details::default()
    };
    let event = Event {
        time,
        received,
        day,
        interactive: true,
        name: if is_order { "order" } else { "pageview" }.into(),
        who: SentIds { user_id: text(format!("u{}", position % 97)), ..SentIds::default() },
        external_id: text(format!("e-{position}")),
        money,
        details,
        ..bare()
    };
    let mut row = Row::new(position, event, currencies());
    row.set_aside = position.is_multiple_of(41);
    row
}

/// Plausible events at these positions, one a second.
pub(crate) fn series(positions: impl IntoIterator<Item = Position>) -> Vec<Row> {
    positions.into_iter().map(|position| plausible(position, position.cast_signed() * 1_000)).collect()
}

/// Seals rows in one go.
pub(crate) fn seal(archive: &mut Archive, rows: &[Row], options: SealOptions) {
    let mut sealer = Sealer::new(archive, options);
    rows.iter().for_each(|row| sealer.push(row).unwrap());
    sealer.finish(rows.last().map_or(0, |row| row.position)).unwrap();
}

/// What the archive below `root` holds.
pub(crate) fn contents(root: &Path) -> Vec<Row> {
    rows(&Archive::open(root, PROJECT).unwrap())
}

pub(crate) fn rows(archive: &Archive) -> Vec<Row> {
    let mut rows = Vec::new();
    let push = |row| -> Result<(), headcount_archive::error::ArchiveError> {
        rows.push(row);
        Ok(())
    };
    archive.for_each_row(0, push).unwrap();
    rows
}

fn text() -> impl Strategy<Value = CompactString> {
    prop_oneof![Just(String::new()), "[a-z]{1,6}", ".{0,30}", "\\PC{0,300}"].prop_map(Into::into)
}

fn texts<const N: usize>() -> impl Strategy<Value = [Option<CompactString>; N]> {
    vec(option::of(text()), N).prop_map(|texts| texts.try_into().unwrap())
}

/// An amount that 38 digits can hold.
fn amount() -> impl Strategy<Value = Amount> {
    let bound = 10_i128.pow(38) - 1;
    prop_oneof![Just(0), -1_000_000_000..1_000_000_000_i128, -bound..=bound, Just(bound), Just(-bound)].prop_map(Amount)
}

fn currency() -> impl Strategy<Value = Currency> {
    "[A-Z]{3}".prop_map(|code| Currency::from_recorded(code.as_bytes()).unwrap())
}

fn money() -> impl Strategy<Value = Money> {
    (amount(), currency(), option::of(amount()), option::of(amount()), any::<bool>()).prop_map(
        |(amount, currency, in_project, in_organization, counted)| Money {
            amount,
            currency,
            in_project,
            in_organization,
            counted,
        },
    )
}

fn agent() -> impl Strategy<Value = Agent> {
    (texts::<3>(), proptest::sample::select(Device::ALL)).prop_map(|([browser, version, os], device)| Agent {
        browser,
        browser_version: version,
        os,
        device,
    })
}

fn acquisition() -> impl Strategy<Value = Acquisition> {
    (text(), text(), text(), proptest::sample::select(Channel::ALL)).prop_map(|(source, medium, campaign, channel)| Acquisition {
        source,
        medium,
        campaign,
        channel,
    })
}

/// JSON of a few keys, so that paths recur.
pub(crate) fn json() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("1.50".to_owned()),
        Just("-0".to_owned()),
        Just("1e400".to_owned()),
        Just(r#""p\u0072o""#.to_owned()),
        Just(r#""\ud800""#.to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        ".{0,8}".prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    let key = prop_oneof!["[ab]", "[ab]\\.[ab]", "[ab.]{0,3}", Just("\\u0061".to_owned())];
    scalar.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            vec((key.clone(), inner.clone()), 0..5).prop_map(|entries| {
                let entries: Vec<_> = entries.into_iter().map(|(key, value)| format!("\"{key}\" : {value}")).collect();
                format!("{{{}}}", entries.join(" , "))
            }),
            vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(","))),
        ]
    })
}

fn details() -> impl Strategy<Value = Details> {
    let metadata = option::of(prop_oneof![json().prop_map(Into::into), text()]);
    let country = option::of("[A-Z]{2}".prop_map(|code| Country::from_recorded(code.as_bytes()).unwrap()));
    let others = (metadata, option::of(agent()), option::of(acquisition()), country, option::of(any::<bool>()));
    (texts::<14>(), others).prop_map(|(texts, (metadata, agent, acquisition, country, notify))| {
        let [
            url,
            hostname,
            referrer,
            referrer_host,
            screen,
            language,
            channel,
            message,
            group_type,
            group_id,
            email,
            categories,
            signals,
            source,
        ] = texts;
        Details {
            url,
            hostname,
            referrer,
            referrer_host,
            screen,
            language,
            channel,
            message,
            notify,
            group_type,
            group_id,
            email,
            privacy_categories: categories,
            privacy_signals: signals,
            consent_source: source,
            metadata,
            agent,
            acquisition,
            country,
        }
    })
}

/// Any event of [`PROJECT`] that the type allows, but for amounts of more digits than the columns
/// have.
fn event() -> impl Strategy<Value = Event> {
    let key = || option::of(text().prop_map(|key| CompanyKey::from_recorded(&key)));
    let times = (any::<i64>(), any::<i64>(), any::<i32>());
    let who = (texts::<3>(), option::of(any::<u128>()));
    (times, text(), who, option::of(money()), (key(), key(), key()), details()).prop_map(
        |((time, received, day), name, ([user_id, anonymous_id, external_id], visitor), money, companies, details)| Event {
            project: PROJECT,
            time: Instant(time),
            received: Instant(received),
            day: Day(day),
            interactive: true,
            name,
            who: SentIds { user_id, anonymous_id, visitor },
            external_id,
            money,
            company: companies.0,
            company_domain: companies.1,
            email_company: companies.2,
            details,
        },
    )
}

/// Any rows with rising positions.
pub(crate) fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    let step = prop_oneof![Just(1_u64), 1..1_000_u64, 1..1_u64 << 56];
    vec((step, event(), (currency(), currency()), any::<bool>()), 1..40).prop_map(|rows| {
        let mut position = 0;
        let row = |(step, event, (project, organization), set_aside)| {
            position += step;
            Row { set_aside, ..Row::new(position, event, Currencies { project, organization }) }
        };
        rows.into_iter().map(row).collect()
    })
}
