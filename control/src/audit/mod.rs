//! The audit log: who changed what, and when.
//!
//! An entry is part of the control record of its change, so it is as durable and atomic as the
//! change. `trail` copies the entries to a log of each organization, which outlives the control
//! records.

pub(super) mod changes;
mod file;
pub(super) mod trail;
