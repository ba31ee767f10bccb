//! Requests between nodes: questions about projects that another node owns, as bytes.

mod ask;
mod wire;

pub use ask::{AskNode, AskNodeError, NodeAnswer, NodeCall};
pub use wire::{MAX_ANSWER_BYTES, MAX_REQUEST_BYTES};
pub use wire::{MAX_PROJECTS, NodeRequest, decode_answer, encode_answer, tag_of};
