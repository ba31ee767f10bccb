//! Recorded events: the body as sent, and the values derived from it.

use crate::agent::{self, Agent};
use crate::decimal::{Decimal, Micros, convert};
use crate::json::Json;
use crate::referrer::external;
use crate::sent::Sent;
use crate::text::Url;
use crate::time::{AHEAD_MS, OLDEST_MS, day_of};
use chrono_tz::Tz;
use std::collections::BTreeMap;

/// The value of one unit of each currency in USD.
pub type Rates = BTreeMap<String, Decimal>;

/// The names of events that say who somebody is.
const TRAITS: [&str; 7] = ["identify", "group", "alias", "$identify", "$groupidentify", "$create_alias", "$set"];

/// The sender of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Whether it used the bearer token of a server instead of a public key.
    pub server: bool,
    /// The user agent.
    pub agent: String,
    /// The client's address.
    pub address: String,
    /// The other headers of the request that say something of the client, by their names in lower
    /// case.
    pub headers: Vec<(String, String)>,
}

impl Sender {
    /// A typical browser with a public key.
    #[must_use]
    pub fn browser() -> Sender {
        let agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36";
        Sender { server: false, agent: agent.to_owned(), address: "127.0.0.1".to_owned(), headers: Vec::new() }
    }

    /// A browser with a public key whose request has these headers.
    #[must_use]
    pub fn with(headers: &[(String, String)]) -> Sender {
        let (agents, headers): (Vec<_>, Vec<_>) = headers.iter().cloned().partition(|(name, _)| name == "user-agent");
        let agent = agents.into_iter().next().map_or_else(|| Sender::browser().agent, |(_, agent)| agent);
        Sender { agent, headers, ..Sender::browser() }
    }

    /// A server with a bearer token; agent and address come from the event.
    #[must_use]
    pub fn server() -> Sender {
        Sender { server: true, agent: String::new(), address: String::new(), headers: Vec::new() }
    }
}

/// The settings of a project that affect its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectSetup {
    /// The currency of its figures.
    pub currency: String,
    /// Whether bots are recorded instead of dropped.
    pub record_bots: bool,
    /// The treatment of events with a privacy signal.
    pub signals: Signals,
    /// Whether money sent with a public key does not count.
    pub server_only_revenue: bool,
    /// Whether events without an id get a visitor id.
    pub cookieless: bool,
    /// The project's own domains, and the referrers that it ignores.
    pub ignored: Vec<String>,
}

impl Default for ProjectSetup {
    fn default() -> ProjectSetup {
        ProjectSetup {
            currency: "USD".to_owned(),
            record_bots: false,
            signals: Signals::Record,
            server_only_revenue: false,
            cookieless: true,
            ignored: Vec::new(),
        }
    }
}

/// A project's policy for events with a privacy signal (`gpc`, `dnt`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signals {
    /// Record the event normally.
    Record,
    /// Treat the event as one without consent.
    Anonymize,
    /// Drop the event.
    Drop,
}

/// An event's money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Money {
    /// The value, as sent.
    pub value: Micros,
    /// The currency in upper case; the project's if none was sent.
    pub currency: String,
    /// The value in the project's currency; `None` without a rate.
    pub in_project: Option<Micros>,
    /// The value in the organization's currency; `None` without a rate.
    pub in_organization: Option<Micros>,
    /// Whether the money counts. It does not if the project accepts money from servers only.
    pub counted: bool,
}

/// Why an event was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The field.
    pub param: &'static str,
}

