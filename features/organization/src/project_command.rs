//! `headcount project`.

use headcount_api::command::{Body, Failure, ManagedServer, ManagementCommand, Reply};
use serde_json::{Map, Value};

/// A command about projects.
#[derive(Debug, clap::Subcommand)]
#[expect(missing_docs, reason = "doc comments of flags are the help that users see")]
pub enum ProjectCommand {
    /// List the projects
    List,
    /// Create a project with one public key
    Create {
        /// Name
        #[arg(long)]
        name: String,
        #[command(flatten)]
        flags: ProjectFlags,
    },
    /// Show a project
    Show {
        /// Project, by id or unique name
        project: String,
    },
    /// Change a project. Only the settings with a flag change
    Set {
        /// Project, by id or unique name
        project: String,
        /// New name
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        flags: ProjectFlags,
        #[command(flatten)]
        limits: LimitFlags,
    },
    /// Delete a project and all of its data
    Delete {
        /// Project, by id or unique name
        project: String,
    },
}

/// The settings of a project.
#[derive(Debug, clap::Args)]
pub struct ProjectFlags {
    /// Currency of its figures, such as EUR; can't change after the first event
    #[arg(long, value_name = "CODE")]
    currency: Option<String>,
    /// Web origins that may send events, separated by commas; "" allows any
    #[arg(long, value_name = "ORIGINS", value_delimiter = ',')]
    allowed_origins: Option<Vec<String>>,
    /// Whether a daily hash distinguishes visitors without ids
    #[arg(long, value_name = "BOOL")]
    cookieless: Option<bool>,
    /// Events of crawlers, monitors and previewers: drop or record
    #[arg(long, value_name = "POLICY")]
    bots: Option<String>,
    /// Events with a privacy signal: record, anonymize or drop
    #[arg(long, value_name = "POLICY")]
    signals_policy: Option<String>,
    /// Whether amounts sent with a public key are stored but not counted as revenue
    #[arg(long, value_name = "BOOL")]
    server_only_revenue: Option<bool>,
    /// Days for which events are kept, including today: 1 to 3660, or 0 for ever. Removed events
    /// can't be restored
    #[arg(long, value_name = "DAYS")]
    retention_days: Option<u32>,
    /// Hosts of your own sites, separated by commas, each with its subdomains. They are never a
    /// source; "" for none
    #[arg(long, value_name = "HOSTS", value_delimiter = ',')]
    own_domains: Option<Vec<String>>,
    /// Other hosts that are never a source, such as checkout and sign-in pages that headcount
    /// doesn't know; "" for none
    #[arg(long, value_name = "HOSTS", value_delimiter = ',')]
    ignored_referrers: Option<Vec<String>>,
}

/// The limits of a project.
#[derive(Debug, clap::Args)]
pub struct LimitFlags {
    /// Events per second of all public keys together; 0 removes the limit
    #[arg(long, value_name = "N")]
    rate_limit: Option<u32>,
    /// Burst: events at once after a pause [default: the events of one second]
    #[arg(long, value_name = "N")]
    burst: Option<u32>,
    /// Maximum numbers of distinct groups, companies, pages and sources, such as
    /// pages=5000,sources=1000
    #[arg(long, value_name = "QUOTAS", value_delimiter = ',')]
    quotas: Option<Vec<String>>,
}

impl LimitFlags {
    fn add_to(&self, body: Body) -> Result<Body, Failure> {
        let quota = |text: &String| {
            let wrong = || Failure(format!("--quotas: {text:?} must be like pages=5000"));
            let (kind, quota) = text.split_once('=').ok_or_else(wrong)?;
            Ok((kind.trim().to_owned(), Value::from(quota.trim().parse::<u32>().map_err(|_| wrong())?)))
        };
        let quotas = self.quotas.as_ref().map(|list| list.iter().map(quota).collect::<Result<Map<String, Value>, Failure>>());
        Ok(body.set("rate_limit", self.rate_limit).set("burst", self.burst).set("quotas", quotas.transpose()?))
    }
}

impl ProjectFlags {
    fn body(&self, name: Option<&str>) -> Body {
        let Self { currency, allowed_origins, cookieless, bots, signals_policy, server_only_revenue, .. } = self;
        Body::default()
            .set("name", name)
            .set("currency", currency.as_deref())
            .list("allowed_origins", allowed_origins.as_deref())
            .set("cookieless", *cookieless)
            .set("bots", bots.as_deref())
            .set("signals_policy", signals_policy.as_deref())
            .set("server_only_revenue", *server_only_revenue)
            .set("retention_days", self.retention_days.map(|days| (days > 0).then_some(days)))
            .list("own_domains", self.own_domains.as_deref())
            .list("ignored_referrers", self.ignored_referrers.as_deref())
    }
}

impl ManagementCommand for ProjectCommand {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        let path = |project: &str| server.client.project(Some(project)).map(|id| format!("/projects/{id}"));
        match self {
            Self::List => server.list("/projects", "projects", &["project_id", "name", "currency", "public_key"]),
            Self::Create { name, flags } => server.create("/projects", &flags.body(Some(name))),
            Self::Show { project } => server.show(&path(project)?),
            Self::Set { project, name, flags, limits } => {
                let body = limits.add_to(flags.body(name.as_deref()))?;
                server.change(&path(project)?, &body)
            }
            Self::Delete { project } => {
                server.remove(&path(project)?, format!("deleted {project}; its files are removed in the background"))
            }
        }
    }
}
