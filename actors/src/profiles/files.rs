//! The files of company profiles: one for each.

use std::io;
use std::path::{Path, PathBuf};

use headcount_storage::files::{
    PRIVATE_FILE, create_private_dir, list, read_if_there, remove_file, rename, sync_dir, write_atomically,
};

use super::profile::CompanyProfile;
use crate::checked_json;
use crate::registry::CompanyProfileId;

/// The directory of the profiles in a data directory.
pub(crate) const PROFILES_DIR: &str = "control/profiles";
/// The version of the files.
const VERSION: u8 = 1;

/// See the module.
#[derive(Debug)]
pub(crate) struct ProfileFiles {
    dir: PathBuf,
}

impl ProfileFiles {
    /// Opens the directory, or creates it, and passes every profile to `take`. A damaged file is set aside.
    ///
    /// # Errors
    /// A file or the directory can't be read or written.
    pub(super) fn open(dir: &Path, mut take: impl FnMut(&CompanyProfile)) -> io::Result<Self> {
        create_private_dir(dir)?;
        let files = Self { dir: dir.to_owned() };
        for path in list(dir)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(id) = id_of(name) {
                match files.read(&id) {
                    Ok(profile) => profile.iter().for_each(&mut take),
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                        tracing::error!(path = %path.display(), "a damaged company profile was set aside");
                        rename(&path, &path.with_extension("json.damaged"))?;
                    }
                    Err(error) => return Err(error),
                }
            } else if name.strip_suffix(".tmp").is_some_and(|name| id_of(name).is_some()) {
                remove_file(&path)?;
            }
        }
        Ok(files)
    }

    fn path(&self, id: &CompanyProfileId) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    /// Reads a profile, if there is one.
    ///
    /// # Errors
    /// Any error of the operating system; [`io::ErrorKind::InvalidData`]: the file is damaged.
    pub(super) fn read(&self, id: &CompanyProfileId) -> io::Result<Option<CompanyProfile>> {
        let Some(bytes) = read_if_there(&self.path(id))? else { return Ok(None) };
        let profile = checked_json::decode(VERSION, &bytes).filter(|profile: &CompanyProfile| profile.id == *id);
        profile.map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the file of a company profile is damaged"))
    }

    /// Writes a profile, durably.
    ///
    /// # Errors
    /// Any error of the operating system. The former or the new file is then there, complete.
    pub(super) fn write(&self, profile: &CompanyProfile) -> io::Result<()> {
        write_atomically(&self.path(&profile.id), &checked_json::encode(VERSION, profile)?, PRIVATE_FILE)
    }

    /// Removes a profile, durably.
    ///
    /// # Errors
    /// Any error of the operating system. The file may then be there or not.
    pub(super) fn remove(&self, id: &CompanyProfileId) -> io::Result<()> {
        match remove_file(&self.path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => sync_dir(&self.dir),
        }
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

/// The id of the profile in the file `name`.
fn id_of(name: &str) -> Option<CompanyProfileId> {
    name.strip_suffix(".json")?.parse().ok()
}
