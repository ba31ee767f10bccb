//! Requests from one node to another, and the reasons why there is no answer.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use headcount_domain::OrganizationId;

/// A request to another node.
#[derive(Clone)]
pub struct NodeCall {
    /// The address where the node answers HTTP: `http://host:port` or `https://host:port`.
    pub address: Arc<str>,
    /// The token that authenticates nodes (`Engine::node_token`).
    pub token: String,
    /// The organization that the question is about, or 0 for none. Its share of the requests
    /// between nodes is charged.
    pub organization: OrganizationId,
    /// The bytes that `Engine::answer_remote` decodes there.
    pub request: Vec<u8>,
    /// The time limit of the answer.
    pub within: Duration,
}

impl fmt::Debug for NodeCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Debug output never shows the token.
        f.debug_struct("NodeCall").field("address", &self.address).field("within", &self.within).finish_non_exhaustive()
    }
}

/// A future of another node's answer.
pub type NodeAnswer = Pin<Box<dyn Future<Output = Result<Vec<u8>, AskNodeError>> + Send>>;

/// Sends requests to other nodes, and returns the answers of their `Engine::answer_remote`.
pub trait AskNode: Send + Sync {
    /// Asks another node.
    fn ask(&self, call: NodeCall) -> NodeAnswer;
}

/// The reason why another node gives no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskNodeError {
    /// A project has another owner by now.
    #[error("a project has another owner by now")]
    NotHere,
    /// The other node does not know a project as one of the organization.
    #[error("a project is not one of the organization")]
    NotOfOrganization,
    /// The bytes are not a question or an answer of this version.
    #[error("the other node is of another version: {0}")]
    OtherVersion(String),
    /// The question or the answer is too large.
    #[error("the question or its answer is larger than nodes send each other")]
    TooLarge,
    /// Too many questions are waiting at the other node.
    #[error("too many questions are waiting on the other node")]
    Busy,
    /// The other node could not find the answer.
    #[error("the other node has no answer: {0}")]
    NoAnswer(String),
    /// The other node could not be reached, or its answer did not come in time.
    #[error("the other node can't be reached: {0}")]
    Unreachable(String),
}

impl AskNodeError {
    /// Returns the code of the error between nodes, without its details.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotHere => "not_here",
            Self::NotOfOrganization => "not_of_organization",
            Self::OtherVersion(_) => "other_version",
            Self::TooLarge => "too_large",
            Self::Busy => "busy",
            Self::NoAnswer(_) => "no_answer",
            Self::Unreachable(_) => "unreachable",
        }
    }

    /// Returns the details that some errors have.
    pub fn details(&self) -> &str {
        match self {
            Self::OtherVersion(details) | Self::NoAnswer(details) | Self::Unreachable(details) => details,
            Self::NotHere | Self::NotOfOrganization | Self::TooLarge | Self::Busy => "",
        }
    }

    /// Returns the error that another node reported. An unknown code comes from another version.
    pub fn of_code(code: &str, details: &str) -> Self {
        match code {
            "not_here" => Self::NotHere,
            "not_of_organization" => Self::NotOfOrganization,
            "other_version" => Self::OtherVersion(details.to_owned()),
            "too_large" => Self::TooLarge,
            "busy" => Self::Busy,
            "no_answer" => Self::NoAnswer(details.to_owned()),
            "unreachable" => Self::Unreachable(details.to_owned()),
            _ => Self::OtherVersion(format!("it reports {code:?}, which is not known here")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_travels_by_its_code() {
        let text = || "why".to_owned();
        let errors = [
            AskNodeError::NotHere,
            AskNodeError::NotOfOrganization,
            AskNodeError::OtherVersion(text()),
            AskNodeError::TooLarge,
            AskNodeError::Busy,
            AskNodeError::NoAnswer(text()),
            AskNodeError::Unreachable(text()),
        ];
        for error in errors {
            assert_eq!(AskNodeError::of_code(error.code(), error.details()), error);
        }
        assert!(matches!(AskNodeError::of_code("novel", ""), AskNodeError::OtherVersion(_)));
    }
}
