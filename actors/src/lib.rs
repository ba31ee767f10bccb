//! The engine: thin actix actors around plain structs.
//!
//! [`engine::Engine`] is the entry point. An event goes from the tracker (parsed, admitted) to the
//! [`ingest`] actor (batched), to the log's thread (durable), to its shard (in the rollups), and
//! back.
//!
//! # Code map
//! - `engine` is the embedded API. An engine has parts (ADR 32), in the modules of their names.
//! - `questions` answers from the rollups, and `scans` from the events themselves.
//! - `ingest` admits, decides, gathers and submits events, and `shard` folds them and answers
//!   queries.
//! - `checkpoint_writer` and `archiver` write files in the background.
//! - `history` reads recorded events from archive and log.
//! - `verify` and `refolding` compute states a second time (`recompute`).
//! - `backup` copies a data directory. What only a node of a cluster does has the feature
//!   `cluster`, such as `moving` and `engine::nodes_backup`.
//! - `live` is a feature. Others are crates: `feature` is what they are to the engine, and `parts`
//!   and `subject` what they get of it.
//!
//! Actors are in `actor.rs` files. Organizations, projects, keys and tokens are in the crate
//! `headcount-control`. The traits that a cluster implements are in `headcount-common`.

pub mod admission_gate;
mod archiver;
pub mod backup;
mod checkpoint_writer;
mod clock_guard;
#[cfg(feature = "cluster")]
mod copied_records;
mod dead_letters;
mod deleted_projects;
pub mod engine;
mod erased_search;
mod erasures;
mod event_codec;
mod fault;
#[cfg(test)]
mod faulty_store;
mod feature;
mod free_space;
mod geo;
mod history;
mod import_log;
mod import_mark;
pub mod ingest;
mod intake_counts;
mod live;
mod living_files;
mod local_remains;
pub mod memory_budget;
#[cfg(feature = "cluster")]
mod moving;
mod opening_progress;
mod parts;
mod position_map;
mod questions;
mod recompute;
mod refolding;
mod repair_counts;
mod saved_state;
mod scans;
mod shard;
mod subject;
mod suppressed;
pub mod thread_name;
mod unfinished_erasures;
mod unknown_appends;
mod verifier;
pub mod verify;

pub use archiver::{ArchivePolicy, Sealed};
pub use clock_guard::{ClockJump, ClockState, ConfirmClockError};
pub use engine::{
    AdoptError, Adoption, AskError, Common, Engine, EngineConfig, Installation, LogSink, OpenError, Partitions, ReindexError,
    Reindexed, RemainsError, RunningEngine, SealError, StartCommit, Vitals, reindex, search_erased, verify_directory,
};
#[cfg(feature = "cluster")]
pub use engine::{NodesBackup, NodesBackupError, SavedPositions};
pub use erased_search::{EXPORTS_DIR, ErasedFinding, ErasedSearch};
pub use feature::{
    BackedUpControl, Feature, FeatureFigure, InstallFeature, MovedDocument, MovedDocuments, MovedKind, PropagateChange,
    ReadDocuments,
};
pub use geo::GeoError;
pub use headcount_domain as domain;
pub use import_mark::ImportMark;
pub use ingest::{Admission, Ingest, ProjectIntake, QuotaExceeded, SegmentRequest, Ticket, TrackError, Tracker};
pub use intake_counts::{DropCounts, RepairCounts};
pub use live::{LiveEnd, LiveFigures, LiveFrame, LiveMinute, LiveNotification, LiveState, LiveWatch, MAX_WATCHES};
#[cfg(feature = "cluster")]
pub use moving::{LeftBehind, MovedEvents, MovingError, MovingSource, plain_documents};
pub use opening_progress::Progress;
pub use parts::EngineParts;
pub use position_map::PositionMap;
pub use questions::{OrganizationProjects, Questions};
pub use saved_state::{CopiedState, SavedState, state_version};
pub use scans::{
    EventsPage, ExplainError, ExportSink, FirstEvents, PageOrder, PageQuestion, PagedEvent, RecordSorter, Scans, SortedRecords,
    SpillDir, SpillWriter, ViewFigures,
};
pub use shard::{CheckpointPolicy, Outcome};
pub use subject::{BegunErasure, IsOver, Place, SubjectEventsQuestion, SubjectIds, SubjectKeys, SubjectOwner, Subjects, Whom};
