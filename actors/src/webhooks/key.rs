//! The secrets of webhooks in a cluster: what the brokers have of them is a random number, from which only nodes compute them.

use std::fmt::Write as _;

use headcount_common::secrets::Signer;
use headcount_control::{Secret, WEBHOOK_SECRET_PREFIX};

use super::webhook::SigningSecret;

/// What is signed with the installation's key, before the number.
const LABEL: &[u8] = b"headcount webhook secret 1";
/// What stands for a secret of an installation that moved in begins with this. Numbers do not.
const SEALED: &str = "sealed_";
const MARK_BYTES: usize = 16;

/// The installation's key, for secrets of webhooks alone.
#[derive(Debug, Clone)]
pub(crate) struct WebhookKey(Signer);

impl WebhookKey {
    pub(crate) fn new(signer: Signer) -> Self {
        Self(signer)
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
        let mut mark = self.0.sign(&[b"headcount webhook secret mark 1", text]);
        mark.truncate(MARK_BYTES);
        mark
    }

    fn pad(&self, mark: &[u8], bytes: usize) -> Vec<u8> {
        let mut pad = Vec::with_capacity(bytes);
        for block in 0_u32.. {
            if pad.len() >= bytes {
                break;
            }
            pad.extend(self.0.sign(&[b"headcount webhook secret pad 1", mark, &block.to_le_bytes()]));
        }
        pad.truncate(bytes);
        pad
    }

    /// Returns the secret that a number stands for.
    pub(super) fn secret_of(&self, number: &SigningSecret) -> Secret {
        if let Some(secret) = self.opened(number) {
            return secret;
        }
        let mut text = WEBHOOK_SECRET_PREFIX.to_owned();
        self.0.sign(&[LABEL, number.key()]).iter().for_each(|byte| push_hex(&mut text, *byte));
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
