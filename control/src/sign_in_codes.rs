//! Codes that sign a browser in once, within minutes. They are only in memory, so a restart ends
//! them. The machines of a cluster share them in the memory of the brokers, so any machine accepts
//! a code that another one has made.

use std::collections::{HashMap, VecDeque};

use headcount_common::{ControlError, DocumentsError, SharedValues};
use headcount_domain::ids::OrganizationId;
use headcount_domain::time::Instant;
use headcount_storage::log::{LogError, RemoteFailure};
use serde::{Deserialize, Serialize};

use super::secret::SecretHash;
use super::{RegistryError, TokenId};

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
    /// Decodes a shared value; `None` if it has expired.
    fn target_of(value: &[u8], now: Instant) -> Result<Option<CodeTarget>, RegistryError> {
        let Self { target, expires_at } = serde_json::from_slice(value).map_err(|error| unavailable(error.into()))?;
        Ok((now < expires_at).then_some(target))
    }
}

/// The codes that the machines of a cluster share. Keys are hashes of codes, as hexadecimal digits.
/// Values vanish [`SIGN_IN_CODE_SECONDS`] after they were written. Its functions may block.
#[derive(Debug)]
pub(super) struct SharedSignIns(pub(super) Box<dyn SharedValues>);

impl SharedSignIns {
    /// Adds a code with its expiry, and removes the code that it ended.
    pub(super) fn add(&self, hash: &SecretHash, target: CodeTarget, added: &Added) -> Result<(), RegistryError> {
        if let Some(former) = &added.ended {
            self.0.remove(&former.to_hex()).map_err(|error| unavailable(error.into()))?;
        }
        let code = Code { target, expires_at: added.expires_at };
        let value = serde_json::to_vec(&code).map_err(|error| unavailable(error.into()))?;
        self.0.write(&hash.to_hex(), &value, 0).map(drop).map_err(|error| unavailable(error.into()))
    }

    /// Returns the target of a code without using it; `None` if the code is unknown, used or
    /// expired.
    pub(super) fn look(&self, hash: &SecretHash, now: Instant) -> Result<Option<CodeTarget>, RegistryError> {
        let found = self.0.read(&hash.to_hex()).map_err(|error| unavailable(error.into()))?;
        found.map_or(Ok(None), |(value, _)| Code::target_of(&value, now))
    }

    /// Uses a code, and returns its target to one caller only; `None` if the code is unknown, used
    /// or expired.
    pub(super) fn take(&self, hash: &SecretHash, now: Instant) -> Result<Option<CodeTarget>, RegistryError> {
        let Some((value, revision)) = self.0.read(&hash.to_hex()).map_err(|error| unavailable(error.into()))? else {
            return Ok(None);
        };
        // An empty value stays, so that no other machine accepts the code.
        match self.0.write(&hash.to_hex(), b"", revision) {
            Ok(_) => Code::target_of(&value, now),
            Err(DocumentsError::Conflict) => Ok(None),
            Err(error) => Err(unavailable(error.into())),
        }
    }
}

fn unavailable(source: Box<dyn std::error::Error + Send + Sync>) -> RegistryError {
    ControlError::Log(LogError::Remote { kind: RemoteFailure::Unavailable, source }).into()
}

/// An added code.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Added {
    /// The time at which it expires.
    pub(super) expires_at: Instant,
    /// The code that it ended, if there were too many.
    pub(super) ended: Option<SecretHash>,
}

/// The unused codes.
#[derive(Debug, Default)]
pub(super) struct SignInCodes {
    codes: HashMap<SecretHash, Code>,
    /// The codes of each organization, oldest first, including used ones.
    order: HashMap<OrganizationId, VecDeque<SecretHash>>,
}

impl SignInCodes {
    /// Adds a code, and removes the expired codes of its organization. If there are too many, the
    /// oldest one of the same token ends, or else the oldest of all.
    pub(super) fn add(&mut self, hash: SecretHash, target: CodeTarget, now: Instant) -> Added {
        let expires_at = now.plus_ms(SIGN_IN_CODE_SECONDS * 1_000);
        let order = self.order.entry(target.organization).or_default();
        order.retain(|hash| self.codes.get(hash).is_some_and(|code| now < code.expires_at));
        let is_of_token = |hash: &SecretHash| self.codes.get(hash).is_some_and(|code| code.target.token == target.token);
        let of_token = order.iter().filter(|hash| is_of_token(hash)).count();
        let is_full = of_token >= MAX_SIGN_IN_CODES_OF_TOKEN || order.len() >= MAX_SIGN_IN_CODES;
        let place = order.iter().position(is_of_token).unwrap_or(0);
        let ended = is_full.then(|| order.remove(place)).flatten();
        if let Some(ended) = &ended {
            self.codes.remove(ended);
        }
        order.push_back(hash);
        self.codes.insert(hash, Code { target, expires_at });
        self.codes.retain(|_, code| now < code.expires_at);
        Added { expires_at, ended }
    }

