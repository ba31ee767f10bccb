//! Sealing, merging and reading take a bounded amount of memory, whatever senders choose. A process
//! of its own, whose peak is measured.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use headcount_archive::{Archive, ArchiveError, CompactOptions, Currencies, Row, SealOptions, Sealer, merge_next};
use headcount_domain::intake::event::{Details, SentIds};
use headcount_domain::time::Month;
use headcount_domain::{Currency, Day, Event, Instant, Position, ProjectId};

const PROJECT: ProjectId = ProjectId(1);
const CURRENCIES: Currencies = Currencies { project: Currency::USD, organization: Currency::USD };
/// What any of it may take beyond what the process had before.
const MAX_KIB: u64 = 40 << 10;

/// The most memory that the process had since the last call of [`forget_peak`].
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Counts the peak from here on (proc(5), `clear_refs`).
fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// Digits that don't repeat.
fn noise(seed: u64, len: usize) -> String {
    let mut state = seed;
    let mut text = String::with_capacity(len + 16);
    while text.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        text.push_str(&format!("{:016x}", mixed ^ (mixed >> 27)));
    }
    text.truncate(len);
    text
}

fn row(position: Position, metadata: String) -> Row {
    let event = Event {
        project: PROJECT,
        time: Instant(0),
        received: Instant(position.cast_signed()),
        day: Day(0),
        interactive: true,
        name: "event".into(),
        who: SentIds { user_id: Some(noise(position, 30).into()), ..SentIds::default() },
        external_id: Some(noise(!position, 36).into()),
        money: None,
        company: None,
        company_domain: None,
        email_company: None,
        details: Details { metadata: Some(metadata.into()), ..Details::default() },
    };
    Row::new(position, event, CURRENCIES)
}

/// 128 keys, all of them different at each row, or the same with different values.
fn many_keys(position: Position) -> Row {
    let key = |number: u64| {
        let name = if position.is_multiple_of(2) { number } else { number + position * 1_000 };
        format!(r#""k{name}":"{}""#, noise(position * 131 + number, 12))
    };
    let keys: Vec<_> = (0..128).map(key).collect();
    row(position, format!("{{{}}}", keys.join(",")))
}

/// 60 KiB in eight texts.
fn large(position: Position) -> Row {
    let texts: Vec<_> = (0..8).map(|number| format!(r#""t{number}":"{}""#, noise(position * 11 + number, 7_600))).collect();
    row(position, format!("{{{}}}", texts.join(",")))
}

fn use_all(root: &std::path::Path, rows: u64, make: impl Fn(Position) -> Row) -> u64 {
    let mut archive = Archive::open(root, PROJECT).unwrap();
    forget_peak();
    let before = peak_kib();
    for part in 0..2 {
        let mut sealer = Sealer::new(&mut archive, SealOptions::default());
        (part * rows / 2 + 1..=(part + 1) * rows / 2).for_each(|position| sealer.push(&make(position)).unwrap());
        sealer.finish((part + 1) * rows / 2).unwrap();
    }
    let sealed = peak_kib();
    forget_peak();
    assert!(merge_next(&mut archive, Month(i32::MAX), &CompactOptions::default(), &|| true).unwrap());
    let merged = peak_kib();
    forget_peak();
    let mut read = 0;
    let count = |found: Row| -> Result<(), ArchiveError> {
        read += u64::from(found == make(found.position));
        Ok(())
    };
    archive.for_each_row(0, count).unwrap();
    assert_eq!(read, rows);
    let [sealed, merged, read] = [sealed, merged, peak_kib()].map(|peak| peak.saturating_sub(before));
    println!("{rows} rows: {sealed} KiB to seal, {merged} to merge, {read} to read");
    sealed.max(merged).max(read)
}

#[test]
fn nobody_can_make_it_large() {
    let root = tempfile::tempdir().unwrap();
    for (name, rows, make) in [("many", 8_000, many_keys as fn(Position) -> Row), ("large", 1_200, large)] {
        let taken = use_all(&root.path().join(name), rows, make);
        assert!(taken < MAX_KIB, "{name}: {taken} KiB");
    }
}
