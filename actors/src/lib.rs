//! Who does what, and when: thin actix shells around plain structs.
//!
//! [`engine::Engine`] is the entry point. An event goes from the tracker (parsed, admitted) to the [`ingest`] actor (batched),
//! to the log's thread (durable), to its shard (in the rollups), and back.
//!
//! # Code map
//! `engine` is the embedded API; `engine/scan` answers from the events themselves. `ingest` gathers and submits events, `shard` folds them
//! and answers. `checkpoint_writer` and `archiver` write files in the background. `history` reads recorded events from archive and log.
//! `registry` has organizations, projects, keys and tokens. `verify` and `refolding` compute states a second time (`recompute`), `backup` and
//! `moving` copy a data directory. `webhooks`, `profiles`, `privacy` and `live` are features. `owners` says which node has a partition;
//! the `shared_…` files are the traits that a cluster implements. Actors are in `actor.rs` files.

pub mod admission_gate;
mod archiver;
pub mod backup;
mod checked_files;
mod checked_json;
mod checkpoint_writer;
pub mod clock;
mod clock_guard;
mod dead_letters;
mod deleted_projects;
pub mod engine;
mod erased_search;
mod erasure_turns;
mod erasures;
mod event_codec;
mod fault;
#[cfg(test)]
mod faulty_store;
mod free_space;
mod geo;
mod given_up_erasures;
mod history;
mod import_mark;
pub mod ingest;
mod intake_counts;
mod live;
mod living_files;
mod local_log;
mod local_remains;
pub mod memory_budget;
mod moving;
mod node_token;
mod node_vitals;
mod nodes;
mod opening_progress;
mod owners;
mod partitions;
mod position_map;
pub mod privacy;
pub mod profiles;
mod program_version;
mod recompute;
mod refolding;
pub mod registry;
mod repair_counts;
mod saved_state;
pub mod secrets;
mod shard;
mod shared_archive;
mod shared_cursors;
mod shared_documents;
mod shared_items;
mod shared_letters;
mod suppressed;
pub mod thread_name;
mod unfinished_erasures;
mod unknown_appends;
mod verifier;
pub mod verify;
pub mod webhooks;
mod website;

pub use archiver::{ArchivePolicy, Sealed};
pub use clock_guard::{ClockJump, ClockState, ConfirmClockError};
pub use engine::{
    AdoptError, Adoption, AskError, Engine, EngineConfig, EventsPage, ExplainError, ExportSink, LogSink, Membership, NodesBackup,
    NodesBackupError, OpenError, OpenRegistry, OrganizationProjects, PageOrder, PageQuestion, PagedEvent, ProjectIntake,
    ReindexError, Reindexed, RemainsError, SealError, SegmentRequest, StartCommit, Vitals, reindex, search_erased,
    verify_directory,
};
pub use erased_search::{ErasedFinding, ErasedSearch};
pub use geo::GeoError;
pub use headcount_domain as domain;
pub use import_mark::ImportMark;
pub use ingest::{QuotaExceeded, Ticket, TrackError, Tracker};
pub use intake_counts::{DropCounts, RepairCounts};
pub use live::{LiveEnd, LiveFigures, LiveFrame, LiveMinute, LiveNotification, LiveState, LiveWatch, MAX_WATCHES};
pub use moving::{LeftBehind, MovedDocument, MovedEvents, MovingError, MovingSource};
pub use node_token::NodeToken;
pub use node_vitals::{HeldPartition, NodeVitals};
pub use nodes::{AskNode, AskNodeError, MAX_ANSWER_BYTES, MAX_REQUEST_BYTES, NodeAnswer, NodeCall};
pub use opening_progress::Progress;
pub use owners::{NOT_HERE, Owner, Owners};
pub use position_map::PositionMap;
pub use program_version::{answers_version, fold_version, is_next};
pub use saved_state::{CopiedState, SavedState, state_version};
pub use shard::{CheckpointPolicy, Outcome, PARTITIONS, home_of, partition_of};
pub use shared_archive::{DamagedObject, SharedArchive, SharedArchiveError};
pub use shared_cursors::SharedCursors;
pub use shared_documents::{DocumentChange, DocumentVisitor, MAX_DOCUMENT_BYTES, SharedDocuments, SharedDocumentsError};
pub use shared_letters::{SharedLetters, SharedLettersError};
