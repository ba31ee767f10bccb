//! Measures the habits of this repository's sources: what imports what, what is named twice, what
//! nobody uses, what the glossary replaces, how long files and functions are. The limits are in
//! `tests/habits.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test support: a panic is a failed test")]

pub mod functions;
pub mod imports;
pub mod lines;
pub mod names;
pub mod source;
pub mod words;
