//! The ids and keys of the first organization. The data directory keeps them for the commands that
//! run beside a server.

use std::path::Path;

use headcount_actors::Engine;
use headcount_control::{Initial, Principal, SIGN_IN_CODE_SECONDS};
use headcount_storage::files::{self, PRIVATE_FILE, write_atomically};
use serde::{Deserialize, Serialize};

use crate::command::failure::Failure;

/// The file in the data directory.
pub const CREDENTIALS_FILE: &str = "credentials.json";

/// The ids and keys of the first organization.
#[derive(Serialize, Deserialize)]
pub struct InitialCredentials {
    /// The organization.
    pub organization_id: String,
    /// Its project `default`.
    pub project_id: String,
    /// The key for the project's trackers.
    pub public_key: String,
    /// The token for the management and analytics API: role owner, every scope.
    pub api_token: String,
    /// The token that creates more organizations.
    pub root_token: String,
}

impl From<&Initial> for InitialCredentials {
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

impl InitialCredentials {
    /// Writes the file. Only its owner can read it.
    pub fn save(&self, data_dir: &Path) -> Result<(), Failure> {
        let path = data_dir.join(CREDENTIALS_FILE);
        let mut text = serde_json::to_string_pretty(self).map_err(|error| Failure::new("credentials", error))?;
        text.push('\n');
        write_atomically(&path, text.as_bytes(), PRIVATE_FILE).map_err(|error| Failure::new(path.display(), error))
    }

    /// Reads the file. Returns `None` without a file; operators may remove it.
    pub fn load(data_dir: &Path) -> Result<Option<Self>, Failure> {
        let path = data_dir.join(CREDENTIALS_FILE);
        let text = files::read_if_there(&path).map_err(|error| Failure::new(path.display(), error))?;
        let Some(text) = text else { return Ok(None) };
        let credentials = serde_json::from_slice(&text);
        credentials.map(Some).map_err(|_| Failure(format!("{} was not written by `headcount init`", path.display())))
    }

    /// Creates a sign-in link of the API token at this process's engine, and formats it as text.
    pub fn sign_in(&self, engine: &Engine, base_url: &str) -> Result<String, Failure> {
        let (registry, now) = (engine.registry(), engine.clock().now());
        let Ok(Principal::Token(holder)) = registry.authenticate(&self.api_token, now) else {
            return Err(Failure("the first token is not valid".into()));
        };
        let (code, _) = registry.create_sign_in_code(holder.token.organization, &holder.token.token_id, now)?;
        Ok(describe_sign_in(&format!("{base_url}/#code={}", code.expose())))
    }
}

/// Formats a link with a code as text.
pub fn describe_sign_in(url: &str) -> String {
    format!("{url}\nOpen this link to sign a browser in. It works once, within {} minutes.", SIGN_IN_CODE_SECONDS / 60)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn credentials_are_private_and_come_back() {
        let dir = tempfile::tempdir().unwrap();
        assert!(InitialCredentials::load(dir.path()).unwrap().is_none());
        let of = |text: &str| text.to_owned();
        let credentials = InitialCredentials {
            organization_id: of("org_1"),
            project_id: of("prj_1"),
            public_key: of("pk_1"),
            api_token: of("sk_1"),
            root_token: of("rk_1"),
        };
        credentials.save(dir.path()).unwrap();
        let path = dir.path().join(CREDENTIALS_FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(InitialCredentials::load(dir.path()).unwrap().unwrap().api_token, "sk_1");
    }
}
