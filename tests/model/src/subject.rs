//! The subject of a history: the model itself, or a server.

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

/// What a request is sent with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// An API token of role owner with every scope, as a bearer token.
    Owner,
    /// This public key, in `x-service-pk`, from a usual browser's user agent.
    PublicKey(String),
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its method.
    pub method: Method,
    /// Its path, without query.
    pub path: String,
    /// The fields of its query, not yet encoded.
    pub query: Vec<(String, String)>,
    /// Its body, JSON, exactly as it is to be sent.
    pub body: Option<String>,
    /// What it is sent with.
    pub credential: Credential,
}

impl Request {
    /// A request of the owner with a JSON body.
    #[must_use]
    pub fn owner(method: Method, path: &str, body: &str) -> Request {
        Request { method, path: path.to_owned(), query: Vec::new(), body: Some(body.to_owned()), credential: Credential::Owner }
    }
}

/// Answers requests. A new subject is an organization of its own, without events.
pub trait Subject {
    /// Its clock, in milliseconds of the epoch.
    fn now_ms(&mut self) -> i64;

    /// Answers a request: the status, and the body as JSON (`null` where it has none).
    fn request(&mut self, request: &Request) -> (u16, Json);

    /// Stops and starts again, keeping its data.
    fn restart(&mut self) {}
}
