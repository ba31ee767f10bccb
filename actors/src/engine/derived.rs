//! The data derived from the log: the store and the index of external ids. Decides whether they can
//! be used, and rebuilds them.
//!
//! Both hold keyed hashes, so both belong to one hash key, and to one incarnation of the data
//! directory. A check value of these two identifies them: the index has it in its list of runs and
//! in every run, the store under its own key. A store gets its check value last, after the old
//! index is moved away and `FORMAT` has the incarnation. So a start that is interrupted anywhere
//! leaves a store without the right check value, and the next start begins again.
//!
//! The store also has a schema fingerprint: the list of its spaces, kinds of records and rows, with
//! their versions. If the list of a store differs from the program's, another version made it, and
//! it is rebuilt.

use std::path::{Path, PathBuf};

use headcount_domain::{Fault, FaultKind, KeyHasher};
use headcount_storage::aside;
use headcount_storage::codec::{self, CodecError};
use headcount_storage::external_ids::ExternalIdsOptions;
use headcount_storage::format::{Format, Incarnation};
use headcount_storage::keyspace::{Key, PartitionId};
use headcount_storage::store::{DiskStore, Store, StoreError, StoreOptions};

use crate::checkpoint_writer::stored_types;
use crate::engine::{OpenError, directory};
use crate::fault;

/// The key of the store's check value, in a partition without projects.
const CHECK_VALUE: Key = Key::Meta { partition: PartitionId(u16::MAX), item: 0 };
const CHECK_VALUE_VERSION: u8 = 1;
/// The key of the schema fingerprint.
const STORED_TYPES: Key = Key::Meta { partition: PartitionId(u16::MAX), item: 1 };
const STORED_TYPES_VERSION: u8 = 1;
/// The number of damaged stores kept for analysis after a successful start.
const STORES_KEPT: usize = 2;

/// The state of the store at a start.
enum Found {
    Sound(DiskStore),
    /// There is no store, or an empty one of an unfinished first start.
    Nothing,
    /// Another version of the program made the store. The text describes the difference.
    Outdated(String),
}

/// The store and the index of a data directory.
pub(crate) struct Derived<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) options: StoreOptions,
    pub(crate) hasher: &'a KeyHasher,
    /// Whether other machines have the same incarnation. Then a rebuilt store keeps it.
    pub(crate) is_shared: bool,
}

