//! The HTTP interface: thin handlers, one file per resource.

pub mod analytics;
pub mod auth;
pub mod body;
pub mod companies;
pub mod conditional;
pub mod cors;
pub mod endpoint;
pub mod envelope;
pub mod error;
pub mod filters;
pub mod groups;
pub mod identities;
pub mod ingest;
pub mod large;
pub mod management;
pub mod number;
pub mod openapi;
pub mod ops;
pub mod organization_wide;
pub mod params;
pub mod rate_limit;
pub mod revenue;
pub mod traffic;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::http::Method;
use actix_web::http::header::HeaderName;
use actix_web::{HttpRequest, web};
use headcount_actors::Engine;
use headcount_domain::intake::country::Country;
use headcount_domain::time::{Day, Timezone, Window};
use ipnet::IpNet;
use utoipa::IntoParams;

use auth::ProjectCaller;
use endpoint::Endpoint;
use error::ApiError;
use traffic::Traffic;

/// What every handler has at hand.
#[derive(Debug)]
pub struct AppState {
    /// The engine.
    pub engine: Engine,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The header by which these tell the visitor's country.
    pub geo_header: Option<HeaderName>,
    /// What was answered so far.
    pub traffic: Traffic,
}

impl AppState {
    /// The address of the client: the peer's, or, behind a trusted proxy, the last one in `X-Forwarded-For` that is no
    /// trusted proxy.
    pub fn client_address(&self, request: &HttpRequest) -> Option<IpAddr> {
        let peer = peer(request)?;
        if !self.is_trusted(&peer) {
            warn_of_untrusted(request);
            return Some(peer);
        }
        let headers = request.headers().get_all("x-forwarded-for").filter_map(|value| value.to_str().ok());
        let hops: Vec<&str> = headers.flat_map(|list| list.split(',')).map(str::trim).collect();
        let addresses = hops.iter().rev().map_while(|hop| hop.parse::<IpAddr>().ok());
        let hop = addresses.map(|address| address.to_canonical()).find(|hop| !self.is_trusted(hop));
        Some(hop.unwrap_or(peer))
    }

    /// The country of the client at `address`: what a trusted proxy says, else what the engine's database knows.
    pub fn client_country(&self, request: &HttpRequest, address: Option<IpAddr>) -> Option<Country> {
        self.told_country(request).or_else(|| self.engine.country_of(address?))
    }

    fn told_country(&self, request: &HttpRequest) -> Option<Country> {
        let name = self.geo_header.as_ref()?;
        if !self.is_trusted(&peer(request)?) {
            return None;
        }
        // Of several, the last is the nearest proxy's.
        let value = request.headers().get_all(name).last()?;
        Country::parse(value.to_str().ok()?)
    }

    fn is_trusted(&self, address: &IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(address))
    }
}

/// Says once that `X-Forwarded-For` is not believed: then all visitors may have the address of a proxy.
fn warn_of_untrusted(request: &HttpRequest) {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if !IS_SAID.load(Ordering::Relaxed)
        && request.headers().contains_key("x-forwarded-for")
        && !IS_SAID.swap(true, Ordering::Relaxed)
    {
        tracing::warn!("X-Forwarded-For is ignored: it came from an address that trusted_proxies doesn't name; said once");
    }
}

/// Who is connected. An IPv4 address is one, also where a socket for both kinds writes it as IPv6.
fn peer(request: &HttpRequest) -> Option<IpAddr> {
    Some(request.peer_addr()?.ip().to_canonical())
}

/// The window of a question, as query parameters.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "the shape for the document; parameters are read one by one")]
pub struct WindowParams {
    /// The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days before today.
    start_date: Option<String>,
    /// The last day. Default: today.
    end_date: Option<String>,
}

/// The window of a question, and today if it is relative to it.
pub fn window(
    state: &AppState,
    caller: &ProjectCaller,
    start: Option<&str>,
    end: Option<&str>,
) -> Result<(Window, Option<Day>), ApiError> {
    window_in(state, caller.keyed.policy.timezone, start, end)
}

/// The same, in a timezone.
pub fn window_in(
    state: &AppState,
    timezone: Timezone,
    start: Option<&str>,
    end: Option<&str>,
) -> Result<(Window, Option<Day>), ApiError> {
    let now = state.engine.clock().now();
    let window = Window::resolve(start, end, timezone, now)?;
    Ok((window, Window::depends_on_today(start, end).then(|| timezone.day_of(now))))
}

/// All paths. The ones that take events come first: they are asked most.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(Endpoint::at("/i").post(ingest::track).on(Method::GET, ingest::pixel).on(Method::OPTIONS, cors::preflight))
        .service(Endpoint::at("/track").post(ingest::track).on(Method::OPTIONS, cors::preflight))
        .service(Endpoint::at("/i/batch").post(ingest::batch).on(Method::OPTIONS, cors::preflight))
        .service(Endpoint::at("/projects/{project_id}/track").post(ingest::server_track))
        .service(Endpoint::at("/projects/{project_id}/batch").post(ingest::server_batch))
        .service(
            Endpoint::at("/projects/{project_id}/analytics/count-unique-users-per-day")
                .post(analytics::count_unique_users_per_day),
        )
        .service(Endpoint::at("/projects/{project_id}/revenue/metrics").get(revenue::metrics))
        .service(Endpoint::at("/projects/{project_id}/revenue/timeseries").get(revenue::timeseries))
        .service(Endpoint::at("/projects/{project_id}/revenue/by-attribution").get(revenue::attribution::by_attribution))
        .service(Endpoint::at("/projects/{project_id}/revenue/ltv-cohorts").get(revenue::cohorts::ltv_cohorts))
        .service(Endpoint::at("/identities/profile").get(identities::profile))
        .service(Endpoint::at("/identities/referrers").get(identities::referrers))
        .service(Endpoint::at("/identities/top-pages").get(identities::top_pages))
        .service(Endpoint::at("/companies/lookup").get(companies::lookup))
        .service(Endpoint::at("/companies/top").get(companies::top))
        .service(Endpoint::at("/companies/{company_id}/metrics").get(companies::metrics))
        .service(Endpoint::at("/companies/{company_id}/top-users").get(companies::top_users))
        .service(Endpoint::at("/groups/metrics").get(groups::metrics))
        .service(Endpoint::at("/groups/top").get(groups::top));
    management::routes(config);
    ops::routes(config);
    config.default_service(web::to(not_found));
}

async fn not_found() -> Result<actix_web::HttpResponse, ApiError> {
    Err(ApiError::not_found("path"))
}
