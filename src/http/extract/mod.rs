//! Reads requests: the caller, the parameters, the days and the body, each checked before a handler sees it.

pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod cookie;
mod encoding;
pub(crate) mod filters;
pub(crate) mod json;
pub(crate) mod parameters;
pub(crate) mod path;
pub(crate) mod query;
pub(crate) mod question;
pub(crate) mod share_rules;
pub(crate) mod standing;
