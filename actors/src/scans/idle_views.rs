//! Removes kept answers that are no longer asked for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::System;
use headcount_control::Registry;

use super::views::Views;

/// How often idle views are removed.
const CHECKED_EVERY: Duration = Duration::from_secs(30);

/// Creates views of at most `most` bytes. While `system` runs, idle views and those of deleted
/// projects are removed.
pub(super) fn start_views(most: usize, system: &System, registry: &Arc<Registry>) -> Arc<Views> {
    let views = Arc::new(Views::new(most));
    let (checked, registry) = (Arc::clone(&views), Arc::clone(registry));
    system.arbiter().spawn(async move {
        loop {
            tokio::time::sleep(CHECKED_EVERY).await;
            checked.remove_idle(Instant::now(), |project| registry.policy(project).is_some());
        }
    });
    views
}
