//! The pace of a check: a callback between blocks.

use std::ops::ControlFlow;
use std::time::Instant;

/// Called with the number of bytes read since the last call. It may wait, and it may end the check.
pub type Pace<'p> = dyn FnMut(u64) -> ControlFlow<()> + 'p;

/// A pace that ends the check at `deadline`, if there is one.
pub(crate) fn until(deadline: Option<Instant>) -> impl FnMut(u64) -> ControlFlow<()> {
    move |_| match deadline {
        Some(deadline) if Instant::now() >= deadline => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}
