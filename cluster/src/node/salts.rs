//! The visitor salts of a cluster. All nodes use the same salt on the same calendar day.
//!
//! The salts are in a bucket in the memory of the brokers, whose keys expire after two days. Each
//! node keeps the salts of the days around today in its file `keys/salts`. So no broker has a salt
//! on disk, and a salt is gone when the last node has forgotten it. If all brokers restart, nodes
//! write their salts back.

use std::time::Duration;

use async_nats::jetstream::kv::{Config, CreateErrorKind, Store};
use async_nats::jetstream::stream::{LastRawMessageErrorKind, StorageType};
use headcount_actors::Engine;
use tokio::sync::watch;
use tokio::time::sleep;

use super::timing::{NodeError, stopped};
use crate::connection::Connection;

const BUCKET: &str = "hc_salts";
const MAX_AGE: Duration = Duration::from_secs(48 * 60 * 60);
/// How often a node checks that it has the salts that it needs.
const INTERVAL: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(2);
/// How long a node without the salt of the day waits for other nodes to offer theirs.
const OTHERS_FIRST: Duration = Duration::from_secs(15);
const HOUR_MS: i64 = 60 * 60 * 1000;
/// How much later than in UTC a day ends in the last timezone.
const LATEST_MS: i64 = 12 * HOUR_MS;
/// How much earlier than in UTC a day begins in the first timezone, and an hour more: its salt is
/// made before, and clocks differ by less.
const EARLIEST_MS: i64 = (14 + 1) * HOUR_MS;

const NOT_AGREED: &str = "the visitor salt of the day can't be agreed on yet";

/// Keeps an engine supplied with salts.
pub(super) struct Salts {
    connection: Connection,
    replicas: usize,
    /// The bucket, once it has answered. It may vanish with the memory of the brokers, and is
    /// opened again after a failure.
    store: Option<Store>,
    engine: Engine,
}

impl Salts {
    /// Keeps the salts on `replicas` brokers.
    pub(super) fn new(connection: &Connection, replicas: usize, engine: Engine) -> Self {
        Self { connection: connection.clone(), replicas, store: None, engine }
    }

    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            let pause = match self.agree(false).await {
                Ok(()) => INTERVAL,
                Err(error) => {
                    tracing::warn!(%error, "{NOT_AGREED}");
                    self.store = None;
                    PAUSE
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = stopped(&mut stop) => return,
            }
        }
    }

    /// Agrees on salts for a node that starts. Without a salt, it only refuses events of visitors
    /// without ids.
    pub(super) async fn begin(&mut self, has_others: bool) {
        if let Err(error) = self.agree(has_others).await {
            tracing::warn!(%error, "{NOT_AGREED}");
            self.store = None;
        }
    }

    /// Agrees with the other nodes on the salts of now and soon. `has_others`: other nodes may know
    /// the salt of the day even if the brokers don't.
    async fn agree(&mut self, has_others: bool) -> Result<(), NodeError> {
        let store = match &self.store {
            Some(store) => store.clone(),
            None => self.store.insert(open_bucket(&self.connection, self.replicas).await?).clone(),
        };
        let now = self.engine.clock().now();
        let (today, days) = (now.utc_day(), now.plus_ms(-LATEST_MS).utc_day()..=now.plus_ms(EARLIEST_MS).utc_day());
        let until = tokio::time::Instant::now() + OTHERS_FIRST;
        while has_others
            && self.engine.visitor_salt(today).is_none()
            && read(&store, today).await?.is_none()
            && tokio::time::Instant::now() < until
        {
            sleep(Duration::from_millis(500)).await;
        }
        for day in days {
            self.agree_on(&store, day).await?;
        }
        Ok(())
    }

    async fn agree_on(&self, store: &Store, day: i64) -> Result<(), NodeError> {
        let known = self.engine.visitor_salt(day);
        let salt = match read(store, day).await? {
            Some(salt) => salt,
            None => offer(store, day, known.map_or_else(random, Ok)?).await?,
        };
        if known != Some(salt) {
            self.engine.set_visitor_salt(day, salt).map_err(NodeError::unavailable)?;
        }
        Ok(())
    }
}

/// Offers the salts of an installation that moves in. The node that starts first uses them.
pub(crate) async fn bring_salts(connection: &Connection, replicas: usize, salts: &[(i64, [u8; 16])]) -> Result<(), NodeError> {
    if salts.is_empty() {
        return Ok(());
    }
    let store = open_bucket(connection, replicas).await?;
    for (day, salt) in salts {
        offer(&store, *day, *salt).await?;
    }
    Ok(())
}

/// Offers a salt for a day. Returns the salt that was offered first.
async fn offer(store: &Store, day: i64, salt: [u8; 16]) -> Result<[u8; 16], NodeError> {
    match store.create(key_of(day), salt.to_vec().into()).await {
        Ok(_) => Ok(salt),
        Err(error) if error.kind() == CreateErrorKind::AlreadyExists => {
            read(store, day).await?.ok_or_else(|| NodeError::Unavailable("an answer is out of date".to_owned()))
        }
        Err(error) => Err(NodeError::unavailable(error)),
    }
}

/// Reads the salt of a day from the leader.
async fn read(store: &Store, day: i64) -> Result<Option<[u8; 16]>, NodeError> {
    let subject = format!("{}{}", store.prefix, key_of(day));
    match store.stream.get_last_raw_message_by_subject(&subject).await {
        Ok(message) => {
            let salt = <[u8; 16]>::try_from(&message.payload[..]);
            salt.map(Some).map_err(|_| NodeError::Unavailable(format!("the bucket {BUCKET} has something else than salts")))
        }
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(NodeError::unavailable(error)),
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
