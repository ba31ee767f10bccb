//! The control log of a cluster: a stream that every node reads and writes.
//!
//! A control record is a message with a single entry, which holds a random number and the record.
//! The number distinguishes equal records of two nodes. The sequence of the message is the position
//! of the record. The epoch is always 0, because the log has no owner: nodes compete for each
//! position. Records that two shared [snapshots](crate::snapshots) cover are removed. The last one
//! of them stays: its chain is needed to verify the next record.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use headcount_common::secrets::{SecretsError, hash_key_digest};
use headcount_common::{ControlError, ControlLog};
use headcount_control::{Registry, RegistryError};
use headcount_storage::format::{Format, FormatError};
use headcount_storage::log::{LogError as StorageError, LogFile};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::cells::KvCells;
use crate::connection::Connection;
use crate::log::{Appender, Content, Entry, Link, LogEnd, LogError, LogReader, Message, MessageError};
use crate::record::{BUCKET, ClusterRecord};
use crate::snapshots::{SharedSnapshot, SharedSnapshots};
use crate::stream::StreamName;

/// How long brokers may take to answer one request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// How long brokers may take to record a change: the time to elect a new leader, and some more.
const APPEND_TIMEOUT: Duration = Duration::from_secs(20);
/// Ends a piece of a shared snapshot.
pub(crate) const PIECE_END: u8 = b'\n';
/// The size of the random number before a record.
const NONCE: usize = 8;

/// The control log over a stream. Each node has one.
///
/// An append ends with [`ControlError::Undecided`] if the message was sent and the brokers did not
/// answer in time. The caller need not act: the next change first finds out which record got the
/// position.
#[derive(Debug)]
pub struct ControlStream {
    runtime: Handle,
    appender: Appender,
    /// The last message that this log read or recorded, and checked with all messages before it.
    end: Mutex<LogEnd>,
}

impl ControlStream {
    /// Opens the control log of a cluster. Tasks of `runtime` must not call the functions of the
    /// log.
    ///
    /// # Errors
    /// Returns [`ControlError::Log`].
    pub fn open(runtime: &Handle, connection: &Connection) -> Result<Self, ControlError> {
        Self::open_as(runtime, connection, &StreamName::control())
    }

    /// Opens the log of records in another stream.
    pub(crate) fn open_as(runtime: &Handle, connection: &Connection, name: &StreamName) -> Result<Self, ControlError> {
        let appender = answer(runtime, Appender::open(connection, name))?;
        Ok(Self { runtime: runtime.clone(), appender, end: Mutex::default() })
    }

    /// The stream.
    pub(crate) fn reader(&self) -> &LogReader {
        &self.appender.reader
    }

    pub(crate) fn answer<T>(&self, asked: impl Future<Output = Result<T, LogError>>) -> Result<T, ControlError> {
        answer(&self.runtime, asked)
    }

    /// Returns the end of the log at a position.
    pub(crate) fn end_at(&self, position: u64) -> Result<LogEnd, ControlError> {
        let end = *self.end.lock();
        if position == 0 {
            return Ok(LogEnd::default());
        }
        if end.sequence == position {
            return Ok(end);
        }
        self.answer(self.appender.reader.end_at(position))
    }

    /// Checks that the stream has a message.
    fn confirm(&self, link: Link) -> Result<(), ControlError> {
        match self.answer(self.appender.reader.confirm_link(link))? {
            true => Ok(()),
            false => Err(failed(LogError::unavailable("a snapshot was replaced meanwhile"))),
        }
    }

