//! The number of each company and group within its type, in the order of their first events. Sums
//! by number are faster than sums by key.

use crate::cells::{Cells, Room, StoredCells};
use crate::ids::RecordKey;

/// The key of a type, and a number within it. The row contains the key of the group.
pub type GroupNumber = (RecordKey, u32);

/// The numbers of companies and groups.
#[derive(Debug)]
pub struct GroupNumbers;

impl StoredCells for GroupNumbers {
    const TAG: u8 = 13;
    const NAME: &'static str = "group_numbers";
    const ROOM: Room = Room::Tables;
    type Key = GroupNumber;
    type Value = RecordKey;
}

impl Cells<GroupNumber, RecordKey> {
    /// Returns the number of groups of a type.
    #[must_use]
    pub fn count(&self, kind: RecordKey) -> usize {
        self.under(kind).next_back().map_or(0, |((_, last), _)| last as usize + 1)
    }

    /// Assigns the next number of a type to a new group.
    pub fn assign(&mut self, kind: RecordKey, key: RecordKey) -> u32 {
        let number = u32::try_from(self.count(kind)).unwrap_or(u32::MAX);
        self.set((kind, number), key);
        number
    }

    /// Unassigns a number. It is never assigned again.
    pub fn retire(&mut self, (kind, number): GroupNumber) {
        self.set((kind, number), RecordKey(0));
    }

    /// Returns the keys of some numbers of a type.
    #[must_use]
    pub fn keys(&self, kind: RecordKey, numbers: impl Iterator<Item = u32>) -> Vec<Option<RecordKey>> {
        numbers.map(|number| self.get((kind, number))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEAM: RecordKey = RecordKey(7);
    const SQUAD: RecordKey = RecordKey(8);
    const CREW: RecordKey = RecordKey(9);

    #[test]
    fn numbers_find_their_keys() {
        let mut cells: Cells<GroupNumber, RecordKey> = Cells::default();
        for number in 0..3000 {
            assert_eq!(cells.assign(TEAM, RecordKey(number)), u32::try_from(number).unwrap());
        }
        assert_eq!((cells.assign(SQUAD, RecordKey(7)), cells.assign(SQUAD, RecordKey(8))), (0, 1));
        assert_eq!((cells.count(TEAM), cells.count(SQUAD), cells.count(CREW)), (3000, 2, 0));
        let keys = |kind: RecordKey, numbers: &[u32]| cells.keys(kind, numbers.iter().copied());
        assert_eq!(keys(TEAM, &[2047, 0, 3000]), [Some(RecordKey(2047)), Some(RecordKey(0)), None]);
        assert_eq!((keys(SQUAD, &[1, 2]), keys(CREW, &[0])), (vec![Some(RecordKey(8)), None], vec![None]));
    }
}
