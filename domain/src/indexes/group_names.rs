//! The prefix of the name of each company and group, by number ([`super::group_numbers`]). Top
//! lists use it to break ties without reading records.

use crate::cells::packed::Columns;
use crate::cells::{Cells, Room, StoredCells, Value};
use crate::ids::RecordKey;
use crate::indexes::group_numbers::GroupNumber;
use serde::{Deserialize, Serialize};

/// The first 16 bytes of a name. A smaller prefix means a smaller name; equal prefixes decide nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NamePrefix([u8; 16]);

impl NamePrefix {
    /// Returns the prefix of a name.
    #[must_use]
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

#[cfg(test)]
mod tests {
    use super::*;

    const TEAM: RecordKey = RecordKey(7);
    const SQUAD: RecordKey = RecordKey(8);

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
}
