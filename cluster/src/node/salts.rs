//! The visitor salts of a cluster. All nodes use the same salt on the same calendar day.
//!
//! The salts are in a bucket in the memory of the brokers, whose keys expire after two days. Each
//! node keeps the salts of the days around today in its file `keys/salts`. So no broker has a salt
//! on disk, and a salt is gone when the last node has forgotten it. If all brokers restart, nodes
//! write their salts back.

use std::time::Duration;

use async_nats::jetstream::kv::Config;
use async_nats::jetstream::stream::StorageType;
use headcount_actors::Engine;
use tokio::sync::watch;
use tokio::time::sleep;

use super::timing::{NodeError, stopped};
use crate::cells::KvCells;
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
    /// The bucket may go with the memory of the brokers, and is opened again after a failure.
    cells: KvCells,
    engine: Engine,
}

impl Salts {
    /// Keeps the salts on `replicas` brokers.
    pub(super) fn new(connection: &Connection, replicas: usize, engine: Engine) -> Self {
        Self { cells: cells(connection, replicas), engine }
    }

    pub(super) async fn run(self, mut stop: watch::Receiver<bool>) {
        loop {
            let pause = match self.agree(false).await {
                Ok(()) => INTERVAL,
                Err(error) => {
                    tracing::warn!(%error, "{NOT_AGREED}");
                    self.cells.close();
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
    pub(super) async fn begin(&self, has_others: bool) {
        if let Err(error) = self.agree(has_others).await {
            tracing::warn!(%error, "{NOT_AGREED}");
            self.cells.close();
        }
    }

    /// Agrees with the other nodes on the salts of now and soon. `has_others`: other nodes may know
    /// the salt of the day even if the brokers don't.
    async fn agree(&self, has_others: bool) -> Result<(), NodeError> {
        self.cells.open().await?;
        let now = self.engine.clock().now();
        let (today, days) = (now.utc_day(), now.plus_ms(-LATEST_MS).utc_day()..=now.plus_ms(EARLIEST_MS).utc_day());
        let until = tokio::time::Instant::now() + OTHERS_FIRST;
        while has_others
            && self.engine.secrets().known_salt(today).is_none()
            && read(&self.cells, today).await?.is_none()
            && tokio::time::Instant::now() < until
        {
            sleep(Duration::from_millis(500)).await;
        }
        for day in days {
            self.agree_on(day).await?;
        }
        Ok(())
    }

    async fn agree_on(&self, day: i64) -> Result<(), NodeError> {
        let known = self.engine.secrets().known_salt(day);
        let salt = match read(&self.cells, day).await? {
            Some(salt) => salt,
            None => offer(&self.cells, day, known.map_or_else(random, Ok)?).await?,
        };
        if known != Some(salt) {
            self.engine.secrets().set_salt(day, salt).map_err(NodeError::unavailable)?;
        }
        Ok(())
    }
}

/// Offers the salts of an installation that moves in. The node that starts first uses them.
pub(crate) async fn bring_salts(connection: &Connection, replicas: usize, salts: &[(i64, [u8; 16])]) -> Result<(), NodeError> {
    if salts.is_empty() {
        return Ok(());
    }
    let cells = cells(connection, replicas);
    cells.open().await?;
    for (day, salt) in salts {
        offer(&cells, *day, *salt).await?;
    }
    Ok(())
}

/// Offers a salt for a day. Returns the salt that was offered first.
async fn offer(cells: &KvCells, day: i64, salt: [u8; 16]) -> Result<[u8; 16], NodeError> {
    salt_of(&cells.offer(&key_of(day), salt.to_vec()).await?)
}

/// Reads the salt of a day.
async fn read(cells: &KvCells, day: i64) -> Result<Option<[u8; 16]>, NodeError> {
    cells.read(&key_of(day)).await?.map(|cell| salt_of(&cell.value)).transpose()
}

fn salt_of(value: &[u8]) -> Result<[u8; 16], NodeError> {
    let salt = <[u8; 16]>::try_from(value);
    salt.map_err(|_| NodeError::Unavailable(format!("the bucket {BUCKET} has something else than salts")))
}

fn cells(connection: &Connection, replicas: usize) -> KvCells {
    let (bucket, storage) = (BUCKET.to_owned(), StorageType::Memory);
    KvCells::created(connection, replicas, Config { bucket, storage, max_age: MAX_AGE, ..Config::default() })
}

fn random() -> Result<[u8; 16], NodeError> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(NodeError::unavailable)?;
    Ok(salt)
}

fn key_of(day: i64) -> String {
    format!("day.{day}")
}
