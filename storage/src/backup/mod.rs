//! Backups: a directory with the files of a data directory at one moment, their checksums, and a
//! list of them that is written last.
//!
//! ```text
//! FORMAT  keys/hash.key  log/  control/  archive/  imports/  dead-letters.ndjson     as in the data directory
//! SHA256SUMS       of all other files, as `sha256sum -c` reads it
//! manifest.json    the list, written last: a directory without it is not a backup
//! ```
//!
//! [`BackupWriter`] writes one to a [`BackupTarget`]: a [`BackupFolder`], or a [`TarTarget`], whose
//! stream [`unpack`] turns into a folder elsewhere. [`Backup`] is one that is complete; [`restore`]
//! makes a data directory of it.

mod complete;
mod copy;
mod error;
#[cfg(test)]
mod fault_tests;
mod folder;
mod manifest;
mod restore;
mod stream;
mod target;
#[cfg(test)]
mod tests;

pub use complete::Backup;
pub use error::BackupError;
pub use folder::BackupFolder;
pub use manifest::{BackupManifest, BackupProject};
pub use restore::{restore, restore_with};
pub use stream::{TarTarget, unpack};
pub use target::{BackupTarget, BackupWriter};
