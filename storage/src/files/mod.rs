//! The only access to files of this crate and the archive: open files, small files that are
//! replaced as a whole, and directories that only their owner can read.
//!
//! All operations pass through here (except sled's own), so that a test can make any of them fail:
//! see `switch`, which exists only in tests and with the feature `fault-injection`.

mod cache;
mod directory;
mod file;
mod operation;
#[cfg(any(test, feature = "fault-injection"))]
pub mod switch;
#[cfg(not(any(test, feature = "fault-injection")))]
#[path = "no_switch.rs"]
mod switch;
mod whole;

pub(crate) use cache::{CachedFile, Dir, OpenFiles};
pub(crate) use directory::parent_of;
pub use directory::{create_private_dir, hard_link, list, make_private, make_private_dir, remove_dir_all, rename, sync_dir};
pub use file::File;
pub use operation::Operation;
pub(crate) use switch::run_at;
pub use whole::{length_and_time, read, read_if_there, remove_file, remove_if_there, write_atomically};
pub(crate) use whole::{probe_space, read_to_string, write};

/// The mode of files that hold data: only the owner can read and write them.
pub const PRIVATE_FILE: u32 = 0o600;

/// The mode of directories: only the owner can enter them.
pub const PRIVATE_DIR: u32 = 0o700;
