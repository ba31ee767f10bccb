//! The operator token, which is valid while one server runs.

use std::io;
use std::path::Path;

use headcount_storage::files::{PRIVATE_FILE, write_atomically};

use super::secret::{OPERATOR_TOKEN_PREFIX, Secret, SecretHash};

/// The file in the data directory with the operator token.
pub const OPERATOR_FILE: &str = "operator-token";

/// The check value of the operator token. A client that can read the file has the rights of the
/// operator. No other credential has them.
#[derive(Debug)]
pub struct OperatorToken(SecretHash);

impl OperatorToken {
    /// Makes a token and writes it to the file `operator-token` in `data_dir`, which only the owner
    /// of the directory can read. The token of the former start becomes invalid.
    ///
    /// # Errors
    /// There is no randomness, or the file can't be written.
    pub fn create(data_dir: &Path) -> io::Result<Self> {
        let secret = Secret::random(OPERATOR_TOKEN_PREFIX).map_err(io::Error::other)?;
        write_atomically(&data_dir.join(OPERATOR_FILE), format!("{}\n", secret.expose()).as_bytes(), PRIVATE_FILE)?;
        Ok(Self(SecretHash::of(secret.expose())))
    }

    /// Whether `bearer` is the token. The comparison takes the same time for every other text of
    /// its length.
    #[must_use]
    pub fn is(&self, bearer: &str) -> bool {
        self.0 == SecretHash::of(bearer)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::super::secret::is_key;
    use super::*;

    #[test]
    fn every_start_has_a_token_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(OPERATOR_FILE);
        let read = || fs::read_to_string(&path).unwrap().trim_end().to_owned();
        let first = OperatorToken::create(dir.path()).unwrap();
        let former = read();
        assert!(is_key(&former, OPERATOR_TOKEN_PREFIX) && first.is(&former));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let second = OperatorToken::create(dir.path()).unwrap();
        assert!(second.is(&read()) && !second.is(&former) && !second.is("op_"));
        assert!(!format!("{second:?}").contains(&read()[3..]));
        assert!(OperatorToken::create(&dir.path().join("none")).is_err());
    }
}
