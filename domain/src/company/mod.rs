//! Companies and groups: keys, accounts and member activity.

mod account;
mod domain_key;
pub mod group;

pub use account::{Account, AccountSlot};
pub use domain_key::{CompanyKey, domain_of_email, is_free_mail, normalise_domain, normalise_email};
