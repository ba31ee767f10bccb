//! The secrets of webhooks in a cluster: what the brokers have of them is a random number, from which only nodes compute them.

use std::fmt;
use std::fmt::Write as _;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::webhook::SigningSecret;
use crate::registry::{Secret, WEBHOOK_SECRET_PREFIX};

/// What is signed with the installation's key, before the number.
const LABEL: &[u8] = b"headcount webhook secret 1";

/// The installation's key, for secrets of webhooks alone. Debug output never shows it.
#[derive(Clone)]
pub(crate) struct WebhookKey([u8; 16]);

impl WebhookKey {
    pub(crate) fn new(hash_key: [u8; 16]) -> Self {
        Self(hash_key)
    }

    /// Returns the secret that a number stands for.
    pub(super) fn secret_of(&self, number: &SigningSecret) -> Secret {
        let mut text = WEBHOOK_SECRET_PREFIX.to_owned();
        // HMAC takes keys of every length.
        if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) {
            mac.update(LABEL);
            mac.update(number.key());
            for byte in mac.finalize().into_bytes() {
                let _infallible = write!(text, "{byte:02x}");
            }
        }
        Secret::derived(text)
    }
}

impl fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookKey(redacted)")
    }
}
