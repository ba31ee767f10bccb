//! Members of companies and groups whose key is not a user's own but who are identified: by a user they are linked to, or by an
//! e-mail address. Lists of members are made from it without reading the members' records, which may be cold.
//!
//! It is small: a link moves a short history to the user's own key, and most ids without a user never report an address.

use crate::cells::packed::Columns;
use crate::cells::{Cells, StoredCells, Value};
use crate::ids::RecordKey;

/// Who a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberAlias {
    /// This user.
    User(RecordKey),
    /// It has an e-mail address and no user.
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
    /// Records who a member is whose key is not a user's own.
    pub fn learn(&mut self, member: RecordKey, known: MemberAlias) {
        self.set(member, known);
    }

    /// Who a member is.
    #[must_use]
    pub fn of(&self, member: RecordKey) -> Option<MemberAlias> {
        self.get(member)
    }
}
