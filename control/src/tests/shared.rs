//! Several registries that write to the same control log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use headcount_domain::RecordKey;

use super::shared_log::{SharedLog, Writer};
use super::*;
use crate::change_limit::ChangeLimit;

fn member(email: &str) -> NewMember {
    NewMember { email: email.into(), name: None, role: Role::Admin }
}

#[test]
fn too_many_changes_are_refused_where_all_are_kept() {
    let mut writer = Writer::open(SharedLog::default());
    let organization = writer.registry.initialize(NOW).unwrap().organization_id;
    writer.registry.change_limit = ChangeLimit::new(2, Duration::from_secs(3_600));
    let create = |registry: &Registry| {
        registry.create_project(organization, NewProject { name: "p".into(), ..NewProject::default() }, NOW)
    };
    let alone: Vec<_> = (0..5).map(|_| create(&writer.registry).unwrap().id).collect();
    writer.registry.propagate_with(|_| {});
    (0..2).for_each(|_| drop(create(&writer.registry).unwrap()));
    let recorded = writer.log.records.lock().len();
    assert!(matches!(create(&writer.registry), Err(RegistryError::TooManyChanges { .. })));
    assert_eq!(writer.log.records.lock().len(), recorded);
    // Changes that end something are not refused.
    writer.registry.delete_project(organization, alone[0], NOW).unwrap();
    // Nor those that end what has begun.
    writer.registry.change_limit = ChangeLimit::new(2, Duration::from_secs(3_600));
    let (users, others, emails, ends) = (vec![RecordKey(7)], Vec::new(), Vec::new(), Vec::new());
    let new = Erasure { number: 0, organization, users, others, emails, ends, is_done: false, is_lifted: false };
    let [begins, fails] = [(); 2].map(|()| writer.registry.add_erasure(new.clone(), None).unwrap());
    assert!(matches!(writer.registry.add_erasure(new, None), Err(RegistryError::TooManyChanges { .. })));
    let begins = Erasure { ends: vec![ErasureEnd::at(9, alone[1])], ..begins };
    assert!(writer.registry.begin_erasure(&begins, None).unwrap().unwrap().has_begun());
    writer.registry.give_erasure_up(&fails).unwrap();
    assert!(matches!(writer.registry.lift_erasure(&begins, None), Err(RegistryError::TooManyChanges { .. })));
}

/// Another writer made the change, and may still be waiting for other machines. A writer that finds
/// it made waits as well.
#[test]
fn a_change_that_is_made_already_is_answered_when_all_know_it() {
    let one = Writer::open(SharedLog::default());
    let other = one.another();
    let organization = one.registry.initialize(NOW).unwrap().organization_id;
    let new = NewProject { name: "p".into(), ..NewProject::default() };
    let project = one.registry.create_project(organization, new, NOW).unwrap().id;
    let waited = Arc::<parking_lot::Mutex<Vec<u64>>>::default();
    let noted = Arc::clone(&waited);
    other.registry.propagate_with(move |position| noted.lock().push(position));
    one.registry.delete_project(organization, project, NOW).unwrap();
    other.registry.catch_up().unwrap();
    let gone = other.registry.delete_project(organization, project, NOW).unwrap_err();
    assert!(matches!(gone, RegistryError::NotFound { .. }), "{gone}");
    assert_eq!(*waited.lock(), [one.registry.applied().unwrap()]);
    // By now all machines have applied it.
    other.registry.delete_project(organization, project, NOW).unwrap_err();
    assert_eq!(waited.lock().len(), 1);
}

#[test]
fn every_kind_of_change_begins_again_when_another_writer_comes_first() {
    let one = Writer::open(SharedLog::default());
    let other = one.another();
    for (number, change) in (0_i64..).zip(changes()) {
        one.meanwhile(&other, move |registry| {
            registry.create_organization("meanwhile", NOW.plus_ms(1_000_000 + number)).unwrap();
        });
        if number == 0 {
            // Only the very first writer may begin with it.
            one.log.meanwhile.lock().take();
        }
        change(&one.registry);
    }
    let changes = changes().len();
    assert!(one.log.conflicts.load(Ordering::Relaxed) >= changes - 2, "some changes record nothing");
    let all = one.everything();
    assert!(all.0.tenants.len() >= changes - 2);
    assert_eq!(other.everything(), all);
    assert_eq!(one.another().everything(), all);
}

