//! Documents that all nodes share: a stream with a subject for each, in which each change is a message (ADR 18).
//!
//! A change names the last message of the stream, so that changes have a total order, and each is made to documents as its node knows them. A node follows by asking the leader for the
//! message after the last one it has seen; no consumer has a part in that. When a document has changed, its former message is erased: overwritten, and removed. If brokers do not do so, it is tried
//! again soon. If the node that changed it has died, the next node that makes a change, or starts, erases it.

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

/// How long brokers may take to answer. A change without an answer may have been made.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a change is tried whose outcome is not known, and the pause before.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);
/// How long until former messages are erased again that could not be.
const ERASED_AGAIN_AFTER: Duration = Duration::from_secs(30);
/// How many former messages are noted that others have replaced.
const MAX_FORMER: usize = 4_096;
/// Tells a change from any other one.
const CHANGE: &str = "Headcount-Change";

/// What a node has seen of the stream.
#[derive(Debug, Default)]
struct Seen {
    /// The last message.
    last: u64,
    /// The message of each document, of removed ones too.
    messages: BTreeMap<String, u64>,
    /// Former messages of documents, which whoever replaced them may not have come to erase.
    former: Vec<u64>,
    /// Whether all that was there at first is read.
    has_begun: bool,
    /// Whether a change of this node may have been made without its knowledge. It erases what was there before, once it sees the change.
    has_undecided: bool,
    /// Whether a task tries again to erase the former messages.
    is_erasing: bool,
}

impl Seen {
    /// Notes a message that is to be erased. Of very many, the oldest were erased long ago.
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

/// The documents of a kind.
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
    /// Uses the stream of a kind of documents, which is created on `replicas` brokers when it is first asked.
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
            // Only the leader may say what there is.
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
        // It must be there before something is published to it.
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
            // It may have been recorded all the same. If another message has its place, it never will be.
            match self.after(expected).await {
                Ok(Some(found)) if is_change(&found, &change) => return Ok(()),
                Ok(Some(_)) => return Err(DocumentsError::Conflict),
                Ok(None) | Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        Err(unknown.map_or(DocumentsError::Conflict, DocumentsError::Undecided))
    }

    /// Erases what documents were before. What can't be erased is tried again later.
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
            // Another node may have done so.
            match timeout(ANSWER_TIMEOUT, stream.get_raw_message(*message)).await.map_err(unavailable)? {
                Err(missing) if missing.kind() == RawMessageErrorKind::NoMessageFound => {}
                _ => return Err(unavailable(error)),
            }
        }
    }
    Ok(())
}

/// Tries to erase former messages until none is left, or nobody uses the documents any more.
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
            // One that can't be read stays: another version of the program may read it.
            let _visited =
                visit(DocumentChange { key: &key, content: Some(&message.payload[..]).filter(|content| !content.is_empty()) })?;
            seen.last = message.sequence;
            let former = seen.messages.insert(key, message.sequence);
            // Whoever made the change erases it, unless it has died since.
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
        // What is followed next is this change.
        if former.is_some_and(|former| seen.messages.get(key) == Some(&former)) {
            seen.messages.remove(key);
        }
        seen.add_former(former);
        drop(seen);
        self.erase_former();
        Ok(())
    }

    /// Publishes a mark. That it is the next message shows that no other change came after `expected`, whatever a broker says.
    fn prove(&self, expected: u64, by: &str) -> Result<(), DocumentsError> {
        self.put(expected, DocumentChange { key: by, content: Some(b"mark") })
    }
}
