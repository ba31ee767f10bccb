//! Backups, verifying, sealing, reindexing and the clock: what an operator does with a server.

#![forbid(unsafe_code)]

mod backups;
mod cli;
mod clock;
mod verifications;

use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;

pub use cli::archive::{ArchiveArgs, run as archive};
pub use cli::backup::{BackupArgs, RestoreArgs, restore, run as backup};
pub use cli::clock::{ClockArgs, run as clock};
pub use cli::reindex::{ReindexArgs, run as reindex};
pub use cli::verify::{VerifyArgs, run as verify};

/// The endpoints.
pub const ENDPOINTS: Endpoints = endpoints! {
    backups => seal: Operator;
    clock => show: Operator;
    clock => confirm: Operator;
    backups => backup: Operator;
    verifications => verify: Operator;
};
