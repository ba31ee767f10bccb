//! The figures that an answer is made of.

use headcount_domain::Position;

use super::active_users::CountedUsers;
use super::group_table::GroupTable;
use super::visits::GoalSums;

/// What an answer is made of, up to a position.
#[derive(Default)]
pub(super) enum KeptFigures {
    /// Nothing: the answer needs a whole scan.
    #[default]
    None,
    /// Groups of events.
    Groups(CountedGroups),
    /// The days of users.
    Users(Box<CountedUsers<()>>),
    /// The goals of users, with their conversions.
    Goals(Box<CountedUsers<GoalSums>>),
}

/// The groups of the events up to a position.
pub(super) struct CountedGroups {
    /// The last event that is counted.
    pub(super) until: Position,
    pub(super) table: GroupTable,
}

impl KeptFigures {
    /// Their memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Groups(groups) => groups.table.bytes,
            Self::Users(counted) => counted.users.bytes(),
            Self::Goals(counted) => counted.users.bytes() + counted.sums.bytes(),
        }
    }

    /// The position of the last event that they count.
    pub(super) fn until(&self) -> Position {
        match self {
            Self::None => 0,
            Self::Groups(groups) => groups.until,
            Self::Users(counted) => counted.users.until,
            Self::Goals(counted) => counted.users.until,
        }
    }
}
