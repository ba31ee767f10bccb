//! Validation of names, origins, rates and lists. Only values that pass are stored.

use headcount_domain::hosts::{is_registry_suffix, listed};
use headcount_domain::intake::policy::Rates;
use headcount_domain::{Currency, Instant, Rate};

use super::{Capability, OwnQuotas, RateLimit, RateLimitPatch, RegistryError, Result, Scope};

/// The maximum length of the name of an organization, a project or a token, in Unicode characters.
pub const MAX_NAME_CHARACTERS: usize = 200;
/// The maximum number of origins of a project. Each event of a browser is compared with them one by
/// one.
pub const MAX_ALLOWED_ORIGINS: usize = 100;
/// The maximum number of hosts in each of a project's lists of hosts that are no referrers.
const MAX_LISTED_HOSTS: usize = 100;
/// The maximum length of an origin, in bytes. A host name has at most 253.
pub const MAX_ORIGIN_BYTES: usize = 300;
/// The maximum number of public keys of a project: enough for any rotation.
pub const MAX_PUBLIC_KEYS: usize = 20;
/// The maximum rate and burst of a public key's limit, in events per second and events. A burst of
/// this size fits in nanoseconds without overflow, and it exceeds the throughput of a server.
pub const MAX_RATE_LIMIT: u32 = 1_000_000;
/// The maximum quota of a project. Memory and disk of a project grow with what its quotas allow.
pub const MAX_QUOTA: u32 = 100_000_000;
/// The longest retention of events, in days.
pub const MAX_RETENTION_DAYS: u32 = 3_660;
/// The maximum number of projects of an organization. A change of the organization rebuilds the
/// policy of each.
pub const MAX_PROJECTS: usize = 1_000;
/// The maximum number of API tokens of an organization.
pub const MAX_TOKENS: usize = 1_000;

/// The maximum number of members of an organization.
pub const MAX_MEMBERS: usize = 1_000;
/// The maximum length of an e-mail address, in bytes (RFC 5321).
pub const MAX_EMAIL_BYTES: usize = 254;

/// Validates an e-mail address, and writes it trimmed and in lower case.
pub(super) fn email(text: &str) -> Result<String> {
    let email = text.trim().to_lowercase();
    let is_email =
        email.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.') && !host.contains('@'));
    if !is_email || email.len() > MAX_EMAIL_BYTES || email.chars().any(|c| c.is_whitespace() || c.is_control()) {
        let message = format!("must be an e-mail address of at most {MAX_EMAIL_BYTES} bytes");
        return Err(RegistryError::invalid("email", message));
    }
    Ok(email)
}

/// Validates a name, and trims it.
pub(super) fn name(text: &str) -> Result<String> {
    let name = text.trim();
    let characters = name.chars().count();
    if characters == 0 || characters > MAX_NAME_CHARACTERS {
        let message = format!("must have 1 to {MAX_NAME_CHARACTERS} characters, has {characters}");
        return Err(RegistryError::invalid("name", message));
    }
    if name.chars().any(char::is_control) {
        return Err(RegistryError::invalid("name", "must not contain control characters"));
    }
    Ok(name.to_owned())
}

/// Normalizes the origins in the field `name` to the spelling of browsers; removes duplicates, and
/// keeps the order.
pub(super) fn origins(name: &str, limit: usize, list: &[String]) -> Result<Vec<String>> {
    if list.len() > limit {
        let message = format!("must list at most {limit} origins, lists {}", list.len());
        return Err(RegistryError::invalid(name, message));
    }
    let mut origins = Vec::with_capacity(list.len());
    for (i, text) in list.iter().enumerate() {
        let origin = normal_origin(text).ok_or_else(|| {
            let message = "must be an origin such as https://example.com or http://localhost:3000, without a path";
            RegistryError::invalid(format!("{name}[{i}]"), message)
        })?;
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    Ok(origins)
}

/// Normalizes the hosts in the field `name`. Removes duplicates, and keeps the order.
pub(super) fn hosts(name: &str, list: &[String]) -> Result<Vec<String>> {
    if list.len() > MAX_LISTED_HOSTS {
        let message = format!("must list at most {MAX_LISTED_HOSTS} hosts, lists {}", list.len());
        return Err(RegistryError::invalid(name, message));
    }
    let mut hosts = Vec::with_capacity(list.len());
    for (i, text) in list.iter().enumerate() {
        let invalid = |message: &str| RegistryError::invalid(format!("{name}[{i}]"), message);
        let host = listed(text).ok_or_else(|| {
            invalid(
                "must be a host such as blog.example.com, which stands for its subdomains too: without scheme, port, path and *",
            )
        })?;
        if is_registry_suffix(&host) {
            return Err(invalid("must be a host or a domain, not a suffix under which anybody has one, such as com or co.uk"));
        }
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    Ok(hosts)
}

/// Normalizes an origin to the `Origin` header of browsers (RFC 6454): `scheme://host[:port]` in
/// lower case, without the scheme's default port. `None` if it is no origin.
pub fn normal_origin(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let (scheme, authority) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    let is_host = |host: &str| {
        let is_v6 = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
        let is_name = host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
        !host.is_empty() && (is_v6 || is_name)
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port.parse::<u16>().ok()?)),
        _ => (authority, None),
    };
    if !is_scheme || !is_host(host) || text.len() > MAX_ORIGIN_BYTES {
        return None;
    }
    let default_port = match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    match port.filter(|port| Some(*port) != default_port) {
        Some(port) => Some(format!("{scheme}://{host}:{port}")),
        None => Some(format!("{scheme}://{host}")),
    }
}

