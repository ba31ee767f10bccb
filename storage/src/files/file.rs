//! An open file. If the fault switch is compiled in, it can make any operation fail.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::PRIVATE_FILE;
use super::operation::Operation;
use super::switch::{Origin, run_at};

/// A file of the data directory.
#[derive(Debug)]
pub struct File {
    inner: std::fs::File,
    origin: Origin,
}

impl File {
    fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<Self> {
        let inner = run_at(Operation::Open, path, || options.mode(PRIVATE_FILE).open(path))?;
        Ok(Self { inner, origin: Origin::new(path) })
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OpenOptions::new().read(true))
    }

    /// Opens an existing file for reading and writing.
    pub(crate) fn edit(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OpenOptions::new().read(true).write(true))
    }

    /// Creates an empty file with mode 0600 for reading and writing; truncates a file that exists.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OpenOptions::new().read(true).write(true).create(true).truncate(true))
    }

    /// Creates a file without a name in `dir`, which disappears when it is closed. The fault switch
    /// calls it `unnamed`.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn unnamed(dir: &Path) -> io::Result<Self> {
        let path = dir.join("unnamed");
        let inner = run_at(Operation::Open, &path, || tempfile::tempfile_in(dir))?;
        Ok(Self::from_std(inner, &path))
    }

    /// Wraps a file that was opened at `path`.
    pub(super) fn from_std(inner: std::fs::File, path: &Path) -> Self {
        Self { inner, origin: Origin::new(path) }
    }

    /// Returns another handle of the open file.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let inner = self.origin.run(Operation::Open, || self.inner.try_clone())?;
        Ok(Self { inner, origin: self.origin.clone() })
    }

    /// The length of the file.
    ///
    /// # Errors
    /// Any error of the operating system.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether a file is empty")]
    pub fn len(&self) -> io::Result<u64> {
        self.origin.run(Operation::Read, || self.inner.metadata()).map(|about| about.len())
    }

    /// Sets the permissions to `mode`.
    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.inner.set_permissions(Permissions::from_mode(mode))
    }

    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.origin.run(Operation::Read, || self.inner.read_at(bytes, offset))
    }

    /// Fills `bytes` with the contents from `offset` on.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.origin.run(Operation::Read, || self.inner.read_exact_at(bytes, offset))
    }

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.origin.write(bytes, |bytes| self.inner.write_all_at(bytes, offset))
    }

    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        self.origin.run(Operation::SetLen, || self.inner.set_len(len))
    }

    /// Allocates the bytes from `from` to `to`. Does nothing if the file system does not support
    /// it.
    pub(crate) fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        self.origin.run(Operation::Allocate, || {
            match rustix::fs::fallocate(&self.inner, rustix::fs::FallocateFlags::empty(), from, to - from) {
                Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Makes the contents durable.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn sync_data(&self) -> io::Result<()> {
        self.origin.run(Operation::Sync, || self.inner.sync_data())
    }

    /// Makes the contents and the length durable.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn sync_all(&self) -> io::Result<()> {
        self.origin.run(Operation::Sync, || self.inner.sync_all())
    }
}

impl Read for &File {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.origin.run(Operation::Read, || (&self.inner).read(bytes))
    }
}

impl Read for File {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        (&*self).read(bytes)
    }
}

impl Write for &File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.origin.write(bytes, |bytes| (&self.inner).write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&self.inner).seek(to)
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}
