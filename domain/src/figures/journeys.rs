//! Journeys: the values that sessions pass through, in order.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use crate::filter::{PathPattern, Predicate};
use crate::money::Amount;
use crate::named_values;
use crate::queries::Unconverted;
use crate::time::Window;
use crate::versions::Depends;

/// The maximum number of steps of a journey.
pub const MAX_DEPTH: usize = 10;
/// The maximum number of groups of paths.
pub const MAX_PATH_GROUPS: usize = 50;
/// How many of the commonest sequences an answer has.
pub const TOP_SEQUENCES: usize = 20;
/// The maximum number of links of an answer: outsiders choose how long their values are.
pub const MAX_LINKS: usize = 2_000;
/// How many bytes of paths are remembered with their groups.
const KNOWN_BYTES: usize = 1 << 20;

named_values! {
    /// The values that journeys consist of.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum JourneyValue by as_str {
        /// The paths of pageviews.
        #[default]
        Path = "path",
        /// The names of events.
        EventName = "event_name",
        /// The path of a pageview that has one, else the name.
        PathOrEvent = "path_or_event",
    }
}

/// Where sequences begin or end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JourneyEnd {
    /// They begin at the first value that matches.
    From(PathPattern),
    /// They end at the last value that matches, and are read backwards.
    To(PathPattern),
}

/// Paths that count as one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGroup {
    /// The value.
    pub name: String,
    /// The paths.
    pub pattern: PathPattern,
}

/// Asks which ways sessions take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JourneysQuestion {
    /// The days on which sessions begin.
    pub window: Window,
    /// The predicate of chosen events.
    pub predicate: Predicate,
    /// The values.
    pub by: JourneyValue,
    /// Where sequences begin or end; `None`: they begin with the session.
    pub end: Option<JourneyEnd>,
    /// The maximum number of values of a sequence.
    pub depth: usize,
    /// Groups of paths. The first one that matches renames a path.
    pub groups: Vec<PathGroup>,
    /// The maximum number of nodes of a step, apart from the others.
    pub rows: usize,
}

impl JourneysQuestion {
    /// Returns the dependencies of the answer: sessions have no longest duration.
    pub fn depends(&self) -> Depends {
        Depends::Everything
    }
}

/// A value at a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JourneyNode {
    /// The value; `None` stands for all values that have no node of their own.
    pub value: Option<String>,
    /// The sessions.
    pub sessions: u64,
    /// Their distinct identities.
    pub users: u64,
    /// The sessions whose sequence ends here.
    pub exits: u64,
    /// Orders less refunds from here until the next value.
    pub revenue: Amount,
    /// For how many values the node stands, if it has no value.
    pub other: u64,
}

/// A pair of neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JourneyLink {
    /// The index of the step that it leads to, from 0.
    pub step: usize,
    /// The node of the step before.
    pub from: Option<String>,
    /// The node of the step.
    pub to: Option<String>,
    /// The sessions.
    pub sessions: u64,
    /// Their distinct identities.
    pub users: u64,
}

/// A whole sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JourneyPath {
    /// The values.
    pub values: Vec<String>,
    /// The sessions.
    pub sessions: u64,
    /// Their distinct identities.
    pub users: u64,
    /// Orders less refunds of these sessions.
    pub revenue: Amount,
}

/// The answer to a [`JourneysQuestion`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Journeys {
    /// The sessions with a sequence.
    pub sessions: u64,
    /// The nodes of each step, the largest first.
    pub steps: Vec<Vec<JourneyNode>>,
    /// The links between them.
    pub links: Vec<JourneyLink>,
    /// Whether there are more links than the answer has.
    pub truncated: bool,
    /// The commonest sequences.
    pub top: Vec<JourneyPath>,
    /// The money of these sessions that has no rate.
    pub unconverted: Unconverted,
}

/// A value of a sequence, with the money from there until the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JourneyRun {
    /// The value.
    pub value: Rc<str>,
    /// Orders less refunds.
    pub revenue: Amount,
}

/// The sequence of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JourneySequence {
    /// The values in the order in which they are read. At least one.
    pub runs: Vec<JourneyRun>,
    /// Whether the sequence ends with the last value; else it was cut there.
    pub is_whole: bool,
}

/// Makes the sequence of one session after the other.
pub struct SequenceMaker<'q> {
    question: &'q JourneysQuestion,
    /// The groups of some paths.
    known: HashMap<Box<str>, Option<usize>>,
    known_bytes: usize,
    /// The value that the session is at, which may have been cut off.
    current: Option<Rc<str>>,
    /// The last values, or those from the beginning.
    runs: VecDeque<JourneyRun>,
    /// Whether there are more values than those of `runs`.
    is_cut: bool,
    /// The sequence that ends at the last value that matches, in the order of time.
    ending: Option<JourneySequence>,
    /// Whether the session is still at that value.
    is_at_end: bool,
}

impl<'q> SequenceMaker<'q> {
    /// Prepares to make sequences.
    pub fn new(question: &'q JourneysQuestion) -> Self {
        Self {
            question,
            known: HashMap::new(),
            known_bytes: 0,
            current: None,
            runs: VecDeque::new(),
            is_cut: false,
            ending: None,
            is_at_end: false,
        }
    }

