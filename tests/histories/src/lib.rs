//! Random histories of events and questions, and the comparison of a subject with the naive model
//! over them.
//!
//! On a given day a seed always generates the same history, so a seed identifies a failure: see
//! [`History::from_seed`], [`run`] and [`minimize`]. The alphabets are deliberately small, so that
//! ids, companies, keys and instants collide often. Histories avoid what the contract leaves open
//! where possible; the model documents its choices for the rest.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test support: a panic is a failed test")]

mod above;
mod chosen;
mod coverage;
mod coverage_of_paths;
mod generate;
mod history;
mod minimize;
mod paths;
mod questions;
mod regressions;
mod rng;
mod run;
mod served;
mod strategy;
mod ties;
mod times;
mod values;

pub use above::above;
pub use coverage::Coverage;
pub use generate::{dated, is_of_server, jumped, sent_headers};
pub use history::{History, Project, Size, Step};
pub use minimize::minimize;
pub use questions::{explained, questions, scans};
pub use regressions::{Care, Regression, regressions};
pub use rng::Rng;
pub use run::{BatchReply, Differs, Failure, Run, Subject, TrackReply, compare, model_of, run, sender_of};
pub use served::Served;
pub use strategy::histories;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_paths;
