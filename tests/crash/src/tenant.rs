//! What there is on the server besides events: one organization, its projects, its token.

use std::net::SocketAddr;
use std::process::Stdio;

use headcount_model::Json;

use crate::http::{Connection, Request};
use crate::server::Launch;
use crate::trouble::{Result, harness, violation};

/// Rates of the organization. There is none for CHF.
pub const RATES: &str = r#"{"EUR": 1.08, "GBP": 1.27, "JPY": 0.0067}"#;
/// Its timezone: the clocks change in it, and days are not those of UTC.
pub const TIMEZONE: &str = "Europe/Berlin";
/// Currencies of the projects.
const CURRENCIES: [&str; 4] = ["USD", "EUR", "JPY", "USD"];

/// A project.
#[derive(Debug, Clone)]
pub struct Project {
    /// Its id.
    pub id: String,
    /// Its public key.
    pub key: String,
    /// Its currency.
    pub currency: &'static str,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct World {
    /// An API token of role owner with every scope.
    pub token: String,
    /// The projects.
    pub projects: Vec<Project>,
}

impl World {
    /// Makes it all in an empty data directory.
    ///
    /// # Errors
    /// The server does not do as it is told.
    pub async fn make(launch: &Launch) -> Result<World> {
        let output = launch.command(&["init", "--json"]).stderr(Stdio::inherit()).output()?;
        let made = Json::parse(&String::from_utf8_lossy(&output.stdout)).map_err(|error| harness(format!("init: {error}")))?;
        let text = |json: &Json, name: &str| json.field(name).text().map(str::to_owned);
        let missing = || harness(format!("init said {made}"));
        let token = text(&made, "api_token").ok_or_else(missing)?;
        let first = Project {
            id: text(&made, "project_id").ok_or_else(missing)?,
            key: text(&made, "public_key").ok_or_else(missing)?,
            currency: CURRENCIES[0],
        };
        let server = launch.start().await?;
        let mut world = World { token, projects: vec![first] };
        let settings = format!(r#"{{"timezone":"{TIMEZONE}","fx_rates":{RATES}}}"#);
        manage(server.address, &world.token, "PATCH", "/organization", &settings, 200).await?;
        for (number, currency) in CURRENCIES.into_iter().enumerate().skip(1) {
            let body = format!(r#"{{"name":"project {number}","currency":"{currency}"}}"#);
            let made = manage(server.address, &world.token, "POST", "/projects", &body, 201).await?;
            let missing = || harness(format!("POST /projects said {made}"));
            let id = text(&made, "project_id").ok_or_else(missing)?;
            let key = text(&made, "public_key").ok_or_else(missing)?;
            world.projects.push(Project { id, key, currency });
        }
        server.terminate().await?;
        Ok(world)
    }
}

/// One management request that has to succeed.
///
/// # Errors
/// A violation if it doesn't.
pub async fn manage(address: SocketAddr, token: &str, method: &str, path: &str, body: &str, status: u16) -> Result<Json> {
    let reply = Connection::open(address).await?.send(&Request::with_body(method, path, token, body)).await?;
    if reply.status != status {
        return Err(violation(format!("{method} {path} answered {}: {}", reply.status, reply.body)));
    }
    Ok(reply.json())
}
