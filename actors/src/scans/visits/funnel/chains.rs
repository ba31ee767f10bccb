//! The deepest chain of each entity.

use std::io;
use std::sync::atomic::AtomicBool;

use headcount_domain::figures::{Chain, ChainLength, EarliestChains, FunnelSteps, ReachedDepth, SequenceFold, StepOrder};

use super::super::super::accounts::EntityKey;
use super::super::super::error::{Result, check};
use super::super::super::events::Scan;
use super::super::super::record_sort::SortedRecords;
use super::super::super::session_buffer::SessionBuffer;
use super::SHARE;
use super::record::FoundStep;

/// The number of records after which a scan checks whether somebody still waits for it.
const CHECK_EVERY: u64 = 4_096;

/// How deep the chains of an entity are.
pub(super) struct EntityChains<'c> {
    pub(super) entity: EntityKey,
    /// In each window.
    pub(super) reached: [Option<ReachedDepth>; 2],
    /// The chain of the first window that was the first to reach the depth.
    pub(super) chain: Option<&'c Chain>,
}

type Visitor<'v> = dyn FnMut(EntityChains<'_>) -> io::Result<()> + 'v;

/// Passes the chains of each entity to `visit`.
pub(super) fn visit_chains(
    scan: &Scan<'_>,
    steps: &FunnelSteps,
    mut found: SortedRecords,
    sort_bytes: usize,
    visit: &mut Visitor<'_>,
) -> Result<()> {
    let fold = || SequenceFold::new(steps.steps.len(), steps.length, steps.order);
    let buffer = SessionBuffer::new(scan.scratch(), sort_bytes / SHARE);
    let mut open = OpenEntity {
        cancelled: scan.cancelled,
        steps,
        place: None,
        windows: [fold(), fold()],
        reached: [None; 2],
        chain: None,
        buffer,
    };
    let mut seen = 0_u64;
    while let Some(record) = found.next()? {
        seen += 1;
        if seen.is_multiple_of(CHECK_EVERY) {
            check(scan.cancelled)?;
        }
        added(scan, open.add(record, visit))?;
    }
    added(scan, open.end_entity(visit))
}

/// Tells an error from a scan that nobody waits for.
fn added(scan: &Scan<'_>, result: io::Result<()>) -> Result<()> {
    result.or_else(|error| check(scan.cancelled).and(Err(error.into())))
}

/// The entity whose events are being read.
struct OpenEntity<'q> {
    cancelled: &'q AtomicBool,
    steps: &'q FunnelSteps,
    /// The entity, and the sequence.
    place: Option<(EntityKey, u64)>,
    /// The open sequence in each window.
    windows: [SequenceFold; 2],
    /// The depth of the former sequences of the entity.
    reached: [Option<ReachedDepth>; 2],
    chain: Option<Chain>,
    /// The events of the sequence, if they are read twice.
    buffer: SessionBuffer,
}

impl OpenEntity<'_> {
    fn add(&mut self, record: &[u8], visit: &mut Visitor<'_>) -> io::Result<()> {
        let Some((entity, step)) = FoundStep::read(record) else { return Ok(()) };
        let place = (entity, step.sequence);
        if let Some(open) = self.place.filter(|open| *open != place) {
            if open.0 == entity { self.end_sequence()? } else { self.end_entity(visit)? }
        }
        self.place = Some(place);
        for (number, window) in self.windows.iter_mut().enumerate() {
            if let Some(event) = step.in_window(number) {
                window.add(&event);
            }
        }
        if self.steps.order == StepOrder::Any && step.windows[0].is_some() { self.buffer.push(&[record]) } else { Ok(()) }
    }

    fn end_sequence(&mut self) -> io::Result<()> {
        for number in 0..self.windows.len() {
            let Some((reached, chain)) = self.windows[number].end() else { continue };
            if self.reached[number].is_some_and(|before| !reached.is_before(&before)) {
                continue;
            }
            self.reached[number] = Some(reached);
            if number == 0 {
                self.chain = if chain.is_some() { chain } else { self.earliest(reached)? };
            }
        }
        self.buffer.clear();
        Ok(())
    }

    /// Reads the events of the sequence again, to find its chain.
    fn earliest(&mut self, reached: ReachedDepth) -> io::Result<Option<Chain>> {
        let length = if let ChainLength::Within(length) = self.steps.length { Some(length) } else { None };
        let mut chains = EarliestChains::new(length, reached);
        let (cancelled, mut seen) = (self.cancelled, 0_u64);
        self.buffer.drain(|record| {
            seen += 1;
            if seen.is_multiple_of(CHECK_EVERY) && check(cancelled).is_err() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let event = FoundStep::read(record).and_then(|(_, step)| step.in_window(0));
            event.iter().for_each(|event| chains.add(event));
            Ok(())
        })?;
        Ok(chains.finish())
    }

    fn end_entity(&mut self, visit: &mut Visitor<'_>) -> io::Result<()> {
        self.end_sequence()?;
        let (reached, chain) = (std::mem::take(&mut self.reached), self.chain.take());
        match self.place.take() {
            Some((entity, _)) => visit(EntityChains { entity, reached, chain: chain.as_ref() }),
            None => Ok(()),
        }
    }
}
