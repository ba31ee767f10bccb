//! The visitor salts of a cluster: one for each UTC day, which all nodes use.
//!
//! They are a bucket in the memory of the brokers, whose keys go after two days; each node keeps those of today and yesterday in its file `keys/salts`. So no salt is on the disk of a
//! broker, and none is left when the last node has forgotten it. If all brokers were started anew, nodes put back what they have.

use std::time::Duration;

use async_nats::jetstream::kv::{Config, CreateErrorKind, Store};
use async_nats::jetstream::stream::{LastRawMessageErrorKind, StorageType};
use headcount_actors::Engine;
use headcount_actors::domain::time::Instant;
use tokio::sync::watch;
use tokio::time::sleep;

use super::timing::{NodeError, stopped};
use crate::connection::Connection;

const BUCKET: &str = "hc_salts";
const MAX_AGE: Duration = Duration::from_secs(48 * 60 * 60);
/// How often a node looks whether it has the salts that it needs, and how soon again after a failure.
const INTERVAL: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(2);
/// How long a node that knows no salt of the day leaves it to the others to say theirs.
const OTHERS_FIRST: Duration = Duration::from_secs(15);
/// How long before a day begins its salt is made: clocks differ by less.
const AHEAD_MS: i64 = 60 * 60 * 1000;

/// Keeps an engine supplied with salts.
pub(super) struct Salts {
    connection: Connection,
    replicas: usize,
    store: Store,
    engine: Engine,
}

impl Salts {
    /// Opens the bucket, or creates it on `replicas` brokers.
    pub(super) async fn open(connection: &Connection, replicas: usize, engine: Engine) -> Result<Self, NodeError> {
        let store = open_bucket(connection, replicas).await?;
        Ok(Self { connection: connection.clone(), replicas, store, engine })
    }

    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            let pause = match self.agree(false).await {
                Ok(()) => INTERVAL,
                Err(error) => {
                    tracing::warn!(%error, "the visitor salt of the day can't be agreed on yet");
                    // The bucket may be gone with the memory of the brokers.
                    if let Ok(store) = open_bucket(&self.connection, self.replicas).await {
                        self.store = store;
                    }
                    PAUSE
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = stopped(&mut stop) => return,
            }
        }
    }

    /// Agrees with the other nodes on the salts that are needed now and soon. `has_others`: there are nodes that may know that of the day, although the brokers don't.
    pub(super) async fn agree(&self, has_others: bool) -> Result<(), NodeError> {
        let now = self.engine.clock().now();
        let (today, soon) = (now.utc_day(), Instant(now.0 + AHEAD_MS).utc_day());
        let until = tokio::time::Instant::now() + OTHERS_FIRST;
        while has_others
            && self.engine.visitor_salt(today).is_none()
            && self.read(today).await?.is_none()
            && tokio::time::Instant::now() < until
        {
            sleep(Duration::from_millis(500)).await;
        }
        self.agree_on(today).await?;
        if soon > today { self.agree_on(soon).await } else { Ok(()) }
    }

    async fn agree_on(&self, day: i64) -> Result<(), NodeError> {
        let known = self.engine.visitor_salt(day);
        let salt = match self.read(day).await? {
            Some(salt) => salt,
            None => self.offer(day, known.map_or_else(random, Ok)?).await?,
        };
        if known != Some(salt) {
            self.engine.set_visitor_salt(day, salt).map_err(NodeError::unavailable)?;
        }
        Ok(())
    }

    /// Offers a salt for a day. Returns the one that was offered first.
    async fn offer(&self, day: i64, salt: [u8; 16]) -> Result<[u8; 16], NodeError> {
        match self.store.create(key_of(day), salt.to_vec().into()).await {
            Ok(_) => Ok(salt),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => {
                self.read(day).await?.ok_or_else(|| NodeError::Unavailable("an answer is out of date".to_owned()))
            }
            Err(error) => Err(NodeError::unavailable(error)),
        }
    }

    /// Reads the salt of a day, from the leader.
    async fn read(&self, day: i64) -> Result<Option<[u8; 16]>, NodeError> {
        let subject = format!("{}{}", self.store.prefix, key_of(day));
        match self.store.stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => {
                let salt = <[u8; 16]>::try_from(&message.payload[..]);
                salt.map(Some).map_err(|_| NodeError::Unavailable(format!("the bucket {BUCKET} has something else than salts")))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(NodeError::unavailable(error)),
        }
    }
}

async fn open_bucket(connection: &Connection, replicas: usize) -> Result<Store, NodeError> {
    let config = Config {
        bucket: BUCKET.to_owned(),
        history: 1,
        max_age: MAX_AGE,
        storage: StorageType::Memory,
        num_replicas: replicas,
        ..Config::default()
    };
    connection.bucket(config).await.map_err(NodeError::unavailable)
}

fn random() -> Result<[u8; 16], NodeError> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(NodeError::unavailable)?;
    Ok(salt)
}

fn key_of(day: i64) -> String {
    format!("day.{day}")
}
