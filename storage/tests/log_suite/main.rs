//! The event log, from outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests, but their helpers are not marked as such")]
#![allow(clippy::needless_update, reason = "a feature adds a field")]

mod damage;
mod group;
mod repair;
mod round_trip;
mod support;
