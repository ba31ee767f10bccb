//! The endpoints below `/privacy-requests`.

mod artifact;
pub(crate) mod download;
pub(crate) mod requests;