    /// Returns the target of a code; `None` if it is unknown, used or expired.
    pub(super) fn look(&self, hash: &SecretHash, now: Instant) -> Option<CodeTarget> {
        self.codes.get(hash).filter(|code| now < code.expires_at).map(|code| code.target.clone())
    }

    /// Uses a code, and returns its target; `None` if it is unknown, used or expired.
    pub(super) fn take(&mut self, hash: &SecretHash, now: Instant) -> Option<CodeTarget> {
        let Code { target, expires_at } = self.codes.remove(hash)?;
        if let Some(order) = self.order.get_mut(&target.organization) {
            order.retain(|known| known != hash);
            if order.is_empty() {
                self.order.remove(&target.organization);
            }
        }
        (now < expires_at).then_some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1_700_000_000_000);

    fn target(organization: u64) -> CodeTarget {
        CodeTarget { organization: OrganizationId(organization), token: TokenId::random().unwrap() }
    }

    fn hash(i: usize) -> SecretHash {
        SecretHash::of(&i.to_string())
    }

    #[test]
    fn a_code_is_taken_once_and_in_time() {
        let mut codes = SignInCodes::default();
        let (first, second) = (target(1), target(1));
        let added = codes.add(hash(1), first.clone(), NOW);
        assert_eq!(added, Added { expires_at: NOW.plus_ms(300_000), ended: None });
        codes.add(hash(2), second, NOW);
        assert_eq!(codes.take(&hash(3), NOW), None);
        assert_eq!(codes.take(&hash(1), NOW.plus_ms(299_999)), Some(first));
        assert_eq!(codes.take(&hash(1), NOW), None, "it was used");
        assert_eq!(codes.take(&hash(2), NOW.plus_ms(300_000)), None, "it has expired");
        assert!(codes.codes.is_empty() && codes.order.is_empty());
    }

    #[test]
    fn codes_are_bounded_by_organization_and_time() {
        let mut codes = SignInCodes::default();
        codes.add(hash(0), target(2), NOW);
        for i in 1..=MAX_SIGN_IN_CODES + 5 {
            let ended = codes.add(hash(i), target(1), NOW).ended;
            let expected = i.checked_sub(MAX_SIGN_IN_CODES).filter(|first| *first > 0).map(hash);
            assert_eq!(ended, expected, "{i}");
        }
        assert_eq!(codes.codes.len(), MAX_SIGN_IN_CODES + 1);
        assert_eq!(codes.take(&hash(5), NOW), None, "the oldest ended");
        assert!(codes.take(&hash(6), NOW).is_some() && codes.take(&hash(0), NOW).is_some());
        codes.add(hash(1_000), target(1), NOW.plus_ms(300_000));
        assert_eq!((codes.codes.len(), codes.order[&OrganizationId(1)].len()), (1, 1), "those of before have expired");
    }

    /// A token that reaches its own limit ends no code of another token.
    #[test]
    fn a_token_has_a_part_of_the_codes() {
        let mut codes = SignInCodes::default();
        let (owner, member) = (target(1), target(1));
        codes.add(hash(0), owner.clone(), NOW);
        for i in 1..=3 * MAX_SIGN_IN_CODES {
            let ended = codes.add(hash(i), member.clone(), NOW).ended;
            let expected = i.checked_sub(MAX_SIGN_IN_CODES_OF_TOKEN).filter(|first| *first > 0).map(hash);
            assert_eq!(ended, expected, "{i}");
        }
        assert_eq!(codes.order[&OrganizationId(1)].len(), MAX_SIGN_IN_CODES_OF_TOKEN + 1);
        assert_eq!(codes.take(&hash(0), NOW), Some(owner));
        // This also applies in an organization that has reached its limit.
        for i in 1_000..2_000 {
            codes.add(hash(i), target(1), NOW);
        }
        codes.add(hash(3_000), member.clone(), NOW);
        assert_eq!(codes.add(hash(3_001), member, NOW).ended, Some(hash(3_000)));
        assert_eq!(codes.order[&OrganizationId(1)].len(), MAX_SIGN_IN_CODES);
    }
}
