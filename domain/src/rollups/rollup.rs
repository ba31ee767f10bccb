//! The trait of a rollup: a sum over entities of what each one's facts contribute.

use crate::cells::{Cells, StoredCells};
use crate::contribution::{EntityKind, Sign};
use crate::facts::{DirtyRange, Facts};

/// A maintained figure: rows that are sums over entities of what each contributes.
pub trait Rollup: StoredCells {
    /// Whether `change` can alter the contribution of an entity of the kind `level`. `true` is always sound; `false` is the fast path.
    fn concerned(level: EntityKind, change: &DirtyRange) -> bool;

    /// Adds or takes out what `facts` contribute within `change`. Called only if [concerned](Rollup::concerned).
    fn contribute(level: EntityKind, facts: &Facts, change: &DirtyRange, sign: Sign, cells: &mut Cells<Self::Key, Self::Value>);
}
