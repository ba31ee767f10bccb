//! The levels of versions of the program: in which versions they write what nodes of other versions read.

use std::fmt;

use headcount_common::{fold_version, is_next, latest_record_version};
use serde::{Deserialize, Serialize};

/// What the formats are versions of that nodes have in common, and what they fold events into. Each number counts by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Levels {
    /// Messages of streams, with the events that they have.
    pub log: u32,
    /// Records of organizations, projects and tokens.
    pub control: u32,
    /// Files and lists in the bucket of files.
    pub files: u32,
    /// What nodes ask each other.
    pub nodes: u32,
    /// What events are folded into ([`fold_version`]).
    pub fold: u32,
}

impl Levels {
    /// Those of the first version that could be a node. A cluster begins with them, and a node that announces none has them.
    pub const FIRST: Self = Self { log: 1, control: 1, files: 1, nodes: 1, fold: 1 };

    /// Returns those of this version of the program.
    #[must_use]
    pub fn own() -> Self {
        let log = Self::FIRST.log + u32::from(is_next());
        Self { log, control: latest_record_version(), fold: fold_version(), ..Self::FIRST }
    }

    pub(crate) fn first() -> Self {
        Self::FIRST
    }

    /// Whether a version of the program with these levels reads and writes whatever one with `other` does.
    #[must_use]
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
