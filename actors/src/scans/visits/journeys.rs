//! Journeys: first the sequence of each session, and how common values and sequences are; then,
//! when it is known which of them are shown, their figures, session by session.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;

use headcount_domain::Amount;
use headcount_domain::aggregate::{GroupFigures, GroupKey, Summand, TopGroups};
use headcount_domain::figures::{
    CountedMoney, JourneyLink, JourneyNode, JourneyPath, JourneyRun, JourneySequence, JourneyValue, Journeys, JourneysQuestion,
    MAX_LINKS, SequenceMaker, TOP_SEQUENCES,
};
use headcount_domain::intake::fields::{BuiltIn, Field, Scalar};
use headcount_domain::queries::Unconverted;

use super::super::error::{Result, check};
use super::super::events::Scan;
use super::super::group_table::GroupTable;
use super::super::session_buffer::SessionBuffer;
use super::carried::Carried;
use super::events::{VisitQuestion, VisitWindow, values_of};
use super::fold::{CountedOwner, CountedSession, VisitCounts};
use super::goal_set::GoalSet;
use super::goal_sums::add_sum;
use super::people::visit_chosen;
use super::report::add_without_rate;

/// Two tables and the sequences have the memory of one sort together.
const SHARE: usize = 4;
/// The number of sessions after which a scan checks whether somebody still waits for it.
const CHECK_EVERY: u64 = 4_096;
/// The same, of events.
const EVENTS_A_CHECK: u64 = 64;
/// What ends a value in the key of a sequence, and what a NUL in a value becomes. Keys are ordered
/// as sequences are, value by value, the shorter first.
const VALUE_END: &str = "\0\x01";
const ESCAPED_NUL: &str = "\0\x02";

/// Answers a [`JourneysQuestion`], in sorts of `sort_bytes` each.
pub(in super::super) fn journeys(scan: &Scan<'_>, question: &JourneysQuestion, sort_bytes: usize) -> Result<Journeys> {
    let fields = [BuiltIn::Path, BuiltIn::Name].map(Field::BuiltIn);
    let [path, name] = &fields;
    let asked = VisitQuestion {
        // Sessions that begin in the window count as a whole.
        windows: [Some(VisitWindow::Reaching(question.window, None)), None],
        predicate: &question.predicate,
        goals: GoalSet::new(&[]),
        only_goals: false,
        needs_sessions: true,
        dimensions: match question.by {
            JourneyValue::Path => std::slice::from_ref(path),
            JourneyValue::EventName => std::slice::from_ref(name),
            JourneyValue::PathOrEvent => &fields,
        },
        details: None,
    };
    let table = || GroupTable::new(scan.scratch(), sort_bytes / SHARE);
    let mut found = FoundSequences {
        scan,
        by: question.by,
        events: 0,
        maker: SequenceMaker::new(question),
        identity: 0,
        money: SessionMoney::default(),
        nodes: table(),
        paths: table(),
        sequences: SessionBuffer::new(scan.scratch(), sort_bytes / SHARE),
        sessions: 0,
        unconverted: Unconverted::new(),
        key: Vec::new(),
    };
    let visited = visit_chosen(scan, &asked, sort_bytes, &mut found);
    check(scan.cancelled)?;
    visited?;
    let FoundSequences { nodes, paths, mut sequences, sessions, unconverted, .. } = found;
    let mut shown = ShownJourneys::choose(scan, question, nodes, paths)?;
    let mut seen = 0_u64;
    let counted = sequences.drain(|record| {
        seen += 1;
        if seen.is_multiple_of(CHECK_EVERY) && check(scan.cancelled).is_err() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        read(record).into_iter().for_each(|session| shown.add(session));
        Ok(())
    });
    check(scan.cancelled)?;
    counted?;
    Ok(shown.finish(sessions, unconverted))
}

/// The money of a session.
#[derive(Default)]
struct SessionMoney {
    revenue: Amount,
    unconverted: Unconverted,
}

/// Collects the sequences of sessions.
struct FoundSequences<'q> {
    scan: &'q Scan<'q>,
    by: JourneyValue,
    /// How many events were met.
    events: u64,
    maker: SequenceMaker<'q>,
    /// The number of the identity of the open session.
    identity: u64,
    money: SessionMoney,
    /// How many sessions have a value at a step, by the step and the value.
    nodes: GroupTable,
    /// How many sessions have a sequence.
    paths: GroupTable,
    /// The sequences of sessions, identity by identity.
    sequences: SessionBuffer,
    sessions: u64,
    unconverted: Unconverted,
    key: Vec<u8>,
}

