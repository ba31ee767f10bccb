//! The endpoints: one file for each, or for each small family.

pub(crate) mod aggregate;
pub(crate) mod api_tokens;
pub(crate) mod archive;
pub(crate) mod audit_log;
pub(crate) mod backups;
pub(crate) mod companies;
pub(crate) mod docs;
pub(crate) mod events;
pub(crate) mod groups;
pub(crate) mod health;
pub(crate) mod identities;
pub(crate) mod intake;
mod management;
pub(crate) mod members;
pub(crate) mod metrics;
pub(crate) mod organization;
pub(crate) mod organizations;
pub(crate) mod projects;
pub(crate) mod public_keys;
mod quotas;
pub(crate) mod raw_events;
pub(crate) mod revenue;
mod schemas;
pub(crate) mod unique_users;
pub(crate) mod verifications;
pub(crate) mod version;
