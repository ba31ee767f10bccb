//! The engine: opens a data directory, starts its background work, and provides the embedded API.
//!
//! It has its own threads and its own actix system, so it works inside any program with any
//! runtime.

mod answering;
mod backups;
mod close;
mod common;
mod config;
mod deletion;
mod derived;
mod erasing;
mod erasure_rounds;
#[cfg(feature = "fault-injection")]
mod fault_injection;
mod features;
mod handle;
mod known_time;
mod live;
mod looker;
mod marks;
#[cfg(feature = "cluster")]
mod nodes_backup;
mod open;
#[cfg(feature = "cluster")]
mod outdated_copies;
mod partitions;
mod readiness;
mod reindexing;
mod requested_verification;
mod running;
mod saving;
mod sealing;
mod searching;
mod subjects;
mod threads;
mod track;
mod verifications;
mod verified_directory;
mod verified_here;
mod verifying;
mod vitals;

pub use crate::shard::AskError;
pub use crate::subject::{ErasureError, ErasureSubject};
pub use common::{Common, Installation, LogSink, StartCommit};
pub(crate) use config::directory;
pub use config::{EngineConfig, OpenError};
pub use erasing::ErasureState;
pub use handle::Engine;
#[cfg(feature = "cluster")]
pub use nodes_backup::{NodesBackup, NodesBackupError};
#[cfg(feature = "cluster")]
pub use partitions::SavedPositions;
pub use partitions::{AdoptError, Adoption, Partitions, RemainsError};
pub use reindexing::{ReindexError, Reindexed, reindex};
pub use running::RunningEngine;
pub use sealing::SealError;
pub use searching::search_erased;
pub use verified_directory::verify_directory;
pub use vitals::Vitals;
