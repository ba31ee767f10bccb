//! All rollups of a project, and the list that registers them.

mod active_accounts;
mod at_level;
mod attribution;
mod cohorts;
pub mod distinct;
mod group_activity;
mod revenue;
mod rollup;
mod traffic;
mod unique_users;

pub use active_accounts::ActiveAccounts;
pub use attribution::{
    DayAndUnder, DeferredAttribution, DeferredByAccount, DeferredByIdentity, FirstTouchByAccount, FirstTouchByIdentity,
    LastTouchByAccount, LastTouchByIdentity, TouchSums, Under,
};
pub use cohorts::{CohortSums, CohortsByAccount, CohortsByIdentity};
pub use group_activity::{ActiveGroup, Cover, GroupActivity};
pub use revenue::{DayAndCurrency, MoneyRow, Revenue};
pub use rollup::Rollup;
pub use traffic::{DayAndTouch, TrafficByTouch, Visits};
pub use unique_users::UniqueUsers;

use crate::cells::packed::Packed;
use crate::cells::parts::FrozenPart;
use crate::cells::{Cells, Key, StoredCells};
use crate::contribution::{EntityKind, Sign};
use crate::facts::{DirtyRange, Facts};
use crate::indexes::{CompanyLinks, GroupNames, GroupNumbers, MemberAliases};
use crate::limits::Limits;

macro_rules! rollups {
    (contributed: { $($rollup_field:ident: $rollup:ty,)* } kept: { $($kept_field:ident: $kept:ty,)* }) => {
        rollups!(@struct $($rollup_field: $rollup,)* $($kept_field: $kept,)*);

        impl Rollups {
            /// Puts in or takes out what `facts` contribute at `level` from what `change` touches, in every rollup that it can
            /// concern.
            pub fn contribute(&mut self, level: EntityKind, facts: &Facts, sign: Sign, change: &DirtyRange) {
                $(
                    if <$rollup>::concerned(level, change) {
                        <$rollup>::contribute(level, facts, change, sign, &mut self.$rollup_field);
                    }
                )*
            }
        }
    };
    (@struct $($field:ident: $rollup:ty,)*) => {
        /// The rows of every rollup of one project.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Rollups {
            $(
                #[doc = concat!("Rows of [`", stringify!($rollup), "`].")]
                pub $field: Cells<<$rollup as StoredCells>::Key, <$rollup as StoredCells>::Value>,
            )*
        }

        /// Every kind of rows in one line: tag, name, version, and the length of its keys.
        #[must_use]
        pub fn stored_types() -> Vec<String> {
            vec![$(format!(
                "rows {} {} version {}, keys of {} bytes",
                <$rollup>::TAG,
                <$rollup>::NAME,
                <$rollup>::VERSION,
                <<$rollup as StoredCells>::Key as Key>::BYTES
            ),)*]
        }

        impl Rollups {
            /// No rows.
            #[must_use]
            pub fn new(limits: &Limits) -> Self {
                Self { $($field: Cells::new(limits),)* }
            }

            /// The parts that changed since the last call, each with the tag of its rollup, as they are now. Cheap: no row is
            /// copied before it changes again.
            pub fn freeze(&mut self) -> Vec<(u8, FrozenPart)> {
                let mut frozen = Vec::new();
                $(frozen.extend(self.$field.freeze().into_iter().map(|part| (<$rollup>::TAG, part)));)*
                frozen
            }

            /// Puts a saved part of the rollup `tag` back. `false`: there is no such rollup, or its parts are others.
            #[must_use]
            pub fn restore(&mut self, tag: u8, number: u32, part: Packed) -> bool {
                match tag {
                    $(<$rollup>::TAG => self.$field.restore(number, part),)*
                    _ => false,
                }
            }

            /// What all rows take in memory, in bytes, roughly. Known without looking at them.
            #[must_use]
            pub fn weight(&self) -> usize {
                [$(self.$field.weight()),*].into_iter().sum()
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
        traffic: TrafficByTouch,
        deferred_by_identity: DeferredByIdentity,
        deferred_by_account: DeferredByAccount,
    }
    // Not sums over entities' facts: folding keeps them itself.
    kept: {
        group_activity: GroupActivity,
        group_numbers: GroupNumbers,
        group_names: GroupNames,
        member_aliases: MemberAliases,
        company_links: CompanyLinks,
    }
}
