//! Every operation on files of a backup and of a restore fails, one at a time.

use std::fs;
use std::path::Path;

use super::tests::{back_up, back_up_to, contents, data_directory, quick_directory, stream};
use super::*;
use crate::files::switch::{Errno, Plan, Switch};
use crate::format::Format;

const WAYS: [(Errno, bool); 3] = [(Errno::NoSpace, false), (Errno::Io, false), (Errno::Io, true)];

/// Calls `attempt` until all its operations under `dir` have failed once, in each way, and `check`
/// after each failure. Returns the number of failures.
fn each_failure(dir: &Path, mut attempt: impl FnMut() -> Result<(), BackupError>, check: impl Fn(&str)) -> usize {
    let switch = Switch::arm(dir, Plan::default());
    let mut failures = 0;
    for (errno, done) in WAYS {
        for at in 1.. {
            switch.rearm(Plan { at, errno, done, ..Plan::default() });
            let outcome = attempt();
            let has_failed = switch.failed().len() > failures;
            switch.clear();
            if !has_failed {
                outcome.unwrap();
                break;
            }
            failures += 1;
            let name = format!("{} as {errno:?}, done: {done}", switch.failed()[failures - 1]);
            let error = outcome.err().unwrap_or_else(|| panic!("nobody noticed that this failed: {name}"));
            check(&format!("{name}: {error}"));
        }
    }
    failures
}

#[test]
fn a_backup_that_fails_anywhere_is_none_and_changes_nothing() {
    let (data, place) = (data_directory(), quick_directory());
    let (source, dir) = (contents(data.path()), place.path().join("backup"));
    let attempt = || {
        let _ = fs::remove_dir_all(&dir);
        back_up_to(data.path(), &dir).map(drop)
    };
    let check = |name: &str| {
        assert!(!dir.exists() || contents(&dir).is_empty(), "{name}");
        assert_eq!(contents(data.path()), source, "{name}");
    };
    assert!(each_failure(place.path(), attempt, check) > 100);
    assert!(each_failure(data.path(), attempt, check) > 20);
}

#[test]
fn a_stream_that_can_not_be_written_anywhere_is_no_backup() {
    let (data, place) = (data_directory(), quick_directory());
    let (stream, dir) = (stream(data.path()), place.path().join("backup"));
    let attempt = || {
        let _ = fs::remove_dir_all(&dir);
        unpack(&stream[..], &mut BackupFolder::create(&dir, None)?).map(drop)
    };
    let check = |name: &str| assert!(!dir.exists() || contents(&dir).is_empty(), "{name}");
    assert!(each_failure(place.path(), attempt, check) > 100);
}

#[test]
fn a_backup_with_links_that_fails_anywhere_leaves_the_former_one_as_it_is() {
    let (data, place) = (data_directory(), quick_directory());
    let (former, dir) = (place.path().join("former"), place.path().join("backup"));
    back_up_to(data.path(), &former).unwrap();
    let before = contents(&former);
    let attempt = || {
        let _ = fs::remove_dir_all(&dir);
        back_up(data.path(), &mut BackupFolder::create(&dir, Some(Backup::open(&former)?))?).map(drop)
    };
    let check = |name: &str| {
        assert!(!dir.exists() || contents(&dir).is_empty(), "{name}");
        assert_eq!(contents(&former), before, "{name}");
    };
    assert!(each_failure(place.path(), attempt, check) > 100);
}

#[test]
fn a_restore_that_fails_anywhere_leaves_no_data_directory() {
    let (data, place) = (data_directory(), quick_directory());
    let (dir, to) = (place.path().join("backup"), place.path().join("data"));
    back_up_to(data.path(), &dir).unwrap();
    let before = contents(&dir);
    let attempt = || {
        let _ = fs::remove_dir_all(&to);
        fs::create_dir(&to).unwrap();
        restore(&Backup::open(&dir)?, &to)
    };
    let check = |name: &str| {
        assert!(!to.join("FORMAT").exists() && !to.join("RESTORING").exists(), "{name}");
        Format::open(&to).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(contents(&dir), before, "{name}");
    };
    assert!(each_failure(place.path(), attempt, check) > 100);
}
