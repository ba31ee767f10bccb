//! Who does what, and when: thin actix shells around plain structs.
//!
//! [`engine::Engine`] is the entry point. An event goes from [`track`] (read, judged) to the [`ingest`] actor (gathered),
//! to the log's thread (durable), to the [`aggregator`] of its shard (in the rollups), and back.

mod aggregator;
pub mod clock;
mod config;
mod dead_letters;
mod derived;
mod disk;
pub mod engine;
#[cfg(feature = "fault-injection")]
mod faults;
#[cfg(test)]
mod faulty;
pub mod gate;
mod geo;
mod ingest;
mod keeper;
mod late;
mod logged;
pub mod memory;
mod opening;
mod progress;
mod questions;
pub mod registry;
mod scan;
pub mod secrets;
mod spill;
mod system;
pub mod threads;
pub mod track;
mod verifier;

pub use aggregator::{CheckpointPolicy, Outcome, PARTITIONS, partition_of};
pub use config::{EngineConfig, OpenError};
pub use engine::{AskError, Engine, QuotaExceeded, Tracker, Vitals};
pub use geo::GeoError;
pub use headcount_domain as domain;
pub use ingest::TrackError;
pub use progress::Progress;
