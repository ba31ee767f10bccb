//! Temporary files of scans.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headcount_storage::files::File;

const BUFFER_BYTES: usize = 16 << 10;

/// The directory for temporary files of scans, and how much was written to them.
#[derive(Debug, Clone)]
pub struct SpillDir {
    dir: PathBuf,
    written: Arc<AtomicU64>,
}

impl SpillDir {
    /// Creates files in `dir`.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), written: Arc::default() }
    }

    /// Creates an unnamed file, which is gone once it is closed.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn create(&self) -> io::Result<SpillWriter> {
        let file = File::unnamed(&self.dir)?;
        Ok(SpillWriter { out: BufWriter::with_capacity(BUFFER_BYTES, file), bytes: 0, written: Arc::clone(&self.written) })
    }

    /// Returns the number of bytes written to all files so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

/// Writes a temporary file.
#[derive(Debug)]
pub struct SpillWriter {
    out: BufWriter<File>,
    bytes: u64,
    written: Arc<AtomicU64>,
}

impl SpillWriter {
    /// Writes bytes.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Returns the file, whose position is at its end.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn finish(self) -> io::Result<File> {
        self.written.fetch_add(self.bytes, Ordering::Relaxed);
        self.out.into_inner().map_err(io::IntoInnerError::into_error)
    }
}
