//! What an event carries through the sorts, as bytes.

use headcount_domain::facts::Moment;
use headcount_domain::figures::CountedMoney;
use headcount_domain::{Amount, Currency, Instant, PartSet, Position};

use super::super::sessions::InSession;

/// The event itself matches, apart from its session.
const MATCHES: u16 = 1;
const PAGEVIEW: u16 = 2;
const HAS_PAGE: u16 = 4;
const HAS_SOURCE: u16 = 8;
/// The parts of the predicate follow.
const PARTS: u16 = 16;
/// The length of what the event is to goals, and that, follow.
const GOALS: u16 = 32;
const MONEY: u16 = 128;
/// The flag of the first window. That of the second is the next bit.
const IN_FIRST_WINDOW: u16 = 256;

/// The bytes of a bucket, and of money: currency, amount, whether it is an order.
const BUCKET: usize = size_of::<u16>();
pub(super) const MONEY_BYTES: usize = 3 + size_of::<i128>() + 1;
const NO_CURRENCY: [u8; 3] = [0; 3];

/// An event, as it is carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct Carried<'c> {
    pub(super) matches: bool,
    pub(super) is_pageview: bool,
    pub(super) has_page: bool,
    pub(super) has_source: bool,
    /// The parts of the predicate that hold for it, and for its session if it decides them.
    pub(super) parts: PartSet,
    /// The bucket of each window that the event is in.
    pub(super) buckets: [Option<u16>; 2],
    pub(in super::super) money: Option<CountedMoney>,
    /// What it is to the goals of the question.
    pub(super) goals: &'c [u8],
    /// The numbers of the goals that it fits, once its session is known.
    pub(in super::super) goals_met: &'c [usize],
    /// The values that rows are of, then details.
    pub(in super::super) key: &'c [u8],
}

/// When an event happened, and how it stands in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct MetAt {
    /// In the order of recording among events of one instant.
    pub(in super::super) at: Moment,
    /// Whether it makes its session; else it is attached, or alone.
    pub(in super::super) is_interactive: bool,
}

impl MetAt {
    pub(super) const BYTES: usize = 8 + 8 + 1;

    pub(super) fn of(event: &InSession<'_>) -> Self {
        let at = Moment { time: Instant(event.time_ms), position: event.order };
        Self { at, is_interactive: event.is_interactive }
    }

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.at.time.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.at.position.to_le_bytes());
        bytes[16] = self.is_interactive.into();
        bytes
    }

    /// Reads what [`MetAt::to_bytes`] wrote, and returns the rest.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (time, rest) = bytes.split_first_chunk()?;
        let (position, rest) = rest.split_first_chunk()?;
        let (is_interactive, rest) = rest.split_first()?;
        let at = Moment { time: Instant(i64::from_le_bytes(*time)), position: Position::from_le_bytes(*position) };
        Some((Self { at, is_interactive: *is_interactive > 0 }, rest))
    }
}

impl<'c> Carried<'c> {
    /// Whether the event counts in one of the windows if its session matches.
    pub(super) fn may_count(&self) -> bool {
        self.matches && self.buckets.iter().any(Option::is_some)
    }

