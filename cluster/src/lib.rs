//! Several machines over NATS JetStream: the only crate that knows the client of the brokers.
//!
//! A partition's events are a stream of the brokers ([`log`]). Its owner is the only writer, which the brokers enforce: each message says which one must be
//! the last. Who the owner is, a lease says ([`lease`]). [`check`] finds out whether brokers keep what a cluster relies on, and
//! [`bench`] how much they record.

pub mod bench;
pub mod check;
pub mod lease;
pub mod log;
pub mod names;
pub mod node;

mod broker;
mod connection;
mod monitor;
mod stream;
mod trial;
mod version;

pub use connection::{ConnectError, Connection, Credentials};
pub use stream::StreamName;
pub use version::VersionError;
