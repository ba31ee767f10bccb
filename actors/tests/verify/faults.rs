//! Operations on files that fail.

use std::sync::Arc;

use headcount_actors::domain::ids::ProjectId;
use headcount_actors::verify::VerifyStatus;
use headcount_actors::verify_directory;
use headcount_storage::files::switch::{Errno, Plan, Switch};
use headcount_storage::keyspace::Key;

use super::{config, filled, flipped, kinds, set, verified};

/// A cell of each kind differs. If a verification leaves anything out because of the failure, its
/// report differs.
#[tokio::test]
async fn an_operation_that_fails_is_never_taken_for_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let _: (Vec<ProjectId>, u64) = filled(dir.path()).await;
    for (key, value) in kinds(dir.path()).values() {
        set(dir.path(), key, Some(&flipped(Key::decode(key).unwrap(), value)));
    }
    let expected = verified(dir.path());
    assert_eq!(expected.status(), VerifyStatus::Differs);
    let (mut at, mut refused, mut whole) = (1, 0, 0);
    loop {
        let errno = if at % 2 == 0 { Errno::TooManyFiles } else { Errno::Io };
        let switch = Switch::arm(dir.path(), Plan { at, errno, ..Plan::default() });
        let outcome = verify_directory(&config(dir.path()), false, &Arc::default());
        let failed = switch.failed();
        drop(switch);
        match outcome {
            Err(_) if !failed.is_empty() => refused += 1,
            Err(error) => panic!("{error}, although nothing failed"),
            Ok(report) => {
                assert_eq!(report, expected, "{failed:?} at {at}");
                whole += 1;
            }
        }
        if failed.is_empty() {
            break;
        }
        at += 1 + at / 4;
    }
    println!("{refused} verifications were refused, {whole} found everything; the last operation is before {at}");
    assert!(refused >= 15 && refused > whole, "{refused} refused, {whole} whole, up to {at}");
    assert_eq!(verified(dir.path()), expected);
}
