//! Documents that all nodes share. Each kind of document has a stream, each document a subject, and
//! each change is a message (ADR 18).
//!
//! A change names the last message of the stream, so all changes have a total order, and no node
//! overwrites a document that it has not seen. To follow the stream, a node asks the leader for the
//! message after the last one it has seen. There are no consumers.
//!
//! After a change of a document, its former message is erased: overwritten and removed. If the
//! brokers fail to erase it, the node retries soon. If the node dies, the next node that starts or
//! makes a change erases the message.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RawMessageErrorKind, StorageType, Stream};
use headcount_common::{ControlError, DocumentChange, DocumentVisitor, Documents, DocumentsError, MAX_DOCUMENT_BYTES};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::connection::Connection;

/// How long brokers may take to answer. A change without an answer may still have been made.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The attempts to make a change whose outcome is unknown, and the pause before each one.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);
/// The pause before former messages that could not be erased are tried again.
const ERASED_AGAIN_AFTER: Duration = Duration::from_secs(30);
/// The most former messages of other nodes' changes to remember.
const MAX_FORMER: usize = 4_096;
/// The header with a unique value for each change.
const CHANGE: &str = "Headcount-Change";

/// The part of the stream that a node has seen.
#[derive(Debug, Default)]
struct Seen {
    /// The last message.
    last: u64,
    /// The last message of each document, including removed documents.
    messages: BTreeMap<String, u64>,
    /// Former messages of documents that the node which replaced them may not have erased.
    former: Vec<u64>,
    /// Whether the node has read everything that the stream had at first.
    has_begun: bool,
    /// Whether this node may have made a change without knowing. When it sees that change, it
    /// erases the former message.
    has_undecided: bool,
    /// Whether a task is retrying to erase the former messages.
    is_erasing: bool,
}

impl Seen {
    /// Remembers a message to erase. Beyond the limit, the oldest ones are dropped: they were
    /// erased long ago.
    fn add_former(&mut self, message: Option<u64>) {
        if self.has_begun && self.former.len() >= MAX_FORMER {
            self.former.drain(..MAX_FORMER / 2);
        }
        self.former.extend(message);
    }

    /// Takes the former messages, in order.
    fn take_former(&mut self) -> Vec<u64> {
        let mut former = std::mem::take(&mut self.former);
        former.sort_unstable();
        former.dedup();
        former
    }
}

/// The documents of one kind.
#[derive(Debug)]
pub(crate) struct DocumentStream {
    runtime: Handle,
    connection: Connection,
    kind: &'static str,
    replicas: usize,
    stream: OnceCell<Stream>,
    seen: Arc<Mutex<Seen>>,
}

fn unavailable(error: impl std::fmt::Display) -> DocumentsError {
    DocumentsError::Unavailable(error.to_string())
}

impl DocumentStream {
    /// Uses the stream of a kind of documents. The first access creates it on `replicas` brokers.
    pub(crate) fn new(runtime: &Handle, connection: &Connection, kind: &'static str, replicas: usize) -> Self {
        let (runtime, connection) = (runtime.clone(), connection.clone());
        Self { runtime, connection, kind, replicas, stream: OnceCell::new(), seen: Arc::default() }
    }

    fn name(&self) -> String {
        format!("HC_DOC_{}", self.kind.to_uppercase())
    }

    fn prefix(&self) -> String {
        format!("hc.doc.{}.", self.kind)
    }

    fn config(&self) -> Config {
        Config {
            name: self.name(),
            subjects: vec![format!("{}>", self.prefix())],
            max_messages: -1,
            max_messages_per_subject: -1,
            max_bytes: -1,
            max_consumers: -1,
            discard: DiscardPolicy::New,
            storage: StorageType::File,
            num_replicas: self.replicas,
            // Only the leader knows the last messages.
            allow_direct: false,
            ..Config::default()
        }
    }

    async fn stream(&self) -> Result<&Stream, DocumentsError> {
        let open = async || self.connection.context.get_or_create_stream(self.config()).await.map_err(unavailable);
        timeout(ANSWER_TIMEOUT, self.stream.get_or_try_init(open)).await.map_err(unavailable)?
    }

