//! Describes cells that differ between two states.

use super::keys::{Key, Value};
use super::packed::Columns;
use crate::time::Day;

/// A cell whose stored value differs from the recomputed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellDifference {
    /// The name of the rollup.
    pub rollup: &'static str,
    /// The key. Its day comes first, if it has one.
    pub key: String,
    /// The stored value. `None` if no such cell is stored.
    pub stored: Option<String>,
    /// The recomputed value. `None` if no such cell should exist.
    pub recomputed: Option<String>,
}

/// Receives the differing cells, each as a function that describes it. So undescribed cells cost
/// nothing.
pub type VisitDifference<'v> = dyn FnMut(&dyn Fn() -> CellDifference) + 'v;

impl CellDifference {
    /// Describes a cell with values of the type `V`. With `dated`, its key begins with a day.
    pub(crate) fn new<K: Key, V: Value>(
        rollup: &'static str,
        dated: bool,
        key: K,
        stored: Option<Columns>,
        recomputed: Option<Columns>,
    ) -> Self {
        let value = |columns: Columns| format!("{:?}", V::from_columns(&columns));
        let (mut here, mut there) = (stored.map(value), recomputed.map(value));
        if here == there {
            // The difference is in columns that the value does not use.
            (here, there) = (stored.map(|columns| format!("{columns:?}")), recomputed.map(|columns| format!("{columns:?}")));
        }
        let mut bytes = vec![0; K::BYTES];
        key.pack(&mut bytes);
        let key = match bytes.first_chunk::<4>().filter(|_| dated) {
            Some(day) => format!("{} {key:?}", Day(i32::unpack(day))),
            None => format!("{key:?}"),
        };
        Self { rollup, key, stored: here, recomputed: there }
    }
}
