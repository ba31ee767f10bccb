//! Taking an event in: what a client sent is parsed, checked against the project's policy, and becomes the event that is logged.

pub mod admission;
pub mod country;
pub mod event;
pub mod fields;
pub mod policy;
pub mod submission;
