//! What an event carries of itself, for explanations: which event it is, and what it is to
//! attribution.

use std::rc::Rc;

use headcount_archive::{ArchiveError, TextColumn};
use headcount_domain::acquisition::DIRECT;
use headcount_domain::facts::Moment;
use headcount_domain::figures::AttributedTo;
use headcount_domain::queries::Dimension;
use headcount_domain::{Event, Instant, KeyHasher, Position, RecordKey};

use super::super::sealed_group::{MoneyColumns, SealedGroup};

/// The event is a touch.
const TOUCH: u8 = 1;
/// The touch has the value that is explained.
const HAS_VALUE: u8 = 2;
const CONSENT: u8 = 4;
/// A public key sent its money to a project that accepts money from servers only.
const SERVER_ONLY: u8 = 8;
/// The key of the company that the event names follows.
const COMPANY: u8 = 16;
/// The event's moment follows.
const MOMENT: u8 = 32;

const KEY: usize = size_of::<u128>();
const WORD: usize = size_of::<u64>();

/// Which details events carry.
#[derive(Clone, Copy)]
pub(in super::super) struct WantedDetails<'q> {
    /// Only events with money are chosen.
    pub(in super::super) only_money: bool,
    /// Every event carries what it is to attribution.
    pub(in super::super) touches: Option<&'q AttributedTo>,
    /// Events carry the company that they name.
    pub(in super::super) companies: bool,
}

/// The details of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct Detail {
    pub(in super::super) is_touch: bool,
    pub(in super::super) touch_has_value: bool,
    pub(in super::super) has_consent: bool,
    pub(in super::super) is_server_only: bool,
    /// The company that it names.
    pub(in super::super) company: Option<RecordKey>,
    /// Its moment, if it can be chosen.
    pub(in super::super) at: Option<Moment>,
}

impl Detail {
    fn write(&self, to: &mut Vec<u8>) {
        let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
        to.push(
            flag(TOUCH, self.is_touch)
                | flag(HAS_VALUE, self.touch_has_value)
                | flag(CONSENT, self.has_consent)
                | flag(SERVER_ONLY, self.is_server_only)
                | flag(COMPANY, self.company.is_some())
                | flag(MOMENT, self.at.is_some()),
        );
        if let Some(RecordKey(company)) = self.company {
            to.extend_from_slice(&company.to_le_bytes());
        }
        if let Some(Moment { time, position }) = self.at {
            to.extend_from_slice(&time.0.to_le_bytes());
            to.extend_from_slice(&position.to_le_bytes());
        }
    }

    /// Reads the details that an event carries.
    pub(in super::super) fn read(bytes: &[u8]) -> Self {
        let Some((flags, mut rest)) = bytes.split_first() else { return Self::default() };
        let has = |flag: u8| flags & flag > 0;
        let mut company = None;
        if has(COMPANY)
            && let Some((key, after)) = rest.split_first_chunk::<KEY>()
        {
            company = Some(RecordKey(u128::from_le_bytes(*key)));
            rest = after;
        }
        let at = rest.split_first_chunk::<WORD>().filter(|_| has(MOMENT)).and_then(|(time, rest)| {
            let position = rest.try_into().ok().map(Position::from_le_bytes)?;
            Some(Moment { time: Instant(i64::from_le_bytes(*time)), position })
        });
        Self {
            is_touch: has(TOUCH),
            touch_has_value: has(HAS_VALUE),
            has_consent: has(CONSENT),
            is_server_only: has(SERVER_ONLY),
            company,
            at,
        }
    }
}

fn has_money(event: &Event) -> bool {
    event.money.as_ref().is_some_and(|money| !money.amount.is_zero())
}

