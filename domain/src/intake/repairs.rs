//! Interprets an event and repairs the sender's mistakes. Only an unusable time is refused.

use std::borrow::Cow;

use super::event::Money;
use super::json_fields::{JsonFields, text_of};
use super::metadata_bounds::within_bounds;
use super::placeholder::is_placeholder;
use super::policy::Policy;
use super::submission::{
    Invalid, MAX_GROUP_ID_CHARS, MAX_METADATA_DEPTH, MAX_METADATA_KEYS, MAX_TEXT_BYTES, OVERRIDES, Raw, Submission, id, text,
};
use super::warning::{Warning, WarningCode};
use crate::money::{Amount, AmountError, Currency};
use crate::text::cut_bytes;
use crate::time::{EARLIEST, Instant, clamp_timestamp};

/// Smaller numbers are seconds: as milliseconds, they would be before March 1973.
const LEAST_MILLISECONDS: i64 = 100_000_000_000;

/// The interpreted fields of an event, and the repairs.
pub(super) struct Repaired<'s> {
    pub(super) time: Instant,
    /// Whether the time of receipt replaced its time, which was too far in the future.
    pub(super) clamped: bool,
    pub(super) money: Option<Money>,
    /// The type and the id of the group.
    pub(super) group: Option<(&'s str, &'s str)>,
    pub(super) metadata: Option<Cow<'s, str>>,
    /// Source, medium, campaign and channel.
    pub(super) overrides: [Option<Cow<'s, str>>; 4],
    pub(super) warnings: Vec<Warning>,
}

/// Interprets an event.
///
/// # Errors
/// Its timestamp is not a time, or too early.
pub(super) fn repair<'s>(
    submission: &'s Submission<'_>,
    policy: &Policy,
    is_server: bool,
    received: Instant,
) -> Result<Repaired<'s>, Invalid> {
    let mut warnings = Vec::new();
    warn_of_texts(submission, &mut warnings);
    let (time, clamped) = time(submission, received, &mut warnings)?;
    let money = money(submission, policy, is_server, &mut warnings);
    let group = group(submission, &mut warnings);
    let metadata = metadata(submission, &mut warnings);
    let overrides = submission.overrides.map(|raw| overrides(raw, &mut warnings)).unwrap_or_default();
    Ok(Repaired { time, clamped, money, group, metadata, overrides, warnings })
}

fn warn_of_texts(submission: &Submission<'_>, warnings: &mut Vec<Warning>) {
    warnings.extend(submission.of_other_type.iter().copied().map(Warning::other_type));
    for (name, field) in submission.texts() {
        if field.is_some_and(|text| text.0.len() > MAX_TEXT_BYTES) {
            warnings.extend(too_long(name));
        }
    }
    let ids = [
        ("user_id", &submission.user_id, submission.has_camel_user_id.then_some("userId")),
        ("anonymous_id", &submission.anonymous_id, submission.has_camel_anonymous_id.then_some("anonymousId")),
    ];
    for (name, field, misspelt) in ids {
        if field.as_ref().is_some_and(|id| is_placeholder(&id.0)) {
            let problem = "is a placeholder for an unknown user, and was ignored";
            warnings.push(Warning::new(WarningCode::PlaceholderId, name, problem));
        }
        if let Some(misspelt) = misspelt.filter(|_| id(field.as_ref()).is_none()) {
            let problem = format!("is unknown and was ignored: use `{name}`");
            warnings.push(Warning::new(WarningCode::MisspeltField, misspelt, problem));
        }
    }
}

/// Returns the warning for a text field that is too long. Groups have their own, and an
/// `external_id` is never repaired.
fn too_long(name: &'static str) -> Option<Warning> {
    match name {
        "group_id" | "group_type" | "external_id" => None,
        "user_id" | "anonymous_id" => {
            let problem = format!("has more than {MAX_TEXT_BYTES} bytes, and was ignored");
            Some(Warning::new(WarningCode::FieldIgnored, name, problem))
        }
        _ => Some(Warning::new(WarningCode::TextCut, name, format!("was truncated to {MAX_TEXT_BYTES} bytes"))),
    }
}

