//! Admission: turns a submission into the event to log, or into the reason for not recording it.

use compact_str::CompactString;

use crate::acquisition::{self, Overrides, Touchpoint};
use crate::agent::{Agent, Device};
use crate::company::{self, CompanyKey};
use crate::ids::KeyHasher;
use crate::intake::client_address::ClientAddress;
use crate::intake::country::Country;
use crate::intake::event::{Details, Event, Money, SentIds};
use crate::intake::fields::metadata_text;
use crate::intake::interaction::is_interactive;
use crate::intake::metadata_bounds::check_metadata;
use crate::intake::policy::{BotPolicy, Policy, SignalsPolicy};
use crate::intake::submission::{Invalid, MAX_NAME_CHARS, MAX_TEXT_BYTES, Raw, RawOverrides, Submission, Text, text};
use crate::money::{Amount, AmountError, Currency};
use crate::text as page;
use crate::time::{Instant, clamp_timestamp};

/// Numbers that are probably seconds instead of milliseconds: the years 1990 to 2100.
const EPOCH_SECONDS: std::ops::Range<i64> = 631_152_000..4_102_444_800;

/// The kind of sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// A browser or an app, with a public key.
    Public,
    /// A server, with a token.
    Server,
}

/// The request that carried the event.
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
    /// The secret salt of the day of receipt. Without it, an event that [needs it](needs_salt) must not be admitted.
    pub salt: Option<[u8; 16]>,
}

/// The result of admission.
#[derive(Debug)]
pub enum Verdict {
    /// Record the event.
    Record {
        /// The event.
        event: Box<Event>,
        /// Whether its time was too far ahead and was replaced by the time of receipt.
        clamped: bool,
        /// Warnings for the sender about probable mistakes.
        warnings: Vec<String>,
    },
    /// Drop the event, as the project's policy requires.
    Dropped(DropReason),
}

/// Why an event was dropped.
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
/// # Errors [`Invalid`] if a field is missing, malformed or out of bounds.
pub fn admit(submission: &Submission<'_>, policy: &Policy, client: &Client<'_>, received: Instant) -> Result<Verdict, Invalid> {
    let name = name(submission)?;
    check_texts(submission)?;
    let (time, clamped) = time(submission, received)?;
    let money = money(submission, policy, client.sender)?;
    let group = group(submission)?;
    let metadata = metadata(submission)?;
    let overrides = overrides(submission.overrides)?;
    let signals = signals(submission, client);
    if client.agent.device == Device::Bot && policy.bots == BotPolicy::Drop {
        return Ok(Verdict::Dropped(DropReason::Bot));
    }
    let signalled = signals.iter().any(|signal| signal == "gpc" || signal == "dnt");
    if signalled && policy.signals == SignalsPolicy::Drop {
        return Ok(Verdict::Dropped(DropReason::Consent));
    }
    let consent = granted(submission) && !(signalled && policy.signals == SignalsPolicy::Anonymize);
    let warnings = warnings(submission, money.as_ref(), policy);
    // Metadata may describe a person.
    let metadata = metadata.filter(|_| consent);
    let who = if consent { who(submission, policy, client, time) } else { SentIds::default() };
    let email = if consent { email(name, &who, metadata) } else { Emails::default() };
    let mut details = details(submission, metadata, &signals);
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
        details.acquisition = Some(touchpoint(submission, &overrides));
        details.country = client.country;
    }
    let company = group.filter(|(kind, _)| *kind == "company").and_then(|(_, id)| CompanyKey::from_group_id(id));
    let company_domain = (company.is_some() && name == "group").then(|| reported_domain(metadata)).flatten();
    let event = Event {
        project: policy.project,
        time,
        received,
        day: policy.timezone.day_of(time),
        interactive: is_interactive(name, submission, is_server_alone(client)),
        name: name.into(),
        who,
        external_id: text(submission.external_id.as_ref()).map(Into::into),
        money,
        company,
        company_domain,
        email_company: email.company,
        details,
    };
    Ok(Verdict::Record { event: Box::new(event), clamped, warnings })
}

/// Whether a server sends the event, or an import, and no visitor's agent is known.
fn is_server_alone(client: &Client<'_>) -> bool {
    // An import may have what another product found in the user agent, in its place.
    let has_agent = client.user_agent.is_some_and(|agent| !agent.is_empty()) || *client.agent != Agent::default();
    client.sender == Sender::Server && !has_agent
}