impl VisitCounts for FoundSequences<'_> {
    fn event(&mut self, of: CountedOwner<'_>, event: &Carried<'_>, key: &[u8]) -> io::Result<()> {
        let began_in_window = of.session.is_some_and(|session| session.began[0] == Some(0));
        let Some((identity, met)) = of.identity.zip(of.met).filter(|_| began_in_window) else { return Ok(()) };
        self.identity = identity.number;
        self.events += 1;
        // A session has any number of events, and each may be compared with all groups.
        if self.events.is_multiple_of(EVENTS_A_CHECK) && check(self.scan.cancelled).is_err() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if met.is_interactive {
            let mut values = values_of(key).map(|value| GroupKey::read(value).value());
            let path = (self.by != JourneyValue::EventName).then(|| values.next()).flatten().filter(|_| event.is_pageview);
            let name = (self.by != JourneyValue::Path).then(|| values.next()).flatten();
            self.maker.add_value(path.as_ref().and_then(text_of), name.as_ref().and_then(text_of));
        }
        match event.money {
            Some(CountedMoney { amount, unconverted: None, .. }) => {
                self.money.revenue += amount;
                self.maker.add_money(amount);
            }
            Some(money) => add_without_rate(&mut self.money.unconverted, money),
            None => {}
        }
        Ok(())
    }

    fn session(&mut self, _: &CountedSession, _: [bool; 2], _: &[u8]) -> io::Result<()> {
        let SessionMoney { revenue, unconverted } = std::mem::take(&mut self.money);
        let Some(sequence) = self.maker.finish() else { return Ok(()) };
        self.sessions += 1;
        unconverted.into_iter().for_each(|(currency, sum)| add_sum(&mut self.unconverted, currency, sum));
        let (one, key) = (GroupFigures::of(Summand::None), &mut self.key);
        for (step, run) in sequence.runs.iter().enumerate() {
            key.clear();
            key.push(u8::try_from(step).unwrap_or(u8::MAX));
            GroupKey::write(&Scalar::Text((&*run.value).into()), key);
            self.nodes.add(key, one)?;
        }
        key.clear();
        write_path(&sequence, key);
        self.paths.add(key, one)?;
        self.sequences.push(&[&write(self.identity, revenue, &sequence)])
    }
}

fn text_of<'s>(value: &'s Scalar<'_>) -> Option<&'s str> {
    if let Scalar::Text(text) = value { Some(text) } else { None }
}

/// Writes the key of a sequence.
fn write_path(sequence: &JourneySequence, key: &mut Vec<u8>) {
    let mut text = String::new();
    for JourneyRun { value, .. } in &sequence.runs {
        let mut parts = value.split('\0');
        parts.next().into_iter().for_each(|part| text.push_str(part));
        parts.for_each(|part| text.extend([ESCAPED_NUL, part]));
        text.push_str(VALUE_END);
    }
    GroupKey::write(&Scalar::Text(text.into()), key);
}

/// A session with its sequence.
struct FoundSession {
    identity: u64,
    revenue: Amount,
    sequence: JourneySequence,
}

fn write(identity: u64, revenue: Amount, sequence: &JourneySequence) -> Vec<u8> {
    let mut record = identity.to_le_bytes().to_vec();
    record.extend_from_slice(&revenue.micros().to_le_bytes());
    record.push(sequence.is_whole.into());
    for JourneyRun { value, revenue } in &sequence.runs {
        record.extend_from_slice(&revenue.micros().to_le_bytes());
        record.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes());
        record.extend_from_slice(value.as_bytes());
    }
    record
}

