//! The audit log: who changed what, and when.
//!
//! An entry is part of the control record of its change, and so is as durable and as atomic as the change. `trail` copies the entries to files of each
//! organization, which outlive the records.

pub(super) mod changes;
mod file;
pub(super) mod trail;