/// Collects warnings for the sender about probable mistakes.
fn warnings(submission: &Submission<'_>, money: Option<&Money>, policy: &Policy) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(Money { currency, in_project: None, .. }) = money {
        let into = policy.currency;
        warnings.push(format!("{currency} has no rate: the money is kept, and no total in {into} counts it"));
    }
    let absent = |field: &Option<Text<'_>>| text(field.as_ref()).is_none();
    for (is_there, other, name) in [
        (submission.camel_user_id.is_some() && absent(&submission.user_id), "userId", "user_id"),
        (submission.camel_anonymous_id.is_some() && absent(&submission.anonymous_id), "anonymousId", "anonymous_id"),
    ] {
        if is_there {
            warnings.push(format!("`{other}` is not known and was ignored: the field is `{name}`"));
        }
    }
    warnings
}

fn name<'s>(submission: &'s Submission<'_>) -> Result<&'s str, Invalid> {
    let name = text(submission.name.as_ref()).ok_or_else(|| Invalid::missing("name"))?;
    match name.chars().count() {
        0..=MAX_NAME_CHARS => Ok(name),
        long => Err(Invalid::parameter("name", format!("`name` has {long} characters; at most {MAX_NAME_CHARS} are allowed"))),
    }
}

fn check_texts(submission: &Submission<'_>) -> Result<(), Invalid> {
    submission.texts().into_iter().try_for_each(|(name, field)| check_text(name, field))
}

fn check_text(name: &str, field: Option<&Text<'_>>) -> Result<(), Invalid> {
    match field.map_or(0, |text| text.0.len()) {
        0..=MAX_TEXT_BYTES => Ok(()),
        long => Err(Invalid::parameter(name, format!("`{name}` has {long} bytes; at most {MAX_TEXT_BYTES} are allowed"))),
    }
}

/// Returns the time of the event, and whether the time of receipt replaced its timestamp.
fn time(submission: &Submission<'_>, received: Instant) -> Result<(Instant, bool), Invalid> {
    let wrong =
        || Invalid::parameter("timestamp", "`timestamp` must be an RFC 3339 date-time or a number of milliseconds since 1970");
    let Some(raw) = submission.timestamp.map(|raw| raw.0).filter(|raw| *raw != "null" && *raw != "\"\"") else {
        return Ok((received, false));
    };
    let stated = instant(raw).ok_or_else(wrong)?;
    let sent_at = submission.sent_at.and_then(|raw| instant(raw.0));
    let sent = sent_at.map_or(stated, |sent_at| stated.corrected(sent_at, received));
    let clamped = clamp_timestamp(Some(sent), received).map_err(|error| {
        let is_seconds = !raw.starts_with('"') && EPOCH_SECONDS.contains(&stated.0);
        let hint = if is_seconds { "; it reads as seconds since 1970, and must be milliseconds" } else { "" };
        Invalid::parameter("timestamp", format!("`timestamp`: {error}{hint}"))
    })?;
    Ok((clamped.at, clamped.clamped))
}

fn instant(raw: &str) -> Option<Instant> {
    if raw.starts_with('"') {
        Instant::parse_rfc3339(&serde_json::from_str::<String>(raw).ok()?)
    } else {
        Instant::parse_epoch_ms(raw)
    }
}

fn money(submission: &Submission<'_>, policy: &Policy, sender: Sender) -> Result<Option<Money>, Invalid> {
    let currency = match text(submission.currency.as_ref()) {
        Some(code) => Some(
            Currency::parse(code)
                .map_err(|_| Invalid::parameter("currency", "`currency` must be an ISO 4217 code such as USD"))?,
        ),
        None => None,
    };
    let Some(raw) = submission.value.map(|raw| raw.0).filter(|raw| *raw != "null") else { return Ok(None) };
    let amount = Amount::parse(raw).map_err(|error| {
        Invalid::parameter(
            "value",
            match error {
                AmountError::NotANumber => "`value` must be a number or null".to_owned(),
                error => format!("`value`: {error}"),
            },
        )
    })?;
    let currency = currency.unwrap_or(policy.currency);
    Ok(Some(Money {
        amount,
        currency,
        in_project: policy.convert(amount, currency, policy.currency),
        in_organization: policy.convert(amount, currency, policy.organization_currency),
        counted: sender == Sender::Server || !policy.server_only_revenue,
    }))
}

/// Returns the type and id of the group that the event names; the type defaults to company.
fn group<'s>(submission: &'s Submission<'_>) -> Result<Option<(&'s str, &'s str)>, Invalid> {
    let group_type = text(submission.group_type.as_ref());
    if let Some(kind) = group_type
        && !is_group_type(kind)
    {
        return Err(Invalid::parameter("group_type", "`group_type` must match ^[a-z][a-z0-9_]{0,63}$"));
    }
    let id = text(submission.group_id.as_ref());
    Ok(id.map(|id| (group_type.unwrap_or("company"), id)))
}

