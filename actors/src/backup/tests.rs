//! Backups of an archive, and of files that other processes write.

use std::fs;
use std::path::Path;

use headcount_archive::{FileEntry, Manifest};
use headcount_domain::{Day, ProjectId};

use super::collector::Collector;
use super::staging::Staging;

const PROJECT: ProjectId = ProjectId(7);

fn entry(first: u64, last: u64) -> FileEntry {
    let day = Day::parse("2026-11-20").unwrap();
    let name = format!("month=2026-11/{first:020}-{last:020}.parquet").parse().unwrap();
    FileEntry { name, rows: 1, first_day: day, last_day: day, bytes: 4, sha256: "00".repeat(32) }
}

/// A data directory with an archive of these files. Those in `missing` do not exist.
fn archived(files: &[FileEntry], missing: &[usize]) -> tempfile::TempDir {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join(format!("archive/project={PROJECT}"));
    fs::create_dir_all(folder.join("month=2026-11")).unwrap();
    Manifest::new(PROJECT, 100, files.to_vec()).unwrap().write(&folder).unwrap();
    for (number, file) in files.iter().enumerate().filter(|(number, _)| !missing.contains(number)) {
        fs::write(folder.join(file.name.to_string()), format!("PAR{number}")).unwrap();
    }
    fs::write(folder.join("month=2026-11/left-over.tmp"), "x").unwrap();
    fs::write(data.path().join("archive/sealed.json"), "{}").unwrap();
    fs::write(data.path().join("archive/sealed.json.tmp"), "{").unwrap();
    data
}

fn names(data: &Path, staging: Option<&Staging>) -> Result<Vec<String>, String> {
    let mut collector = Collector::new(data, staging);
    collector.take_archive().map_err(|error| error.to_string())?;
    Ok(collector.files.into_iter().map(|file| file.name).collect())
}

#[test]
fn the_archive_is_its_lists_and_what_they_name() {
    let files = [entry(1, 9), entry(10, 20)];
    let data = archived(&files, &[]);
    let staging = Staging::create(data.path()).unwrap();
    let folder = format!("archive/project={PROJECT}");
    let expected = [
        "archive/sealed.json".to_owned(),
        format!("{folder}/manifest.json"),
        format!("{folder}/{}", files[0].name),
        format!("{folder}/{}", files[1].name),
    ];
    assert_eq!(names(data.path(), None).unwrap(), expected);
    assert_eq!(names(data.path(), Some(&staging)).unwrap(), expected);
    for name in &expected {
        assert!(staging.dir.join(name).exists(), "{name}");
    }
    let dir = staging.dir.to_owned();
    drop(staging);
    assert!(!dir.exists());
}

#[test]
fn a_file_that_stays_away_is_an_error() {
    let data = archived(&[entry(1, 9), entry(10, 20)], &[1]);
    let staging = Staging::create(data.path()).unwrap();
    let refused = names(data.path(), Some(&staging)).unwrap_err();
    assert!(refused.contains("could not link what is named in"), "{refused}");
    let refused = names(data.path(), None).unwrap_err();
    assert!(refused.contains("00000000000000000010-00000000000000000020.parquet is damaged: it is missing"), "{refused}");
}

struct StopAtEnd<'s>(&'s std::sync::atomic::AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Merges continue while the files are taken: either all files of a list are taken, or the next
/// list is read.
#[test]
fn files_that_are_merged_meanwhile_are_taken_by_a_later_list() {
    let data = archived(&[entry(1, 1)], &[]);
    let folder = data.path().join(format!("archive/project={PROJECT}"));
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for last in (2..90).cycle() {
                let (old, new) = (Manifest::read(&folder, PROJECT).unwrap().unwrap(), entry(1, last));
                fs::write(folder.join(new.name.to_string()), "PAR1").unwrap();
                Manifest::new(PROJECT, 100, vec![new.clone()]).unwrap().write(&folder).unwrap();
                for file in old.files().iter().filter(|file| file.name != new.name) {
                    fs::remove_file(folder.join(file.name.to_string())).unwrap();
                }
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        // Set before any assertion fails, so that the other thread ends, too.
        let _stop = StopAtEnd(&stop);
        for _ in 0..200 {
            let staging = Staging::create(data.path()).unwrap();
            let taken = names(data.path(), Some(&staging)).unwrap();
            let list = Manifest::read(&staging.dir.join(format!("archive/project={PROJECT}")), PROJECT).unwrap().unwrap();
            assert_eq!(taken.len(), 3, "{taken:?}");
            assert!(taken[2].ends_with(&list.files()[0].name.to_string()), "{taken:?} {list:?}");
        }
    });
}
