//! Answers about an organization: asked of each of its projects, and merged.

pub(in crate::queries) mod company;
pub(in crate::queries) mod group;
pub(in crate::queries) mod identity;
