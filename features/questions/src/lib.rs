//! Questions about events, visitors, revenue, people and companies, and the export of events.
//!
//! An endpoint reads its parameters into a query, and shapes the answer. The queries are in
//! `domain/src/queries/`, and what reads events in `actors/src/scans/`.

#![forbid(unsafe_code)]

mod aggregate;
mod companies;
mod explain;
mod export_command;
mod figures;
mod groups;
mod identities;
mod live;
mod metadata_fields;
mod raw_events;
mod retention;
mod revenue;
mod share_streams;
mod traffic;
mod unique_users;

use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;

pub use export_command::{ExportArgs, run as export};
use share_streams::ShareStreams;

/// The endpoints.
pub const ENDPOINTS: Endpoints = endpoints! {
    unique_users => count_unique_users_per_day: Shared(AnalyticsRead, Member), ProjectOwner(Reads);
    aggregate => aggregate: Shared(AnalyticsRead, Member), ProjectOwner(Reads);
    retention => retention: Shared(AnalyticsRead, Member), ProjectOwner(Reads);
    metadata_fields => fields: Project(AnalyticsRead, Member), ProjectOwner(Reads);
    figures::report => report: Shared(AnalyticsRead, Member), ProjectOwner(Reads);
    figures::breakdown => breakdown: Shared(AnalyticsRead, Member), ProjectOwner(Reads);
    figures::goals => goals: Shared(AnalyticsRead, Member), ProjectOwner(Reads);
    figures::funnel => funnel: Shared(AnalyticsRead, Member), ProjectOwner(Reads);
    figures::funnel_people => people: Project(IdentitiesRead, Admin), ProjectOwner(Reads);
    figures::journeys => journeys: Shared(AnalyticsRead, Member), ProjectOwner(Reads);
    traffic => traffic: Shared(AnalyticsRead, Member), ProjectOwner(Reads);
    explain::figure => explain: Project(AnalyticsRead, Member), ProjectOwner(Reads);
    live => live: Shared(AnalyticsRead, Member), ProjectOwner(Follows);
    raw_events::list => list: Project(EventsRead, Admin), ProjectOwner(Reads);
    raw_events::export => export: Project(EventsRead, Admin), ProjectOwner(ReadsForLong);
    revenue => metrics: Shared(RevenueRead, Admin), ProjectOwner(Reads);
    revenue => timeseries: Shared(RevenueRead, Admin), ProjectOwner(Reads);
    revenue => by_attribution: Shared(RevenueRead, Admin), ProjectOwner(Reads);
    revenue => ltv_cohorts: Shared(RevenueRead, Admin), ProjectOwner(Reads);
    identities => profile: Organization(IdentitiesRead, Admin);
    identities => referrers: Organization(IdentitiesRead, Admin);
    identities => top_pages: Organization(IdentitiesRead, Admin);
    identities => top: Organization(IdentitiesRead, Admin);
    companies => lookup: Organization(CompaniesRead, Admin);
    companies => top: Organization(CompaniesRead, Admin);
    companies => metrics: Organization(CompaniesRead, Admin);
    companies => top_users: Organization(CompaniesRead, Admin);
    groups => metrics: Organization(GroupsRead, Admin);
    groups => top: Organization(GroupsRead, Admin);
}
.with_state(|_| Box::new(ShareStreams::default()));
