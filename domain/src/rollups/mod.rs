//! The rollups of a project, and the list that registers them.

mod activity;
mod attribution;
mod cohorts;
pub mod distinct;
mod group_activity;
mod kept_sums;
mod receipts;
mod retention;
mod revenue;
mod rollup;
mod traffic;

pub use activity::{Activity, Counted, DayAndCounted, DaysActivity};
pub use attribution::{
    DayAndUnder, DeferredAttribution, DeferredByAccount, DeferredByIdentity, FirstTouchByAccount, FirstTouchByIdentity,
    LastTouchByAccount, LastTouchByIdentity, TouchSums, Under,
};
pub use cohorts::{CohortSums, CohortsByAccount, CohortsByIdentity};
pub use distinct::{ActiveAccounts, UniqueUsers};
pub use group_activity::{ActiveGroup, Cover, GroupActivity};
pub use kept_sums::KeptSums;
pub(crate) use receipts::quarter_of;
pub use receipts::{Quarter, Receipts, ReceiptsByQuarter, beginning_of};
pub use retention::{CohortAndOffset, RetentionByMonth, RetentionByWeek};
pub use revenue::{DayAndCurrency, MoneyRow, Revenue};
pub use rollup::{Rollup, RowsOf, RowsQuery};
pub use traffic::{DayAndTouch, TrafficByTouch, Visits};

use crate::cells::packed::Packed;
use crate::cells::parts::FrozenPart;
use crate::cells::{CellDifference, Cells, Key, StoredCells, StoredRows, VisitDifference};
use crate::contribution::{EntityKind, Sign};
use crate::facts::{DirtyRange, Facts};
use crate::indexes::{CompanyLinks, GroupNames, GroupNumbers, MemberAliases};
use crate::limits::Limits;
use crate::time::Day;
use crate::versions::{DayVersions, Touched};

fn empty<R: Rollup>(limits: &Limits) -> Cells<R::Key, R::Value> {
    if R::TOUCHES_DAYS { Cells::with_journal(limits, R::DATED) } else { Cells::without_journal(limits, R::DATED) }
}

/// A rollup of the list below.
pub trait InList: Rollup + Sized {
    /// Returns its rows.
    fn rows(rollups: &Rollups) -> &RowsOf<Self>;
}

