//! Items that are files of a directory, read and written where no engine has the directory open.

use std::io;
use std::path::{Path, PathBuf};

use headcount_storage::files::{PRIVATE_FILE, create_private_dir, write_atomically};

use super::{Files, VALUE_SUFFIX};
use crate::checked_json;
use crate::document_set::DocumentItem;

/// The items of a directory.
pub struct ReadItems<T: DocumentItem> {
    /// The intact items.
    pub items: Vec<(T::Id, T)>,
    /// The number of damaged files.
    pub damaged: usize,
}

/// Reads the items in `dir`, and changes nothing there.
///
/// # Errors
/// Any error of the operating system.
pub fn read_items<T: DocumentItem>(dir: &Path) -> io::Result<ReadItems<T>> {
    let files = Files { dir: dir.to_owned(), suffix: T::SUFFIX };
    let (mut items, mut damaged) = (Vec::new(), 0);
    for (key, _) in listed(&files)? {
        let (Ok(id), Some(bytes)) = (key.parse::<T::Id>(), files.read(&key)?) else { continue };
        match checked_json::decode(T::VERSION, &bytes).filter(|item: &T| item.is_of(&id)) {
            Some(item) => items.push((id, item)),
            None => damaged += 1,
        }
    }
    Ok(ReadItems { items, damaged })
}

/// Writes items to `dir`, each durably. Makes the directory.
///
/// # Errors
/// Any error of the operating system. Some items may then be written.
pub fn write_items<'i, T: DocumentItem + 'i>(dir: &Path, items: impl IntoIterator<Item = (&'i T::Id, &'i T)>) -> io::Result<()> {
    create_private_dir(dir)?;
    let files = Files { dir: dir.to_owned(), suffix: T::SUFFIX };
    items.into_iter().try_for_each(|(id, item)| {
        write_atomically(&files.path(&id.to_string()), &checked_json::encode(T::VERSION, item)?, PRIVATE_FILE)
    })
}

/// Returns the names of the files in `dir` that a backup needs: documents and values. Each file is
/// only ever replaced as a whole.
///
/// # Errors
/// The directory can't be read.
pub fn item_names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for suffix in [".json", VALUE_SUFFIX] {
        let files = Files { dir: dir.to_owned(), suffix };
        names.extend(listed(&files)?.into_iter().map(|(key, _)| format!("{key}{suffix}")));
    }
    Ok(names)
}

/// The files of a directory; none if it does not exist.
fn listed(files: &Files) -> io::Result<Vec<(String, PathBuf)>> {
    match files.list("") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}

#[cfg(test)]
mod tests {
    use headcount_storage::files::switch::{Plan, Switch};
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Item(u64, String);

    impl DocumentItem for Item {
        type Id = u64;
        const WHAT: &'static str = "test";
        const SUFFIX: &'static str = ".item.json";

        fn is_of(&self, id: &u64) -> bool {
            self.0 == *id
        }
    }

    #[test]
    fn intact_items_are_read_and_damaged_ones_are_counted() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("items");
        assert_eq!(item_names(&dir).unwrap(), [""; 0], "there is no directory yet");
        let items: Vec<Item> = (1..=3).map(|id| Item(id, format!("text {id}"))).collect();
        write_items(&dir, items.iter().map(|item| (&item.0, item))).unwrap();
        let path = |name: &str| dir.join(name);
        let changed = std::fs::read_to_string(path("2.item.json")).unwrap().replace("text", "next");
        std::fs::write(path("2.item.json"), changed).unwrap();
        std::fs::copy(path("1.item.json"), path("3.item.json")).unwrap();
        for other in ["1.item.json.tmp", "1.json", "1.json.tmp", "x.item.json", "5.item.json.damaged", "2.progress.json"] {
            std::fs::write(path(other), "{").unwrap();
        }
        let ReadItems { items: read, damaged } = read_items::<Item>(&dir).unwrap();
        assert_eq!((read.len(), damaged, &read[0].1), (1, 2, &items[0]));
        assert_eq!(item_names(&dir).unwrap(), ["1.json", "2.progress.json"], "documents and values");
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 9, "nothing is changed");
    }

    #[test]
    fn a_write_that_fails_leaves_the_former_or_the_new_item() {
        let home = tempfile::tempdir().unwrap();
        let (old, new) = (Item(7, "old".to_owned()), Item(7, "new".to_owned()));
        let write = |item: &Item| write_items(home.path(), [(&7, item)]);
        for done in [false, true] {
            for at in 1.. {
                write(&old).unwrap();
                let switch = Switch::arm(home.path(), Plan { at, done, ..Plan::default() });
                let written = write(&new);
                let is_clean = switch.failed().is_empty();
                drop(switch);
                let there = read_items::<Item>(home.path()).unwrap().items.remove(0).1;
                assert!(if written.is_ok() { there == new } else { there == old || there == new }, "{there:?}");
                if is_clean {
                    assert!(at >= 4, "{at}");
                    break;
                }
            }
        }
    }
}
