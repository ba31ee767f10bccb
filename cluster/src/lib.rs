//! Several machines over NATS JetStream: the only crate that knows the client of the brokers.
//!
//! A partition's events are a stream of the brokers ([`log`]). Its owner is the only writer, which the brokers enforce: each message says which one must be
//! the last. Who the owner is, a lease says ([`lease`]). Organizations, projects and tokens are a stream that all nodes write ([`control`]). [`init`] makes a cluster, into which an installation moves ([`moving`]),
//! [`status`] shows it, [`drain`] has a node hand its partitions over, and [`restored`] says that it comes from copies. Nodes of two versions write what both read ([`AgreedLevels`]), until [`finalize`]. What is sealed of a partition is kept where all nodes reach it ([`files`]). [`check`] finds out whether brokers keep what a cluster relies on, and
//! [`bench`] how much they record.

pub mod bench;
pub mod check;
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
mod cursors;
mod documents;
#[cfg(feature = "fault-injection")]
mod fault_injection;
mod identity;
mod letters;
mod levels;
mod record;
mod stream;
mod trial;

pub use agreed::{AgreedLevels, LevelsError};
pub use broker::VersionError;
pub use commands::ClusterError;
pub use connection::{ConnectError, Connection, Credentials};
pub use identity::{boot_id, node_id};
pub use levels::Levels;
pub use record::{ClusterRecord, RecordError};
pub use stream::{StreamError, StreamName};
