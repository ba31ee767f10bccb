//! Secrets that people enter, encrypted with the installation's key. A copy of the documents alone
//! does not tell them.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use headcount_common::secrets::Signer;
use headcount_domain::OrganizationId;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};

/// The text that the installation's key signs to make the key of secrets.
const LABEL: &[u8] = b"headcount channel secret 1";

/// An encrypted secret: a random nonce, then the text and its tag. Debug output does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SealedSecret(String);

/// The secret can't be encrypted: the operating system gives no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret can't be encrypted")]
pub(crate) struct NotSealed;

fn key(signer: &Signer) -> Option<LessSafeKey> {
    UnboundKey::new(&CHACHA20_POLY1305, &signer.sign(&[LABEL])).ok().map(LessSafeKey::new)
}

/// What the secret is bound to: another organization can't use a copy of it.
fn bound_to(organization: OrganizationId) -> Aad<[u8; 8]> {
    Aad::from(organization.0.to_be_bytes())
}

impl SealedSecret {
    /// Encrypts a secret of an organization.
    ///
    /// # Errors
    /// See [`NotSealed`].
    pub(crate) fn seal(signer: &Signer, organization: OrganizationId, secret: &str) -> Result<Self, NotSealed> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| NotSealed)?;
        let mut text = secret.as_bytes().to_vec();
        let (key, unique) = (key(signer).ok_or(NotSealed)?, Nonce::assume_unique_for_key(nonce));
        key.seal_in_place_append_tag(unique, bound_to(organization), &mut text).map_err(|_| NotSealed)?;
        Ok(Self(STANDARD.encode([&nonce[..], &text].concat())))
    }

    /// Decrypts the secret; `None` if another installation encrypted it, or for another
    /// organization.
    pub(crate) fn open(&self, signer: &Signer, organization: OrganizationId) -> Option<String> {
        let sealed = STANDARD.decode(&self.0).ok()?;
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let (nonce, mut text) = (Nonce::assume_unique_for_key(*nonce), text.to_vec());
        let opened = key(signer)?.open_in_place(nonce, bound_to(organization), &mut text).ok()?;
        String::from_utf8(opened.to_vec()).ok()
    }
}

impl fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealedSecret(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use headcount_common::secrets::Secrets;

    use super::*;

    #[test]
    fn only_the_installation_and_the_organization_can_read_a_secret() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let open = |dir: &tempfile::TempDir| Secrets::open(dir.path()).unwrap();
        let (installation, another) = (open(&one), open(&other));
        let text = "https://hooks.example/services/T0/B0/secret";
        let sealed = SealedSecret::seal(installation.signer(), OrganizationId(1), text).unwrap();
        assert!(!format!("{sealed:?} {}", serde_json::to_string(&sealed).unwrap()).contains("secret/"));
        assert_eq!(sealed.open(installation.signer(), OrganizationId(1)).as_deref(), Some(text));
        assert_eq!(sealed.open(installation.signer(), OrganizationId(2)), None);
        assert_eq!(sealed.open(another.signer(), OrganizationId(1)), None);
        let again = SealedSecret::seal(installation.signer(), OrganizationId(1), text).unwrap();
        assert_ne!(again, sealed);
        let SealedSecret(encoded) = sealed;
        for damaged in [
            encoded.replacen(&encoded[20..21], if &encoded[20..21] == "A" { "B" } else { "A" }, 1),
            encoded[..20].to_owned(),
            String::new(),
            "?".to_owned(),
        ] {
            assert_eq!(SealedSecret(damaged).open(installation.signer(), OrganizationId(1)), None);
        }
    }
}
