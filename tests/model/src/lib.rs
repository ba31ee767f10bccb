//! The naive model: the expected answers of the service, computed in the simplest readable way.
//!
//! It stores the events as recorded and computes every answer from all of them: no rollups, no
//! caches, nothing incremental. It shares no code with the engine, so that the two can be compared.
//! [`cases`] runs the worked cases, against the model or against a server.
//!
//! # Choices where the contract is open
//!
//! - A `value` of 0 is not money: it needs no rate, and adds no currency to `unconverted`.
//! - `unconverted` covers all such money of the project in the window (of all time in
//!   `ltv-cohorts`), with and without an identity.
//! - Within one event, `metadata.email` takes precedence over a `user_id` that is an e-mail
//!   address.
//! - An explicit company may be a free-mail domain; only e-mail addresses are checked for that.
//! - The field `group_id` is as sent, not normalised; `referrer` is the host of an external
//!   referrer.
//! - If an event's hostname and that of its `url` differ, both are its own.
//! - Tied groups of an aggregate are sorted by the text of their value, without quotes; the number
//!   5 precedes the text `"5"`.
//! - Tied companies and groups are sorted by name, or by key if they have no name; then by key.
//! - The name of a company or group stays, even if it was reported without consent or by an
//!   identity that was erased later.
//! - A signal under the policy `anonymize` counts as refused consent; under `drop` the reason is
//!   `consent`.
//! - Money that the project accepts from servers only is not in `unconverted` either; its
//!   `currency` is still a field.
//! - A funnel's `within` has one unit. Its people need a `step`, and nobody drops at the last one.
//! - A company in a funnel is that of the project's events, also for its id.
//! - Groups of a journey rename paths, never names of events, even if a pattern fits one.
//! - A journey's `from` and `to` are patterns of its values as renamed, names of events included.
//! - Invalid parameters of a question (400) take precedence over an unknown subject (404).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test support: a panic is a failed test")]

pub mod acquisition;
pub mod agent;
pub mod answers;
pub mod cases;
pub mod compare;
pub mod decimal;
pub mod event;
pub mod facts;
pub mod frozen;
pub mod json;
pub mod known_time;
pub mod referrer;
pub mod rows;
pub mod served;
pub mod subject;
pub mod text;
pub mod time;
pub mod traffic;

mod model;
mod sent;
#[cfg(test)]
mod tests;

pub use answers::{Answer, Question};
pub use compare::{Difference, Ids, same};
pub use event::{ProjectSetup, Rates, Refused, Sender, Signals};
pub use json::Json;
pub use model::{Model, OrganizationSetup, Recorded, Status};
pub use served::ServedModel;
pub use subject::{Credential, Method, Request, Subject};
