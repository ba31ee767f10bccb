//! The notifications of a project, for its webhooks.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;

use super::shared::Scans;
use crate::shard::AskError;
use crate::webhooks::Notification;

/// How many notifications are read at a time, and how many bytes of them.
const NOTIFICATIONS: usize = 100;
const NOTIFICATION_BYTES: usize = 1 << 20;

/// The first notifications after a position.
pub(crate) struct NextNotifications {
    pub(crate) notifications: Vec<Notification>,
    /// Up to here, there are no others.
    pub(crate) until: Position,
    /// Whether events follow that were not read.
    pub(crate) has_more: bool,
}

impl Scans {
    /// Returns the first notifications after a position. Costs one pass over the events up to the last of them, and asks no shard about any.
    ///
    /// # Errors
    /// See [`AskError`].
    pub(crate) async fn notifications_after(&self, project: ProjectId, after: Position) -> Result<NextNotifications, AskError> {
        self.scan(project, move |scan, _| {
            let mut next = NextNotifications { notifications: Vec::new(), until: scan.until.max(after), has_more: false };
            let mut bytes = 0;
            scan.visit_after(after, None, &mut |position, event| {
                let Some(notification) = Notification::of(position, &event) else { return Ok(ControlFlow::Continue(())) };
                bytes += notification.bytes();
                next.notifications.push(notification);
                if next.notifications.len() < NOTIFICATIONS && bytes < NOTIFICATION_BYTES {
                    return Ok(ControlFlow::Continue(()));
                }
                (next.until, next.has_more) = (position, true);
                Ok(ControlFlow::Break(()))
            })?;
            Ok(next)
        })
        .await
    }

    /// Returns those of the positions that still have an event.
    ///
    /// # Errors
    /// See [`AskError`].
    pub(crate) async fn existing(
        &self,
        project: ProjectId,
        positions: BTreeSet<Position>,
    ) -> Result<BTreeSet<Position>, AskError> {
        self.scan(project, move |scan, _| {
            let mut found = BTreeSet::new();
            scan.find_events(&positions, &mut |position, _| {
                found.insert(position);
            })?;
            Ok(found)
        })
        .await
    }
}
