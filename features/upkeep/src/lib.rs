//! Backups, verifying, sealing, reindexing and the clock: what an operator does with a server.

#![forbid(unsafe_code)]

mod archive_command;
mod backups;
mod clock;
mod erased;
mod reindex;
mod verifications;
mod verify_command;

use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;

pub use archive_command::{ArchiveArgs, run as archive};
pub use backups::{BackupArgs, RestoreArgs, restore, run as backup};
pub use clock::{ClockArgs, run as clock};
pub use reindex::{ReindexArgs, run as reindex};
pub use verify_command::{VerifyArgs, run as verify};

/// The endpoints.
pub const ENDPOINTS: Endpoints = endpoints! {
    backups => seal: Operator;
    clock => show: Operator;
    clock => confirm: Operator;
    backups => backup: Operator;
    verifications => verify: Operator;
};
