//! The lines of a file that an import has read, so that later imports don't record them again.

use serde::{Deserialize, Serialize};

use super::lines::Place;

/// The maximum number of runs of refused lines that are kept for `--again`. A hostile file could
/// have any number of them.
const MAX_REFUSED: usize = 1_000;

/// A part of a file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImportedPart {
    /// Where it begins.
    pub(crate) from: Place,
    /// Where it ends.
    pub(crate) until: Place,
    /// The refused lines: the first and last number of each run.
    pub(crate) refused: Vec<(u64, u64)>,
}

/// The recorded or dropped lines without an `external_id`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadLines {
    /// The ranges of offsets that were read. They are in order and don't touch.
    parts: Vec<(u64, u64)>,
    /// The refused lines in these ranges, as in [`ImportedPart`]. A later import may accept them.
    refused: Vec<(u64, u64)>,
}

impl ReadLines {
    /// Adds a part that was read, for the first time or again.
    pub(crate) fn add(&mut self, part: &ImportedPart) {
        let (mut from, mut until) = (part.from.offset, part.until.offset);
        self.parts.retain(|(start, end)| {
            let touches = *start <= until && from <= *end;
            if touches {
                (from, until) = (from.min(*start), until.max(*end));
            }
            !touches
        });
        self.parts.push((from, until));
        self.parts.sort_unstable();
        let lines = (part.from.lines + 1, part.until.lines);
        let kept = self.refused.iter().flat_map(|run| outside(*run, lines));
        let mut refused: Vec<_> = kept.chain(part.refused.iter().copied()).collect();
        refused.sort_unstable();
        refused.dedup_by(|next, run| {
            let follows = next.0 == run.1 + 1;
            if follows {
                run.1 = next.1;
            }
            follows
        });
        if refused.len() > MAX_REFUSED {
            tracing::warn!(
                line = refused[MAX_REFUSED].0,
                "there are too many refused lines: --again will not retry refused lines from this line on"
            );
            refused.truncate(MAX_REFUSED);
        }
        self.refused = refused;
    }

    /// Returns whether lines after `offset` may have been read.
    pub(crate) fn reaches_beyond(&self, offset: u64) -> bool {
        self.parts.last().is_some_and(|(_, end)| *end > offset)
    }

    /// Returns whether a line was read and not refused, by its number and an offset in it.
    pub(crate) fn has(&self, offset: u64, line: u64) -> bool {
        holds(&self.parts, |(from, until)| (*from..*until).contains(&offset), |(from, _)| *from <= offset)
            && !holds(&self.refused, |(first, last)| (*first..=*last).contains(&line), |(first, _)| *first <= line)
    }
}

/// Returns whether the last range that begins early enough fits.
fn holds(ranges: &[(u64, u64)], fits: impl Fn(&(u64, u64)) -> bool, begins: impl Fn(&(u64, u64)) -> bool) -> bool {
    ranges[..ranges.partition_point(begins)].last().is_some_and(fits)
}

/// Returns the parts of a run of lines outside of other runs.
fn outside((first, last): (u64, u64), (from, until): (u64, u64)) -> impl Iterator<Item = (u64, u64)> {
    let before = (first, last.min(from.saturating_sub(1)));
    let after = (first.max(until + 1), last);
    [before, after].into_iter().filter(|(first, last)| first <= last)
}

/// Returns the runs of ascending line numbers.
pub(crate) fn runs(lines: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for line in lines {
        match runs.last_mut() {
            Some((_, last)) if line == *last + 1 => *last = line,
            _ => runs.push((line, line)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of 10 bytes, from the first number to the last one.
    fn part(first: u64, last: u64, refused: &[u64]) -> ImportedPart {
        let place = |lines| Place { offset: lines * 10, lines };
        ImportedPart { from: place(first - 1), until: place(last), refused: runs(refused.iter().copied()) }
    }

    fn lines(seen: &ReadLines) -> Vec<u64> {
        (1..=40).filter(|line| seen.has(line * 10 - 3, *line)).collect()
    }

    #[test]
    fn parts_may_come_in_any_order_and_again() {
        let mut seen = ReadLines::default();
        assert!(!seen.reaches_beyond(0) && lines(&seen).is_empty());
        seen.add(&part(1, 3, &[2]));
        seen.add(&part(7, 9, &[]));
        assert_eq!(lines(&seen), [1, 3, 7, 8, 9]);
        seen.add(&part(4, 6, &[4, 5, 6]));
        assert_eq!((lines(&seen), seen.parts.len(), seen.refused.clone()), (vec![1, 3, 7, 8, 9], 1, vec![(2, 2), (4, 6)]));
        seen.add(&part(2, 5, &[4]));
        assert_eq!(lines(&seen), [1, 2, 3, 5, 7, 8, 9], "line 6 is refused still");
        assert!(seen.reaches_beyond(89) && !seen.reaches_beyond(90));
    }

    #[test]
    fn refused_lines_that_are_too_many_are_not_tried_again() {
        let mut seen = ReadLines::default();
        for line in 0..MAX_REFUSED as u64 + 5 {
            seen.add(&part(2 * line + 1, 2 * line + 2, &[2 * line + 1]));
        }
        assert_eq!(seen.refused.len(), MAX_REFUSED);
        assert!(!seen.has(5, 1) && seen.has(15, 2));
        let last = 2 * MAX_REFUSED as u64 + 1;
        assert!(seen.has(last * 10 - 5, last));
    }
}
