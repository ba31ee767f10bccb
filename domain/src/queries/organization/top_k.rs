//! Top lists of companies and groups, without reading all of them.
//!
//! Each project reports its most active groups and an upper bound for the others. If the sum of these bounds is below what the last
//! row of the list certainly has, every group of the list was reported by some project; else each project reports more. Reported
//! events are a lower bound of a group's total; with the bounds of the projects that did not report it they are an upper one. Only
//! groups whose upper bound reaches the last row are computed exactly.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::aliases;
use super::parts::{self, Description, Figures, Keys};
use crate::cache::table::KeyHashBuilder;
use crate::fault::Fault;
use crate::ids::RecordKey;
use crate::indexes::NamePrefix;
use crate::queries::partial::{Projects, Query, Reader, rank};
use crate::records::Source;
use crate::time::Window;
use serde::{Deserialize, Serialize};

/// Asks for the most active groups of a type.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TopQuery {
    kind: Box<str>,
    window: Window,
    /// The number of groups to report.
    most: usize,
}

/// The rank of a group in its project's list: by activity, descending, then by name prefix.
type Rank = (Reverse<i64>, NamePrefix);

/// The most active groups of one project.
#[derive(Debug, Serialize, Deserialize)]
struct TopPartial {
    /// The keys and ranks of these groups, in order of rank.
    reported: Vec<(RecordKey, Rank)>,
    /// The rank of the first of the other groups, if any.
    others: Option<Rank>,
    /// Whether the project has any group of the type, in any window.
    knows: bool,
    /// The largest number of additional keys that this project has for one company.
    aliases: i64,
}

impl TopPartial {
    /// Returns the maximum number of events of any other group.
    fn others(&self) -> i64 {
        self.others.map_or(0, |(Reverse(events), _)| events)
    }
}

impl Query for TopQuery {
    type Partial = TopPartial;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<TopPartial, Fault> {
        let (rollups, window) = (&reader.project.rollups, reader.kept(self.window));
        let (activity, kind) = (&rollups.group_activity, reader.hasher.group_type(&self.kind));
        let groups = rollups.group_numbers.count(kind);
        let sums = activity.sums(kind, groups, &activity.cover(kind, window));
        // The groups to report and one more, with the last of them on top.
        let mut first: BinaryHeap<(Rank, u32)> = BinaryHeap::new();
        for (number, prefix) in rollups.group_names.of_kind(kind) {
            let sum = sums.get(number as usize).copied().unwrap_or_default();
            if sum <= 0 {
                continue;
            }
            let place = ((Reverse(sum), prefix), number);
            if first.len() <= self.most {
                first.push(place);
            } else if let Some(mut last) = first.peek_mut()
                && place < *last
            {
                *last = place;
            }
        }
        let others = if first.len() > self.most { first.pop().map(|(place, _)| place) } else { None };
        let first = first.into_sorted_vec();
        let keys = rollups.group_numbers.keys(kind, first.iter().map(|(_, number)| *number));
        let reported = keys.into_iter().zip(first).filter_map(|(key, (place, _))| Some((key?, place))).collect();
        Ok(TopPartial { reported, others, knows: groups > 0, aliases: rollups.company_links.most().into() })
    }
}

/// The bounds of the events of a company or group that some projects reported.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct EventBounds {
    /// The number of events in the projects that reported it.
    lower: i64,
    /// The sum of the bounds of these projects for groups that they did not report.
    unreported: i64,
}

/// The candidates for a top list.
#[derive(Debug)]
pub(super) struct Leading {
    /// All groups that may be in the list, whatever their names, and possibly more; for companies, their canonical keys.
    pub(super) keys: Keys,
    /// Whether any of them may have additional keys.
    pub(super) aliases: bool,
    /// Whether there are more groups than fit the list.
    pub(super) truncated: bool,
}

