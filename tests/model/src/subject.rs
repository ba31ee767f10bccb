//! The subject of a history: the model, or a server.

use crate::json::Json;

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `PATCH`
    Patch,
}

/// The credential of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// An API token with the role owner and every scope, as a bearer token.
    Owner,
    /// This public key, in `x-service-pk`, with the user agent of a typical browser unless the
    /// request has another.
    PublicKey(String),
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path, without query.
    pub path: String,
    /// The fields of the query, not yet encoded.
    pub query: Vec<(String, String)>,
    /// The JSON body, exactly as sent.
    pub body: Option<String>,
    /// The credential.
    pub credential: Credential,
    /// Other headers, by their names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Request {
    /// Creates a request of the owner with a JSON body.
    #[must_use]
    pub fn owner(method: Method, path: &str, body: &str) -> Request {
        let (path, body) = (path.to_owned(), Some(body.to_owned()));
        Request { method, path, query: Vec::new(), body, credential: Credential::Owner, headers: Vec::new() }
    }
}

/// Answers requests. A new subject is a separate organization without events.
pub trait Subject {
    /// Returns the subject's clock, in milliseconds since the epoch.
    fn now_ms(&mut self) -> i64;

    /// Answers a request with a status and a JSON body, `null` if there is none.
    fn request(&mut self, request: &Request) -> (u16, Json);

    /// Restarts the subject, keeping its data.
    fn restart(&mut self) {}
}
