//! Webhooks for another log with other positions: from a cluster for the data directory of one
//! machine, or the other way round.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use headcount_actors::{BackedUpControl, Feature as _, MovedDocument, MovedDocuments, MovedKind, PositionMap};
use headcount_common::local::{ReadItems, kind_dir, read_items, write_items};
use headcount_common::{ControlError, DocumentItem as _, checked_json};
use headcount_control::WebhookId;
use headcount_domain::{Position, ProjectId};

use crate::progress::{Delivery, DeliveryProgress, most_deliveries};
use crate::store::Webhooks;
use crate::webhook::{KIND, Webhook};

/// The webhooks of an installation that moves into a cluster.
pub const MOVED: MovedKind = MovedKind {
    kind: KIND,
    name: KIND,
    read: |from| {
        let (webhooks, unreadable) = MovedWebhook::read_all(from)?;
        Ok((Box::new(MovedWebhooks(webhooks)), unreadable))
    },
};

/// A webhook, and its progress.
#[derive(Debug)]
struct MovedWebhook {
    webhook: Webhook,
    progress: DeliveryProgress,
}

/// Webhooks, each with its progress.
#[derive(Debug)]
pub(crate) struct MovedWebhooks(Vec<MovedWebhook>);

impl Webhooks {
    /// Returns the current webhooks of the wanted projects. Blocks.
    ///
    /// # Errors
    /// The shared progress can't be read.
    pub(crate) fn moved(&self, is_wanted: &dyn Fn(ProjectId) -> bool) -> Result<MovedWebhooks, ControlError> {
        self.follow()?;
        let held = self.held.read();
        let wanted = held.all().filter(|held| is_wanted(held.webhook.project));
        let wanted: Vec<_> = wanted.map(|held| held.webhook.clone()).collect();
        drop(held);
        wanted.into_iter().map(|webhook| self.backed_up(webhook)).collect::<Result<_, _>>().map(MovedWebhooks)
    }

    fn backed_up(&self, webhook: Webhook) -> Result<MovedWebhook, ControlError> {
        let read = self.progress.read(&webhook.id.to_string()).map_err(|error| ControlError::Documents(error.to_string()))?;
        // Unreadable progress counts as none, as for its owner.
        let decoded = read.and_then(|(bytes, _)| checked_json::decode(DeliveryProgress::VERSION, &bytes));
        let progress = decoded.unwrap_or_else(|| DeliveryProgress::of(&webhook));
        Ok(MovedWebhook { webhook, progress })
    }
}

impl MovedWebhook {
    /// Reads the webhooks of a data directory that no process changes. Also returns the number of
    /// unreadable ones.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn read_all(data_dir: &Path) -> io::Result<(Vec<Self>, usize)> {
        let dir = kind_dir(data_dir, KIND);
        let ReadItems { items: webhooks, damaged } = read_items::<Webhook>(&dir)?;
        let mut progress: BTreeMap<WebhookId, DeliveryProgress> =
            read_items::<DeliveryProgress>(&dir)?.items.into_iter().collect();
        let with_progress = |(id, webhook): (WebhookId, Webhook)| {
            let progress = progress.remove(&id).unwrap_or_else(|| DeliveryProgress::of(&webhook));
            Self { webhook, progress }
        };
        Ok((webhooks.into_iter().map(with_progress).collect(), damaged))
    }

    /// Returns the webhook with the new positions. Deliveries of missing events are left out.
    fn moved(&self, positions: &PositionMap) -> (Webhook, DeliveryProgress) {
        let (webhook, project) = (self.webhook.clone(), self.webhook.project);
        let up_to = |position: Position| positions.up_to(project, position);
        let delivery = |delivery: &Delivery| {
            let position = positions.exactly(project, delivery.position)?;
            Some((position, Delivery { position, ..delivery.clone() }))
        };
        let progress = DeliveryProgress {
            done: up_to(self.progress.done),
            // The next sender finds out which of these events exist.
            reflected: 0,
            deliveries: self.progress.deliveries.values().filter_map(delivery).collect(),
        };
        (Webhook { created_after: up_to(webhook.created_after), ..webhook }, progress)
    }
}

impl MovedDocuments for MovedWebhooks {
    fn want(&self, positions: &mut PositionMap) {
        for MovedWebhook { webhook, progress } in &self.0 {
            let own = [webhook.created_after, progress.done];
            positions.want(webhook.project, own.into_iter().chain(progress.deliveries.keys().copied()));
        }
    }

