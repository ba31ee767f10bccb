//! The table of columns.

use headcount_domain::acquisition::{Acquisition, Channel};
use headcount_domain::agent::{Agent, Device};
use headcount_domain::company::CompanyKey;
use headcount_domain::intake::country::Country;
use headcount_domain::intake::event::Money;
use headcount_domain::{Amount, Currency, Instant};

use super::column::{Access, Column};
use super::draft::Draft;
use crate::row::{Currencies, Row};

/// The name of the column of positions.
pub const POSITION: &str = "position";
/// The name of the column of days.
pub const DAY: &str = "day";
/// The name of the column with the whole metadata.
pub const METADATA: &str = "metadata";

/// The name of the column that shows which events make sessions.
pub const INTERACTIVE: &str = "interactive";
/// The name of the column of times.
pub const TIMESTAMP: &str = "timestamp";
/// The name of the column that marks dead letters.
pub const SET_ASIDE: &str = "set_aside";

/// The columns of every file, in order. A change needs a new
/// [`SCHEMA_VERSION`](super::SCHEMA_VERSION).
pub const COLUMNS: &[Column] = &[
    required(POSITION, Access::Integer(|row| row.position.cast_signed(), |draft, at| draft.position = at.cast_unsigned())),
    required(TIMESTAMP, Access::Timestamp(|row| row.event.time, |draft, at: Instant| draft.time = at)),
    required("received_at", Access::Timestamp(|row| row.event.received, |draft, at: Instant| draft.received = at)),
    required(DAY, Access::Date(|row| row.event.day, |draft, day| draft.day = day)),
    required("name", Access::Text(|row| Some(&row.event.name), put_name)),
    required("consented", Access::Boolean(|row| Some(acquisition(row).is_some()), |draft, yes| draft.consented = yes)),
    required(INTERACTIVE, Access::Boolean(|row| Some(row.event.interactive), |draft, yes| draft.interactive = yes)),
    text("user_id", |row| row.event.who.user_id.as_deref(), |draft, text| put(&mut draft.who.user_id, text)),
    text("anonymous_id", |row| row.event.who.anonymous_id.as_deref(), |draft, text| put(&mut draft.who.anonymous_id, text)),
    nullable("visitor_id", Access::Bytes16(|row| row.event.who.visitor, |draft, id| draft.who.visitor = Some(id))),
    text("external_id", |row| row.event.external_id.as_deref(), |draft, text| put(&mut draft.external_id, text)),
    text("url", |row| row.event.details.url.as_deref(), |draft, text| put(&mut draft.details.url, text)),
    text("hostname", |row| row.event.details.hostname.as_deref(), |draft, text| put(&mut draft.details.hostname, text)),
    text("referrer", |row| row.event.details.referrer.as_deref(), |draft, text| put(&mut draft.details.referrer, text)),
    text(
        "referrer_host",
        |row| row.event.details.referrer_host.as_deref(),
        |draft, text| put(&mut draft.details.referrer_host, text),
    ),
    text("screen", |row| row.event.details.screen.as_deref(), |draft, text| put(&mut draft.details.screen, text)),
    text("language", |row| row.event.details.language.as_deref(), |draft, text| put(&mut draft.details.language, text)),
    text("channel", |row| row.event.details.channel.as_deref(), |draft, text| put(&mut draft.details.channel, text)),
    text("message", |row| row.event.details.message.as_deref(), |draft, text| put(&mut draft.details.message, text)),
    nullable("notify", Access::Boolean(|row| row.event.details.notify, |draft, yes| draft.details.notify = Some(yes))),
    text("group_type", |row| row.event.details.group_type.as_deref(), |draft, text| put(&mut draft.details.group_type, text)),
    text("group_id", |row| row.event.details.group_id.as_deref(), |draft, text| put(&mut draft.details.group_id, text)),
    text(
        "privacy_categories",
        |row| row.event.details.privacy_categories.as_deref(),
        |draft, text| put(&mut draft.details.privacy_categories, text),
    ),
    text(
        "privacy_signals",
        |row| row.event.details.privacy_signals.as_deref(),
        |draft, text| put(&mut draft.details.privacy_signals, text),
    ),
    text(
        "consent_source",
        |row| row.event.details.consent_source.as_deref(),
        |draft, text| put(&mut draft.details.consent_source, text),
    ),
    decimal("value", |row| money(row).map(|money| money.amount), |draft, amount| draft.money.value = Some(amount)),
    decimal("value_in_project", |row| money(row)?.in_project, |draft, amount| draft.money.in_project = Some(amount)),
    decimal(
        "value_in_organization",
        |row| money(row)?.in_organization,
        |draft, amount| draft.money.in_organization = Some(amount),
    ),
    nullable(
        "value_counted",
        Access::Boolean(|row| money(row).map(|money| money.counted), |draft, yes| draft.money.counted = Some(yes)),
    ),
    text(
        "currency",
        |row| money(row).map(|money| money.currency.as_str()),
        |draft, text| put_code(&mut draft.money.currency, text),
    ),
    text(
        "project_currency",
        |row| currencies(row).map(|currencies| currencies.project.as_str()),
        |draft, text| put_code(&mut draft.money.project_currency, text),
    ),
    text(
        "organization_currency",
        |row| currencies(row).map(|currencies| currencies.organization.as_str()),
        |draft, text| put_code(&mut draft.money.organization_currency, text),
    ),
    text("email", |row| row.event.details.email.as_deref(), |draft, text| put(&mut draft.details.email, text)),
    text("company", |row| row.event.company.as_ref().map(CompanyKey::as_str), |draft, text| put_key(&mut draft.company, text)),
    text(
        "company_domain",
        |row| row.event.company_domain.as_ref().map(CompanyKey::as_str),
        |draft, text| put_key(&mut draft.company_domain, text),
    ),
    text(
        "email_company",
        |row| row.event.email_company.as_ref().map(CompanyKey::as_str),
        |draft, text| put_key(&mut draft.email_company, text),
    ),
    text("browser", |row| agent(row)?.browser.as_deref(), |draft, text| put(&mut draft.agent.browser, text)),
    text(
        "browser_version",
        |row| agent(row)?.browser_version.as_deref(),
        |draft, text| put(&mut draft.agent.browser_version, text),
    ),
    text("os", |row| agent(row)?.os.as_deref(), |draft, text| put(&mut draft.agent.os, text)),
    text("device", |row| agent(row).map(|agent| agent.device.name()), put_device),
    text("location_country", |row| row.event.details.country.as_ref().map(Country::as_str), put_country),
    text("event_source", |row| acquisition(row).map(|from| from.source.as_str()), |draft, text| put(&mut draft.source, text)),
    text("event_medium", |row| acquisition(row).map(|from| from.medium.as_str()), |draft, text| put(&mut draft.medium, text)),
    text(
        "event_campaign",
        |row| acquisition(row).map(|from| from.campaign.as_str()),
        |draft, text| put(&mut draft.campaign, text),
    ),
    text("event_channel", |row| acquisition(row).map(|from| from.channel.name()), put_channel),
    text(METADATA, |row| row.event.details.metadata.as_deref(), |draft, text| put(&mut draft.details.metadata, text)),
    Column {
        archive_only: true,
        ..required(SET_ASIDE, Access::Boolean(|row| Some(row.set_aside), |draft, yes| draft.set_aside = yes))
    },
];

