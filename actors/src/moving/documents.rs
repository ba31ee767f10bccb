//! What moves beside control data and events: company profiles, privacy requests and webhooks, as documents that several machines share.

use std::io;
use std::path::Path;

use super::{LeftBehind, MovingError, MovingSource};
use crate::checked_files::{Filed, ReadItems, read_all};
use crate::checked_json;
use crate::position_map::PositionMap;
use crate::privacy::{self, PRIVACY_DIR, PrivacyRequest};
use crate::profiles::{CompanyProfile, PROFILES_DIR};
use crate::secrets;
use crate::shared_documents::MAX_DOCUMENT_BYTES;
use crate::webhooks::{MovedWebhook, WebhookDocuments};

/// A document.
#[derive(Debug, PartialEq, Eq)]
pub struct MovedDocument {
    /// Its key.
    pub key: String,
    /// What it is.
    pub content: Vec<u8>,
}

/// What is read of them.
pub(super) struct MovedItems {
    profiles: Vec<MovedDocument>,
    privacy: Vec<MovedDocument>,
    webhooks: Vec<MovedWebhook>,
}

impl MovedItems {
    /// Reads everything. Also returns what can't be read, or would be too large.
    pub(super) fn read(from: &Path) -> Result<(Self, LeftBehind), MovingError> {
        let mut left = LeftBehind::default();
        let (profiles, unreadable) = documents::<CompanyProfile>(from, PROFILES_DIR, |profile| profile)?;
        left.company_profiles = unreadable;
        let (privacy, unreadable) = documents::<PrivacyRequest>(from, PRIVACY_DIR, |request| privacy::shortened(&request))?;
        left.privacy_requests = unreadable;
        let (webhooks, unreadable) = MovedWebhook::read_all(from).map_err(MovingError::io("read the webhooks of", from))?;
        left.webhooks = unreadable;
        Ok((Self { profiles, privacy, webhooks }, left))
    }
}

fn documents<T: Filed>(from: &Path, dir: &str, shortened: impl Fn(T) -> T) -> Result<(Vec<MovedDocument>, usize), MovingError> {
    let dir = from.join(dir);
    let ReadItems { items, damaged: mut left } = read_all::<T>(&dir).map_err(MovingError::io("read", &dir))?;
    let mut documents = Vec::with_capacity(items.len());
    for (id, item) in items {
        let content = checked_json::encode(T::VERSION, &shortened(item)).map_err(MovingError::io("encode a file of", &dir))?;
        match content.len() <= MAX_DOCUMENT_BYTES {
            true => documents.push(MovedDocument { key: id.to_string(), content }),
            false => left += 1,
        }
    }
    Ok((documents, left))
}

impl MovingSource {
    /// The company profiles.
    #[must_use]
    pub fn profiles(&self) -> &[MovedDocument] {
        &self.items.profiles
    }

    /// The privacy requests.
    #[must_use]
    pub fn privacy_requests(&self) -> &[MovedDocument] {
        &self.items.privacy
    }

    /// Returns what has to be told of the events that move, before [`Self::webhooks`].
    #[must_use]
    pub fn positions(&self) -> PositionMap {
        let mut positions = PositionMap::default();
        self.items.webhooks.iter().for_each(|webhook| webhook.want(&mut positions));
        positions
    }

    /// The webhooks, where events have these positions.
    ///
    /// # Errors
    /// [`MovingError::Secrets`] without the key that is to seal their secrets, and [`MovingError::Io`].
    pub fn webhooks(&self, positions: &PositionMap) -> Result<Vec<WebhookDocuments>, MovingError> {
        if self.items.webhooks.is_empty() {
            return Ok(Vec::new());
        }
        let key = secrets::webhook_key(&self.from)?;
        let documents = |webhook: &MovedWebhook| webhook.documents(positions, &key);
        let all: io::Result<Vec<_>> = self.items.webhooks.iter().map(documents).collect();
        all.map_err(MovingError::io("encode the webhooks of", &self.from))
    }
}
