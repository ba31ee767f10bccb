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

/// How often the client pings a broker. After two unanswered pings it turns to another broker.
const PING: Duration = Duration::from_secs(1);

/// The error of brokers that can't place all copies. Usually a comma and reasons follow.
const NO_PEERS: &str = "no suitable peers for placement";
/// How long to wait for enough brokers when creating a stream or bucket. Brokers that have just
/// started may believe that others are offline, or may not know of them yet.
pub(crate) const FORMING: Duration = Duration::from_secs(15);
pub(crate) const RETRY: Duration = Duration::from_millis(250);

/// The credentials that brokers ask for.
#[derive(Debug, Clone, Default)]
pub enum Credentials {
    /// No credentials, or those in the addresses.
    #[default]
    None,
    /// A credentials file, as `nsc` writes it.
    File(PathBuf),
}

/// The reason why no connection could be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The credentials file can't be read.
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

/// A connection to one of several brokers. When it breaks, the client connects to another broker.
#[derive(Debug, Clone)]
pub struct Connection {
    pub(crate) client: Client,
    pub(crate) context: Context,
    /// The levels of everything written over this connection and its clones.
    written: Arc<Mutex<Levels>>,
}

impl Connection {
    /// Connects to one of the brokers at these addresses.
    ///
    /// # Errors
    /// Returns a [`ConnectError`].
    pub async fn open(addresses: &[String], credentials: &Credentials) -> Result<Self, ConnectError> {
        let client = credentials.options().await?.connect(addresses).await.map_err(ConnectError::Refused)?;
        let context = ContextBuilder::new().timeout(TIMEOUT).build(client.clone());
        Ok(Self { client, context, written: Arc::new(Mutex::new(Levels::FIRST)) })
    }

    /// Returns a bucket. Creates it unless it exists with the same settings, and waits until enough
    /// brokers are there.
    pub(crate) async fn bucket(&self, config: Config) -> Result<Store, CreateKeyValueError> {
        let began = Instant::now();
        loop {
            match self.context.create_key_value(config.clone()).await {
                Err(error) if says_too_few(&error.to_string()) && began.elapsed() < FORMING => tokio::time::sleep(RETRY).await,
                created => return created,
            }
        }
    }

    /// Sets the levels of everything written over this connection and its clones.
    pub(crate) fn write_as(&self, levels: Levels) {
        *self.written.lock() = levels;
    }

    /// Returns the levels of everything written over this connection.
    pub(crate) fn written(&self) -> Levels {
        *self.written.lock()
    }
}

/// Whether brokers report that too few of them are there. The same error code also means too little
/// room. Only the text gives the reason, and it lacks one if some brokers don't know of the others
/// yet.
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
