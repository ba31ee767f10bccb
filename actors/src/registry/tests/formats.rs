//! Files of past versions stay readable: one fixture for each version of records and of snapshots.

use super::super::record::{decode, encode};
use super::super::{snapshot, state};
use super::*;

const RECORDS_V1: &str = include_str!("fixtures/records-v1.ndjson");
const SNAPSHOT_V1: &str = include_str!("fixtures/snapshot-v1.json");

fn replayed() -> State {
    let mut state = State::default();
    for (line, i) in RECORDS_V1.lines().zip(1..) {
        let record = decode(line.as_bytes(), i).unwrap();
        assert_eq!(String::from_utf8(encode(&record).unwrap()).unwrap(), line, "the current version writes it the same");
        state.check(&record).unwrap();
        state.apply(record).unwrap();
    }
    state
}

#[test]
fn records_of_version_1_are_read() {
    let state = replayed();
    let tenant = state.tenants.values().next().unwrap();
    assert_eq!((state.tenants.len(), tenant.projects.len(), tenant.tokens.len()), (1, 2, 1));
    assert_eq!(tenant.organization.timezone, berlin());
    assert!(tenant.organization.events_recorded);
}

#[test]
fn snapshots_of_version_1_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = snapshot::path(dir.path(), 7);
    fs::write(&path, SNAPSHOT_V1.trim_end()).unwrap();
    let read: Option<state::State> = snapshot::load(dir.path(), 7).unwrap();
    assert_eq!(read, Some(replayed()));
    snapshot::write(dir.path(), 7, &replayed()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), SNAPSHOT_V1.trim_end());
}
