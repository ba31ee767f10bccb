//! A backup of several machines (ADR 28): the machine that is asked makes a data directory of one machine, of what the owners of all partitions have.
//!
//! `begin` takes the control data and the documents as they are, and learns where each partition ends; `write` passes events on as they come, then everything else; `copied` has the projects whose files
//! are copied instead, and `hold` keeps events of the others from being removed meanwhile. What a machine is asked for is in `questions`, how it answers in `pages` and `lists`.

mod begin;
mod copied;
mod error;
mod hold;
mod lists;
mod pages;
mod questions;
mod write;

pub use begin::NodesBackup;
pub use error::NodesBackupError;
pub(super) use hold::HELD_AT_FIRST;
