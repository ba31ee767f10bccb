//! Queries about an organization: they are sent to all of its projects, and the answers are merged.

mod aliases;
mod card;
mod company;
mod company_users;
mod group;
mod identity;
mod linked;
mod parts;
mod subject;
mod tied;
mod top_identities;
mod top_k;
mod travelling;

pub use company::{CompanyNames, company_by_domain, company_by_id, company_names, top_companies};
pub use company_users::company_top_users;
pub use group::{group_metrics, group_names, top_groups};
pub use identity::{CountOf, counts, profile};
pub use subject::{EmailKeysQuery, KnownIdentitiesQuery, KnownIdentity, LifetimeFigures, SubjectFigures, SubjectFiguresQuery};
pub use top_identities::{ActiveIdentity, IdentifiedQuery, IdentityOrder, IdentityRanking};
pub use travelling::{WithQuery, with_query};
