//! Runs headcount on several machines over NATS JetStream. No other crate knows the client of the
//! brokers.
//!
//! - [`log`]: the events of a partition, as a stream of the brokers. Only its owner writes: each
//!   message names the message before it, and the brokers refuse it anywhere else.
//! - [`lease`]: the owner of each partition.
//! - [`control`]: organizations, projects and tokens, as a stream that all nodes write, and
//!   [`compaction`] keeps short.
//! - [`init`] creates a cluster, and [`moving`] moves an installation into it.
//! - [`status`] shows a cluster, [`drain`] makes a node hand its partitions over, and [`restored`]
//!   marks a cluster as restored from copies.
//! - [`AgreedLevels`]: nodes of two program versions write formats that both read, until
//!   [`finalize`].
//! - [`files`]: the sealed events of a partition, published where all nodes can reach them.
//! - [`check`] finds out whether brokers suit a cluster, and [`mod@bench`] how many events they
//!   record.

pub mod bench;
pub mod check;
pub mod compaction;
pub mod control;
pub mod drain;
pub mod files;
pub mod finalize;
pub mod init;
pub mod lease;
pub mod log;
pub mod moving;
pub mod node;
pub mod restored;
pub mod status;

mod agreed;
mod broker;
mod cells;
mod commands;
mod connection;
mod documents;
#[cfg(feature = "fault-injection")]
mod fault_injection;
mod identity;
mod letters;
mod levels;
mod record;
mod snapshots;
mod stream;
mod trial;
mod values;

pub use agreed::{AgreedLevels, LevelsError};
pub use broker::VersionError;
pub use commands::ClusterError;
pub use connection::{ConnectError, Connection, Credentials};
pub use identity::{boot_id, node_id};
pub use levels::Levels;
pub use record::{ClusterRecord, RecordError};
pub use stream::{StreamError, StreamName};
