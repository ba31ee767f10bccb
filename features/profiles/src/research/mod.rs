//! What a website tells of its company: its home page and a few others are fetched, and read for
//! names, descriptions, logos, links and addresses.
//!
//! Everything that is read is chosen by strangers. Pages, redirects, bytes, seconds, values and
//! their lengths are bounded, and nothing of a page is run.

mod facts;
mod json_ld;
mod page;
mod robots;
mod site;
#[cfg(test)]
mod tests;

pub use facts::ProfileFields;
pub(crate) use facts::{MAX_DESCRIPTION, MAX_EMAIL_BYTES, MAX_PROFILE_ENTRIES, MAX_SHORT, MAX_URL_BYTES};
pub(crate) use site::short;
pub use site::{ProfileSource, Research, SiteFindings};
