//! Folds the state of a project anew without erased identities, beside the state that is served (ADR 12).
//!
//! A thread replays the project's history into a temporary store, catches up with what was recorded meanwhile, and replaces the stored state in one commit. Only
//! then the project is held for a moment; the others of its partition notice nothing.

mod difference;
mod fold;
mod project_history;

pub(crate) use fold::{FoldSources, Folding};
pub(crate) use project_history::StopFlags;
