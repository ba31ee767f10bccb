//! Directories of small checked JSON files, one for each item. A file is only ever replaced as a
//! whole.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use headcount_storage::files::{
    PRIVATE_FILE, create_private_dir, list, read_if_there, remove_file, rename, sync_dir, write_atomically,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checked_json;

/// An item that is stored in its own file.
pub trait Filed: Serialize + DeserializeOwned {
    /// The id of an item. It names the file.
    type Id: Display + FromStr;
    /// The kind of item, in messages.
    const WHAT: &'static str;
    /// The suffix of a file's name, after the id.
    const SUFFIX: &'static str = ".json";
    /// The version of the content.
    const VERSION: u8 = 1;

    /// Whether the item belongs in the file of `id`.
    fn is_of(&self, id: &Self::Id) -> bool;
}

/// A directory of small checked JSON files, one for each item.
#[derive(Debug)]
pub struct CheckedFiles<T> {
    dir: PathBuf,
    items: PhantomData<fn() -> T>,
}

impl<T: Filed> CheckedFiles<T> {
    /// Opens a directory, or creates it, and passes every item to `take`. Removes files of
    /// interrupted writes. Sets damaged files aside: they are renamed and named in the log.
    ///
    /// # Errors
    /// A file or the directory can't be read or written.
    pub fn open(dir: &Path, mut take: impl FnMut(T::Id, T)) -> io::Result<Self> {
        create_private_dir(dir)?;
        let files = Self { dir: dir.to_owned(), items: PhantomData };
        for path in list(dir)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(id) = id_of::<T>(name) {
                match files.read(&id) {
                    Ok(None) => {}
                    Ok(Some(item)) => take(id, item),
                    Err(error) if error.kind() == ErrorKind::InvalidData => {
                        tracing::error!(path = %path.display(), "a damaged file of a {} was set aside", T::WHAT);
                        rename(&path, &files.aside(&id))?;
                    }
                    Err(error) => return Err(error),
                }
            } else if name.strip_suffix(".tmp").is_some_and(|name| id_of::<T>(name).is_some()) {
                // It may name a person who is erased by now.
                remove_file(&path)?;
            }
        }
        Ok(files)
    }

    fn path(&self, id: &T::Id) -> PathBuf {
        self.dir.join(format!("{id}{}", T::SUFFIX))
    }

    fn aside(&self, id: &T::Id) -> PathBuf {
        self.dir.join(format!("{id}{}.damaged", T::SUFFIX))
    }

    /// Reads an item, if it exists.
    ///
    /// # Errors
    /// Any error of the operating system; [`ErrorKind::InvalidData`]: the file is damaged, or
    /// belongs to another item.
    pub fn read(&self, id: &T::Id) -> io::Result<Option<T>> {
        let Some(bytes) = read_if_there(&self.path(id))? else { return Ok(None) };
        let item = checked_json::decode(T::VERSION, &bytes).filter(|item: &T| item.is_of(id));
        let damaged = || io::Error::new(ErrorKind::InvalidData, format!("the file of a {} is damaged", T::WHAT));
        item.map(Some).ok_or_else(damaged)
    }

    /// Writes an item, durably.
    ///
    /// # Errors
    /// Any error of the operating system. The former or the new file exists then, complete.
    pub fn write(&self, id: &T::Id, item: &T) -> io::Result<()> {
        write_atomically(&self.path(id), &checked_json::encode(T::VERSION, item)?, PRIVATE_FILE)
    }

    /// Removes an item, durably, if it exists.
    ///
    /// # Errors
    /// Any error of the operating system. The file may exist or not.
    pub fn remove(&self, id: &T::Id) -> io::Result<()> {
        match remove_file(&self.path(id)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => sync_dir(&self.dir),
        }
    }

    /// Returns the names of the files in `dir` that a backup needs. Each is only ever replaced as a
    /// whole.
    ///
    /// # Errors
    /// The directory can't be read.
    pub fn names(dir: &Path) -> io::Result<Vec<String>> {
        let paths = match list(dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            listed => listed?,
        };
        let names = paths.into_iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
        Ok(names.filter(|name| id_of::<T>(name).is_some()).collect())
    }
}

/// The items of a directory.
pub struct ReadItems<T: Filed> {
    /// The intact items.
    pub items: Vec<(T::Id, T)>,
    /// The number of damaged items.
    pub damaged: usize,
}

