//! File systems of our own, in files: on a loop device, or in memory. Needs root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::trouble::{Result, Trouble, harness};

/// A mounted file system. Unmounted when dropped; its loop device goes with it.
#[derive(Debug)]
pub struct Mounted {
    path: PathBuf,
    device: Option<String>,
}

/// What a block device has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writes {
    /// Writes that are complete.
    pub complete: u64,
    /// Requests that are under way.
    pub under_way: u64,
}

/// Makes an image of `bytes` with an empty ext4.
///
/// # Errors
/// Skipped, where that can't be done.
pub fn make_image(path: &Path, bytes: u64) -> Result<()> {
    std::fs::File::create(path)?.set_len(bytes)?;
    // Complete from the beginning: nothing is initialized later, in the background.
    let options = "lazy_itable_init=0,lazy_journal_init=0";
    run("mkfs.ext4", &["-q", "-F", "-m", "0", "-E", options, text(path)]).map_err(skipped).map(drop)
}

impl Mounted {
    /// Mounts an image at `path`, on a loop device that passes reads and writes straight to the file: what the file system
    /// has not written to its device is not in the image.
    ///
    /// # Errors
    /// Skipped, where that can't be done.
    pub fn image(image: &Path, path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path)?;
        let device = run("losetup", &["--find", "--show", "--direct-io=on", text(image)]).map_err(skipped)?;
        let device = device.trim().to_owned();
        let mounted = run("mount", &["-t", "ext4", &device, text(path)]);
        // From here on, or from the last unmount on: a device that is in use is only detached when it no longer is.
        let detached = run("losetup", &["--detach", &device]);
        mounted.map_err(skipped)?;
        let mounted = Self { path: path.to_owned(), device: Some(device) };
        detached.map(|_| mounted)
    }

    /// Mounts a file system in memory.
    ///
    /// # Errors
    /// Skipped, where that can't be done.
    pub fn memory(path: &Path, bytes: u64) -> Result<Self> {
        std::fs::create_dir_all(path)?;
        run("mount", &["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs", text(path)]).map_err(skipped)?;
        Ok(Self { path: path.to_owned(), device: None })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its device has done so far.
    ///
    /// # Errors
    /// There is no device.
    pub fn writes(&self) -> Result<Writes> {
        let device = self.device.as_deref().and_then(|device| device.strip_prefix("/dev/"));
        let device = device.ok_or_else(|| harness("no device"))?;
        // Fields: reads (4), writes (4: the first is those that are complete), requests under way, …
        let stat = std::fs::read_to_string(format!("/sys/block/{device}/stat"))?;
        let field = |at: usize| stat.split_whitespace().nth(at).and_then(|field| field.parse().ok());
        let writes = field(4).zip(field(8)).map(|(complete, under_way)| Writes { complete, under_way });
        writes.ok_or_else(|| harness(format!("what is this: {stat}")))
    }

    /// Unmounts it.
    ///
    /// # Errors
    /// It is in use.
    pub fn unmount(mut self) -> Result<()> {
        let path = std::mem::take(&mut self.path);
        run("umount", &[text(&path)]).map(drop)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() && run("umount", &[text(&self.path)]).is_err() {
            // Somebody still holds it: it goes when they do.
            let _ = run("umount", &["--lazy", text(&self.path)]);
        }
    }
}

/// Copies a file, holes as holes.
///
/// # Errors
/// The operating system's.
pub fn copy_sparse(from: &Path, to: &Path) -> Result<()> {
    run("cp", &["--sparse=always", text(from), text(to)]).map(drop)
}

/// Copies a directory as it is.
///
/// # Errors
/// The operating system's.
pub fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    run("cp", &["--archive", "--sparse=always", text(from), text(to)]).map(drop)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn skipped(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Harness(why) => Trouble::Skipped(format!("this machine can't mount (root and loop devices are needed): {why}")),
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
