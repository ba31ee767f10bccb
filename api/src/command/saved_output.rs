//! The output of commands that write data: standard output, or a file that appears when it is
//! complete.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use headcount_storage::files;

use crate::command::failure::Failure;

/// The size of a write.
const PART_BYTES: usize = 256 << 10;

/// The output: a temporary file that is renamed at the end, or standard output.
pub struct SavedOutput {
    /// Where to write.
    pub writer: Box<dyn Write + Send>,
    renamed: Option<Renamed>,
}

/// A file with a temporary name until it is complete.
struct Renamed {
    file: File,
    tmp: PathBuf,
    path: PathBuf,
    is_complete: bool,
}

impl Drop for Renamed {
    fn drop(&mut self) {
        if !self.is_complete {
            // Best effort: the command has already failed.
            let _ = files::remove_file(&self.tmp);
        }
    }
}

impl SavedOutput {
    /// Creates the file `path`; `None` or `-` is standard output.
    pub fn create(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self { writer: Box::new(io::stdout()), renamed: None });
        };
        let named = path.file_name().ok_or_else(|| Failure(format!("{} is not the name of a file", path.display())))?;
        let mut name = named.to_os_string();
        name.push(format!(".{}.tmp", std::process::id()));
        let tmp = path.with_file_name(name);
        let file = File::create_new(&tmp).map_err(|error| Failure::new(tmp.display(), error))?;
        let renamed = Renamed { file: file.try_clone()?, tmp, path: path.to_owned(), is_complete: false };
        Ok(Self { writer: Box::new(file), renamed: Some(renamed) })
    }

    /// Writes all of `body`.
    pub fn fill(&mut self, body: &mut dyn Read, broken: &str) -> Result<(), Failure> {
        let mut buffer = vec![0; PART_BYTES];
        loop {
            match body.read(&mut buffer).map_err(|error| Failure::new(broken, error))? {
                0 => return Ok(()),
                read => self.writer.write_all(buffer.get(..read).unwrap_or_default())?,
            }
        }
    }

    /// Renames the file to its final name.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.writer.flush()?;
        if let Some(renamed) = &mut self.renamed {
            let failed = |error: io::Error| Failure::new(renamed.path.display(), error);
            renamed.file.sync_all().map_err(failed)?;
            files::rename(&renamed.tmp, &renamed.path).map_err(failed)?;
            renamed.is_complete = true;
        }
        Ok(())
    }
}
