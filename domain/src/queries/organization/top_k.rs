//! Top lists of companies and groups, without reading all of them.
//!
//! Each project reports its most active groups and an upper bound for the others. If the sum of
//! these bounds is below the certain value of the list's last row, some project has reported every
//! group of the list. Otherwise each project lowers its bound by the necessary factor, and reports
//! the groups above it.
//!
//! The reported events are a lower bound of a group's total. With the bounds of the projects that
//! did not report it, they give an upper bound. Only groups whose upper bound reaches the last row
//! are computed exactly.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::aliases;
use super::card::{Card, cards};
use super::parts::{self, Description, Keys, Rank};
use super::tied::first_tied;
use crate::cache::table::KeyHashBuilder;
use crate::fault::Fault;
use crate::ids::RecordKey;
use crate::indexes::NamePrefix;
use crate::project::Project;
use crate::queries::partial::{Projects, Query, Reader, candidates, rank};
use crate::records::Source;
use crate::time::Window;
use serde::{Deserialize, Serialize};

/// Asks for the most active groups of a type.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TopQuery {
    kind: Box<str>,
    window: Window,
    /// The length of the list.
    limit: usize,
    /// The number of groups to report.
    most: usize,
    /// The part to which the bound of the others must be lowered, if it was too high with `most`.
    below: Option<Part>,
}

/// A fraction: the first number divided by the second.
type Part = (i64, i64);

/// The most active groups of one project.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TopPartial {
    /// The keys and ranks of these groups, in order of rank.
    reported: Vec<(RecordKey, Rank)>,
    /// The rank of the first of the other groups, if any.
    others: Option<Rank>,
    /// Whether the project has any group of the type, in any window.
    knows: bool,
    /// The maximum number of additional keys of one company in this project.
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
        let (window, kind) = (reader.kept(self.window), reader.hasher.group_type(&self.kind));
        let Project { rollups, kept_sums, .. } = &mut *reader.project;
        let (activity, groups) = (&rollups.group_activity, rollups.group_numbers.count(kind));
        let sums = kept_sums.sums(kind, window, groups, || activity.sums(kind, groups, &activity.cover(kind, window)));
        let most = self.reported(sums);
        let mut first = self.first(sums, most, || {
            let sum = |number: u32| sums.get(number as usize).copied().unwrap_or_default();
            rollups.group_names.of_kind(kind).map(move |(number, prefix)| ((Reverse(sum(number)), prefix), number))
        });
        let others = if first.len() > most { first.pop().map(|(place, _)| place) } else { None };
        let keys = rollups.group_numbers.keys(kind, first.iter().map(|(_, number)| *number));
        let reported = keys.into_iter().zip(first).filter_map(|(key, (place, _))| Some((key?, place))).collect();
        Ok(TopPartial { reported, others, knows: groups > 0, aliases: rollups.company_links.most().into() })
    }
}

/// Returns the `count` largest positive sums in order, with the numbers of their groups. Of equal
/// sums, lower numbers come first.
fn largest(sums: &[i64], count: usize) -> Vec<(Reverse<i64>, u32)> {
    let room = count.saturating_mul(2);
    let mut found = Vec::with_capacity(room.min(sums.len()));
    // The threshold of a sum: enough known sums are at least as large and come first.
    let mut exceeded = 0;
    for (number, sum) in (0..).zip(sums) {
        if *sum <= exceeded {
            continue;
        }
        found.push((Reverse(*sum), number));
        if found.len() == room {
            let (_, (Reverse(last), _), _) = found.select_nth_unstable(count.saturating_sub(1));
            exceeded = *last;
            found.truncate(count);
        }
    }
    found.sort_unstable();
    found.truncate(count);
    found
}

impl TopQuery {
    /// Returns the number of groups to report.
    fn reported(&self, sums: &[i64]) -> usize {
        let bound = self.below.and_then(|part| Some((part, largest(sums, self.most.saturating_add(1)).get(self.most)?.0.0)));
        let lower = bound.map(|((part, whole), bound)| i128::from(bound) * i128::from(part) / i128::from(whole.max(1)));
        let above = |lower: i128| sums.iter().filter(|sum| **sum > 0 && i128::from(**sum) > lower).count();
        lower.map_or(self.most, |lower| above(lower).max(self.most))
    }

    /// Returns the ranks and numbers of the first `most` groups and one more, in order. Names,
    /// which `named` returns for all groups, only matter if the last row of the list ties with
    /// unreported groups.
    fn first<N: Iterator<Item = (Rank, u32)>>(&self, sums: &[i64], most: usize, named: impl FnOnce() -> N) -> Vec<(Rank, u32)> {
        let active = largest(sums, most.saturating_add(1));
        let others = active.get(most).map_or(0, |(Reverse(sum), _)| *sum);
        let last = self.limit.checked_sub(1).and_then(|last| active.get(last)).map(|(Reverse(sum), _)| *sum);
        let mut first: Vec<(Rank, u32)> = match others > 0 && last == Some(others) {
            true => named().filter(|((Reverse(sum), _), _)| *sum >= others).collect(),
            false => active.into_iter().map(|(sum, number)| ((sum, NamePrefix::default()), number)).collect(),
        };
        if first.len() > most {
            first.select_nth_unstable(most);
            first.truncate(most.saturating_add(1));
        }
        first.sort_unstable();
        first
    }
}