/// Whether `kind` matches `^[a-z][a-z0-9_]{0,63}$`.
#[must_use]
pub fn is_group_type(kind: &str) -> bool {
    let mut bytes = kind.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && kind.len() <= 64
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn metadata<'s>(submission: &'s Submission<'_>) -> Result<Option<&'s str>, Invalid> {
    let Some(raw) = submission.metadata.map(|raw| raw.0).filter(|raw| *raw != "null") else { return Ok(None) };
    check_metadata(raw)?;
    Ok(Some(raw))
}

fn overrides(raw: Option<Raw<'_>>) -> Result<RawOverrides<'_>, Invalid> {
    let Some(raw) = raw.map(|raw| raw.0).filter(|raw| *raw != "null") else { return Ok(RawOverrides::default()) };
    let wrong =
        || Invalid::parameter("_acOverrides", "`_acOverrides` must be an object of strings: source, medium, campaign, channel");
    if !raw.starts_with('{') {
        return Err(wrong());
    }
    let overrides: RawOverrides<'_> = serde_json::from_str(raw).map_err(|_| wrong())?;
    for (name, field) in [
        ("_acOverrides.source", &overrides.source),
        ("_acOverrides.medium", &overrides.medium),
        ("_acOverrides.campaign", &overrides.campaign),
        ("_acOverrides.channel", &overrides.channel),
    ] {
        check_text(name, field.as_ref())?;
    }
    Ok(overrides)
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

/// Whether analytics is consented to. It is unless categories are given without it; an empty list grants nothing.
fn granted(submission: &Submission<'_>) -> bool {
    match submission.privacy_categories.as_ref().or(submission.pc.as_ref()) {
        Some(categories) => categories.0.split(',').any(|category| category.trim().eq_ignore_ascii_case("analytics")),
        None => true,
    }
}

/// Whether an event may be counted for a visitor whose id is made with the salt of the day: it has no ids, and the project counts such visitors.
#[must_use]
pub fn needs_salt(submission: &Submission<'_>, policy: &Policy) -> bool {
    policy.cookieless && text(submission.user_id.as_ref()).is_none() && text(submission.anonymous_id.as_ref()).is_none()
}

fn who(submission: &Submission<'_>, policy: &Policy, client: &Client<'_>, time: Instant) -> SentIds {
    let user_id = text(submission.user_id.as_ref()).map(Into::into);
    let anonymous_id = text(submission.anonymous_id.as_ref()).map(Into::into);
    let visitor = if needs_salt(submission, policy) { visitor(policy, client, time) } else { None };
    SentIds { user_id, anonymous_id, visitor }
}

/// Computes the cookieless visitor of the event's UTC day. The id changes every day, and nothing links two days.
fn visitor(policy: &Policy, client: &Client<'_>, time: Instant) -> Option<u128> {
    let address = client.address?.to_string();
    let date = time.utc_day();
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

fn details(s: &Submission<'_>, metadata: Option<&str>, signals: &[String]) -> Details {
    let keep = |field: &Option<Text<'_>>| text(field.as_ref()).map(CompactString::from);
    let categories = s.privacy_categories.as_ref().or(s.pc.as_ref());
    Details {
        url: keep(&s.url),
        hostname: keep(&s.hostname),
        referrer: keep(&s.referrer),
        screen: keep(&s.screen),
        language: keep(&s.language),
        channel: keep(&s.channel),
        message: keep(&s.message),
        notify: s.notify,
        privacy_categories: categories.map(|text| text.0.as_ref().into()),
        privacy_signals: (!signals.is_empty()).then(|| signals.join(",").into()),
        consent_source: keep(&s.consent_source),
        metadata: metadata.map(Into::into),
        ..Details::default()
    }
}

/// Removes what can identify or describe a person: query and userinfo of the page's address, the referring page, and free text.
fn without_person(details: &mut Details) {
    details.referrer = details.referrer_without_person();
    details.url = details.url_without_person();
    details.message = None;
}

fn touchpoint(s: &Submission<'_>, overrides: &RawOverrides<'_>) -> acquisition::Acquisition {
    let url = text(s.url.as_ref());
    let host = page::referrer_host(text(s.referrer.as_ref()), text(s.hostname.as_ref()), url);
    let overrides = Overrides {
        source: text(overrides.source.as_ref()),
        medium: text(overrides.medium.as_ref()),
        campaign: text(overrides.campaign.as_ref()),
        channel: text(overrides.channel.as_ref()),
    };
    acquisition::resolve(&Touchpoint { url, referrer_host: host.as_deref(), overrides: Some(overrides) })
}
