//! What alerts do when something happens in the engine.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headcount_actors::{Feature, FeatureFigure, InstallFeature, MovedDocuments};
use headcount_common::ControlError;
use headcount_domain::ProjectId;

use crate::alert_state::KIND;
use crate::evaluator;
use crate::pushed::{AlertCounts, Pushed};
use crate::settings::PushSettings;

impl Feature for Pushed {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn start(self: Arc<Self>) -> io::Result<()> {
        self.projects_deleted();
        if self.settings.evaluates { evaluator::start(self) } else { Ok(()) }
    }

    fn close(&self) {
        self.stop();
    }

    /// Removes the states of their alerts. Failures are retried at the next start.
    fn projects_deleted(&self) {
        let registry = self.parts.registry();
        for id in self.states.ids(|_, state| registry.policy(state.project).is_none()) {
            if let Err(error) = self.states.remove(&id) {
                tracing::warn!(%error, "the alerts of a deleted project could not be removed; the next start tries again");
                return;
            }
        }
    }

    fn follow(&self) -> Result<u64, ControlError> {
        self.states.follow()
    }

    fn figures(&self) -> Vec<FeatureFigure> {
        let AlertCounts { evaluated, fired, delivered, failed } = &self.counts;
        let of = |name, help, count: &AtomicU64| FeatureFigure { name, help, value: count.load(Ordering::Relaxed) };
        vec![
            of("headcount_alerts_evaluated_total", "Figures that were compared with the condition of an alert.", evaluated),
            of("headcount_alerts_fired_total", "Alerts that began to fire.", fired),
            of("headcount_alert_messages_delivered_total", "Messages about alerts that a channel took.", delivered),
            of("headcount_alert_messages_failed_tries_total", "Tries to send such a message that failed.", failed),
        ]
    }

    fn for_backup(&self, is_wanted: &dyn Fn(ProjectId) -> bool) -> Result<Box<dyn MovedDocuments>, ControlError> {
        self.states.follow()?;
        Ok(Box::new(self.states.copied(is_wanted)))
    }
}

/// Makes channels and alerts a feature of an engine.
pub fn install(settings: PushSettings) -> InstallFeature {
    Arc::new(move |parts, _| Ok(Arc::new(Pushed::open(parts.clone(), settings.clone())?)))
}

#[cfg(test)]
mod tests {
    use headcount_actors::{Engine, EngineConfig};
    use headcount_domain::OrganizationId;
    use headcount_outbound::AllowList;

    use super::*;
    use crate::pushed::MAX_SENDING;

    #[test]
    fn an_organization_leaves_room_for_others() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = EngineConfig::new(dir.path());
        config.min_free_bytes = 0;
        config.features = vec![install(PushSettings::guarded(AllowList::default(), false))];
        let engine = Engine::open(config).unwrap();
        let pushed: Arc<Pushed> = engine.feature().unwrap();
        let permit = |organization| pushed.permit((OrganizationId(organization), false));
        let mut held: Vec<_> = (0..MAX_SENDING as u64).map(|number| permit(number / 2).unwrap()).collect();
        assert!(permit(0).is_none() && permit(9).is_none());
        assert!(pushed.permit((OrganizationId(0), true)).is_some());
        held.remove(0);
        assert!(permit(1).is_none());
        let again = permit(0).unwrap();
        assert!(permit(9).is_none());
        drop((again, held));
        assert!(pushed.sending.lock().is_empty());
    }
}
