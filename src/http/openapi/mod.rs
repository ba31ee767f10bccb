//! The parts of the OpenAPI document that are not made from the endpoints.

pub(crate) mod event;
pub(crate) mod modifiers;
pub(crate) mod responses;
pub(crate) mod segment;
