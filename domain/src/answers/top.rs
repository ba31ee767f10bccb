//! Top lists of companies and groups, without reading all of them.
//!
//! Each project tells the most active ones and how active the others are at most. If that, added up, is less than what the
//! last row of the list certainly has, then whoever is in the list was told by somebody; else each tells more. What was told
//! is a lower bound, with the most that the others may have it is an upper one: only those that reach the last row are
//! looked at exactly.

use std::collections::HashMap;

use super::company;
use super::group::{self, Figures, Keys, NamedPart};
use super::question::{Projects, Question, Reader, rank};
use crate::ids::RecordKey;
use crate::records::{Fault, Source};
use crate::table::KeyHashBuilder;
use crate::time::Window;

/// Asks which groups of a type were the most active.
#[derive(Debug, Clone)]
struct AskTop {
    kind: Box<str>,
    window: Window,
    /// How many are told.
    most: usize,
}

/// The most active groups of one project.
#[derive(Debug)]
struct TopPart {
    /// Their keys, each with its events of the window; in no order.
    told: Vec<(RecordKey, i64)>,
    /// How many events any other had at most.
    others: i64,
    /// How many keys this project knows one company by, beside its own.
    aliases: i64,
}

impl Question for AskTop {
    type Part = TopPart;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<TopPart, Fault> {
        let rollups = &reader.project.rollups;
        let activity = &rollups.group_activity;
        let sums = activity.sums(&self.kind, rollups.group_numbers.count(&self.kind), &activity.cover(self.window));
        let mut active: Vec<(i64, u32)> =
            (0..).zip(sums).filter(|(_, sum)| *sum > 0).map(|(number, sum)| (sum, number)).collect();
        let mut others = 0;
        if active.len() > self.most {
            let (_, next, _) = active.select_nth_unstable_by_key(self.most, |(sum, _)| std::cmp::Reverse(*sum));
            others = next.0;
            active.truncate(self.most);
        }
        let keys = rollups.group_numbers.keys(&self.kind, active.iter().map(|(_, number)| *number));
        let told = keys.into_iter().zip(active).filter_map(|(key, (sum, _))| Some((key?, sum))).collect();
        Ok(TopPart { told, others, aliases: rollups.company_links.most().into() })
    }
}

/// What is known of one company or group when some projects told of it.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    /// Its events, at least.
    least: i64,
    /// How many it would have had instead, had it been the most active of those that were not told.
    else_: i64,
}

/// Who may be in a top list.
#[derive(Debug)]
pub(super) struct Leading {
    /// All that can be in it, whatever they are called, and perhaps some more; for companies the keys that they go by.
    pub(super) keys: Keys,
    /// Whether any may have other keys, too.
    pub(super) aliases: bool,
    /// Whether there are more than fit into the list.
    pub(super) truncated: bool,
}

/// Who may be among the `limit` most active groups of a type.
pub(super) async fn leading<P: Projects>(projects: &P, kind: &str, window: Window, limit: usize) -> Result<Leading, P::Error> {
    let mut most = first_asked(limit);
    loop {
        let parts = projects.each(AskTop { kind: kind.into(), window, most }).await?;
        if let Some(leading) = cut(projects, &parts, kind == company::COMPANY, limit).await? {
            return Ok(leading);
        }
        most = most.saturating_mul(8);
    }
}

/// How many each project is asked for first: mostly enough.
fn first_asked(limit: usize) -> usize {
    // Tests have few groups, and are to ask again sometimes.
    (limit * 6 + 40).min(limit.saturating_add(crate::paged::page_items() / 4))
}

/// Who may be in the list, if that can be told from what the projects told.
async fn cut<P: Projects>(projects: &P, parts: &[TopPart], companies: bool, limit: usize) -> Result<Option<Leading>, P::Error> {
    let told: Keys = parts.iter().flat_map(|part| &part.told).map(|(key, _)| *key).collect();
    // A company may have been told by several keys; how many, the projects know.
    let aliases: i64 = if companies { parts.iter().map(|part| part.aliases).sum() } else { 0 };
    let means = if aliases > 0 { company::resolve(projects, told.clone()).await? } else { told };
    let mut means = means.into_iter();
    let mut bounds: HashMap<RecordKey, Bounds, KeyHashBuilder> = HashMap::default();
    for part in parts {
        for ((_, events), key) in part.told.iter().zip(&mut means) {
            let bounds = bounds.entry(key).or_default();
            bounds.least += events;
            bounds.else_ += part.others;
        }
    }
    let others: i64 = parts.iter().map(|part| part.others).sum::<i64>().saturating_mul(1 + aliases);
    let mut least: Vec<i64> = bounds.values().map(|bounds| bounds.least).collect();
    let truncated = least.len() > limit;
    let last = match limit.checked_sub(1) {
        Some(place) if truncated => *least.select_nth_unstable_by_key(place, |least| std::cmp::Reverse(*least)).1,
        _ => 0,
    };
    if others > 0 && others >= last {
        return Ok(None);
    }
    let reaches = |bounds: &Bounds| bounds.least + (others - bounds.else_).max(0) >= last;
    let keys = bounds.into_iter().filter(|(_, bounds)| reaches(bounds)).map(|(key, _)| key).collect();
    Ok(Some(Leading { keys, aliases: aliases > 0, truncated }))
}

/// One row of a top list.
#[derive(Debug)]
pub(super) struct TopRow {
    pub(super) named: NamedPart,
    pub(super) figures: Figures,
}

/// The first `limit` of some companies or groups, in order.
pub(super) async fn rows<P: Projects>(
    projects: &P,
    kind: &str,
    keys: Vec<Keys>,
    window: Window,
    limit: usize,
) -> Result<Vec<TopRow>, P::Error> {
    let named = group::named(projects, keys.clone(), Some((kind, window))).await?;
    let mut rows: Vec<(Keys, NamedPart)> = keys.into_iter().zip(named).filter(|(_, named)| named.events > 0).collect();
    rank(&mut rows, |(_, named)| named.events, |(_, named)| named.rank());
    rows.truncate(limit);
    let groups = rows.iter().map(|(keys, named)| (keys.clone(), named.projects)).collect();
    let figures = group::figures(projects, groups, window).await?;
    Ok(rows.into_iter().zip(figures).map(|((_, named), figures)| TopRow { named, figures }).collect())
}
