//! Versions of what answers are made of, by day: an answer about a window can only have changed if one of its figures was
//! touched on one of its days.

mod depends;
mod table;
mod touched;

pub use depends::Depends;
pub use table::DayVersions;
pub use touched::{FigureKind, Touched};
