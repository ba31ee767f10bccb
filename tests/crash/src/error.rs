//! Errors of campaigns.

use std::cell::RefCell;
use std::fmt;
use std::io;

/// Reason for which a campaign stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CampaignError {
    /// The server violated a guarantee.
    Violation(String),
    /// The harness failed; this says nothing about the server.
    Harness(String),
    /// This machine can't run the campaign.
    Skipped(String),
}

/// Result of a campaign or a part of it.
pub type Result<T> = std::result::Result<T, CampaignError>;

impl fmt::Display for CampaignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CampaignError::Violation(what) => write!(f, "VIOLATION: {what}"),
            CampaignError::Harness(what) => write!(f, "the harness failed: {what}"),
            CampaignError::Skipped(why) => write!(f, "SKIPPED: {why}"),
        }
    }
}

impl From<io::Error> for CampaignError {
    fn from(error: io::Error) -> Self {
        CampaignError::Harness(error.to_string())
    }
}

/// Returns a [`CampaignError::Violation`].
#[must_use]
pub fn violation(what: impl Into<String>) -> CampaignError {
    CampaignError::Violation(what.into())
}

/// Returns a [`CampaignError::Harness`].
#[must_use]
pub fn harness(what: impl Into<String>) -> CampaignError {
    CampaignError::Harness(what.into())
}

/// Violations found by background tasks.
#[derive(Debug, Default)]
pub struct Findings(RefCell<Vec<String>>);

impl Findings {
    /// Adds a violation.
    pub fn add(&self, what: String) {
        self.0.borrow_mut().push(what);
    }

    /// Fails if there are violations.
    ///
    /// # Errors
    /// A violation that lists the first ones.
    pub fn check(&self) -> Result<()> {
        let found = self.0.borrow();
        if found.is_empty() {
            return Ok(());
        }
        let shown: Vec<&str> = found.iter().take(5).map(String::as_str).collect();
        Err(violation(format!("{} violations under load, such as: {}", found.len(), shown.join("; "))))
    }
}
