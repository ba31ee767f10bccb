//! All rollups of a project, and the list that registers them.

mod active_accounts;
mod at_level;
mod attribution;
mod cohorts;
mod company_links;
pub mod distinct;
mod group_activity;
mod group_names;
mod group_numbers;
mod known_members;
mod revenue;
mod traffic;
mod unique_users;

pub use active_accounts::ActiveAccounts;
pub use attribution::{
    Bundles, BundlesByAccount, BundlesByIdentity, ByTouch, FirstTouchByAccount, FirstTouchByIdentity, LastTouchByAccount,
    LastTouchByIdentity, TouchSums,
};
pub use cohorts::{CohortSums, CohortsByAccount, CohortsByIdentity};
pub use company_links::{CompanyLink, CompanyLinks};
pub use group_activity::{Cover, GroupActivity};
pub use group_names::{GroupNames, NamePrefix};
pub use group_numbers::GroupNumbers;
pub use known_members::{KnownAs, KnownMembers};
pub use revenue::Revenue;
pub use traffic::{Traffic, Visits, VisitsByTouch};
pub use unique_users::UniqueUsers;

use crate::facts::{Change, Facts};
use crate::rollup::{Cells, Kept, Level, Rollup, Sign};

/// Reads and writes saved cells; implemented where bytes are known.
pub trait CellWriter {
    /// What saving can fail with.
    type Error;

    /// Saves one cell; `None`: it is empty now.
    ///
    /// # Errors
    /// What the writer fails with.
    fn write<C: crate::rollup::Cell>(&mut self, tag: u8, bucket: i32, cell: Option<&C>) -> Result<(), Self::Error>;
}

/// Decodes a saved cell; implemented where bytes are known.
pub trait CellReader {
    /// What reading can fail with.
    type Error;

    /// The cell that was saved.
    ///
    /// # Errors
    /// What the reader fails with.
    fn read<C: crate::rollup::Cell>(&mut self) -> Result<C, Self::Error>;
}

macro_rules! rollups {
    (contributed: { $($rollup_field:ident: $rollup:ty,)* } kept: { $($kept_field:ident: $kept:ty,)* }) => {
        rollups!(@struct $($rollup_field: $rollup,)* $($kept_field: $kept,)*);

        impl Rollups {
            /// Puts in or takes out what `facts` contribute at `level` from what `change` touches, in every rollup that it can
            /// concern.
            pub fn contribute(&mut self, level: Level, facts: &Facts, sign: Sign, change: Change) {
                $(
                    if <$rollup>::concerned(level, change) {
                        <$rollup>::contribute(level, facts, change, sign, &mut self.$rollup_field);
                    }
                )*
            }
        }
    };
    (@struct $($field:ident: $rollup:ty,)*) => {
        /// The cells of every rollup of one project.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Rollups {
            $(
                #[doc = concat!("Cells of [`", stringify!($rollup), "`].")]
                pub $field: Cells<<$rollup as Kept>::Cell>,
            )*
        }

        /// Tag and name of every rollup.
        pub const REGISTRY: &[(u8, &str)] = &[$((<$rollup>::TAG, <$rollup>::NAME),)*];

        impl Rollups {
            /// Hands every cell that changed since the last call to `writer`.
            ///
            /// # Errors
            /// What the writer fails with.
            pub fn save<W: CellWriter>(&mut self, writer: &mut W) -> Result<(), W::Error> {
                $(
                    for (bucket, cell) in self.$field.take_dirty() {
                        writer.write(<$rollup>::TAG, bucket, cell)?;
                    }
                )*
                Ok(())
            }

            /// Puts a saved cell of the rollup `tag` back. `false`: there is no such rollup.
            ///
            /// # Errors
            /// What the reader fails with.
            pub fn restore<R: CellReader>(&mut self, tag: u8, bucket: i32, reader: &mut R) -> Result<bool, R::Error> {
                match tag {
                    $(<$rollup>::TAG => self.$field.restore(bucket, reader.read()?),)*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }
    };
}

// The list. One line each; the order is of no consequence, the tags are for ever.
rollups! {
    contributed: {
        unique_users: UniqueUsers,
        active_accounts: ActiveAccounts,
        revenue: Revenue,
        first_touch_by_identity: FirstTouchByIdentity,
        last_touch_by_identity: LastTouchByIdentity,
        first_touch_by_account: FirstTouchByAccount,
        last_touch_by_account: LastTouchByAccount,
        cohorts_by_identity: CohortsByIdentity,
        cohorts_by_account: CohortsByAccount,
        traffic: Traffic,
        bundles_by_identity: BundlesByIdentity,
        bundles_by_account: BundlesByAccount,
    }
    // Not sums over entities' facts: folding keeps them itself.
    kept: {
        group_activity: GroupActivity,
        group_numbers: GroupNumbers,
        group_names: GroupNames,
        known_members: KnownMembers,
        company_links: CompanyLinks,
    }
}
