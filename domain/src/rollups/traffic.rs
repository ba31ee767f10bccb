//! Sessions and bounces per day, by channel and touch.

use crate::acquisition::Channel;
use crate::cells::packed::Columns;
use crate::cells::{Key, Value, signed, unsigned};
use crate::facts::Touch;
use crate::indexes::dictionary::TermId;
use crate::rollups::rollup::rollup;

/// The sums of sessions with the same channel and touch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Visits {
    /// The number of sessions.
    pub sessions: i64,
    /// The number of sessions with exactly one event.
    pub bounces: i64,
}

impl Visits {
    /// Adds two sums.
    #[must_use]
    pub fn plus(self, other: Visits) -> Visits {
        Visits { sessions: self.sessions + other.sessions, bounces: self.bounces + other.bounces }
    }
}

impl Value for Visits {
    fn columns(self) -> Columns {
        [unsigned(self.sessions.into()), unsigned(self.bounces.into()), 0, 0]
    }

    fn from_columns(columns: &Columns) -> Self {
        Self { sessions: i64::from_columns(columns), bounces: i64::try_from(signed(columns[1])).unwrap_or_default() }
    }
}

/// The day on which sessions began, their channel, and their source, medium and campaign; `None`:
/// none of the three is known.
pub type DayAndTouch = (i32, Channel, Option<Touch>);

/// Encoded as the index in the list of channels.
impl Key for Channel {
    const BYTES: usize = 1;

    fn pack(self, to: &mut [u8]) {
        (self as u8).pack(to);
    }

    fn unpack(from: &[u8]) -> Self {
        Self::ALL.get(usize::from(u8::unpack(from))).copied().unwrap_or(Self::Direct)
    }
}

impl Key for Option<Touch> {
    const BYTES: usize = 13;

    fn pack(self, to: &mut [u8]) {
        let Some(Touch { source, medium, campaign }) = self else { return to.fill(0) };
        (1u8, (source.0, medium.0, campaign.0)).pack(to);
    }

    fn unpack(from: &[u8]) -> Self {
        let (there, (source, medium, campaign)): (u8, _) = Key::unpack(from);
        let touch = Touch { source: TermId(source), medium: TermId(medium), campaign: TermId(campaign) };
        (there != 0).then_some(touch)
    }
}

impl Value for Option<Touch> {
    fn columns(self) -> Columns {
        let Some(Touch { source, medium, campaign }) = self else { return [0; 4] };
        [1, source.0.into(), medium.0.into(), campaign.0.into()]
    }

    fn from_columns(columns: &Columns) -> Self {
        let [there, source, medium, campaign] = columns.map(|column| u32::try_from(column).unwrap_or_default());
        let touch = Touch { source: TermId(source), medium: TermId(medium), campaign: TermId(campaign) };
        (there != 0).then_some(touch)
    }
}

rollup! {
    /// See the module.
    TrafficByTouch: tag 10, "traffic", room Sled, version 1, figure Traffic, dated,
    key DayAndTouch => value Visits,
    of Identity when |change| !change.sessions.is_empty(),
    |facts, change, sign, cells| {
        for session in facts.sessions(change.sessions) {
            cells.change((session.day.0, session.channel, session.touch), |visits| {
                visits.sessions += sign.factor();
                visits.bounces += sign.factor() * i64::from(session.events == 1);
            });
        }
    }
}