macro_rules! rollups {
    (contributed: { $($rollup_field:ident: $rollup:ty,)* } kept: { $($kept_field:ident: $kept:ty,)* }) => {
        rollups!(@all $($rollup_field: $rollup,)* $($kept_field: $kept,)*);

        $(
            impl InList for $rollup {
                fn rows(rollups: &Rollups) -> &RowsOf<Self> {
                    &rollups.$rollup_field
                }
            }
        )*

        /// The rows that are sums over entities of the contributions of their facts.
        pub const SUMS: &[StoredRows] = &[$(<$rollup>::STORED,)*];

        impl Rollups {
            /// Adds or takes out the contributions of `facts` at `level` within `change`, in every
            /// rollup that the change can concern.
            pub fn contribute(&mut self, level: EntityKind, facts: &Facts, sign: Sign, change: &DirtyRange) {
                $(
                    if <$rollup>::concerned(level, change) {
                        <$rollup>::contribute(facts, change, sign, &mut self.$rollup_field);
                    }
                )*
            }

            /// Takes the rows of the rollups with `tags` from other rollups.
            pub(crate) fn adopt(&mut self, tags: &[u8], from: Self) {
                $(
                    if tags.contains(&<$rollup>::TAG) {
                        self.$rollup_field = from.$rollup_field;
                    }
                )*
            }

            /// Touches the figures and days of the rows that changed since the last call.
            pub fn drain(&mut self, touched: &mut Touched) {
                $(
                    self.$rollup_field.drain(&mut |day| match day {
                        Some(day) => touched.day(<$rollup>::FIGURE, day),
                        None => touched.all_days(<$rollup>::FIGURE),
                    });
                )*
            }

            /// Freezes the rows of the days before `first`.
            pub(crate) fn set_floor(&mut self, first: Option<Day>) {
                $(self.$rollup_field.set_floor(first);)*
            }

            /// Returns the number of rows in a part of the rollup `tag` that are of days before
            /// `floor`, and so frozen.
            pub fn frozen_rows(tag: u8, part: &Packed, floor: Day) -> usize {
                let mut first = [0; i32::BYTES];
                floor.0.pack(&mut first);
                match tag {
                    $(<$rollup>::TAG if <$rollup>::DATED => {
                        part.iter().take_while(|(key, _)| key[..i32::BYTES] < first[..]).count()
                    })*
                    _ => 0,
                }
            }

            /// Passes the cells that differ from those of `recomputed` to `visit`. Returns the
            /// number of cells that were compared.
            pub fn compare(&self, recomputed: &Self, visit: &mut VisitDifference<'_>) -> u64 {
                let mut compared = 0;
                $(
                    compared += self.$rollup_field.compare(&recomputed.$rollup_field, |key, stored, recomputed| {
                        visit(&|| CellDifference::new::<_, <$rollup as StoredCells>::Value>(<$rollup>::NAME, <$rollup>::DATED, key, stored, recomputed));
                    });
                )*
                $(
                    compared += self.$kept_field.compare(&recomputed.$kept_field, |key, stored, recomputed| {
                        visit(&|| CellDifference::new::<_, <$kept as StoredCells>::Value>(<$kept>::NAME, false, key, stored, recomputed));
                    });
                )*
                compared
            }

            /// Creates empty rollups.
            pub fn new(limits: &Limits) -> Self {
                Self {
                    $($rollup_field: empty::<$rollup>(limits),)*
                    $($kept_field: Cells::new(limits),)*
                }
            }
        }
    };
    (@all $($field:ident: $rollup:ty,)*) => {
        /// The rows of every rollup of one project.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Rollups {
            $(
                #[doc = concat!("Rows of [`", stringify!($rollup), "`].")]
                pub $field: Cells<<$rollup as StoredCells>::Key, <$rollup as StoredCells>::Value>,
            )*
        }

        /// Every kind of rows of a project.
        pub const STORED_ROWS: &[StoredRows] = &[$(<$rollup>::STORED,)* DayVersions::STORED];

        impl Rollups {
            /// Returns the current parts that changed since the last call, each with its kind of
            /// rows. Cheap: a row is only copied when it changes again.
            pub fn freeze(&mut self) -> Vec<(StoredRows, FrozenPart)> {
                let mut frozen = Vec::new();
                $(frozen.extend(self.$field.freeze().into_iter().map(|part| (<$rollup>::STORED, part)));)*
                frozen
            }

            /// Restores a saved part of the rollup `tag`. Returns `false` if there is no such
            /// rollup, or if the part does not fit it.
            #[must_use]
            pub fn restore(&mut self, tag: u8, number: u32, part: Packed) -> bool {
                match tag {
                    $(<$rollup>::TAG => self.$field.restore(number, part),)*
                    _ => false,
                }
            }

            /// Returns the approximate memory of all rows, in bytes. Does not iterate over them.
            #[must_use]
            pub fn weight(&self) -> usize {
                [$(self.$field.weight()),*].into_iter().sum()
            }
        }
    };
}

// The list, one line each. The order doesn't matter; tags are permanent.
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
        retention_by_week: RetentionByWeek,
        retention_by_month: RetentionByMonth,
        activity: Activity,
    }
    // Not sums over entities' facts: folding maintains these rows directly.
    kept: {
        group_activity: GroupActivity,
        group_numbers: GroupNumbers,
        group_names: GroupNames,
        member_aliases: MemberAliases,
        company_links: CompanyLinks,
        receipts: ReceiptsByQuarter,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cells::Room;

    #[test]
    fn each_kind_of_rows_has_its_own_tag_and_name() {
        let tags: BTreeSet<u8> = STORED_ROWS.iter().map(|rows| rows.tag).collect();
        let names: BTreeSet<&str> = STORED_ROWS.iter().map(|rows| rows.name).collect();
        assert_eq!((tags.len(), names.len()), (STORED_ROWS.len(), STORED_ROWS.len()), "{STORED_ROWS:#?}");
        assert!(STORED_ROWS.iter().all(|rows| rows.version > 0 && !rows.name.is_empty()));
    }

    /// Sled keeps old versions of its pages, so that an erasure can't remove what is keyed by a
    /// person there.
    #[test]
    fn rows_keyed_by_a_person_or_group_lie_in_tables() {
        let in_tables = STORED_ROWS.iter().filter(|rows| rows.room == Room::Tables);
        let names: BTreeSet<&str> = in_tables.map(|rows| rows.name).collect();
        for name in [
            "group_activity",
            "company_links",
            "group_numbers",
            "member_aliases",
            "deferred_by_identity",
            "deferred_by_account",
            "group_names",
        ] {
            assert!(names.contains(name), "{name}");
        }
    }
}
