//! The commands of the organization. Each is a request of the management API.

#![expect(missing_docs, reason = "doc comments of flags are the help that users see")]

mod audit_log;
mod keys;
mod members;
mod organizations;
mod projects;
mod shares;
mod tokens;

pub use audit_log::AuditLogArgs;
pub use keys::KeyCommand;
pub use members::MemberCommand;
pub use organizations::OrganizationCommand;
pub use projects::ProjectCommand;
pub use shares::ShareCommand;
pub use tokens::TokenCommand;
