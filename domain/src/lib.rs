//! What headcount's numbers mean. Pure: no I/O, no clock, no actor and no store; `Cargo.toml` proves it.
//!
//! Entry points: [`submission::Submission::parse`] and [`admission::admit`] turn what was sent into an [`event::Event`];
//! [`fold::Project::apply`] folds it; the methods of [`fold::Project`] in [`answers`] answer from the rollups.
//!
//! The mechanism: an event adds to the [`facts::Facts`] of one identity (and one account), and every [`rollup::Rollup`]
//! is a sum over entities of what their facts contribute. Late events, links, refunds and erasures are the same move.

pub mod acquisition;
pub mod admission;
pub mod agent;
pub mod answers;
pub mod company;
pub mod country;
pub mod event;
pub mod facts;
pub mod fields;
pub mod filter;
pub mod fold;
pub mod groups;
pub mod ids;
pub mod money;
pub mod names;
pub mod paged;
pub mod people;
pub mod policy;
pub mod project;
pub mod quota;
pub mod records;
pub mod rollup;
pub mod rollups;
pub mod submission;
pub mod table;
pub mod text;
pub mod time;
