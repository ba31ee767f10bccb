//! A client of a running server's API, for the commands that run beside the server.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use headcount_control::OPERATOR_FILE;
use headcount_domain::ProjectId;
use headcount_storage::files::{PRIVATE_FILE, write_atomically};
use headcount_storage::lock::{DirLock, LockError};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::command::credentials::InitialCredentials;
use crate::command::failure::Failure;

/// The file in the data directory with the URL of the server that has the directory open.
const ADDRESS_FILE: &str = "server-url";
/// The timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a POST is retried while the server is overloaded or unreachable.
const RETRY_FOR: Duration = Duration::from_secs(120);
/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The largest response body that is read.
const MAX_BODY_BYTES: u64 = 64 << 20;

/// Writes the URL of the server on `data_dir` to a file, for commands that run beside it.
pub fn write_address(data_dir: &Path, url: &str) {
    let written = write_atomically(&data_dir.join(ADDRESS_FILE), format!("{url}\n").as_bytes(), PRIVATE_FILE);
    if let Err(error) = written {
        tracing::warn!(%error, "commands beside this server need --url: its address could not be saved");
    }
}

/// Removes the file of [`write_address`].
pub fn remove_address(data_dir: &Path) {
    // A stale file is harmless: commands read it only while a server has the directory open, and
    // that server replaces it.
    let _ = std::fs::remove_file(data_dir.join(ADDRESS_FILE));
}

/// Where the server on a data directory is.
#[derive(Debug, Clone, Copy)]
pub struct ServerPlace<'a> {
    /// The data directory.
    pub data_dir: &'a Path,
    /// The address that it listens on by the settings.
    pub listen: &'a str,
}

/// The flags that select a server.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ServerFlags {
    /// URL of the server [default: the server on the data directory]
    #[arg(long, value_name = "URL", help_heading = "Through a running server", global = true)]
    pub url: Option<String>,
    /// API token [default: the token that `init` saved in the data directory]
    #[arg(
        long,
        value_name = "TOKEN",
        help_heading = "Through a running server",
        env = "HEADCOUNT_TOKEN",
        hide_env_values = true,
        global = true
    )]
    pub token: Option<String>,
}

/// The flags of commands that need the operator token.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct OperatorFlags {
    /// URL of the server [default: the server on the data directory]
    #[arg(long, value_name = "URL", help_heading = "Through a running server")]
    pub url: Option<String>,
    /// Operator token [default: the content of `operator-token` in the data directory]
    #[arg(
        long,
        value_name = "TOKEN",
        help_heading = "Through a running server",
        env = "HEADCOUNT_OPERATOR_TOKEN",
        hide_env_values = true
    )]
    pub operator_token: Option<String>,
}

/// The client.
pub struct Client {
    agent: ureq::Agent,
    url: String,
    authorization: String,
}

/// A response of any status.
struct ApiResponse {
    status: u16,
    retry_after: Option<Duration>,
    body: Vec<u8>,
}

#[derive(Deserialize)]
struct ProjectList {
    projects: Vec<ListedProject>,
}

#[derive(Deserialize)]
struct ListedProject {
    project_id: String,
    name: String,
}

impl Client {
    /// Creates a client of the selected server, by default the server on the data directory.
    pub fn new(flags: &ServerFlags, place: &ServerPlace<'_>) -> Result<Self, Failure> {
        let url = flags.url.clone().unwrap_or_else(|| url_of(place));
        let token = match &flags.token {
            Some(token) => token.clone(),
            None => InitialCredentials::load(place.data_dir)?.map(|saved| saved.api_token).ok_or_else(|| {
                Failure(format!("no API token: pass --token ({} has no saved token)", place.data_dir.display()))
            })?,
        };
        Self::with(&url, &token)
    }

    /// Creates a client of the server on the data directory, with the rights of its operator.
    pub fn operator(place: &ServerPlace<'_>) -> Result<Self, Failure> {
        Self::operator_of(&OperatorFlags::default(), place)
    }

    /// Creates a client of the selected server, with the rights of its operator.
    pub fn operator_of(flags: &OperatorFlags, place: &ServerPlace<'_>) -> Result<Self, Failure> {
        let url = flags.url.clone().unwrap_or_else(|| url_of(place));
        if let Some(token) = &flags.operator_token {
            return Self::with(&url, token);
        }
        let path = place.data_dir.join(OPERATOR_FILE);
        let unreadable = |error| Failure(format!("the operator token in {} can't be read: {error}", path.display()));
        let token = std::fs::read_to_string(&path).map_err(unreadable)?;
        Self::with(&url, token.trim())
    }

    /// Creates a client of the server at `url`, which must be plain HTTP.
    pub fn with(url: &str, token: &str) -> Result<Self, Failure> {
        Self::with_timeout(url, token, TIMEOUT)
    }

