//! Records of ids, sorted by the identity behind each id, on disk.

use std::io;

use headcount_domain::{IdentityLink, RecordKey};

use super::error::{Result, check};
use super::events::Scan;
use super::external_sort::Sorter;
use super::identities::{Identities, KEY, bytes, key_of};

/// Collects records of `N` bytes, which begin with the key of an id. Of equal records one is kept.
pub(super) struct IdentitySorter<'h, const N: usize> {
    ids: Identities<'h>,
    /// The records of ids that may be linked.
    sent: Sorter<N>,
    /// The records of identities.
    resolved: Sorter<N>,
}

impl<'h, const N: usize> IdentitySorter<'h, N> {
    pub(super) fn new(scan: &Scan<'h>, sort_bytes: usize) -> Self {
        let sorter = || Sorter::new(scan.scratch(), N, sort_bytes);
        Self { ids: Identities::new(scan, sort_bytes), sent: sorter(), resolved: sorter() }
    }

    /// Records a link.
    pub(super) fn link(&mut self, link: IdentityLink) -> io::Result<()> {
        self.ids.link(link)
    }

    /// Adds a record of `named`.
    pub(super) fn add(&mut self, named: RecordKey, record: [u8; N]) -> io::Result<()> {
        self.ids.add(named)?;
        if named.is_user() { self.resolved.push(record) } else { self.sent.push(record) }
    }

    /// Returns the records, with the keys of identities.
    pub(super) fn resolve(self, scan: &Scan<'_>) -> Result<Sorter<N>> {
        let Self { ids, sent, mut resolved } = self;
        let mut ids = ids.resolve(scan)?;
        for record in sent.finish()? {
            check(scan.cancelled)?;
            let mut record = record?;
            let identity = ids.resolve(key_of(&record[..KEY]))?;
            record[..KEY].copy_from_slice(&bytes(identity));
            resolved.push(record)?;
        }
        Ok(resolved)
    }
}
