//! Revenue by touch and day: each order under the first touch of its entity, or under the last one before it.
//!
//! Events may come newest first, and then each is another first touch of all orders that came before. So the orders of an
//! entity that has many are counted in a *bundle* once its first touch changes: under the entity's key, which the days show
//! instead of a touch. What touch a bundle is under is kept once, and looked up by who reads the days.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::at_level::at_level;
use crate::facts::{Change, Facts, Order, Touch};
use crate::ids::RecordKey;
use crate::money::Amount;
use crate::rollup::{Cell, Cells, Level, Sign};

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

/// One day's orders by touch; none is `(direct)`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByTouch {
    /// The rows.
    pub rows: BTreeMap<Option<Touch>, TouchSums>,
    /// Bundled orders, by the key of their bundle: rows of the touch that it is under. Of first touches only.
    pub bundles: BTreeMap<RecordKey, TouchSums>,
}

impl Cell for ByTouch {
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.bundles.is_empty()
    }
}

/// Adds to a row or takes out of it; one that nothing is left of goes.
fn add<K: Ord + Copy>(rows: &mut BTreeMap<K, TouchSums>, key: K, sums: TouchSums, sign: Sign) {
    let row = rows.entry(key).or_default();
    row.add(sums, sign);
    if *row == TouchSums::default() {
        rows.remove(&key);
    }
}

/// Nobody's orders are under no touch at either level.
fn has_orders(own: Level, level: Level) -> bool {
    level == own || level == Level::Nobody
}

fn by_first(own: Level, level: Level, change: Change) -> bool {
    has_orders(own, level) && !change.orders_by_first.is_empty()
}

fn by_last(own: Level, level: Level, change: Change) -> bool {
    has_orders(own, level) && !change.orders.is_empty()
}

fn under_first(facts: &Facts, change: Change, sign: Sign, cells: &mut Cells<ByTouch>) {
    let first_touch = facts.first_touch().map(|first| first.touch);
    let bundle = facts.bundle();
    for order in facts.orders(change.orders_by_first) {
        cells.change(order.day.0, |cell| match bundle {
            Some(bundle) => add(&mut cell.bundles, bundle, TouchSums::of(order), sign),
            None => add(&mut cell.rows, first_touch, TouchSums::of(order), sign),
        });
    }
}

fn under_last(facts: &Facts, change: Change, sign: Sign, cells: &mut Cells<ByTouch>) {
    for order in facts.orders(change.orders) {
        let touch = facts.touch_at(order.at.time);
        cells.change(order.day.0, |cell| add(&mut cell.rows, touch, TouchSums::of(order), sign));
    }
}

at_level!(
    /// By the first touch of the identity.
    FirstTouchByIdentity, 4, "first_touch_by_identity", ByTouch, Identity, by_first, under_first
);
at_level!(
    /// By the last touch of the identity.
    LastTouchByIdentity, 5, "last_touch_by_identity", ByTouch, Identity, by_last, under_last
);
at_level!(
    /// By the first touch of the account.
    FirstTouchByAccount, 6, "first_touch_by_account", ByTouch, Account, by_first, under_first
);
at_level!(
    /// By the last touch of the account.
    LastTouchByAccount, 7, "last_touch_by_account", ByTouch, Account, by_last, under_last
);

/// What touch each of some bundles is under; none is `(direct)`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundles {
    by_key: BTreeMap<RecordKey, Option<Touch>>,
}

impl Cell for Bundles {
    fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}

impl Cells<Bundles> {
    /// What touch a bundle is under.
    #[must_use]
    pub fn touch_of(&self, bundle: RecordKey) -> Option<Touch> {
        self.get(bundle.bucket()).and_then(|cell| cell.by_key.get(&bundle).copied().flatten())
    }
}

fn by_bundle(own: Level, level: Level, change: Change) -> bool {
    level == own && change.first_touch
}

fn name_bundle(facts: &Facts, _: Change, sign: Sign, cells: &mut Cells<Bundles>) {
    let Some(bundle) = facts.bundle() else { return };
    cells.change(bundle.bucket(), |cell| match sign {
        Sign::Plus => drop(cell.by_key.insert(bundle, facts.first_touch().map(|first| first.touch))),
        Sign::Minus => drop(cell.by_key.remove(&bundle)),
    });
}

at_level!(
    /// What touch the bundles of identities are under.
    BundlesByIdentity, 15, "bundles_by_identity", Bundles, Identity, by_bundle, name_bundle
);
at_level!(
    /// What touch the bundles of accounts are under.
    BundlesByAccount, 16, "bundles_by_account", Bundles, Account, by_bundle, name_bundle
);
