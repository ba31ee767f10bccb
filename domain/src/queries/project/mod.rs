//! Answers about one project.

pub(in crate::queries) mod attribution;
pub(in crate::queries) mod traffic;
