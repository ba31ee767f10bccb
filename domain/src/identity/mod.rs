//! Identities: ids, records, links, and the index of e-mail addresses.

mod email_index;
mod id;
mod link;
mod record;

pub use email_index::{EmailOwners, Owner};
pub use id::IdentityId;
pub use link::{EventSubject, IdentityLink, SentKeys, SortedLinks, takes_link};
pub use record::{Association, Identity, IdentitySlot, LatestEmail};