/// One event. Empty strings count as absent; an event without consent has no ids.
#[derive(Clone, Debug)]
pub struct Event {
    /// The project's name.
    pub project: String,
    /// The time at which it happened.
    pub at_ms: i64,
    /// The time of receipt.
    pub received_ms: i64,
    /// Whether its timestamp was too far ahead and was replaced by the time of receipt.
    pub clamped: bool,
    /// The name.
    pub name: String,
    /// The user id, as sent.
    pub user_id: Option<String>,
    /// The anonymous id, as sent.
    pub anonymous_id: Option<String>,
    /// The text that identifies cookieless visitors: equal texts are the same visitor.
    pub visitor: Option<String>,
    /// The idempotency key.
    pub external_id: Option<String>,
    /// The page.
    pub url: Option<Url>,
    /// The hostname as sent, else that of the URL.
    pub hostname: Option<String>,
    /// The referrer, as sent.
    pub sent_referrer: Option<String>,
    /// The host of an external referrer.
    pub referrer: Option<String>,
    /// The group: type and id as sent; the type defaults to `company`.
    pub group: Option<(String, String)>,
    /// The metadata: any JSON.
    pub metadata: Json,
    /// `_acOverrides`.
    pub overrides: Json,
    /// The money, if it has a value.
    pub money: Option<Money>,
    /// The other fields, as sent: `language`, `screen`, `channel`, `consent_source`.
    pub others: BTreeMap<&'static str, String>,
    /// Whether it makes sessions: it tells of something that somebody did on a page or in an app.
    pub interactive: bool,
    /// What it was sent from; nothing without consent.
    pub agent: Option<Agent>,
    /// Whether it may identify anybody.
    pub consent: bool,
    /// Whether it comes from a bot.
    pub bot: bool,
    /// Whether the project drops such events.
    pub unwanted: bool,
    /// Whether it was erased. What it reported about groups and companies stays.
    pub erased: bool,
    /// The codes and fields of what was repaired.
    pub warnings: Vec<String>,
}

impl Event {
    /// Whether the event is in this group.
    #[must_use]
    pub fn is_in(&self, group_type: &str, group_id: &str) -> bool {
        self.group.as_ref().is_some_and(|(kind, id)| kind == group_type && id == group_id)
    }

    /// Whether it is a pageview.
    #[must_use]
    pub fn is_pageview(&self) -> bool {
        ["pageview", "page_view", "$pageview", "page"].contains(&self.name.as_str())
    }

    #[cfg(test)]
    pub(crate) fn example(fields: &str) -> Event {
        let body = format!(r#"{{"name": "pageview", {fields}}}"#);
        let (setup, rates) = (ProjectSetup::default(), Rates::new());
        let place = Place { project: "shop", setup: &setup, currency: "USD", rates: &rates, timezone: Tz::UTC };
        read(&body, 0, &Sender::browser(), &place).unwrap()
    }
}

/// The project of an event, and the current rates.
pub struct Place<'a> {
    /// The project's name.
    pub project: &'a str,
    /// The project's settings.
    pub setup: &'a ProjectSetup,
    /// The organization's currency.
    pub currency: &'a str,
    /// The organization's rates.
    pub rates: &'a Rates,
    /// The organization's timezone.
    pub timezone: Tz,
}