/// Validates the rates, and removes the dollar, whose value is 1 by definition.
pub(super) fn rates(mut rates: Rates) -> Result<Rates> {
    match rates.remove(&Currency::USD) {
        Some(rate) if rate != Rate::ONE => {
            Err(RegistryError::invalid("fx_rates.USD", format!("rates are in USD, so USD is 1, not {rate}")))
        }
        _ => Ok(rates),
    }
}

/// Sorts scopes and removes duplicates; there must be at least one.
pub(super) fn scopes(mut scopes: Vec<Scope>) -> Result<Vec<Scope>> {
    if scopes.is_empty() {
        return Err(RegistryError::invalid("scopes", "must list at least one scope"));
    }
    scopes.sort_unstable();
    scopes.dedup();
    Ok(scopes)
}

/// Sorts capabilities and removes duplicates.
pub(super) fn capabilities(mut capabilities: Vec<Capability>) -> Vec<Capability> {
    capabilities.sort_unstable();
    capabilities.dedup();
    capabilities
}

/// Checks that an expiry is in the future.
pub(super) fn expiry(expires_at: Option<Instant>, now: Instant) -> Result<()> {
    match expires_at {
        Some(expires_at) if expires_at <= now => {
            Err(RegistryError::invalid("expires_at", format!("must be in the future, is {expires_at}")))
        }
        _ => Ok(()),
    }
}

/// Checks a number of days for which events are kept; `None` stands for forever.
pub(super) fn retention_days(days: Option<u32>) -> Result<Option<u32>> {
    match days {
        Some(days) if !(1..=MAX_RETENTION_DAYS).contains(&days) => {
            let message = format!("must be 1 to {MAX_RETENTION_DAYS} days, or null, is {days}");
            Err(RegistryError::invalid("retention_days", message))
        }
        days => Ok(days),
    }
}

/// Applies a change to a limit; `None` stands for no limit.
pub(super) fn rate_limit(current: Option<RateLimit>, patch: RateLimitPatch) -> Result<Option<RateLimit>> {
    let per_second = patch.per_second.or(current.map(|limit| limit.per_second)).unwrap_or(0);
    if per_second > MAX_RATE_LIMIT {
        let message = format!("must be 0 (no limit) to {MAX_RATE_LIMIT} events a second, is {per_second}");
        return Err(RegistryError::invalid("rate_limit", message));
    }
    if per_second == 0 {
        return match patch.burst {
            None | Some(0) => Ok(None),
            Some(burst) => Err(RegistryError::invalid("burst", format!("needs a rate_limit above 0 beside it, is {burst}"))),
        };
    }
    let burst = patch.burst.or(current.and_then(|limit| limit.burst));
    match burst {
        Some(burst) if !(1..=MAX_RATE_LIMIT).contains(&burst) => {
            Err(RegistryError::invalid("burst", format!("must be 1 to {MAX_RATE_LIMIT} events, is {burst}")))
        }
        _ => Ok(Some(RateLimit { per_second, burst })),
    }
}

/// Applies a change to the quotas of a project.
pub(super) fn quotas(mut current: OwnQuotas, mut patch: OwnQuotas) -> Result<OwnQuotas> {
    for ((name, current), (_, patch)) in current.named().into_iter().zip(patch.named()) {
        if let Some(limit) = patch {
            if !(1..=MAX_QUOTA).contains(limit) {
                return Err(RegistryError::invalid(format!("quotas.{name}"), format!("must be 1 to {MAX_QUOTA}, is {limit}")));
            }
            *current = Some(*limit);
        }
    }
    Ok(current)
}

