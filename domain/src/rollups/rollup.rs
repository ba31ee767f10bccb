//! The trait of rollups: sums over entities of the contributions of their facts.

use crate::cells::{Cells, StoredCells};
use crate::contribution::{EntityKind, Sign};
use crate::facts::{DirtyRange, Facts};
use crate::versions::FigureKind;

/// A rollup: rows that are sums over entities of their contributions.
pub trait Rollup: StoredCells {
    /// What its rows tell. Answers that read them depend on it.
    const FIGURE: FigureKind;
    /// Whether its keys begin with a day. A change of rows without a day can change the answer about any day.
    const DATED: bool = true;
    /// Whether its rows touch their days when they change. Otherwise folding touches them itself.
    const TOUCHES_DAYS: bool = true;

    /// Whether `change` can alter the contribution of an entity of the kind `level`. `true` is always sound; `false` is
    /// the fast path.
    fn concerned(level: EntityKind, change: &DirtyRange) -> bool;

    /// Adds or takes out the contribution of `facts` within `change`. Called only if [concerned](Rollup::concerned).
    fn contribute(level: EntityKind, facts: &Facts, change: &DirtyRange, sign: Sign, cells: &mut Cells<Self::Key, Self::Value>);
}
