//! The endpoints: one file for each, or for each small family.

pub mod companies;
pub mod events;
pub mod groups;
pub mod identities;
pub mod management;
pub mod operations;
pub mod revenue;
pub mod unique_users;
