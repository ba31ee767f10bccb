//! A small client of a running server's API, for the commands that work beside it.

use std::path::Path;
use std::time::{Duration, Instant};

use headcount_domain::ids::ProjectId;
use headcount_storage::files::{PRIVATE_FILE, write_atomically};
use serde::Deserialize;

use super::Failure;
use super::credentials::Credentials;
use crate::config::Settings;

/// Says where the server listens, while one runs on the data directory.
const ADDRESS_FILE: &str = "server-url";
/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a server that can't take events now is asked again.
const PATIENCE: Duration = Duration::from_secs(120);
/// The longest answer that is read.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// Leaves word of where the server on `data_dir` listens.
pub(crate) fn leave_address(data_dir: &Path, url: &str) {
    let written = write_atomically(&data_dir.join(ADDRESS_FILE), format!("{url}\n").as_bytes(), PRIVATE_FILE);
    if let Err(error) = written {
        tracing::warn!(%error, "commands beside this server need --url: its address could not be written down");
    }
}

/// Takes it away again.
pub(crate) fn remove_address(data_dir: &Path) {
    // A left-over does no harm: it is asked for only while a server holds the directory, and that one replaces it.
    let _ = std::fs::remove_file(data_dir.join(ADDRESS_FILE));
}

/// How a server is reached, as flags.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ServerFlags {
    /// The server's address [default: the one that runs on the data directory]
    #[arg(long, value_name = "URL", help_heading = "Through a running server")]
    pub url: Option<String>,
    /// An API token [default: the one that `init` saved in the data directory] [env: HEADCOUNT_TOKEN]
    #[arg(long, value_name = "TOKEN", help_heading = "Through a running server")]
    pub token: Option<String>,
}

/// The client.
pub struct Client {
    agent: ureq::Agent,
    url: String,
    token: String,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("url", &self.url).finish_non_exhaustive()
    }
}

/// An answer of the server.
struct Answer {
    status: u16,
    retry_after: Option<Duration>,
    body: Vec<u8>,
}

#[derive(Deserialize)]
struct Refused {
    error: RefusedError,
}

#[derive(Deserialize)]
struct RefusedError {
    code: String,
    message: String,
}

#[derive(Deserialize)]
struct ProjectList {
    projects: Vec<ListedProject>,
}

/// A project as the management API lists it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ListedProject {
    pub(crate) project_id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) public_keys: Vec<String>,
}

impl Client {
    /// A client of the server that the flags name, or that runs on the data directory.
    ///
    /// # Errors
    /// There is no token, or the address is none that this client can reach.
    pub fn new(flags: &ServerFlags, settings: &Settings) -> Result<Self, Failure> {
        let url = match &flags.url {
            Some(url) => url.clone(),
            None => match std::fs::read_to_string(settings.data_dir.join(ADDRESS_FILE)) {
                Ok(url) => url.trim().to_owned(),
                Err(_) => format!("http://{}", settings.listen),
            },
        };
        let token = match flags.token.clone().or_else(|| std::env::var("HEADCOUNT_TOKEN").ok()) {
            Some(token) => token,
            None => Credentials::load(&settings.data_dir)?
                .map(|it| it.api_token)
                .ok_or_else(|| Failure(format!("no API token: give --token; {} holds none", settings.data_dir.display())))?,
        };
        Self::with(&url, &token)
    }

