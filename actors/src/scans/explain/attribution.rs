//! Explains revenue under a touch: touches and orders are sorted by entity and time, so that each
//! order meets its touch.

use std::io;

use headcount_domain::facts::Moment;
use headcount_domain::figures::{AttributedTo, ExplainedFigure, MoneyOutcome, Reason};
use headcount_domain::queries::{Dimension, EarlierTouches, EarlierTouchesQuery, EntityLevel, NamedTouch, TouchModel};
use headcount_domain::{Amount, Instant, Position, RecordKey};

use super::super::accounts::{Accounts, ENTITY, EntityKey};
use super::super::error::{Result, check};
use super::super::events::{IDS_A_QUESTION, Scan};
use super::super::external_sort::Sorter;
use super::super::identities::{KEY, bytes, key_of};
use super::super::record_sort::{RecordSorter, SortedRecords};
use super::super::sessions::InSession;
use super::super::visits::{Carried, CountedIdentity, CountedOwner, CountedSession, Detail, VisitCounts};
use super::found::FoundEvents;

/// The place of a record among those of its entity: a phase, a time, a kind, a position.
const PLACE: usize = 1 + 8 + 1 + 8;
const TOUCH: u8 = 0;
const ORDER: u8 = 1;
/// An order after its place: its identity, its amount, and why it counts or does not.
const ORDER_BYTES: usize = KEY + size_of::<i128>() + 1;
const REASONS: [Reason; 4] = [Reason::Order, Reason::Refund, Reason::ServerOnly, Reason::NoRate];

/// Collects all touches, and the money of chosen events.
pub(super) struct AttributedEvents<'s> {
    scan: &'s Scan<'s>,
    attributed: &'s AttributedTo,
    sort_bytes: usize,
    pub(super) found: FoundEvents,
    /// `None`: entities are identities.
    accounts: Option<Accounts>,
    /// Records by entity, as it was reported.
    reported: RecordSorter,
}

impl<'s> AttributedEvents<'s> {
    /// Prepares to collect. Costs a pass over the project's events if entities are accounts.
    pub(super) fn new(scan: &'s Scan<'s>, attributed: &'s AttributedTo, found: FoundEvents, sort_bytes: usize) -> Result<Self> {
        let accounts = match attributed.level {
            EntityLevel::Account => Some(Accounts::read(scan, sort_bytes)?),
            EntityLevel::Identity => None,
        };
        Ok(Self { scan, attributed, sort_bytes, found, accounts, reported: RecordSorter::new(scan.scratch(), sort_bytes) })
    }

    /// Returns the entity of an event of an identity, which may name a company.
    fn entity(&mut self, identity: RecordKey, named: Option<RecordKey>) -> io::Result<EntityKey> {
        self.accounts.as_mut().map_or(Ok(EntityKey::of_identity(identity)), |accounts| accounts.of(identity, named))
    }

    /// The first touch comes before all orders; the last one by its time.
    fn touch_phase(&self) -> u8 {
        u8::from(self.attributed.model == TouchModel::LastTouch)
    }

    /// Finds the money under the value that is asked for, once all sessions were visited.
    pub(super) fn finish(self) -> Result<FoundEvents> {
        let touch_phase = self.touch_phase();
        let Self { scan, attributed, sort_bytes, mut found, accounts, reported, .. } = self;
        let mut domains = accounts.map(|accounts| accounts.finish(scan)).transpose()?;
        let scratch = scan.scratch();
        let (mut resolved, mut with_orders) = (RecordSorter::new(scratch, sort_bytes), Sorter::new(scratch, ENTITY, sort_bytes));
        let mut reported = reported.finish()?;
        while let Some(record) = reported.next()? {
            check(scan.cancelled)?;
            let (entity, rest) = record.split_at(ENTITY.min(record.len()));
            let entity = EntityKey::read(entity);
            let entity = domains.as_mut().map_or(Ok(entity), |domains| domains.account(entity))?;
            if scan.floor.is_some() && kind_of(rest) == ORDER {
                with_orders.push(entity.to_bytes())?;
            }
            resolved.push(&[&entity.to_bytes(), rest])?;
        }
        add_touches_below_floor(scan, with_orders, &mut |entity, earlier| {
            let touch = match attributed.model {
                TouchModel::FirstTouch => earlier.first,
                TouchModel::LastTouch => earlier.last,
            };
            let Some(touch) = touch else { return Ok(()) };
            let has_value = attributed.selects(Some(value_of(&touch, attributed.dimension)));
            // It comes before all that the scan met.
            let place = place((touch_phase, TOUCH), Moment::first_of(Instant(i64::MIN)));
            resolved.push(&[&entity.to_bytes(), &place, &[has_value.into()]])
        })?;
        attribute(scan, attributed, resolved.finish()?, &mut found)?;
        Ok(found)
    }
}

