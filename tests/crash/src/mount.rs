//! Temporary file systems: in an image file on a loop device, or in memory. Requires root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{CampaignError, Result, harness};

/// A mounted file system. Dropping it unmounts it and frees its loop device.
#[derive(Debug)]
pub struct Mount {
    path: PathBuf,
    device: Option<String>,
}

/// Write activity of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceActivity {
    /// Writes that are complete.
    pub complete: u64,
    /// Number of requests in progress.
    pub in_progress: u64,
}

/// Creates an image of `bytes` bytes with an empty ext4 file system.
///
/// # Errors
/// `Skipped` if this machine can't do it.
pub fn make_image(path: &Path, bytes: u64) -> Result<()> {
    std::fs::File::create(path)?.set_len(bytes)?;
    // Avoid initialization in the background.
    let options = "lazy_itable_init=0,lazy_journal_init=0";
    run("mkfs.ext4", &["-q", "-F", "-m", "0", "-E", options, utf8(path)]).map_err(skipped).map(drop)
}

impl Mount {
    /// Mounts an image at `path`, on a loop device with direct I/O: the image contains only what
    /// the file system has written to its device.
    ///
    /// # Errors
    /// `Skipped` if this machine can't do it.
    pub fn image(image: &Path, path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path)?;
        let device = run("losetup", &["--find", "--show", "--direct-io=on", utf8(image)]).map_err(skipped)?;
        let device = device.trim().to_owned();
        let mounted = run("mount", &["-t", "ext4", &device, utf8(path)]);
        // A device in use is detached once it is unmounted.
        let detached = run("losetup", &["--detach", &device]);
        mounted.map_err(skipped)?;
        let mounted = Self { path: path.to_owned(), device: Some(device) };
        detached.map(|_| mounted)
    }

    /// Mounts a tmpfs of `bytes` bytes at `path`.
    ///
    /// # Errors
    /// `Skipped` if this machine can't do it.
    pub fn memory(path: &Path, bytes: u64) -> Result<Self> {
        std::fs::create_dir_all(path)?;
        run("mount", &["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs", utf8(path)]).map_err(skipped)?;
        Ok(Self { path: path.to_owned(), device: None })
    }

    /// Returns the mount point.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the write activity of the device so far.
    ///
    /// # Errors
    /// The file system has no device.
    pub fn writes(&self) -> Result<DeviceActivity> {
        let device = self.device.as_deref().and_then(|device| device.strip_prefix("/dev/"));
        let device = device.ok_or_else(|| harness("no device"))?;
        // Fields: 4 of reads, 4 of writes (the first: completed writes), requests in progress, …
        let stat = std::fs::read_to_string(format!("/sys/block/{device}/stat"))?;
        let field = |at: usize| stat.split_whitespace().nth(at).and_then(|field| field.parse().ok());
        let writes = field(4).zip(field(8)).map(|(complete, in_progress)| DeviceActivity { complete, in_progress });
        writes.ok_or_else(|| harness(format!("can't parse the statistics of the device: {stat}")))
    }

    /// Unmounts the file system.
    ///
    /// # Errors
    /// It is in use.
    pub fn unmount(mut self) -> Result<()> {
        let path = std::mem::take(&mut self.path);
        run("umount", &[utf8(&path)]).map(drop)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() && run("umount", &[utf8(&self.path)]).is_err() {
            // It is still in use: unmount it once it no longer is.
            let _ = run("umount", &["--lazy", utf8(&self.path)]);
        }
    }
}

/// Copies a file and preserves its holes.
///
/// # Errors
/// The copy fails.
pub fn copy_sparse(from: &Path, to: &Path) -> Result<()> {
    run("cp", &["--sparse=always", utf8(from), utf8(to)]).map(drop)
}

/// Replaces the directory `to` with a copy of `from`.
///
/// # Errors
/// The copy fails.
pub fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    run("cp", &["--archive", "--sparse=always", utf8(from), utf8(to)]).map(drop)
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn skipped(error: CampaignError) -> CampaignError {
    match error {
        CampaignError::Harness(why) => {
            CampaignError::Skipped(format!("this machine can't mount file systems (requires root and loop devices): {why}"))
        }
        other => other,
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| harness(format!("{program}: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(harness(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
