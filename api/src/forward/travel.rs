//! Which node answers an operation (the table of endpoints has it), and where that node is.
//! `tests/forwarding_table.rs` has the rule.

use std::sync::Arc;

use headcount_actors::admission_gate::Holder;
use headcount_domain::ProjectId;

use crate::app::AppState;
use crate::request::HttpRequest;

/// What a forwarded operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Travel {
    /// It records something. If no answer came, it may be recorded or not.
    Records,
    /// It reads.
    Reads,
    /// It reads, and the answer takes as long as the client reads.
    ReadsForLong,
    /// It reads, and the answer is a stream without an end.
    Follows,
}

impl Travel {
    /// Whether it reads.
    pub fn reads(self) -> bool {
        self != Self::Records
    }
}

/// Where the requests of an endpoint are answered.
#[derive(Debug, Clone, Copy)]
pub enum Destination {
    /// By the node that receives them.
    Here,
    /// By the owner of the project of the public key or the body. The handler finds it.
    ByHandler,
    /// By the owner of the project in the path.
    ProjectOwner(Travel),
    /// By the owner of the project that the endpoint finds in the request.
    OwnerOf(Travel, fn(&AppState, &HttpRequest) -> Option<ProjectId>),
    /// By the home of the caller's organization.
    Home(Travel),
}

impl Destination {
    /// What the operation does, if it is forwarded.
    pub fn travel(self) -> Option<Travel> {
        match self {
            Self::Here | Self::ByHandler => None,
            Self::ProjectOwner(travel) | Self::OwnerOf(travel, _) | Self::Home(travel) => Some(travel),
        }
    }
}

/// The node that a request goes to.
#[derive(Debug, Clone)]
pub struct OwnerNode {
    /// The partition that it owns.
    pub(super) partition: u16,
    /// Its address.
    pub(super) address: Arc<str>,
    /// The holder whose share the request takes: its project or its organization.
    pub(super) holder: Holder,
}