impl VisitCounts for AttributedEvents<'_> {
    fn met(&mut self, identity: RecordKey, event: &InSession<'_>, key: &[u8]) -> io::Result<()> {
        let detail = Detail::read(key);
        if !detail.is_touch {
            return Ok(());
        }
        let entity = self.entity(identity, detail.company)?;
        let at = Moment { time: Instant(event.time_ms), position: event.order };
        let place = place((self.touch_phase(), TOUCH), at);
        self.reported.push(&[&entity.to_bytes(), &place, &[detail.touch_has_value.into()]])
    }

    fn event(&mut self, of: CountedOwner<'_>, event: &Carried<'_>, key: &[u8]) -> io::Result<()> {
        let detail = Detail::read(key);
        let Some(at) = detail.at else { return Ok(()) };
        let Some(outcome) = ExplainedFigure::Attribution.of_money(event.money, detail.is_server_only) else { return Ok(()) };
        let Some(CountedIdentity { key: identity, .. }) = of.identity else {
            // Money without an identity has no touch.
            count(self.attributed.selects(None).then_some(Reason::Direct), (at, None), outcome, &mut self.found);
            return Ok(());
        };
        let entity = self.entity(identity, detail.company)?;
        let (amount, why) = outcome.unwrap_or_else(|why| (Amount::ZERO, why));
        let reason = REASONS.iter().position(|reason| *reason == why).and_then(|reason| u8::try_from(reason).ok());
        let amount = amount.micros().to_le_bytes();
        self.reported.push(&[
            &entity.to_bytes(),
            &place((1, ORDER), at),
            &bytes(identity),
            &amount,
            &[reason.unwrap_or_default()],
        ])
    }

    fn session(&mut self, _: &CountedSession, _: [bool; 2], _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// The place of a record of a phase and a kind among those of its entity.
fn place((phase, kind): (u8, u8), Moment { time, position }: Moment) -> [u8; PLACE] {
    let mut place = [0; PLACE];
    place[0] = phase;
    place[1..9].copy_from_slice(&(time.0.cast_unsigned() ^ 1 << 63).to_be_bytes());
    place[9] = kind;
    place[10..].copy_from_slice(&position.to_be_bytes());
    place
}

fn kind_of(place: &[u8]) -> u8 {
    place.get(9).copied().unwrap_or(TOUCH)
}

fn moment_of(place: &[u8]) -> Moment {
    let word = |at: usize| place.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_be_bytes);
    let position: Position = word(10);
    Moment { time: Instant((word(1) ^ 1 << 63).cast_signed()), position }
}

fn value_of(touch: &NamedTouch, dimension: Dimension) -> &str {
    match dimension {
        Dimension::Source => &touch.source,
        Dimension::Medium => &touch.medium,
        Dimension::Campaign => &touch.campaign,
    }
}

/// Asks the shard for the touches of entities below the project's floor, if it has one.
fn add_touches_below_floor(
    scan: &Scan<'_>,
    entities: Sorter<ENTITY>,
    add: &mut dyn FnMut(EntityKey, EarlierTouches) -> io::Result<()>,
) -> Result<()> {
    let Some(floor) = scan.floor else { return Ok(()) };
    let before = scan.timezone.start_of(floor);
    let mut ask = |asked: Vec<EntityKey>| -> Result<()> {
        check(scan.cancelled)?;
        let level = |is_company: bool| if is_company { EntityLevel::Account } else { EntityLevel::Identity };
        let entities = asked.iter().map(|entity| (entity.key, level(entity.is_company))).collect();
        let query = EarlierTouchesQuery { entities, before };
        let earlier = scan.ask(query)?;
        Ok(asked.into_iter().zip(earlier).try_for_each(|(entity, earlier)| add(entity, earlier))?)
    };
    let mut asked = Vec::new();
    for entity in entities.finish()? {
        asked.push(EntityKey::read(&entity?));
        if asked.len() >= IDS_A_QUESTION {
            ask(std::mem::take(&mut asked))?;
        }
    }
    ask(asked)
}

/// Passes each order to `found` if its touch has the value. The records of an entity follow each
/// other, and touches come before the orders that they count for.
fn attribute(scan: &Scan<'_>, attributed: &AttributedTo, mut records: SortedRecords, found: &mut FoundEvents) -> Result<()> {
    let mut entity = None;
    // Whether the touch has the value, if there is one yet.
    let mut touch: Option<bool> = None;
    while let Some(record) = records.next()? {
        check(scan.cancelled)?;
        let (key, rest) = record.split_at(ENTITY.min(record.len()));
        let (place, rest) = rest.split_at(PLACE.min(rest.len()));
        let key = EntityKey::read(key);
        if entity.replace(key) != Some(key) {
            touch = None;
        }
        if kind_of(place) == TOUCH {
            if touch.is_none() || attributed.model == TouchModel::LastTouch {
                touch = Some(rest == [1]);
            }
            continue;
        }
        let Some((identity, outcome)) = read_order(rest) else { continue };
        let under = match touch {
            Some(has_value) => has_value.then_some(Reason::Touch),
            None => attributed.selects(None).then_some(Reason::Direct),
        };
        count(under, (moment_of(place), Some(identity)), outcome, found);
    }
    Ok(())
}

fn read_order(bytes: &[u8]) -> Option<(RecordKey, MoneyOutcome)> {
    let (identity, rest) = bytes.get(..ORDER_BYTES)?.split_at(KEY);
    let (amount, why) = rest.split_at(size_of::<i128>());
    let amount = Amount::from_micros(i128::from_le_bytes(amount.try_into().ok()?));
    let why = *REASONS.get(usize::from(*why.first()?))?;
    let is_counted = matches!(why, Reason::Order | Reason::Refund);
    Some((key_of(identity), if is_counted { Ok((amount, why)) } else { Err(why) }))
}

/// Adds money to the list where it belongs; `under` is why it has the value that is asked for, if
/// it has.
fn count(under: Option<Reason>, (at, identity): (Moment, Option<RecordKey>), outcome: MoneyOutcome, found: &mut FoundEvents) {
    let Some(under) = under else { return };
    match outcome {
        Ok((amount, _)) => found.add(at, identity, amount, under),
        Err(why) => found.leave_out(at, identity, why),
    }
}
