//! How many files and connections the process may have open: shells and services usually allow 1,024 of them until more is
//! asked for, and each partition alone has several files open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// How many connections may be open, over all workers, where the operating system allows as many.
const MOST_CONNECTIONS: u64 = 25_000;
/// And where it allows next to none.
const LEAST_CONNECTIONS: u64 = 64;
/// What is left to log, indexes and store: some 12 files for each of the 64 partitions, and what is there but once.
const FILES: u64 = 1_024;

/// Asks for as many as are needed, or as many as there may be.
pub(crate) fn raise() {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = MOST_CONNECTIONS + FILES;
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the limit of open files stays as it is");
        }
    }
    let allowed = allowed();
    if allowed < 2 * FILES {
        tracing::warn!(allowed, "few files may be open: `ulimit -n` (LimitNOFILE) should be {} or more", 2 * FILES);
    }
}

/// How many connections may be open, so that log and store can always open their files.
pub(crate) fn connections() -> usize {
    let connections = allowed().saturating_sub(FILES).clamp(LEAST_CONNECTIONS, MOST_CONNECTIONS);
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
        assert_eq!(connections() as u64, LEAST_CONNECTIONS);
        raise();
        let most = limit.maximum.unwrap_or(u64::MAX);
        assert_eq!(allowed(), most.min(MOST_CONNECTIONS + FILES));
        assert!(connections() as u64 <= most.saturating_sub(FILES).max(LEAST_CONNECTIONS));
    }
}
