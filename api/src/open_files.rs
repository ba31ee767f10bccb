//! The limit on open files.
//!
//! A process usually may open only 1,024 files until it asks for more, and each partition has
//! several.

use rustix::process::{Resource, getrlimit, setrlimit};

/// The maximum number of connections over all workers.
const MAX_CONNECTIONS: u64 = 25_000;
/// The number of connections that are always allowed, even with a very low limit.
const MIN_CONNECTIONS: u64 = 64;
/// The number of files for log, indexes and store. With fewer files they close and reopen them.
const STORAGE_FILES: u64 = 1_024;
/// The minimum that works: a quarter is for the runs of store and index, [`MIN_CONNECTIONS`] for
/// connections, and the rest for log, store, journals and threads.
const MIN_FILES: u64 = 256;

/// The limit on open files is too low.
#[derive(Debug, thiserror::Error)]
#[error(
    "the limit on open files is {allowed}, but headcount needs at least {MIN_FILES}: raise it with `ulimit -n {wanted}`, or \
     LimitNOFILE={wanted} in the service's unit",
    wanted = 2 * STORAGE_FILES
)]
pub struct TooFewFiles {
    allowed: u64,
}

/// Raises the limit to what the server needs, or as far as the operating system allows.
///
/// # Errors
/// Fewer than [`MIN_FILES`] are allowed.
pub fn raise() -> Result<(), TooFewFiles> {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = MAX_CONNECTIONS + STORAGE_FILES;
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "could not raise the limit on open files");
        }
    }
    let allowed = allowed();
    if allowed < MIN_FILES {
        return Err(TooFewFiles { allowed });
    }
    if allowed < 2 * STORAGE_FILES {
        tracing::warn!(
            allowed,
            "the limit on open files is low: `ulimit -n` (LimitNOFILE) should be {} or more",
            2 * STORAGE_FILES
        );
    }
    Ok(())
}

/// Returns the number of connections that leaves enough files for log and store.
pub fn connections() -> usize {
    let connections = allowed().saturating_sub(STORAGE_FILES).clamp(MIN_CONNECTIONS, MAX_CONNECTIONS);
    usize::try_from(connections).unwrap_or(usize::MAX)
}

fn allowed() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_limit_is_raised_and_the_store_has_its_part() {
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = Some(512);
        setrlimit(Resource::Nofile, limit).unwrap();
        assert_eq!(connections() as u64, MIN_CONNECTIONS);
        raise().unwrap();
        let most = limit.maximum.unwrap_or(u64::MAX);
        assert_eq!(allowed(), most.min(MAX_CONNECTIONS + STORAGE_FILES));
        assert!(connections() as u64 <= most.saturating_sub(STORAGE_FILES).max(MIN_CONNECTIONS));
    }
}
