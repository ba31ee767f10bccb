//! Segments, goals, funnels and annotations of a project.

#![forbid(unsafe_code)]

mod annotations;
mod definitions;
mod funnels;
mod goals;
mod segments;

use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;

/// The endpoints.
pub const ENDPOINTS: Endpoints = endpoints! {
    segments => list: Shared(AnalyticsRead, Member);
    segments => create: Project(Admin, Admin);
    segments => change: Project(Admin, Admin);
    segments => remove: Project(Admin, Admin);
    goals => list: Project(AnalyticsRead, Member);
    goals => create: Project(Admin, Admin);
    goals => change: Project(Admin, Admin);
    goals => remove: Project(Admin, Admin);
    funnels => list: Shared(AnalyticsRead, Member);
    funnels => create: Project(Admin, Admin);
    funnels => change: Project(Admin, Admin);
    funnels => remove: Project(Admin, Admin);
    annotations => list: Project(AnalyticsRead, Member);
    annotations => create: Project(Admin, Admin);
    annotations => change: Project(Admin, Admin);
    annotations => remove: Project(Admin, Admin);
};
