//! The number of each company and group within its type, in the order of their first events, and
//! the prefix of its name.
//!
//! Sums by number are faster than sums by key. Top lists use the prefixes to break ties without
//! reading records.

use crate::cells::packed::Columns;
use crate::cells::{Cells, Room, StoredCells, Value};
use crate::ids::RecordKey;
use serde::{Deserialize, Serialize};

/// The first 16 bytes of a name. A smaller prefix means a smaller name; equal prefixes decide
/// nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NamePrefix([u8; 16]);

impl NamePrefix {
    /// Returns the prefix of a name.
    pub fn of(name: &str) -> Self {
        let mut first = [0; 16];
        first.iter_mut().zip(name.bytes()).for_each(|(to, byte)| *to = byte);
        Self(first)
    }
}

impl Value for NamePrefix {
    fn columns(self) -> Columns {
        [u128::from_be_bytes(self.0), 0, 0, 0]
    }

    fn from_columns(columns: &Columns) -> Self {
        Self(columns[0].to_be_bytes())
    }
}

/// The prefixes of the names of companies and groups.
#[derive(Debug)]
pub struct GroupNames;

impl StoredCells for GroupNames {
    const TAG: u8 = 23;
    const NAME: &'static str = "group_names";
    const ROOM: Room = Room::Tables;
    type Key = GroupNumber;
    type Value = NamePrefix;
}

impl Cells<GroupNumber, NamePrefix> {
    /// Records the name of a group.
    pub fn set_name(&mut self, kind: RecordKey, number: u32, name: &str) {
        self.set((kind, number), NamePrefix::of(name));
    }

    /// Returns the numbers and prefixes of a type, in order of number.
    pub fn of_kind(&self, kind: RecordKey) -> impl Iterator<Item = (u32, NamePrefix)> {
        self.under(kind).map(|((_, number), prefix)| (number, prefix))
    }
}

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
    pub(crate) fn retire(&mut self, (kind, number): GroupNumber) {
        self.set((kind, number), RecordKey(0));
    }

    /// Returns the keys of some numbers of a type.
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
    fn numbers_find_their_prefixes() {
        let mut cells: Cells<GroupNumber, NamePrefix> = Cells::default();
        for number in 0..3000 {
            cells.set_name(TEAM, number, &format!("team {number:05} of the house"));
        }
        cells.set_name(TEAM, 2047, "The name that was reported");
        cells.set_name(SQUAD, 0, "s");
        let team: Vec<_> = cells.of_kind(TEAM).collect();
        assert_eq!(team.len(), 3000);
        let expected = [(2046, NamePrefix::of("team 02046 of the")), (2047, NamePrefix::of("The name that wa"))];
        assert_eq!(team[2046..2048], expected);
        assert_eq!(cells.of_kind(SQUAD).collect::<Vec<_>>(), [(0, NamePrefix::of("s"))]);
        assert!(NamePrefix::of("ab") < NamePrefix::of("abc") && NamePrefix::of("Z") < NamePrefix::of("a"));
    }

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
