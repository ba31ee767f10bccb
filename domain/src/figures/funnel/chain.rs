//! Chains: events that fit one step after another.

use std::rc::Rc;

use crate::figures::CountedMoney;
use crate::moment::Moment;

use super::sequence::StepEvent;

/// An event of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainLink {
    /// When it happened.
    pub at: Moment,
    /// Its money.
    pub money: Option<CountedMoney>,
}

/// Events that fit one step after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The value of the event that began it.
    value: Option<Rc<[u8]>>,
    /// At least one.
    links: Vec<ChainLink>,
}

impl Chain {
    pub(super) fn of(event: &StepEvent<'_>) -> Self {
        let value = (!event.value.is_empty()).then(|| event.value.into());
        Self { value, links: vec![event.link()] }
    }

    pub(super) fn push(&mut self, event: &StepEvent<'_>) {
        self.links.push(event.link());
    }

    /// Becomes another chain.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.value.clone_from(&other.value);
        self.links.clone_from(&other.links);
    }

    pub(super) fn start(&self) -> Option<Moment> {
        self.links.first().map(|link| link.at)
    }

    /// The key of the value of the event that began it; empty if events have none.
    pub fn value(&self) -> &[u8] {
        self.value.as_deref().unwrap_or_default()
    }

    /// Its events.
    pub fn links(&self) -> &[ChainLink] {
        &self.links
    }
}