    /// A client of the server at `url`.
    ///
    /// # Errors
    /// The address is none that this client can reach.
    pub fn with(url: &str, token: &str) -> Result<Self, Failure> {
        if !url.starts_with("http://") {
            return Err(Failure(format!("--url must begin with http:// (it is meant for this machine or network), not {url:?}")));
        }
        let agent = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(TIMEOUT)).build().into();
        Ok(Self { agent, url: url.trim_end_matches('/').to_owned(), token: token.to_owned() })
    }

    /// The server's address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Asks for `path`.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let answer =
            self.agent.get(format!("{}{path}", self.url)).header("authorization", format!("Bearer {}", self.token)).call();
        self.understand(path, &Self::answer(answer).map_err(|error| self.unreachable(&error))?)
    }

    /// Posts JSON to `path`, again and again while the server can't take it now: only for what may be sent twice.
    ///
    /// # Errors
    /// A refusal, or no answer for two minutes.
    pub fn post<T: serde::de::DeserializeOwned>(&self, path: &str, json: &[u8]) -> Result<T, Failure> {
        let began = Instant::now();
        let mut pause = Duration::from_millis(100);
        loop {
            let request = self.agent.post(format!("{}{path}", self.url));
            let request = request.header("authorization", format!("Bearer {}", self.token)).content_type("application/json");
            let (wait, failure) = match Self::answer(request.send(json)) {
                Ok(answer) if matches!(answer.status, 429 | 500 | 503) => {
                    (answer.retry_after, self.understand::<T>(path, &answer).err())
                }
                Ok(answer) => return self.understand(path, &answer),
                Err(error) => (None, Some(self.unreachable(&error))),
            };
            if began.elapsed() > PATIENCE {
                return Err(failure.unwrap_or_else(|| Failure("no answer".into())));
            }
            std::thread::sleep(wait.unwrap_or(pause).min(Duration::from_secs(10)));
            pause = (pause * 2).min(Duration::from_secs(5));
        }
    }

    /// The projects of the token's organization.
    pub(crate) fn projects(&self) -> Result<Vec<ListedProject>, Failure> {
        self.get::<ProjectList>("/projects").map(|list| list.projects)
    }

    /// The project that is meant: by id, by a name that is unique, or the only one.
    ///
    /// # Errors
    /// There is none, or several.
    pub fn project(&self, wanted: Option<&str>) -> Result<ProjectId, Failure> {
        if let Some(id) = wanted.and_then(|wanted| wanted.parse().ok()) {
            return Ok(id);
        }
        let projects = self.projects()?.into_iter().filter_map(|project| Some((project.project_id.parse().ok()?, project.name)));
        pick(wanted, projects)
    }

    fn answer(result: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Answer, ureq::Error> {
        let mut response = result?;
        let status = response.status().as_u16();
        let seconds = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let body = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec()?;
        Ok(Answer { status, retry_after: seconds.map(Duration::from_secs), body })
    }

    fn understand<T: serde::de::DeserializeOwned>(&self, path: &str, answer: &Answer) -> Result<T, Failure> {
        let Answer { status, body, .. } = answer;
        if (200..300).contains(status) {
            return serde_json::from_slice(body)
                .map_err(|_| Failure(format!("{}{path} answered what is not understood", self.url)));
        }
        match serde_json::from_slice(body) {
            Ok(Refused { error: RefusedError { code, message } }) => {
                Err(Failure(format!("the server answered {status} {code}: {message}")))
            }
            Err(_) => Err(Failure(format!("{}{path} answered {status}", self.url))),
        }
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        Failure(format!("no answer from {}: {error}", self.url))
    }
}

/// The project that is meant, out of those there are.
pub(crate) fn pick(wanted: Option<&str>, projects: impl Iterator<Item = (ProjectId, String)>) -> Result<ProjectId, Failure> {
    let all: Vec<(ProjectId, String)> = projects.collect();
    let of_name: Vec<&(ProjectId, String)> = match wanted {
        Some(wanted) => all.iter().filter(|(id, name)| name == wanted || id.to_string() == wanted).collect(),
        None => all.iter().collect(),
    };
    match of_name[..] {
        [(id, _)] => Ok(*id),
        [] => Err(Failure(format!("there is no project {:?}", wanted.unwrap_or_default()))),
        _ => {
            let list: Vec<String> = of_name.iter().map(|(id, name)| format!("{id} ({name})")).collect();
            Err(Failure(format!("--project: which one? {}", list.join(", "))))
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
        for (wanted, what) in [(Some("app"), "which one?"), (Some("none"), "no project"), (None, "which one?")] {
            assert!(pick(wanted, projects()).unwrap_err().0.contains(what), "{wanted:?}");
        }
    }
}
