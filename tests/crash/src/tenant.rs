//! The control data on the server: one organization, its projects and its token.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use headcount_model::Json;

use crate::error::{Result, harness, violation};
use crate::http::{Connection, Request};
use crate::server::Launch;

/// How long a server may refuse a management request, and the pause before it is sent again.
const REFUSED_FOR: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(200);

/// Exchange rates of the organization; CHF has none.
pub const RATES: &str = r#"{"EUR": 1.08, "GBP": 1.27, "JPY": 0.0067}"#;
/// Timezone of the organization: it has clock changes, and its days differ from those of UTC.
pub const TIMEZONE: &str = "Europe/Berlin";
/// Currencies of the projects.
const CURRENCIES: [&str; 4] = ["USD", "EUR", "JPY", "USD"];

/// A project.
#[derive(Debug, Clone)]
pub struct Project {
    /// Project id.
    pub id: String,
    /// Public key.
    pub key: String,
    /// Reporting currency.
    pub currency: &'static str,
}

/// The organization.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// API token of role owner with every scope.
    pub token: String,
    /// The projects.
    pub projects: Vec<Project>,
}

impl Tenant {
    /// Creates the organization and its projects in an empty data directory.
    ///
    /// # Errors
    /// A request fails.
    pub async fn make(launch: &Launch) -> Result<Tenant> {
        let output = launch.command(&["init", "--json"]).stderr(Stdio::inherit()).output()?;
        let mut tenant = Self::of_init(&output.stdout)?;
        let server = launch.start().await?;
        tenant.add_projects(server.address).await?;
        server.terminate().await?;
        Ok(tenant)
    }

    /// Returns the organization and the project that `init` printed.
    ///
    /// # Errors
    /// It printed something else.
    pub fn of_init(printed: &[u8]) -> Result<Tenant> {
        let made = Json::parse(&String::from_utf8_lossy(printed)).map_err(|error| harness(format!("init: {error}")))?;
        let text = |name: &str| made.field(name).text().map(str::to_owned).ok_or_else(|| harness(format!("init printed {made}")));
        let first = Project { id: text("project_id")?, key: text("public_key")?, currency: CURRENCIES[0] };
        Ok(Tenant { token: text("api_token")?, projects: vec![first] })
    }

    /// Sets the organization's timezone and rates, and creates the other projects.
    ///
    /// # Errors
    /// A request fails.
    pub async fn add_projects(&mut self, address: SocketAddr) -> Result<()> {
        let settings = format!(r#"{{"timezone":"{TIMEZONE}","fx_rates":{RATES}}}"#);
        manage(address, &self.token, "PATCH", "/organization", &settings, 200).await?;
        for (number, currency) in CURRENCIES.into_iter().enumerate().skip(1) {
            let body = format!(r#"{{"name":"project {number}","currency":"{currency}"}}"#);
            let made = manage(address, &self.token, "POST", "/projects", &body, 201).await?;
            let text = |name: &str| {
                made.field(name).text().map(str::to_owned).ok_or_else(|| harness(format!("POST /projects answered {made}")))
            };
            self.projects.push(Project { id: text("project_id")?, key: text("public_key")?, currency });
        }
        Ok(())
    }
}

/// Sends a management request, again while the answer is 503, and expects `status`.
///
/// # Errors
/// A violation if the response has another status.
pub async fn manage(address: SocketAddr, token: &str, method: &str, path: &str, body: &str, status: u16) -> Result<Json> {
    let began = Instant::now();
    let response = loop {
        let response = Connection::open(address).await?.send(&Request::with_body(method, path, token, body)).await?;
        // Nothing has changed then.
        if response.status != 503 || began.elapsed() > REFUSED_FOR {
            break response;
        }
        tokio::time::sleep(PAUSE).await;
    };
    if response.status != status {
        return Err(violation(format!("{method} {path} answered {}: {}", response.status, response.body)));
    }
    Ok(response.json())
}
