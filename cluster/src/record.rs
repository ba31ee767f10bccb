//! The record of a cluster: a key of the bucket `hc`.

use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use headcount_storage::format::Incarnation;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use tokio::time::timeout;

use crate::cells::{Cell, KvCells, Unanswered};
use crate::connection::{Connection, TIMEOUT};

/// The bucket of a cluster, with its record, leases and nodes.
pub(crate) const BUCKET: &str = "hc";
const STREAM: &str = "KV_hc";
const KEY: &str = "cluster";
/// The version of new records.
const VERSION: u32 = 1;
/// The attempts to write the record if brokers don't answer.
const ATTEMPTS: u32 = 5;

/// The properties that all nodes of a cluster share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRecord {
    version: u32,
    /// The incarnation of all data directories of the cluster.
    #[serde(serialize_with = "as_hex", deserialize_with = "of_hex")]
    pub incarnation: Incarnation,
    /// The number of partitions.
    pub partitions: u16,
    /// The number of brokers that keep each message.
    pub replicas: usize,
    /// A digest of the `keys/hash.key` of the nodes.
    pub hash_key_digest: String,
    /// The incarnation of the nodes' answers since the cluster was restored from copies.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "as_hex_if_any",
        deserialize_with = "of_hex_if_any"
    )]
    restored: Option<Incarnation>,
    /// Fields of later versions. They are kept when the record is written again.
    #[serde(flatten)]
    unknown: serde_json::Map<String, serde_json::Value>,
}

/// The fields that every version of the program can read.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// The reason why the record of a cluster can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// There is another record.
    #[error("these brokers have a cluster already: its incarnation is {0}")]
    Exists(Incarnation),
    /// A later version of the program wrote the record.
    #[error("the cluster has the format {0}, which this version of headcount does not read: use a later one")]
    Newer(u32),
    /// The value is not a record.
    #[error("the key `{KEY}` of the bucket `{BUCKET}` can't be read: {0}")]
    Unreadable(String),
    /// The brokers don't answer. Nothing was written.
    #[error("the brokers can't answer: {0}")]
    Unavailable(String),
    /// The brokers don't answer whether they have written the record.
    #[error("whether the cluster was made is not known: {0}; `headcount cluster status` shows it")]
    Undecided(String),
}

impl From<Unanswered> for RecordError {
    fn from(Unanswered(why): Unanswered) -> Self {
        Self::Unavailable(why)
    }
}

impl ClusterRecord {
    /// Describes a cluster that is not created yet.
    pub(crate) fn new(incarnation: Incarnation, partitions: u16, replicas: usize, hash_key_digest: String) -> Self {
        let (restored, unknown) = Default::default();
        Self { version: VERSION, incarnation, partitions, replicas, hash_key_digest, restored, unknown }
    }

    /// Returns the incarnation of the nodes' answers, which is part of every entity tag and cursor.
    /// It is the incarnation of their data directories until the cluster is restored from copies:
    /// then positions stand for other events than before.
    pub fn answers(&self) -> Incarnation {
        self.restored.unwrap_or(self.incarnation)
    }

    /// Gives the nodes' answers another incarnation from their next start on.
    ///
    /// # Errors
    /// [`RecordError::Unavailable`]: it may still have been written.
    pub(crate) async fn restore(mut self, connection: &Connection, answers: Incarnation) -> Result<Self, RecordError> {
        self.restored = Some(answers);
        let text = serde_json::to_string(&self).map_err(|error| RecordError::Unreadable(error.to_string()))?;
        write_key(connection, KEY, &text).await?;
        Ok(self)
    }

    /// Reads the record of the brokers' cluster, if they have one.
    ///
    /// # Errors
    /// Returns [`RecordError::Newer`], [`RecordError::Unreadable`] or [`RecordError::Unavailable`].
    pub async fn read(connection: &Connection) -> Result<Option<Self>, RecordError> {
        let Some(Cell { value: bytes, .. }) = read_key(connection, KEY).await? else { return Ok(None) };
        let unreadable = |error: serde_json::Error| RecordError::Unreadable(error.to_string());
        match serde_json::from_slice(&bytes).map_err(unreadable)? {
            Versioned { version: VERSION } => serde_json::from_slice(&bytes).map(Some).map_err(unreadable),
            Versioned { version } => Err(RecordError::Newer(version)),
        }
    }

