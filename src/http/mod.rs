//! The HTTP interface: `extract` reads requests, `resources` answer them, `respond` shapes the answers.
//!
//! `endpoints` lists all endpoints, and `routes` and `openapi` follow from the list. `resources` has one file for each endpoint or small family.
//! `extract/auth.rs` decides 401 and 403. `forward` sends requests to the node that owns their project. `middleware` surrounds every request.

pub(crate) mod app;
pub(crate) mod call;
pub(crate) mod client_end;
pub(crate) mod dispatch;
pub(crate) mod endpoints;
pub(crate) mod extra_paths;
pub(crate) mod extract;
pub(crate) mod first_node;
pub(crate) mod forward;
pub(crate) mod middleware;
pub(crate) mod min_position;
pub(crate) mod node_client;
pub(crate) mod openapi;
pub(crate) mod proxied;
pub(crate) mod request_metrics;
pub(crate) mod resources;
pub(crate) mod respond;
pub(crate) mod routes;
pub(crate) mod share_streams;
pub(crate) mod sign_in_limit;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod turns;
