//! The messages of a partition's stream.
//!
//! A message is a header of 30 bytes and a body. The header has the version of the format, the
//! kind, the epoch (u64), the number of events (u32) and the chain (u128), all little-endian. The
//! body of an [epoch message](Content::Epoch) is empty. The body of events is their uncompressed
//! length, then LZ4: for each entry its number of events (u32), the length of its payload (u32),
//! and the payload.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::levels::Levels;

/// The earliest version of the format. The latest one that this program reads and writes is the
/// level `log` ([`Levels`](crate::Levels)), which covers the events in the messages, too.
const FIRST_VERSION: u32 = Levels::FIRST.log;
const KIND_EVENTS: u8 = 1;
const KIND_EPOCH: u8 = 2;
/// The bytes before the chain.
const UNCHAINED: usize = 14;
const HEADER: usize = UNCHAINED + 16;
/// The maximum number of events in a message: positions have room for as many.
pub const MAX_EVENTS: u32 = 1 << 13;
/// The maximum size of a message. Every broker accepts it.
pub(super) const MAX_MESSAGE_BYTES: usize = 8 << 20;
/// The maximum size of a body before its compression.
const MAX_BODY_BYTES: usize = 64 << 20;

/// Submitted events, encoded.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The number of events, at least 1.
    pub count: u32,
    /// The encoded events; the log does not look into them.
    pub payload: Vec<u8>,
}

// Payloads are personal data and must not get into logs and panics.
impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entry({} events, {} bytes)", self.count, self.payload.len())
    }
}

/// The contents of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Events, in order.
    Events(Vec<Entry>),
    /// The beginning of an epoch. Its owner has read all messages before, and every message after
    /// it has this epoch or a later one.
    Epoch,
}

/// A message of a partition's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The epoch of the owner that wrote it.
    pub epoch: u64,
    /// The contents.
    pub content: Content,
}

/// A digest of a message and of all messages before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain(pub u128);

/// The fields of a message's header. They can't be verified without the message before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claims {
    pub(super) epoch: u64,
    pub(super) count: u32,
    pub(super) chain: Chain,
}

impl Claims {
    /// Reads the header.
    ///
    /// # Errors
    /// Returns [`MessageError::Version`] or [`MessageError::Damaged`].
    pub(super) fn of(bytes: &[u8]) -> Result<Self, MessageError> {
        let is_known = |version: u8| (FIRST_VERSION..=Levels::own().log).contains(&u32::from(version));
        if let Some(version) = bytes.first().filter(|version| !is_known(**version)) {
            return Err(MessageError::Version(*version));
        }
        let (header, _) = bytes.split_first_chunk::<HEADER>().ok_or(MessageError::Damaged)?;
        let damaged = |_| MessageError::Damaged;
        Ok(Self {
            epoch: u64::from_le_bytes(header[2..10].try_into().map_err(damaged)?),
            count: u32::from_le_bytes(header[10..UNCHAINED].try_into().map_err(damaged)?),
            chain: Chain(u128::from_le_bytes(header[UNCHAINED..].try_into().map_err(damaged)?)),
        })
    }
}

/// The reason why bytes are not a valid message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// There are more events, or more bytes of events, than fit into a message.
    #[error("{events} events of {bytes} bytes don't fit into a message")]
    TooLarge {
        /// The number of events.
        events: u64,
        /// The bytes of all entries.
        bytes: usize,
    },
    /// An entry has no events, or there are no entries.
    #[error("there are no events")]
    Empty,
    /// The message has another version of the format.
    #[error("the message has the format {0}, which this version of headcount does not read")]
    Version(u8),
    /// The bytes differ from the bytes that were written.
    #[error("the message is damaged")]
    Damaged,
    /// The message does not follow the one before.
    #[error("the message does not follow the one before")]
    Unchained,
}

