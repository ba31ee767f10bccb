//! Checks exported events that are imported with all recorded decisions.

use super::admission::is_group_type;
use super::event::Event;
use super::metadata_bounds::check_metadata_text;
use super::policy::Policy;
use super::submission::{Invalid, MAX_NAME_CHARS, MAX_TEXT_BYTES};
use crate::acquisition::MAX_VALUE_CHARS;
use crate::company::CompanyKey;
use crate::money::{Amount, Currency, MAX_CONVERTED_UNITS, MAX_UNITS};
use crate::spelling::spelled;
use crate::time::{Instant, clamp_timestamp};

/// The currencies that an event's money was converted to.
pub type PinnedCurrencies = Option<(Currency, Currency)>;

/// Checks that a project with `policy` can record `event`, which was recorded elsewhere, and turns
/// it into an event received at `received`. `currencies` are the currencies of its project and
/// organization at the time.
///
/// # Errors
/// `timezone_mismatch` and `currency_mismatch` if its day or its money would differ here, and
/// [`Invalid`] for values that no event can have.
pub fn admit_pinned(
    mut event: Event,
    currencies: PinnedCurrencies,
    policy: &Policy,
    received: Instant,
) -> Result<Event, Invalid> {
    check_shape(&event)?;
    check_money(&event, currencies, policy)?;
    if event.day != policy.timezone.day_of(event.time) {
        let message = format!(
            "the event's day is {} in a timezone other than {}; an import as a new event makes it {}",
            event.day,
            policy.timezone.name(),
            policy.timezone.day_of(event.time)
        );
        return Err(Invalid { code: "timezone_mismatch", param: Some("day".to_owned()), message });
    }
    let resolved = clamp_timestamp(Some(event.time), received);
    let resolved = resolved.map_err(|error| Invalid::parameter("timestamp", format!("`timestamp`: {error}")))?;
    (event.time, event.day) = (resolved.at, policy.timezone.day_of(resolved.at));
    (event.received, event.project) = (received, policy.project);
    event.details.url = event.details.url.map(|url| spelled(&url).into());
    Ok(event)
}

fn check_money(event: &Event, currencies: PinnedCurrencies, policy: &Policy) -> Result<(), Invalid> {
    let Some(money) = &event.money else { return Ok(()) };
    let here = (policy.currency, policy.organization_currency);
    if currencies != Some(here) {
        let message = format!("the event's money was converted to currencies other than {} and {}", here.0, here.1);
        return Err(Invalid { code: "currency_mismatch", param: Some("project_currency".to_owned()), message });
    }
    let fits = |amount: Option<Amount>, most: u128| amount.is_none_or(|amount| amount.0.unsigned_abs() <= most);
    if !fits(Some(money.amount), MAX_UNITS.unsigned_abs() * 1_000_000) {
        return Err(Invalid::parameter("value", "`value` is out of range"));
    }
    let is_same_sign =
        |amount: Option<Amount>| amount.is_none_or(|amount| amount.0 == 0 || amount.0.signum() == money.amount.0.signum());
    for (name, amount) in [("value_in_project", money.in_project), ("value_in_organization", money.in_organization)] {
        if !fits(amount, MAX_CONVERTED_UNITS.unsigned_abs() * 1_000_000) || !is_same_sign(amount) {
            return Err(Invalid::parameter(name, format!("`{name}` can't be a conversion of `value`")));
        }
    }
    Ok(())
}