/// The bounds of the events of a company or group that some projects reported.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct EventBounds {
    /// The number of events in the projects that reported it.
    lower: i64,
    /// The sum of the bounds of the projects that did not report it.
    unreported: i64,
}

/// The candidates for a top list.
#[derive(Debug)]
pub(super) struct Leading {
    /// All groups that may be in the list, whatever their names, and possibly more. For companies,
    /// canonical keys.
    pub(super) keys: Keys,
    /// Whether any of them may have additional keys.
    pub(super) aliases: bool,
    /// Whether there are more groups than fit the list.
    pub(super) truncated: bool,
}

/// Returns the candidates for the `limit` most active groups of a type.
pub(super) async fn leading<P: Projects>(projects: &P, kind: &str, window: Window, limit: usize) -> Result<Leading, P::Error> {
    let (mut most, mut below) = (first_asked(limit, projects.limits().top_margin), None);
    loop {
        let parts = projects.scatter(TopQuery { kind: kind.into(), window, limit, most, below }).await?;
        match alone(&parts, limit) {
            Some(Alone { leading, tied: None }) => return Ok(leading),
            Some(Alone { mut leading, tied: Some((rank, room)) }) => {
                leading.keys.extend(first_tied(projects, kind, window, rank, room).await?);
                return Ok(leading);
            }
            None => {}
        }
        let reported: Keys = parts.iter().flat_map(|part| &part.reported).map(|(key, _)| *key).collect();
        // A company may have several keys; the projects know the maximum.
        let aliases: i64 = if kind == crate::ids::COMPANY_TYPE { parts.iter().map(|part| part.aliases).sum() } else { 0 };
        let means = if aliases > 0 { aliases::resolve(projects, reported).await? } else { reported };
        // Events that arrive between the rounds can make another round inconclusive, too.
        (most, below) = match cut(&parts, means, aliases, limit) {
            Ok(leading) => return Ok(leading),
            Err(part) if below.is_none() && part.is_some() => (most, part),
            Err(_) => (most.saturating_mul(8), None),
        };
    }
}

/// Returns the number of groups that each project reports first. It is usually enough.
fn first_asked(limit: usize, margin: usize) -> usize {
    limit.max(1).saturating_mul(1 + margin / 8) + margin
}

/// The result from the only project that knows the type.
struct Alone {
    leading: Leading,
    /// If the groups at the end of the list are undecided: their rank, and their number in the
    /// list.
    tied: Option<(Rank, usize)>,
}

/// Like [`cut`], for a single project whose groups have one key each. Its order is the order of the
/// list. Returns `None` with several projects, or companies with several keys.
fn alone(parts: &[TopPartial], limit: usize) -> Option<Alone> {
    let mut knowing = parts.iter().filter(|part| part.knows);
    let part = knowing.next().filter(|part| part.aliases == 0)?;
    if knowing.next().is_some() {
        return None;
    }
    let truncated = part.reported.len() > limit || part.others.is_some();
    let last = limit.checked_sub(1).and_then(|last| part.reported.get(last)).map(|(_, place)| *place);
    // The others are in order, too, so none of them comes before the last row.
    let tied = last.filter(|last| part.others.is_some_and(|others| others <= *last));
    let is_leading = |place: Rank| last.is_none_or(|last| place < last || (place == last && tied.is_none()));
    let leading = part.reported.iter().take_while(|(_, place)| is_leading(*place));
    let keys: Keys = leading.map(|(key, _)| *key).collect();
    let tied = tied.map(|rank| (rank, limit.saturating_sub(keys.len())));
    Some(Alone { leading: Leading { keys, aliases: false, truncated }, tied })
}

/// Returns the candidates for the list. `means` is the company of each reported key, in the same
/// order.
///
/// # Errors
/// The reports are inconclusive. Returns the part to which the bounds must be lowered, if that can
/// help.
fn cut(parts: &[TopPartial], means: Keys, aliases: i64, limit: usize) -> Result<Leading, Option<Part>> {
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
        return Err((last > 0).then(|| (last - 1, others)));
    }
    let reaches = |bounds: &EventBounds| bounds.lower + (others - bounds.unreported).max(0) >= last;
    let keys = bounds.into_iter().filter(|(_, bounds)| reaches(bounds)).map(|(key, _)| key).collect();
    Ok(Leading { keys, aliases: aliases > 0, truncated })
}

/// The number of groups that one message processes, so that a shard can do other work in between.
pub(super) const NAMED_TOGETHER: usize = 256;

