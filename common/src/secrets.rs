//! The installation's secret keys, in their own files (mode 0600), outside the store and outside
//! copies of the data.
//!
//! - `hash.key` keys the records and fingerprints in the store. The secrets that sign notifications
//!   are derived from it. If it is lost, the state must be rebuilt from the log, and each receiver
//!   needs a new secret.
//! - `salts` holds the visitor salts of the days that are today or yesterday in UTC or some
//!   timezone. Older ones are overwritten within a minute, so nobody can link older visitors, not
//!   even the operator.

use std::fmt;
use std::path::{Path, PathBuf};

use headcount_domain::{Day, Instant, KeyHasher};
use headcount_storage::files::{self, PRIVATE_FILE, write_atomically};
use hmac::{Hmac, Mac as _};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::node_token::NodeToken;

/// The directory of the keys in a data directory.
pub const KEYS_DIR: &str = "keys";
/// The file of the hash key in [`KEYS_DIR`].
const HASH_KEY: &str = "hash.key";
/// The file of the visitor salts in [`KEYS_DIR`].
const SALTS: &str = "salts";
/// The text that the hash key signs, so that other machines recognize the key without seeing it.
const SIGNED: &[u8] = b"headcount hash.key";

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
    /// The machines of a cluster share the salts of visitors, and the salt of the day has not
    /// arrived yet.
    #[error("the visitor salt of the day is not known yet")]
    NoSalt,
    /// The existing key differs from the key to copy.
    #[error("{0} is another key than that of the installation that moves in: choose an empty directory")]
    Other(PathBuf),
    /// A file has unexpected contents.
    #[error("{0} is damaged; restore it, or remove it and let the store be rebuilt")]
    Damaged(PathBuf),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Salt {
    /// Days since 1970-01-01, of the calendar of any timezone.
    day: i64,
    salt: [u8; 16],
}

/// Signs with the installation's key. Debug output never shows the key.
#[derive(Clone)]
pub struct Signer([u8; 16]);

impl Signer {
    /// Returns the HMAC-SHA256 of the concatenated `parts`. The first part names the purpose of the
    /// signature.
    pub fn sign(&self, parts: &[&[u8]]) -> Vec<u8> {
        // HMAC takes keys of every length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return Vec::new() };
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().to_vec()
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer(redacted)")
    }
}

/// The installation's keys.
#[derive(Debug)]
pub struct Secrets {
    dir: PathBuf,
    hasher: KeyHasher,
    node_token: NodeToken,
    signer: Signer,
    salts: RwLock<Vec<Salt>>,
    /// Whether this machine makes the salts of new days. The machines of a cluster agree on them
    /// instead.
    makes_salts: bool,
}

impl Secrets {
    /// Opens the key files in `dir`, creating those that are absent.
    ///
    /// # Errors
    /// A file can't be read, written or understood.
    pub fn open(dir: &Path) -> Result<Self, SecretsError> {
        std::fs::create_dir_all(dir).map_err(|source| SecretsError::Io { path: dir.to_owned(), source })?;
        let key = match hash_key(dir)? {
            Some(key) => key,
            None => {
                let key = random()?;
                write(&dir.join(HASH_KEY), &key)?;
                key
            }
        };
        let salts = read_salts(dir)?;
        let (hasher, node_token, signer) = (KeyHasher::new(key), NodeToken::derive(&key), Signer(key));
        Ok(Self { dir: dir.to_owned(), hasher, node_token, signer, salts: RwLock::new(salts), makes_salts: true })
    }

    /// Like [`Secrets::open`], on a machine of a cluster, where the machines agree on the salts of
    /// new days.
    ///
    /// # Errors
    /// Returns the same errors as [`Secrets::open`].
    pub fn open_shared(dir: &Path) -> Result<Self, SecretsError> {
        Ok(Self { makes_salts: false, ..Self::open(dir)? })
    }

    /// Returns the hasher with the installation's key.
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// Returns the signer that uses the installation's key.
    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    /// Returns the token of the machines that have the installation's key.
    pub fn node_token(&self) -> &NodeToken {
        &self.node_token
    }

    /// Returns the visitor salt of a day that is today in some timezone. Creates it on a new day.
    ///
    /// # Errors
    /// The new salt can't be made durable, or the machines of a cluster have not agreed on it yet.
    pub fn salt(&self, day: Day) -> Result<[u8; 16], SecretsError> {
        let day = i64::from(day.0);
        if let Some(salt) = find(&self.salts.read(), day) {
            return Ok(salt);
        }
        if !self.makes_salts {
            return Err(SecretsError::NoSalt);
        }
        let mut salts = self.salts.write();
        if let Some(salt) = find(&salts, day) {
            return Ok(salt);
        }
        let salt = random()?;
        self.keep(&mut salts, Salt { day, salt })?;
        Ok(salt)
    }

