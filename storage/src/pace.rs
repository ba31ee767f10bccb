//! How fast a check reads: what it asks after every few blocks.

use std::ops::ControlFlow;
use std::time::Instant;

/// Called with the number of bytes that were read since the last call. It may wait, and it may break the check off.
pub type Pace<'p> = dyn FnMut(u64) -> ControlFlow<()> + 'p;

/// A pace that breaks off at a time; `None`: never.
pub(crate) fn until(deadline: Option<Instant>) -> impl FnMut(u64) -> ControlFlow<()> {
    move |_| match deadline {
        Some(deadline) if Instant::now() >= deadline => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}
