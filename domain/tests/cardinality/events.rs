//! Events of one sender who makes up ever new values.

use headcount_domain::acquisition::{Acquisition, Channel};
use headcount_domain::company::CompanyKey;
use headcount_domain::intake::event::{Details, Money, SentIds};
use headcount_domain::{Amount, Currency, Day, Event, Instant, ProjectId};

/// What is sent.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// The event of a number, of so many.
    pub(crate) event: fn(u64, u64) -> Event,
}

const DAY: i64 = 86_400_000;
pub(crate) const TODAY: i64 = 20_000;

/// A user's event at `ms` of the day; the day may be another one if that is more than a day has.
pub(crate) fn at(ms: i64) -> Event {
    let time = TODAY * DAY + ms;
    Event {
        project: ProjectId(1),
        time: Instant(time),
        received: Instant(time),
        day: Day(i32::try_from(time.div_euclid(DAY)).unwrap()),
        interactive: true,
        name: "click".into(),
        who: SentIds { user_id: Some("user".into()), ..SentIds::default() },
        external_id: None,
        money: None,
        company: None,
        company_domain: None,
        email_company: None,
        details: Details::default(),
    }
}

/// The events of a count spread over one day.
fn within_a_day(number: u64, count: u64) -> Event {
    at((number * DAY as u64 / count) as i64)
}

pub(crate) fn scattered(number: u64) -> u64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
}

fn company(key: String) -> Option<CompanyKey> {
    CompanyKey::from_group_id(&key)
}

pub(crate) fn of_company(mut event: Event, key: String) -> Event {
    event.company = company(key.clone());
    event.details.group_type = Some("company".into());
    event.details.group_id = Some(key.into());
    event
}

fn of_group(mut event: Event, key: String) -> Event {
    event.details.group_type = Some("team".into());
    event.details.group_id = Some(key.into());
    event
}

fn by(mut event: Event, user: String) -> Event {
    event.who.user_id = Some(user.into());
    event
}

fn order(mut event: Event) -> Event {
    let amount = Amount::from_units(10);
    event.money =
        Some(Money { amount, currency: Currency::USD, in_project: Some(amount), in_organization: Some(amount), counted: true });
    event
}

fn from(mut event: Event, source: String, campaign: String) -> Event {
    let medium = "cpc".into();
    event.details.acquisition =
        Some(Acquisition { source: source.into(), medium, campaign: campaign.into(), channel: Channel::PaidSearch });
    event
}

fn page(mut event: Event, number: u64) -> Event {
    event.name = "pageview".into();
    event.details.url = Some(format!("https://shop.example/p/{number}").into());
    event
}

fn referred(mut event: Event, number: u64) -> Event {
    event.details.referrer_host = Some(format!("r{number}.example").into());
    event.details.hostname = Some("shop.example".into());
    from(event, format!("r{number}.example"), "(none)".into())
}

/// One of the orders of a company's user; or else a session between them, with a source or, so that
/// it begins before another one, without.
pub(crate) fn last_touch_event(random: u64, is_order: bool) -> Event {
    let slot = (random % 60) as i64 * 8_000_000;
    let event = match (is_order, random >> 20 & 3) {
        (true, _) => order(at(slot)),
        (false, 0) => at(slot + 3_000_000),
        (false, kind) => from(at(slot + 4_000_000), format!("s{}", random >> 24 & 7), format!("c{kind}")),
    };
    of_company(event, "acme".into())
}

