//! How a node asks another one, and why it gets no answer.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use headcount_domain::ids::OrganizationId;

/// A request to another node.
#[derive(Clone)]
pub struct NodeCall {
    /// Where it answers HTTP: `http://host:port`, without a slash at its end.
    pub address: Arc<str>,
    /// What only nodes know ([`Engine::node_token`](crate::Engine::node_token)).
    pub token: String,
    /// Whose share of the requests between nodes it takes: the organization that is asked about, or 0 for none.
    pub organization: OrganizationId,
    /// What [`Engine::answer_remote`](crate::Engine::answer_remote) reads there.
    pub request: Vec<u8>,
    /// How long the answer may take.
    pub within: Duration,
}

impl fmt::Debug for NodeCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the token.
        f.debug_struct("NodeCall").field("address", &self.address).field("within", &self.within).finish_non_exhaustive()
    }
}

/// The answer of another node, once it is there.
pub type NodeAnswer = Pin<Box<dyn Future<Output = Result<Vec<u8>, AskNodeError>> + Send>>;

/// Takes requests to other nodes, and brings back what their [`Engine::answer_remote`](crate::Engine::answer_remote) returns.
pub trait AskNode: Send + Sync {
    /// Asks another node.
    fn ask(&self, call: NodeCall) -> NodeAnswer;
}

/// Why another node gives no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskNodeError {
    /// A project is not there: it has another owner by now.
    #[error("a project has another owner by now")]
    NotHere,
    /// A project is not one of the organization, as far as the other node knows.
    #[error("a project is not one of the organization")]
    NotOfOrganization,
    /// The bytes are not those of a question, or an answer, of this version.
    #[error("the other node is of another version: {0}")]
    OtherVersion(String),
    /// The question or the answer is too large.
    #[error("the question or its answer is larger than nodes send each other")]
    TooLarge,
    /// Too many questions are waiting there.
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
    /// Returns what stands for the error between nodes, besides its details.
    #[must_use]
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
    #[must_use]
    pub fn details(&self) -> &str {
        match self {
            Self::OtherVersion(details) | Self::NoAnswer(details) | Self::Unreachable(details) => details,
            Self::NotHere | Self::NotOfOrganization | Self::TooLarge | Self::Busy => "",
        }
    }

    /// Returns the error that another node reported. One that is not known here comes from another version.
    #[must_use]
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
