//! Why a subject is not erased.

use headcount_control::RegistryError;
use headcount_domain::Fault;

/// The maximum number of identities with the same e-mail address that are erased together. Any
/// client can send events with any address.
pub(crate) const MAX_OWNERS: usize = 10_000;

/// The reason why an identity was not erased. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum ErasureError {
    /// No identity has this id.
    #[error("nobody has this id")]
    Unknown,
    /// Too many identities have the e-mail address.
    #[error("more than {MAX_OWNERS} identities have this e-mail address; erase them by their ids")]
    TooMany,
    /// The organization has reached the limit of erased ids.
    #[error("an organization can erase at most {0} ids, those of former erasures included")]
    Full(usize),
    /// A partition is being rebuilt or overloaded, or events in flight take too long.
    #[error("{0}")]
    Unavailable(&'static str),
    /// The state could not be read.
    #[error("{0}")]
    Failed(#[from] Fault),
    /// The erasure could not be recorded.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}
