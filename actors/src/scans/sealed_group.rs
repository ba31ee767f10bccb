//! A row group of sealed events, as questions read it: by column, and each distinct value once.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use headcount_archive::schema::{METADATA, METADATA_PREFIX};
use headcount_archive::{ArchiveError, TextColumn};
use headcount_domain::figures::CountedMoney;
use headcount_domain::intake::fields::{BuiltIn, EventText, Field, MetadataPath, Scalar, SessionField};
use headcount_domain::{Amount, Currency, Day, Position, Window};

use crate::history::SealedColumns;

/// The column of a text of events.
fn column_of(text: EventText) -> &'static str {
    match text {
        EventText::Name => "name",
        EventText::Browser => "browser",
        EventText::BrowserVersion => "browser_version",
        EventText::Os => "os",
        EventText::Device => "device",
        EventText::Country => "location_country",
        EventText::Language => "language",
        EventText::Screen => "screen",
        EventText::Hostname => "hostname",
        EventText::Url => "url",
        EventText::ReferrerHost => "referrer_host",
        EventText::Channel => "channel",
        EventText::Currency => "currency",
        EventText::GroupType => "group_type",
        EventText::GroupId => "group_id",
        EventText::UserId => "user_id",
        EventText::ConsentSource => "consent_source",
    }
}

/// See the module.
pub(super) struct SealedGroup<'p> {
    columns: SealedColumns<'p>,
    /// The positions of its events that were set aside after they were sealed.
    dead: Vec<Position>,
    floor: Option<Day>,
    texts: RefCell<BTreeMap<String, Rc<TextColumn>>>,
    /// The number of rows before the first wanted one, once [`Self::counted`] has found it.
    skipped: Cell<usize>,
}

/// Some rows of a group, in order.
#[derive(Clone)]
pub(super) enum Rows {
    /// The first so many, which are all.
    All(u32),
    /// Those of these numbers.
    Some(Vec<u32>),
}

impl Rows {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::All(count) => *count == 0,
            Self::Some(rows) => rows.is_empty(),
        }
    }

    /// Calls `visit` with the number of each row.
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize)) {
        match self {
            Self::All(count) => (0..*count as usize).for_each(visit),
            Self::Some(rows) => rows.iter().for_each(|row| visit(*row as usize)),
        }
    }

    /// Keeps the rows for which `holds`.
    pub(super) fn retain(&mut self, mut holds: impl FnMut(usize) -> bool) {
        match self {
            Self::All(count) => *self = Self::Some((0..*count).filter(|row| holds(*row as usize)).collect()),
            Self::Some(rows) => rows.retain(|row| holds(*row as usize)),
        }
    }
}

/// The values of a property: a code for each row, and the value of each code. Different codes may
/// have equal values.
pub(super) struct PropertyColumn {
    source: PropertySource,
}

enum PropertySource {
    /// A built-in field that is made of one text.
    Text(BuiltIn, Rc<TextColumn>),
    /// A text as it is stored.
    Stored(Rc<TextColumn>),
    /// A built-in field that is made of several texts: the codes of the rows, and the codes of the
    /// texts for each.
    Texts { field: BuiltIn, columns: Vec<(EventText, Rc<TextColumn>)>, codes: Vec<u32>, of_code: Vec<Vec<u32>> },
    /// A metadata path with a column.
    Scalars(Rc<TextColumn>),
    /// A metadata path without a column.
    Metadata(MetadataPath, Rc<TextColumn>),
}

impl PropertyColumn {
    /// The codes of the rows.
    pub(super) fn codes(&self) -> &[u32] {
        match &self.source {
            PropertySource::Text(_, texts)
            | PropertySource::Stored(texts)
            | PropertySource::Scalars(texts)
            | PropertySource::Metadata(_, texts) => texts.codes(),
            PropertySource::Texts { codes, .. } => codes,
        }
    }

    /// The number of codes.
    pub(super) fn count(&self) -> usize {
        match &self.source {
            PropertySource::Text(_, texts)
            | PropertySource::Stored(texts)
            | PropertySource::Scalars(texts)
            | PropertySource::Metadata(_, texts) => texts.null() as usize + 1,
            PropertySource::Texts { of_code, .. } => of_code.len(),
        }
    }

