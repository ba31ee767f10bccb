//! What a rollup is: a sum over entities of what each one's facts contribute.

use crate::cells::{Cells, StoredCells};
use crate::contribution::{EntityKind, Sign};
use crate::facts::{DirtyRange, Facts};

/// One maintained figure: rows that are a sum over entities of what each contributes.
pub trait Rollup: StoredCells {
    /// Whether `change` can alter what an entity contributes at `level`. `true` is always sound; `false` is the fast path.
    fn concerned(level: EntityKind, change: &DirtyRange) -> bool;

    /// Adds, with `sign`, what `facts` contribute from what `change` touches. Called only if [concerned](Rollup::concerned).
    fn contribute(level: EntityKind, facts: &Facts, change: &DirtyRange, sign: Sign, cells: &mut Cells<Self::Key, Self::Value>);
}
