//! The events of a scan that makes sessions: what each brings to its session, read by column where
//! events are sealed.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::io;
use std::rc::Rc;

use super::error::Result;
use headcount_archive::schema::INTERACTIVE;
use headcount_archive::{ArchiveError, TextColumn};
use headcount_domain::acquisition::{Channel, DIRECT};
use headcount_domain::aggregate::{GroupFigures, Grouping, Summand};
use headcount_domain::intake::fields::{BuiltIn, Entry, Field, Scalar, SessionField};
use headcount_domain::{Day, Event, IdentityLink, KeyHasher, PartSet, Position, Predicate, RecordKey, Window};

use super::events::{Scan, Tally, TallyError};
use super::group_ids::GroupIds;
use super::part_columns::PartColumns;
use super::sealed_group::{PropertyColumn, SealedGroup};
use super::sessions::Sessions;

/// An event, as sessions see it.
pub(super) struct SessionEvent<'e> {
    /// Rises from event to event.
    pub(super) order: Position,
    /// In milliseconds since 1970.
    pub(super) time_ms: i64,
    pub(super) day: Day,
    pub(super) is_interactive: bool,
    /// Whether its source is known.
    pub(super) has_source: bool,
    /// The id that it names.
    pub(super) named: Option<RecordKey>,
    /// Whether it is in the window and matches, apart from its session.
    pub(super) matches: bool,
    /// The parts of the predicate that hold for it, and for its session as far as it decides them.
    pub(super) parts: PartSet,
    /// The fields of its session, as far as it decides them.
    pub(super) entry: &'e Entry,
    /// The value that it is grouped by and its contribution, if it matches and is grouped by
    /// itself.
    pub(super) group: Option<(Scalar<'e>, GroupFigures)>,
}

/// What is asked of each event.
pub(super) struct SessionQuestion<'q> {
    pub(super) window: Window,
    pub(super) predicate: &'q Predicate,
    /// What matching events are grouped by, unless it belongs to the session.
    pub(super) grouping: Option<&'q Grouping>,
}

/// Whether a text that stands for a source is one.
pub(super) fn is_source(value: &Scalar<'_>) -> bool {
    matches!(value, Scalar::Text(source) if source != DIRECT)
}

/// Writes what an event carries, in any thread.
pub(super) type Carry<'c> = dyn Fn(&SessionEvent<'_>, &mut Vec<u8>) + Sync + 'c;
/// Receives what events without ids carry, which are in no session.
pub(super) type AloneVisitor<'v> = dyn FnMut(&[u8]) -> io::Result<()> + 'v;

impl<'s> Scan<'s> {
    /// Adds all events to `sessions`, with what they carry, after their links were recorded there.
    /// Those after the window may decide what its sessions are.
    pub(super) fn visit_sessions(
        &self,
        question: &SessionQuestion<'_>,
        carry: &Carry<'_>,
        sessions: &mut Sessions<'s>,
        alone: &mut AloneVisitor<'_>,
    ) -> Result<()> {
        let reader = SessionReader { hasher: self.hasher(), question, carry };
        let read = |group: &SealedGroup<'_>| reader.read(group);
        self.tally(0, None, &read, &mut SessionTally { reader: &reader, sessions, alone })
    }
}

/// Events as they are added to sessions.
#[derive(Default)]
struct CarriedEvents {
    events: Vec<CarriedEvent>,
    /// What they carry.
    bytes: Vec<u8>,
}

struct CarriedEvent {
    order: Position,
    time_ms: i64,
    is_interactive: bool,
    named: Option<RecordKey>,
    /// The end of what it carries.
    end: usize,
}

impl CarriedEvents {
    fn push(&mut self, event: &SessionEvent<'_>, carry: &Carry<'_>) {
        carry(event, &mut self.bytes);
        let SessionEvent { order, time_ms, is_interactive, named, .. } = *event;
        self.events.push(CarriedEvent { order, time_ms, is_interactive, named, end: self.bytes.len() });
    }
}

/// The links and events of a row group.
#[derive(Default)]
struct ReadSessions {
    links: Vec<IdentityLink>,
    carried: CarriedEvents,
}

struct SessionReader<'r> {
    hasher: &'r KeyHasher,
    question: &'r SessionQuestion<'r>,
    carry: &'r Carry<'r>,
}

struct SessionTally<'t, 's> {
    reader: &'t SessionReader<'t>,
    sessions: &'t mut Sessions<'s>,
    alone: &'t mut AloneVisitor<'t>,
}

impl SessionTally<'_, '_> {
    fn add(&mut self, carried: &CarriedEvents) -> io::Result<()> {
        let mut start = 0;
        for CarriedEvent { order, time_ms, is_interactive, named, end } in &carried.events {
            let bytes = &carried.bytes[start..*end];
            start = *end;
            match named {
                Some(named) => self.sessions.add(*named, *order, (*time_ms, *is_interactive), bytes)?,
                None => (self.alone)(bytes)?,
            }
        }
        Ok(())
    }
}

/// What events of a row group decide, by the codes of address and channel.
struct GroupEntries {
    urls: PropertyColumn,
    channels: Rc<TextColumn>,
    known: HashMap<(u32, u32), Entry>,
}

