//! The chains of random sequences, compared with chains that are looked for one start at a time.

use super::*;
use crate::facts::Moment;
use crate::time::Day;

const SEQUENCES: u64 = 4_000;

/// Random numbers, of a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// An event: its moment, its steps, and whether a chain may begin at it.
type Made = (Moment, u16, bool);

fn sequence(numbers: &mut Numbers, steps: usize) -> Vec<Made> {
    let (mut time, all) = (0, 1 << steps);
    let mut event = |position: u64, numbers: &mut Numbers| {
        time += [0, 0, 1, 2, 5][numbers.below(5) as usize];
        let fits = if numbers.below(4) == 0 { numbers.below(all) } else { 1 << numbers.below(steps as u64) };
        (Moment { time: Instant(time), position }, fits as u16, numbers.below(5) > 0)
    };
    (0..numbers.below(14)).map(|position| event(position, numbers)).collect()
}

fn lasts(start: &Made, event: &Made, length: Option<i64>) -> bool {
    length.is_none_or(|length| event.0.time.0 - start.0.time.0 <= length)
}

fn fits(event: &Made, step: usize) -> bool {
    event.1 >> step & 1 > 0
}

/// All chains that begin at the event of this index, as they grow: the indexes of their events.
fn chains_from(events: &[Made], start: usize, steps: usize, length: Option<i64>, order: StepOrder) -> Vec<Vec<usize>> {
    let (mut chain, mut served) = (Vec::new(), vec![false; steps]);
    let mut grown = Vec::new();
    for (index, event) in events.iter().enumerate().skip(start) {
        if !lasts(&events[start], event, length) {
            break;
        }
        let step = match order {
            StepOrder::Any => (0..steps).find(|step| fits(event, *step) && !served[*step]),
            _ => Some(chain.len()).filter(|step| *step < steps && fits(event, *step)),
        };
        match step {
            Some(step) => {
                served[step] = true;
                chain.push(index);
                grown.push(chain.clone());
            }
            None if order == StepOrder::Strict || chain.is_empty() => break,
            None => {}
        }
    }
    grown
}

/// The rule for loose chains, as it is written: of chains to a step, the one with the latest start.
fn loose_chains(events: &[Made], steps: usize, length: Option<i64>) -> Vec<Vec<usize>> {
    let mut open: Vec<Option<Vec<usize>>> = vec![None; steps];
    let mut grown = Vec::new();
    for (index, event) in events.iter().enumerate() {
        for step in (0..steps).rev().filter(|step| fits(event, *step)) {
            let mut chain = match step.checked_sub(1) {
                None if event.2 => Vec::new(),
                None => continue,
                Some(before) => match &open[before] {
                    Some(chain) if lasts(&events[chain[0]], event, length) => chain.clone(),
                    _ => continue,
                },
            };
            chain.push(index);
            if open[step].as_ref().is_none_or(|present| present[0] <= chain[0]) {
                grown.push(chain.clone());
                open[step] = Some(chain);
            }
        }
    }
    grown
}

/// The chain that is the first to reach the greatest depth.
fn expected(events: &[Made], steps: usize, length: Option<i64>, order: StepOrder) -> Option<Vec<usize>> {
    let chains: Vec<Vec<usize>> = match order {
        StepOrder::Loose => loose_chains(events, steps, length),
        _ => {
            let may_begin = |start: &usize| events[*start].2;
            (0..events.len()).filter(may_begin).flat_map(|start| chains_from(events, start, steps, length, order)).collect()
        }
    };
    let depth = chains.iter().map(Vec::len).max()?;
    chains.into_iter().filter(|chain| chain.len() == depth).min_by_key(|chain| (chain[depth - 1], chain[0]))
}

fn found(events: &[Made], steps: usize, length: Option<i64>, order: StepOrder) -> Option<Vec<usize>> {
    let step_events = events.iter().map(|(at, steps, may_begin)| StepEvent {
        at: *at,
        steps: *steps,
        may_begin: *may_begin,
        money: None,
        value: b"",
    });
    let step_events: Vec<StepEvent<'_>> = step_events.collect();
    let mut fold = SequenceFold::new(steps, length.map_or(ChainLength::Session, ChainLength::Within), order);
    // What a sequence leaves behind is forgotten at its end.
    step_events.iter().for_each(|event| fold.add(event));
    fold.end();
    step_events.iter().for_each(|event| fold.add(event));
    let (reached, chain) = fold.end()?;
    let chain = chain.or_else(|| {
        let mut earliest = EarliestChains::new(length, reached);
        step_events.iter().for_each(|event| earliest.add(event));
        earliest.finish()
    });
    let links: Vec<usize> = chain?.links().iter().map(|link| link.at.position as usize).collect();
    assert_eq!((reached.depth, reached.at.position as usize), (links.len(), links[links.len() - 1]));
    Some(links)
}

#[test]
fn chains_are_those_that_are_looked_for_one_start_at_a_time() {
    for order in [StepOrder::Loose, StepOrder::Strict, StepOrder::Any] {
        let mut deep = 0;
        for seed in 0..SEQUENCES {
            let mut numbers = Numbers(seed);
            let steps = 2 + numbers.below(3) as usize;
            let length = (numbers.below(4) > 0).then(|| numbers.below(12) as i64);
            let events = sequence(&mut numbers, steps);
            let expected = expected(&events, steps, length, order);
            assert_eq!(
                found(&events, steps, length, order),
                expected,
                "{order:?}, seed {seed}: {steps} steps, {length:?}, {events:?}"
            );
            deep += usize::from(expected.is_some_and(|chain| chain.len() > 2));
        }
        assert!(deep > 300, "{order:?}: {deep} chains of three steps and more");
    }
}

#[test]
fn many_starts_take_little_memory() {
    // One who does all steps at once, and one step again and again.
    let steps = MAX_STEPS;
    let events = (0..50_000_u64).map(|position| {
        let fits = if position % 1_000 == 0 { u16::MAX >> (16 - steps) } else { 1 };
        (Moment { time: Instant(position as i64), position }, fits, true)
    });
    let mut fold = SequenceFold::new(steps, ChainLength::DEFAULT, StepOrder::Any);
    let (mut starts, mut most) = (any_order::LatestStarts::default(), 0);
    for (at, steps, may_begin) in events {
        let event = StepEvent { at, steps, may_begin, money: None, value: b"" };
        fold.add(&event);
        starts.add(&event, None);
        most = most.max(starts.count());
    }
    let (reached, _) = fold.end().unwrap();
    assert_eq!((reached.depth, reached.at.position), (steps, 11_000));
    assert!((2..=steps).contains(&most), "{most} starts are kept");
}

#[test]
fn an_answer_depends_on_all_days_that_can_change_it() {
    let window = |end| Window { start: Day(10), end: Day(end) };
    let question = |length, level| FunnelQuestion {
        windows: ComparedWindows { window: window(20), previous: None },
        predicate: Predicate::default(),
        steps: FunnelSteps { steps: vec![Predicate::default(); 2], length, order: StepOrder::Loose, level },
        breakdown: None,
        limit: 1,
    };
    let week = ChainLength::DEFAULT;
    // A day more at each end of a chain, for timezones.
    let expected = ComparedWindows { window: window(29), previous: None }.depends();
    assert_eq!(question(week, EntityLevel::Identity).depends(), expected);
    // Any event can tell the company of a person, or make a session longer.
    assert_eq!(question(week, EntityLevel::Account).depends(), Depends::Everything);
    assert_eq!(question(ChainLength::Session, EntityLevel::Identity).depends(), Depends::Everything);
}