/// Reads the items of a directory that no process changes. Changes nothing there.
///
/// # Errors
/// Any error of the operating system.
pub fn read_all<T: Filed>(dir: &Path) -> io::Result<ReadItems<T>> {
    let files = CheckedFiles::<T> { dir: dir.to_owned(), items: PhantomData };
    let (mut items, mut damaged) = (Vec::new(), 0);
    let mut names = CheckedFiles::<T>::names(dir)?;
    names.sort_unstable();
    for id in names.iter().filter_map(|name| id_of::<T>(name)) {
        match files.read(&id) {
            Ok(item) => items.extend(item.map(|item| (id, item))),
            Err(error) if error.kind() == ErrorKind::InvalidData => damaged += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(ReadItems { items, damaged })
}

/// The id of the item in the file `name`.
fn id_of<T: Filed>(name: &str) -> Option<T::Id> {
    name.strip_suffix(T::SUFFIX)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use headcount_storage::files::switch::{Plan, Switch};
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Item(u64, String);

    impl Filed for Item {
        type Id = u64;
        const WHAT: &'static str = "test";
        const SUFFIX: &'static str = ".item.json";

        fn is_of(&self, id: &u64) -> bool {
            self.0 == *id
        }
    }

    fn open(dir: &Path) -> (CheckedFiles<Item>, BTreeMap<u64, String>) {
        let mut items = BTreeMap::new();
        let files = CheckedFiles::open(dir, |id, item: Item| drop(items.insert(id, item.1))).unwrap();
        (files, items)
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names.into_iter().map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn what_is_damaged_is_kept_and_what_was_cut_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("items");
        assert_eq!(CheckedFiles::<Item>::names(&dir).unwrap(), [""; 0], "there is no directory yet");
        let (files, _) = open(&dir);
        for id in 1..=4 {
            files.write(&id, &Item(id, format!("text {id}"))).unwrap();
        }
        let path = |name: &str| dir.join(name);
        std::fs::write(path("2.item.json"), std::fs::read_to_string(path("2.item.json")).unwrap().replace("text", "next"))
            .unwrap();
        std::fs::copy(path("1.item.json"), path("3.item.json")).unwrap();
        files.remove(&4).unwrap();
        files.remove(&4).unwrap();
        for other in ["1.item.json.tmp", "1.json", "1.json.tmp", "x.item.json", "5.item.json.damaged"] {
            std::fs::write(path(other), "{").unwrap();
        }
        assert_eq!(files.read(&2).unwrap_err().kind(), ErrorKind::InvalidData);
        let (files, items) = open(&dir);
        assert_eq!(items, BTreeMap::from([(1, "text 1".to_owned())]));
        assert_eq!((files.read(&1).unwrap(), files.read(&2).unwrap()), (Some(Item(1, "text 1".to_owned())), None));
        assert_eq!(
            names(&dir),
            [
                "1.item.json",
                "1.json",
                "1.json.tmp",
                "2.item.json.damaged",
                "3.item.json.damaged",
                "5.item.json.damaged",
                "x.item.json"
            ]
        );
        assert_eq!(CheckedFiles::<Item>::names(&dir).unwrap(), ["1.item.json"]);
    }

    /// Each operation of a write, of a removal and of an opening fails, once before it is done and
    /// once after.
    #[test]
    fn after_a_failure_a_file_is_whole_or_gone() {
        let home = tempfile::tempdir().unwrap();
        let (files, _) = open(home.path());
        let (old, new) = ("old".to_owned(), "new".to_owned());
        for done in [false, true] {
            let (mut failures, mut at) = (0, 0);
            loop {
                at += 1;
                files.write(&7, &Item(7, old.clone())).unwrap();
                let switch = Switch::arm(home.path(), Plan { at, done, ..Plan::default() });
                let written = files.write(&7, &Item(7, new.clone()));
                let opened = written.is_ok().then(|| CheckedFiles::open(home.path(), |_, _: Item| ()));
                let removed = matches!(opened, Some(Ok(_))).then(|| files.remove(&7));
                let failed = switch.failed();
                drop(switch);
                let there = open(home.path()).1.remove(&7);
                match removed {
                    Some(Ok(())) => assert_eq!(there, None, "{failed:?}"),
                    Some(Err(_)) => assert!(there.is_none_or(|there| there == new), "{failed:?}"),
                    None if written.is_ok() => assert_eq!(there.as_ref(), Some(&new), "{failed:?}"),
                    None => assert!(there.is_some_and(|there| there == old || there == new), "{failed:?}"),
                }
                if failed.is_empty() {
                    break;
                }
                failures += 1;
            }
            assert!(failures >= 10, "{failures}");
        }
    }
}