/// Returns the time of the event, and whether the time of receipt replaced its timestamp.
fn time(submission: &Submission<'_>, received: Instant, warnings: &mut Vec<Warning>) -> Result<(Instant, bool), Invalid> {
    let Some(raw) = submission.timestamp.map(|raw| raw.0).filter(|raw| *raw != "\"\"") else {
        return Ok((received, false));
    };
    let wrong = |problem: &str| Invalid::parameter("timestamp", format!("`timestamp` {problem}"));
    let no_time = "must be an RFC 3339 date-time or a number of milliseconds since 1970";
    let stated = instant(raw).ok_or_else(|| wrong(no_time))?;
    let sent_at = submission.sent_at.and_then(|raw| instant(raw.0));
    // Two small numbers are milliseconds of a device whose clock began in 1970.
    let is_new_clock = stated.is_small() && sent_at.is_some_and(SentInstant::is_small);
    let is_seconds = stated.is_small() && !is_new_clock;
    let at = |sent: SentInstant| if is_new_clock { sent.as_milliseconds } else { sent.at() };
    // An invalid time of sending must not cost the event.
    let corrected = sent_at.map(|sent_at| at(stated).corrected(at(sent_at), received));
    let sent = corrected.filter(|sent| *sent >= EARLIEST).unwrap_or_else(|| at(stated));
    let clamped = clamp_timestamp(Some(sent), received).map_err(|error| wrong(&error.to_string()))?;
    if is_seconds {
        let problem = "was read as seconds since 1970; send milliseconds or RFC 3339 to be unambiguous";
        warnings.push(Warning::new(WarningCode::TimestampInSeconds, "timestamp", problem));
    }
    if clamped.clamped {
        let problem = "is more than 5 minutes in the future, and was replaced by the time of receipt";
        warnings.push(Warning::new(WarningCode::Clamped, "timestamp", problem));
    }
    Ok((clamped.at, clamped.clamped))
}

/// An instant, as sent.
#[derive(Clone, Copy)]
pub(super) struct SentInstant {
    /// The time of a date-time, or of a number as milliseconds.
    as_milliseconds: Instant,
    /// The time of a small number as seconds.
    as_seconds: Option<Instant>,
}

impl SentInstant {
    /// Whether it is a number that is too small for milliseconds.
    fn is_small(self) -> bool {
        self.as_seconds.is_some()
    }

    fn at(self) -> Instant {
        self.as_seconds.unwrap_or(self.as_milliseconds)
    }
}

/// Parses an instant. Some programs write numbers as text.
pub(super) fn instant(raw: &str) -> Option<SentInstant> {
    let text = text_of(raw)?;
    let text = text.trim();
    if let Some(as_milliseconds) = Instant::parse_rfc3339(text) {
        return Some(SentInstant { as_milliseconds, as_seconds: None });
    }
    let as_milliseconds = Instant::parse_epoch_ms(text)?;
    let is_small = as_milliseconds.0 < LEAST_MILLISECONDS;
    Some(SentInstant { as_milliseconds, as_seconds: is_small.then(|| Instant::parse_epoch_seconds(text)).flatten() })
}

