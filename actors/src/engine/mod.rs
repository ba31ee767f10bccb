//! The engine: opens a data directory, starts what runs on it, and is the embedded API.
//!
//! It brings its own threads and its own actix system, so that it works inside any program, whatever runtime that has.

mod admission;
mod backups;
mod close;
mod config;
mod deletion;
mod derived;
mod disk_guard;
mod erasing;
#[cfg(feature = "fault-injection")]
mod fault_injection;
mod handle;
mod idle_views;
mod intake;
mod open;
mod queries;
mod quotas;
mod readiness;
mod retention;
mod scan;
mod sealing;
mod shard_client;
mod threads;
mod tracking;
mod verifications;
mod verifying;
mod vitals;

pub(crate) use config::directory;
pub use config::{EngineConfig, OpenError};
pub use erasing::{ErasureError, ErasureState, ErasureSubject};
pub use handle::Engine;
pub use intake::ProjectIntake;
pub use queries::OrganizationProjects;
pub use scan::{EventsPage, ExportSink, PageOrder, PageQuestion, PagedEvent, ViewFigures};
pub use shard_client::AskError;
pub use verifying::verify_directory;
pub use vitals::Vitals;
