//! The identity of the imported file, which survives growth and renaming.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::form::{Form, Recognized};
use super::lines::Place;
use super::tables::Tables;

/// The length of the compared beginning.
const HEAD_BYTES: u64 = 4_096;

/// The properties of a file that don't change when it grows, is touched or is renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileIdentity {
    inode: u64,
    /// The length of the compared beginning: the length of the file at its first import, at most
    /// [`HEAD_BYTES`].
    head_bytes: u64,
    /// The hash of the beginning, after decompression.
    head: String,
}

/// A file and the way to read it.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    /// The path as given.
    pub(crate) file: PathBuf,
    /// Project, format and flags. Reading the same file in another way is another import.
    pub(crate) how: String,
    /// The kinds of tables that the file may have.
    tables: Tables,
    /// The current identity.
    pub(crate) identity: FileIdentity,
}

impl SourceFile {
    /// Identifies a file as it is now.
    pub(crate) fn of(file: &Path, how: String, tables: Tables) -> io::Result<Self> {
        let inode = file.metadata()?.ino();
        let head = read_head(file, HEAD_BYTES)?;
        let head_bytes = u64::try_from(head.len()).unwrap_or(HEAD_BYTES);
        Ok(Self { file: file.to_owned(), how, tables, identity: FileIdentity { inode, head_bytes, head: hash(&head) } })
    }

    /// Returns whether an earlier import with this identity was of this file.
    pub(crate) fn is_same_as(&self, earlier: &FileIdentity) -> bool {
        let has_head = || {
            let head = read_head(&self.file, earlier.head_bytes.min(HEAD_BYTES));
            head.is_ok_and(|head| u64::try_from(head.len()) == Ok(earlier.head_bytes) && hash(&head) == earlier.head)
        };
        earlier.inode == self.identity.inode && has_head()
    }

    /// Finds the file in the same directory that has this identity and is longer than `done`.
    pub(crate) fn beside(&self, former: &FileIdentity, done: u64) -> Option<PathBuf> {
        let parent = self.file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut files = std::fs::read_dir(parent).ok()?.flatten();
        let entry = files.find(|entry| entry.metadata().is_ok_and(|it| it.ino() == former.inode && it.len() > done))?;
        let beside = Self::of(&entry.path(), self.how.clone(), self.tables).ok()?;
        beside.is_same_as(former).then_some(beside.file)
    }

    /// Returns whether the file has a boundary between two lines at this place. If not, it was
    /// rewritten.
    pub(crate) fn has_boundary(&self, place: Place) -> io::Result<bool> {
        let mut file = File::open(&self.file)?;
        // A continued import of a compressed file or a table skips the imported lines, and checks
        // them.
        if place.offset == 0 || !Recognized::open(&self.file)?.is_plain() {
            return Ok(true);
        }
        let length = file.metadata()?.len();
        if length < place.offset {
            return Ok(false);
        }
        let mut around = Vec::new();
        file.seek(SeekFrom::Start(place.offset - 1))?;
        file.take(2).read_to_end(&mut around)?;
        Ok(matches!(around[..], [b'\n', ..] | [_] | [_, b'\n' | b'\r']))
    }

    /// A prefix for the ids of the file's events. Every import of this file in this way has the
    /// same one.
    pub(crate) fn name(&self) -> io::Result<String> {
        let head = read_head(&self.file, HEAD_BYTES)?;
        // All tables of a kind have the same header.
        let is_table = Recognized::open(&self.file)?.form_among(self.tables).is_ok_and(|form| form == Form::Csv);
        let lines = head.split(|byte| *byte == b'\n').take(if is_table { 2 } else { 1 });
        let beginning = lines.map(hash).collect::<Vec<_>>().join(" ");
        Ok(hash(format!("{}\n{}\n{beginning}", self.how, self.identity.inode).as_bytes()))
    }
}

fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

/// Reads the beginning of a file, after decompression.
fn read_head(file: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let read = Recognized::open(file)?.reader.take(bytes).read_to_end(&mut head);
    // Even a truncated compressed file has a beginning.
    match read {
        Err(error) if head.is_empty() && error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(head),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::super::foreign::ForeignTable;
    use super::*;

    fn source(file: &Path) -> SourceFile {
        SourceFile::of(file, "how".into(), Tables::Exports).unwrap()
    }

    #[test]
    fn a_file_stays_itself_when_it_grows_or_is_renamed_and_only_then() {
        let dir = tempfile::tempdir().unwrap();
        let (path, renamed) = (dir.path().join("log"), dir.path().join("log.1"));
        for first in ["", "a\n", &"a line of some length\n".repeat(500)] {
            std::fs::write(&path, first).unwrap();
            let before = source(&path);
            OpenOptions::new().append(true).open(&path).unwrap().write_all(b"more\n").unwrap();
            assert!(source(&path).is_same_as(&before.identity), "{}", first.len());
            assert!(source(&path).has_boundary(Place { offset: first.len() as u64, lines: 0 }).unwrap());
            std::fs::rename(&path, &renamed).unwrap();
            assert!(source(&renamed).is_same_as(&before.identity));
            std::fs::write(&path, first).unwrap();
            assert!(!source(&path).is_same_as(&before.identity), "another inode");
            if !first.is_empty() {
                std::fs::write(&renamed, first.replace('a', "b")).unwrap();
                assert!(!source(&renamed).is_same_as(&before.identity), "another beginning");
            }
            std::fs::remove_file(&renamed).unwrap();
        }
    }

    #[test]
    fn events_of_another_table_in_the_same_file_have_other_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("export");
        let name = |text: &str, tables| {
            std::fs::write(&path, text).unwrap();
            SourceFile::of(&path, "how".into(), tables).unwrap().name().unwrap()
        };
        let foreign = Tables::Foreign(ForeignTable { is: "a table", needs: &[] });
        for (header, tables) in [("_v,name\n", Tables::Exports), ("2Path,Title\n", foreign)] {
            let [first, grown, other] = ["1,a\n", "1,a\n2,b\n", "1,b\n"].map(|rows| name(&format!("{header}{rows}"), tables));
            assert_eq!(first, grown, "{header}");
            assert_ne!(first, other, "{header}");
        }
        // A line has an event.
        let [one, grown, other] = ["{}\n", "{}\n{\"a\":1}\n", "{\"a\":1}\n"].map(|lines| name(lines, Tables::Exports));
        assert_eq!(one, grown);
        assert_ne!(one, other);
    }

    #[test]
    fn a_place_is_between_two_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "ab\ncd\r\nef").unwrap();
        let reached: Vec<bool> = (0..=10).map(|offset| source(&path).has_boundary(Place { offset, lines: 0 }).unwrap()).collect();
        assert_eq!(reached, [true, false, true, true, false, true, true, true, false, true, false]);
    }
}
