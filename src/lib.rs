//! Self-hosted product and web analytics, revenue and account intelligence in one process.
//!
//! The program `headcount` ([`cli`]) serves the engine over HTTP ([`server`]). [`Engine`] also
//! embeds in other Rust programs: it runs on its own threads, and works with any async runtime.
//!
//! ```no_run
//! use headcount::queries::{self, IdentitySelector, UniqueUsersQuery};
//! use headcount::domain::time::Window;
//! use headcount::{Engine, EngineConfig, Field, NewEvent};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::open(EngineConfig::new("./analytics"))?;
//! let now = engine.clock().now();
//! // On the first start: creates an organization, a project and their keys. They are not shown again.
//! let project = engine.registry().initialize(now)?.project_id;
//!
//! let event = NewEvent::new("checkout").user("ada").with(Field::Currency, "EUR").value("12.50")?;
//! let receipt = engine.track(project, &event).await?;
//! // The event is on disk and included in every figure.
//! println!("recorded as {:?} at {:?}", receipt.id, receipt.position);
//!
//! let timezone = engine.registry().policy(project).ok_or("no such project")?.policy.timezone;
//! let week = Window::last_days(7, timezone, now);
//! let users = engine.ask(project, UniqueUsersQuery { window: week }).await?;
//! println!("{} users in seven days", users.total);
//! let organization = engine.organization(engine.registry().organizations()[0].id);
//! if let Some(ada) = queries::profile(&organization, &IdentitySelector::User("ada".into()), week).await? {
//!     println!("ada: {} sessions, {} earned", ada.sessions, ada.revenue);
//! }
//! for company in queries::top_companies(&organization, week, 10).await?.rows {
//!     println!("{:?}: {} users", company.domain, company.users);
//! }
//! engine.close().await;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod cli;
pub mod config;
mod features;
mod http;
pub mod server;
pub mod telemetry;

pub use headcount_actors::ingest::{BatchReceipt, Field, NewEvent, Receipt, Refusal, Status};
pub use headcount_actors::{
    AskError, CheckpointPolicy, Engine, EngineConfig, OpenError, OrganizationProjects, Progress, Questions, Scans, TrackError,
    Tracker, Vitals,
};
pub use headcount_common::clock;
pub use headcount_control as registry;
pub use headcount_domain as domain;
pub use headcount_domain::queries;
