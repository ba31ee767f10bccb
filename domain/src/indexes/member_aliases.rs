//! What is to be known of a member of a company or group whose key is not a user's own: that it is a user since, or has an
//! e-mail address. So lists of members are made without reading the members' records, which may be cold.
//!
//! Few are in here: a link moves a short history to the user's own key, and most ids without a user never tell an address.

use crate::cells::packed::Columns;
use crate::cells::{Cells, StoredCells, Value};
use crate::ids::RecordKey;

/// What is known of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberAlias {
    /// It is this user.
    User(RecordKey),
    /// It told an e-mail address, and is no user.
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

/// See the module.
#[derive(Debug)]
pub struct MemberAliases;

impl StoredCells for MemberAliases {
    const TAG: u8 = 14;
    const NAME: &'static str = "member_aliases";
    type Key = RecordKey;
    type Value = MemberAlias;
}

impl Cells<RecordKey, MemberAlias> {
    /// Takes note of a member whose key is not a user's own.
    pub fn learn(&mut self, member: RecordKey, known: MemberAlias) {
        self.set(member, known);
    }

    /// What is known of a member.
    #[must_use]
    pub fn of(&self, member: RecordKey) -> Option<MemberAlias> {
        self.get(member)
    }
}
