//! The events of a pass over sessions: what each carries, read by column where events are sealed.

use std::io;

use super::super::error::Result;
use headcount_archive::ArchiveError;
use headcount_archive::schema::INTERACTIVE;
use headcount_domain::aggregate::GroupKey;
use headcount_domain::figures::CountedMoney;
use headcount_domain::intake::event::is_pageview;
use headcount_domain::intake::fields::{BuiltIn, Decider, Field, Scalar, SessionField};
use headcount_domain::time::Buckets;
use headcount_domain::{Day, Event, IdentityLink, Instant, KeyHasher, PartSet, Position, Predicate, RecordKey, Window};

use super::super::events::{Scan, Tally, TallyError};
use super::super::group_ids::GroupIds;
use super::super::part_columns::PartColumns;
use super::super::sealed_group::{PropertyColumn, SealedGroup};
use super::super::session_events::is_source;
use super::super::sessions::Sessions;
use super::carried::Carried;
use super::detail::{DetailColumns, WantedDetails};
use super::goal_set::{GoalColumns, GoalSet};

/// What is asked of each event and its session.
pub(in super::super) struct VisitQuestion<'q> {
    /// The window, and the one that it is compared with, each with its buckets.
    pub(in super::super) windows: [Option<VisitWindow>; 2],
    pub(in super::super) predicate: &'q Predicate,
    /// What chosen events convert to.
    pub(in super::super) goals: GoalSet<'q>,
    /// Whether only events that can fit a goal are chosen.
    pub(in super::super) only_goals: bool,
    /// The properties whose values rows are of. All belong to the event, or one event of the
    /// session decides them all.
    pub(in super::super) dimensions: &'q [Field],
    /// The details that events carry after the values.
    pub(in super::super) details: Option<WantedDetails<'q>>,
    /// Whether somebody looks at sessions. Else they are made of the chosen events alone.
    pub(in super::super) needs_sessions: bool,
}

/// A window of a question.
pub(in super::super) enum VisitWindow {
    /// All events are in bucket 0.
    Whole(Window),
    Divided(Buckets),
    /// Events of the window are in bucket 0, and later events up to an instant in bucket 1.
    Reaching(Window, Option<Instant>),
}

impl VisitWindow {
    pub(super) fn days(&self) -> Window {
        match self {
            Self::Whole(window) | Self::Reaching(window, _) => *window,
            Self::Divided(buckets) => buckets.window,
        }
    }

    /// The number of buckets.
    pub(super) fn buckets(&self) -> usize {
        match self {
            Self::Whole(_) => 1,
            Self::Divided(buckets) => buckets.count,
            Self::Reaching(..) => 2,
        }
    }

    fn bucket(&self, day: Day, time_ms: i64) -> Option<u16> {
        match self {
            Self::Whole(window) => window.contains(day).then_some(0),
            Self::Divided(buckets) => u16::try_from(buckets.of(day, Instant(time_ms))?).ok(),
            Self::Reaching(window, _) if window.contains(day) => Some(0),
            Self::Reaching(window, until) => (day > window.end && until.is_none_or(|until| time_ms <= until.0)).then_some(1),
        }
    }
}

