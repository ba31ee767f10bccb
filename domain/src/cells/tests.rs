//! Compares rows with a map of the standard library.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::cells::Cells;
use crate::cells::packed::{KeyBytes, MAX_COLUMNS, Packed};
use crate::cells::parts::Parts;
use crate::limits::Limits;

/// A change of a row; the last column is as wide as the key's number says.
#[derive(Debug, Clone, Copy)]
enum Step {
    Set(u16, u64),
    Remove(u16),
    /// A checkpoint, and a restart from it.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..600u16, any::<u64>()).prop_map(|(key, value)| Step::Set(key, value >> (key % 64))),
        4 => (0..600u16).prop_map(Step::Remove),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 0..800)
}

/// Keys of four bytes; every third one lies far from its neighbours.
fn key(number: u16) -> KeyBytes {
    let mut bytes = KeyBytes::default();
    let number = if number.is_multiple_of(3) { u32::from(number) << 20 } else { u32::from(number) };
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn columns(value: u64) -> [u128; MAX_COLUMNS] {
    [value.into(), 0, u128::from(value % 7) << 100, (value % 3).into()]
}

/// The parts on disk.
type Disk = BTreeMap<u32, Packed>;

fn save(parts: &mut Parts, disk: &mut Disk) {
    for (number, part) in parts.freeze() {
        match part {
            Some(part) => drop(disk.insert(number, Packed::clone(&part))),
            None => drop(disk.remove(&number)),
        }
    }
}

fn restored(disk: &Disk) -> Parts {
    let mut parts = Parts::new(Limits::DEFAULT.part_bytes);
    for (number, part) in disk {
        parts.restore(*number, part.clone());
    }
    parts
}

fn set(parts: &mut Parts, number: u16, value: Option<u64>) {
    parts.change(4, &key(number), |_| value.map(columns));
}

proptest! {
    #[test]
    fn rows_are_those_of_a_map(steps in steps()) {
        let (mut straight, mut stopped, mut disk) = (Parts::new(Limits::DEFAULT.part_bytes), Parts::new(Limits::DEFAULT.part_bytes), Disk::new());
        let mut map = BTreeMap::new();
        for step in steps {
            match step {
                Step::Set(number, value) => {
                    map.insert(key(number), columns(value));
                    [&mut straight, &mut stopped].into_iter().for_each(|parts| set(parts, number, Some(value)));
                }
                Step::Remove(number) => {
                    map.remove(&key(number));
                    [&mut straight, &mut stopped].into_iter().for_each(|parts| set(parts, number, None));
                }
                Step::Restart => {
                    save(&mut stopped, &mut disk);
                    stopped = restored(&disk);
                }
            }
            prop_assert_eq!(straight.rows(), map.len());
        }
        let all = |parts: &Parts| parts.range([0; 24], [255; 24]).collect::<Vec<_>>();
        let rows: Vec<_> = map.iter().map(|(key, columns)| (*key, *columns)).collect();
        prop_assert_eq!(all(&straight), rows.clone());
        prop_assert_eq!(straight.range([0; 24], [255; 24]).rev().collect::<Vec<_>>(), rows.into_iter().rev().collect::<Vec<_>>());
        for (first, last) in [(0, 599), (7, 9), (300, 301), (9, 7), (599, 599)].map(|(first, last)| (key(first), key(last))) {
            let expected: Vec<_> = map.iter().filter(|(key, _)| (first..=last).contains(*key)).map(|(k, c)| (*k, *c)).collect();
            prop_assert_eq!(straight.range(first, last).collect::<Vec<_>>(), expected);
        }
        for number in 0..600 {
            prop_assert_eq!(straight.get(&key(number)), map.get(&key(number)).copied());
        }
        // A restart changes no saved byte, and the division into parts does not change the rows.
        save(&mut stopped, &mut disk);
        let mut whole = Disk::new();
        save(&mut straight, &mut whole);
        prop_assert!(whole == disk);
        let mut packed_anew = Parts::new(Limits::DEFAULT.part_bytes);
        all(&straight).iter().rev().for_each(|(key, columns)| packed_anew.change(4, key, |_| Some(*columns)));
        prop_assert!(packed_anew == straight && stopped == straight);
        prop_assert_eq!(straight.bytes() == 0, map.is_empty());
    }
}

#[test]
fn a_checkpoint_has_what_changed_as_it_was() {
    let mut parts = Parts::new(Limits::DEFAULT.part_bytes);
    (0..20_000).for_each(|number| parts.change(4, &key_of(number), |_| Some(columns(number.into()))));
    let first = parts.freeze();
    assert!(first.len() > 20);
    assert!(parts.freeze().is_empty(), "nothing changed since");
    parts.change(4, &key_of(7), |_| Some(columns(0)));
    let then =
        first.iter().filter_map(|(_, part)| part.as_ref()?.find(&key_of(7)).ok().map(|at| part.as_ref()?.columns(at).into()));
    assert_eq!(then.collect::<Vec<Option<_>>>(), [Some(columns(7))]);
    let second = parts.freeze();
    assert_eq!(second.len(), 1, "one part changed");
    assert!(second[0].1.as_ref().is_some_and(|part| part.bytes() <= 4096));
}

fn key_of(number: u32) -> KeyBytes {
    let mut bytes = KeyBytes::default();
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Parts stay within their size, and few are less than half full, in whatever order rows arrive.
/// Models the days of a job that sometimes goes through its groups from the last to the first.
#[test]
fn rows_stay_compact_when_their_order_changes_from_day_to_day() {
    const GROUPS: u32 = 4_000;
    let mut rows: Cells<(u32, i32, u32), i64> = Cells::default();
    for day in 0..12 {
        for number in 0..GROUPS {
            let number = if day % 2 == 0 { number } else { GROUPS - number };
            rows.change((7, day, number), |sum| *sum += 1);
        }
        // A single row of the next day shortens the common prefix of a part.
        rows.change((7, day + 1, GROUPS / 2), |sum| *sum += 1);
    }
    assert!(rows.weight() <= rows.len() * 8, "{} bytes in memory for {} rows", rows.weight(), rows.len());
}

#[test]
fn parts_are_bounded_and_rows_compact() {
    type Rows = Cells<(u32, i32, u32), i64>;
    let orders: [fn(u32) -> u32; 3] = [|number| number, |number| 200_000 - number, |number| number.wrapping_mul(0x9e37_79b1)];
    for order in orders {
        let mut rows = Rows::default();
        for number in 0..200_000 {
            rows.change((7, 19_000, order(number)), |sum| *sum += 1);
        }
        assert_eq!(rows.len(), 200_000);
        assert!(rows.parts().parts().all(|part| part.bytes() <= 4096));
        let bytes: usize = rows.parts().parts().map(Packed::bytes).sum();
        assert!(bytes <= 200_000 * 5, "{bytes} bytes");
        assert!(rows.weight() <= 200_000 * 6, "{} in memory", rows.weight());
        (0..200_000).for_each(|number| rows.change((7, 19_000, order(number)), |sum| *sum -= 1));
        assert_eq!((rows.len(), rows.weight()), (0, 0));
    }
}
