//! Files of past versions stay readable. There is one fixture for each version of records and of snapshots.

use headcount_domain::ids::RecordKey;

use super::super::record::{decode, encode, latest_record_version};
use super::super::{snapshot, state};
use super::*;

/// Records, and the snapshot that they result in, of each version from the first to the current one.
const VERSIONS: [(&str, &str); 10] = [
    (include_str!("fixtures/records-v1.ndjson"), include_str!("fixtures/snapshot-v1.json")),
    (include_str!("fixtures/records-v2.ndjson"), include_str!("fixtures/snapshot-v2.json")),
    (include_str!("fixtures/records-v3.ndjson"), include_str!("fixtures/snapshot-v3.json")),
    (include_str!("fixtures/records-v4.ndjson"), include_str!("fixtures/snapshot-v4.json")),
    (include_str!("fixtures/records-v5.ndjson"), include_str!("fixtures/snapshot-v5.json")),
    (include_str!("fixtures/records-v6.ndjson"), include_str!("fixtures/snapshot-v6.json")),
    (include_str!("fixtures/records-v7.ndjson"), include_str!("fixtures/snapshot-v7.json")),
    (include_str!("fixtures/records-v8.ndjson"), include_str!("fixtures/snapshot-v8.json")),
    (include_str!("fixtures/records-v9.ndjson"), include_str!("fixtures/snapshot-v9.json")),
    (include_str!("fixtures/records-v10.ndjson"), include_str!("fixtures/snapshot-v10.json")),
];
const POSITION: u64 = 7;

fn replayed(records: &str) -> State {
    let mut state = State::default();
    for (line, i) in records.lines().zip(1..) {
        let record = decode(line.as_bytes(), i).unwrap();
        state.check(&record).unwrap();
        state.apply(record).unwrap();
    }
    state
}

fn loaded(dir: &Path, snapshot: &str) -> Option<state::State> {
    fs::write(snapshot::path(dir, POSITION), snapshot.trim_end()).unwrap();
    snapshot::load(dir, POSITION).unwrap()
}

fn limits(state: &State) -> Vec<(String, RateLimit)> {
    let projects = state.tenants.values().flat_map(|tenant| tenant.projects.values());
    projects.flat_map(|project| project.key_limits.clone()).collect()
}

#[test]
fn records_of_every_version_are_read() {
    for (version, (records, _)) in (1..).zip(VERSIONS) {
        let state = replayed(records);
        let tenant = state.tenants.values().next().unwrap();
        assert_eq!((state.tenants.len(), tenant.projects.len(), tenant.tokens.len()), (1, 2, 1));
        assert_eq!(tenant.organization.timezone, berlin());
        assert!(tenant.organization.events_recorded);
        assert!(records.lines().all(|line| line.starts_with(&format!("{{\"version\":{version},"))));
    }
}

#[test]
fn limits_of_keys_came_with_version_2() {
    let [v1, v2, ..] = VERSIONS.map(|(records, _)| limits(&replayed(records)));
    assert_eq!(v1, []);
    let key = |letter: &str| format!("pk_{}", letter.repeat(32));
    let limit = |per_second, burst| RateLimit { per_second, burst };
    assert_eq!(v2, [(key("a"), limit(100, None)), (key("b"), limit(5, Some(50)))]);
}

#[test]
fn deleted_projects_came_with_version_3() {
    let [v1, v2, v3, ..] = VERSIONS.map(|(records, _)| replayed(records).deletions().collect::<Vec<_>>());
    assert_eq!((v1, v2, v3), (vec![], vec![], vec![(OrganizationId(1), ProjectId(4))]));
}

#[test]
fn the_retention_of_projects_came_with_version_4() {
    let days = |state: State| {
        state.tenants.values().flat_map(|tenant| tenant.projects.values()).filter_map(|p| p.retention_days).sum::<u32>()
    };
    assert_eq!(VERSIONS.map(|(records, _)| days(replayed(records))), [0, 0, 0, 90, 90, 90, 90, 90, 90, 90]);
}

#[test]
fn members_came_with_version_4() {
    let [_, _, v3, v4, ..] = VERSIONS.map(|(records, _)| replayed(records));
    let members = |state: &State| -> Vec<(String, Role)> {
        let members = state.tenants.values().flat_map(|tenant| tenant.members.values());
        members.map(|member| (member.email.clone(), member.role)).collect()
    };
    assert_eq!((members(&v3), members(&v4)), (vec![], vec![("ada@acme.com".to_owned(), Role::Admin)]));
    let held = |state: &State| {
        state.tenants.values().flat_map(|t| t.tokens.values()).filter(|(token, _)| token.member.is_some()).count()
    };
    assert_eq!((held(&v3), held(&v4)), (0, 1));
}

#[test]
fn limits_of_tokens_and_projects_came_with_version_6() {
    let [.., v5, v6, _, _, _, _] = VERSIONS.map(|(records, _)| replayed(records));
    let limits = |state: &State| {
        let tenant = state.tenants.values().next().unwrap();
        let tokens: Vec<_> = tenant.tokens.values().filter_map(|(token, _)| token.rate_limit).collect();
        let projects: Vec<_> = tenant.projects.values().filter_map(|project| project.rate_limit).collect();
        let quotas: Vec<_> = tenant.projects.values().filter_map(|project| project.quotas.pages).collect();
        (tokens, projects, quotas)
    };
    let limit = |per_second, burst| RateLimit { per_second, burst };
    assert_eq!(limits(&v5), (vec![], vec![], vec![]));
    assert_eq!(limits(&v6), (vec![limit(10, None)], vec![limit(200, Some(500))], vec![5000]));
}