impl VisitQuestion<'_> {
    /// Which event of a session decides the values; `None`: each event has its own.
    pub(super) fn decided_by(&self) -> Option<Decider> {
        self.dimensions.first().and_then(Field::decider)
    }

    /// The key of events without a session, if the values belong to it.
    pub(super) fn null_key(&self) -> Vec<u8> {
        let mut key = Vec::new();
        self.dimensions.iter().for_each(|_| write_value(&Scalar::Null, &mut key));
        key
    }

    /// Whether an event that may match does so, in a session with these parts.
    pub(super) fn chooses(&self, event: &Carried<'_>, session: PartSet) -> bool {
        !self.predicate.needs_session() || self.predicate.holds(session.replaced(self.predicate.mask(None), event.parts))
    }

    /// The same, of an event without ids.
    pub(super) fn chooses_of_nobody(&self, event: &Carried<'_>) -> bool {
        !self.predicate.needs_session() || self.predicate.holds_of_nobody(event.parts)
    }

    /// Whether an event is carried to its identity.
    fn is_carried(&self, event: &Carried<'_>, is_named: bool) -> bool {
        event.may_count() || (is_named && self.needs_sessions)
    }

    fn buckets_of(&self, day: Day, time_ms: i64) -> [Option<u16>; 2] {
        let bucket = |window: &Option<VisitWindow>| window.as_ref()?.bucket(day, time_ms);
        [bucket(&self.windows[0]), bucket(&self.windows[1])]
    }

    /// Whether an event needs its key.
    fn is_keyed(&self, event: &Carried<'_>) -> bool {
        let has_details = |details: WantedDetails<'_>| details.touches.is_some() || event.may_count();
        if self.details.is_some_and(has_details) {
            return true;
        }
        match self.decided_by() {
            None => event.may_count(),
            // Any event can be the entry.
            Some(Decider::Source) => true,
            Some(Decider::FirstPage | Decider::LastPage) => event.has_page,
        }
    }
}

/// Appends a value to a key: its length, then its [`GroupKey`].
pub(super) fn write_value(value: &Scalar<'_>, to: &mut Vec<u8>) {
    let start = to.len();
    to.extend_from_slice(&[0; 4]);
    GroupKey::write(value, to);
    let length = u32::try_from(to.len() - start - 4).unwrap_or(u32::MAX);
    to[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Returns what follows the first values of a key.
pub(super) fn after_values(mut key: &[u8], values: usize) -> &[u8] {
    for _ in 0..values {
        let Some((length, rest)) = key.split_first_chunk::<4>() else { return &[] };
        key = rest.get(u32::from_le_bytes(*length) as usize..).unwrap_or_default();
    }
    key
}

/// Returns the values of a key, each as a [`GroupKey`].
pub(super) fn values_of(mut key: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = key.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        key = rest;
        Some(value)
    })
}

/// Receives what events without ids carry, which are in no session.
pub(super) type LoneVisitor<'v> = dyn FnMut(&[u8]) -> io::Result<()> + 'v;

/// Adds all events to `sessions`, with what they carry, after their links were recorded there.
///
/// Those after the windows are needed too: a session has no longest duration, and counts as a
/// whole.
pub(super) fn add_events<'s>(
    scan: &Scan<'s>,
    question: &VisitQuestion<'_>,
    sessions: &mut Sessions<'s>,
    alone: &mut LoneVisitor<'_>,
) -> Result<()> {
    let reader = VisitReader { hasher: scan.hasher(), question };
    let read = |group: &SealedGroup<'_>| reader.read(group);
    scan.tally(0, None, &read, &mut VisitTally { reader: &reader, sessions, alone, carried: Vec::new() })
}

struct VisitReader<'r> {
    hasher: &'r KeyHasher,
    question: &'r VisitQuestion<'r>,
}

/// The links and events of a row group.
#[derive(Default)]
struct ReadVisits {
    links: Vec<IdentityLink>,
    events: Vec<ReadVisit>,
    /// What the events carry.
    bytes: Vec<u8>,
}

struct ReadVisit {
    order: Position,
    /// Its time, and whether it is interactive.
    at: (i64, bool),
    named: Option<RecordKey>,
    /// The end of what it carries.
    end: usize,
}

/// What makes sessions of a group's events.
struct SessionColumns {
    names: PropertyColumn,
    urls: PropertyColumn,
    sources: PropertyColumn,
}

impl SessionColumns {
    fn read(group: &SealedGroup<'_>) -> Result<Self, ArchiveError> {
        let decided = |field: SessionField| group.decided(&Field::Session(field));
        let names = group.property(&Field::BuiltIn(BuiltIn::Name))?;
        Ok(Self { names, urls: decided(SessionField::ExitUrl)?, sources: decided(SessionField::Source)? })
    }

