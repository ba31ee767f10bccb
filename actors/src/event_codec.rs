//! The encoding of the log's records: writes the current version, reads every version.

use headcount_domain::intake::event::EVENT_VERSION;
use headcount_domain::{Event, FloorMove};
use headcount_storage::codec::{self, CodecError};

use crate::import_mark::ImportMark;

/// Events in flight. They are boxed, since an event has some hundred bytes and is moved five times.
pub(crate) type Events = Vec<Box<Event>>;

/// The encoded size of a rather large event, so that most events take one allocation.
const EVENT_BYTES: usize = 512;
/// The maximum size reserved before encoding, since senders decide how many small events a batch
/// has.
const MAX_RESERVED_BYTES: usize = 64 << 10;

/// The version byte of a [`FloorMove`]. The versions of events count from 1.
const FLOOR_VERSION: u8 = 128;
/// The version byte of an [`ImportMark`] with events.
const MARKED_VERSION: u8 = 129;

/// A record of the log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LogRecord {
    /// Events of one project. Each has a position.
    Events(Events),
    /// A floor of a project, which has one position.
    Floor(FloorMove),
}

impl LogRecord {
    /// The number of positions of the record.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Events(events) => events.len(),
            Self::Floor(_) => 1,
        }
    }

    /// Returns the payload in the log.
    ///
    /// # Errors
    /// It exceeds the maximum size of a record.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, CodecError> {
        match self {
            Self::Events(events) => encode(events),
            Self::Floor(floor) => codec::encode(FLOOR_VERSION, floor),
        }
    }
}

/// Returns the payload of a log record with these events.
///
/// # Errors
/// They exceed the maximum size of a record.
pub(crate) fn encode(events: &Events) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::with_capacity((events.len() * EVENT_BYTES).min(MAX_RESERVED_BYTES));
    codec::encode_into(EVENT_VERSION, events, &mut bytes)?;
    Ok(bytes)
}

/// Returns the payload of a log record with events of an import, and their mark.
///
/// # Errors
/// They exceed the maximum size of a record.
pub(crate) fn encode_marked(mark: &ImportMark, events: &Events) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::with_capacity((events.len() * EVENT_BYTES).min(MAX_RESERVED_BYTES));
    codec::encode_into(MARKED_VERSION, &(mark, events), &mut bytes)?;
    Ok(bytes)
}

/// Returns the mark of a log record that has one.
///
/// # Errors
/// Returns the same errors as [`decode`], of records with a mark.
pub(crate) fn mark(payload: &[u8]) -> Result<Option<ImportMark>, CodecError> {
    if payload.first() != Some(&MARKED_VERSION) {
        return Ok(None);
    }
    let (mark, _): (ImportMark, Events) = codec::decode_any(payload, &[(MARKED_VERSION, codec::payload)])?;
    Ok(Some(mark))
}

/// Decodes a log record.
///
/// # Errors
/// The payload is damaged, or of an unknown version.
pub(crate) fn decode(payload: &[u8]) -> Result<LogRecord, CodecError> {
    codec::decode_any(payload, &[(EVENT_VERSION, events), (FLOOR_VERSION, floor), (MARKED_VERSION, marked)])
}

fn events(payload: &[u8]) -> Result<LogRecord, CodecError> {
    codec::payload(payload).map(LogRecord::Events)
}

fn marked(payload: &[u8]) -> Result<LogRecord, CodecError> {
    let (_, events): (ImportMark, Events) = codec::payload(payload)?;
    Ok(LogRecord::Events(events))
}

fn floor(payload: &[u8]) -> Result<LogRecord, CodecError> {
    codec::payload(payload).map(LogRecord::Floor)
}

#[cfg(test)]
mod tests {
    use headcount_domain::acquisition::{Acquisition, Channel};
    use headcount_domain::agent::{Agent, Device};
    use headcount_domain::company::CompanyKey;
    use headcount_domain::intake::country::Country;
    use headcount_domain::intake::event::{Details, Money, SentIds};
    use headcount_domain::{Amount, Currency, Day, Instant, ProjectId};

    use super::*;

    const V1: &[u8] = include_bytes!("../fixtures/events-v1.bin");

