//! Races between the first event and a change of the timezone, and between readers and writers.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

#[test]
fn an_event_never_gets_a_timezone_that_is_not_its_organizations() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::open(dir.path()).unwrap();
    let mut patched_first = 0;
    for round in 0..100 {
        let keys = registry.create_organization(&format!("round {round}"), NOW).unwrap();
        let (id, barrier) = (keys.organization_id, Barrier::new(3));
        let (events, patch) = thread::scope(|scope| {
            let intake = || {
                // The snapshot of a request that started before the race, as if it were still
                // parsing its body.
                let held = registry.public_key(&keys.public_key).map(|key| key.project).unwrap();
                barrier.wait();
                registry.pin_calendar(&held).unwrap().policy.timezone
            };
            let intakes = [scope.spawn(intake), scope.spawn(intake)];
            let patch = scope.spawn(|| {
                barrier.wait();
                registry.update_organization(id, OrganizationPatch { timezone: Some(berlin()), ..Default::default() }, NOW)
            });
            (intakes.map(|intake| intake.join().unwrap()), patch.join().unwrap())
        });
        let is_fixed = matches!(patch, Err(RegistryError::Conflict { code: "timezone_fixed", .. }));
        assert!(is_fixed || patch.is_ok(), "{patch:?}");
        let timezone = registry.organization(id).unwrap().timezone;
        assert_eq!(timezone, if is_fixed { Timezone::UTC } else { berlin() });
        assert_eq!(events, [timezone; 2], "round {round}");
        patched_first += u32::from(!is_fixed);
    }
    // Both orders usually occur, but the test does not require it; the line shows with --nocapture.
    println!("the patch came first in {patched_first} rounds of 100");
}

#[test]
fn a_picture_that_is_pinned_is_final_whenever_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::open(dir.path()).unwrap();
    let zones = ["Europe/Berlin", "Asia/Tokyo", "America/New_York"].map(|name| Timezone::parse(name).unwrap());
    for round in 0..20 {
        let keys = registry.create_organization("o", NOW).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut pinned = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    let config = registry.public_key(&keys.public_key).map(|key| key.project).unwrap();
                    if config.is_calendar_pinned() && pinned.last() != Some(&config.policy.timezone) {
                        pinned.push(config.policy.timezone);
                    }
                }
                pinned
            });
            let patcher = scope.spawn(|| {
                for timezone in zones.iter().cycle().take(8) {
                    let patch = OrganizationPatch { timezone: Some(*timezone), ..Default::default() };
                    let _ = registry.update_organization(keys.organization_id, patch, NOW);
                }
            });
            let held = registry.public_key(&keys.public_key).map(|key| key.project).unwrap();
            let event = registry.pin_calendar(&held).unwrap().policy.timezone;
            patcher.join().unwrap();
            done.store(true, Ordering::Relaxed);
            let seen = watcher.join().unwrap();
            assert!(seen.iter().all(|timezone| *timezone == event), "round {round}: {seen:?}, recorded in {event:?}");
            assert_eq!(registry.organization(keys.organization_id).unwrap().timezone, event);
        });
    }
}

#[test]
fn changes_of_many_threads_are_all_there() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    let id = registry.initialize(NOW).unwrap().organization_id;
    let patch = OrganizationPatch { actions_balance: Some(10), ..Default::default() };
    registry.update_organization(id, patch, NOW).unwrap();
    let spent = thread::scope(|scope| {
        let spenders = [0; 4].map(|_| scope.spawn(|| (0..5).filter(|_| start(&registry, id, 1).is_ok()).count()));
        for _ in 0..10 {
            let (made, secret) = registry.create_token(id, token("t", &[Scope::Admin]), NOW).unwrap();
            assert!(registry.authenticate(secret.expose(), NOW).is_ok());
            registry.revoke_token(id, &made.token_id, NOW).unwrap();
            assert!(registry.authenticate(secret.expose(), NOW).is_err());
        }
        spenders.map(|spender| spender.join().unwrap()).iter().sum::<usize>()
    });
    assert_eq!((spent, registry.organization(id).unwrap().actions_balance), (10, 0));
    let expected = everything(&registry);
    drop(registry);
    assert_eq!(everything(&open(dir.path()).unwrap()), expected);
}