/// Returns an error if `count` has reached `limit`.
pub(super) fn room(count: usize, limit: usize, what: &str) -> Result<()> {
    if count < limit {
        return Ok(());
    }
    Err(RegistryError::conflict("limit_reached", format!("there are {count} {what} already, which is the limit")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_spelled_as_browsers_do() {
        let table = [
            // given, stored
            ("https://example.com", Some("https://example.com")),
            (" HTTPS://Example.COM:443 ", Some("https://example.com")),
            ("http://localhost:3000", Some("http://localhost:3000")),
            ("http://localhost:80", Some("http://localhost")),
            ("http://[::1]:8080", Some("http://[::1]:8080")),
            ("http://[::1]", Some("http://[::1]")),
            ("chrome-extension://abcdef", Some("chrome-extension://abcdef")),
            ("https://example.com/", None),
            ("https://example.com/path", None),
            ("https://user@example.com", None),
            ("https://*.example.com", None),
            ("https://exa mple.com", None),
            ("https://example.com:port", None),
            ("https://example.com:99999", None),
            ("https://bücher.example", None),
            ("example.com", None),
            ("https://", None),
            ("://example.com", None),
            ("*", None),
            ("null", None),
            ("", None),
        ];
        for (given, stored) in table {
            assert_eq!(normal_origin(given).as_deref(), stored, "{given}");
        }
        let twice = ["https://a.example".to_owned(), "https://A.example:443".to_owned()];
        assert_eq!(origins("allowed_origins", 2, &twice).unwrap(), ["https://a.example"]);
    }

    #[test]
    fn listed_hosts_are_of_one_form_and_nobody_elses() {
        let list = |hosts: &[&str]| super::hosts("own_domains", &hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>());
        let spelled = ["Blog.example.", "www.blog.example", "github.io", "10.0.0.1", "bücher.example"];
        assert_eq!(list(&spelled).unwrap(), ["blog.example", "github.io", "10.0.0.1", "xn--bcher-kva.example"]);
        let refused = |hosts: &[&str]| match list(hosts) {
            Err(RegistryError::Invalid { param, .. }) => param,
            other => panic!("{other:?}"),
        };
        for bad in ["https://a.example", "a.example/b", "a.example:81", "*.a.example", "", "com", "co.uk"] {
            assert_eq!(refused(&["a.example", bad]), "own_domains[1]", "{bad}");
        }
        assert_eq!(refused(&["a.example"; 101]), "own_domains");
        assert_eq!(list(&["a.example"; 100]).unwrap().len(), 1);
    }

    #[test]
    fn names_are_trimmed_and_counted_in_characters() {
        assert_eq!(name("  Ada & Co ").unwrap(), "Ada & Co");
        assert!(name(&"ü".repeat(200)).is_ok());
        for bad in [String::new(), "  ".into(), "ü".repeat(201), "a\nb".into(), "a\0b".into()] {
            assert!(matches!(name(&bad), Err(RegistryError::Invalid { param, .. }) if param == "name"), "{bad}");
        }
    }

    #[test]
    fn a_limit_is_changed_by_parts() {
        let limit = |per_second, burst| Some(RateLimit { per_second, burst });
        let table = [
            // current, rate_limit, burst, result or error
            (None, None, None, Ok(None)),
            (None, Some(5), None, Ok(limit(5, None))),
            (None, Some(5), Some(9), Ok(limit(5, Some(9)))),
            (None, Some(MAX_RATE_LIMIT), Some(MAX_RATE_LIMIT), Ok(limit(MAX_RATE_LIMIT, Some(MAX_RATE_LIMIT)))),
            (limit(5, None), None, None, Ok(limit(5, None))),
            (limit(5, None), Some(7), None, Ok(limit(7, None))),
            (limit(5, None), None, Some(9), Ok(limit(5, Some(9)))),
            (limit(5, Some(9)), Some(7), None, Ok(limit(7, Some(9)))),
            (limit(5, Some(9)), Some(0), None, Ok(None)),
            (limit(5, Some(9)), Some(0), Some(0), Ok(None)),
            (None, Some(MAX_RATE_LIMIT + 1), None, Err("rate_limit")),
            (None, Some(u32::MAX), None, Err("rate_limit")),
            (None, None, Some(9), Err("burst")),
            (None, Some(5), Some(0), Err("burst")),
            (None, Some(5), Some(MAX_RATE_LIMIT + 1), Err("burst")),
            (limit(5, None), Some(0), Some(9), Err("burst")),
        ];
        for (row, (current, per_second, burst, expected)) in table.into_iter().enumerate() {
            let changed = match rate_limit(current, RateLimitPatch { per_second, burst }) {
                Ok(changed) => Ok(changed),
                Err(RegistryError::Invalid { param, .. }) => Err(param),
                Err(other) => panic!("row {row}: {other}"),
            };
            assert_eq!(changed, expected.map_err(str::to_owned), "row {row}");
        }
    }
}
