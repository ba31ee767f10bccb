//! The saved state of a partition as files: those of this machine, and copies of another machine's.

use std::path::{Path, PathBuf};

use headcount_domain::{Fault, Position};
use headcount_storage::TableFile;
use headcount_storage::external_ids::{ExternalIds, ExternalIdsOptions};
use headcount_storage::keyspace::PartitionId;
use headcount_storage::log::LogMark;
use headcount_storage::store::{PartitionSnapshot, Store};
use xxhash_rust::xxh3::xxh3_128;

use crate::checkpoint_writer::{saved_position, saved_reflected, stored_types};
use crate::fault;

/// Returns the version of saved states. Only a program of the same version can use them.
pub fn state_version() -> String {
    format!("{:032x}", xxh3_128(stored_types().join("\n").as_bytes()))
}

/// The saved state of a partition, to be copied. It stays readable while this exists.
#[derive(Debug)]
pub struct SavedState {
    /// The position up to which it reflects all events.
    pub position: Position,
    /// The mark of the log at the last position that it reflects in part, if it had one. For some
    /// projects, that may be beyond `position`.
    pub mark: Option<LogMark>,
    /// The number of dead letters up to the last event that it reflects. It doesn't reflect them.
    pub letters: usize,
    /// The data that are in no file.
    pub small: Vec<u8>,
    /// The files of its records, in order.
    pub tables: Vec<TableFile>,
    /// The files of its external ids, in order.
    pub external_ids: Vec<TableFile>,
}

/// A copy of the saved state of a partition, on this machine.
#[derive(Debug, Clone)]
pub struct CopiedState {
    /// The directory of the files: files of records are in `tables`, those of external ids in
    /// `external_ids`, each under its [`TableFile::copy_name`].
    pub dir: PathBuf,
    /// The number of dead letters, which it doesn't reflect.
    pub letters: usize,
    /// The data that are in no file.
    pub small: Vec<u8>,
    /// The numbers of the files of its records, in order.
    pub tables: Vec<u64>,
    /// The numbers of the files of its external ids.
    pub external_ids: Vec<u64>,
}

impl CopiedState {
    /// Returns the folder with the files of records in the directory of a copy.
    pub fn tables_dir(dir: &Path) -> PathBuf {
        dir.join("tables")
    }

    /// Returns the folder with the files of external ids.
    pub fn external_ids_dir(dir: &Path) -> PathBuf {
        dir.join("external_ids")
    }

    /// Makes it the state of a partition that is not open, if it reflects more than the saved
    /// state, and `may_be_used` accepts the last position that it reflects in part. Returns its
    /// position if so.
    ///
    /// # Errors
    /// The error of the copy or the disk. The partition has its former state or this one then.
    pub(crate) fn put_in(
        &self,
        number: u16,
        store: &dyn Store,
        (index_dir, options): &(PathBuf, ExternalIdsOptions),
        own: Position,
        may_be_used: impl FnOnce(Position) -> bool,
    ) -> Result<Option<Position>, Fault> {
        let partition = PartitionId(number);
        let copy = PartitionSnapshot::open_copy(partition, &self.small, &Self::tables_dir(&self.dir), &self.tables);
        let copy = copy.map_err(fault::of_store)?;
        let position = saved_position(&copy)?;
        if position <= own || !may_be_used(saved_reflected(&copy)?) {
            return Ok(None);
        }
        // An index ahead of the state is intact, and one behind it is not.
        let ids = Self::external_ids_dir(&self.dir);
        ExternalIds::replace(&index_dir.join(number.to_string()), *options, &ids, &self.external_ids).map_err(fault::of_index)?;
        copy.replace_in(store).map_err(fault::of_store)?;
        Ok(Some(position))
    }
}

#[cfg(test)]
mod tests {
    use headcount_common::fold_version;
    use xxhash_rust::xxh3::xxh3_128;

    use crate::checkpoint_writer::stored_types;

    /// If this fails and a release has the former list, raise `FOLD_VERSION` in
    /// `common/src/program_version.rs`. Then write the new hash here. Rows raise the fold version
    /// themselves.
    #[test]
    fn another_list_of_stored_types_is_another_fold() {
        let mut types = stored_types();
        types.retain(|line| !["rows ", "space 2 ", "space 5 "].iter().any(|rows| line.starts_with(rows)));
        assert_eq!(format!("{:032x}", xxh3_128(types.join("\n").as_bytes())), "adcb48417250416891d7677c560f5f31");
        assert!(fold_version() >= 1);
    }
}
