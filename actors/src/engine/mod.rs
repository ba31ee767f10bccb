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
mod erasing;
mod erasure_rounds;
#[cfg(feature = "fault-injection")]
mod fault_injection;
mod features;
mod handle;
mod handover;
mod importing;
mod intake;
mod known_time;
mod live;
mod looker;
mod marks;
#[cfg(feature = "cluster")]
mod nodes_backup;
mod open;
mod quotas;
mod readiness;
mod reindexing;
mod remains;
mod requested_verification;
mod retention;
#[cfg(feature = "cluster")]
mod saved_states;
mod saving;
mod sealing;
mod searching;
mod segment;
mod subjects;
mod threads;
mod tracking;
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
pub use handover::{AdoptError, Adoption};
pub use intake::ProjectIntake;
#[cfg(feature = "cluster")]
pub use nodes_backup::{NodesBackup, NodesBackupError};
pub use reindexing::{ReindexError, Reindexed, reindex};
pub use remains::RemainsError;
pub use sealing::SealError;
pub use searching::search_erased;
pub use segment::SegmentRequest;
pub use verified_directory::verify_directory;
pub use vitals::Vitals;
