//! Forwards a request to the node that owns its project (ADR 25). The request travels as HTTP, and
//! the answer returns unchanged.
//!
//! `travel` lists the kinds of operations, `way` finds the node, and `send` sends. `upload` and
//! `download` are the bodies, `headers` the headers, and `peers` the connections.
//!
//! A slow client delays no other request: this node reads the body of a request before it sends it,
//! and a short answer before it passes it on. Projects and addresses share the connections fairly.

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
