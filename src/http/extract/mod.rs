//! Reads requests: the caller, the parameters, the days and the body, each checked before a handler sees it.

pub mod auth;
pub mod body;
pub mod filters;
pub mod query;
pub mod question;
pub mod window;
