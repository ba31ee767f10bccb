//! The findings of `check`.

use headcount_cluster::Credentials;
use headcount_cluster::check::{CheckOptions, Problem, Report, check};
use headcount_cluster::files::Bucket;

use crate::brokers::{Brokers, free_ports, no_file};

fn options(brokers: &Brokers, replicas: usize) -> CheckOptions {
    CheckOptions {
        brokers: brokers.addresses(),
        monitors: brokers.monitors(),
        credentials: Credentials::None,
        replicas,
        messages: 20,
        files: None,
    }
}

fn texts(report: &Report) -> Vec<String> {
    report.problems.iter().map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_brokers_that_sync_can_carry_a_cluster() {
    let Some(brokers) = Brokers::start(3).await else { return };
    let report = check(&options(&brokers, 3)).await;
    assert_eq!(texts(&report), [""; 0]);
    assert_eq!(
        report.brokers.iter().map(|broker| (broker.name.as_str(), broker.syncs_always)).collect::<Vec<_>>(),
        [("b0", Some(true)), ("b1", Some(true)), ("b2", Some(true))]
    );
    let trial = report.trial.unwrap();
    assert_eq!(trial.messages, 20);
    assert!(trial.p50_ms > 0.0 && trial.p50_ms <= trial.p99_ms && trial.take_over_ms > 0.0, "{trial:?}");
    // The trial leaves nothing.
    let client = async_nats::connect(brokers.addresses()).await.unwrap();
    assert_eq!(async_nats::jetstream::new(client).query_account().await.unwrap().streams, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_to_be_changed_is_named() {
    let Some(brokers) = Brokers::start_with(1, "", "sync_interval: 2m").await else { return };
    let free = free_ports(1)[0];
    let mut options = options(&brokers, 3);
    options.brokers.extend([options.brokers[0].clone(), format!("nats://127.0.0.1:{free}")]);
    options.monitors.push(format!("http://127.0.0.1:{free}"));
    let report = check(&options).await;
    assert!(report.trial.is_none());
    let is = |which: fn(&Problem) -> bool| report.problems.iter().filter(|problem| which(problem)).count();
    assert_eq!(is(|problem| matches!(problem, Problem::Unreachable { .. })), 1);
    assert_eq!(is(|problem| matches!(problem, Problem::Monitor { .. })), 1);
    // One problem for each given address.
    assert_eq!(is(|problem| matches!(problem, Problem::NotSynced(name) if !name.is_empty())), 2);
    assert_eq!(is(|problem| matches!(problem, Problem::MaxPayload { bytes: 1_048_576, .. })), 2);
    assert_eq!(is(|problem| matches!(problem, Problem::Twice { .. })), 1);
    assert_eq!(is(|problem| matches!(problem, Problem::TooFew { found: 1, wanted: 3 })), 1);
    assert_eq!(report.problems.len(), 8, "{:?}", texts(&report));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_known_is_a_problem() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let mut options = options(&brokers, 1);
    options.monitors.clear();
    let report = check(&options).await;
    assert!(matches!(&report.problems[..], [Problem::SyncUnknown(_)]), "{:?}", texts(&report));
    options.credentials = Credentials::File(no_file().to_owned());
    let report = check(&options).await;
    assert!(matches!(&report.problems[..], [Problem::Unreachable { .. }, Problem::TooFew { .. }]), "{:?}", texts(&report));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_for_files_is_tried_out() {
    let Some(brokers) = Brokers::start(1).await else { return };
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("files");
    std::fs::create_dir(&dir).unwrap();
    let address = format!("file://{}", dir.display());
    let mut options = options(&brokers, 1);
    options.files = Some(Bucket::open(&address).unwrap());
    let report = check(&options).await;
    assert_eq!((texts(&report), report.files.as_deref()), (Vec::new(), Some(&*address)));
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "the trial leaves nothing");
    // A file in place of the directory, so that nothing can be written below it.
    std::fs::remove_dir(&dir).unwrap();
    std::fs::write(&dir, "").unwrap();
    let report = check(&options).await;
    assert!(matches!(&report.problems[..], [Problem::Files { place, .. }] if *place == address), "{:?}", texts(&report));
    assert_eq!(report.files, None);
}
