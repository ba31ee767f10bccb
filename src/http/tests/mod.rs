//! Tests of the endpoints over a server in memory, and over two nodes.

mod forwarding;
mod forwarding_failures;
mod forwarding_table;
mod management;
pub(crate) mod nodes;
mod openapi;
pub(crate) mod server;
