//! `GET /metrics`, for Prometheus.

use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use actix_web::http::header;
use headcount_actors::{FeatureFigure, Vitals};
use headcount_api::endpoint::*;
use headcount_api::extract::auth::MinRole;
use headcount_control::Scope;
use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder};

use crate::http::resources::node_metrics;

const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The headers that mark a forwarded request, besides those that begin with `x-forwarded`.
const FORWARDED: [&str; 8] = [
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "x-original-forwarded-for",
];

/// When the process began to serve, in seconds since 1970.
static STARTED: OnceLock<f64> = OnceLock::new();

/// Figures about the process, for Prometheus. A direct connection from the machine itself, by a loopback name, needs no token.
#[utoipa::path(
    get, path = "/metrics", tag = "operations", operation_id = "process_metrics",
    responses((status = 200, description = "The text format 0.0.4.", body = String, content_type = "text/plain")),
    security((), ("api_token" = []), ("session" = []))
)]
pub(crate) async fn metrics(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse> {
    if !is_local(&request) {
        auth::organization_wide(&state, &request, Scope::Admin, MinRole::Member)?;
    }
    NoParameters::check(&request)?;
    let text = exposition(&state).map_err(|error| {
        tracing::error!(%error, "the figures can't be written");
        ApiError::internal()
    })?;
    Ok(HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-store")).content_type(METRICS_TYPE).body(text))
}

/// Returns whether the request comes from this machine directly, not through a proxy.
fn is_local(request: &HttpRequest) -> bool {
    let forwards = |name: &header::HeaderName| FORWARDED.contains(&name.as_str()) || name.as_str().starts_with("x-forwarded");
    let is_forwarded = request.headers().keys().any(forwards);
    let from_here = request.peer_addr().is_some_and(|peer| peer.ip().to_canonical().is_loopback());
    // A proxy that adds no header forwards the host name that its clients use.
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    !is_forwarded && from_here && host.is_some_and(is_loopback_name)
}

/// Returns whether `host`, with or without a port, is a loopback name or address.
fn is_loopback_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && (!name.contains(':') || name.ends_with(']')) => {
            name
        }
        _ => host,
    };
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || name.ends_with(".localhost") || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Records the time at which the process began to serve.
pub(crate) fn start() {
    started();
}

fn started() -> f64 {
    *STARTED.get_or_init(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()))
}

/// All figures in the text format.
fn exposition(state: &AppState) -> prometheus::Result<String> {
    let (registry, vitals) = (Registry::new(), &state.engine.vitals());
    state.request_metrics.collectors().into_iter().try_for_each(|counters| registry.register(counters))?;
    let build = Opts::new("headcount_build_info", "The version that runs.");
    let build = IntGauge::with_opts(build.const_label("version", env!("CARGO_PKG_VERSION")))?;
    build.set(1);
    registry.register(Box::new(build))?;
    let help = "Counts that were below zero, which is a defect; they are shown as 0.";
    let negative = IntCounter::new("headcount_negative_counts_total", help)?;
    negative.inc_by(headcount_domain::cells::negative_counts());
    registry.register(Box::new(negative))?;
    let refusals = Opts::new("headcount_quota_refusals_total", "Events that a quota of their project refused, by quota.");
    let refusals = IntCounterVec::new(refusals, &["quota"])?;
    for (quota, count) in vitals.quota_refusals {
        refusals.with_label_values(&[quota.name()]).inc_by(count);
    }
    registry.register(Box::new(refusals))?;
    let of_features = state.engine.features().iter().flat_map(|feature| feature.figures());
    let of_features = of_features.map(|FeatureFigure { name, help, value }| (name, help, value));
    let (counters, others): (Vec<_>, Vec<_>) = of_features.partition(|(name, ..)| name.ends_with("_total"));
    for (name, help, value) in scan_counters(vitals).into_iter().chain(counters) {
        let counter = IntCounter::new(name, help)?;
        counter.inc_by(value);
        registry.register(Box::new(counter))?;
    }
    let others = others.into_iter().map(|(name, help, value)| (name, help, as_i64(value)));
    for (name, help, value) in gauges(vitals).into_iter().chain(clock_gauges(vitals)).chain(others) {
        let gauge = IntGauge::new(name, help)?;
        gauge.set(value);
        registry.register(Box::new(gauge))?;
    }
    let node = state.engine.owners().node_vitals();
    node.map(|node| node_metrics::register(&registry, &node)).transpose()?;
    let start = Gauge::new("process_start_time_seconds", "When the process began to serve, in seconds since 1970.")?;
    start.set(started());
    registry.register(Box::new(start))?;
    TextEncoder::new().encode_to_string(&registry.gather())
}