#[test]
fn the_ledger_came_with_version_7() {
    let entries = |state: State| {
        let tenant = state.tenants.values().next().unwrap();
        let entries: Vec<_> = tenant.actions.iter().map(|entry| (entry.change, entry.balance, entry.reason)).collect();
        (entries, tenant.organization.actions_balance)
    };
    let [.., v6, v7, _, _, _] = VERSIONS.map(|(records, _)| entries(replayed(records)));
    let ledger =
        vec![(4, 9, ActionReason::Set), (-1, 8, ActionReason::Build), (1, 9, ActionReason::Refund), (-1, 8, ActionReason::Build)];
    assert_eq!((v6, v7), ((vec![], 5), (ledger, 8)));
}

#[test]
fn builds_came_with_version_7() {
    let runs = |state: State| -> Vec<_> {
        let spent_and_ended = |run: &BuildRun| (run.spent(), run.outcome.as_ref().map(|outcome| outcome.result.is_ok()));
        state.builds().map(spent_and_ended).collect()
    };
    let [.., v6, v7, _, _, _] = VERSIONS.map(|(records, _)| runs(replayed(records)));
    assert_eq!((v6, v7), (vec![], vec![(0, Some(true)), (0, Some(false)), (1, None)]));
}

#[test]
fn erasures_came_with_version_5() {
    let numbers = |state: State| {
        let number = |erasure: &Erasure| (erasure.number, erasure.until_in(ProjectId(2)), erasure.is_done);
        state.erasures().map(number).collect::<Vec<_>>()
    };
    assert_eq!(VERSIONS.map(|(records, _)| numbers(replayed(records)).len()), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
    assert_eq!(numbers(replayed(VERSIONS[4].0)), [(1, 9, false)]);
}

#[test]
fn addresses_of_erasures_came_with_version_9() {
    let emails = |state: State| state.erasures().flat_map(|erasure| erasure.emails.clone()).collect::<Vec<_>>();
    let [.., v8, v9, _] = VERSIONS.map(|(records, _)| emails(replayed(records)));
    assert_eq!((v8, v9), (vec![], vec![RecordKey(9)]));
}

#[test]
fn erasures_on_several_machines_came_with_version_9() {
    let [.., v9, _] = VERSIONS.map(|(records, _)| replayed(records));
    let erasure = v9.erasures().find(|erasure| erasure.number == 2).unwrap();
    assert!(erasure.has_begun() && !erasure.is_done);
    let stages = [2, 3, 4].map(|project| (erasure.until_in(ProjectId(project)), erasure.stage_in(ProjectId(project))));
    assert_eq!(stages, [(8_192, ErasureStage::Gone), (4_096, ErasureStage::Logged), (0, ErasureStage::Gone)]);
}

#[test]
fn shares_and_sessions_came_with_version_8() {
    let [.., v7, v8, _, _] = VERSIONS.map(|(records, _)| {
        let state = replayed(records);
        let tenant = state.tenants.values().next().unwrap();
        let shares: Vec<_> = tenant.shares.values().map(|(share, _)| (share.id.to_string(), share.revenue)).collect();
        let sessions: Vec<_> = tenant.sessions.values().map(|(session, _)| session.id.to_string()).collect();
        (shares, sessions)
    });
    assert_eq!(v7, (vec![], vec![]));
    assert_eq!(v8, (vec![("shr_0000000000000002".to_owned(), true)], vec!["ses_0000000000000002".to_owned()]));
}

#[test]
fn hosts_that_are_no_referrers_came_with_version_10() {
    let lists = |state: State| {
        let projects = state.tenants.values().flat_map(|tenant| tenant.projects.values());
        projects.flat_map(|project| [project.own_domains.clone(), project.ignored_referrers.clone()].concat()).collect::<Vec<_>>()
    };
    let [.., v9, v10] = VERSIONS.map(|(records, _)| lists(replayed(records)));
    assert_eq!((v9, v10), (vec![], vec!["blog.example".to_owned(), "pay.example".to_owned()]));
}

#[test]
fn snapshots_of_every_version_are_read() {
    for (records, snapshot) in VERSIONS {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(loaded(dir.path(), snapshot), Some(replayed(records)));
    }
}

#[test]
fn the_current_version_is_written_as_its_fixtures_are() {
    let [.., (records, snapshot)] = VERSIONS;
    for (line, i) in records.lines().zip(1..) {
        let record = decode(line.as_bytes(), i).unwrap();
        assert_eq!(String::from_utf8(encode(latest_record_version(), &record, &[]).unwrap()).unwrap(), line);
    }
    let dir = tempfile::tempdir().unwrap();
    snapshot::write(dir.path(), POSITION, latest_record_version(), &replayed(records)).unwrap();
    assert_eq!(fs::read_to_string(snapshot::path(dir.path(), POSITION)).unwrap(), snapshot.trim_end());
}

/// A directory of an earlier program opens, and new records follow the old ones.
#[test]
fn a_control_log_of_version_1_is_opened_and_continued() {
    let dir = tempfile::tempdir().unwrap();
    for record in VERSIONS[0].0.lines() {
        append(dir.path(), record.as_bytes());
    }
    let key = format!("pk_{}", "c".repeat(32));
    let registry = open(dir.path()).unwrap();
    assert!(registry.public_key(&key).unwrap().limiter.is_none());
    let organization = first_organization(&registry);
    let patch = RateLimitPatch { per_second: Some(3), burst: None };
    registry.limit_public_key(organization, ProjectId(3), &key, patch, NOW).unwrap();
    let before = everything(&registry);
    drop(registry);
    let registry = open(dir.path()).unwrap();
    assert_eq!(everything(&registry), before);
    assert_eq!(registry.public_key(&key).unwrap().limiter.unwrap().limit(), RateLimit { per_second: 3, burst: None });
}
