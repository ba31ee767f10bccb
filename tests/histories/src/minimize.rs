//! Minimizes a failing history.

use crate::history::History;

/// Returns the shortest failing history found by removing steps: first halves, then ever fewer,
/// until no single step can be removed.
pub fn minimize(history: &History, mut fails: impl FnMut(&History) -> bool) -> History {
    let mut shortest = history.clone();
    let mut chunk = shortest.steps.len().div_ceil(2);
    while chunk > 0 {
        let mut at = 0;
        let mut shortened = false;
        while at < shortest.steps.len() {
            let mut steps = shortest.steps.clone();
            steps.drain(at..(at + chunk).min(steps.len()));
            let candidate = shortest.with_steps(steps);
            if fails(&candidate) {
                shortest = candidate;
                shortened = true;
            } else {
                at += chunk;
            }
        }
        if chunk > 1 || !shortened {
            chunk /= 2;
        }
    }
    shortest
}
