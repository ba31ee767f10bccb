//! Free space of a file system.

use std::path::Path;

/// Returns the free bytes of the file system of `path`. If the operating system does not answer,
/// its own errors must suffice.
pub(crate) fn free_bytes(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(u64::MAX, |stat| stat.f_bavail.saturating_mul(stat.f_frsize))
}
