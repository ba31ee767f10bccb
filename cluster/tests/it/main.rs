//! The log over real brokers. Without a `nats-server`, these tests print that and do nothing; with
//! `HEADCOUNT_REQUIRE_CLUSTER` they fail instead.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod backup;
mod barrier;
mod brokers;
mod check;
mod codes;
mod commit;
mod compaction;
mod control;
mod counts;
mod deletion;
mod erasure;
mod faults;
mod files;
mod init;
mod lease;
mod letters;
mod levels;
mod log;
mod lost;
mod moving;
mod node;
mod privacy;
mod profiles;
mod salts;
mod states;
mod unable;
mod verify;
mod webhooks;
