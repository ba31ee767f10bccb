//! The identity of a node.

use std::io;
use std::path::Path;

use headcount_storage::files::{self, PRIVATE_FILE, write_atomically};
use headcount_storage::format::NODE_NAME;

/// Returns the id of the node that owns a data directory. This process has locked the directory. A
/// new directory gets a new id.
///
/// # Errors
/// The operating system refuses, or the file holds no id.
pub fn node_id(data_dir: &Path) -> io::Result<String> {
    let path = data_dir.join(NODE_NAME);
    if let Some(bytes) = files::read_if_there(&path)? {
        let id = String::from_utf8_lossy(&bytes).trim().to_owned();
        let is_id = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let damaged = || io::Error::other(format!("{} does not have the id of a node: remove it", path.display()));
        return is_id.then_some(id).ok_or_else(damaged);
    }
    let id = format!("{:016x}", fastrand::u64(..));
    write_atomically(&path, format!("{id}\n").as_bytes(), PRIVATE_FILE)?;
    Ok(id)
}

/// Returns the boot id, which is different after each start of this machine.
///
/// # Errors
/// The operating system refuses.
pub fn boot_id() -> io::Result<String> {
    let id = files::read_if_there(Path::new("/proc/sys/kernel/random/boot_id"))?;
    // With a random id, the leases of an earlier process are only taken after they expire.
    let id = id.unwrap_or_else(|| format!("{:032x}", fastrand::u128(..)).into_bytes());
    Ok(String::from_utf8_lossy(&id).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_id() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let id = node_id(dir.path()).unwrap();
        assert_eq!(node_id(dir.path()).unwrap(), id);
        assert_ne!(node_id(other.path()).unwrap(), id);
        std::fs::write(dir.path().join(NODE_NAME), "node").unwrap();
        assert!(node_id(dir.path()).is_err());
        assert!(!boot_id().unwrap().is_empty());
    }
}
