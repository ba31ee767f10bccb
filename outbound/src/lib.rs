//! Requests to addresses that users choose: receivers of notifications, websites of companies.
//!
//! Without protection, a user who chooses a URL could read services that only this machine can
//! reach: databases on the loopback interface, routers, the metadata service of a cloud. So
//! [`Outbound`] connects only to globally reachable addresses, and to addresses that the operator
//! allows ([`AllowList`]).
//!
//! The address of the connection decides, not the name: names are looked up here, again for each
//! request, and only allowed addresses are used. Proxies of the environment are ignored, redirects
//! are left to the caller, and time, headers and body are bounded.

mod address;
mod allow_list;
mod error;
mod request;
mod resolver;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, AsSendBody, Body, http};
use url::{Host, Url};

pub use allow_list::{AllowList, InvalidEntry};
pub use error::{OutboundError, UrlError};
pub use request::{Method, OutboundRequest, OutboundResponse};
use resolver::{GuardedResolver, Lookup};
pub use url;

/// The maximum size of a response's status line and headers.
const MAX_HEADER_BYTES: usize = 32 << 10;

/// A client that connects only to allowed addresses. Clones share its state. Its methods block.
#[derive(Debug, Clone)]
pub struct Outbound {
    agent: Agent,
    allowed: Arc<AllowList>,
}

impl Outbound {
    /// Creates a client with this `User-Agent`. It may also connect to the addresses in `allowed`.
    pub fn new(user_agent: &str, allowed: AllowList) -> Self {
        Self::with_lookup(user_agent, allowed, resolver::system())
    }

    /// Like [`Outbound::new`], with another look-up of names.
    fn with_lookup(user_agent: &str, allowed: AllowList, lookup: Lookup) -> Self {
        let allowed = Arc::new(allowed);
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(user_agent)
            .max_response_header_size(MAX_HEADER_BYTES)
            // A kept connection would outlive the decision to allow it.
            .max_idle_connections(0)
            .build();
        let resolver = GuardedResolver::new(Arc::clone(&allowed), lookup);
        Self { agent: Agent::with_parts(config, DefaultConnector::new(), resolver), allowed }
    }

    /// Parses a URL for a request: http or https, with a host and without a user. If the host is an
    /// address, it must be allowed.
    ///
    /// # Errors
    /// See [`UrlError`].
    pub fn parse(&self, text: &str) -> Result<Url, UrlError> {
        let url = Url::parse(text).map_err(|error| UrlError::Malformed(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::User);
        }
        let address = match url.host() {
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            Some(Host::Domain(_)) => None,
            None => return Err(UrlError::Malformed("it has no host".into())),
        };
        let port = url.port_or_known_default().unwrap_or_default();
        if port == 0 {
            return Err(UrlError::Malformed("it has the port 0".into()));
        }
        match address {
            Some(address) if !self.allowed.permits(url.host_str().unwrap_or_default(), SocketAddr::new(address, port)) => {
                Err(UrlError::Blocked(address))
            }
            _ => Ok(url),
        }
    }

    /// Sends a request and reads the response. Does not follow redirects: see
    /// [`OutboundResponse::redirect`].
    ///
    /// # Errors
    /// See [`OutboundError`]. A response with any status is a success.
    pub fn send(&self, request: &OutboundRequest) -> Result<OutboundResponse, OutboundError> {
        let url = self.parse(request.url.as_str())?;
        let mut head = http::Request::builder().method(request.method.as_str()).uri(url.as_str());
        for (name, value) in &request.headers {
            head = head.header(*name, value);
        }
        let is_https = url.scheme() == "https";
        let response = match &request.body {
            Some(body) => self.run(head.body(body.as_slice()), request.timeout, is_https),
            None => self.run(head.body(()), request.timeout, is_https),
        }?;
        let (head, body) = response.into_parts();
        let body = match request.most_body_bytes {
            Some(most) => read(body, most, is_https)?,
            None => Vec::new(),
        };
        Ok(OutboundResponse { url, status: head.status.as_u16(), headers: head.headers, body })
    }
}

impl Outbound {
    fn run(
        &self,
        request: http::Result<http::Request<impl AsSendBody>>,
        timeout: Duration,
        is_https: bool,
    ) -> Result<http::Response<Body>, OutboundError> {
        let request = request.map_err(|error| UrlError::Malformed(error.to_string()))?;
        let request = self.agent.configure_request(request).timeout_global(Some(timeout)).build();
        self.agent.run(request).map_err(|error| OutboundError::of(error, is_https))
    }
}

/// Reads a body of at most `most` decoded bytes.
fn read(mut body: Body, most: usize, is_https: bool) -> Result<Vec<u8>, OutboundError> {
    let mut read = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    body.as_reader().take(limit).read_to_end(&mut read).map_err(|error| OutboundError::of(error.into(), is_https))?;
    if read.len() > most { Err(OutboundError::TooLarge { most }) } else { Ok(read) }
}