    fn documents(&self, positions: &PositionMap, max_bytes: usize) -> io::Result<Vec<MovedDocument>> {
        let documents = |moved: &MovedWebhook| {
            let (webhook, progress) = moved.moved(positions);
            let progress = progress.shortened(most_deliveries(max_bytes));
            Ok(MovedDocument {
                key: webhook.id.to_string(),
                content: checked_json::encode(Webhook::VERSION, &webhook)?,
                value: Some(checked_json::encode(DeliveryProgress::VERSION, &progress)?),
            })
        };
        self.0.iter().map(documents).collect()
    }

    fn write(&self, data_dir: &Path, control: &BackedUpControl<'_>, positions: &PositionMap) -> io::Result<()> {
        let dir = kind_dir(data_dir, KIND);
        self.0.iter().filter(|moved| (control.has_project)(moved.webhook.project)).try_for_each(|moved| {
            let (webhook, progress) = moved.moved(positions);
            write_items(&dir, [(&webhook.id, &progress)])?;
            write_items(&dir, [(&webhook.id, &webhook)])
        })
    }
}

#[cfg(test)]
mod tests {
    use headcount_domain::{Instant, OrganizationId};

    use super::*;
    use crate::progress::DeliveryStatus;
    use crate::webhook::{FormerSecret, SigningSecret, WebhookStatus};

    fn delivery(position: Position) -> Delivery {
        Delivery {
            position,
            event_id: format!("evt_{position}"),
            status: DeliveryStatus::Delivered,
            attempts: 1,
            last_status: Some(200),
            last_error: None,
            created_at: Instant(1),
            delivered_at: Some(Instant(2)),
            tried_since: Instant(1),
            next_at: Instant(1),
        }
    }

    /// From a cluster to one machine and back: nothing is sent twice, and the numbers of the
    /// secrets are the same.
    #[test]
    fn a_webhook_goes_on_in_another_log_where_it_was() {
        let (secret, former) = (SigningSecret::random().unwrap(), SigningSecret::random().unwrap());
        let webhook = Webhook {
            id: WebhookId::random().unwrap(),
            organization: OrganizationId(1),
            project: ProjectId(2),
            url: "https://a.example/".to_owned(),
            events: Vec::new(),
            status: WebhookStatus::Active,
            created_at: Instant(1),
            created_after: 8192,
            secret: secret.clone(),
            former: Some(FormerSecret { secret: former.clone(), valid_until: Instant(9) }),
        };
        let deliveries = [16_384, 16_385, 24_576].map(|position| (position, delivery(position))).into();
        let progress = DeliveryProgress { done: 24_576, reflected: 7, deliveries };
        let moved = MovedWebhooks(vec![MovedWebhook { webhook, progress }]);
        let mut positions = PositionMap::default();
        moved.want(&mut positions);
        // The event of one delivery was erased.
        positions.pass(ProjectId(2), &[8191, 8192], 1);
        positions.pass(ProjectId(2), &[16_384, 24_576, 24_577], 7);
        positions.finish();
        let dir = tempfile::tempdir().unwrap();
        let all = BackedUpControl { has_project: &|_| true, has_organization: &|_| true, erasures: &[] };
        moved.write(dir.path(), &all, &positions).unwrap();
        let (read, unreadable) = MovedWebhook::read_all(dir.path()).unwrap();
        let MovedWebhook { webhook, progress } = &read[0];
        assert_eq!((read.len(), unreadable, webhook.created_after, progress.done, progress.reflected), (1, 0, 2, 8, 0));
        let listed: Vec<_> =
            progress.deliveries.iter().map(|(at, delivery)| (*at, delivery.position, &*delivery.event_id)).collect();
        assert_eq!(listed, [(7, 7, "evt_16384"), (8, 8, "evt_24576")]);
        // And back to the cluster.
        let mut back = PositionMap::default();
        let read = MovedWebhooks(read);
        read.want(&mut back);
        back.pass(ProjectId(2), &[1, 2, 7, 8, 9], 8192);
        back.finish();
        let documents = read.documents(&back, 2_048).unwrap();
        assert_eq!(documents, read.documents(&back, 2_048).unwrap(), "an attempt that is made again writes the same");
        let decoded = |document: &MovedDocument| -> DeliveryProgress {
            checked_json::decode(DeliveryProgress::VERSION, document.value.as_ref().unwrap()).unwrap()
        };
        let shared: Webhook = checked_json::decode(Webhook::VERSION, &documents[0].content).unwrap();
        let cursor = decoded(&documents[0]);
        assert_eq!((shared.created_after, cursor.done, cursor.deliveries.len()), (8193, 8195, 2));
        assert_eq!((shared.secret, shared.former.map(|former| former.secret)), (secret, Some(former)));
        assert_eq!(decoded(&read.documents(&back, 1_024).unwrap()[0]).deliveries.len(), 1);
    }
}
