//! Admission: turns a submission into the event to record, or into the reason why it is not
//! recorded. Only events that report something that a person did at their time make sessions.

use std::borrow::Cow;

use compact_str::CompactString;

use crate::acquisition::{self, Acquisition, Overrides, Touchpoint};
use crate::agent::{Agent, Device};
use crate::company::{self, CompanyKey};
use crate::ids::KeyHasher;
use crate::intake::client_address::ClientAddress;
use crate::intake::country::Country;
use crate::intake::event::{Details, Event, SentIds};
use crate::intake::fields::metadata_text;
use crate::intake::policy::{BotPolicy, Policy, SignalsPolicy};
pub use crate::intake::repairs::is_group_type;
use crate::intake::repairs::{self, Repaired};
use crate::intake::submission::{Invalid, MAX_NAME_CHARS, MAX_TEXT_BYTES, Submission, Text, id, text};
use crate::intake::warning::Warning;
use crate::spelling::spelled;
use crate::text as page;
use crate::time::{Day, Instant};

/// The kind of sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// A browser or an app, with a public key.
    Public,
    /// A server, with a token.
    Server,
}

/// The request with the event.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    /// The kind of sender.
    pub sender: Sender,
    /// The visitor's address. Never stored.
    pub address: Option<ClientAddress<'a>>,
    /// The visitor's user agent. Never stored.
    pub user_agent: Option<&'a str>,
    /// The visitor's country, if known.
    pub country: Option<Country>,
    /// The parsed user agent, including whether it is a bot.
    pub agent: &'a Agent,
    /// Whether `Sec-GPC: 1` was sent.
    pub gpc: bool,
    /// Whether `DNT: 1` was sent.
    pub dnt: bool,
    /// The secret salt of the day of receipt. An event that [needs it](needs_salt) must not be
    /// admitted without it.
    pub salt: Option<[u8; 16]>,
}

/// The result of admission.
#[derive(Debug)]
pub enum Verdict {
    /// Record the event.
    Record {
        /// The event.
        event: Box<Event>,
        /// Whether the time of receipt replaced its time, which was too far in the future.
        clamped: bool,
        /// The repairs, and probable mistakes.
        warnings: Vec<Warning>,
    },
    /// Drop the event, as the project's policy requires.
    Dropped(DropReason),
}

/// The reason why an event was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// A crawler, a monitor or a previewer.
    Bot,
    /// A privacy signal, in a project that drops events with such signals.
    Consent,
    /// The event's identity was erased.
    OptedOut,
    /// The day of the event lies below the floor of its project.
    Retention,
}

impl DropReason {
    /// Returns the reason's name in responses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bot => "bot",
            Self::Consent => "consent",
            Self::OptedOut => "opted_out",
            Self::Retention => "retention",
        }
    }
}

/// Admits `submission`, received at `received`, under `policy`.
///
/// # Errors
/// [`Invalid`] if it has no usable name or timestamp, or its external id is too long. All other
/// mistakes are repaired.
pub fn admit(submission: &Submission<'_>, policy: &Policy, client: &Client<'_>, received: Instant) -> Result<Verdict, Invalid> {
    let name = name(submission)?;
    let external_id = external_id(submission)?;
    let Repaired { time, clamped, money, group, metadata, overrides, warnings } =
        repairs::repair(submission, policy, client.sender == Sender::Server, received)?;
    let signals = signals(submission, client);
    if client.agent.device == Device::Bot && policy.bots == BotPolicy::Drop {
        return Ok(Verdict::Dropped(DropReason::Bot));
    }
    let signalled = signals.iter().any(|signal| signal == "gpc" || signal == "dnt");
    if signalled && policy.signals == SignalsPolicy::Drop {
        return Ok(Verdict::Dropped(DropReason::Consent));
    }
    let consent = granted(submission) && !(signalled && policy.signals == SignalsPolicy::Anonymize);
    // Metadata may describe a person.
    let metadata = metadata.as_deref().filter(|_| consent);
    let day = policy.timezone.day_of(time);
    let who = if consent { who(submission, policy, client, day) } else { SentIds::default() };
    let email = if consent { email(name, &who, metadata) } else { Emails::default() };
    let mut details = details(submission, metadata, &signals, policy);
    if !consent {
        without_person(&mut details);
    }
    details.email = email.reported.map(Into::into);
    if let Some((group_type, group_id)) = &group {
        details.group_type = Some((*group_type).into());
        details.group_id = Some((*group_id).into());
    }
    if consent {
        details.agent = Some(client.agent.clone());
        details.acquisition = Some(acquisition(&details, &overrides));
        details.country = client.country;
    }
    let company = group.filter(|(kind, _)| *kind == "company").and_then(|(_, id)| CompanyKey::from_group_id(id));
    let company_domain = (company.is_some() && name == "group").then(|| reported_domain(metadata)).flatten();
    let event = Event {
        project: policy.project,
        time,
        received,
        day,
        interactive: is_interactive(name, submission, is_server_alone(client)),
        name: name.into(),
        who,
        external_id: external_id.map(Into::into),
        money,
        company,
        company_domain,
        email_company: email.company,
        details,
    };
    Ok(Verdict::Record { event: Box::new(event), clamped, warnings })
}

