//! The files of exports: one for each, in a directory of their own.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use headcount_common::ControlError;
use headcount_control::PrivacyRequestId;
use headcount_storage::files::{File, create_private_dir, list, remove_file, rename, sync_dir};
use sha2::{Digest, Sha256};

use super::request::PrivacyRequest;

/// How much is written at once.
const BUFFER_BYTES: usize = 256 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Artifacts {
    dir: PathBuf,
}

impl Artifacts {
    /// Opens the directory, or creates it. Removes what was not completed.
    ///
    /// # Errors
    /// The directory can't be read or written, or a file can't be removed.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        create_private_dir(dir)?;
        for path in list(dir)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.strip_suffix(".tmp").is_some_and(|name| id_of(name).is_some()) {
                remove_file(&path)?;
            }
        }
        Ok(Self { dir: dir.to_owned() })
    }

    /// The requests that have an artifact here.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub(crate) fn ids(&self) -> Result<Vec<PrivacyRequestId>, ControlError> {
        let names = list(&self.dir).map_err(|error| ControlError::io("list", &self.dir, error))?;
        Ok(names.iter().filter_map(|path| id_of(path.file_name()?.to_str()?)).collect())
    }

    fn path(&self, id: &PrivacyRequestId) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    /// Begins to write the artifact of a request.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub(crate) fn create(&self, id: &PrivacyRequestId) -> io::Result<ArtifactWriter> {
        let path = self.path(id);
        let tmp = path.with_extension("json.tmp");
        let file = File::create(&tmp)?;
        Ok(ArtifactWriter {
            file,
            path,
            tmp: Some(tmp),
            waiting: Vec::with_capacity(BUFFER_BYTES),
            written: 0,
            hash: Sha256::new(),
        })
    }

    /// Opens the artifact of a request.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub(crate) fn read(&self, id: &PrivacyRequestId) -> io::Result<File> {
        File::open(&self.path(id))
    }

    /// Whether the artifact of a request is there.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub(crate) fn has(&self, request: &PrivacyRequest) -> Result<bool, ControlError> {
        match self.read(&request.id).and_then(|file| file.len()) {
            Ok(bytes) => Ok(request.export.artifact.as_ref().is_some_and(|artifact| artifact.bytes == bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(ControlError::io("read", &self.path(&request.id), error)),
        }
    }

    /// Removes the artifact of a request, durably, if it is there.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub(crate) fn remove(&self, id: &PrivacyRequestId) -> Result<(), ControlError> {
        let path = self.path(id);
        let removed = match remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => sync_dir(&self.dir),
        };
        removed.map_err(|error| ControlError::io("remove", &path, error))
    }
}

/// The id of the request whose artifact has this name.
fn id_of(name: &str) -> Option<PrivacyRequestId> {
    name.strip_suffix(".json")?.parse().ok()
}

/// An artifact that is being written. Dropping it removes what was written.
pub(crate) struct ArtifactWriter {
    file: File,
    path: PathBuf,
    /// `None` once the file has its name.
    tmp: Option<PathBuf>,
    waiting: Vec<u8>,
    written: u64,
    hash: Sha256,
}

impl ArtifactWriter {
    /// Gives the file its name, durably. Returns its length and its SHA-256.
    ///
    /// # Errors
    /// Any error of the operating system. If only the last step failed, the file has its name.
    pub(crate) fn finish(mut self) -> io::Result<(u64, String)> {
        self.flush()?;
        self.file.sync_all()?;
        if let Some(tmp) = &self.tmp {
            rename(tmp, &self.path)?;
        }
        self.tmp = None;
        sync_dir(self.path.parent().unwrap_or(Path::new(".")))?;
        let mut hex = String::new();
        for byte in std::mem::take(&mut self.hash).finalize() {
            let _infallible = write!(hex, "{byte:02x}");
        }
        Ok((self.written, hex))
    }
}

impl Write for ArtifactWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(BUFFER_BYTES - self.waiting.len());
        self.waiting.extend_from_slice(&bytes[..count]);
        if self.waiting.len() == BUFFER_BYTES {
            self.flush()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.waiting, self.written)?;
        self.hash.update(&self.waiting);
        self.written += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

impl Drop for ArtifactWriter {
    fn drop(&mut self) {
        if let Some(tmp) = self.tmp.take()
            && let Err(error) = remove_file(&tmp)
        {
            tracing::warn!(%error, "an export that was not completed could not be removed; the next attempt or start does it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_has_its_name_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::open(dir.path()).unwrap();
        let id = PrivacyRequestId::random().unwrap();
        let mut cut = artifacts.create(&id).unwrap();
        cut.write_all(b"{").unwrap();
        drop(cut);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let mut writer = artifacts.create(&id).unwrap();
        let content = "0123456789".repeat(100_000);
        writer.write_all(content.as_bytes()).unwrap();
        assert!(artifacts.read(&id).is_err());
        let (bytes, sha256) = writer.finish().unwrap();
        assert_eq!((bytes, artifacts.read(&id).unwrap().len().unwrap()), (1_000_000, 1_000_000));
        assert_eq!(sha256, format!("{:x}", Sha256::digest(content.as_bytes())));
        std::fs::write(dir.path().join(format!("{id}.json.tmp")), "{").unwrap();
        Artifacts::open(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "what was cut is removed");
        artifacts.remove(&id).unwrap();
        artifacts.remove(&id).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
