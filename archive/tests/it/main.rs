//! The archive through its public interface.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod base;
mod cache;
mod damage;
mod faults;
mod files;
mod golden;
mod identity;
mod merging;
mod other_programs;
mod support;