impl GroupEntries {
    fn read(group: &SealedGroup<'_>) -> Result<Self, ArchiveError> {
        let urls = group.property(&Field::BuiltIn(BuiltIn::Url))?;
        Ok(Self { urls, channels: group.texts("event_channel")?, known: HashMap::new() })
    }

    fn of(&mut self, row: usize) -> &Entry {
        let (url, channel) = (self.urls.codes()[row], self.channels.codes()[row]);
        match self.known.entry((url, channel)) {
            Place::Occupied(known) => known.into_mut(),
            Place::Vacant(place) => {
                let name = self.channels.value(channel);
                let channel = name.and_then(|name| Channel::ALL.iter().copied().find(|channel| channel.name() == name));
                let url = if let Scalar::Text(url) = self.urls.value(url) { Some(url.into()) } else { None };
                place.insert(Entry { url, channel })
            }
        }
    }
}

/// The groups and contributions of a row group's events.
struct Contributions {
    by: PropertyColumn,
    summed: Option<(PropertyColumn, Vec<Option<GroupFigures>>)>,
}

impl Contributions {
    fn read(group: &SealedGroup<'_>, grouping: &Grouping) -> Result<Self, ArchiveError> {
        let summed = grouping.sum().map(|path| group.property(&Field::Metadata(path.clone()))).transpose()?;
        let known = |column: PropertyColumn| {
            let known = vec![None; column.count()];
            (column, known)
        };
        Ok(Self { by: group.property(grouping.by())?, summed: summed.map(known) })
    }

    fn of(&mut self, row: usize) -> (Scalar<'_>, GroupFigures) {
        let figures = self.summed.as_mut().map(|(column, known)| {
            let code = column.codes()[row];
            *known[code as usize].get_or_insert_with(|| GroupFigures::of(Summand::of(&column.value(code))))
        });
        (self.by.value(self.by.codes()[row]), figures.unwrap_or_else(|| GroupFigures::of(Summand::None)))
    }
}

impl SessionReader<'_> {
    /// Returns for each row whether it matches.
    fn matching(&self, group: &SealedGroup<'_>) -> Result<Vec<bool>, ArchiveError> {
        let mut matches = vec![false; group.rows()];
        let mut rows = group.counted()?;
        group.retain_days(&mut rows, self.question.window)?;
        group.retain_matching(&mut rows, self.question.predicate)?;
        rows.for_each(|row| matches[row] = true);
        Ok(matches)
    }

    fn read(&self, group: &SealedGroup<'_>) -> Result<ReadSessions, TallyError> {
        let rows = group.counted()?;
        let mut ids = GroupIds::read(group, self.hasher)?;
        let mut read = ReadSessions { links: ids.links(group, &rows), ..ReadSessions::default() };
        if rows.is_empty() {
            return Ok(read);
        }
        let days = group.days()?;
        let day_of = |row: usize| days.as_ref().map_or_else(|day| *day, |days| days[row]);
        let (times, visitors, matching) = (group.times()?, group.visitors()?, self.matching(group)?);
        let (mut entries, interactive) = (GroupEntries::read(group)?, group.booleans(INTERACTIVE)?);
        let sources = group.decided(&Field::Session(SessionField::Source))?;
        let mut has_source = sources.tests(is_source);
        let parts = PartColumns::read(group, self.question.predicate.parts())?;
        let mut parts = parts.of_rows();
        let mut contributions = self.question.grouping.map(|grouping| Contributions::read(group, grouping)).transpose()?;
        rows.for_each(|row| {
            let named = ids.named(row).or_else(|| visitors[row].map(|visitor| self.hasher.visitor(visitor)));
            let (order, time_ms, day, matches) = (group.order_of(row), times[row], day_of(row), matching[row]);
            let group = contributions.as_mut().filter(|_| matches).map(|contributions| contributions.of(row));
            let (is_interactive, has_source, entry) = (interactive[row], has_source(row), entries.of(row));
            let parts = parts(row);
            let event = SessionEvent { order, time_ms, day, is_interactive, has_source, named, matches, parts, entry, group };
            read.carried.push(&event, self.carry);
        });
        Ok(read)
    }
}

impl Tally<ReadSessions> for SessionTally<'_, '_> {
    fn group(&mut self, read: ReadSessions) -> Result<()> {
        read.links.into_iter().try_for_each(|link| self.sessions.link(link))?;
        Ok(self.add(&read.carried)?)
    }

    fn event(&mut self, position: Position, event: &Event) -> Result<()> {
        let SessionQuestion { window, predicate, grouping } = self.reader.question;
        let keys = self.sessions.keys(position, event)?;
        let matches = window.contains(event.day) && predicate.matches_event(event);
        let group = grouping.filter(|_| matches).map(|by| (by.by().value(event, None), by.contribution(event)));
        let event = SessionEvent {
            order: position,
            time_ms: event.time.0,
            day: event.day,
            is_interactive: event.interactive,
            has_source: event.has_source(),
            named: keys.named(),
            matches,
            parts: predicate.parts_of(event),
            entry: &Entry::of(event),
            group,
        };
        let mut carried = CarriedEvents::default();
        carried.push(&event, self.reader.carry);
        Ok(self.add(&carried)?)
    }
}
