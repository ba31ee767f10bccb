//! Queries about groups, over all projects of their organization.

use super::parts::{self, Description, Figures};
use super::top_k::{self, Leading, TopRow};
use crate::queries::answers::{GroupMetrics, Listed};
use crate::queries::partial::Projects;
use crate::time::{Instant, Window};

/// Returns the activity of a group in a window; `None` if there is no such group.
///
/// # Errors A project did not answer.
pub async fn group_metrics<P: Projects>(
    projects: &P,
    group_type: &str,
    group_key: &str,
    window: Window,
) -> Result<Option<GroupMetrics>, P::Error> {
    let key = projects.hasher().group(group_type, group_key);
    let named = parts::named(projects, vec![vec![key]], None).await?.pop().unwrap_or_default();
    let Some((_, last_seen)) = named.seen else { return Ok(None) };
    let figures = parts::figures(projects, vec![(vec![key], named.projects)], window).await?.pop().unwrap_or_default();
    Ok(Some(metrics(group_type, &named, &figures, last_seen)))
}

fn metrics(group_type: &str, named: &Description, figures: &Figures, last_seen: Instant) -> GroupMetrics {
    GroupMetrics {
        group_type: group_type.to_owned(),
        group_key: named.key.as_deref().unwrap_or_default().to_owned(),
        name: named.name(),
        events: figures.sums.events,
        users: figures.users,
        last_seen,
    }
}

/// Returns the most recently reported names of groups, by type and key.
///
/// # Errors A project did not answer.
pub async fn group_names<P: Projects>(projects: &P, groups: &[(String, String)]) -> Result<Vec<Option<String>>, P::Error> {
    let keys = groups.iter().map(|(kind, key)| vec![projects.hasher().group(kind, key)]).collect();
    Ok(parts::named(projects, keys, None).await?.iter().map(Description::name).collect())
}

/// Returns the most active groups of a type in a window.
///
/// # Errors A project did not answer.
pub async fn top_groups<P: Projects>(
    projects: &P,
    group_type: &str,
    window: Window,
    limit: usize,
) -> Result<Listed<GroupMetrics>, P::Error> {
    let Leading { keys, truncated, .. } = top_k::leading(projects, group_type, window, limit).await?;
    let keys = keys.into_iter().map(|key| vec![key]).collect();
    let rows = top_k::rows(projects, group_type, keys, window, limit).await?;
    let row = |row: &TopRow| Some(metrics(group_type, &row.named, &row.figures, row.named.seen?.1));
    Ok(Listed { rows: rows.iter().filter_map(row).collect(), truncated })
}
