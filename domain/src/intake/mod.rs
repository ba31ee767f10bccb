//! Intake: parses a client's submission, checks it against the project's policy, and produces the
//! event to log.

pub mod admission;
pub mod client_address;
pub mod country;
pub mod event;
pub mod fields;
pub mod imported;
pub mod json_fields;
mod metadata_bounds;
pub mod pinned;
mod placeholder;
pub mod plain_json;
pub mod policy;
mod repairs;
pub mod segment;
pub mod submission;
pub mod warning;