/// Returns the candidates for the `limit` most active groups of a type.
pub(super) async fn leading<P: Projects>(projects: &P, kind: &str, window: Window, limit: usize) -> Result<Leading, P::Error> {
    let mut most = first_asked(limit, projects.limits().top_margin);
    loop {
        let parts = projects.scatter(TopQuery { kind: kind.into(), window, most }).await?;
        if let Some(leading) = alone(&parts, limit) {
            match leading {
                Some(leading) => return Ok(leading),
                None => {
                    most = most.saturating_mul(8);
                    continue;
                }
            }
        }
        let reported: Keys = parts.iter().flat_map(|part| &part.reported).map(|(key, _)| *key).collect();
        // A company may have several keys; the projects know the maximum.
        let aliases: i64 = if kind == crate::ids::COMPANY_TYPE { parts.iter().map(|part| part.aliases).sum() } else { 0 };
        let means = if aliases > 0 { aliases::resolve(projects, reported).await? } else { reported };
        if let Some(leading) = cut(&parts, means, aliases, limit) {
            return Ok(leading);
        }
        most = most.saturating_mul(8);
    }
}

/// Returns the number of groups that each project reports first, which usually suffices.
fn first_asked(limit: usize, margin: usize) -> usize {
    limit.max(1).saturating_mul(1 + margin / 8) + margin
}

/// As [`cut`], for a single project whose groups have one key each: its order is the order of the list. Returns `None` if
/// there are several projects, or companies with several keys.
fn alone(parts: &[TopPartial], limit: usize) -> Option<Option<Leading>> {
    let mut knowing = parts.iter().filter(|part| part.knows);
    let part = knowing.next().filter(|part| part.aliases == 0)?;
    if knowing.next().is_some() {
        return None;
    }
    let truncated = part.reported.len() > limit || part.others.is_some();
    let last = limit.checked_sub(1).and_then(|last| part.reported.get(last)).map(|(_, place)| *place);
    let is_last = |others: Rank| last.is_some_and(|last| last < others);
    if !part.others.is_none_or(is_last) {
        return Some(None);
    }
    let leading = part.reported.iter().take_while(|(_, place)| last.is_none_or(|last| *place <= last));
    Some(Some(Leading { keys: leading.map(|(key, _)| *key).collect(), aliases: false, truncated }))
}

/// Returns the candidates for the list, if the reports are conclusive. `means` holds the company of each reported key, in
/// the same order.
fn cut(parts: &[TopPartial], means: Keys, aliases: i64, limit: usize) -> Option<Leading> {
    let mut means = means.into_iter();
    let mut bounds: HashMap<RecordKey, EventBounds, KeyHashBuilder> = HashMap::default();
    for part in parts {
        for ((_, (Reverse(events), _)), key) in part.reported.iter().zip(&mut means) {
            let bounds = bounds.entry(key).or_default();
            bounds.lower += events;
            bounds.unreported += part.others();
        }
    }
    let others: i64 = parts.iter().map(TopPartial::others).sum::<i64>().saturating_mul(1 + aliases);
    let mut least: Vec<i64> = bounds.values().map(|bounds| bounds.lower).collect();
    let truncated = least.len() > limit;
    let last = match limit.checked_sub(1) {
        Some(place) if truncated => *least.select_nth_unstable_by_key(place, |least| std::cmp::Reverse(*least)).1,
        _ => 0,
    };
    if others > 0 && others >= last {
        return None;
    }
    let reaches = |bounds: &EventBounds| bounds.lower + (others - bounds.unreported).max(0) >= last;
    let keys = bounds.into_iter().filter(|(_, bounds)| reaches(bounds)).map(|(key, _)| key).collect();
    Some(Leading { keys, aliases: aliases > 0, truncated })
}

/// The number of groups that are named per message, so that a shard can do other work in between.
pub(super) const NAMED_TOGETHER: usize = 256;

/// One row of a top list.
#[derive(Debug)]
pub(super) struct TopRow {
    pub(super) named: Description,
    pub(super) figures: Figures,
}

