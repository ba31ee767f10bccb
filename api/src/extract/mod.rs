//! Reads requests: the caller, the parameters, the days and the body, each checked before a handler
//! sees it.

pub mod auth;
pub mod body;
pub mod cookie;
pub mod definitions;
pub mod encoding;
pub mod filters;
pub mod json;
pub mod parameters;
pub mod path;
pub mod people;
pub mod query;
pub mod question;
pub mod share_rules;
pub mod standing;
pub mod steps;
