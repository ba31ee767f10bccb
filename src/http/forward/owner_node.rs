//! The node that a request goes to.

use std::sync::Arc;

use headcount_actors::admission_gate::Holder;

/// The node that a request goes to.
#[derive(Debug, Clone)]
pub(crate) struct OwnerNode {
    /// The partition that it owns.
    pub(super) partition: u16,
    /// Its address.
    pub(super) address: Arc<str>,
    /// Whose share of bytes and places the request takes: its project, or its organization.
    pub(super) holder: Holder,
}
