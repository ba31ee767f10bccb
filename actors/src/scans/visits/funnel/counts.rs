//! The figures of a funnel.

use std::io;

use headcount_domain::aggregate::{GroupKey, TopGroups};
use headcount_domain::figures::{Chain, CountedMoney, Funnel, FunnelQuestion, FunnelRow, StepFigures, StepTimes};
use headcount_domain::queries::Unconverted;

use super::super::super::error::{Result, check};
use super::super::super::events::Scan;
use super::super::super::record_sort::RecordSorter;
use super::super::report::add_without_rate;
use super::chains::{EntityChains, visit_chains};
use super::{SHARE, StepsQuestion, find_steps};

/// Answers a [`FunnelQuestion`], in sorts of `sort_bytes` each.
pub(in super::super::super) fn funnel(scan: &Scan<'_>, question: &FunnelQuestion, sort_bytes: usize) -> Result<Funnel> {
    let FunnelQuestion { windows, predicate, steps, breakdown, limit } = question;
    let asked =
        StepsQuestion { windows: [Some(windows.window), windows.previous], predicate, steps, breakdown: breakdown.as_ref() };
    let found = find_steps(scan, &asked, sort_bytes)?;
    let sorter = || RecordSorter::new(scan.scratch(), sort_bytes / SHARE);
    let count = steps.steps.len();
    let mut counts = FunnelCounts {
        reached: [vec![0; count], vec![0; count]],
        steps: vec![StepFigures::default(); count],
        unconverted: Unconverted::new(),
        times: sorter(),
        rows: breakdown.as_ref().map(|_| sorter()),
    };
    visit_chains(scan, steps, found, sort_bytes, &mut |chains| counts.add(&chains))?;
    counts.finish(scan, *limit, windows.previous.is_some())
}

struct FunnelCounts {
    /// In each window, the entities that reached each step.
    reached: [Vec<u64>; 2],
    steps: Vec<StepFigures>,
    unconverted: Unconverted,
    /// For each step after the first, how long it took; for step 0, how long whole chains took.
    times: RecordSorter,
    /// The length of a value, the value, and a depth.
    rows: Option<RecordSorter>,
}

impl FunnelCounts {
    fn add(&mut self, chains: &EntityChains<'_>) -> io::Result<()> {
        for (counts, reached) in self.reached.iter_mut().zip(chains.reached) {
            counts.iter_mut().take(reached.map_or(0, |reached| reached.depth)).for_each(|count| *count += 1);
        }
        let Some(chain) = chains.chain else { return Ok(()) };
        self.add_times(chain)?;
        for (step, link) in self.steps.iter_mut().zip(chain.links()) {
            match link.money {
                Some(CountedMoney { amount, unconverted: None, .. }) => step.revenue += amount,
                Some(money) => add_without_rate(&mut self.unconverted, money),
                None => {}
            }
        }
        let Some(rows) = &mut self.rows else { return Ok(()) };
        let (value, depth) = (chain.value(), u8::try_from(chain.links().len()).unwrap_or(u8::MAX));
        let length = u32::try_from(value.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        rows.push(&[&length.to_be_bytes(), value, &[depth]])
    }

    fn add_times(&mut self, chain: &Chain) -> io::Result<()> {
        let links = chain.links();
        let mut add = |step: usize, from: usize, to: usize| {
            let ms = links[to].at.time.0.saturating_sub(links[from].at.time.0).cast_unsigned();
            self.times.push(&[&[u8::try_from(step).unwrap_or(u8::MAX)], &ms.to_be_bytes()])
        };
        (1..links.len()).try_for_each(|step| add(step, step - 1, step))?;
        if links.len() == self.steps.len() { add(0, 0, links.len() - 1) } else { Ok(()) }
    }

    fn finish(self, scan: &Scan<'_>, limit: usize, is_compared: bool) -> Result<Funnel> {
        let Self { reached: [reached, previous], mut steps, unconverted, times, rows } = self;
        let mut ranks = read_times(scan, times, &reached)?;
        let times = ranks.first_mut().and_then(Option::take);
        for ((step, entities), times) in steps.iter_mut().zip(&reached).zip(ranks) {
            (step.entities, step.times) = (*entities, times);
        }
        let rows = rows.map_or(Ok(TopGroups::new(0)), |rows| read_rows(scan, rows, limit, reached.len()))?;
        let total_rows = rows.count();
        let rows = rows.finish().map(|(value, steps)| FunnelRow { value, steps }).collect();
        Ok(Funnel { steps, times, previous: is_compared.then_some(previous), rows, total_rows, unconverted })
    }
}

/// Returns the median and the third quartile of each step.
fn read_times(scan: &Scan<'_>, times: RecordSorter, reached: &[u64]) -> Result<Vec<Option<StepTimes>>> {
    let mut ranks: Vec<Option<StepTimes>> = vec![None; reached.len()];
    let (mut sorted, mut step, mut rank) = (times.finish()?, 0, 0_u64);
    while let Some(record) = sorted.next()? {
        check(scan.cancelled)?;
        let Some((of, ms)) = record.split_first().and_then(|(of, ms)| Some((usize::from(*of), ms.try_into().ok()?))) else {
            continue;
        };
        rank = if of == step { rank + 1 } else { 1 };
        step = of;
        let count = if step == 0 { reached.last() } else { reached.get(step) }.copied().unwrap_or_default();
        let ms = u64::from_be_bytes(ms).cast_signed();
        let Some(times) = ranks.get_mut(step) else { continue };
        if rank == count.div_ceil(2) {
            times.get_or_insert(StepTimes { median_ms: ms, p75_ms: ms }).median_ms = ms;
        }
        if rank == (3 * count).div_ceil(4) {
            times.get_or_insert(StepTimes { median_ms: ms, p75_ms: ms }).p75_ms = ms;
        }
    }
    Ok(ranks)
}

/// Returns the largest rows.
fn read_rows(scan: &Scan<'_>, rows: RecordSorter, limit: usize, steps: usize) -> Result<TopGroups<Vec<u64>>> {
    let (mut top, mut sorted) = (TopGroups::new(limit), rows.finish()?);
    let mut open: Option<(Vec<u8>, Vec<u64>)> = None;
    let mut pass = |row: Option<(Vec<u8>, Vec<u64>)>| {
        if let Some((value, counts)) = row {
            top.add(counts.first().map(|count| i128::from(*count)), GroupKey::read(&value), counts);
        }
    };
    while let Some(record) = sorted.next()? {
        check(scan.cancelled)?;
        let Some((depth, value)) = record.get(4..).and_then(<[u8]>::split_last) else { continue };
        if open.as_ref().is_none_or(|(of, _)| of != value) {
            pass(open.replace((value.to_vec(), vec![0; steps])));
        }
        if let Some((_, counts)) = &mut open {
            counts.iter_mut().take(usize::from(*depth)).for_each(|count| *count += 1);
        }
    }
    pass(open);
    Ok(top)
}
