//! The node that a request goes to.

use std::sync::Arc;

/// The node that a request goes to.
#[derive(Debug, Clone)]
pub(crate) struct OwnerNode {
    /// The partition that it owns.
    pub(super) partition: u16,
    /// Its address.
    pub(super) address: Arc<str>,
}
