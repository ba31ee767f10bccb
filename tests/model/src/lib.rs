//! The naive model: what the service should answer, in the dumbest readable way.
//!
//! It keeps the events as they were recorded and works every answer out from all of them, each time it is asked: no
//! rollups, no caches, no incremental anything. It shares no code with the engine, so that the two can be compared.
//! [`cases`] runs the worked cases, against the model or against a server.
//!
//! # How it reads what the contract leaves open
//!
//! - A `value` of 0 is no money: it needs no rate, and puts no currency into `unconverted`.
//! - `unconverted` is all such money of the project in the window (of all time in `ltv-cohorts`), of all identities and of nobody.
//! - `metadata.email` goes before a `user_id` that is an e-mail, within one event.
//! - An explicit company may be a free-mail domain: only e-mails are judged by that.
//! - `group_id`, as a field, is as sent, not normalised; `referrer` is the host of an external referrer.
//! - A hostname of the event and that of its `url` are both its own, where they differ.
//! - Groups of an aggregate that tie go by the text of their value, without quotes; the number 5 before the text `"5"`.
//! - Companies and groups that tie go by their name, or their key where they have none; then by their key.
//! - A company's or a group's name stays, also if it was reported without consent or by an identity that was erased later.
//! - A signal under the policy `anonymize` is a refusal of consent; under `drop` the reason is `consent`.
//! - Money that the project takes from servers only is not in `unconverted` either; its `currency` is still a field.
//! - What is wrong with a question's parameters (400) goes before whether what it is about is known (404).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test support: a panic is a failed test")]

pub mod acquisition;
pub mod answers;
pub mod cases;
pub mod compare;
pub mod decimal;
pub mod event;
pub mod facts;
pub mod json;
pub mod served;
pub mod subject;
pub mod text;
pub mod time;
pub mod traffic;

mod model;
#[cfg(test)]
mod tests;

pub use answers::{Answer, Question};
pub use compare::{Difference, Ids, same};
pub use event::{ProjectSetup, Rates, Refused, Sender, Signals};
pub use json::Json;
pub use model::{Model, OrganizationSetup, Recorded, Status};
pub use served::ServedModel;
pub use subject::{Credential, Method, Request, Subject};
