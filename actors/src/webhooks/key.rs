//! The secrets of webhooks: a random number is kept, from which only those who have the installation's key compute the secret.

use std::fmt::Write as _;

use headcount_common::secrets::Signer;
use headcount_control::{Secret, WEBHOOK_SECRET_PREFIX};

use super::webhook::SigningSecret;

/// What is signed with the installation's key, before the number.
const LABEL: &[u8] = b"headcount webhook secret 1";

/// How many bytes of the signature a secret shows.
const SECRET_BYTES: usize = 16;

/// The installation's key, for secrets of webhooks alone.
#[derive(Debug, Clone)]
pub(crate) struct WebhookKey(Signer);

impl WebhookKey {
    pub(crate) fn new(signer: Signer) -> Self {
        Self(signer)
    }

    /// Returns the secret that a number stands for.
    pub(super) fn secret_of(&self, number: &SigningSecret) -> Secret {
        let mut text = WEBHOOK_SECRET_PREFIX.to_owned();
        self.0.sign(&[LABEL, number.key()]).iter().take(SECRET_BYTES).for_each(|byte| {
            let _infallible = write!(text, "{byte:02x}");
        });
        Secret::derived(text)
    }
}