    /// Passes the parts of a shared snapshot in this stream to `take`. The last part must be the
    /// one that was written.
    pub(crate) fn read_parts(
        &self,
        snapshot: &SharedSnapshot,
        take: &mut dyn FnMut(&[u8]) -> Result<(), ControlError>,
    ) -> Result<(), ControlError> {
        self.confirm(snapshot.end)?;
        let (mut taken, mut last) = (Ok(()), 0);
        self.read_after(snapshot.first - 1, &mut |sequence, part| {
            (taken, last) = (take(part), sequence);
            if taken.is_ok() && last < snapshot.end.sequence { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        taken?;
        if last == snapshot.end.sequence { Ok(()) } else { Err(failed(LogError::unavailable("an answer is out of date"))) }
    }

    /// Passes the pieces of a shared snapshot to `take`, whose parts are divided anyhow.
    fn read_pieces(
        &self,
        snapshot: &SharedSnapshot,
        take: &mut dyn FnMut(&[u8]) -> Result<(), ControlError>,
    ) -> Result<(), ControlError> {
        let mut piece = Vec::new();
        self.read_parts(snapshot, &mut |part| {
            for some in part.split_inclusive(|byte| *byte == PIECE_END) {
                piece.extend(some);
                if piece.pop_if(|last| *last == PIECE_END).is_some() {
                    take(&std::mem::take(&mut piece))?;
                }
            }
            Ok(())
        })
    }

    fn note(&self, read: LogEnd) {
        let mut end = self.end.lock();
        if read.sequence > end.sequence {
            *end = read;
        }
    }

    fn conflict(&self, expected: u64) -> ControlError {
        ControlError::Conflict { expected, next: self.last_position() + 1 }
    }
}

impl ControlLog for ControlStream {
    fn first_position(&self) -> u64 {
        match self.appender.reader.known_bounds().0 {
            1 => 1,
            last_removed => last_removed + 1,
        }
    }

    fn last_position(&self) -> u64 {
        self.appender.reader.known_bounds().1
    }

    fn record_version(&self) -> u32 {
        self.appender.written().control
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn read_shared_snapshot(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), ControlError>) -> Result<(), ControlError> {
        let (runtime, connection) = (&self.runtime, &self.appender.connection);
        let (shared, _) = SharedSnapshots::read(runtime, &KvCells::existing(connection, BUCKET))?;
        let mut damaged = Ok(());
        for snapshot in shared.kept {
            // A snapshot of another control log must not be used.
            self.confirm(snapshot.control)?;
            let parts = Self::open_as(runtime, connection, &StreamName::snapshots())?;
            // All parts are checked before the first one is used.
            match parts.read_parts(&snapshot, &mut |_| Ok(())) {
                Ok(()) => {
                    tracing::info!(record = snapshot.control.sequence, "the control data begin with a shared snapshot");
                    return parts.read_pieces(&snapshot, take);
                }
                Err(error) => {
                    tracing::error!(record = snapshot.control.sequence, %error, "a shared snapshot can't be read");
                    damaged = Err(error);
                }
            }
        }
        damaged
    }

    fn refresh(&mut self) -> Result<(), ControlError> {
        self.answer(self.appender.reader.ask_bounds()).map(drop)
    }

    fn append_at(&mut self, expected: u64, record: &[u8]) -> Result<(), ControlError> {
        if expected == 0 || self.last_position() >= expected {
            return Err(self.conflict(expected));
        }
        let end = self.end_at(expected - 1)?;
        // A node could not read this message if brokers had lost one before it.
        self.answer(self.appender.reader.confirm(end))?;
        let (bytes, chain) =
            message(record).encode(&self.appender.written(), end.chain).map_err(|reason| failed(reason.into()))?;
        let mut is_unknown = false;
        let sent =
            self.runtime.block_on(async { timeout(APPEND_TIMEOUT, self.appender.append(end, bytes, &mut is_unknown)).await });
        let error = match sent {
            Ok(Ok(sequence)) => {
                self.note(LogEnd { sequence, chain, epoch: 0 });
                return Ok(());
            }
            Ok(Err(LogError::Fenced { .. })) => return Err(self.conflict(expected)),
            Ok(Err(error)) => error,
            Err(elapsed) => LogError::unavailable(elapsed),
        };
        if is_unknown { Err(ControlError::Undecided(error.to_string())) } else { Err(failed(error)) }
    }

    fn read_after(&self, position: u64, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), ControlError> {
        let reader = &self.appender.reader;
        let mut cursor = self.answer(reader.cursor(self.end_at(position)?))?;
        loop {
            let messages = self.answer(cursor.next())?;
            if messages.is_empty() {
                return Ok(());
            }
            for (end, message) in messages {
                let record = record_of(&message).ok_or_else(|| failed(reader.broken(end.sequence, MessageError::Damaged)))?;
                self.note(end);
                if visit(end.sequence, record).is_break() {
                    return Ok(());
                }
            }
        }
    }

    /// Keeps all records. [`Compaction`](crate::compaction::Compaction) removes them.
    fn remove_before(&mut self, _: u64) -> Result<(), ControlError> {
        Ok(())
    }

    fn files(&self) -> Result<Vec<LogFile>, ControlError> {
        Ok(Vec::new())
    }
}

/// Waits for an answer, but not forever.
pub(crate) fn answer<T>(runtime: &Handle, asked: impl Future<Output = Result<T, LogError>>) -> Result<T, ControlError> {
    let answered = runtime.block_on(async { timeout(ANSWER_TIMEOUT, asked).await });
    answered.map_err(LogError::unavailable).flatten().map_err(failed)
}

fn failed(error: LogError) -> ControlError {
    StorageError::from(error).into()
}

/// Returns the message of a record, distinct from the messages of all other nodes.
fn message(record: &[u8]) -> Message {
    let payload = [&fastrand::u64(..).to_le_bytes(), record].concat();
    Message { epoch: 0, content: Content::Events(vec![Entry { count: 1, payload }]) }
}

/// Returns the record of a message; `None` if the message doesn't belong to the control log.
fn record_of(message: &Message) -> Option<&[u8]> {
    match (&message.content, message.epoch) {
        (Content::Events(entries), 0) => match &entries[..] {
            [Entry { count: 1, payload }] => payload.get(NONCE..),
            _ => None,
        },
        _ => None,
    }
}

/// The reason why the control data of a cluster can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenRegistryError {
    /// The data directory belongs to another cluster, or can't be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The hash key can't be read.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// The hash key is not the hash key of the cluster.
    #[error("{0}/keys/hash.key is not the key of the cluster: copy the file from the data directory of another node")]
    HashKey(String),
    /// The control log can't be opened or read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// Opens the control data of a cluster for a node. The caller has locked the data directory. It
/// must be empty or belong to this cluster, and have the hash key of the cluster. A task of the
/// runtime must not call this.
///
/// # Errors
/// Returns an [`OpenRegistryError`].
pub fn open_registry(
    runtime: &Handle,
    connection: &Connection,
    record: &ClusterRecord,
    data_dir: &Path,
) -> Result<Registry, OpenRegistryError> {
    let (_, log) = open_log(runtime, connection, record, data_dir)?;
    Ok(Registry::open_on(data_dir, Box::new(log))?)
}

/// Like [`open_registry`], without reading the log. Also returns the description of the directory.
pub(crate) fn open_log(
    runtime: &Handle,
    connection: &Connection,
    record: &ClusterRecord,
    data_dir: &Path,
) -> Result<(Format, ControlStream), OpenRegistryError> {
    let format = Format::open_as(data_dir, record.incarnation)?;
    if hash_key_digest(data_dir)?.is_none_or(|digest| digest != record.hash_key_digest) {
        return Err(OpenRegistryError::HashKey(data_dir.display().to_string()));
    }
    Ok((format, ControlStream::open(runtime, connection).map_err(RegistryError::from)?))
}
