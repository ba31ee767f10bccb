//! The description that a broker gives of itself, its monitoring address, and the supported
//! versions.

use std::time::Duration;

use async_nats::ServerInfo;
use serde::{Deserialize, Serialize};

use crate::connection::{ConnectError, Credentials};

/// The smallest `max_payload` that a broker may have, in bytes.
pub(crate) const LEAST_MAX_PAYLOAD: usize = 8 << 20;

/// The description that a broker gives of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broker {
    /// The address by which it was reached.
    pub address: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The name of its cluster, if it is in one.
    pub cluster: Option<String>,
    /// The size of the largest message that it accepts, in bytes.
    pub max_payload: usize,
    /// Whether it syncs each message before it confirms it. `None` without a monitoring address.
    pub syncs_always: Option<bool>,
    #[serde(skip)]
    pub(crate) id: String,
    #[serde(skip)]
    pub(crate) has_jetstream: bool,
}

impl Broker {
    /// Connects to the broker at `address` only, not to other brokers of its cluster.
    pub(crate) async fn ask(address: &str, credentials: &Credentials) -> Result<Self, ConnectError> {
        let options = credentials.options().await?.ignore_discovered_servers();
        let client = options.connect(address).await.map_err(ConnectError::Refused)?;
        let ServerInfo { server_id, server_name, version, max_payload, jetstream, cluster, .. } = client.server_info();
        Ok(Self {
            address: without_credentials(address),
            name: server_name,
            version,
            cluster,
            max_payload,
            syncs_always: None,
            id: server_id,
            has_jetstream: jetstream,
        })
    }

    /// Checks its version.
    pub(crate) fn check_version(&self) -> Result<(), VersionError> {
        check_version(&self.version)
    }
}

/// Returns an address without its user name and password.
pub(crate) fn without_credentials(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

/// The earliest supported patch of each minor version. Earlier ones lose messages or give wrong
/// answers (nats-server #6041, #5848, #7460, #8057, #8370, #8469).
const ACCEPTED: [((u64, u64), u64); 4] = [((2, 10), 27), ((2, 11), 12), ((2, 12), 8), ((2, 14), 4)];
/// The last of them. Later minor versions are accepted.
const LAST: (u64, u64) = (2, 14);

/// The reason why a version is not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The version does not have the form `2.10.27`.
    #[error("its version is {0:?}, which is not that of a release")]
    Unknown(String),
    /// The version is too old, or has known defects.
    #[error("its version is {0}: 2.10.27, 2.11.12, 2.12.8 and 2.14.4 are accepted, later patches of each, and 2.15 and later")]
    Refused(String),
}

/// Checks whether a broker of this version may carry a cluster.
///
/// # Errors
/// Returns a [`VersionError`].
fn check_version(version: &str) -> Result<(), VersionError> {
    let unknown = || VersionError::Unknown(version.to_owned());
    let numbers: Vec<u64> = version.split('.').map(|part| part.parse().ok()).collect::<Option<_>>().ok_or_else(unknown)?;
    let [major, minor, patch] = numbers[..] else { return Err(unknown()) };
    let least = ACCEPTED.iter().find(|(of, _)| *of == (major, minor)).map(|(_, least)| *least);
    let accepted = least.map_or((major, minor) > LAST, |least| patch >= least);
    if accepted { Ok(()) } else { Err(VersionError::Refused(version.to_owned())) }
}

/// How long the monitoring address may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of an answer.
const MAX_BYTES: u64 = 4 << 20;

/// What a broker says of its storage.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Storage {
    /// The id of the broker.
    pub(crate) server_id: String,
    #[serde(default)]
    config: StorageConfig,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct StorageConfig {
    #[serde(default)]
    sync_always: bool,
}

impl Storage {
    /// Asks the broker with the monitoring address `base`, such as `http://10.0.0.1:8222`.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub(crate) fn ask(base: &str) -> Result<Self, String> {
        let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).max_redirects(0).build().into();
        let mut answer =
            agent.get(format!("{}/jsz?config=1", base.trim_end_matches('/'))).call().map_err(|error| error.to_string())?;
        let text = answer.body_mut().with_config().limit(MAX_BYTES).read_to_string().map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| format!("this is not the monitoring address of a broker: {error}"))
    }

    /// Whether the broker syncs each message before it confirms it.
    pub(crate) fn syncs_always(&self) -> bool {
        self.config.sync_always
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_shows_a_password() {
        for (address, shown) in [
            ("nats://user:p@ss@10.0.0.1:4222", "nats://10.0.0.1:4222"),
            ("token@10.0.0.1", "10.0.0.1"),
            ("tls://10.0.0.1:4222", "tls://10.0.0.1:4222"),
            ("", ""),
        ] {
            assert_eq!(without_credentials(address), shown);
        }
    }

    #[test]
    fn versions_without_known_defects_are_accepted() {
        for version in ["2.10.27", "2.10.31", "2.11.12", "2.12.8", "2.14.4", "2.15.0", "2.15.1", "3.0.0"] {
            assert_eq!(check_version(version), Ok(()), "{version}");
        }
        for version in ["2.9.10", "2.10.26", "2.11.11", "2.12.7", "2.13.5", "2.14.3", "1.99.99"] {
            assert_eq!(check_version(version), Err(VersionError::Refused(version.to_owned())), "{version}");
        }
        for version in ["", "2.10", "2.10.27.1", "2.15.0-preview.1", "2.10.x", "-2.10.27"] {
            assert_eq!(check_version(version), Err(VersionError::Unknown(version.to_owned())), "{version}");
        }
    }
}
