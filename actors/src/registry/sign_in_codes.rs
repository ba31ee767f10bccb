//! Codes that sign a browser in once, within minutes. They are in memory only: a restart ends them.

use std::collections::{HashMap, VecDeque};

use headcount_domain::ids::OrganizationId;
use headcount_domain::time::Instant;

use super::ids::TokenId;
use super::secret::SecretHash;

/// For how many seconds a code is valid.
pub const SIGN_IN_CODE_SECONDS: i64 = 5 * 60;
/// The maximum number of codes of an organization. One more ends the oldest.
pub const MAX_SIGN_IN_CODES: usize = 100;

/// The token that a code stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodeTarget {
    pub(super) organization: OrganizationId,
    pub(super) token: TokenId,
}

#[derive(Debug)]
struct Code {
    target: CodeTarget,
    expires_at: Instant,
}

/// The codes that were not used.
#[derive(Debug, Default)]
pub(super) struct SignInCodes {
    codes: HashMap<SecretHash, Code>,
    /// The codes of each organization, oldest first, used ones too.
    order: HashMap<OrganizationId, VecDeque<SecretHash>>,
}

impl SignInCodes {
    /// Adds a code, and removes those of its organization that have expired or are too many. Returns when it expires.
    pub(super) fn add(&mut self, hash: SecretHash, target: CodeTarget, now: Instant) -> Instant {
        let expires_at = now.plus_ms(SIGN_IN_CODE_SECONDS * 1_000);
        let order = self.order.entry(target.organization).or_default();
        order.retain(|hash| self.codes.get(hash).is_some_and(|code| now < code.expires_at));
        while order.len() >= MAX_SIGN_IN_CODES
            && let Some(oldest) = order.pop_front()
        {
            self.codes.remove(&oldest);
        }
        order.push_back(hash);
        self.codes.insert(hash, Code { target, expires_at });
        self.codes.retain(|_, code| now < code.expires_at);
        expires_at
    }

    /// Uses a code up, and returns what it stands for; `None` if it is unknown, used or expired.
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
        assert_eq!(codes.add(hash(1), first.clone(), NOW), NOW.plus_ms(300_000));
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
            codes.add(hash(i), target(1), NOW);
        }
        assert_eq!(codes.codes.len(), MAX_SIGN_IN_CODES + 1);
        assert_eq!(codes.take(&hash(5), NOW), None, "the oldest ended");
        assert!(codes.take(&hash(6), NOW).is_some() && codes.take(&hash(0), NOW).is_some());
        codes.add(hash(1_000), target(1), NOW.plus_ms(300_000));
        assert_eq!((codes.codes.len(), codes.order[&OrganizationId(1)].len()), (1, 1), "those of before have expired");
    }
}
