//! The secrets of webhooks. Only a random number is stored. The secret is computed from it with the
//! installation's key.

use std::fmt::Write as _;

use headcount_common::secrets::Signer;
use headcount_control::{Secret, WEBHOOK_SECRET_PREFIX};

use super::webhook::SigningSecret;

/// The text that is signed with the installation's key, before the number.
const LABEL: &[u8] = b"headcount webhook secret 1";

/// The number of bytes of the signature in a secret.
const SECRET_BYTES: usize = 16;

/// The installation's key, for secrets of webhooks only.
#[derive(Debug, Clone)]
pub(crate) struct WebhookKey(Signer);

impl WebhookKey {
    pub(crate) fn new(signer: Signer) -> Self {
        Self(signer)
    }

    /// Returns the secret for a number.
    pub(super) fn secret_of(&self, number: &SigningSecret) -> Secret {
        let mut text = WEBHOOK_SECRET_PREFIX.to_owned();
        self.0.sign(&[LABEL, number.key()]).iter().take(SECRET_BYTES).for_each(|byte| {
            let _infallible = write!(text, "{byte:02x}");
        });
        Secret::derived(text)
    }
}
