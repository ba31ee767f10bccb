//! The events, each made from its number: what is known of the number is enough to send it again.
//!
//! No answer may depend on the order in which they are recorded, since a crash leaves it open:
//! - an anonymous id is only ever linked to one user ([`owner`]), so that "the first link wins" has one outcome;
//! - an identity's company is always the same, whoever says it: a user's is made from the user, and so is that of the anonymous
//!   ids that are linked to it;
//! - the rates are fixed before the first event, and no two events share an `external_id`;
//! - every event says when it happened, and has an id: without one it would belong to a visitor of the day of its receipt.

use std::fmt::Write as _;

use chrono::{Days, NaiveDate};
use headcount_histories::Rng;

/// Users of the organization.
const USERS: usize = 150;
/// Anonymous ids of each project.
const ANONYMOUS: usize = 400;
/// Companies.
const COMPANIES: usize = 11;
/// Days on which ordinary events happen: in them the organization's clocks change.
const DAYS: u64 = 90;
/// How many private days there are: windows hold no more than 3,660.
pub const PRIVATE_DAYS: usize = 3_600;

/// One text of a bulky event: as much as one may be.
pub const BULK_BYTES: usize = 8_192;
/// The most such texts of an event, within the limit of its body.
pub const MAX_BULK: usize = 7;

/// What is remembered of an event; with its number, all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The project, by its place in the world.
    pub project: usize,
    /// The day that only one connection uses, and on which each event is one order of 1.
    pub private_day: Option<usize>,
    /// So many times [`BULK_BYTES`] of metadata that doesn't compress.
    pub bulk: usize,
}

impl Plan {
    /// An ordinary event of a project.
    #[must_use]
    pub fn ordinary(project: usize) -> Self {
        Self { project, private_day: None, bulk: 0 }
    }
}

/// The first and last day of ordinary events.
#[must_use]
pub fn ordinary_days() -> (NaiveDate, NaiveDate) {
    let first = NaiveDate::from_ymd_opt(2025, 1, 1).unwrap();
    (first, first + Days::new(DAYS - 1))
}

/// A private day.
#[must_use]
pub fn private_day(day: usize) -> NaiveDate {
    NaiveDate::from_ymd_opt(2000, 1, 1).unwrap() + Days::new(day as u64)
}

/// The user to whom an anonymous id is linked. Every fourth never is.
fn owner(project: usize, anonymous: usize) -> Option<usize> {
    (!anonymous.is_multiple_of(4)).then(|| (anonymous * 7 + project * 13) % USERS)
}

/// The body of event `number`, as `POST /track` takes it.
#[must_use]
pub fn body(seed: u64, number: usize, plan: Plan) -> String {
    let mut rng = Rng::new(seed ^ (number as u64 + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93));
    let mut body = format!(r#"{{"external_id":"e{number}""#);
    let company = who(&mut body, &mut rng, plan.project);
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
        money(&mut body, &mut rng);
    }
    metadata(&mut body, &mut rng, plan.bulk);
    let midnight = ordinary_days().0.and_hms_opt(12, 0, 0).unwrap().and_utc();
    let at = midnight + chrono::Duration::milliseconds(i64::try_from(rng.below((DAYS as usize - 1) * 86_400_000)).unwrap());
    if rng.chance(50) {
        let _ = write!(body, r#","timestamp":{}}}"#, at.timestamp_millis());
    } else {
        let _ = write!(body, r#","timestamp":"{}"}}"#, at.format("%Y-%m-%dT%H:%M:%S%.3fZ"));
    }
    body
}

/// Writes the ids, and returns the company of whom they name.
fn who(body: &mut String, rng: &mut Rng, project: usize) -> usize {
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

/// Orders, refunds, and now and then nothing; in currencies with a rate, and one without.
fn money(body: &mut String, rng: &mut Rng) {
    let sign = if rng.chance(20) { "-" } else { "" };
    let whole = if rng.chance(5) { 0 } else { rng.below(5_000) };
    let decimals = ["", ".5", ".05", ".99", ".123456", ".000001"];
    let _ = write!(body, r#","value":{sign}{whole}{}"#, rng.word(&decimals));
    let currency = rng.word(&["", "", "USD", "EUR", "gbp", "JPY", "CHF"]);
    if !currency.is_empty() {
        let _ = write!(body, r#","currency":"{currency}""#);
    }
}

/// Mostly small; some large and hard to compress, so that the log fills its segments.
fn metadata(body: &mut String, rng: &mut Rng, bulk: usize) {
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
    fn a_number_makes_the_same_event_again_and_every_one_is_json() {
        for number in 0..300_usize {
            let plan =
                Plan { private_day: number.is_multiple_of(9).then_some(number), bulk: number % 3, ..Plan::ordinary(number % 4) };
            let text = body(7, number, plan);
            assert_eq!(text, body(7, number, plan));
            assert!(headcount_model::Json::parse(&text).is_ok(), "{text}");
        }
    }
}
