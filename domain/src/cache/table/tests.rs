use super::*;
use std::collections::BTreeMap;

impl Record for u32 {
    const SPACE: u8 = 255;
    const NAME: &'static str = "number";
    type Page = ();

    fn weight(&self) -> usize {
        4
    }
}

fn drain(table: &mut Table<u32>, mut most: usize, into: &mut BTreeMap<RecordKey, u32>) -> bool {
    table.drain_frozen(|key, value| {
        assert_eq!(into.insert(key, *value), None, "each record once");
        most -= 1;
        if most == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

fn drain_all<T: Record>(table: &mut Table<T>) {
    assert!(!table.drain_frozen(|_, _| ControlFlow::Continue(())), "nothing is left");
}

impl Record for Vec<u8> {
    const SPACE: u8 = 254;
    const NAME: &'static str = "bytes";
    type Page = ();

    fn weight(&self) -> usize {
        self.len()
    }
}

#[test]
fn a_record_that_grows_all_the_time_is_weighed_now_and_then() {
    const KEY: RecordKey = RecordKey(1);
    let mut table = Table::default();
    table.insert(KEY, Vec::new());
    let grow = |table: &mut Table<Vec<u8>>| {
        for _ in 0..1_000 {
            let record = table.get_mut(KEY, || Ok(None)).unwrap().unwrap();
            let mut taken = std::mem::take(record);
            taken.push(0);
            table.put_back(KEY, taken);
        }
    };
    grow(&mut table);
    let bytes = table.bytes();
    assert!(bytes.resident > 900 && bytes.unsaved == bytes.resident, "{bytes:?}");
    // The record is protected while its checkpoint is collected, and afterwards.
    table.freeze();
    grow(&mut table);
    while table.drain_frozen(|_, _| ControlFlow::Break(())) {}
    assert!(table.bytes().resident > 1_900 && table.bytes().unsaved > 1_900, "{:?}", table.bytes());
    table.mark_durable();
    table.freeze();
    while table.drain_frozen(|_, _| ControlFlow::Break(())) {}
    table.mark_durable();
    assert_eq!(table.bytes(), Bytes { resident: 2_000 + SLOT_BYTES, unsaved: 0 });
}

#[test]
fn a_checkpoint_holds_what_was_there_when_it_began() {
    let mut table = Table::default();
    for key in 0..10 {
        table.insert(RecordKey(key), 1);
    }
    table.freeze();
    let mut saved = BTreeMap::new();
    assert!(drain(&mut table, 3, &mut saved));
    assert_eq!(table.bytes().unsaved, 7 * (SLOT_BYTES + 4), "what is collected is no longer unsaved");
    for key in 0..12 {
        match table.get_mut(RecordKey(key), || Ok(None)).unwrap() {
            Some(value) => *value = 2,
            None => table.insert(RecordKey(key), 2),
        }
    }
    while drain(&mut table, 3, &mut saved) {}
    assert_eq!(saved, (0..10).map(|key| (RecordKey(key), 1)).collect());
    assert_eq!(table.dirty(), 12);
    table.freeze();
    let mut next = BTreeMap::new();
    while drain(&mut table, 5, &mut next) {}
    assert_eq!(next, (0..12).map(|key| (RecordKey(key), 2)).collect());
    assert_eq!(table.dirty(), 0);
}

#[test]
fn a_loaded_record_is_saved_only_when_it_changes() {
    let mut table: Table<u32> = Table::default();
    assert_eq!(table.get(RecordKey(1), || Ok(Some(5))), Ok(Some(&5)));
    assert_eq!(table.get(RecordKey(1), || Err(Fault::defect("not asked again"))), Ok(Some(&5)));
    assert_eq!(table.get(RecordKey(2), || Ok(None)), Ok(None));
    assert_eq!(table.dirty(), 0);
    assert!(table.get(RecordKey(3), || Err(Fault::io("gone"))).is_err());
}

/// A record with this many pages in memory.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct InPages(usize);

impl Record for InPages {
    const SPACE: u8 = 253;
    const PAGE_SPACE: u8 = 252;
    const NAME: &'static str = "in pages";
    type Page = ();

    fn weight(&self) -> usize {
        self.0 * 100
    }

    fn shed(&mut self) {
        self.0 = 0;
    }
}

#[test]
fn pages_of_a_record_in_use_are_evicted() {
    let mut table = Table::default();
    table.insert(RecordKey(1), InPages(5));
    table.freeze();
    drain_all(&mut table);
    table.mark_durable();
    assert_eq!(table.get_mut(RecordKey(1), || Ok(None)), Ok(Some(&mut InPages(5))));
    assert_eq!(table.evict(usize::MAX, 100), 500);
    assert_eq!(table.get(RecordKey(1), || Ok(None)), Ok(Some(&InPages(0))));
    assert_eq!(table.bytes(), Bytes { resident: SLOT_BYTES, unsaved: SLOT_BYTES });
}

#[test]
fn only_what_is_saved_and_not_in_use_is_let_go_of() {
    let mut table: Table<u32> = Table::default();
    for key in 0..10 {
        table.insert(RecordKey(key), 7);
    }
    let all = table.bytes();
    assert_eq!((all.resident, all.unsaved), (10 * (SLOT_BYTES + 4), all.resident));
    assert_eq!(table.evict(usize::MAX, 100), 0, "nothing is saved yet");
    table.freeze();
    drain_all(&mut table);
    assert_eq!(table.bytes(), Bytes { unsaved: 0, ..all });
    assert_eq!(table.evict(usize::MAX, 100), 0, "it is not in the store yet");
    table.mark_durable();
    *table.get_mut(RecordKey(3), || Ok(None)).unwrap().unwrap() = 8;
    assert_eq!(table.get(RecordKey(4), || Ok(None)), Ok(Some(&7)));
    table.freeze();
    assert_eq!(
        table.evict(usize::MAX, 100),
        8 * (SLOT_BYTES + 4),
        "all but the changed one and the one in use, also during a checkpoint"
    );
    drain_all(&mut table);
    table.mark_durable();
    assert_eq!(table.resident(), 2);
    assert_eq!(table.evict(1, 100), SLOT_BYTES + 4, "no more than is enough");
    assert_eq!(table.evict(1, 100), SLOT_BYTES + 4, "not asked for again");
    assert_eq!(table.get(RecordKey(0), || Ok(Some(7))), Ok(Some(&7)), "it comes back");
    assert_eq!(table.bytes().resident, SLOT_BYTES + 4);
    assert_eq!(table.evict(1, 1), 0, "it is in use");
}

#[test]
fn a_step_passes_over_a_bounded_number_of_records_that_changed_again() {
    let all = u32::try_from(3 * MOST_SKIPPED).unwrap();
    let mut table = Table::default();
    (0..all).for_each(|key| table.insert(RecordKey(key.into()), key));
    table.freeze();
    for key in 0..all {
        *table.get_mut(RecordKey(key.into()), || Ok(None)).unwrap().unwrap() += 1;
    }
    let mut saved = BTreeMap::new();
    let unfinished = std::iter::repeat_with(|| drain(&mut table, usize::MAX, &mut saved)).take_while(|more| *more).count();
    assert_eq!(unfinished, 2, "three steps");
    assert!(saved.into_iter().eq((0..all).map(|key| (RecordKey(key.into()), key))));
}
