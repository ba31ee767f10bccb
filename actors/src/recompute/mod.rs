//! Computes states from history in a temporary store, beside the state in service, to compare a
//! state or to replace the state of a project.

mod bounded;
mod recomputation;
mod scratch;

pub(crate) use bounded::{Bound, BoundedHistory, StopCheck};
pub(crate) use recomputation::{Recomputation, Replay};
pub(crate) use scratch::{Scratch, remove_scratch};
