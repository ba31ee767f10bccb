//! Tests of the endpoints over a server in memory.

mod management;
mod openapi;
pub(crate) mod server;
