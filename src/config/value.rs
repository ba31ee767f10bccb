//! Parsers for the values of settings. They return `None` for an invalid value.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use actix_web::http::header::HeaderName;
use headcount_api::command::parse_duration;
use headcount_control::normal_origin;
use ipnet::IpNet;

use crate::telemetry::LogFormat;

/// The prefix length of IPv4-mapped IPv6 addresses, `::ffff:0:0/96` (RFC 4291 §2.5.5.2).
const IPV4_MAPPED_BITS: u8 = 96;

/// `host:port`. The system resolves the host when it binds.
pub(super) fn listen(text: &str) -> Option<String> {
    let (host, port) = text.rsplit_once(':')?;
    (!host.is_empty() && u16::from_str(port).is_ok()).then(|| text.to_owned())
}

/// `text` or `json`.
pub(super) fn log_format(text: &str) -> Option<LogFormat> {
    match text {
        "text" => Some(LogFormat::Text),
        "json" => Some(LogFormat::Json),
        _ => None,
    }
}

/// A number from 1 to `most`, or `auto`.
pub(super) fn count(text: &str, most: usize) -> Option<Option<usize>> {
    if text == "auto" {
        return Some(None);
    }
    text.parse().ok().filter(|count| (1..=most).contains(count)).map(Some)
}

/// A size: `1048576`, `64KiB`, `64MiB`, `2GiB`, and decimal `512MB`, `2GB`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// A duration of at least a second.
pub(super) fn duration_from_1s(text: &str) -> Option<Duration> {
    parse_duration(text).filter(|it| *it >= Duration::from_secs(1))
}

/// Networks and addresses, separated by commas.
pub(super) fn networks(text: &str) -> Option<Vec<IpNet>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let network = |part: &str| part.parse::<IpNet>().ok().or_else(|| part.parse::<IpAddr>().ok().map(IpNet::from));
    parts.map(|part| network(part).map(canonical)).collect()
}

/// Converts a network of IPv4-mapped addresses to IPv4, since it is compared with IPv4 addresses.
fn canonical(network: IpNet) -> IpNet {
    let v4 = match (network.addr().to_canonical(), network.prefix_len().checked_sub(IPV4_MAPPED_BITS)) {
        (address @ IpAddr::V4(_), Some(length)) if network.addr().is_ipv6() => IpNet::new(address, length).ok(),
        _ => None,
    };
    v4.unwrap_or(network)
}

/// The addresses of brokers, separated by commas.
pub(super) fn brokers(text: &str) -> Option<Vec<String>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let is_address = |part: &str| part.split_once("://").is_none_or(|(scheme, _)| matches!(scheme, "nats" | "tls"));
    parts.map(|part| is_address(part).then(|| part.to_owned())).collect()
}

/// The name of a header, or nothing.
pub(super) fn header(text: &str) -> Option<Option<HeaderName>> {
    if text.is_empty() {
        return Some(None);
    }
    HeaderName::from_str(text).ok().map(Some)
}

/// A path, or nothing.
pub(super) fn path(text: &str) -> Option<Option<String>> {
    if text.is_empty() {
        return Some(None);
    }
    let is_fine = |segment: &str| {
        let is_plain = segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~'));
        is_plain && !matches!(segment, "" | "." | "..")
    };
    text.strip_prefix('/').filter(|rest| rest.split('/').all(is_fine)).map(|_| Some(text.to_owned()))
}

/// A size of at least `least` bytes.
pub(super) fn size_from(text: &str, least: usize) -> Option<usize> {
    bytes(text).and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| *bytes >= least)
}

/// Reads a size of at least `least`, or `auto`.
pub(super) fn size_or_auto(text: &str, least: usize) -> Option<Option<usize>> {
    if text == "auto" { Some(None) } else { size_from(text, least).map(Some) }
}

/// Reads a comma-separated list of web origins, and normalizes them as browsers do.
pub(super) fn origins(text: &str) -> Option<Vec<String>> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(normal_origin).collect()
}

/// The URL of a server: scheme, host and port, with an optional slash; or nothing.
pub(super) fn public_url(text: &str) -> Option<Option<String>> {
    if text.is_empty() {
        return Some(None);
    }
    let is_web = |origin: &String| origin.starts_with("https://") || origin.starts_with("http://");
    normal_origin(text.strip_suffix('/').unwrap_or(text)).filter(is_web).map(Some)
}
