//! Secrets are visible only to their owners.

use std::ops::ControlFlow;

use super::super::journal::Journal;
use super::*;

fn files(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            files.push((path, bytes));
        }
    }
    files
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn no_secret_is_on_disk_or_in_debug_output() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    let initial = registry.initialize(NOW).unwrap();
    let id = initial.organization_id;
    let (made, secret) = registry.create_token(id, token("t", &[Scope::Admin]), NOW).unwrap();
    let further = registry.create_organization("further", NOW).unwrap();
    let secrets =
        [&initial.api_token, &initial.root_token, &secret, &further.api_token].map(|secret| secret.expose()[3..].to_owned());
    let principal = registry.authenticate(secret.expose(), NOW);
    let debug = format!("{registry:?} {initial:?} {made:?} {secret:?} {further:?} {principal:?} {:?}", everything(&registry));
    let errors = format!("{:?}", registry.authenticate("sk_wrong", NOW));
    drop(registry);

    // The log may compress its records, so also search the records as read back.
    let (control, mut stored) = (dir.path().join(CONTROL_DIR), files(dir.path()));
    let (log, _) = headcount_storage::log::Log::open(control.join("log"), Default::default()).unwrap();
    let visit = |record: headcount_storage::log::Record<'_>| {
        stored.push((control.clone(), record.payload.to_vec()));
        ControlFlow::Continue(())
    };
    log.reader().read(|_| Some(0), visit).unwrap();
    drop(log);
    assert!(stored.iter().any(|(path, _)| path.extension().is_some_and(|extension| extension == "json")));
    assert!(stored.iter().any(|(_, bytes)| holds(bytes, &initial.public_key)), "public keys are stored as they are");
    for secret in &secrets {
        for (path, bytes) in &stored {
            assert!(!holds(bytes, secret), "a secret is in {}", path.display());
        }
        assert!(!debug.contains(secret) && !errors.contains(secret));
    }
    let (_journal, state) = Journal::open(&control, small()).unwrap();
    assert_eq!(state.root_tokens.len(), 1);
}