/// Returns the first `limit` of some companies or groups, in order.
pub(super) async fn rows<P: Projects>(
    projects: &P,
    kind: &str,
    keys: Vec<Keys>,
    window: Window,
    limit: usize,
) -> Result<Vec<TopRow>, P::Error> {
    let mut rows: Vec<(Keys, Description)> = Vec::new();
    for some in keys.chunks(NAMED_TOGETHER) {
        let named = parts::named(projects, some.to_vec(), Some((kind, window))).await?;
        rows.extend(some.iter().cloned().zip(named).filter(|(_, named)| named.events > 0));
        rank(&mut rows, |(_, named)| named.events, |(_, named)| named.rank());
        rows.truncate(limit);
    }
    let groups = rows.iter().map(|(keys, named)| (keys.clone(), named.projects)).collect();
    let figures = parts::figures(projects, groups, window).await?;
    Ok(rows.into_iter().zip(figures).map(|((_, named), figures)| TopRow { named, figures }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const KEYS: usize = 30;

    /// Builds the report of a project from the number of events of each key.
    fn reported(events: &[i64; KEYS], most: usize) -> TopPartial {
        let mut reported: Vec<(RecordKey, i64)> = (0..).map(RecordKey).zip(*events).filter(|(_, events)| *events > 0).collect();
        reported.sort_by_key(|(_, events)| std::cmp::Reverse(*events));
        let mut reported: Vec<_> =
            reported.into_iter().map(|(key, events)| (key, (Reverse(events), NamePrefix::default()))).collect();
        let others = reported.get(most).map(|(_, place)| *place);
        reported.truncate(most);
        TopPartial { reported, others, knows: true, aliases: 1 }
    }

    #[test]
    fn whoever_can_be_in_the_list_is_looked_at() {
        let mut random = 88_172_645_463_325_252_u64;
        let mut below = |limit: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            usize::try_from(random % limit as u64).unwrap()
        };
        let (mut decided, mut left_out) = (0, 0);
        for _ in 0..20_000 {
            // In some rounds, every third key is an alias of the key before it.
            let aliases = below(2) == 0;
            let company = |key: usize| if aliases && key % 3 == 2 { key - 1 } else { key };
            let scale = 1 + below(40);
            let projects: Vec<[i64; KEYS]> = (0..1 + below(4))
                .map(|_| std::array::from_fn(|key| i64::try_from(below(3) * below(scale) * KEYS / (1 + key)).unwrap()))
                .collect();
            let (limit, most) = (1 + below(6), 1 + below(12));
            let mut totals: BTreeMap<usize, i64> = BTreeMap::new();
            for (key, events) in projects.iter().flat_map(|events| events.iter().enumerate()).filter(|(_, events)| **events > 0) {
                *totals.entry(company(key)).or_default() += events;
            }
            let parts: Vec<TopPartial> = projects.iter().map(|events| reported(events, most)).collect();
            let mean = |(key, _): &(RecordKey, Rank)| RecordKey(company(usize::try_from(key.0).unwrap()) as u128);
            let means = parts.iter().flat_map(|part| part.reported.iter().map(mean)).collect();
            let Some(leading) = cut(&parts, means, i64::from(aliases), limit) else { continue };
            decided += 1;
            assert_eq!(leading.truncated, totals.len() > limit);
            let mut ranked: Vec<i64> = totals.values().copied().collect();
            ranked.sort_by_key(|events| std::cmp::Reverse(*events));
            let last = ranked.get(limit - 1).copied().unwrap_or(1);
            for (key, _) in totals.iter().filter(|(_, events)| **events >= last) {
                assert!(leading.keys.contains(&RecordKey(*key as u128)), "{key} of {totals:?}");
            }
            left_out += totals.len() - leading.keys.len();
        }
        assert!(decided > 5_000 && left_out > 50_000, "{decided} decided, {left_out} left out");
    }
}