impl Message {
    /// Encodes the message as the successor of `before`, at a level. Returns its bytes and its
    /// chain.
    ///
    /// # Errors
    /// Returns [`MessageError::Empty`] or [`MessageError::TooLarge`].
    pub fn encode(&self, levels: &Levels, before: Chain) -> Result<(Vec<u8>, Chain), MessageError> {
        let (kind, count, body) = match &self.content {
            Content::Epoch => (KIND_EPOCH, 0, Vec::new()),
            Content::Events(entries) => (KIND_EVENTS, count(entries)?, encode_entries(entries)),
        };
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        // One byte suffices until there are many versions.
        bytes.extend([u8::try_from(levels.log).unwrap_or(u8::MAX), kind]);
        bytes.extend(self.epoch.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        let chain = chain(before, &bytes, &body);
        bytes.extend(chain.0.to_le_bytes());
        bytes.extend(body);
        Ok((bytes, chain))
    }

    /// Decodes the message after `before`. Returns the message and its chain.
    ///
    /// # Errors
    /// Returns a [`MessageError`].
    pub fn decode(bytes: &[u8], before: Chain) -> Result<(Self, Chain), MessageError> {
        let Claims { epoch, count: events, chain: written } = Claims::of(bytes)?;
        let (header, body) = bytes.split_at(HEADER);
        let unchained = &header[..UNCHAINED];
        let chain = chain(before, unchained, body);
        if written != chain {
            return Err(MessageError::Unchained);
        }
        let content = match unchained[1] {
            KIND_EPOCH if body.is_empty() && events == 0 => Content::Epoch,
            KIND_EVENTS => {
                let entries = decode_entries(body).ok_or(MessageError::Damaged)?;
                let counted = count(&entries).map_err(|_| MessageError::Damaged)?;
                if events != counted {
                    return Err(MessageError::Damaged);
                }
                Content::Events(entries)
            }
            _ => return Err(MessageError::Damaged),
        };
        Ok((Self { epoch, content }, chain))
    }
}

fn chain(before: Chain, unchained: &[u8], body: &[u8]) -> Chain {
    let mut hash = Xxh3::new();
    hash.update(&before.0.to_le_bytes());
    hash.update(unchained);
    hash.update(body);
    Chain(hash.digest128())
}

/// Returns the number of events of all entries. They must fit into a message.
fn count(entries: &[Entry]) -> Result<u32, MessageError> {
    if entries.is_empty() || entries.iter().any(|entry| entry.count == 0) {
        return Err(MessageError::Empty);
    }
    let events: u64 = entries.iter().map(|entry| u64::from(entry.count)).sum();
    let bytes: usize = entries.iter().map(|entry| entry.payload.len() + 8).sum();
    match u32::try_from(events) {
        Ok(count) if count <= MAX_EVENTS && bytes <= MAX_BODY_BYTES => Ok(count),
        _ => Err(MessageError::TooLarge { events, bytes }),
    }
}

fn encode_entries(entries: &[Entry]) -> Vec<u8> {
    let mut body = Vec::new();
    for entry in entries {
        body.extend(entry.count.to_le_bytes());
        // At most `MAX_BODY_BYTES`.
        body.extend((entry.payload.len() as u32).to_le_bytes());
        body.extend(&entry.payload);
    }
    lz4_flex::compress_prepend_size(&body)
}

fn decode_entries(body: &[u8]) -> Option<Vec<Entry>> {
    let (size, _) = lz4_flex::block::uncompressed_size(body).ok()?;
    if size > MAX_BODY_BYTES {
        return None;
    }
    let body = lz4_flex::decompress_size_prepended(body).ok()?;
    let (mut rest, mut entries) = (&body[..], Vec::new());
    while !rest.is_empty() {
        let (count, length) = (number(&mut rest)?, number(&mut rest)?);
        let (payload, after) = rest.split_at_checked(length as usize)?;
        entries.push(Entry { count, payload: payload.to_vec() });
        rest = after;
    }
    Some(entries)
}

/// Takes a number off the front of `bytes`.
fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(entries: &[(u32, &[u8])]) -> Message {
        let entry = |(count, payload): &(u32, &[u8])| Entry { count: *count, payload: payload.to_vec() };
        Message { epoch: 7, content: Content::Events(entries.iter().map(entry).collect()) }
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let mut before = Chain::default();
        for message in [events(&[(1, b"a")]), Message { epoch: 8, content: Content::Epoch }, events(&[(2, b""), (8190, b"bcd")])]
        {
            let (bytes, chain) = message.encode(&Levels::FIRST, before).unwrap();
            assert_eq!(Message::decode(&bytes, before), Ok((message.clone(), chain)));
            assert_eq!(Claims::of(&bytes).map(|claims| (claims.epoch, claims.chain)), Ok((message.epoch, chain)));
            before = chain;
        }
    }

