//! Queries over windows: typed answers, computed from a project's rollups, indexes and records.

mod answers;
mod organization;
mod partial;
mod project;

pub use answers::*;
pub use organization::{
    ActiveIdentity, CompanyNames, CountOf, EmailKeysQuery, IdentifiedQuery, IdentityOrder, IdentityRanking, KnownIdentitiesQuery,
    KnownIdentity, LifetimeFigures, SubjectFigures, SubjectFiguresQuery, WithQuery, company_by_domain, company_by_id,
    company_names, company_top_users, counts, group_metrics, group_names, profile, top_companies, top_groups, with_query,
};
pub use partial::{Projects, Query, Reader, Travels};
pub use project::{
    AssociationsQuery, AttributionQuery, CohortsQuery, CompanyLinksQuery, EarlierTouches, EarlierTouchesQuery, EntityName,
    EntityNamesQuery, EventVisit, IntakeQuery, LinkedQuery, NamedTouch, RetentionQuery, RevenueMetricsQuery, RevenueSeriesQuery,
    TodayQuery, TrafficQuery, UniqueUsersQuery, VisitedSession, VisitsQuery,
};