/// Reads the body of an event.
///
/// # Errors The field for which it is refused.
pub fn read(body: &str, received_ms: i64, sender: &Sender, place: &Place<'_>) -> Result<Event, Refused> {
    let mut sent = Sent::read(body)?;
    let name = sent.name()?;
    let external_id = sent.external_id()?;
    let (at_ms, clamped) = instant(&mut sent, received_ms)?;
    let (user_id, anonymous_id) = (sent.id("user_id", "userId"), sent.id("anonymous_id", "anonymousId"));
    let (group, money) = (sent.group(), money(&mut sent, sender, place));
    let (metadata, overrides) = (sent.metadata(), sent.overrides());
    let text = |name: &str| sent.text(name);
    let signalled = signals(&sent);
    let consent = granted(&sent) && !(signalled && place.setup.signals == Signals::Anonymize);
    // Without consent, only the page itself is kept of an address.
    let page = |url: String| if consent { url } else { url.split(['?', '#']).next().unwrap_or_default().to_owned() };
    let url = text("url").map(page).filter(|url| !url.is_empty()).map(|url| Url::parse(&url));
    let hostname = text("hostname").or_else(|| url.as_ref().and_then(|url| url.host.clone()));
    let agent = if sender.server { text("user_agent").unwrap_or_default() } else { sender.agent.clone() };
    let address = if sender.server { text("ip").unwrap_or_default() } else { sender.address.clone() };
    let days = (day_of(at_ms, place.timezone), day_of(received_ms, place.timezone));
    // Without an address visitors are not distinguished.
    let visitor =
        (place.setup.cookieless && !address.is_empty()).then(|| format!("{}/{address}/{agent}/{days:?}", place.project));
    let mut others = BTreeMap::new();
    for field in ["language", "screen", "channel", "consent_source"] {
        if let Some(value) = text(field) {
            others.insert(field, value);
        }
    }
    let reported = sender.server && ["url", "screen", "user_agent"].iter().all(|field| text(field).is_none());
    let passive = TRAITS.contains(&name.as_str()) || sent.raw("non_interaction") == Some("true") || reported;
    Ok(Event {
        project: place.project.to_owned(),
        at_ms,
        received_ms,
        clamped,
        name,
        user_id: user_id.filter(|_| consent),
        anonymous_id: anonymous_id.filter(|_| consent),
        visitor: visitor.filter(|_| consent),
        external_id,
        sent_referrer: text("referrer"),
        referrer: text("referrer")
            .and_then(|referrer| external(&referrer, hostname.as_deref(), url.as_ref(), &place.setup.ignored)),
        url,
        hostname,
        group,
        metadata: if consent { metadata } else { Json::Null },
        overrides,
        money,
        others,
        interactive: !passive,
        agent: consent.then(|| agent::agent(&agent, &sender.headers)),
        consent,
        bot: ["bot", "crawler", "spider"].iter().any(|mark| agent.to_lowercase().contains(mark)),
        unwanted: signalled && place.setup.signals == Signals::Drop,
        erased: false,
        warnings: sent.warnings,
    })
}

fn instant(sent: &mut Sent, received_ms: i64) -> Result<(i64, bool), Refused> {
    match sent.instant()? {
        None => Ok((received_ms, false)),
        Some(at_ms) if at_ms > received_ms + AHEAD_MS => {
            sent.warn("clamped", "timestamp");
            Ok((received_ms, true))
        }
        Some(at_ms) if at_ms >= OLDEST_MS => Ok((at_ms, false)),
        Some(_) => Err(Refused { param: "timestamp" }),
    }
}

fn granted(sent: &Sent) -> bool {
    // The long name takes precedence.
    let categories = sent.given("privacy_categories").or_else(|| sent.given("pc"));
    categories.is_none_or(|granted| granted.split(',').any(|category| category.trim().eq_ignore_ascii_case("analytics")))
}

fn signals(sent: &Sent) -> bool {
    // Unlike categories, empty signals are as absent ones.
    let given = sent.text("privacy_signals").or_else(|| sent.text("ps")).unwrap_or_default();
    given.split(',').any(|signal| ["gpc", "dnt"].contains(&&*signal.trim().to_lowercase()))
}

/// `^[a-z][a-z0-9_]{0,63}$`
#[must_use]
pub fn is_group_type(kind: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    kind.starts_with(|letter: char| letter.is_ascii_lowercase()) && kind.chars().all(plain) && kind.len() <= 64
}

fn money(sent: &mut Sent, sender: &Sender, place: &Place<'_>) -> Option<Money> {
    let (value, currency) = sent.money(&place.setup.currency)?;
    let in_project = converted(value, &currency, &place.setup.currency, place.rates);
    if in_project.is_none() {
        sent.warn("no_rate", "currency");
    }
    Some(Money {
        value,
        in_project,
        in_organization: converted(value, &currency, place.currency, place.rates),
        currency,
        counted: sender.server || !place.setup.server_only_revenue,
    })
}

fn converted(value: Micros, from: &str, to: &str, rates: &Rates) -> Option<Micros> {
    if from == to {
        return Some(value);
    }
    let rate = |currency: &str| {
        if currency == "USD" { Some(Decimal::from(1)) } else { rates.get(currency).copied() }
    };
    Some(convert(value, rate(from)?, rate(to)?))
}