/// The number of additional candidates up to which all are computed at once, since that costs less
/// than another step.
pub(super) const FEW_MORE: usize = 8;

/// Asks for the number of events of companies or groups.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EventsQuery {
    kind: Box<str>,
    groups: Vec<Keys>,
    window: Window,
}

impl Query for EventsQuery {
    type Partial = Vec<i64>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Vec<i64>, Fault> {
        // The numbers of the groups, each with the index of the group that it counts for.
        let (mut places, mut numbers) = (Vec::new(), Vec::new());
        for (place, key) in self.groups.iter().enumerate().flat_map(|(place, keys)| keys.iter().map(move |key| (place, key))) {
            if let Some((group, _)) = reader.group(*key)? {
                places.push(place);
                numbers.push(group.number);
            }
        }
        let (window, kind) = (reader.kept(self.window), reader.hasher.group_type(&self.kind));
        let Project { rollups, kept_sums, .. } = &*reader.project;
        let activity = &rollups.group_activity;
        let mut events = vec![0; self.groups.len()];
        let kept = kept_sums.sums_of(kind, window, &numbers);
        let sums = kept.unwrap_or_else(|| activity.sums_of(kind, &numbers, &activity.cover(kind, window)));
        places.into_iter().zip(sums).for_each(|(place, sum)| events[place] += sum);
        Ok(events)
    }
}

/// Keeps the companies or groups that may be among the first `limit`, whatever their names.
async fn most_active<P: Projects>(
    projects: &P,
    kind: &str,
    mut keys: Vec<Keys>,
    window: Window,
    limit: usize,
) -> Result<Vec<Keys>, P::Error> {
    let mut active: Vec<(Keys, i64)> = Vec::new();
    // In the order of the store, so that few records cost a block each.
    keys.sort_unstable();
    for some in keys.chunks(NAMED_TOGETHER) {
        let mut total = vec![0; some.len()];
        for part in projects.scatter(EventsQuery { kind: kind.into(), groups: some.to_vec(), window }).await? {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
        active.extend(some.iter().cloned().zip(total).filter(|(_, events)| *events > 0));
        candidates(&mut active, limit, |(_, events)| *events);
    }
    // Certain members of the list, and the many groups that tie for the rest of it.
    let last = active.last().map_or(0, |(_, events)| *events);
    let certain = active.partition_point(|(_, events)| *events > last);
    let mut list: Vec<Keys> = active.into_iter().map(|(keys, _)| keys).collect();
    if list.len() > limit.saturating_add(FEW_MORE) {
        let tied = list.split_off(certain);
        list.extend(first_by_name(projects, tied, limit.saturating_sub(certain)).await?);
    }
    Ok(list)
}

/// Returns the first `limit` companies or groups by name.
async fn first_by_name<P: Projects>(projects: &P, keys: Vec<Keys>, limit: usize) -> Result<Vec<Keys>, P::Error> {
    let mut rows: Vec<(Keys, (String, String))> = Vec::new();
    for some in keys.chunks(NAMED_TOGETHER) {
        let named = parts::named(projects, some.to_vec()).await?;
        rows.extend(some.iter().cloned().zip(named.iter().map(Description::rank)));
        rows.sort_by(|(_, left), (_, right)| left.cmp(right));
        rows.truncate(limit);
    }
    Ok(rows.into_iter().map(|(keys, _)| keys).collect())
}

/// Returns the first `limit` of some companies or groups, in order.
pub(super) async fn rows<P: Projects>(
    projects: &P,
    kind: &str,
    mut keys: Vec<Keys>,
    window: Window,
    limit: usize,
) -> Result<Vec<Card>, P::Error> {
    if keys.len() > limit.saturating_add(FEW_MORE) {
        keys = most_active(projects, kind, keys, window, limit).await?;
    }
    let mut rows = cards(projects, keys, window).await?;
    rows.retain(|row| row.figures.sums.events > 0);
    rank(&mut rows, |row| row.figures.sums.events, |row| row.described.rank());
    rows.truncate(limit);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const KEYS: usize = 30;

    #[test]
    fn the_largest_sums_are_found_in_any_order() {
        let mut random = 1_u64;
        for round in 0..2_000_usize {
            let sums: Vec<i64> = (0..round % 90)
                .map(|_| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    i64::try_from(random % (1 + round as u64 % 40)).unwrap() - 3
                })
                .collect();
            let mut sorted: Vec<(Reverse<i64>, u32)> = sums.iter().map(|sum| Reverse(*sum)).zip(0..).collect();
            sorted.retain(|(Reverse(sum), _)| *sum > 0);
            sorted.sort_unstable();
            for count in [0, 1, 2, 7, 30, 200, usize::MAX] {
                assert_eq!(largest(&sums, count), sorted[..sorted.len().min(count)], "{count} of {sums:?}");
            }
        }
    }

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
            let Ok(leading) = cut(&parts, means, i64::from(aliases), limit) else { continue };
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
