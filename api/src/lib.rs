//! How an endpoint and a command are written.
//!
//! For an endpoint, `extract` reads requests, `respond` shapes the answers, and `endpoint` is what
//! the file of an endpoint imports.
//!
//! `dispatcher` brings a request to its handler, by the gates of `dispatch`: `forward` sends it to
//! the node that owns its project, and `extract/auth.rs` decides 401 and 403. Each feature has a
//! table of endpoints (`endpoints!`), and the program passes all to `routes`.
//!
//! `command` has the client of a server, and how management commands send their requests and print
//! the answers.

#![forbid(unsafe_code)]

pub mod app;
pub mod blocking;
pub mod call;
pub mod client_end;
pub mod command;
pub mod definitions;
pub mod dispatch;
pub mod dispatcher;
pub mod endpoint;
pub mod endpoints;
mod error_reader;
pub mod event_answer;
pub mod extra_paths;
pub mod extract;
pub(crate) mod first_node;
pub mod forward;
pub mod management;
pub mod min_position;
pub mod node;
pub mod node_client;
pub mod node_tls;
pub mod open_files;
pub mod openapi;
pub mod page_policy;
pub mod proxied;
mod query_cors;
pub mod rate_limit;
pub mod request;
pub mod request_id;
pub mod request_metrics;
pub mod respond;
pub mod routes;
pub mod turns;
