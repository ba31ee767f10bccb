//! What is to be known of a member of a company or group whose key is not a user's own: that it is a user since, or has an
//! e-mail address. So lists of members are made without reading the members' records, which may be cold.
//!
//! Few are in here: a link moves a short history to the user's own key, and most ids without a user never tell an address.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::RecordKey;
use crate::rollup::{Cell, Cells, Kept};

/// What is known of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KnownAs {
    /// It is this user.
    User(RecordKey),
    /// It told an e-mail address, and is no user.
    Addressed,
}

/// Some members.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    by_key: BTreeMap<RecordKey, KnownAs>,
}

impl Cell for Members {
    fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}

/// See the module.
#[derive(Debug)]
pub struct KnownMembers;

impl Kept for KnownMembers {
    const TAG: u8 = 14;
    const NAME: &'static str = "known_members";
    type Cell = Members;
}

impl Cells<Members> {
    /// Takes note of a member whose key is not a user's own.
    pub fn learn(&mut self, member: RecordKey, known: KnownAs) {
        if self.of(member) != Some(known) {
            self.change(member.bucket(), |cell| {
                cell.by_key.insert(member, known);
            });
        }
    }

    /// What is known of a member.
    #[must_use]
    pub fn of(&self, member: RecordKey) -> Option<KnownAs> {
        self.get(member.bucket())?.by_key.get(&member).copied()
    }
}
