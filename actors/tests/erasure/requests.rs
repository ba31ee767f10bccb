//! Privacy requests: they agree with the queries, and they end whatever fails.

use std::sync::Arc;
use std::time::{Duration, Instant as Stopwatch};

use headcount_actors::Engine;
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::queries::{IntakeQuery, LifetimeFigures, RevenueMetricsQuery, TrafficQuery, UniqueUsersQuery};
use headcount_actors::domain::time::Timezone;
use headcount_actors::engine::ErasureError;
use headcount_privacy::{Privacy, PrivacyAuditEvent, PrivacyRequest, PrivacyRequestKind, PrivacyStatus, PrivacySubject};
use headcount_storage::files::switch::{Errno, Plan, Switch};

use super::history::{Random, Sent};
use super::{Rig, assert_gone, copy, half_sealed, sampled, window};

pub(super) fn privacy(engine: &Engine) -> Arc<Privacy> {
    engine.feature().unwrap()
}

impl Rig {
    pub(super) async fn request(
        &self,
        kind: PrivacyRequestKind,
        subject: PrivacySubject,
    ) -> Result<Arc<PrivacyRequest>, ErasureError> {
        let (engine, organization) = (self.engine.clone(), self.organization);
        let make = move || privacy(&engine).make(organization, kind, subject, engine.clock().now());
        tokio::task::spawn_blocking(make).await.unwrap()
    }

    async fn completed(&self, request: &PrivacyRequest, what: &str) -> Arc<PrivacyRequest> {
        let until = Stopwatch::now() + Duration::from_secs(60);
        loop {
            let shown = privacy(&self.engine).get(self.organization, &request.id).unwrap();
            if shown.status == PrivacyStatus::Completed {
                return shown;
            }
            assert!(Stopwatch::now() < until, "{what}: {shown:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn figures(&self, project: ProjectId) -> LifetimeFigures {
        let (ask, window) = (&self.engine, window());
        let money = ask.ask(project, RevenueMetricsQuery { window }).await.unwrap();
        LifetimeFigures {
            events: ask.ask(project, IntakeQuery { window, timezone: Timezone::UTC }).await.unwrap().recorded,
            unique_users: ask.ask(project, UniqueUsersQuery { window }).await.unwrap().total,
            sessions: u64::try_from(ask.ask(project, TrafficQuery { window, limit: 1 }).await.unwrap().sessions).unwrap(),
            orders: money.orders,
            revenue: money.total_revenue,
        }
    }
}

fn user(number: u64) -> PrivacySubject {
    PrivacySubject::UserId(format!("zanzibar-u{number}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_before_and_after_are_those_of_queries() {
    let home = tempfile::tempdir().unwrap();
    let rig = Rig::new(home.path());
    let mut random = Random(7);
    for number in 0..150 {
        rig.send(&Sent::random(&mut random, number)).await;
    }
    for number in 0..3 {
        let what = format!("user {number}");
        let mut before = Vec::new();
        for project in &rig.projects {
            before.push((*project, rig.figures(*project).await));
        }
        let made = rig.request(PrivacyRequestKind::Erasure, user(number)).await.unwrap();
        let done = rig.completed(&made, &what).await;
        let mut lost = 0;
        for entry in &done.audit {
            let PrivacyAuditEvent::Erased(erased) = &entry.event else { continue };
            assert!(before.contains(&(erased.project, erased.before)), "{what}: {erased:?}");
            assert_eq!(erased.after, rig.figures(erased.project).await, "{what}");
            assert_ne!(erased.after, erased.before, "{what}");
            lost += erased.before.events - erased.after.events;
        }
        let last = &done.audit.last().unwrap().event;
        assert_eq!(*last, PrivacyAuditEvent::Completed { identities: 1, events: lost }, "{what}");
        assert!(lost > 0 && done.subject.is_erased(), "{what}");
    }
    rig.engine.close().await;
}

/// A failure is an error, and the erasure continues or is repeated. A later request completes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_requests_fail_once_and_all_ends() {
    let home = tempfile::tempdir().unwrap();
    let base = home.path().join("base");
    let rig = half_sealed(&base).await;
    let mut failures = 0;
    for at in sampled(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 20, 30], &[1, 3, 5, 8]) {
        let data = home.path().join(format!("data-{at}"));
        copy(&base, &data);
        let rig = rig.open(&data);
        let errno = if at.is_multiple_of(2) { Errno::NoSpace } else { Errno::Io };
        let switch = Switch::arm(&data.join("control/privacy"), Plan { at, failures: 1, errno, done: false });
        let subject = || PrivacySubject::UserId("zanzibar".to_owned());
        let what = format!("{errno:?} at {at}");
        let made = match rig.request(PrivacyRequestKind::Erasure, subject()).await {
            Ok(made) => made,
            Err(error) => {
                assert!(matches!(error, ErasureError::Registry(_)), "{what}: {error}");
                rig.request(PrivacyRequestKind::Erasure, subject()).await.unwrap()
            }
        };
        rig.completed(&made, &what).await;
        let failed = switch.failed().first().cloned();
        drop(switch);
        rig.engine.close().await;
        let rig = rig.open(&data);
        assert!(rig.completed(&made, &what).await.subject.is_erased(), "{what}");
        rig.engine.close().await;
        assert_gone(&data, "zanzibar", &format!("{what}: {failed:?}"));
        failures += u64::from(failed.is_some());
        if failed.is_none() {
            break;
        }
    }
    assert!(failures >= 2, "{failures} failures");
}