    /// Whether a row is a pageview, has a URL and has a source.
    fn of_rows(&self) -> impl FnMut(usize) -> [bool; 3] {
        let mut is_pageview = self.names.tests(|name| matches!(name, Scalar::Text(name) if is_pageview(name)));
        let mut has_url = self.urls.tests(|url| *url != Scalar::Null);
        let mut has_source = self.sources.tests(is_source);
        move |row| [is_pageview(row), has_url(row), has_source(row)]
    }
}

/// The values of a property as keys, each made once.
struct RowKeys {
    column: PropertyColumn,
    known: Vec<Option<Box<[u8]>>>,
}

impl RowKeys {
    fn write(&mut self, row: usize, to: &mut Vec<u8>) {
        let code = self.column.codes()[row];
        let key = self.known[code as usize].get_or_insert_with(|| {
            let mut key = Vec::new();
            write_value(&self.column.value(code), &mut key);
            key.into()
        });
        to.extend_from_slice(key);
    }
}

impl VisitReader<'_> {
    /// Returns for each row whether it is in a window and matches.
    fn matching(&self, group: &SealedGroup<'_>, is_in_window: impl FnMut(usize) -> bool) -> Result<Vec<bool>, ArchiveError> {
        let mut matches = vec![false; group.rows()];
        let mut rows = group.counted()?;
        rows.retain(is_in_window);
        group.retain_matching(&mut rows, self.question.predicate)?;
        rows.for_each(|row| matches[row] = true);
        Ok(matches)
    }

    fn keys(&self, group: &SealedGroup<'_>) -> Result<Vec<RowKeys>, ArchiveError> {
        let keys = |field: &Field| {
            let column = if field.of_session() { group.decided(field)? } else { group.property(field)? };
            Ok(RowKeys { known: vec![None; column.count()], column })
        };
        self.question.dimensions.iter().map(keys).collect()
    }

    fn read(&self, group: &SealedGroup<'_>) -> Result<ReadVisits, TallyError> {
        let (question, rows) = (self.question, group.counted()?);
        let mut ids = GroupIds::read(group, self.hasher)?;
        let mut read = ReadVisits { links: ids.links(group, &rows), ..ReadVisits::default() };
        if rows.is_empty() {
            return Ok(read);
        }
        let (times, visitors, days) = (group.times()?, group.visitors()?, group.days()?);
        let day_of = |row: usize| days.as_ref().map_or_else(|day| *day, |days| days[row]);
        let matching = self.matching(group, |row| question.buckets_of(day_of(row), times[row]).iter().any(Option::is_some))?;
        let of_session = question.needs_sessions.then(|| SessionColumns::read(group)).transpose()?;
        let mut of_session = of_session.as_ref().map(SessionColumns::of_rows);
        let parts = PartColumns::read(group, question.predicate.parts().filter(|_| question.predicate.needs_session()))?;
        let mut parts = parts.of_rows();
        let goals = GoalColumns::read(&question.goals, group, &matching)?;
        let (mut write_goals, mut of_goals) = (goals.writer(), Vec::new());
        let interactive = group.booleans(INTERACTIVE)?;
        let (mut keys, money, mut key) = (self.keys(group)?, group.money()?, Vec::new());
        let mut details = question.details.map(|wanted| DetailColumns::read(group, wanted, self.hasher)).transpose()?;
        rows.for_each(|row| {
            of_goals.clear();
            write_goals(row, &mut of_goals);
            let is_chosen = details.as_ref().is_none_or(|details| details.chooses(row, money.as_ref()));
            let matches = matching[row] && is_chosen && (!question.only_goals || goals.can_fit_any(row));
            let [is_pageview, has_page, has_source] = of_session.as_mut().map_or([false; 3], |of_row| of_row(row));
            let mut carried = Carried {
                matches,
                is_pageview: matches && is_pageview,
                has_page,
                has_source,
                parts: parts(row),
                buckets: question.buckets_of(day_of(row), times[row]),
                money: money.as_ref().filter(|_| matches).and_then(|money| money.of(row)),
                ..Carried::default()
            };
            key.clear();
            carried.goals = &of_goals;
            if question.is_keyed(&carried) {
                keys.iter_mut().for_each(|column| column.write(row, &mut key));
                if let Some(details) = &mut details {
                    details.write(row, times[row], carried.may_count(), money.as_ref(), &mut key);
                }
            }
            carried.key = &key;
            let named = ids.named(row).or_else(|| visitors[row].map(|visitor| self.hasher.visitor(visitor)));
            if question.is_carried(&carried, named.is_some()) {
                carried.write(&mut read.bytes);
                let (order, at, end) = (group.order_of(row), (times[row], interactive[row]), read.bytes.len());
                read.events.push(ReadVisit { order, at, named, end });
            }
        });
        Ok(read)
    }

    /// Writes what an event of the log carries.
    fn write(&self, position: Position, event: &Event, to: &mut Vec<u8>) {
        let VisitQuestion { predicate, dimensions, details, .. } = self.question;
        let buckets = self.question.buckets_of(event.day, event.time.0);
        let is_chosen = |details: &WantedDetails<'_>| details.chooses(event);
        let mut matches =
            buckets.iter().any(Option::is_some) && details.as_ref().is_none_or(is_chosen) && predicate.matches_event(event);
        let mut of_goals = Vec::new();
        let fits_any = self.question.goals.write_event(event, matches, &mut of_goals);
        matches &= fits_any || !self.question.only_goals;
        let mut carried = Carried {
            matches,
            is_pageview: matches && event.is_pageview(),
            has_page: event.has_page(),
            has_source: event.has_source(),
            parts: if predicate.needs_session() { predicate.parts_of(event) } else { PartSet::default() },
            buckets,
            money: CountedMoney::of(event).filter(|_| matches),
            ..Carried::default()
        };
        carried.goals = &of_goals;
        let mut key = Vec::new();
        if self.question.is_keyed(&carried) {
            for field in *dimensions {
                let value = if field.of_session() { field.decided_by(event) } else { field.value(event, None) };
                write_value(&value, &mut key);
            }
            if let Some(details) = details {
                details.write(event, position, carried.may_count(), self.hasher, &mut key);
            }
        }
        carried.key = &key;
        carried.write(to);
    }
}

