//! The domain of headcount: the definition of its figures. It is pure: no I/O, no clock, no actors
//! and no store, as `Cargo.toml` shows.
//!
//! Entry points: [`intake::submission::Submission::read`] and [`intake::admission::admit`] turn a
//! request into an [`intake::event::Event`]; [`project::Project::apply`] folds it; the methods of
//! [`project::Project`] in [`queries`] answer from the rollups.
//!
//! The mechanism: an event adds to the [`facts::Facts`] of one identity (and one account), and
//! every [`rollups::Rollup`] is a sum over entities of the contributions of their facts. Late
//! events, links, refunds and erasures are the same operation.
//!
//! # Code map
//! In the order of an event: `intake` parses it and decides how to record it; `fold` changes
//! `facts`, and with them `rollups` and `indexes`; `queries` answer. `versions` records the days
//! that an event touched, for `ETag`s. `identity`, `company`, `acquisition`, `money`, `time`,
//! `agent`, `filter`, `aggregate`, `figures` and `quota` each have the rules of their subject.
//! `cells` contains rows, `cache` contains records in memory.

pub mod acquisition;
pub mod agent;
pub mod aggregate;
pub mod cache;
pub mod cells;
pub mod company;
pub mod contribution;
pub mod erasure;
pub mod facts;
pub mod fault;
pub mod figures;
pub mod filter;
pub mod floor;
pub mod fold;
pub mod hosts;
pub mod identity;
pub mod ids;
pub mod indexes;
pub mod intake;
mod json_number;
pub mod limits;
pub mod moment;
pub mod money;
pub mod names;
pub mod project;
pub mod queries;
pub mod quota;
pub mod records;
pub mod rollups;
pub mod spelling;
pub mod text;
pub mod time;
pub mod versions;

pub use fault::{Fault, FaultKind};
pub use filter::{Clause, Filter, MAX_FILTERS, MAX_VALUES, Operator, PartSet, Predicate};
pub use floor::{FloorMove, RisingFloor};
pub use identity::{EventSubject, IdentityId, IdentityLink, IdentitySlot, SentKeys, SortedLinks};
pub use ids::{KeyHasher, OrganizationId, ProjectId, RecordKey};
pub use intake::event::{Event, Position};
pub use money::{AMOUNT_DECIMALS, Amount, Currency, Rate, ratio_of_counts};
pub use names::{NamedValues, UnknownName};
pub use project::{Cardinality, Project, RecordVisitor};
pub use quota::{Mentions, Quota, Quotas, Reached};
pub use time::{Day, Instant, Timezone, Window};
pub use versions::{DayVersions, Depends, FigureKind};