    /// Appends it to `to`.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        let flag = |flag: u16, is_set: bool| if is_set { flag } else { 0 };
        let flags = flag(MATCHES, self.matches)
            | flag(PAGEVIEW, self.is_pageview)
            | flag(HAS_PAGE, self.has_page)
            | flag(HAS_SOURCE, self.has_source)
            | flag(PARTS, self.parts != PartSet::default())
            | flag(GOALS, !self.goals.is_empty())
            | flag(IN_FIRST_WINDOW, self.buckets[0].is_some())
            | flag(IN_FIRST_WINDOW << 1, self.buckets[1].is_some())
            | flag(MONEY, self.money.is_some());
        to.extend_from_slice(&flags.to_le_bytes());
        if self.parts != PartSet::default() {
            to.extend_from_slice(&self.parts.0.to_le_bytes());
        }
        self.buckets.iter().flatten().for_each(|bucket| to.extend_from_slice(&bucket.to_le_bytes()));
        if let Some(money) = self.money {
            write_money(money, to);
        }
        if !self.goals.is_empty() {
            to.extend_from_slice(&u16::try_from(self.goals.len()).unwrap_or(u16::MAX).to_le_bytes());
            to.extend_from_slice(self.goals);
        }
        to.extend_from_slice(self.key);
    }

    /// Reads what [`Carried::write`] wrote.
    pub(super) fn read(bytes: &'c [u8]) -> Self {
        let Some((flags, mut rest)) = bytes.split_first_chunk() else { return Self::default() };
        let flags = u16::from_le_bytes(*flags);
        let has = |flag: u16| flags & flag > 0;
        let mut parts = PartSet::default();
        if let Some((written, after)) = rest.split_first_chunk().filter(|_| has(PARTS)) {
            (parts, rest) = (PartSet(u64::from_le_bytes(*written)), after);
        }
        let mut bucket = |number: usize| {
            let (bucket, after) = rest.split_at_checked(BUCKET).filter(|_| has(IN_FIRST_WINDOW << number))?;
            rest = after;
            bucket.try_into().ok().map(u16::from_le_bytes)
        };
        let buckets = [bucket(0), bucket(1)];
        let mut money = None;
        if has(MONEY)
            && let Some((written, after)) = rest.split_at_checked(MONEY_BYTES)
        {
            money = read_money(written);
            rest = after;
        }
        let mut goals = &[][..];
        if let Some((length, after)) = rest.split_first_chunk().filter(|_| has(GOALS))
            && let Some((written, after)) = after.split_at_checked(u16::from_le_bytes(*length).into())
        {
            (goals, rest) = (written, after);
        }
        Self {
            matches: has(MATCHES),
            is_pageview: has(PAGEVIEW),
            has_page: has(HAS_PAGE),
            has_source: has(HAS_SOURCE),
            parts,
            buckets,
            money,
            goals,
            goals_met: &[],
            key: rest,
        }
    }
}

pub(super) fn write_money(CountedMoney { amount, is_order, unconverted }: CountedMoney, to: &mut Vec<u8>) {
    to.extend_from_slice(&unconverted.map_or(NO_CURRENCY, Currency::code));
    to.extend_from_slice(&amount.micros().to_le_bytes());
    to.push(is_order.into());
}

pub(super) fn read_money(bytes: &[u8]) -> Option<CountedMoney> {
    let (currency, rest) = bytes.split_at_checked(NO_CURRENCY.len())?;
    let (amount, is_order) = rest.split_at_checked(size_of::<i128>())?;
    Some(CountedMoney {
        amount: Amount::from_micros(i128::from_le_bytes(amount.try_into().ok()?)),
        is_order: is_order == [1],
        unconverted: Currency::from_recorded(currency),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_reads_back() {
        let amount = Amount::from_micros(-5);
        let euro = Currency::parse("EUR").ok();
        for number in 0..1_u16 << 10 {
            let has = |bit: u8| number >> bit & 1 > 0;
            let carried = Carried {
                matches: has(0),
                is_pageview: has(1),
                has_page: has(2),
                has_source: has(3),
                parts: PartSet(u64::from(has(4)) << 63 | u64::from(has(5))),
                buckets: [has(8).then_some(700), has(9).then_some(u16::MAX)],
                money: has(7).then_some(CountedMoney { amount, is_order: has(0), unconverted: euro.filter(|_| has(1)) }),
                goals: if has(6) { b"\x01\x02\x03" } else { b"" },
                goals_met: &[],
                key: b"\x00\x01key",
            };
            let at = Moment { time: Instant(-i64::from(number)), position: number.into() };
            let met = MetAt { at, is_interactive: has(0) };
            let mut bytes = met.to_bytes().to_vec();
            carried.write(&mut bytes);
            let (read, rest) = MetAt::read(&bytes).unwrap();
            assert_eq!((read, Carried::read(rest)), (met, carried));
        }
    }
}
