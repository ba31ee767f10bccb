//! Files of this version stay readable. A new version adds its own fixtures, and still reads these.

use headcount_common::latest_record_version;
use headcount_domain::RecordKey;

use super::super::record::{decode, encode};
use super::super::{snapshot, state};
use super::*;

/// Records of every kind, and the snapshot that they result in.
const RECORDS: &str = include_str!("fixtures/records-v1.ndjson");
const SNAPSHOT: &str = include_str!("fixtures/snapshot-v1.json");
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

#[test]
fn records_of_every_kind_are_read() {
    let state = replayed(RECORDS);
    let tenant = state.tenants.values().next().unwrap();
    assert_eq!((state.tenants.len(), tenant.projects.len(), tenant.tokens.len()), (1, 2, 1));
    assert_eq!((tenant.organization.timezone, tenant.organization.events_recorded), (berlin(), true));
    let kinds: BTreeSet<&str> = RECORDS.lines().map(|line| line.split('"').nth(5).unwrap()).collect();
    assert_eq!(kinds.len(), 24, "{kinds:?}");
}

#[test]
fn projects_and_tokens_are_read_with_their_limits() {
    let state = replayed(RECORDS);
    let tenant = state.tenants.values().next().unwrap();
    let key = |letter: &str| format!("pk_{}", letter.repeat(32));
    let limit = |per_second, burst| RateLimit { per_second, burst };
    let of_keys: Vec<_> = tenant.projects.values().flat_map(|project| project.key_limits.clone()).collect();
    assert_eq!(of_keys, [(key("a"), limit(100, None)), (key("b"), limit(5, Some(50)))]);
    let tokens: Vec<_> = tenant.tokens.values().filter_map(|(token, _)| token.rate_limit).collect();
    let projects: Vec<_> = tenant.projects.values().filter_map(|project| project.rate_limit).collect();
    let pages: Vec<_> = tenant.projects.values().filter_map(|project| project.quotas.pages).collect();
    assert_eq!((tokens, projects, pages), (vec![limit(10, None)], vec![limit(200, Some(500))], vec![5000]));
    let days: Vec<_> = tenant.projects.values().filter_map(|project| project.retention_days).collect();
    assert_eq!(days, [90]);
    let hosts = tenant.projects.values().flat_map(|it| [it.own_domains.clone(), it.ignored_referrers.clone()].concat());
    assert_eq!(hosts.collect::<Vec<_>>(), ["blog.example", "pay.example"]);
    assert_eq!(state.deletions().collect::<Vec<_>>(), [(OrganizationId(1), ProjectId(4))]);
}

#[test]
fn members_shares_and_sessions_are_read() {
    let state = replayed(RECORDS);
    let tenant = state.tenants.values().next().unwrap();
    let members: Vec<_> = tenant.members.values().map(|member| (member.email.as_str(), member.role)).collect();
    assert_eq!(members, [("ada@acme.com", Role::Admin)]);
    assert_eq!(tenant.tokens.values().filter(|(token, _)| token.member.is_some()).count(), 1);
    let shares: Vec<_> = tenant.shares.values().map(|(share, _)| (share.id.to_string(), share.revenue)).collect();
    let sessions: Vec<_> = tenant.sessions.values().map(|(session, _)| session.id.to_string()).collect();
    assert_eq!(shares, [("shr_0000000000000002".to_owned(), true)]);
    assert_eq!(sessions, ["ses_0000000000000002"]);
    let definitions: Vec<_> = tenant.definitions.values().map(|it| (it.id.to_string(), it.id.kind(), &*it.name)).collect();
    assert_eq!(definitions, [("goal_0000000000000001".to_owned(), DefinitionKind::Goal, "Sold")]);
}

#[test]
fn the_ledger_and_builds_are_read() {
    let state = replayed(RECORDS);
    let tenant = state.tenants.values().next().unwrap();
    let entries: Vec<_> = tenant.actions.iter().map(|entry| (entry.change, entry.balance, entry.reason)).collect();
    let ledger =
        [(4, 9, ActionReason::Set), (-1, 8, ActionReason::Build), (1, 9, ActionReason::Refund), (-1, 8, ActionReason::Build)];
    assert_eq!((entries.as_slice(), tenant.organization.actions_balance), (&ledger[..], 8));
    let spent_and_ended = |run: &BuildRun| (run.spent(), run.outcome.as_ref().map(|outcome| outcome.result.is_ok()));
    let runs: Vec<_> = state.builds().map(spent_and_ended).collect();
    assert_eq!(runs, [(0, Some(true)), (0, Some(false)), (1, None)]);
}

#[test]
fn erasures_are_read() {
    let state = replayed(RECORDS);
    let [first, second] = state.erasures().collect::<Vec<_>>()[..] else { panic!("two erasures") };
    assert_eq!((first.number, first.until_in(ProjectId(2)), first.is_done), (1, 9, false));
    assert_eq!([&first.emails[..], &second.emails[..]].concat(), [RecordKey(9)]);
    assert!(second.has_begun() && !second.is_done);
    let stages = [2, 3, 4].map(|project| (second.until_in(ProjectId(project)), second.stage_in(ProjectId(project))));
    assert_eq!(stages, [(8_192, ErasureStage::Gone), (4_096, ErasureStage::Logged), (0, ErasureStage::Gone)]);
}

#[test]
fn snapshots_are_read() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(loaded(dir.path(), SNAPSHOT), Some(replayed(RECORDS)));
}

#[test]
fn the_current_version_is_written_as_its_fixtures_are() {
    for (line, i) in RECORDS.lines().zip(1..) {
        let record = decode(line.as_bytes(), i).unwrap();
        assert_eq!(String::from_utf8(encode(latest_record_version(), &record, &[]).unwrap()).unwrap(), line);
    }
    let dir = tempfile::tempdir().unwrap();
    let bytes = snapshot::encode(POSITION, latest_record_version(), &replayed(RECORDS)).unwrap();
    snapshot::write(dir.path(), POSITION, &bytes).unwrap();
    assert_eq!(fs::read_to_string(snapshot::path(dir.path(), POSITION)).unwrap(), SNAPSHOT.trim_end());
}

#[test]
fn records_of_another_version_are_refused() {
    let line = RECORDS.lines().next().unwrap();
    for version in [0, latest_record_version() + 1] {
        let other = line.replacen("\"version\":1", &format!("\"version\":{version}"), 1);
        let refused = decode(other.as_bytes(), 7);
        assert!(matches!(refused, Err(ControlError::UnsupportedRecord { position: 7, found, .. }) if found == version));
    }
}

/// A reopened control log appends new records after the existing ones.
#[test]
fn a_control_log_is_opened_and_continued() {
    let dir = tempfile::tempdir().unwrap();
    for record in RECORDS.lines() {
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
    assert_eq!(registry.public_key(&key).unwrap().limiter.unwrap().limit, RateLimit { per_second: 3, burst: None });
}
