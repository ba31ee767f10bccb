//! An open file. Every operation can be made to fail by the fault switch, where that is compiled in.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::switch::Origin;
use super::{Operation, PRIVATE_FILE, run_at};

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
    /// Whatever the operating system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OpenOptions::new().read(true))
    }

    /// Opens a file that exists for reading and writing.
    pub(crate) fn edit(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OpenOptions::new().read(true).write(true))
    }

    /// Opens a file for reading and writing, and creates it (mode 0600) if it does not exist.
    pub(crate) fn edit_or_create(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OpenOptions::new().read(true).write(true).create(true).truncate(false))
    }

    /// Creates an empty file (mode 0600) for reading and writing, in the place of one that exists.
    ///
    /// # Errors
    /// Whatever the operating system says.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OpenOptions::new().read(true).write(true).create(true).truncate(true))
    }

    /// A file that was opened at `path` in another way.
    pub(super) fn from_std(inner: std::fs::File, path: &Path) -> Self {
        Self { inner, origin: Origin::new(path) }
    }

    /// Another handle of the same open file.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let inner = self.origin.run(Operation::Open, || self.inner.try_clone())?;
        Ok(Self { inner, origin: self.origin.clone() })
    }

    /// How long the file is.
    ///
    /// # Errors
    /// Whatever the operating system says.
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

    /// Reads exactly as many bytes as `bytes` holds, from `offset` on.
    ///
    /// # Errors
    /// Whatever the operating system says.
    pub fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.origin.run(Operation::Read, || self.inner.read_exact_at(bytes, offset))
    }

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// Whatever the operating system says.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.origin.write(bytes, |bytes| self.inner.write_all_at(bytes, offset))
    }

    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        self.origin.run(Operation::SetLen, || self.inner.set_len(len))
    }

    /// Allocates the bytes from `from` to `to`; where the file system can't, nothing happens.
    pub(crate) fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        self.origin.run(Operation::Allocate, || {
            match rustix::fs::fallocate(&self.inner, rustix::fs::FallocateFlags::empty(), from, to - from) {
                Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
                Err(error) => Err(error.into()),
            }
        })
    }

    pub(crate) fn sync_data(&self) -> io::Result<()> {
        self.origin.run(Operation::Sync, || self.inner.sync_data())
    }

    /// Makes contents and length durable.
    ///
    /// # Errors
    /// Whatever the operating system says.
    pub fn sync_all(&self) -> io::Result<()> {
        self.origin.run(Operation::Sync, || self.inner.sync_all())
    }
}

impl Read for &File {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.origin.run(Operation::Read, || (&self.inner).read(bytes))
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
