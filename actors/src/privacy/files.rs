//! The files of privacy requests: one for each.

use std::io;
use std::path::{Path, PathBuf};

use headcount_storage::files::{PRIVATE_FILE, create_private_dir, list, read, remove_file, rename, write_atomically};

use super::request::PrivacyRequest;
use crate::checked_json;
use crate::registry::PrivacyRequestId;

/// The directory of the requests in a data directory.
pub(crate) const PRIVACY_DIR: &str = "control/privacy";
/// The version of the files.
const VERSION: u8 = 1;

/// See the module.
#[derive(Debug)]
pub(crate) struct PrivacyFiles {
    dir: PathBuf,
}

impl PrivacyFiles {
    /// Opens the directory, or creates it, and reads all requests. A damaged file is set aside.
    ///
    /// # Errors
    /// A file or the directory can't be read or written.
    pub(crate) fn open(dir: &Path) -> io::Result<(Self, Vec<PrivacyRequest>)> {
        create_private_dir(dir)?;
        let files = Self { dir: dir.to_owned() };
        let mut requests = Vec::new();
        for path in list(dir)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(id) = id_of(name) {
                requests.extend(files.read(&path, &id)?);
            } else if name.strip_suffix(".tmp").is_some_and(|name| id_of(name).is_some()) {
                // Of a write that was cut short. It may name somebody who is erased by now.
                remove_file(&path)?;
            }
        }
        Ok((files, requests))
    }

    fn read(&self, path: &Path, id: &PrivacyRequestId) -> io::Result<Option<PrivacyRequest>> {
        let request = checked_json::decode(VERSION, &read(path)?);
        let request = request.filter(|request: &PrivacyRequest| request.id == *id);
        if request.is_none() {
            tracing::error!(path = %path.display(), "a damaged privacy request was set aside; its erasure goes on");
            rename(path, &path.with_extension("json.damaged"))?;
        }
        Ok(request)
    }

    /// Writes a request, durably.
    ///
    /// # Errors
    /// Any error of the operating system. The former or the new file is then there, complete.
    pub(crate) fn write(&self, request: &PrivacyRequest) -> io::Result<()> {
        let path = self.dir.join(format!("{}.json", request.id));
        write_atomically(&path, &checked_json::encode(VERSION, request)?, PRIVATE_FILE)
    }

    /// Returns the names of the files in `dir` that a backup needs. Each is only ever replaced as a whole.
    pub(crate) fn names(dir: &Path) -> io::Result<Vec<String>> {
        let names = match list(dir) {
            Ok(paths) => paths.into_iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(names.into_iter().filter(|name: &String| id_of(name).is_some()).collect())
    }
}

/// The id of the request in the file `name`.
fn id_of(name: &str) -> Option<PrivacyRequestId> {
    name.strip_suffix(".json")?.parse().ok()
}
