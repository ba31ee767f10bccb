//! Crashes on purpose, and what must be left of the data: the server, as a program, is killed, cut off from its disk, given
//! damaged files, too much to do and no room, and every answer after it is compared with the naive model's.
//!
//! # How it knows what is right
//!
//! [`ledger::Ledger`] has every event that was ever sent, and whether it was acknowledged. After a crash those that were not are sent
//! again, with their `external_id`s, until they are. From then on the set of recorded events is known, though not their
//! order; so [`events`] makes such events that no answer depends on it. [`oracle::Oracle`] feeds them to the model and compares.
//!
//! While it runs, [`load`] also checks single promises: a read that begins after a 202 counts the event; what was sent
//! before is answered as a duplicate, with the position of the first.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test support: a panic is a failed test"
)]
#![forbid(unsafe_code)]

pub mod arguments;
pub mod damage;
pub mod disk_full;
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
pub mod rig;
pub mod server;
pub mod settle;
pub mod trouble;
pub mod world;