fn check_shape(event: &Event) -> Result<(), Invalid> {
    let Event { name, who, external_id, details, .. } = event;
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
        return Err(Invalid::parameter("name", format!("`name` must have 1 to {MAX_NAME_CHARS} characters")));
    }
    let texts = [
        ("user_id", &who.user_id),
        ("anonymous_id", &who.anonymous_id),
        ("external_id", external_id),
        ("url", &details.url),
        ("hostname", &details.hostname),
        ("referrer", &details.referrer),
        ("referrer_host", &details.referrer_host),
        ("screen", &details.screen),
        ("language", &details.language),
        ("channel", &details.channel),
        ("message", &details.message),
        ("group_id", &details.group_id),
        ("consent_source", &details.consent_source),
        ("email", &details.email),
    ];
    for (name, text) in texts {
        let Some(text) = text else { continue };
        if text.is_empty() || text.len() > MAX_TEXT_BYTES {
            return Err(Invalid::parameter(name, format!("`{name}` must have 1 to {MAX_TEXT_BYTES} bytes")));
        }
    }
    for (name, text) in [("privacy_categories", &details.privacy_categories), ("privacy_signals", &details.privacy_signals)] {
        // Signals from headers were added to the sent ones.
        if text.as_ref().is_some_and(|text| text.len() > MAX_TEXT_BYTES + 16) {
            return Err(Invalid::parameter(name, format!("`{name}` must have at most {MAX_TEXT_BYTES} bytes")));
        }
    }
    if let Some(metadata) = &details.metadata {
        check_metadata_text(metadata)?;
    }
    check_group(event)?;
    check_person(event)
}

fn check_group(event: &Event) -> Result<(), Invalid> {
    let details = &event.details;
    if details.group_type.as_deref().is_some_and(|kind| !is_group_type(kind))
        || details.group_type.is_some() != details.group_id.is_some()
    {
        return Err(Invalid::parameter("group_type", "`group_type` must match ^[a-z][a-z0-9_]{0,63}$ and requires a `group_id`"));
    }
    let of_id = |key: &CompanyKey| CompanyKey::from_group_id(key.as_str()).as_ref() == Some(key);
    let of_domain = |key: &CompanyKey| CompanyKey::from_domain(key.as_str()).as_ref() == Some(key);
    for (name, is_key) in [
        ("company", event.company.as_ref().is_none_or(of_id)),
        ("company_domain", event.company_domain.as_ref().is_none_or(of_domain)),
        ("email_company", event.email_company.as_ref().is_none_or(of_domain)),
    ] {
        if !is_key {
            return Err(Invalid::parameter(name, format!("`{name}` is not the normalised key of a company")));
        }
    }
    Ok(())
}

/// Checks that an event without consent contains nothing about a person, and that the parsed agent
/// and page are within their bounds.
fn check_person(event: &Event) -> Result<(), Invalid> {
    let Event { who, details, email_company, .. } = event;
    let Some(acquisition) = &details.acquisition else {
        let ids = [&who.user_id, &who.anonymous_id, &details.metadata, &details.message, &details.email];
        let tells = ids.into_iter().any(Option::is_some)
            || who.visitor.is_some()
            || details.agent.is_some()
            || details.country.is_some()
            || email_company.is_some();
        if tells {
            return Err(Invalid::parameter(
                "consented",
                "an event without consent must not have ids, an agent, country, e-mail address, message or metadata",
            ));
        }
        if details.url != details.url_without_person() || details.referrer != details.referrer_without_person() {
            return Err(Invalid::parameter(
                "consented",
                "an event without consent must have a `url` without query, fragment and user, and only the host of its `referrer`",
            ));
        }
        return Ok(());
    };
    if who.visitor.is_some() && (who.user_id.is_some() || who.anonymous_id.is_some()) {
        return Err(Invalid::parameter("visitor_id", "an event with another id must not have a `visitor_id`"));
    }
    for (name, text) in
        [("event_source", &acquisition.source), ("event_medium", &acquisition.medium), ("event_campaign", &acquisition.campaign)]
    {
        if text.is_empty() || text.chars().count() > MAX_VALUE_CHARS {
            return Err(Invalid::parameter(name, format!("`{name}` must have 1 to {MAX_VALUE_CHARS} characters")));
        }
    }
    let agent = details.agent.as_ref();
    let texts = agent.into_iter().flat_map(|agent| [&agent.browser, &agent.browser_version, &agent.os]).flatten();
    if texts.into_iter().any(|text| text.len() > MAX_TEXT_BYTES) {
        return Err(Invalid::parameter("browser", format!("the columns of the agent have at most {MAX_TEXT_BYTES} bytes each")));
    }
    Ok(())
}
