//! Revenue by touch and day: each order counts under the first touch of its entity, or under the
//! last one before it.
//!
//! Events may arrive newest first, so that each becomes the first touch of all orders so far.
//! Attribution of the orders of an entity with many is therefore deferred once its first touch
//! changes: the daily rows show the entity's key instead of a touch. The touch of that key is
//! stored once, and readers of the rows look it up. By last touch, many orders between two touches
//! are deferred in the same way, under the key of a run of the facts.

use crate::cells::packed::Columns;
use crate::cells::{Cells, Key, Value, signed, unsigned};
use crate::contribution::Sign;
use crate::facts::{DirtyRange, Facts, Order, Touch};
use crate::ids::RecordKey;
use crate::money::Amount;
use crate::rollups::rollup::rollup;

/// The sums of orders and refunds under one touch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TouchSums {
    /// The number of orders and refunds. The row exists while it is not zero, whatever the revenue.
    pub entries: i64,
    /// The number of orders.
    pub orders: i64,
    /// Orders less refunds.
    pub revenue: Amount,
}

impl TouchSums {
    fn of(order: &Order) -> Self {
        Self { entries: 1, orders: i64::from(order.orders), revenue: order.revenue }
    }

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

impl Value for TouchSums {
    fn columns(self) -> Columns {
        [unsigned(self.entries.into()), unsigned(self.orders.into()), unsigned(self.revenue.0), 0]
    }

    fn from_columns(columns: &Columns) -> Self {
        Self {
            entries: i64::from_columns(columns),
            orders: i64::try_from(signed(columns[1])).unwrap_or_default(),
            revenue: Amount(signed(columns[2])),
        }
    }
}

/// The attribution of the orders of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Under {
    /// A touch; `None` is `(direct)`.
    Touch(Option<Touch>),
    /// Deferred: the key whose touch is looked up.
    Deferred(RecordKey),
}

impl Key for Under {
    const BYTES: usize = 17;

    fn pack(self, to: &mut [u8]) {
        to.fill(0);
        let (kind, rest) = to.split_at_mut(1);
        match self {
            Self::Touch(touch) => touch.pack(&mut rest[..Option::<Touch>::BYTES]),
            Self::Deferred(key) => {
                1u8.pack(kind);
                key.pack(rest);
            }
        }
    }

    fn unpack(from: &[u8]) -> Self {
        match from.split_at(1) {
            ([0], rest) => Self::Touch(Key::unpack(&rest[..Option::<Touch>::BYTES])),
            (_, rest) => Self::Deferred(Key::unpack(rest)),
        }
    }
}

/// A day, and the attribution of its orders.
pub type DayAndUnder = (i32, Under);

fn under_first(facts: &Facts, change: &DirtyRange, sign: Sign, cells: &mut Cells<DayAndUnder, TouchSums>) {
    let first_touch = facts.first_touch().map(|first| first.touch);
    let under = facts.deferred_key().map_or(Under::Touch(first_touch), Under::Deferred);
    for order in facts.orders(change.orders_by_first) {
        cells.change((order.day.0, under), |row| row.add(TouchSums::of(order), sign));
    }
}

fn under_last(facts: &Facts, change: &DirtyRange, sign: Sign, cells: &mut Cells<DayAndUnder, TouchSums>) {
    for order in facts.orders(change.orders).chain(facts.inline_orders(change.inline)) {
        let run = facts.run_at(order.at.time);
        let by_last = run.map_or_else(|| Under::Touch(facts.touch_at(order.at.time)), Under::Deferred);
        cells.change((order.day.0, by_last), |row| row.add(TouchSums::of(order), sign));
    }
}

// Orders without consent have no touch at either level.

rollup! {
    /// Orders by first touch of the identity.
    FirstTouchByIdentity: tag 4, "first_touch_by_identity", room Sled, version 1, figure Attribution, dated,
    key DayAndUnder => value TouchSums,
    of Identity | Nobody when |change| !change.orders_by_first.is_empty(),
    |facts, change, sign, cells| under_first(facts, change, sign, cells)
}
rollup! {
    /// Orders by last touch of the identity.
    LastTouchByIdentity: tag 5, "last_touch_by_identity", room Sled, version 1, figure Attribution, dated,
    key DayAndUnder => value TouchSums,
    of Identity | Nobody when |change| !(change.orders.is_empty() && change.inline.is_empty()),
    |facts, change, sign, cells| under_last(facts, change, sign, cells)
}
rollup! {
    /// Orders by first touch of the account.
    FirstTouchByAccount: tag 6, "first_touch_by_account", room Sled, version 1, figure Attribution, dated,
    key DayAndUnder => value TouchSums,
    of Account | Nobody when |change| !change.orders_by_first.is_empty(),
    |facts, change, sign, cells| under_first(facts, change, sign, cells)
}
rollup! {
    /// Orders by last touch of the account.
    LastTouchByAccount: tag 7, "last_touch_by_account", room Sled, version 1, figure Attribution, dated,
    key DayAndUnder => value TouchSums,
    of Account | Nobody when |change| !(change.orders.is_empty() && change.inline.is_empty()),
    |facts, change, sign, cells| under_last(facts, change, sign, cells)
}

/// The touches of deferred keys; `None` is `(direct)`.
pub type DeferredAttribution = Cells<RecordKey, Option<Touch>>;

fn name_deferred(facts: &Facts, change: &DirtyRange, sign: Sign, cells: &mut DeferredAttribution) {
    for (run, from) in facts.runs(change.runs) {
        match sign {
            Sign::Plus => cells.set(run, facts.touch_at(from)),
            Sign::Minus => cells.remove(run),
        }
    }
    let Some(key) = facts.deferred_key().filter(|_| change.first_touch) else { return };
    match sign {
        Sign::Plus => cells.set(key, facts.first_touch().map(|first| first.touch)),
        Sign::Minus => cells.remove(key),
    }
}

rollup! {
    /// The touches of the deferred keys of identities.
    DeferredByIdentity: tag 15, "deferred_by_identity", room Tables, version 1, figure Attribution, undated,
    key RecordKey => value Option<Touch>,
    of Identity when |change| change.first_touch || !change.runs.is_empty(),
    |facts, change, sign, cells| name_deferred(facts, change, sign, cells)
}
rollup! {
    /// The touches of the deferred keys of accounts.
    DeferredByAccount: tag 16, "deferred_by_account", room Tables, version 1, figure Attribution, undated,
    key RecordKey => value Option<Touch>,
    of Account when |change| change.first_touch || !change.runs.is_empty(),
    |facts, change, sign, cells| name_deferred(facts, change, sign, cells)
}
