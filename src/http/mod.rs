//! The HTTP interface: `resources` answer requests, written with the crate `api`.
//!
//! `resources` has the table of endpoints, and one file for each or for a small family. `endpoints`
//! makes the routes and the OpenAPI document of it.

pub(crate) mod endpoints;
pub(crate) mod resources;
#[cfg(test)]
pub(crate) mod tests;
