//! Versions of figures by day. An answer about a window can only have changed if an event touched
//! one of its figures on one of its days.

mod table;
mod touched;

pub use table::DayVersions;
pub use touched::{Depends, FigureKind, Touched};