    /// The value of a code.
    pub(super) fn value(&self, code: u32) -> Scalar<'_> {
        match &self.source {
            PropertySource::Text(field, texts) => field.value_of(|_| texts.value(code)).map_or(Scalar::Null, Scalar::Text),
            PropertySource::Stored(texts) => texts.value(code).map_or(Scalar::Null, |text| Scalar::Text(Cow::Borrowed(text))),
            PropertySource::Texts { field, columns, of_code, .. } => {
                let codes = of_code.get(code as usize).map_or(&[][..], Vec::as_slice);
                let text = |wanted: EventText| {
                    let found = columns.iter().zip(codes).find(|((text, _), _)| *text == wanted);
                    found.and_then(|((_, texts), code)| texts.value(*code))
                };
                field.value_of(text).map_or(Scalar::Null, Scalar::Text)
            }
            PropertySource::Scalars(texts) => texts.value(code).and_then(Scalar::parse).unwrap_or(Scalar::Null),
            PropertySource::Metadata(path, texts) => texts.value(code).map_or(Scalar::Null, |json| path.find(json)),
        }
    }

    /// Whether `holds` for the value of each row, which is evaluated once for each code.
    pub(super) fn tests<'c>(&'c self, holds: impl Fn(&Scalar<'_>) -> bool + 'c) -> impl FnMut(usize) -> bool + 'c {
        let mut known = vec![None; self.count()];
        let codes = self.codes();
        move |row| {
            let code = codes[row];
            *known[code as usize].get_or_insert_with(|| holds(&self.value(code)))
        }
    }
}

/// The money of a row group's events.
pub(super) struct MoneyColumns {
    values: Vec<Option<Amount>>,
    in_project: Vec<Option<Amount>>,
    counted: Vec<bool>,
    currencies: Rc<TextColumn>,
}

impl MoneyColumns {
    /// Whether a row has an order or a refund, be it counted or not.
    pub(super) fn has_any(&self, row: usize) -> bool {
        self.values.get(row).copied().flatten().is_some_and(|amount| !amount.is_zero())
    }

    /// Whether a row has an order or a refund that is not counted: a public key sent it.
    pub(super) fn is_server_only(&self, row: usize) -> bool {
        self.has_any(row) && !self.counted[row]
    }

    /// Returns the money of a row, if it is an order or a refund that counts.
    pub(super) fn of(&self, row: usize) -> Option<CountedMoney> {
        let amount = self.values.get(row).copied().flatten().filter(|amount| self.counted[row] && !amount.is_zero())?;
        let currency = || self.currencies.value(self.currencies.codes()[row]);
        CountedMoney::new(amount, self.in_project[row], || Currency::from_recorded(currency()?.as_bytes()))
    }
}

impl<'p> SealedGroup<'p> {
    /// Events that were set aside, and those of days below `floor`, don't count.
    pub(super) fn new(columns: SealedColumns<'p>, dead: Vec<Position>, floor: Option<Day>) -> Self {
        Self { columns, dead, floor, texts: RefCell::default(), skipped: Cell::default() }
    }

    /// The last wanted position.
    pub(super) fn last(&self) -> Position {
        (*self.columns.reader.positions().end()).min(self.columns.until)
    }

    /// A number for each counted row, which rises from row to row and through all groups and the
    /// log.
    pub(super) fn order_of(&self, row: usize) -> Position {
        // Positions rise by at least one from row to row. A merge may have put wanted events behind
        // others that were read before.
        let first = (*self.columns.reader.positions().start()).max(self.columns.after + 1);
        first + (row - self.skipped.get()) as Position
    }

    /// The events that are wanted and count.
    pub(super) fn counted(&self) -> Result<Rows, ArchiveError> {
        let reader = &self.columns.reader;
        let mut rows = Rows::All(u32::try_from(reader.rows()).unwrap_or(u32::MAX));
        if let Some(set_aside) = reader.read_set_aside()? {
            rows.retain(|row| !set_aside[row]);
        }
        let (first, last) = reader.positions().into_inner();
        if first <= self.columns.after || last > self.columns.until || !self.dead.is_empty() {
            let wanted = self.columns.after + 1..=self.columns.until;
            let positions = reader.read_positions()?;
            self.skipped.set(positions.partition_point(|position| *position <= self.columns.after));
            rows.retain(|row| wanted.contains(&positions[row]) && self.dead.binary_search(&positions[row]).is_err());
        }
        if let Some(start) = self.floor {
            self.retain_days(&mut rows, Window { start, end: Day(i32::MAX) })?;
        }
        Ok(rows)
    }

    /// Keeps the events on days of the window.
    pub(super) fn retain_days(&self, rows: &mut Rows, window: Window) -> Result<(), ArchiveError> {
        let (first, last) = self.columns.reader.days().into_inner();
        if window.contains(first) && window.contains(last) {
            return Ok(());
        }
        if last < window.start || first > window.end {
            *rows = Rows::Some(Vec::new());
            return Ok(());
        }
        let days = self.columns.reader.read_days()?;
        rows.retain(|row| window.contains(days[row]));
        Ok(())
    }

