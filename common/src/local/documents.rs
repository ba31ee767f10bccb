//! Documents in files of this machine.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use headcount_storage::files::rename;
use parking_lot::Mutex;

use super::{Files, Unwritten};
use crate::control_error::ControlError;
use crate::documents::{DocumentChange, DocumentVisitor, Documents, DocumentsError, Visited};

/// Documents of one kind, each in a file `KEY.json` of a directory.
#[derive(Debug)]
pub struct LocalDocuments {
    files: Files,
    changes: Mutex<Changes>,
}

/// The changes since the start. The first ones are the documents that existed then.
#[derive(Debug)]
struct Changes {
    /// The number of changes.
    count: u64,
    /// The changes that were not followed yet.
    unfollowed: VecDeque<Unfollowed>,
}

#[derive(Debug)]
struct Unfollowed {
    key: String,
    /// The new content, or `None` inside for a removal. `None` outside: the content is in the file.
    change: Option<Option<Vec<u8>>>,
}

impl LocalDocuments {
    /// Opens a directory, or creates it.
    ///
    /// # Errors
    /// The directory can't be read or written.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let files = Files::open(dir, ".json")?;
        let unfollowed: VecDeque<_> = files.list("")?.into_iter().map(|(key, _)| Unfollowed { key, change: None }).collect();
        let count = unfollowed.len() as u64;
        Ok(Self { files, changes: Mutex::new(Changes { count, unfollowed }) })
    }

    fn failed(&self, doing: &'static str, source: io::Error) -> ControlError {
        ControlError::io(doing, &self.files.dir, source)
    }
}

impl Documents for LocalDocuments {
    fn follow(&self, visit: &mut DocumentVisitor<'_>) -> Result<u64, ControlError> {
        let mut changes = self.changes.lock();
        while let Some(Unfollowed { key, change }) = changes.unfollowed.front() {
            let content = match change {
                Some(content) => content.clone(),
                None => self.files.read(key).map_err(|error| self.failed("read", error))?,
            };
            if visit(DocumentChange { key, content: content.as_deref() })? == Visited::Unreadable {
                let path = self.files.path(key);
                tracing::error!(path = %path.display(), "the damaged file is set aside");
                let aside = path.with_extension("json.damaged");
                rename(&path, &aside).map_err(|error| self.failed("set aside a file of", error))?;
            }
            changes.unfollowed.pop_front();
        }
        Ok(changes.count)
    }

    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, ControlError> {
        self.files.read(key).map_err(|error| self.failed("read", error))
    }

    fn put(&self, expected: u64, DocumentChange { key, content }: DocumentChange<'_>) -> Result<(), DocumentsError> {
        let mut changes = self.changes.lock();
        if changes.count != expected {
            return Err(DocumentsError::Conflict);
        }
        let written = self.files.put(key, content);
        if !matches!(written, Err(Unwritten::Unchanged(_))) {
            changes.count += 1;
            let change = written.is_ok().then(|| content.map(<[u8]>::to_vec));
            changes.unfollowed.push_back(Unfollowed { key: key.to_owned(), change });
        }
        written.map_err(|error| match error {
            Unwritten::Unchanged(error) => DocumentsError::Unavailable(error.to_string()),
            Unwritten::Unknown(error) => DocumentsError::Undecided(error.to_string()),
        })
    }

    fn prove(&self, expected: u64, _by: &str) -> Result<(), DocumentsError> {
        if self.changes.lock().count == expected { Ok(()) } else { Err(DocumentsError::Conflict) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use headcount_storage::files::switch::{Plan, Switch};

    use super::*;

    type Seen = BTreeMap<String, Vec<u8>>;

    /// Follows `documents`. A document with the content "damaged" can't be read.
    fn follow(documents: &LocalDocuments, seen: &mut Seen) -> u64 {
        let visit = |DocumentChange { key, content }: DocumentChange<'_>| {
            match content {
                Some(b"damaged") => return Ok(Visited::Unreadable),
                Some(content) => drop(seen.insert(key.to_owned(), content.to_vec())),
                None => drop(seen.remove(key)),
            }
            Ok(Visited::Applied)
        };
        let mut visit = visit;
        documents.follow(&mut visit).unwrap()
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names.into_iter().map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn documents_are_followed_and_damaged_ones_are_kept_aside() {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in [("a.json", "1"), ("b.json", "damaged"), ("b.json.tmp", "{"), ("c.other.json", "2"), ("d", "3")] {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        let documents = LocalDocuments::open(dir.path()).unwrap();
        let mut seen = Seen::new();
        let count = follow(&documents, &mut seen);
        assert_eq!(seen, Seen::from([("a".to_owned(), b"1".to_vec())]));
        assert_eq!(names(dir.path()), ["a.json", "b.json.damaged", "c.other.json", "d"]);
        let change = |key, content| DocumentChange { key, content };
        assert!(matches!(documents.put(count + 1, change("e", Some(b"4"))), Err(DocumentsError::Conflict)));
        documents.put(count, change("e", Some(b"4"))).unwrap();
        assert!(matches!(documents.put(count, change("a", None)), Err(DocumentsError::Conflict)));
        assert!(matches!(documents.prove(count, "me"), Err(DocumentsError::Conflict)));
        let count = follow(&documents, &mut seen);
        documents.prove(count, "me").unwrap();
        documents.put(count, change("a", None)).unwrap();
        follow(&documents, &mut seen);
        assert_eq!(seen, Seen::from([("e".to_owned(), b"4".to_vec())]));
        assert_eq!(follow(&LocalDocuments::open(dir.path()).unwrap(), &mut Seen::new()), 1);
    }

    /// Each operation of a change fails, once before it is done and once after. A refused change
    /// has not been made.
    #[test]
    fn a_change_that_fails_is_taken_back() {
        for (done, content) in [false, true].into_iter().flat_map(|done| [(done, Some(&b"new"[..])), (done, None)]) {
            for former in [None, Some(&b"old"[..])] {
                let mut failures = 0;
                loop {
                    let dir = tempfile::tempdir().unwrap();
                    let documents = LocalDocuments::open(dir.path()).unwrap();
                    let key = "a";
                    documents.put(0, DocumentChange { key, content: former }).unwrap();
                    let mut seen = Seen::new();
                    let count = follow(&documents, &mut seen);
                    let switch = Switch::arm(dir.path(), Plan { at: failures + 1, done, ..Plan::default() });
                    let changed = documents.put(count, DocumentChange { key, content });
                    let is_clean = switch.failed().is_empty();
                    drop(switch);
                    follow(&documents, &mut seen);
                    let expected = if changed.is_ok() { content } else { former };
                    assert!(!matches!(changed, Err(DocumentsError::Undecided(_))), "it can be taken back: {changed:?}");
                    assert_eq!(seen.get(key).map(Vec::as_slice), expected, "{changed:?}");
                    let mut again = Seen::new();
                    follow(&LocalDocuments::open(dir.path()).unwrap(), &mut again);
                    assert_eq!(again, seen, "as after a start: {changed:?}");
                    if is_clean {
                        break;
                    }
                    failures += 1;
                }
                assert!(failures >= 2, "{failures}");
            }
        }
    }
}