/// The counters of scans and kept answers: name, meaning and value.
fn scan_counters(vitals: &Vitals) -> [(&'static str, &'static str, u64); 4] {
    let spilled = "Bytes that scans wrote to temporary files, since they did not fit into their memory.";
    [
        ("headcount_scan_spilled_bytes_total", spilled, vitals.scan_spilled_bytes),
        ("headcount_view_hits_total", "Questions that a kept answer spared a whole scan.", vitals.views.hits),
        ("headcount_view_misses_total", "Questions that needed a whole scan.", vitals.views.misses),
        ("headcount_view_evictions_total", "Kept answers that were removed: idle, or for room.", vitals.views.evictions),
    ]
}

/// The figures of the engine that rise and fall: name, meaning and value.
fn gauges(vitals: &Vitals) -> [(&'static str, &'static str, i64); 21] {
    [
        ("headcount_log_position", "Position of the last durable event.", as_i64(vitals.log_position)),
        ("headcount_admitted_bytes", "Bytes of events under way.", as_i64(vitals.admitted_bytes)),
        ("headcount_admission_limit_bytes", "How many bytes of events may be under way.", as_i64(vitals.admission_limit_bytes)),
        ("headcount_dead_letters", "Events that were set aside.", as_i64(vitals.dead_letters)),
        (
            "headcount_damage_found",
            "1 if store or index were found damaged; the next start rebuilds them.",
            vitals.damage_found.into(),
        ),
        ("headcount_disk_free_bytes", "Free space on the data directory's disk.", as_i64(vitals.free_disk_bytes)),
        ("headcount_record_bytes", "Bytes of records and rollups in memory, estimated.", as_i64(vitals.record_bytes)),
        ("headcount_record_limit_bytes", "How many bytes of records are kept in memory.", as_i64(vitals.record_limit_bytes)),
        (
            "headcount_projects_at_quota",
            "Projects that have reached a quota, of those used since the start.",
            as_i64(vitals.projects_at_quota),
        ),
        (
            "headcount_checkpoint_failing_partitions",
            "Partitions whose checkpoint could not be written yet.",
            as_i64(vitals.checkpoints_failing),
        ),
        (
            "headcount_checkpoint_refusing_partitions",
            "Of these, partitions that take no events until it can be.",
            as_i64(vitals.partitions_refusing),
        ),
        (
            "headcount_checkpoint_unsaved_seconds",
            "For how long some event has been in no durable checkpoint; 0: all are in one.",
            as_i64(vitals.unsaved_for.as_secs()),
        ),
        ("headcount_views", "Questions whose answers are kept.", as_i64(vitals.views.count)),
        ("headcount_view_bytes", "Bytes of kept answers, estimated.", as_i64(vitals.views.bytes)),
        ("headcount_archive_files", "Files of the archive.", as_i64(vitals.archive_files)),
        ("headcount_archive_bytes", "Bytes of these files.", as_i64(vitals.archive_bytes)),
        (
            "headcount_archive_damaged_files",
            "Archive files that were found damaged or missing, and not intact since.",
            as_i64(vitals.archive_damaged_files),
        ),
        (
            "headcount_seal_lag_seconds",
            "Age of the oldest event that is not in the archive; 0: all are.",
            as_i64(vitals.seal_lag.as_secs()),
        ),
        (
            "headcount_seal_waiting_projects",
            "Projects whose events stay in the log, because their list of archive files is damaged.",
            as_i64(vitals.seal_waiting_projects),
        ),
        (
            "headcount_retention_pending",
            "Projects that may have events of days that they no longer keep.",
            as_i64(vitals.retention_pending),
        ),
        ("headcount_deletions_pending", "Deleted projects whose data is not yet removed.", as_i64(vitals.deletions_pending)),
    ]
}

