//! The HTTP interface: `extract` reads requests, `resources` answer them, `respond` shapes the answers.
//!
//! `resources` has the table of endpoints, and one file for each or for a small family. `endpoints`, `routes` and `openapi` follow from the table.
//! `dispatch` brings a request to its handler: `forward` sends it to the node that owns its project, and `extract/auth.rs` decides 401 and 403.
//! `middleware` surrounds every request.

pub(crate) mod app;
pub(crate) mod call;
pub(crate) mod client_end;
pub(crate) mod dispatch;
pub(crate) mod endpoint;
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