#[test]
fn what_another_writer_did_first_is_checked_again() {
    let one = Writer::open(SharedLog::default());
    let other = one.another();
    let organization = one.registry.initialize(NOW).unwrap().organization_id;
    let twice = other.registry.initialize(NOW).unwrap_err();
    assert!(matches!(twice, RegistryError::Conflict { code: "already_initialized", .. }), "{twice}");

    one.meanwhile(&other, move |registry| drop(registry.create_member(organization, member("a@example.com"), NOW).unwrap()));
    let taken = one.registry.create_member(organization, member("A@example.com"), NOW).unwrap_err();
    assert!(matches!(taken, RegistryError::Conflict { code: "email_taken", .. }), "{taken}");
    let members = one.registry.members(organization).unwrap();
    assert_eq!(members.len(), 1, "what stood in the way is there at once");

    let erasure = Erasure {
        number: 0,
        organization,
        users: Vec::new(),
        others: Vec::new(),
        emails: Vec::new(),
        ends: Vec::new(),
        is_done: false,
        is_lifted: false,
    };
    let same = erasure.clone();
    one.meanwhile(&other, move |registry| assert_eq!(registry.add_erasure(same.clone(), None).unwrap().number, 1));
    assert_eq!(one.registry.add_erasure(erasure, None).unwrap().number, 2);

    // After any change here, a token that was revoked elsewhere is gone here.
    let (token, secret) = one.registry.create_token(organization, token("brief", &[Scope::AnalyticsRead]), NOW).unwrap();
    let id = token.token_id;
    other.everything();
    one.meanwhile(&other, move |registry| registry.revoke_token(organization, &id, NOW).unwrap());
    one.registry.create_organization("second", NOW).unwrap();
    assert_eq!(one.registry.authenticate(secret.expose(), NOW).unwrap_err(), AuthError::Unknown);
}

/// The record of the other writer may end the very credential that makes the change.
#[test]
fn a_credential_that_another_writer_ends_first_makes_no_change() {
    let one = Writer::open(SharedLog::default());
    let other = one.another();
    let organization = one.registry.initialize(NOW).unwrap().organization_id;
    let (made, secret) = one.registry.create_token(organization, token("brief", &[Scope::Admin]), NOW).unwrap();
    let Ok(Principal::Token(holder)) = one.registry.authenticate(secret.expose(), NOW) else { panic!("unknown") };
    let by = Author { authority: Some(holder.authority()), ..NOW.into() };
    other.everything();
    one.meanwhile(&other, move |registry| registry.revoke_token(organization, &made.token_id, NOW).unwrap());
    let refused = one.registry.create_token(organization, token("late", &[Scope::Admin]), by).unwrap_err();
    assert!(matches!(refused, RegistryError::Refused(AuthError::Unknown)), "{refused}");
    assert_eq!(one.registry.tokens(organization).unwrap().len(), 1);
}

#[test]
fn an_erasure_begins_once_with_all_suppressed_ids() {
    let one = Writer::open(SharedLog::default());
    let other = one.another();
    let organization = one.registry.initialize(NOW).unwrap().organization_id;
    let project = one.registry.projects(organization).unwrap()[0].id;
    let (users, others, emails, ends) = (vec![RecordKey(7)], Vec::new(), Vec::new(), Vec::new());
    let new = Erasure { number: 0, organization, users, others, emails, ends, is_done: false, is_lifted: false };
    let attempt = one.registry.add_erasure(new.clone(), None).unwrap();
    let begun = |attempt: &Erasure, until| Erasure { ends: vec![ErasureEnd::at(until, project)], ..attempt.clone() };
    other.registry.catch_up().unwrap();
    let grown = other.registry.suppress_more(&Erasure { users: vec![RecordKey(5)], ..attempt.clone() }).unwrap().unwrap();
    assert_eq!((grown.users.clone(), grown.has_begun()), (vec![RecordKey(5), RecordKey(7)], false));
    let first = one.registry.begin_erasure(&begun(&grown, 9), None).unwrap().unwrap();
    let second = other.registry.begin_erasure(&begun(&grown, 11), None).unwrap().unwrap();
    assert_eq!((first.until_in(project), &second), (9, &first), "the first one counts");
    other.registry.give_erasure_up(&attempt).unwrap();
    let progress = |stage| other.registry.progress_erasures(organization, project, &[first.number], stage).unwrap();
    let shown = || {
        one.registry.catch_up().unwrap();
        let erasure = one.registry.erasures().remove(0);
        (erasure.stage_in(project), erasure.is_done, erasure.is_lifted)
    };
    assert_eq!(shown(), (ErasureStage::Begun, false, false), "it can't be given up any more");
    progress(ErasureStage::Logged);
    assert_eq!(shown(), (ErasureStage::Logged, false, false));
    progress(ErasureStage::Begun);
    assert_eq!(shown(), (ErasureStage::Logged, false, false), "it never goes back");
    progress(ErasureStage::Gone);
    assert_eq!(shown(), (ErasureStage::Gone, true, false));
    // An erasure that was given up has no ids.
    let attempt = one.registry.add_erasure(new, None).unwrap();
    one.registry.give_erasure_up(&attempt).unwrap();
    let given_up = one.registry.begin_erasure(&begun(&attempt, 9), None).unwrap().unwrap();
    assert!(given_up.is_done && given_up.is_lifted && given_up.users.is_empty() && !given_up.has_begun());
}

