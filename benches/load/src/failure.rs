//! Why a command failed.

use std::fmt::{self, Display, Formatter};

/// The reason that a command failed, as one line for people. Any error converts to it, so it is not an `Error` itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    /// Creates a failure from what was attempted and the error.
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
