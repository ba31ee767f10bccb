//! A client of the server's API, for reads and writes before and after the load.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::{Response, header};
use ureq::{Agent, Body, Error};

use super::failure::Failure;

/// The timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum size of a response body.
const MAX_BODY_BYTES: u64 = 64 << 20;

/// The client.
pub(crate) struct Client {
    agent: Agent,
    url: String,
    authorization: String,
}

#[derive(Deserialize)]
struct ProjectList {
    projects: Vec<ListedProject>,
}

/// A project as the management API lists it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ListedProject {
    pub(crate) project_id: String,
    #[serde(default)]
    pub(crate) public_keys: Vec<String>,
}

impl Client {
    /// Creates a client of the server at `url`.
    pub(crate) fn new(url: &str, token: &str) -> Self {
        let agent = Agent::config_builder().http_status_as_error(false).timeout_global(Some(TIMEOUT)).build().into();
        Self { agent, url: url.trim_end_matches('/').to_owned(), authorization: format!("Bearer {token}") }
    }

    /// Sends a GET request.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let request = self.agent.get(format!("{}{path}", self.url)).header(header::AUTHORIZATION, &self.authorization);
        self.answer(path, request.call())
    }

    /// Posts JSON.
    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, json: &str) -> Result<T, Failure> {
        let request = self.agent.post(format!("{}{path}", self.url)).header(header::AUTHORIZATION, &self.authorization);
        self.answer(path, request.content_type("application/json").send(json))
    }

    /// Lists the projects of the token's organization.
    pub(crate) fn projects(&self) -> Result<Vec<ListedProject>, Failure> {
        self.get::<ProjectList>("/projects").map(|list| list.projects)
    }

    fn answer<T: DeserializeOwned>(&self, path: &str, answer: Result<Response<Body>, Error>) -> Result<T, Failure> {
        let unreachable = |error: Error| Failure::new(format!("no answer from {}", self.url), error);
        let mut answer = answer.map_err(unreachable)?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(MAX_BODY_BYTES).read_to_vec().map_err(unreachable)?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|_| Failure(format!("{}{path}: unexpected response", self.url)));
        }
        let error = serde_json::from_slice::<serde_json::Value>(&body).unwrap_or_default();
        let said = (error["error"]["code"].as_str(), error["error"]["message"].as_str());
        Err(Failure(match said {
            (Some(code), Some(message)) => format!("the server answered {} {code}: {message}", status.as_u16()),
            _ => format!("{}{path} answered {}", self.url, status.as_u16()),
        }))
    }
}