impl WantedDetails<'_> {
    /// Whether an event can be chosen, as far as its money is concerned.
    pub(super) fn chooses(&self, event: &Event) -> bool {
        !self.only_money || has_money(event)
    }

    /// Appends the details of an event of the log. `is_chosen`: the event may count.
    pub(super) fn write(&self, event: &Event, position: Position, is_chosen: bool, hasher: &KeyHasher, to: &mut Vec<u8>) {
        let mut detail = Detail::default();
        if let Some(attributed) = self.touches {
            let acquisition = event.details.acquisition.as_ref().filter(|acquisition| !acquisition.is_direct());
            if let Some(acquisition) = acquisition {
                let value = match attributed.dimension {
                    Dimension::Source => &acquisition.source,
                    Dimension::Medium => &acquisition.medium,
                    Dimension::Campaign => &acquisition.campaign,
                };
                (detail.is_touch, detail.touch_has_value) = (true, attributed.selects(Some(value)));
            }
        }
        if self.companies {
            detail.company = event.company.as_ref().map(|company| hasher.company(company.as_str()));
        }
        if is_chosen {
            detail.has_consent = event.has_consent();
            detail.is_server_only = has_money(event) && event.money.is_some_and(|money| !money.counted);
            detail.at = Some(Moment { time: event.time, position });
        }
        detail.write(to);
    }
}

/// The columns of a row group that details are made of.
pub(super) struct DetailColumns<'h> {
    hasher: &'h KeyHasher,
    positions: Vec<Position>,
    consents: Vec<bool>,
    only_money: bool,
    touches: Option<TouchColumns>,
    companies: Option<(Rc<TextColumn>, Vec<Option<RecordKey>>)>,
}

struct TouchColumns {
    sources: Rc<TextColumn>,
    values: Rc<TextColumn>,
    attributed: AttributedTo,
}

impl<'h> DetailColumns<'h> {
    pub(super) fn read(group: &SealedGroup<'_>, wanted: WantedDetails<'_>, hasher: &'h KeyHasher) -> Result<Self, ArchiveError> {
        let touches = |attributed: &AttributedTo| {
            let values = match attributed.dimension {
                Dimension::Source => "event_source",
                Dimension::Medium => "event_medium",
                Dimension::Campaign => "event_campaign",
            };
            let attributed = attributed.clone();
            Ok(TouchColumns { sources: group.texts("event_source")?, values: group.texts(values)?, attributed })
        };
        let companies = wanted.companies.then(|| group.texts("company")).transpose()?;
        Ok(Self {
            hasher,
            positions: group.positions()?,
            consents: group.booleans("consented")?,
            only_money: wanted.only_money,
            touches: wanted.touches.map(touches).transpose()?,
            companies: companies.map(|texts| (Rc::clone(&texts), vec![None; texts.null() as usize])),
        })
    }

    /// Whether the event of a row can be chosen, as far as its money is concerned.
    pub(super) fn chooses(&self, row: usize, money: Option<&MoneyColumns>) -> bool {
        !self.only_money || money.is_some_and(|money| money.has_any(row))
    }

    /// Appends the details of a row. `is_chosen`: the event may count.
    pub(super) fn write(&mut self, row: usize, time_ms: i64, is_chosen: bool, money: Option<&MoneyColumns>, to: &mut Vec<u8>) {
        let mut detail = Detail::default();
        if let Some(TouchColumns { sources, values, attributed }) = &self.touches {
            let source = sources.value(sources.codes()[row]);
            detail.is_touch = source.is_some_and(|source| source != DIRECT);
            detail.touch_has_value = detail.is_touch && attributed.selects(values.value(values.codes()[row]));
        }
        if let Some((texts, known)) = &mut self.companies {
            let code = texts.codes()[row];
            if let Some(key) = known.get_mut(code as usize) {
                let hash = || self.hasher.company(texts.value(code).unwrap_or_default());
                detail.company = Some(*key.get_or_insert_with(hash));
            }
        }
        if is_chosen {
            detail.has_consent = self.consents[row];
            detail.is_server_only = money.is_some_and(|money| money.is_server_only(row));
            detail.at = Some(Moment { time: Instant(time_ms), position: self.positions[row] });
        }
        detail.write(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_read_back() {
        for number in 0..64_u8 {
            let has = |bit: u8| number >> bit & 1 > 0;
            let detail = Detail {
                is_touch: has(0),
                touch_has_value: has(1),
                has_consent: has(2),
                is_server_only: has(3),
                company: has(4).then_some(RecordKey(u128::MAX - 5)),
                at: has(5).then_some(Moment { time: Instant(-7), position: u64::MAX - 1 }),
            };
            let mut bytes = Vec::new();
            detail.write(&mut bytes);
            assert_eq!(Detail::read(&bytes), detail);
        }
    }
}