    /// Returns the visitor salt of a day, if it is known.
    pub fn known_salt(&self, day: i64) -> Option<[u8; 16]> {
        find(&self.salts.read(), day)
    }

    /// Stores the salt of a day on which the machines of a cluster agreed.
    ///
    /// # Errors
    /// It can't be made durable.
    pub fn set_salt(&self, day: i64, salt: [u8; 16]) -> Result<(), SecretsError> {
        let mut salts = self.salts.write();
        if find(&salts, day) == Some(salt) {
            return Ok(());
        }
        self.keep(&mut salts, Salt { day, salt })
    }

    /// Forgets the salts of old days. Keeps the days next to `known`, the time as of which data may
    /// be removed, next to `shown`, the time of the clock, and all days between.
    ///
    /// # Errors
    /// They can't be removed from the file.
    pub fn forget_salts(&self, known: Instant, shown: Instant) -> Result<(), SecretsError> {
        let kept = (known.min(shown).utc_day() - 1)..=(known.max(shown).utc_day() + 1);
        let mut salts = self.salts.write();
        if salts.iter().all(|salt| kept.contains(&salt.day)) {
            return Ok(());
        }
        let left = salts.iter().filter(|salt| kept.contains(&salt.day)).copied().collect();
        self.replace(&mut salts, left)
    }

    /// Writes the salts with a new one.
    fn keep(&self, salts: &mut Vec<Salt>, new: Salt) -> Result<(), SecretsError> {
        let others = salts.iter().filter(|salt| salt.day != new.day).copied();
        let with_new = others.chain([new]).collect();
        self.replace(salts, with_new)
    }

    fn replace(&self, salts: &mut Vec<Salt>, kept: Vec<Salt>) -> Result<(), SecretsError> {
        let bytes = serde_json::to_vec(&kept).unwrap_or_default();
        write(&self.dir.join(SALTS), &bytes)?;
        *salts = kept;
        Ok(())
    }
}

/// Creates the keys in `data_dir`, unless they exist.
///
/// # Errors
/// A file can't be read, written or understood.
pub fn create(data_dir: &Path) -> Result<(), SecretsError> {
    Secrets::open(&data_dir.join(KEYS_DIR)).map(drop)
}

/// Returns the signer that uses the key of a data directory or a backup.
///
/// # Errors
/// There is no key, or it can't be read.
pub fn signer(data_dir: &Path) -> Result<Signer, SecretsError> {
    let dir = data_dir.join(KEYS_DIR);
    let missing = || SecretsError::Io { path: dir.join(HASH_KEY), source: std::io::ErrorKind::NotFound.into() };
    hash_key(&dir)?.map(Signer).ok_or_else(missing)
}

/// Copies the keys of another data directory, or of a backup, to `data_dir`. Keys that exist
/// already must be the same.
///
/// # Errors
/// A file can't be read or written, or [`SecretsError::Other`].
pub fn bring(from: &Path, data_dir: &Path) -> Result<(), SecretsError> {
    let (from, dir) = (from.join(KEYS_DIR), data_dir.join(KEYS_DIR));
    let Some(key) = hash_key(&from)? else { return Ok(()) };
    std::fs::create_dir_all(&dir).map_err(|source| SecretsError::Io { path: dir.clone(), source })?;
    match hash_key(&dir)? {
        None => write(&dir.join(HASH_KEY), &key)?,
        Some(own) if own == key => {}
        Some(_) => return Err(SecretsError::Other(dir.join(HASH_KEY))),
    }
    let salts = dir.join(SALTS);
    match read(&from.join(SALTS))? {
        Some(theirs) if read(&salts)?.is_none() => write(&salts, &theirs),
        _ => Ok(()),
    }
}