    /// Brokers keep messages for longer than a program version lives.
    #[test]
    fn the_bytes_are_fixed() {
        let (bytes, chain) = events(&[(3, b"payload")]).encode(&Levels::FIRST, Chain(5)).unwrap();
        let header = [1, 1, 7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0];
        let body = [15, 0, 0, 0, 0xF0, 0, 3, 0, 0, 0, 7, 0, 0, 0, b'p', b'a', b'y', b'l', b'o', b'a', b'd'];
        assert_eq!(bytes, [&header[..], &chain.0.to_le_bytes(), &body].concat());
        // Computed with the `xxhash` package of Python.
        assert_eq!(chain.0, 0xb4e4_606a_6735_2d02_5c59_9188_025f_658b);
    }

    #[test]
    fn messages_without_events_or_with_too_many_are_refused() {
        assert_eq!(events(&[]).encode(&Levels::FIRST, Chain(0)), Err(MessageError::Empty));
        assert_eq!(events(&[(1, b"a"), (0, b"b")]).encode(&Levels::FIRST, Chain(0)), Err(MessageError::Empty));
        let too_large = MessageError::TooLarge { events: 8193, bytes: 18 };
        assert_eq!(events(&[(8192, b"a"), (1, b"b")]).encode(&Levels::FIRST, Chain(0)), Err(too_large));
    }

    #[test]
    fn a_message_of_another_place_is_noticed() {
        let (bytes, chain) = events(&[(3, b"payload")]).encode(&Levels::FIRST, Chain(5)).unwrap();
        assert_eq!(Message::decode(&bytes, Chain(6)), Err(MessageError::Unchained));
        assert_eq!(Message::decode(&bytes, chain), Err(MessageError::Unchained));
    }

    #[test]
    fn a_newer_format_is_not_taken_for_damage() {
        let (mut bytes, _) = events(&[(3, b"payload")]).encode(&Levels::FIRST, Chain(5)).unwrap();
        bytes[0] = 2;
        assert_eq!(Message::decode(&bytes, Chain(5)), Err(MessageError::Version(2)));
    }

    proptest! {
        #[test]
        fn changed_bytes_are_noticed(at in 0usize..51, bit in 0u8..8) {
            let (bytes, _) = events(&[(3, b"payload")]).encode(&Levels::FIRST, Chain(5)).unwrap();
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            prop_assert!(Message::decode(&changed, Chain(5)).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), before: u128) {
            let mut chained = bytes.clone();
            prop_assert!(Message::decode(&bytes, Chain(before)).is_err());
            // The valid chain makes the decoder read the body.
            if chained.len() >= HEADER {
                chained[0] = 1;
                chained[1] = KIND_EVENTS;
                let chain = chain(Chain(before), &chained[..UNCHAINED], &chained[HEADER..]);
                chained[UNCHAINED..HEADER].copy_from_slice(&chain.0.to_le_bytes());
                if let Ok((message, _)) = Message::decode(&chained, Chain(before)) {
                    prop_assert!(message.encode(&Levels::FIRST, Chain(before)).is_ok());
                }
            }
        }
    }
}
