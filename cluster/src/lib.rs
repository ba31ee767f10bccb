//! Several machines over NATS JetStream: the only crate that knows the client of the brokers.
//!
//! A partition's events are a stream of the brokers ([`log`]). Its owner is the only writer, which the brokers enforce: each message says which one must be
//! the last. [`check`] finds out whether brokers keep what a cluster relies on.

pub mod check;
pub mod log;

mod broker;
mod connection;
mod monitor;
mod stream;
mod trial;
mod version;

pub use connection::{ConnectError, Connection, Credentials};
pub use stream::StreamName;
pub use version::VersionError;
