//! The events of chains.

use crate::figures::CountedMoney;
use crate::moment::Moment;

/// An event of a sequence.
#[derive(Debug, Clone, Copy)]
pub struct StepEvent<'e> {
    /// When it happened. Events come in this order.
    pub at: Moment,
    /// A bit for each step that it fits.
    pub steps: u16,
    /// Whether it is in the window, so that a chain can begin at it.
    pub may_begin: bool,
    /// Its money.
    pub money: Option<CountedMoney>,
    /// The key of the value by which rows are divided.
    pub value: &'e [u8],
}

impl StepEvent<'_> {
    pub(super) fn fits(&self, step: usize) -> bool {
        self.steps >> step & 1 > 0
    }

    pub(super) fn link(&self) -> ChainLink {
        ChainLink { at: self.at, money: self.money }
    }
}

/// An event of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainLink {
    /// When it happened.
    pub at: Moment,
    /// Its money.
    pub money: Option<CountedMoney>,
}
