//! Generates events. Each is a function of the seed, its number and its [`Plan`], so that it can be
//! sent again.
//!
//! No answer may depend on the order of recording, which is unknown after a crash:
//! - an anonymous id is linked to at most one user ([`owner`]), so that "the first link wins" has
//!   one outcome;
//! - an identity always has the same company: that of a user is derived from the user, also for the
//!   anonymous ids linked to it;
//! - the exchange rates are fixed before the first event, and no two events share an `external_id`;
//! - every event has a timestamp and an id: without an id it would belong to a visitor of the day
//!   of receipt.

use std::fmt::Write as _;

use chrono::{Days, NaiveDate};
use headcount_histories::Rng;

/// Number of users of the organization.
const USERS: usize = 150;
/// Number of anonymous ids of each project.
const ANONYMOUS: usize = 400;
/// Number of companies.
const COMPANIES: usize = 11;
/// Number of days of ordinary events; they include a clock change of the organization's timezone.
const DAYS: u64 = 90;
/// Number of private days. A window may have 3,660 days at most.
pub const PRIVATE_DAYS: usize = 3_600;

/// Size of a text in the metadata of a bulky event: the maximum.
pub const BULK_BYTES: usize = 8_192;
/// Maximum number of such texts within the size limit of an event.
pub const MAX_BULK: usize = 7;

/// The properties of an event that its number does not determine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Index of the project.
    pub project: usize,
    /// A day used by one connection only, on which each event is an order of 1.
    pub private_day: Option<usize>,
    /// Number of incompressible texts of [`BULK_BYTES`] bytes in the metadata.
    pub bulk: usize,
}

impl Plan {
    /// Returns the plan of an ordinary event of a project.
    #[must_use]
    pub fn ordinary(project: usize) -> Self {
        Self { project, private_day: None, bulk: 0 }
    }
}

/// Returns the first and last day of ordinary events.
#[must_use]
pub fn ordinary_days() -> (NaiveDate, NaiveDate) {
    let first = NaiveDate::from_ymd_opt(2025, 1, 1).unwrap();
    (first, first + Days::new(DAYS - 1))
}

/// Returns the date of a private day.
#[must_use]
pub fn private_day(day: usize) -> NaiveDate {
    NaiveDate::from_ymd_opt(2000, 1, 1).unwrap() + Days::new(day as u64)
}

/// Returns the user to whom an anonymous id is linked. Every fourth anonymous id has none.
fn owner(project: usize, anonymous: usize) -> Option<usize> {
    (!anonymous.is_multiple_of(4)).then(|| (anonymous * 7 + project * 13) % USERS)
}

/// Returns the body of event `number` for `POST /track`.
#[must_use]
pub fn body(seed: u64, number: usize, plan: Plan) -> String {
    let mut rng = Rng::new(seed ^ (number as u64 + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93));
    let mut body = format!(r#"{{"external_id":"e{number}""#);
    let company = write_ids(&mut body, &mut rng, plan.project);
    if let Some(day) = plan.private_day {
        let day = private_day(day);
        let _ = write!(body, r#","name":"private","value":1,"timestamp":"{day}T12:00:00Z"}}"#);
        return body;
    }
    let name = rng.word(&["pageview", "signup", "checkout", "search"]);
    let _ = write!(body, r#","name":"{name}""#);
    if rng.chance(30) {
        let _ = write!(body, r#","group_id":"co{company}.example""#);
    }
    if rng.chance(45) {
        write_value(&mut body, &mut rng);
    }
    write_metadata(&mut body, &mut rng, plan.bulk);
    let midnight = ordinary_days().0.and_hms_opt(12, 0, 0).unwrap().and_utc();
    let at = midnight + chrono::Duration::milliseconds(i64::try_from(rng.below((DAYS as usize - 1) * 86_400_000)).unwrap());
    if rng.chance(50) {
        let _ = write!(body, r#","timestamp":{}}}"#, at.timestamp_millis());
    } else {
        let _ = write!(body, r#","timestamp":"{}"}}"#, at.format("%Y-%m-%dT%H:%M:%S%.3fZ"));
    }
    body
}

/// Writes the ids of an identity, and returns its company.
fn write_ids(body: &mut String, rng: &mut Rng, project: usize) -> usize {
    let kind = rng.below(100);
    if kind < 40 {
        let user = rng.below(USERS);
        let _ = write!(body, r#","user_id":"u{user}""#);
        return user % COMPANIES;
    }
    let anonymous = rng.below(ANONYMOUS);
    let _ = write!(body, r#","anonymous_id":"a{anonymous}""#);
    let Some(user) = owner(project, anonymous) else { return anonymous % COMPANIES };
    if kind < 65 {
        let _ = write!(body, r#","user_id":"u{user}""#);
    }
    user % COMPANIES
}

/// Writes the value of an order, a refund or 0, in currencies with and without a rate.
fn write_value(body: &mut String, rng: &mut Rng) {
    let sign = if rng.chance(20) { "-" } else { "" };
    let whole = if rng.chance(5) { 0 } else { rng.below(5_000) };
    let decimals = ["", ".5", ".05", ".99", ".123456", ".000001"];
    let _ = write!(body, r#","value":{sign}{whole}{}"#, rng.word(&decimals));
    let currency = rng.word(&["", "", "USD", "EUR", "gbp", "JPY", "CHF"]);
    if !currency.is_empty() {
        let _ = write!(body, r#","currency":"{currency}""#);
    }
}

/// Writes metadata: mostly small, some large and incompressible, so that the log fills its
/// segments.
fn write_metadata(body: &mut String, rng: &mut Rng, bulk: usize) {
    if bulk > 0 {
        let texts: Vec<String> = (0..bulk).map(|text| format!(r#""t{text}":"{}""#, letters(rng, BULK_BYTES))).collect();
        let _ = write!(body, r#","metadata":{{{}}}"#, texts.join(","));
        return;
    }
    if rng.chance(8) {
        let bytes = rng.below(BULK_BYTES);
        let _ = write!(body, r#","metadata":{{"note":"{}"}}"#, letters(rng, bytes));
    } else if rng.chance(30) {
        let _ = write!(body, r#","metadata":{{"plan":"p{}","seats":{}}}"#, rng.below(5), rng.below(100));
    }
}

fn letters(rng: &mut Rng, bytes: usize) -> String {
    let mut letters = String::with_capacity(bytes);
    for _ in 0..bytes / 16 {
        let _ = write!(letters, "{:016x}", rng.bits());
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_deterministic_and_valid_json() {
        for number in 0..300_usize {
            let plan =
                Plan { private_day: number.is_multiple_of(9).then_some(number), bulk: number % 3, ..Plan::ordinary(number % 4) };
            let text = body(7, number, plan);
            assert_eq!(text, body(7, number, plan));
            assert!(headcount_model::Json::parse(&text).is_ok(), "{text}");
        }
    }
}
