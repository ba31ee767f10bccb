//! The description that a broker gives of itself.

use async_nats::ServerInfo;
use serde::Serialize;

use crate::connection::{ConnectError, Credentials};
use crate::version::{self, VersionError};

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
        version::check(&self.version)
    }
}

/// Returns an address without its user name and password.
pub(crate) fn without_credentials(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

#[cfg(test)]
mod tests {
    use super::without_credentials;

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
}
