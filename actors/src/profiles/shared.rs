//! Company profiles that several engines share: their files are a copy, which a start makes anew.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use headcount_storage::files;

use super::profile::CompanyProfile;
use crate::checked_files::Filed;
use crate::checked_json;
use crate::registry::{CompanyProfileId, ControlError};
use crate::shared_documents::{DocumentChange, SharedDocuments, SharedDocumentsError};

/// Waits until all others have applied the change with this number.
type Propagate = Box<dyn Fn(u64) + Send + Sync>;

/// The profiles that all members have.
pub(crate) struct SharedProfiles {
    documents: Arc<dyn SharedDocuments>,
    propagate: OnceLock<Propagate>,
}

impl std::fmt::Debug for SharedProfiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedProfiles").field("documents", &self.documents).finish_non_exhaustive()
    }
}

impl SharedProfiles {
    /// Removes the copies of an earlier start.
    pub(super) fn begin(dir: &Path, documents: Arc<dyn SharedDocuments>) -> io::Result<Self> {
        if dir.try_exists()? {
            files::remove_dir_all(dir)?;
        }
        Ok(Self { documents, propagate: OnceLock::new() })
    }

    pub(super) fn propagate_with(&self, propagate: Propagate) {
        let _is_first = self.propagate.set(propagate).is_ok();
    }

    /// Passes on what others have changed: profiles, and ids of those that are removed. Returns the number of the last change.
    pub(super) fn follow(
        &self,
        apply: impl Fn(&CompanyProfileId, Option<CompanyProfile>) -> Result<(), ControlError>,
    ) -> Result<u64, ControlError> {
        self.documents.follow(&mut |DocumentChange { key, content }| {
            let Ok(id) = key.parse::<CompanyProfileId>() else { return Ok(()) };
            let Some(bytes) = content else { return apply(&id, None) };
            let profile = checked_json::decode(CompanyProfile::VERSION, bytes);
            let profile = profile.filter(|profile: &CompanyProfile| profile.is_of(&id));
            if profile.is_none() {
                // As a damaged file is.
                tracing::error!(%id, "a company profile that the brokers have can't be read, and is left out");
            }
            apply(&id, profile)
        })
    }

    /// Changes a profile, or removes it. Returns whether no other change came first.
    pub(super) fn put(
        &self,
        expected: u64,
        id: &CompanyProfileId,
        profile: Option<&CompanyProfile>,
    ) -> Result<bool, ControlError> {
        let encode = |profile| checked_json::encode(CompanyProfile::VERSION, profile);
        let encoded = profile.map(encode).transpose().map_err(|error| ControlError::Documents(error.to_string()))?;
        let change = DocumentChange { key: &id.to_string(), content: encoded.as_deref() };
        match self.documents.put(expected, change) {
            Ok(()) => Ok(true),
            Err(SharedDocumentsError::Conflict) => Ok(false),
            Err(SharedDocumentsError::Undecided(why)) => Err(ControlError::Undecided(why)),
            Err(error @ (SharedDocumentsError::TooLarge { .. } | SharedDocumentsError::Unavailable(_))) => {
                Err(ControlError::Documents(error.to_string()))
            }
        }
    }

    /// Waits until all others know of a change.
    pub(super) fn propagate(&self, number: u64) {
        if let Some(propagate) = self.propagate.get() {
            propagate(number);
        }
    }
}