    /// Adds the value of the next event: its path, if it is a pageview and has one, or its name.
    pub fn add_value(&mut self, path: Option<&str>, name: Option<&str>) {
        let group = path.and_then(|path| self.group_of(path));
        let Some(value) = group.map(|group| &*self.question.groups[group].name).or(path).or(name) else { return };
        if self.current.as_deref() == Some(value) {
            return;
        }
        let value: Rc<str> = value.into();
        self.current = Some(Rc::clone(&value));
        match &self.question.end {
            Some(JourneyEnd::To(pattern)) => self.begin_backwards(value, pattern),
            Some(JourneyEnd::From(pattern)) if self.runs.is_empty() && !pattern.fits(&value) => {}
            _ if self.runs.len() >= self.question.depth => self.is_cut = true,
            _ => self.runs.push_back(JourneyRun { value, revenue: Amount::ZERO }),
        }
    }

    fn group_of(&mut self, path: &str) -> Option<usize> {
        let groups = &self.question.groups;
        if groups.is_empty() {
            return None;
        }
        if let Some(group) = self.known.get(path) {
            return *group;
        }
        self.known_bytes += path.len() + size_of::<(Box<str>, Option<usize>)>();
        if self.known_bytes > KNOWN_BYTES {
            self.known.clear();
            self.known_bytes = 0;
        }
        let group = groups.iter().position(|group| group.pattern.fits(path));
        self.known.insert(path.into(), group);
        group
    }

    fn begin_backwards(&mut self, value: Rc<str>, pattern: &PathPattern) {
        if self.runs.len() >= self.question.depth {
            self.runs.pop_front();
            self.is_cut = true;
        }
        self.is_at_end = pattern.fits(&value);
        self.runs.push_back(JourneyRun { value, revenue: Amount::ZERO });
        if self.is_at_end {
            self.ending = Some(JourneySequence { runs: self.runs.iter().cloned().collect(), is_whole: !self.is_cut });
        }
    }

    /// Adds money at the value that the session is at.
    pub fn add_money(&mut self, amount: Amount) {
        let is_backwards = matches!(self.question.end, Some(JourneyEnd::To(_)));
        if let Some(run) = self.runs.back_mut().filter(|_| is_backwards || !self.is_cut) {
            run.revenue += amount;
        }
        if let Some(run) = self.ending.as_mut().filter(|_| self.is_at_end).and_then(|ending| ending.runs.last_mut()) {
            run.revenue += amount;
        }
    }

    /// Ends the session, and returns its sequence, if it has one.
    pub fn finish(&mut self) -> Option<JourneySequence> {
        let (runs, ending) = (std::mem::take(&mut self.runs), self.ending.take());
        self.current = None;
        self.is_at_end = false;
        let is_whole = !std::mem::take(&mut self.is_cut);
        if let Some(JourneyEnd::To(_)) = self.question.end {
            return ending.map(|JourneySequence { mut runs, is_whole }| {
                runs.reverse();
                JourneySequence { runs, is_whole }
            });
        }
        (!runs.is_empty()).then(|| JourneySequence { runs: runs.into(), is_whole })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> PathPattern {
        PathPattern::parse(text).unwrap()
    }

    /// The sequence of a session: its values with their money, and whether it is whole.
    fn sequence(question: &JourneysQuestion, events: &[(&str, i128)]) -> Option<(Vec<(String, i128)>, bool)> {
        let mut maker = SequenceMaker::new(question);
        let mut made = None;
        // A session leaves nothing behind.
        for _ in 0..2 {
            for (path, money) in events {
                if !path.is_empty() {
                    maker.add_value(Some(path), None);
                }
                maker.add_money(Amount::from_micros(*money));
            }
            made = maker.finish();
        }
        made.map(|JourneySequence { runs, is_whole }| {
            (runs.iter().map(|run| (run.value.to_string(), run.revenue.micros())).collect(), is_whole)
        })
    }

    #[test]
    fn sequences_begin_end_and_are_cut_as_asked() {
        let mut question = JourneysQuestion {
            window: Window::ALL,
            predicate: Predicate::default(),
            by: JourneyValue::Path,
            end: None,
            depth: 3,
            groups: Vec::new(),
            rows: 10,
        };
        let events = [("", 1), ("/a", 2), ("/a", 3), ("/b", 4), ("", 5), ("/a", 6), ("/blog/1", 7), ("/blog/2", 8), ("/a", 9)];
        let made = |question: &JourneysQuestion| {
            let (runs, is_whole) = sequence(question, &events)?;
            let text: Vec<String> = runs.iter().map(|(value, money)| format!("{value}:{money}")).collect();
            Some((text.join(" "), is_whole))
        };
        let is = |text: &str, is_whole: bool| Some((text.to_owned(), is_whole));
        assert_eq!(made(&question), is("/a:5 /b:9 /a:6", false));
        question.depth = 6;
        assert_eq!(made(&question), is("/a:5 /b:9 /a:6 /blog/1:7 /blog/2:8 /a:9", true));
        question.groups = vec![PathGroup { name: "Blog".to_owned(), pattern: pattern("/blog/**") }];
        assert_eq!(made(&question), is("/a:5 /b:9 /a:6 Blog:15 /a:9", true));
        for (end, depth, expected) in [
            (JourneyEnd::From(pattern("/b")), 3, is("/b:9 /a:6 Blog:15", false)),
            (JourneyEnd::From(pattern("/none")), 3, None),
            (JourneyEnd::To(pattern("/b")), 3, is("/b:9 /a:5", true)),
            (JourneyEnd::To(pattern("B*")), 3, is("Blog:15 /a:6 /b:9", false)),
            (JourneyEnd::To(pattern("/a")), 5, is("/a:9 Blog:15 /a:6 /b:9 /a:5", true)),
            (JourneyEnd::To(pattern("/none")), 5, None),
        ] {
            let question = JourneysQuestion { end: Some(end), depth, ..question.clone() };
            assert_eq!(made(&question), expected, "{:?}", question.end);
        }
        assert_eq!(sequence(&question, &[("", 3)]), None);
    }
}
