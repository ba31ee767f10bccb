//! The parts of an engine.

use std::ops::Deref;
use std::sync::Arc;

use crate::questions::Questions;
use crate::scans::Scans;

/// The parts of an engine, for code that needs only some of them.
#[derive(Debug)]
pub struct EngineParts {
    /// Questions about the state of projects.
    pub questions: Arc<Questions>,
    /// Passes over recorded events.
    pub scans: Scans,
}

impl Deref for EngineParts {
    type Target = Questions;

    fn deref(&self) -> &Questions {
        &self.questions
    }
}