fn read(record: &[u8]) -> Option<FoundSession> {
    let amount = |micros: &[u8; 16]| Amount::from_micros(i128::from_le_bytes(*micros));
    let (identity, rest) = record.split_first_chunk()?;
    let (revenue, rest) = rest.split_first_chunk()?;
    let (is_whole, mut rest) = rest.split_first()?;
    let mut runs = Vec::new();
    while let Some((of_run, after)) = rest.split_first_chunk() {
        let (length, after) = after.split_first_chunk()?;
        let (value, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        runs.push(JourneyRun { value: std::str::from_utf8(value).ok()?.into(), revenue: amount(of_run) });
        rest = after;
    }
    let sequence = JourneySequence { runs, is_whole: *is_whole > 0 };
    Some(FoundSession { identity: u64::from_le_bytes(*identity), revenue: amount(revenue), sequence })
}

/// Counts sessions and their identities, which come one after the other.
#[derive(Debug, Clone, Copy, Default)]
struct Visits {
    sessions: u64,
    users: u64,
    /// The last identity.
    last: u64,
}

impl Visits {
    fn add(&mut self, identity: u64) {
        self.sessions += 1;
        self.users += u64::from(std::mem::replace(&mut self.last, identity) != identity);
    }
}

#[derive(Default)]
struct CountedNode {
    visits: Visits,
    exits: u64,
    revenue: Amount,
}

/// The nodes of a step that are shown. Behind them is the node of all other values.
struct ShownStep {
    values: Vec<String>,
    /// The number of each value.
    numbers: HashMap<String, usize>,
    other: u64,
    nodes: Vec<CountedNode>,
}

impl ShownStep {
    fn new(top: TopGroups<()>) -> Self {
        let distinct = top.count();
        let values: Vec<String> = top.finish().filter_map(|(value, ())| text_of(&value).map(str::to_owned)).collect();
        let numbers = values.iter().enumerate().map(|(number, value)| (value.clone(), number)).collect();
        let nodes = (0..=values.len()).map(|_| CountedNode::default()).collect();
        Self { other: distinct - values.len() as u64, numbers, values, nodes }
    }

    fn number(&self, value: &str) -> usize {
        self.numbers.get(value).copied().unwrap_or(self.values.len())
    }
}

#[derive(Default)]
struct CountedPath {
    values: Vec<String>,
    visits: Visits,
    revenue: Amount,
}

/// What is shown.
struct ShownJourneys {
    steps: Vec<ShownStep>,
    /// By step, and the numbers of both nodes.
    links: HashMap<(usize, usize, usize), Visits>,
    /// The keys of the commonest sequences, in order.
    order: Vec<Vec<u8>>,
    paths: HashMap<Vec<u8>, CountedPath>,
}

impl ShownJourneys {
    fn choose(scan: &Scan<'_>, question: &JourneysQuestion, nodes: GroupTable, paths: GroupTable) -> Result<Self> {
        let mut steps: Vec<TopGroups<()>> = (0..question.depth).map(|_| TopGroups::new(question.rows)).collect();
        nodes.visit(scan.cancelled, &mut |key, figures| {
            if let Some((step, value)) = key.split_first()
                && let Some(step) = steps.get_mut(usize::from(*step))
            {
                step.add(Some(figures.count.into()), GroupKey::read(value), ());
            }
            Ok(())
        })?;
        let mut top = TopGroups::new(TOP_SEQUENCES);
        paths.visit(scan.cancelled, &mut |key, figures| {
            top.add(Some(figures.count.into()), GroupKey::read(key), ());
            Ok(())
        })?;
        let key = |value: &Scalar<'_>| {
            let mut key = Vec::new();
            GroupKey::write(value, &mut key);
            key
        };
        let order: Vec<Vec<u8>> = top.finish().map(|(value, ())| key(&value)).collect();
        let paths = order.iter().map(|key| (key.clone(), CountedPath::default())).collect();
        let steps = steps.into_iter().filter(|step| step.count() > 0).map(ShownStep::new).collect();
        Ok(Self { steps, links: HashMap::new(), order, paths })
    }

    fn add(&mut self, FoundSession { identity, revenue, sequence }: FoundSession) {
        let (mut before, last) = (None, sequence.runs.len().saturating_sub(1));
        for (number, (step, run)) in self.steps.iter_mut().zip(&sequence.runs).enumerate() {
            let at = step.number(&run.value);
            let node = &mut step.nodes[at];
            node.visits.add(identity);
            node.exits += u64::from(number == last && sequence.is_whole);
            node.revenue += run.revenue;
            if let Some(from) = before.replace(at) {
                self.links.entry((number, from, at)).or_default().add(identity);
            }
        }
        let mut key = Vec::new();
        write_path(&sequence, &mut key);
        if let Some(path) = self.paths.get_mut(&key) {
            path.visits.add(identity);
            path.revenue += revenue;
            if path.values.is_empty() {
                path.values = sequence.runs.iter().map(|run| run.value.to_string()).collect();
            }
        }
    }

    fn finish(self, sessions: u64, unconverted: Unconverted) -> Journeys {
        let Self { steps, links, order, mut paths } = self;
        let value = |step: usize, node: usize| steps.get(step).and_then(|step| step.values.get(node).cloned());
        let link = |((step, from, to), visits): ((usize, usize, usize), Visits)| JourneyLink {
            step,
            from: value(step - 1, from),
            to: value(step, to),
            sessions: visits.sessions,
            users: visits.users,
        };
        let rank = |step: usize, node: usize| {
            steps.get(step).and_then(|step| step.values.get(node)).map_or((true, ""), |text| (false, text))
        };
        let place = |(step, from, to): (usize, usize, usize)| (rank(step - 1, from), rank(step, to));
        let mut links: Vec<_> = links.into_iter().collect();
        links.sort_unstable_by_key(|(at, visits)| (Reverse(visits.sessions), at.0, place(*at)));
        let truncated = links.len() > MAX_LINKS;
        links.truncate(MAX_LINKS);
        links.sort_by_key(|(at, _)| at.0);
        let links = links.into_iter().map(link).collect();
        let path = |key: &Vec<u8>| {
            let CountedPath { values, visits, revenue } = paths.remove(key).unwrap_or_default();
            JourneyPath { values, sessions: visits.sessions, users: visits.users, revenue }
        };
        let top = order.iter().map(path).collect();
        Journeys { sessions, steps: steps.into_iter().map(nodes_of).collect(), links, truncated, top, unconverted }
    }
}

/// Returns the nodes of a step that stand for any value.
fn nodes_of(ShownStep { values, other, nodes, .. }: ShownStep) -> Vec<JourneyNode> {
    let values = values.into_iter().map(Some).chain((other > 0).then_some(None));
    let node = |(value, CountedNode { visits, exits, revenue }): (Option<String>, CountedNode)| JourneyNode {
        other: if value.is_none() { other } else { 0 },
        value,
        sessions: visits.sessions,
        users: visits.users,
        exits,
        revenue,
    };
    values.zip(nodes).map(node).collect()
}
