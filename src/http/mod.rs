//! The HTTP interface: `extract` reads requests, `resources` answer them, `respond` shapes the answers.

pub(crate) mod app;
pub(crate) mod client_end;
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
