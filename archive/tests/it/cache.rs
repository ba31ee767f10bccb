//! An archive whose folder is a cache.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io};

use headcount_archive::{Archive, ArchiveError, Damage, FileSource, ListedFile, SealOptions, cached_files};
use headcount_domain::ProjectId;

use crate::support::{PROJECT, rows, scratch, seal, series};

/// Has the files of an archive in another folder.
#[derive(Debug)]
struct Elsewhere {
    folder: PathBuf,
    fetched: AtomicUsize,
    /// How many of the next files disappear at once.
    vanishing: AtomicUsize,
}

impl FileSource for Elsewhere {
    fn fetch(&self, project: ProjectId, file: &ListedFile, to: &Path) -> io::Result<()> {
        assert_eq!(project, PROJECT);
        fs::copy(self.folder.join(&file.name), to)?;
        self.fetched.fetch_add(1, Ordering::Relaxed);
        let take = |left: usize| left.checked_sub(1);
        match self.vanishing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => fs::remove_file(to),
            Err(_) => Ok(()),
        }
    }
}

#[test]
fn files_that_left_the_folder_are_fetched_when_they_are_read() {
    let (root, away) = (scratch(), scratch());
    let mut archive = Archive::open(root.path(), PROJECT).unwrap();
    let all = series((1..=25).map(|number| number * 3));
    seal(&mut archive, &all, SealOptions { file_rows: 10, ..SealOptions::default() });
    let listed: BTreeSet<(String, u64)> = archive.manifest().listed().map(|file| (file.name, file.bytes)).collect();
    for (name, _) in &listed {
        let to = away.path().join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(root.path().join(format!("project={PROJECT}")).join(name), to).unwrap();
    }
    let source = Arc::new(Elsewhere { folder: away.path().to_owned(), fetched: 0.into(), vanishing: 0.into() });
    let archive = archive.with_source(Some(Arc::clone(&source) as Arc<dyn FileSource>));
    let cached = || cached_files(root.path()).unwrap();
    let remove_all = || cached().iter().for_each(|file| file.remove().unwrap());
    assert_eq!(cached().into_iter().map(|file| (file.name, file.bytes)).collect::<BTreeSet<_>>(), listed);
    assert_eq!(rows(&archive), all);
    assert_eq!(source.fetched.load(Ordering::Relaxed), 0);
    remove_all();
    assert_eq!(cached(), []);
    assert!(archive.damaged_files(true).unwrap().is_empty(), "what is to be fetched is not damaged");
    assert_eq!(rows(&archive), all);
    assert_eq!((source.fetched.load(Ordering::Relaxed), cached().len()), (3, 3));
    // They may be removed again before they are open, but not for ever.
    remove_all();
    source.vanishing.store(3, Ordering::Relaxed);
    assert_eq!(rows(&archive), all);
    remove_all();
    source.vanishing.store(usize::MAX, Ordering::Relaxed);
    let missing = archive.file(&archive.manifest().files()[0]);
    assert!(matches!(missing, Err(ArchiveError::Damaged { reason: Damage::Missing, .. })), "{missing:?}");
}

#[test]
fn a_folder_that_is_missing_has_no_files() {
    assert_eq!(cached_files(&scratch().path().join("missing")).unwrap(), []);
}
