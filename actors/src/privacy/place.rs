//! Where privacy requests are: in files, or where all members of a cluster see them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use headcount_common::{DocumentSet, Documents, Owners, home_of};
use headcount_domain::ids::OrganizationId;
use parking_lot::Mutex;

use super::files::PrivacyFiles;
use super::request::PrivacyRequest;

/// See the module.
#[derive(Debug)]
pub(super) enum PrivacyPlace {
    Files(PrivacyFiles),
    Shared(SharedPrivacy),
}

/// The requests that all members have. Those of an organization are looked after by one of them, its home: the owner of one partition.
#[derive(Debug)]
pub(crate) struct SharedPrivacy {
    pub(super) items: DocumentSet<PrivacyRequest>,
    pub(super) owners: Arc<Owners>,
    pub(super) homes: Mutex<Homes>,
    /// Whether a request may be missing whose erasure is recorded.
    pub(super) is_unsure: AtomicBool,
    /// How many changes of erasures were applied at the last look.
    pub(super) erasures_seen: AtomicU64,
}

/// The partitions whose organizations this machine looks after.
#[derive(Debug, Default)]
pub(super) struct Homes {
    /// Those of which everything is known that other machines have done.
    pub(super) begun: BTreeSet<u16>,
    /// How often one was given up.
    pub(super) given_up: u64,
}

impl SharedPrivacy {
    pub(crate) fn new(documents: Arc<dyn Documents>, owners: Arc<Owners>) -> Self {
        Self {
            items: DocumentSet::new(documents),
            owners,
            homes: Mutex::default(),
            is_unsure: AtomicBool::new(false),
            erasures_seen: AtomicU64::new(0),
        }
    }

    /// Whether this machine owns the partition that an organization's requests go with.
    pub(super) fn owns(&self, organization: OrganizationId) -> bool {
        self.owners.is_here(home_of(organization))
    }

    /// Whether it does, and knows what others have done.
    pub(super) fn is_home(&self, organization: OrganizationId) -> bool {
        self.owns(organization) && self.homes.lock().begun.contains(&home_of(organization))
    }
}
