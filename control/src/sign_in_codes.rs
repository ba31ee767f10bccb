//! Codes that sign a browser in once, within minutes. They are only in memory, so a restart ends
//! them: in that of one machine, or of the brokers of a cluster.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use headcount_common::{ControlError, DocumentsError, SharedValues};
use headcount_domain::{Instant, OrganizationId};
use headcount_storage::log::{LogError, RemoteFailure};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::secret::SecretHash;
use super::{RegistryError, Result, TokenId};

/// The seconds for which a code is valid.
pub const SIGN_IN_CODE_SECONDS: i64 = 5 * 60;
/// The maximum number of codes of an organization. One more ends the oldest.
pub const MAX_SIGN_IN_CODES: usize = 100;
/// The maximum number of codes of a token, whose holder may have the lowest role. One more ends its
/// oldest.
pub const MAX_SIGN_IN_CODES_OF_TOKEN: usize = 10;

/// The token of a code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CodeTarget {
    pub(super) organization: OrganizationId,
    pub(super) token: TokenId,
}

#[derive(Debug, Serialize, Deserialize)]
struct Code {
    target: CodeTarget,
    expires_at: Instant,
}

impl Code {
    /// Decodes a value; `None` if it has expired.
    fn target_of(value: &[u8], now: Instant) -> Result<Option<CodeTarget>> {
        let Self { target, expires_at } = serde_json::from_slice(value).map_err(unavailable)?;
        Ok((now < expires_at).then_some(target))
    }
}

/// The codes of an installation, by the hash of the code as hexadecimal digits. The machines of a
/// cluster share them, so any machine accepts a code that another one has made.
#[derive(Debug)]
pub(super) struct SignInCodes {
    values: Arc<dyn SharedValues>,
    /// The unused codes that this machine has made for each organization, oldest first.
    made: Mutex<HashMap<OrganizationId, VecDeque<MadeCode>>>,
}

#[derive(Debug)]
struct MadeCode {
    hash: SecretHash,
    token: TokenId,
    expires_at: Instant,
}

impl SignInCodes {
    pub(super) fn new(values: Arc<dyn SharedValues>) -> Self {
        Self { values, made: Mutex::default() }
    }

