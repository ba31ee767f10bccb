//! The engine: opens a data directory, starts its background work, and provides the embedded API.
//!
//! It has its own threads and its own actix system, so it works inside any program with any
//! runtime.

mod admission;
mod answering;
mod backups;
mod close;
mod common;
mod config;
mod deletion;
mod derived;
mod disk_guard;
mod documents;
mod erasing;
mod erasing_everywhere;
mod exporting;
#[cfg(feature = "fault-injection")]
mod fault_injection;
mod foreign_verification;
mod handle;
mod handover;
mod importing;
mod intake;
mod known_time;
mod live;
mod looker;
mod marks;
mod nodes_backup;
mod open;
mod parts;
mod privacy;
mod profile_builder;
mod profiles;
mod quotas;
mod readiness;
mod reindexing;
mod remains;
mod retention;
mod sealing;
mod searching;
mod segment;
mod states;
mod threads;
mod tracking;
mod verifications;
mod verifying;
mod verifying_nodes;
mod vitals;
mod webhook_sender;
mod webhooks;

pub use crate::shard::AskError;
pub use common::{Common, Installation, LogSink, StartCommit};
pub(crate) use config::directory;
pub use config::{EngineConfig, OpenError};
pub use documents::EngineDocuments;
pub use erasing::{ErasureError, ErasureState, ErasureSubject};
pub use exporting::{Download, DownloadError};
pub use handle::Engine;
pub use handover::{AdoptError, Adoption};
pub use intake::ProjectIntake;
pub use nodes_backup::{NodesBackup, NodesBackupError};
pub use parts::EngineParts;
pub use reindexing::{ReindexError, Reindexed, reindex};
pub use remains::RemainsError;
pub use sealing::SealError;
pub use searching::search_erased;
pub use segment::SegmentRequest;
pub use verifying::verify_directory;
pub use vitals::Vitals;