    /// An event with every field, and one with only the required fields.
    fn sample() -> Events {
        let text = |text: &str| Some(text.into());
        let full = Event {
            project: ProjectId(0x0123_4567_89ab_cdef),
            time: Instant(1_700_000_000_000),
            received: Instant(1_700_000_000_250),
            day: Day(19_675),
            interactive: true,
            name: "order".into(),
            who: SentIds { user_id: text("ada"), anonymous_id: text("a-1"), visitor: Some(u128::MAX - 1) },
            external_id: text("o-1"),
            money: Some(Money {
                amount: Amount::parse("12.5").unwrap(),
                currency: Currency::parse("EUR").unwrap(),
                in_project: Some(Amount::parse("13.5").unwrap()),
                in_organization: None,
                counted: true,
            }),
            company: CompanyKey::from_group_id("acme"),
            company_domain: CompanyKey::from_domain("acme.example"),
            email_company: CompanyKey::from_email("ada@lovelace.example"),
            details: details(),
        };
        let bare = Event {
            project: ProjectId(1),
            time: Instant(-1),
            received: Instant(0),
            day: Day(-1),
            interactive: true,
            name: "\u{e9}".into(),
            who: SentIds::default(),
            external_id: None,
            money: None,
            company: None,
            company_domain: None,
            email_company: None,
            details: Details::default(),
        };
        vec![Box::new(full), Box::new(bare)]
    }

    fn details() -> Details {
        let text = |text: &str| Some(text.into());
        Details {
            url: text("https://shop.example/a?b=c"),
            hostname: text("shop.example"),
            referrer: text("https://www.google.com/"),
            referrer_host: text("google.com"),
            screen: text("1920x1080"),
            language: text("de-CH"),
            channel: text("sales"),
            message: text("an order"),
            notify: Some(true),
            group_type: text("company"),
            group_id: text("acme"),
            email: text("ada@lovelace.example"),
            privacy_categories: text("analytics"),
            privacy_signals: text("gpp:DBAA"),
            consent_source: text("banner"),
            metadata: text(r#"{"plan":"pro"}"#),
            agent: Some(Agent {
                browser: Some("Chrome".into()),
                browser_version: Some("124.0.0.0".into()),
                os: Some("Windows".into()),
                device: Device::Desktop,
            }),
            acquisition: Some(Acquisition {
                source: "google".into(),
                medium: "organic".into(),
                campaign: "(none)".into(),
                channel: Channel::OrganicSearch,
            }),
            country: Country::parse("CH"),
        }
    }

    #[test]
    fn events_are_read_and_written() {
        assert_eq!(decode(V1).unwrap(), LogRecord::Events(sample()));
        assert_eq!(LogRecord::Events(sample()).encode().unwrap(), V1);
    }

    #[test]
    fn floors_are_read_and_written() {
        let floor = LogRecord::Floor(FloorMove { project: ProjectId(0x0123_4567_89ab_cdef), day: Day(19_675) });
        let stored = [128, 253, 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, 251, 0xb6, 0x99];
        assert_eq!(floor.encode().unwrap(), stored);
        assert_eq!((decode(&stored).unwrap(), floor.count()), (floor, 1));
        assert!(matches!(decode(&stored[..stored.len() - 1]), Err(CodecError::Truncated)));
    }

    #[test]
    fn marks_of_imports_are_read_and_written_with_their_events() {
        let written = ImportMark { import: 7, from: (10, 1), until: (300, 4), refused: vec![(2, 3)] };
        let stored = [&[129, 7, 10, 1, 251, 0x2c, 0x01, 4, 1, 2, 3], &V1[1..]].concat();
        assert_eq!(encode_marked(&written, &sample()).unwrap(), stored);
        assert_eq!(decode(&stored).unwrap(), LogRecord::Events(sample()));
        assert_eq!(mark(&stored).unwrap(), Some(written));
        assert_eq!(mark(V1).unwrap(), None);
        assert!(mark(&stored[..stored.len() - 1]).is_err());
    }

    #[test]
    fn what_is_no_version_is_refused() {
        let of = |version: u8| [&[version], &V1[1..]].concat();
        assert!(matches!(decode(&of(0)), Err(CodecError::UnknownVersion { found: 0, .. })));
        assert!(matches!(decode(&of(2)), Err(CodecError::UnknownVersion { found: 2, .. })));
        assert!(matches!(decode(&V1[..V1.len() - 1]), Err(CodecError::Truncated)));
        let country = V1.windows(3).position(|bytes| bytes == b"\x01CH").unwrap();
        let lower = [&V1[..country], b"\x01Ch", &V1[country + 3..]].concat();
        assert!(matches!(decode(&lower), Err(CodecError::Malformed(_))), "a country is upper case");
    }
}
