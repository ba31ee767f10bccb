//! Companies and groups: keys, accounts and member activity.

mod account;
mod domain_key;
mod free_mail;
pub mod group;

pub use account::{Account, AccountSlot};
pub use domain_key::{CompanyKey, domain_of_email, normalise_domain, normalise_email, normalise_lookup_domain};
pub use free_mail::is_free_mail;
