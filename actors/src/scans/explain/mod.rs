//! Why a figure is what it is: one pass that finds the events which make it up, in pages.
//!
//! An explanation is that of the events up to a position, so that all pages of one are of the same
//! state: links, sessions, companies and touches are made of these events (ADR 6). Each page costs
//! the pass again, and keeps only its own events.

mod attribution;
mod counted;
mod found;
mod page;

pub use page::ExplainError;
