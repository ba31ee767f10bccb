//! The way of a request to the node that owns its project (ADR 25): whole, as HTTP, and its answer
//! back unchanged.
//!
//! `travel` says which operations travel, `way` where to, `send` sends. `upload` and `download` are
//! the bodies on their way, `headers` what goes with them, and `peers` the connections. A slow
//! client delays no other requests: bodies of requests are read before they are sent, short answers
//! before they are passed on, and the places of requests under way are shared among projects and
//! addresses.

mod download;
mod headers;
mod peers;
mod send;
pub mod travel;
mod upload;
mod way;

pub use peers::Peers;
pub use send::forward;
pub use upload::Upload;
pub use way::way;
pub(crate) use way::way_of;
