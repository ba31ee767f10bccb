//! Reads a base, one frame at a time.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use headcount_domain::{Position, ProjectId};
use headcount_storage::files::File;

use super::entry::{BaseEntry, BaseHeader};
use super::frame::{FrameHead, FrameKind, HEAD_BYTES};
use crate::checksum;
use crate::error::{ArchiveError, Damage};

/// A part of a base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseItem {
    /// A pair of the store: key and value.
    Pair(Vec<u8>, Vec<u8>),
    /// The fingerprint of an external id, and the position of the first event with it.
    Id(u128, Position),
}

/// Reads a base. Everything that it returns is verified.
#[derive(Debug)]
pub struct BaseReader {
    file: File,
    path: PathBuf,
    name: String,
    header: BaseHeader,
    /// The length of the file.
    bytes: u64,
    /// The offset of the next frame.
    at: u64,
    kind: FrameKind,
    /// The rest of the current frame, from `from` on.
    contents: Vec<u8>,
    from: usize,
    pairs: u64,
    ids: u64,
}

impl BaseReader {
    /// Opens the base `entry` of the list of `project` in the folder `dir`.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] if the file is damaged or a different one, and
    /// [`ArchiveError::Io`].
    pub fn open(dir: &Path, project: ProjectId, entry: &BaseEntry) -> Result<Self, ArchiveError> {
        let (file, path) = open(dir, entry)?;
        let unknown =
            BaseHeader { project_id: String::new(), position: 0, last: 0, key_check: String::new(), stored_types: Vec::new() };
        let (kind, contents) = (FrameKind::Header, Vec::new());
        let name = entry.name();
        let mut reader =
            Self { file, path, name, header: unknown, bytes: entry.bytes, at: 0, kind, contents, from: 0, pairs: 0, ids: 0 };
        reader.next_frame()?;
        let header = match reader.kind {
            FrameKind::Header => serde_json::from_slice(&reader.contents).map_err(|error| error.to_string()),
            _ => Err("it does not begin with a header".to_owned()),
        };
        reader.header = header.map_err(|reason| reader.damaged(Damage::Contents(reason)))?;
        if reader.header.project_id != project.to_string() {
            return Err(reader.damaged(Damage::OtherFile("project")));
        }
        if reader.header.position != entry.position() {
            return Err(reader.damaged(Damage::OtherFile("position")));
        }
        reader.contents.clear();
        Ok(reader)
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The header of the base.
    pub fn header(&self) -> &BaseHeader {
        &self.header
    }

    /// Returns the next item: all pairs, then all ids. `None` at the end.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] and [`ArchiveError::Io`].
    #[expect(clippy::should_implement_trait, reason = "a part can fail to be read, which ends the reading")]
    pub fn next(&mut self) -> Result<Option<BaseItem>, ArchiveError> {
        while self.from >= self.contents.len() {
            if self.kind == FrameKind::End {
                return Ok(None);
            }
            self.next_frame()?;
            if self.kind == FrameKind::End {
                self.check_end()?;
                return Ok(None);
            }
        }
        let item = match self.kind {
            FrameKind::Pairs => self.pair(),
            FrameKind::Ids => self.id(),
            FrameKind::Header | FrameKind::End => None,
        };
        item.map(Some).ok_or_else(|| self.damaged(Damage::Contents("a frame ends within an item".to_owned())))
    }

    fn pair(&mut self) -> Option<BaseItem> {
        self.pairs += 1;
        let key = self.take_sized()?;
        Some(BaseItem::Pair(key, self.take_sized()?))
    }

    fn id(&mut self) -> Option<BaseItem> {
        self.ids += 1;
        let fingerprint = u128::from_le_bytes(self.take(16)?.try_into().ok()?);
        Some(BaseItem::Id(fingerprint, u64::from_le_bytes(self.take(8)?.try_into().ok()?)))
    }

    fn take_sized(&mut self) -> Option<Vec<u8>> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        self.take(length as usize).map(<[u8]>::to_vec)
    }

    fn take(&mut self, length: usize) -> Option<&[u8]> {
        let taken = self.contents.get(self.from..self.from.checked_add(length)?)?;
        self.from += length;
        Some(taken)
    }

    fn check_end(&mut self) -> Result<(), ArchiveError> {
        let expected = [self.pairs.to_le_bytes(), self.ids.to_le_bytes()].concat();
        if self.contents != expected || self.at != self.bytes {
            return Err(self.damaged(Damage::Contents("it does not end with what was written last".to_owned())));
        }
        self.from = self.contents.len();
        Ok(())
    }

    fn next_frame(&mut self) -> Result<(), ArchiveError> {
        let at = self.at;
        let not_intact = || ArchiveError::damaged(&self.name, Damage::Frame(at));
        let mut head = [0; HEAD_BYTES];
        let end = at + HEAD_BYTES as u64;
        if end > self.bytes {
            return Err(not_intact());
        }
        self.file.read_exact_at(&mut head, at).map_err(ArchiveError::io("read", &self.path))?;
        let head = FrameHead::decode(head).filter(|head| head.packed as u64 <= self.bytes - end).ok_or_else(not_intact)?;
        let mut packed = vec![0; head.packed];
        self.file.read_exact_at(&mut packed, end).map_err(ArchiveError::io("read", &self.path))?;
        let (kind, contents) = head.unpack(&packed).ok_or_else(not_intact)?;
        self.at = end + head.packed as u64;
        (self.kind, self.contents, self.from) = (kind, contents, 0);
        Ok(())
    }

    fn damaged(&self, reason: Damage) -> ArchiveError {
        ArchiveError::damaged(&self.name, reason)
    }
}

/// Opens the file of a base, and checks its length.
fn open(dir: &Path, entry: &BaseEntry) -> Result<(File, PathBuf), ArchiveError> {
    let path = dir.join(entry.name());
    let file = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(ArchiveError::damaged(entry.name(), Damage::Missing));
        }
        opened => opened.map_err(ArchiveError::io("open", &path))?,
    };
    let found = file.len().map_err(ArchiveError::io("inspect", &path))?;
    if found != entry.bytes {
        return Err(ArchiveError::damaged(entry.name(), Damage::Length { expected: entry.bytes, found }));
    }
    Ok((file, path))
}

/// Checks the header of a base, and with `whole` its SHA-256.
pub(crate) fn verify_base(dir: &Path, project: ProjectId, entry: &BaseEntry, whole: bool) -> Result<(), ArchiveError> {
    BaseReader::open(dir, project, entry)?;
    if !whole {
        return Ok(());
    }
    let (file, path) = open(dir, entry)?;
    match checksum::sha256(&file, &path, entry.bytes)? == entry.sha256 {
        true => Ok(()),
        false => Err(ArchiveError::damaged(entry.name(), Damage::Hash)),
    }
}