impl Derived<'_> {
    /// Opens the store. Creates store and index again if the store is missing, damaged, or belongs
    /// to another key or incarnation. `log_is_empty`: there is nothing to rebuild from the log.
    ///
    /// # Errors
    /// Any error but damage. All files are unchanged then.
    pub(crate) fn open(&self, format: Format, log_is_empty: bool) -> Result<(DiskStore, Format), OpenError> {
        let reason = match self.find(format) {
            Ok(Found::Sound(store)) => return Ok((store, format)),
            Ok(Found::Nothing) if log_is_empty => return self.begin(format),
            Ok(Found::Nothing) => {
                tracing::warn!("the store is missing and is rebuilt from the log");
                return self.begin(format);
            }
            Ok(Found::Outdated(difference)) => return self.upgrade(format, &difference),
            Err(Fault { kind: FaultKind::DamagedStore, message }) => message,
            Err(Fault { kind, message }) => {
                return Err(Fault::new(kind, format!("{}: {message}", self.store_dir().display())).into());
            }
        };
        self.recreate(format, &reason)
    }

    /// Opens the store without changes, for a reader. Returns `None` if there is none.
    ///
    /// # Errors
    /// The store can't be used. It is unchanged.
    pub(crate) fn open_as_it_is(&self, format: Format) -> Result<Option<DiskStore>, Fault> {
        if !self.store_dir().exists() {
            return Ok(None);
        }
        match self.find(format)? {
            Found::Sound(store) => Ok(Some(store)),
            Found::Nothing => Ok(None),
            Found::Outdated(difference) => Err(Fault::io(format!(
                "another version of the program made the store ({difference}); the next start rebuilds it"
            ))),
        }
    }

    /// Finds the store, and checks it.
    fn find(&self, format: Format) -> Result<Found, Fault> {
        let (store, created) = match DiskStore::open_or_create(&self.store_dir(), self.options) {
            Err(StoreError::OtherFormat { what }) => return Ok(Found::Outdated(what)),
            opened => opened.map_err(fault::of_store)?,
        };
        match check_value(&store)? {
            Some(found) if found == self.check_value(format) => Ok(match difference(&listed_types(&store)?) {
                None => Found::Sound(store),
                Some(difference) => Found::Outdated(difference),
            }),
            Some(_) => Err(Fault::damaged_store("it was made with another hash key, or for another copy of the data directory")),
            None if created || store.is_empty() => Ok(Found::Nothing),
            None => Err(Fault::damaged_store("it does not say which hash key it was made with")),
        }
    }

    /// Moves an unusable store aside, and creates it again. The store must be closed.
    ///
    /// # Errors
    /// The operating system refuses. Data moved aside by then still exist.
    pub(crate) fn recreate(&self, format: Format, reason: &str) -> Result<(DiskStore, Format), OpenError> {
        self.replace(format, reason, |moved_to| {
            tracing::warn!(%reason, moved_to = %moved_to.display(), "the store can't be used and is rebuilt from the log");
        })
    }

    /// Discards the store because its source has changed. The next start rebuilds it. The store
    /// must be closed.
    ///
    /// # Errors
    /// Returns the same errors as [`Derived::recreate`].
    pub(crate) fn discard(&self, format: Format, reason: &str) -> Result<(), OpenError> {
        if self.store_dir().exists() {
            self.replace(format, reason, |_| {})?;
        } else {
            self.begin(format)?;
        }
        Ok(())
    }

    /// Like [`Derived::recreate`], for a store of another version.
    fn upgrade(&self, format: Format, difference: &str) -> Result<(DiskStore, Format), OpenError> {
        self.replace(format, "another version of the program made it", |moved_to| {
            let moved_to = moved_to.display();
            tracing::info!(%difference, %moved_to, "the store is upgraded to this version: it is rebuilt from the log");
        })
    }

    fn replace(&self, format: Format, reason: &str, log: impl FnOnce(&Path)) -> Result<(DiskStore, Format), OpenError> {
        let moved_to = DiskStore::move_aside(&self.store_dir(), reason).map_err(directory)?;
        log(&moved_to);
        self.begin(format)
    }

    fn begin(&self, format: Format) -> Result<(DiskStore, Format), OpenError> {
        let index = self.index_dir();
        if index.exists() {
            let failed = |error| OpenError::Directory(format!("{} could not be moved aside: {error}", index.display()));
            aside::move_aside(&index, "the store that it belongs to is rebuilt").map_err(failed)?;
        }
        let format = if self.is_shared { format } else { format.renew(self.dir).map_err(directory)? };
        let (store, _) = DiskStore::open_or_create(&self.store_dir(), self.options).map_err(directory)?;
        self.sign(&store, format).map_err(directory)?;
        Ok((store, format))
    }

    fn sign(&self, store: &DiskStore, format: Format) -> Result<(), StoreError> {
        let unencodable =
            |error: CodecError| StoreError::Io { action: "encode its check value".into(), source: std::io::Error::other(error) };
        let value = codec::encode(CHECK_VALUE_VERSION, &self.check_value(format)).map_err(unencodable)?;
        let types = codec::encode(STORED_TYPES_VERSION, &stored_types()).map_err(unencodable)?;
        let mut checkpoint = store.begin(CHECK_VALUE.partition())?;
        checkpoint.put(&CHECK_VALUE.encode(), &value)?;
        checkpoint.put(&STORED_TYPES.encode(), &types)?;
        checkpoint.commit()
    }

    /// Removes the data moved aside earlier, except the last two stores. A successful start calls
    /// it.
    pub(crate) fn remove_old(&self) {
        for (dir, kept) in [(self.store_dir(), STORES_KEPT), (self.index_dir(), 0)] {
            if let Err(error) = aside::remove_old(&dir, kept) {
                tracing::warn!(dir = %dir.display(), %error, "what was moved aside earlier could not be removed");
            }
        }
    }

    /// Returns the options for opening the index of the store.
    pub(crate) fn index(&self, format: Format) -> ExternalIdsOptions {
        ExternalIdsOptions { incarnation: Incarnation::from_number(self.check_value(format)) }
    }

    fn check_value(&self, format: Format) -> u128 {
        self.hasher.check_value(format.incarnation.number())
    }

    fn store_dir(&self) -> PathBuf {
        let [store, _] = derived_dirs(self.dir);
        store
    }

    pub(crate) fn index_dir(&self) -> PathBuf {
        let [_, index] = derived_dirs(self.dir);
        index
    }
}

/// The directories of the store and of the index in a data directory.
pub(crate) fn derived_dirs(dir: &Path) -> [PathBuf; 2] {
    [dir.join("store"), dir.join("fingerprints")]
}

fn check_value(store: &DiskStore) -> Result<Option<u128>, Fault> {
    let stored = store.get(&CHECK_VALUE.encode()).map_err(fault::of_store)?;
    stored.map(|bytes| codec::decode(CHECK_VALUE_VERSION, &bytes).map_err(fault::of_stored)).transpose()
}

/// The schema fingerprint of a store; empty if it has none.
fn listed_types(store: &DiskStore) -> Result<Vec<String>, Fault> {
    let stored = store.get(&STORED_TYPES.encode()).map_err(fault::of_store)?;
    let types = stored.map(|bytes| codec::decode(STORED_TYPES_VERSION, &bytes).map_err(fault::of_stored)).transpose()?;
    Ok(types.unwrap_or_default())
}

/// Returns the difference between a store with the types `listed` and a store of this version, if
/// there is one.
fn difference(listed: &[String]) -> Option<String> {
    let types = stored_types();
    let only_in = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|name| !those.contains(name)).cloned().collect()
    };
    let (new, gone) = (only_in(&types, listed), only_in(listed, &types));
    let list = |types: Vec<String>| if types.is_empty() { "nothing".to_owned() } else { types.join(", ") };
    match (listed.is_empty(), new.is_empty() && gone.is_empty()) {
        (true, _) => Some("it does not list what it consists of".to_owned()),
        (_, true) => None,
        _ => Some(format!("it has {} where this version has {}", list(gone), list(new))),
    }
}
