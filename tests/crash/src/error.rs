//! How a campaign ends when it doesn't end well.

use std::cell::RefCell;
use std::fmt;
use std::io;

/// Why a campaign stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The server broke a promise.
    Violation(String),
    /// The campaign could not be carried out; it says nothing about the server.
    Harness(String),
    /// This machine can't do it.
    Skipped(String),
}

/// What most functions here return.
pub type Result<T> = std::result::Result<T, Trouble>;

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Violation(what) => write!(f, "VIOLATION: {what}"),
            Trouble::Harness(what) => write!(f, "the harness failed: {what}"),
            Trouble::Skipped(why) => write!(f, "SKIPPED: {why}"),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Harness(error.to_string())
    }
}

/// A broken promise.
#[must_use]
pub fn violation(what: impl Into<String>) -> Trouble {
    Trouble::Violation(what.into())
}

/// A failure of the harness itself.
#[must_use]
pub fn harness(what: impl Into<String>) -> Trouble {
    Trouble::Harness(what.into())
}

/// Broken promises that were noticed on the way, by tasks that have nobody to return them to.
#[derive(Debug, Default)]
pub struct Findings(RefCell<Vec<String>>);

impl Findings {
    /// Notes one.
    pub fn add(&self, what: String) {
        self.0.borrow_mut().push(what);
    }

    /// Fails if there are any.
    ///
    /// # Errors
    /// The first ones.
    pub fn none(&self) -> Result<()> {
        let found = self.0.borrow();
        if found.is_empty() {
            return Ok(());
        }
        let shown: Vec<&str> = found.iter().take(5).map(String::as_str).collect();
        Err(violation(format!("{} broken promises under load, such as: {}", found.len(), shown.join("; "))))
    }
}
