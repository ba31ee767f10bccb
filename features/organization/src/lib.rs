//! The organization: its members, projects, public keys, shares and tokens, their audit log, and
//! how browsers sign in.

#![forbid(unsafe_code)]

mod actions;
mod api_tokens;
mod audit_log;
mod cli;
mod members;
mod organization;
mod projects;
mod public_keys;
mod session;
mod shares;
mod sign_in_limit;

use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;

pub use cli::{AuditLogArgs, KeyCommand, MemberCommand, OrganizationCommand, ProjectCommand, ShareCommand, TokenCommand};
use sign_in_limit::SignInLimit;

/// The endpoints.
pub const ENDPOINTS: Endpoints = endpoints! {
    organization => create: Open;
    organization => show: Organization(Admin, Admin);
    organization => change: Organization(Admin, Admin);
    actions => list: Organization(Admin, Admin);
    members => list: Organization(Admin, Admin);
    members => create: Organization(Admin, Admin);
    members => show: Organization(Admin, Admin);
    members => change: Organization(Admin, Admin);
    members => remove: Organization(Admin, Admin);
    projects => list: Organization(Admin, Admin);
    projects => create: Organization(Admin, Admin);
    projects => show: Project(Admin, Admin);
    projects => change: Project(Admin, Admin);
    projects => remove: Project(Admin, Admin);
    public_keys => list: Project(Admin, Admin);
    public_keys => create: Project(Admin, Admin);
    public_keys => change: Project(Admin, Admin);
    public_keys => remove: Project(Admin, Admin);
    shares => list: Project(Admin, Admin);
    shares => create: Project(Admin, Admin);
    shares => revoke: Project(Admin, Admin);
    session => sign_in: Open;
    session => show: Open;
    session => sign_out: Open;
    session => create_code: Open;
    api_tokens => list: Organization(Admin, Admin);
    api_tokens => create: Organization(Admin, Admin);
    api_tokens => change: Organization(Admin, Admin);
    api_tokens => revoke: Organization(Admin, Admin);
    audit_log => list: Organization(Admin, Admin);
}
.with_state(|_| Box::new(SignInLimit::default()));
