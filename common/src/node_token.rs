//! The token that authenticates requests between the machines of a cluster.

use std::fmt::{self, Write};

use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The text that is signed with the installation's key. Nothing else is signed with this text.
const LABEL: &[u8] = b"headcount node token 1";

/// A token that only the machines with the same `hash.key` know. Debug output never shows it.
#[derive(Clone)]
pub struct NodeToken(String);

impl NodeToken {
    /// Derives the token from the installation's key. The key can't be computed from the token.
    pub fn derive(hash_key: &[u8; 16]) -> Self {
        let mut text = String::new();
        // HMAC takes keys of every length.
        if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(hash_key) {
            mac.update(LABEL);
            for byte in mac.finalize().into_bytes() {
                let _infallible = write!(text, "{byte:02x}");
            }
        }
        Self(text)
    }

    /// Returns the token, for requests to other machines of the cluster only.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `candidate` is the token. Takes the same time for every other text of its length.
    pub fn is(&self, candidate: &str) -> bool {
        !self.0.is_empty() && bool::from(self.expose().as_bytes().ct_eq(candidate.as_bytes()))
    }
}

impl fmt::Debug for NodeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeToken(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes of other program versions use the same token.
    #[test]
    fn the_token_never_changes() {
        let expected = "a3e02c462e77081b9df0d8e0ceb4344a52b514c7351131bd9efc7f38a46b5179";
        assert_eq!(NodeToken::derive(&[7; 16]).expose(), expected);
    }

    #[test]
    fn only_the_same_key_has_the_same_token() {
        let (one, other) = (NodeToken::derive(&[1; 16]), NodeToken::derive(&[2; 16]));
        // Nodes of all program versions must agree.
        let known = "a3e02c462e77081b9df0d8e0ceb4344a52b514c7351131bd9efc7f38a46b5179";
        assert_eq!(NodeToken::derive(&[7; 16]).expose(), known);
        assert!(NodeToken::derive(&[1; 16]).is(one.expose()));
        assert!(!other.is(one.expose()));
        for wrong in ["", &one.expose()[1..], &format!("{}0", one.expose()), &one.expose().to_uppercase()] {
            assert!(!one.is(wrong), "{wrong}");
        }
        assert!(!format!("{one:?}").contains(&one.expose()[..8]));
    }
}
