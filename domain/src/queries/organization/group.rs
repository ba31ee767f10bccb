//! Queries about groups, over all projects of their organization.

use super::card::{Card, CardSubject, card};
use super::parts::{self, Description};
use super::top_k::{self, Leading};
use crate::queries::answers::{GroupMetrics, Listed};
use crate::queries::partial::Projects;
use crate::time::Window;

/// Returns the activity of a group in a window; `None` if there is no such group.
///
/// # Errors
/// A project did not answer.
pub async fn group_metrics<P: Projects>(
    projects: &P,
    group_type: &str,
    group_key: &str,
    window: Window,
) -> Result<Option<GroupMetrics>, P::Error> {
    let key = projects.hasher().group(group_type, group_key);
    let card = card(projects, CardSubject::Key(key), window).await?;
    Ok(card.and_then(|card| metrics(group_type, &card)))
}

/// Returns the metrics; `None` if the group has no events.
fn metrics(group_type: &str, card: &Card) -> Option<GroupMetrics> {
    let Card { described, figures } = card;
    Some(GroupMetrics {
        group_type: group_type.to_owned(),
        group_key: described.key.as_deref().unwrap_or_default().to_owned(),
        name: described.name(),
        events: figures.sums.events,
        users: figures.users,
        last_seen: described.seen?.1,
    })
}

/// Returns the most recently reported names of groups, by type and key.
///
/// # Errors
/// A project did not answer.
pub async fn group_names<P: Projects>(projects: &P, groups: &[(String, String)]) -> Result<Vec<Option<String>>, P::Error> {
    let keys = groups.iter().map(|(kind, key)| vec![projects.hasher().group(kind, key)]).collect();
    Ok(parts::named(projects, keys).await?.iter().map(Description::name).collect())
}

/// Returns the most active groups of a type in a window.
///
/// # Errors
/// A project did not answer.
pub async fn top_groups<P: Projects>(
    projects: &P,
    group_type: &str,
    window: Window,
    limit: usize,
) -> Result<Listed<GroupMetrics>, P::Error> {
    let Leading { keys, truncated, .. } = top_k::leading(projects, group_type, window, limit).await?;
    let keys = keys.into_iter().map(|key| vec![key]).collect();
    let rows = top_k::rows(projects, group_type, keys, window, limit).await?;
    Ok(Listed { rows: rows.iter().filter_map(|card| metrics(group_type, card)).collect(), truncated })
}
