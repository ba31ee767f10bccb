//! Writes the saved state of a project as its base.

use std::path::Path;

use headcount_archive::{ArchiveError, BaseEntry, BaseHeader, BaseName, BaseWriter};
use headcount_domain::ids::external_ids_of;
use headcount_domain::{Fault, KeyHasher, Position, ProjectId};
use headcount_storage::external_ids::{ExternalIdsError, ExternalIdsView};
use headcount_storage::keyspace::{Key, PartitionId};
use headcount_storage::store::PartitionSnapshot;

use super::snapshots::{saved_meta, saved_position};
use super::stored::stored_types;
use crate::fault;

/// The input of [`KeyHasher::check_value`].
const CHECKED: u128 = 0x6261_7365;

/// The check value of the hash key in the header of a base.
pub(crate) fn key_check(hasher: &KeyHasher) -> String {
    format!("{:032x}", hasher.check_value(CHECKED))
}

/// The sources of a base.
pub(crate) struct BaseSource<'s> {
    pub(crate) project: ProjectId,
    /// The saved state of the project's partition.
    pub(crate) snapshot: &'s PartitionSnapshot,
    /// The external ids of the partition, taken after the state.
    pub(crate) ids: &'s ExternalIdsView,
    pub(crate) hasher: &'s KeyHasher,
    /// Whether to continue.
    pub(crate) is_wanted: &'s dyn Fn() -> bool,
}

/// An error of reading the external ids or of writing them.
enum IdsError {
    Read(ExternalIdsError),
    Write(ArchiveError),
}

impl From<ExternalIdsError> for IdsError {
    fn from(error: ExternalIdsError) -> Self {
        Self::Read(error)
    }
}

impl From<IdsError> for Fault {
    fn from(error: IdsError) -> Self {
        match error {
            IdsError::Read(error) => fault::of_index(error),
            IdsError::Write(error) => fault::of_archive(error),
        }
    }
}

impl BaseSource<'_> {
    /// The position up to which the saved state has all events of the project, and none after it;
    /// `None` without a saved state.
    pub(crate) fn position(&self) -> Result<Option<Position>, Fault> {
        let meta = saved_meta(self.snapshot, self.project)?;
        meta.map(|meta| saved_position(self.snapshot).map(|all| all.max(meta.last))).transpose()
    }

    /// Writes the base into the project's folder `dir`, in constant memory, under another name than
    /// the `former` one. It is durable on return. Returns `None` without a saved state.
    pub(crate) fn write(&self, dir: &Path, former: Option<&BaseEntry>) -> Result<Option<BaseEntry>, Fault> {
        let (Some(meta), Some(position)) = (saved_meta(self.snapshot, self.project)?, self.position()?) else { return Ok(None) };
        let header = BaseHeader {
            project_id: self.project.to_string(),
            position,
            last: meta.last,
            key_check: key_check(self.hasher),
            stored_types: stored_types(),
        };
        let name = former.map_or(BaseName { position, rewrites: 0 }, |former| former.next_name(position));
        let mut writer = BaseWriter::create(dir, &header, name).map_err(fault::of_archive)?;
        self.write_pairs(&mut writer)?;
        let ids = self.write_ids(&mut writer, position)?;
        if ids < meta.external_ids {
            let expected = meta.external_ids;
            return Err(Fault::damaged_index(format!("the index has {ids} external ids of {}, not {expected}", self.project)));
        }
        writer.finish().map(Some).map_err(fault::of_archive)
    }

    fn write_pairs(&self, writer: &mut BaseWriter) -> Result<(), Fault> {
        for prefix in Key::all_of(PartitionId(0), self.project.0) {
            let mut pairs = self.snapshot.pairs(prefix.get(2..).unwrap_or_default()).map_err(fault::of_store)?;
            while let Some((key, value)) = pairs.next().map_err(fault::of_store)? {
                self.check_wanted()?;
                writer.push_pair(key.get(2..).unwrap_or_default(), &value).map_err(fault::of_archive)?;
            }
        }
        Ok(())
    }

    /// Writes the external ids of the events up to `position`, and returns their number.
    fn write_ids(&self, writer: &mut BaseWriter, position: Position) -> Result<u64, Fault> {
        let mut count = 0;
        let visited: Result<(), IdsError> = self.ids.for_each(&external_ids_of(self.project), |fingerprint, first| {
            if first > position {
                return Ok(());
            }
            count += 1;
            if !(self.is_wanted)() {
                return Err(IdsError::Write(ArchiveError::Stopped));
            }
            writer.push_id(fingerprint, first).map_err(IdsError::Write)
        });
        visited?;
        Ok(count)
    }

    fn check_wanted(&self) -> Result<(), Fault> {
        if (self.is_wanted)() { Ok(()) } else { Err(fault::of_archive(ArchiveError::Stopped)) }
    }
}
