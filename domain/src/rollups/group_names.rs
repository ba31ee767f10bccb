//! How the name of each company and group begins, by its number ([`super::group_numbers`]): what orders equals in top lists
//! without reading their records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::rollup::{Cell, Cells, Kept};

/// The first 16 bytes of a name. What has a lesser one has a lesser name; of equal ones that is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NamePrefix([u8; 16]);

impl NamePrefix {
    /// That of a name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let mut first = [0; 16];
        first.iter_mut().zip(name.bytes()).for_each(|(to, byte)| *to = byte);
        Self(first)
    }
}

/// The prefixes of some numbers, by type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefixes {
    by_type: BTreeMap<Box<str>, Vec<NamePrefix>>,
}

impl Cell for Prefixes {
    fn is_empty(&self) -> bool {
        self.by_type.is_empty()
    }
}

/// See the module.
#[derive(Debug)]
pub struct GroupNames;

impl Kept for GroupNames {
    const TAG: u8 = 23;
    const NAME: &'static str = "group_names";
    type Cell = Prefixes;
}

/// How many numbers of a type share a cell.
const TOGETHER: u32 = 1024;

fn bucket(number: u32) -> i32 {
    (number / TOGETHER).cast_signed()
}

impl Cells<Prefixes> {
    /// A group is called `name` from here on.
    pub fn tell(&mut self, kind: &str, number: u32, name: &str) {
        let (place, prefix) = ((number % TOGETHER) as usize, NamePrefix::of(name));
        let there = self.get(bucket(number)).and_then(|cell| cell.by_type.get(kind)?.get(place));
        if there == Some(&prefix) {
            return;
        }
        self.change(bucket(number), |cell| {
            let prefixes = cell.by_type.entry(kind.into()).or_default();
            if prefixes.len() <= place {
                prefixes.resize(place + 1, NamePrefix::default());
            }
            prefixes[place] = prefix;
        });
    }

    /// The prefixes of a type, by number.
    pub fn of_kind(&self, kind: &str) -> impl Fn(u32) -> NamePrefix {
        // No bucket before the last one of a type is without it.
        let lists: Vec<&[NamePrefix]> = self.iter().map_while(|(_, cell)| cell.by_type.get(kind).map(Vec::as_slice)).collect();
        move |number| {
            let place = (number % TOGETHER) as usize;
            lists.get((number / TOGETHER) as usize).and_then(|list| list.get(place)).copied().unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_find_their_prefixes() {
        let mut cells: Cells<Prefixes> = Cells::default();
        for number in 0..3000 {
            cells.tell("team", number, &format!("team {number:05} of the house"));
        }
        cells.tell("team", 2047, "The name that was told");
        cells.tell("squad", 0, "s");
        let team = cells.of_kind("team");
        assert_eq!((team(2046), team(2047)), (NamePrefix::of("team 02046 of the"), NamePrefix::of("The name that wa")));
        assert_eq!((cells.of_kind("squad")(0), cells.of_kind("crew")(7)), (NamePrefix::of("s"), NamePrefix::default()));
        assert!(NamePrefix::of("ab") < NamePrefix::of("abc") && NamePrefix::of("Z") < NamePrefix::of("a"));
    }
}
