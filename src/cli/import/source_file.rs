//! Which file is imported: what tells it from others, also after it grew or was renamed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::lines::{self, Place};

/// How much of a file's beginning is compared.
const HEAD_BYTES: u64 = 4_096;

/// What stays the same when a file grows, is touched or is renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    inode: u64,
    /// How many bytes of its beginning are compared: those that it had at first, up to [`HEAD_BYTES`].
    head_bytes: u64,
    /// Their hash, after decompression.
    head: String,
}

/// A file, and how it is read.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// As it was named.
    pub(crate) file: PathBuf,
    /// Project, format and flags: the same file read in another way is another import.
    pub(crate) how: String,
    /// As it is now.
    pub(crate) identity: Identity,
}

impl Subject {
    /// Looks at a file.
    pub(crate) fn of(file: &Path, how: String) -> io::Result<Self> {
        let inode = file.metadata()?.ino();
        let head = read_head(file, HEAD_BYTES)?;
        let head_bytes = u64::try_from(head.len()).unwrap_or(HEAD_BYTES);
        Ok(Self { file: file.to_owned(), how, identity: Identity { inode, head_bytes, head: hash(&head) } })
    }

    /// Whether an earlier import with this identity was of this file.
    pub(crate) fn was(&self, earlier: &Identity) -> bool {
        let has_head = || {
            let head = read_head(&self.file, earlier.head_bytes.min(HEAD_BYTES));
            head.is_ok_and(|head| u64::try_from(head.len()) == Ok(earlier.head_bytes) && hash(&head) == earlier.head)
        };
        earlier.inode == self.identity.inode && has_head()
    }

    /// The file in the same directory that has this identity, if it is longer than `done`.
    pub(crate) fn beside(&self, former: &Identity, done: u64) -> Option<PathBuf> {
        let parent = self.file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut files = std::fs::read_dir(parent).ok()?.flatten();
        let entry = files.find(|entry| entry.metadata().is_ok_and(|it| it.ino() == former.inode && it.len() > done))?;
        let beside = Self::of(&entry.path(), self.how.clone()).ok()?;
        beside.was(former).then_some(beside.file)
    }

    /// Whether the file has this place, between two lines. If not, it was written anew.
    pub(crate) fn reaches(&self, place: Place) -> io::Result<bool> {
        let mut file = File::open(&self.file)?;
        if place.offset == 0 || lines::is_packed(&mut file)? {
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

    /// A name for what a file's events are called by, the same whenever this file is imported in this way.
    pub(crate) fn name(&self) -> io::Result<String> {
        let head = read_head(&self.file, HEAD_BYTES)?;
        let first_line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Ok(hash(format!("{}\n{}\n{}", self.how, self.identity.inode, hash(first_line)).as_bytes()))
    }
}

fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

/// The beginning of a file, after decompression.
fn read_head(file: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let read = lines::open_plain(file)?.take(bytes).read_to_end(&mut head);
    // What is cut short has a beginning all the same.
    match read {
        Err(error) if head.is_empty() && error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(head),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;

    fn subject(file: &Path) -> Subject {
        Subject::of(file, "how".into()).unwrap()
    }

    #[test]
    fn a_file_stays_itself_when_it_grows_or_is_renamed_and_only_then() {
        let dir = tempfile::tempdir().unwrap();
        let (path, renamed) = (dir.path().join("log"), dir.path().join("log.1"));
        for first in ["", "a\n", &"a line of some length\n".repeat(500)] {
            std::fs::write(&path, first).unwrap();
            let before = subject(&path);
            OpenOptions::new().append(true).open(&path).unwrap().write_all(b"more\n").unwrap();
            assert!(subject(&path).was(&before.identity), "{}", first.len());
            assert!(subject(&path).reaches(Place { offset: first.len() as u64, lines: 0 }).unwrap());
            std::fs::rename(&path, &renamed).unwrap();
            assert!(subject(&renamed).was(&before.identity));
            std::fs::write(&path, first).unwrap();
            assert!(!subject(&path).was(&before.identity), "another inode");
            if !first.is_empty() {
                std::fs::write(&renamed, first.replace('a', "b")).unwrap();
                assert!(!subject(&renamed).was(&before.identity), "another beginning");
            }
            std::fs::remove_file(&renamed).unwrap();
        }
    }

    #[test]
    fn a_place_is_between_two_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "ab\ncd\r\nef").unwrap();
        let reached: Vec<bool> = (0..=10).map(|offset| subject(&path).reaches(Place { offset, lines: 0 }).unwrap()).collect();
        assert_eq!(reached, [true, false, true, true, false, true, true, true, false, true, false]);
    }
}