/// Whether a server or an import sends the event, and the visitor's agent is unknown.
fn is_server_alone(client: &Client<'_>) -> bool {
    // An import may have the properties that another product read from the user agent.
    let has_agent = client.user_agent.is_some_and(|agent| !agent.is_empty()) || *client.agent != Agent::default();
    client.sender == Sender::Server && !has_agent
}

fn name<'s>(submission: &'s Submission<'_>) -> Result<&'s str, Invalid> {
    let wrong = |problem: String| Err(Invalid::parameter("name", format!("`name` {problem}")));
    if submission.of_other_type.contains(&"name") {
        return wrong("must be a string".into());
    }
    let name = submission.name.as_ref().map(|name| &*name.0).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Invalid::missing("name"))?;
    match name.chars().count() {
        0..=MAX_NAME_CHARS => Ok(name),
        long => wrong(format!("has {long} characters; at most {MAX_NAME_CHARS} are allowed")),
    }
}

/// Returns the external id. A truncated one would belong to another event, and without one the
/// event could count twice.
fn external_id<'s>(submission: &'s Submission<'_>) -> Result<Option<&'s str>, Invalid> {
    let id = submission.external_id.as_ref();
    match id.map_or(0, |id| id.0.len()) {
        0..=MAX_TEXT_BYTES => Ok(text(id)),
        long => {
            let message = format!("`external_id` has {long} bytes; at most {MAX_TEXT_BYTES} are allowed");
            Err(Invalid::parameter("external_id", message))
        }
    }
}

/// Collects the signals of the event and of its request, without duplicates.
fn signals(submission: &Submission<'_>, client: &Client<'_>) -> Vec<String> {
    let sent = text(submission.privacy_signals.as_ref()).or_else(|| text(submission.ps.as_ref()));
    let mut signals: Vec<String> = sent.map(split).unwrap_or_default();
    for (name, set) in [("gpc", client.gpc), ("dnt", client.dnt)] {
        if set && !signals.iter().any(|signal| signal == name) {
            signals.push(name.to_owned());
        }
    }
    signals
}

fn split(list: &str) -> Vec<String> {
    let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| if item.len() == 3 { item.to_ascii_lowercase() } else { item.to_owned() }).collect()
}

/// Whether analytics has consent. It has unless categories are given without it; an empty list
/// grants nothing.
fn granted(submission: &Submission<'_>) -> bool {
    categories(submission)
        .is_none_or(|granted| granted.split(',').any(|category| category.trim().eq_ignore_ascii_case("analytics")))
}

/// Returns the granted categories. Unlike in other fields, an empty text does not count as absent.
fn categories<'s>(submission: &'s Submission<'_>) -> Option<&'s str> {
    let categories = submission.privacy_categories.as_ref().or(submission.pc.as_ref())?;
    Some(page::cut_bytes(&categories.0, MAX_TEXT_BYTES))
}

/// Whether an event may be counted for a visitor whose id requires the salt of the day: it has no
/// ids, and the project counts such visitors.
#[must_use]
pub fn needs_salt(submission: &Submission<'_>, policy: &Policy) -> bool {
    policy.cookieless && id(submission.user_id.as_ref()).is_none() && id(submission.anonymous_id.as_ref()).is_none()
}

fn who(submission: &Submission<'_>, policy: &Policy, client: &Client<'_>, day: Day) -> SentIds {
    let user_id = id(submission.user_id.as_ref()).map(Into::into);
    let anonymous_id = id(submission.anonymous_id.as_ref()).map(Into::into);
    let is_nobody = policy.cookieless && user_id.is_none() && anonymous_id.is_none();
    let visitor = if is_nobody { visitor(policy, client, day) } else { None };
    SentIds { user_id, anonymous_id, visitor }
}

