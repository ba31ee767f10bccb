//! What was measured, and the limits.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::faults::Fault;
use super::load::Counts;
use super::timeline::quantile;

/// One measured time.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// What it is.
    pub name: &'static str,
    /// The time.
    pub value: Duration,
    /// What it may be at most, of 99 of 100 cycles.
    pub limit: Option<Duration>,
}

/// Returns a measure with a limit in seconds.
#[must_use]
pub fn limited(name: &'static str, value: Duration, seconds: u64) -> Measure {
    Measure { name, value, limit: Some(Duration::from_secs(seconds)) }
}

/// Returns a measure without a limit.
#[must_use]
pub fn measured(name: &'static str, value: Duration) -> Measure {
    Measure { name, value, limit: None }
}

/// The results of one cycle.
#[derive(Debug)]
pub struct Cycle {
    /// The times of the fault.
    pub measured: Vec<Measure>,
    /// The counts of the load.
    pub counts: Counts,
    /// Number of events sent.
    pub events: usize,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Of several times of a kind, the longest.
        let mut longest: BTreeMap<&str, Duration> = BTreeMap::new();
        for Measure { name, value, .. } in &self.measured {
            let known = longest.entry(name).or_default();
            *known = (*known).max(*value);
        }
        for (name, value) in longest {
            write!(f, "{name} {:.2} s; ", value.as_secs_f64())?;
        }
        let Counts { acknowledged, reads, misses, repeats, refused, unknown, broken } = &self.counts;
        write!(
            f,
            "{} events, {acknowledged} acknowledged, {refused} refused, {unknown} with an unknown outcome, {broken} without an answer; \
             {reads} reads through another node, {misses} misses; {repeats} repeats",
            self.events
        )
    }
}

/// The results of a campaign.
#[derive(Debug, Default)]
pub struct Figures {
    cycles: BTreeMap<Fault, Vec<Cycle>>,
}

impl Figures {
    /// Adds a cycle.
    pub fn add(&mut self, fault: Fault, cycle: Cycle) {
        self.cycles.entry(fault).or_default().push(cycle);
    }

    /// Whether a time of any cycle was longer than its limit.
    #[must_use]
    pub fn exceed_a_limit(&self) -> bool {
        let exceeds = |measure: &Measure| measure.limit.is_some_and(|limit| measure.value > limit);
        self.cycles.values().flatten().any(|cycle| cycle.measured.iter().any(exceeds))
    }

    /// Prints a line for each fault and time, and returns those whose limit was not met.
    #[must_use]
    pub fn print(&self) -> Vec<String> {
        let mut missed = Vec::new();
        let mut total = Counts::default();
        for (fault, cycles) in &self.cycles {
            let mut counts = Counts::default();
            cycles.iter().for_each(|cycle| counts.add(&cycle.counts));
            total.add(&counts);
            let events: usize = cycles.iter().map(|cycle| cycle.events).sum();
            println!(
                "{fault}: {} cycles, {events} events, 0 lost, 0 counted twice; {} reads through another node, {} misses; \
                 {} with an unknown outcome, {} refused",
                cycles.len(),
                counts.reads,
                counts.misses,
                counts.unknown,
                counts.refused
            );
            missed.extend(print_times(*fault, cycles));
        }
        println!(
            "in all: {} events acknowledged, {} reads through another node right after a 202, {} misses",
            total.acknowledged, total.reads, total.misses
        );
        missed
    }
}

fn print_times(fault: Fault, cycles: &[Cycle]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, (Vec<Duration>, Option<Duration>)> = BTreeMap::new();
    for measure in cycles.iter().flat_map(|cycle| &cycle.measured) {
        let (times, limit) = by_name.entry(measure.name).or_default();
        times.push(measure.value);
        *limit = measure.limit;
    }
    let mut missed = Vec::new();
    for (name, (mut times, limit)) in by_name {
        times.sort_unstable();
        let [p50, p99, max] = [50, 99, 100].map(|percent| quantile(&times, percent).as_secs_f64());
        let line = format!("{fault}: {name}: p50 {p50:.2} s, p99 {p99:.2} s, max {max:.2} s ({} times)", times.len());
        match limit {
            None => println!("  {line}"),
            Some(limit) if p99 <= limit.as_secs_f64() => println!("  {line}; limit {} s: met", limit.as_secs()),
            Some(limit) => {
                println!("  {line}; limit {} s: NOT MET", limit.as_secs());
                missed.push(format!("{line}; limit {} s", limit.as_secs()));
            }
        }
    }
    missed
}
