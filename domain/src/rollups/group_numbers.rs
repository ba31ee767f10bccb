//! The number of each company and group among those of its type, in the order in which this project was told of them: a list
//! by number is quicker to add up than one by key.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::RecordKey;
use crate::rollup::{Cell, Cells, Kept};

/// The keys of some numbers, by type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedGroups {
    by_type: BTreeMap<Box<str>, Vec<RecordKey>>,
}

impl Cell for NumberedGroups {
    fn is_empty(&self) -> bool {
        self.by_type.is_empty()
    }
}

/// See the module.
#[derive(Debug)]
pub struct GroupNumbers;

impl Kept for GroupNumbers {
    const TAG: u8 = 13;
    const NAME: &'static str = "group_numbers";
    type Cell = NumberedGroups;
}

/// How many numbers of a type share a cell, so that a new group doesn't have all of them written.
const TOGETHER: usize = 1024;

fn bucket(number: usize) -> i32 {
    i32::try_from(number / TOGETHER).unwrap_or(i32::MAX)
}

impl Cells<NumberedGroups> {
    /// How many groups of a type there are.
    #[must_use]
    pub fn count(&self, kind: &str) -> usize {
        let last = self.iter_back().find_map(|(bucket, cell)| Some((bucket, cell.by_type.get(kind)?.len())));
        last.map_or(0, |(bucket, there)| usize::try_from(bucket).unwrap_or_default() * TOGETHER + there)
    }

    /// Gives a new group its number.
    pub fn assign(&mut self, kind: &str, key: RecordKey) -> u32 {
        let number = self.count(kind);
        self.change(bucket(number), |cell| cell.by_type.entry(kind.into()).or_default().push(key));
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// The keys of some numbers of a type.
    #[must_use]
    pub fn keys(&self, kind: &str, numbers: impl Iterator<Item = u32>) -> Vec<Option<RecordKey>> {
        // No bucket before the last one of a type is without it.
        let lists: Vec<&[RecordKey]> = self.iter().map_while(|(_, cell)| cell.by_type.get(kind).map(Vec::as_slice)).collect();
        let key = |number: u32| lists.get(number as usize / TOGETHER)?.get(number as usize % TOGETHER).copied();
        numbers.map(key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_find_their_keys() {
        let mut cells: Cells<NumberedGroups> = Cells::default();
        for number in 0..3000 {
            assert_eq!(cells.assign("team", RecordKey(number)), u32::try_from(number).unwrap());
        }
        assert_eq!((cells.assign("squad", RecordKey(7)), cells.assign("squad", RecordKey(8))), (0, 1));
        assert_eq!((cells.count("team"), cells.count("squad"), cells.count("crew")), (3000, 2, 0));
        let keys = |kind: &str, numbers: &[u32]| cells.keys(kind, numbers.iter().copied());
        assert_eq!(keys("team", &[2047, 0, 3000]), [Some(RecordKey(2047)), Some(RecordKey(0)), None]);
        assert_eq!((keys("squad", &[1, 2]), keys("crew", &[0])), (vec![Some(RecordKey(8)), None], vec![None]));
    }
}