struct VisitTally<'t, 's> {
    reader: &'t VisitReader<'t>,
    sessions: &'t mut Sessions<'s>,
    alone: &'t mut LoneVisitor<'t>,
    carried: Vec<u8>,
}

impl Tally<ReadVisits> for VisitTally<'_, '_> {
    fn group(&mut self, read: ReadVisits) -> Result<()> {
        read.links.into_iter().try_for_each(|link| self.sessions.link(link))?;
        let mut start = 0;
        for ReadVisit { order, at, named, end } in read.events {
            let carried = &read.bytes[start..end];
            start = end;
            match named {
                Some(named) => self.sessions.add(named, order, at, carried)?,
                None => (self.alone)(carried)?,
            }
        }
        Ok(())
    }

    fn event(&mut self, position: Position, event: &Event) -> Result<()> {
        let keys = self.sessions.keys(position, event)?;
        self.carried.clear();
        self.reader.write(position, event, &mut self.carried);
        let named = keys.named();
        if !self.reader.question.is_carried(&Carried::read(&self.carried), named.is_some()) {
            return Ok(());
        }
        match named {
            Some(named) => self.sessions.add(named, position, (event.time.0, event.interactive), &self.carried)?,
            None => (self.alone)(&self.carried)?,
        }
        Ok(())
    }
}
