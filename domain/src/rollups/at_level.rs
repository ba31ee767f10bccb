//! The frame of a rollup over the entities of one level.

/// Defines a rollup of a level. `$concerned(own, level, change)` returns whether a change at `level` can alter it, and
/// `$contribute(facts, change, sign, cells)` adds the contribution of facts. `$dated` is [`Rollup::DATED`](crate::rollups::Rollup::DATED).
macro_rules! at_level {
    (
        $(#[$doc:meta])* $name:ident, $tag:literal, $text:literal, $key:ty => $value:ty, $level:ident, $concerned:path,
        $contribute:path, $figure:ident $(, $dated:literal)?
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl crate::cells::StoredCells for $name {
            const TAG: u8 = $tag;
            const NAME: &'static str = $text;
            type Key = $key;
            type Value = $value;
        }

        impl crate::rollups::Rollup for $name {
            const FIGURE: crate::versions::FigureKind = crate::versions::FigureKind::$figure;
            $(const DATED: bool = $dated;)?

            fn concerned(level: crate::contribution::EntityKind, change: &crate::facts::DirtyRange) -> bool {
                $concerned(crate::contribution::EntityKind::$level, level, change)
            }

            fn contribute(
                _: crate::contribution::EntityKind,
                facts: &crate::facts::Facts,
                change: &crate::facts::DirtyRange,
                sign: crate::contribution::Sign,
                cells: &mut crate::cells::Cells<$key, $value>,
            ) {
                $contribute(facts, change, sign, cells);
            }
        }
    };
}

pub(super) use at_level;
