//! The state that handlers share, and the client of a request.

use std::any::Any;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::http::header::{self, HeaderName};
use headcount_actors::Engine;
use headcount_control::{OperatorToken, normal_origin};
use headcount_domain::intake::country::Country;
use ipnet::IpNet;

use crate::extra_paths::ExtraPaths;
use crate::first_node::FirstNode;
use crate::node_tls::NodeTls;
use crate::proxied;
use crate::request::HttpRequest;
use crate::request_metrics::RequestMetrics;
use crate::respond::error::{ApiError, Result};
use crate::respond::kept::KeptAnswers;
use crate::turns::WaitingQuestions;

/// The host of a request that names none.
const DEFAULT_HOST: &str = "localhost:8080";

/// The state of a feature, which its handlers share.
pub type FeatureState = Box<dyn Any + Send + Sync>;

/// The state that every handler has.
#[derive(Debug)]
pub struct AppState {
    /// The engine.
    pub engine: Engine,
    /// The proxies whose `X-Forwarded-For` and `Forwarded` are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// The header in which they report the visitor's country.
    pub geo_header: Option<HeaderName>,
    /// The origins whose pages may ask, as browsers spell them.
    pub query_origins: Vec<String>,
    /// The server's address for browsers and SDKs, without a slash at its end.
    pub public_url: Option<String>,
    /// Further names of the paths of pages.
    pub extra_paths: ExtraPaths,
    /// TLS between nodes, if they use it.
    pub node_tls: Option<NodeTls>,
    /// The operator token; `None` if its file could not be written.
    pub operator: Option<OperatorToken>,
    /// Answers that are kept for the next who asks.
    pub kept: KeptAnswers,
    /// The questions that wait for a position.
    pub waiting: WaitingQuestions,
    /// The counts of answers so far.
    pub request_metrics: RequestMetrics,
    /// The states of the features.
    pub features: Vec<FeatureState>,
    /// Returns the OpenAPI document, as JSON.
    pub document: fn() -> &'static str,
}

impl AppState {
    /// Returns the state of a feature.
    ///
    /// # Errors
    /// The server was made without the feature.
    pub fn of<T: Any>(&self) -> Result<&T> {
        self.features.iter().find_map(|state| state.downcast_ref()).ok_or_else(|| {
            tracing::error!(state = std::any::type_name::<T>(), "the server was made without this feature");
            ApiError::internal()
        })
    }

    /// Returns what this node passes on with a request.
    pub(crate) fn as_first_node(&self, request: &HttpRequest) -> FirstNode {
        FirstNode {
            address: self.client_address(request),
            country: self.proxied_country(request),
            is_https: self.is_proxied_https(request),
        }
    }

    /// Returns the address of the client: the peer's, or, behind a trusted proxy, the last one in `X-Forwarded-For`, or else in
    /// `Forwarded`, that is not a trusted proxy.
    pub fn client_address(&self, request: &HttpRequest) -> Option<IpAddr> {
        if let Some(first) = request.first_node() {
            return first.address;
        }
        let peer = peer(request)?;
        if !self.is_trusted(&peer) {
            warn_of_untrusted(request);
            return Some(peer);
        }
        let hops = proxied::hops(request.headers());
        let hop = hops.into_iter().rev().map_while(|hop| hop).find(|hop| !self.is_trusted(hop));
        Some(hop.unwrap_or(peer))
    }

    /// Returns the server's address as clients know it, without a slash at its end: the setting, else as the request was sent.
    pub fn own_url(&self, request: &HttpRequest) -> String {
        if let Some(url) = &self.public_url {
            return url.clone();
        }
        let text = |name: &HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
        let is_trusted = peer(request).is_some_and(|peer| self.is_trusted(&peer));
        let is_secure = match request.first_node() {
            Some(first) => first.is_https,
            None => is_trusted && proxied::is_https(request.headers()),
        };
        let host = text(&header::HOST).unwrap_or(DEFAULT_HOST);
        format!("{}://{host}", if is_secure { "https" } else { "http" })
    }

    /// Returns the country of the client at `address`, as a trusted proxy reports it, or from the engine's database.
    pub fn client_country(&self, request: &HttpRequest, address: Option<IpAddr>) -> Option<Country> {
        self.proxied_country(request).or_else(|| self.engine.ingest.country_of(address?))
    }

    fn proxied_country(&self, request: &HttpRequest) -> Option<Country> {
        if let Some(first) = request.first_node() {
            return first.country;
        }
        let name = self.geo_header.as_ref()?;
        if !self.is_trusted(&peer(request)?) {
            return None;
        }
        // Of several, the last is the nearest proxy's.
        let value = request.headers().get_all(name).last()?;
        Country::parse(value.to_str().ok()?)
    }

    /// Whether the browser speaks https: by the setting `public_url`, else as a trusted proxy reports it.
    pub fn is_https(&self, request: &HttpRequest) -> bool {
        match &self.public_url {
            Some(url) => url.starts_with("https://"),
            None => self.is_proxied_https(request),
        }
    }

    fn is_proxied_https(&self, request: &HttpRequest) -> bool {
        if let Some(first) = request.first_node() {
            return first.is_https;
        }
        proxied::is_https(request.headers()) && peer(request).is_some_and(|peer| self.is_trusted(&peer))
    }

    /// Returns the server's address for browsers, without a slash at its end: the setting `public_url`, else where the request was sent to.
    pub fn base_url(&self, request: &HttpRequest) -> Result<String> {
        if let Some(url) = &self.public_url {
            return Ok(url.clone());
        }
        let scheme = if self.is_proxied_https(request) { "https" } else { "http" };
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let url = host.and_then(|host| normal_origin(&format!("{scheme}://{host}")));
        url.ok_or_else(|| ApiError::parameter("host", "the request has no usable `Host`, and `public_url` is not set"))
    }

    fn is_trusted(&self, address: &IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(address))
    }
}

/// Warns once that `X-Forwarded-For` is ignored: all visitors may then have the address of a proxy.
fn warn_of_untrusted(request: &HttpRequest) {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if !IS_SAID.load(Ordering::Relaxed)
        && request.headers().contains_key(&proxied::X_FORWARDED_FOR)
        && !IS_SAID.swap(true, Ordering::Relaxed)
    {
        tracing::warn!("X-Forwarded-For is ignored: it came from an address that trusted_proxies doesn't name; said once");
    }
}

/// Returns the peer's address. A socket for both families writes IPv4 addresses as IPv6; they become IPv4 again.
fn peer(request: &HttpRequest) -> Option<IpAddr> {
    Some(request.peer_addr()?.ip().to_canonical())
}