    /// Adds a code, and returns its expiry. If there are too many, the oldest one of the same token
    /// ends, or else the oldest of all.
    pub(super) fn add(&self, hash: SecretHash, target: CodeTarget, now: Instant) -> Result<Instant> {
        let expires_at = now.plus_ms(SIGN_IN_CODE_SECONDS * 1_000);
        if let Some(ended) = self.note(MadeCode { hash, token: target.token.clone(), expires_at }, target.organization, now) {
            self.values.remove(&ended.to_hex()).map_err(unavailable)?;
        }
        let (key, value) = (hash.to_hex(), serde_json::to_vec(&Code { target, expires_at }).map_err(unavailable)?);
        // Nobody else writes this key, so a conflict comes from the first attempt.
        match self.values.write(&key, &value, 0).or_else(|_| self.values.write(&key, &value, 0)) {
            Ok(_) | Err(DocumentsError::Conflict) => Ok(expires_at),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Notes a code of this machine, and returns the code that it ended.
    fn note(&self, code: MadeCode, organization: OrganizationId, now: Instant) -> Option<SecretHash> {
        let mut made = self.made.lock();
        let codes = made.entry(organization).or_default();
        codes.retain(|known| now < known.expires_at);
        let of_token = codes.iter().filter(|known| known.token == code.token).count();
        let is_full = of_token >= MAX_SIGN_IN_CODES_OF_TOKEN || codes.len() >= MAX_SIGN_IN_CODES;
        let place = codes.iter().position(|known| known.token == code.token).unwrap_or(0);
        let ended = is_full.then(|| codes.remove(place)).flatten();
        codes.push_back(code);
        ended.map(|ended| ended.hash)
    }

    /// Returns the target of a code without using it; `None` if the code is unknown, used or
    /// expired.
    pub(super) fn look(&self, hash: &SecretHash, now: Instant) -> Result<Option<CodeTarget>> {
        match self.values.read(&hash.to_hex()).map_err(unavailable)? {
            Some((value, _)) => Code::target_of(&value, now),
            None => Ok(None),
        }
    }

    /// Uses a code, and returns its target; `None` if the code is unknown, used or expired.
    pub(super) fn take(&self, hash: &SecretHash, now: Instant) -> Result<Option<CodeTarget>> {
        let key = hash.to_hex();
        let Some((value, revision)) = self.values.read(&key).map_err(unavailable)? else { return Ok(None) };
        match self.values.write(&key, b"", revision) {
            Ok(_) => {}
            // Another caller or machine has just used it.
            Err(DocumentsError::Conflict) => return Ok(None),
            Err(error) => return Err(unavailable(error)),
        }
        let target = Code::target_of(&value, now)?;
        if let Some(target) = &target
            && let Some(codes) = self.made.lock().get_mut(&target.organization)
        {
            codes.retain(|known| known.hash != *hash);
        }
        Ok(target)
    }
}

fn unavailable(source: impl std::error::Error + Send + Sync + 'static) -> RegistryError {
    ControlError::Log(LogError::Remote { kind: RemoteFailure::Unavailable, source: Box::new(source) }).into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use headcount_common::local::MemoryValues;

    use super::*;

    const NOW: Instant = Instant(1_700_000_000_000);

    fn codes() -> SignInCodes {
        SignInCodes::new(Arc::new(MemoryValues::new(Duration::from_secs(600))))
    }

    fn target(organization: u64) -> CodeTarget {
        CodeTarget { organization: OrganizationId(organization), token: TokenId::random().unwrap() }
    }

    fn hash(i: usize) -> SecretHash {
        SecretHash::of(&i.to_string())
    }

    /// The numbers of the codes that are valid now.
    fn valid(codes: &SignInCodes, numbers: std::ops::RangeInclusive<usize>) -> Vec<usize> {
        numbers.filter(|i| codes.look(&hash(*i), NOW).unwrap().is_some()).collect()
    }

    #[test]
    fn a_code_is_taken_once_and_in_time() {
        let codes = codes();
        let (first, second) = (target(1), target(1));
        assert_eq!(codes.add(hash(1), first.clone(), NOW).unwrap(), NOW.plus_ms(300_000));
        codes.add(hash(2), second, NOW).unwrap();
        assert_eq!(codes.take(&hash(3), NOW).unwrap(), None);
        assert_eq!(codes.look(&hash(1), NOW).unwrap(), Some(first.clone()), "looking does not use it");
        assert_eq!(codes.take(&hash(1), NOW.plus_ms(299_999)).unwrap(), Some(first));
        assert_eq!(codes.take(&hash(1), NOW).unwrap(), None, "it was used");
        assert_eq!(codes.take(&hash(2), NOW.plus_ms(300_000)).unwrap(), None, "it has expired");
    }

    /// Values that another machine takes as soon as they were read.
    #[derive(Debug)]
    struct TakenMeanwhile(MemoryValues);

    impl SharedValues for TakenMeanwhile {
        fn read(&self, key: &str) -> Result<Option<(Vec<u8>, u64)>, DocumentsError> {
            let found = self.0.read(key)?;
            found.iter().try_for_each(|(_, revision)| self.0.write(key, b"", *revision).map(drop))?;
            Ok(found)
        }

        fn write(&self, key: &str, value: &[u8], revision: u64) -> Result<u64, DocumentsError> {
            self.0.write(key, value, revision)
        }

        fn remove(&self, key: &str) -> Result<(), DocumentsError> {
            self.0.remove(key)
        }

        fn keys(&self, prefix: &str) -> Result<Vec<String>, DocumentsError> {
            self.0.keys(prefix)
        }

        fn max_bytes(&self) -> usize {
            self.0.max_bytes()
        }
    }

    #[test]
    fn a_code_that_another_machine_uses_meanwhile_is_refused() {
        let codes = SignInCodes::new(Arc::new(TakenMeanwhile(MemoryValues::new(Duration::from_secs(600)))));
        codes.add(hash(1), target(1), NOW).unwrap();
        assert_eq!(codes.take(&hash(1), NOW).unwrap(), None);
    }

    #[test]
    fn codes_are_bounded_by_organization_and_time() {
        let codes = codes();
        codes.add(hash(0), target(2), NOW).unwrap();
        for i in 1..=MAX_SIGN_IN_CODES + 5 {
            codes.add(hash(i), target(1), NOW).unwrap();
        }
        let left: Vec<usize> = (6..=MAX_SIGN_IN_CODES + 5).collect();
        assert_eq!(valid(&codes, 1..=MAX_SIGN_IN_CODES + 5), left, "the oldest ended");
        assert!(codes.take(&hash(6), NOW).unwrap().is_some() && codes.take(&hash(0), NOW).unwrap().is_some());
        codes.add(hash(1_000), target(1), NOW.plus_ms(300_000)).unwrap();
        assert_eq!(codes.made.lock()[&OrganizationId(1)].len(), 1, "those of before have expired");
    }

    /// A token that reaches its own limit ends no code of another token.
    #[test]
    fn a_token_has_a_part_of_the_codes() {
        let codes = codes();
        let (owner, member) = (target(1), target(1));
        codes.add(hash(0), owner, NOW).unwrap();
        let count = 3 * MAX_SIGN_IN_CODES;
        for i in 1..=count {
            codes.add(hash(i), member.clone(), NOW).unwrap();
        }
        let left: Vec<usize> = [0].into_iter().chain(count + 1 - MAX_SIGN_IN_CODES_OF_TOKEN..=count).collect();
        assert_eq!(valid(&codes, 0..=count), left);
        // This also applies in an organization that has reached its limit.
        for i in 1_000..2_000 {
            codes.add(hash(i), target(1), NOW).unwrap();
        }
        codes.add(hash(3_000), member.clone(), NOW).unwrap();
        codes.add(hash(3_001), member, NOW).unwrap();
        assert_eq!(valid(&codes, 3_000..=3_001), [3_001]);
        assert_eq!(codes.made.lock()[&OrganizationId(1)].len(), MAX_SIGN_IN_CODES);
    }
}
