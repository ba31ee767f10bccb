//! The sessions of all identities, made of the recorded events.
//!
//! Events are sorted by the id that they name, to find the identity behind it, unless that is a
//! user; then by identity and time. Then each session is a run of neighbours; what is not
//! interactive is attached to the one before. Sessions are made of all events: one that began
//! before the window has its entry, and one that ends after it may have its source there.

use std::io;

use headcount_domain::facts::SESSION_GAP_MS;
use headcount_domain::intake::fields::Entry;
use headcount_domain::{Event, IdentityLink, Position, RecordKey, SentKeys};

use super::carried::CarriedCodes;
use super::error::{Result, check};
use super::events::Scan;
use super::identities::{Identities, KEY, bytes, key_of};
use super::record_sort::RecordSorter;

/// A key, a time, whether the event is interactive, and a position. Of one instant, interactive
/// events come first: their session is under way then.
const MOMENT: usize = KEY + 8 + 1 + 8;
const INTERACTIVE: u8 = 0;
const ATTACHED: u8 = 1;
/// The number of events after which a scan checks whether somebody still waits for it.
const CHECK_EVERY: u64 = 4_096;

/// Collects events and puts them into sessions. Each event carries some bytes for the caller.
pub(super) struct Sessions<'h> {
    identities: Identities<'h>,
    /// Events that name an id that may be linked.
    sent: RecordSorter,
    /// Events whose identity is known.
    resolved: RecordSorter,
    codes: CarriedCodes,
}

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionPlace {
    /// It is the first event of its session that the scan meets: the entry, unless that is below
    /// the project's floor.
    Begins,
    /// In the session of the event before, or attached to it.
    GoesOn,
    /// In no session: it is not interactive, and far from any.
    Alone,
}

/// An event in its session.
pub(super) struct InSession<'r> {
    /// The key of its identity.
    pub(super) identity: RecordKey,
    /// Its time, in milliseconds since 1970.
    pub(super) time_ms: i64,
    /// Rises from event to event, in the order of recording.
    pub(super) order: Position,
    pub(super) place: SessionPlace,
    /// Whether it makes its session; else it is attached, or alone.
    pub(super) is_interactive: bool,
    /// What is known of the session, if this is the first event of one that began below the
    /// project's floor.
    pub(super) earlier_entry: Option<Entry>,
    /// The bytes that it carries.
    pub(super) carried: &'r [u8],
}

impl<'h> Sessions<'h> {
    /// Creates a collection with sorts of `sort_bytes` in memory and with files in `scratch`.
    pub(super) fn new(scan: &Scan<'h>, sort_bytes: usize) -> Self {
        let sorter = || RecordSorter::new(scan.scratch(), sort_bytes);
        let codes = CarriedCodes::new(sort_bytes / 4);
        Self { identities: Identities::new(scan, sort_bytes), sent: sorter(), resolved: sorter(), codes }
    }

    /// Returns the keys of the ids that an event names, and records its link.
    pub(super) fn keys(&mut self, position: Position, event: &Event) -> io::Result<SentKeys> {
        self.identities.see(position, event)
    }

    /// Records a link.
    pub(super) fn link(&mut self, link: IdentityLink) -> io::Result<()> {
        self.identities.link(link)
    }

    /// Adds an event that names `key`.
    pub(super) fn add(
        &mut self,
        key: RecordKey,
        position: Position,
        (time_ms, is_interactive): (i64, bool),
        carried: &[u8],
    ) -> io::Result<()> {
        self.identities.add(key)?;
        let (time, kind) = (ordered(time_ms), if is_interactive { INTERACTIVE } else { ATTACHED });
        // Links are those of other ids.
        let sorter = if key.is_user() { &mut self.resolved } else { &mut self.sent };
        self.codes.encode(carried, |tag, rest| sorter.push(&[&bytes(key), &time, &[kind], &position.to_be_bytes(), tag, rest]))
    }

    /// Passes all events to `visit`: session by session of each identity, each in order of time.
    pub(super) fn visit(self, scan: &Scan<'_>, visit: &mut dyn FnMut(InSession<'_>) -> io::Result<()>) -> Result<()> {
        let Self { identities, sent, mut resolved, codes } = self;
        let mut identities = identities.resolve(scan)?;
        let mut seen = 0_u64;
        let mut check_often = || {
            seen += 1;
            if seen.is_multiple_of(CHECK_EVERY) { check(scan.cancelled) } else { Ok(()) }
        };
        let mut sent = sent.finish()?;
        while let Some(record) = sent.next()? {
            check_often()?;
            let (key, rest) = record.split_at(KEY);
            resolved.push(&[&bytes(identities.resolve(key_of(key))?), rest])?;
        }
        drop(sent);
        let mut resolved = resolved.finish()?;
        // The identity that was met last, and the time of its last interactive event.
        let mut last: Option<(RecordKey, i64)> = None;
        while let Some(record) = resolved.next()? {
            check_often()?;
            let (head, carried) = record.split_at(MOMENT);
            let (identity, time) = (key_of(&head[..KEY]), time_of(&head[KEY..KEY + 8]));
            let is_interactive = head[KEY + 8] == INTERACTIVE;
            let goes_on = |(of, before): (RecordKey, i64)| of == identity && time.saturating_sub(before) <= SESSION_GAP_MS;
            let (mut place, mut earlier) = (SessionPlace::GoesOn, None);
            if !last.is_some_and(goes_on) {
                earlier = scan.session_below_floor(identity, time)?;
                place = if is_interactive || earlier.is_some() { SessionPlace::Begins } else { SessionPlace::Alone };
            }
            match &earlier {
                _ if is_interactive => last = Some((identity, time)),
                Some((_, until)) => last = Some((identity, until.0)),
                None => {}
            }
            let order = head[KEY + 9..].try_into().map_or(0, Position::from_be_bytes);
            let (earlier_entry, carried) = (earlier.map(|(entry, _)| entry), codes.decode(carried));
            visit(InSession { identity, time_ms: time, order, place, is_interactive, earlier_entry, carried })?;
        }
        Ok(())
    }
}

/// A time as bytes that are ordered as the times are.
pub(super) fn ordered(time: i64) -> [u8; 8] {
    (time.cast_unsigned() ^ 1 << 63).to_be_bytes()
}

pub(super) fn time_of(bytes: &[u8]) -> i64 {
    (bytes.try_into().map_or(0, u64::from_be_bytes) ^ 1 << 63).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ordered_as_bytes() {
        let times = [i64::MIN, -1, 0, 1, 1_700_000_000_000, i64::MAX];
        assert!(times.map(ordered).is_sorted());
        assert_eq!(times.map(|time| time_of(&ordered(time))), times);
    }
}
