//! Whom events are of: the records of identities, and the index of their e-mail addresses.

mod email_index;
mod record;

pub use email_index::{EmailOwners, Owner};
pub use record::{Association, Identity, IdentitySlot, LatestEmail};
