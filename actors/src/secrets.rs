//! The installation's secret keys: in files of their own (mode 0600), outside the store and outside copies of the data.
//!
//! `hash.key` keys the records and fingerprints in the store. Losing it costs a rebuild from the log, nothing else. `salts`
//! holds the visitor salts of today and yesterday (UTC); older ones are overwritten, which makes older visitors unlinkable to
//! anybody, including the operator.

use std::path::{Path, PathBuf};

use headcount_domain::ids::KeyHasher;
use headcount_domain::time::Instant;
use headcount_storage::files::{self, PRIVATE_FILE, write_atomically};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::node_token::NodeToken;

/// A key file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The operating system gave no random numbers.
    #[error("no randomness: {0}")]
    Randomness(getrandom::Error),
    /// A file has unexpected contents.
    #[error("{0} is damaged; restore it, or remove it and let the store be rebuilt")]
    Damaged(PathBuf),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Salt {
    /// Days since 1970-01-01, UTC.
    day: i64,
    salt: [u8; 16],
}

/// The installation's keys.
#[derive(Debug)]
pub(crate) struct Secrets {
    dir: PathBuf,
    hasher: KeyHasher,
    node_token: NodeToken,
    salts: RwLock<Vec<Salt>>,
}

impl Secrets {
    /// Opens the key files in `dir`, creating those that are absent.
    ///
    /// # Errors
    /// A file can't be read, written or understood.
    pub(crate) fn open(dir: &Path) -> Result<Self, SecretsError> {
        std::fs::create_dir_all(dir).map_err(|source| SecretsError::Io { path: dir.to_owned(), source })?;
        let path = dir.join("hash.key");
        let key = match read(&path)? {
            Some(bytes) => bytes.try_into().map_err(|_| SecretsError::Damaged(path))?,
            None => {
                let key = random()?;
                write(&path, &key)?;
                key
            }
        };
        let path = dir.join("salts");
        let salts = match read(&path)? {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|_| SecretsError::Damaged(path))?,
            None => Vec::new(),
        };
        let (hasher, node_token) = (KeyHasher::new(key), NodeToken::derive(&key));
        Ok(Self { dir: dir.to_owned(), hasher, node_token, salts: RwLock::new(salts) })
    }

    /// Returns the hasher with the installation's key.
    #[must_use]
    pub(crate) fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// Returns the token of the machines that have the installation's key.
    pub(crate) fn node_token(&self) -> &NodeToken {
        &self.node_token
    }

    /// Returns the visitor salt of the UTC day of `now`. On a new day, creates it and forgets the expired ones.
    ///
    /// # Errors
    /// The new salt can't be made durable.
    pub(crate) fn salt(&self, now: Instant) -> Result<[u8; 16], SecretsError> {
        let day = now.utc_day();
        if let Some(salt) = find(&self.salts.read(), day) {
            return Ok(salt);
        }
        let mut salts = self.salts.write();
        if let Some(salt) = find(&salts, day) {
            return Ok(salt);
        }
        let mut kept: Vec<Salt> = salts.iter().filter(|salt| (day - salt.day).abs() <= 1).copied().collect();
        let salt = random()?;
        kept.push(Salt { day, salt });
        let bytes = serde_json::to_vec(&kept).unwrap_or_default();
        write(&self.dir.join("salts"), &bytes)?;
        *salts = kept;
        Ok(salt)
    }
}

fn find(salts: &[Salt], day: i64) -> Option<[u8; 16]> {
    salts.iter().find(|salt| salt.day == day).map(|salt| salt.salt)
}

fn random() -> Result<[u8; 16], SecretsError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(SecretsError::Randomness)?;
    Ok(bytes)
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, SecretsError> {
    files::read_if_there(path).map_err(|source| SecretsError::Io { path: path.to_owned(), source })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), SecretsError> {
    write_atomically(path, bytes, PRIVATE_FILE).map_err(|source| SecretsError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use headcount_domain::time::MS_PER_DAY;

    use super::*;

    #[test]
    fn keys_stay_and_salts_go() {
        let dir = tempfile::tempdir().unwrap();
        let day = |n: i64| Instant(n * MS_PER_DAY + 5);
        let secrets = Secrets::open(dir.path()).unwrap();
        let first = secrets.salt(day(100)).unwrap();
        let key = secrets.hasher().user("a");
        drop(secrets);
        let secrets = Secrets::open(dir.path()).unwrap();
        assert_eq!(secrets.hasher().user("a"), key);
        assert_eq!(secrets.salt(day(100)).unwrap(), first);
        assert_ne!(secrets.salt(day(101)).unwrap(), first);
        assert_eq!(secrets.salt(day(100)).unwrap(), first, "two days are kept");
        secrets.salt(day(102)).unwrap();
        let kept = std::fs::read(dir.path().join("salts")).unwrap();
        let needle = serde_json::to_string(&first).unwrap();
        assert!(!String::from_utf8(kept).unwrap().contains(&needle), "the third day's salt drives the first one out");
    }
}