    /// Reads what a property is made of. Fields of the session are null.
    pub(super) fn property(&self, field: &Field) -> Result<PropertyColumn, ArchiveError> {
        let source = match field {
            Field::Metadata(path) => {
                let name = format!("{METADATA_PREFIX}{path}");
                match self.columns.reader.has_column(&name) {
                    true => PropertySource::Scalars(self.texts(&name)?),
                    false => PropertySource::Metadata(path.clone(), self.texts(METADATA)?),
                }
            }
            Field::Session(_) => PropertySource::Stored(Rc::new(TextColumn::empty(self.rows()))),
            Field::BuiltIn(field) => {
                let read = |text: &EventText| Ok((*text, self.texts(column_of(*text))?));
                let mut columns = field.reads().iter().map(read).collect::<Result<Vec<_>, ArchiveError>>()?;
                match columns.pop() {
                    Some((_, texts)) if columns.is_empty() => PropertySource::Text(*field, texts),
                    last => {
                        columns.extend(last);
                        self.combine(*field, columns)
                    }
                }
            }
        };
        Ok(PropertyColumn { source })
    }

    /// Reads what a property of the session is for each event, if that event decides it.
    pub(super) fn decided(&self, field: &Field) -> Result<PropertyColumn, ArchiveError> {
        let stored = match field {
            Field::BuiltIn(BuiltIn::EntryUrl) | Field::Session(SessionField::ExitUrl) => {
                return self.property(&Field::BuiltIn(BuiltIn::Url));
            }
            Field::BuiltIn(BuiltIn::AcquisitionChannel) => "event_channel",
            Field::Session(SessionField::Source) => "event_source",
            Field::Session(SessionField::Medium) => "event_medium",
            Field::Session(SessionField::Campaign) => "event_campaign",
            Field::BuiltIn(_) | Field::Metadata(_) => return self.property(field),
        };
        Ok(PropertyColumn { source: PropertySource::Stored(self.texts(stored)?) })
    }

    /// Reads the money of the events that counts; `None` if no event has any.
    pub(super) fn money(&self) -> Result<Option<MoneyColumns>, ArchiveError> {
        let reader = &self.columns.reader;
        let Some(values) = reader.decimals("value")? else { return Ok(None) };
        let in_project = reader.decimals("value_in_project")?.unwrap_or_else(|| vec![None; values.len()]);
        Ok(Some(MoneyColumns {
            values,
            in_project,
            counted: reader.booleans("value_counted")?,
            currencies: self.texts(column_of(EventText::Currency))?,
        }))
    }

    /// Gives each combination of texts a code.
    fn combine(&self, field: BuiltIn, columns: Vec<(EventText, Rc<TextColumn>)>) -> PropertySource {
        let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
        let (mut codes, mut of_code) = (Vec::with_capacity(self.columns.reader.rows()), Vec::new());
        let mut texts = Vec::new();
        for row in 0..self.columns.reader.rows() {
            texts.clear();
            texts.extend(columns.iter().map(|(_, column)| column.codes()[row]));
            let code = match known.get(&texts) {
                Some(code) => *code,
                None => {
                    let code = u32::try_from(of_code.len()).unwrap_or(u32::MAX);
                    of_code.push(texts.clone());
                    known.insert(texts.clone(), code);
                    code
                }
            };
            codes.push(code);
        }
        PropertySource::Texts { field, columns, codes, of_code }
    }

    /// Reads a column of texts, once.
    pub(super) fn texts(&self, name: &str) -> Result<Rc<TextColumn>, ArchiveError> {
        if let Some(texts) = self.texts.borrow().get(name) {
            return Ok(Rc::clone(texts));
        }
        let texts = Rc::new(self.columns.reader.texts(name)?);
        self.texts.borrow_mut().insert(name.to_owned(), Rc::clone(&texts));
        Ok(texts)
    }

    /// The days of the events, if they are on more than one; else their day.
    pub(super) fn days(&self) -> Result<Result<Vec<Day>, Day>, ArchiveError> {
        let (first, last) = self.columns.reader.days().into_inner();
        if first == last { Ok(Err(first)) } else { self.columns.reader.read_days().map(Ok) }
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.columns.reader.rows()
    }

    /// Which rows have true in a column.
    pub(super) fn booleans(&self, name: &str) -> Result<Vec<bool>, ArchiveError> {
        self.columns.reader.booleans(name)
    }

    /// The positions of the events.
    pub(super) fn positions(&self) -> Result<Vec<Position>, ArchiveError> {
        self.columns.reader.read_positions()
    }

    /// The times of the events, in milliseconds since 1970.
    pub(super) fn times(&self) -> Result<Vec<i64>, ArchiveError> {
        self.columns.reader.read_times()
    }

    /// The ids of cookieless visitors.
    pub(super) fn visitors(&self) -> Result<Vec<Option<u128>>, ArchiveError> {
        self.columns.reader.bytes16("visitor_id")
    }
}