/// Computes the cookieless visitor of the event's day. The id changes every day, and nothing links
/// two days.
fn visitor(policy: &Policy, client: &Client<'_>, day: Day) -> Option<u128> {
    let address = client.address?.to_string();
    let date = day.0;
    let agent = client.user_agent.unwrap_or_default();
    let name = format!("{date}\n{}\n{address}\n{agent}", address.len());
    Some(KeyHasher::new(client.salt?).cookieless(policy.project, &name))
}

#[derive(Default)]
struct Emails {
    reported: Option<String>,
    company: Option<CompanyKey>,
}

/// Returns the e-mail address that the event reports, and the company of its domain.
fn email(name: &str, who: &SentIds, metadata: Option<&str>) -> Emails {
    let is_trait = name == "identify" || who.user_id.is_some();
    // An address has an `@`, which may be escaped.
    let may_have_email = |json: &&str| is_trait && memchr::memchr2(b'@', b'\\', json.as_bytes()).is_some();
    let trait_email = metadata.filter(may_have_email).and_then(|json| metadata_text(json, "email"));
    let trait_email = trait_email.as_deref().and_then(company::normalise_email);
    let id_email = who.user_id.as_deref().and_then(company::normalise_email);
    let company = [&trait_email, &id_email].into_iter().flatten().find_map(|email| CompanyKey::from_email(email));
    Emails { reported: trait_email.or(id_email), company }
}

fn reported_domain(metadata: Option<&str>) -> Option<CompanyKey> {
    let domain = metadata_text(metadata?, "domain")?;
    CompanyKey::from_domain(&domain)
}

fn details(s: &Submission<'_>, metadata: Option<&str>, signals: &[String], policy: &Policy) -> Details {
    let keep = |field: &Option<Text<'_>>| text(field.as_ref()).map(CompactString::from);
    Details {
        url: text(s.url.as_ref()).map(|url| spelled(url).into()),
        hostname: keep(&s.hostname),
        referrer: keep(&s.referrer),
        referrer_host: acquisition::external_host(
            text(s.referrer.as_ref()),
            text(s.hostname.as_ref()),
            text(s.url.as_ref()),
            &policy.no_referrers,
        )
        .map(Into::into),
        screen: keep(&s.screen),
        language: keep(&s.language),
        channel: keep(&s.channel),
        message: keep(&s.message),
        notify: s.notify,
        privacy_categories: categories(s).map(CompactString::from),
        privacy_signals: (!signals.is_empty()).then(|| signals.join(",").into()),
        consent_source: keep(&s.consent_source),
        metadata: metadata.map(Into::into),
        ..Details::default()
    }
}

/// Removes everything that can identify or describe a person: query and userinfo of the page URL,
/// the referring page, and free text.
fn without_person(details: &mut Details) {
    details.referrer = details.referrer_without_person();
    details.url = details.url_without_person();
    details.message = None;
}

fn acquisition(details: &Details, overrides: &[Option<Cow<'_, str>>; 4]) -> Acquisition {
    let [source, medium, campaign, channel] = overrides.each_ref().map(Option::as_deref);
    let overrides = Overrides { source, medium, campaign, channel };
    let (url, referrer_host) = (details.url.as_deref(), details.referrer_host.as_deref());
    acquisition::resolve(&Touchpoint { url, referrer_host, overrides: Some(overrides) })
}

/// The names of events that describe a person or a group.
const TRAITS: [&str; 7] = ["identify", "group", "alias", "$identify", "$groupidentify", "$create_alias", "$set"];

/// Whether events of this name describe a person or a group. Such events are never interactive.
fn tells_traits(name: &str) -> bool {
    TRAITS.contains(&name)
}

/// Whether the event `name` is interactive. `is_of_server`: a server or an import sent it, and the
/// visitor's agent is unknown.
fn is_interactive(name: &str, submission: &Submission<'_>, is_of_server: bool) -> bool {
    let is_denied = submission.non_interaction == Some(true);
    let is_absent = |field| text(field).is_none();
    // Without a page and a device, the server reports its own action.
    let is_report = is_of_server && is_absent(submission.url.as_ref()) && is_absent(submission.screen.as_ref());
    !(tells_traits(name) || is_denied || is_report)
}
