//! The new positions of events in another log, for wanted positions.

use std::collections::HashMap;

use headcount_domain::{Position, ProjectId};

/// The wanted positions of each project, with their new positions.
#[derive(Debug, Default)]
pub struct PositionMap {
    projects: HashMap<ProjectId, Mapped>,
    /// The projects whose events keep their positions, each with the last of these.
    kept: HashMap<ProjectId, Position>,
}

#[derive(Debug, Default)]
struct Mapped {
    /// The wanted positions, in order and without repetitions.
    wanted: Vec<Position>,
    /// For the first of them: the new position of the last event up to there, and whether that
    /// event has exactly the wanted position.
    found: Vec<(Position, bool)>,
    /// The last event passed: its former and its new position.
    last: (Position, Position),
}

impl Mapped {
    fn find_before(&mut self, position: Position) {
        while let Some(wanted) = self.wanted.get(self.found.len()).filter(|wanted| **wanted < position) {
            self.found.push((self.last.1, *wanted == self.last.0));
        }
    }
}

impl PositionMap {
    /// Adds wanted positions of a project. Call it before events are passed.
    pub fn want(&mut self, project: ProjectId, positions: impl IntoIterator<Item = Position>) {
        let mapped = self.projects.entry(project).or_default();
        mapped.wanted.extend(positions);
        mapped.wanted.sort_unstable();
        mapped.wanted.dedup();
    }

    /// Keeps the positions of a project up to `until`. These events are not passed; later ones get
    /// higher positions.
    #[cfg(feature = "cluster")]
    pub(crate) fn keep(&mut self, project: ProjectId, until: Position) {
        self.kept.insert(project, until);
        self.projects.entry(project).or_default().last = (until, until);
    }

    /// Passes events of a project, in order. They get new positions from `first` on.
    pub fn pass(&mut self, project: ProjectId, positions: &[Position], first: Position) {
        let Some(mapped) = self.projects.get_mut(&project) else { return };
        for (position, new) in positions.iter().zip(first..) {
            mapped.find_before(*position);
            mapped.last = (*position, new);
        }
    }

    /// Records that there are no more events.
    pub fn finish(&mut self) {
        self.projects.values_mut().for_each(|mapped| mapped.find_before(Position::MAX));
    }

    /// Returns the new position of the last event of a project up to a wanted position; 0 if there
    /// is none. A kept position is returned unchanged.
    pub fn up_to(&self, project: ProjectId, position: Position) -> Position {
        self.found(project, position).map_or(0, |(new, _)| new)
    }

    /// Returns the new position of the event at a wanted position; `None` if there is no such
    /// event.
    pub fn exactly(&self, project: ProjectId, position: Position) -> Option<Position> {
        self.found(project, position).filter(|(_, is_exact)| *is_exact).map(|(new, _)| new)
    }

    fn found(&self, project: ProjectId, position: Position) -> Option<(Position, bool)> {
        if self.kept.get(&project).is_some_and(|until| position <= *until) {
            return Some((position, true));
        }
        let mapped = self.projects.get(&project)?;
        mapped.found.get(mapped.wanted.binary_search(&position).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_events_that_came_along() {
        let (project, other) = (ProjectId(1), ProjectId(2));
        let mut map = PositionMap::default();
        map.want(project, [300, 8, 30, 10]);
        map.want(project, [20, 30]);
        map.pass(other, &[9, 30], 1);
        map.pass(project, &[9, 10], 3);
        map.pass(project, &[25, 30, 31], 7);
        map.finish();
        let up_to = [8, 10, 20, 30, 300].map(|position| map.up_to(project, position));
        assert_eq!(up_to, [0, 4, 4, 8, 9]);
        let exactly = [8, 10, 20, 30, 300].map(|position| map.exactly(project, position));
        assert_eq!(exactly, [None, Some(4), None, Some(8), None]);
        assert_eq!((map.up_to(other, 30), map.exactly(other, 30)), (0, None), "nobody wanted it");
    }

    #[test]
    fn positions_of_events_that_are_not_passed_stay() {
        let (project, mut map) = (ProjectId(1), PositionMap::default());
        map.keep(project, 30);
        map.want(project, [29, 30, 35, 50]);
        map.pass(project, &[40, 50], 100);
        map.finish();
        let all = [29, 30, 35, 50].map(|position| (map.up_to(project, position), map.exactly(project, position)));
        assert_eq!(all, [(29, Some(29)), (30, Some(30)), (30, None), (101, Some(101))]);
    }
}
