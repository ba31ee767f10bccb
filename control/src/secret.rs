//! Secrets: generation, one-time display, and storage as a hash. Also the authority of a request,
//! and the operator token, which is valid while one server runs.

use std::path::Path;
use std::{fmt, io};

use headcount_common::ControlError;
use headcount_storage::files::{PRIVATE_FILE, write_atomically};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::names::Role;

/// The prefix of API tokens.
pub const TOKEN_PREFIX: &str = "sk_";
/// The prefix of public keys.
pub const PUBLIC_KEY_PREFIX: &str = "pk_";
/// The prefix of root tokens.
pub const ROOT_TOKEN_PREFIX: &str = "rk_";
/// The prefix of the secrets of shares.
pub const SHARE_PREFIX: &str = "sh_";
/// The prefix of the secrets of browser sessions. Only cookies hold them.
pub const SESSION_PREFIX: &str = "ss_";
/// The prefix of the codes that begin a session.
pub const SIGN_IN_CODE_PREFIX: &str = "lc_";
/// The prefix of operator tokens.
pub(super) const OPERATOR_TOKEN_PREFIX: &str = "op_";
/// The number of random base62 characters after the prefix: 190 bits.
pub const KEY_CHARACTERS: usize = 32;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The largest multiple of 62 that fits a byte. Bytes from here on are rejected, as they would
/// favour the first characters.
const UNBIASED_BELOW: u8 = 248;

/// A token in plain text. It exists once, on its way to the client that requested it. Logs and
/// debug output never show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns a new secret that begins with `prefix`.
    ///
    /// # Errors
    /// Returns [`ControlError::Random`].
    pub fn random(prefix: &str) -> Result<Self, ControlError> {
        random_key(prefix, KEY_CHARACTERS).map(Secret)
    }

    /// Makes a secret that is computed from another one.
    pub fn derived(text: String) -> Self {
        Self(text)
    }

    /// Returns the secret, for display to its owner only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

/// The stored form of a secret: its SHA-256. A random secret of 190 bits needs neither a salt nor a
/// slow hash.
///
/// Comparison takes constant time, including in map lookups.
#[derive(Clone, Copy, Eq, PartialOrd, Ord)]
pub(super) struct SecretHash([u8; 32]);

impl SecretHash {
    pub(super) fn of(secret: &str) -> Self {
        SecretHash(Sha256::digest(secret.as_bytes()).into())
    }

    /// The hash of no known secret.
    #[cfg(feature = "cluster")]
    pub(super) fn of_nothing() -> Self {
        SecretHash([0; 32])
    }

    /// Returns the hash as hexadecimal digits.
    pub(super) fn to_hex(self) -> String {
        hex(&self.0)
    }
}

impl PartialEq for SecretHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::hash::Hash for SecretHash {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(redacted)")
    }
}

impl Serialize for SecretHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for SecretHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        from_hex(&text).map(SecretHash).ok_or_else(|| serde::de::Error::custom("not 64 hexadecimal digits"))
    }
}

/// Whether `text` is `prefix` followed by [`KEY_CHARACTERS`] base62 characters.
pub(super) fn is_key(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix)
        .is_some_and(|rest| rest.len() == KEY_CHARACTERS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Generates `prefix` followed by random base62 characters from the operating system's generator.
pub(super) fn random_key(prefix: &str, characters: usize) -> Result<String, ControlError> {
    let mut key = String::with_capacity(prefix.len() + characters);
    key.push_str(prefix);
    let mut bytes = [0u8; 64];
    while key.len() < prefix.len() + characters {
        getrandom::fill(&mut bytes).map_err(ControlError::Random)?;
        let missing = prefix.len() + characters - key.len();
        let usable = bytes.iter().filter(|byte| **byte < UNBIASED_BELOW);
        key.extend(usable.take(missing).map(|byte| char::from(BASE62[usize::from(byte % 62)])));
    }
    Ok(key)
}

/// Returns 64 random bits, for ids.
pub(super) fn random_u64() -> Result<u64, ControlError> {
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes).map_err(ControlError::Random)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Formats `bytes` as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8; 32]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0u8; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |d: u8| char::from(d).to_digit(16).and_then(|d| u8::try_from(d).ok());
        *byte = digit(digits[0])? << 4 | digit(digits[1])?;
    }
    Some(bytes)
}

/// The credential of a request, and its role when the request was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    pub(super) secret: SecretHash,
    pub(super) role: Role,
}

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

    /// Whether `bearer` is the token. Takes the same time for every other text of its length.
    pub fn is(&self, bearer: &str) -> bool {
        self.0 == SecretHash::of(bearer)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn keys_are_a_prefix_and_32_base62_characters() {
        let secret = Secret::random(TOKEN_PREFIX).unwrap();
        assert!(is_key(secret.expose(), TOKEN_PREFIX), "{}", secret.expose());
        assert!(!is_key(secret.expose(), PUBLIC_KEY_PREFIX));
        assert_ne!(secret, Secret::random(TOKEN_PREFIX).unwrap());
        for bad in ["", "sk_", "sk_0123456789abcdef0123456789abcde", "sk_0123456789abcdef0123456789abcde-"] {
            assert!(!is_key(bad, TOKEN_PREFIX), "{bad}");
        }
    }

    #[test]
    fn every_character_is_drawn_about_equally_often() {
        let drawn = random_key("", 62_000).unwrap();
        for character in BASE62 {
            let times = drawn.bytes().filter(|byte| byte == character).count();
            assert!((800..1_200).contains(&times), "{} was drawn {times} times", char::from(*character));
        }
    }

    #[test]
    fn a_hash_reads_back_from_json_and_debug_shows_nothing() {
        let hash = SecretHash::of("abc");
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(json, "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"");
        assert_eq!(serde_json::from_str::<SecretHash>(&json).unwrap(), hash);
        assert!(serde_json::from_str::<SecretHash>("\"ba78\"").is_err());
        assert_eq!(format!("{hash:?} {:?}", Secret("sk_x".into())), "SecretHash(redacted) Secret(redacted)");
    }

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
