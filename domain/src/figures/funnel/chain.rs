//! Chains: events that fit one step after another.

use std::rc::Rc;

use crate::moment::Moment;

use super::event::{ChainLink, StepEvent};

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

/// How deep a chain is, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReachedDepth {
    /// The number of its steps.
    pub depth: usize,
    /// When the last of them was done.
    pub at: Moment,
}

impl ReachedDepth {
    /// Whether this takes the place of another chain: it is deeper, or as deep earlier.
    pub fn is_before(&self, other: &Self) -> bool {
        self.depth > other.depth || (self.depth == other.depth && self.at < other.at)
    }
}
