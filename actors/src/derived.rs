//! What is derived from the log: the store and the index of external ids. Whether they can be used, and how they are begun anew.
//!
//! Both hold keyed hashes, so both belong to one hash key, and to one life of the data directory (its incarnation). A check value
//! of the two says so: the index carries it in its list of runs and in every run, the store under a key of its own. A store
//! gets its check value last, after the old index is out of the way and `FORMAT` has the incarnation. So a start that is cut
//! short anywhere leaves a store without the right check value, and the next start begins anew.

use std::path::{Path, PathBuf};

use headcount_domain::fold::{Fault, FaultKind};
use headcount_domain::ids::KeyHasher;
use headcount_storage::aside;
use headcount_storage::codec::{self, CodecError};
use headcount_storage::fingerprints::FingerprintOptions;
use headcount_storage::format::{Format, Incarnation};
use headcount_storage::keys::{Key, Partition};
use headcount_storage::store::{DiskStore, SledOptions, Store, StoreError};

use crate::aggregator::fault;
use crate::config::{OpenError, directory};

/// Where the store keeps its check value: under a partition that no project has.
const CHECK_VALUE: Key = Key::Meta { partition: Partition(u16::MAX), item: 0 };
const CHECK_VALUE_VERSION: u8 = 1;
/// How many damaged stores are kept for an inquiry once a start has succeeded.
const STORES_KEPT: usize = 2;

/// The store and the index of a data directory.
pub(crate) struct Derived<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) options: SledOptions,
    pub(crate) hasher: &'a KeyHasher,
}

impl Derived<'_> {
    /// Opens the store, or begins store and index anew if the store is missing, damaged, or belongs to another key or life.
    /// `log_is_empty`: there is nothing to rebuild from the log.
    ///
    /// # Errors
    /// Anything but damage; everything is left as it is then.
    pub(crate) fn open(&self, format: Format, log_is_empty: bool) -> Result<(DiskStore, Format), OpenError> {
        let reason = match self.open_sound(format) {
            Ok(Some(store)) => return Ok((store, format)),
            Ok(None) if log_is_empty => return self.begin(format),
            Ok(None) => {
                tracing::warn!("the store is missing and is rebuilt from the log");
                return self.begin(format);
            }
            Err(Fault { kind: FaultKind::DamagedStore, message }) => message,
            Err(Fault { kind, message }) => {
                return Err(Fault::new(kind, format!("{}: {message}", self.store_dir().display())).into());
            }
        };
        self.begin_anew(format, &reason)
    }

    /// The store, if it is what it should be. `None`: there is none yet, or an empty one that a first start did not finish.
    fn open_sound(&self, format: Format) -> Result<Option<DiskStore>, Fault> {
        let (store, created) = DiskStore::open_or_create(&self.store_dir(), self.options).map_err(fault::of_store)?;
        match check_value(&store)? {
            Some(found) if found == self.check_value(format) => Ok(Some(store)),
            Some(_) => Err(Fault::damaged_store("it was made with another hash key, or for another copy of the data directory")),
            None if created || store.is_empty() => Ok(None),
            None => Err(Fault::damaged_store("it does not say which hash key it was made with")),
        }
    }

    /// Moves the store aside for this reason, and begins anew. The store must be closed.
    ///
    /// # Errors
    /// The operating system refuses. What has been moved aside by then is still there.
    pub(crate) fn begin_anew(&self, format: Format, reason: &str) -> Result<(DiskStore, Format), OpenError> {
        let moved_to = DiskStore::move_aside(&self.store_dir(), reason).map_err(directory)?;
        tracing::warn!(%reason, moved_to = %moved_to.display(), "the store can't be used and is rebuilt from the log");
        self.begin(format)
    }

    fn begin(&self, format: Format) -> Result<(DiskStore, Format), OpenError> {
        let index = self.index_dir();
        if index.exists() {
            let failed = |error| OpenError::Directory(format!("{} could not be moved aside: {error}", index.display()));
            aside::move_aside(&index, "the store that it belongs to is rebuilt").map_err(failed)?;
        }
        let format = format.renew(self.dir).map_err(directory)?;
        let (store, _) = DiskStore::open_or_create(&self.store_dir(), self.options).map_err(directory)?;
        self.sign(&store, format).map_err(directory)?;
        Ok((store, format))
    }

    fn sign(&self, store: &DiskStore, format: Format) -> Result<(), StoreError> {
        let unencodable =
            |error: CodecError| StoreError::Io { action: "encode its check value".into(), source: std::io::Error::other(error) };
        let value = codec::encode(CHECK_VALUE_VERSION, &self.check_value(format)).map_err(unencodable)?;
        let mut checkpoint = store.begin(CHECK_VALUE.partition().realm())?;
        checkpoint.put(&CHECK_VALUE.encode(), &value)?;
        checkpoint.commit()
    }

    /// Removes what was moved aside earlier, but the last two stores. For a start that has succeeded.
    pub(crate) fn remove_old(&self) {
        for (dir, kept) in [(self.store_dir(), STORES_KEPT), (self.index_dir(), 0)] {
            if let Err(error) = aside::remove_old(&dir, kept) {
                tracing::warn!(dir = %dir.display(), %error, "what was moved aside earlier could not be removed");
            }
        }
    }

    /// How the index that belongs to the store is opened.
    pub(crate) fn index(&self, format: Format) -> FingerprintOptions {
        FingerprintOptions { incarnation: Incarnation::from_number(self.check_value(format)) }
    }

    fn check_value(&self, format: Format) -> u128 {
        self.hasher.check_value(format.incarnation.number())
    }

    fn store_dir(&self) -> PathBuf {
        self.dir.join("store")
    }

    pub(crate) fn index_dir(&self) -> PathBuf {
        self.dir.join("fingerprints")
    }
}

fn check_value(store: &DiskStore) -> Result<Option<u128>, Fault> {
    let stored = store.get(&CHECK_VALUE.encode()).map_err(fault::of_store)?;
    stored.map(|bytes| codec::decode(CHECK_VALUE_VERSION, &bytes).map_err(fault::of_stored)).transpose()
}
