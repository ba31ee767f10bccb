//! The HTTP interface, written with the crate `api`: `endpoints` makes the routes and the OpenAPI
//! document of the tables of the features. `resources` has the endpoints that are no feature's.

pub(crate) mod endpoints;
pub(crate) mod features;
pub(crate) mod resources;
#[cfg(test)]
pub(crate) mod tests;