pub(crate) const SHAPES: &[Shape] = &[
    Shape {
        name: "usual: pageviews of 1,000 users",
        event: |number, count| {
            by(page(within_a_day(number, count), scattered(number) % 50), format!("user {}", scattered(number) % 1000))
        },
    },
    Shape {
        name: "companies of one user",
        event: |number, count| of_company(within_a_day(number, count), format!("company {number}")),
    },
    Shape { name: "groups of one user", event: |number, count| of_group(within_a_day(number, count), format!("team {number}")) },
    Shape { name: "pages of one user", event: |number, count| page(within_a_day(number, count), number) },
    Shape { name: "referrers of one user", event: |number, count| referred(within_a_day(number, count), number) },
    Shape {
        name: "users of one company",
        event: |number, count| by(of_company(within_a_day(number, count), "acme".into()), format!("user {number}")),
    },
    Shape {
        name: "users of one company, with sources",
        event: |number, count| {
            let event = by(of_company(within_a_day(number, count), "acme".into()), format!("user {number}"));
            from(event, format!("s{}", number % 10), "(none)".into())
        },
    },
    Shape {
        name: "users of one company, with sources and orders",
        event: |number, count| {
            let event = by(of_company(within_a_day(number, count), "acme".into()), format!("user {number}"));
            order(from(event, format!("s{}", number % 10), "(none)".into()))
        },
    },
    Shape {
        name: "users of one group",
        event: |number, count| by(of_group(within_a_day(number, count), "a".into()), format!("user {number}")),
    },
    Shape { name: "orders of one user in a day", event: |number, count| order(within_a_day(number, count)) },
    Shape { name: "orders of one user at one instant", event: |_, _| order(at(5_000)) },
    Shape {
        name: "orders of one user with ever new companies",
        event: |number, count| order(of_company(within_a_day(number, count), format!("company {number}"))),
    },
    Shape { name: "sessions of one user", event: |number, _| at(number as i64 * 2_000_000) },
    Shape {
        name: "sessions of one user, with sources",
        event: |number, _| from(at(number as i64 * 2_000_000), format!("s{}", number % 10), "(none)".into()),
    },
    Shape { name: "days of one user", event: |number, _| at(scattered(number) as i64 % 13_000 * -DAY) },
    Shape {
        name: "e-mail addresses of one user",
        event: |number, count| {
            let mut event = within_a_day(number, count);
            event.details.email = Some(format!("user{number}@mail.example").into());
            event
        },
    },
    Shape {
        name: "users of one e-mail address",
        event: |number, count| {
            let mut event = by(within_a_day(number, count), format!("user {number}"));
            event.details.email = Some("user@mail.example".into());
            event
        },
    },
    Shape {
        name: "anonymous ids of one user",
        event: |number, count| {
            let mut event = within_a_day(number / 2 * 2, count);
            event.who.anonymous_id = Some(format!("device {}", number / 2).into());
            if number % 2 == 0 {
                event.who.user_id = None;
            }
            event
        },
    },
    Shape { name: "one user, newest first", event: |number, count| at(-(number as i64) * 30 * DAY / count as i64) },
    Shape { name: "one user, any order", event: |number, _| at(-(scattered(number) as i64 % (30 * DAY))) },
    Shape {
        name: "sessions of one user, newest first",
        event: |number, _| from(at(-(number as i64) * 2_000_000), format!("s{}", number % 10), "(none)".into()),
    },
    Shape {
        name: "sessions of one user, any order",
        event: |number, count| {
            from(at(-((scattered(number) % count) as i64) * 2_000_000), format!("s{}", number % 10), "(none)".into())
        },
    },
    Shape {
        name: "orders of one user with sources, newest first",
        event: |number, _| order(from(at(-(number as i64) * 2_000_000), format!("s{}", number % 10), "(none)".into())),
    },
    Shape {
        name: "orders of one user, then touches oldest first",
        event: |number, count| {
            let half = count / 2;
            match number < half {
                true => order(at(number as i64 * 1000)),
                false => from(at((number - half) as i64 * 2_000_000 - half as i64 * 2_000_000), "s".into(), "c".into()),
            }
        },
    },
    Shape {
        name: "orders of one user, then touches between them in any order",
        event: |number, count| {
            let half = count / 2;
            match number < half {
                true => order(at(number as i64 * 4_000_000)),
                false => from(at((scattered(number) % half) as i64 * 4_000_000 + 2_000_000), "s".into(), "c".into()),
            }
        },
    },
    Shape {
        name: "orders of one user, then touches newest first",
        event: |number, count| {
            let half = count / 2;
            match number < half {
                true => order(at(number as i64 * 1000)),
                false => from(at((number - half + 1) as i64 * -2_000_000), "s".into(), "c".into()),
            }
        },
    },
    Shape {
        name: "campaigns and sources",
        event: |number, count| {
            from(by(within_a_day(number, count), format!("user {number}")), format!("s{number}"), format!("c{number}"))
        },
    },
    Shape {
        name: "orders under ever new campaigns",
        event: |number, count| {
            let event = by(within_a_day(number, count), format!("user {number}"));
            order(from(event, format!("s{number}"), format!("c{number}")))
        },
    },
    Shape {
        name: "names of one group",
        event: |number, count| {
            let mut event = of_group(within_a_day(number, count), "a".into());
            event.name = "group".into();
            event.details.metadata = Some(format!("{{\"name\":\"name {number}\"}}").into());
            event
        },
    },
    Shape {
        name: "companies reported as one domain",
        event: |number, count| {
            let mut event = of_company(within_a_day(number, count), format!("company {number}"));
            event.name = "group".into();
            event.company_domain = company("acme.example".into());
            event
        },
    },
    Shape {
        name: "nobody's events",
        event: |number, count| {
            let mut event = of_company(within_a_day(number, count), format!("company {number}"));
            event.who = SentIds::default();
            event
        },
    },
];
