//! The trait of rollups, which are sums over entities of the contributions of their facts; their
//! declaration; their queries.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cells::{Cells, StoredCells};
use crate::contribution::{EntityKind, Sign};
use crate::facts::{DirtyRange, Facts};
use crate::time::Window;
use crate::versions::{Depends, FigureKind};

/// A rollup: rows that are sums over entities of their contributions. `rollup!` declares one.
pub trait Rollup: StoredCells {
    /// What its rows tell. Answers that read them depend on it.
    const FIGURE: FigureKind;
    /// [`Self::FIGURE`], as [`Depends`] has it.
    const FIGURES: &'static [FigureKind] = &[Self::FIGURE];
    /// Whether its keys begin with a day. A change of rows without a day can change the answer
    /// about any day.
    const DATED: bool;
    /// Whether its rows touch their days when they change. Otherwise folding touches them itself.
    const TOUCHES_DAYS: bool;

    /// Whether `change` can alter the contribution of an entity of the kind `level`. `true` is
    /// always sound; `false` is the fast path.
    fn concerned(level: EntityKind, change: &DirtyRange) -> bool;

    /// Adds or takes out the contribution of `facts` within `change`. Called only if
    /// [concerned](Rollup::concerned).
    fn contribute(facts: &Facts, change: &DirtyRange, sign: Sign, cells: &mut Cells<Self::Key, Self::Value>);
}

/// A query that the rows of one rollup answer.
pub trait RowsQuery: Clone + Send + Serialize + DeserializeOwned + 'static {
    /// The rollup.
    type Rollup: Rollup;
    /// The answer.
    type Answer: Send + Serialize + DeserializeOwned + 'static;

    /// Returns the days of the rows that the answer reads; `None`: all.
    fn window(&self) -> Option<Window>;

    /// Computes the answer.
    fn answer_from(&self, rows: &RowsOf<Self::Rollup>) -> Self::Answer;

    /// Returns what the answer depends on.
    fn depends_on(&self) -> Depends {
        match self.window() {
            Some(window) if Self::Rollup::DATED => Depends::Days(Self::Rollup::FIGURES, window),
            _ => Depends::AllDays(Self::Rollup::FIGURES),
        }
    }
}

/// The rows of a rollup.
pub type RowsOf<R> = Cells<<R as StoredCells>::Key, <R as StoredCells>::Value>;

/// Declares a rollup:
///
/// ```text
/// rollup! {
///     /// Sessions by the hour in which they began.
///     SessionHours: tag 29, "session_hours", room Sled, version 1, figure Traffic, dated,
///     key (i32, u8) => value i64,
///     of Identity when |change| !change.sessions.is_empty(),
///     |facts, change, sign, cells| {
///         facts.sessions(change.sessions).for_each(|session| cells.add((session.day.0, hour(session)), sign.factor()));
///     }
/// }
/// ```
///
/// - The tag and the name are permanent. The version rises when the same events produce other rows.
/// - `figure` is the [`FigureKind`] on which answers that read the rows depend.
/// - `dated`: the key begins with the day, and a change of the row touches that day. `undated`: it
///   touches all days. `dated by folding`: it touches none, since folding does.
/// - `of` names the kinds of entities that contribute, and `when` the changes that can alter a
///   contribution.
/// - The last closure adds the contribution of facts within `change` to the cells, times `sign`.
macro_rules! rollup {
    (
        $(#[$doc:meta])*
        $name:ident: tag $tag:literal, $text:literal, room $room:ident, version $version:literal, figure $figure:ident,
        $dated:ident $(by $folding:ident)?,
        key $key:ty => value $value:ty,
        of $($level:ident)|+ when |$concerned:ident| $when:expr,
        |$facts:ident, $change:pat_param, $sign:ident, $cells:ident| $contribute:expr $(,)?
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl $crate::cells::StoredCells for $name {
            const TAG: u8 = $tag;
            const NAME: &'static str = $text;
            const ROOM: $crate::cells::Room = $crate::cells::Room::$room;
            const VERSION: u8 = $version;
            type Key = $key;
            type Value = $value;
        }

        impl $crate::rollups::Rollup for $name {
            const FIGURE: $crate::versions::FigureKind = $crate::versions::FigureKind::$figure;
            const DATED: bool = rollup!(@ $dated);
            const TOUCHES_DAYS: bool = rollup!(@ touches $($folding)?);

            fn concerned(level: $crate::contribution::EntityKind, $concerned: &$crate::facts::DirtyRange) -> bool {
                matches!(level, $($crate::contribution::EntityKind::$level)|+) && $when
            }

            fn contribute(
                $facts: &$crate::facts::Facts,
                $change: &$crate::facts::DirtyRange,
                $sign: $crate::contribution::Sign,
                $cells: &mut $crate::cells::Cells<$key, $value>,
            ) {
                $contribute
            }
        }
    };
    (@ dated) => { true };
    (@ undated) => { false };
    (@ touches) => { true };
    (@ touches folding) => { false };
}

pub(super) use rollup;