    /// Like [`Client::with`], with this timeout for each request.
    fn with_timeout(url: &str, token: &str, timeout: Duration) -> Result<Self, Failure> {
        if !url.starts_with("http://") {
            return Err(Failure(format!(
                "--url must begin with http:// (commands reach a server on this machine or network), not {url:?}"
            )));
        }
        let agent = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(timeout)).build().into();
        Ok(Self { agent, url: url.trim_end_matches('/').to_owned(), authorization: format!("Bearer {token}") })
    }

    /// The server's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends a GET request.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let request = self.agent.get(format!("{}{path}", self.url)).header("authorization", &self.authorization);
        let response = read_response(request.call()).map_err(|error| self.unreachable(&error))?;
        self.parse(path, &response)
    }

    /// Sends a GET request, and streams the body of the answer.
    pub fn download(&self, path: &str) -> Result<impl Read + use<>, Failure> {
        let request = self.agent.get(format!("{}{path}", self.url)).header("authorization", &self.authorization);
        // The answer begins at once, but may take long to finish.
        let request = request.config().timeout_global(None).timeout_recv_response(Some(TIMEOUT)).build();
        let response = request.call().map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() {
            return Ok(response.into_body().into_reader());
        }
        let response = read_response(Ok(response)).map_err(|error| self.unreachable(&error))?;
        Err(match self.parse::<serde_json::Value>(path, &response) {
            Err(failure) => failure,
            Ok(_) => Failure(format!("{}{path}: unexpected response", self.url)),
        })
    }

    /// Posts JSON once. The request may create something, so it is never retried.
    pub fn post_once<T: DeserializeOwned>(&self, path: &str, json: &[u8]) -> Result<T, Failure> {
        let request = self.agent.post(format!("{}{path}", self.url)).header("authorization", &self.authorization);
        let response = read_response(request.content_type("application/json").send(json));
        self.parse(path, &response.map_err(|error| self.unreachable(&error))?)
    }

    /// Sends a PATCH request.
    pub fn patch<T: DeserializeOwned>(&self, path: &str, json: &[u8]) -> Result<T, Failure> {
        let request = self.agent.patch(format!("{}{path}", self.url)).header("authorization", &self.authorization);
        let response = read_response(request.content_type("application/json").send(json));
        self.parse(path, &response.map_err(|error| self.unreachable(&error))?)
    }

    /// Sends a DELETE request, which is answered without a body.
    pub fn delete(&self, path: &str) -> Result<(), Failure> {
        let request = self.agent.delete(format!("{}{path}", self.url)).header("authorization", &self.authorization);
        let response = read_response(request.call()).map_err(|error| self.unreachable(&error))?;
        if response.status == 204 {
            return Ok(());
        }
        self.parse::<serde::de::IgnoredAny>(path, &response).map(drop)
    }

    /// Posts JSON. Retries for two minutes while the server is overloaded or unreachable, so the
    /// request must be idempotent.
    pub fn post<T: DeserializeOwned>(&self, path: &str, json: &[u8]) -> Result<T, Failure> {
        self.repeat(path, || {
            let request = self.agent.post(format!("{}{path}", self.url)).header("authorization", &self.authorization);
            request.content_type("application/json").send(json)
        })
    }

    /// Sends a GET request. Retries for two minutes while the server has no answer.
    pub fn get_again<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.repeat(path, || self.agent.get(format!("{}{path}", self.url)).header("authorization", &self.authorization).call())
    }

    fn repeat<T: DeserializeOwned>(
        &self,
        path: &str,
        send: impl Fn() -> Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<T, Failure> {
        let began = Instant::now();
        let mut pause = Duration::from_millis(100);
        loop {
            let (retry_after, failure) = match read_response(send()) {
                Ok(response) => match self.parse(path, &response) {
                    Err(failure) if matches!(response.status, 429 | 500 | 503) => (response.retry_after, failure),
                    parsed => return parsed,
                },
                Err(error) => (None, self.unreachable(&error)),
            };
            if began.elapsed() > RETRY_FOR {
                return Err(failure);
            }
            std::thread::sleep(retry_after.unwrap_or(pause).min(MAX_PAUSE));
            pause = (pause * 2).min(MAX_PAUSE / 2);
        }
    }

    /// Posts an empty body, and streams the answer. The answer has no time limit, since it may be
    /// large.
    pub fn post_for_stream(&self, path: &str) -> Result<impl Read + use<>, Failure> {
        let request = self.agent.post(format!("{}{path}", self.url)).header("authorization", &self.authorization);
        let request = request.config().timeout_global(None).timeout_recv_response(Some(TIMEOUT)).build();
        let mut response = request.send_empty().map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() {
            return Ok(response.into_body().into_reader());
        }
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(MAX_BODY_BYTES).read_to_vec().unwrap_or_default();
        let refused = self.parse::<serde_json::Value>(path, &ApiResponse { status, retry_after: None, body });
        Err(refused.err().unwrap_or_else(|| Failure(format!("{}{path} answered {status}", self.url))))
    }

    /// Finds a project by its id or unique name; without either, the only project.
    pub fn project(&self, wanted: Option<&str>) -> Result<ProjectId, Failure> {
        if let Some(id) = wanted.and_then(|wanted| wanted.parse().ok()) {
            return Ok(id);
        }
        let listed = self.get::<ProjectList>("/projects")?.projects.into_iter();
        let projects = listed.filter_map(|project| Some((project.project_id.parse().ok()?, project.name)));
        pick(wanted, projects)
    }

    fn parse<T: DeserializeOwned>(&self, path: &str, response: &ApiResponse) -> Result<T, Failure> {
        let ApiResponse { status, body, .. } = response;
        if (200..300).contains(status) {
            return serde_json::from_slice(body).map_err(|_| Failure(format!("{}{path}: unexpected response", self.url)));
        }
        let error = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
        Err(Failure(match (error["error"]["code"].as_str(), error["error"]["message"].as_str()) {
            (Some(code), Some(message)) => {
                let parameter = error["error"]["param"].as_str().map_or_else(String::new, |name| format!("{name}: "));
                format!("the server answered {status} {code}: {parameter}{message}")
            }
            _ => format!("{}{path} answered {status}", self.url),
        }))
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        Failure(format!("no answer from {}: {error}", self.url))
    }
}