fn money(submission: &Submission<'_>, policy: &Policy, is_server: bool, warnings: &mut Vec<Warning>) -> Option<Money> {
    let code = text(submission.currency.as_ref()).filter(|code| !code.trim().is_empty());
    let Ok(currency) = code.map_or(Ok(policy.currency), Currency::parse) else {
        let problem = "is not an ISO 4217 code such as USD: the event has no money";
        warnings.push(Warning::new(WarningCode::CurrencyUnknown, "currency", problem));
        return None;
    };
    let raw = submission.value.map(|raw| raw.0).filter(|raw| *raw != "\"\"")?;
    let amount = match amount(raw) {
        Ok(amount) => amount,
        Err(error) => {
            warnings.push(Warning::new(WarningCode::ValueIgnored, "value", format!("{error}: the event has no money")));
            return None;
        }
    };
    let in_project = policy.convert(amount, currency, policy.currency);
    if in_project.is_none() {
        let problem = format!("{currency} has no rate: the money is stored, but totals in {} leave it out", policy.currency);
        warnings.push(Warning::new(WarningCode::NoRate, "currency", problem));
    }
    Some(Money {
        amount,
        currency,
        in_project,
        in_organization: policy.convert(amount, currency, policy.organization_currency),
        counted: is_server || !policy.server_only_revenue,
    })
}

/// Parses an amount: a number, or a text that contains one.
pub(super) fn amount(raw: &str) -> Result<Amount, AmountError> {
    if raw.starts_with('"') {
        Amount::parse_written(&text_of(raw).ok_or(AmountError::NotANumber)?)
    } else {
        Amount::parse_rounded(raw)
    }
}

/// Returns the type and id of the group that the event names; the type defaults to company.
fn group<'s>(submission: &'s Submission<'_>, warnings: &mut Vec<Warning>) -> Option<(&'s str, &'s str)> {
    let (kind, id) = (text(submission.group_type.as_ref()), text(submission.group_id.as_ref()));
    let mut ignored = |param, problem: String| {
        warnings.push(Warning::new(WarningCode::GroupIgnored, param, format!("{problem}: the event is in no group")));
        None
    };
    if kind.is_some_and(|kind| !is_group_type(kind)) {
        return ignored("group_type", "does not match ^[a-z][a-z0-9_]{0,63}$".into());
    }
    match id {
        Some(id) if id.len() > MAX_GROUP_ID_CHARS && id.chars().count() > MAX_GROUP_ID_CHARS => {
            ignored("group_id", format!("has more than {MAX_GROUP_ID_CHARS} characters"))
        }
        id => Some((kind.unwrap_or("company"), id?)),
    }
}

/// Whether `kind` matches `^[a-z][a-z0-9_]{0,63}$`.
#[must_use]
pub fn is_group_type(kind: &str) -> bool {
    let mut bytes = kind.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && kind.len() <= 64
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn metadata<'s>(submission: &Submission<'s>, warnings: &mut Vec<Warning>) -> Option<Cow<'s, str>> {
    let kept = within_bounds(submission.metadata?.0);
    if !matches!(kept, Some(Cow::Borrowed(_))) {
        let problem = format!("was trimmed to {MAX_METADATA_KEYS} keys, {MAX_METADATA_DEPTH} levels, and texts of 8 KiB");
        warnings.push(Warning::new(WarningCode::MetadataTrimmed, "metadata", problem));
    }
    kept
}

/// Returns the texts of `_acOverrides`.
fn overrides<'s>(raw: Raw<'s>, warnings: &mut Vec<Warning>) -> [Option<Cow<'s, str>>; 4] {
    let Ok(fields) = JsonFields::read(raw.0) else {
        warnings.push(Warning::other_type("_acOverrides"));
        return Default::default();
    };
    OVERRIDES.map(|param| {
        let (_, name) = param.split_once('.')?;
        let text = text_of(fields.get(name)?);
        let Some(text) = text else {
            warnings.push(Warning::other_type(param));
            return None;
        };
        if text.len() > MAX_TEXT_BYTES {
            warnings.extend(too_long(param));
        }
        let text = match text {
            Cow::Borrowed(text) => Cow::Borrowed(cut_bytes(text, MAX_TEXT_BYTES)),
            Cow::Owned(text) => Cow::Owned(cut_bytes(&text, MAX_TEXT_BYTES).to_owned()),
        };
        Some(text).filter(|text| !text.is_empty())
    })
}
