//! The data that move besides control data and events: company profiles, privacy requests and
//! webhooks, as documents that the nodes share.

use std::path::Path;

use headcount_common::local::{ReadItems, read_items};
use headcount_common::{DocumentItem, MAX_DOCUMENT_BYTES, checked_json};

use super::error::MovingError;
use crate::privacy::{PRIVACY_DIR, PrivacyRequest};
use crate::profiles::{CompanyProfile, PROFILES_DIR};
use crate::webhooks::MovedWebhook;

/// A document.
#[derive(Debug, PartialEq, Eq)]
pub struct MovedDocument {
    /// Its key.
    pub key: String,
    /// Its content.
    pub content: Vec<u8>,
}

/// Data that do not move: unreadable documents, and dead letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct LeftBehind {
    /// The number of files of webhooks.
    pub webhooks: usize,
    /// The number of privacy requests.
    pub privacy_requests: usize,
    /// The number of company profiles.
    pub company_profiles: usize,
    /// The number of dead letters.
    pub set_aside: usize,
}

/// The documents to move.
pub(super) struct MovedItems {
    pub(super) profiles: Vec<MovedDocument>,
    pub(super) privacy: Vec<MovedDocument>,
    pub(super) webhooks: Vec<MovedWebhook>,
}

impl MovedItems {
    /// Reads everything. Also returns the unreadable documents and those that would be too large.
    pub(super) fn read(from: &Path) -> Result<(Self, LeftBehind), MovingError> {
        let mut left = LeftBehind::default();
        let (profiles, unreadable) = documents::<CompanyProfile>(from, PROFILES_DIR)?;
        left.company_profiles = unreadable;
        let (privacy, unreadable) = documents::<PrivacyRequest>(from, PRIVACY_DIR)?;
        left.privacy_requests = unreadable;
        let (webhooks, unreadable) = MovedWebhook::read_all(from).map_err(MovingError::io("read the webhooks of", from))?;
        left.webhooks = unreadable;
        Ok((Self { profiles, privacy, webhooks }, left))
    }
}

fn documents<T: DocumentItem>(from: &Path, dir: &str) -> Result<(Vec<MovedDocument>, usize), MovingError> {
    let dir = from.join(dir);
    let ReadItems { items, damaged: mut left } = read_items::<T>(&dir).map_err(MovingError::io("read", &dir))?;
    let mut documents = Vec::with_capacity(items.len());
    for (id, item) in items {
        let content = checked_json::encode(T::VERSION, &item).map_err(MovingError::io("encode a file of", &dir))?;
        match content.len() <= MAX_DOCUMENT_BYTES {
            true => documents.push(MovedDocument { key: id.to_string(), content }),
            false => left += 1,
        }
    }
    Ok((documents, left))
}
