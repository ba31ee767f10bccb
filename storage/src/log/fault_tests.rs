//! Every operation of appends and of new segments fails, one at a time. A block that can't be
//! written or synced ends the process, so all of it happens in children.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use super::cursor::{Cursor, Step};
use super::{AppendEntry, Log, LogError, LogOptions, Position};
use crate::files::switch::{Errno, Plan, Switch};

const DIR: &str = "HEADCOUNT_TEST_LOG";
const PLAN: &str = "HEADCOUNT_TEST_PLAN";
/// Events that a child appends: two to a segment.
const EVENTS: u64 = 5;

fn options() -> LogOptions {
    LogOptions { segment_bytes: 0, prepare_ahead: false, repair: false }
}

/// Bytes that can't be packed.
fn payload(number: u64) -> Vec<u8> {
    (0..1_500_u64).map(|at| (((at + 1_500 * number).wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 56) as u8).collect()
}

fn append(log: &mut Log, number: u64) -> Result<Position, LogError> {
    log.append(&[AppendEntry { partition: 1, count: 1, payload: &payload(number) }])
}

fn contents(log: &Log) -> BTreeMap<Position, Vec<u8>> {
    let mut found = BTreeMap::new();
    let read = log.reader().read(
        |_| Some(0),
        |record| {
            found.insert(record.first, record.payload.to_vec());
            ControlFlow::Continue(())
        },
    );
    read.unwrap();
    found
}

/// Not a test of its own: the process in which [`an_append_survives_each_failure`] makes operations
/// fail.
#[test]
#[ignore = "run by an_append_survives_each_failure"]
fn child() {
    let (Ok(dir), Ok(plan)) = (std::env::var(DIR), std::env::var(PLAN)) else { return };
    let (mut log, _) = Log::open(&dir, options()).unwrap();
    let switch = Switch::arm(Path::new(&dir), plan.parse().unwrap());
    for number in 1..=EVENTS {
        let position = append(&mut log, number).unwrap_or_else(|error| {
            assert!(matches!(error, LogError::Full { .. } | LogError::Io { .. }), "{error}");
            switch.clear();
            // It was not recorded, and the log can be used again.
            append(&mut log, number).unwrap()
        });
        assert_eq!(position, number);
        println!("appended {number}");
    }
    println!("failed {}", switch.failed().len());
}

#[test]
fn an_append_survives_each_failure() {
    let (mut aborted, mut refused) = (0, 0);
    for way in ["errno=EIO", "errno=ENOSPC", "errno=ENOSPC,failures=all", "errno=EIO,failures=all", "errno=EIO,done=true"] {
        for at in 1.. {
            let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
            let dir = place.path().join("log");
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["log::fault_tests::child", "--exact", "--ignored", "--nocapture"]);
            let output = command.env(DIR, &dir).env(PLAN, format!("at={at},{way}")).output().unwrap();
            let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
            let appended = output_text.lines().filter(|line| line.contains("appended ")).count() as u64;
            let ended_by_itself = output.status.success();
            assert!(ended_by_itself || output.status.signal() == Some(6), "{way} at {at}: {:?} {output_text}", output.status);
            let (mut log, _) = Log::open(&dir, options()).unwrap_or_else(|error| panic!("{way} at {at}: {error}"));
            let found = contents(&log);
            // The block that ended the process was not acknowledged, and is there or not.
            let last = found.len() as u64;
            assert!(
                last == appended || !ended_by_itself && last == appended + 1,
                "{way} at {at}: {last} of {appended}, {output_text}"
            );
            assert!(found.iter().all(|(position, bytes)| *bytes == payload(*position)), "{way} at {at}");
            for number in last + 1..=EVENTS + 2 {
                assert_eq!(append(&mut log, number).unwrap(), number);
            }
            assert_eq!(contents(&log).len() as u64, EVENTS + 2);
            drop(log);
            let left: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert!(left.iter().all(|path| path.extension().is_none_or(|extension| extension != "tmp")), "{left:?}");
            aborted += u64::from(!ended_by_itself);
            if output_text.contains("failed 0") {
                break;
            }
            refused += u64::from(ended_by_itself);
        }
    }
    assert!(aborted > 20 && refused > 20, "{aborted} aborted, {refused} refused or went on");
}

#[test]
fn an_error_of_an_open_names_file_and_cause() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("log");
    let (mut log, _) = Log::open(&dir, options()).unwrap();
    (1..=EVENTS).for_each(|number| assert_eq!(append(&mut log, number).unwrap(), number));
    drop(log);
    let switch = Switch::arm(&dir, Plan::default());
    drop(Log::open(&dir, options()).unwrap());
    let operations = switch.operations();
    let mut errors = 0;
    for at in 1..=operations {
        switch.rearm(Plan { at, errno: Errno::Io, ..Plan::default() });
        if let Err(error) = Log::open(&dir, options()) {
            let text = error.to_string();
            assert!(text.contains("os error 5") && text.contains(dir.to_str().unwrap()), "at {at}: {text}");
            errors += 1;
        }
    }
    assert!(errors > 2, "{errors} errors");
}

/// The first positions of all blocks, and how many steps failed.
fn first_positions(cursor: &mut Cursor) -> (Vec<Position>, usize) {
    let (mut found, mut failures) = (Vec::new(), 0);
    loop {
        match cursor.step() {
            Ok(Step::Block(block)) => found.push(block.header.first),
            Ok(Step::End) => return (found, failures),
            Ok(Step::Bad(damage)) => panic!("{damage:?} after {found:?}"),
            Err(LogError::Io { .. }) => failures += 1,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_cursor_goes_on_where_a_read_failed() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("log");
    let (mut log, _) = Log::open(&dir, LogOptions { segment_bytes: 16 << 20, ..options() }).unwrap();
    // Blocks that end anywhere in the cursor's buffer, and one that is larger than it.
    let sizes = [100, 1, 170, 90, 3, 400, 120, 1, 250];
    for kib in sizes {
        let mut payload = vec![0; kib << 10];
        getrandom::fill(&mut payload).unwrap();
        log.append(&[AppendEntry { partition: 1, count: 1, payload: &payload }]).unwrap();
    }
    drop(log);
    let switch = Switch::arm(&dir, Plan::default());
    let open = || Cursor::open(&dir, 1).map(|(cursor, _)| cursor);
    let (expected, _) = first_positions(&mut open().unwrap());
    assert_eq!(expected, (1..=sizes.len() as u64).collect::<Vec<_>>());
    let (operations, mut failures) = (switch.operations(), 0);
    for at in 1..=operations {
        switch.rearm(Plan { at, errno: Errno::Io, ..Plan::default() });
        let Ok(mut cursor) = open() else { continue };
        let (found, failed) = first_positions(&mut cursor);
        assert_eq!(found, expected, "operation {at} failed");
        failures += failed;
    }
    assert!(failures > 3, "{failures} reads failed");
}
