//! Crash tests: kills the server, cuts it off from its disk, damages its files, overloads it and
//! fills its disk, and then compares every answer with the naive model.
//!
//! # How it verifies answers
//!
//! [`ledger::Ledger`] records every event sent, and whether it was acknowledged. After a crash,
//! [`resend`] sends unacknowledged events again, with their `external_id`s, until they are
//! acknowledged. From then on the set of recorded events is known, but not their order; therefore
//! [`events`] generates events such that no answer depends on it. [`oracle::Oracle`] feeds them to
//! the model and compares its answers with those of the server.
//!
//! While it runs, [`load`] also verifies single guarantees: a read that starts after a 202 counts
//! the event, and an event that was acknowledged before is reported as a duplicate, with the
//! position of the original.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test support: a panic is a failed test"
)]
#![forbid(unsafe_code)]

pub mod arguments;
pub mod cluster;
pub mod damage;
pub mod disk_full;
pub mod doomed;
pub mod error;
pub mod events;
pub mod faults;
pub mod http;
pub mod kill;
pub mod ledger;
pub mod load;
pub mod mount;
pub mod oracle;
pub mod overload;
pub mod power;
pub mod prove;
pub mod resend;
pub mod rig;
pub mod server;
pub mod tenant;