#[test]
fn attempts_that_were_given_up_are_recorded_once_and_do_not_pile_up() {
    let one = Writer::open(SharedLog::default());
    let other = one.another();
    let organization = one.registry.initialize(NOW).unwrap().organization_id;
    let (users, others, emails, ends) = (vec![RecordKey(7)], Vec::new(), Vec::new(), Vec::new());
    let new = Erasure { number: 0, organization, users, others, emails, ends, is_done: false, is_lifted: false };
    for number in 1..=5 {
        let attempt = one.registry.add_erasure(new.clone(), None).unwrap();
        assert_eq!(attempt.number, number, "no number is given twice");
        one.registry.suppress_more(&attempt).unwrap();
        other.registry.catch_up().unwrap();
        // Giving it up again changes nothing.
        one.registry.give_erasure_up(&attempt).unwrap();
        other.registry.give_erasure_up(&attempt).unwrap();
    }
    let records = one.registry.applied().unwrap();
    assert_eq!((records, other.registry.catch_up().unwrap()), (1 + 2 * 5, 0));
    for writer in [&one, &other] {
        assert_eq!(writer.registry.erasures().iter().map(|erasure| erasure.number).collect::<Vec<_>>(), [5]);
    }
    // Another one that begins is the last from then on.
    let kept = one.registry.add_erasure(new.clone(), None).unwrap();
    let given_up = one.registry.add_erasure(new, None).unwrap();
    one.registry.give_erasure_up(&given_up).unwrap();
    let numbers = || one.registry.erasures().iter().map(|erasure| erasure.number).collect::<Vec<_>>();
    assert_eq!(numbers(), [kept.number, given_up.number]);
    one.registry.give_erasure_up(&kept).unwrap();
    assert_eq!(numbers(), [given_up.number]);
    assert_eq!(one.registry.suppress_more(&kept).unwrap(), None);
}

#[test]
fn writers_at_once_lose_and_double_nothing() {
    const WRITERS: usize = 4;
    const EACH: usize = 15;
    let first = Arc::new(Writer::open(SharedLog::default()));
    let organization = first.registry.initialize(NOW).unwrap().organization_id;
    let writers: Vec<Arc<Writer>> = (1..WRITERS).map(|_| first.another()).chain([Arc::clone(&first)]).collect();
    thread::scope(|scope| {
        for (number, writer) in writers.iter().enumerate() {
            scope.spawn(move || {
                for at in 0..EACH {
                    let name = format!("{number}-{at}");
                    writer.registry.create_token(organization, token(&name, &[Scope::AnalyticsRead]), NOW).unwrap();
                }
            });
        }
    });
    let all = first.everything();
    let entries = first.audited(organization);
    assert_eq!(entries.iter().filter(|entry| entry.action == AuditAction::ApiTokenCreated).count(), WRITERS * EACH + 1);
    for writer in &writers {
        assert_eq!(writer.everything(), all);
        assert_eq!(writer.audited(organization), entries);
    }
    let tokens = first.registry.tokens(organization).unwrap();
    let names: std::collections::BTreeSet<&str> = tokens.iter().map(|token| token.name.as_str()).collect();
    assert_eq!((names.len(), tokens.len()), (WRITERS * EACH + 1, WRITERS * EACH + 1));
}

#[test]
fn a_log_that_refuses_without_anything_new_is_an_error() {
    let writer = Writer::open(SharedLog { refuses: true, ..SharedLog::default() });
    let error = writer.registry.initialize(NOW).unwrap_err();
    assert!(matches!(error, RegistryError::Storage(ControlError::Conflict { .. })), "{error}");
    assert_eq!(writer.log.conflicts.load(Ordering::Relaxed), 1);
}

#[test]
fn a_record_without_an_answer_shows_later_and_once() {
    let one = Writer::open(SharedLog::default());
    let organization = one.registry.initialize(NOW).unwrap().organization_id;
    let create = |name: &str| one.registry.create_token(organization, token(name, &[Scope::AnalyticsRead]), NOW);
    let names = |registry: &Registry| {
        let tokens = registry.tokens(organization).unwrap();
        tokens.iter().map(|token| token.name.clone()).collect::<std::collections::BTreeSet<_>>()
    };
    one.log.is_silent.store(true, Ordering::Relaxed);
    let unknown = create("first").unwrap_err();
    assert!(matches!(unknown, RegistryError::Storage(ControlError::Undecided(_))), "{unknown}");
    assert!(!names(&one.registry).contains("first"));
    one.log.is_silent.store(false, Ordering::Relaxed);
    // The next change meets it, as if another writer had made it.
    create("second").unwrap();
    assert_eq!(one.log.conflicts.load(Ordering::Relaxed), 1);
    assert_eq!(names(&one.registry).len(), 3);
    assert_eq!(one.another().everything(), one.everything());
    assert_eq!(one.audited(organization).len(), 3 + 2, "the organization with its project and token, and two tokens");
}

