//! The secrets of webhooks in a cluster: what the brokers have of them is a random number, from which only nodes compute them.

use std::fmt;
use std::fmt::Write as _;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::webhook::SigningSecret;
use crate::registry::{Secret, WEBHOOK_SECRET_PREFIX};

/// What is signed with the installation's key, before the number.
const LABEL: &[u8] = b"headcount webhook secret 1";
/// What stands for a secret of an installation that moved in begins with this. Numbers do not.
const SEALED: &str = "sealed_";
const MARK_BYTES: usize = 16;

/// The installation's key, for secrets of webhooks alone. Debug output never shows it.
#[derive(Clone)]
pub(crate) struct WebhookKey([u8; 16]);

impl WebhookKey {
    pub(crate) fn new(hash_key: [u8; 16]) -> Self {
        Self(hash_key)
    }

    /// Returns what stands for a secret of an installation that moves in, since no number does: the brokers can't read it. The same at each call.
    pub(super) fn sealed(&self, secret: &SigningSecret) -> SigningSecret {
        let text = secret.key();
        let mark = self.mark(text);
        let mut sealed = SEALED.to_owned();
        mark.iter().for_each(|byte| push_hex(&mut sealed, *byte));
        text.iter().zip(self.pad(&mark, text.len())).for_each(|(byte, pad)| push_hex(&mut sealed, byte ^ pad));
        SigningSecret::of_text(sealed)
    }

    /// The secret that something sealed stands for; `None`: it is a number, or was sealed with another key.
    fn opened(&self, sealed: &SigningSecret) -> Option<Secret> {
        let bytes = from_hex(sealed.key().strip_prefix(SEALED.as_bytes())?)?;
        let (mark, sealed) = bytes.split_at_checked(MARK_BYTES)?;
        let text: Vec<u8> = sealed.iter().zip(self.pad(mark, sealed.len())).map(|(byte, pad)| byte ^ pad).collect();
        if self.mark(&text) != mark {
            return None;
        }
        String::from_utf8(text).ok().map(Secret::derived)
    }

    /// Tells a text from others, and whether it was opened with the right key.
    fn mark(&self, text: &[u8]) -> Vec<u8> {
        let mut mark = self.signed(&[b"headcount webhook secret mark 1", text]);
        mark.truncate(MARK_BYTES);
        mark
    }

    fn pad(&self, mark: &[u8], bytes: usize) -> Vec<u8> {
        let mut pad = Vec::with_capacity(bytes);
        for block in 0_u32.. {
            if pad.len() >= bytes {
                break;
            }
            pad.extend(self.signed(&[b"headcount webhook secret pad 1", mark, &block.to_le_bytes()]));
        }
        pad.truncate(bytes);
        pad
    }

    fn signed(&self, parts: &[&[u8]]) -> Vec<u8> {
        // HMAC takes keys of every length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return Vec::new() };
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().to_vec()
    }

    /// Returns the secret that a number stands for.
    pub(super) fn secret_of(&self, number: &SigningSecret) -> Secret {
        if let Some(secret) = self.opened(number) {
            return secret;
        }
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

fn push_hex(text: &mut String, byte: u8) {
    let _infallible = write!(text, "{byte:02x}");
}

fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    text.chunks(2).map(|two| Some(digit(*two.first()?)? << 4 | digit(*two.get(1)?)?)).collect()
}

impl fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookKey(redacted)")
    }
}
