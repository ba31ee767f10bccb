//! When events were acknowledged, of which project, and by which node.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// An acknowledged event.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// The number of the event, or of the first one of a batch.
    pub event: usize,
    /// Index of the project.
    pub project: usize,
    /// The node that it was sent to.
    pub node: usize,
    /// When it was sent.
    pub began: Instant,
    /// When it was acknowledged.
    pub ended: Instant,
}

/// A time in which no event of a project was acknowledged.
#[derive(Debug, Clone, Copy)]
pub struct Gap {
    /// Index of the project.
    pub project: usize,
    /// When the last event before it was acknowledged.
    pub began: Instant,
    /// Its length.
    pub lasted: Duration,
}

/// The acknowledgements of one cycle.
#[derive(Debug, Default)]
pub struct Timeline {
    acks: RefCell<Vec<Ack>>,
}

impl Timeline {
    /// Notes an acknowledgement that arrived now.
    pub fn note(&self, event: usize, project: usize, node: usize, began: Instant) {
        self.acks.borrow_mut().push(Ack { event, project, node, began, ended: Instant::now() });
    }

    /// Returns after how long each of `nodes` had acknowledged an event of each of `projects` that
    /// was sent after `fault`; `None` if not yet.
    #[must_use]
    pub fn served_after(&self, fault: Instant, projects: &[usize], nodes: &[usize]) -> Option<Duration> {
        let acks = self.acks.borrow();
        let first = |project: usize, node: usize| {
            let fitting = acks.iter().filter(|ack| ack.project == project && ack.node == node && ack.began >= fault);
            fitting.map(|ack| ack.ended).min()
        };
        let pairs = projects.iter().flat_map(|project| nodes.iter().map(|node| (*project, *node)));
        let all: Option<Vec<Instant>> = pairs.map(|(project, node)| first(project, node)).collect();
        all.map(|all| all.into_iter().max().unwrap_or(fault).saturating_duration_since(fault))
    }

    /// Returns the longest time between two acknowledgements of one project in a row, of those
    /// after `from`.
    #[must_use]
    pub fn longest_gap(&self, projects: &[usize], from: Instant) -> Duration {
        self.gaps(projects, from).map(|gap| gap.lasted).max().unwrap_or_default()
    }

    /// Returns the times between two acknowledgements of one project in a row, of those that ended
    /// after `from`.
    pub fn gaps(&self, projects: &[usize], from: Instant) -> impl Iterator<Item = Gap> {
        let of_project = |project: &usize| {
            let acks = self.acks.borrow();
            let mut ends: Vec<Instant> = acks.iter().filter(|ack| ack.project == *project).map(|ack| ack.ended).collect();
            ends.sort_unstable();
            let gap = |pair: &[Instant]| Gap { project: *project, began: pair[0], lasted: pair[1].duration_since(pair[0]) };
            ends.windows(2).filter(|pair| pair[1] >= from).map(gap).collect::<Vec<_>>()
        };
        projects.iter().flat_map(of_project).collect::<Vec<_>>().into_iter()
    }

    /// Returns the times from sending to the acknowledgement, in ascending order, of events sent
    /// from `from` to `to`.
    #[must_use]
    pub fn latencies(&self, from: Instant, to: Instant) -> Vec<Duration> {
        let acks = self.acks.borrow();
        let within = acks.iter().filter(|ack| ack.began >= from && ack.began < to);
        let mut times: Vec<Duration> = within.map(|ack| ack.ended.duration_since(ack.began)).collect();
        times.sort_unstable();
        times
    }

    /// Returns the events that a node acknowledged after `from`: of batches the first.
    #[must_use]
    pub fn acknowledged_by(&self, node: usize, from: Instant) -> Vec<usize> {
        self.acks.borrow().iter().filter(|ack| ack.node == node && ack.ended >= from).map(|ack| ack.event).collect()
    }
}

/// Returns the nearest-rank quantile of times in ascending order; zero if there are none.
#[must_use]
pub fn quantile(times: &[Duration], percent: usize) -> Duration {
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_slowest_project_and_node() {
        let began = Instant::now();
        let at = |ms: u64| began + Duration::from_millis(ms);
        let ack = |project, node, began, ended| Ack { event: 0, project, node, began: at(began), ended: at(ended) };
        let timeline = Timeline::default();
        timeline.acks.borrow_mut().extend([ack(0, 0, 0, 10), ack(0, 1, 5, 40), ack(0, 0, 20, 30), ack(0, 1, 30, 90)]);
        assert_eq!(timeline.served_after(at(20), &[0], &[0]), Some(Duration::from_millis(10)));
        // What was sent before does not count, however late its answer.
        assert_eq!(timeline.served_after(at(4), &[0], &[1]), Some(Duration::from_millis(36)));
        assert_eq!(timeline.served_after(at(20), &[0], &[0, 1]), Some(Duration::from_millis(70)));
        assert_eq!(timeline.served_after(at(20), &[0, 1], &[0]), None);
        assert_eq!(timeline.longest_gap(&[0, 1], began), Duration::from_millis(50));
        assert_eq!(timeline.latencies(at(5), at(30)), [10, 35].map(Duration::from_millis));
    }

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let times: Vec<Duration> = (1..=20).map(Duration::from_secs).collect();
        assert_eq!([50, 99, 100].map(|percent| quantile(&times, percent).as_secs()), [10, 20, 20]);
        assert_eq!(quantile(&[], 50), Duration::ZERO);
    }
}
