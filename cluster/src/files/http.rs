//! The HTTP transport of the bucket. It uses the program's blocking HTTP client, on threads that
//! may block.

use std::error::Error;
use std::io;
use std::time::Duration;

use http_body_util::BodyExt as _;
use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService};
use ureq::Agent;

/// How long a request may take, including its answer. Both are at most a part of a file.
const TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of an answer: a part of a file, or a page of a listing.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .build();
        Ok(HttpClient::new(Service { agent: config.into() }))
    }
}

#[derive(Debug)]
struct Service {
    agent: Agent,
}

#[async_trait::async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let agent = self.agent.clone();
        let answered = tokio::task::spawn_blocking(move || {
            let request = ureq::http::Request::from_parts(head, body.to_vec());
            let mut response = agent.run(request).map_err(failed)?;
            let answer = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec().map_err(failed)?;
            Ok(response.map(|_| answer.into()))
        });
        answered.await.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))?
    }
}

fn failed(error: ureq::Error) -> HttpError {
    let kind = match &error {
        ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => HttpErrorKind::Connect,
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => HttpErrorKind::Connect,
        ureq::Error::Io(_) => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new_boxed(kind, Box::<dyn Error + Send + Sync>::from(error.to_string()))
}
