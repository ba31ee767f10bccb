//! States that are computed from history in a temporary store, beside the one that is served: to compare it, or to replace a project's.

mod bounded;
mod recomputation;
mod scratch;

pub(crate) use bounded::{Bound, BoundedHistory, StopCheck};
pub(crate) use recomputation::{Recomputation, Replay};
pub(crate) use scratch::{Scratch, remove_scratch};
