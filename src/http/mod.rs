//! The HTTP interface: `extract` reads requests, `resources` answer them, `respond` shapes the answers.

pub mod app;
pub mod extract;
pub mod middleware;
pub mod openapi;
pub mod request_metrics;
pub mod resources;
pub mod respond;
pub mod routes;
#[cfg(test)]
pub(crate) mod testing;

pub use app::AppState;
