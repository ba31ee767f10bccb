//! The seam between an engine and the stores of its data: the same traits for one machine and for a
//! cluster.
//!
//! # Code map
//! - `control_log`: the log of control records, with an implementation on this machine's disk.
//! - `documents`, `document_set`: small documents that every node has, and sets of items stored in
//!   them. `checked_json` is their encoding, and `stores` opens those of each kind.
//! - `values`, `letters`: small values of a partition, for its next owner.
//! - `published_files`: archives where all nodes can reach them.
//! - `partitions`, `owners`: the 64 partitions, and the machine that owns each one.
//! - `nodes`: requests between nodes. `node_token` authenticates them, and `node_vitals` has the
//!   figures of a node for `/metrics`.
//! - `local`: implementations of these traits in files of one machine.
//! - `secrets`, `clock`, `program_version`: the installation's keys, the time, and the version of
//!   the formats that this program writes.

pub mod checked_json;
pub mod clock;
mod control_error;
mod control_log;
mod document_set;
mod documents;
mod letters;
pub mod local;
mod node_token;
mod node_vitals;
pub mod nodes;
mod owners;
mod partitions;
mod program_version;
mod published_files;
pub mod secrets;
mod stores;
mod values;

pub use control_error::ControlError;
pub use control_log::{ControlLog, LocalControlLog, latest_record_version};
pub use document_set::{DocumentItem, DocumentSet, follow_made};
pub use documents::{DocumentChange, DocumentVisitor, Documents, DocumentsError, MAX_DOCUMENT_BYTES, Visited};
pub use letters::{SharedLetters, SharedLettersError};
pub use node_token::NodeToken;
pub use node_vitals::{HeldPartition, NodeVitals};
pub use owners::{NOT_HERE, Owner, Owners};
pub use partitions::{PARTITIONS, home_of, partition_of};
pub use program_version::{answers_version, fold_version, is_next};
pub use published_files::{DamagedObject, NoFiles, SharedArchive, SharedArchiveError};
pub use stores::{DOCUMENT_KINDS, DocumentStores};
pub use values::SharedValues;
