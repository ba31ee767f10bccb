//! A connection to the brokers.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::Context;
use async_nats::jetstream::context::{ContextBuilder, CreateKeyValueError};
use async_nats::jetstream::kv::{Config, Store};
use async_nats::{Client, ConnectOptions};
use parking_lot::Mutex;

use crate::levels::Levels;

/// How long a connection may take to open, and a request to be answered.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// How often a broker is asked whether it is there; after two questions without an answer, another one is.
const PING: Duration = Duration::from_secs(1);

/// What brokers say that can't place the copies of something. Mostly, a comma and reasons follow.
const NO_PEERS: &str = "no suitable peers for placement";
/// How long streams and buckets wait until enough brokers are there, and how often they are tried. Brokers that have just started take each other for offline at times, or have not heard of each other.
pub(crate) const FORMING: Duration = Duration::from_secs(15);
pub(crate) const RETRY: Duration = Duration::from_millis(250);

/// What brokers are shown.
#[derive(Debug, Clone, Default)]
pub enum Credentials {
    /// Nothing, or what the addresses contain.
    #[default]
    None,
    /// A file of credentials, as `nsc` writes it.
    File(PathBuf),
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The file of credentials can't be read.
    #[error("the credentials can't be read: {0}")]
    Credentials(#[source] io::Error),
    /// No broker could be reached, or none accepted the connection.
    #[error("{0}")]
    Refused(#[source] async_nats::ConnectError),
}

impl Credentials {
    /// Returns the options of a connection.
    pub(crate) async fn options(&self) -> Result<ConnectOptions, ConnectError> {
        let options = ConnectOptions::new()
            .name("headcount")
            .connection_timeout(TIMEOUT)
            .request_timeout(Some(TIMEOUT))
            .ping_interval(PING);
        match self {
            Self::None => Ok(options),
            Self::File(path) => options.credentials_file(path).await.map_err(ConnectError::Credentials),
        }
    }
}

/// A connection to one of several brokers; to another one when it is lost.
#[derive(Debug, Clone)]
pub struct Connection {
    pub(crate) client: Client,
    pub(crate) context: Context,
    /// The levels at which everything is written over it and its clones.
    written: Arc<Mutex<Levels>>,
}

impl Connection {
    /// Connects to one of the brokers at these addresses.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn open(addresses: &[String], credentials: &Credentials) -> Result<Self, ConnectError> {
        let client = credentials.options().await?.connect(addresses).await.map_err(ConnectError::Refused)?;
        let context = ContextBuilder::new().timeout(TIMEOUT).build(client.clone());
        Ok(Self { client, context, written: Arc::new(Mutex::new(Levels::FIRST)) })
    }

    /// Returns a bucket, which is created unless it is there with the same settings. Waits until enough brokers are there.
    pub(crate) async fn bucket(&self, config: Config) -> Result<Store, CreateKeyValueError> {
        let began = Instant::now();
        loop {
            match self.context.create_key_value(config.clone()).await {
                Err(error) if says_too_few(&error.to_string()) && began.elapsed() < FORMING => tokio::time::sleep(RETRY).await,
                created => return created,
            }
        }
    }

    /// Has everything that uses this connection, or a clone, write at these levels.
    pub(crate) fn write_as(&self, levels: Levels) {
        *self.written.lock() = levels;
    }

    /// Returns the levels at which is written.
    pub(crate) fn written(&self) -> Levels {
        *self.written.lock()
    }
}

/// Whether brokers say that too few of them are there. They have one code for this and for too little room; only the text has the reason, and none if some have not heard of the others yet.
pub(crate) fn says_too_few(error: &str) -> bool {
    error.contains("offline") || (error.contains(NO_PEERS) && !error.contains(&format!("{NO_PEERS},")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_brokers_are_not_too_little_room() {
        let says = |reason: &str| {
            says_too_few(&format!("jetstream error: no suitable peers for placement{reason} (code 400, error code 10005)"))
        };
        // Brokers 2.10.27 that have just started give no reason.
        assert!(says("") && says(", peer offline") && says(", peer offline, insufficient storage"));
        assert!(!says(", insufficient storage") && !says_too_few("insufficient storage resources available"));
    }
}