/// Checks that the server at `url` is ready; without a URL, the server on the data directory.
pub fn check_ready(url: Option<&str>, place: &ServerPlace<'_>, timeout: Duration) -> Result<(), Failure> {
    let url = url.map_or_else(|| url_of(place), str::to_owned);
    // Readiness needs no token, so none is sent.
    let client = Client::with_timeout(&url, "", timeout)?;
    let response = read_response(client.agent.get(format!("{}/readyz", client.url)).call());
    let response = response.map_err(|error| client.unreachable(&error))?;
    client.parse::<serde::de::IgnoredAny>("/readyz", &response).map(drop)
}

/// The URL of the server on the data directory.
fn url_of(place: &ServerPlace<'_>) -> String {
    match std::fs::read_to_string(place.data_dir.join(ADDRESS_FILE)) {
        Ok(url) => url.trim().to_owned(),
        Err(_) => format!("http://{}", place.listen),
    }
}

fn read_response(result: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<ApiResponse, ureq::Error> {
    let mut response = result?;
    let status = response.status().as_u16();
    let seconds = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    let body = response.body_mut().with_config().limit(MAX_BODY_BYTES).read_to_vec()?;
    Ok(ApiResponse { status, retry_after: seconds.map(Duration::from_secs), body })
}

/// Returns whether a server, another process, has the data directory open.
pub fn is_held(data_dir: &Path) -> Result<bool, Failure> {
    if !data_dir.join("FORMAT").exists() {
        let message = "is not a data directory: `headcount init` or `headcount serve` creates one";
        return Err(Failure(format!("{} {message}", data_dir.display())));
    }
    match DirLock::acquire(data_dir) {
        Ok(_) => Ok(false),
        Err(LockError::InUse { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Finds a project by its id or unique name. `None` selects the only project.
pub fn pick(wanted: Option<&str>, projects: impl Iterator<Item = (ProjectId, String)>) -> Result<ProjectId, Failure> {
    let is_wanted = |(id, name): &(ProjectId, String)| wanted.is_none_or(|wanted| name == wanted || id.to_string() == wanted);
    let found: Vec<(ProjectId, String)> = projects.filter(is_wanted).collect();
    match &found[..] {
        [(id, _)] => Ok(*id),
        [] => Err(Failure(format!("there is no project {:?}", wanted.unwrap_or_default()))),
        several => {
            let list: Vec<String> = several.iter().map(|(id, name)| format!("{id} ({name})")).collect();
            Err(Failure(format!("--project: choose one of {}", list.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_named_by_id_or_by_a_unique_name() {
        let projects = || [(1, "web"), (2, "app"), (3, "app")].map(|(id, name)| (ProjectId(id), name.to_owned())).into_iter();
        assert_eq!(pick(Some("web"), projects()), Ok(ProjectId(1)));
        assert_eq!(pick(Some(&ProjectId(3).to_string()), projects()), Ok(ProjectId(3)));
        assert_eq!(pick(None, projects().take(1)), Ok(ProjectId(1)));
        for (wanted, what) in [(Some("app"), "choose one of"), (Some("none"), "no project"), (None, "choose one of")] {
            assert!(pick(wanted, projects()).unwrap_err().0.contains(what), "{wanted:?}");
        }
    }
}
