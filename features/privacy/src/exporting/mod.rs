//! Exports: what is recorded of a person, as a file.
//!
//! An attempt finds the ids of the subject, collects its events from all projects in sorts on disk
//! (`collector`), and writes the artifact from them in order (`writer`; `rows` are its objects).
//! The engine asks the owners of projects for both. `job` makes attempts, and `working` says when.
//! `withdrawal` ends artifacts.

mod attempt;
mod collector;
mod download;
mod identities;
mod job;
mod key_counts;
mod parts;
mod rows;
pub(crate) mod schema;
mod sessions;
mod withdrawal;
mod writer;

pub use download::{Download, DownloadError};
pub(crate) use rows::{AnonymousIdRow, CompanyRow, EventRow, GroupRow, OrderRow, SessionRow};
pub(crate) use schema::{ArtifactValue, object};
