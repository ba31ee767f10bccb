//! Revenue by touch and day: each order under the first touch of its entity, or under the last one before it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::{Change, Facts, Touch};
use crate::money::Amount;
use crate::rollup::{Cell, Cells, Kept, Level, Rollup, Sign};

/// Orders and refunds under one touch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchSums {
    /// How many orders and refunds: while there are any, the row is there, whatever they add up to.
    pub entries: i64,
    /// How many orders.
    pub orders: i64,
    /// Orders less refunds.
    pub revenue: Amount,
}

impl TouchSums {
    /// Adds or takes out `other`.
    pub fn add(&mut self, other: Self, sign: Sign) {
        self.entries += sign.factor() * other.entries;
        self.orders += sign.factor() * other.orders;
        match sign {
            Sign::Plus => self.revenue += other.revenue,
            Sign::Minus => self.revenue -= other.revenue,
        }
    }
}

/// One day's orders by touch; none is `(direct)`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByTouch {
    /// The rows.
    pub rows: BTreeMap<Option<Touch>, TouchSums>,
}

impl Cell for ByTouch {
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl ByTouch {
    fn add(&mut self, touch: Option<Touch>, sums: TouchSums, sign: Sign) {
        let row = self.rows.entry(touch).or_default();
        row.add(sums, sign);
        if *row == TouchSums::default() {
            self.rows.remove(&touch);
        }
    }
}

fn contribute(facts: &Facts, first: bool, change: Change, sign: Sign, cells: &mut Cells<ByTouch>) {
    let first_touch = facts.first_touch().map(|first| first.touch);
    for order in facts.orders(change.orders) {
        let touch = if first { first_touch } else { facts.touch_at(order.at.time) };
        let sums = TouchSums { entries: 1, orders: i64::from(order.orders), revenue: order.revenue };
        cells.change(order.day.0, |cell| cell.add(touch, sums, sign));
    }
}

macro_rules! attribution {
    ($(#[$doc:meta])* $name:ident, $tag:literal, $text:literal, $level:ident, $first:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl Kept for $name {
            const TAG: u8 = $tag;
            const NAME: &'static str = $text;
            type Cell = ByTouch;
        }

        impl Rollup for $name {
            fn concerned(level: Level, change: Change) -> bool {
                // Nobody's orders are under no touch at either level.
                (level == Level::$level || level == Level::Nobody) && !change.orders.is_empty()
            }

            fn contribute(_: Level, facts: &Facts, change: Change, sign: Sign, cells: &mut Cells<ByTouch>) {
                contribute(facts, $first, change, sign, cells);
            }
        }
    };
}

attribution!(
    /// By the first touch of the identity.
    FirstTouchByIdentity, 4, "first_touch_by_identity", Identity, true
);
attribution!(
    /// By the last touch of the identity.
    LastTouchByIdentity, 5, "last_touch_by_identity", Identity, false
);
attribution!(
    /// By the first touch of the account.
    FirstTouchByAccount, 6, "first_touch_by_account", Account, true
);
attribution!(
    /// By the last touch of the account.
    LastTouchByAccount, 7, "last_touch_by_account", Account, false
);
