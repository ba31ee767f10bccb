//! The commands. Each asks the running server, or opens the data directory itself.

pub(crate) mod archive;
pub(crate) mod backup;
pub(crate) mod clock;
mod erased;
pub(crate) mod reindex;
pub(crate) mod verify;
