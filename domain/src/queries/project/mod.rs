//! Queries about one project.

mod attribution;
mod attribution_parts;
mod intake;
mod live;
mod names;
mod retention;
mod revenue;
mod traffic;
mod unique_users;
mod visits;

pub use attribution::{AttributionQuery, CohortsQuery};
pub use attribution_parts::{AssociationsQuery, CompanyLinksQuery, EarlierTouches, EarlierTouchesQuery, NamedTouch};
pub use intake::IntakeQuery;
pub use live::TodayQuery;
pub use names::{EntityName, EntityNamesQuery};
pub use retention::RetentionQuery;
pub use revenue::{RevenueMetricsQuery, RevenueSeriesQuery};
pub use traffic::TrafficQuery;
pub use unique_users::UniqueUsersQuery;
pub use visits::{EventVisit, LinkedQuery, VisitedSession, VisitsQuery};
