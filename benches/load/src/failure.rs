//! The failure of a command.

use std::fmt::{self, Display, Formatter};

/// The reason why a command failed, in one line. Any error converts to it, so it can't be an
/// `Error` itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    /// Creates a failure from the attempted operation and its error.
    pub(crate) fn new(doing: impl Display, error: impl Display) -> Self {
        Self(format!("{doing}: {error}"))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}
