//! A backup of a cluster (ADR 28): the machine that is asked writes a data directory for a single
//! machine, with data from the owners of all partitions.
//!
//! - `begin` reads the control data and the documents, and the end of each partition.
//! - `write` writes events as they arrive, and then everything else.
//! - `copied` copies the files of projects whose events may have been removed.
//! - `hold` keeps events of the other projects from being removed meanwhile.
//! - `questions` has the questions to a machine, `pages` and `lists` its answers.

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
