//! Exports: what is recorded of a person, as a file.
//!
//! An attempt finds the ids of the subject (`subject_ids`), collects its events from all projects
//! in sorts on disk (`collector`), and writes the artifact from them in order (`writer`; `rows` are
//! its objects). It asks the owners of projects for both (`questions`, `links`). `job` makes
//! attempts, and `engine::privacy` says when. `withdrawal` ends artifacts.

mod attempt;
mod collector;
mod download;
mod identities;
mod job;
mod key_counts;
mod links;
mod parts;
mod questions;
mod rows;
mod sessions;
mod subject_ids;
mod withdrawal;
mod writer;

pub use download::{Download, DownloadError};
#[cfg(feature = "cluster")]
pub(super) use questions::{ask_patiently, asked_patiently};
