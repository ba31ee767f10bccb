//! What the first start made, kept in the data directory for the commands that run beside a server.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use headcount_actors::registry::Initial;
use headcount_storage::files::{PRIVATE_FILE, write_atomically};
use serde::{Deserialize, Serialize};

use super::Failure;

/// The file in the data directory.
pub const CREDENTIALS_FILE: &str = "credentials.json";

/// The ids and keys of the first organization.
#[derive(Clone, Serialize, Deserialize)]
pub struct Credentials {
    /// The organization.
    pub organization_id: String,
    /// Its project `default`.
    pub project_id: String,
    /// For the project's trackers.
    pub public_key: String,
    /// For the management and analytics API: role owner, every scope.
    pub api_token: String,
    /// For making more organizations.
    pub root_token: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("project_id", &self.project_id).finish_non_exhaustive()
    }
}

impl From<&Initial> for Credentials {
    fn from(initial: &Initial) -> Self {
        Self {
            organization_id: initial.organization_id.to_string(),
            project_id: initial.project_id.to_string(),
            public_key: initial.public_key.clone(),
            api_token: initial.api_token.expose().to_owned(),
            root_token: initial.root_token.expose().to_owned(),
        }
    }
}

impl Credentials {
    /// Writes them into the data directory, readable by its owner only.
    ///
    /// # Errors
    /// Whatever the operating system says.
    pub fn save(&self, data_dir: &Path) -> Result<PathBuf, Failure> {
        let path = data_dir.join(CREDENTIALS_FILE);
        let mut text = serde_json::to_string_pretty(self).map_err(|error| Failure::new("credentials", error))?;
        text.push('\n');
        write_atomically(&path, text.as_bytes(), PRIVATE_FILE)
            .map_err(|error| Failure::new(&path.display().to_string(), error))?;
        Ok(path)
    }

    /// Reads them from the data directory. `None`: there are none (whoever runs the server may have removed them).
    ///
    /// # Errors
    /// The file can't be read, or is something else.
    pub fn load(data_dir: &Path) -> Result<Option<Self>, Failure> {
        let path = data_dir.join(CREDENTIALS_FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::new(&path.display().to_string(), error)),
        };
        let credentials = serde_json::from_slice(&text);
        credentials.map(Some).map_err(|_| Failure(format!("{} is not what `headcount init` wrote", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn they_are_private_and_come_back() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Credentials::load(dir.path()).unwrap().is_none());
        let of = |text: &str| text.to_owned();
        let credentials = Credentials {
            organization_id: of("org_1"),
            project_id: of("prj_1"),
            public_key: of("pk_1"),
            api_token: of("sk_1"),
            root_token: of("rk_1"),
        };
        let path = credentials.save(dir.path()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Credentials::load(dir.path()).unwrap().unwrap().api_token, "sk_1");
        assert!(!format!("{credentials:?}").contains("sk_1"));
    }
}