/// Returns a digest of `keys/hash.key` of `data_dir`, which does not reveal the key; `None` if
/// there is none. The machines of a cluster need the same key.
///
/// # Errors
/// The file can't be read or understood.
pub fn hash_key_digest(data_dir: &Path) -> Result<Option<String>, SecretsError> {
    let Some(key) = hash_key(&data_dir.join(KEYS_DIR))? else { return Ok(None) };
    Ok(Some(Signer(key).sign(&[SIGNED]).iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// Returns the visitor salts that `data_dir` has, each with its day (in days since 1970-01-01).
///
/// # Errors
/// The file can't be read or understood.
pub fn visitor_salts(data_dir: &Path) -> Result<Vec<(i64, [u8; 16])>, SecretsError> {
    Ok(read_salts(&data_dir.join(KEYS_DIR))?.into_iter().map(|Salt { day, salt }| (day, salt)).collect())
}

fn read_salts(dir: &Path) -> Result<Vec<Salt>, SecretsError> {
    let path = dir.join(SALTS);
    match read(&path)? {
        Some(bytes) => serde_json::from_slice(&bytes).map_err(|_| SecretsError::Damaged(path)),
        None => Ok(Vec::new()),
    }
}

fn hash_key(dir: &Path) -> Result<Option<[u8; 16]>, SecretsError> {
    let path = dir.join(HASH_KEY);
    let Some(bytes) = read(&path)? else { return Ok(None) };
    bytes.try_into().map(Some).map_err(|_| SecretsError::Damaged(path))
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
    fn a_digest_names_the_key_without_revealing_it() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(hash_key_digest(dir.path()).unwrap(), None);
        assert!(!dir.path().join(KEYS_DIR).exists(), "asking makes no key");
        create(dir.path()).unwrap();
        let (file, digest) = (dir.path().join(KEYS_DIR).join(HASH_KEY), hash_key_digest(dir.path()).unwrap());
        create(dir.path()).unwrap();
        assert_eq!(hash_key_digest(dir.path()).unwrap(), digest);
        std::fs::write(&file, [7; 16]).unwrap();
        // Computed with the `hmac` module of Python.
        assert_eq!(
            hash_key_digest(dir.path()).unwrap().unwrap(),
            "032b8ceea17fd2a4446b340c8ebf6958df5db0d9939a8e0456aa283f6a7d406c"
        );
        std::fs::write(&file, [7; 15]).unwrap();
        assert!(matches!(hash_key_digest(dir.path()), Err(SecretsError::Damaged(_))));
    }

    #[test]
    fn machines_that_share_salts_make_none() {
        let dir = tempfile::tempdir().unwrap();
        let day = |n: i64| Instant(n * MS_PER_DAY + 5);
        let secrets = Secrets::open_shared(dir.path()).unwrap();
        assert!(matches!(secrets.salt(Day(100)), Err(SecretsError::NoSalt)));
        secrets.set_salt(100, [1; 16]).unwrap();
        secrets.set_salt(101, [2; 16]).unwrap();
        assert_eq!(secrets.salt(Day(100)).unwrap(), [1; 16]);
        drop(secrets);
        let secrets = Secrets::open_shared(dir.path()).unwrap();
        assert_eq!((secrets.known_salt(100), secrets.known_salt(101)), (Some([1; 16]), Some([2; 16])));
        // The salt of the other machines wins.
        secrets.set_salt(101, [3; 16]).unwrap();
        assert_eq!(secrets.salt(Day(101)).unwrap(), [3; 16]);
        secrets.set_salt(102, [4; 16]).unwrap();
        secrets.forget_salts(day(102), day(102)).unwrap();
        assert_eq!(secrets.known_salt(100), None, "it has expired");
    }

    #[test]
    fn keys_stay_and_salts_go() {
        let dir = tempfile::tempdir().unwrap();
        let day = |n: i64| Instant(n * MS_PER_DAY + 5);
        let secrets = Secrets::open(dir.path()).unwrap();
        let first = secrets.salt(Day(100)).unwrap();
        let key = secrets.hasher().user("a");
        drop(secrets);
        let secrets = Secrets::open(dir.path()).unwrap();
        assert_eq!(secrets.hasher().user("a"), key);
        assert_eq!(secrets.salt(Day(100)).unwrap(), first);
        assert_ne!(secrets.salt(Day(101)).unwrap(), first);
        assert_eq!(secrets.salt(Day(100)).unwrap(), first, "two days are kept");
        let file = || String::from_utf8(std::fs::read(dir.path().join("salts")).unwrap()).unwrap();
        let needle = serde_json::to_string(&first).unwrap();
        secrets.forget_salts(day(101), day(101)).unwrap();
        assert!(file().contains(&needle));
        // No visitor has come since.
        secrets.forget_salts(day(102), day(102)).unwrap();
        assert!(!file().contains(&needle) && secrets.known_salt(100).is_none());
    }

    #[test]
    fn a_clock_that_is_not_believed_removes_no_salt() {
        let dir = tempfile::tempdir().unwrap();
        let day = |n: i64| Instant(n * MS_PER_DAY + 5);
        let secrets = Secrets::open(dir.path()).unwrap();
        let first = secrets.salt(Day(100)).unwrap();
        // The clock shows another year, then 1970, and is corrected.
        secrets.salt(Day(4_000)).unwrap();
        secrets.forget_salts(day(100), day(4_000)).unwrap();
        secrets.forget_salts(day(100), day(0)).unwrap();
        assert_eq!(secrets.salt(Day(100)).unwrap(), first);
        secrets.forget_salts(day(100), day(100)).unwrap();
        assert_eq!((secrets.known_salt(100), secrets.known_salt(4_000)), (Some(first), None), "it is not kept until then");
    }
}