#[test]
fn what_others_recorded_shows_without_a_change() {
    let one = Writer::open(SharedLog::default());
    let other = one.another();
    one.registry.initialize(NOW).unwrap();
    one.registry.create_organization("second", NOW).unwrap();
    assert!(other.registry.is_empty());
    assert_eq!(other.registry.catch_up().unwrap(), 2);
    assert_eq!(other.registry.catch_up().unwrap(), 0);
    assert_eq!(other.registry.organizations(), one.registry.organizations());
}

#[test]
fn the_first_keys_are_kept_before_they_are_valid() {
    let one = Writer::open(SharedLog::default());
    let other = one.another();
    let refused = one.registry.initialize_kept(NewOrganization::default(), NOW, |_| {
        Err(RegistryError::conflict("limit_reached", "there is no room for them"))
    });
    assert!(refused.is_err() && one.log.records.lock().is_empty());
    let mut kept = Vec::new();
    one.meanwhile(&other, |registry| drop(registry.initialize(NOW).unwrap()));
    let overtaken = one.registry.initialize_kept(NewOrganization::default(), NOW, |initial| {
        kept.push(initial.organization_id);
        Ok::<_, RegistryError>(())
    });
    assert!(matches!(overtaken, Err(RegistryError::Conflict { code: "already_initialized", .. })));
    assert_eq!(kept.len(), 1);
    assert!(one.registry.organization(kept[0]).is_err(), "the other one was first");
}

#[test]
fn an_audit_log_that_was_not_written_gets_each_entry_once() {
    let one = Writer::open(SharedLog::default());
    let other = one.another();
    let organization = one.registry.initialize(NOW).unwrap().organization_id;
    let act = |name: &str| drop(one.registry.create_token(organization, token(name, &[Scope::AnalyticsRead]), NOW).unwrap());
    act("first");
    // A file in place of the audit log's directory.
    let place = other.dir.path().join("audit").join(organization.to_string());
    fs::write(&place, b"").unwrap();
    assert_eq!(other.everything(), one.everything());
    fs::remove_file(&place).unwrap();
    ["second", "third", "fourth"].into_iter().for_each(act);
    assert_eq!(other.everything(), one.everything());
    assert_eq!(other.audited(organization), one.audited(organization));
    assert_eq!(one.audited(organization).len(), 3 + 4, "the organization with its project and token, and four tokens");
}

/// One pass suffices for any number of organizations, since a shared log may be long.
#[test]
fn audit_logs_are_caught_up_in_one_pass() {
    const ORGANIZATIONS: usize = 20;
    let one = Writer::open(SharedLog::default());
    let organizations: Vec<OrganizationId> = (0..ORGANIZATIONS)
        .map(|number| one.registry.create_organization(&format!("organization {number}"), NOW).unwrap().organization_id)
        .collect();
    for organization in &organizations {
        one.registry.create_token(*organization, token("another", &[Scope::AnalyticsRead]), NOW).unwrap();
    }
    let other = one.another();
    other.registry.catch_up().unwrap();
    let records = one.log.records.lock().len();
    let read = other.log.read.load(Ordering::Relaxed);
    assert!(read <= 3 * records, "{read} records were read of {records}");
    for organization in &organizations {
        assert_eq!(other.audited(*organization), one.audited(*organization));
    }
    // Existing entries are not added again at the next start.
    let Writer { dir, log, registry } = Arc::into_inner(other).unwrap();
    drop(registry);
    let other = Writer::open_in(dir, log.of_another()).unwrap();
    other.registry.catch_up().unwrap();
    let read = other.log.read.load(Ordering::Relaxed);
    assert!(read <= 3 * records, "{read} records were read of {records} at the next start");
    for organization in &organizations {
        assert_eq!(other.audited(*organization), one.audited(*organization));
    }
}

#[test]
fn a_log_without_the_next_record_is_an_error() {
    let one = Writer::open(SharedLog::default());
    let other = one.another();
    one.registry.initialize(NOW).unwrap();
    other.log.known.store(1, Ordering::Relaxed);
    let records = std::mem::take(&mut *one.log.records.lock());
    let error = other.registry.create_organization("second", NOW).unwrap_err();
    assert!(matches!(error, RegistryError::Storage(ControlError::BadRecord { position: 1, .. })), "{error}");
    *one.log.records.lock() = records;
    assert_eq!(other.everything(), one.everything());
}
