//! Finds the first groups by name among very many groups with equal ranks.
//!
//! Their keys come as one list, in the order of the store. Their names are read in parts, and are
//! not kept.

use super::parts::{Keys, Rank};
use crate::company::group::Group;
use crate::fault::Fault;
use crate::ids::RecordKey;
use crate::project::Project;
use crate::queries::partial::{Projects, Query, Reader};
use crate::records::Source;
use crate::time::Window;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// The number of groups whose names are read for one message. In key order, few of them cost a
/// block each.
const READ_TOGETHER: usize = 1024;

/// Asks for the keys of all groups of a rank, in order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TiedQuery {
    kind: Box<str>,
    window: Window,
    rank: Rank,
}

impl Query for TiedQuery {
    type Partial = Keys;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Keys, Fault> {
        let (window, kind) = (reader.kept(self.window), reader.hasher.group_type(&self.kind));
        let Project { rollups, kept_sums, .. } = &mut *reader.project;
        let (activity, groups) = (&rollups.group_activity, rollups.group_numbers.count(kind));
        let sums = kept_sums.sums(kind, window, groups, || activity.sums(kind, groups, &activity.cover(kind, window)));
        let (Reverse(events), prefix) = self.rank;
        let is_tied = |number: u32, of: _| of == prefix && sums.get(number as usize) == Some(&events);
        let tied = rollups.group_names.of_kind(kind).filter(|(number, of)| is_tied(*number, *of));
        let mut keys: Keys = tied.filter_map(|(number, _)| rollups.group_numbers.get((kind, number))).collect();
        keys.sort_unstable();
        Ok(keys)
    }
}

/// The order of ties: by name, or by key without a name; then by key.
type NameRank = (Box<str>, Box<str>);

/// Asks which groups come first by name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FirstByNameQuery {
    keys: Keys,
    limit: usize,
}

impl Query for FirstByNameQuery {
    type Partial = Vec<(NameRank, RecordKey)>;

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<Self::Partial, Fault> {
        let mut first = Vec::new();
        for key in &self.keys {
            let rank = match reader.project.groups.peek(*key) {
                Some(group) => Some(name_rank(group)),
                None => reader.source.record::<Group>(*key)?.as_ref().map(name_rank),
            };
            first.extend(rank.map(|rank| (rank, *key)));
            if first.len() > self.limit.saturating_mul(2) {
                keep_first(&mut first, self.limit);
            }
        }
        keep_first(&mut first, self.limit);
        Ok(first)
    }
}

fn name_rank(group: &Group) -> NameRank {
    (group.name.as_ref().map_or(&group.key, |(_, name)| name).clone(), group.key.clone())
}

fn keep_first(ranked: &mut Vec<(NameRank, RecordKey)>, limit: usize) {
    ranked.sort_unstable();
    ranked.truncate(limit);
}

/// Returns the keys of the first `limit` groups by name that have this rank, in the only project
/// that knows their type.
pub(super) async fn first_tied<P: Projects>(
    projects: &P,
    kind: &str,
    window: Window,
    rank: Rank,
    limit: usize,
) -> Result<Keys, P::Error> {
    let tied = projects.scatter(TiedQuery { kind: kind.into(), window, rank }).await?;
    let mut first = Vec::new();
    for keys in tied.iter().flat_map(|keys| keys.chunks(READ_TOGETHER)) {
        for part in projects.scatter(FirstByNameQuery { keys: keys.to_vec(), limit }).await? {
            first.extend(part);
        }
        keep_first(&mut first, limit);
    }
    Ok(first.into_iter().map(|(_, key)| key).collect())
}
