//! Folds the state of a project again without erased identities, beside the state in service (ADR
//! 12).
//!
//! A thread replays the project's history into a temporary store, catches up with the events
//! recorded meanwhile, and replaces the stored state in one commit. The project is held only for
//! this last moment. Other projects of its partition are not affected.

mod difference;
mod fold;

pub(crate) use fold::{FoldSources, Folding, StopFlags};
