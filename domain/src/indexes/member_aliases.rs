//! Members of companies and groups that are identified although their key is not a user's own: they
//! are linked to a user, or have an e-mail address. Member lists use this index instead of the
//! members' records, which may not be in memory.
//!
//! The index is small: a link moves a short history to the user's own key, and most ids without a
//! user never report an address.

use crate::cells::packed::Columns;
use crate::cells::{Cells, Room, StoredCells, Value};
use crate::ids::RecordKey;

/// The identification of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberAlias {
    /// Linked to this user.
    User(RecordKey),
    /// Has an e-mail address, but no user.
    Addressed,
}

impl Value for MemberAlias {
    fn columns(self) -> Columns {
        match self {
            Self::Addressed => [0; 4],
            Self::User(RecordKey(user)) => [1, user, 0, 0],
        }
    }

    fn from_columns(columns: &Columns) -> Self {
        if columns[0] == 0 { Self::Addressed } else { Self::User(RecordKey(columns[1])) }
    }
}

/// The identifications of members.
#[derive(Debug)]
pub struct MemberAliases;

impl StoredCells for MemberAliases {
    const TAG: u8 = 14;
    const NAME: &'static str = "member_aliases";
    const ROOM: Room = Room::Tables;
    type Key = RecordKey;
    type Value = MemberAlias;
}

impl Cells<RecordKey, MemberAlias> {
    /// Records the identification of a member whose key is not a user's own.
    pub fn learn(&mut self, member: RecordKey, known: MemberAlias) {
        self.set(member, known);
    }

    /// Returns the identification of a member, if any.
    pub fn of(&self, member: RecordKey) -> Option<MemberAlias> {
        self.get(member)
    }
}