/// The same about the clock.
fn clock_gauges(vitals: &Vitals) -> [(&'static str, &'static str, i64); 2] {
    [
        (
            "headcount_clock_ahead_seconds",
            "How far the clock is ahead of the last known time, if it is not believed; 0: it is.",
            as_i64(vitals.clock_ahead.as_secs()),
        ),
        (
            "headcount_floors_held",
            "Projects that keep events past their retention until the clock is confirmed.",
            as_i64(vitals.floors_held),
        ),
    ]
}

fn as_i64(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use actix_web::http::Method;
    use actix_web::test::TestRequest;
    use headcount_control::Role;

    use super::*;
    use crate::http::tests::server::TestServer;

    /// Checks the text format: each family is declared once, by HELP and TYPE, before its samples, and buckets are cumulative.
    fn assert_exposition(text: &str) {
        let (mut declared, mut family, mut last_bucket) = (Vec::new(), ("", ""), 0);
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                family = (help.split_once(' ').unwrap().0, "");
                assert!(!declared.contains(&family.0), "{line}");
                declared.push(family.0);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert_eq!((name, family.1), (family.0, ""), "{line}");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
                family.1 = kind;
            } else {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                let name = sample.split('{').next().unwrap();
                let suffix = name.strip_prefix(family.0).unwrap_or_else(|| panic!("{line} is not of {}", family.0));
                assert_eq!(!suffix.is_empty(), family.1 == "histogram", "{line}");
                if suffix == "_bucket" {
                    let count: u64 = value.parse().unwrap();
                    assert!(count >= last_bucket, "{line}");
                    last_bucket = count;
                }
            }
        }
        assert!(declared.len() > 10, "{declared:?}");
    }

    fn peer(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[actix_web::test]
    async fn metrics_are_open_to_the_machine_itself_only() {
        let server = TestServer::start();
        let from =
            |address| TestRequest::with_uri("/metrics").insert_header((header::HOST, "localhost")).peer_addr(peer(address));
        for address in ["127.0.0.1:5000", "[::1]:5000", "[::ffff:127.0.0.1]:5000"] {
            assert_eq!(server.send(from(address)).await.status, 200, "{address}");
        }
        assert_eq!(server.send(from("192.0.2.1:5000")).await.status, 401);
        for name in FORWARDED {
            let passed_on = from("127.0.0.1:5000").insert_header((name, "192.0.2.1"));
            assert_eq!(server.send(passed_on).await.status, 401, "{name}");
        }
        let token = server.token(Role::Member, &[Scope::Admin]);
        assert_eq!(server.ask(Method::GET, "/metrics", &token, "").await.status, 200);
        let token = server.token(Role::Owner, &[Scope::RevenueRead]);
        assert_eq!(server.ask(Method::GET, "/metrics", &token, "").await.status, 403);
    }

    #[actix_web::test]
    async fn metrics_are_well_formed() {
        let server = TestServer::start();
        server.send(TestRequest::with_uri("/healthz")).await;
        server.send(TestRequest::with_uri("/nothing")).await;
        let from_here =
            TestRequest::with_uri("/metrics").insert_header((header::HOST, "[::1]:80")).peer_addr(peer("127.0.0.1:1"));
        let answer = server.send(from_here).await;
        assert_eq!(answer.headers.get(header::CONTENT_TYPE).unwrap(), METRICS_TYPE);
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert_exposition(&text);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(!name.contains(' '), "{line}");
        }
        for line in [
            "headcount_http_requests_total{class=\"2xx\"} 1",
            "headcount_http_requests_total{class=\"4xx\"} 1",
            "headcount_http_request_duration_seconds_bucket{le=\"+Inf\"} 2",
            "headcount_http_request_duration_seconds_count 2",
            "headcount_dead_letters 0",
            "headcount_quota_refusals_total{quota=\"sources\"} 0",
            "headcount_negative_counts_total 0",
            "headcount_projects_at_quota 0",
            "headcount_rate_limit_refusals_total 0",
            "headcount_checkpoint_failing_partitions 0",
            "headcount_checkpoint_refusing_partitions 0",
            "headcount_checkpoint_unsaved_seconds 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(text.contains("_bucket{le=\"0.0001\"} ") && text.contains("_bucket{le=\"2.5\"} "), "{text}");
    }
}
