//! Tests of the endpoints over a server in memory, and over two nodes.

mod clock;
mod events;
mod extra_paths;
mod forwarding;
mod forwarding_failures;
mod forwarding_table;
mod management;
mod min_position;
pub(crate) mod nodes;
mod openapi;
mod page_policy;
mod question;
mod segment;
pub(crate) mod server;
mod tracker;
