//! Answers about one project.

mod attribution;
mod revenue;
mod traffic;
mod unique_users;

pub use attribution::{AskAttribution, AskCohorts};
pub use traffic::AskTraffic;
