//! What a rollup is: a sum over entities of what each one's facts contribute.

use crate::cells::{Cells, Kept};
use crate::contribution::{Level, Sign};
use crate::facts::{Change, Facts};

/// One maintained figure: rows that are a sum over entities of what each contributes.
pub trait Rollup: Kept {
    /// Whether `change` can alter what an entity contributes at `level`. `true` is always sound; `false` is the fast path.
    fn concerned(level: Level, change: &Change) -> bool;

    /// Adds, with `sign`, what `facts` contribute from what `change` touches. Called only if [concerned](Rollup::concerned).
    fn contribute(level: Level, facts: &Facts, change: &Change, sign: Sign, cells: &mut Cells<Self::Key, Self::Value>);
}
