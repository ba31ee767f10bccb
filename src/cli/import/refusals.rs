//! The file of `--refused`, with the refused lines as lines of JSON.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use headcount_api::command::failure::Failure;

use super::events::RefusedLine;

/// The file of refused lines. Without a path, it writes nothing.
pub(crate) struct Refusals {
    path: Option<PathBuf>,
    file: Option<BufWriter<File>>,
    /// The first write error.
    failed: Option<io::Error>,
}

impl Refusals {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self { path, file: None, failed: None }
    }

    /// Creates the file at the first call, or opens it if the import `continues` an earlier one.
    pub(crate) fn begin(&mut self, continues: bool) {
        let Some(path) = self.path.as_ref().filter(|_| self.file.is_none()) else { return };
        let mut options = OpenOptions::new();
        let opened = options.create(true).write(true).append(continues).truncate(!continues).open(path);
        match opened {
            Ok(file) => self.file = Some(BufWriter::new(file)),
            Err(error) => self.failed = Some(error),
        }
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, refused: &RefusedLine) {
        let Some(file) = &mut self.file else { return };
        let written = serde_json::to_writer(&mut *file, refused).map_err(io::Error::from).and_then(|()| file.write_all(b"\n"));
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }

    /// Writes the added lines.
    ///
    /// # Errors
    /// This or an earlier write failed.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        let flushed = self.file.as_mut().map_or(Ok(()), Write::flush);
        let failed = self.failed.take().map_or(flushed, Err);
        failed.map_err(|error| {
            let path = self.path.as_deref().unwrap_or(Path::new(""));
            Failure::new(format!("the refused lines can't be written to {}", path.display()), error)
        })
    }
}