/// The columns of exports: all columns except the last, which only the archive has.
pub const EXPORT_COLUMNS: &[Column] = match COLUMNS.split_last() {
    Some((_, columns)) => columns,
    None => &[],
};

const fn required(name: &'static str, access: Access) -> Column {
    Column { name, required: true, archive_only: false, access }
}

const fn nullable(name: &'static str, access: Access) -> Column {
    Column { name, required: false, archive_only: false, access }
}

const fn text(name: &'static str, get: fn(&Row) -> Option<&str>, set: fn(&mut Draft, &str) -> Option<()>) -> Column {
    nullable(name, Access::Text(get, set))
}

const fn decimal(name: &'static str, get: fn(&Row) -> Option<Amount>, set: fn(&mut Draft, Amount)) -> Column {
    nullable(name, Access::Decimal(get, set))
}

fn money(row: &Row) -> Option<&Money> {
    row.event.money.as_ref()
}

fn currencies(row: &Row) -> Option<&Currencies> {
    row.currencies.as_ref()
}

fn agent(row: &Row) -> Option<&Agent> {
    row.event.details.agent.as_ref()
}

fn acquisition(row: &Row) -> Option<&Acquisition> {
    row.event.details.acquisition.as_ref()
}

fn put<'t, T: From<&'t str>>(place: &mut Option<T>, text: &'t str) -> Option<()> {
    *place = Some(text.into());
    Some(())
}

fn put_name(draft: &mut Draft, text: &str) -> Option<()> {
    draft.name = text.into();
    Some(())
}

fn put_key(place: &mut Option<CompanyKey>, text: &str) -> Option<()> {
    *place = Some(CompanyKey::from_recorded(text));
    Some(())
}

fn put_code(place: &mut Option<Currency>, text: &str) -> Option<()> {
    *place = Some(Currency::from_recorded(text.as_bytes())?);
    Some(())
}

fn put_country(draft: &mut Draft, text: &str) -> Option<()> {
    draft.details.country = Some(Country::from_recorded(text.as_bytes())?);
    Some(())
}

fn put_device(draft: &mut Draft, text: &str) -> Option<()> {
    draft.device = Some(Device::ALL.iter().copied().find(|device| device.name() == text)?);
    Some(())
}

fn put_channel(draft: &mut Draft, text: &str) -> Option<()> {
    draft.channel = Some(Channel::ALL.iter().copied().find(|channel| channel.name() == text)?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_have_every_column_that_is_not_the_archives_own() {
        let names = |columns: &mut dyn Iterator<Item = &Column>| columns.map(|column| column.name).collect::<Vec<_>>();
        let expected = names(&mut COLUMNS.iter().filter(|column| !column.archive_only));
        assert_eq!(names(&mut EXPORT_COLUMNS.iter()), expected);
    }
}