    /// Writes the record, unless there is one.
    ///
    /// # Errors
    /// Returns a [`RecordError`].
    pub(crate) async fn publish(&self, connection: &Connection) -> Result<(), RecordError> {
        let bytes = Bytes::from(serde_json::to_vec(self).map_err(|error| RecordError::Unreadable(error.to_string()))?);
        let cells = KvCells::existing(connection, BUCKET);
        let (mut is_unknown, mut reason) = (false, "there was another record".to_owned());
        for attempt in 0..ATTEMPTS {
            tokio::time::sleep(Duration::from_millis(200) * attempt).await;
            let published = match cells.ready().await {
                Ok(()) => cells.change(KEY, bytes.clone(), 0).await.inspect_err(|_| is_unknown = true),
                closed => closed.map(|()| None),
            };
            match published {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => {}
                Err(Unanswered(why)) => reason = why,
            }
            match Self::read(connection).await {
                Ok(Some(found)) if found == *self => return Ok(()),
                Ok(Some(found)) => return Err(RecordError::Exists(found.incarnation)),
                // Not written yet, or the answer is out of date.
                Ok(None) | Err(RecordError::Unavailable(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(if is_unknown { RecordError::Undecided(reason) } else { RecordError::Unavailable(reason) })
    }
}

/// Returns the value of a key of the bucket; `None` without the key or the bucket.
pub(crate) async fn read_key(connection: &Connection, key: &str) -> Result<Option<Cell>, RecordError> {
    match stream(connection, STREAM).await? {
        Some(_) => Ok(KvCells::existing(connection, BUCKET).read(key).await?),
        None => Ok(None),
    }
}

/// Writes the value of a key of the bucket. Returns its revision, which is later than all earlier
/// ones.
pub(crate) async fn write_key(connection: &Connection, key: &str, value: &str) -> Result<u64, RecordError> {
    Ok(KvCells::existing(connection, BUCKET).put(key, value.to_owned()).await?)
}

/// Returns a stream; `None` if there is none with this name.
pub(crate) async fn stream(connection: &Connection, name: &str) -> Result<Option<Stream>, RecordError> {
    let asked = timeout(TIMEOUT, connection.context.get_stream(name)).await;
    match asked.map_err(|elapsed| RecordError::Unavailable(elapsed.to_string()))? {
        Ok(stream) => Ok(Some(stream)),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(None),
            _ => Err(RecordError::Unavailable(error.to_string())),
        },
    }
}

fn as_hex<S: Serializer>(incarnation: &Incarnation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(incarnation)
}

fn of_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Incarnation, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = Some(&text).filter(|_| is_hex).and_then(|text| u128::from_str_radix(text, 16).ok());
    number.map(Incarnation::from_number).ok_or_else(|| de::Error::custom("the incarnation is not 32 hexadecimal digits"))
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn as_hex_if_any<S: Serializer>(incarnation: &Option<Incarnation>, serializer: S) -> Result<S::Ok, S::Error> {
    match incarnation {
        Some(incarnation) => as_hex(incarnation, serializer),
        None => serializer.serialize_none(),
    }
}

fn of_hex_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Incarnation>, D::Error> {
    of_hex(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes of other program versions read this text.
    #[test]
    fn the_text_is_fixed() {
        let record = ClusterRecord::new(Incarnation::from_number(0xAB), 64, 3, "digest".into());
        let text = r#"{"version":1,"incarnation":"000000000000000000000000000000ab","partitions":64,"replicas":3,"hash_key_digest":"digest"}"#;
        assert_eq!(serde_json::to_string(&record).unwrap(), text);
        assert_eq!(serde_json::from_str::<ClusterRecord>(text).unwrap(), record);
        for wrong in ["ab", "+00000000000000000000000000000ab", "000000000000000000000000000000ax"] {
            assert!(serde_json::from_str::<ClusterRecord>(&text.replace("000000000000000000000000000000ab", wrong)).is_err());
        }
        assert_eq!(record.answers(), record.incarnation);
        let restored = ClusterRecord { restored: Some(Incarnation::from_number(0xCD)), ..record };
        let text = text.replace('}', r#","restored":"000000000000000000000000000000cd"}"#);
        assert_eq!(serde_json::to_string(&restored).unwrap(), text);
        assert_eq!(serde_json::from_str::<ClusterRecord>(&text).unwrap(), restored);
        assert_eq!(restored.answers(), Incarnation::from_number(0xCD));
        let later = text.replace('}', r#","brokers":{"least":5}}"#);
        let read: ClusterRecord = serde_json::from_str(&later).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), later, "a field of a later version stays");
    }
}