    /// Returns the first message after this one.
    async fn after(&self, sequence: u64) -> Result<Option<StreamMessage>, DocumentsError> {
        let asked = self.stream().await?.raw_message_builder().sequence(sequence + 1);
        match timeout(ANSWER_TIMEOUT, asked.next_by_subject(format!("{}>", self.prefix())).send()).await.map_err(unavailable)? {
            Ok(message) => Ok(Some(message)),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Publishes a change as the next message after `expected`.
    async fn publish(&self, expected: u64, key: &str, content: &[u8]) -> Result<(), DocumentsError> {
        // The stream must exist before the first change.
        self.stream().await?;
        let change = fastrand::u64(..).to_string();
        let mut unknown = None;
        for _ in 0..ATTEMPTS {
            let message = PublishMessage::build().payload(content.to_vec().into()).header(CHANGE, change.as_str());
            let message = message.expected_last_sequence(expected).expected_stream(self.name());
            let sent = async {
                let sent = self.connection.context.send_publish(format!("{}{key}", self.prefix()), message).await?;
                sent.await
            };
            let (reason, is_refused) = match timeout(ANSWER_TIMEOUT, sent).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => (error.to_string(), error.kind() == PublishErrorKind::WrongLastSequence),
                Err(elapsed) => (elapsed.to_string(), false),
            };
            if !is_refused {
                unknown = Some(reason);
            }
            // The brokers may have recorded the change. If another message has its place, they
            // never will.
            match self.after(expected).await {
                Ok(Some(found)) if is_change(&found, &change) => return Ok(()),
                Ok(Some(_)) => return Err(DocumentsError::Conflict),
                Ok(None) | Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        Err(unknown.map_or(DocumentsError::Conflict, DocumentsError::Undecided))
    }

    /// Erases the former messages. Failures are retried later.
    fn erase_former(&self) {
        let former = self.seen.lock().take_former();
        if former.is_empty() {
            return;
        }
        let erased = self.runtime.block_on(async { erase(self.stream().await?, &former).await });
        let Err(error) = erased else { return };
        tracing::warn!(kind = self.kind, %error, "former contents of documents could not be erased yet");
        let mut seen = self.seen.lock();
        seen.former.extend(former);
        if let Some(stream) = self.stream.get()
            && !std::mem::replace(&mut seen.is_erasing, true)
        {
            self.runtime.spawn(erase_again(stream.clone(), Arc::downgrade(&self.seen), self.kind));
        }
    }
}

/// Erases messages, if they are still there.
async fn erase(stream: &Stream, messages: &[u64]) -> Result<(), DocumentsError> {
    for message in messages {
        let erased = timeout(ANSWER_TIMEOUT, stream.delete_message(*message)).await.map_err(unavailable)?;
        if let Err(error) = erased {
            // Another node may have erased it.
            match timeout(ANSWER_TIMEOUT, stream.get_raw_message(*message)).await.map_err(unavailable)? {
                Err(missing) if missing.kind() == RawMessageErrorKind::NoMessageFound => {}
                _ => return Err(unavailable(error)),
            }
        }
    }
    Ok(())
}

/// Retries to erase former messages until none is left, or the documents are no longer used.
async fn erase_again(stream: Stream, seen: Weak<Mutex<Seen>>, kind: &'static str) {
    loop {
        tokio::time::sleep(ERASED_AGAIN_AFTER).await;
        let Some(seen) = seen.upgrade() else { return };
        let former = seen.lock().take_former();
        let erased = erase(&stream, &former).await;
        let mut seen = seen.lock();
        match erased {
            Ok(()) if seen.former.is_empty() => {
                seen.is_erasing = false;
                tracing::info!(kind, "former contents of documents are erased");
                return;
            }
            Ok(()) => {}
            Err(error) => {
                tracing::warn!(kind, %error, "former contents of documents could not be erased yet");
                seen.former.extend(former);
            }
        }
    }
}

fn is_change(message: &StreamMessage, change: &str) -> bool {
    message.headers.get(CHANGE).is_some_and(|found| found.as_str() == change)
}

impl Documents for DocumentStream {
    fn follow(&self, visit: &mut DocumentVisitor<'_>) -> Result<u64, ControlError> {
        let mut seen = self.seen.lock();
        loop {
            let answer = self.runtime.block_on(self.after(seen.last));
            let Some(message) = answer.map_err(|error| ControlError::Documents(error.to_string()))? else {
                let (last, is_first) = (seen.last, !std::mem::replace(&mut seen.has_begun, true));
                let is_own = !seen.former.is_empty() && std::mem::take(&mut seen.has_undecided);
                drop(seen);
                if is_first || is_own {
                    self.erase_former();
                }
                return Ok(last);
            };
            let key = message.subject.as_str().strip_prefix(&self.prefix()).unwrap_or_default().to_owned();
            // A document that can't be read stays: another version of the program may read it.
            let _visited =
                visit(DocumentChange { key: &key, content: Some(&message.payload[..]).filter(|content| !content.is_empty()) })?;
            seen.last = message.sequence;
            let former = seen.messages.insert(key, message.sequence);
            // The node that made the change erases it, unless that node has died.
            seen.add_former(former);
        }
    }

    fn put(&self, expected: u64, DocumentChange { key, content }: DocumentChange<'_>) -> Result<(), DocumentsError> {
        let content = content.unwrap_or_default();
        if content.len() > MAX_DOCUMENT_BYTES {
            return Err(DocumentsError::TooLarge { bytes: content.len() });
        }
        let former = self.seen.lock().messages.get(key).copied();
        let published = self.runtime.block_on(self.publish(expected, key, content));
        if let Err(DocumentsError::Undecided(_)) = &published {
            self.seen.lock().has_undecided = true;
        }
        published?;
        let mut seen = self.seen.lock();
        // The next message to follow is this change.
        if former.is_some_and(|former| seen.messages.get(key) == Some(&former)) {
            seen.messages.remove(key);
        }
        seen.add_former(former);
        drop(seen);
        self.erase_former();
        Ok(())
    }

    /// Publishes a mark. If it becomes the next message, no other change came after `expected`,
    /// whatever a broker says.
    fn prove(&self, expected: u64, by: &str) -> Result<(), DocumentsError> {
        self.put(expected, DocumentChange { key: by, content: Some(b"mark") })
    }
}
