//! The levels of a program version: the versions of the formats that nodes share.

use std::fmt;

use headcount_common::{fold_version, is_next, latest_record_version};
use serde::{Deserialize, Serialize};

/// The latest versions of the shared formats, and the fold version. The numbers are independent of
/// each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Levels {
    /// The messages of streams, and the events in them.
    pub log: u32,
    /// Records of organizations, projects and tokens.
    pub control: u32,
    /// Files and lists in the bucket of files.
    pub files: u32,
    /// The requests between nodes.
    pub nodes: u32,
    /// The rules that make state from events ([`fold_version`]).
    pub fold: u32,
}

impl Levels {
    /// The levels of the first program version with nodes. A new cluster begins with them, and a
    /// node that announces no levels has them.
    pub const FIRST: Self = Self { log: 1, control: 1, files: 1, nodes: 1, fold: 1 };

    /// Returns the levels of this program version.
    pub fn own() -> Self {
        let log = Self::FIRST.log + u32::from(is_next());
        Self { log, control: latest_record_version(), fold: fold_version(), ..Self::FIRST }
    }

    pub(crate) fn first() -> Self {
        Self::FIRST
    }

    /// Whether a program version with these levels reads and writes everything that one with
    /// `other` does.
    pub fn cover(&self, other: &Self) -> bool {
        let Self { log, control, files, nodes, fold } = *other;
        self.log >= log && self.control >= control && self.files >= files && self.nodes >= nodes && self.fold >= fold
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { log, control, files, nodes, fold } = self;
        write!(f, "log {log}, control {control}, files {files}, nodes {nodes}, fold {fold}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_cover_others_if_each_number_does() {
        let own = Levels::FIRST;
        assert!(own.cover(&own));
        let raised = [
            Levels { log: own.log + 1, ..own },
            Levels { control: own.control + 1, ..own },
            Levels { files: own.files + 1, ..own },
            Levels { nodes: own.nodes + 1, ..own },
            Levels { fold: own.fold + 1, ..own },
        ];
        for (place, one) in raised.iter().enumerate() {
            assert!(one.cover(&own) && !own.cover(one));
            assert!(raised.iter().enumerate().all(|(other, levels)| other == place || !one.cover(levels)));
        }
    }
}
